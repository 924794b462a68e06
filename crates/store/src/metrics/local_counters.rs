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
    /// Those of each kind of reads that there were.
    counted: Vec<(Operation, Count)>,
    /// Reads until the next one is timed.
    untimed: u32,
    samples: Vec<(Operation, u64)>,
}

impl LocalCounters {
    /// Counters that are merged into those of a database.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>) -> Self {
        Self { metrics, counted: Vec::new(), untimed: 0, samples: Vec::new() }
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
        (operation, times): (Operation, u64),
        good: bool,
        since: Option<Instant>,
        about: impl FnOnce() -> Subject,
    ) {
        let errors = if good { 0 } else { times };
        match self.counted.iter_mut().find(|(of, _)| *of == operation) {
            Some((_, count)) => {
                count.answered += times;
                count.errors += errors;
            }
            None => self.counted.push((operation, Count { answered: times, errors })),
        }
        if let Some(since) = since {
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
        if self.counted.is_empty() {
            return;
        }
        self.metrics.add(&self.counted, &self.samples);
        self.counted.clear();
        self.samples.clear();
    }
}

impl Drop for LocalCounters {
    fn drop(&mut self) {
        self.merge();
    }
}
