//! One open local database of a process: its threads, its watches, its queues.
//!
//! Duty: the meaning of reads, commits, watches and queues over any [`Engine`], shared by all
//! handles of the process on one database.
//! Invariant: a commit is answered, and announced to watches and listeners, only after the engine
//! has answered it. Replies run on the store's threads; those of an inline commit run on its caller's
//! thread. No reply runs under a lock of the store but that of the writer's state.
//! Never: a byte format, a JavaScript value, an engine's name.
//!
//! | thread | does |
//! |---|---|
//! | writer | commits all waiting writes in one transaction and answers the watches of its keys; runs the timers of expiry and queues; ends without work |
//! | caller's | short reads of a few keys, where the engine reads without a wait (`inline`); small commits, while the writer thread waits and commits are short (`write/inline`) |
//! | reader | runs reads that left the caller's thread, and reads the states of watches; ends without work |
//! | long reader | runs reads that take long; ends without work |
//! | alarms | wakes the stores of the process without a thread when their next work is due |
//! | metrics | stores the metrics in intervals; exists for a database that keeps them |
//! | walk | visits a range for a visitor that may wait; one for each such walk |
//! | external | detects external commits; exists while a watch, a feed or a listener is open |

#![forbid(unsafe_code)]

mod alarm;
pub mod call;
mod consume;
mod copy;
mod deletion;
mod explain;
mod external;
mod feed;
mod groups;
mod health;
#[cfg(test)]
mod index_reads_tests;
mod inline;
mod lane;
mod listener;
mod lock_request;
mod log_bound;
mod log_tail;
mod long_walk;
mod maintain;
mod measure;
pub mod metrics;
mod metrics_keeper;
mod ordered;
mod parking;
mod patience;
mod preview;
mod queue;
mod read;
mod reads;
mod replication;
mod rested_memory;
mod scan;
mod schedules;
mod search;
mod thread;
mod timers;
mod transfer;
mod watch;
mod write;
mod write_queue;

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use crate::metrics::Metrics;
pub use copy::Pages;
pub use deletion::Look;
pub use feed::OpenedReply;
pub use groups::ListedGroups;
pub use health::{Failing, Part};
pub use lock_request::Reply;
pub use log_tail::{LogRead, Wake};
use openkv_core::model::{Capabilities, Capability, Env, Error, LONG_READERS_MAX, Moment, Result};
use openkv_engines::{
    Engine, ExternalCommits, Maintenance, ParkableWriter, Reader, Refusal, Writer,
};
pub use ordered::{OrderWay, OrderedPage, OrderedScan, OwnedEntry, Place};
pub use parking::ParkedLane;
pub use patience::{CallerLiveness, Closing, Patience};
pub use preview::Preview;
pub use queue::{RemoteConsumer, remote_number};
pub use read::Room;
pub use reads::{Caller, Rows};
pub use scan::{ReadSoFar, Scan};
pub use schedules::ListedSchedule;
pub use thread::{on_file_thread, on_thread};
pub use transfer::{TransferPage, TransferPiece};
pub use write_queue::{Acknowledged, Lost};

type MakeReader = Arc<dyn Fn() -> Result<Box<dyn Reader>> + Send + Sync>;
type MakePast = Arc<dyn Fn(Moment) -> Result<Box<dyn Reader>> + Send + Sync>;

/// An open database. Dropping the last reference completes submitted work and closes it.
pub struct Store {
    writes: Arc<write_queue::WriteQueue>,
    /// `None` for a read-only store.
    writer: Option<Arc<dyn write::OpenWriter>>,
    reads: Arc<read::ReadThreads>,
    inline: Arc<inline::InlineReads>,
    long: Arc<read::ReadThreads>,
    /// For reads of what this process has of the database; `reads` where those wait for nothing either.
    at_hand: Arc<read::ReadThreads>,
    lanes: Arc<parking::Lanes>,
    closing: Closing,
    watches: Arc<watch::Watches>,
    feeds: Arc<feed::Feeds>,
    readonly: bool,
    tails: Arc<log_tail::LogTails>,
    capabilities: Capabilities,
    make_reader: MakeReader,
    /// Makes readers that never wait.
    make_lane: MakeReader,
    /// Makes readers of a moment of the past.
    make_past: MakePast,
    whole: Arc<dyn Maintenance>,
    /// Set once a caller has waited in `receive`.
    receives: AtomicBool,
    env: Arc<dyn Env>,
    metrics: Arc<Metrics>,
    keeper: Mutex<Option<metrics_keeper::MetricsKeeper>>,
    health: Arc<health::Health>,
    replica_figures: OnceLock<measure::ReplicaFiguresOf>,
    archive_figures: Mutex<Vec<measure::ArchiveFiguresOf>>,
}

impl Store {
    /// Starts the threads of an engine. A store over a read-only engine has no writer and refuses
    /// writes.
    ///
    /// # Errors
    /// Those of the engine; `Unavailable` if no thread can be started.
    pub fn start<E: Engine>(engine: E, env: Arc<dyn Env>, readonly: bool) -> Result<Self> {
        Self::start_for(engine, env, if readonly { Use::Reads } else { Use::Writes })
    }

    fn start_for<E: Engine>(engine: E, env: Arc<dyn Env>, used: Use) -> Result<Self> {
        let readonly = used == Use::Reads;
        let engine = Arc::new(engine);
        let capabilities = engine.capabilities();
        let metrics = Arc::<Metrics>::default();
        alarm::start_thread()?;
        let readers = engine.clone();
        let make_reader: MakeReader =
            Arc::new(move || Ok(Box::new(readers.reader()?) as Box<dyn Reader>));
        let read_threads = |name, max| {
            let (make_reader, env) = (make_reader.clone(), env.clone());
            read::ReadThreads::new((name, max), make_reader, env, metrics.clone())
        };
        let reads = read_threads("openkv-reader", 1);
        let long = read_threads("openkv-long", LONG_READERS_MAX);
        // A metric must not wait behind a read that waits for the object store.
        let at_hand = match engine.reads_wait() {
            true => read_threads("openkv-at-hand", 1),
            false => reads.clone(),
        };
        let writes = write_queue::WriteQueue::new(env.clone());
        let health = Arc::<health::Health>::default();
        let tails = Arc::<log_tail::LogTails>::default();
        let feeds = feed::Feeds::new(reads.clone(), env.clone(), health.clone());
        let watches = {
            let (engine, writes) = (Arc::downgrade(&engine), Arc::downgrade(&writes));
            let feeds = Arc::downgrade(&feeds);
            let tails = tails.clone();
            watch::Watches::new(reads.clone(), env.clone(), health.clone(), |watches| {
                callbacks(engine, (watches, feeds, writes), tails)
            })
        };
        let past = engine.clone();
        let make_past: MakePast =
            Arc::new(move |moment| Ok(Box::new(past.reader_at(moment)?) as Box<dyn Reader>));
        let mut writer = None;
        if !readonly {
            // A read behind a network would delay the next commit by a trip.
            let reads_at_once = capabilities.has(Capability::SynchronousReads);
            let make_reader = reads_at_once.then(|| make_reader.clone());
            writer = Some(write::start(
                writes.clone(),
                (watches.clone(), feeds.clone(), tails.clone()),
                (metrics.clone(), health.clone()),
                ParkableWriter::open(engine.clone())?,
                make_reader,
                used == Use::Copies,
            )?);
        }
        let lanes = engine.clone();
        let make_lane: MakeReader =
            Arc::new(move || Ok(Box::new(lanes.reader_at_once()?) as Box<dyn Reader>));
        let inline = inline::InlineReads::new(make_lane.clone(), metrics.clone());
        let whole: Arc<dyn Maintenance> = engine;
        let receives = AtomicBool::new(false);
        let store = Self {
            writes,
            writer,
            reads,
            inline,
            long,
            at_hand,
            lanes: Arc::default(),
            closing: Closing::default(),
            watches,
            feeds,
            readonly,
            tails,
            capabilities,
            make_reader,
            make_lane,
            make_past,
            whole,
            receives,
            env,
            metrics,
            keeper: Mutex::new(None),
            health,
            replica_figures: OnceLock::new(),
            archive_figures: Mutex::default(),
        };
        store.allow_parking();
        Ok(store)
    }

    /// Whether the store refuses writes.
    pub fn is_readonly(&self) -> bool {
        self.readonly
    }

    /// The capabilities of the database.
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// The background parts that fail at present. The store retries them.
    pub fn failing(&self) -> Vec<Failing> {
        let mut failing = self.health.failing();
        if let Some(Refusal { reason, since }) = self.watches.external().refusal() {
            let ms = i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
            failing.push(Failing {
                part: Part::Announcements,
                error: Error::unavailable(reason),
                since_ms: self.env.now_ms().saturating_sub(ms),
            });
        }
        failing
    }

    /// The current time, by which entries expire.
    pub fn now_ms(&self) -> i64 {
        self.env.now_ms()
    }

    /// A random number.
    pub fn random(&self) -> u64 {
        self.env.random()
    }

    /// A reader for the inline lane, on the caller's own thread. It never waits for other
    /// processes, and is open only while there are reads.
    pub fn lane(&self) -> Box<dyn Reader> {
        Box::new(lane::LaneReader::new(self.make_lane.clone()))
    }

    /// A reader for a thread of its own, which may wait.
    pub fn reader(&self) -> Result<Box<dyn Reader>> {
        (self.make_reader)()
    }

    /// The bounds of an operation that begins now: at most `most`, and only while `wanted` holds.
    /// `what` is the method's name, for errors.
    pub fn patience(
        &self,
        what: &'static str,
        most: Duration,
        wanted: Option<CallerLiveness>,
    ) -> Arc<Patience> {
        Patience::new(what, most, wanted, self.closing.clone())
    }

    /// The clock of the store was set: does what is due at the new time, then replies.
    pub fn clock_was_set(&self, reply: impl FnOnce(Result<()>) + Send + 'static) {
        self.writes.nudge();
        // A task runs before the timed work of its round, so the second one finds that done.
        let writes = self.writes.clone();
        let again = move |_| writes.run(Box::new(|writer| reply(writer.map(drop))));
        self.on_writer(|_| Ok(()), again);
    }

    /// Runs `work` on the writer thread, between two transactions and before every write that is
    /// submitted later.
    fn on_writer<T>(
        &self,
        work: impl FnOnce(&mut dyn Writer) -> Result<T> + Send + 'static,
        reply: impl FnOnce(Result<T>) + Send + 'static,
    ) {
        self.writes.run(Box::new(move |writer| reply(writer.and_then(work))));
    }
}

/// The use of a store.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Use {
    /// Reads only.
    Reads,
    /// Reads and writes of its callers.
    Writes,
    /// Reads; the writes are those of a database that it follows.
    Copies,
}

type Receivers = (Weak<watch::Watches>, Weak<feed::Feeds>, Weak<write_queue::WriteQueue>);

/// Ends streams and consumers for good: the engine cannot be used any more.
fn fail((watches, feeds, writes): &Receivers, error: &Error) {
    if let Some(feeds) = feeds.upgrade() {
        feeds.fail(error);
    }
    let Some(watches) = watches.upgrade() else { return };
    watches.fail(error);
    if let Some(writes) = writes.upgrade() {
        writes.waiting.lock().no_consumers = Some(error.clone());
        watches.refuse_consumers(&writes, error);
    }
}

/// The callbacks for external commits.
fn callbacks<E: Engine>(
    engine: Weak<E>,
    (watches, feeds, writes): Receivers,
    tails: Arc<log_tail::LogTails>,
) -> external::Callbacks {
    let receivers = (watches.clone(), feeds.clone(), writes.clone());
    let failing = receivers.clone();
    let tell = Arc::new(move |commits: &ExternalCommits| {
        if let (ExternalCommits::Lost(error), Some(watches)) = (commits, watches.upgrade()) {
            let (receivers, error) = (failing.clone(), error.clone());
            watches.on_reader(move || fail(&receivers, &error));
            return tails.wake();
        }
        if let Some(feeds) = feeds.upgrade() {
            feeds.announce_external(commits);
        }
        if let Some(watches) = watches.upgrade() {
            watches.announce_external(commits);
        }
        if let Some(writes) = writes.upgrade() {
            writes.nudge();
        }
        tails.wake();
    });
    let woken = tell.clone();
    let begin = move || {
        let Some(engine) = engine.upgrade() else { return Ok(None) };
        let tell = tell.clone();
        engine.watch_external(Box::new(move |commits| tell(commits)))
    };
    let lost = move |error: &Error| {
        let (watches, feeds, writes) = &receivers;
        if let Some(feeds) = feeds.upgrade() {
            feeds.refuse_all(error);
        }
        let Some(watches) = watches.upgrade() else { return };
        watches.refuse_all(error);
        if let Some(writes) = writes.upgrade() {
            watches.refuse_consumers(&writes, error);
        }
    };
    external::Callbacks {
        begin: Box::new(begin),
        wake: Box::new(move || woken(&ExternalCommits::Unknown)),
        lost: Box::new(lost),
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.whole.set_park(None);
        self.watches.close();
        self.feeds.close();
        // Its last flush is work that the writer thread completes.
        self.keeper.get_mut().take();
        let writer = self.writer.as_ref().map(|writer| writer.close());
        self.closing.begin();
        let readers = [&self.reads, &self.long, &self.at_hand].map(|threads| threads.close());
        let readers = readers.into_iter().flatten();
        for thread in writer.into_iter().flatten().chain(readers) {
            // A reply may drop the store on one of the store's own threads, which cannot join
            // itself.
            if !thread::is_this(&thread) && thread.join().is_err() {
                tracing::error!("a thread of the store ended by a panic");
            }
        }
    }
}
