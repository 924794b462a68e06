//! Errors, classified by what the caller can do.
//!
//! The [`Kind`] is API and crosses to JavaScript as a number; the message may change. A failed
//! check is no error, but an outcome of a commit.

use std::fmt;

use super::Capability;

/// Declares the kinds: their numbers in the binding, their codes, their classes in JavaScript and their HTTP
/// statuses. The first paragraph of a row says what happened, the second what to do; `npm run generate` writes the
/// table to the docs and the codes to JavaScript.
macro_rules! kinds {
    ($($(#[doc = $text:literal])* $kind:ident = $number:literal, $code:literal, $class:literal, $status:literal;)*) => {
        /// What the caller can do about an error. The numbers are those of the binding.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub enum Kind {
            $($(#[doc = $text])* $kind = $number,)*
        }

        impl Kind {
            /// Every kind, by number.
            pub const ALL: &[Self] = &[$(Self::$kind,)*];

            /// The code: API, as `code` of an error in JavaScript and over HTTP.
            pub const fn code(self) -> &'static str {
                match self {
                    $(Self::$kind => $code,)*
                }
            }

            /// The name of the class in JavaScript.
            pub const fn class(self) -> &'static str {
                match self {
                    $(Self::$kind => $class,)*
                }
            }

            /// What happened and what to do, in two paragraphs.
            pub const fn text(self) -> &'static [&'static str] {
                match self {
                    $(Self::$kind => &[$($text),*],)*
                }
            }

            /// The status of an HTTP answer with this error.
            pub const fn http_status(self) -> u16 {
                match self {
                    $(Self::$kind => $status,)*
                }
            }
        }
    };
}

kinds! {
    /// An argument is malformed, of the wrong kind, or outside its bounds, a key or cursor is wrong, or `sum`,
    /// `min`, `max` or `append` met a value that is not of its kind.
    ///
    /// Correct the argument.
    Invalid = 1, "INVALID", "TypeError", 400;
    /// A number is outside the range of its type (`KvU64`, the bounds of a `sum`), or a value is nested too
    /// deeply.
    ///
    /// Correct the argument.
    Range = 2, "RANGE", "RangeError", 400;
    /// Another writer changed what was read; from a transaction without retries left, as `KvConflictError`.
    ///
    /// Read again and retry.
    Conflict = 3, "CONFLICT", "KvError", 409;
    /// Not possible now: another process holds the file longer than `busyTimeout`, the disk is full, too many files
    /// are open, a search or count took too long.
    ///
    /// Nothing was done; try again later.
    Unavailable = 4, "UNAVAILABLE", "KvError", 503;
    /// The commit may or may not have happened: the disk failed while it became durable, or the answer of a server
    /// was lost ([remote.md](remote.md)).
    ///
    /// Read to find out, then decide.
    OutcomeUnknown = 5, "OUTCOME_UNKNOWN", "KvOutcomeUnknownError", 500;
    /// The handle is closed.
    ///
    /// Open the database again.
    Closed = 6, "CLOSED", "BadResource", 503;
    /// This process may not read or write the file, the handle is `readonly`, or the file has several hard links and
    /// the call would write.
    ///
    /// Change the permissions, or do not write; remove the other links.
    Denied = 7, "DENIED", "KvError", 403;
    /// The file is damaged, or is not a database of this kind.
    ///
    /// Restore a backup, check the path.
    Corrupt = 8, "CORRUPT", "KvError", 422;
    /// A bug of openkv.
    ///
    /// Report it with its message.
    Internal = 9, "INTERNAL", "KvError", 500;
    /// The request is valid, but this version or this database does not offer it; or the file has a newer format than
    /// this version knows.
    ///
    /// Do it another way; update openkv.
    Unsupported = 10, "UNSUPPORTED", "KvError", 422;
    /// The change feed no longer reaches back to where it should continue.
    ///
    /// Read the present state, and follow from its versionstamp.
    FeedGap = 11, "FEED_GAP", "KvFeedGapError", 422;
    /// A key, a value, a message, a query, or a number of them is over a limit ([limits.md](limits.md)).
    ///
    /// Send less, or raise the limit that the message names.
    TooLarge = 12, "TOO_LARGE", "TypeError", 413;
    /// A unique index has the value for another key already ([indexes.md](indexes.md)).
    ///
    /// Change the other entry, or write another value.
    NotUnique = 13, "UNIQUE", "KvUniqueError", 409;
}

impl Kind {
    /// The highest number that every released reader knows. A later one crosses only to readers that say that
    /// they know it.
    pub const KNOWN: u8 = Self::FeedGap as u8;

    /// The kind of a number of the binding.
    ///
    /// ```
    /// use openkv_core::model::Kind;
    /// assert_eq!(Kind::from_number(11), Some(Kind::FeedGap));
    /// assert_eq!(Kind::from_number(0), None);
    /// ```
    pub fn from_number(number: u8) -> Option<Self> {
        Self::ALL.iter().copied().find(|kind| *kind as u8 == number)
    }

    /// Whether the arguments of the call are at fault, and not the database: repeated, the call fails again.
    pub const fn is_of_input(self) -> bool {
        matches!(self, Self::Invalid | Self::TooLarge | Self::Range)
    }

    /// The kind for a reader that knows the kinds up to a number. [`Kind::TooLarge`] was [`Kind::Invalid`] before it
    /// had a number.
    ///
    /// ```
    /// use openkv_core::model::Kind;
    /// assert_eq!(Kind::TooLarge.known_to(11), Kind::Invalid);
    /// assert_eq!(Kind::TooLarge.known_to(12), Kind::TooLarge);
    /// assert_eq!(Kind::FeedGap.known_to(11), Kind::FeedGap);
    /// ```
    #[must_use]
    pub const fn known_to(self, known: u8) -> Self {
        if self as u8 <= known {
            return self;
        }
        match self {
            Self::NotUnique if known >= Self::Conflict as u8 => Self::Conflict,
            _ => Self::Invalid,
        }
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

    /// More than a limit allows.
    pub fn too_large(message: impl Into<String>) -> Self {
        Self::new(Kind::TooLarge, message)
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

    /// The same error with its place in front of its message.
    #[must_use]
    pub fn at(self, place: &str) -> Self {
        Self { message: format!("{place}: {}", self.message), ..self }
    }

    /// The same error with its place behind Deno's words.
    #[must_use]
    pub fn about(self, place: &str) -> Self {
        Self { message: format!("{} ({place})", self.message), ..self }
    }

    /// The same error for a reader that knows the kinds up to a number: [`Kind::known_to`].
    #[must_use]
    pub fn known_to(self, known: u8) -> Self {
        Self { kind: self.kind.known_to(known), ..self }
    }

    /// The kind.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The capability that the database lacks for the request. It does not cross to other processes.
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
