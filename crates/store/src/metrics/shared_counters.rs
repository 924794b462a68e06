//! The counters of one database, shared by its threads, and how they pass into the database.

use std::collections::BTreeMap;
use std::time::Instant;

use parking_lot::{MappedMutexGuard, Mutex, MutexGuard};

use super::Operation;
use super::counters::{Count, Counters, KINDS, OperationCounters};
use super::kept::{FlushId, Kept};
use super::slow::{SLOW_NS, Slow, SlowId, SlowLog, Subject};
use super::snapshot::{
    Cache, Depth, Holders, IndexSize, MetricsSnapshot, Operations, Sizes, SlowOperation,
    Transactions,
};
use openkv_core::model::Decision;

/// The counters of one database in one process, since it was opened, or since a flush has taken them.
#[derive(Default)]
pub struct Metrics(Mutex<State>);

#[derive(Clone, Default)]
struct State {
    fresh: Counters,
    /// The counters that a flush has taken, until it is known to be stored.
    taken: Option<(FlushId, Counters)>,
    /// The number of the last flush.
    flushes: u64,
    /// A random number, if the database keeps the counters.
    process: u64,
    slow: SlowLog,
}

/// The counters of a process at one moment, before those that the database keeps are read.
pub struct OwnCounters(State);

/// The time since an instant, in ns.
pub(super) fn ns(since: Instant) -> u64 {
    u64::try_from(since.elapsed().as_nanos()).unwrap_or(u64::MAX)
}

impl Metrics {
    fn fresh(&self) -> MappedMutexGuard<'_, Counters> {
        MutexGuard::map(self.0.lock(), |state| &mut state.fresh)
    }

    /// The counters now. Read those that the database keeps after this, not before.
    #[must_use]
    pub fn own(&self) -> OwnCounters {
        OwnCounters(self.0.lock().clone())
    }

    /// Makes flushes possible. `process`: a random number, by which the database knows them.
    pub fn keep_as(&self, process: u64) {
        self.0.lock().process = process;
    }

    /// Whether there is anything that is not known to be stored.
    #[must_use]
    pub fn has_unkept(&self) -> bool {
        let state = self.0.lock();
        state.taken.is_some() || !state.fresh.is_empty()
    }

    /// Takes what was counted since the last flush, to be stored; `false` if there is nothing. What an
    /// earlier flush has taken, and could not store, is stored first.
    pub fn begin_flush(&self) -> bool {
        let mut state = self.0.lock();
        if state.taken.is_none() && !state.fresh.is_empty() {
            state.flushes += 1;
            let flush = FlushId { process: state.process, number: state.flushes };
            state.taken = Some((flush, std::mem::take(&mut state.fresh)));
        }
        state.taken.is_some()
    }

    /// The counters of the database after the flush. `kept`: those before it.
    #[must_use]
    pub fn flushed(&self, kept: Option<&str>) -> String {
        let mut kept = kept.map(Kept::parse).unwrap_or_default();
        if let Some((flush, counters)) = &self.0.lock().taken {
            kept.add(*flush, counters);
        }
        kept.to_json()
    }

    /// Ends a flush that is stored.
    pub fn end_flush(&self) {
        self.0.lock().taken = None;
    }

    /// Counts operations of one kind that were answered together; `since` is when they were
    /// requested. `about` is called for slow ones.
    pub fn answered(
        &self,
        operation: Operation,
        (times, good): (u64, bool),
        since: Instant,
        about: impl FnOnce() -> Subject,
    ) {
        if times == 0 {
            return;
        }
        let ns = ns(since);
        let mut state = self.0.lock();
        if let Some(of_kind) = state.fresh.of_kind(operation) {
            of_kind.count += times;
            of_kind.errors += if good { 0 } else { times };
            of_kind.latency.record(ns, times);
        }
        if ns >= SLOW_NS {
            state.slow.note(Slow { operation, subject: about(), times, good, since, ns });
        }
    }

    /// Notes a slow operation that a lane counts.
    pub(super) fn slow(&self, slow: Slow) {
        self.0.lock().slow.note(slow);
    }

    /// Adds the counts and sampled times of a lane.
    pub(super) fn add(&self, counted: &[(Operation, Count)], samples: &[(Operation, u64)]) {
        let mut counters = self.fresh();
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

    /// Adds the outcomes of one submission's writes, which were answered just now. Slow ones of one transaction
    /// are one entry of the slow log, `slow`.
    pub fn noted(&self, notes: &Notes, slow: &mut Option<SlowId>) {
        let ns = ns(notes.since);
        let mut state = self.0.lock();
        if ns >= SLOW_NS
            && let Some(entry) = notes.slow(ns)
        {
            match *slow {
                None => *slow = Some(state.slow.note(entry)),
                Some(id) => state.slow.join(id, entry.times),
            }
        }
        let counters = &mut state.fresh;
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
        let mut counters = self.fresh();
        counters.failures += u64::from(!good);
        if writes > 0 {
            counters.groups.record(writes as u64, 1);
        }
    }

    /// Adds the page cache hits and misses of a connection.
    pub fn cached(&self, (hits, misses): (u64, u64)) {
        if hits + misses > 0 {
            let mut counters = self.fresh();
            counters.cache.0 += hits;
            counters.cache.1 += misses;
        }
    }
}

impl OwnCounters {
    /// The slowest operations. `now`: the same moment by both clocks.
    #[must_use]
    pub fn slowest(&self, now: (Instant, i64)) -> Vec<SlowOperation> {
        self.0.slow.shown(now)
    }

    /// With those that the database keeps.
    fn with_kept(self, kept: Option<&str>) -> Counters {
        let Self(State { fresh, taken, flushes, process, slow: _ }) = self;
        let mut kept = kept.map(Kept::parse).unwrap_or_default();
        if let Some((flush, counters)) = taken {
            kept.add(flush, &counters);
        }
        // A flush that has begun meanwhile has taken what is fresh here.
        if !kept.contains(FlushId { process, number: flushes + 1 }) {
            kept.counters.add(&fresh);
        }
        kept.counters
    }

    /// All counters, together with values that are read from the database. `kept`: the counters that it
    /// keeps.
    #[must_use]
    pub fn snapshot(
        self,
        kept: Option<&str>,
        sizes: Sizes,
        holders: Holders,
        queues: BTreeMap<String, Depth>,
        indexes: BTreeMap<String, IndexSize>,
    ) -> MetricsSnapshot {
        let counters = self.with_kept(kept);
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
            bucket: None,
            replica: None,
            archives: Vec::new(),
            slowest: None,
            parts: Vec::new(),
        }
    }
}

/// The outcomes of the writes of one submission.
pub struct Notes {
    since: Instant,
    /// What its first write is about.
    subject: Subject,
    /// The kind of its first write.
    first: Option<Operation>,
    kinds: [(u32, u32); KINDS],
    commits: u64,
    conflicts: u64,
    rejections: u64,
}

impl Notes {
    /// For writes that were submitted at `since`; `subject` is that of the first one.
    #[must_use]
    pub fn new(since: Instant, subject: Subject) -> Self {
        let (kinds, first) = ([(0, 0); KINDS], None);
        Self { since, subject, first, kinds, commits: 0, conflicts: 0, rejections: 0 }
    }

    /// The entry of the slow log; `None` without a write.
    fn slow(&self, ns: u64) -> Option<Slow> {
        let Self { since, subject, first, commits, conflicts, rejections, .. } = *self;
        let (times, good) = (commits + conflicts + rejections, rejections == 0);
        Some(Slow { operation: first?, subject, times, good, since, ns })
    }

    /// Counts one write.
    pub fn write(&mut self, operation: Operation, decision: &Decision) {
        self.first.get_or_insert(operation);
        let rejected = matches!(decision, Decision::Rejected(_));
        match decision {
            Decision::Rejected(_) => self.rejections += 1,
            Decision::CheckFailed(_) | Decision::NotUnique(_) => self.conflicts += 1,
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

#[cfg(test)]
mod tests {
    use super::*;

    fn commits(own: OwnCounters, kept: Option<&str>) -> u64 {
        own.with_kept(kept).commits
    }

    fn count(metrics: &Metrics, commits: u64) {
        metrics.fresh().commits += commits;
    }

    #[test]
    fn a_flush_counts_once_before_while_and_after_it_is_stored() {
        let metrics = Metrics::default();
        metrics.keep_as(7);
        assert!(!metrics.begin_flush(), "nothing to store");
        count(&metrics, 3);
        let before = metrics.own();
        assert!(metrics.begin_flush());
        count(&metrics, 1);
        let while_taken = metrics.own();
        let first = metrics.flushed(None);
        assert_eq!(commits(before, Some(&first)), 3);
        assert_eq!(commits(while_taken, Some(&first)), 4);
        assert_eq!(commits(metrics.own(), None), 4, "not stored yet");
        // Its outcome is unknown, so it is stored again.
        assert!(metrics.begin_flush());
        let again = metrics.flushed(Some(&first));
        assert_eq!(again, first);
        metrics.end_flush();
        assert_eq!(commits(metrics.own(), Some(&first)), 4);
        assert!(metrics.begin_flush());
        let second = metrics.flushed(Some(&first));
        metrics.end_flush();
        assert!(!metrics.begin_flush());
        assert_eq!(commits(metrics.own(), Some(&second)), 4);
        let other = Metrics::default();
        other.keep_as(8);
        count(&other, 2);
        assert!(other.begin_flush());
        let both = other.flushed(Some(&second));
        assert_eq!(commits(metrics.own(), Some(&both)), 6);
    }
}
