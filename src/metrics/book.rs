//! The counters of one database, shared by its threads.

use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::Mutex;

use super::latency::Distribution;
use super::picture::{Cache, Depth, Holders, IndexSize, Operations, Picture, Sizes, Transactions};
use super::{Operation, tally};
use crate::model::Decision;

const KINDS: usize = Operation::ALL.len();

/// Counters of one database in one process, from its opening on.
#[derive(Default)]
pub struct Metrics(Mutex<Book>);

#[derive(Default)]
struct Book {
    kinds: [Line; KINDS],
    commits: u64,
    conflicts: u64,
    rejections: u64,
    failures: u64,
    groups: Distribution,
    cache: (u64, u64),
}

#[derive(Default)]
struct Line {
    count: u64,
    errors: u64,
    latency: Distribution,
}

impl Book {
    fn line(&mut self, operation: Operation) -> Option<&mut Line> {
        self.kinds.get_mut(operation as usize)
    }
}

/// The time since then, in ns.
pub(super) fn ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Metrics {
    /// So many operations of a kind were answered together, `since` when they were asked for.
    pub fn answered(&self, operation: Operation, times: u64, good: bool, since: Instant) {
        if times == 0 {
            return;
        }
        let ns = ns(since);
        if let Some(line) = self.0.lock().line(operation) {
            line.count += times;
            line.errors += if good { 0 } else { times };
            line.latency.record(ns, times);
        }
    }

    /// What a lane has counted.
    pub(super) fn add(&self, counted: &[(Operation, tally::Count)], samples: &[(Operation, u64)]) {
        let mut book = self.0.lock();
        for (operation, count) in counted {
            if let Some(line) = book.line(*operation) {
                line.count += count.answered;
                line.errors += count.errors;
            }
        }
        for (operation, ns) in samples {
            if let Some(line) = book.line(*operation) {
                line.latency.record(*ns, 1);
            }
        }
    }

    /// Writes of one submission were answered.
    pub fn noted(&self, notes: &Notes) {
        let ns = ns(notes.since);
        let mut book = self.0.lock();
        book.commits += notes.commits;
        book.conflicts += notes.conflicts;
        book.rejections += notes.rejections;
        for (line, (count, errors)) in book.kinds.iter_mut().zip(notes.kinds) {
            if count > 0 {
                line.count += u64::from(count);
                line.errors += u64::from(errors);
                line.latency.record(ns, count.into());
            }
        }
    }

    /// A transaction with so many writes has ended.
    pub fn transaction(&self, writes: usize, good: bool) {
        let mut book = self.0.lock();
        book.failures += u64::from(!good);
        if writes > 0 {
            book.groups.record(writes as u64, 1);
        }
    }

    /// A connection has found pages in its cache, and missed others.
    pub fn cached(&self, (hits, misses): (u64, u64)) {
        if hits + misses > 0 {
            let mut book = self.0.lock();
            book.cache.0 += hits;
            book.cache.1 += misses;
        }
    }

    /// Everything at once, with what is not counted but looked up.
    #[must_use]
    pub fn picture(
        &self,
        sizes: Sizes,
        holders: Holders,
        queues: BTreeMap<String, Depth>,
        indexes: BTreeMap<String, IndexSize>,
    ) -> Picture {
        let book = self.0.lock();
        let line = |(operation, line): (Operation, &Line)| {
            let Line { count, errors, latency } = line;
            let shown = Operations { count: *count, errors: *errors, latency: latency.latency() };
            (operation.name(), shown)
        };
        let (hits, misses) = book.cache;
        let hit_rate = (hits + misses > 0).then(|| hits as f64 / (hits + misses) as f64);
        Picture {
            operations: Operation::ALL.into_iter().zip(&book.kinds).map(line).collect(),
            commits: book.commits,
            conflicts: book.conflicts,
            rejections: book.rejections,
            transactions: Transactions { failures: book.failures, writes: book.groups.spread() },
            queues,
            holders,
            indexes,
            sizes,
            cache: Cache { hits, misses, hit_rate },
        }
    }
}

/// What became of the writes of one submission.
pub struct Notes {
    since: Instant,
    kinds: [(u32, u32); KINDS],
    commits: u64,
    conflicts: u64,
    rejections: u64,
}

impl Notes {
    /// For writes that were handed over then.
    #[must_use]
    pub fn new(since: Instant) -> Self {
        Self { since, kinds: [(0, 0); KINDS], commits: 0, conflicts: 0, rejections: 0 }
    }

    /// One write.
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
