//! The consumers that a handle has: listeners, and those who ask for one message.

use std::collections::HashMap;
use std::sync::Arc;

use napi_derive::napi;
use parking_lot::Mutex;

use super::events::{Event, Events};
use super::handle::{Handle, cut, number};
use super::replies::Reply;
use crate::backend::Database;
use crate::codec::frame::{parse_queue, parse_reason, push_deliveries, push_received};
use crate::model::{
    CONCURRENCY_MAX, DEAD_LIST_MAX, DEAD_PURGE_ROWS_MAX, DEAD_RETENTION_MS_MAX,
    DEDUPLICATION_KEY_BYTES_MAX, Delivery, Error, LOCK_DURATION_MS_MAX, LOCK_DURATION_MS_MIN,
    LOCK_MS, Outcome, PRIORITY_MAX, QUEUE_NAME_BYTES_MAX, RECEIVE_WAIT_MS_MAX,
};
use crate::store::{Handed, Id, Wish};

/// By the numbers of JavaScript.
#[derive(Default)]
pub(super) struct Consumers {
    listeners: HashMap<u64, (Id, Arc<Ended>)>,
    receivers: Arc<Mutex<HashMap<u64, Id>>>,
}

/// Whether LISTEN_END has been sent; no DELIVERY may follow it, for nobody would settle it.
#[derive(Default)]
struct Ended(Mutex<bool>);

impl Ended {
    fn end(&self, events: &Events, id: f64) {
        let mut ended = self.0.lock();
        if !std::mem::replace(&mut *ended, true) {
            events.send(Event::ListenEnd, id, None);
        }
    }

    fn fail(&self, events: &Events, id: f64, error: &Error) {
        let mut ended = self.0.lock();
        if !std::mem::replace(&mut *ended, true) {
            events.send_error(Event::ListenEnd, id, error);
        }
    }
}

impl Consumers {
    /// Ends all: LISTEN_END for listeners, the error of a closed handle for the others. What
    /// listeners of a database here handle may still be settled; elsewhere LISTEN_END comes when
    /// what they have settled is told to the server.
    pub(super) fn close(&self, events: &Events, database: &Database) {
        let receivers: Vec<Id> = self.receivers.lock().drain().map(|(_, id)| id).collect();
        let store = match database {
            Database::Remote(client) => return client.close_consumers(),
            Database::Store(store) => store,
        };
        for (id, (listener, ended)) in &self.listeners {
            store.unlisten(*listener);
            ended.end(events, *id as f64);
        }
        for receiver in receivers {
            store.receive_cancel(receiver);
        }
    }
}

fn wish(queue: &[u8], lock_ms: f64) -> Result<Wish, Error> {
    let queue = parse_queue(queue).map_err(|bug| Error::internal(bug.to_string()))?;
    Ok(Wish { queue, lock_ms: lock_ms as i64 })
}

#[napi]
impl Handle {
    /// Becomes a consumer of a queue; DELIVERY as often as there are messages, then LISTEN_END.
    #[napi(catch_unwind)]
    pub fn listen(&mut self, id: f64, credits: u32, lock_ms: f64, queue: &[u8], len: u32) {
        let events = self.events.clone();
        let ended = Arc::new(Ended::default());
        let (gate, over, told) = (ended.clone(), ended.clone(), events.clone());
        let deliver = move |hand: Vec<Handed>| {
            let ended = gate.0.lock();
            if *ended {
                return hand;
            }
            let mut frame = Vec::new();
            let deliveries = hand.iter().map(|handed| (handed.number, &handed.delivery));
            push_deliveries(&mut frame, deliveries);
            events.send(Event::Delivery, id, Some(frame));
            Vec::new()
        };
        let wish = wish(cut(queue, len), lock_ms);
        let database = wish.and_then(|wish| Ok((wish, self.database()?)));
        let listening = match database {
            Ok((wish, Database::Store(store))) => {
                let lost = move |error| over.fail(&told, id, &error);
                store.listen_until(wish, credits as usize, Box::new(deliver), Box::new(lost))
            }
            Ok((wish, Database::Remote(client))) => {
                let over = move |why: Result<(), Error>| match why {
                    Ok(()) => over.end(&told, id),
                    Err(error) => over.fail(&told, id, &error),
                };
                client.listen(wish, credits, Box::new(deliver), Box::new(over))
            }
            Err(error) => Err(error),
        };
        match listening {
            Ok(listener) => {
                self.consumers.listeners.insert(number(id), (listener, ended));
            }
            Err(error) => self.events.send_error(Event::ListenEnd, id, &error),
        }
    }

    /// A delivery has ended: 0 done, 1 failed, 2 unseen. `reason` is why it failed, or empty.
    #[napi(catch_unwind)]
    pub fn settle(&mut self, id: f64, delivery: f64, outcome: u32, reason: &[u8], len: u32) {
        let outcome = match outcome {
            0 => Outcome::Done,
            1 => Outcome::Failed,
            _ => Outcome::Returned,
        };
        let reason = parse_reason(cut(reason, len)).ok();
        let Some((listener, _)) = self.consumers.listeners.get(&number(id)) else { return };
        match self.to_settle() {
            Some(Database::Store(store)) => {
                store.settle(*listener, delivery as i64, outcome, reason);
            }
            Some(Database::Remote(client)) => {
                client.settle(*listener, delivery as i64, outcome, reason);
            }
            None => {}
        }
    }

    /// Stops consuming; LISTEN_END. What is being handled may still be settled.
    #[napi(catch_unwind)]
    pub fn unlisten(&mut self, id: f64) {
        let Some((listener, ended)) = self.consumers.listeners.get(&number(id)) else { return };
        match self.to_settle() {
            Some(Database::Store(store)) => store.stop_listening(*listener),
            Some(Database::Remote(client)) => client.unlisten(*listener),
            None => return,
        }
        ended.end(&self.events, id);
    }

    /// Everything of a listener that has ended is settled.
    #[napi(catch_unwind)]
    pub fn forget_listener(&mut self, id: f64) {
        self.consumers.listeners.remove(&number(id));
    }

    /// Asks for one message of a queue, with `once` for one that is there now: REPLIED with it,
    /// without anything if there is none, or CALL_FAILED.
    #[napi(catch_unwind)]
    pub fn receive(&mut self, id: f64, lock_ms: f64, once: bool, queue: &[u8], len: u32) {
        let reply = Reply::new(self.events.clone(), id, Event::Replied, Event::CallFailed);
        let asked =
            wish(cut(queue, len), lock_ms).and_then(|wish| Ok((wish, self.database()?.clone())));
        let (wish, database) = match asked {
            Ok(asked) => asked,
            Err(error) => return reply.bad(&error),
        };
        let receiver = match &database {
            Database::Store(store) => store.new_receiver(),
            Database::Remote(client) => client.new_receiver(),
        };
        let receivers = self.consumers.receivers.clone();
        receivers.lock().insert(number(id), receiver);
        let answer = move |received: Result<Option<Delivery>, Error>| {
            // Closing has taken out all of those that were still waiting.
            let waited = receivers.lock().remove(&number(id)).is_some();
            match received {
                Ok(Some(delivery)) => {
                    let mut frame = Vec::new();
                    push_received(&mut frame, &delivery);
                    reply.good(Some(frame));
                }
                Ok(None) if waited => reply.good(None),
                Ok(None) => reply.bad(&Error::closed()),
                Err(error) => reply.bad(&error),
            }
        };
        match database {
            Database::Store(store) => store.receive(receiver, wish, once, Box::new(answer)),
            Database::Remote(client) => client.receive(receiver, wish, once, Box::new(answer)),
        }
    }

    /// Waits no longer for a message: REPLIED without one, unless one is on its way already.
    #[napi(catch_unwind)]
    pub fn receive_cancel(&mut self, id: f64) {
        let receiver = self.consumers.receivers.lock().get(&number(id)).copied();
        match (receiver, self.to_settle()) {
            (Some(receiver), Some(Database::Store(store))) => store.receive_cancel(receiver),
            (Some(receiver), Some(Database::Remote(client))) => client.receive_cancel(receiver),
            _ => {}
        }
    }
}

/// The bounds that JavaScript checks arguments with.
pub(super) fn bounds() -> impl Iterator<Item = (&'static str, f64)> {
    [
        ("queueNameBytesMax", QUEUE_NAME_BYTES_MAX as f64),
        ("deduplicationKeyBytesMax", DEDUPLICATION_KEY_BYTES_MAX as f64),
        ("priorityMax", PRIORITY_MAX.into()),
        ("lockMs", LOCK_MS as f64),
        ("lockDurationMsMin", LOCK_DURATION_MS_MIN.into()),
        ("lockDurationMsMax", LOCK_DURATION_MS_MAX.into()),
        ("concurrencyMax", CONCURRENCY_MAX.into()),
        ("receiveWaitMsMax", RECEIVE_WAIT_MS_MAX.into()),
        ("deadRetentionMsMax", DEAD_RETENTION_MS_MAX as f64),
        ("deadListMax", DEAD_LIST_MAX.into()),
        ("deadPurgeRowsMax", DEAD_PURGE_ROWS_MAX as f64),
    ]
    .into_iter()
}
