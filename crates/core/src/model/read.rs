//! Reads: requests, rows and scans of the engine.

use super::{Encoding, Key, Versionstamp};

/// One request of a read; all requests of a read are answered from one snapshot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Range {
    /// The entry of one key.
    Point(Key),
    /// The entries with `start <= key < end`.
    Span {
        /// First key, included.
        start: Key,
        /// Last key, excluded.
        end: Key,
        /// Maximum number of rows.
        limit: usize,
        /// Whether the order is descending.
        reverse: bool,
    },
}

impl Range {
    /// Whether it is a point read.
    pub const fn is_point(&self) -> bool {
        matches!(self, Self::Point(_))
    }
}

/// A request to a remote database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The range or key.
    pub range: Range,
    /// Whether eventual consistency is enough.
    pub eventual: bool,
    /// Whether the answer must come from the same snapshot as that of the previous request.
    pub together: bool,
}

/// An entry, borrowed from the engine while a visitor runs.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Encoded key.
    pub key: &'a [u8],
    /// The versionstamp of the commit that wrote it.
    pub stamp: Versionstamp,
    /// The encoding of the value.
    pub encoding: Encoding,
    /// The value's bytes.
    pub value: &'a [u8],
}

/// The range and options of a walk over entries. Its visitor decides where it continues.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'k> {
    /// First key, included.
    pub start: &'k [u8],
    /// Last key, excluded.
    pub end: &'k [u8],
    /// Whether the order is descending.
    pub reverse: bool,
    /// Whether to read values; otherwise rows have empty ones.
    pub values: bool,
}

/// An entry of a walk.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The entry.
    pub row: Row<'a>,
    /// The expiry, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
}

/// The point at which a walk continues after an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// At the next entry.
    Next,
    /// At the first entry whose key is not below this one; in reverse, at the last one below it.
    Seek(Vec<u8>),
    /// Nowhere: the walk ends.
    Stop,
}

/// The entries that a read needs, named before the first row is visited: an engine behind a
/// network fetches all of it at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs<'n> {
    /// The entries of these keys, each with its expiry.
    pub keys: &'n [Key],
    /// The entries of these ranges, each up to its limit.
    pub ranges: &'n [Range],
}
