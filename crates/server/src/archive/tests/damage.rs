//! Snapshots whose head is damaged.
//!
//! One damaged head stopped everything: an archiver did not begin, and restores that did not need the snapshot were
//! refused.

use std::sync::Arc;

use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;

use super::faults::{segments, wait};
use super::*;
use crate::archive::{list, remove_before, verify};
use openkv_core::model::Kind;

struct Snapshotted {
    objects: Arc<InMemory>,
    target: String,
    machine: Machine,
    states: Vec<(u64, Entries)>,
}

/// An archive with so many snapshots, and an object behind each.
fn snapshotted(count: usize) -> Snapshotted {
    let objects = Arc::new(InMemory::new());
    let target = add_test_store(objects.clone());
    let machine = Machine::new();
    machine.set("k", "first");
    let options = ArchiveOptions { snapshot_every_ms: 100, ..machine.options(&target) };
    let archive = machine.archive_with(options).unwrap();
    machine.settle(&archive);
    let mut states = vec![machine.state()];
    let mut commit = |ms: i64, value: &str| {
        machine.pass(ms);
        machine.set("k", value);
        states.push(machine.state());
        machine.settle(&archive);
    };
    commit(10, "behind the first");
    for number in 1..count {
        let before = archive.shared.status(false).snapshots;
        commit(10, &format!("before {number}"));
        machine.pass(200);
        wait_for(&archive, |status| status.snapshots > before);
        commit(10, &format!("behind {number}"));
    }
    stop(archive);
    let all = Snapshotted { objects, target, machine, states };
    assert_eq!(all.snapshots().len(), count);
    all
}

impl Snapshotted {
    fn snapshots(&self) -> Vec<String> {
        let listing = futures_util::StreamExt::collect::<Vec<_>>(object_store::ObjectStore::list(
            &*self.objects,
            None,
        ));
        let mut names: Vec<String> =
            wait(listing).into_iter().map(|object| object.unwrap().location.to_string()).collect();
        names.retain(|name| name.ends_with(".snapshot"));
        names.sort();
        names
    }

    /// Exchanges the head of a snapshot for other bytes.
    fn damage(&self, at: usize, bytes: &[u8]) {
        let path = Path::from(self.snapshots()[at].as_str());
        wait(self.objects.put(&path, bytes.to_vec().into())).unwrap();
    }

    fn restored(&self, version: Option<u64>) -> Result<Entries> {
        let at = version.map(|version| When::Commit(Versionstamp::new(version)));
        self.machine.restored(&self.target, at).map(|(_, entries)| entries)
    }

    fn findings(&self) -> Vec<String> {
        let scratch = self.machine.path.with_extension("verify");
        verify(&self.target, &scratch, &mut |_, _| true).unwrap().findings
    }

    /// Runs another archiver until it has a snapshot of its own, and everything.
    fn go_on(&mut self) -> Status {
        let archive = self.machine.archive(&self.target);
        self.machine.pass(10);
        self.machine.set("k", "later");
        self.states.push(self.machine.state());
        self.machine.settle(&archive);
        wait_for(&archive, |status| status.snapshot.is_some());
        stop(archive)
    }
}

#[test]
fn restores_begin_with_the_snapshot_before_a_damaged_one() {
    for bytes in [&b""[..], b"openkv archive 1\n", b"something else", &[0; 5000]] {
        let archived = snapshotted(3);
        archived.damage(2, bytes);
        for (version, expected) in &archived.states {
            assert_eq!(&archived.restored(Some(*version)).unwrap(), expected);
        }
        assert_eq!(archived.restored(None).unwrap(), archived.machine.state().1);
        let findings = archived.findings();
        assert!(findings.len() == 1 && findings[0].contains("is damaged"), "{findings:?}");
        let listing = list(&archived.target).unwrap();
        assert_eq!(listing.timelines[0].damaged, [archived.snapshots()[2].clone()]);
        assert_eq!(listing.timelines[0].snapshots.len(), 2);
    }
}

#[test]
fn an_archiver_goes_on_and_replaces_a_damaged_snapshot() {
    let mut archived = snapshotted(2);
    archived.damage(1, b"torn");
    let status = archived.go_on();
    assert!(status.reports[0].contains("a new snapshot is taken"), "{status:?}");
    assert_eq!((status.gaps, status.error), (0, None));
    for (version, expected) in &archived.states {
        assert_eq!(&archived.restored(Some(*version)).unwrap(), expected);
    }
    // It stays until the retention removes it, and is named until then.
    assert_eq!(archived.findings().len(), 1);
    remove_before(&archived.target, i64::MAX).unwrap();
    assert_eq!(archived.findings(), Vec::<String>::new());
    assert_eq!(archived.restored(None).unwrap(), archived.machine.state().1);
}

#[test]
fn an_archive_whose_only_snapshot_is_damaged_gets_another_one() {
    let mut archived = snapshotted(1);
    archived.damage(0, b"torn");
    let error = archived.restored(None).unwrap_err();
    assert_eq!(error.kind(), Kind::Corrupt);
    assert!(error.message().contains(&archived.snapshots()[0]), "{error}");
    let status = archived.go_on();
    assert!(status.reports[0].contains("a new snapshot is taken"), "{status:?}");
    assert_eq!(archived.restored(None).unwrap(), archived.machine.state().1);
}

#[test]
fn commits_that_only_a_damaged_snapshot_has_are_not_left_out_in_silence() {
    let archived = snapshotted(2);
    let names = segments(&*archived.objects);
    for name in &names[1..] {
        wait(archived.objects.delete(&Path::from(name.as_str()))).unwrap();
    }
    archived.damage(1, b"torn");
    let newest = archived.states.last().unwrap().0;
    for version in [None, Some(newest)] {
        let error = archived.restored(version).unwrap_err();
        assert_eq!(error.kind(), Kind::Corrupt, "{error}");
    }
    let error = archived.restored(None).unwrap_err();
    assert!(error.message().contains("do not need it: restore that one"), "{error}");
    let (version, expected) = &archived.states[1];
    assert_eq!(&archived.restored(Some(*version)).unwrap(), expected);
}
