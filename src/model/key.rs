//! Keys, which define the order of a database.
//!
//! A [`Key`] is the encoded form of an array of [`KeyPart`]s. Keys compare by their bytes; only the
//! codec compares parts. `codec::key` owns the encoding: this file must not depend on any tag.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;

use num_bigint::BigInt;

/// An encoded key. It is ordered, compared and hashed by its bytes.
///
/// The empty key (no parts) is a valid bound of a range, but no entry can have it.
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
    /// Wraps an encoded key without checking it. The bytes must come from `codec::key` or a stored
    /// row.
    #[must_use]
    pub fn from_encoded(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The encoded bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The encoded bytes, moved out.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Length of the encoding, in bytes. The limits apply to it.
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

/// Lets maps with [`Key`]s be searched by bytes; order and hash are the same.
impl Borrow<[u8]> for Key {
    fn borrow(&self) -> &[u8] {
        &self.0
    }
}

/// As hexadecimal, since most keys are not text.
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
/// Parts have a total order, which is the order of the encoded bytes: bytes < strings < bigints <
/// numbers < booleans. Within a kind:
///
/// - bytes and strings by their bytes (UTF-8), a prefix before its extensions;
/// - bigints by value;
/// - numbers as negative NaN < −∞ < … < −0 < 0 < … < ∞ < NaN. All NaNs of one sign are one part;
/// - `false` before `true`.
///
/// Equality follows this order: −0 and 0 differ, and NaN equals itself.
#[derive(Clone, Debug)]
pub enum KeyPart {
    /// A byte string.
    Bytes(Vec<u8>),
    /// Text. Contains no lone surrogate: U+FFFD replaces each.
    String(String),
    /// An integer of any size up to `codec::key::BIGINT_BYTES_MAX` bytes of magnitude.
    BigInt(BigInt),
    /// An IEEE-754 double.
    Number(f64),
    /// A boolean.
    Bool(bool),
}

impl KeyPart {
    /// The rank of the kind in the order of parts.
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

/// All NaNs of one sign are equal, and lie beyond the infinity of that sign.
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
