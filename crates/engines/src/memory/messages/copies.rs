//! Whole messages in memory, for the replication log and for followers, which repeat it.

use super::{Dead, Messages, Queued, key_of};
use openkv_core::model::{
    DeadLetter, Deduplication, KeptMessage, KeptState, LoggedMessage, Message, Time,
};

/// The message with this number, without its lock.
pub(super) fn read(messages: &Messages, id: i64) -> Option<KeptMessage> {
    if let Some(queued) = messages.live.get(&id) {
        let Queued { message, due_ms, attempts, enqueued_ms, first_ms, last_ms, .. } = queued;
        let state = KeptState::Waiting { due_ms: *due_ms };
        let times = (*enqueued_ms, *first_ms, *last_ms);
        return Some(kept(message, *attempts, times, state));
    }
    let Dead { message, letter, purge_ms } = messages.dead.get(&id)?;
    let state = KeptState::Dead {
        died_ms: letter.died_ms,
        reason: letter.reason.clone(),
        purge_ms: *purge_ms,
    };
    let times = (letter.enqueued_ms, Some(letter.first_ms), Some(letter.last_ms));
    Some(kept(message, letter.attempts, times, state))
}

fn kept(
    message: &Message,
    attempts: u32,
    (enqueued_ms, first_ms, last_ms): (i64, Option<i64>, Option<i64>),
    state: KeptState,
) -> KeptMessage {
    KeptMessage {
        queue: message.queue.clone(),
        priority: message.priority,
        attempts,
        enqueued_ms,
        first_ms,
        last_ms,
        deduplication_key: message.deduplication_key.clone(),
        dead_retention_ms: message.dead_retention_ms,
        backoff_ms: message.backoff_ms.clone(),
        keys_if_undelivered: message.keys_if_undelivered.clone(),
        value: message.value.clone(),
        state,
    }
}

/// Makes messages what the log says. All of them go before any comes, so that a deduplication key can pass
/// from one to another.
pub(super) fn replace(messages: &mut Messages, logged: &[LoggedMessage]) {
    for LoggedMessage { id, .. } in logged {
        if let Some(queued) = messages.take(*id) {
            messages.forget_key(&queued.message);
        }
        messages.take_dead(*id);
    }
    for LoggedMessage { id, kept, .. } in logged {
        if let Some(kept) = kept {
            insert(messages, *id, kept.clone());
        }
    }
}

fn insert(messages: &mut Messages, id: i64, kept: KeptMessage) {
    messages.last_id = messages.last_id.max(id);
    let KeptMessage { attempts, enqueued_ms, first_ms, last_ms, .. } = kept;
    let mut message = Message {
        queue: kept.queue,
        priority: kept.priority,
        due: Time::At(enqueued_ms),
        backoff_ms: kept.backoff_ms,
        keys_if_undelivered: kept.keys_if_undelivered,
        deduplication_key: kept.deduplication_key,
        deduplication: Deduplication::Drop,
        dead_retention_ms: kept.dead_retention_ms,
        schedule: None,
        value: kept.value,
    };
    match kept.state {
        KeptState::Waiting { due_ms } => {
            message.due = Time::At(due_ms);
            if let Some(key) = key_of(&message) {
                messages.keys.insert(key, id);
            }
            let queued = Queued {
                message,
                due_ms,
                lock: 0,
                lock_end_ms: 0,
                attempts,
                enqueued_ms,
                first_ms,
                last_ms,
            };
            messages.put(id, queued);
        }
        KeptState::Dead { died_ms, reason, purge_ms } => {
            let letter = DeadLetter {
                id,
                attempts,
                enqueued_ms,
                first_ms: first_ms.unwrap_or(died_ms),
                last_ms: last_ms.unwrap_or(died_ms),
                died_ms,
                reason,
                value: Vec::new(),
            };
            messages.put_dead(id, Dead { message, letter, purge_ms });
        }
    }
}
