//! How many batches are in flight: as many as complete during the time of one commit.
//!
//! The time of a commit is the shortest that one took lately, and the spacing the shortest between two
//! completions of batches that were in flight together. Their ratio is the number of batches that a
//! connection holds without a queue before the database. Deeper, batches only wait there, and get
//! smaller.

use std::collections::VecDeque;

use crate::model::{LAYER_DEPTH_MAX, LAYER_DEPTH_PROBE_BATCHES, LAYER_DEPTH_SAMPLES};

/// The last samples of a time, in µs.
#[derive(Debug, Default)]
struct Samples(VecDeque<u64>);

impl Samples {
    fn add(&mut self, us: u64) {
        if self.0.len() == LAYER_DEPTH_SAMPLES {
            self.0.pop_front();
        }
        self.0.push_back(us);
    }

    fn shortest(&self) -> Option<u64> {
        self.0.iter().min().copied()
    }
}

/// Measures batches and bounds the number of those in flight.
#[derive(Debug, Default)]
pub(super) struct Depth {
    /// When each batch in flight was sent.
    sent: VecDeque<u64>,
    commits: Samples,
    spacings: Samples,
    last_end: Option<u64>,
    count: u64,
}

impl Depth {
    /// How many batches may be in flight.
    pub(super) fn limit(&self) -> usize {
        let usual = self.usual();
        let turn = self.count % LAYER_DEPTH_PROBE_BATCHES;
        if turn == 0 && usual > 1 {
            // The duration of a batch without others in flight is the time of a commit.
            1
        } else if turn < 2 && usual == 1 {
            // Two in flight show the spacing.
            2
        } else {
            usual
        }
    }

    fn usual(&self) -> usize {
        let (Some(commit), Some(spacing)) = (self.commits.shortest(), self.spacings.shortest())
        else {
            return 1;
        };
        let spacing = spacing.max(1);
        let ratio = (commit + spacing / 2) / spacing;
        usize::try_from(ratio).unwrap_or(usize::MAX).clamp(1, LAYER_DEPTH_MAX)
    }

    /// A batch was sent.
    pub(super) fn sent(&mut self, us: u64) {
        self.sent.push_back(us);
        self.count += 1;
    }

    /// The oldest batch in flight has completed.
    pub(super) fn completed(&mut self, us: u64) {
        let Some(sent) = self.sent.pop_front() else { return };
        self.commits.add(us.saturating_sub(sent));
        if let Some(last) = self.last_end.filter(|last| sent < *last) {
            self.spacings.add(us.saturating_sub(last));
        }
        self.last_end = Some(us);
    }

    /// The batches in flight are lost.
    pub(super) fn interrupted(&mut self) {
        self.sent.clear();
        self.last_end = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The depth after many batches of a database that is `travel` µs away and takes `service` µs for
    /// each, while there are always batches to send.
    fn settled(travel: u64, service: u64) -> usize {
        settles(&mut Depth::default(), 0, travel, service)
    }

    /// Continues with a depth that has measured before `now`.
    fn settles(depth: &mut Depth, mut now: u64, travel: u64, service: u64) -> usize {
        let mut free = 0;
        let mut ends = VecDeque::new();
        for _ in 0..2000 {
            while ends.len() >= depth.limit() {
                now = now.max(ends.pop_front().unwrap_or(now));
                depth.completed(now);
            }
            depth.sent(now);
            free = free.max(now + travel / 2) + service;
            ends.push_back(free + travel / 2);
        }
        depth.usual()
    }

    #[test]
    fn a_near_database_gets_one_batch_at_a_time() {
        assert_eq!(settled(0, 600), 1);
        assert_eq!(settled(100, 600), 1);
    }

    #[test]
    fn a_far_database_gets_as_many_as_fit_into_its_distance() {
        assert_eq!(settled(6400, 600), 12);
        assert_eq!(settled(2000, 1000), 3);
        assert_eq!(settled(100_000, 1000), LAYER_DEPTH_MAX);
    }

    #[test]
    fn the_depth_follows_the_distance() {
        let mut depth = Depth::default();
        for (start, travel, usual) in
            [(0, 6000, 11), (1_000_000_000, 0, 1), (2_000_000_000, 3000, 6)]
        {
            assert_eq!(settles(&mut depth, start, travel, 600), usual, "{travel}");
            depth.interrupted();
        }
    }
}
