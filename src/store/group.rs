//! Decides which waiting writes share a transaction.
//!
//! All writes of a transaction share its wait for other processes. So writes with different bounds
//! for that wait do not share one. Settlements and renewals do not share one with writes whose
//! bound is shorter than usual; the two take turns.

use std::time::Duration;

use super::write_queue::Submission;
use crate::model::{AtomicWrite, BUSY_TIMEOUT_MS_DEFAULT, GROUP_BYTES_MAX, GROUP_WRITES_MAX};

/// The contents of the next transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The number of waiting submissions in it.
    pub(super) submissions: usize,
    /// Whether it includes the waiting settlements and renewals.
    pub(super) settles: bool,
    /// Longest wait for another process.
    pub(super) busy: Duration,
}

impl Group {
    /// `settles`: settlements or renewals wait. `alone`: the last group had only such, while writes
    /// waited.
    pub(super) fn next(waiting: &[Submission], settles: bool, alone: bool) -> Self {
        let usual = Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT);
        let Some(first) = waiting.first() else {
            return Self { submissions: 0, settles: true, busy: usual };
        };
        let apart = settles && first.busy < usual;
        if apart && !alone {
            return Self { submissions: 0, settles: true, busy: usual };
        }
        let (mut submissions, mut writes, mut bytes) = (0, 0, 0);
        for submission in waiting {
            writes += submission.writes.len();
            let full = writes > GROUP_WRITES_MAX || bytes > GROUP_BYTES_MAX;
            if submissions > 0 && (full || submission.busy != first.busy) {
                break;
            }
            submissions += 1;
            bytes += submission.writes.iter().flatten().map(AtomicWrite::size_bytes).sum::<usize>();
        }
        Self { submissions, settles: !apart, busy: first.busy }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn waiting(busy_ms: &[u64]) -> Vec<Submission> {
        let submission = |ms: &u64| Submission {
            writes: Vec::new(),
            durable: true,
            busy: Duration::from_millis(*ms),
            reply: Box::new(drop),
            since: Instant::now(),
        };
        busy_ms.iter().map(submission).collect()
    }

    fn group(busy_ms: &[u64], settles: bool, alone: bool) -> (usize, bool, u64) {
        let group = Group::next(&waiting(busy_ms), settles, alone);
        (group.submissions, group.settles, u64::try_from(group.busy.as_millis()).unwrap())
    }

    #[test]
    fn writes_with_different_bounds_for_waiting_do_not_share_a_transaction() {
        let usual = BUSY_TIMEOUT_MS_DEFAULT;
        assert_eq!(group(&[usual; 3], true, false), (3, true, usual));
        assert_eq!(group(&[100, 100, 3000, 100], false, false), (2, true, 100));
        assert_eq!(group(&[3000, 100], false, true), (1, true, 3000));
        assert_eq!(group(&[], true, false), (0, true, usual));
    }

    #[test]
    fn settlements_and_renewals_wait_at_least_the_default() {
        let usual = BUSY_TIMEOUT_MS_DEFAULT;
        assert_eq!(group(&[0, 0], true, false), (0, true, usual));
        assert_eq!(group(&[0, 0], true, true), (2, false, 0));
        assert_eq!(group(&[usual + 1, 0], true, false), (1, true, usual + 1));
    }
}
