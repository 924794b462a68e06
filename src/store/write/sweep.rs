//! What is deleted because its time has come: ended entries, and dead messages whose retention is
//! over.
//!
//! Each step is a transaction of its own, which nobody waits for, between those that somebody waits
//! for. It waits for no other process: what has ended is not read, whether it is deleted now or
//! later. How many entries a step takes, follows from how long the last one took: an entry costs a
//! microsecond, or a hundred where it is large, indexed, and its pages are not in the cache, so no
//! fixed number of them is a bound of time. The sync does not count: smaller steps would not make
//! it quicker, only more frequent.

use std::time::{Duration, Instant};

use super::{Done, Part, Scribe};
use crate::engine::{Work, Writer};
use crate::model::{DEAD_PURGE_ROWS_MAX, Kind, SWEEP_ROWS_MAX, SWEEP_ROWS_MIN, SWEEP_STEP_US};

impl<W: Writer> Scribe<W> {
    /// One step of deleting what has ended, if there is something. It is synced: feeds, other
    /// processes and whoever asks for the last stamp see the removal at once, and a power loss must
    /// not take back what was seen.
    pub(super) fn sweep(&mut self) {
        let now_ms = self.inbox.env.now_ms();
        if self.outlook.expiry.is_over(now_ms) {
            let work = Work { sweep_max: self.pace.rows(), durable: true, ..Work::default() };
            self.step(work, now_ms);
        }
    }

    /// One step of purging, if there is something. It is no commit, so nothing shows it.
    pub(super) fn purge(&mut self) {
        let now_ms = self.inbox.env.now_ms();
        if self.outlook.purge.is_over(now_ms) {
            self.step(Work { purge_max: DEAD_PURGE_ROWS_MAX, ..Work::default() }, now_ms);
        }
    }

    fn step(&mut self, work: Work, now_ms: i64) {
        let done = Done::of(&work, &[], now_ms);
        let swept = self.writer.apply(work, now_ms, Instant::now());
        self.health.note(Part::Sweep, &swept, now_ms);
        match swept {
            Ok(mut report) => {
                if report.sweep_more {
                    self.pace.took(report.worked);
                }
                self.announce(&mut report, Vec::new(), &done);
            }
            Err(error) => {
                if error.kind() != Kind::Unavailable {
                    self.metrics.transaction(0, false);
                    tracing::warn!(%error, "deleting what has ended");
                }
                self.outlook.failed(&done, &error);
            }
        }
    }
}

/// The size of the next step.
#[derive(Debug)]
pub(super) struct Pace {
    rows: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rows: SWEEP_ROWS_MIN }
    }
}

impl Pace {
    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// A step as large as allowed took so long. The next one is at most twice as large, for one that
    /// was quick by chance must not make it long.
    pub(super) fn took(&mut self, elapsed: Duration) {
        let us = elapsed.as_micros().max(1);
        let fitting = self.rows as u128 * u128::from(SWEEP_STEP_US) / us;
        let fitting = usize::try_from(fitting).unwrap_or(usize::MAX);
        self.rows = fitting.min(self.rows * 2).clamp(SWEEP_ROWS_MIN, SWEEP_ROWS_MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn after(steps: &[u64]) -> usize {
        let mut pace = Pace::default();
        steps.iter().for_each(|us| pace.took(Duration::from_micros(*us)));
        pace.rows()
    }

    #[test]
    fn steps_double_while_they_are_quick_and_shrink_at_once() {
        assert_eq!(after(&[0, 1]), 4 * SWEEP_ROWS_MIN);
        assert_eq!(after(&[1; 30]), SWEEP_ROWS_MAX);
        assert_eq!(after(&[1, 1, 1, SWEEP_STEP_US * 4]), 2 * SWEEP_ROWS_MIN);
        assert_eq!(after(&[1, 1, 1, u64::MAX]), SWEEP_ROWS_MIN);
        assert_eq!(after(&[1, 1, SWEEP_STEP_US]), 4 * SWEEP_ROWS_MIN);
    }
}
