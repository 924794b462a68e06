//! Queue messages on their way: waiting, handed out, finished.

use super::Key;

/// A message as it is enqueued.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// When it may first be delivered, in ms since the epoch.
    pub due_ms: i64,
    /// Waiting times before the retries that are left, in ms.
    pub backoff_ms: Vec<u32>,
    /// Where its value goes when no retry is left.
    pub keys_if_undelivered: Vec<Key>,
    /// The value, always CBOR.
    pub value: Vec<u8>,
}

/// A message handed to one consumer, hidden from all others until its lock ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// The message's number in its database.
    pub id: i64,
    /// The value, always CBOR.
    pub value: Vec<u8>,
}

/// How a delivery ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Handled: the message is gone.
    Done,
    /// Failed: the next interval of its backoff, or its undelivered keys.
    Failed,
    /// No consumer has seen it: it waits as it did before, and no retry is used up.
    Returned,
}

/// The end of one delivery, on its way to the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settlement {
    /// The message's number.
    pub id: i64,
    /// The lock under which it was handed out; a message that has moved on is left alone.
    pub lock: i64,
    /// How it ended.
    pub outcome: Outcome,
}
