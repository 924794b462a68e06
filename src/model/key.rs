//! Keys: what a database is ordered by.
//!
//! A [`Key`] is the encoded form of an array of [`KeyPart`]s, and its order is the order of its
//! bytes; nothing above the codec ever compares parts. The encoding itself is `codec::key`'s: this
//! file must never know a tag.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigInt;

/// An encoded key. Ordered, compared and hashed as its bytes.
///
/// The empty key (no parts) exists: it is a bound of ranges, though nothing can be stored under it.
///
/// ```
/// use openkv::model::Key;
/// let a = Key::from_encoded(b"\x02a\x00".to_vec());
/// let b = Key::from_encoded(b"\x02b\x00".to_vec());
/// assert!(a < b);
/// ```
#[derive(Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Key(Vec<u8>);

impl Key {
    /// Takes bytes that are known to be an encoded key, because `codec::key` has written or
    /// validated them or because they came from a row that was written so. They are not checked.
    #[must_use]
    pub fn from_encoded(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The encoded bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The encoded bytes, without a copy.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Length of the encoding, in bytes; the limits count this.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the key has no parts.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl AsRef<[u8]> for Key {
    fn as_ref(&self) -> &[u8] {
        &self.0
    }
}

/// Maps keyed by [`Key`] can be asked with plain bytes: both order and hash alike.
impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// Hexadecimal, since key bytes are seldom text.
impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Key(")?;
        for byte in &self.0 {
            write!(f, "{byte:02x}")?;
        }
        f.write_str(")")
    }
}

/// One part of a key.
///
/// Parts have a total order, and it is the order of the encoded bytes: bytes < strings < bigints <
/// numbers < booleans. Within a kind:
///
/// - bytes and strings by their bytes (UTF-8), a prefix before what extends it;
/// - bigints by value;
/// - numbers as negative NaN < −∞ < … < −0 < 0 < … < ∞ < NaN. All NaNs of one sign are one part;
/// - `false` before `true`.
///
/// Equality follows that order, so −0 and 0 are two parts and NaN equals itself.
#[derive(Clone, Debug)]
pub enum KeyPart {
    /// A byte string.
    Bytes(Vec<u8>),
    /// Text. A lone surrogate of JavaScript cannot occur: it was replaced by U+FFFD.
    String(String),
    /// An integer of any size up to `codec::key::BIGINT_BYTES_MAX` bytes of magnitude.
    BigInt(BigInt),
    /// An IEEE-754 double.
    Number(f64),
    /// A boolean.
    Bool(bool),
}

impl KeyPart {
    /// Place of the part's kind in the order of kinds.
    fn kind(&self) -> u8 {
        match self {
            Self::Bytes(_) => 0,
            Self::String(_) => 1,
            Self::BigInt(_) => 2,
            Self::Number(_) => 3,
            Self::Bool(_) => 4,
        }
    }
}

/// All NaNs of one sign compare equal, and beyond infinity on their side.
fn compare_numbers(a: f64, b: f64) -> Ordering {
    let one_nan = |n: f64| if n.is_nan() { f64::NAN.copysign(n) } else { n };
    one_nan(a).total_cmp(&one_nan(b))
}

impl Ord for KeyPart {
    fn cmp(&self, other: &Self) -> Ordering {
        match (self, other) {
            (Self::Bytes(a), Self::Bytes(b)) => a.cmp(b),
            (Self::String(a), Self::String(b)) => a.cmp(b),
            (Self::BigInt(a), Self::BigInt(b)) => a.cmp(b),
            (Self::Number(a), Self::Number(b)) => compare_numbers(*a, *b),
            (Self::Bool(a), Self::Bool(b)) => a.cmp(b),
            _ => self.kind().cmp(&other.kind()),
        }
    }
}

impl PartialOrd for KeyPart {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for KeyPart {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for KeyPart {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_come_in_the_documented_order() {
        let mut parts = [
            KeyPart::Bool(false),
            KeyPart::Number(f64::NEG_INFINITY),
            KeyPart::BigInt(BigInt::from(1_000)),
            KeyPart::String("z".into()),
            KeyPart::Bytes(vec![0xff]),
        ];
        parts.sort();
        let kinds: Vec<u8> = parts.iter().map(KeyPart::kind).collect();
        assert_eq!(kinds, [0, 1, 2, 3, 4]);
    }

    #[test]
    fn numbers_are_totally_ordered() {
        let odd_nan = f64::from_bits(0x7ff0_0000_0000_0001);
        let ascending =
            [-f64::NAN, f64::NEG_INFINITY, -1.0, -0.0, 0.0, 1.0, f64::INFINITY, f64::NAN];
        let parts = ascending.map(KeyPart::Number);
        assert!(parts.is_sorted_by(|a, b| a < b));
        assert_eq!(KeyPart::Number(odd_nan), KeyPart::Number(f64::NAN));
        assert_eq!(KeyPart::Number(-odd_nan), KeyPart::Number(-f64::NAN));
    }
}
