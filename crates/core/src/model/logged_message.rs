//! What the replication log says of a message.

use super::{Key, Message, Reason};

/// The state of a message after a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoggedMessage {
    /// The commit.
    pub version: u64,
    /// The number of the message.
    pub id: i64,
    /// The message after the commit; `None` if it is gone.
    pub kept: Option<KeptMessage>,
}

/// A message without its lock: who handles it is not a part of a copy, so there it waits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptMessage {
    /// Its queue.
    pub queue: String,
    /// Its priority.
    pub priority: u8,
    /// How often it was delivered.
    pub attempts: u32,
    /// When it was enqueued, in ms since the epoch.
    pub enqueued_ms: i64,
    /// When it was first delivered, in ms since the epoch.
    pub first_ms: Option<i64>,
    /// When it was last delivered, in ms since the epoch.
    pub last_ms: Option<i64>,
    /// Its deduplication key.
    pub deduplication_key: Option<String>,
    /// Retention of its dead letter, in ms.
    pub dead_retention_ms: Option<i64>,
    /// Waiting times before the retries, in ms.
    pub backoff_ms: Vec<u32>,
    /// The keys that receive the value if no retry is left.
    pub keys_if_undelivered: Vec<Key>,
    /// The value, CBOR.
    pub value: Vec<u8>,
    /// Whether it waits or is dead.
    pub state: KeptState,
}

impl KeptMessage {
    /// A message that is enqueued at `now_ms`, in ms since the epoch.
    #[must_use]
    pub fn enqueued(message: &Message, now_ms: i64) -> Self {
        Self {
            queue: message.queue.clone(),
            priority: message.priority,
            attempts: 0,
            enqueued_ms: now_ms,
            first_ms: None,
            last_ms: None,
            deduplication_key: message.deduplication_key.clone(),
            dead_retention_ms: message.dead_retention_ms,
            backoff_ms: message.backoff_ms.clone(),
            keys_if_undelivered: message.keys_if_undelivered.clone(),
            value: message.value.clone(),
            state: KeptState::Waiting { due_ms: message.due.at_ms(now_ms) },
        }
    }
}

/// The state of a message without its lock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeptState {
    /// It is delivered, or is to be.
    Waiting {
        /// When it may be delivered, in ms since the epoch.
        due_ms: i64,
    },
    /// It is a dead letter.
    Dead {
        /// When it died, in ms since the epoch.
        died_ms: i64,
        /// Why.
        reason: Reason,
        /// When it is removed, in ms since the epoch.
        purge_ms: Option<i64>,
    },
}
