//! A reply that is always sent: one that is dropped unanswered sends an INTERNAL error.

use std::sync::Arc;
use std::time::Instant;

use crate::metrics::{Metrics, Operation, Subject};
use crate::{CallerLiveness, Patience, Room};
use openkv_core::codec::Malformed;
use openkv_core::model::{Error, Kind};

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The frame breaks the contract: a bug of its sender.
    Malformed(Malformed),
    /// It could not be done.
    Failed(Error),
    /// It failed after a part of it was done: a repetition would do more than was requested.
    Begun(Error),
}

impl Fault {
    /// The fault of long work. If the work was ended, that is its fault, whatever else it met; the client
    /// must not repeat it at once, because it would take as long again.
    pub(super) fn of_long(patience: &Patience, error: Error) -> Self {
        match patience.check() {
            Err(ended) if ended.kind() == Kind::Unavailable => Self::Begun(ended),
            Err(closed) => Self::Failed(closed),
            Ok(()) => Self::Failed(error),
        }
    }
}

/// For callers that make their frames with openkv's own code: a malformed frame is a bug of openkv.
impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Malformed(malformed) => Self::internal(malformed.to_string()),
            Fault::Failed(error) | Fault::Begun(error) => error,
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

impl From<Malformed> for Fault {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed)
    }
}

type Answer = Box<dyn FnOnce(Result<Vec<u8>, Fault>) + Send>;

/// Gets the answer of a call, once.
pub struct Reply {
    answer: Option<Answer>,
    /// Whether a caller still waits for the answer.
    wanted: Option<CallerLiveness>,
    /// The memory for the answer, if it is bounded.
    room: Option<Arc<dyn Room>>,
    /// The operation that the answer is counted as, and when it began.
    counts: Option<(Arc<Metrics>, Operation, Instant)>,
    /// What the operation is about.
    subject: Subject,
}

impl Reply {
    /// A reply that calls this with the answer, empty for one without bytes.
    pub fn new(answer: impl FnOnce(Result<Vec<u8>, Fault>) + Send + 'static) -> Self {
        let (answer, subject) = (Some(Box::new(answer) as Answer), Subject::NONE);
        Self { answer, wanted: None, room: None, counts: None, subject }
    }

    /// From now on reads ask this before they begin, and reads in steps before each step.
    #[must_use]
    pub fn while_wanted(mut self, wanted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.wanted = Some(Arc::new(wanted));
        self
    }

    /// From now on the answer needs memory. An answer that grows claims it while it grows, any other when
    /// it is complete.
    #[must_use]
    pub fn within(mut self, room: Arc<dyn Room>) -> Self {
        self.room = Some(room);
        self
    }

    /// Keeps this until the call is answered, also if its caller is gone.
    #[must_use]
    pub fn holding(mut self, place: impl Send + 'static) -> Self {
        self.answer = self.answer.take().map(|answer| -> Answer {
            Box::new(move |result| {
                drop(place);
                answer(result);
            })
        });
        self
    }

    /// Whether a caller still waits for the answer.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted())
    }

    /// The function that says whether the caller still waits, if it can stop waiting.
    pub(super) fn wanted(&self) -> Option<CallerLiveness> {
        self.wanted.clone()
    }

    /// As [`Reply::wanted`], for work that always asks.
    pub(super) fn still_wanted(&self) -> CallerLiveness {
        self.wanted().unwrap_or_else(|| Arc::new(|| true))
    }

    /// Claims memory for so many bytes of the answer.
    pub(super) fn holds(&self, bytes: usize) -> Result<(), Error> {
        self.room.as_ref().map_or(Ok(()), |room| room.holds(bytes))
    }

    /// From now on the answer is counted as this operation.
    pub(super) fn counted(&mut self, operation: Operation, metrics: &Arc<Metrics>) {
        self.counts = Some((metrics.clone(), operation, Instant::now()));
    }

    /// Names the keys of the operation, for the slow log.
    pub(super) fn about(&mut self, subject: Subject) {
        self.subject = subject;
    }

    fn answer(&mut self, answer: Result<Vec<u8>, Fault>) {
        if let Some((metrics, operation, since)) = &self.counts {
            metrics.answered(*operation, (1, answer.is_ok()), *since, || self.subject);
        }
        if let Some(tell) = self.answer.take() {
            tell(answer);
        }
    }

    /// Answers with these bytes or with an error.
    pub fn tell(self, answer: Result<Vec<u8>, impl Into<Fault>>) {
        match answer {
            Ok(data) => self.good(data),
            Err(fault) => self.bad(fault),
        }
    }

    /// Answers with these bytes, if there is room for them.
    pub fn good(mut self, data: Vec<u8>) {
        let held = self.holds(data.len());
        self.answer(held.map(|()| data).map_err(Fault::from));
    }

    /// Answers with an error.
    pub fn bad(mut self, fault: impl Into<Fault>) {
        self.answer(Err(fault.into()));
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        if self.answer.is_some() {
            let error = Error::internal("a request was not answered; please report this");
            self.answer(Err(error.into()));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;

    #[test]
    fn what_is_dropped_unanswered_says_so_and_all_else_answers_once() {
        let (sender, receiver) = channel();
        let reply = |sender: &std::sync::mpsc::Sender<_>| {
            let sender = sender.clone();
            Reply::new(move |answer| sender.send(answer).unwrap())
        };
        drop(reply(&sender));
        reply(&sender).good(vec![1]);
        reply(&sender).bad(Malformed::new("cut", 3));
        let answers: Vec<_> = receiver.try_iter().collect();
        let [Err(Fault::Failed(dropped)), Ok(good), Err(bad)] = answers.as_slice() else {
            panic!("{answers:?}");
        };
        assert!(dropped.message().contains("not answered"), "{dropped}");
        assert_eq!(good, &[1]);
        assert_eq!(Error::from(bad.clone()).kind(), openkv_core::model::Kind::Internal);
        let (alive, gone) = (Reply::new(|_| ()), Reply::new(|_| ()).while_wanted(|| false));
        assert!(alive.is_wanted() && !gone.is_wanted());
    }
}
