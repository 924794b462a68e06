//! The methods of a handle that consume queues: `listen`, `receive`, and the ends of deliveries.

use std::sync::Arc;

use napi_derive::napi;

use super::consumers::Ended;
use super::events::{Event, Reply};
use super::handle::{Handle, cut, number};
use crate::model::{
    CONCURRENCY_LIMIT_MAX, CONCURRENCY_MAX, ConsumeOptions, DEAD_LIST_MAX, DEAD_PURGE_ROWS_MAX,
    DEAD_REQUEUE_ROWS_MAX, DEAD_RETENTION_MS_MAX, DEDUPLICATION_KEY_BYTES_MAX, Delivery,
    Dispatched, Error, GROUPS_LIST_MAX, LOCK_DURATION_MS_MAX, LOCK_DURATION_MS_MIN, LOCK_MS,
    MESSAGE_CONTEXT_BYTES_MAX, MESSAGE_GROUP_BYTES_MAX, Outcome, PEEK_MAX, PRIORITY_MAX,
    QUEUE_NAME_BYTES_MAX, RECEIVE_WAIT_MS_MAX, SCHEDULE_NAME_BYTES_MAX, SCHEDULES_LIST_MAX,
};
use crate::protocol::frame::{frame_of, parse_queue, parse_reason, push_deliveries, push_received};
use crate::protocol::numbers::outcome;

fn options(queue: &[u8], lock_ms: f64) -> Result<ConsumeOptions, Error> {
    let queue = parse_queue(queue).map_err(|bug| Error::internal(bug.to_string()))?;
    Ok(ConsumeOptions { queue, lock_ms: lock_ms as i64 })
}

#[napi]
impl Handle {
    /// Adds a consumer of a queue; sends DELIVERY for messages, then LISTEN_END.
    #[napi(catch_unwind)]
    pub fn listen(&mut self, id: f64, credits: u32, lock_ms: f64, queue: &[u8], len: u32) {
        let events = self.events.clone();
        let ended = Arc::new(Ended::default());
        let (gate, over, ends) = (ended.clone(), ended.clone(), events.clone());
        let deliver = move |hand: Vec<Dispatched>| {
            let ended = gate.lock();
            if *ended {
                return hand;
            }
            let deliveries = hand.iter().map(|handed| (handed.number, &handed.delivery));
            let frame = frame_of(|out| push_deliveries(out, deliveries));
            events.send(Event::Delivery, id, Some(frame));
            Vec::new()
        };
        let options = options(cut(queue, len), lock_ms);
        let over = move |why| over.end(&ends, id, why);
        let (gate, events) = (ended.clone(), self.events.clone());
        let lost = move |number: i64| {
            // As DELIVERY, it never follows LISTEN_END.
            let ended = gate.lock();
            if !*ended {
                events.send(Event::LockLost, id, Some((number as f64).to_le_bytes().to_vec()));
            }
        };
        let listening = options.and_then(|options| {
            self.database()?.listen(options, credits, Box::new(deliver), Box::new(over))
        });
        match listening {
            Ok(listener) => {
                if let Ok(database) = self.database() {
                    database.on_lock_lost(listener, Arc::new(lost));
                }
                self.consumers.listeners.insert(number(id), (listener, ended));
            }
            Err(error) => self.events.send_error(Event::ListenEnd, id, &error),
        }
    }

    /// Settles a delivery: 0 done, 1 failed, 2 unseen, 3 acknowledged by a commit, 4 dead. `reason` is the
    /// error of a failure, or empty.
    #[napi(catch_unwind)]
    pub fn settle(&mut self, id: f64, delivery: f64, outcome: u32, reason: &[u8], len: u32) {
        let Some((listener, _)) = self.consumers.listeners.get(&number(id)) else { return };
        let Some(database) = self.to_settle() else { return };
        let outcome = match u8::try_from(outcome) {
            Ok(outcome::DONE) => Outcome::Done,
            Ok(outcome::FAILED) => Outcome::Failed,
            Ok(outcome::DEAD) => Outcome::Dead,
            Ok(outcome::ACKNOWLEDGED) => return database.release(*listener, delivery as i64),
            _ => Outcome::Returned,
        };
        let reason = parse_reason(cut(reason, len)).ok();
        database.settle(*listener, delivery as i64, outcome, reason);
    }

    /// Stops consuming; LISTEN_END. Messages in a handler can still be settled.
    #[napi(catch_unwind)]
    pub fn unlisten(&mut self, id: f64) {
        let Some((listener, ended)) = self.consumers.listeners.get(&number(id)) else { return };
        let Some(database) = self.to_settle() else { return };
        database.stop_listening(*listener);
        ended.end(&self.events, id, Ok(()));
    }

    /// Gives up the messages of a stopped listener: their locks are renewed no more.
    #[napi(catch_unwind)]
    pub fn give_up(&mut self, id: f64) {
        let Some((listener, _)) = self.consumers.listeners.get(&number(id)) else { return };
        if let Some(database) = self.to_settle() {
            database.unlisten(*listener);
        }
    }

    /// Removes an ended listener without unsettled deliveries.
    #[napi(catch_unwind)]
    pub fn forget_listener(&mut self, id: f64) {
        self.consumers.listeners.remove(&number(id));
    }

    /// Requests one message of a queue; with `once`, only a message that is due now. REPLIED with
    /// the message, or without bytes if there is none; or CALL_FAILED.
    #[napi(catch_unwind)]
    pub fn receive(&mut self, id: f64, lock_ms: f64, once: bool, queue: &[u8], len: u32) {
        let reply = Reply::new(self.events.clone(), id, Event::Replied, Event::CallFailed);
        let checked = options(cut(queue, len), lock_ms)
            .and_then(|options| Ok((options, self.database()?.clone())));
        let (options, database) = match checked {
            Ok(checked) => checked,
            Err(error) => return reply.bad(&error),
        };
        let receiver = database.new_receiver();
        let receivers = self.consumers.receivers.clone();
        receivers.lock().insert(number(id), receiver);
        let answer = move |received: Result<Option<Delivery>, Error>| {
            // Closing has removed all receivers that still waited.
            let waited = receivers.lock().remove(&number(id)).is_some();
            match received {
                Ok(Some(delivery)) => {
                    reply.good(Some(frame_of(|out| push_received(out, &delivery))));
                }
                Ok(None) if waited => reply.good(None),
                Ok(None) => reply.bad(&Error::closed()),
                Err(error) => reply.bad(&error),
            }
        };
        database.receive(receiver, options, once, Box::new(answer));
    }

    /// Ends the wait for a message: REPLIED without one, unless one is already on its way.
    #[napi(catch_unwind)]
    pub fn receive_cancel(&mut self, id: f64) {
        let receiver = self.consumers.receivers.lock().get(&number(id)).copied();
        if let (Some(receiver), Some(database)) = (receiver, self.to_settle()) {
            database.receive_cancel(receiver);
        }
    }
}

/// The bounds with which JavaScript checks arguments.
pub(super) fn bounds() -> impl Iterator<Item = (&'static str, f64)> {
    [
        ("queueNameBytesMax", QUEUE_NAME_BYTES_MAX as f64),
        ("scheduleNameBytesMax", SCHEDULE_NAME_BYTES_MAX as f64),
        ("schedulesListMax", f64::from(SCHEDULES_LIST_MAX)),
        ("messageGroupBytesMax", MESSAGE_GROUP_BYTES_MAX as f64),
        ("concurrencyLimitMax", f64::from(CONCURRENCY_LIMIT_MAX)),
        ("groupsListMax", f64::from(GROUPS_LIST_MAX)),
        ("deduplicationKeyBytesMax", DEDUPLICATION_KEY_BYTES_MAX as f64),
        ("messageContextBytesMax", MESSAGE_CONTEXT_BYTES_MAX as f64),
        ("priorityMax", PRIORITY_MAX.into()),
        ("lockMs", LOCK_MS as f64),
        ("lockDurationMsMin", LOCK_DURATION_MS_MIN.into()),
        ("lockDurationMsMax", LOCK_DURATION_MS_MAX.into()),
        ("concurrencyMax", CONCURRENCY_MAX.into()),
        ("receiveWaitMsMax", RECEIVE_WAIT_MS_MAX.into()),
        ("deadRetentionMsMax", DEAD_RETENTION_MS_MAX as f64),
        ("deadListMax", DEAD_LIST_MAX.into()),
        ("peekMax", PEEK_MAX.into()),
        ("deadPurgeRowsMax", DEAD_PURGE_ROWS_MAX as f64),
        ("deadRequeueRowsMax", DEAD_REQUEUE_ROWS_MAX as f64),
    ]
    .into_iter()
}
