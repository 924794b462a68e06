//! What becomes of a message whose delivery failed.

use crate::model::{EncodedValue, Encoding, Key, Message};

/// The next state of a failed message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It waits for its next try.
    RetryAt {
        /// When, in ms since the epoch.
        due_ms: i64,
        /// The intervals that are left after that.
        backoff_ms: Vec<u32>,
    },
    /// No retry is left: its value goes under these keys (there may be none), and it is gone.
    Dead {
        /// Where the value goes.
        keys: Vec<Key>,
        /// The value.
        value: EncodedValue,
    },
}

/// Consumes one step of the backoff schedule of a message that failed at `now_ms`.
#[must_use]
pub fn settle(message: Message, now_ms: i64) -> Settled {
    match message.backoff_ms.split_first() {
        Some((wait_ms, rest)) => {
            Settled::RetryAt { due_ms: now_ms + i64::from(*wait_ms), backoff_ms: rest.to_vec() }
        }
        None => Settled::Dead {
            keys: message.keys_if_undelivered,
            value: EncodedValue { encoding: Encoding::Cbor, bytes: message.value },
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(backoff_ms: &[u32]) -> Message {
        Message {
            due_ms: 0,
            backoff_ms: backoff_ms.to_vec(),
            keys_if_undelivered: vec![Key::from_encoded(vec![0x15, 1])],
            value: vec![0xf6],
        }
    }

    #[test]
    fn each_failure_uses_one_interval() {
        let settled = settle(message(&[100, 1000]), 5);
        assert_eq!(settled, Settled::RetryAt { due_ms: 105, backoff_ms: vec![1000] });
    }

    #[test]
    fn a_message_without_intervals_is_dead_at_its_first_failure() {
        assert!(matches!(settle(message(&[]), 5), Settled::Dead { keys, .. } if keys.len() == 1));
    }
}
