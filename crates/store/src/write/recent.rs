//! How long small commits take, from which the duration of the next one is judged.

use std::time::Duration;

use openkv_core::commit::Work;
use openkv_core::model::{AtomicWrite, INLINE_BYTES_MAX, INLINE_COMMITS_SEEN, INLINE_WRITES_MAX};

/// Whether these writes are so few and small that they may be an inline commit. One counts as often as it has checks and
/// mutations.
pub(super) fn are_small<'w>(mut writes: impl Iterator<Item = &'w AtomicWrite>) -> bool {
    let (mut count, mut bytes) = (0, 0);
    writes.all(|write| {
        let (checks, mutations, _) = write.parts();
        count += (checks.len() + mutations.len()).max(1);
        bytes += write.size_bytes();
        count <= INLINE_WRITES_MAX && bytes <= INLINE_BYTES_MAX
    }) && count > 0
}

/// Whether work is as small as an inline commit, so that its duration tells that of one.
pub(super) fn is_small(work: &Work) -> bool {
    are_small(work.writes.iter())
        && work.settlements.is_empty()
        && work.claims.is_empty()
        && work.sweep_max == 0
        && work.purge_max == 0
        && !work.fires
}

/// The durations of the last small commits.
#[derive(Debug, Default)]
pub(super) struct RecentCommits {
    took: [Duration; INLINE_COMMITS_SEEN],
    /// The number of all.
    count: usize,
}

impl RecentCommits {
    pub(super) fn took(&mut self, time: Duration) {
        if let Some(place) = self.took.get_mut(self.count % INLINE_COMMITS_SEEN) {
            *place = time;
        }
        self.count += 1;
    }

    /// Whether there are enough, and their mean is within a bound. One that took eight times as long excludes
    /// the seven after it.
    pub(super) fn are_within(&self, most: Duration) -> bool {
        let total: Duration = self.took.iter().sum();
        self.count >= INLINE_COMMITS_SEEN
            && total <= most.saturating_mul(INLINE_COMMITS_SEEN as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_long_commit_counts_until_enough_others_have_followed() {
        let (short, long) = (Duration::from_micros(100), Duration::from_micros(500));
        let mut recent = RecentCommits::default();
        let mut seen = Vec::new();
        for took in std::iter::repeat_n(short, INLINE_COMMITS_SEEN) {
            seen.push(recent.are_within(short));
            recent.took(took);
        }
        assert_eq!(seen, vec![false; INLINE_COMMITS_SEEN]);
        assert!(recent.are_within(short));
        recent.took(long);
        for _ in 1..INLINE_COMMITS_SEEN {
            recent.took(short);
            assert!(!recent.are_within(short) && recent.are_within(2 * short));
        }
        recent.took(short);
        assert!(recent.are_within(short));
    }
}
