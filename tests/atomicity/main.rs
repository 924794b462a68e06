//! Random work on the memory engine and on another engine: both must report the same and have the same
//! contents after every step. `OPENKV_SEED=7 cargo test --test atomicity` runs only the work of seed 7.

#![expect(
    clippy::expect_used,
    clippy::indexing_slicing,
    reason = "a test ends where something is not as it should be"
)]

mod differential;
#[cfg(unix)]
mod plans;
#[cfg(unix)]
mod postgres;
#[cfg(unix)]
#[path = "../kit/postgres.rs"]
mod postgres_server;
#[path = "../kit/rng.rs"]
mod rng;
mod sqlite;

use std::time::{Duration, Instant};

use differential::{EnginePair, Place, Seen, content};
use openkv::codec::cbor::{encode_bigint, encode_number};
use openkv::engine::memory::MemoryEngine;
use openkv::engine::sqlite::SqliteEngine;
use openkv::engine::{Engine, Work, Writer};
use openkv::model::{
    Arith, AtomicWrite, Bounds, Calculation, Check, Decision, Deduplication, EncodedValue,
    Encoding, Key, LimitAlgorithm, Limiting, Limits, Message, Mutation, Numeric, Operand, Outcome,
    Time, Versionstamp, WriteParts,
};
use rng::Rng;
use sqlite::SqliteFile;

/// Steps of work for each seed.
const STEPS: usize = 50;
const SEEDS: u64 = 16;

fn seeds() -> std::ops::Range<u64> {
    match std::env::var("OPENKV_SEED").ok().and_then(|seed| seed.parse().ok()) {
        Some(seed) => seed..seed + 1,
        None => 1..SEEDS + 1,
    }
}

/// Prints the seed if the test panics.
struct Named(u64);

impl Drop for Named {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("to see only this again: OPENKV_SEED={}", self.0);
        }
    }
}

#[test]
fn a_file_agrees_with_memory_on_random_work() {
    agree_on_random_work::<SqliteFile>(seeds());
}

#[cfg(unix)]
#[test]
fn postgresql_agrees_with_memory_on_random_work() {
    agree_on_random_work::<postgres::PostgresDatabase>(seeds());
}

#[cfg(unix)]
#[test]
fn a_leader_on_postgresql_agrees_with_memory_on_random_work() {
    agree_on_random_work::<postgres::LedDatabase>(seeds());
}

#[cfg(unix)]
#[test]
fn postgresql_uses_an_index_for_every_statement_without_statistics() {
    agree_on_random_work::<plans::ExplainedDatabase>(1..2);
}

fn agree_on_random_work<P: Place>(seeds: std::ops::Range<u64>) {
    for seed in seeds {
        let _named = Named(seed);
        let mut rng = Rng::new(seed);
        let mut pair = EnginePair::<P>::new();
        for step in 0..STEPS {
            let work = random_work(&mut rng, &pair);
            pair.apply(work);
            pair.now_ms += rng.pick(&[0, 0, 1, 20, 150, 2000, 6000]);
            pair.compare();
            if step == STEPS / 2 {
                pair.reopen();
                pair.compare();
            }
        }
        pair.inspect();
    }
}

fn key(number: u64) -> Key {
    // The last key is so long that even short values are spilled.
    let long = if number == KEYS - 1 { 1000 } else { 0 };
    let mut bytes = vec![2, b'k', b'a' + number as u8];
    bytes.extend(std::iter::repeat_n(b'x', long));
    bytes.push(0);
    Key::from_encoded(bytes)
}

const KEYS: u64 = 10;

fn any_key(rng: &mut Rng, seen: &[Seen]) -> Key {
    match rng.below(8) {
        // A key that only a suffixed set can have created.
        0 if !seen.is_empty() => seen[rng.below(seen.len() as u64) as usize].key.clone(),
        _ => key(rng.below(KEYS)),
    }
}

fn any_value(rng: &mut Rng) -> EncodedValue {
    let bytes = |len: u64| EncodedValue {
        encoding: Encoding::Bytes,
        bytes: (0..len).map(|at| (at * 7 + len) as u8).collect(),
    };
    let cbor = |bytes| EncodedValue { encoding: Encoding::Cbor, bytes };
    match rng.below(7) {
        0 | 1 => EncodedValue::le64(rng.next()),
        2 => cbor(encode_number(rng.below(1000) as f64 / 8.0)),
        3 => cbor(encode_bigint(&num_bigint::BigInt::from(rng.next()))),
        4 => bytes(rng.below(40)),
        // Sizes around the bound of spilling.
        5 => bytes(940 + rng.below(40)),
        _ => bytes(rng.pick(&[2000, 5000, 65_536])),
    }
}

fn any_calculation(rng: &mut Rng) -> Calculation {
    let op = rng.pick(&[Arith::Sum, Arith::Min, Arith::Max]);
    let bigint = |n: u64| Numeric::BigInt(n.into());
    let bounds = Bounds {
        min: (rng.below(2) == 0).then(|| bigint(rng.below(1000))),
        max: (rng.below(2) == 0).then(|| bigint(1000 + rng.next())),
        clamp: rng.below(2) == 0,
    };
    let (operand, bounds) = match rng.below(3) {
        0 => (Operand::Number(rng.below(1000) as f64 - 500.0), None),
        1 => (Operand::U64(rng.next()), Some(bounds)),
        _ => (Operand::BigInt(num_bigint::BigInt::from(rng.next()) - (1_u64 << 63)), Some(bounds)),
    };
    let bounds = bounds.filter(|_| rng.below(2) == 0).map(Box::new);
    Calculation { op, operand, bounds, value_bytes_max: 100 }
}

fn any_end(rng: &mut Rng, pair: &EnginePair<impl Place>) -> Option<Time> {
    (rng.below(3) == 0).then(|| any_time(rng, pair.now_ms, &[-5, 0, 1, 30, 1000, 100_000]))
}

/// Half of the times are relative to the commit.
fn any_time(rng: &mut Rng, now_ms: i64, waits_ms: &[i64]) -> Time {
    let ms = rng.pick(waits_ms);
    if ms >= 0 && rng.below(2) == 0 { Time::After(ms) } else { Time::At(now_ms + ms) }
}

fn any_mutation(rng: &mut Rng, pair: &EnginePair<impl Place>, seen: &[Seen]) -> Mutation {
    let key = any_key(rng, seen);
    match rng.below(17) {
        0..=4 => Mutation::Set {
            key,
            suffixed: rng.below(6) == 0,
            value: any_value(rng),
            expiry: any_end(rng, pair),
        },
        5 | 6 => Mutation::Delete { key },
        7 | 8 => Mutation::SetExpiry {
            key,
            expiry: (rng.below(3) > 0).then(|| any_time(rng, pair.now_ms, &[-5, 0, 1, 30, 1000])),
            required: rng.below(2) == 0,
            shortens: false,
        },
        9 | 10 => {
            // Some items share an object, so that the append has to decode.
            let items = rng.pick(&[&[0x81, 1][..], &[0x82, 0xd8, 28, 0xa0, 0xd8, 29, 0], &[0x80]]);
            let front = rng.below(2) == 0;
            let (items, expiry) = (items.to_vec(), any_end(rng, pair));
            Mutation::Append { key, items, front, value_bytes_max: 2000, expiry }
        }
        11 => {
            let (calculation, expiry) = (any_calculation(rng), any_end(rng, pair));
            Mutation::Calculate { key, calculation, expiry }
        }
        12 | 13 => {
            let algorithm = rng.pick(&LimitAlgorithm::ALL);
            let (limit, cost) = (rng.pick(&[0, 2, 5]), rng.pick(&[1, 1, 3]));
            let limiting =
                Limiting::new(algorithm, limit, rng.pick(&[20, 1000]), cost, rng.below(5) == 0);
            Mutation::Limit { key, limiting: limiting.expect("a rule within the bounds") }
        }
        _ => {
            let op = rng.pick(&[Arith::Sum, Arith::Sum, Arith::Min, Arith::Max]);
            Mutation::Arith { op, key, operand: any_value(rng) }
        }
    }
}

fn any_check(rng: &mut Rng, seen: &[Seen]) -> Check {
    let key = any_key(rng, seen);
    let current = seen.iter().find(|row| row.key == key).map(|row| row.stamp);
    let expected = match rng.below(6) {
        0 => None,
        1 => Some(Versionstamp::new(rng.below(50))),
        _ => current,
    };
    Check { key, expected }
}

fn any_message(rng: &mut Rng, messages: &mut u32, now_ms: i64) -> Message {
    *messages += 1;
    let named = rng.below(3) > 0;
    Message {
        queue: if named { rng.pick(&["a", "b"]).to_owned() } else { String::new() },
        priority: if named { rng.pick(&[0, 0, 3, 9]) } else { 0 },
        deduplication_key: (named && rng.below(4) == 0).then(|| rng.pick(&["x", "y"]).to_owned()),
        deduplication: rng.pick(&Deduplication::ALL),
        dead_retention_ms: (named && rng.below(2) == 0).then(|| rng.pick(&[0, 500, 5000])),
        due: any_time(rng, now_ms, &[0, 0, 10, 3000]),
        backoff_ms: (0..rng.below(3)).map(|_| rng.pick(&[0, 100, 4000])).collect(),
        keys_if_undelivered: (0..rng.below(3)).map(|_| key(rng.below(KEYS))).collect(),
        schedule: None,
        value: messages.to_be_bytes().to_vec(),
    }
}

fn any_write(
    rng: &mut Rng,
    pair: &EnginePair<impl Place>,
    seen: &[Seen],
    messages: &mut u32,
) -> AtomicWrite {
    let few = |rng: &mut Rng, max| rng.below(max);
    let parts = WriteParts {
        checks: (0..few(rng, 3)).map(|_| any_check(rng, seen)).collect(),
        mutations: (0..few(rng, 6)).map(|_| any_mutation(rng, pair, seen)).collect(),
        returns_values: rng.below(3) == 0,
        messages: (0..few(rng, 2)).map(|_| any_message(rng, messages, pair.now_ms)).collect(),
        ..WriteParts::default()
    };
    AtomicWrite::new(parts, &Limits::default()).expect("within the limits")
}

/// Work for both, in which messages go by value: their numbers may differ.
fn random_work(rng: &mut Rng, pair: &EnginePair<impl Place>) -> differential::Plan {
    let seen = pair.content();
    let mut messages = pair.messages;
    let writes = (0..rng.below(5)).map(|_| any_write(rng, pair, &seen, &mut messages)).collect();
    let mut settlements = Vec::new();
    let mut renewals = Vec::new();
    for held in &pair.held {
        match rng.below(6) {
            0 => settlements.push((held.clone(), Outcome::Done)),
            1 => settlements.push((held.clone(), Outcome::Failed)),
            2 => {
                settlements.push((held.clone(), rng.pick(&[Outcome::Failed, Outcome::Dead])));
            }
            3 => settlements.push((held.clone(), Outcome::Returned)),
            4 => renewals.push(held.clone()),
            _ => {}
        }
    }
    differential::Plan {
        writes,
        messages,
        settlements,
        renewals,
        claims: (differential::QUEUES.iter())
            .filter_map(|queue| {
                Some((*queue, rng.pick(&[0, 1, 3, 100]))).filter(|(_, max)| *max > 0)
            })
            .collect(),
        sweep_max: rng.pick(&[0, 0, 1, 100]),
        purge_max: rng.pick(&[0, 0, 1, 100]),
        durable: rng.below(8) == 0,
    }
}

fn alone(engine: &impl Engine, writes: Vec<AtomicWrite>, now_ms: i64) -> Vec<Decision> {
    let mut writer = engine.writer().expect("a writer");
    let one = |write| {
        let work = Work { writes: vec![write], ..Work::default() };
        writer.apply(work, now_ms, deadline()).expect("applied").decisions.remove(0)
    };
    writes.into_iter().map(one).collect()
}

fn together(engine: &impl Engine, writes: Vec<AtomicWrite>, now_ms: i64) -> Vec<Decision> {
    let work = Work { writes, ..Work::default() };
    engine.writer().expect("a writer").apply(work, now_ms, deadline()).expect("applied").decisions
}

fn deadline() -> Instant {
    Instant::now() + Duration::from_secs(20)
}

/// Outcomes must not depend on the grouping of writes into transactions, even for entries that have
/// expired when they are written.
#[test]
fn grouping_does_not_change_outcomes() {
    for seed in seeds() {
        let _named = Named(seed);
        let mut rng = Rng::new(seed);
        let (one_by_one, grouped) = (MemoryEngine::new(), MemoryEngine::new());
        let pair = EnginePair::<SqliteFile>::new();
        let mut messages = 0;
        for _ in 0..20 {
            let seen = content(&mut one_by_one.reader().expect("a reader"), pair.now_ms);
            let writes: Vec<_> =
                (0..12).map(|_| any_write(&mut rng, &pair, &seen, &mut messages)).collect();
            let decisions = alone(&one_by_one, writes.clone(), pair.now_ms);
            assert_eq!(together(&grouped, writes, pair.now_ms), decisions);
            let all = |engine: &MemoryEngine| {
                content(&mut engine.reader().expect("a reader"), pair.now_ms)
            };
            assert_eq!(all(&grouped), all(&one_by_one));
        }
    }
}

/// An entry with unreadable bytes affects the write that needs them, but no other write of the
/// transaction.
#[test]
fn a_damaged_entry_rejects_only_the_write_that_needs_it() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("kv.sqlite3");
    let engine = SqliteEngine::open(&path, false, Duration::from_secs(5)).expect("opened");
    let set = |number, len| Mutation::Set {
        key: key(number),
        suffixed: false,
        value: EncodedValue { encoding: Encoding::Bytes, bytes: vec![1; len] },
        expiry: None,
    };
    let sum = |number| Mutation::Arith {
        op: Arith::Sum,
        key: key(number),
        operand: EncodedValue::le64(1),
    };
    let write = |mutation| {
        let parts = WriteParts { mutations: vec![mutation], ..WriteParts::default() };
        AtomicWrite::new(parts, &Limits::default()).expect("within the limits")
    };
    together(&engine, vec![write(set(0, 8)), write(set(1, 5000))], 1);
    let raw = rusqlite::Connection::open(&path).expect("opened raw");
    let changed = raw.execute("UPDATE kv SET v_encoding = 5 WHERE k = ?1", [key(0).as_bytes()]);
    assert_eq!(changed, Ok(1));
    assert_eq!(raw.execute("DELETE FROM openkv_spill", []), Ok(1));
    drop(raw);

    let writes = [sum(0), set(2, 1), sum(1), sum(3)].map(write).to_vec();
    let decisions = together(&engine, writes, 1);
    assert!(matches!(decisions[0], Decision::Rejected(_)), "{decisions:?}");
    assert!(matches!(decisions[1], Decision::Committed(_)), "{decisions:?}");
    assert!(matches!(decisions[2], Decision::Rejected(_)), "{decisions:?}");
    assert!(matches!(decisions[3], Decision::Committed(_)), "{decisions:?}");
    // Overwriting repairs it, also a spilled value.
    let healed = together(&engine, vec![write(set(0, 1)), write(set(1, 6000))], 1);
    assert!(healed.iter().all(|decision| matches!(decision, Decision::Committed(_))));
    assert_eq!(content(&mut engine.reader().expect("a reader"), 1).len(), 4);
}
