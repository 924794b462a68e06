//! What can go wrong, by what the caller should do about it.
//!
//! The [`Kind`] is API and crosses to JavaScript as a number; the message is for people and may be
//! reworded. A failed check is not an error: it is an outcome of a commit.

use std::fmt;

/// What the caller can do about an error. The numbers are the wire codes of the binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// The call is wrong; fix its arguments. A `TypeError` in JavaScript.
    Invalid = 1,
    /// A value is outside its range; fix it. A `RangeError` in JavaScript.
    Range = 2,
    /// Another writer changed what was read; read again and retry.
    Conflict = 3,
    /// Not now: busy, disk full, too many files. Nothing was done; retry later.
    Unavailable = 4,
    /// The commit may or may not have happened; read to find out.
    OutcomeUnknown = 5,
    /// The handle was closed; open again. A `BadResource` in JavaScript.
    Closed = 6,
    /// The file or directory may not be written or read by this process.
    Denied = 7,
    /// The file is damaged or not ours; restore a backup or check the path.
    Corrupt = 8,
    /// A bug of openkv; report it.
    Internal = 9,
    /// Understood, but not offered by this database or version.
    Unsupported = 10,
    /// The change feed no longer reaches back that far; read the present state and follow from it.
    FeedGap = 11,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 11] = [
        Self::Invalid,
        Self::Range,
        Self::Conflict,
        Self::Unavailable,
        Self::OutcomeUnknown,
        Self::Closed,
        Self::Denied,
        Self::Corrupt,
        Self::Internal,
        Self::Unsupported,
        Self::FeedGap,
    ];

    /// The kind of that wire code.
    ///
    /// ```
    /// use openkv::model::Kind;
    /// assert_eq!(Kind::from_number(11), Some(Kind::FeedGap));
    /// assert_eq!(Kind::from_number(0), None);
    /// ```
    #[must_use]
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// An error with its kind and a message that names what was wrong and what to do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    message: String,
}

/// The result of everything in this crate that can fail.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// Makes an error.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }

    /// The call is wrong.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    /// The handle or engine is closed.
    #[must_use]
    pub fn closed() -> Self {
        Self::new(Kind::Closed, "Bad resource ID")
    }

    /// The stored bytes are not what they should be.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(Kind::Corrupt, message)
    }

    /// A bug of openkv.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// What the caller can do about it.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The text for people.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
