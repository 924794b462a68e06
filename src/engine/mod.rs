//! Where rows live.
//!
//! Duty: hold entries and messages, answer reads from one point in time, and carry out [`Work`] as
//! one transaction whose outcomes are decided by [`crate::commit`].
//! Invariant: what [`Writer::apply`] has answered is durable as asked, and visible to every snapshot
//! taken afterwards; what it has refused has left no trace.
//! Never: decide the meaning of a write, or call back into the store.

mod feed;
mod fulltext;
pub mod memory;
pub mod sqlite;
#[cfg(test)]
mod suite;

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::model::{
    AtomicWrite, Claim, DeadLetter, DeadOrder, Decision, Delivery, Enqueued, Key, QueueStats,
    Renewal, Result, Row, Seen, Settlement, Step, Versionstamp, Walk,
};
pub use feed::{FeedLog, FeedState, Logged};
pub use fulltext::{Finder, Indexer};

/// An open database, from which any number of readers and exactly one writer are made.
pub trait Engine: Custody + 'static {
    /// Reads; used by one thread at a time.
    type Reader: Reader;
    /// Writes; there is one in a process.
    type Writer: Writer;

    /// A new reader.
    ///
    /// # Errors
    /// What the medium answers.
    fn reader(&self) -> Result<Self::Reader>;

    /// The writer. It is asked for once.
    ///
    /// # Errors
    /// What the medium answers; `Denied` for a read-only database.
    fn writer(&self) -> Result<Self::Writer>;

    /// Calls `wake` whenever another process may have committed, until the guard is dropped.
    /// `None` where there can be no other process.
    ///
    /// # Errors
    /// What the operating system answers.
    fn watch_foreign(&self, wake: Box<dyn Fn() + Send>) -> Result<Option<ForeignWatch>>;
}

/// What is done with a database as a whole, while it is in use. Each call takes as long as the
/// database is large, on the caller's thread.
pub trait Custody: Send + Sync {
    /// Copies the database as it is at one point in time into a new file, and verifies the copy:
    /// opened again, examined, and its contents compared. `step` is told of pages copied and of all
    /// pages, and ends the work by answering `false`. What is left behind by a failure is nothing.
    ///
    /// # Errors
    /// `Invalid` if there is a file already; `Unsupported` where there is no file to be copied;
    /// `Unavailable` when ended by `step`; what the medium answers.
    fn backup(&self, to: &Path, step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup>;

    /// Examines everything; answers what is wrong, at most so many findings.
    ///
    /// # Errors
    /// What the medium answers.
    fn check(&self, findings_max: usize) -> Result<Vec<String>>;
}

/// A verified copy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Backup {
    /// Its size.
    pub bytes: u64,
    /// Entries in it, ended ones included.
    pub entries: u64,
    /// Its last commit.
    pub stamp: Versionstamp,
    /// SHA-256 of all rows of all tables, in order: equal for the source and the copy.
    pub digest: [u8; 32],
}

/// Keeps a [`Engine::watch_foreign`] going; dropping it ends the watch.
pub struct ForeignWatch(Box<dyn Foreign>);

/// Ends a watch when it is dropped.
pub trait Foreign: Send {
    /// What the operating system refuses, so that the watch polls instead.
    fn refusal(&self) -> Option<Refusal> {
        None
    }
}

/// What the operating system refuses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// In its words.
    pub reason: String,
    /// Since when.
    pub since: Instant,
}

impl ForeignWatch {
    /// Wraps whatever ends the watch when it is dropped.
    pub fn new(guard: impl Foreign + 'static) -> Self {
        Self(Box::new(guard))
    }

    /// As [`Foreign::refusal`].
    #[must_use]
    pub fn refusal(&self) -> Option<Refusal> {
        self.0.refusal()
    }
}

/// Whether work is to go on; asked often, by the thread that does it.
pub type GoesOn = Arc<dyn Fn() -> bool + Send + Sync>;

/// Reads from snapshots.
pub trait Reader: Send {
    /// Runs `job` on one snapshot that is current when the call starts: it contains every commit
    /// that was answered before, by any process. Entries that ended at or before `now_ms` are absent.
    ///
    /// # Errors
    /// What the medium or the job answers.
    fn read(
        &mut self,
        now_ms: i64,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()>;

    /// As [`Reader::read`]; while one call of the job to its snapshot takes long, `goes_on` is asked now
    /// and then. When it answers `false`, that call fails, and the reader is as before.
    ///
    /// # Errors
    /// As [`Reader::read`]; `Unavailable` when it was ended.
    fn read_while(
        &mut self,
        now_ms: i64,
        goes_on: &GoesOn,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()>;

    /// Lets go of whatever is kept between reads, so that writers can tidy up.
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

    /// When the entry of a key ends, in ms since the epoch; the inner `None`: it stays, the outer
    /// one: there is none. Reads no value.
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

    /// How large the database is; counting its entries reads all of them, and is done if asked for.
    ///
    /// # Errors
    /// What the medium answers.
    fn stats(&mut self, count: bool) -> Result<Stats>;

    /// The log of changes.
    fn feed(&mut self) -> Box<dyn FeedLog + '_>;

    /// As [`Snapshot::scan`], with ends and with or without values; `visit` leads the way.
    ///
    /// # Errors
    /// What the medium answers.
    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()>;

    /// How many messages of a queue are in which state, without reading them.
    ///
    /// # Errors
    /// What the medium answers.
    fn queue_stats(&mut self, queue: &str) -> Result<QueueStats>;

    /// The names of the queues with any message, dead ones included: the first so many.
    ///
    /// # Errors
    /// What the medium answers.
    fn queues(&mut self, count_max: usize) -> Result<Vec<String>>;

    /// Visits the dead messages of a queue by time of death and number, those after `after` only,
    /// until `visit` answers `false`. Those whose retention is over are passed over.
    ///
    /// # Errors
    /// What the medium answers.
    fn dead_letters(
        &mut self,
        queue: &str,
        after: (i64, i64),
        visit: &mut dyn FnMut(DeadLetter) -> bool,
    ) -> Result<()>;

    /// The dead message of that number, if it is of that queue.
    ///
    /// # Errors
    /// What the medium answers.
    fn dead_letter(&mut self, queue: &str, id: i64) -> Result<Option<DeadLetter>>;
}

/// Everything that goes into one transaction.
#[derive(Debug, Default)]
pub struct Work {
    /// Commits, decided in this order.
    pub writes: Vec<AtomicWrite>,
    /// Ends of deliveries.
    pub settlements: Vec<Settlement>,
    /// Locks that are to go on.
    pub renewals: Vec<Renewal>,
    /// Messages to hand out.
    pub claims: Vec<Claim>,
    /// Most expired entries to delete.
    pub sweep_max: usize,
    /// Most dead messages to delete whose retention is over.
    pub purge_max: usize,
    /// Whether the answer waits for the disk. It does in any case if a lock is over: what a dead
    /// message leaves behind is a commit that nobody has chosen how to keep.
    pub durable: bool,
    /// Randomness, for writes with placeholders.
    pub seed: u64,
}

impl Work {
    /// Whether there is nothing to do.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.writes.is_empty()
            && self.settlements.is_empty()
            && self.renewals.is_empty()
            && self.claims.is_empty()
            && self.sweep_max == 0
            && self.purge_max == 0
    }
}

/// What a transaction did.
#[derive(Debug, Default)]
pub struct Report {
    /// One decision a write, in order.
    pub decisions: Vec<Decision>,
    /// For each settlement, in order: whether its lock still held the message.
    pub settled: Vec<bool>,
    /// For each renewal, in order: whether its lock still held the message.
    pub renewed: Vec<bool>,
    /// Messages handed out for each claim, in order.
    pub deliveries: Vec<Vec<Delivery>>,
    /// The last commit before it, and its own last one.
    pub versions: (u64, u64),
    /// Keys whose entry changed.
    pub touched: Vec<Key>,
    /// Earliest end among the entries written here, in ms since the epoch.
    pub expiry_ms: Option<i64>,
    /// Whether messages became due earlier than before: enqueued here or put back.
    pub queued: bool,
    /// Whether messages of named queues were put back by a settlement: that counts as a commit, so
    /// that other processes look.
    pub put_back: bool,
    /// How many deliveries failed because their lock had run out.
    pub lost: usize,
    /// How many ended entries were deleted.
    pub swept: usize,
    /// Whether the sweep stopped at its bound.
    pub sweep_more: bool,
    /// How long it took, without the wait for its turn and for the disk.
    pub worked: Duration,
    /// How many dead messages were deleted whose retention was over.
    pub purged: usize,
    /// Whether a message died here that will have to be purged.
    pub purge_ahead: bool,
    /// How many pages were found in a cache, and how many were not.
    pub cache_looks: (u64, u64),
}

impl Report {
    /// Notes what became of the next message of the write of that number.
    fn enqueued(&mut self, write: usize, enqueued: Enqueued) {
        if let Some(decision) = self.decisions.get_mut(write) {
            decision.enqueued(enqueued);
        }
    }
}

/// The next times at which there is something to do, in ms since the epoch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Agenda {
    /// The earliest end of an entry.
    pub expiry_ms: Option<i64>,
    /// The earliest end of a dead message's retention.
    pub purge_ms: Option<i64>,
    /// Whether there is an index to be built further, at once.
    pub building: bool,
}

/// Carries out work.
pub trait Writer: Send + Indexer {
    /// One transaction. `deadline` bounds the wait for another process's transaction.
    ///
    /// # Errors
    /// As a whole, and then nothing was done: `Unavailable` when the deadline passed or the disk is
    /// full, `Denied`, `Corrupt`; `OutcomeUnknown` if it failed while becoming durable.
    fn apply(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Result<Report>;

    /// Has the changes of all later commits logged, by every process; answers the last commit.
    /// `deadline` bounds the wait for another process's transaction.
    ///
    /// # Errors
    /// As [`Writer::apply`].
    fn log_changes(&mut self, deadline: Instant) -> Result<u64>;

    /// When to come back.
    ///
    /// # Errors
    /// What the medium answers.
    fn agenda(&mut self) -> Result<Agenda>;

    /// The earliest time at which a message of a queue may be claimed, in ms since the epoch: due,
    /// or its lock's end.
    ///
    /// # Errors
    /// What the medium answers.
    fn message_agenda(&mut self, queue: &str) -> Result<Option<i64>>;

    /// How many messages of a queue wait or are being handled.
    ///
    /// # Errors
    /// What the medium answers.
    fn queue_depth(&mut self, queue: &str) -> Result<u64>;

    /// Does something with dead messages of a queue, in one transaction.
    ///
    /// # Errors
    /// As [`Writer::apply`].
    fn order_dead(
        &mut self,
        queue: &str,
        order: &DeadOrder,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<Ordered>;

    /// Moves what is only in the log into the file, and empties the log as far as readers let it.
    ///
    /// # Errors
    /// What the medium answers.
    fn checkpoint(&mut self) -> Result<Checkpoint>;

    /// Writes the database anew without the room that is free in it. `deadline` bounds the wait for
    /// another process's transaction.
    ///
    /// # Errors
    /// What the medium answers.
    fn vacuum(&mut self, deadline: Instant) -> Result<Vacuumed>;
}

/// What was done with dead messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ordered {
    /// With how many.
    pub count: usize,
    /// The last commit before it, and its own last one: messages that are put back count as a commit,
    /// so that other processes look.
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
    /// Entries, if they were to be counted.
    pub entries: Option<u64>,
    /// Bytes of the database, those of the log that are not in the file yet included.
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
