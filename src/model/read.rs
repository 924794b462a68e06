//! What a read asks for.

use super::Key;

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
