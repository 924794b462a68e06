//! The time at which a failed message is delivered again.

use crate::model::{Message, Outcome};

/// How a delivery failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Failure {
    /// Its consumer reported it.
    Reported {
        /// The wait instead of the backoff's next interval.
        delay_ms: Option<i64>,
    },
    /// Its consumer reported that no retry can help.
    Final,
    /// Its lock expired, because its consumer no longer renews it.
    LockExpired {
        /// The end of the lock, in ms since the epoch.
        end_ms: i64,
    },
}

impl Failure {
    /// The failure that a settlement reports, if it reports one.
    pub(super) fn of(outcome: Outcome, delay_ms: Option<i64>) -> Option<Self> {
        match outcome {
            Outcome::Failed => Some(Self::Reported { delay_ms }),
            Outcome::Dead => Some(Self::Final),
            Outcome::Done
            | Outcome::Completed
            | Outcome::Progressed
            | Outcome::Returned
            | Outcome::Cancelled => None,
        }
    }
}

/// The time of the next delivery of a message that has failed at `now_ms` after `attempts`
/// deliveries; `None` if it is dead. Every failure uses up an interval of the backoff; without one
/// left the message is dead.
pub(super) fn retry_at(
    message: &Message,
    attempts: u32,
    failure: Failure,
    now_ms: i64,
) -> Option<i64> {
    let used = attempts.saturating_sub(1) as usize;
    let wait_ms = message.backoff_ms.get(used)?;
    Some(match failure {
        Failure::Reported { delay_ms: Some(delay_ms) } => now_ms.saturating_add(delay_ms),
        // The lock has already lasted for some time. In Deno's queue the interval is added.
        Failure::LockExpired { end_ms } if message.is_named() => end_ms,
        Failure::Reported { .. } | Failure::LockExpired { .. } => now_ms + i64::from(*wait_ms),
        Failure::Final => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const REPORTED: Failure = Failure::Reported { delay_ms: None };

    fn message(queue: &str, backoff_ms: &[u32]) -> Message {
        Message { queue: queue.into(), backoff_ms: backoff_ms.to_vec(), ..Message::default() }
    }

    #[test]
    fn each_failure_uses_one_interval() {
        let deno = message("", &[100, 1000]);
        assert_eq!(retry_at(&deno, 1, REPORTED, 5), Some(105));
        assert_eq!(retry_at(&deno, 2, REPORTED, 5), Some(1005));
        assert_eq!(retry_at(&deno, 3, REPORTED, 5), None);
        let delayed = Failure::Reported { delay_ms: Some(7) };
        assert_eq!(retry_at(&deno, 2, delayed, 5), Some(12));
        assert_eq!(retry_at(&deno, 3, delayed, 5), None);
    }

    #[test]
    fn a_final_failure_leaves_no_retry() {
        let message = message("mail", &[100, 1000]);
        let failure = Failure::of(Outcome::Dead, Some(5)).unwrap();
        assert_eq!(retry_at(&message, 1, failure, 5), None);
        assert_eq!(Failure::of(Outcome::Failed, None), Some(REPORTED));
        assert_eq!([Outcome::Done, Outcome::Returned].map(|of| Failure::of(of, None)), [None; 2]);
    }

    #[test]
    fn an_expired_lock_is_a_failure_and_only_deno_waits_after_it() {
        let expired = Failure::LockExpired { end_ms: 4 };
        assert_eq!(retry_at(&message("", &[100]), 1, expired, 5), Some(105));
        assert_eq!(retry_at(&message("mail", &[100]), 1, expired, 5), Some(4));
        assert_eq!(retry_at(&message("mail", &[]), 1, expired, 5), None);
    }
}
