//! One open local database of a process: its threads, its watches, its queues.
//!
//! Duty: the meaning of reads, commits, watches and queues over any [`Engine`], shared by all
//! handles of the process on one database.
//! Invariant: a commit is answered, and announced to watches and listeners, only after the engine
//! has answered it. Replies run on the store's threads, never on the caller's thread, and never
//! under a lock of the store.
//! Never: a byte format, a JavaScript value, an engine's name.
//!
//! | thread | does |
//! |---|---|
//! | writer | commits all waiting writes in one transaction and answers the watches of its keys; runs the timers of expiry and queues |
//! | reader | runs reads that left the caller's thread, and reads the states of watches |
//! | long reader | runs reads that take long; started on demand |
//! | external | detects external commits; exists while a watch, a feed or a listener is open |

mod consume;
mod external;
mod feed;
mod group;
mod health;
mod listener;
mod lock_request;
mod long;
mod measure;
mod patience;
mod preview;
mod queue;
mod read;
mod reply;
mod scan;
mod timers;
mod watch;
mod write;
mod write_queue;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use crate::engine::Snapshot;
use crate::engine::{Engine, Maintenance, Reader, Refusal};
use crate::metrics::Metrics;
use crate::model::{
    Ask, AtomicWrite, Capabilities, ConsumeOptions, DeadLetterChange, Decision, Deliver, Env,
    Error, FeedReply, Id, Key, KeyRange, Kind, Outcome, Reason, Receive, Result, WatchReply,
};
pub use feed::OpenedReply;
pub use health::{Failing, Part};
pub use lock_request::Reply;
pub use patience::{Closing, Patience, Wanted};
pub use preview::Preview;
pub use queue::{RemoteConsumer, remote_number};
pub use read::{ReadJob, Room, visit_range};
pub use scan::Scan;
pub use write_queue::{Lost, Submission, WriterTask};

type MakeReader = Arc<dyn Fn() -> Result<Box<dyn Reader>> + Send + Sync>;

/// An open database. Dropping the last reference completes submitted work and closes it.
pub struct Store {
    writes: Arc<write_queue::WriteQueue>,
    reads: read::Reads,
    long: Arc<long::LongReads>,
    closing: Closing,
    watches: Arc<watch::Watches>,
    feeds: Arc<feed::Feeds>,
    readonly: bool,
    capabilities: Capabilities,
    make_reader: MakeReader,
    whole: Arc<dyn Maintenance>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Set once a caller has waited in `receive`.
    receives: AtomicBool,
    env: Arc<dyn Env>,
    metrics: Arc<Metrics>,
    health: Arc<health::Health>,
}

impl Store {
    /// Starts the threads of an engine. A store over a read-only engine has no writer and refuses
    /// writes.
    ///
    /// # Errors
    /// Those of the engine; `Unavailable` if no thread can be started.
    pub fn start<E: Engine>(engine: E, env: Arc<dyn Env>, readonly: bool) -> Result<Self> {
        let engine = Arc::new(engine);
        let capabilities = engine.capabilities();
        let metrics = Arc::<Metrics>::default();
        let (reads, reader) = read::Reads::start(engine.reader()?, metrics.clone())?;
        let mut threads = vec![reader];
        let writes = Arc::new(write_queue::WriteQueue::new(env.clone()));
        let health = Arc::<health::Health>::default();
        let feeds = feed::Feeds::new(reads.clone(), env.clone(), health.clone());
        let watches = {
            let (engine, writes) = (Arc::downgrade(&engine), Arc::downgrade(&writes));
            let feeds = Arc::downgrade(&feeds);
            watch::Watches::new(reads.clone(), env.clone(), health.clone(), |watches| {
                means(engine, (watches, feeds, writes))
            })
        };
        let readers = engine.clone();
        let make_reader: MakeReader =
            Arc::new(move || Ok(Box::new(readers.reader()?) as Box<dyn Reader>));
        if !readonly {
            let (writer, make_reader) = (engine.writer()?, make_reader.clone());
            threads.push(write::start(
                writes.clone(),
                (watches.clone(), feeds.clone(), metrics.clone(), health.clone()),
                writer,
                make_reader,
            )?);
        }
        let threads = Mutex::new(threads);
        let long = long::LongReads::new(make_reader.clone(), env.clone(), metrics.clone());
        let whole: Arc<dyn Maintenance> = engine;
        let receives = AtomicBool::new(false);
        Ok(Self {
            writes,
            reads,
            long,
            closing: Closing::default(),
            watches,
            feeds,
            readonly,
            capabilities,
            make_reader,
            whole,
            threads,
            receives,
            env,
            metrics,
            health,
        })
    }

    /// Whether the store refuses writes.
    #[must_use]
    pub fn is_readonly(&self) -> bool {
        self.readonly
    }

    /// What the database can do.
    #[must_use]
    pub fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    /// The background parts that fail at present. The store retries them.
    #[must_use]
    pub fn failing(&self) -> Vec<Failing> {
        let mut failing = self.health.failing();
        if let Some(Refusal { reason, since }) = self.watches.external().refusal() {
            let ms = i64::try_from(since.elapsed().as_millis()).unwrap_or(i64::MAX);
            failing.push(Failing {
                part: Part::Announcements,
                error: Error::new(Kind::Unavailable, reason),
                since_ms: self.env.now_ms().saturating_sub(ms),
            });
        }
        failing
    }

    /// The current time, by which entries expire.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.env.now_ms()
    }

    /// A reader for the immediate lane, on the caller's own thread. It never waits for other
    /// processes.
    ///
    /// # Errors
    /// Those of the engine.
    pub fn lane(&self) -> Result<Box<dyn Reader>> {
        let mut reader = (self.make_reader)()?;
        reader.never_wait()?;
        Ok(reader)
    }

    /// Runs a job on a current snapshot, on the reader thread. The job must be short, because all
    /// reads share this thread.
    pub fn read(&self, job: ReadJob) {
        let env = self.env.clone();
        self.reads.send(env, job);
    }

    /// As [`Store::read`], for a job that takes long: it runs on a thread of its own kind, so that
    /// no other read waits. When `patience` ends, calls to the snapshot fail; [`Patience::check`]
    /// gives the reason.
    pub fn read_long(&self, patience: Arc<Patience>, job: ReadJob) {
        self.long.send(patience, job);
    }

    /// The bounds of an operation that begins now: at most `most`, and only while `wanted` holds.
    /// `what` is the method's name, for errors.
    #[must_use]
    pub fn patience(
        &self,
        what: &'static str,
        most: Duration,
        wanted: Option<Wanted>,
    ) -> Arc<Patience> {
        Patience::new(what, most, wanted, self.closing.clone())
    }

    /// Access to the database as a whole, to copy or check it on a thread of the caller.
    #[must_use]
    pub fn maintenance(&self) -> Arc<dyn Maintenance> {
        self.whole.clone()
    }

    /// What a write of one key would leave there, by the rules of a commit. If the thread panics,
    /// the reply is dropped uncalled. `long` moves the work to a thread for long reads, within
    /// these bounds.
    pub fn preview(
        &self,
        write: AtomicWrite,
        long: Option<Arc<Patience>>,
        reply: Box<dyn FnOnce(Result<Preview>) + Send>,
    ) {
        let env = self.env.clone();
        let job: ReadJob = Box::new(move |snapshot| {
            let (now_ms, seed) = (env.now_ms(), env.random());
            reply(snapshot.and_then(|seen| preview::preview(seen, write, now_ms, seed)));
        });
        match long {
            Some(patience) => self.read_long(patience, job),
            None => self.read(job),
        }
    }

    /// Submits writes. The reply gets one decision for each, in order. If the writer thread panics,
    /// the reply is dropped uncalled; the store rejects later writes as `Internal`.
    pub fn commit(
        &self,
        writes: Vec<Result<AtomicWrite>>,
        durable: bool,
        busy: Duration,
        reply: Box<dyn FnOnce(Vec<Decision>) + Send>,
    ) {
        let since = Instant::now();
        self.writes.submit(Submission { writes, durable, busy, reply, since });
    }

    /// Runs a job on the writer thread, between two transactions and before every write that is
    /// submitted later. The job gets an error if there is no writer.
    pub fn run_on_writer(&self, task: WriterTask) {
        self.writes.run(task);
    }

    /// Starts a watch of keys. The watch answers only calls of [`Store::watch_next`].
    pub fn watch(&self, keys: Vec<Key>, raw: bool) -> Id {
        self.watches.add(keys, raw, None)
    }

    /// As [`Store::watch`], with a bound for a state. A state without room is an error; the caller
    /// may ask the watch again.
    pub fn watch_within(&self, keys: Vec<Key>, raw: bool, room: Arc<dyn Room>) -> Id {
        self.watches.add(keys, raw, Some(room))
    }

    /// Asks for the state of a watch: first the current one, then the next that differs. The reply
    /// gets `None` when the watch is cancelled. A second call drops the first reply unanswered.
    pub fn watch_next(&self, id: Id, reply: WatchReply) {
        self.watches.next(id, reply);
    }

    /// Ends a watch. A waiting reply gets `None`.
    pub fn watch_cancel(&self, id: Id) {
        self.watches.cancel(id);
    }

    /// Starts a change feed of a range: all commits that are submitted later and, with `since`, all
    /// commits after it. The feed answers only calls of [`Store::feed_next`]. `busy` bounds the
    /// wait for other processes while the file begins to log changes.
    pub fn feed(&self, range: KeyRange, since: Option<u64>, busy: Duration) -> Id {
        self.feed_from(range, since, busy, Box::new(drop))
    }

    /// As [`Store::feed`]. The reply gets the commit after which the feed is complete.
    pub fn feed_from(
        &self,
        range: KeyRange,
        since: Option<u64>,
        busy: Duration,
        reply: OpenedReply,
    ) -> Id {
        self.open_feed((range, since), None, busy, reply)
    }

    /// As [`Store::feed_from`], with a bound for a batch. A batch without room is an error; the
    /// caller may ask the feed again.
    pub fn feed_within(
        &self,
        range: KeyRange,
        since: Option<u64>,
        room: Arc<dyn Room>,
        busy: Duration,
        reply: OpenedReply,
    ) -> Id {
        self.open_feed((range, since), Some(room), busy, reply)
    }

    fn open_feed(
        &self,
        (range, since): (KeyRange, Option<u64>),
        room: Option<Arc<dyn Room>>,
        busy: Duration,
        reply: OpenedReply,
    ) -> Id {
        let id = self.feeds.add(range, since, room);
        let feeds = Arc::downgrade(&self.feeds);
        let opening = feed::Opening { feeds, id, since, reply: Some(reply) };
        if self.readonly {
            self.read(Box::new(move |snapshot| {
                opening.answer(snapshot.and_then(feed::last_logged));
            }));
        } else {
            self.run_on_writer(Box::new(move |writer| {
                let last = writer.and_then(|writer| writer.log_changes(Instant::now() + busy));
                opening.answer(last);
            }));
        }
        self.watches.external().hold();
        id
    }

    /// Asks a feed for its next changes. The reply gets `None` when the feed is cancelled. A second
    /// call drops the first reply unanswered.
    pub fn feed_next(&self, id: Id, reply: FeedReply) {
        self.feeds.next(id, reply);
    }

    /// The commit up to which a waiting feed has reported every change. `None` if the feed may have
    /// more to report, or has no waiting call.
    #[must_use]
    pub fn feed_position(&self, id: Id) -> Option<u64> {
        self.feeds.position(id)
    }

    /// Ends a feed. A waiting reply gets `None`.
    pub fn feed_cancel(&self, id: Id) {
        if self.feeds.cancel(id) {
            self.watches.external().release();
        }
    }

    /// Adds a consumer of a queue with this number of credits.
    ///
    /// # Errors
    /// `Denied` on a read-only database; `Internal` after the writer thread has panicked.
    pub fn listen(&self, options: ConsumeOptions, credits: usize, deliver: Deliver) -> Result<Id> {
        self.listen_until(options, credits, deliver, Box::new(drop))
    }

    /// As [`Store::listen`]. The store calls `lost` when it can no longer detect messages; it
    /// delivers none afterwards.
    ///
    /// # Errors
    /// As [`Store::listen`].
    pub fn listen_until(
        &self,
        options: ConsumeOptions,
        credits: usize,
        deliver: Deliver,
        lost: Lost,
    ) -> Result<Id> {
        let id = self.writes.listen(options, credits, deliver, lost)?;
        self.watches.external().hold();
        Ok(id)
    }

    /// As [`Store::listen`], for a remote consumer. It settles messages and renews their locks with
    /// [`Store::ask`], because the store does not know whether its handlers still run. Its credits
    /// come from [`Store::grant`]. The store delivers only a few messages more than its connection
    /// [has sent](Store::sent).
    ///
    /// # Errors
    /// As [`Store::listen`].
    pub fn listen_for(&self, consumer: RemoteConsumer, deliver: Deliver) -> Result<Id> {
        let id = self.writes.listen_for(consumer, deliver)?;
        self.watches.external().hold();
        Ok(id)
    }

    /// Sets the total credits of a remote consumer since its start. A smaller total and an unknown
    /// consumer have no effect.
    pub fn grant(&self, listener: Id, granted: u64) {
        self.writes.grant(listener, granted);
    }

    /// Reports that the connection has sent `sent` more messages to a remote consumer, and that
    /// `returned` delivered messages will not be sent.
    pub fn sent(&self, listener: Id, sent: u64, returned: u64) {
        self.writes.sent(listener, sent, returned);
    }

    /// Ends a delivery and returns its credit.
    pub fn settle(&self, listener: Id, number: i64, outcome: Outcome, reason: Option<Reason>) {
        self.writes.settle(listener, number, outcome, reason);
    }

    /// A new id for [`Store::receive`].
    #[must_use]
    pub fn new_receiver(&self) -> Id {
        self.writes.new_receiver()
    }

    /// Asks for one message: with `once` for one that is due now, else for the next one, until
    /// [`Store::receive_cancel`]. The store does not renew its lock; the caller settles it with
    /// [`Store::ask`].
    pub fn receive(&self, id: Id, options: ConsumeOptions, once: bool, reply: Receive) {
        // Held until the store closes: a caller that receives once receives again, and a restart
        // costs more.
        if !once && !self.receives.swap(true, Ordering::Relaxed) {
            self.watches.external().hold();
        }
        self.writes.receive(id, options, once, reply);
    }

    /// Ends a wait for a message. A waiting reply gets `None`.
    pub fn receive_cancel(&self, id: Id) {
        self.writes.receive_cancel(id);
    }

    /// Settles a received message or renews its lock. The reply says whether the caller still held
    /// the lock.
    pub fn ask(&self, what: Ask, reply: Reply) {
        self.writes.ask(what, reply);
    }

    /// Applies an order to dead letters of a queue. The reply gets the number of messages affected.
    pub fn change_dead_letters(
        &self,
        queue: String,
        change: DeadLetterChange,
        busy: Duration,
        reply: Box<dyn FnOnce(Result<usize>) + Send>,
    ) {
        let env = self.env.clone();
        let (watches, feeds) = (Arc::downgrade(&self.watches), Arc::downgrade(&self.feeds));
        self.run_on_writer(Box::new(move |writer| {
            let deadline = Instant::now() + busy;
            let done =
                writer.and_then(|w| w.change_dead_letters(&queue, &change, env.now_ms(), deadline));
            if let Ok(done) = done {
                // A commit without keys: no watch has to read, but its version must not count as an
                // external commit.
                if let Some(watches) = watches.upgrade() {
                    watches.announce(&[], done.versions);
                }
                if let Some(feeds) = feeds.upgrade() {
                    feeds.announce(&[], done.versions);
                }
            }
            reply(done.map(|done| done.count));
        }));
    }

    /// The number of waiting and locked messages of a queue.
    pub fn queue_depth(&self, queue: String, reply: Box<dyn FnOnce(Result<u64>) + Send>) {
        self.writes.query(Box::new(move |writer| {
            reply(writer.and_then(|writer| writer.queue_depth(&queue)));
        }));
    }

    /// Stops a listener. Its handlers keep their locks until they settle.
    pub fn stop_listening(&self, listener: Id) {
        if self.writes.stop_listening(listener) {
            self.watches.external().release();
        }
    }

    /// Ends a listener whose handlers are gone. Their messages may still be settled, but the store
    /// no longer renews the locks.
    pub fn unlisten(&self, listener: Id) {
        if self.writes.unlisten(listener) {
            self.watches.external().release();
        }
    }
}

/// The callbacks for external commits.
fn means<E: Engine>(
    engine: Weak<E>,
    (watches, feeds, writes): (
        Weak<watch::Watches>,
        Weak<feed::Feeds>,
        Weak<write_queue::WriteQueue>,
    ),
) -> external::Means {
    let told = (watches.clone(), feeds.clone(), writes.clone());
    let wake = Arc::new(move || {
        if let Some(feeds) = feeds.upgrade() {
            feeds.wake_all();
        }
        if let Some(watches) = watches.upgrade() {
            watches.wake_all();
        }
        if let Some(writes) = writes.upgrade() {
            writes.nudge();
        }
    });
    let woken = wake.clone();
    let begin = move || {
        let Some(engine) = engine.upgrade() else { return Ok(None) };
        let wake = wake.clone();
        engine.watch_external(Box::new(move || wake()))
    };
    let lost = move |error: &Error| {
        let (watches, feeds, writes) = &told;
        if let Some(feeds) = feeds.upgrade() {
            feeds.refuse_all(error);
        }
        let Some(watches) = watches.upgrade() else { return };
        watches.refuse_all(error);
        if let Some(writes) = writes.upgrade() {
            watches.refuse_consumers(&writes, error);
        }
    };
    external::Means {
        begin: Box::new(begin),
        wake: Box::new(move || woken()),
        lost: Box::new(lost),
    }
}

impl Drop for Store {
    fn drop(&mut self) {
        self.watches.close();
        self.feeds.close();
        self.writes.close();
        self.closing.begin();
        self.reads.close();
        let long = self.long.close();
        for thread in self.threads.get_mut().drain(..).chain(long) {
            // A reply may drop the store on one of the store's own threads, which cannot join
            // itself.
            let own = thread.thread().id() == std::thread::current().id();
            if !own && thread.join().is_err() {
                tracing::error!("a thread of the store ended by a panic");
            }
        }
    }
}
