//! Measures how long the transaction layer takes to decide a batch, without PostgreSQL.
//!
//! `cargo bench --no-default-features --bench evaluator`

#![allow(
    clippy::expect_used,
    clippy::print_stdout,
    reason = "a benchmark prints, and ends at a fault"
)]

use std::time::{Duration, Instant};

use openkv::engine::{Ticket, Work};
use openkv::layer::{Action, Bounds, Event, Fetched, Layer, Lead, Moment, Remembered};
use openkv::model::{Arith, AtomicWrite, EncodedValue, Key, Limits, Mutation, WriteParts};

/// Batches of each row; the median is printed.
const BATCHES: u64 = 301;

fn key(number: usize) -> Key {
    let text = format!("{number:08}");
    Key::from_encoded([&[2], text.as_bytes(), &[0]].concat())
}

/// An addition to a number: it reads its entry and stores it anew.
fn add_one(number: usize) -> AtomicWrite {
    let operand = EncodedValue::le64(1);
    let mutation = Mutation::Arith { op: Arith::Sum, key: key(number), operand };
    let parts = WriteParts { mutations: vec![mutation], ..WriteParts::default() };
    AtomicWrite::new(parts, &Limits::default()).expect("within the limits")
}

/// The median time from a batch's arrival to the request to send it; the entries are known.
fn decided(writes: usize, keys: usize) -> Duration {
    let mut layer = Layer::new(Lead::default(), Remembered::default(), Bounds::USUAL);
    let mut times = Vec::new();
    for at in 1..=BATCHES {
        let now = Moment { wall_ms: 1, us: at * 1000 };
        let batch = (0..writes).map(|write| add_one(write % keys)).collect();
        let work = Work { writes: batch, durable: true, ..Work::default() };
        let begun = Instant::now();
        let mut actions = layer.step(Event::Submitted(Ticket(at), work), now);
        times.push(begun.elapsed());
        if let Some(Action::Fetch(fetch, wanted)) = actions.pop() {
            layer.step(Event::Fetched(fetch, vec![Fetched::Absent; wanted.len()]), now);
        }
        let answers = layer.step(Event::Durable(Ticket(at)), now);
        assert!(matches!(answers.first(), Some(Action::Answer(_, Ok(_)))), "{answers:?}");
    }
    times.sort_unstable();
    times.get(times.len() / 2).copied().expect("some batches")
}

fn main() {
    println!("writes  keys         decided");
    for writes in [1, 64, 2000] {
        for (name, keys) in [("independent", writes), ("one", 1)] {
            println!("{writes:>6}  {name:<11}  {:?}", decided(writes, keys));
        }
    }
}
