//! Who is told what became of writes.

use std::time::Instant;

use crate::metrics::{Metrics, Notes, Operation};
use crate::model::{Decision, Error, Result};

/// Who is told how many decisions; `Err` in a place that never went to the engine.
pub(super) struct Reply {
    pub(super) places: Vec<Result<Operation>>,
    pub(super) tell: Box<dyn FnOnce(Vec<Decision>) + Send>,
    /// When they were handed over.
    pub(super) since: Instant,
}

/// Gives every reply its decisions: those of the engine, and the errors that were there before.
pub(super) fn tell(replies: Vec<Reply>, decisions: Vec<Decision>, metrics: &Metrics) {
    let mut decisions = decisions.into_iter();
    let missing = || Decision::Rejected(Error::internal("a write was not decided"));
    answer(replies, metrics, || decisions.next().unwrap_or_else(missing));
}

/// Tells everybody that the transaction as a whole has failed.
pub(super) fn fail(replies: Vec<Reply>, error: &Error, metrics: &Metrics) {
    answer(replies, metrics, || Decision::Rejected(error.clone()));
}

fn answer(replies: Vec<Reply>, metrics: &Metrics, mut next: impl FnMut() -> Decision) {
    for Reply { places, tell, since } in replies {
        let mut notes = Notes::new(since);
        let told = places.into_iter().map(|place| {
            let (operation, decision) = match place {
                Ok(operation) => (operation, next()),
                Err(error) => (Operation::Atomic, Decision::Rejected(error)),
            };
            notes.write(operation, &decision);
            decision
        });
        let told = told.collect();
        metrics.noted(&notes);
        tell(told);
    }
}
