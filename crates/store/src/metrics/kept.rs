//! The counters that a database keeps, so that they survive the end of a process: as JSON, with the last
//! flush of each process.
//!
//! Invariant: a flush counts once, also if it is stored again after an unknown outcome, or is stored during a
//! read.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::Operation;
use super::counters::{Counters, OperationCounters};
use super::latency::Distribution;
use openkv_core::model::METRIC_FLUSHES_MAX;

/// The form of this version. Another one counts as none, and the next flush replaces it.
const FORMAT: u32 = 1;

/// A flush of a process: what it has counted since the one before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FlushId {
    /// A random number of the process.
    pub(super) process: u64,
    /// The number of the flush in the process, from 1.
    pub(super) number: u64,
}

/// The kept counters.
#[derive(Clone, Default)]
pub(super) struct Kept {
    pub(super) counters: Counters,
    /// The last flush of each process, the newest at the end.
    flushes: Vec<FlushId>,
}

impl Kept {
    /// Reads what [`Kept::to_json`] has written.
    pub(super) fn parse(json: &str) -> Self {
        match serde_json::from_str::<Form>(json) {
            Ok(form) if form.format == FORMAT => form.into(),
            Ok(Form { format, .. }) => {
                tracing::warn!(format, "the kept metrics have an unknown form: they begin anew");
                Self::default()
            }
            Err(error) => {
                tracing::warn!(%error, "the kept metrics cannot be read: they begin anew");
                Self::default()
            }
        }
    }

    pub(super) fn to_json(&self) -> String {
        serde_json::to_string(&Form::from(self)).unwrap_or_default()
    }

    /// Whether it contains this flush.
    pub(super) fn contains(&self, flush: FlushId) -> bool {
        let last = self.flushes.iter().find(|last| last.process == flush.process);
        last.is_some_and(|last| last.number >= flush.number)
    }

    /// Adds a flush, unless it is in it.
    pub(super) fn add(&mut self, flush: FlushId, counters: &Counters) {
        if self.contains(flush) {
            return;
        }
        self.counters.add(counters);
        self.flushes.retain(|last| last.process != flush.process);
        self.flushes.push(flush);
        let surplus = self.flushes.len().saturating_sub(METRIC_FLUSHES_MAX);
        self.flushes.drain(..surplus);
    }
}

#[derive(Serialize, Deserialize)]
struct Form {
    format: u32,
    /// Process and number of each flush. The process is text, because JSON rounds large numbers.
    flushes: Vec<(String, u64)>,
    operations: BTreeMap<String, OperationForm>,
    commits: u64,
    conflicts: u64,
    rejections: u64,
    failures: u64,
    groups: DistributionForm,
    cache: (u64, u64),
}

#[derive(Serialize, Deserialize)]
struct OperationForm {
    count: u64,
    errors: u64,
    latency: DistributionForm,
}

/// The sum of the values, and how often each was seen.
#[derive(Serialize, Deserialize)]
struct DistributionForm {
    sum: u64,
    values: Vec<(u64, u64)>,
}

impl From<&Kept> for Form {
    fn from(Kept { counters, flushes }: &Kept) -> Self {
        let operations = Operation::ALL.into_iter().zip(&counters.kinds);
        let used = operations.filter(|(_, of_kind)| of_kind.count > 0);
        let flushes = flushes.iter().map(|id| (format!("{:x}", id.process), id.number));
        Self {
            format: FORMAT,
            flushes: flushes.collect(),
            operations: used.map(|(of, kind)| (of.name().to_owned(), kind.into())).collect(),
            commits: counters.commits,
            conflicts: counters.conflicts,
            rejections: counters.rejections,
            failures: counters.failures,
            groups: (&counters.groups).into(),
            cache: counters.cache,
        }
    }
}

impl From<Form> for Kept {
    fn from(form: Form) -> Self {
        let mut counters = Counters {
            commits: form.commits,
            conflicts: form.conflicts,
            rejections: form.rejections,
            failures: form.failures,
            groups: form.groups.into(),
            cache: form.cache,
            ..Counters::default()
        };
        for (operation, of_kind) in Operation::ALL.into_iter().zip(&mut counters.kinds) {
            if let Some(OperationForm { count, errors, latency }) =
                form.operations.get(operation.name())
            {
                let latency = Distribution::of(latency.sum, &latency.values);
                *of_kind = OperationCounters { count: *count, errors: *errors, latency };
            }
        }
        let flush = |(process, number): (String, u64)| {
            let process = u64::from_str_radix(&process, 16).ok()?;
            Some(FlushId { process, number })
        };
        Self { counters, flushes: form.flushes.into_iter().filter_map(flush).collect() }
    }
}

impl From<&OperationCounters> for OperationForm {
    fn from(OperationCounters { count, errors, latency }: &OperationCounters) -> Self {
        Self { count: *count, errors: *errors, latency: latency.into() }
    }
}

impl From<&Distribution> for DistributionForm {
    fn from(of: &Distribution) -> Self {
        Self { sum: of.sum(), values: of.values() }
    }
}

impl From<DistributionForm> for Distribution {
    fn from(DistributionForm { sum, values }: DistributionForm) -> Self {
        Self::of(sum, &values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counted(commits: u64) -> Counters {
        let mut counters = Counters { commits, cache: (1, 2), ..Counters::default() };
        counters.groups.record(commits, 3);
        if let Some(of_kind) = counters.of_kind(Operation::Set) {
            (of_kind.count, of_kind.errors) = (commits, 1);
            of_kind.latency.record(1500, commits);
        }
        counters
    }

    fn flush(process: u64, number: u64) -> FlushId {
        FlushId { process, number }
    }

    #[test]
    fn counters_come_back_as_they_were_written() {
        let mut kept = Kept::default();
        kept.add(flush(u64::MAX, 1), &counted(5));
        let read = Kept::parse(&kept.to_json());
        assert_eq!(read.to_json(), kept.to_json());
        assert_eq!((read.counters.commits, read.counters.cache), (5, (1, 2)));
        let spreads = [&read, &kept].map(|of| of.counters.groups.spread().unwrap());
        assert_eq!(spreads.map(|of| (of.count, of.sum, of.p50)), [(3, 15.0, 5.0); 2]);
        assert!(read.contains(flush(u64::MAX, 1)) && !read.contains(flush(u64::MAX, 2)));
    }

    #[test]
    fn a_flush_counts_once_and_the_flushes_of_processes_add_up() {
        let mut kept = Kept::default();
        for (process, number) in [(1, 1), (1, 1), (2, 1), (1, 2), (1, 1), (2, 1)] {
            kept.add(flush(process, number), &counted(10));
        }
        assert_eq!(kept.counters.commits, 30);
        let set = kept.counters.of_kind(Operation::Set).unwrap();
        let latency = set.latency.latency().unwrap();
        assert_eq!((set.count, set.errors, latency.samples), (30, 3, 30));
    }

    #[test]
    fn the_flushes_of_many_processes_are_bounded() {
        let mut kept = Kept::default();
        (0..100).for_each(|process| kept.add(flush(process, 1), &counted(1)));
        assert_eq!((kept.counters.commits, kept.flushes.len()), (100, METRIC_FLUSHES_MAX));
        assert!(kept.contains(flush(99, 1)) && !kept.contains(flush(0, 1)));
    }

    #[test]
    fn what_is_not_a_form_of_this_version_begins_anew() {
        let newer = Kept::default().to_json().replace("\"format\":1", "\"format\":2");
        for json in ["", "{}", "[1]", &newer] {
            assert_eq!(Kept::parse(json).counters.commits, 0);
        }
    }
}
