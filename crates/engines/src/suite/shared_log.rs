//! The replication log of a database on PostgreSQL, which several processes write.

use super::history::{DAY_MS, Entries, ORIGIN, entries, state};
use super::replication::{assert_gapless, counted_of, log_on, segments};
use super::*;
use crate::memory::MemoryEngine;
use crate::postgres::{PostgresEngine, Server};
use openkv_core::model::{
    Kind, LogBounds, LogSettings, POSTGRES_LOG_TRIM_BATCHES, Segment, Setting,
};

fn open(url: &str) -> PostgresEngine {
    let (server, name) = Server::parse(url).unwrap();
    PostgresEngine::open_in_time_of_caller(&server, &name).unwrap()
}

/// What a copy has that repeats the whole log. Before that it has one empty commit for each commit before
/// the log.
fn repeated(segments: &[Segment]) -> Entries {
    let copy = MemoryEngine::new();
    let mut repeats = copy.writer().unwrap();
    for _ in 1..segments[0].first {
        commit(&mut repeats, vec![write(vec![], vec![])]);
    }
    for segment in segments {
        repeats.replay(segment.borrowed(), soon()).unwrap();
    }
    entries(&mut copy.reader().unwrap(), NOW)
}

/// A leader must notice that it is to log from now on, although it keeps leading.
#[test]
fn a_log_is_turned_on_while_another_process_leads() {
    let url = server::fresh_url();
    let (led, other) = (open(&format!("{url}&lead=logs")), open(&url));
    let (mut leader, mut theirs) = (led.writer().unwrap(), other.writer().unwrap());
    let mut reader = other.reader().unwrap();
    commit(&mut leader, vec![enqueue(1, NOW, &[], &[])]);
    assert_eq!(log_on(&mut theirs), 1);
    let refused = theirs.apply(
        Work { writes: vec![write(vec![], vec![set("a", b"")])], durable: true, ..Work::default() },
        NOW,
        soon(),
    );
    assert_eq!(refused.unwrap_err().kind(), Kind::Unavailable, "the leader leads on");
    for n in 0..20_u8 {
        mutate(&mut leader, vec![set(&format!("k{}", n % 7), &[n]), sum("n", 1)]);
    }
    let all = segments(&mut reader, 0);
    assert_eq!(assert_gapless(&all, 1), state(&mut reader).version);
    assert_eq!(repeated(&all), entries(&mut reader, NOW));
    // Off again, nothing is logged.
    let off = LogSettings { log: Setting::Off, ..LogSettings::default() };
    theirs.set_log(&off, ORIGIN, NOW, soon()).unwrap();
    mutate(&mut leader, vec![set("a", b"")]);
    assert_eq!((state(&mut reader).log, segments(&mut reader, 0)), (None, vec![]));
}

#[test]
fn processes_without_a_leader_log_by_turns() {
    let url = server::fresh_url();
    let (one, two) = (open(&url), open(&url));
    let (mut ours, mut theirs) = (one.writer().unwrap(), two.writer().unwrap());
    log_on(&mut ours);
    for n in 0..10_u8 {
        mutate(&mut ours, vec![set("a", &[n]), set(&format!("ours{n}"), &vec![n; 5000])]);
        mutate(&mut theirs, vec![set("a", &[n + 100]), delete(&format!("ours{n}"))]);
    }
    let mut reader = two.reader().unwrap();
    let all = segments(&mut reader, 0);
    assert_eq!(assert_gapless(&all, 0), 20);
    assert_eq!(repeated(&all), entries(&mut reader, NOW));
}

#[test]
fn old_segments_are_trimmed_by_time_and_by_bytes() {
    let sets = || write(vec![], vec![set("a", &[7; 100])]);
    // It is a segment without changes.
    let enqueues = || enqueue(1, NOW, &[], &[]);
    let cases: [(LogBounds, i64, &dyn Fn() -> AtomicWrite); 3] = [
        (LogBounds { retention_ms: 10, bytes_max: 1 << 30 }, 100, &sets),
        (LogBounds { retention_ms: DAY_MS, bytes_max: 2000 }, 0, &sets),
        (LogBounds { retention_ms: DAY_MS, bytes_max: 640 }, 0, &enqueues),
    ];
    for (bounds, late_ms, commits) in cases {
        let engine = open(&server::fresh_url());
        let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
        let settings = LogSettings { log: Setting::On(bounds), ..LogSettings::default() };
        writer.set_log(&settings, ORIGIN, NOW, soon()).unwrap();
        let mut put = |now_ms| {
            let writes = vec![commits()];
            apply_at(&mut writer, Work { writes, ..Work::default() }, now_ms);
        };
        for _ in 0..10 {
            put(NOW);
        }
        assert_eq!(state(&mut reader).log.unwrap().complete, 0);
        for _ in 0..POSTGRES_LOG_TRIM_BATCHES {
            put(NOW + late_ms);
        }
        let log = state(&mut reader).log.unwrap();
        assert!(log.complete >= 10, "{log:?}");
        let left = segments(&mut reader, 0);
        assert_eq!(assert_gapless(&left, log.complete), 10 + POSTGRES_LOG_TRIM_BATCHES);
        assert_eq!(log.bytes, counted_of(&left));
    }
}

#[test]
fn a_feed_turns_the_log_on_while_another_process_leads() {
    let url = server::fresh_url();
    let (led, other) = (open(&format!("{url}&lead=feeds")), open(&url));
    let (mut leader, mut theirs) = (led.writer().unwrap(), other.writer().unwrap());
    mutate(&mut leader, vec![set("a", b"1")]);
    assert_eq!(theirs.log_changes(ORIGIN, NOW, soon()), Ok(1));
    mutate(&mut leader, vec![delete("a")]);
    let mut reader = other.reader().unwrap();
    let changes = read(&mut reader, NOW, |snapshot| {
        let mut changes = Vec::new();
        snapshot.changes(1, &mut |change| {
            changes.push((change.version, change.key.to_vec(), change.kind.is_removal()));
            true
        })?;
        Ok(changes)
    });
    assert_eq!(changes, [(2, key("a").into_bytes(), true)]);
}

/// As in a file: until a removal is trimmed, the entries still have the last change of each key.
#[test]
fn only_a_trimmed_removal_moves_what_feeds_can_read() {
    let engine = open(&server::fresh_url());
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let bounds = LogBounds { retention_ms: 10, bytes_max: 1 << 30 };
    let settings = LogSettings { log: Setting::On(bounds), ..LogSettings::default() };
    writer.set_log(&settings, ORIGIN, NOW, soon()).unwrap();
    // Commits one change, and then as many sets of a later time as trim it.
    let mut trimmed = |change: Mutation, now_ms: i64| {
        let writes = vec![write(vec![], vec![change])];
        let work = Work { writes, ..Work::default() };
        let (_, version) = apply_at(&mut writer, work, now_ms).versions;
        for _ in 0..POSTGRES_LOG_TRIM_BATCHES {
            let writes = vec![write(vec![], vec![set("later", b"")])];
            apply_at(&mut writer, Work { writes, ..Work::default() }, now_ms + 100);
        }
        let state = read(&mut reader, NOW, |snapshot| snapshot.feed_state());
        assert!(state.complete >= version, "{state:?}");
        (version, state.removed)
    };
    assert_eq!(trimmed(set("a", b"1"), NOW).1, 0);
    let (deletion, removed) = trimmed(delete("a"), NOW + 200);
    assert_eq!(removed, deletion);
    assert_eq!(trimmed(set("a", b"2"), NOW + 400).1, deletion);
}
