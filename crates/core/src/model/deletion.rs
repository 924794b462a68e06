//! Deletion of many entries, selected by range, key and filter.

use std::collections::HashMap;

use super::{Key, Versionstamp};

/// The entries to delete in one commit, and the bounds of the work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// The candidates.
    pub among: Among,
    /// A filter object in CBOR that their values must match.
    pub filter: Option<Vec<u8>>,
    /// Results of the filter, computed before the commit.
    pub known: FilterResults,
    /// The value of `$now` in the filter, in ms since the epoch.
    pub now_ms: i64,
    /// The maximum number of entries to delete.
    pub count_max: usize,
    /// The behaviour at the bounds.
    pub beyond: Beyond,
}

/// Whether the value of each key matches the filter, with the versionstamp for which this holds.
pub type FilterResults = HashMap<Key, (u64, bool)>;

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
    /// Stops at the bound and reports the key at which the next deletion continues.
    Resume,
    /// Fails without deleting if it would delete more than this number.
    Refuse(usize),
}

/// The result of a deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// The number of deleted entries.
    pub count: usize,
    /// The commit, if there were any.
    pub stamp: Option<Versionstamp>,
    /// The first key that was not examined; `None` if the range or the maximum is reached. Set for
    /// a deletion in one commit that deleted nothing because too many entries had no computed
    /// result.
    pub resume: Option<Key>,
}
