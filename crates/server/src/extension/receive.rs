//! One message for a client, which may wait for it. The wait ends with its request, when the client
//! says so, or after a bounded time.

use std::sync::{Arc, Weak};
use std::task::{Context, Poll as Polled};
use std::time::Duration;

use hyper::StatusCode;
use hyper::body::Bytes;
use tokio::time::sleep;

use super::answered;
use super::consume::unused;
use crate::answer::{Answer, Body, Draw, Refusal, answer};
use crate::data::{Client, store_of};
use crate::memory::Claim;
use crate::pending::pending;
use crate::stream::Leave;
use openkv_core::model::{
    Ask, ConsumeOptions, Delivery, FRAMES_ANSWER_BYTES_MAX, Id, Result, Settlement,
};
use openkv_store::{Room, Store, remote_number};
use openkv_wire::protocol::extension::{FRAMES_TYPE, write_good};
use openkv_wire::protocol::frame::{Poll, frame_of, push_received, read_poll};

/// Cancels the wait when the request is dropped.
struct Waiting {
    store: Arc<Store>,
    number: Id,
}

impl Drop for Waiting {
    fn drop(&mut self) {
        self.store.receive_cancel(self.number);
    }
}

/// A message that is put back if the connection does not take its answer.
pub(crate) struct Parcel {
    store: Weak<Store>,
    /// Its settlement, and the body of its answer.
    undrawn: Option<(Settlement, Bytes)>,
}

impl Parcel {
    /// Without memory for the message, it is put back at once.
    fn new(
        store: Weak<Store>,
        claim: &Claim,
        delivery: &Delivery,
        written: impl FnOnce(&Delivery) -> Result<Vec<u8>>,
    ) -> Result<Self> {
        let mut parcel = Self { store, undrawn: Some((unused(delivery), Bytes::new())) };
        claim.holds(delivery.value.len())?;
        parcel.undrawn = Some((unused(delivery), claim.bytes(written(delivery)?)));
        Ok(parcel)
    }
}

impl Draw for Parcel {
    fn draw(&mut self, _context: &mut Context<'_>) -> Polled<Option<Bytes>> {
        Polled::Ready(self.undrawn.take().map(|(_, body)| body))
    }

    fn left(&self) -> Option<u64> {
        Some(self.undrawn.as_ref().map_or(0, |(_, body)| body.len() as u64))
    }
}

impl Drop for Parcel {
    fn drop(&mut self) {
        if let (Some((unused, _)), Some(store)) = (self.undrawn.take(), self.store.upgrade()) {
            store.ask(Ask::Settle(unused), Box::new(|_| ()));
        }
    }
}

/// The request of a client that waits for a message.
pub(crate) struct ReceiveRequest {
    pub(crate) queue: String,
    pub(crate) lock_ms: i64,
    pub(crate) wait: Duration,
    /// Names the wait; no other one has it.
    pub(crate) number: u64,
}

/// The next message, in the client's form; `None` if none came in time.
pub(crate) async fn received(
    client: &Client,
    request: ReceiveRequest,
    written: impl FnOnce(&Delivery) -> Result<Vec<u8>> + Send + 'static,
) -> Result<Result<Option<Parcel>>, Refusal> {
    let database = &client.database;
    let once = request.wait.is_zero();
    let _place = if once { None } else { Some(client.take_watch().await?) };
    let store = store_of(database).await?;
    let (weak, claim) = (Arc::downgrade(&store), database.memory.claim(FRAMES_ANSWER_BYTES_MAX));
    let waiting = Waiting { store, number: remote_number(request.number) };
    let (completion, mut receiver) = pending();
    let options = ConsumeOptions { queue: request.queue, lock_ms: request.lock_ms };
    // An answer without a receiver is dropped, which puts the message back.
    let reply = move |received: Result<Option<Delivery>>| {
        let parcel = |delivery: Delivery| Parcel::new(weak, &claim, &delivery, written);
        completion.complete(received.and_then(|delivery| delivery.map(parcel).transpose()));
    };
    waiting.store.receive(waiting.number, options, once, Box::new(reply));
    let mut leave = Leave::of_leader(client);
    let received = tokio::select! {
        received = &mut receiver => Some(received),
        () = sleep(request.wait), if !once => None,
        () = leave.over() => None,
    };
    Ok(match received {
        Some(received) => received,
        None => {
            // A message that is already on its way is still taken.
            drop(waiting);
            receiver.await
        }
    })
}

/// Answers with a message, or without one.
pub(super) async fn receive(client: &Client, body: &[u8]) -> Result<Answer, Refusal> {
    let Poll { queue, lock_ms, wait_ms, number } = read_poll(body)?;
    let wait = Duration::from_millis(wait_ms.into());
    let framed =
        |delivery: &Delivery| Ok(write_good(&frame_of(|out| push_received(out, delivery))));
    match received(client, ReceiveRequest { queue, lock_ms, wait, number }, framed).await? {
        Ok(Some(parcel)) => Ok(answer(StatusCode::OK, FRAMES_TYPE, Body::Drawn(Box::new(parcel)))),
        Ok(None) => answered(Ok(Vec::new())),
        Err(error) => answered(Err(error)),
    }
}
