//! The counters of one database, shared by its threads.

use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::Mutex;

use super::Operation;
use super::latency::Distribution;
use super::snapshot::{
    Cache, Depth, Holders, IndexSize, MetricsSnapshot, Operations, Sizes, Transactions,
};
use crate::model::Decision;

const KINDS: usize = Operation::ALL.len();

/// Reads of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) answered: u64,
    pub(super) errors: u64,
}

/// The counters of one database in one process, since it was opened.
#[derive(Default)]
pub struct Metrics(Mutex<Counters>);

#[derive(Default)]
struct Counters {
    kinds: [OperationCounters; KINDS],
    commits: u64,
    conflicts: u64,
    rejections: u64,
    failures: u64,
    groups: Distribution,
    cache: (u64, u64),
}

#[derive(Default)]
struct OperationCounters {
    count: u64,
    errors: u64,
    latency: Distribution,
}

impl Counters {
    fn of_kind(&mut self, operation: Operation) -> Option<&mut OperationCounters> {
        self.kinds.get_mut(operation as usize)
    }
}

/// The time since an instant, in ns.
pub(super) fn ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Metrics {
    /// Counts operations of one kind that were answered together; `since` is when they were
    /// requested.
    pub fn answered(&self, operation: Operation, times: u64, good: bool, since: Instant) {
        if times == 0 {
            return;
        }
        let ns = ns(since);
        if let Some(of_kind) = self.0.lock().of_kind(operation) {
            of_kind.count += times;
            of_kind.errors += if good { 0 } else { times };
            of_kind.latency.record(ns, times);
        }
    }

    /// Adds the counts and sampled times of a lane.
    pub(super) fn add(&self, counted: &[(Operation, Count)], samples: &[(Operation, u64)]) {
        let mut counters = self.0.lock();
        for (operation, count) in counted {
            if let Some(of_kind) = counters.of_kind(*operation) {
                of_kind.count += count.answered;
                of_kind.errors += count.errors;
            }
        }
        for (operation, ns) in samples {
            if let Some(of_kind) = counters.of_kind(*operation) {
                of_kind.latency.record(*ns, 1);
            }
        }
    }

    /// Adds the outcomes of one submission's writes, which were answered just now.
    pub fn noted(&self, notes: &Notes) {
        let ns = ns(notes.since);
        let mut counters = self.0.lock();
        counters.commits += notes.commits;
        counters.conflicts += notes.conflicts;
        counters.rejections += notes.rejections;
        for (of_kind, (count, errors)) in counters.kinds.iter_mut().zip(notes.kinds) {
            if count > 0 {
                of_kind.count += u64::from(count);
                of_kind.errors += u64::from(errors);
                of_kind.latency.record(ns, count.into());
            }
        }
    }

    /// Counts a transaction with so many writes.
    pub fn transaction(&self, writes: usize, good: bool) {
        let mut counters = self.0.lock();
        counters.failures += u64::from(!good);
        if writes > 0 {
            counters.groups.record(writes as u64, 1);
        }
    }

    /// Adds the page cache hits and misses of a connection.
    pub fn cached(&self, (hits, misses): (u64, u64)) {
        if hits + misses > 0 {
            let mut counters = self.0.lock();
            counters.cache.0 += hits;
            counters.cache.1 += misses;
        }
    }

    /// All counters at one moment, together with values that are read from the database.
    pub fn snapshot(
        &self,
        sizes: Sizes,
        holders: Holders,
        queues: BTreeMap<String, Depth>,
        indexes: BTreeMap<String, IndexSize>,
    ) -> MetricsSnapshot {
        let counters = self.0.lock();
        let of_kind = |(operation, of_kind): (Operation, &OperationCounters)| {
            let OperationCounters { count, errors, latency } = of_kind;
            let shown = Operations { count: *count, errors: *errors, latency: latency.latency() };
            (operation.name(), shown)
        };
        let (hits, misses) = counters.cache;
        let hit_rate = (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64);
        MetricsSnapshot {
            operations: Operation::ALL.into_iter().zip(&counters.kinds).map(of_kind).collect(),
            commits: counters.commits,
            conflicts: counters.conflicts,
            rejections: counters.rejections,
            transactions: Transactions {
                failures: counters.failures,
                writes: counters.groups.spread(),
            },
            queues,
            holders,
            indexes,
            sizes,
            cache: Cache { hits, misses, hit_rate },
            lag_commits: None,
            leader: None,
            parts: Vec::new(),
        }
    }
}

/// The outcomes of the writes of one submission.
pub struct Notes {
    since: Instant,
    kinds: [(u32, u32); KINDS],
    commits: u64,
    conflicts: u64,
    rejections: u64,
}

impl Notes {
    /// For writes that were submitted at `since`.
    #[must_use]
    pub fn new(since: Instant) -> Self {
        Self { since, kinds: [(0, 0); KINDS], commits: 0, conflicts: 0, rejections: 0 }
    }

    /// Counts one write.
    pub fn write(&mut self, operation: Operation, decision: &Decision) {
        let rejected = matches!(decision, Decision::Rejected(_));
        match decision {
            Decision::Rejected(_) => self.rejections += 1,
            Decision::CheckFailed(_) => self.conflicts += 1,
            Decision::Committed(_) | Decision::CommittedWith(..) | Decision::Deleted(_) => {
                self.commits += 1;
            }
        }
        if let Some((count, errors)) = self.kinds.get_mut(operation as usize) {
            *count += 1;
            *errors += u32::from(rejected);
        }
    }
}
