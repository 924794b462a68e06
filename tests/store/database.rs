//! A store under test: its clock, and its answers as channels.

use std::path::Path;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, channel};
use std::sync::{Arc, Mutex};

use openkv::engine::Engine;
use openkv::engine::memory::MemoryEngine;
use openkv::engine::sqlite::SqliteEngine;
use openkv::model::{
    Ask, AtomicWrite, Check, ConsumeOptions, Decision, Deliver, Delivery, Dispatched, Entry, Env,
    Id, LOCK_MS, Outcome, Range, Result,
};
use openkv::store::{RemoteConsumer, Store};

use crate::faulty::Plan;
use crate::kit::{PATIENCE, until};
use crate::writes::{checked, key, stamp, write};

/// The time at the start of every test.
pub(crate) const START_MS: i64 = 1_000_000;

/// A clock that only the test moves.
pub(crate) struct Clock {
    now_ms: AtomicI64,
    drawn: AtomicU64,
}

impl Env for Clock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::SeqCst)
    }

    fn random(&self) -> u64 {
        self.drawn.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::SeqCst)
    }
}

/// A future answer.
pub(crate) struct Answer<T>(Receiver<T>);

impl<T> Answer<T> {
    pub(crate) fn of(receiver: Receiver<T>) -> Self {
        Self(receiver)
    }

    /// Waits for it.
    pub(crate) fn get(&self) -> T {
        self.0.recv_timeout(PATIENCE).expect("an answer")
    }

    /// Waits for the reply to be dropped.
    pub(crate) fn is_dropped(&self) -> bool {
        self.now_or_dropped().is_none()
    }

    /// Waits for the answer, or for the reply to be dropped.
    pub(crate) fn now_or_dropped(&self) -> Option<T> {
        match self.0.recv_timeout(PATIENCE) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Disconnected) => None,
            Err(RecvTimeoutError::Timeout) => panic!("neither answered nor dropped"),
        }
    }

    /// The answer, if it has arrived.
    pub(crate) fn now(&self) -> Option<T> {
        match self.0.try_recv() {
            Ok(answer) => Some(answer),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Disconnected) => panic!("the answer was dropped"),
        }
    }
}

/// The state of a watch: the bytes of each entry.
pub(crate) type Shown = Result<Option<Vec<Option<Vec<u8>>>>>;

pub(crate) struct Database {
    pub(crate) store: Option<Store>,
    pub(crate) clock: Arc<Clock>,
    /// Dropped last.
    _directory: Option<Arc<tempfile::TempDir>>,
}

impl Database {
    pub(crate) fn over(engine: impl Engine) -> Self {
        Self::start(engine, None, false)
    }

    fn start(
        engine: impl Engine,
        directory: Option<Arc<tempfile::TempDir>>,
        readonly: bool,
    ) -> Self {
        // Two stores on one file must not draw the same locks, which leave out the lower bits.
        static STORES: AtomicU64 = AtomicU64::new(1);
        let drawn = (STORES.fetch_add(1, Ordering::SeqCst) << 48).into();
        let clock = Arc::new(Clock { now_ms: START_MS.into(), drawn });
        let store = Store::start(engine, clock.clone(), readonly).expect("started");
        Self { store: Some(store), clock, _directory: directory }
    }

    pub(crate) fn memory() -> Self {
        Self::over(MemoryEngine::new())
    }

    pub(crate) fn sqlite() -> Self {
        Self::sqlite_wrapped(|engine| engine)
    }

    /// A file whose engine is wrapped in another.
    pub(crate) fn sqlite_wrapped<E: Engine>(wrap: impl FnOnce(SqliteEngine) -> E) -> Self {
        let directory = Arc::new(tempfile::tempdir().expect("a directory"));
        let engine = open(directory.path(), false);
        Self::start(wrap(engine), Some(directory), false)
    }

    /// Another store on the same file, as in another process.
    pub(crate) fn another(&self, readonly: bool) -> Self {
        let directory = self._directory.clone().expect("a file");
        Self::start(open(directory.path(), readonly), Some(directory), readonly)
    }

    /// Changes the file by SQL, as no program of ours would.
    pub(crate) fn tamper(&self, sql: &str) {
        let path = self._directory.as_ref().expect("a file").path().join("kv.sqlite3");
        let raw = rusqlite::Connection::open(path).expect("opened raw");
        raw.execute_batch(sql).expect(sql);
    }

    pub(crate) fn store(&self) -> &Store {
        self.store.as_ref().expect("open")
    }

    /// Submits writes without waiting.
    pub(crate) fn submit(&self, writes: Vec<Result<AtomicWrite>>) -> Answer<Vec<Decision>> {
        let (sender, answer) = channel();
        let reply = move |decisions| {
            let _receiver_gone = sender.send(decisions);
        };
        self.store().commit(writes, false, PATIENCE, Box::new(reply));
        Answer(answer)
    }

    pub(crate) fn commit(&self, writes: Vec<AtomicWrite>) -> Vec<Decision> {
        self.submit(writes.into_iter().map(Ok).collect()).get()
    }

    /// Commits one write, which must succeed.
    pub(crate) fn must(&self, write: AtomicWrite) -> u64 {
        match self.commit(vec![write]).remove(0) {
            Decision::Committed(stamp) | Decision::CommittedWith(stamp, _) => stamp.version(),
            other => panic!("{other:?}"),
        }
    }

    /// Returns once all submitted work is done and announced, and its reads have run.
    pub(crate) fn settle_down(&self) {
        self.commit(vec![write(Vec::new())]);
        self.settle_without_a_commit();
    }

    /// As [`Self::settle_down`], but the database has no further commit.
    pub(crate) fn settle_without_a_commit(&self) {
        // A transaction is announced before the next one is answered. This one is refused, so it has
        // no version to announce.
        let never = Check { key: key(""), expected: Some(stamp(u64::MAX >> 1)) };
        self.commit(vec![checked(vec![never], Vec::new())]);
        self.read("");
    }

    /// Returns once the store hears of commits of other processes, and has nothing left to read.
    pub(crate) fn hears_others(&self, plan: &Plan) {
        until(|| plan.external_open.load(Ordering::SeqCst) == 1);
        self.settle_down();
    }

    /// Advances the clock and lets the store read it.
    pub(crate) fn pass(&self, ms: i64) {
        self.clock.now_ms.fetch_add(ms, Ordering::SeqCst);
        self.poke();
    }

    /// Advances the clock, which the store reads when it wakes up by itself.
    pub(crate) fn clock_only(&self, ms: i64) {
        self.clock.now_ms.fetch_add(ms, Ordering::SeqCst);
    }

    /// Keeps all writers out of the file until the result is dropped.
    pub(crate) fn hold_file(&self) -> rusqlite::Connection {
        let path = self._directory.as_ref().expect("a file").path().join("kv.sqlite3");
        let raw = rusqlite::Connection::open(path).expect("opened raw");
        raw.execute_batch("BEGIN IMMEDIATE").expect("begun");
        raw
    }

    /// Makes the writer thread read the clock.
    pub(crate) fn poke(&self) {
        self.store().settle(Id::MAX, 0, Outcome::Done, None);
    }

    /// An entry's bytes, read on the reader thread.
    pub(crate) fn read(&self, name: &str) -> Option<Vec<u8>> {
        let name = key(name);
        let (sender, answer) = channel();
        let found = sender.clone();
        let end = move |read: Result<()>| {
            read.expect("read");
            // The entry, if there is one, has been sent, and nothing receives this answer.
            let _unread = sender.send(None);
        };
        self.store().read_ranges(vec![Range::Point(name)], end, move |_, rows| {
            rows.visit(|row, _| found.send(Some(row.value.to_vec())).is_ok())
        });
        Answer(answer).get()
    }

    pub(crate) fn watch(&self, names: &[&str]) -> Id {
        self.store().watch(names.iter().map(|name| key(name)).collect(), false, None)
    }

    /// Watches of one key each, which do not exist yet, and the calls that wait for them.
    pub(crate) fn watches_of_absent<const N: usize>(
        &self,
        names: [&str; N],
    ) -> ([Id; N], [Answer<Shown>; N]) {
        let watches = names.map(|name| self.watch(&[name]));
        for watch in watches {
            assert_eq!(self.next(watch).get(), Ok(Some(vec![None])));
        }
        (watches, watches.map(|watch| self.next(watch)))
    }

    pub(crate) fn next(&self, watch: Id) -> Answer<Shown> {
        let (sender, answer) = channel();
        let reply = move |entries: Result<Option<Vec<Option<Entry>>>>| {
            let bytes = |entry: Option<Entry>| entry.map(|entry| entry.value.bytes);
            let shown = |entries: Vec<Option<Entry>>| entries.into_iter().map(bytes).collect();
            let _receiver_gone = sender.send(entries.map(|entries| entries.map(shown)));
        };
        self.store().watch_next(watch, Box::new(reply));
        Answer(answer)
    }

    /// Adds a consumer of Deno's queue.
    pub(crate) fn listen(&self, credits: usize) -> Consumer {
        self.listen_to("", LOCK_MS, credits)
    }

    /// Adds a consumer of a queue.
    pub(crate) fn listen_to(&self, queue: &str, lock_ms: i64, credits: usize) -> Consumer {
        let (deliver, got) = mailbox();
        let options = ConsumeOptions { queue: queue.to_owned(), lock_ms };
        let id = self.store().listen(options, credits, deliver, Box::new(drop)).expect("listening");
        Consumer { id, got: Answer(got) }
    }

    /// Adds a remote consumer.
    pub(crate) fn listen_for(&self, lock_ms: i64, credits: u64, most: u64) -> Consumer {
        let (deliver, got) = mailbox();
        let options = ConsumeOptions { queue: "mail".to_owned(), lock_ms };
        let consumer = RemoteConsumer { options, credits, most };
        let id = self.store().listen_for(consumer, deliver).expect("listening");
        Consumer { id, got: Answer(got) }
    }

    /// Asks for one message.
    pub(crate) fn receive(
        &self,
        queue: &str,
        lock_ms: i64,
        once: bool,
    ) -> (Id, Answer<Result<Option<Delivery>>>) {
        let (sender, answer) = channel();
        let id = self.store().new_receiver();
        let reply = move |received| {
            let _receiver_gone = sender.send(received);
        };
        let options = ConsumeOptions { queue: queue.to_owned(), lock_ms };
        self.store().receive(id, options, once, Box::new(reply));
        (id, Answer(answer))
    }

    /// Settles a received message or renews its lock, and waits for the answer.
    pub(crate) fn ask(&self, what: Ask) -> Result<bool> {
        let (sender, answer) = channel();
        self.store().ask(what, Box::new(move |held| sender.send(held).expect("a receiver")));
        Answer(answer).get()
    }

    /// Completes submitted work and closes.
    pub(crate) fn close(&mut self) {
        self.store = None;
    }
}

/// The parameters of Deno's listeners.
pub(crate) fn deno() -> ConsumeOptions {
    ConsumeOptions { queue: String::new(), lock_ms: LOCK_MS }
}

/// A consumer and its messages.
pub(crate) struct Consumer {
    pub(crate) id: Id,
    got: Answer<Dispatched>,
}

impl Consumer {
    /// Waits for a delivery: its number, and the message's byte.
    pub(crate) fn get(&self) -> (i64, u8) {
        let handed = self.got.get();
        (handed.number, handed.delivery.value[0])
    }

    /// Waits for a delivery and returns all of it.
    pub(crate) fn delivery(&self) -> Delivery {
        self.got.get().delivery
    }

    /// Waits for the end of the consumer, which drops its callback.
    pub(crate) fn is_ended(&self) -> bool {
        self.got.is_dropped()
    }

    /// The bytes of the messages so far.
    pub(crate) fn all(&self) -> Vec<u8> {
        self.got.0.try_iter().map(|handed| handed.delivery.value[0]).collect()
    }
}

/// Takes every delivery and keeps it for the test.
fn mailbox() -> (Deliver, Receiver<Dispatched>) {
    let (sender, got) = channel();
    let sender = Mutex::new(sender);
    let deliver = move |hand: Vec<Dispatched>| {
        for handed in hand {
            let _receiver_gone = sender.lock().expect("no panic").send(handed);
        }
        Vec::new()
    };
    (Box::new(deliver), got)
}

fn open(directory: &Path, readonly: bool) -> SqliteEngine {
    SqliteEngine::open(&directory.join("kv.sqlite3"), readonly, PATIENCE).expect("opened")
}

/// Makes each function a test on memory and on a file.
#[macro_export]
macro_rules! on_both {
    ($($test:ident)*) => {
        mod memory {
            $(#[test] fn $test() { super::$test($crate::database::Database::memory()); })*
        }
        mod sqlite {
            $(#[test] fn $test() { super::$test($crate::database::Database::sqlite()); })*
        }
    };
}
