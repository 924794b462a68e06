//! The error of the readers.

use std::fmt;

/// The bytes violate the format.
///
/// Whether that is an error of the caller or damage of a file depends on their source, so the
/// caller chooses the kind of error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Malformed {
    what: &'static str,
    at: usize,
}

impl Malformed {
    /// With a description of the fault, and its offset.
    pub const fn new(what: &'static str, at: usize) -> Self {
        Self { what, at }
    }

    /// A short description of the fault, without the position.
    pub const fn what(&self) -> &'static str {
        self.what
    }
}

impl fmt::Display for Malformed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (at byte {})", self.what, self.at)
    }
}

impl std::error::Error for Malformed {}
