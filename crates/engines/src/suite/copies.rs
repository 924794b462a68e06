//! The rules of a database that is a copy of another one.

pub(super) use super::value_index::{
    a_copy_builds_unique_indexes_without_a_check, entries_of_value_indexes_follow_a_repeated_log,
};
use super::*;
use crate::memory::MemoryEngine;
use openkv_core::model::{
    CopiedEntry, Error, Followed, Kind, LogBounds, LogSegment, LogSettings, Origin, Replacement,
    Segment, Setting, Step, Walk,
};

const ORIGIN: Origin = Origin { database: *b"a database's id.", incarnation: 7 };

type Entries = Vec<(Vec<u8>, u64, Vec<u8>, Option<i64>)>;

fn entries(reader: &mut impl Reader) -> Entries {
    read(reader, NOW, |snapshot| {
        let mut found = Vec::new();
        let walk = Walk { start: &[], end: &[255], reverse: false, values: true };
        snapshot.walk(walk, &mut |seen| {
            let row = seen.row;
            let version = row.stamp.version();
            found.push((row.key.to_vec(), version, row.value.to_vec(), seen.expire_at_ms));
            Step::Next
        })?;
        Ok(found)
    })
}

fn log_on(writer: &mut impl Writer, origin: Origin) {
    let bounds = LogBounds { retention_ms: 1 << 40, bytes_max: 1 << 40 };
    let settings = LogSettings { log: Setting::On(bounds), ..LogSettings::default() };
    writer.set_log(&settings, origin, NOW, soon()).unwrap();
}

/// A database with a log, and everything of it as a copy has it.
fn source() -> (MemoryEngine, Followed, Vec<CopiedEntry>) {
    let source = MemoryEngine::new();
    let mut writer = source.writer().unwrap();
    log_on(&mut writer, ORIGIN);
    let all = vec![set("a", b"1"), set_until("b", &[3; 3000], Some(NOW + 50)), set("c", b"")];
    mutate(&mut writer, all);
    let copied = entries(&mut source.reader().unwrap()).into_iter();
    let copied = copied.map(|(key, version, value, expire_at_ms)| CopiedEntry {
        key: Key::from_encoded(key),
        version,
        value: bytes(&value),
        expire_at_ms,
    });
    let place = Followed { origin: ORIGIN, version: 1, at_ms: NOW, prefixes: Vec::new() };
    (source, place, copied.collect())
}

fn segments(source: &MemoryEngine, after: u64) -> Vec<Segment> {
    let mut found = Vec::new();
    read(&mut source.reader().unwrap(), NOW, |snapshot| {
        snapshot.log()?.segments(after, &mut |segment| {
            let LogSegment { first, last, at_ms, changes } = segment;
            found.push(Segment { first, last, at_ms, changes: changes.to_vec() });
            true
        })
    });
    found
}

fn replace(
    writer: &mut impl Writer,
    before: Option<Followed>,
    after: &Followed,
    pages: Vec<Result<Vec<CopiedEntry>>>,
) -> Result<Report> {
    let replacement = Replacement { before, after: after.clone(), generation: 9 };
    let mut pages = pages.into_iter();
    writer.replace_all(&replacement, &mut || pages.next().transpose(), soon())
}

pub(super) fn a_copy_is_replaced_and_follows(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let (source, place, copied) = source();
    assert_eq!(writer.followed(), Ok(None));
    let (first, rest) = copied.split_at(1);
    let pages = vec![Ok(first.to_vec()), Ok(rest.to_vec())];
    replace(&mut writer, None, &place, pages).unwrap();
    assert_eq!(writer.followed(), Ok(Some(place.clone())));
    let all = entries(&mut source.reader().unwrap());
    assert_eq!(entries(&mut reader), all);
    let mut writes = source.writer().unwrap();
    mutate(&mut writes, vec![set("d", b"new"), delete("a")]);
    mutate(&mut writes, vec![set("b", b"changed")]);
    let next = segments(&source, 1);
    let borrowed: Vec<_> = next.iter().map(Segment::borrowed).collect();
    let after = Followed { version: 3, ..place.clone() };
    for expected in [(1, 3), (3, 3)] {
        let report = writer.follow(&after, &borrowed, soon()).unwrap();
        assert_eq!(report.versions, expected);
    }
    assert_eq!(writer.followed(), Ok(Some(after.clone())));
    assert_eq!(entries(&mut reader), entries(&mut source.reader().unwrap()));
    // Another copy, also of fewer commits.
    replace(&mut writer, Some(after), &place, vec![Ok(copied)]).unwrap();
    assert_eq!(entries(&mut reader), all);
}

pub(super) fn a_replacement_that_fails_changes_nothing(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let (_source, place, copied) = source();
    replace(&mut writer, None, &place, vec![Ok(copied.clone())]).unwrap();
    let all = entries(&mut reader);
    let after = Followed { version: 9, ..place.clone() };
    let cut = vec![Ok(copied[..1].to_vec()), Err(Error::unavailable("cut"))];
    let refused = replace(&mut writer, Some(place.clone()), &after, cut).unwrap_err();
    assert_eq!(refused.kind(), Kind::Unavailable);
    let refused = replace(&mut writer, None, &after, vec![]).unwrap_err();
    assert_eq!(refused.kind(), Kind::Unavailable, "it follows something");
    let origin = Origin { incarnation: 8, ..ORIGIN };
    let other = Followed { origin, ..after };
    let refused = writer.follow(&other, &[], soon()).unwrap_err();
    assert_eq!(refused.kind(), Kind::Unavailable);
    assert_eq!((writer.followed(), entries(&mut reader)), (Ok(Some(place)), all));
}

/// Those who follow the copy must notice that its past was exchanged.
pub(super) fn a_replaced_copy_begins_its_logs_anew(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let (_source, place, copied) = source();
    replace(&mut writer, None, &place, vec![Ok(copied.clone())]).unwrap();
    log_on(&mut writer, Origin { database: [0; 16], incarnation: 1 });
    writer.log_changes(ORIGIN, NOW, soon()).unwrap();
    let mut origin = || {
        let state = read(&mut reader, NOW, |snapshot| snapshot.log()?.state());
        let log = state.log.unwrap();
        (log.origin, log.complete)
    };
    let (before, complete) = origin();
    assert_eq!((before.database, complete), (ORIGIN.database, 1));
    let after = Followed { version: 8, ..place.clone() };
    let replacement = Replacement { before: Some(place), after, generation: 10 };
    let mut pages = vec![copied].into_iter();
    writer.replace_all(&replacement, &mut || Ok(pages.next()), soon()).unwrap();
    let (renewed, complete) = origin();
    assert_eq!((renewed.database, complete), (ORIGIN.database, 8));
    assert_ne!(renewed.incarnation, before.incarnation);
    let feed = read(&mut reader, NOW, |snapshot| snapshot.feed_state());
    assert_eq!((feed.on, feed.version), (true, 8));
}
