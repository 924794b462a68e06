//! Deletions of many entries, chosen by range, key and filter.

use std::collections::HashMap;

use super::{Key, Versionstamp};

/// The entries to delete in one commit, and the bounds of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The candidates.
    pub among: Among,
    /// A filter object in CBOR that their values must match.
    pub filter: Option<Vec<u8>>,
    /// Results of the filter that were computed before the commit.
    pub known: Known,
    /// The value of `$now` in the filter, in ms since the epoch.
    pub now_ms: i64,
    /// Most entries to delete.
    pub count_max: usize,
    /// The behaviour at the bounds.
    pub beyond: Beyond,
}

/// By key: the commit of the entry, and whether its value matches the filter. It does not apply to
/// an entry that has changed since.
pub type Known = HashMap<Key, (u64, bool)>;

/// The candidates of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Among {
    /// The entries of these keys.
    Keys(Vec<Key>),
    /// The entries with `start <= key < end`.
    Span {
        /// First key, included.
        start: Key,
        /// Last key, excluded.
        end: Key,
    },
}

/// The behaviour of a deletion at its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// It ends there, and reports where the next one continues.
    Resume,
    /// It fails as a whole if it would delete more than this.
    Refuse(usize),
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// The number of deleted entries.
    pub count: usize,
    /// The commit, if there were any.
    pub stamp: Option<Versionstamp>,
    /// The first key that was not examined; `None` after the last one, or when enough were deleted.
    /// For a deletion in one commit: too many entries had no computed result, and none was deleted.
    pub resume: Option<Key>,
}
