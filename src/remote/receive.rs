//! One message from a queue elsewhere, waited for by one request after the other.
//!
//! Invariant: a message that comes when nobody wants it any more goes back unused. Who waits no
//! longer has the server end the wait, whose answer says whether a message was on its way already.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Semaphore, watch as flag};
use tokio::time::{Instant, sleep, timeout};

use super::ask::{Again, Asker, Question, Unfit};
use super::backoff;
use super::extension::{Needs, answer_of, call};
use crate::codec::frame::{Poll, Verb, parse_received, push_settlement};
use crate::connect::consume::write_poll;
use crate::connect::extension::{QUEUES, RECEIVE};
use crate::model::{
    Delivery, Kind, LEAVE_MS_MAX, Limits, Outcome, RECEIVE_POLL_MS_MAX, REMOTE_WAITS_MAX,
    RETRY_DELAY_MS, Result, Settlement,
};
use crate::store::{Id, Receive, Wish};

/// Those who wait, of one handle.
pub(super) struct Waits {
    waiting: Mutex<HashMap<Id, flag::Sender<Wanted>>>,
    /// Requests that wait at one time.
    places: Semaphore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Wanted {
    Yes,
    /// But one that is on its way.
    NoMore,
    /// Not even that.
    No,
}

impl Default for Waits {
    fn default() -> Self {
        Self { waiting: Mutex::default(), places: Semaphore::new(REMOTE_WAITS_MAX) }
    }
}

impl Waits {
    /// Somebody waits from now on; to be waited for with [`Waits::receive`].
    pub(super) fn add(&self, id: Id) {
        self.waiting.lock().insert(id, flag::Sender::new(Wanted::Yes));
    }

    pub(super) fn cancel(&self, id: Id) {
        if let Some(wanted) = self.waiting.lock().get(&id) {
            wanted.send_if_modified(|is| std::mem::replace(is, Wanted::NoMore.max(*is)) < *is);
        }
    }

    pub(super) fn close(&self) {
        for wanted in self.waiting.lock().values() {
            wanted.send_replace(Wanted::No);
        }
    }

    /// Waits for a message, and tells.
    pub(super) async fn receive(
        self: Arc<Self>,
        asker: Arc<Asker>,
        (id, wish, once): (Id, Wish, bool),
        reply: Receive,
    ) {
        let wanted = self.waiting.lock().get(&id).map(flag::Sender::subscribe);
        let Some(wanted) = wanted else { return reply(Ok(None)) };
        let received = self.wait(&asker, (id, wish, once), &wanted).await;
        // From here on nobody can say any more that it is not wanted.
        self.waiting.lock().remove(&id);
        match received {
            Ok(Some(delivery)) if *wanted.borrow() == Wanted::No => {
                put_back(&asker, &delivery).await;
                reply(Ok(None));
            }
            received => reply(received),
        }
    }

    async fn wait(
        &self,
        asker: &Asker,
        (id, wish, once): (Id, Wish, bool),
        wanted: &flag::Receiver<Wanted>,
    ) -> Result<Option<Delivery>> {
        let mut wanted = wanted.clone();
        let mut ended = async move || drop(wanted.wait_for(|is| *is > Wanted::Yes).await);
        let _place = tokio::select! {
            place = self.places.acquire(), if !once => place.ok(),
            () = ended() => return Ok(None),
            () = std::future::ready(()), if once => None,
        };
        let third = asker.timeout.as_millis() / 3;
        let wait_ms = u32::try_from(third).unwrap_or(u32::MAX).clamp(1, RECEIVE_POLL_MS_MAX);
        let asked = Poll {
            queue: wish.queue,
            lock_ms: wish.lock_ms,
            number: id,
            wait_ms: if once { 0 } else { wait_ms },
        };
        let needs = Needs { extension: QUEUES, what: "receiving from queues" };
        let question = Question {
            waits: !once,
            ..Question::extension(RECEIVE, Again::Harmless, write_poll(&asked), needs)
        };
        let mut tries = 0;
        loop {
            let begun = Instant::now();
            let asking = asker.ask(&question, |_, bytes| delivery_of(bytes));
            tokio::pin!(asking);
            let answer = tokio::select! {
                answer = &mut asking => answer,
                () = ended() => {
                    let answered = async {
                        tokio::select! {
                            answer = &mut asking => answer,
                            never = end(asker, id) => match never {},
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
                    let pause = pause(begun.elapsed(), wait_ms, &mut tries, asker.env.random());
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

/// How long to wait before asking again, when there was none: not at all if the server has waited
/// for one. Whoever answers much sooner is ending, or does not wait.
fn pause(waited: Duration, wait_ms: u32, tries: &mut u32, random: u64) -> Duration {
    if waited >= Duration::from_millis(wait_ms.into()) / 2 {
        *tries = 0;
        return Duration::ZERO;
    }
    *tries = tries.saturating_add(1);
    backoff::delay(*tries - 1, random)
}

/// Asks the server to end a wait, again and again: it may not have heard of it yet.
async fn end(asker: &Asker, id: Id) -> std::convert::Infallible {
    loop {
        let frame = id.to_le_bytes().to_vec();
        let _again_then = call(asker, Verb::ConsumeEnd, frame, Limits::wide()).await;
        sleep(Duration::from_millis(RETRY_DELAY_MS)).await;
    }
}

fn delivery_of(bytes: &[u8]) -> Result<Option<Delivery>, Unfit> {
    let answer = answer_of(bytes)?;
    if answer.is_empty() {
        return Ok(None);
    }
    let delivery = parse_received(&answer);
    delivery.map(Some).map_err(|why| Unfit::Malformed(why.to_string()))
}

async fn put_back(asker: &Asker, delivery: &Delivery) {
    let mut frame = Vec::new();
    let back = Settlement::new(delivery.id, delivery.lock, Outcome::Returned);
    push_settlement(&mut frame, &back);
    if let Err(error) = call(asker, Verb::Settle, frame, Limits::wide()).await {
        tracing::debug!(%error, "a message that nobody wants is free when its lock ends");
    }
}
