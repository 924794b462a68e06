//! What a handle has seen: its eventual reads are never older.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// The newest commit that a handle knows.
#[derive(Debug, Default)]
pub struct Seen {
    version: AtomicU64,
    /// The past of the replica that the version belongs to.
    epoch: AtomicU64,
    noting: Mutex<()>,
    max_lag: Option<Duration>,
}

impl Seen {
    /// Of a new handle, whose eventual reads may be this old.
    #[must_use]
    pub fn new(max_lag: Option<Duration>) -> Self {
        Self { max_lag, ..Self::default() }
    }

    /// How old a read may be.
    pub fn max_lag(&self) -> Option<Duration> {
        self.max_lag
    }

    /// Notes that the handle has seen a commit, while the replica has this past.
    pub fn note(&self, epoch: u64, version: u64) {
        let _one = self.noting.lock();
        let known = self.epoch.load(Ordering::Acquire);
        if epoch < known {
            return;
        }
        if known != epoch {
            self.version.store(0, Ordering::Release);
            self.epoch.store(epoch, Ordering::Release);
        }
        self.version.fetch_max(version, Ordering::AcqRel);
    }

    /// The commit that the next read needs. What was seen of another past says nothing.
    pub fn needed(&self, epoch: u64) -> u64 {
        let version = self.version.load(Ordering::Acquire);
        if self.epoch.load(Ordering::Acquire) == epoch { version } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_commit_of_the_present_past_counts() {
        let seen = Seen::default();
        assert_eq!(seen.needed(0), 0);
        seen.note(0, 9);
        seen.note(0, 5);
        assert_eq!((seen.needed(0), seen.needed(1)), (9, 0));
        seen.note(1, 3);
        // An answer from before the exchange.
        seen.note(0, 9);
        assert_eq!((seen.needed(0), seen.needed(1)), (0, 3));
    }
}
