//! Restores give what was there.

use std::sync::Arc;

use object_store::memory::InMemory;

use super::*;
use crate::archive::{list, remove_before, verify};
use openkv_core::model::{KeyRange, Kind, LogBounds, LogSettings, Setting};

fn commit_of(version: u64) -> Option<When> {
    Some(When::Commit(Versionstamp::new(version)))
}

fn range(start: &str) -> KeyRange {
    let bytes = [&[2], start.as_bytes()].concat();
    let end = [bytes.as_slice(), &[255]].concat();
    KeyRange { start: Key::from_encoded(bytes), end: Key::from_encoded(end) }
}

/// A store with random commits and snapshots, and its states by version, with the time of each.
fn random_history(seed: u64, target: &str) -> (Machine, Vec<(u64, i64, Entries)>) {
    let machine = Machine::new();
    machine.set("before", "the archive");
    let options = ArchiveOptions { snapshot_every_ms: 400, ..machine.options(target) };
    let archive = machine.archive_with(options).unwrap();
    machine.settle(&archive);
    let mut random = Random(seed);
    let mut states = Vec::new();
    for _ in 0..120 {
        machine.pass(1 + i64::try_from(random.below(60)).unwrap());
        machine.commit(random.mutations(machine.clock.now_ms()));
        let (version, entries) = machine.state();
        states.push((version, machine.clock.now_ms(), entries));
        if random.below(10) == 0 {
            machine.settle(&archive);
        }
    }
    // On a busy machine the first snapshot can last until here.
    let begun = Instant::now();
    while list(target).unwrap().timelines[0].snapshots.len() < 2 {
        assert!(begun.elapsed() < PATIENCE, "no second snapshot");
        std::thread::sleep(Duration::from_millis(5));
    }
    let status = machine.settle(&archive);
    assert_eq!(stop(archive).error, None);
    assert_eq!((status.gaps, status.error), (0, None));
    (machine, states)
}

#[test]
fn a_restore_of_any_commit_has_the_entries_of_that_commit() {
    for seed in [1, 2] {
        let target = add_test_store(Arc::new(InMemory::new()));
        let (machine, states) = random_history(seed, &target);
        let listing = list(&target).unwrap();
        let first = listing.timelines[0].snapshots[0].versionstamp.clone();
        assert!(listing.timelines[0].snapshots.len() > 1, "{listing:?}");
        let mut random = Random(seed + 10);
        for _ in 0..12 {
            let at = usize::try_from(random.below(states.len() as u64)).unwrap();
            let (version, at_ms, expected) = &states[at];
            assert!(Versionstamp::new(*version).to_string() > first);
            let (restored, entries) = machine.restored(&target, commit_of(*version)).unwrap();
            assert_eq!(&entries, expected, "commit {version}");
            assert!(restored.at_ms <= *at_ms);
            // The times of commits are known to a millisecond, and commits of one are restored together.
            let until = states.iter().rev().find(|(_, time, _)| time <= at_ms).unwrap();
            let (restored, entries) = machine.restored(&target, Some(When::Time(*at_ms))).unwrap();
            assert!(
                restored.versionstamp >= Versionstamp::new(until.0).to_string()
                    || entries == until.2
            );
        }
        let (_, newest) = machine.state();
        assert_eq!(machine.restored(&target, None).unwrap().1, newest);
        let verified = verify(&target, &machine.path.with_extension("verify"), &mut |_, _| true);
        let verified = verified.unwrap();
        assert_eq!(verified.findings, Vec::<String>::new());
        assert_eq!(verified.snapshots as usize, listing.timelines[0].snapshots.len());
        assert_eq!(verified.compared, verified.snapshots - 1);
    }
}

#[test]
fn an_archiver_goes_on_where_it_has_ended() {
    let mut machine = Machine::new();
    let folder = machine.folder.path().join("archive");
    let target = folder.to_str().unwrap();
    let mut last = 0;
    for run in 0..4 {
        let archive = machine.archive(target);
        last = machine.set("run", &run.to_string());
        machine.settle(&archive);
        if run % 2 == 0 {
            assert_eq!(stop(archive).error, None);
        } else {
            // Its end is not waited for: the folder is free once the thread has ended.
            archive.stop();
            archive.wait_ended();
        }
        // While no archiver runs.
        machine.set("between", &run.to_string());
        machine.store = None;
        machine.open();
    }
    let archive = machine.archive(target);
    machine.settle(&archive);
    stop(archive);
    let listing = list(target).unwrap();
    assert_eq!((listing.timelines.len(), listing.timelines[0].snapshots.len()), (1, 1));
    assert_eq!(machine.restored(target, None).unwrap().1, machine.state().1);
    let (restored, _) = machine.restored(target, commit_of(last)).unwrap();
    assert_eq!(restored.versionstamp, Versionstamp::new(last).to_string());
}

#[test]
fn moments_outside_of_the_archive_are_refused() {
    let target = add_test_store(Arc::new(InMemory::new()));
    let machine = Machine::new();
    let first = machine.set("a", "1");
    let archive = machine.archive(&target);
    machine.settle(&archive);
    machine.pass(1000);
    let last = machine.set("a", "2");
    machine.settle(&archive);
    stop(archive);
    for at in [commit_of(first - 1), Some(When::Time(START_MS - 1))] {
        let error = machine.restored(&target, at).unwrap_err();
        assert_eq!(error.kind(), Kind::Range, "{error}");
        assert!(error.message().contains("before the oldest"), "{error}");
    }
    for at in [commit_of(last + 1), Some(When::Time(START_MS + 1001))] {
        let error = machine.restored(&target, at).unwrap_err();
        assert_eq!(error.kind(), Kind::Range, "{error}");
        assert!(error.message().contains("after the newest"), "{error}");
    }
    for at in [commit_of(last), Some(When::Time(START_MS + 1000)), commit_of(first)] {
        machine.restored(&target, at).unwrap();
    }
}

#[test]
fn a_restore_replaces_nothing_and_leaves_nothing() {
    let target = add_test_store(Arc::new(InMemory::new()));
    let machine = Machine::new();
    machine.set("a", "1");
    let archive = machine.archive(&target);
    machine.settle(&archive);
    stop(archive);
    let file = machine.folder.path().join("there-wal");
    std::fs::write(&file, "precious").unwrap();
    let options =
        |file: PathBuf| RestoreOptions { target: target.clone(), file, at: None, range: None };
    for name in ["kv", "there", "there-wal"] {
        let refused = restore(&options(machine.folder.path().join(name)), &mut |_, _| true);
        assert_eq!(refused.unwrap_err().kind(), Kind::Invalid, "{name}");
    }
    assert_eq!(std::fs::read(&file).unwrap(), b"precious");
    let ended = restore(&options(machine.folder.path().join("ended")), &mut |_, _| false);
    assert_eq!(ended.unwrap_err().kind(), Kind::Unavailable);
    let missing = restore(&options(machine.folder.path().join("no/folder")), &mut |_, _| true);
    assert_eq!(missing.unwrap_err().kind(), Kind::Invalid);
    let other = RestoreOptions {
        target: machine.folder.path().to_str().unwrap().to_owned(),
        ..options(machine.folder.path().join("other"))
    };
    let refused = restore(&other, &mut |_, _| true).unwrap_err();
    assert!(refused.message().contains("is no archive"), "{refused}");
    let names = std::fs::read_dir(machine.folder.path()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut left: Vec<String> = names.filter(|name| !name.starts_with("kv")).collect();
    left.sort();
    assert_eq!(left, ["there-wal"]);
}

#[test]
fn a_restored_database_is_another_copy_and_begins_a_history() {
    let target = add_test_store(Arc::new(InMemory::new()));
    let machine = Machine::new();
    machine.set("a", "1");
    let archive = machine.archive(&target);
    machine.settle(&archive);
    let early = machine.set("a", "2");
    machine.set("a", "3");
    machine.settle(&archive);
    stop(archive);
    let file = machine.folder.path().join("second");
    let options = RestoreOptions {
        target: target.clone(),
        file: file.clone(),
        at: commit_of(early),
        range: None,
    };
    let restored = restore(&options, &mut |_, _| true).unwrap();
    assert_eq!(restored.versionstamp, Versionstamp::new(early).to_string());
    let second = Machine::on(file, tempfile::tempdir().unwrap());
    assert_eq!(second.state().0, early);
    let archive = second.archive(&target);
    second.pass(5000);
    let last = second.set("b", "another history");
    second.settle(&archive);
    let status = stop(archive);
    assert!(status.reports[0].contains("a new history begins"), "{status:?}");
    assert_eq!(list(&target).unwrap().timelines.len(), 2);
    let entries = second.restored(&target, None).unwrap().1;
    assert_eq!(entries, second.state().1);
    assert_eq!(second.restored(&target, commit_of(last)).unwrap().1, entries);
    // The first history, at a time before the second one.
    let (first, _) = second.restored(&target, Some(When::Time(START_MS))).unwrap();
    assert!(first.versionstamp >= Versionstamp::new(early).to_string());
    // The first copy again: it is not the newest history any more.
    let archive = machine.archive(&target);
    machine.settle(&archive);
    stop(archive);
    assert_eq!(list(&target).unwrap().timelines.len(), 3);
}

#[test]
fn a_prefix_restores_its_entries_only() {
    let target = add_test_store(Arc::new(InMemory::new()));
    let machine = Machine::new();
    let large = "large".repeat(2000);
    machine.commit(vec![set("a1", &large, None), set("b1", &large, None), set("a2", "x", None)]);
    let archive = machine.archive(&target);
    machine.settle(&archive);
    machine.set("a3", "later");
    machine.set("b3", "later");
    machine.settle(&archive);
    stop(archive);
    let file = machine.folder.path().join("part");
    let options = RestoreOptions { target, file: file.clone(), at: None, range: Some(range("a")) };
    let restored = restore(&options, &mut |_, _| true).unwrap();
    assert_eq!(restored.entries, 3);
    let mut expected = machine.state().1;
    expected.retain(|key, _| key.starts_with(&[2, b'a']));
    assert_eq!(entries_of(&file), expected);
    let engine = SqliteEngine::open(&file, false, PATIENCE).unwrap();
    let goes_on: openkv_engines::GoesOn = Arc::new(|| true);
    assert_eq!(openkv_engines::Maintenance::check(&engine, 10, &goes_on), Ok(vec![]));
}

#[test]
fn a_log_that_does_not_reach_back_is_noticed() {
    let target = add_test_store(Arc::new(InMemory::new()));
    let machine = Machine::new();
    machine.set("a", "1");
    let archive = machine.archive(&target);
    machine.settle(&archive);
    let before = machine.set("a", "2");
    machine.settle(&archive);
    stop(archive);
    let bounds = LogBounds { retention_ms: i64::MAX, bytes_max: 1 };
    let settings = LogSettings { log: Setting::On(bounds), ..LogSettings::default() };
    machine.store().set_log(settings, PATIENCE).unwrap();
    machine.pass(10);
    let lost = machine.set("a", "3");
    machine.pass(10);
    machine.set("a", "4");
    machine.pass(10);
    machine.set("a", "5");
    let bounds = LogBounds { bytes_max: 1 << 20, ..bounds };
    let settings = LogSettings { log: Setting::On(bounds), ..LogSettings::default() };
    machine.store().set_log(settings, PATIENCE).unwrap();
    let archive = machine.archive(&target);
    machine.settle(&archive);
    let after = machine.set("a", "6");
    machine.settle(&archive);
    let status = stop(archive);
    assert_eq!(status.gaps, 1);
    assert!(status.reports[0].contains("are lost for restores"), "{status:?}");
    machine.restored(&target, commit_of(before)).unwrap();
    machine.restored(&target, commit_of(after)).unwrap();
    assert_eq!(machine.restored(&target, None).unwrap().1, machine.state().1);
    for at in [commit_of(lost), Some(When::Time(START_MS + 11))] {
        let error = machine.restored(&target, at).unwrap_err();
        assert!(error.message().contains("in no object"), "{error}");
    }
    let verified = verify(&target, &machine.path.with_extension("verify"), &mut |_, _| true);
    let verified = verified.unwrap();
    assert_eq!(verified.findings.len(), 1, "{verified:?}");
}

#[test]
fn retention_keeps_what_restores_since_then_need() {
    let target = add_test_store(Arc::new(InMemory::new()));
    let (machine, states) = random_history(5, &target);
    let middle = &states[states.len() / 2];
    let removed = remove_before(&target, middle.1).unwrap();
    assert!(removed.snapshots > 0 && removed.objects > removed.snapshots, "{removed:?}");
    for (version, _, expected) in states.iter().skip(states.len() / 2).step_by(9) {
        assert_eq!(&machine.restored(&target, commit_of(*version)).unwrap().1, expected);
    }
    let error = machine.restored(&target, commit_of(states[0].0)).unwrap_err();
    assert!(error.message().contains("before the oldest"), "{error}");
    let verified = verify(&target, &machine.path.with_extension("verify"), &mut |_, _| true);
    assert_eq!(verified.unwrap().findings, Vec::<String>::new());
    assert_eq!(remove_before(&target, middle.1).unwrap().objects, 0);
}
