//! Whether the writer thread spins after it has answered a caller.
//!
//! A caller on a thread of the same process often writes again within the time that waking the writer thread
//! would take. A caller behind a network does not: there, spinning takes a processor from the threads that
//! pass its answer on.

use std::sync::LazyLock;
use std::thread::available_parallelism;

use openkv_core::model::{WRITER_SPIN_MISSES_MAX, WRITER_SPIN_TRIED_EVERY};

/// Whether the process may run on several processors. The system is asked once: it reads files for the answer.
static SEVERAL_PROCESSORS: LazyLock<bool> =
    LazyLock::new(|| available_parallelism().is_ok_and(|threads| threads.get() > 1));

/// The choice, by what the last times have met.
#[derive(Debug)]
pub(super) struct Spin {
    /// Whether another processor is available to spin on.
    spare: bool,
    /// A caller was just answered.
    is_due: bool,
    /// How often in a row the writer thread could have met a write by spinning, and did not.
    misses: u32,
}

impl Spin {
    /// By the processors of the process.
    pub(super) fn of_process() -> Self {
        Self::new(*SEVERAL_PROCESSORS)
    }

    const fn new(spare: bool) -> Self {
        Self { spare, is_due: false, misses: 0 }
    }

    /// A caller is answered.
    pub(super) fn answered(&mut self) {
        self.is_due = self.spare;
    }

    /// Whether to spin now. Returns true at most once after each answer.
    pub(super) fn begins(&mut self) -> bool {
        if !std::mem::take(&mut self.is_due) {
            return false;
        }
        let begins = self.misses < WRITER_SPIN_MISSES_MAX
            || self.misses.is_multiple_of(WRITER_SPIN_TRIED_EVERY);
        if !begins {
            self.misses = self.misses.wrapping_add(1);
        }
        begins
    }

    /// The thread has spun, and a write arrived in that time or not.
    pub(super) fn ended(&mut self, arrived: bool) {
        self.misses = if arrived { 0 } else { self.misses.wrapping_add(1) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How many of some answers are followed by spinning.
    fn spins(spin: &mut Spin, answers: u32, arrives: bool) -> u32 {
        let mut count = 0;
        for _ in 0..answers {
            spin.answered();
            if spin.begins() {
                count += 1;
                spin.ended(arrives);
            }
            assert!(!spin.begins(), "one answer, one time");
        }
        count
    }

    #[test]
    fn spinning_that_meets_nothing_is_given_up_and_tried_again() {
        let mut spin = Spin::new(true);
        assert_eq!(spins(&mut spin, 100, true), 100);
        assert_eq!(spins(&mut spin, WRITER_SPIN_MISSES_MAX, false), WRITER_SPIN_MISSES_MAX);
        let tried = spins(&mut spin, 10 * WRITER_SPIN_TRIED_EVERY, false);
        assert!((9..=10).contains(&tried), "{tried}");
        let again = spins(&mut spin, 2 * WRITER_SPIN_TRIED_EVERY, true);
        assert!(again > WRITER_SPIN_TRIED_EVERY, "{again}");
    }

    #[test]
    fn nothing_spins_on_the_only_processor_or_without_an_answer() {
        assert_eq!(spins(&mut Spin::new(false), 10, true), 0);
        assert!(!Spin::new(true).begins());
    }
}
