//! Queue messages and their states: waiting, delivered, acknowledged, dead.

use super::{DEAD_MESSAGE_BYTES_MAX, DEAD_NAME_BYTES_MAX, Key};

/// A message as it is enqueued.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Message {
    /// The queue; `""` is Deno's, which has no dead messages.
    pub queue: String,
    /// Higher ones come first, 0 to [`super::PRIORITY_MAX`].
    pub priority: u8,
    /// When it may first be delivered, in ms since the epoch.
    pub due_ms: i64,
    /// Waiting times before the retries, in ms.
    pub backoff_ms: Vec<u32>,
    /// The keys that get its value when no retry is left.
    pub keys_if_undelivered: Vec<Key>,
    /// A message is not enqueued while its queue holds one with the same deduplication key.
    pub deduplication_key: Option<String>,
    /// How long a dead letter is kept, in ms; `None`: until it is removed by a call.
    pub dead_retention_ms: Option<i64>,
    /// The value, always CBOR.
    pub value: Vec<u8>,
}

impl Message {
    /// Whether its queue is a named one, rather than Deno's.
    #[must_use]
    pub fn is_named(&self) -> bool {
        !self.queue.is_empty()
    }
}

/// The result of an `enqueue`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// The number of the message, or of the earlier one with its deduplication key; `None` where
    /// messages have no number.
    pub id: Option<i64>,
    /// Whether the queue already held a message with its deduplication key, so that none was added.
    pub deduplicated: bool,
}

/// A request for messages of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The queue.
    pub queue: String,
    /// Most messages to deliver.
    pub max: usize,
    /// How long they are hidden from others, in ms.
    pub lock_ms: i64,
    /// The lock of their deliveries; unique for this claim, and not 0.
    pub lock: i64,
}

/// A message delivered to one consumer, and hidden from all others until its lock expires.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message's number in its database.
    pub id: i64,
    /// The lock of the delivery.
    pub lock: i64,
    /// How often it was delivered, this delivery included.
    pub attempts: u32,
    /// When it was enqueued, in ms since the epoch.
    pub enqueued_ms: i64,
    /// The value, always CBOR.
    pub value: Vec<u8>,
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Handled: the message is removed.
    Done,
    /// Failed: it is retried after the next interval of its backoff, or becomes a dead letter.
    Failed,
    /// Not passed to a handler: it waits as before, and no retry is used up.
    Returned,
}

/// The error with which a consumer failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    name: String,
    message: String,
}

impl Reason {
    /// Truncates texts that are too long.
    #[must_use]
    pub fn new(name: &str, message: &str) -> Self {
        Self {
            name: beginning(name, DEAD_NAME_BYTES_MAX).to_owned(),
            message: beginning(message, DEAD_MESSAGE_BYTES_MAX).to_owned(),
        }
    }

    /// The failure of a message whose consumers stopped renewing their locks.
    #[must_use]
    pub fn lock_expired() -> Self {
        Self::new("LockExpired", "the lock ran out before the consumer said how it ended")
    }

    /// The error's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The error's message.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

/// The text, truncated to at most so many bytes at a character boundary.
fn beginning(text: &str, bytes_max: usize) -> &str {
    let fits = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end));
    if text.len() <= bytes_max { text } else { text.get(..fits.unwrap_or(0)).unwrap_or("") }
}

/// The end of one delivery, to be written to the database.
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
}

impl Settlement {
    /// An end without a delay and an error.
    #[must_use]
    pub fn new(id: i64, lock: i64, outcome: Outcome) -> Self {
        Self { id, lock, outcome, delay_ms: None, reason: None }
    }
}

/// The extension of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The message's number.
    pub id: i64,
    /// The lock of the delivery.
    pub lock: i64,
    /// The new time to its expiry, from now, in ms.
    pub lock_ms: i64,
}

/// A request about a delivered message, from its consumer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Its delivery has ended.
    Settle(Settlement),
    /// Its lock is extended.
    Extend(Renewal),
}

/// The numbers of messages of a queue, by state.
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
}

/// A dead letter: a message that failed too often.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The number it had as a message.
    pub id: i64,
    /// How often it was delivered.
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
    /// Enqueues this one again, as if it were new.
    Requeue(i64),
    /// Deletes this one.
    Delete(i64),
    /// Deletes those that died before a time, up to a number.
    Purge {
        /// In ms since the epoch.
        before_ms: i64,
        /// Most to delete.
        max: usize,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_reasons_are_cut_between_characters() {
        let long = "é".repeat(DEAD_NAME_BYTES_MAX);
        let reason = Reason::new(&long, "short");
        assert_eq!(reason.name().len(), DEAD_NAME_BYTES_MAX);
        let odd = Reason::new(&format!("a{long}"), "short");
        assert_eq!(odd.name().len(), DEAD_NAME_BYTES_MAX - 1);
        assert_eq!(odd.message(), "short");
    }
}
