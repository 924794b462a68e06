//! One message from a remote queue, by consecutive waiting requests.
//!
//! Invariant: a message that arrives after its wait was cancelled is put back unused. A cancelled
//! wait ends at the server, whose answer says whether a message was already on its way.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch as flag};
use tokio::time::{Instant, sleep, timeout};

use super::backoff;
use super::executor::{AnswerError, HttpRequest, Needs, RequestExecutor};
use super::extension::{answer_of, call};
use openkv_core::model::{
    ConsumeOptions, Delivery, Id, Kind, LEAVE_MS_MAX, Limits, Outcome, RECEIVE_POLL_MS_MAX,
    REMOTE_WAITS_MAX, RETRY_DELAY_MS, Receive, Result, Settlement,
};
use openkv_wire::protocol::Command;
use openkv_wire::protocol::RetrySafety;
use openkv_wire::protocol::extension::{QUEUES, RECEIVE};
use openkv_wire::protocol::frame::{Poll, frame_of, parse_received, push_settlement, write_poll};

/// The waits of one handle.
pub(super) struct Waits {
    waiting: Mutex<HashMap<Id, flag::Sender<WaitState>>>,
    /// Bounds the waiting requests.
    places: Semaphore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WaitState {
    Yes,
    /// Cancelled; a message on its way is still taken.
    NoMore,
    /// Cancelled; no message is taken.
    No,
}

impl Default for Waits {
    fn default() -> Self {
        Self { waiting: Mutex::default(), places: Semaphore::new(REMOTE_WAITS_MAX) }
    }
}

impl Waits {
    /// Registers a wait, for [`Waits::receive`].
    pub(super) fn add(&self, id: Id) {
        self.waiting.lock().insert(id, flag::Sender::new(WaitState::Yes));
    }

    pub(super) fn cancel(&self, id: Id) {
        if let Some(wanted) = self.waiting.lock().get(&id) {
            wanted.send_if_modified(|is| std::mem::replace(is, WaitState::NoMore.max(*is)) < *is);
        }
    }

    pub(super) fn close(&self) {
        for wanted in self.waiting.lock().values() {
            wanted.send_replace(WaitState::No);
        }
    }

    /// Waits for a message and answers.
    pub(super) async fn receive(
        self: Arc<Self>,
        executor: Arc<RequestExecutor>,
        (id, options, once): (Id, ConsumeOptions, bool),
        reply: Receive,
    ) {
        let wanted = self.waiting.lock().get(&id).map(flag::Sender::subscribe);
        let Some(wanted) = wanted else { return reply(Ok(None)) };
        let received = self.wait(&executor, (id, options, once), &wanted).await;
        // From here on the wait cannot be cancelled.
        self.waiting.lock().remove(&id);
        match received {
            Ok(Some(delivery)) if *wanted.borrow() == WaitState::No => {
                put_back(&executor, &delivery).await;
                reply(Ok(None));
            }
            received => reply(received),
        }
    }

    async fn wait(
        &self,
        executor: &RequestExecutor,
        (id, options, once): (Id, ConsumeOptions, bool),
        wanted: &flag::Receiver<WaitState>,
    ) -> Result<Option<Delivery>> {
        let mut wanted = wanted.clone();
        let mut ended = async move || drop(wanted.wait_for(|is| *is > WaitState::Yes).await);
        let _place = tokio::select! {
            place = self.places.acquire(), if !once => place.ok(),
            () = ended() => return Ok(None),
            () = std::future::ready(()), if once => None,
        };
        let third = executor.timeout.as_millis() / 3;
        let wait_ms = u32::try_from(third).unwrap_or(u32::MAX).clamp(1, RECEIVE_POLL_MS_MAX);
        let poll = Poll {
            queue: options.queue,
            lock_ms: options.lock_ms,
            number: id,
            wait_ms: if once { 0 } else { wait_ms },
        };
        let needs = Needs { extension: QUEUES, what: "receiving from queues" };
        let http_request = HttpRequest {
            waits: !once,
            ..HttpRequest::extension(RECEIVE, RetrySafety::Idempotent, write_poll(&poll), needs)
        };
        let mut tries = 0;
        loop {
            let begun = Instant::now();
            let asking = executor.execute(&http_request, |_, bytes| delivery_of(bytes));
            tokio::pin!(asking);
            let answer = tokio::select! {
                answer = &mut asking => answer,
                () = ended() => {
                    let answered = async {
                        tokio::select! {
                            answer = &mut asking => answer,
                            never = end(executor, id) => match never {},
                        }
                    };
                    match timeout(Duration::from_millis(LEAVE_MS_MAX), answered).await {
                        Ok(Ok((received, _))) => return Ok(received),
                        Ok(Err(error)) if error.kind() != Kind::Unavailable => return Err(error),
                        Ok(Err(_)) | Err(_) => return Ok(None),
                    }
                }
            };
            match answer {
                Ok((None, _)) if !once => {
                    let pause = pause(begun.elapsed(), wait_ms, &mut tries, executor.env.random());
                    tokio::select! {
                        () = sleep(pause) => {}
                        () = ended() => return Ok(None),
                    }
                }
                answer => return answer.map(|(received, _)| received),
            }
        }
    }
}

/// The pause before the next request after an empty answer: none if the server has waited for a
/// message. A server that answers much sooner is closing, or does not wait.
fn pause(waited: Duration, wait_ms: u32, tries: &mut u32, random: u64) -> Duration {
    if waited >= Duration::from_millis(wait_ms.into()) / 2 {
        *tries = 0;
        return Duration::ZERO;
    }
    *tries = tries.saturating_add(1);
    backoff::delay(*tries - 1, random)
}

/// Asks the server to end a wait, repeatedly, because the wait may not have reached the server yet.
async fn end(executor: &RequestExecutor, id: Id) -> std::convert::Infallible {
    loop {
        let frame = id.to_le_bytes().to_vec();
        let _again_then = call(executor, Command::ConsumeEnd, frame, Limits::wide()).await;
        sleep(Duration::from_millis(RETRY_DELAY_MS)).await;
    }
}

fn delivery_of(bytes: &[u8]) -> Result<Option<Delivery>, AnswerError> {
    let answer = answer_of(bytes)?;
    if answer.is_empty() {
        return Ok(None);
    }
    let delivery = parse_received(&answer);
    delivery.map(Some).map_err(|why| AnswerError::Malformed(why.to_string()))
}

async fn put_back(executor: &RequestExecutor, delivery: &Delivery) {
    let back = Settlement::new(delivery.id, delivery.lock, Outcome::Returned);
    let frame = frame_of(|out| push_settlement(out, &back));
    if let Err(error) = call(executor, Command::Settle, frame, Limits::wide()).await {
        tracing::debug!(%error, "putting back an unwanted message; its lock ends by itself");
    }
}
