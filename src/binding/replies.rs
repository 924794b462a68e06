//! Replies with a guarantee: a reply that is dropped without an answer sends an INTERNAL error.

use super::events::{Event, Events};
use crate::call;
use crate::model::{Decision, Error};
use crate::protocol::frame::push_outcomes;
use crate::store::on_thread;

/// The reply to `count` writes.
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

    /// Answers all with the same error.
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

/// The reply to a request that ends with one of two events.
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

    /// Runs long work on a separate thread; answers `Unavailable` if the thread cannot be started.
    pub(super) fn on_thread(self, name: &str, work: impl FnOnce(Self) + Send + 'static) {
        on_thread(name, self, work, |reply, error| reply.bad(&error));
    }

    /// As the reply of a call. An empty answer becomes an event without bytes.
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

    /// As the reply of a read, whose answer is never empty.
    pub(super) fn of_read(self) -> call::Reply {
        call::Reply::new(move |answer| match answer {
            Ok(data) => self.good(Some(data)),
            Err(fault) => self.bad(&fault.into()),
        })
    }

    /// Sends the second event without an error, at the end of a stream.
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
