//! Tests: a write that arrives again with its id, while it is under way, after a lost connection, in work
//! that runs alone.

use super::*;
use crate::commit::{Report, Ticket, Work};
use crate::model::{
    AtomicWrite, Attempt, Check, Decision, Key, Limits, Mutation, RangeCheck, Result, Versionstamp,
    WriteId, WriteParts, WriteRecord,
};

const NOW: Moment = Moment { wall_ms: 1000, us: 0 };

fn lead(epoch: u64, version: u64) -> Lead {
    Lead { epoch, version, clock_ms: NOW.wall_ms, ..Lead::default() }
}

fn id(number: u64) -> WriteId {
    WriteId::new(1000, [0, number])
}

fn parts(number: u64) -> WriteParts {
    let key = Key::from_encoded(vec![2, b'k', 0]);
    let mutations = vec![Mutation::Delete { key }];
    WriteParts { mutations, attempt: Some(Attempt::first(id(number))), ..WriteParts::default() }
}

fn work(all: Vec<WriteParts>) -> Work {
    let write = |parts| AtomicWrite::new(parts, &Limits::default()).unwrap();
    Work { writes: all.into_iter().map(write).collect(), durable: true, ..Work::default() }
}

fn committed(version: u64) -> Decision {
    Decision::Committed(Versionstamp::new(version))
}

/// A layer, with what it has sent and answered.
struct Driven {
    layer: Layer,
    sent: Vec<Commit>,
    alone: Vec<Work>,
    answers: Vec<(Ticket, Result<Report>)>,
    fetches: Vec<(FetchId, Vec<(Key, bool)>)>,
}

impl Driven {
    fn new(remembered: Remembered) -> Self {
        let layer = Layer::new(lead(1, 0), remembered, Bounds::USUAL);
        let (sent, alone, answers) = (Vec::new(), Vec::new(), Vec::new());
        Self { layer, sent, alone, answers, fetches: Vec::new() }
    }

    fn step(&mut self, event: Event) {
        for action in self.layer.step(event, NOW) {
            match action {
                Action::Send(commit) => self.sent.push(*commit),
                Action::RunAlone(_, work) => self.alone.push(work),
                Action::Answer(ticket, result) => self.answers.push((ticket, result)),
                Action::Fetch(fetch, keys) => self.fetches.push((fetch, keys)),
                Action::FetchPoints(..) => panic!("there is no value index"),
                Action::Resolve { .. } => {}
            }
        }
    }

    fn submit(&mut self, ticket: u64, number: u64) {
        self.step(Event::Submitted(Ticket(ticket), work(vec![parts(number)])));
    }

    /// The decisions of the batch that was answered last.
    fn decisions(&self) -> (Ticket, Vec<Decision>) {
        let (ticket, result) = self.answers.last().unwrap();
        (*ticket, result.as_ref().unwrap().decisions.clone())
    }
}

#[test]
fn a_repetition_waits_for_the_write_that_is_under_way() {
    let mut driven = Driven::new(Remembered::default());
    driven.submit(1, 7);
    driven.submit(2, 7);
    let records = vec![WriteRecord { id: id(7), decision: committed(1) }];
    assert_eq!(driven.sent[0].records, records);
    assert!(driven.answers.is_empty());
    driven.step(Event::Durable(Ticket(1)));
    assert_eq!(driven.decisions(), (Ticket(1), vec![committed(1)]));
    driven.step(Event::Durable(Ticket(2)));
    assert_eq!(driven.decisions(), (Ticket(2), vec![committed(1)]));
    // The second batch has no commit: it only confirms the first.
    let steps: Vec<_> = driven.sent.iter().map(|commit| (commit.prev, commit.next)).collect();
    assert_eq!(steps, [(0, 1), (1, 1)]);
    assert!(driven.sent[1].records.is_empty());
}

#[test]
fn after_a_lost_connection_the_database_decides_what_has_happened() {
    for happened in [false, true] {
        let mut driven = Driven::new(Remembered::default());
        driven.submit(1, 7);
        driven.step(Event::Interrupted);
        driven.submit(2, 7);
        let version = u64::from(happened);
        let record = (1000, WriteRecord { id: id(7), decision: committed(1) });
        let records = if happened { vec![record] } else { vec![] };
        let remembered = Remembered { records, ..Remembered::default() };
        driven.step(Event::Resolved(Resolution::Leading(lead(2, version), remembered)));
        if !happened {
            driven.step(Event::Durable(Ticket(1)));
        }
        driven.step(Event::Durable(Ticket(2)));
        assert_eq!(driven.decisions(), (Ticket(2), vec![committed(1)]), "{happened}");
        assert_eq!(driven.answers.len(), 2);
        let commits = driven.sent.iter().filter(|commit| commit.prev != commit.next);
        assert_eq!(commits.count(), if happened { 1 } else { 2 }, "sent again if it is not there");
    }
}

#[test]
fn the_refusal_of_a_repetition_is_stored_and_that_of_a_first_attempt_is_not() {
    let key = Key::from_encoded(vec![2, b'k', 0]);
    let missing = Check { key: key.clone(), expected: Some(Versionstamp::new(9)) };
    let parts = WriteParts { checks: vec![missing], ..parts(7) };
    let mut driven = Driven::new(Remembered::default());
    let refused = vec![Decision::CheckFailed(vec![0])];
    let repeated = Attempt { id: id(7), repeated: true };
    let attempts = [Attempt::first(id(7)), repeated, Attempt::first(id(7))];
    for (ticket, attempt) in (1..).zip(attempts) {
        let write = WriteParts { attempt: Some(attempt), ..parts.clone() };
        driven.step(Event::Submitted(Ticket(ticket), work(vec![write])));
        if let Some((fetch, keys)) = driven.fetches.pop() {
            let absent = keys.iter().map(|_| Fetched::Absent).collect();
            driven.step(Event::Fetched(fetch, absent));
        }
        driven.step(Event::Durable(Ticket(ticket)));
        assert_eq!(driven.decisions(), (Ticket(ticket), refused.clone()));
    }
    let stored: Vec<_> = driven.sent.iter().map(|commit| commit.records.len()).collect();
    assert_eq!(stored, [0, 1, 0]);
    let steps: Vec<_> = driven.sent.iter().map(|commit| (commit.prev, commit.next)).collect();
    assert_eq!(steps, [(0, 0), (0, 1), (1, 1)], "what is stored has a commit");
}

#[test]
fn work_that_runs_alone_omits_what_has_happened_and_is_remembered() {
    let records = vec![(900, WriteRecord { id: id(7), decision: committed(0) })];
    let mut driven = Driven::new(Remembered { from_ms: i64::MIN, records });
    let (start, end) = (Key::from_encoded(vec![2]), Key::from_encoded(vec![3]));
    let ranges = vec![RangeCheck { start, end, seen: Vec::new(), found_by: None }];
    let ranged = WriteParts { ranges, ..parts(8) };
    driven.step(Event::Submitted(Ticket(1), work(vec![parts(7), ranged])));
    let alone: Vec<_> = driven.alone[0].writes.iter().map(AtomicWrite::id).collect();
    assert_eq!(alone, [Some(id(8))]);
    let report = Report { decisions: vec![committed(1)], versions: (0, 1), ..Report::default() };
    driven.step(Event::RanAlone(Ticket(1), Ok((report, lead(1, 1)))));
    assert_eq!(driven.decisions(), (Ticket(1), vec![committed(0), committed(1)]));
    driven.submit(2, 8);
    driven.step(Event::Durable(Ticket(2)));
    assert_eq!(driven.decisions(), (Ticket(2), vec![committed(1)]));
}
