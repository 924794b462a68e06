//! Tests: unique indexes over batches that are not durable yet.

use std::sync::Arc;

use super::*;
use crate::codec::cbor;
use crate::commit::{IndexPoint, Ticket, Work};
use crate::index::{EntryChange, ValueIndex};
use crate::model::{
    AtomicWrite, Decision, EncodedValue, Encoding, Key, Limits, Mutation, Node, OrderPath, Value,
    ValueIndexInfo, ValueIndexSpec, ValueIndexState, WriteParts,
};

const NOW: Moment = Moment { wall_ms: 1000, us: 0 };

fn lead(epoch: u64, value_indexes: Arc<[ValueIndex]>) -> Lead {
    Lead { epoch, clock_ms: NOW.wall_ms, value_indexes, ..Lead::default() }
}

fn key(name: &str) -> Key {
    Key::from_encoded([&[2], name.as_bytes(), &[0]].concat())
}

fn value(text: &str) -> EncodedValue {
    let mut value = Value::new(Node::Null);
    let text = value.push(Node::String(text.into()));
    value.set(value.root_id(), Node::Object(vec![("t".into(), text)]));
    EncodedValue { encoding: Encoding::Cbor, bytes: cbor::encode(&value).unwrap() }
}

fn index() -> ValueIndex {
    let on = vec![OrderPath { path: "t".into(), descending: false }];
    let prefix = Key::from_encoded(Vec::new());
    let spec =
        ValueIndexSpec { name: "t".into(), prefix, on, unique: true, multi: false, sparse: false };
    let state = ValueIndexState::Ready;
    ValueIndex::new(ValueIndexInfo { id: 7, spec, state, scanned: 0 }).unwrap()
}

fn work(mutation: Mutation) -> Work {
    let parts = WriteParts { mutations: vec![mutation], ..WriteParts::default() };
    let writes = vec![AtomicWrite::new(parts, &Limits::default()).unwrap()];
    Work { writes, durable: true, ..Work::default() }
}

fn set(name: &str, text: &str) -> Work {
    work(Mutation::Set { key: key(name), suffixed: false, value: value(text), expiry: None })
}

/// A layer whose reads find an empty database.
struct Driven {
    layer: Layer,
    tickets: u64,
    sent: Vec<Vec<EntryChange>>,
    requested: Vec<IndexPoint>,
    resolves: usize,
    decided: Vec<Decision>,
}

impl Driven {
    fn new() -> Self {
        let lead = lead(1, Arc::from([index()]));
        let layer = Layer::new(lead, Remembered::default(), Bounds::USUAL);
        let (sent, requested, decided) = (Vec::new(), Vec::new(), Vec::new());
        Self { layer, tickets: 0, sent, requested, resolves: 0, decided }
    }

    fn step(&mut self, event: Event) {
        for action in self.layer.step(event, NOW) {
            match action {
                Action::Send(commit) => {
                    self.sent.push(commit.effects.index_entries);
                }
                Action::Answer(_, result) => self.decided.extend(result.unwrap().decisions),
                Action::Fetch(fetch, keys) => {
                    self.step(Event::Fetched(fetch, vec![Fetched::Absent; keys.len()]));
                }
                Action::FetchPoints(fetch, points) => {
                    let entries = vec![Vec::new(); points.len()];
                    self.requested.extend(points);
                    self.step(Event::FetchedPoints(fetch, entries));
                }
                Action::Resolve { .. } => self.resolves += 1,
                Action::RunAlone(..) => panic!("not in these tests"),
            }
        }
    }

    fn submit(&mut self, work: Work) {
        self.tickets += 1;
        self.step(Event::Submitted(Ticket(self.tickets), work));
    }

    fn durable(&mut self, ticket: u64) {
        self.step(Event::Durable(Ticket(ticket)));
    }
}

fn added(name: &str, text: &str) -> EntryChange {
    let EncodedValue { encoding, bytes } = value(text);
    let entry = index().entries(key(name).as_bytes(), encoding, &bytes).remove(0);
    EntryChange { index: 7, entry, added: true }
}

/// The point that the layer reads before it stores an entry with this text.
fn point(text: &str) -> IndexPoint {
    let EncodedValue { encoding, bytes } = value(text);
    (7, index().unique_values(encoding, &bytes).unwrap().remove(0))
}

#[test]
fn a_value_of_a_batch_in_flight_is_taken_and_one_that_it_leaves_is_free() {
    let mut driven = Driven::new();
    driven.submit(set("a", "1"));
    driven.submit(set("b", "1"));
    driven.submit(set("a", "2"));
    driven.submit(set("b", "1"));
    driven.submit(work(Mutation::Delete { key: key("b") }));
    driven.submit(set("c", "1"));
    for ticket in 1..=6 {
        driven.durable(ticket);
    }
    let refused = |decision: &Decision| matches!(decision, Decision::NotUnique(_));
    let refused: Vec<_> = driven.decided.iter().map(refused).collect();
    assert_eq!(refused, [false, true, false, false, false, false]);
    let Decision::NotUnique(violations) = &driven.decided[1] else { panic!("refused") };
    assert_eq!((&violations[0].key, &violations[0].other), (&key("b"), &key("a")));
    let removed = |change| EntryChange { added: false, ..change };
    let changes: Vec<_> = driven.sent.iter().filter(|sent| !sent.is_empty()).cloned().collect();
    let expected = vec![
        vec![added("a", "1")],
        vec![removed(added("a", "1")), added("a", "2")],
        vec![added("b", "1")],
        vec![removed(added("b", "1"))],
        vec![added("c", "1")],
    ];
    assert_eq!(changes, expected);
    assert_eq!(driven.requested, ["1", "1", "2", "1", "1"].map(point));
}

#[test]
fn a_lead_brings_the_value_indexes() {
    let mut driven = Driven::new();
    driven.submit(set("a", "1"));
    assert_eq!(driven.sent, [vec![added("a", "1")]]);
    driven.step(Event::Interrupted);
    assert_eq!(driven.resolves, 1);
    let resolution = Resolution::Leading(lead(2, Arc::default()), Remembered::default());
    driven.requested.clear();
    driven.step(Event::Resolved(resolution));
    assert_eq!(
        driven.sent[1..],
        [Vec::<EntryChange>::new()],
        "it is decided again without an index"
    );
    assert!(driven.requested.is_empty());
}
