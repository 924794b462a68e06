//! Decides, without I/O: where an archiver goes on, what it does next, which objects a restore needs, what
//! retention removes.

mod resume;

pub(super) use resume::{End, Last, Lost, Resume, Source, resume};

use super::names::{SegmentsName, SnapshotName, Timeline};
use openkv_core::model::{Error, LogState, Origin, Result, Versionstamp, When};

/// The end of the archive of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) origin: Origin,
    /// The last archived commit.
    pub(super) last: u64,
    /// The newest snapshot, and when it was taken, in ms since the epoch. None while the archive cannot go on
    /// without another one.
    pub(super) snapshot: Option<(u64, i64)>,
}

/// The next step of an archiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Turns the log on.
    TurnOn,
    /// Begins another history: the file is not the archived copy, or is older than the archive.
    NewTimeline,
    /// Takes a snapshot, then goes on from it.
    Begin,
    /// Counts commits that are in no object, then goes on as without a snapshot.
    Lost(Lost),
    /// Archives the segments after its position.
    Segments,
    /// Takes a snapshot beside its other work, because the last one is old.
    Snapshot,
    /// Nothing.
    Idle,
}

/// When an archiver takes a snapshot beside the log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Every {
    /// In ms.
    pub(super) snapshot_ms: i64,
    /// Whether it is taking one.
    pub(super) taking: bool,
}

/// Decides what an archiver does next. `looked` is the last commit whose segments it has looked for: some
/// commits change no entry.
pub(super) fn next(at: Position, log: &LogState, looked: u64, now_ms: i64, every: Every) -> Next {
    let Some(extent) = log.log else { return Next::TurnOn };
    if extent.origin != at.origin || log.version < at.last {
        return Next::NewTimeline;
    }
    let Some((version, taken_ms)) = at.snapshot else { return Next::Begin };
    if extent.complete > at.last.max(looked) {
        return Next::Lost(Lost { archived: at.last, complete: extent.complete });
    }
    // Before the segments: a database that is written all the time would get no snapshot.
    let due = now_ms.saturating_sub(taken_ms) >= every.snapshot_ms;
    if due && at.last > version && !every.taking {
        return Next::Snapshot;
    }
    if log.version > at.last.max(looked) { Next::Segments } else { Next::Idle }
}

/// A snapshot of an archive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Snapshot {
    pub(super) name: SnapshotName,
    /// The time of its last commit, in ms since the epoch.
    pub(super) at_ms: i64,
}

/// Up to where a restore goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    Newest,
    Commit(u64),
    Time(i64),
}

impl From<Option<When>> for Until {
    fn from(when: Option<When>) -> Self {
        match when {
            None => Self::Newest,
            Some(When::Commit(stamp)) => Self::Commit(stamp.version()),
            Some(When::Time(at_ms)) => Self::Time(at_ms),
        }
    }
}

impl Until {
    /// The last commit up to here of a segment that ends with `last` at a time; `None` if all of the segment
    /// is later.
    pub(super) fn within(self, first: u64, last: u64, at_ms: i64) -> Option<u64> {
        match self {
            Self::Newest => Some(last),
            Self::Commit(version) => (first <= version).then(|| last.min(version)),
            Self::Time(until_ms) => (at_ms <= until_ms).then_some(last),
        }
    }
}

/// The snapshot that a restore begins with: the newest one that is not later. Snapshots are in the order of
/// commits, those of the newest history last.
///
/// # Errors
/// `Range` if all of them are later, `Invalid` if there is none.
pub(super) fn base(snapshots: &[Snapshot], until: Until) -> Result<Snapshot> {
    let Some(newest) = snapshots.last() else {
        return Err(Error::invalid(
            "the archive has no snapshot: an archiver writes the first one when it begins",
        ));
    };
    let found = match until {
        Until::Newest => Some(newest),
        Until::Commit(version) => snapshots.iter().rev().find(|one| one.name.version <= version),
        Until::Time(at_ms) => snapshots.iter().rev().find(|one| one.at_ms <= at_ms),
    };
    found.copied().ok_or_else(|| {
        let oldest = snapshots.iter().min_by_key(|one| one.at_ms).unwrap_or(newest);
        let given = match until {
            Until::Commit(version) => format!("the commit {}", Versionstamp::new(version)),
            Until::Time(at_ms) => format!("the time {at_ms} (ms since the epoch)"),
            Until::Newest => "the newest commit".to_owned(),
        };
        Error::new(
            openkv_core::model::Kind::Range,
            format!(
                "at: {given} is before the oldest one of the archive, the commit {} at {} (ms since the epoch); \
                 name a later one; a longer retention keeps older ones in future",
                Versionstamp::new(oldest.name.version),
                oldest.at_ms
            ),
        )
    })
}

/// The objects with the commits after `version`, in order. Where two owners have written the same commits,
/// those of the later owner count.
pub(super) fn chain(mut listed: Vec<SegmentsName>, version: u64) -> Vec<SegmentsName> {
    listed.retain(|name| name.last > version);
    listed.sort_unstable_by_key(|name| (name.first, std::cmp::Reverse(name.epoch), name.last));
    let mut chain: Vec<SegmentsName> = Vec::new();
    let mut last = 0;
    for name in listed {
        // Another owner's object with the same beginning, or the rest of its chain.
        if name.first > last {
            last = name.last;
            chain.push(name);
        }
    }
    chain
}

/// The objects of one history in an archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Its snapshots, in the order of commits.
    pub(super) snapshots: Vec<Snapshot>,
    /// Those whose head cannot be read.
    pub(super) damaged: Vec<SnapshotName>,
    pub(super) segments: Vec<SegmentsName>,
}

/// The objects that a retention removes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Pruned {
    pub(super) snapshots: Vec<SnapshotName>,
    pub(super) segments: Vec<SegmentsName>,
}

/// Decides what a retention removes: everything that no restore to a time since `oldest_ms` needs. The newest
/// snapshot of the newest history stays in any case, with all after it.
pub(super) fn prune(histories: &[(Timeline, Held)], oldest_ms: i64) -> Pruned {
    let mut pruned = Pruned::default();
    let snapshots = histories.iter().flat_map(|(_, held)| &held.snapshots);
    let needed = snapshots.clone().rev().find(|one| one.at_ms <= oldest_ms);
    let Some(oldest) = needed.or_else(|| snapshots.clone().next()) else { return pruned };
    for (timeline, held) in histories {
        let is_kept = |version| (*timeline, version) >= (oldest.name.timeline, oldest.name.version);
        let old = held.snapshots.iter().filter(|one| !is_kept(one.name.version));
        pruned.snapshots.extend(old.map(|one| one.name));
        pruned.snapshots.extend(held.damaged.iter().filter(|name| !is_kept(name.version)));
        let past = |name: &&SegmentsName| {
            *timeline < oldest.name.timeline
                || (*timeline == oldest.name.timeline && name.last <= oldest.name.version)
        };
        pruned.segments.extend(held.segments.iter().filter(past));
    }
    pruned
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::{Kind, LogBounds, LogExtent};

    const ORIGIN: Origin = Origin { database: [1; 16], incarnation: 2 };

    fn log(version: u64, complete: u64) -> LogState {
        let bounds = LogBounds { retention_ms: 1, bytes_max: 1 };
        let extent = LogExtent {
            origin: ORIGIN,
            bounds,
            complete,
            bytes: 0,
            history: None,
            messages: false,
        };
        LogState { version, log: Some(extent) }
    }

    fn snapshot(timeline: u32, version: u64, at_ms: i64) -> Snapshot {
        Snapshot { name: SnapshotName { timeline: Timeline(timeline), version }, at_ms }
    }

    fn segments(timeline: u32, first: u64, last: u64, epoch: u32) -> SegmentsName {
        SegmentsName { timeline: Timeline(timeline), first, last, epoch }
    }

    #[test]
    fn an_archiver_follows_the_log() {
        let at = Position { origin: ORIGIN, last: 5, snapshot: Some((3, 0)) };
        let every = |taking| Every { snapshot_ms: 100, taking };
        let next = |at, log, looked, now_ms| next(at, &log, looked, now_ms, every(false));
        let off = LogState { version: 9, log: None };
        assert_eq!(next(at, off, 0, 0), Next::TurnOn);
        let other = Position { origin: Origin { incarnation: 3, ..ORIGIN }, ..at };
        assert_eq!(next(other, log(9, 0), 0, 0), Next::NewTimeline);
        assert_eq!(next(at, log(4, 0), 0, 0), Next::NewTimeline);
        let empty = Position { snapshot: None, last: 0, ..at };
        assert_eq!(next(empty, log(4, 0), 0, 0), Next::Begin);
        let lost = Lost { archived: 5, complete: 6 };
        assert_eq!(next(at, log(9, 6), 0, 0), Next::Lost(lost));
        // All commits up to the sixth were looked at: they changed no entry.
        assert_eq!(next(at, log(9, 6), 6, 0), Next::Segments);
        assert_eq!(next(at, log(9, 5), 0, 0), Next::Segments);
        assert_eq!(next(at, log(9, 5), 8, 0), Next::Segments);
        assert_eq!(next(at, log(9, 5), 9, 99), Next::Idle);
        assert_eq!(next(at, log(9, 5), 9, 100), Next::Snapshot);
        assert_eq!(next(at, log(9, 5), 0, 100), Next::Snapshot);
        assert_eq!(super::next(at, &log(9, 5), 0, 100, every(true)), Next::Segments);
        let fresh = Position { snapshot: Some((5, 0)), ..at };
        assert_eq!(next(fresh, log(5, 5), 0, 1000), Next::Idle);
        // A clock that was set back.
        assert_eq!(next(at, log(5, 5), 0, -3_600_000), Next::Idle);
    }

    #[test]
    fn a_restore_begins_with_the_newest_snapshot_that_is_not_later() {
        let all = [snapshot(1, 3, 30), snapshot(1, 9, 90), snapshot(2, 5, 100)];
        let version = |until| base(&all, until).map(|one| one.name);
        assert_eq!(version(Until::Newest), Ok(all[2].name));
        assert_eq!(version(Until::Commit(9)), Ok(all[2].name));
        assert_eq!(version(Until::Commit(4)), Ok(all[0].name));
        assert_eq!(version(Until::Time(99)), Ok(all[1].name));
        for until in [Until::Commit(2), Until::Time(29)] {
            let error = version(until).unwrap_err();
            assert_eq!(error.kind(), Kind::Range);
            assert!(error.message().contains("00000000000000030000"), "{error}");
        }
        assert_eq!(base(&[], Until::Newest).unwrap_err().kind(), Kind::Invalid);
    }

    #[test]
    fn a_segment_is_restored_up_to_the_moment() {
        assert_eq!(Until::Newest.within(3, 9, 50), Some(9));
        assert_eq!(Until::Commit(2).within(3, 9, 50), None);
        assert_eq!(Until::Commit(5).within(3, 9, 50), Some(5));
        assert_eq!(Until::Time(50).within(3, 9, 50), Some(9));
        assert_eq!(Until::Time(49).within(3, 9, 50), None);
    }

    #[test]
    fn the_later_owner_counts_where_two_have_written() {
        let late = segments(1, 4, 6, 1);
        let (a, b, c) = (segments(1, 1, 3, 1), segments(1, 4, 9, 2), segments(1, 10, 12, 2));
        let rest = segments(1, 7, 8, 1);
        assert_eq!(chain(vec![c, late, b, a, rest], 0), [a, b, c]);
        assert_eq!(chain(vec![c, late, b, a], 9), [c]);
        assert_eq!(chain(vec![c, b, a], 5), [b, c]);
        assert_eq!(chain(vec![], 5), []);
    }

    #[test]
    fn retention_keeps_what_a_restore_to_its_time_needs() {
        let held = Held {
            snapshots: vec![snapshot(1, 3, 30), snapshot(1, 9, 90), snapshot(1, 12, 120)],
            damaged: vec![],
            segments: vec![segments(1, 4, 9, 1), segments(1, 10, 12, 1), segments(1, 13, 14, 1)],
        };
        let histories = vec![(Timeline(1), held.clone())];
        assert_eq!(prune(&histories, 29), Pruned::default());
        assert_eq!(prune(&histories, 89), Pruned::default());
        let pruned = prune(&histories, 90);
        assert_eq!(pruned.snapshots, [held.snapshots[0].name]);
        assert_eq!(pruned.segments, [held.segments[0]]);
        let pruned = prune(&histories, i64::MAX);
        assert_eq!((pruned.snapshots.len(), pruned.segments.len()), (2, 2));
        // One that cannot be read goes with its neighbours, and is no base of a restore.
        let damaged = [snapshot(1, 4, 0), snapshot(1, 11, 0)].map(|one| one.name);
        let with = Held { damaged: damaged.to_vec(), ..held.clone() };
        let pruned = prune(&[(Timeline(1), with)], 90);
        assert_eq!(pruned.snapshots, [held.snapshots[0].name, damaged[0]]);
        let newer = Held { snapshots: vec![snapshot(2, 10, 200)], ..Held::default() };
        let both = vec![(Timeline(1), held), (Timeline(2), newer)];
        let pruned = prune(&both, 200);
        assert_eq!((pruned.snapshots.len(), pruned.segments.len()), (3, 3));
        assert_eq!(prune(&both, 199).segments.len(), 2);
    }
}
