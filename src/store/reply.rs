//! Who is told what became of writes.

use crate::model::{Decision, Error, Result};

/// Who is told how many decisions; `Err` in a place that never went to the engine.
pub(super) struct Reply {
    pub(super) places: Vec<Result<()>>,
    pub(super) tell: Box<dyn FnOnce(Vec<Decision>) + Send>,
}

/// Gives every reply its decisions: those of the engine, and the errors that were there before.
pub(super) fn tell(replies: Vec<Reply>, decisions: Vec<Decision>) {
    let mut decisions = decisions.into_iter();
    for Reply { places, tell } in replies {
        let missing = || Decision::Rejected(Error::internal("a write was not decided"));
        let told = places.into_iter().map(|place| match place {
            Ok(()) => decisions.next().unwrap_or_else(missing),
            Err(error) => Decision::Rejected(error),
        });
        tell(told.collect());
    }
}

/// Tells everybody that the transaction as a whole has failed.
pub(super) fn fail(replies: Vec<Reply>, error: &Error) {
    for Reply { places, tell } in replies {
        let told = places.into_iter();
        tell(told.map(|place| Decision::Rejected(place.err().unwrap_or(error.clone()))).collect());
    }
}
