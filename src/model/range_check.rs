//! A condition on a range of keys: it still has exactly the entries that a transaction listed.

use super::{Key, Versionstamp};

/// The entries with `start <= key < end` are exactly these.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RangeCheck {
    /// First key, included.
    pub start: Key,
    /// Last key, excluded.
    pub end: Key,
    /// The entries that the transaction has read, in key order.
    pub seen: Vec<(Key, Versionstamp)>,
}

impl RangeCheck {
    /// Bytes of its keys, for limits and groups.
    pub(super) fn size_bytes(&self) -> usize {
        let seen: usize = self.seen.iter().map(|(key, _)| key.len()).sum();
        self.start.len() + self.end.len() + seen
    }
}
