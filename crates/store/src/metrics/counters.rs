//! Counters: plain numbers and distributions.

use super::Operation;
use super::latency::Distribution;

pub(super) const KINDS: usize = Operation::ALL.len();

/// Reads of one kind.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Count {
    pub(super) answered: u64,
    pub(super) errors: u64,
}

#[derive(Clone, Default)]
pub(super) struct Counters {
    pub(super) kinds: [OperationCounters; KINDS],
    pub(super) commits: u64,
    pub(super) conflicts: u64,
    pub(super) rejections: u64,
    pub(super) failures: u64,
    pub(super) groups: Distribution,
    pub(super) cache: (u64, u64),
}

#[derive(Clone, Default)]
pub(super) struct OperationCounters {
    pub(super) count: u64,
    pub(super) errors: u64,
    pub(super) latency: Distribution,
}

impl Counters {
    pub(super) fn of_kind(&mut self, operation: Operation) -> Option<&mut OperationCounters> {
        self.kinds.get_mut(operation as usize)
    }

    /// Adds those of another one.
    pub(super) fn add(&mut self, other: &Self) {
        let Self { kinds, commits, conflicts, rejections, failures, groups, cache } = other;
        for (own, OperationCounters { count, errors, latency }) in self.kinds.iter_mut().zip(kinds)
        {
            own.count += count;
            own.errors += errors;
            own.latency.add(latency);
        }
        self.commits += commits;
        self.conflicts += conflicts;
        self.rejections += rejections;
        self.failures += failures;
        self.groups.add(groups);
        self.cache = (self.cache.0 + cache.0, self.cache.1 + cache.1);
    }

    pub(super) fn is_empty(&self) -> bool {
        let Self { kinds, commits, conflicts, rejections, failures, groups, cache } = self;
        let operations: u64 = kinds.iter().map(|of_kind| of_kind.count).sum();
        operations + commits + conflicts + rejections + failures + groups.sum() == 0
            && *cache == (0, 0)
    }
}
