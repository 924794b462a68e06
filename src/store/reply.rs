//! Commits of callers: how they are submitted, and their replies.

use std::time::{Duration, Instant};

use super::Store;
use super::write_queue::Submission;
use crate::metrics::{Metrics, Notes, Operation};
use crate::model::{AtomicWrite, Decision, Error, Result};

impl Store {
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
}

/// A submission's reply and its decisions; `Err` in the place of a write that never reached the
/// engine.
pub(super) struct Reply {
    pub(super) places: Vec<Result<Operation>>,
    pub(super) tell: Box<dyn FnOnce(Vec<Decision>) + Send>,
    /// Time of submission.
    pub(super) since: Instant,
}

/// Answers every submission with the engine's decisions and the errors from before.
pub(super) fn tell(replies: Vec<Reply>, decisions: Vec<Decision>, metrics: &Metrics) {
    let mut decisions = decisions.into_iter();
    let missing = || Decision::Rejected(Error::internal("a write was not decided"));
    answer(replies, metrics, || decisions.next().unwrap_or_else(missing));
}

/// Answers every submission with the failure of the whole transaction.
pub(super) fn fail(replies: Vec<Reply>, error: &Error, metrics: &Metrics) {
    answer(replies, metrics, || Decision::Rejected(error.clone()));
}

fn answer(replies: Vec<Reply>, metrics: &Metrics, mut next: impl FnMut() -> Decision) {
    for Reply { places, tell, since } in replies {
        let mut notes = Notes::new(since);
        let decisions = places.into_iter().map(|place| {
            let (operation, decision) = match place {
                Ok(operation) => (operation, next()),
                Err(error) => (Operation::Atomic, Decision::Rejected(error)),
            };
            notes.write(operation, &decision);
            decision
        });
        let decisions = decisions.collect();
        metrics.noted(&notes);
        tell(decisions);
    }
}
