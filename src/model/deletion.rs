//! Deletions of many entries, chosen by what they are.

use std::collections::HashMap;

use super::{Key, Versionstamp};

/// Which entries to delete in one commit, and how far to look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    /// Among which entries.
    pub among: Among,
    /// A filter object in CBOR, which their values have to meet.
    pub filter: Option<Vec<u8>>,
    /// Entries that were held against the filter before the commit, which need not be again.
    pub known: Known,
    /// What `$now` is in it, in ms since the epoch.
    pub now_ms: i64,
    /// Most entries to delete.
    pub count_max: usize,
    /// What to do when there are more to look at or to delete.
    pub beyond: Beyond,
}

/// By key: the commit of the entry, and whether its value meets the filter. Of an entry that has
/// changed since it says nothing.
pub type Known = HashMap<Key, (u64, bool)>;

/// The entries that a deletion chooses among.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Among {
    /// Those of these keys.
    Keys(Vec<Key>),
    /// Those with `start <= key < end`.
    Span {
        /// First key, included.
        start: Key,
        /// Last key, excluded.
        end: Key,
    },
}

/// What happens where a deletion reaches its bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Beyond {
    /// It ends there, and says where the next one goes on.
    Resume,
    /// It is refused as a whole if it would delete more than this.
    Refuse(usize),
}

/// What a deletion did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deleted {
    /// How many entries.
    pub count: usize,
    /// The commit, if there were any.
    pub stamp: Option<Versionstamp>,
    /// The first key that has not been looked at; `None` when all have been, or enough were deleted.
    /// Of a deletion in one commit: too many entries were not known, and none was deleted.
    pub resume: Option<Key>,
}
