//! An answer that cannot be forgotten: dropped unanswered, it says that this is a bug.

use std::sync::Arc;
use std::time::Instant;

use crate::codec::Malformed;
use crate::metrics::{Metrics, Operation};
use crate::model::{Error, Kind};
use crate::store::{Patience, Room, Wanted};

/// Why a call has no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The frame is not what the contract says: a bug of whoever made it.
    Malformed(Malformed),
    /// It could not be done.
    Told(Error),
    /// It ended with this after a part of it had been done: whoever asks again asks for more.
    Begun(Error),
}

impl Fault {
    /// Why long work has failed: whatever else it met, it was ended. Not to be asked for again at once,
    /// which would take as long.
    pub(super) fn of_long(patience: &Patience, error: Error) -> Self {
        match patience.check() {
            Err(ended) if ended.kind() == Kind::Unavailable => Self::Begun(ended),
            Err(closed) => Self::Told(closed),
            Ok(()) => Self::Told(error),
        }
    }
}

/// To a caller that makes its frames by our own code, a malformed one is a bug of ours.
impl From<Fault> for Error {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Malformed(malformed) => Self::internal(malformed.to_string()),
            Fault::Told(error) | Fault::Begun(error) => error,
        }
    }
}

impl From<Error> for Fault {
    fn from(error: Error) -> Self {
        Self::Told(error)
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
    /// Whether somebody still waits for it.
    wanted: Option<Wanted>,
    /// How long the answer may get, if that is bounded.
    room: Option<Arc<dyn Room>>,
    /// What the answer counts as, and from when on.
    counts: Option<(Arc<Metrics>, Operation, Instant)>,
}

impl Reply {
    /// A reply that calls this with the answer, empty for one without bytes.
    pub fn new(answer: impl FnOnce(Result<Vec<u8>, Fault>) + Send + 'static) -> Self {
        Self { answer: Some(Box::new(answer)), wanted: None, room: None, counts: None }
    }

    /// From now on reads ask this whether to begin, and those in steps whether to go on.
    #[must_use]
    pub fn while_wanted(mut self, wanted: impl Fn() -> bool + Send + Sync + 'static) -> Self {
        self.wanted = Some(Arc::new(wanted));
        self
    }

    /// From now on there has to be room for its answer. One that comes piece by piece asks for it as it
    /// gets longer, and all others when they are there.
    #[must_use]
    pub fn within(mut self, room: Arc<dyn Room>) -> Self {
        self.room = Some(room);
        self
    }

    /// Keeps this until it is answered, also if nobody waits for that.
    #[must_use]
    pub fn holding(mut self, place: impl Send + 'static) -> Self {
        self.answer = self.answer.take().map(|answer| -> Answer {
            Box::new(move |told| {
                drop(place);
                answer(told);
            })
        });
        self
    }

    /// Whether somebody still waits for the answer.
    pub(super) fn is_wanted(&self) -> bool {
        self.wanted.as_ref().is_none_or(|wanted| wanted())
    }

    /// Tells whether somebody still waits for the answer.
    pub(super) fn wanted(&self) -> Option<Wanted> {
        self.wanted.clone()
    }

    /// Whether there is room for so many bytes of the answer.
    pub(super) fn holds(&self, bytes: usize) -> Result<(), Error> {
        self.room.as_ref().map_or(Ok(()), |room| room.holds(bytes))
    }

    /// From now on its answer counts as one of these.
    pub(super) fn counted(&mut self, operation: Operation, metrics: &Arc<Metrics>) {
        self.counts = Some((metrics.clone(), operation, Instant::now()));
    }

    fn answer(&mut self, answer: Result<Vec<u8>, Fault>) {
        if let Some((metrics, operation, since)) = &self.counts {
            metrics.answered(*operation, 1, answer.is_ok(), *since);
        }
        if let Some(tell) = self.answer.take() {
            tell(answer);
        }
    }

    pub(super) fn good(mut self, data: Vec<u8>) {
        let held = self.holds(data.len());
        self.answer(held.map(|()| data).map_err(Fault::from));
    }

    pub(super) fn bad(mut self, fault: impl Into<Fault>) {
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
        let (tell, told) = channel();
        let reply = |tell: &std::sync::mpsc::Sender<_>| {
            let tell = tell.clone();
            Reply::new(move |answer| tell.send(answer).unwrap())
        };
        drop(reply(&tell));
        reply(&tell).good(vec![1]);
        reply(&tell).bad(Malformed::new("cut", 3));
        let answers: Vec<_> = told.try_iter().collect();
        let [Err(Fault::Told(dropped)), Ok(good), Err(bad)] = answers.as_slice() else {
            panic!("{answers:?}");
        };
        assert!(dropped.message().contains("not answered"), "{dropped}");
        assert_eq!(good, &[1]);
        assert_eq!(Error::from(bad.clone()).kind(), crate::model::Kind::Internal);
        let (alive, gone) = (Reply::new(|_| ()), Reply::new(|_| ()).while_wanted(|| false));
        assert!(alive.is_wanted() && !gone.is_wanted());
    }
}
