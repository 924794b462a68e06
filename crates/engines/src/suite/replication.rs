//! The rules of the replication log of every engine.

use super::history::{ORIGIN, entries, random_history, state};
use super::*;
use crate::memory::MemoryEngine;
use crate::replication::extent::counted;
use openkv_core::model::{
    BEFORE_EXPIRY_MS, DeadLetterChange, LogBounds, LogSegment, LogSettings, LogState, Segment,
    Setting,
};

/// What no test outgrows.
const WIDE: LogBounds = LogBounds { retention_ms: 1 << 40, bytes_max: 1 << 40 };

pub(super) fn log_on(writer: &mut impl Writer) -> u64 {
    let settings = LogSettings { log: Setting::On(WIDE), ..LogSettings::default() };
    writer.set_log(&settings, ORIGIN, NOW, soon()).unwrap()
}

pub(super) fn segments(reader: &mut impl Reader, after: u64) -> Vec<Segment> {
    let mut found = Vec::new();
    read(reader, NOW, |snapshot| {
        snapshot.log()?.segments(after, &mut |segment| {
            let LogSegment { first, last, at_ms, changes } = segment;
            found.push(Segment { first, last, at_ms, changes: changes.to_vec() });
            true
        })
    });
    found
}

/// What the segments of a log count.
pub(super) fn counted_of(segments: &[Segment]) -> u64 {
    segments.iter().map(|segment| counted(segment.changes.len() as u64)).sum()
}

pub(super) fn a_copy_repeats_the_log(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    log_on(&mut writer);
    let moments = random_history(engine, 40, 0xca7);
    let copy = MemoryEngine::new();
    let (mut copied, mut repeats) = (copy.reader().unwrap(), copy.writer().unwrap());
    let mut segments = Vec::new();
    read(&mut reader, NOW, |snapshot| {
        snapshot.log()?.segments(0, &mut |segment| {
            segments.push((segment.first, segment.last, segment.at_ms, segment.changes.to_vec()));
            true
        })
    });
    let mut moments = moments.into_iter().peekable();
    for (first, last, at_ms, changes) in &segments {
        let (first, last, at_ms) = (*first, *last, *at_ms);
        let segment = LogSegment { first, last, at_ms, changes };
        for _ in 0..2 {
            repeats.replay(segment, soon()).unwrap();
        }
        while let Some((moment, expected)) = moments.next_if(|(moment, _)| moment.version <= last) {
            if moment.version == last && moment.at_ms == at_ms {
                assert_eq!(entries(&mut copied, at_ms), expected, "{moment:?}");
            }
        }
    }
    assert!(moments.all(|(moment, _)| moment.version == segments.last().unwrap().1));
    let (from, to) = (entries(&mut reader, NOW), entries(&mut copied, NOW));
    assert_eq!(from, to);
    let next = state(&mut copied).version + 1;
    let nothing = openkv_core::codec::change_log::encode(next, &[]);
    for (first, changes, words) in
        [(next, &[9][..], "is damaged"), (next + 1, &nothing[..], "are missing")]
    {
        let segment = LogSegment { first, last: first, at_ms: NOW, changes };
        let refused = repeats.replay(segment, soon()).unwrap_err();
        assert_eq!(refused.kind(), openkv_core::model::Kind::Corrupt);
        assert!(refused.message().contains(words), "{refused}");
    }
    assert_eq!(state(&mut copied).version, next - 1);
    repeats
        .replay(LogSegment { first: next, last: next, at_ms: NOW, changes: &nothing }, soon())
        .unwrap();
    assert_eq!(state(&mut copied).version, next);
}

/// The segments after a commit have all later commits, each in one of them. Returns the number of the
/// last one.
pub(super) fn assert_gapless(segments: &[Segment], after: u64) -> u64 {
    let (mut last, mut at_ms) = (after, i64::MIN);
    for segment in segments {
        assert!(segment.first == last + 1 && segment.last >= segment.first, "{segment:?}");
        assert!(segment.at_ms >= at_ms, "{segment:?}");
        (last, at_ms) = (segment.last, segment.at_ms);
    }
    last
}

pub(super) fn every_commit_is_in_one_segment(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    mutate(&mut writer, vec![set("before", b"")]);
    assert_eq!((log_on(&mut writer), segments(&mut reader, 0)), (1, vec![]));
    // Messages alone, an empty commit, several commits, what a sweep removes.
    commit(&mut writer, vec![enqueue(1, NOW, &[], &[]), enqueue(2, NOW, &[], &["undelivered"])]);
    commit(&mut writer, vec![write(vec![], vec![])]);
    commit(&mut writer, vec![write(vec![], vec![set_until("a", b"1", Some(NOW + 5))])]);
    apply_at(&mut writer, Work { sweep_max: 9, ..Work::default() }, NOW + 10);
    // A value that a dead message leaves behind, and a dead message that is enqueued again.
    for (id, _) in claim(&mut writer, 7, NOW + 10) {
        settle(&mut writer, id, 7, Outcome::Failed, NOW + 10);
    }
    let message = Message { queue: "q".into(), due: Time::At(NOW), ..Message::default() };
    let dies = atomic(WriteParts { messages: vec![message], ..WriteParts::default() });
    commit(&mut writer, vec![dies]);
    let taken = claim_of(&mut writer, "q", 8, LOCK_MS, 1, NOW + 10);
    settle(&mut writer, taken[0].id, 8, Outcome::Failed, NOW + 10);
    let requeue = DeadLetterChange::Requeue(taken[0].id);
    let requeued = writer.change_dead_letters("q", &requeue, NOW + 20, soon()).unwrap();
    assert_eq!(requeued.count, 1);
    mutate(&mut writer, vec![set("z", b"last"), delete("before")]);
    let found = segments(&mut reader, 1);
    let LogState { version, log } = state(&mut reader);
    assert_eq!(assert_gapless(&found, 1), version);
    assert_eq!(log.unwrap().complete, 1);
    assert_eq!(log.unwrap().bytes, counted_of(&found));
    // Reading goes on anywhere, and each commit leads to its segment.
    for segment in &found {
        for version in segment.first..=segment.last {
            let rest = segments(&mut reader, version);
            let from = found.iter().filter(|later| later.last > version).count();
            assert_eq!(rest, found[found.len() - from..]);
            let at = read(&mut reader, NOW, |snapshot| snapshot.log()?.at_commit(version));
            assert_eq!(at, Some((segment.last, segment.at_ms)));
        }
        let at = read(&mut reader, NOW, |snapshot| snapshot.log()?.at_time(segment.at_ms));
        assert!(at.is_some_and(|(last, at_ms)| last >= segment.last && at_ms == segment.at_ms));
    }
    assert_eq!(read(&mut reader, NOW, |snapshot| snapshot.log()?.at_time(NOW - 1)), None);
}

/// One log serves feeds, replicas and archives: opening a feed changes neither its extent nor its segments.
pub(super) fn feeds_and_followers_read_the_same_segments(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    mutate(&mut writer, vec![set("before", b"")]);
    assert_eq!(writer.log_changes(ORIGIN, NOW, soon()), Ok(1));
    let on = state(&mut reader).log.unwrap();
    assert_eq!((on.complete, on.bytes), (1, 0));
    log_on(&mut writer);
    mutate(&mut writer, vec![set("a", &[7; 60_000]), set_until("b", b"1", Some(NOW + 5))]);
    commit(&mut writer, vec![enqueue(1, NOW, &[], &[])]);
    mutate(&mut writer, vec![delete("a"), set("c", b"2")]);
    apply_at(&mut writer, Work { sweep_max: 9, ..Work::default() }, NOW + 10);
    let (extent, kept) = (state(&mut reader).log.unwrap(), segments(&mut reader, 1));
    assert_eq!((writer.log_changes(ORIGIN, NOW, soon()), extent.bounds), (Ok(5), WIDE));
    assert_eq!((state(&mut reader).log, segments(&mut reader, 1)), (Some(extent), kept.clone()));
    let decoded = |after: u64| {
        let mut changes = Vec::new();
        for Segment { first, changes: bytes, .. } in &kept {
            let decoded = openkv_core::codec::change_log::decode(*first, bytes, |logged| {
                changes.extend((logged.version > after).then(|| logged.to_change()));
                true
            });
            decoded.unwrap();
        }
        changes
    };
    for after in 1..=5 {
        let mut changes = read(&mut reader, NOW, |snapshot| {
            let mut changes = Vec::new();
            snapshot.changes(after, &mut |logged| {
                changes.push(logged.to_change());
                true
            })?;
            Ok(changes)
        });
        let mut expected = decoded(after);
        changes.sort_by(|a, b| (a.version, &a.key).cmp(&(b.version, &b.key)));
        expected.sort_by(|a, b| (a.version, &a.key).cmp(&(b.version, &b.key)));
        assert_eq!(changes, expected, "after {after}");
    }
}

pub(super) fn a_log_that_begins_again_has_nothing_of_before(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    log_on(&mut writer);
    mutate(&mut writer, vec![set("a", b"1")]);
    let origin = state(&mut reader).log.unwrap().origin;
    let off = LogSettings { log: Setting::Off, ..LogSettings::default() };
    writer.set_log(&off, ORIGIN, NOW, soon()).unwrap();
    assert_eq!(state(&mut reader), LogState { version: 1, log: None });
    assert_eq!(segments(&mut reader, 0), vec![]);
    mutate(&mut writer, vec![set("a", b"2")]);
    log_on(&mut writer);
    mutate(&mut writer, vec![set("a", b"3")]);
    let log = state(&mut reader).log.unwrap();
    assert_eq!((log.origin, log.complete, log.bounds), (origin, 2, WIDE));
    assert_eq!(assert_gapless(&segments(&mut reader, 0), 2), 3);
    // A feed that is opened leaves the log as it is, and reads it.
    writer.log_changes(ORIGIN, NOW, soon()).unwrap();
    assert_eq!(state(&mut reader).log.unwrap(), log);
    mutate(&mut writer, vec![set("b", b"4")]);
    assert_eq!(assert_gapless(&segments(&mut reader, 2), 2), 4);
    let feed = read(&mut reader, NOW, |snapshot| {
        let mut keys = Vec::new();
        snapshot.changes(3, &mut |logged| {
            keys.push(logged.key.to_vec());
            true
        })?;
        Ok(keys)
    });
    assert_eq!(feed, [key("b").as_bytes()]);
}

pub(super) fn a_read_before_expiry_has_what_has_expired(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    mutate(&mut writer, vec![set_until("ends", b"1", Some(NOW + 5)), set("stays", b"2")]);
    mutate(&mut writer, vec![set("later", b"3")]);
    let later = Work { writes: vec![write(vec![], vec![set("x", b"")])], ..Work::default() };
    apply_at(&mut writer, later, NOW + 10);
    assert_eq!(get_at(&mut reader, "ends", NOW + 10), None);
    assert_eq!(get_at(&mut reader, "ends", BEFORE_EXPIRY_MS), Some((1, b"1".to_vec())));
    let found = read(&mut reader, BEFORE_EXPIRY_MS, |snapshot| {
        let mut found = Vec::new();
        snapshot.scan(&[], &[255], false, &mut |row| {
            found.push(row.key.to_vec());
            true
        })?;
        Ok(found)
    });
    assert_eq!(found, ["ends", "later", "stays", "x"].map(|name| key(name).as_bytes().to_vec()));
}
