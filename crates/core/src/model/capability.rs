//! What only some databases can do, and the advice of those that cannot.

use super::{Error, Result};

/// Something that only some databases can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Capability {
    /// Reads on the thread of the caller, which waits for nothing but the disk.
    SynchronousReads = 1,
    /// Full-text indexes.
    FullTextSearch = 2,
    /// A verified copy in another file.
    Backup = 3,
    /// Giving free pages back to the file system.
    Vacuum = 4,
    /// Moving commits from the log into the file.
    Checkpoint = 5,
    /// Values in the format of V8, as Deno writes them.
    V8Values = 6,
    /// Checking all pages, keys and values.
    IntegrityCheck = 7,
    /// Snapshots and the log in an archive.
    Archive = 8,
    /// Reads of the past. A file has it once it keeps a history.
    History = 9,
}

impl Capability {
    /// Its number in frames.
    pub const fn number(self) -> u8 {
        self as u8
    }

    /// The feature of the API that needs it, for errors.
    const fn feature(self) -> &'static str {
        match self {
            Self::SynchronousReads => "getSync",
            Self::FullTextSearch => "search",
            Self::Backup => "backup",
            Self::Vacuum => "vacuum",
            Self::Checkpoint => "checkpoint",
            Self::V8Values => "encoding \"v8\"",
            Self::IntegrityCheck => "check",
            Self::Archive => "archive",
            Self::History => "history",
        }
    }
}

/// The capabilities that a database lacks, each with a replacement. An opening reports them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    lacks: &'static [(Capability, &'static str)],
}

impl Capabilities {
    /// Of a file.
    pub const FILE: Self = Self { lacks: &[] };

    /// Of memory.
    pub const MEMORY: Self = Self {
        lacks: &[
            (Capability::Backup, "a database in memory has no file: export it instead"),
            (Capability::Archive, "a database in memory has no file: export it instead"),
        ],
    };

    /// Of a database on PostgreSQL.
    pub const POSTGRES: Self = Self {
        lacks: &[
            (Capability::SynchronousReads, "a database on PostgreSQL cannot be read at once"),
            (
                Capability::FullTextSearch,
                "a database on PostgreSQL is searched on a replica: open it with the option replica, for \
                 example replica: \":memory:\"",
            ),
            (
                Capability::Backup,
                "a database on PostgreSQL is no file: use pg_dump or pg_basebackup, or openkv copy \
                 for its entries",
            ),
            (
                Capability::Vacuum,
                "PostgreSQL reuses the space of deleted rows by itself: see autovacuum, or VACUUM \
                 its tables there",
            ),
            (
                Capability::Checkpoint,
                "PostgreSQL empties its log by itself: see checkpoint_timeout, or CHECKPOINT there",
            ),
            (
                Capability::V8Values,
                "a database on PostgreSQL stores values as CBOR: leave the option out; openkv copy \
                 takes entries from a file of Deno",
            ),
            (
                Capability::IntegrityCheck,
                "a database on PostgreSQL is checked on its server: use pg_amcheck there",
            ),
        ],
    };

    /// Of a database in an object store.
    pub const BUCKET: Self = Self {
        lacks: &[
            (
                Capability::V8Values,
                "a database in an object store stores values as CBOR: leave the option out; openkv copy takes \
                 entries from a file of Deno",
            ),
            (
                Capability::Archive,
                "a database in an object store is in one already: use kv.backup for a copy of it",
            ),
        ],
    };

    /// Of a remote database. Its server refuses further commands by itself.
    pub const REMOTE: Self = Self {
        lacks: &[(Capability::SynchronousReads, "a database behind a URL cannot be read at once")],
    };

    /// Whether the database has it.
    #[must_use]
    pub fn has(self, what: Capability) -> bool {
        self.advice(what).is_none()
    }

    /// Passes if the database has it.
    pub fn require(self, what: Capability) -> Result<()> {
        if self.has(what) { Ok(()) } else { Err(self.refusal(what)) }
    }

    /// The error of a database that lacks it: `Unsupported`, with what to use instead.
    #[must_use]
    pub fn refusal(self, what: Capability) -> Error {
        let advice = self.advice(what).unwrap_or("this database does not offer it");
        Error::lacking(what, format!("{}: {advice}", what.feature()))
    }

    /// The capabilities that the database lacks, each with a replacement.
    #[must_use]
    pub fn lacks(self) -> &'static [(Capability, &'static str)] {
        self.lacks
    }

    fn advice(self, what: Capability) -> Option<&'static str> {
        self.lacks.iter().find(|(lacking, _)| *lacking == what).map(|(_, advice)| *advice)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Kind;

    #[test]
    fn a_refusal_names_the_feature_and_the_advice() {
        assert_eq!(Capabilities::FILE.require(Capability::Backup), Ok(()));
        let refused = Capabilities::MEMORY.require(Capability::Backup).unwrap_err();
        assert_eq!(refused.kind(), Kind::Unsupported);
        assert_eq!(
            refused.message(),
            "backup: a database in memory has no file: export it instead"
        );
        assert!(Capabilities::MEMORY.has(Capability::SynchronousReads));
        assert!(!Capabilities::POSTGRES.has(Capability::SynchronousReads));
    }
}
