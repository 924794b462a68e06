//! Runs the same work on two engines and compares the results.

use std::collections::HashMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use openkv::engine::memory::{MemoryEngine, MemoryReader, MemoryWriter};
use openkv::engine::sqlite::{SqliteEngine, SqliteReader, SqliteWriter};
use openkv::engine::{Engine, Reader, Report, Work, Writer};
use openkv::model::{
    AtomicWrite, Claim, DeadLetter, Decision, Encoding, Key, LOCK_MS, Outcome, QueueStats, Renewal,
    Settlement, Versionstamp,
};

/// A row, as read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) key: Key,
    pub(crate) stamp: Versionstamp,
    encoding: Encoding,
    value: Vec<u8>,
}

/// All rows, in order, read in both directions and key by key.
pub(crate) fn content(reader: &mut impl Reader, now_ms: i64) -> Vec<Seen> {
    let (mut forward, mut backward, mut single) = (Vec::new(), Vec::new(), Vec::new());
    let read = reader.read(now_ms, &mut |snapshot| {
        let seen = |row: openkv::model::Row<'_>| Seen {
            key: Key::from_encoded(row.key.to_vec()),
            stamp: row.stamp,
            encoding: row.encoding,
            value: row.value.to_vec(),
        };
        for (reverse, rows) in [(false, &mut forward), (true, &mut backward)] {
            snapshot.scan(&[], &[0xff], reverse, &mut |row| {
                rows.push(seen(row));
                true
            })?;
        }
        for row in &forward {
            assert!(snapshot.get(row.key.as_bytes(), &mut |row| single.push(seen(row)))?);
        }
        Ok(())
    });
    read.expect("a read");
    backward.reverse();
    assert_eq!(forward, backward);
    assert_eq!(forward, single);
    forward
}

/// The queues of the test; the first is Deno's.
pub(crate) const QUEUES: [&str; 3] = ["", "a", "b"];

/// The state of a queue as readers report it, without the numbers of messages.
fn about(queue: &str, reader: &mut impl Reader, now_ms: i64) -> (QueueStats, Vec<DeadLetter>) {
    let mut found = (QueueStats::default(), Vec::new());
    let read = reader.read(now_ms, &mut |snapshot| {
        found.0 = snapshot.queue_stats(queue)?;
        let mut ids = Vec::new();
        snapshot.dead_letters(queue, (0, 0), &mut |letter| {
            ids.push(letter.id);
            found.1.push(DeadLetter { id: 0, ..letter });
            true
        })?;
        for (id, letter) in ids.into_iter().zip(&found.1) {
            let one = snapshot.dead_letter(queue, id)?.expect("it was listed");
            assert_eq!(DeadLetter { id: 0, ..one }, *letter);
        }
        Ok(())
    });
    read.expect("a read");
    found
}

/// A claimed message: its value and its lock.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    value: Vec<u8>,
    lock: i64,
}

/// Work that refers to messages by value.
pub(crate) struct Plan {
    pub(crate) writes: Vec<AtomicWrite>,
    /// The number of messages so far, with these writes.
    pub(crate) messages: u32,
    pub(crate) settlements: Vec<(Held, Outcome)>,
    pub(crate) renewals: Vec<Held>,
    /// Queues, and the maximum number of messages to claim from each.
    pub(crate) claims: Vec<(&'static str, usize)>,
    pub(crate) sweep_max: usize,
    pub(crate) purge_max: usize,
    pub(crate) durable: bool,
}

impl Plan {
    fn work(&self, lock: i64, ids: &HashMap<Vec<u8>, i64>) -> Work {
        let settlement = |(held, outcome): &(Held, Outcome)| {
            Settlement::new(ids[&held.value], held.lock, *outcome)
        };
        let renewal =
            |held: &Held| Renewal { id: ids[&held.value], lock: held.lock, lock_ms: LOCK_MS };
        let claim = |(queue, max): &(&'static str, usize)| Claim {
            queue: (*queue).to_owned(),
            max: *max,
            lock_ms: LOCK_MS,
            lock,
        };
        Work {
            writes: self.writes.clone(),
            settlements: self.settlements.iter().map(settlement).collect(),
            renewals: self.renewals.iter().map(renewal).collect(),
            claims: self.claims.iter().map(claim).collect(),
            sweep_max: self.sweep_max,
            purge_max: self.purge_max,
            durable: self.durable,
            seed: lock.cast_unsigned(),
        }
    }
}

/// An engine with its reader and writer, and its numbers of messages.
struct Twin<R, W> {
    reader: R,
    writer: W,
    ids: HashMap<Vec<u8>, i64>,
}

impl<R: Reader, W: Writer> Twin<R, W> {
    fn of(engine: &impl Engine<Reader = R, Writer = W>) -> Self {
        let reader = engine.reader().expect("a reader");
        Self { reader, writer: engine.writer().expect("a writer"), ids: HashMap::new() }
    }

    fn apply(&mut self, plan: &Plan, lock: i64, now_ms: i64) -> Report {
        let work = plan.work(lock, &self.ids);
        let deadline = Instant::now() + Duration::from_secs(20);
        let mut report = self.writer.apply(work, now_ms, deadline).expect("applied");
        for delivery in report.deliveries.iter_mut().flatten() {
            self.ids.insert(delivery.value.clone(), delivery.id);
            delivery.id = 0;
        }
        for decision in &mut report.decisions {
            if let Decision::CommittedWith(_, results) = decision {
                results.enqueued.iter_mut().for_each(|enqueued| enqueued.id = None);
            }
        }
        report.touched.sort();
        report.touched.dedup();
        report
    }
}

pub(crate) struct EnginePair {
    memory: Twin<MemoryReader, MemoryWriter>,
    sqlite: Twin<SqliteReader, SqliteWriter>,
    path: PathBuf,
    _directory: tempfile::TempDir,
    lock: i64,
    memory_engine: MemoryEngine,
    pub(crate) now_ms: i64,
    pub(crate) messages: u32,
    /// Every claimed message with each lock it has had: most of them are stale.
    pub(crate) held: Vec<Held>,
}

/// Number of claims that the test still uses.
const HELD_MAX: usize = 12;

impl EnginePair {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().expect("a directory");
        let path = directory.path().join("kv.sqlite3");
        let memory_engine = MemoryEngine::new();
        Self {
            memory: Twin::of(&memory_engine),
            sqlite: Twin::of(&open(&path)),
            path,
            _directory: directory,
            lock: 0,
            memory_engine,
            now_ms: 1_000_000,
            messages: 0,
            held: Vec::new(),
        }
    }

    pub(crate) fn content(&self) -> Vec<Seen> {
        content(&mut self.memory_engine.reader().expect("a reader"), self.now_ms)
    }

    pub(crate) fn apply(&mut self, plan: Plan) {
        self.lock += 1;
        self.messages = plan.messages;
        let memory = self.memory.apply(&plan, self.lock, self.now_ms);
        let sqlite = self.sqlite.apply(&plan, self.lock, self.now_ms);
        assert_eq!(memory.decisions, sqlite.decisions);
        assert_eq!(memory.deliveries, sqlite.deliveries);
        assert_eq!(memory.touched, sqlite.touched);
        assert_eq!(memory.expiry_ms, sqlite.expiry_ms);
        assert_eq!(memory.queued, sqlite.queued);
        assert_eq!(memory.settled, sqlite.settled);
        assert_eq!(memory.renewed, sqlite.renewed);
        assert_eq!(memory.put_back, sqlite.put_back);
        assert_eq!(memory.purge_ahead, sqlite.purge_ahead);
        assert_eq!(memory.sweep_more, sqlite.sweep_more);
        let lock = self.lock;
        let claimed = memory.deliveries.into_iter().flatten();
        self.held.extend(claimed.map(|delivery| Held { value: delivery.value, lock }));
        let old = self.held.len().saturating_sub(HELD_MAX);
        self.held.drain(..old);
    }

    /// Compares the contents of both, and their next deadlines.
    pub(crate) fn compare(&mut self) {
        let rows = content(&mut self.memory.reader, self.now_ms);
        assert_eq!(rows, content(&mut self.sqlite.reader, self.now_ms));
        let deadlines = self.memory.writer.next_deadlines().expect("deadlines");
        assert_eq!(deadlines, self.sqlite.writer.next_deadlines().expect("deadlines"));
        for queue in QUEUES {
            let next_ms = self.memory.writer.next_message_ms(queue).expect("deadlines");
            assert_eq!(next_ms, self.sqlite.writer.next_message_ms(queue).expect("deadlines"));
            let memory = about(queue, &mut self.memory.reader, self.now_ms);
            assert_eq!(memory, about(queue, &mut self.sqlite.reader, self.now_ms));
        }
    }

    /// Closes the file and opens it again.
    pub(crate) fn reopen(&mut self) {
        // Another file replaces it meanwhile, so that this one is really closed.
        let ids = std::mem::take(&mut self.sqlite.ids);
        let directory = tempfile::tempdir().expect("a directory");
        let elsewhere = Twin::of(&open(&directory.path().join("kv.sqlite3")));
        drop(std::mem::replace(&mut self.sqlite, elsewhere));
        self.sqlite = Twin { ids, ..Twin::of(&open(&self.path)) };
    }

    /// Checks the file by SQLite's rules and openkv's.
    pub(crate) fn inspect_file(&self) {
        let raw = rusqlite::Connection::open(&self.path).expect("opened raw");
        let text = |sql| raw.query_row(sql, [], |row| row.get::<_, String>(0)).expect(sql);
        let count = |sql| raw.query_row(sql, [], |row| row.get::<_, i64>(0)).expect(sql);
        assert_eq!(text("PRAGMA integrity_check"), "ok");
        let orphans = "SELECT count(*) FROM openkv_spill \
             WHERE id NOT IN (SELECT v FROM kv WHERE v_encoding >= 256)";
        assert_eq!(count(orphans), 0);
        let missing = "SELECT count(*) FROM kv WHERE v_encoding >= 256 \
             AND v NOT IN (SELECT id FROM openkv_spill)";
        assert_eq!(count(missing), 0);
        let shared = "SELECT count(*) - count(DISTINCT v) FROM kv WHERE v_encoding >= 256";
        assert_eq!(count(shared), 0);
    }
}

fn open(path: &std::path::Path) -> SqliteEngine {
    SqliteEngine::open(path, false, Duration::from_secs(5)).expect("opened")
}
