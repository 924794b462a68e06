//! The rules of the replication log and of history.

use std::collections::BTreeMap;

use super::*;
use openkv_core::model::{
    Capability, EntryVersion, LogSettings, LogState, Moment, Origin, Setting, Step, Walk, When,
};

pub(super) const DAY_MS: i64 = 86_400_000;

/// Commits after which every engine has shortened its history.
pub(super) const TRIMMED_COMMITS: usize = 64;

pub(super) const ORIGIN: Origin = Origin { database: *b"a database's id.", incarnation: 7 };

/// An entry: the commit, the value, the expiry.
pub(super) type Shown = (u64, Vec<u8>, Option<i64>);
pub(super) type Entries = BTreeMap<Vec<u8>, Shown>;

pub(super) fn keep(writer: &mut impl Writer, kept_ms: i64, now_ms: i64) -> u64 {
    let settings = LogSettings { history_ms: Setting::On(kept_ms), ..LogSettings::default() };
    writer.set_log(&settings, ORIGIN, now_ms, soon()).unwrap()
}

pub(super) fn state(reader: &mut impl Reader) -> LogState {
    read(reader, NOW, |snapshot| snapshot.log()?.state())
}

/// All entries in both directions, with and without values, and each by its key.
pub(super) fn entries(reader: &mut impl Reader, now_ms: i64) -> Entries {
    read(reader, now_ms, |snapshot| {
        let walk = |snapshot: &mut dyn Snapshot, reverse, values| {
            let mut found = Vec::new();
            let walk = Walk { start: &[], end: &[255], reverse, values };
            snapshot.walk(walk, &mut |seen| {
                let version = seen.row.stamp.version();
                let shown = (version, seen.row.value.to_vec(), seen.expire_at_ms);
                found.push((seen.row.key.to_vec(), shown));
                // A seek to the next key continues like a step.
                match (found.len() % 3, reverse) {
                    (0, false) => Step::Seek([seen.row.key, &[0]].concat()),
                    (0, true) => Step::Seek(seen.row.key.to_vec()),
                    _ => Step::Next,
                }
            })?;
            Ok::<_, openkv_core::model::Error>(found)
        };
        let forward = walk(snapshot, false, true)?;
        let mut backward = walk(snapshot, true, true)?;
        backward.reverse();
        assert_eq!(forward, backward);
        let keys = walk(snapshot, false, false)?;
        assert_eq!(keys.len(), forward.len());
        for (key, (version, value, end)) in &forward {
            let mut got = None;
            snapshot.get(key, &mut |row| {
                got = Some((row.stamp.version(), row.value.to_vec()));
            })?;
            assert_eq!(got, Some((*version, value.clone())));
            assert_eq!(snapshot.expiry(key)?, Some(*end));
        }
        Ok(forward.into_iter().collect())
    })
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

    fn mutation(&mut self, now_ms: i64) -> Mutation {
        let name = format!("k{}", self.below(12));
        let ahead = 1 + i64::try_from(self.below(40)).unwrap();
        match self.below(10) {
            0..=1 => delete(&name),
            2 => Mutation::SetExpiry {
                key: key(&name),
                expiry: (self.below(3) > 0).then_some(Time::At(now_ms + ahead)),
                required: false,
                shortens: false,
            },
            3 => set_until(&name, &[3; 20], Some(now_ms + ahead)),
            4 => set(&name, &vec![4; 3000]),
            _ => set(&name, &self.below(1 << 40).to_le_bytes()),
        }
    }
}

/// Every moment of a random history, with the entries that a reader saw right after it.
pub(super) fn random_history(
    engine: &impl Engine,
    batches: usize,
    seed: u64,
) -> Vec<(Moment, Entries)> {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let mut random = Random(seed);
    let mut now_ms = NOW;
    let mut moments = Vec::new();
    for _ in 0..batches {
        now_ms += i64::try_from(random.below(15)).unwrap();
        let mut writes = Vec::new();
        for _ in 0..=random.below(3) {
            let count = 1 + random.below(4);
            let mutations = (0..count).map(|_| random.mutation(now_ms)).collect();
            writes.push(write(vec![], mutations));
        }
        let sweep_max = usize::from(random.below(3) == 0) * 5;
        let work = Work { writes, sweep_max, ..Work::default() };
        let report = apply_at(&mut writer, work, now_ms);
        let moment = Moment { version: report.versions.1, at_ms: now_ms };
        moments.push((moment, entries(&mut reader, now_ms)));
    }
    moments
}

pub(super) fn every_moment_is_read_as_it_was(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    mutate(&mut writer, vec![set("k1", b"before"), set("k2", &[7; 2000])]);
    let since = keep(&mut writer, DAY_MS, NOW);
    let mut reader = engine.reader().unwrap();
    let first = (Moment { version: since, at_ms: NOW }, entries(&mut reader, NOW));
    let moments = random_history(engine, 60, 0x5eed);
    for (moment, expected) in [first].into_iter().chain(moments) {
        let mut past = engine.reader_at(moment).unwrap();
        assert_eq!(entries(&mut past, NOW + DAY_MS), expected, "{moment:?}");
        let when = When::Commit(Versionstamp::new(moment.version));
        let named = read(&mut reader, NOW, |snapshot| snapshot.log()?.moment(when, NOW));
        assert_eq!(named, moment);
    }
}

/// Entries from before a history are not found by what an earlier one has left behind.
pub(super) fn a_history_that_begins_again_has_nothing_of_before(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    keep(&mut writer, DAY_MS, NOW);
    let _ = random_history(engine, 20, 0xfade);
    let off = LogSettings { history_ms: Setting::Off, ..LogSettings::default() };
    writer.set_log(&off, ORIGIN, NOW + DAY_MS, soon()).unwrap();
    let at_ms = NOW + 2 * DAY_MS;
    let version = keep(&mut writer, DAY_MS, at_ms);
    let begun = (Moment { version, at_ms }, entries(&mut reader, at_ms));
    let mut moments = vec![begun];
    for n in 0..40 {
        let name = format!("k{}", n % 5);
        let writes = vec![write(vec![], vec![set(&name, &[n])])];
        let report = apply_at(&mut writer, Work { writes, ..Work::default() }, at_ms);
        let moment = Moment { version: report.versions.1, at_ms };
        moments.push((moment, entries(&mut reader, at_ms)));
    }
    for (moment, expected) in moments {
        let mut past = engine.reader_at(moment).unwrap();
        assert_eq!(entries(&mut past, at_ms), expected, "{moment:?}");
    }
}

/// A key that every commit changes, in one transaction and in many.
pub(super) fn a_busy_key_has_every_version(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    keep(&mut writer, DAY_MS, NOW);
    for _ in 0..10 {
        let writes = (0..25).map(|n| write(vec![], vec![set("a", &[n])])).collect();
        commit(&mut writer, writes);
    }
    for n in 0..50 {
        mutate(&mut writer, vec![set("a", &[n])]);
    }
    for version in 1..=300 {
        let mut past = engine.reader_at(Moment { version, at_ms: NOW }).unwrap();
        assert_eq!(get(&mut past, "a").map(|(version, _)| version), Some(version));
    }
    let mut reader = engine.reader().unwrap();
    let all = versions(&mut reader, "a", None, usize::MAX);
    let commits: Vec<u64> = all.iter().map(|version| version.commit).collect();
    assert_eq!(commits, (1..=300).rev().collect::<Vec<_>>());
}

pub(super) fn commits_inside_a_batch_are_moments_too(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    keep(&mut writer, DAY_MS, NOW);
    commit(
        &mut writer,
        vec![
            write(vec![], vec![set("a", b"1")]),
            write(vec![], vec![set("a", b"2"), set("b", &[2; 2000])]),
            write(vec![], vec![delete("a"), set("b", b"3")]),
            write(vec![], vec![set("a", b"4")]),
        ],
    );
    let value = |version, name: &str| {
        let mut past = engine.reader_at(Moment { version, at_ms: NOW }).unwrap();
        let stamp = read(&mut past, NOW, |snapshot| Ok(snapshot.stats()?.stamp));
        assert_eq!(stamp.version(), version);
        // The changes after the moment are none of its.
        let feed = read(&mut past, NOW, |snapshot| snapshot.feed_state());
        assert_eq!((feed.version, feed.complete), (version, version));
        assert!(past.read(NOW, &mut |snapshot| snapshot.log().map(drop)).is_err());
        get(&mut past, name).map(|(version, value)| (version, value.len()))
    };
    let seen: Vec<_> = (0..=4).map(|version| (value(version, "a"), value(version, "b"))).collect();
    let expected = [
        (None, None),
        (Some((1, 1)), None),
        (Some((2, 1)), Some((2, 2000))),
        (None, Some((3, 1))),
        (Some((4, 1)), Some((3, 1))),
    ];
    assert_eq!(seen, expected);
}

pub(super) fn versions_of_a_key_are_listed_newest_first(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    mutate(&mut writer, vec![set("a", b"0")]);
    keep(&mut writer, DAY_MS, NOW);
    mutate(&mut writer, vec![set("a", b"1"), set("other", b"")]);
    mutate(&mut writer, vec![delete("a")]);
    mutate(&mut writer, vec![set_until("a", b"3", Some(NOW + 9))]);
    mutate(&mut writer, vec![delete("never"), delete("a")]);
    mutate(&mut writer, vec![delete("a")]);
    let mut reader = engine.reader().unwrap();
    let shown = |EntryVersion { commit, at_ms, entry }: EntryVersion| {
        (commit, at_ms, entry.map(|entry| (entry.version, entry.value.bytes, entry.expire_at_ms)))
    };
    let mut of = |name, before, max| {
        versions(&mut reader, name, before, max).into_iter().map(shown).collect::<Vec<_>>()
    };
    let expected = [
        (5, Some(NOW), None),
        (4, Some(NOW), Some((4, b"3".to_vec(), Some(NOW + 9)))),
        (3, Some(NOW), None),
        (2, Some(NOW), Some((2, b"1".to_vec(), None))),
        (1, None, Some((1, b"0".to_vec(), None))),
    ];
    assert_eq!(of("a", None, 9), expected);
    assert_eq!(of("a", None, 2), expected[..2]);
    // Each page continues where the one before has ended.
    for (at, (commit, ..)) in (1..).zip(&expected) {
        assert_eq!(of("a", Some(*commit), 9), expected[at..], "before {commit}");
    }
    assert_eq!(of("a", Some(9), 9), expected);
    assert_eq!(of("other", Some(3), 9), [(2, Some(NOW), Some((2, vec![], None)))]);
    assert_eq!(of("other", Some(2), 9), []);
    assert_eq!(of("never", None, 9), []);
}

pub(super) fn versions(
    reader: &mut impl Reader,
    name: &str,
    before: Option<u64>,
    max: usize,
) -> Vec<EntryVersion> {
    read(reader, NOW, |snapshot| {
        let mut found = Vec::new();
        snapshot.log()?.versions(key(name).as_bytes(), before, &mut |version| {
            found.push(version);
            found.len() < max
        })?;
        Ok(found)
    })
}

/// Every version is what a reader has seen after its commit, and no change is left out.
pub(super) fn versions_are_the_changes_of_a_random_history(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    mutate(&mut writer, vec![set("k1", b"before"), set("k2", &[7; 2000])]);
    let since = keep(&mut writer, DAY_MS, NOW);
    let moments = random_history(engine, 60, 0x7e57);
    let mut reader = engine.reader().unwrap();
    for name in (0..12).map(|n| format!("k{n}")) {
        let all = versions(&mut reader, &name, None, usize::MAX);
        assert!(all.is_sorted_by(|one, next| one.commit > next.commit), "{all:?}");
        for pair in all.windows(2) {
            assert_ne!(pair[0].entry, pair[1].entry, "{name}");
        }
        let state = |version| all.iter().find(|it| it.commit <= version);
        for (Moment { version, at_ms }, seen) in &moments {
            let entry = state(*version).and_then(|it| it.entry.as_ref());
            let alive = entry.filter(|it| it.expire_at_ms.is_none_or(|end| end > *at_ms));
            let shown = alive.map(|it| (it.version, it.value.bytes.clone(), it.expire_at_ms));
            assert_eq!(shown.as_ref(), seen.get(key(&name).as_bytes()), "{name} at {version}");
        }
        let commits: Vec<u64> = all.iter().map(|it| it.commit).collect();
        for at in 0..commits.len() {
            let rest = versions(&mut reader, &name, Some(commits[at]), usize::MAX);
            assert_eq!(rest, all[at + 1..], "{name} before {}", commits[at]);
        }
        let later = all.iter().filter(|it| it.commit > since);
        assert!(later.clone().all(|it| it.at_ms.is_some()), "{all:?}");
    }
}

/// Large values have a place of their own, which goes over to the history: none is lost, shared or left
/// behind.
pub(super) fn large_values_are_kept(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let large = |n: u8| vec![n; 3000];
    mutate(&mut writer, vec![set("a", &large(1)), set("b", &large(1)), set("c", &large(1))]);
    keep(&mut writer, 50, NOW);
    let expire = |name, at_ms| Mutation::SetExpiry {
        key: key(name),
        expiry: Some(Time::At(at_ms)),
        required: false,
        shortens: false,
    };
    let ahead = NOW + DAY_MS;
    // In one batch and in several: other expiries, smaller, other and no values.
    let steps = [
        vec![expire("a", ahead), expire("b", ahead)],
        vec![set("a", &large(2)), expire("b", ahead + 1)],
        vec![set("a", b"small"), delete("b")],
        vec![set("a", &large(3)), set("b", &large(3)), delete("c")],
        vec![delete("a"), set_until("c", &large(4), Some(NOW + 20))],
    ];
    let writes = steps.iter().map(|step| write(vec![], step.clone())).collect();
    commit(&mut writer, writes);
    for step in steps {
        mutate(&mut writer, step);
    }
    apply_at(&mut writer, Work { sweep_max: 9, ..Work::default() }, NOW + 20);
    let value = |version, name: &str| {
        let mut past = engine.reader_at(Moment { version, at_ms: NOW }).unwrap();
        get(&mut past, name).map(|(_, value)| (value[0], value.len()))
    };
    let seen: Vec<_> =
        (1..=12).map(|version| ["a", "b", "c"].map(|name| value(version, name))).collect();
    let [one, two, three, four] = [1, 2, 3, 4].map(|n| Some((n, 3000)));
    let small = Some((b's', 5));
    let expected = [
        [one, one, one],
        [one, one, one],
        [two, one, one],
        [small, None, one],
        [three, three, None],
        [None, three, four],
        [None, three, four],
        [two, three, four],
        [small, None, four],
        [three, three, None],
        [None, three, four],
        [None, three, None],
    ];
    assert_eq!(seen, expected);
    let goes_on: crate::GoesOn = std::sync::Arc::new(|| true);
    let intact = || {
        if engine.capabilities().has(Capability::IntegrityCheck) {
            assert_eq!(engine.check(9, &goes_on).unwrap(), Vec::<String>::new());
        }
    };
    intact();
    // All of it leaves the history.
    for at_ms in 100..105 {
        let writes = vec![write(vec![], vec![set("b", &large(5))])];
        apply_at(&mut writer, Work { writes, ..Work::default() }, NOW + at_ms);
        intact();
    }
}

/// A commit of messages only, and one that only checks, are moments with a time of their own.
pub(super) fn commits_without_changes_have_a_time(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    keep(&mut writer, DAY_MS, NOW);
    mutate(&mut writer, vec![set_until("a", b"1", Some(NOW + 10))]);
    let writes =
        vec![write(vec![], vec![]), write(vec![], vec![set("b", b"2")]), write(vec![], vec![])];
    let report = apply_at(&mut writer, Work { writes, ..Work::default() }, NOW + 20);
    assert_eq!(report.versions, (1, 4));
    apply_at(
        &mut writer,
        Work { writes: vec![write(vec![], vec![])], ..Work::default() },
        NOW + 30,
    );
    let mut at_ms = |version| {
        let when = When::Commit(Versionstamp::new(version));
        read(&mut reader, NOW, |snapshot| snapshot.log()?.moment(when, NOW + 40)).at_ms - NOW
    };
    assert_eq!([1, 2, 3, 4, 5].map(&mut at_ms), [0, 20, 20, 20, 30]);
}

pub(super) fn a_moment_outside_of_the_history_is_refused(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    mutate(&mut writer, vec![set("a", b"0")]);
    let moment = |reader: &mut _, when| {
        read(reader, NOW, |snapshot| {
            let found = snapshot.log()?.moment(when, NOW + 100);
            Ok(found.map_err(|error| error.message().to_owned()))
        })
    };
    let commit_of = |version| When::Commit(Versionstamp::new(version));
    assert!(moment(&mut reader, commit_of(1)).unwrap_err().contains("keeps no history"));
    keep(&mut writer, 50, NOW);
    mutate(&mut writer, vec![set("a", b"1")]);
    assert_eq!(moment(&mut reader, commit_of(2)), Ok(Moment { version: 2, at_ms: NOW }));
    let time = When::Time(NOW + 100);
    assert_eq!(moment(&mut reader, time), Ok(Moment { version: 2, at_ms: NOW + 100 }));
    assert!(moment(&mut reader, commit_of(0)).unwrap_err().contains("before the beginning"));
    assert!(moment(&mut reader, When::Time(NOW - 1)).unwrap_err().contains("before the beginning"));
    assert!(moment(&mut reader, commit_of(3)).unwrap_err().contains("after the newest"));
    assert!(moment(&mut reader, When::Time(NOW + 101)).unwrap_err().contains("after the present"));
    // The history ends while a reader looks at it.
    let mut past = engine.reader_at(Moment { version: 1, at_ms: NOW }).unwrap();
    assert_eq!(get(&mut past, "a"), Some((1, b"0".to_vec())));
    // An engine may shorten the history with one of some commits.
    for _ in 0..TRIMMED_COMMITS {
        let later = Work { writes: vec![write(vec![], vec![set("a", b"2")])], ..Work::default() };
        apply_at(&mut writer, later, NOW + 60);
    }
    let refused = past.read(NOW, &mut |_| Ok(())).unwrap_err();
    assert_eq!(refused.kind(), openkv_core::model::Kind::Range);
    assert!(refused.message().contains("no longer reaches back"), "{refused}");
}
