//! Errors, classified by what the caller can do.
//!
//! The [`Kind`] is API and crosses to JavaScript as a number; the message may change. A failed
//! check is no error, but an outcome of a commit.

use std::fmt;

use super::Capability;

/// What the caller can do about an error. The numbers are those of the binding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
#[repr(u8)]
pub enum Kind {
    /// The arguments are wrong; correct them. A `TypeError` in JavaScript.
    Invalid = 1,
    /// A value is out of range; correct it. A `RangeError` in JavaScript.
    Range = 2,
    /// Another writer changed the data; read again and retry.
    Conflict = 3,
    /// Temporarily impossible: busy, disk full, too many files. Nothing was done; retry later.
    Unavailable = 4,
    /// The commit may or may not have happened; read to find out.
    OutcomeUnknown = 5,
    /// The handle was closed; open again. A `BadResource` in JavaScript.
    Closed = 6,
    /// This process lacks permission to read or write the file or directory.
    Denied = 7,
    /// The file is damaged or was written by another program; restore a backup or check the path.
    Corrupt = 8,
    /// A bug of openkv; report it.
    Internal = 9,
    /// This database or version does not offer the request.
    Unsupported = 10,
    /// The change feed was trimmed past that position; read the current state and start there.
    FeedGap = 11,
}

impl Kind {
    /// Every kind.
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

    /// The kind of a number of the binding.
    ///
    /// ```
    /// use openkv::model::Kind;
    /// assert_eq!(Kind::from_number(11), Some(Kind::FeedGap));
    /// assert_eq!(Kind::from_number(0), None);
    /// ```
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == number)
    }
}

/// An error: its kind, and a message that states the fault and the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    kind: Kind,
    lacks: Option<Capability>,
    message: String,
}

/// The result of every fallible function of this crate.
pub type Result<T, E = Error> = std::result::Result<T, E>;

impl Error {
    /// An error of a kind.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, lacks: None, message: message.into() }
    }

    /// An error in the arguments of a call.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(Kind::Invalid, message)
    }

    /// The handle or engine is closed.
    #[must_use]
    pub fn closed() -> Self {
        Self::new(Kind::Closed, "Bad resource ID")
    }

    /// Temporarily impossible.
    pub fn unavailable(message: impl Into<String>) -> Self {
        Self::new(Kind::Unavailable, message)
    }

    /// This process lacks the permission.
    pub fn denied(message: impl Into<String>) -> Self {
        Self::new(Kind::Denied, message)
    }

    /// This database or version does not offer the request.
    pub fn unsupported(message: impl Into<String>) -> Self {
        Self::new(Kind::Unsupported, message)
    }

    /// This database does not offer the request, because it lacks something.
    pub fn lacking(what: Capability, message: impl Into<String>) -> Self {
        Self { lacks: Some(what), ..Self::unsupported(message) }
    }

    /// Invalid stored bytes.
    pub fn corrupt(message: impl Into<String>) -> Self {
        Self::new(Kind::Corrupt, message)
    }

    /// A bug of openkv.
    pub fn internal(message: impl Into<String>) -> Self {
        Self::new(Kind::Internal, message)
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// What the database lacks for the request. It does not cross to other processes.
    pub fn lacks(&self) -> Option<Capability> {
        self.lacks
    }

    /// The message.
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
