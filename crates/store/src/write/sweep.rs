//! Deletes expired entries, purges dead letters after their retention, and makes the messages of schedules.
//!
//! Each step is a transaction of its own, between those that callers wait for. It never waits for
//! another process, because an expired entry is absent to reads whether or not it is deleted. The
//! size of a step follows from the duration of the last one: an entry costs between one microsecond
//! and a hundred, by its size, its indexes and the page cache, so a fixed size would not bound the
//! time. The sync does not count: smaller steps do not make it quicker, only more frequent.

use std::time::{Duration, Instant};

use super::under_way::Batch;
use super::{Done, Part, WriterThread};
use openkv_core::model::{
    DEAD_PURGE_ROWS_MAX, Kind, Result, SWEEP_ROWS_MAX, SWEEP_ROWS_MIN, SWEEP_STEP_US,
};
use openkv_engines::{Report, Work, Writer};

impl<W: Writer> WriterThread<W> {
    /// Runs one step of deleting expired entries, if any. The step is synced: feeds, other
    /// processes and readers of the last versionstamp see the removal at once, so a power loss must
    /// not undo it.
    pub(super) fn sweep(&mut self) {
        let now_ms = self.write_queue.env.now_ms();
        if self.timers.expiry.is_over(now_ms) {
            let work = Work { sweep_max: self.pace.rows(), durable: true, ..Work::default() };
            self.step(work, now_ms);
        }
    }

    /// Runs one step of purging, if any is due. It is no commit, so no watch or feed shows it.
    pub(super) fn purge(&mut self) {
        let now_ms = self.write_queue.env.now_ms();
        if self.timers.purge.is_over(now_ms) {
            self.step(Work { purge_max: DEAD_PURGE_ROWS_MAX, ..Work::default() }, now_ms);
        }
    }

    /// Makes the messages of the schedules that are due, if any are. Only a synced transaction: another process sees the
    /// messages at once.
    pub(super) fn fire(&mut self) {
        let now_ms = self.write_queue.env.now_ms();
        if self.timers.schedules.is_over(now_ms) {
            self.step(Work { fires: true, durable: true, ..Work::default() }, now_ms);
        }
    }

    fn step(&mut self, work: Work, now_ms: i64) {
        let batch = Batch::of_step(&work, now_ms);
        self.begin(work, Instant::now(), batch);
    }

    /// Completes a step.
    pub(super) fn step_ended(&mut self, done: &Done, swept: Result<Report>) {
        self.health.note(Part::Sweep, &swept, done.now_ms);
        match swept {
            Ok(mut report) => {
                if report.sweep_more {
                    self.pace.took(report.worked);
                }
                self.announce(&mut report, Vec::new(), done);
            }
            Err(error) => {
                if error.kind() != Kind::Unavailable {
                    self.metrics.transaction(0, false);
                    tracing::warn!(%error, "a step of timed work");
                }
                self.timers.failed(done, &error);
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

    /// Records the duration of a full step. The next step is at most twice as large, because one
    /// quick step may be chance.
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
