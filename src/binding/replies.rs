//! Answers that cannot be forgotten: dropped unanswered, they answer that this is a bug.

use super::events::{Event, Events};
use crate::call;
use crate::codec::frame::push_outcomes;
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
}

impl Reply {
    pub(super) fn new(events: Events, id: f64, good: Event, bad: Event) -> Self {
        Self { events, id, good, bad, answered: false }
    }

    /// The reply of a call whose answer this tells.
    pub(super) fn of_call(self) -> call::Reply {
        call::Reply::new(move |answer| match answer {
            Ok(data) => self.good(Some(data).filter(|data| !data.is_empty())),
            Err(fault) => self.bad(&fault.into()),
        })
    }

    pub(super) fn good(mut self, data: Option<Vec<u8>>) {
        self.answered = true;
        self.events.send(self.good, self.id, data);
    }

    /// The reply of a read whose answer this tells, which is never empty.
    pub(super) fn of_read(self) -> call::Reply {
        call::Reply::new(move |answer| match answer {
            Ok(data) => self.good(Some(data)),
            Err(fault) => self.bad(&fault.into()),
        })
    }

    /// The bad end without an error: it is simply over.
    pub(super) fn over(mut self) {
        self.answered = true;
        self.events.send(self.bad, self.id, None);
    }

    pub(super) fn bad(mut self, error: &Error) {
        self.answered = true;
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
