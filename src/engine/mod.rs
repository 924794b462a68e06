//! Storage: SQLite files and memory.
//!
//! Duty: store entries and messages, answer reads from one point in time, and carry out [`Work`] as
//! one transaction whose outcomes [`crate::commit`] decides.
//! Invariant: once the outcome of a batch is known, by [`Writer::begin`] or [`Writer::ended`], its
//! work is as durable as requested and visible to every later snapshot; failed work has changed
//! nothing. Outcomes are known in the order in which the batches began.
//! Never: decide the meaning of a write, or call back into the store, except to wake it.

pub mod cluster;
mod feed;
mod fulltext;
pub mod memory;
mod packed;
mod past;
#[cfg(feature = "postgres")]
pub mod postgres;
mod replication;
pub mod sqlite;
#[cfg(test)]
mod suite;

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

pub use crate::commit::{Report, Ticket, Work};
use crate::model::{
    Backup, Capabilities, Checkpoint, CopiedEntry, DeadLetter, DeadLetterChange, Error, Followed,
    Key, LogSegment, LogSettings, MessageDeletion, MessagePlace, MessageState, Moment, Needs,
    Origin, Peeked, QueueStats, Range, Replacement, Result, Row, Seen, Sharing, Stats, Step,
    Vacuumed, Walk,
};
pub use feed::{FeedLog, FeedState};
pub use fulltext::{Finder, Indexer};
pub use past::PastEngine;
use replication::NoLog;
pub use replication::ReplicationLog;
pub(crate) use replication::no_history;

/// An open database. It creates any number of readers and exactly one writer.
pub trait Engine: Maintenance + 'static {
    /// Reads; belongs to one thread at a time.
    type Reader: Reader;
    /// Writes; a process has one.
    type Writer: Writer;

    /// What the medium can do.
    fn capabilities(&self) -> Capabilities;

    /// A new reader.
    ///
    /// # Errors
    /// Errors of the medium.
    fn reader(&self) -> Result<Self::Reader>;

    /// A reader of a moment of the past: its snapshots have the entries that a reader had then. A read
    /// fails once the history no longer reaches back to the moment.
    ///
    /// # Errors
    /// Errors of the medium; `Unsupported` if the engine keeps no history.
    fn reader_at(&self, _moment: Moment) -> Result<Self::Reader> {
        Err(no_history())
    }

    /// The writer. Must be called only once.
    ///
    /// # Errors
    /// Errors of the medium; `Denied` for a read-only database.
    fn writer(&self) -> Result<Self::Writer>;

    /// Calls `tell` whenever another process has committed, or may have, until the guard is dropped.
    /// `None` if no other process can.
    ///
    /// # Errors
    /// Errors of the operating system.
    fn watch_external(&self, tell: TellExternal) -> Result<Option<ExternalWatch>>;
}

/// What an engine knows about commits of other processes.
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
}

/// Gets the external commits of an [`Engine::watch_external`].
pub type TellExternal = Box<dyn Fn(&ExternalCommits) + Send>;

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
    fn backup(&self, to: &Path, step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup>;

    /// Checks the integrity of the whole database and returns at most `findings_max` findings.
    ///
    /// # Errors
    /// `Closed` if `goes_on` returns `false`; errors of the medium.
    fn check(&self, findings_max: usize, goes_on: &GoesOn) -> Result<Vec<String>>;
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
    ///
    /// # Errors
    /// Errors of the medium and of the job.
    fn read(
        &mut self,
        now_ms: i64,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()>;

    /// As [`Reader::read`]. A long call of the job to its snapshot checks `goes_on`; on `false`
    /// that call fails, and the reader remains usable.
    ///
    /// # Errors
    /// As [`Reader::read`]; `Unavailable` if `goes_on` returned `false`.
    fn read_while(
        &mut self,
        now_ms: i64,
        goes_on: &GoesOn,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()>;

    /// Ends a snapshot that is kept between reads, so that a writer can reset the log.
    fn release(&mut self);

    /// From now on a read that would wait for another process fails with `Unavailable`: for a
    /// thread that must not block.
    ///
    /// # Errors
    /// Errors of the medium.
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
    ///
    /// # Errors
    /// Errors of the medium.
    fn prefetch(&mut self, _needs: Needs<'_>) -> Result<()> {
        Ok(())
    }

    /// Visits the entry of a key; `false` if there is none.
    ///
    /// # Errors
    /// Errors of the medium.
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(Row<'_>)) -> Result<bool>;

    /// The expiry of a key's entry, in ms since the epoch. Inner `None`: it does not expire; outer
    /// `None`: there is no entry. Reads no value.
    ///
    /// # Errors
    /// Errors of the medium.
    fn expiry(&mut self, key: &[u8]) -> Result<Option<Option<i64>>>;

    /// Visits the entries with `start <= key < end` in order until `visit` returns `false`.
    ///
    /// # Errors
    /// Errors of the medium.
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
    ///
    /// # Errors
    /// Errors of the medium.
    fn stats(&mut self) -> Result<Stats>;

    /// The counters that the database keeps ([`Writer::keep_metrics`]), if it has any.
    ///
    /// # Errors
    /// Errors of the medium.
    fn kept_metrics(&mut self) -> Result<Option<String>> {
        Ok(None)
    }

    /// What this process knows of its part in a database on a server; `None` for a database that is
    /// not on one.
    ///
    /// # Errors
    /// Errors of the medium.
    fn sharing(&mut self) -> Result<Option<Sharing>> {
        Ok(None)
    }

    /// The log of changes.
    fn feed(&mut self) -> Box<dyn FeedLog + '_>;

    /// The replication log.
    ///
    /// # Errors
    /// Errors of the medium.
    fn log(&mut self) -> Result<Box<dyn ReplicationLog + '_>> {
        Ok(Box::new(NoLog))
    }

    /// As [`Snapshot::scan`], with expiries and with or without values; `visit` returns where to
    /// continue.
    ///
    /// # Errors
    /// Errors of the medium.
    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()>;

    /// The number of messages of a queue in each state, without reading them.
    ///
    /// # Errors
    /// Errors of the medium.
    fn queue_stats(&mut self, queue: &str) -> Result<QueueStats>;

    /// The names of the queues with any message or dead letter, the first `count_max`.
    ///
    /// # Errors
    /// Errors of the medium.
    fn queues(&mut self, count_max: usize) -> Result<Vec<String>>;

    /// Visits the messages of a queue after `after`, in the order of [`MessagePlace`], all or those in
    /// one state, until `visit` returns `false`. Changes none of them. `visit` also gets the state.
    ///
    /// # Errors
    /// `Unsupported` where another program keeps the messages; errors of the medium.
    fn peek(
        &mut self,
        queue: &str,
        state: Option<MessageState>,
        after: MessagePlace,
        visit: &mut dyn FnMut(Peeked, MessageState) -> bool,
    ) -> Result<()>;

    /// Visits the dead letters of a queue after `after`, by time of death and number, until `visit`
    /// returns `false`. Omits those whose retention is over.
    ///
    /// # Errors
    /// Errors of the medium.
    fn dead_letters(
        &mut self,
        queue: &str,
        after: (i64, i64),
        visit: &mut dyn FnMut(DeadLetter) -> bool,
    ) -> Result<()>;

    /// The dead letter with this number, if it belongs to this queue.
    ///
    /// # Errors
    /// Errors of the medium.
    fn dead_letter(&mut self, queue: &str, id: i64) -> Result<Option<DeadLetter>>;
}

impl dyn Snapshot + '_ {
    /// Visits the entries of a range in order, until `visit` answers `false`. It also gets whether
    /// the entry is the last that the range's limit allows.
    ///
    /// # Errors
    /// What the medium answers.
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

/// What [`Writer::begin`] has achieved when it returns.
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

/// Writes to a database.
///
/// Several batches can be under way at once. Then the store calls only [`Writer::begin`],
/// [`Writer::has_room`] and [`Writer::ended`], and each new batch has writes and nothing else. All
/// other work, and all other methods, have the writer to themselves: the store waits for all
/// outcomes before.
pub trait Writer: Send + Indexer {
    /// Begins to carry out work in one transaction. `deadline` limits the wait for other processes.
    /// The transaction comes after all those that are under way: its writes are decided over their
    /// effects.
    ///
    /// # Errors
    /// `Unavailable` if the deadline has passed or the disk is full, `Denied`, `Corrupt`: the
    /// transaction changed nothing. `OutcomeUnknown` if it failed while it became durable.
    fn begin(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Result<Progress>;

    /// Begins the transaction for the next call of [`Writer::begin`], on a thread that must not block for
    /// long; its work then has writes and nothing else. `durable`: as in that work. `false` if this would
    /// wait, or if the commit would come with upkeep of the medium.
    fn begin_at_once(&mut self, _durable: bool) -> bool {
        false
    }

    /// Whether a further batch may begin. `true` while none is under way.
    fn has_room(&self) -> bool {
        true
    }

    /// The outcome of the oldest batch under way, once it is known, with the errors of
    /// [`Writer::begin`]. A failed batch does not fail those behind it, unless the engine says so in
    /// their own outcomes.
    fn ended(&mut self) -> Option<(Ticket, Result<Report>)> {
        None
    }

    /// Sets what to call whenever [`Writer::ended`] has a new outcome, or [`Writer::has_room`] has
    /// become `true`. Called before the first batch begins. An engine whose batches are never under
    /// way ignores it.
    fn on_ended(&mut self, _wake: Wake) {}

    /// Carries out work and waits for its outcome: for a caller without a store. Nothing may be
    /// under way. Replaces what [`Writer::on_ended`] has set.
    ///
    /// # Errors
    /// As [`Writer::begin`].
    fn apply(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Result<Report> {
        let caller = std::thread::current();
        self.on_ended(Box::new(move || caller.unpark()));
        match self.begin(work, now_ms, deadline)? {
            Progress::Done(report) => Ok(report),
            Progress::UnderWay(_) => loop {
                match self.ended() {
                    Some((_, outcome)) => return outcome,
                    None => std::thread::park(),
                }
            },
        }
    }

    /// Turns on the log of changes: every process logs all later commits. Returns the last commit.
    /// `deadline` limits the wait for other processes.
    ///
    /// # Errors
    /// As [`Writer::begin`].
    fn log_changes(&mut self, deadline: Instant) -> Result<u64>;

    /// Changes the settings of the replication log and of history, for every process, in one
    /// transaction. Returns the last commit. A database without a name gets that of `origin`; one that has
    /// no number for its copy gets that one too.
    ///
    /// # Errors
    /// As [`Writer::begin`]; `Unsupported` if the engine has no replication log.
    fn set_log(
        &mut self,
        _settings: &LogSettings,
        _origin: Origin,
        _now_ms: i64,
        _deadline: Instant,
    ) -> Result<u64> {
        Err(Error::unsupported("the options log and history: this database has no replication log"))
    }

    /// Repeats the changes of a segment of another copy's log, in one transaction: the commits have
    /// the same versions. Leaves out what is not after the last commit.
    ///
    /// # Errors
    /// As [`Writer::begin`]; `Corrupt` for a damaged segment.
    fn replay(&mut self, _segment: LogSegment<'_>, _deadline: Instant) -> Result<Report> {
        Err(Error::unsupported("this database repeats no replication log"))
    }

    /// What the database follows; `None` for one that follows nothing.
    ///
    /// # Errors
    /// Errors of the medium; `Corrupt` if something else has written to the copy.
    fn followed(&mut self) -> Result<Option<Followed>> {
        Ok(None)
    }

    /// Repeats segments of the followed log as [`Writer::replay`] does, and stores the new position, in
    /// one transaction. It need not be synced: what is lost is fetched again. The version of `after` is
    /// not stored, but the last one that the database has.
    ///
    /// # Errors
    /// As [`Writer::replay`]; `Unavailable` if the copy follows something else than the origin of
    /// `after`; those of [`Writer::followed`].
    fn follow(
        &mut self,
        _after: &Followed,
        _segments: &[LogSegment<'_>],
        _deadline: Instant,
    ) -> Result<Report> {
        Err(Error::unsupported("this database follows none"))
    }

    /// Replaces all entries by those of `entries`, in one transaction, so that readers have all old
    /// entries before it and all new ones after it. An error of `entries` rolls back. The logs begin
    /// anew.
    ///
    /// # Errors
    /// As [`Writer::begin`]; those of `entries`; `Unavailable` if the copy does not follow what
    /// `replacement` says.
    fn replace_all(
        &mut self,
        _replacement: &Replacement,
        _entries: NextEntries<'_>,
        _deadline: Instant,
    ) -> Result<Report> {
        Err(Error::unsupported("this database follows none"))
    }

    /// Replaces the kept counters by what `merge` makes of them, in one transaction. Only a file keeps
    /// counters.
    ///
    /// # Errors
    /// As [`Writer::begin`]; `Unsupported` if the engine keeps none.
    fn keep_metrics(
        &mut self,
        _merge: &mut dyn FnMut(Option<&str>) -> String,
        _deadline: Instant,
    ) -> Result<()> {
        Err(Error::unsupported("only a database in a file keeps its metrics"))
    }

    /// When the next timed work is due.
    ///
    /// # Errors
    /// Errors of the medium.
    fn next_deadlines(&mut self) -> Result<NextDeadlines>;

    /// The earliest time at which a message of a queue can be claimed, in ms since the epoch: its
    /// due time, or the expiry of its lock.
    ///
    /// # Errors
    /// Errors of the medium.
    fn next_message_ms(&mut self, queue: &str) -> Result<Option<i64>>;

    /// The number of messages of a queue that wait or are locked.
    ///
    /// # Errors
    /// Errors of the medium.
    fn queue_depth(&mut self, queue: &str) -> Result<u64>;

    /// Changes dead letters of a queue, in one transaction.
    ///
    /// # Errors
    /// As [`Writer::begin`].
    fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<DeadLettersChanged>;

    /// Deletes a message of a queue that waits, or whose lock has expired. It leaves no dead letter
    /// and no value under its `keysIfUndelivered`.
    ///
    /// # Errors
    /// As [`Writer::begin`]; `Unsupported` for a queue that Deno keeps in tables of its own.
    fn delete_message(
        &mut self,
        queue: &str,
        id: i64,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<MessageDeletion>;

    /// Moves commits from the log into the file, as far as readers permit.
    ///
    /// # Errors
    /// Errors of the medium.
    fn checkpoint(&mut self) -> Result<Checkpoint>;

    /// Rewrites the database without its free pages. `deadline` limits the wait for other
    /// processes.
    ///
    /// # Errors
    /// `Closed` if `goes_on` returns `false`, and the database is unchanged; errors of the medium.
    fn vacuum(&mut self, deadline: Instant, goes_on: &GoesOn) -> Result<Vacuumed>;
}

/// The result of a change of dead letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeadLettersChanged {
    /// The number of dead letters changed.
    pub count: usize,
    /// The last commit before the change, and the last after it: a requeue counts as a commit, so
    /// that other processes notice it.
    pub versions: (u64, u64),
}
