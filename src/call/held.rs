//! What consumers at a distance tell of the messages that they have: ends, renewals, free places.

use std::sync::Arc;

use parking_lot::Mutex;

use super::{Call, Reply};
use crate::codec::frame::{parse_held, parse_number};
use crate::model::{Ask, Error, HELD_ITEMS_MAX, LOCK_DURATION_MS_MAX};
use crate::store::number_elsewhere;

/// Answer: u8 for each end and renewal, whether the lock still held.
///
/// Saying all of it again changes nothing more: a lock is one delivery's alone, and places are
/// counted from the stream's beginning.
pub(super) fn held(frame: &[u8], call: Call) {
    let told = match parse_held(frame, HELD_ITEMS_MAX) {
        Ok(told) => told,
        Err(bug) => return call.reply.bad(bug),
    };
    let Call { store, reply, limits, .. } = call;
    let most_ms = i64::try_from(limits.delay_ms_max).unwrap_or(i64::MAX);
    // The place of a message is free from its end on, so that one transaction has both.
    store.grant(told.stream, told.granted);
    let gathering = Gathering::new(told.asks.len(), reply);
    for (at, mut ask) in told.asks.into_iter().enumerate() {
        match &mut ask {
            Ask::Settle(end) => end.delay_ms = end.delay_ms.map(|ms| ms.min(most_ms)),
            Ask::Extend(renewal) => {
                renewal.lock_ms = renewal.lock_ms.clamp(0, LOCK_DURATION_MS_MAX.into());
            }
        }
        let gathering = gathering.clone();
        store.ask(ask, Box::new(move |held| gathering.add(at, held)));
    }
}

/// Ends the stream or the wait of that number, whose own answer says what was on its way.
pub(super) fn consume_end(frame: &[u8], Call { store, reply, .. }: Call) {
    match parse_number(frame) {
        Ok(number) => {
            let number = number_elsewhere(number);
            store.receive_cancel(number);
            store.unlisten(number);
            reply.good(Vec::new());
        }
        Err(bug) => reply.bad(bug),
    }
}

/// Answers that come one by one, until all are there.
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
