//! Storage: SQLite files, PostgreSQL, object stores, memory.
//!
//! Duty: store entries and messages, answer reads from one point in time, and execute [`Work`] as
//! one transaction whose outcomes [`openkv_core::commit`] decides.
//! Invariant: once the outcome of a batch is known, by [`Writer::begin`] or [`Writer::ended`], its
//! work is as durable as requested and visible to every later snapshot; failed work has changed
//! nothing. Outcomes are known in the order in which the batches began.
//! Never: decide the meaning of a write, or call back into the store, except to wake it.

// The example of an engine names this crate as other crates do, and is tested with the others.
#[cfg(test)]
extern crate self as openkv_engines;

pub mod bucket;
pub mod cluster;
mod feed;
mod fulltext;
pub mod memory;
mod no_messages;
pub mod objects;
mod packed;
mod parkable;
mod past;
pub mod postgres;
mod queues;
mod replication;
pub mod sqlite;
#[cfg(test)]
mod suite;
mod writer;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub use feed::FeedState;
pub use fulltext::{Finder, Indexer};
pub use no_messages::NoMessages;
pub use openkv_core::commit::{Report, Ticket, Work};
use openkv_core::model::{
    Backup, Capabilities, CopiedEntry, Error, Key, Moment, Needs, Range, RequestCounts, Result,
    Row, Seen, Sharing, Stats, Step, Walk,
};
pub use parkable::ParkableWriter;
pub use past::PastEngine;
pub use queues::Queues;
use replication::NoLog;
pub use replication::ReplicationLog;
pub(crate) use replication::no_history;
pub use sqlite::{give_back_freed_memory, set_open_max};
pub use writer::Writer;

/// An open database. It creates any number of readers and exactly one writer. Its methods, and those of
/// its readers and snapshots, fail with errors of the medium, and with those that they name.
pub trait Engine: Maintenance + 'static {
    /// Reads; belongs to one thread at a time.
    type Reader: Reader;
    /// Writes; a process has one.
    type Writer: Writer;

    /// The capabilities of the medium.
    fn capabilities(&self) -> Capabilities;

    /// A new reader.
    fn reader(&self) -> Result<Self::Reader>;

    /// As [`Engine::reader`], for a thread that must not wait: the reader never does ([`Reader::never_wait`]).
    fn reader_at_once(&self) -> Result<Self::Reader> {
        let mut reader = self.reader()?;
        reader.never_wait()?;
        Ok(reader)
    }

    /// A reader of a moment of the past: its snapshots have the entries that a reader had then. A read
    /// fails once the history no longer reaches back to the moment.
    ///
    /// # Errors
    /// Errors of the medium; `Unsupported` if the engine keeps no history.
    fn reader_at(&self, _moment: Moment) -> Result<Self::Reader> {
        Err(no_history())
    }

    /// The writer. There is one at a time.
    ///
    /// # Errors
    /// Errors of the medium; `Denied` for a read-only database.
    fn writer(&self) -> Result<Self::Writer>;

    /// Calls `tell` whenever another process has committed, or may have, until the guard is dropped.
    /// `None` if no other process can.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn watch_external(&self, _tell: TellExternal) -> Result<Option<ExternalWatch>> {
        Ok(None)
    }
}

/// Commits of other processes, as far as an engine knows them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExternalCommits {
    /// There may be some, and they may have changed any key.
    Unknown,
    /// All commits in a range; those of this process may be among them.
    Known {
        /// The last commit before them, and the last of them.
        versions: (u64, u64),
        /// The keys whose entries they have changed.
        keys: Vec<Key>,
    },
    /// There are none any more: the database cannot be used, for this reason.
    Lost(Error),
}

/// Gets the external commits of an [`Engine::watch_external`].
pub type TellExternal = Box<dyn Fn(&ExternalCommits) + Send>;

/// Closes the connections of a database that no call uses. Returns whether it has, or will have, none. It waits
/// for nothing.
pub type Park = Box<dyn Fn() -> bool + Send + Sync>;

/// Operations on a whole database while it is in use. They run on the thread of the caller and take
/// time in proportion to the size of the database.
pub trait Maintenance: Send + Sync {
    /// Copies a snapshot of the database into a new file and verifies the copy: opens it, checks
    /// its integrity and compares the contents. `step` receives the number of pages copied and of
    /// all pages; `false` cancels the backup. A failure leaves no file behind.
    ///
    /// # Errors
    /// `Invalid` if the target exists; `Unsupported` for a database without a file; `Unavailable`
    /// if `step` cancels; errors of the medium.
    fn backup(&self, _to: &Path, _step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup> {
        Err(Error::unsupported("kv.backup: this database has no file: export it instead"))
    }

    /// Whether reads wait for another machine before they see a snapshot, and reads at hand do not.
    fn reads_wait(&self) -> bool {
        false
    }

    /// The lengths of the file and of its log; `None` for a database whose snapshots keep no log.
    fn lengths(&self) -> Option<Lengths> {
        None
    }

    /// The requests of this process to an object store; `None` for a database that is in none.
    fn requests(&self) -> Option<RequestCounts> {
        None
    }

    /// What this process is to the database, as far as it knows without a request.
    fn leadership(&self) -> Leadership {
        Leadership::Leads
    }

    /// Sets how the connections of the database are closed when the process has too many databases open; `None`
    /// once the store ends. The engine opens new ones by [`Engine::reader`] and [`Engine::writer`].
    fn set_park(&self, _park: Option<Park>) {}

    /// Checks the integrity of the whole database and returns at most `findings_max` findings.
    ///
    /// # Errors
    /// `Closed` if `goes_on` returns `false`; errors of the medium.
    fn check(&self, _findings_max: usize, _goes_on: &GoesOn) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

/// The schemes of the URLs of object stores, and of folders that are used like one.
pub const BUCKET_SCHEMES: [&str; 4] = ["s3", "gs", "az", "bucket+file"];

/// What a process is to a database that one process at a time leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Leadership {
    /// It decides writes. So does every process where no leader is needed.
    Leads,
    /// It reads; it leads, or is refused, with its next write.
    Follows,
    /// The database has to be opened again.
    Ended,
}

/// The lengths of a database's file and of its log. The log is not reset while a snapshot needs it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths {
    /// Bytes of the file.
    pub file_bytes: u64,
    /// Bytes of the log.
    pub log_bytes: u64,
}

/// A running [`Engine::watch_external`]; dropping it ends the watch.
pub struct ExternalWatch(Box<dyn ExternalWatchGuard>);

/// Ends a watch when it is dropped.
pub trait ExternalWatchGuard: Send {
    /// The error of the operating system because of which the watch polls.
    fn refusal(&self) -> Option<Refusal> {
        None
    }
}

/// An error of the operating system that prevents notifications.
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

/// Whether the caller still waits for the result. Long work calls it at short intervals.
pub type GoesOn = Arc<dyn Fn() -> bool + Send + Sync>;

/// Reads from snapshots.
pub trait Reader: Send {
    /// Runs `job` on one snapshot that is current when the call starts: it contains every commit
    /// that was answered before, by any process. Entries that expire at or before `now_ms` are
    /// absent; with `BEFORE_EXPIRY_MS` none is, also where another clock than the caller's counts.
    /// With `goes_on`, a long call of the job to its snapshot checks it; on `false` that call fails,
    /// and the reader remains usable.
    ///
    /// # Errors
    /// Errors of the medium and of the job; `Unavailable` if `goes_on` returned `false`.
    fn read_within(
        &mut self,
        now_ms: i64,
        goes_on: Option<&GoesOn>,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()>;

    /// [`Reader::read_within`], to the end of the job.
    fn read(
        &mut self,
        now_ms: i64,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        self.read_within(now_ms, None, job)
    }

    /// [`Reader::read_within`], while the caller waits.
    fn read_while(
        &mut self,
        now_ms: i64,
        goes_on: &GoesOn,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        self.read_within(now_ms, Some(goes_on), job)
    }

    /// As [`Reader::read`], on what this process has of the database: without a request of its own to find out whether
    /// another process has committed, and without a wait for one.
    fn read_at_hand(
        &mut self,
        now_ms: i64,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        self.read(now_ms, job)
    }

    /// Ends a snapshot that is kept between reads, so that a writer can reset the log.
    fn release(&mut self) {}

    /// Gives back what it can open again for the next read, because none came for long.
    fn rest(&mut self) {}

    /// From now on a read that would wait for another process fails with `Unavailable`: for a
    /// thread that must not block.
    fn never_wait(&mut self) -> Result<()> {
        Ok(())
    }

    /// The number of cache hits and misses since the last call.
    fn take_cache_counts(&mut self) -> (u64, u64) {
        (0, 0)
    }
}

/// The state of a database at one point in time.
pub trait Snapshot: Finder {
    /// Fetches what the next calls name, with as few trips as the medium needs: the entries of
    /// [`Needs::keys`] for [`Snapshot::get`], [`Snapshot::expiry`] and a walk of one key, the ranges
    /// for `visit`. A local engine has nothing to do.
    fn prefetch(&mut self, _needs: Needs<'_>) -> Result<()> {
        Ok(())
    }

    /// Visits the entry of a key; `false` if there is none.
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        let mut found = false;
        self.walk(
            Walk { start: key, end: &key_behind(key), reverse: false, values: true },
            &mut |seen| {
                found = true;
                visit(seen.row);
                Step::Stop
            },
        )?;
        Ok(found)
    }

    /// Visits the entry of a key with its expiry, if there is one.
    ///
    /// # Errors
    /// Errors of the medium.
    fn entry(&mut self, key: &[u8], visit: &mut dyn FnMut(Seen<'_>)) -> Result<()> {
        let walk = Walk { start: key, end: &key_behind(key), reverse: false, values: true };
        self.walk(walk, &mut |seen| {
            visit(seen);
            Step::Stop
        })
    }

    /// The expiry of a key's entry, in ms since the epoch. Inner `None`: it does not expire; outer
    /// `None`: there is no entry. Reads no value.
    fn expiry(&mut self, key: &[u8]) -> Result<Option<Option<i64>>> {
        let mut found = None;
        self.walk(
            Walk { start: key, end: &key_behind(key), reverse: false, values: false },
            &mut |seen| {
                found = Some(seen.expire_at_ms);
                Step::Stop
            },
        )?;
        Ok(found)
    }

    /// Visits the entries with `start <= key < end` in order until `visit` returns `false`.
    fn scan(
        &mut self,
        start: &[u8],
        end: &[u8],
        reverse: bool,
        visit: &mut dyn FnMut(Row<'_>) -> bool,
    ) -> Result<()> {
        let walk = Walk { start, end, reverse, values: true };
        self.walk(walk, &mut |seen| if visit(seen.row) { Step::Next } else { Step::Stop })
    }

    /// The size of the database.
    fn stats(&mut self) -> Result<Stats>;

    /// The counters that the database keeps ([`Writer::keep_metrics`]), if it has any.
    fn kept_metrics(&mut self) -> Result<Option<String>> {
        Ok(None)
    }

    /// The part of this process in a database on a server; `None` for a database that is
    /// not on one.
    fn sharing(&mut self) -> Result<Option<Sharing>> {
        Ok(None)
    }

    /// How far feeds can read back. By default that of an engine without a log: not at all.
    fn feed_state(&mut self) -> Result<FeedState> {
        let version = self.stats()?.stamp.version();
        Ok(FeedState::of(version, version, None))
    }

    /// The log.
    fn log(&mut self) -> Result<Box<dyn ReplicationLog + '_>> {
        Ok(Box::new(NoLog))
    }

    /// As [`Snapshot::scan`], with expiries and with or without values; `visit` returns where to
    /// continue.
    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()>;

    /// The messages of the queues.
    ///
    /// # Errors
    /// `Unsupported` if the snapshot has entries only.
    fn queues(&mut self) -> Result<Box<dyn Queues + '_>> {
        Ok(Box::new(NoMessages))
    }
}

/// The first key behind a key.
fn key_behind(key: &[u8]) -> Vec<u8> {
    [key, &[0]].concat()
}

impl dyn Snapshot + '_ {
    /// Visits the entries of a range in order, until `visit` answers `false`. It also gets whether
    /// the entry is the last that the range's limit allows.
    pub fn visit(
        &mut self,
        range: &Range,
        mut visit: impl FnMut(Row<'_>, bool) -> bool,
    ) -> Result<()> {
        match range {
            Range::Point(key) => {
                let mut visit = |row: Row<'_>| {
                    visit(row, true);
                };
                self.get(key.as_bytes(), &mut visit).map(drop)
            }
            Range::Span { start, end, limit, .. } if *limit == 0 || start >= end => Ok(()),
            Range::Span { start, end, limit, reverse } => {
                let mut left = *limit;
                self.scan(start.as_bytes(), end.as_bytes(), *reverse, &mut |row| {
                    left = left.saturating_sub(1);
                    visit(row, left == 0) && left > 0
                })
            }
        }
    }
}

/// When the next timed work is due, in ms since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NextDeadlines {
    /// The earliest expiry of an entry.
    pub expiry_ms: Option<i64>,
    /// The earliest end of a dead letter's retention.
    pub purge_ms: Option<i64>,
    /// Whether an index is being built, so that its next step is due at once.
    pub building: bool,
}

/// The next entries of a copy, in the order of their keys; `None` after the last ones. It may wait.
pub type NextEntries<'a> = &'a mut dyn FnMut() -> Result<Option<Vec<CopiedEntry>>>;

/// The progress of a batch when [`Writer::begin`] returns.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a local engine is always done, and a box would cost an allocation for each batch"
)]
pub enum Progress {
    /// The batch is committed. Only while no other batch is under way.
    Done(Report),
    /// The batch is under way: [`Writer::ended`] returns its outcome with this ticket.
    UnderWay(Ticket),
}

/// Reports that a batch under way has ended. It may be called from any thread, but by no thread that
/// holds a lock which a method of the writer takes.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// The result of a change of dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLettersChanged {
    /// The number of dead letters changed.
    pub count: usize,
    /// The last commit before the change, and the last after it: a requeue counts as a commit, so
    /// that other processes notice it.
    pub versions: (u64, u64),
}
