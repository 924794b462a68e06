//! Storage: SQLite files and memory.
//!
//! Duty: hold entries and messages, answer reads from one point in time, and carry out [`Work`] as
//! one transaction whose outcomes are decided by [`crate::commit`].
//! Invariant: work that [`Writer::apply`] has answered is as durable as asked, and visible to every
//! later snapshot; work that failed has changed nothing.
//! Never: decide the meaning of a write, or call back into the store.

mod feed;
mod fulltext;
pub mod memory;
pub mod sqlite;
#[cfg(test)]
mod suite;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub use crate::commit::{Report, Work};
use crate::model::{
    DeadLetter, DeadLetterChange, QueueStats, Result, Row, Seen, Step, Versionstamp, Walk,
};
pub use feed::{FeedLog, FeedState, Logged};
pub use fulltext::{Finder, Indexer};

/// An open database: it makes any number of readers and exactly one writer.
pub trait Engine: Maintenance + 'static {
    /// Reads; used by one thread at a time.
    type Reader: Reader;
    /// Writes; there is one in a process.
    type Writer: Writer;

    /// A new reader.
    ///
    /// # Errors
    /// What the medium answers.
    fn reader(&self) -> Result<Self::Reader>;

    /// The writer. Called once.
    ///
    /// # Errors
    /// What the medium answers; `Denied` for a read-only database.
    fn writer(&self) -> Result<Self::Writer>;

    /// Calls `wake` whenever another process may have committed, until the guard is dropped.
    /// `None` where there can be no other process.
    ///
    /// # Errors
    /// What the operating system answers.
    fn watch_external(&self, wake: Box<dyn Fn() + Send>) -> Result<Option<ExternalWatch>>;
}

/// Work on a database as a whole, while it is in use. The time of a call grows with the size of the
/// database; it runs on the caller's thread.
pub trait Maintenance: Send + Sync {
    /// Copies a snapshot of the database into a new file and verifies the copy: opens it, checks its
    /// integrity and compares the contents. `step` gets the pages copied and all pages, and ends the
    /// work by answering `false`. A failure leaves no file behind.
    ///
    /// # Errors
    /// `Invalid` if the target exists; `Unsupported` for a database without a file;
    /// `Unavailable` when ended by `step`; what the medium answers.
    fn backup(&self, to: &Path, step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup>;

    /// Checks the integrity of everything; answers at most `findings_max` findings. Ends when
    /// `goes_on` answers `false`.
    ///
    /// # Errors
    /// `Closed` when ended by `goes_on`; what the medium answers.
    fn check(&self, findings_max: usize, goes_on: &GoesOn) -> Result<Vec<String>>;
}

/// A verified copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Its size.
    pub bytes: u64,
    /// Entries in it, expired ones included.
    pub entries: u64,
    /// Its last commit.
    pub stamp: Versionstamp,
    /// SHA-256 of all rows of all tables, in order: equal for the source and the copy.
    pub digest: [u8; 32],
}

/// A running [`Engine::watch_external`]; dropping it ends the watch.
pub struct ExternalWatch(Box<dyn ExternalWatchGuard>);

/// Ends a watch when it is dropped.
pub trait ExternalWatchGuard: Send {
    /// Why the watch polls: an error of the operating system.
    fn refusal(&self) -> Option<Refusal> {
        None
    }
}

/// An error of the operating system that keeps a watch from being notified.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// The text of the error.
    pub reason: String,
    /// When it began.
    pub since: Instant,
}

impl ExternalWatch {
    /// Wraps a guard that ends the watch when it is dropped.
    pub fn new(guard: impl ExternalWatchGuard + 'static) -> Self {
        Self(Box::new(guard))
    }

    /// As [`ExternalWatchGuard::refusal`].
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        self.0.refusal()
    }
}

/// Whether work goes on. The thread that does the work asks often.
pub type GoesOn = Arc<dyn Fn() -> bool + Send + Sync>;

/// Reads from snapshots.
pub trait Reader: Send {
    /// Runs `job` on one snapshot that is current when the call starts: it contains every commit
    /// answered before, by any process. Entries that expire at or before `now_ms` are absent.
    ///
    /// # Errors
    /// What the medium or the job answers.
    fn read(
        &mut self,
        now_ms: i64,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()>;

    /// As [`Reader::read`]. While a call of the job to its snapshot takes long, the reader asks
    /// `goes_on` now and then; on `false` that call fails, and the reader stays usable.
    ///
    /// # Errors
    /// As [`Reader::read`]; `Unavailable` when it was ended.
    fn read_while(
        &mut self,
        now_ms: i64,
        goes_on: &GoesOn,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()>;

    /// Ends a snapshot that is kept between reads, so that a writer can reset the log.
    fn release(&mut self);

    /// From now on a read that would have to wait for another process answers `Unavailable`
    /// instead: for a thread that must not wait.
    ///
    /// # Errors
    /// What the medium answers.
    fn never_wait(&mut self) -> Result<()> {
        Ok(())
    }

    /// How many pages were found in a cache, and how many were not, since the last call.
    fn take_cache_looks(&mut self) -> (u64, u64) {
        (0, 0)
    }
}

/// One point in time.
pub trait Snapshot: Finder {
    /// Visits the entry of a key; `false` when there is none.
    ///
    /// # Errors
    /// What the medium answers.
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(Row<'_>)) -> Result<bool>;

    /// When the entry of a key expires, in ms since the epoch. Inner `None`: never; outer `None`:
    /// there is no entry. Reads no value.
    ///
    /// # Errors
    /// What the medium answers.
    fn expiry(&mut self, key: &[u8]) -> Result<Option<Option<i64>>>;

    /// Visits the entries with `start <= key < end` in order until `visit` answers `false`.
    ///
    /// # Errors
    /// What the medium answers.
    fn scan(
        &mut self,
        start: &[u8],
        end: &[u8],
        reverse: bool,
        visit: &mut dyn FnMut(Row<'_>) -> bool,
    ) -> Result<()>;

    /// How large the database is.
    ///
    /// # Errors
    /// What the medium answers.
    fn stats(&mut self) -> Result<Stats>;

    /// The log of changes.
    fn feed(&mut self) -> Box<dyn FeedLog + '_>;

    /// As [`Snapshot::scan`], with expiries and with or without values; the answers of `visit` lead
    /// the walk.
    ///
    /// # Errors
    /// What the medium answers.
    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()>;

    /// How many messages of a queue are in which state, without reading them.
    ///
    /// # Errors
    /// What the medium answers.
    fn queue_stats(&mut self, queue: &str) -> Result<QueueStats>;

    /// The names of the queues with any message or dead letter, the first `count_max`.
    ///
    /// # Errors
    /// What the medium answers.
    fn queues(&mut self, count_max: usize) -> Result<Vec<String>>;

    /// Visits the dead letters of a queue after `after`, by time of death and number, until `visit`
    /// answers `false`. Leaves out those whose retention is over.
    ///
    /// # Errors
    /// What the medium answers.
    fn dead_letters(
        &mut self,
        queue: &str,
        after: (i64, i64),
        visit: &mut dyn FnMut(DeadLetter) -> bool,
    ) -> Result<()>;

    /// The dead letter with this number, if it is of this queue.
    ///
    /// # Errors
    /// What the medium answers.
    fn dead_letter(&mut self, queue: &str, id: i64) -> Result<Option<DeadLetter>>;
}

/// When the next timed work is due, in ms since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextDeadlines {
    /// The earliest expiry of an entry.
    pub expiry_ms: Option<i64>,
    /// The earliest end of a dead letter's retention.
    pub purge_ms: Option<i64>,
    /// Whether an index is being built: its next step is due at once.
    pub building: bool,
}

/// Carries out work.
pub trait Writer: Send + Indexer {
    /// Carries out work in one transaction. `deadline` bounds the wait for other processes.
    ///
    /// # Errors
    /// The transaction changed nothing: `Unavailable` when the deadline passed or the disk is full,
    /// `Denied`, `Corrupt`. `OutcomeUnknown` if it failed while becoming durable.
    fn apply(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Result<Report>;

    /// Turns on the log of changes: every process logs all later commits. Answers the last commit.
    /// `deadline` bounds the wait for other processes.
    ///
    /// # Errors
    /// As [`Writer::apply`].
    fn log_changes(&mut self, deadline: Instant) -> Result<u64>;

    /// When the next timed work is due.
    ///
    /// # Errors
    /// What the medium answers.
    fn next_deadlines(&mut self) -> Result<NextDeadlines>;

    /// The earliest time at which a message of a queue can be claimed, in ms since the epoch: when it
    /// is due, or when its lock expires.
    ///
    /// # Errors
    /// What the medium answers.
    fn next_message_ms(&mut self, queue: &str) -> Result<Option<i64>>;

    /// How many messages of a queue wait or are locked.
    ///
    /// # Errors
    /// What the medium answers.
    fn queue_depth(&mut self, queue: &str) -> Result<u64>;

    /// Changes dead letters of a queue, in one transaction.
    ///
    /// # Errors
    /// As [`Writer::apply`].
    fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<DeadLettersChanged>;

    /// Moves commits from the log into the file, as far as readers allow it.
    ///
    /// # Errors
    /// What the medium answers.
    fn checkpoint(&mut self) -> Result<Checkpoint>;

    /// Rewrites the database without its free pages. `deadline` bounds the wait for other processes.
    /// When `goes_on` answers `false`, the work ends and the database is as before.
    ///
    /// # Errors
    /// `Closed` when ended by `goes_on`; what the medium answers.
    fn vacuum(&mut self, deadline: Instant, goes_on: &GoesOn) -> Result<Vacuumed>;
}

/// The result of a change of dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLettersChanged {
    /// How many were changed.
    pub count: usize,
    /// The last commit before it, and its own last one: a requeue counts as a commit, so that other
    /// processes look.
    pub versions: (u64, u64),
}

/// What a vacuum did. All zero where there is no file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Vacuumed {
    /// Bytes of the database before it.
    pub before_bytes: u64,
    /// Bytes of the database after it.
    pub after_bytes: u64,
}

/// How large a database is. Bytes and pages are zero where there is no file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stats {
    /// Bytes of the database, with the commits that are only in the log.
    pub database_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages that are free.
    pub free_pages: u64,
    /// The last commit.
    pub stamp: Versionstamp,
}

/// What a checkpoint did. All zero where there is no log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checkpoint {
    /// Pages that the log held.
    pub log_pages: u64,
    /// Pages of them that are in the file now.
    pub moved_pages: u64,
}
