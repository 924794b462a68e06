//! The rules of engines that trim the replication log and the history with each commit.

use super::history::{DAY_MS, ORIGIN, keep, state, versions};
use super::replication::{assert_gapless, segments};
use super::*;
use crate::replication::extent::counted;
use openkv_core::model::{
    LOG_FORGET_CHANGES_MAX, LOG_TRIM_SEGMENTS, LogBounds, LogExtent, LogSettings, LogState, Moment,
    Setting,
};

/// A segment with more changes than one transaction removes.
pub(super) fn a_large_commit_leaves_the_history_in_steps(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let names: Vec<String> = (0..LOG_FORGET_CHANGES_MAX + 5).map(|n| format!("{n:06}")).collect();
    let (first, last) = (&names[0], &names[names.len() - 1]);
    // A write has no more mutations than this.
    let in_commits = |mutation: &dyn Fn(&str) -> Mutation| {
        let parts = names.chunks(1000);
        parts.map(|part| write(vec![], part.iter().map(|name| mutation(name)).collect())).collect()
    };
    commit(&mut writer, in_commits(&|name| set(name, b"1")));
    let bounds = LogBounds { retention_ms: 10, bytes_max: 1 << 20 };
    let settings =
        LogSettings { log: Setting::On(bounds), history_ms: Setting::On(50), messages: None };
    let filled = writer.set_log(&settings, ORIGIN, NOW, soon()).unwrap();
    commit(&mut writer, in_commits(&|name| delete(name)));
    let emptied = state(&mut reader).version;
    let mut before = engine.reader_at(Moment { version: filled, at_ms: NOW }).unwrap();
    assert!(get(&mut before, first).is_some() && get(&mut before, last).is_some());
    let mut later = |at_ms| {
        let writes = vec![write(vec![], vec![set("other", b"2")])];
        apply_at(&mut writer, Work { writes, ..Work::default() }, at_ms);
        let LogExtent { complete, history, .. } = state(&mut reader).log.unwrap();
        (complete, history.unwrap().since.version)
    };
    // The history has lost the moment at once, the log keeps the keys until they are removed.
    assert_eq!(later(NOW + 100), (filled, emptied));
    assert!(before.read(NOW, &mut |_| Ok(())).is_err());
    let mut after = engine.reader_at(Moment { version: emptied, at_ms: NOW }).unwrap();
    assert_eq!((get(&mut after, first), get(&mut after, last)), (None, None));
    assert_eq!(later(NOW + 101), (emptied, emptied));
    assert_eq!((get(&mut after, first), get(&mut after, last)), (None, None));
    assert_eq!(versions(&mut engine.reader().unwrap(), last, None, 9), []);
}

pub(super) fn the_log_is_bounded_and_turned_off(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    assert_eq!(state(&mut reader).log, None);
    let bounds = LogBounds { retention_ms: 10, bytes_max: 1 << 20 };
    let settings = LogSettings { log: Setting::On(bounds), ..LogSettings::default() };
    writer.set_log(&settings, ORIGIN, NOW, soon()).unwrap();
    for n in 0..10 {
        let writes = vec![write(vec![], vec![set("a", b"1")])];
        apply_at(&mut writer, Work { writes, ..Work::default() }, NOW + n);
    }
    let log = state(&mut reader).log.unwrap();
    assert_eq!((log.complete, log.bounds, log.history), (0, bounds, None));
    let name = log.origin.database;
    let writes = vec![write(vec![], vec![set("a", b"1")])];
    apply_at(&mut writer, Work { writes, ..Work::default() }, NOW + 100);
    let trimmed = state(&mut reader).log.unwrap();
    assert_eq!(trimmed.complete, LOG_TRIM_SEGMENTS as u64);
    assert!(trimmed.bytes < log.bytes);
    let off = LogSettings { log: Setting::Off, ..LogSettings::default() };
    writer.set_log(&off, ORIGIN, NOW, soon()).unwrap();
    assert_eq!(state(&mut reader), LogState { version: state(&mut reader).version, log: None });
    keep(&mut writer, DAY_MS, NOW);
    let log = state(&mut reader).log.unwrap();
    assert_eq!((log.complete, log.origin.database), (11, name));
}

/// A commit that only enqueues is a segment without changes, and counts too.
pub(super) fn segments_without_changes_are_bounded(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let bounds = LogBounds { retention_ms: DAY_MS, bytes_max: 1000 };
    let settings = LogSettings { log: Setting::On(bounds), ..LogSettings::default() };
    writer.set_log(&settings, ORIGIN, NOW, soon()).unwrap();
    for _ in 0..30 {
        commit(&mut writer, vec![enqueue(1, NOW, &[], &[])]);
    }
    let log = state(&mut reader).log.unwrap();
    let left = segments(&mut reader, 0);
    let most = bounds.bytes_max / counted(1);
    assert_eq!((left.len() as u64, log.bytes), (most, most * counted(1)));
    assert_eq!(assert_gapless(&left, log.complete), 30);
}
