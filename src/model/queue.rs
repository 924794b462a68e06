//! Queue messages on their way: waiting, handed out, finished, dead.

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
    /// Where its value goes when no retry is left.
    pub keys_if_undelivered: Vec<Key>,
    /// While one with the same key is in its queue, it is not enqueued.
    pub deduplication_key: Option<String>,
    /// How long it is kept when it is dead, in ms; `None`: until somebody removes it.
    pub dead_retention_ms: Option<i64>,
    /// The value, always CBOR.
    pub value: Vec<u8>,
}

impl Message {
    /// Whether it is in a queue of openkv's, rather than in Deno's.
    #[must_use]
    pub fn is_named(&self) -> bool {
        !self.queue.is_empty()
    }
}

/// What became of a message that was to be enqueued.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enqueued {
    /// Its number, or that of the one that was there already; `None` where messages have none.
    pub id: Option<i64>,
    /// Whether one with its deduplication key was there already, and nothing was added.
    pub deduplicated: bool,
}

/// A wish for messages of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// The queue.
    pub queue: String,
    /// Most messages to hand out.
    pub max: usize,
    /// How long they are hidden from others, in ms.
    pub lock_ms: i64,
    /// The lock they are handed out under; unique for this claim, and not 0.
    pub lock: i64,
}

/// A message handed to one consumer, hidden from all others until its lock ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message's number in its database.
    pub id: i64,
    /// The lock under which it was handed out.
    pub lock: i64,
    /// How often it has been handed out, this time included.
    pub attempts: u32,
    /// When it was enqueued, in ms since the epoch.
    pub enqueued_ms: i64,
    /// The value, always CBOR.
    pub value: Vec<u8>,
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Handled: the message is gone.
    Done,
    /// Failed: the next interval of its backoff, or its death.
    Failed,
    /// No consumer has seen it: it waits as it did before, and no retry is used up.
    Returned,
}

/// What a consumer said when it failed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reason {
    name: String,
    message: String,
}

impl Reason {
    /// Keeps the beginning of texts that are too long.
    #[must_use]
    pub fn new(name: &str, message: &str) -> Self {
        Self {
            name: beginning(name, DEAD_NAME_BYTES_MAX).to_owned(),
            message: beginning(message, DEAD_MESSAGE_BYTES_MAX).to_owned(),
        }
    }

    /// What killed a message whose consumers vanished.
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

/// At most so many bytes, cut between two characters.
fn beginning(text: &str, bytes_max: usize) -> &str {
    let fits = (0..=bytes_max).rev().find(|end| text.is_char_boundary(*end));
    if text.len() <= bytes_max { text } else { text.get(..fits.unwrap_or(0)).unwrap_or("") }
}

/// The end of one delivery, on its way to the database.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The message's number.
    pub id: i64,
    /// The lock under which it was handed out; a message that has moved on is left alone.
    pub lock: i64,
    /// How it ended.
    pub outcome: Outcome,
    /// After a failure: wait so long instead of the backoff's next interval.
    pub delay_ms: Option<i64>,
    /// After a failure: what was said.
    pub reason: Option<Reason>,
}

impl Settlement {
    /// An end without any more to say.
    #[must_use]
    pub fn new(id: i64, lock: i64, outcome: Outcome) -> Self {
        Self { id, lock, outcome, delay_ms: None, reason: None }
    }
}

/// A lock that is to go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Renewal {
    /// The message's number.
    pub id: i64,
    /// The lock under which it was handed out.
    pub lock: i64,
    /// How long from now, in ms.
    pub lock_ms: i64,
}

/// What is to become of a message that was handed out, by who has it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Its delivery has ended.
    Settle(Settlement),
    /// Its lock goes on.
    Extend(Renewal),
}

/// How many messages of a queue are in which state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct QueueStats {
    /// Due, and with nobody.
    pub pending: u64,
    /// Not due yet.
    pub delayed: u64,
    /// With a consumer whose lock holds.
    pub processing: u64,
    /// Dead and kept.
    pub dead: u64,
}

/// A message that nobody could handle.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeadLetter {
    /// The number it had as a message.
    pub id: i64,
    /// How often it was handed out.
    pub attempts: u32,
    /// When it was enqueued, in ms since the epoch.
    pub enqueued_ms: i64,
    /// When it was first handed out, in ms since the epoch.
    pub first_ms: i64,
    /// When it was last handed out, in ms since the epoch.
    pub last_ms: i64,
    /// When it died, in ms since the epoch.
    pub died_ms: i64,
    /// What its last consumer said.
    pub reason: Reason,
    /// The value, always CBOR.
    pub value: Vec<u8>,
}

/// What is to be done with dead messages of one queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeadOrder {
    /// This one is to be tried again, as if it had just been enqueued.
    Requeue(i64),
    /// This one is to be forgotten.
    Delete(i64),
    /// Those that died before a time are to be forgotten, at most so many.
    Purge {
        /// In ms since the epoch.
        before_ms: i64,
        /// Most to forget.
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
