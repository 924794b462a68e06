//! Keys, which define the order of a database.
//!
//! A [`Key`] is the encoded form of an array of [`KeyPart`]s. Keys compare by their bytes; only the
//! codec compares parts. `codec::key` owns the encoding: this file must not depend on any tag.

use std::borrow::Borrow;
use std::fmt;

use num_bigint::BigInt;

/// An encoded key. It is ordered, compared and hashed by its bytes.
///
/// The empty key (no parts) is a valid bound of a range, but no entry can have it.
///
/// ```
/// use openkv_core::model::Key;
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
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// The encoded bytes, moved out.
    pub fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    /// Length of the encoding, in bytes. The limits apply to it.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether the key has no parts.
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
/// The order of the encoded bytes is a total order of parts: bytes < strings < bigints <
/// numbers < booleans. Within a kind:
///
/// - bytes and strings by their bytes (UTF-8), a prefix before its extensions;
/// - bigints by value;
/// - numbers as negative NaN < −∞ < … < −0 < 0 < … < ∞ < NaN. All NaNs of one sign are one part;
/// - `false` before `true`.
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
