//! The counters of one lane since its last merge: plain integers, and a few sampled times.

use std::sync::Arc;
use std::time::Instant;

use super::Operation;
use super::counters::Count;
use super::shared_counters::{Metrics, ns};
use super::slow::{SLOW_NS, Slow, Subject};
use openkv_core::model::{LATENCY_SAMPLE_READS, LATENCY_SAMPLES_MAX};

/// The counters of one lane. Dropping them merges them.
pub struct LocalCounters {
    metrics: Arc<Metrics>,
    gets: Count,
    lists: Count,
    /// Reads until the next one is timed.
    untimed: u32,
    samples: Vec<(Operation, u64)>,
}

impl LocalCounters {
    /// Counters that are merged into those of a database.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>) -> Self {
        let (gets, lists) = (Count::default(), Count::default());
        Self { metrics, gets, lists, untimed: 0, samples: Vec::new() }
    }

    /// Called when a read begins; gives the start time of one read in [`LATENCY_SAMPLE_READS`].
    pub fn begin(&mut self) -> Option<Instant> {
        match self.untimed.checked_sub(1) {
            Some(left) => {
                self.untimed = left;
                None
            }
            None => {
                self.untimed = LATENCY_SAMPLE_READS - 1;
                Some(Instant::now())
            }
        }
    }

    /// Counts answered reads: keys or pages. `about` is called for slow ones.
    pub fn end(
        &mut self,
        (is_list, times): (bool, u64),
        good: bool,
        since: Option<Instant>,
        about: impl FnOnce() -> Subject,
    ) {
        let count = if is_list { &mut self.lists } else { &mut self.gets };
        count.answered += times;
        if !good {
            count.errors += times;
        }
        if let Some(since) = since {
            let operation = if is_list { Operation::List } else { Operation::Get };
            let ns = ns(since);
            if ns >= SLOW_NS {
                self.metrics.slow(Slow { operation, subject: about(), times, good, since, ns });
            }
            self.samples.push((operation, ns));
            if self.samples.len() >= LATENCY_SAMPLES_MAX {
                self.merge();
            }
        }
    }

    /// Merges the counters, and adds the cache hits and misses of the lane's connection.
    pub fn turn_ended(&mut self, cache: (u64, u64)) {
        self.merge();
        self.metrics.cached(cache);
    }

    fn merge(&mut self) {
        if self.gets.answered + self.lists.answered == 0 {
            return;
        }
        let counted = [(Operation::Get, self.gets), (Operation::List, self.lists)];
        self.metrics.add(&counted, &self.samples);
        (self.gets, self.lists) = (Count::default(), Count::default());
        self.samples.clear();
    }
}

impl Drop for LocalCounters {
    fn drop(&mut self) {
        self.merge();
    }
}
