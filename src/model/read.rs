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
