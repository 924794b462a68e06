//! The schedules of queues in a transaction: set, removed, and fired at their due times.
//!
//! Duty: turns a due time into messages, and moves the schedule to its next due time, in one transaction.
//! Invariant: each due time gives its messages once, whichever process carries it out.
//! Never: a clock; the form in which an engine keeps messages.

use super::transaction::{LockedMessage, MessageTable, Placed};
use super::turns::Turns;
use crate::codec::message_context;
use crate::codec::schedule::{self, KeptSchedule};
use crate::model::{
    Claim, Deduplication, Encoding, Enqueued, Firing, KeptMessage, KeptState, Message, Result,
    SCHEDULE_FIRES_MAX, SCHEDULE_UNREADABLE_MS, SCHEDULES_QUEUE, Schedule, ScheduleChange, Time,
    schedule_key,
};

/// Locks the schedules that are due, inside one transaction.
const FIRING_LOCK: i64 = i64::MAX;

/// Sets or removes a schedule. `message`: what each of its messages is, with the queue. The result says that nothing
/// was added if nothing has changed.
pub(super) fn change(
    messages: &mut impl MessageTable,
    message: Message,
    change: ScheduleChange,
    now_ms: i64,
) -> Result<Placed> {
    let key = schedule_key(&message.queue, change.name());
    let earlier = messages.with_key(SCHEDULES_QUEUE, &key)?;
    match change {
        ScheduleChange::Remove(_) => {
            let Some(id) = earlier else { return Ok(Placed::only(None, true)) };
            messages.remove_dead(&kept_at(id), None, now_ms)?;
            Ok(Placed {
                enqueued: Enqueued { id: Some(id), deduplicated: false },
                changed: Some(id),
            })
        }
        ScheduleChange::Set(schedule) => {
            let kept = match earlier {
                Some(id) => messages.kept(&[id])?.pop().flatten().map(|kept| (id, kept)),
                None => None,
            };
            let fired_ms = kept.as_ref().and_then(|(_, kept)| kept.last_ms);
            let mut row = row_of(&schedule, message, key);
            if let Some((id, kept)) = &kept
                && is_same(kept, &row)
            {
                return Ok(Placed::only(Some(*id), true));
            }
            // A due time that has given its message gives none again, also if the clock was set back.
            let first_ms = schedule.first_after(now_ms.max(fired_ms.unwrap_or(now_ms)))?;
            row.due = Time::At(first_ms);
            let id = messages.enqueue(row, now_ms)?.enqueued.id;
            Ok(Placed { enqueued: Enqueued { id, deduplicated: false }, changed: earlier })
        }
    }
}

/// What [`fire`] has done.
#[derive(Debug, Default)]
pub(super) struct Fired {
    /// The schedules and the messages that have changed.
    pub(super) changed: Vec<i64>,
    /// The number of messages that were made.
    pub(super) messages: usize,
    /// The number of schedules that were due.
    pub(super) schedules: usize,
}

/// Makes the messages of the schedules that are due, at most about [`SCHEDULE_FIRES_MAX`]. Later calls make the
/// others.
pub(super) fn fire(messages: &mut impl MessageTable, now_ms: i64) -> Result<Fired> {
    let claim = Claim {
        queue: SCHEDULES_QUEUE.to_owned(),
        max: SCHEDULE_FIRES_MAX,
        lock_ms: 1,
        lock: FIRING_LOCK,
    };
    let due = messages.claim(&claim, now_ms)?;
    let ids: Vec<i64> = due.iter().map(|delivery| delivery.id).collect();
    let mut fired = Fired { schedules: ids.len(), ..Fired::default() };
    let kept = messages.kept(&ids)?;
    for (id, kept) in ids.into_iter().zip(kept) {
        let Some(kept) = kept else { continue };
        fired.changed.push(id);
        let KeptState::Waiting { due_ms } = kept.state else { continue };
        let room = SCHEDULE_FIRES_MAX.saturating_sub(fired.messages).max(1);
        let Ok(of) = schedule::decode(&kept.value) else {
            messages.retry(&kept_at(id), now_ms.saturating_add(SCHEDULE_UNREADABLE_MS))?;
            continue;
        };
        let Firing { due_ms, next_ms } = of.schedule.fire(due_ms, now_ms, room);
        for due_ms in due_ms {
            let message = message_of(&kept, &of, due_ms);
            let mut turns = Turns::of(messages, now_ms);
            let Placed { enqueued, changed } = turns.enqueue(message)?;
            fired.changed.append(&mut turns.changed);
            let added = enqueued.id.filter(|_| !enqueued.deduplicated);
            fired.changed.extend(changed.into_iter().chain(added));
            fired.messages += 1;
        }
        match next_ms {
            Some(next_ms) => messages.retry(&kept_at(id), next_ms)?,
            None => messages.remove_dead(&kept_at(id), None, now_ms)?,
        }
    }
    Ok(fired)
}

/// The message that keeps a schedule, without its due time.
fn row_of(schedule: &Schedule, message: Message, key: String) -> Message {
    let value = schedule::encode(schedule, &message);
    Message {
        queue: SCHEDULES_QUEUE.to_owned(),
        deduplication_key: Some(key),
        deduplication: Deduplication::Debounce,
        schedule: None,
        value,
        ..message
    }
}

/// Whether a kept schedule is this one.
fn is_same(kept: &KeptMessage, row: &Message) -> bool {
    kept.priority == row.priority
        && kept.backoff_ms == row.backoff_ms
        && kept.keys_if_undelivered == row.keys_if_undelivered
        && kept.dead_retention_ms == row.dead_retention_ms
        && kept.value == row.value
}

/// The message of a due time.
fn message_of(kept: &KeptMessage, of: &KeptSchedule, due_ms: i64) -> Message {
    let lines = message_context::schedule_lines(of.schedule.name(), due_ms);
    Message {
        queue: of.queue.clone(),
        priority: kept.priority,
        due: Time::At(due_ms),
        backoff_ms: kept.backoff_ms.clone(),
        keys_if_undelivered: kept.keys_if_undelivered.clone(),
        deduplication_key: of.deduplication_key.clone(),
        deduplication: of.deduplication,
        dead_retention_ms: kept.dead_retention_ms,
        schedule: None,
        value: message_context::with_lines(&lines, &of.value),
    }
}

/// The message that keeps a schedule, as the methods of a table name it.
fn kept_at(id: i64) -> LockedMessage {
    let message = Message { queue: SCHEDULES_QUEUE.to_owned(), ..Message::default() };
    LockedMessage { id, attempts: 0, lock_end_ms: 0, message, encoding: Encoding::Cbor }
}
