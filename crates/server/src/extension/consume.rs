//! Consumers of queues: a stream of messages (`protocol::frame`).
//!
//! Invariant: a delivered message is either taken by the connection, and then belongs to the remote
//! consumer until its lock ends, or put back unused at once. The server renews no lock: an open
//! connection does not show that the handler still runs, and a closed one does not show that it has
//! ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll as Polled, Waker};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use hyper::body::Bytes;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Interval;

use crate::answer::{Answer, Body, Draw, Refusal, answer};
use crate::data::{Client, store_of};
use crate::database::WatchPlace;
use crate::memory::Claim;
use crate::stream::{Leave, signs};
use openkv_core::codec::framing::KEEP_ALIVE;
use openkv_core::model::{
    ALIVE_INTERVAL_MS, Ask, CONSUME_FRAME_BYTES, CONSUME_MESSAGE_BYTES_MAX, ConsumeOptions,
    Delivery, Dispatched, Id, Outcome, Reason, Result, Settlement,
};
use openkv_store::{RemoteConsumer, Room, Store};
use openkv_wire::connect::versions::STREAM_TYPE;
use openkv_wire::protocol::frame::{read_consume, write_dispatched, write_opened};

/// The settlement of a delivery that no consumer has seen.
pub(super) fn unused(delivery: &Delivery) -> Settlement {
    Settlement::new(delivery.id, delivery.lock, Outcome::Returned)
}

/// The settlement of a message that fits no frame. A local consumer may take it at its retry.
fn failed(delivery: &Delivery, bytes: usize) -> Settlement {
    let why = format!(
        "the message is too large for a listener behind a URL (max {CONSUME_MESSAGE_BYTES_MAX} \
         bytes): {bytes} bytes"
    );
    let reason = Some(Reason::new("RangeError", &why));
    Settlement { reason, ..Settlement::new(delivery.id, delivery.lock, Outcome::Failed) }
}

fn settle(store: &Store, ends: impl IntoIterator<Item = Settlement>) {
    ends.into_iter().for_each(|end| store.ask(Ask::Settle(end), Box::new(|_| ())));
}

/// A delivered message that the connection has not taken.
struct Unsent {
    /// Without its value if it fits no frame.
    delivery: Delivery,
    bytes: usize,
    dispatched_at: Instant,
}

impl Unsent {
    fn new(mut delivery: Delivery, dispatched_at: Instant) -> Self {
        let bytes = delivery.value.len();
        if bytes > CONSUME_MESSAGE_BYTES_MAX {
            delivery.value = Vec::new();
        }
        Self { delivery, bytes, dispatched_at }
    }
}

/// The next messages, sorted by what happens to them.
#[derive(Default)]
struct Chosen {
    /// They share a frame.
    drawn: Vec<Delivery>,
    /// They are not sent: their locks ended before the connection took them, so that another
    /// consumer may have them, or they fit no frame.
    ended: Vec<Settlement>,
}

impl Chosen {
    fn of(unsent: &mut VecDeque<Unsent>, lock: Duration) -> Self {
        let (mut chosen, mut sum) = (Self::default(), 0);
        while sum < CONSUME_FRAME_BYTES
            && let Some(next) = unsent.pop_front()
        {
            let Unsent { ref delivery, bytes, dispatched_at } = next;
            if dispatched_at.elapsed() >= lock {
                chosen.ended.push(unused(delivery));
            } else if bytes > CONSUME_MESSAGE_BYTES_MAX {
                chosen.ended.push(failed(delivery, bytes));
            } else if sum + bytes > CONSUME_MESSAGE_BYTES_MAX {
                unsent.push_front(next);
                break;
            } else {
                sum += bytes;
                chosen.drawn.push(next.delivery);
            }
        }
        chosen
    }
}

/// How the messages of a consumer are written for its connection.
pub(crate) trait Writing: Send + Sync + 'static {
    /// Messages that share a piece; the connection takes it at once.
    fn messages(&self, drawn: &[Delivery]) -> Result<Vec<u8>>;

    /// The keep-alive piece.
    fn alive(&self) -> Bytes;

    /// The stream has ended.
    fn over(&self) {}
}

/// The frames of openkv's own clients.
struct Frames;

impl Writing for Frames {
    fn messages(&self, drawn: &[Delivery]) -> Result<Vec<u8>> {
        write_dispatched(drawn.iter())
    }

    fn alive(&self) -> Bytes {
        Bytes::from_static(&KEEP_ALIVE)
    }
}

/// The messages of a consumer that its connection has not taken yet.
struct Supply {
    state: Mutex<State>,
    writing: Arc<dyn Writing>,
    lock: Duration,
    /// Their memory.
    claim: Arc<Claim>,
}

#[derive(Default)]
struct State {
    unsent: VecDeque<Unsent>,
    /// Messages refused for lack of memory. No others are delivered in their place until one is
    /// taken.
    lacked: u64,
    waker: Option<Waker>,
    /// `None` once the stream is over.
    there: Option<There>,
    over: bool,
}

impl State {
    /// Bytes of the waiting messages.
    fn bytes(&self) -> usize {
        self.unsent.iter().map(|unsent| unsent.delivery.value.len()).sum()
    }
}

struct There {
    store: Arc<Store>,
    id: Id,
    _place: WatchPlace,
}

impl Supply {
    /// Takes delivered messages, unless the stream is over. If there is no memory for any of them,
    /// the stream ends; its client connects again later.
    fn take(&self, mut hand: Vec<Dispatched>) -> Vec<Dispatched> {
        let mut state = self.state.lock();
        if state.over {
            return hand;
        }
        let (now, mut bytes) = (Instant::now(), state.bytes());
        let fits = hand.iter().take_while(|handed| {
            let size = handed.delivery.value.len();
            bytes += if size > CONSUME_MESSAGE_BYTES_MAX { 0 } else { size };
            self.claim.holds(bytes).is_ok()
        });
        let left = hand.split_off(fits.count());
        state.lacked += left.len() as u64;
        state.unsent.extend(hand.into_iter().map(|handed| Unsent::new(handed.delivery, now)));
        let (waker, is_stuck) = (state.waker.take(), state.unsent.is_empty());
        drop(state);
        if is_stuck && !left.is_empty() {
            self.end();
        }
        if let Some(waker) = waker {
            waker.wake();
        }
        left
    }

    /// The next frame; `Ready(None)` at the end.
    fn draw(&self, context: &Context<'_>) -> Polled<Option<Result<Bytes>>> {
        let mut state = self.state.lock();
        let Some(there) = &state.there else { return Polled::Ready(None) };
        let (store, id) = (there.store.clone(), there.id);
        let Chosen { drawn, mut ended } = Chosen::of(&mut state.unsent, self.lock);
        if drawn.is_empty() {
            state.waker = Some(context.waker().clone());
        }
        let lacked = std::mem::take(&mut state.lacked);
        let frame = match drawn.is_empty() {
            true => Ok(Bytes::new()),
            false => self.writing.messages(&drawn).map(|frame| self.claim.bytes(frame)),
        };
        self.claim.shrink(state.bytes());
        drop(state);
        let mut sent = drawn.len();
        if frame.is_err() {
            ended.extend(drawn.iter().map(unused));
            sent = 0;
        }
        let returned = ended.len() as u64 + lacked;
        if sent as u64 + returned > 0 {
            store.sent(id, sent as u64, returned);
        }
        settle(&store, ended);
        match frame {
            Ok(_) if sent == 0 => Polled::Pending,
            frame => Polled::Ready(Some(frame)),
        }
    }

    /// Ends the stream and puts back the waiting messages.
    fn end(&self) {
        let mut state = self.state.lock();
        let unsent = std::mem::take(&mut state.unsent);
        let (there, waker) = (state.there.take(), state.waker.take());
        state.over = true;
        self.claim.shrink(0);
        drop(state);
        if let Some(There { store, id, .. }) = there {
            store.unlisten(id);
            settle(&store, unsent.iter().map(|unsent| unused(&unsent.delivery)));
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The store's end of the supply, dropped when the store forgets the consumer.
struct Dispatcher(Arc<Supply>);

impl Drop for Dispatcher {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The body of a consumer's stream.
pub(crate) struct Stream {
    supply: Arc<Supply>,
    /// The first piece.
    pub(crate) opened: Option<Bytes>,
    signs: Interval,
    leave: AbortHandle,
}

impl Draw for Stream {
    fn draw(&mut self, context: &mut Context<'_>) -> Polled<Option<Bytes>> {
        if let Some(opened) = self.opened.take() {
            return Polled::Ready(Some(opened));
        }
        match self.supply.draw(context) {
            Polled::Ready(Some(Ok(frame))) => {
                return Polled::Ready(Some(frame));
            }
            Polled::Ready(Some(Err(error))) => {
                tracing::error!(%error, "a consumer's stream ended");
                return Polled::Ready(None);
            }
            Polled::Ready(None) => return Polled::Ready(None),
            Polled::Pending => {}
        }
        self.signs.poll_tick(context).map(|_| Some(self.supply.writing.alive()))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.leave.abort();
        self.supply.end();
        self.supply.writing.over();
    }
}

/// Starts to deliver messages to an openkv client.
pub(super) async fn consume(client: &Client, body: &[u8]) -> Result<Answer, Refusal> {
    let request = read_consume(body)?;
    let consumer = RemoteConsumer {
        options: ConsumeOptions { queue: request.queue, lock_ms: request.lock_ms },
        credits: request.credits.into(),
        most: request.concurrency.into(),
    };
    let (id, mut stream) = consuming(client, consumer, Arc::new(Frames)).await?;
    stream.opened = Some(write_opened(id)?.into());
    Ok(answer(StatusCode::OK, STREAM_TYPE, Body::Drawn(Box::new(stream))))
}

/// Starts to deliver messages. The consumer's number is for [`Store::grant`].
pub(crate) async fn consuming(
    client: &Client,
    consumer: RemoteConsumer,
    writing: Arc<dyn Writing>,
) -> Result<(Id, Stream), Refusal> {
    let database = &client.database;
    let place = client.take_watch().await?;
    let store = store_of(database).await?;
    let lock = Duration::from_millis(consumer.options.lock_ms.unsigned_abs());
    let claim = database.memory.claim(usize::MAX);
    let supply = Arc::new(Supply { state: Mutex::default(), writing, lock, claim });
    let dispatcher = Dispatcher(supply.clone());
    let id = store.listen_for(consumer, Box::new(move |hand| dispatcher.0.take(hand)))?;
    let was_over = {
        let mut state = supply.state.lock();
        state.there = Some(There { store, id, _place: place });
        state.over
    };
    if was_over {
        supply.end();
    }
    let mut leave = Leave::of_leader(client);
    let ending = supply.clone();
    let leave = tokio::spawn(async move {
        leave.over().await;
        ending.end();
    });
    let (opened, signs) = (None, signs(&client.serving, ALIVE_INTERVAL_MS));
    Ok((id, Stream { supply, opened, signs, leave: leave.abort_handle() }))
}
