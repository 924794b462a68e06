//! Committed changes, as a change feed reports them.

use super::{EncodedValue, Key};

/// The change of one key by a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Key,
    /// The commit.
    pub version: u64,
    /// The stored value; `None` if the commit removed the entry.
    pub value: Option<EncodedValue>,
}

impl Change {
    /// Bytes of key and value.
    pub fn size_bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, |value| value.bytes.len())
    }
}

/// A range of keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key, included.
    pub start: Key,
    /// Last key, excluded.
    pub end: Key,
}

impl KeyRange {
    /// Whether the range contains a key.
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_bytes() <= key && key < self.end.as_bytes()
    }
}
