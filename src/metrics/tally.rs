//! What one lane has counted since it was last merged: plain integers, and few samples of time.

use std::sync::Arc;
use std::time::Instant;

use super::Operation;
use super::book::{Metrics, ns};
use crate::model::{LATENCY_SAMPLE_READS, LATENCY_SAMPLES_MAX};

/// Reads of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) answered: u64,
    pub(super) errors: u64,
}

/// The counters of one lane. What it has is merged when it is dropped, too.
pub struct Tally {
    metrics: Arc<Metrics>,
    gets: Count,
    lists: Count,
    /// Reads until the next one is timed.
    untimed: u32,
    samples: Vec<(Operation, u64)>,
}

impl Tally {
    /// Counts for this database.
    #[must_use]
    pub fn new(metrics: Arc<Metrics>) -> Self {
        let (gets, lists) = (Count::default(), Count::default());
        Self { metrics, gets, lists, untimed: 0, samples: Vec::new() }
    }

    /// A read begins; every so many are timed.
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

    /// So many reads were answered: keys or pages.
    pub fn end(&mut self, is_list: bool, times: u64, good: bool, since: Option<Instant>) {
        let count = if is_list { &mut self.lists } else { &mut self.gets };
        count.answered += times;
        if !good {
            count.errors += times;
        }
        if let Some(since) = since {
            let operation = if is_list { Operation::List } else { Operation::Get };
            self.samples.push((operation, ns(since)));
            if self.samples.len() >= LATENCY_SAMPLES_MAX {
                self.merge();
            }
        }
    }

    /// Shares what was counted, and what the lane's connection says of its cache.
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

impl Drop for Tally {
    fn drop(&mut self) {
        self.merge();
    }
}
