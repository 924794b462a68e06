//! How many ended entries one step of the sweep takes, so that it lasts no longer than it should.
//!
//! An entry costs a microsecond, or a hundred where it is large, indexed, and its pages are not in
//! the cache: no fixed number of them is a bound of time.

use std::time::Duration;

use crate::model::{SWEEP_ROWS_MAX, SWEEP_ROWS_MIN, SWEEP_STEP_US};

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
