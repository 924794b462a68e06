//! What becomes of a message whose delivery failed.

use crate::model::Message;

/// How a delivery failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Its consumer said so.
    Told {
        /// Wait so long instead of the schedule's next interval.
        delay_ms: Option<i64>,
    },
    /// Its lock ran out: whoever had it is gone.
    LockLost {
        /// When the lock ended, in ms since the epoch.
        end_ms: i64,
    },
}

/// The next state of a failed message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settled {
    /// It waits for its next try until then, in ms since the epoch.
    RetryAt(i64),
    /// No retry is left.
    Dead,
}

/// Consumes one interval of the backoff schedule of a message that has been handed out `attempts`
/// times, and failed at `now_ms`. Whatever the failure, it costs an interval: without one left the
/// message is dead.
#[must_use]
pub fn settle(message: &Message, attempts: u32, failure: Failure, now_ms: i64) -> Settled {
    let used = attempts.saturating_sub(1) as usize;
    let Some(wait_ms) = message.backoff_ms.get(used) else { return Settled::Dead };
    Settled::RetryAt(match failure {
        Failure::Told { delay_ms: Some(delay_ms) } => now_ms.saturating_add(delay_ms),
        // The lock has been waited for already. Deno waits for the interval as well.
        Failure::LockLost { end_ms } if message.is_named() => end_ms,
        Failure::Told { .. } | Failure::LockLost { .. } => now_ms + i64::from(*wait_ms),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TOLD: Failure = Failure::Told { delay_ms: None };

    fn message(queue: &str, backoff_ms: &[u32]) -> Message {
        Message { queue: queue.into(), backoff_ms: backoff_ms.to_vec(), ..Message::default() }
    }

    #[test]
    fn each_failure_uses_one_interval() {
        let deno = message("", &[100, 1000]);
        assert_eq!(settle(&deno, 1, TOLD, 5), Settled::RetryAt(105));
        assert_eq!(settle(&deno, 2, TOLD, 5), Settled::RetryAt(1005));
        assert_eq!(settle(&deno, 3, TOLD, 5), Settled::Dead);
        let delayed = Failure::Told { delay_ms: Some(7) };
        assert_eq!(settle(&deno, 2, delayed, 5), Settled::RetryAt(12));
        assert_eq!(settle(&deno, 3, delayed, 5), Settled::Dead);
    }

    #[test]
    fn a_lost_lock_is_a_failure_and_only_deno_waits_after_it() {
        let lost = Failure::LockLost { end_ms: 4 };
        assert_eq!(settle(&message("", &[100]), 1, lost, 5), Settled::RetryAt(105));
        assert_eq!(settle(&message("mail", &[100]), 1, lost, 5), Settled::RetryAt(4));
        assert_eq!(settle(&message("mail", &[]), 1, lost, 5), Settled::Dead);
    }
}
