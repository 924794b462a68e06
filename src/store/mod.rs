//! One database as a process has it: its threads, its watches, its queue.
//!
//! Duty: the meaning of reads, commits, watches and queues over any [`Engine`], shared by all
//! handles of the process on one database.
//! Invariant: a commit is answered, and announced to watches and listeners, only after the engine
//! has answered it. Replies run on the store's threads, never on the caller's, and never under a
//! lock of the store.
//! Never: a byte format, a JavaScript value, an engine's name.
//!
//! | thread | does |
//! |---|---|
//! | writer | drains what waits into one transaction, and answers watches of it; expiry and the queue's clock live here |
//! | reader | reads that left the caller's thread, and the re-reads of watches |
//! | foreign | exists while something watches: notices other processes' commits |

mod consume;
mod external;
mod feed;
mod group;
mod health;
mod inbox;
mod listener;
mod long;
mod measure;
mod outlook;
mod patience;
mod preview;
mod queue;
mod read;
mod reply;
mod scan;
mod watch;
mod write;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

pub use crate::engine::Snapshot;
use crate::engine::{Custody, Engine, Reader, Refusal};
use crate::metrics::Metrics;
pub use crate::model::Ask;
use crate::model::{
    AtomicWrite, DeadOrder, Decision, Env, Error, Key, KeyRange, Kind, Outcome, Reason, Result,
};
pub use consume::{Lost, Reply};
pub use feed::{Batch, FeedReply, OpenedReply};
pub use health::{Failing, Part};
pub use inbox::{Order, Submission};
pub use patience::{Closing, Patience, Wanted};
pub use preview::Preview;
pub use queue::{Deliver, Elsewhere, Handed, Receive, Wish, number_elsewhere};
pub use read::{ReadJob, Room};
pub use scan::Scan;
pub use watch::{Entry, WatchReply};

/// A number that names a watch or a listener of a store.
pub type Id = u64;

type MakeReader = Arc<dyn Fn() -> Result<Box<dyn Reader>> + Send + Sync>;

/// An open database. Dropping the last reference completes what was submitted and closes it.
pub struct Store {
    writes: Arc<inbox::Inbox>,
    reads: read::Reads,
    long: Arc<long::LongReads>,
    closing: Closing,
    watches: Arc<watch::Watches>,
    feeds: Arc<feed::Feeds>,
    readonly: bool,
    make_reader: MakeReader,
    whole: Arc<dyn Custody>,
    threads: Mutex<Vec<JoinHandle<()>>>,
    /// Somebody has waited for a message.
    receives: AtomicBool,
    env: Arc<dyn Env>,
    metrics: Arc<Metrics>,
    health: Arc<health::Health>,
}

impl Store {
    /// Starts the threads of an engine. A read-only engine has no writer: writes are refused.
    ///
    /// # Errors
    /// What the engine answers, or `Unavailable` when no thread can be started.
    pub fn start<E: Engine>(engine: E, env: Arc<dyn Env>, readonly: bool) -> Result<Self> {
        let engine = Arc::new(engine);
        let metrics = Arc::<Metrics>::default();
        let (reads, reader) = read::Reads::start(engine.reader()?, metrics.clone())?;
        let mut threads = vec![reader];
        let writes = Arc::new(inbox::Inbox::new(env.clone()));
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
        let whole: Arc<dyn Custody> = engine;
        let receives = AtomicBool::new(false);
        Ok(Self {
            writes,
            reads,
            long,
            closing: Closing::default(),
            watches,
            feeds,
            readonly,
            make_reader,
            whole,
            threads,
            receives,
            env,
            metrics,
            health,
        })
    }

    /// Whether it refuses writes.
    #[must_use]
    pub fn is_readonly(&self) -> bool {
        self.readonly
    }

    /// The background parts that do not do their work. They try again by themselves.
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

    /// The time by which entries are alive.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.env.now_ms()
    }

    /// A reader for the caller's own thread, which never waits for other processes: the immediate
    /// lane.
    ///
    /// # Errors
    /// What the engine answers.
    pub fn lane(&self) -> Result<Box<dyn Reader>> {
        let mut reader = (self.make_reader)()?;
        reader.never_wait()?;
        Ok(reader)
    }

    /// Runs a job on one current snapshot, on the reader thread: one that is soon done, since others
    /// wait for it.
    pub fn read(&self, job: ReadJob) {
        let env = self.env.clone();
        self.reads.send(env, job);
    }

    /// As [`Store::read`], for a job that takes long: on a thread for such, by which no other read
    /// waits. Its calls to the snapshot fail when it is to go on no longer; the job says why, by
    /// [`Patience::check`].
    pub fn read_long(&self, patience: Arc<Patience>, job: ReadJob) {
        self.long.send(patience, job);
    }

    /// The bounds of work that begins now, by the name of its method: `most`, and as long as it is
    /// wanted.
    #[must_use]
    pub fn patience(
        &self,
        what: &'static str,
        most: Duration,
        wanted: Option<Wanted>,
    ) -> Arc<Patience> {
        Patience::new(what, most, wanted, self.closing.clone())
    }

    /// The database as a whole, to be copied or examined on a thread that may take its time.
    #[must_use]
    pub fn custody(&self) -> Arc<dyn Custody> {
        self.whole.clone()
    }

    /// What a write of one key would leave there now, by the rules of a commit; the reply is dropped
    /// uncalled if the thread panics over it. With `long` the reply takes long, within these bounds.
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

    /// Hands over writes; the reply gets one decision each, in order. It is dropped uncalled if the
    /// writer thread panics over them; writes handed over after that are rejected as `Internal`.
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

    /// Runs something on the writer thread, between two transactions: before every write that is
    /// handed over later. An error means that there is no writer, and why.
    pub fn order(&self, order: Order) {
        self.writes.order(order);
    }

    /// Starts watching keys. Nothing is answered before [`Store::watch_next`].
    pub fn watch(&self, keys: Vec<Key>, raw: bool) -> Id {
        self.watches.add(keys, raw, None)
    }

    /// As [`Store::watch`]; a state for which there is no room is an error, behind which the watch may
    /// be asked again.
    pub fn watch_within(&self, keys: Vec<Key>, raw: bool, room: Arc<dyn Room>) -> Id {
        self.watches.add(keys, raw, Some(room))
    }

    /// Asks for the state of a watch: the current one at first, then the next that differs. The
    /// reply gets `None` when the watch is cancelled. One question at a time: a second one drops the
    /// first unanswered.
    pub fn watch_next(&self, id: Id, reply: WatchReply) {
        self.watches.next(id, reply);
    }

    /// Ends a watch; a reply that waits gets `None`.
    pub fn watch_cancel(&self, id: Id) {
        self.watches.cancel(id);
    }

    /// Follows the changes of a range: those of every commit that is handed over later, and if
    /// `since` is given, of every commit after it. Nothing is answered before [`Store::feed_next`].
    /// `busy` bounds the wait for other processes while the file begins to log changes.
    pub fn feed(&self, range: KeyRange, since: Option<u64>, busy: Duration) -> Id {
        self.feed_from(range, since, busy, Box::new(drop))
    }

    /// As [`Store::feed`]; the reply gets the commit after which it tells everything.
    pub fn feed_from(
        &self,
        range: KeyRange,
        since: Option<u64>,
        busy: Duration,
        reply: OpenedReply,
    ) -> Id {
        self.open_feed((range, since), None, busy, reply)
    }

    /// As [`Store::feed_from`]; a batch for which there is no room is an error, behind which the feed
    /// may be asked again.
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
            self.order(Box::new(move |writer| {
                let last = writer.and_then(|writer| writer.log_changes(Instant::now() + busy));
                opening.answer(last);
            }));
        }
        self.watches.external().hold();
        id
    }

    /// Asks a feed for the next changes. The reply gets `None` when the feed is cancelled. One
    /// question at a time: a second one drops the first unanswered.
    pub fn feed_next(&self, id: Id, reply: FeedReply) {
        self.feeds.next(id, reply);
    }

    /// The commit up to which a feed that is asked has told everything that there is; `None` while it
    /// may have something to tell, or nobody asks.
    #[must_use]
    pub fn feed_position(&self, id: Id) -> Option<u64> {
        self.feeds.position(id)
    }

    /// Ends a feed; a reply that waits gets `None`.
    pub fn feed_cancel(&self, id: Id) {
        if self.feeds.cancel(id) {
            self.watches.external().release();
        }
    }

    /// Becomes a consumer of a queue with so many free places.
    ///
    /// # Errors
    /// `Denied` on a read-only database; `Internal` after the writer thread has panicked.
    pub fn listen(&self, wish: Wish, credits: usize, deliver: Deliver) -> Result<Id> {
        self.listen_until(wish, credits, deliver, Box::new(drop))
    }

    /// As [`Store::listen`]; `lost` is called when the store can no longer learn of messages, behind
    /// which nothing is delivered.
    ///
    /// # Errors
    /// As [`Store::listen`].
    pub fn listen_until(
        &self,
        wish: Wish,
        credits: usize,
        deliver: Deliver,
        lost: Lost,
    ) -> Result<Id> {
        let id = self.writes.listen(wish, credits, deliver, lost)?;
        self.watches.external().hold();
        Ok(id)
    }

    /// As [`Store::listen`], on behalf of somebody elsewhere, who settles with [`Store::ask`] and
    /// keeps the locks going: from here on nobody knows whether it still handles what it has. Its
    /// places are what it [says](Store::grant), and it is dealt no more than a little ahead of
    /// what its connection [takes](Store::sent).
    ///
    /// # Errors
    /// As [`Store::listen`].
    pub fn listen_for(&self, elsewhere: Elsewhere, deliver: Deliver) -> Result<Id> {
        let id = self.writes.listen_for(elsewhere, deliver)?;
        self.watches.external().hold();
        Ok(id)
    }

    /// A consumer elsewhere has been given so many places since it began; an older word, and one
    /// about a consumer that there is none of, change nothing.
    pub fn grant(&self, listener: Id, granted: u64) {
        self.writes.grant(listener, granted);
    }

    /// So many more messages are on their way to a consumer elsewhere; `returned` of those that it
    /// was dealt never will be.
    pub fn sent(&self, listener: Id, sent: u64, returned: u64) {
        self.writes.sent(listener, sent, returned);
    }

    /// Ends a delivery and frees its place.
    pub fn settle(&self, listener: Id, number: i64, outcome: Outcome, reason: Option<Reason>) {
        self.writes.settle(listener, number, outcome, reason);
    }

    /// A number for [`Store::receive`].
    #[must_use]
    pub fn new_receiver(&self) -> Id {
        self.writes.new_receiver()
    }

    /// Asks for one message: with `once` for one that is there now, else for the next, until
    /// [`Store::receive_cancel`]. Its lock is not renewed; it is settled with [`Store::ask`].
    pub fn receive(&self, id: Id, wish: Wish, once: bool, reply: Receive) {
        // Kept from the first wait on: whoever receives once will again, and starting costs more.
        if !once && !self.receives.swap(true, Ordering::Relaxed) {
            self.watches.external().hold();
        }
        self.writes.receive(id, wish, once, reply);
    }

    /// Waits no longer for a message: a reply that waits gets `None`.
    pub fn receive_cancel(&self, id: Id) {
        self.writes.receive_cancel(id);
    }

    /// Settles a message that was received, or makes its lock go on; the reply says whether it was
    /// still the asker's.
    pub fn ask(&self, what: Ask, reply: Reply) {
        self.writes.ask(what, reply);
    }

    /// Does something with dead messages of a queue; the reply gets how many it was done with.
    pub fn order_dead(
        &self,
        queue: String,
        order: DeadOrder,
        busy: Duration,
        reply: Box<dyn FnOnce(Result<usize>) + Send>,
    ) {
        let env = self.env.clone();
        let (watches, feeds) = (Arc::downgrade(&self.watches), Arc::downgrade(&self.feeds));
        self.order(Box::new(move |writer| {
            let deadline = Instant::now() + busy;
            let done = writer.and_then(|w| w.order_dead(&queue, &order, env.now_ms(), deadline));
            if let Ok(done) = done {
                // A commit without keys: nobody has to look, but it is not another process's.
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

    /// How many messages of a queue wait or are being handled, counted at most once.
    pub fn queue_depth(&self, queue: String, reply: Box<dyn FnOnce(Result<u64>) + Send>) {
        self.writes.question(Box::new(move |writer| {
            reply(writer.and_then(|writer| writer.queue_depth(&queue)));
        }));
    }

    /// Stops consuming. What is being handled keeps its lock until it is settled.
    pub fn stop_listening(&self, listener: Id) {
        if self.writes.stop_listening(listener) {
            self.watches.external().release();
        }
    }

    /// Ends a listener whose handlers nobody answers for any more. What they handle may still be
    /// settled, but its lock is no longer renewed.
    pub fn unlisten(&self, listener: Id) {
        if self.writes.unlisten(listener) {
            self.watches.external().release();
        }
    }
}

/// What can be done about other processes' commits.
fn means<E: Engine>(
    engine: Weak<E>,
    (watches, feeds, writes): (Weak<watch::Watches>, Weak<feed::Feeds>, Weak<inbox::Inbox>),
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
        engine.watch_foreign(Box::new(move || wake()))
    };
    let lost = move |error: &Error| {
        let (watches, feeds, writes) = &told;
        if let Some(feeds) = feeds.upgrade() {
            feeds.refuse_all(error);
        }
        let Some(watches) = watches.upgrade() else { return };
        watches.refuse_all(error);
        if let Some(writes) = writes.upgrade() {
            watches.refuse_listeners(&writes, error);
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
            // The store may be dropped by a reply, on one of its own threads.
            let own = thread.thread().id() == std::thread::current().id();
            if !own && thread.join().is_err() {
                tracing::error!("a thread of the store ended by a panic");
            }
        }
    }
}
