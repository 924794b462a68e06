//! Why bytes were refused.

use std::fmt;

/// The bytes are not what the format allows.
///
/// Whether that is a caller's mistake or a damaged file depends on where they came from, so the
/// caller chooses the kind of error it becomes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    what: &'static str,
    at: usize,
}

impl Malformed {
    /// What was wrong, and at which byte.
    pub(crate) const fn new(what: &'static str, at: usize) -> Self {
        Self { what, at }
    }

    /// What was wrong, in a few words without the place.
    #[must_use]
    pub const fn what(&self) -> &'static str {
        self.what
    }

    /// Where the offending item starts, in bytes from the beginning.
    #[must_use]
    pub const fn at(&self) -> usize {
        self.at
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.what, self.at)
    }
}

impl std::error::Error for Malformed {}
