//! Queue messages and their states: waiting, delivered, acknowledged, dead.

use super::{
    DEAD_MESSAGE_BYTES_MAX, DEAD_NAME_BYTES_MAX, Key, LOCK_LENGTH_MASK, QueueRule, ScheduleChange,
    Time,
};

/// A message as it is enqueued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The queue; `""` is Deno's, whose messages become dead letters only if they have a retention.
    pub queue: String,
    /// Higher priorities are delivered first; 0 to [`super::PRIORITY_MAX`].
    pub priority: u8,
    /// When it may first be delivered.
    pub due: Time,
    /// Waiting times before the retries, in ms.
    pub backoff_ms: Vec<u32>,
    /// The keys that receive the value if no retry is left.
    pub keys_if_undelivered: Vec<Key>,
    /// A message is not enqueued while its queue holds one with the same deduplication key.
    pub deduplication_key: Option<String>,
    /// What it does if that key is taken. It is not stored.
    pub deduplication: Deduplication,
    /// Retention of the dead letter, in ms; `None` until a call removes it.
    pub dead_retention_ms: Option<i64>,
    /// With it the message is not enqueued, but set as what each message of a schedule is, or the schedule is
    /// removed. It is not stored.
    pub schedule: Option<Box<ScheduleChange>>,
    /// The value, always CBOR.
    pub value: Vec<u8>,
}

impl Message {
    /// Whether its queue is a named one, rather than Deno's.
    pub fn is_named(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Whether it becomes a dead letter when no retry is left. As in Deno, a message of `kv.enqueue` does not;
    /// other doors to its queue give their messages a retention.
    pub fn is_kept_when_dead(&self) -> bool {
        self.is_named() || self.dead_retention_ms.is_some()
    }
}

/// What a message does whose deduplication key another one has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Deduplication {
    /// It adds nothing.
    #[default]
    Drop,
    /// It takes the place of the other one, with its own value and options but the due time, unless a
    /// consumer has that one: then it is added, and has the key.
    Replace,
    /// As `Replace`, with its own due time.
    Debounce,
    /// If a consumer has the other one, it is added, has the key, and waits until that one has ended. Else it adds
    /// nothing.
    Again,
}

impl Deduplication {
    /// All modes.
    pub const ALL: [Self; 4] = [Self::Drop, Self::Replace, Self::Debounce, Self::Again];

    /// Its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Drop => "drop",
            Self::Replace => "replace",
            Self::Debounce => "debounce",
            Self::Again => "again",
        }
    }
}

/// First character of the deduplication key of a message for whose end another one waits, which has the key.
const AWAITED: char = '\u{1}';

/// The deduplication key of a message for whose end the one that has the key `key` waits.
pub fn awaited_key(key: &str) -> String {
    format!("{AWAITED}{key}")
}

/// A message of which its queue is free: it is gone, or waits again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freed {
    /// The queue that had it.
    pub queue: String,
    /// Its deduplication key.
    pub key: Option<String>,
}

impl Freed {
    /// The deduplication key of the message that waits for its end, if one does.
    pub fn awaited_by(&self) -> Option<&str> {
        self.key.as_deref()?.strip_prefix(AWAITED)
    }

    /// Whether its queue is a named one.
    pub fn is_named(&self) -> bool {
        !self.queue.is_empty()
    }
}

/// The result of an `enqueue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The number of the message, or of the earlier one with its deduplication key; `None` if
    /// messages have no number.
    pub id: Option<i64>,
    /// Whether the queue already held a message with the same deduplication key, so that none was
    /// added. That one may have been replaced.
    pub deduplicated: bool,
}

/// A request for messages of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The queue.
    pub queue: String,
    /// Maximum number of messages.
    pub max: usize,
    /// Duration of the locks, in ms.
    pub lock_ms: i64,
    /// The lock of the deliveries; unique to this claim and not 0.
    pub lock: i64,
}

impl Claim {
    /// A lock for a claim of this duration, from 64 random bits.
    #[must_use]
    pub fn lock_of(random: u64, lock_ms: i64) -> i64 {
        let random = (random >> 1).cast_signed() & !LOCK_LENGTH_MASK;
        (random | lock_ms.clamp(1, LOCK_LENGTH_MASK)).max(1)
    }
}

/// A message delivered to one consumer, and hidden from all others until its lock expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The number of the message in its database.
    pub id: i64,
    /// The lock of the delivery.
    pub lock: i64,
    /// The number of deliveries, including this one.
    pub attempts: u32,
    /// The number of deliveries that can follow this one, if it fails.
    pub attempts_left: u32,
    /// When it was enqueued, in ms since the epoch.
    pub enqueued_ms: i64,
    /// The value, always CBOR.
    pub value: Vec<u8>,
}

/// The number of deliveries that can follow delivery number `attempts`: each failure uses up one of the
/// backoff's intervals.
pub fn attempts_left(intervals: usize, attempts: u32) -> u32 {
    let used = attempts.saturating_sub(1);
    u32::try_from(intervals).unwrap_or(u32::MAX).saturating_sub(used)
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Handled: the message is removed.
    Done,
    /// Failed: it is retried after the next interval of its backoff, or becomes a dead letter.
    Failed,
    /// Failed for good: it becomes a dead letter, however many intervals are left.
    Dead,
    /// Not passed to a handler: it stays pending, and no retry is used up.
    Returned,
    /// As `Done`, and the entry about the message, if its result is kept, says that it is completed, with the value of
    /// the settlement.
    Completed,
    /// Not ended: the entry about its progress has the value of the settlement.
    Progressed,
    /// Removed by a caller, whether a consumer has it or not. Such a settlement names the queue, and no lock.
    Cancelled,
}

/// The error of a consumer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    name: String,
    message: String,
}

impl Reason {
    /// Truncates texts over the limits.
    #[must_use]
    pub fn new(name: &str, message: &str) -> Self {
        Self {
            name: beginning(name, DEAD_NAME_BYTES_MAX).to_owned(),
            message: beginning(message, DEAD_MESSAGE_BYTES_MAX).to_owned(),
        }
    }

    /// The failure of a message whose lock expired.
    #[must_use]
    pub fn lock_expired() -> Self {
        Self::new("LockExpired", "the lock ran out before the consumer said how it ended")
    }

    /// The error's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The error's message.
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The text, truncated at a character boundary to at most so many bytes.
fn beginning(text: &str, bytes_max: usize) -> &str {
    let fits = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end));
    if text.len() <= bytes_max { text } else { text.get(..fits.unwrap_or(0)).unwrap_or("") }
}

/// The end of one delivery, to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The message's number.
    pub id: i64,
    /// The lock of the delivery; a message with another lock stays as it is.
    pub lock: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// After a failure: the delay until the retry, instead of the backoff's next interval.
    pub delay_ms: Option<i64>,
    /// After a failure: the error.
    pub reason: Option<Reason>,
    /// Of a message that is cancelled: its queue.
    pub queue: Option<String>,
    /// The result or the progress, in CBOR.
    pub value: Option<Vec<u8>>,
}

impl Settlement {
    /// A settlement without a delay and an error.
    #[must_use]
    pub fn new(id: i64, lock: i64, outcome: Outcome) -> Self {
        Self { id, lock, outcome, delay_ms: None, reason: None, queue: None, value: None }
    }

    /// The removal of a message of a queue.
    #[must_use]
    pub fn cancelled(queue: &str, id: i64) -> Self {
        Self { queue: Some(queue.to_owned()), ..Self::new(id, 0, Outcome::Cancelled) }
    }
}

/// The extension of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The message's number.
    pub id: i64,
    /// The lock of the delivery.
    pub lock: i64,
    /// The new duration of the lock, from now, in ms.
    pub lock_ms: i64,
}

/// A message that a write acknowledges, if this lock holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ack {
    /// The message's number.
    pub id: i64,
    /// The lock of the delivery.
    pub lock: i64,
}

/// A request about a delivered message, from its consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// The delivery has ended.
    Settle(Settlement),
    /// The lock is extended.
    Extend(Renewal),
}

/// The number of messages of a queue in each state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Due and not delivered.
    pub pending: u64,
    /// Not due yet.
    pub delayed: u64,
    /// Delivered, with a lock that has not expired.
    pub processing: u64,
    /// Dead letters.
    pub dead: u64,
    /// Whether the queue is paused.
    pub paused: bool,
}

/// The state of a message that is not dead.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum MessageState {
    /// Due, and without a consumer whose lock holds.
    Pending,
    /// Not due yet.
    Delayed,
    /// Delivered, with a lock that has not expired.
    Processing,
}

impl MessageState {
    /// All states.
    pub const ALL: [Self; 3] = [Self::Pending, Self::Delayed, Self::Processing];

    /// Its name in the API.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delayed => "delayed",
            Self::Processing => "processing",
        }
    }
}

/// A dead letter: a message that has failed and has no retry left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The number of the former message.
    pub id: i64,
    /// The number of deliveries.
    pub attempts: u32,
    /// When it was enqueued, in ms since the epoch.
    pub enqueued_ms: i64,
    /// When it was first delivered, in ms since the epoch.
    pub first_ms: i64,
    /// When it was last delivered, in ms since the epoch.
    pub last_ms: i64,
    /// When it died, in ms since the epoch.
    pub died_ms: i64,
    /// The error of its last delivery.
    pub reason: Reason,
    /// The value, always CBOR.
    pub value: Vec<u8>,
}

/// An operation on the dead letters of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadLetterChange {
    /// Enqueues the dead letter with this number again, as a new message.
    Requeue(i64),
    /// Enqueues those that died before a time again, up to a number, those that died first.
    RequeueAll {
        /// In ms since the epoch.
        before_ms: i64,
        /// Maximum number to enqueue.
        max: usize,
    },
    /// Deletes the dead letter with this number.
    Delete(i64),
    /// Deletes those that died before a time, up to a number.
    Purge {
        /// In ms since the epoch.
        before_ms: i64,
        /// Maximum number to delete.
        max: usize,
    },
}

impl DeadLetterChange {
    /// Whether it enqueues messages.
    pub fn requeues(&self) -> bool {
        match self {
            Self::Requeue(_) | Self::RequeueAll { .. } => true,
            Self::Delete(_) | Self::Purge { .. } => false,
        }
    }
}

/// The queue of the marks of paused queues. A mark is a message whose deduplication key is the name of the paused
/// queue, so logs, replicas and archives have it. No consumer may take one.
pub const PAUSED_QUEUES: &str = "\u{1}paused";

/// A message of [`PAUSED_QUEUES`]: `queue` is paused while the database has it.
#[must_use]
pub fn mark_of_paused(queue: &str, now_ms: i64) -> Message {
    Message {
        queue: PAUSED_QUEUES.to_owned(),
        due: Time::At(now_ms),
        deduplication_key: Some(queue.to_owned()),
        // CBOR's null.
        value: vec![0xf6],
        ..Message::default()
    }
}

/// The first part of the keys of the entries about messages whose results are kept.
pub const JOB_ENTRIES: &str = "openkv:jobs";

/// The line of the context of a message that says for how many ms its result is kept.
pub const KEEP_RESULT: &str = "openkv-keep-result";

/// A change of a queue that no consumer makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueChange {
    /// From now on it delivers no message.
    Pause,
    /// It delivers messages again.
    Resume,
    /// Deletes messages that wait, up to a number. They leave no dead letters.
    Drain {
        /// Only those that were enqueued until then, in ms since the epoch.
        until_ms: i64,
        /// Also those that are not due yet.
        delayed: bool,
        /// Maximum number to delete.
        max: usize,
    },
    /// It has these limits from now on.
    Limit(QueueRule),
}

/// The result of a [`QueueChange`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct QueueChanged {
    /// The messages that it has deleted; for `Pause` and `Resume` the mark, unless nothing has changed.
    pub ids: Vec<i64>,
    /// The last commit before it, and the last one after it.
    pub versions: (u64, u64),
}

/// The result of deleting a message that no consumer has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MessageDeletion {
    /// The message is deleted.
    Deleted,
    /// A consumer has the message, and its lock holds.
    Locked,
    /// The queue has no such message.
    Absent,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_reasons_are_truncated_between_characters() {
        let long = "é".repeat(DEAD_NAME_BYTES_MAX);
        let reason = Reason::new(&long, "short");
        assert_eq!(reason.name().len(), DEAD_NAME_BYTES_MAX);
        let odd = Reason::new(&format!("a{long}"), "short");
        assert_eq!(odd.name().len(), DEAD_NAME_BYTES_MAX - 1);
        assert_eq!(odd.message(), "short");
    }
}
