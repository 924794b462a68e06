//! The adapter between a store, which answers a call by a callback, and requests, which await it.
//!
//! Invariant: every wait ends. A callback that is dropped ends it with an error.
//! Never: a channel to the store anywhere else in the server.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::oneshot;

use openkv_core::model::{BUSY_TIMEOUT_MS_DEFAULT, Error, Result, SERVER_LONG_READ_MS_MAX};
use openkv_store::{Caller, Patience, Store};

/// Longest wait of a client's work for other processes.
pub(super) const BUSY: Duration = Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT);

/// Longest time of a client's search, count or filtered deletion, with all its steps.
pub(super) const LONG: Duration = Duration::from_millis(SERVER_LONG_READ_MS_MAX);

/// The answer of a call to the store, once it comes.
pub(super) struct Pending<T> {
    answer: oneshot::Receiver<Result<T>>,
    /// The answer of a callback that was dropped.
    dropped: fn() -> Error,
}

/// Answers a [`Pending`], once.
pub(super) struct Completion<T>(oneshot::Sender<Result<T>>);

/// The callback of most calls of the store.
type Callback<T> = Box<dyn FnOnce(Result<T>) + Send>;

/// An answer, and what completes it.
pub(super) fn pending<T>() -> (Completion<T>, Pending<T>) {
    let (completion, answer) = oneshot::channel();
    (Completion(completion), Pending { answer, dropped: unanswered })
}

/// The error of a call whose callback was dropped.
pub(super) fn unanswered() -> Error {
    Error::internal("the database did not answer; please report this")
}

impl<T: Send + 'static> Pending<T> {
    /// Makes a call; the answer is what its callback gets.
    pub(super) fn of(call: impl FnOnce(Callback<T>)) -> Self {
        let (completion, answer) = pending();
        call(Box::new(move |result| completion.complete(result)));
        answer
    }

    /// From now on a callback that is dropped means that the store has closed.
    pub(super) fn or_closed(self) -> Self {
        Self { dropped: Error::closed, ..self }
    }
}

impl<T> Future for Pending<T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<T>> {
        let answer = Pin::new(&mut self.answer).poll(context);
        answer.map(|answer| answer.unwrap_or_else(|_| Err((self.dropped)())))
    }
}

impl<T> Completion<T> {
    /// Hands the answer over. It is dropped if nothing waits for it any more.
    pub(super) fn complete(self, result: Result<T>) {
        drop(self.0.send(result));
    }

    /// Fails if nothing waits for the answer any more.
    pub(super) fn check(&self) -> Result<()> {
        if self.0.is_closed() { Err(Error::closed()) } else { Ok(()) }
    }
}

/// The caller of a read on a thread of the store. A read for a cancelled request does not begin.
pub(super) struct Reading<S, T, U> {
    /// The state that the visited rows have left so far.
    pub(super) state: S,
    finish: fn(S, Result<T>) -> Result<U>,
    completion: Completion<U>,
}

impl<S, T, U> Reading<S, T, U> {
    /// A read that ends with what `finish` makes of the state.
    pub(super) fn new(state: S, finish: fn(S, Result<T>) -> Result<U>) -> (Self, Pending<U>) {
        let (completion, answer) = pending();
        (Self { state, finish, completion }, answer)
    }
}

impl<S: Send + 'static, T: 'static, U: Send + 'static> Caller<T> for Reading<S, T, U> {
    fn check(&self) -> Result<()> {
        self.completion.check()
    }

    fn end(self, result: Result<T>) {
        self.completion.complete((self.finish)(self.state, result));
    }
}

/// Ends the work of a request that is dropped.
pub(super) struct Wanted(Arc<()>);

impl Wanted {
    pub(super) fn new() -> Self {
        Self(Arc::new(()))
    }

    /// Whether the request still waits.
    pub(super) fn liveness(&self) -> impl Fn() -> bool + Send + Sync + 'static {
        let alive = Arc::downgrade(&self.0);
        move || alive.strong_count() > 0
    }

    /// The bounds of a long read.
    pub(super) fn patience(&self, store: &Store, what: &'static str) -> Arc<Patience> {
        store.patience(what, LONG, Some(Arc::new(self.liveness())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::Kind;

    #[tokio::test]
    async fn a_dropped_callback_ends_the_wait_with_an_error() {
        let lost = Pending::<()>::of(drop);
        assert_eq!(lost.await.map_err(|error| error.kind()), Err(Kind::Internal));
        let closed = Pending::<()>::of(drop).or_closed();
        assert_eq!(closed.await.map_err(|error| error.kind()), Err(Kind::Closed));
    }

    #[tokio::test]
    async fn a_read_for_a_cancelled_request_does_not_begin() {
        let (reading, answer) = Reading::<_, u8, u8>::new(1, |state, read| Ok(state + read?));
        assert!(reading.check().is_ok());
        reading.end(Ok(2));
        assert_eq!(answer.await, Ok(3));

        let (reading, answer) = Reading::<_, u8, u8>::new(1, |state, read| Ok(state + read?));
        drop(answer);
        assert!(reading.check().is_err());
    }
}
