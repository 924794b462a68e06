//! The results of maintenance.

use super::Versionstamp;

/// The size of a database. Bytes and pages are zero without a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of the database, including commits that are only in the log.
    pub database_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// The number of free pages.
    pub free_pages: u64,
    /// Bytes that the log in a file counts, which feeds and replicas read.
    pub logged_bytes: u64,
    /// Whether a vacuum lets other writes in between.
    pub vacuums_in_steps: bool,
    /// The last commit.
    pub stamp: Versionstamp,
}

impl Stats {
    /// Bytes of what was stored: without free pages, and without what readers have turned on.
    #[must_use]
    pub fn stored_bytes(self) -> u64 {
        let not_stored = self.free_pages * self.page_bytes + self.logged_bytes;
        self.database_bytes.saturating_sub(not_stored)
    }
}

/// The result of a checkpoint; zero without a log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Pages in the log.
    pub log_pages: u64,
    /// Pages of the log that are in the file now.
    pub moved_pages: u64,
}

/// The sizes before and after a vacuum; zero without a file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// Bytes of the database before.
    pub before_bytes: u64,
    /// Bytes of the database after.
    pub after_bytes: u64,
    /// How many further calls give back the pages that are still free.
    pub steps_left: u64,
}

/// A verified copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Its size, in bytes.
    pub bytes: u64,
    /// The number of entries, expired ones included.
    pub entries: u64,
    /// Its last commit.
    pub stamp: Versionstamp,
    /// SHA-256 of all rows of all tables, in order: equal for the source and its copy.
    pub digest: [u8; 32],
}
