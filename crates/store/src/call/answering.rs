//! The caller of a read that answers a call. The read does not begin if no caller waits for the
//! answer any more.

use std::sync::Arc;

use super::{Fault, Reply, too_large};
use crate::{Caller, Patience};
use openkv_core::model::{Error, Result};

/// A call whose answer is read.
pub(super) struct Answering<S, F> {
    pub(super) reply: Reply,
    /// The bounds of the call, if it may take long.
    patience: Option<Arc<Patience>>,
    /// The state that the visited rows have left so far.
    pub(super) state: S,
    /// Makes the answer.
    finish: F,
}

impl<S, F> Answering<S, F> {
    pub(super) fn new(reply: Reply, state: S, finish: F) -> Self {
        Self { reply, patience: None, state, finish }
    }

    /// From now on the read has the bounds of the call.
    pub(super) fn within(self, patience: &Arc<Patience>) -> Self {
        Self { patience: Some(patience.clone()), ..self }
    }
}

impl<F> Answering<Vec<u8>, F> {
    /// Claims memory for the answer so far, at most `bytes_max`.
    pub(super) fn holds(&self, bytes_max: usize) -> Result<()> {
        let bytes = self.state.len();
        if bytes > bytes_max { Err(too_large(bytes_max)) } else { self.reply.holds(bytes) }
    }
}

impl<T, S, F> Caller<T> for Answering<S, F>
where
    S: Send + 'static,
    F: FnOnce(S, Result<T>) -> Result<Vec<u8>> + Send + 'static,
{
    fn check(&self) -> Result<()> {
        if !self.reply.is_wanted() {
            return Err(Error::closed());
        }
        self.patience.as_ref().map_or(Ok(()), |patience| patience.check())
    }

    fn end(self, result: Result<T>) {
        let answer = (self.finish)(self.state, result);
        match self.patience {
            Some(patience) => {
                self.reply.tell(answer.map_err(|error| Fault::of_long(&patience, error)));
            }
            None => self.reply.tell(answer),
        }
    }
}
