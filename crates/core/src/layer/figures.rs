//! Tests of the figures of a leader, over scripts of events.

use super::*;
use crate::commit::{Ticket, Work};
use crate::model::{
    AtomicWrite, EncodedValue, Error, Key, LAYER_WAITING_WRITES_MAX, Limits, Mutation, WriteParts,
};

/// A leader of an empty database, and the time.
struct Led {
    layer: Layer,
    us: u64,
    tickets: u64,
}

impl Led {
    fn new() -> Self {
        let lead = Lead { epoch: 7, ..Lead::default() };
        Self { layer: Layer::new(lead, Remembered::default(), Bounds::USUAL), us: 0, tickets: 0 }
    }

    /// Takes an event a millisecond later, answers reads with absent entries, and returns the other
    /// actions.
    fn step(&mut self, event: Event) -> Vec<Action> {
        self.us += 1000;
        let now = Moment { wall_ms: 1, us: self.us };
        let mut others = Vec::new();
        for action in self.layer.step(event, now) {
            match action {
                Action::Fetch(fetch, wanted) => {
                    let absent = vec![Fetched::Absent; wanted.len()];
                    others.extend(self.step(Event::Fetched(fetch, absent)));
                }
                action => others.push(action),
            }
        }
        others
    }

    /// Submits a batch of so many calculations.
    fn submit(&mut self, writes: usize) -> (Ticket, Vec<Action>) {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        let writes = (0..writes).map(|_| add_one()).collect();
        let work = Work { writes, durable: true, ..Work::default() };
        (ticket, self.step(Event::Submitted(ticket, work)))
    }

    /// Makes the database far: a batch takes 10 ms, and the next one follows after one.
    fn grow_deep(&mut self) {
        let (first, _) = self.submit(1);
        let (second, _) = self.submit(1);
        self.us += 10_000;
        self.step(Event::Durable(first));
        self.step(Event::Durable(second));
    }
}

fn add_one() -> AtomicWrite {
    let key = Key::from_encoded(vec![2, b'n', 0]);
    let mutation =
        Mutation::Arith { op: crate::model::Arith::Sum, key, operand: EncodedValue::le64(1) };
    let parts = WriteParts { mutations: vec![mutation], ..WriteParts::default() };
    AtomicWrite::new(parts, &Limits::default()).unwrap()
}

fn sent(actions: &[Action]) -> usize {
    actions.iter().filter(|action| matches!(action, Action::Send(_))).count()
}

#[test]
fn batches_are_counted_when_they_are_sent_and_when_they_are_durable() {
    let mut led = Led::new();
    let (ticket, actions) = led.submit(3);
    assert_eq!(sent(&actions), 1);
    let flying = led.layer.figures();
    assert_eq!((flying.in_flight, flying.waiting_writes), (1, 3));
    assert_eq!(flying.waiting_bytes, 3 * add_one().size_bytes() as u64);
    assert_eq!((flying.counts.batches_begun, flying.counts.batches_durable), (1, 0));
    led.step(Event::Durable(ticket));
    let done = led.layer.figures();
    assert_eq!((done.in_flight, done.waiting_writes, done.waiting_bytes), (0, 0, 0));
    assert_eq!((done.counts.batches_begun, done.counts.batches_durable), (1, 1));
    assert_eq!((done.counts.writes, done.epoch, done.counts.epochs), (3, 7, 1));
}

#[test]
fn what_is_decided_again_counts_as_discarded() {
    let mut led = Led::new();
    led.grow_deep();
    let before = led.layer.figures();
    assert!(before.depth > 2, "{before:?}");
    let tickets: Vec<Ticket> = (0..3).map(|_| led.submit(1).0).collect();
    assert!(led.layer.figures().in_flight > 1);
    led.step(Event::Interrupted);
    // The first batch has happened, with the version 3; the others are decided again.
    let lead = Lead { epoch: 8, version: 3, ..Lead::default() };
    let actions = led.step(Event::Resolved(Resolution::Leading(lead, Remembered::default())));
    assert!(actions.iter().any(|a| matches!(a, Action::Answer(t, Ok(_)) if *t == tickets[0])));
    let after = led.layer.figures();
    assert_eq!(after.counts.decisions_discarded, 2);
    assert_eq!(after.counts.batches_durable, before.counts.batches_durable + 1);
    assert_eq!((after.epoch, after.counts.epochs), (8, 2));
    for ticket in &tickets[1..] {
        led.step(Event::Durable(*ticket));
    }
    let end = led.layer.figures();
    assert_eq!(end.counts.batches_durable, before.counts.batches_durable + 3);
    assert_eq!(end.in_flight, 0);
}

#[test]
fn a_lead_that_is_lost_counts_on_in_the_next() {
    let mut led = Led::new();
    led.submit(1);
    led.step(Event::Interrupted);
    let error = Error::internal("another leads");
    led.step(Event::Resolved(Resolution::Overtaken { start: 0, error }));
    let lost = led.layer.figures();
    assert!(!lost.leading);
    assert_eq!((lost.counts.decisions_discarded, lost.counts.batches_durable), (1, 0));
    let lead = Lead { epoch: 9, ..Lead::default() };
    let next =
        Layer::new(lead, Remembered::default(), Bounds::USUAL).counting_from(lost.counts).figures();
    assert!(next.leading);
    assert_eq!((next.epoch, next.counts.epochs), (9, 2));
    assert_eq!((next.counts.batches_begun, next.counts.decisions_discarded), (1, 1));
}

#[test]
fn writes_over_the_bound_are_counted() {
    let mut led = Led::new();
    led.submit(LAYER_WAITING_WRITES_MAX);
    let (ticket, actions) = led.submit(2);
    assert!(matches!(&actions[..], [Action::Answer(refused, Err(_))] if *refused == ticket));
    let figures = led.layer.figures();
    assert_eq!(figures.counts.writes_refused, 2);
    assert_eq!(figures.waiting_writes, LAYER_WAITING_WRITES_MAX as u64);
}
