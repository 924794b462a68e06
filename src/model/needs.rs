//! The needs of a short read, as data: an engine behind a network fetches all of them at once.

use super::{Key, Range};

/// What a read is going to ask of its snapshot, named before the first row is visited.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Needs<'n> {
    /// The entries of these keys, each with its expiry.
    pub keys: &'n [Key],
    /// The entries of these ranges, each up to its limit.
    pub ranges: &'n [Range],
}
