//! Updates of a remote consumer's locks: ends, renewals and credits.

use std::sync::Arc;

use parking_lot::Mutex;

use super::queue::bound;
use super::{Call, Reply};
use crate::remote_number;
use openkv_core::model::{Error, LOCK_UPDATE_ITEMS_MAX};
use openkv_wire::protocol::frame::{parse_lock_update, parse_number};

/// Answer: u8 for each end and renewal, whether the lock still held.
///
/// A repetition changes nothing more: a lock belongs to one delivery, and credits are
/// counted from the stream's beginning.
pub(super) fn lock_update(frame: &[u8], call: Call) {
    let update = parse_lock_update(frame, LOCK_UPDATE_ITEMS_MAX);
    let Some((update, Call { store, reply, limits, .. })) = call.parsed(update) else { return };
    // Settling a message frees its credit, so one transaction does both.
    store.grant(update.stream, update.granted);
    let gathering = Gathering::new(update.asks.len(), reply);
    for (at, mut ask) in update.asks.into_iter().enumerate() {
        bound(&mut ask, &limits);
        let gathering = gathering.clone();
        store.ask(ask, Box::new(move |held| gathering.add(at, held)));
    }
}

/// Ends the stream or the wait of that number. The answer of that request says which messages were on
/// their way.
pub(super) fn consume_end(frame: &[u8], call: Call) {
    let Some((number, call)) = call.parsed(parse_number(frame)) else { return };
    let number = remote_number(number);
    call.store.receive_cancel(number);
    call.store.unlisten(number);
    call.reply.good(Vec::new());
}

/// Answers without bytes, once all settlements before it are durable.
pub(super) fn acknowledged(_frame: &[u8], call: Call) {
    let Call { store, reply, .. } = call;
    store.acknowledged(Box::new(move || reply.good(Vec::new())));
}

/// Collects single answers until all are complete.
struct Gathering(Mutex<State>);

struct State {
    held: Vec<u8>,
    left: usize,
    failure: Option<Error>,
    reply: Option<Reply>,
}

impl Gathering {
    fn new(count: usize, reply: Reply) -> Arc<Self> {
        let held = vec![0; count];
        let mut state = State { held, left: count, failure: None, reply: Some(reply) };
        state.finish();
        Arc::new(Self(Mutex::new(state)))
    }

    fn add(&self, at: usize, held: Result<bool, Error>) {
        let mut state = self.0.lock();
        match held {
            Ok(held) => state.held.get_mut(at).into_iter().for_each(|place| *place = held.into()),
            Err(error) => state.failure = Some(error),
        }
        state.left = state.left.saturating_sub(1);
        state.finish();
    }
}

impl State {
    fn finish(&mut self) {
        if self.left > 0 {
            return;
        }
        let Some(reply) = self.reply.take() else { return };
        match self.failure.take() {
            None => reply.good(std::mem::take(&mut self.held)),
            Some(error) => reply.bad(error),
        }
    }
}
