//! Committed changes, as a feed tells them.

use super::{EncodedValue, Key};

/// What a commit did to one key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// The key.
    pub key: Key,
    /// The commit.
    pub version: u64,
    /// What it stored; `None`: it removed the entry.
    pub value: Option<EncodedValue>,
}

impl Change {
    /// Bytes of key and value.
    #[must_use]
    pub fn size_bytes(&self) -> usize {
        self.key.len() + self.value.as_ref().map_or(0, |value| value.bytes.len())
    }
}

/// The keys from `start` (included) to `end` (excluded).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRange {
    /// First key.
    pub start: Key,
    /// Behind the last key.
    pub end: Key,
}

impl KeyRange {
    /// Whether a key is in it.
    #[must_use]
    pub fn contains(&self, key: &[u8]) -> bool {
        self.start.as_bytes() <= key && key < self.end.as_bytes()
    }
}
