//! Consumers of queues: a stream that hands out messages (`connect::consume`), and waits for one.
//!
//! Invariant: a message that was dealt is either drawn by the connection, and from then on its
//! receiver's until its lock ends, or put back unused at once. Nothing here keeps a lock going:
//! that the connection is there does not show that the handler still runs, and that it is gone does
//! not show that the handler has ended.

use std::collections::VecDeque;
use std::sync::Arc;
use std::task::{Context, Poll as Polled, Waker};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use hyper::body::Bytes;
use parking_lot::Mutex;
use tokio::task::AbortHandle;
use tokio::time::Interval;

use crate::connect::consume::{read_consume, write_dealt, write_opened};
use crate::connect::frames::KEEP_ALIVE;
use crate::connect::versions::STREAM_TYPE;
use crate::model::{
    Ask, CONSUME_FRAME_BYTES, CONSUME_MESSAGE_BYTES_MAX, Delivery, Outcome, Reason, Result,
    Settlement,
};
use crate::server::Serving;
use crate::server::answer::{Answer, Body, Draw, Refusal, answer};
use crate::server::auth::Grant;
use crate::server::data::store_of;
use crate::server::database::{Database, WatchPlace};
use crate::server::stream::{Leave, signs};
use crate::store::{Elsewhere, Handed, Id, Store, Wish};

/// Puts a message back that nobody has seen.
pub(super) fn put_back(store: &Store, delivery: &Delivery) {
    let back = Settlement::new(delivery.id, delivery.lock, Outcome::Returned);
    store.ask(Ask::Settle(back), Box::new(|_| ()));
}

/// Ends the delivery of a message that no frame has room for. A consumer of this machine may take it
/// when it comes again.
fn fail(store: &Store, delivery: &Delivery) {
    let why = format!(
        "the message is too large for a listener behind a URL (max {CONSUME_MESSAGE_BYTES_MAX} \
         bytes): {} bytes",
        delivery.value.len()
    );
    let failed = Settlement {
        reason: Some(Reason::new("RangeError", &why)),
        ..Settlement::new(delivery.id, delivery.lock, Outcome::Failed)
    };
    store.ask(Ask::Settle(failed), Box::new(|_| ()));
}

/// What becomes of those messages that come next.
#[derive(Default)]
struct Chosen {
    /// They share a frame.
    drawn: Vec<Delivery>,
    /// Their locks have ended while nobody drew them: somebody else may have them.
    stale: Vec<Delivery>,
    /// No frame has room for them.
    unfit: Vec<Delivery>,
}

impl Chosen {
    fn of(unsent: &mut VecDeque<(Delivery, Instant)>, lock: Duration) -> Self {
        let (mut chosen, mut bytes) = (Self::default(), 0);
        while bytes < CONSUME_FRAME_BYTES
            && let Some((delivery, dealt_at)) = unsent.pop_front()
        {
            let size = delivery.value.len();
            if dealt_at.elapsed() >= lock {
                chosen.stale.push(delivery);
            } else if size > CONSUME_MESSAGE_BYTES_MAX {
                chosen.unfit.push(delivery);
            } else if bytes + size > CONSUME_MESSAGE_BYTES_MAX {
                unsent.push_front((delivery, dealt_at));
                break;
            } else {
                bytes += size;
                chosen.drawn.push(delivery);
            }
        }
        chosen
    }
}

/// What a consumer was dealt and its connection has not drawn yet.
struct Supply {
    state: Mutex<State>,
    lock: Duration,
}

#[derive(Default)]
struct State {
    unsent: VecDeque<(Delivery, Instant)>,
    waker: Option<Waker>,
    /// While the stream goes on.
    there: Option<There>,
    over: bool,
}

struct There {
    store: Arc<Store>,
    id: Id,
    _place: WatchPlace,
}

impl Supply {
    /// Takes what the store deals, unless the stream is over.
    fn take(&self, hand: Vec<Handed>) -> Vec<Handed> {
        let mut state = self.state.lock();
        if state.over {
            return hand;
        }
        let now = Instant::now();
        state.unsent.extend(hand.into_iter().map(|handed| (handed.delivery, now)));
        let waker = state.waker.take();
        drop(state);
        if let Some(waker) = waker {
            waker.wake();
        }
        Vec::new()
    }

    /// A frame of what there is; `Ready(None)` at the end.
    fn draw(&self, context: &Context<'_>) -> Polled<Option<Result<Bytes>>> {
        let mut state = self.state.lock();
        let Some(there) = &state.there else { return Polled::Ready(None) };
        let (store, id) = (there.store.clone(), there.id);
        let chosen = Chosen::of(&mut state.unsent, self.lock);
        if chosen.drawn.is_empty() {
            state.waker = Some(context.waker().clone());
        }
        drop(state);
        let Chosen { drawn, stale, unfit } = chosen;
        let frame = write_dealt(drawn.iter()).map(Bytes::from);
        let (sent, lost) = if frame.is_ok() { (drawn.len(), 0) } else { (0, drawn.len()) };
        let returned = stale.len() + unfit.len() + lost;
        if sent + returned > 0 {
            store.sent(id, sent as u64, returned as u64);
        }
        stale.iter().for_each(|delivery| put_back(&store, delivery));
        unfit.iter().for_each(|delivery| fail(&store, delivery));
        if frame.is_err() {
            drawn.iter().for_each(|delivery| put_back(&store, delivery));
        } else if drawn.is_empty() {
            return Polled::Pending;
        }
        Polled::Ready(Some(frame))
    }

    /// The stream is over: what was not drawn goes back.
    fn end(&self) {
        let mut state = self.state.lock();
        let unsent = std::mem::take(&mut state.unsent);
        let (there, waker) = (state.there.take(), state.waker.take());
        state.over = true;
        drop(state);
        if let Some(There { store, id, .. }) = there {
            store.unlisten(id);
            unsent.iter().for_each(|(delivery, _)| put_back(&store, delivery));
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// The store's end of it: dropped when the store has forgotten the consumer.
struct Dealer(Arc<Supply>);

impl Drop for Dealer {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// The body of a consumer's stream.
struct Stream {
    supply: Arc<Supply>,
    opened: Option<Bytes>,
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
        self.signs.poll_tick(context).map(|_| Some(Bytes::from_static(&KEEP_ALIVE)))
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        self.leave.abort();
        self.supply.end();
    }
}

/// Starts to hand out messages.
pub(super) async fn consume(
    serving: &Arc<Serving>,
    database: &Arc<Database>,
    grant: &Grant,
    body: &[u8],
) -> Result<Answer, Refusal> {
    let asked = read_consume(body)?;
    let place = database.take_watch()?;
    let store = store_of(database).await?;
    let lock = Duration::from_millis(asked.lock_ms.unsigned_abs());
    let supply = Arc::new(Supply { state: Mutex::default(), lock });
    let elsewhere = Elsewhere {
        wish: Wish { queue: asked.queue, lock_ms: asked.lock_ms },
        places: asked.places.into(),
        most: asked.concurrency.into(),
    };
    let dealer = Dealer(supply.clone());
    let id = store.listen_for(elsewhere, Box::new(move |hand| dealer.0.take(hand)))?;
    supply.state.lock().there = Some(There { store, id, _place: place });
    let mut leave = Leave::new(serving, database, grant);
    let guarded = supply.clone();
    let leave = tokio::spawn(async move {
        leave.over().await;
        guarded.end();
    });
    let opened = Some(write_opened(id)?.into());
    let stream = Stream { supply, opened, signs: signs(serving), leave: leave.abort_handle() };
    Ok(answer(StatusCode::OK, STREAM_TYPE, Body::Drawn(Box::new(stream))))
}
