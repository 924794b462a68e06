//! Which commits of clients may run on the server's own threads.
//!
//! Duty: to tell a client that sends one write after the other from many that send at the same time.
//! Invariant: a commit is alone only if none is under way and the last one ended some time ago: as long as
//! a client needs to hear of it and send the next. Commits that are not go to the writer thread, which
//! syncs once for all that wait.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::model::COMMITS_APART_US_MIN;

/// The commits of one database.
pub(super) struct Pacing {
    /// The zero of `ended_us`.
    begun: Instant,
    under_way: AtomicUsize,
    ended_us: AtomicU64,
}

/// A commit under way, until it is dropped.
pub(super) struct Paced<'a>(&'a Pacing);

impl Default for Pacing {
    fn default() -> Self {
        let (under_way, ended_us) = (AtomicUsize::new(0), AtomicU64::new(0));
        Self { begun: Instant::now(), under_way, ended_us }
    }
}

impl Pacing {
    /// Begins a commit; also returns whether it is alone.
    pub(super) fn begin(&self) -> (Paced<'_>, bool) {
        let others = self.under_way.fetch_add(1, Ordering::Relaxed);
        let ended_us = self.ended_us.load(Ordering::Relaxed);
        (Paced(self), others == 0 && self.now_us() >= ended_us + COMMITS_APART_US_MIN)
    }

    fn now_us(&self) -> u64 {
        micros(self.begun.elapsed())
    }
}

impl Drop for Paced<'_> {
    fn drop(&mut self) {
        self.0.ended_us.store(self.0.now_us(), Ordering::Relaxed);
        self.0.under_way.fetch_sub(1, Ordering::Relaxed);
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_beside_another_or_right_after_it_is_not_alone() {
        let pacing = Pacing::default();
        let apart = Duration::from_micros(COMMITS_APART_US_MIN);
        std::thread::sleep(apart);
        let (first, alone) = pacing.begin();
        assert!(alone);
        let (second, alone) = pacing.begin();
        assert!(!alone);
        drop(first);
        // As if the second took as long as the pause.
        std::thread::sleep(apart);
        assert!(!pacing.begin().1);
        drop(second);
        std::thread::sleep(apart);
        assert!(pacing.begin().1);
        pacing.ended_us.store(u64::MAX - COMMITS_APART_US_MIN, Ordering::Relaxed);
        assert!(!pacing.begin().1);
    }
}
