//! Random sequences of commits, kills, trims, torn objects, late writes and replaced files against a model: a
//! commit that no restore reaches is part of a loss that was counted.

use std::collections::BTreeMap;

use super::super::{Every, Next, Position, chain, next};
use super::*;
use crate::archive::names::{SegmentsName, SnapshotName, Timeline};
use openkv_core::model::{LogBounds, LogExtent, LogState, Origin};

const ORIGIN: Origin = Origin { database: [1; 16], incarnation: 2 };

fn snapshot(version: u64, at_ms: i64) -> Snapshot {
    Snapshot { name: SnapshotName { timeline: Timeline(1), version }, at_ms }
}

fn last(version: u64, after: u64, follows: bool) -> Option<Last> {
    Some(Last { version, at_ms: version as i64, after, follows })
}

/// A database whose log has commits after one, each at the time of its number.
fn source(version: u64, complete: u64, end: End<'_>) -> Source {
    let place = |at: u64| (complete < at).then_some((at, at as i64));
    Source {
        version,
        complete,
        last: end.last.and_then(|last| place(last.version)),
        newest: end.snapshots.last().and_then(|newest| place(newest.name.version)),
    }
}

#[test]
fn an_archiver_goes_on_behind_the_last_object_that_is_proved() {
    let decide = |snapshots: &[Snapshot], last, version, complete| {
        let end = End { snapshots, last, seen: 0 };
        resume(end, source(version, complete, end))
    };
    let lost = |archived, complete| Some(Lost { archived, complete });
    let both = [snapshot(3, 3), snapshot(20, 20)];
    assert_eq!(decide(&[], None, 9, 0), Resume::Take(None));
    assert_eq!(decide(&both[..1], None, 9, 3), Resume::Snapshot(3, None));
    assert_eq!(decide(&both[..1], last(7, 3, false), 9, 7), Resume::Segments);
    // A run that ended between a snapshot and the objects before it.
    assert_eq!(decide(&both, last(10, 5, true), 30, 10), Resume::Segments);
    assert_eq!(decide(&both, last(10, 5, true), 30, 11), Resume::Snapshot(20, lost(10, 11)));
    assert_eq!(decide(&both, last(10, 5, true), 30, 21), Resume::Take(lost(10, 21)));
    assert_eq!(decide(&both, None, 30, 4), Resume::Snapshot(20, lost(3, 4)));
    // An object behind others that are missing.
    assert_eq!(decide(&both, last(30, 25, false), 30, 0), Resume::Take(lost(3, 25)));
    assert_eq!(decide(&both, last(30, 20, false), 30, 0), Resume::Segments);
    // Objects before the oldest snapshot are of no use.
    assert_eq!(decide(&both[1..], last(10, 5, false), 30, 20), Resume::Snapshot(20, None));
}

#[test]
fn another_database_begins_another_history() {
    let snapshots = [snapshot(3, 3)];
    let end = End { snapshots: &snapshots, last: last(7, 3, false), seen: 9 };
    let of = source(9, 0, end);
    assert_eq!(resume(end, of), Resume::Segments);
    assert_eq!(resume(end, Source { version: 8, ..of }), Resume::NewTimeline);
    for other in [None, Some((7, 8)), Some((6, 7))] {
        assert_eq!(resume(end, Source { last: other, ..of }), Resume::NewTimeline);
        // The log has that commit no more: nothing is known.
        assert_eq!(resume(end, Source { last: other, complete: 7, ..of }), Resume::Segments);
    }
    assert_eq!(resume(end, Source { newest: Some((3, 4)), ..of }), Resume::NewTimeline);
}

/// A small generator: xorshift64.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

/// An object with the commits in it and their times.
#[derive(Clone)]
struct Object {
    name: SegmentsName,
    after: u64,
    previous: u64,
    number: u64,
    commits: BTreeMap<u64, i64>,
    sound: bool,
}

/// A database, its log and its archive.
struct World {
    random: Random,
    /// The last commit, and the commits that changed an entry with their times.
    version: u64,
    commits: BTreeMap<u64, i64>,
    /// The log has the commits after this one.
    complete: u64,
    now_ms: i64,
    /// The newest history.
    timeline: u32,
    objects: Vec<Object>,
    snapshots: Vec<(Snapshot, u64)>,
    seen: u64,
    epoch: u32,
    numbers: u64,
    /// The last number before the last run.
    begun: u64,
    /// Losses that were counted, up to the snapshot behind which the archive goes on.
    lost: Vec<(u64, u64)>,
    /// The write of an earlier owner that has not arrived.
    late: Option<Object>,
    /// Whether nothing happens beside the archiver.
    quiet: bool,
}

impl std::fmt::Display for World {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "version {}, log after {}, lost {:?}", self.version, self.complete, self.lost)?;
        for (snapshot, number) in &self.snapshots {
            writeln!(f, "{number}: snapshot {}", snapshot.name.version)?;
        }
        for Object { name, after, previous, number, sound, .. } in &self.objects {
            writeln!(f, "{number}: {name} after {after} continues {previous} sound {sound}")?;
        }
        Ok(())
    }
}

impl World {
    fn new(seed: u64) -> Self {
        Self {
            random: Random(seed * 2 + 1),
            version: 3,
            commits: BTreeMap::from([(3, 1)]),
            complete: 3,
            now_ms: 1,
            timeline: 1,
            objects: Vec::new(),
            snapshots: Vec::new(),
            seen: 0,
            epoch: 0,
            numbers: 0,
            begun: 0,
            lost: Vec::new(),
            late: None,
            quiet: false,
        }
    }

    fn number(&mut self) -> u64 {
        self.numbers += 1;
        self.numbers
    }

    fn commit(&mut self) {
        self.version += 1;
        self.now_ms += 1;
        if self.random.below(4) > 0 {
            self.commits.insert(self.version, self.now_ms);
        }
    }

    /// The log loses its oldest segments, as many as it happens.
    fn trim(&mut self) {
        let left: Vec<u64> = self.commits.range(self.complete + 1..).map(|(at, _)| *at).collect();
        let count = self.random.below(left.len() as u64 + 1);
        if let Some(dropped) = count.checked_sub(1).and_then(|at| left.get(at as usize)) {
            self.complete = *dropped;
        }
    }

    fn place(&self, at: u64) -> Option<(u64, i64)> {
        let (last, at_ms) = self.commits.range(..=at).next_back()?;
        (*last > self.complete).then_some((*last, *at_ms))
    }

    /// A copy of the file as it was at an earlier commit takes its place, and is written to.
    fn replace(&mut self) {
        // Nothing of the file before is under way any more.
        self.late = None;
        let earlier = self.complete + self.random.below(self.version - self.complete + 1);
        self.version = earlier;
        self.commits.retain(|at, _| *at <= earlier);
        self.now_ms += 100;
        for _ in 0..self.random.below(8) {
            self.commit();
        }
    }

    fn names(&self) -> Vec<SegmentsName> {
        self.objects.iter().map(|object| object.name).collect()
    }

    fn object(&self, name: SegmentsName) -> &Object {
        self.objects.iter().find(|object| object.name == name).unwrap()
    }

    fn create(&mut self, object: Object) {
        if !self.objects.iter().any(|there| there.name == object.name) {
            self.objects.push(object);
        }
    }

    fn begin_timeline(&mut self) {
        self.timeline += 1;
        (self.objects, self.snapshots, self.seen) = (Vec::new(), Vec::new(), 0);
        (self.lost, self.late) = (Vec::new(), None);
    }

    /// The last sound object, as `ending::last` finds it.
    fn ending(&mut self) -> Option<(Last, u64)> {
        let oldest = self.snapshots.first().map_or(0, |(one, _)| one.name.version);
        loop {
            let mut found = chain(self.names(), oldest);
            let object = self.object(found.pop()?).clone();
            if object.sound {
                let before = found.pop().map(|name| self.object(name).number);
                let follows = before == Some(object.previous);
                let (version, after) = (object.name.last, object.after);
                let at_ms = object.commits[&version];
                return Some((Last { version, at_ms, after, follows }, object.number));
            }
            self.objects.retain(|one| one.name != object.name);
        }
    }

    fn take(&mut self) -> u64 {
        let at_ms = self.place(self.version).map_or(self.now_ms, |(_, at_ms)| at_ms);
        let number = self.number();
        self.keep((snapshot(self.version, at_ms), number));
        number
    }

    fn keep(&mut self, taken: (Snapshot, u64)) {
        if !self.snapshots.iter().any(|(one, _)| one.name == taken.0.name) {
            self.snapshots.push(taken);
            self.snapshots.sort_by_key(|(one, _)| one.name.version);
        }
    }

    /// An archiver from its beginning to its death after some steps, or until it is idle.
    fn archive(&mut self, mut steps: u64) {
        self.epoch += 1;
        self.begun = self.numbers;
        let ending = self.ending();
        let snapshots: Vec<Snapshot> = self.snapshots.iter().map(|(one, _)| *one).collect();
        let end =
            End { snapshots: &snapshots, last: ending.map(|(last, _)| last), seen: self.seen };
        let of = Source {
            version: self.version,
            complete: self.complete,
            last: end.last.and_then(|last| self.place(last.version)),
            newest: snapshots.last().and_then(|newest| self.place(newest.name.version)),
        };
        let newest = snapshots.last().map(|newest| (newest.name.version, 0));
        let mut at = Position { origin: ORIGIN, last: 0, snapshot: None };
        let (mut previous, mut looked, mut losing) = (0, 0, None);
        match resume(end, of) {
            Resume::NewTimeline => self.begin_timeline(),
            Resume::Segments => {
                let (last, number) = ending.unwrap();
                (at.last, at.snapshot, previous) = (last.version, newest, number);
            }
            Resume::Snapshot(version, lost) => {
                (at.last, at.snapshot) = (version, newest);
                let found = self.snapshots.iter().find(|(one, _)| one.name.version == version);
                previous = found.unwrap().1;
                self.lost.extend(lost.map(|lost| (lost.archived, version)));
            }
            Resume::Take(lost) => {
                at.last = lost.map_or(0, |lost| lost.archived);
                losing = lost;
            }
        }
        let mut taking: Option<(Snapshot, u64)> = None;
        while steps > 0 {
            steps -= 1;
            match self.random.below(6) {
                _ if self.quiet => {}
                0 => self.trim(),
                1 => self.commit(),
                2 => self.late.take().into_iter().for_each(|late| self.create(late)),
                3 => taking.take().into_iter().for_each(|taken| {
                    at.snapshot = Some((taken.0.name.version, 0));
                    self.keep(taken);
                }),
                _ => {}
            }
            let bounds = LogBounds { retention_ms: 1, bytes_max: 1 };
            let extent = LogExtent {
                origin: ORIGIN,
                bounds,
                complete: self.complete,
                bytes: 0,
                history: None,
                messages: false,
            };
            let state = LogState { version: self.version, log: Some(extent) };
            let every = Every { snapshot_ms: 1, taking: taking.is_some() };
            // A snapshot is due now and then.
            let now_ms = i64::from(self.random.below(5) == 0);
            match next(at, &state, looked, now_ms, every) {
                Next::TurnOn | Next::NewTimeline => panic!("{at:?} {state:?}"),
                Next::Lost(lost) => {
                    losing = Some(lost);
                    at.snapshot = None;
                }
                Next::Begin => {
                    previous = self.take();
                    self.lost.extend(losing.take().map(|lost| (lost.archived, self.version)));
                    (at.last, at.snapshot) = (self.version, Some((self.version, 0)));
                }
                Next::Snapshot => {
                    let at_ms = self.place(self.version).map_or(self.now_ms, |(_, at_ms)| at_ms);
                    taking = Some((snapshot(self.version, at_ms), self.number()));
                }
                Next::Segments => {
                    let max = 1 + self.random.below(3) as usize;
                    let waiting = self.commits.range(self.complete.max(at.last) + 1..);
                    let commits: BTreeMap<u64, i64> =
                        waiting.take(max).map(|(at, at_ms)| (*at, *at_ms)).collect();
                    if commits.len() < max {
                        looked = self.version;
                    }
                    let Some((first, _)) = commits.first_key_value() else { continue };
                    let (timeline, epoch) = (Timeline(1), self.epoch);
                    let last = *commits.last_key_value().unwrap().0;
                    let name = SegmentsName { timeline, first: *first, last, epoch };
                    let number = self.number();
                    let (after, sound) = (at.last, true);
                    let object = Object { name, after, previous, number, commits, sound };
                    // Dead while it writes: the object arrives later, or never.
                    if steps == 0 && self.random.below(2) == 0 {
                        self.late = Some(object);
                        return;
                    }
                    self.create(object);
                    (at.last, previous) = (last, number);
                }
                Next::Idle => {
                    self.seen = self.seen.max(self.version);
                    looked = self.version;
                }
            }
        }
    }

    /// The commits that a restore reaches from a snapshot on.
    fn reached(&self, from: u64) -> BTreeMap<u64, i64> {
        let (mut reached, mut all) = (from, BTreeMap::new());
        for name in chain(self.names(), from) {
            let object = self.object(name);
            if !object.sound || object.after > reached {
                break;
            }
            reached = name.last;
            all.extend(object.commits.range(from + 1..).map(|(at, at_ms)| (*at, *at_ms)));
        }
        all
    }

    fn check(&self, seed: u64) {
        let Some((oldest, _)) = self.snapshots.first() else { return };
        let mut restorable = BTreeMap::new();
        for (snapshot, _) in &self.snapshots {
            restorable.extend(self.reached(snapshot.name.version));
            // A snapshot is a commit that can be restored.
            restorable.extend(self.commits.get_key_value(&snapshot.name.version));
        }
        for (at, at_ms) in &self.commits {
            let is_lost = self.lost.iter().any(|(archived, until)| archived < at && at <= until);
            match restorable.get(at) {
                Some(found) => assert_eq!(found, at_ms, "seed {seed}: another commit {at}"),
                None if *at < oldest.name.version || is_lost => {}
                None => panic!(
                    "seed {seed}: the commit {at} is in no object, and nothing was counted: {self}"
                ),
            }
        }
    }
}

#[test]
fn no_commit_is_lost_in_silence() {
    let (mut losses, mut histories, mut torn) = (0, 0, 0);
    for seed in 1..=2000 {
        let mut world = World::new(seed);
        for _ in 0..12 {
            match world.random.below(7) {
                0 => world.trim(),
                1 if world.random.below(4) == 0 => {
                    world.replace();
                    // A log that has lost the archived commits cannot tell a replaced file.
                    world.archive(0);
                }
                2 => {
                    // The last object in the order of time, as a crash of its store leaves it: of the last run,
                    // so that no other run has read it, and its last write.
                    let begun = if world.late.is_none() { world.begun } else { u64::MAX };
                    let newest = world.objects.iter_mut().max_by_key(|object| object.number);
                    newest.filter(|newest| newest.number > begun).into_iter().for_each(|object| {
                        object.sound = false;
                        torn += 1;
                    });
                }
                3 => world.late.take().into_iter().for_each(|late| world.create(late)),
                4 => (0..world.random.below(6)).for_each(|_| world.commit()),
                _ => {
                    let steps = world.random.below(12);
                    world.archive(steps);
                }
            }
        }
        world.quiet = true;
        world.archive(100);
        world.check(seed);
        losses += world.lost.len();
        histories += u32::from(world.timeline > 1);
    }
    assert!(losses > 100 && histories > 100 && torn > 100, "{losses} {histories} {torn}");
}
