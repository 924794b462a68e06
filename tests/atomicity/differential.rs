//! Runs the same work on two engines and compares the results.

use std::collections::{BTreeMap, HashMap};
use std::time::{Duration, Instant};

use openkv::engine::memory::MemoryEngine;
use openkv::engine::{Engine, Reader, Report, Snapshot, Work, Writer};
use openkv::model::{
    AtomicWrite, ChangeKind, Claim, DeadLetter, Decision, Encoding, Error, Key, LOCK_MS,
    MessageState, Origin, Outcome, Peek, Peeked, QueueStats, Renewal, Settlement, Versionstamp,
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

/// A commit, its key, and what it did.
type Logged = (u64, Vec<u8>, ChangeKind<(Encoding, Vec<u8>)>);

/// What feeds read, by commit and key.
fn log(reader: &mut impl Reader, now_ms: i64) -> Vec<Logged> {
    let mut all = Vec::new();
    let read = reader.read(now_ms, &mut |snapshot| {
        snapshot.changes(0, &mut |change| {
            let kind = change.kind.map(|(encoding, bytes)| (encoding, bytes.to_vec()));
            all.push((change.version, change.key.to_vec(), kind));
            true
        })
    });
    read.expect("a read");
    all.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
    all
}

/// What a follower of the log knows of an entry: its value and its expiry.
type Followed = (Encoding, Vec<u8>, Option<i64>);

/// The queues of the test; the first is Deno's.
pub(crate) const QUEUES: [&str; 3] = ["", "a", "b"];

/// The messages and dead letters of a queue, without their numbers.
#[derive(Debug, Default, PartialEq)]
struct About {
    stats: QueueStats,
    dead: Vec<DeadLetter>,
    /// Those that are not dead.
    messages: Vec<Peeked>,
}

/// The state of a queue as readers report it.
fn about(queue: &str, reader: &mut impl Reader, now_ms: i64) -> About {
    let mut found = About::default();
    let read = reader.read(now_ms, &mut |snapshot| {
        found.stats = snapshot.queues()?.stats(queue)?;
        let mut ids = Vec::new();
        snapshot.queues()?.dead_letters(queue, (0, 0), &mut |letter| {
            ids.push(letter.id);
            found.dead.push(DeadLetter { id: 0, ..letter });
            true
        })?;
        for (id, letter) in ids.into_iter().zip(&found.dead) {
            let one = snapshot.queues()?.dead_letter(queue, id)?.expect("it was listed");
            assert_eq!(DeadLetter { id: 0, ..one }, *letter);
        }
        found.messages = peeked(queue, snapshot, &found.stats)?;
        Ok(())
    });
    read.expect("a read");
    found
}

fn peeked(
    queue: &str,
    snapshot: &mut dyn Snapshot,
    stats: &QueueStats,
) -> Result<Vec<Peeked>, Error> {
    let (mut all, mut counts) = (Vec::new(), [0; 3]);
    snapshot.queues()?.peek(queue, Peek::default(), &mut |message, cursor| {
        counts[cursor.place.state() as usize] += 1;
        all.push(Peeked { id: 0, ..message });
        true
    })?;
    assert_eq!(counts, [stats.pending, stats.delayed, stats.processing]);
    for state in [MessageState::Pending, MessageState::Delayed, MessageState::Processing] {
        let mut count = 0;
        snapshot.queues()?.peek(
            queue,
            Peek { state: Some(state), after: None },
            &mut |_, found| {
                assert_eq!(found.place.state(), state);
                count += 1;
                true
            },
        )?;
        assert_eq!(count, counts[state as usize]);
    }
    Ok(all)
}

/// A copy of the entries, made of the log of changes alone.
struct Follower {
    entries: BTreeMap<Vec<u8>, Followed>,
    /// The last commit that it has followed.
    version: u64,
}

impl Follower {
    fn of(rows: &[Seen], reader: &mut impl Reader, now_ms: i64, version: u64) -> Self {
        Self { entries: followed(rows, reader, now_ms), version }
    }

    fn follow(&mut self, changes: Vec<Logged>) {
        let followed = self.version;
        for (version, key, kind) in changes.into_iter().filter(|change| change.0 > followed) {
            self.version = version;
            match kind {
                ChangeKind::Set { value: (encoding, bytes), expire_at_ms } => {
                    self.entries.insert(key, (encoding, bytes, expire_at_ms));
                }
                ChangeKind::Deleted | ChangeKind::Expired => drop(self.entries.remove(&key)),
                ChangeKind::ExpirySet { expire_at_ms } => {
                    self.entries.get_mut(&key).expect("an entry that expires").2 = expire_at_ms;
                }
            }
        }
    }

    /// The entries of the copy that have not expired are those of the database.
    fn compare(&self, rows: &[Seen], reader: &mut impl Reader, now_ms: i64) {
        let mut alive = self.entries.clone();
        alive.retain(|_, (_, _, end_ms)| end_ms.is_none_or(|end_ms| end_ms > now_ms));
        assert_eq!(alive, followed(rows, reader, now_ms));
    }
}

fn followed(rows: &[Seen], reader: &mut impl Reader, now_ms: i64) -> BTreeMap<Vec<u8>, Followed> {
    let mut all = BTreeMap::new();
    let read = reader.read(now_ms, &mut |snapshot| {
        for Seen { key, encoding, value, .. } in rows {
            let end_ms = snapshot.expiry(key.as_bytes())?.expect("an entry");
            all.insert(key.as_bytes().to_vec(), (*encoding, value.clone(), end_ms));
        }
        Ok(())
    });
    read.expect("a read");
    all
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
            fires: false,
            durable: self.durable,
            seed: lock.cast_unsigned(),
        }
    }
}

/// An engine with its reader and writer, and its numbers of messages.
struct Twin<E: Engine> {
    reader: E::Reader,
    writer: E::Writer,
    ids: HashMap<Vec<u8>, i64>,
}

impl<E: Engine> Twin<E> {
    fn of(engine: &E) -> Self {
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

/// A place for the database of one engine under test.
pub(crate) trait Place {
    type Engine: Engine;

    /// A place with no database in it.
    fn new() -> Self;

    /// Opens the database, which is created if it is not there.
    fn open(&self) -> Self::Engine;

    /// Asserts the rules of the stored tables, by other means than the engine.
    fn inspect(&self);
}

/// The engine in memory and one under test.
pub(crate) struct EnginePair<P: Place> {
    memory: Twin<MemoryEngine>,
    /// `None` only while the database is closed.
    subject: Option<Twin<P::Engine>>,
    place: P,
    lock: i64,
    memory_engine: MemoryEngine,
    pub(crate) now_ms: i64,
    /// Once changes are logged.
    follower: Option<Follower>,
    pub(crate) messages: u32,
    /// Every claimed message with each lock it has had: most of them are stale.
    pub(crate) held: Vec<Held>,
}

/// Number of claims that the test still uses.
const HELD_MAX: usize = 12;

impl<P: Place> EnginePair<P> {
    pub(crate) fn new() -> Self {
        let (memory_engine, place) = (MemoryEngine::new(), P::new());
        Self {
            memory: Twin::of(&memory_engine),
            subject: Some(Twin::of(&place.open())),
            place,
            lock: 0,
            memory_engine,
            now_ms: 1_000_000,
            follower: None,
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
        let subject = self.subject.as_mut().expect("open");
        let memory = self.memory.apply(&plan, self.lock, self.now_ms);
        let other = subject.apply(&plan, self.lock, self.now_ms);
        assert_eq!(memory.decisions, other.decisions);
        assert_eq!(memory.deliveries, other.deliveries);
        assert_eq!(memory.touched, other.touched);
        assert_eq!(memory.expiry_ms, other.expiry_ms);
        assert_eq!(memory.queued, other.queued);
        assert_eq!(memory.settled, other.settled);
        assert_eq!(memory.renewed, other.renewed);
        assert_eq!(memory.put_back, other.put_back);
        assert_eq!(memory.purge_ahead, other.purge_ahead);
        assert_eq!(memory.sweep_more, other.sweep_more);
        let lock = self.lock;
        let claimed = memory.deliveries.into_iter().flatten();
        self.held.extend(claimed.map(|delivery| Held { value: delivery.value, lock }));
        let old = self.held.len().saturating_sub(HELD_MAX);
        self.held.drain(..old);
    }

    /// Compares the contents of both, their next deadlines, and their logs, and the entries with those
    /// of a copy that follows the log.
    pub(crate) fn compare(&mut self) {
        let (memory, subject) = (&mut self.memory, self.subject.as_mut().expect("open"));
        let rows = content(&mut memory.reader, self.now_ms);
        assert_eq!(rows, content(&mut subject.reader, self.now_ms));
        let changes = log(&mut memory.reader, self.now_ms);
        assert_eq!(changes, log(&mut subject.reader, self.now_ms));
        if let Some(follower) = &mut self.follower {
            follower.follow(changes);
            follower.compare(&rows, &mut subject.reader, self.now_ms);
        }
        let deadlines = memory.writer.next_deadlines().expect("deadlines");
        assert_eq!(deadlines, subject.writer.next_deadlines().expect("deadlines"));
        for queue in QUEUES {
            let next_ms = memory.writer.next_message_ms(queue).expect("deadlines");
            assert_eq!(next_ms, subject.writer.next_message_ms(queue).expect("deadlines"));
            let expected = about(queue, &mut memory.reader, self.now_ms);
            assert_eq!(expected, about(queue, &mut subject.reader, self.now_ms));
        }
    }

    /// Closes the database and opens it again. From the first time on both log their changes.
    pub(crate) fn reopen(&mut self) {
        let ids = self.subject.take().expect("open").ids;
        let subject = self.subject.insert(Twin { ids, ..Twin::of(&self.place.open()) });
        let deadline = Instant::now() + Duration::from_secs(20);
        let origin = Origin { database: [7; 16], incarnation: 7 };
        let on = |writer: &mut dyn Writer| writer.log_changes(origin, self.now_ms, deadline);
        let from = on(&mut self.memory.writer).expect("logging");
        assert_eq!(on(&mut subject.writer), Ok(from));
        if self.follower.is_none() {
            let rows = content(&mut subject.reader, self.now_ms);
            self.follower = Some(Follower::of(&rows, &mut subject.reader, self.now_ms, from));
        }
    }

    /// As [`Place::inspect`].
    pub(crate) fn inspect(&self) {
        self.place.inspect();
    }
}
