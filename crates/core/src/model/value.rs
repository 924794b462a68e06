//! Stored values: encoded, as in a row or a frame, and decoded as a [`Value`].
//!
//! Invariant: an [`EncodedValue`] is opaque here; only `codec` turns its bytes into a [`Value`].

mod merge;
mod number;
mod string;
mod tree;

pub use number::push_number;
pub use string::{JsString, array_index};
pub use tree::{
    Blob, Boxed, Buffer, DomException, ErrorName, ErrorProperties, FileProperties, Node, NodeId,
    RegExp, Value, ViewClass, Window,
};

/// The encoding of a stored value. The numbers are part of the file format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Encoding {
    /// V8's structured clone format, as Deno writes it. Not used in openkv's own files.
    V8 = 1,
    /// A `KvU64`: 8 bytes, little-endian.
    Le64 = 2,
    /// A top-level `Uint8Array`, as it is.
    Bytes = 3,
    /// Everything else.
    Cbor = 67,
}

impl Encoding {
    /// The number in the file and in frames.
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The encoding with this number, `None` if there is none. The caller removes the flag of
    /// spilled values first.
    ///
    /// ```
    /// use openkv_core::model::Encoding;
    /// assert_eq!(Encoding::from_id(67), Some(Encoding::Cbor));
    /// assert_eq!(Encoding::from_id(4), None);
    /// ```
    pub const fn from_id(id: i64) -> Option<Self> {
        match id {
            1 => Some(Self::V8),
            2 => Some(Self::Le64),
            3 => Some(Self::Bytes),
            67 => Some(Self::Cbor),
            _ => None,
        }
    }
}

/// A stored value: its encoding and its bytes. The bytes are not checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EncodedValue {
    /// The encoding of the bytes.
    pub encoding: Encoding,
    /// The bytes.
    pub bytes: Vec<u8>,
}

impl EncodedValue {
    /// A `KvU64`.
    #[must_use]
    pub fn le64(n: u64) -> Self {
        Self { encoding: Encoding::Le64, bytes: n.to_le_bytes().to_vec() }
    }

    /// The number of a `KvU64`; `None` for every other encoding and for a wrong length.
    pub fn as_le64(&self) -> Option<u64> {
        match self.encoding {
            Encoding::Le64 => self.bytes.as_slice().try_into().ok().map(u64::from_le_bytes),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_those_of_the_file_format() {
        let ids =
            [(Encoding::V8, 1), (Encoding::Le64, 2), (Encoding::Bytes, 3), (Encoding::Cbor, 67)];
        for (encoding, id) in ids {
            assert_eq!(encoding.id(), id);
            assert_eq!(Encoding::from_id(i64::from(id)), Some(encoding));
        }
        for id in [-1, 0, 4, 66, 68, 67 + 256, i64::MAX] {
            assert_eq!(Encoding::from_id(id), None);
        }
    }

    #[test]
    fn a_u64_needs_its_encoding_and_eight_bytes() {
        assert_eq!(EncodedValue::le64(u64::MAX).as_le64(), Some(u64::MAX));
        let short = EncodedValue { encoding: Encoding::Le64, bytes: vec![1; 7] };
        assert_eq!(short.as_le64(), None);
        let bytes = EncodedValue { encoding: Encoding::Bytes, bytes: vec![1; 8] };
        assert_eq!(bytes.as_le64(), None);
    }
}
