//! Gives each atomic operation its transaction sequence number.

use std::ops::Range;

/// Counts operations. The numbers are contiguous within an epoch.
#[derive(Debug, Default)]
pub(super) struct Sequencer {
    next: u64,
}

impl Sequencer {
    /// The numbers of the next `count` operations.
    pub(super) fn assign(&mut self, count: usize) -> Range<u64> {
        let first = self.next;
        self.next += count as u64;
        first..self.next
    }

    /// A new epoch counts from zero.
    pub(super) fn restart(&mut self) {
        self.next = 0;
    }
}
