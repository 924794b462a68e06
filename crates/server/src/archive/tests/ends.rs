//! Where an archiver goes on after a run that has died.
//!
//! An archiver took the newest snapshot for the end of the archive. A snapshot is taken beside the log, so it can
//! be newer than the last object, of a run that died between the two or whose last object is torn: the commits
//! between them were in no object then, and nothing was counted.

use std::sync::Arc;

use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;

use super::faults::{segments, wait};
use super::*;
use crate::archive::verify;
use openkv_core::model::{LogBounds, LogSettings, Setting};

/// What a run leaves that died after a snapshot and before the objects of the commits before it.
struct Left {
    objects: Arc<InMemory>,
    target: String,
    machine: Machine,
    /// Every state, by its commit.
    states: Vec<(u64, Entries)>,
    /// The objects with commits before the last snapshot, which were never written.
    missing: Vec<String>,
}

fn died_between_objects() -> Left {
    let objects = Arc::new(InMemory::new());
    let target = add_test_store(objects.clone());
    let machine = Machine::new();
    machine.set("k", "0");
    let mut states = vec![machine.state()];
    let options = ArchiveOptions { snapshot_every_ms: 100, ..machine.options(&target) };
    let archive = machine.archive_with(options).unwrap();
    machine.settle(&archive);
    let mut commit = |number: u64, ms: i64| {
        machine.pass(ms);
        machine.set("k", &number.to_string());
        states.push(machine.state());
        machine.settle(&archive);
    };
    (1..5).for_each(|number| commit(number, 10));
    let before = segments(&*objects);
    machine.pass(200);
    let first = archive.shared.status(false).snapshot;
    wait_for(&archive, |status| status.snapshot != first);
    stop(archive);
    let missing = before[2..].to_vec();
    for name in &missing {
        wait(objects.delete(&Path::from(name.as_str()))).unwrap();
    }
    Left { objects, target, machine, states, missing }
}

impl Left {
    /// Runs another archiver until everything is archived; returns its status.
    fn go_on(&mut self) -> Status {
        let archive = self.machine.archive(&self.target);
        for number in 0..2 {
            self.machine.pass(10);
            self.machine.set("later", &number.to_string());
            self.states.push(self.machine.state());
            self.machine.settle(&archive);
        }
        stop(archive)
    }

    /// The commits that cannot be restored. The others give what was there.
    fn lost(&self) -> Vec<u64> {
        let restored = |version: u64| {
            let at = Some(When::Commit(Versionstamp::new(version)));
            self.machine.restored(&self.target, at)
        };
        let mut lost = Vec::new();
        for (version, expected) in &self.states {
            match restored(*version) {
                Ok((_, entries)) => assert_eq!(&entries, expected, "commit {version}"),
                Err(error) => {
                    assert!(error.message().contains("in no object"), "{error}");
                    lost.push(*version);
                }
            }
        }
        lost
    }

    fn findings(&self) -> Vec<String> {
        let scratch = self.machine.path.with_extension("verify");
        verify(&self.target, &scratch, &mut |_, _| true).unwrap().findings
    }

    /// Trims the log to its newest segment.
    fn trim(&self) {
        for bytes_max in [1, 1 << 20] {
            let bounds = LogBounds { retention_ms: i64::MAX, bytes_max };
            let settings = LogSettings { log: Setting::On(bounds), ..LogSettings::default() };
            self.machine.store().set_log(settings, PATIENCE).unwrap();
            self.machine.pass(10);
            self.machine.set("trims", &bytes_max.to_string());
        }
    }
}

#[test]
fn commits_before_a_snapshot_that_are_in_no_object_are_archived_later() {
    let mut left = died_between_objects();
    let status = left.go_on();
    assert_eq!((status.gaps, status.reports), (0, Vec::new()));
    assert_eq!(left.lost(), Vec::<u64>::new());
    assert_eq!(left.findings(), Vec::<String>::new());
}

#[test]
fn commits_before_a_snapshot_that_the_log_has_lost_are_counted() {
    let mut left = died_between_objects();
    left.trim();
    left.states.push(left.machine.state());
    let status = left.go_on();
    assert_eq!(status.gaps, 1);
    assert!(status.reports[0].contains("are lost for restores"), "{status:?}");
    // The commit of the snapshot itself can be restored.
    assert_eq!(left.lost().len(), left.missing.len() - 1);
    assert_eq!(left.findings().len(), 1);
}

#[test]
fn a_torn_object_around_a_snapshot_is_written_again() {
    let mut left = died_between_objects();
    // The next run writes one object, in the midst of which the snapshot was taken; it is torn.
    left.go_on();
    let around = segments(&*left.objects)[2..].to_vec();
    for name in &around {
        let path = Path::from(name.as_str());
        let bytes = wait(async { left.objects.get(&path).await.unwrap().bytes().await.unwrap() });
        wait(left.objects.put(&path, bytes.slice(0..bytes.len() - 5).into())).unwrap();
    }
    let status = left.go_on();
    assert_eq!((status.gaps, status.reports.len()), (0, around.len()));
    assert_eq!(left.lost(), Vec::<u64>::new());
    assert_eq!(left.findings(), Vec::<String>::new());
}

#[test]
fn an_object_behind_a_missing_one_is_no_end() {
    let mut left = died_between_objects();
    left.go_on();
    let names = segments(&*left.objects);
    let before_last = Path::from(names[names.len() - 2].as_str());
    wait(left.objects.delete(&before_last)).unwrap();
    let status = left.go_on();
    assert_eq!(status.gaps, 1);
    // From each of the snapshots before it: one or two.
    let findings = left.findings();
    let named = findings.iter().all(|finding| finding.contains("in no object"));
    assert!(!findings.is_empty() && named, "{findings:#?}");
    let newest = left.machine.restored(&left.target, None).unwrap().1;
    assert_eq!(newest, left.machine.state().1);
}

#[test]
fn an_older_copy_of_the_file_begins_another_history() {
    let target = add_test_store(Arc::new(InMemory::new()));
    let mut machine = Machine::new();
    machine.set("k", "0");
    let archive = machine.archive(&target);
    machine.settle(&archive);
    let copy = machine.folder.path().join("copy");
    stop(archive);
    machine.store = None;
    machine.open();
    machine.store = None;
    std::fs::copy(&machine.path, &copy).unwrap();
    machine.open();
    let archive = machine.archive(&target);
    machine.set("k", "archived");
    machine.settle(&archive);
    stop(archive);
    machine.store = None;
    for end in ["-wal", "-shm"] {
        drop(std::fs::remove_file(format!("{}{end}", machine.path.display())));
    }
    std::fs::copy(&copy, &machine.path).unwrap();
    machine.open();
    // As many commits as the archive has, and more.
    machine.pass(10);
    machine.set("other", "1");
    machine.set("other", "2");
    let archive = machine.archive(&target);
    machine.settle(&archive);
    let status = stop(archive);
    assert!(status.reports[0].contains("a new history begins"), "{status:?}");
    assert_eq!(machine.restored(&target, None).unwrap().1, machine.state().1);
}
