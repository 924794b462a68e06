//! What a read asks for.

use super::{Encoding, Key, Versionstamp};

/// One question of a read; all questions of a read are answered from one snapshot.
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
        /// Most rows to answer.
        limit: usize,
        /// From the end backwards.
        reverse: bool,
    },
}

/// A question to a database elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// What is asked for.
    pub range: Range,
    /// Whether an answer that is not the newest will do.
    pub eventual: bool,
    /// Whether the answer must be of the same point in time as that of the request before it.
    pub together: bool,
}

/// An entry as a read sees it, borrowed from the engine for the length of a visit.
#[derive(Clone, Copy, Debug)]
pub struct Row<'a> {
    /// Encoded key.
    pub key: &'a [u8],
    /// Stamp of the commit that wrote it.
    pub stamp: Versionstamp,
    /// How the value is encoded.
    pub encoding: Encoding,
    /// The value's bytes.
    pub value: &'a [u8],
}

/// What a walk goes over, and what it wants to see: more than a list does, and stepwise.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'k> {
    /// First key, included.
    pub start: &'k [u8],
    /// Last key, excluded.
    pub end: &'k [u8],
    /// From the end backwards.
    pub reverse: bool,
    /// Whether values are wanted; without, they are not read, and rows show empty ones.
    pub values: bool,
}

/// An entry as a walk sees it.
#[derive(Clone, Copy, Debug)]
pub struct Seen<'a> {
    /// The entry.
    pub row: Row<'a>,
    /// When it ends, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
}

/// Where a walk goes from an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// To the next one.
    Next,
    /// To the first one that is not below this key; in reverse, to the last one below it.
    Seek(Vec<u8>),
    /// No further.
    Stop,
}
