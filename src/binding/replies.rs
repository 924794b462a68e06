//! Answers that cannot be forgotten: dropped unanswered, they answer that this is a bug.

use std::sync::Arc;
use std::time::Instant;

use super::events::{Event, Events};
use crate::codec::frame::push_outcomes;
use crate::metrics::{Metrics, Operation};
use crate::model::{Decision, Error};

/// The answer to `count` writes.
pub(super) struct Settle {
    events: Events,
    id: f64,
    count: usize,
    answered: bool,
}

impl Settle {
    pub(super) fn new(events: Events, id: f64, count: usize) -> Self {
        Self { events, id, count, answered: false }
    }

    pub(super) fn decided(mut self, decisions: &[Decision]) {
        self.answer(decisions);
    }

    /// The same error for all.
    pub(super) fn failed(mut self, error: &Error) {
        self.fail(error);
    }

    fn fail(&mut self, error: &Error) {
        self.answer(&vec![Decision::Rejected(error.clone()); self.count]);
    }

    fn answer(&mut self, decisions: &[Decision]) {
        self.answered = true;
        let mut outcomes = Vec::new();
        push_outcomes(&mut outcomes, decisions);
        self.events.send(Event::Settled, self.id, Some(outcomes));
    }
}

impl Drop for Settle {
    fn drop(&mut self) {
        if !self.answered {
            self.fail(&Error::internal("a write was not answered; please report this"));
        }
    }
}

/// The answer to anything that ends with one of two events.
pub(super) struct Reply {
    events: Events,
    id: f64,
    good: Event,
    bad: Event,
    answered: bool,
    /// What the answer counts as, and from when on.
    counts: Option<(Arc<Metrics>, Operation, Instant)>,
}

impl Reply {
    pub(super) fn new(events: Events, id: f64, good: Event, bad: Event) -> Self {
        Self { events, id, good, bad, answered: false, counts: None }
    }

    /// From now on its answer counts as one of these.
    pub(super) fn counted(&mut self, operation: Operation, metrics: &Arc<Metrics>) {
        self.counts = Some((metrics.clone(), operation, Instant::now()));
    }

    fn count(&self, good: bool) {
        if let Some((metrics, operation, since)) = &self.counts {
            metrics.answered(*operation, 1, good, *since);
        }
    }

    pub(super) fn good(mut self, data: Option<Vec<u8>>) {
        self.answered = true;
        self.count(true);
        self.events.send(self.good, self.id, data);
    }

    /// The bad end without an error: it is simply over.
    pub(super) fn over(mut self) {
        self.answered = true;
        self.events.send(self.bad, self.id, None);
    }

    pub(super) fn bad(mut self, error: &Error) {
        self.answered = true;
        self.count(false);
        self.events.send_error(self.bad, self.id, error);
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if !self.answered {
            let error = Error::internal("a request was not answered; please report this");
            self.events.send_error(self.bad, self.id, &error);
        }
    }
}
