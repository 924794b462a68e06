//! Object stores that fail, objects that are damaged, archivers that meet.

use std::sync::Arc;

use object_store::ObjectStoreExt;
use object_store::memory::InMemory;
use object_store::path::Path;

use super::faulty::{Faulty, NEVER, OFTEN, SELDOM};
use super::*;
use crate::archive::names::MANIFEST;
use crate::archive::verify;
use openkv_core::model::Kind;

#[test]
fn a_store_that_fails_delays_and_loses_nothing() {
    let objects = Faulty::new();
    let target = add_test_store(objects.clone());
    let machine = Machine::new();
    machine.set("a", "0");
    let options = ArchiveOptions { snapshot_every_ms: 300, ..machine.options(&target) };
    // A beginning is not tried again by itself: its caller gets the error.
    objects.rate.store(NEVER, Ordering::SeqCst);
    let archive = machine.archive_with(options).unwrap();
    // Else the first commit that can be restored is the one of which a snapshot first succeeds.
    wait_for(&archive, |status| status.snapshot.is_some());
    objects.rate.store(OFTEN, Ordering::SeqCst);
    let mut random = Random(3);
    let mut states = Vec::new();
    for _ in 0..60 {
        machine.pass(20);
        machine.commit(random.mutations(machine.clock.now_ms()));
        states.push(machine.state());
        std::thread::sleep(Duration::from_millis(4));
    }
    machine.settle(&archive);
    objects.rate.store(NEVER, Ordering::SeqCst);
    stop(archive);
    assert!(objects.faults.load(Ordering::SeqCst) > 2);
    for (version, expected) in states.iter().step_by(7) {
        let at = Some(When::Commit(Versionstamp::new(*version)));
        assert_eq!(&machine.restored(&target, at).unwrap().1, expected);
    }
    let verified = verify(&target, &machine.path.with_extension("verify"), &mut |_, _| true);
    assert_eq!(verified.unwrap().findings, Vec::<String>::new());
    // Restores from a store that fails fail as a whole, or give everything.
    objects.rate.store(SELDOM, Ordering::SeqCst);
    let mut restored = 0;
    for _ in 0..30 {
        match machine.restored(&target, None) {
            Ok((_, entries)) => {
                assert_eq!(entries, machine.state().1);
                restored += 1;
            }
            Err(error) => {
                assert!(matches!(error.kind(), Kind::Unavailable | Kind::Corrupt), "{error}");
            }
        }
    }
    assert!(restored > 0);
}

/// The names of the objects with segments.
pub(super) fn segments(objects: &dyn object_store::ObjectStore) -> Vec<String> {
    let listing = futures_util::StreamExt::collect::<Vec<_>>(objects.list(None));
    let mut names: Vec<String> =
        wait(listing).into_iter().map(|object| object.unwrap().location.to_string()).collect();
    names.retain(|name| name.ends_with(".segments"));
    names.sort();
    names
}

pub(super) fn wait<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(work)
}

/// An archive with an object for each of some commits, the first of which is in the snapshot.
fn one_by_one(target: &str, count: u64) -> (Machine, Vec<u64>) {
    let machine = Machine::new();
    let mut versions = vec![machine.set("k", "0")];
    let archive = machine.archive(target);
    for number in 1..count {
        machine.settle(&archive);
        machine.pass(10);
        versions.push(machine.set("k", &number.to_string()));
    }
    machine.settle(&archive);
    stop(archive);
    (machine, versions)
}

#[test]
fn a_damaged_missing_or_exchanged_object_is_named() {
    let objects = Arc::new(InMemory::new());
    let target = add_test_store(objects.clone());
    let (machine, versions) = one_by_one(&target, 6);
    let names = segments(&*objects);
    assert_eq!(names.len(), 5);
    let path = |at: usize| Path::from(names[at].as_str());
    let get =
        |at: usize| wait(async { objects.get(&path(at)).await.unwrap().bytes().await.unwrap() });
    let put = |at: usize, bytes: Vec<u8>| wait(objects.put(&path(at), bytes.into())).unwrap();
    let sound = get(2);
    let mut flipped = sound.to_vec();
    *flipped.last_mut().unwrap() ^= 1;
    for bytes in [flipped, sound[..sound.len() - 3].to_vec(), Vec::new(), get(3).to_vec()] {
        put(2, bytes);
        let error = machine.restored(&target, None).unwrap_err();
        assert!(matches!(error.kind(), Kind::Corrupt | Kind::Unavailable), "{error}");
        // Everything before it can be restored.
        let at = Some(When::Commit(Versionstamp::new(versions[2])));
        machine.restored(&target, at).unwrap();
        let verified = verify(&target, &machine.path.with_extension("verify"), &mut |_, _| true);
        assert!(verified.map_or(true, |verified| !verified.findings.is_empty()));
    }
    wait(objects.delete(&path(2))).unwrap();
    let error = machine.restored(&target, None).unwrap_err();
    assert!(error.message().contains("in no object"), "{error}");
    put(2, sound.to_vec());
    machine.restored(&target, None).unwrap();
}

#[test]
fn a_torn_last_object_is_written_again() {
    let objects = Arc::new(InMemory::new());
    let target = add_test_store(objects.clone());
    let (machine, _) = one_by_one(&target, 4);
    let name = segments(&*objects).pop().unwrap();
    let path = Path::from(name.as_str());
    let bytes = wait(async { objects.get(&path).await.unwrap().bytes().await.unwrap() });
    wait(objects.put(&path, bytes.slice(0..bytes.len() - 5).into())).unwrap();
    let error = machine.restored(&target, None).unwrap_err();
    assert!(error.message().contains("are sound"), "{error}");
    let archive = machine.archive(&target);
    machine.settle(&archive);
    let status = stop(archive);
    assert!(status.reports[0].contains("written again"), "{status:?}");
    assert_eq!(machine.restored(&target, None).unwrap().1, machine.state().1);
}

#[test]
fn an_archiver_that_is_taken_over_ends_and_mixes_nothing() {
    let target = add_test_store(Arc::new(InMemory::new()));
    let machine = Machine::new();
    machine.set("k", "0");
    let first = machine.archive(&target);
    machine.settle(&first);
    // The second one waits for a silent owner; the first one renews, so it is refused.
    let refused = machine.archive_with(machine.options(&target)).map(drop).unwrap_err();
    assert!(refused.message().contains("another archiver writes"), "{refused}");
    // An owner that does not renew, as one that was stopped by its machine.
    let slow = ArchiveOptions { look_ms: 10_000, lease_ms: 40_000, ..machine.options(&target) };
    stop(first);
    let sleeping = machine.archive_with(slow).unwrap();
    machine.settle(&sleeping);
    let second = machine.archive(&target);
    machine.set("k", "1");
    machine.settle(&second);
    let status = stop(sleeping);
    assert!(status.error.is_some_and(|error| error.contains("taken over")));
    machine.set("k", "2");
    machine.settle(&second);
    assert_eq!(stop(second).error, None);
    assert_eq!(machine.restored(&target, None).unwrap().1, machine.state().1);
    let verified = verify(&target, &machine.path.with_extension("verify"), &mut |_, _| true);
    assert_eq!(verified.unwrap().findings, Vec::<String>::new());
}

#[test]
fn an_archiver_whose_folder_is_gone_ends_and_the_rest_is_no_sound_archive() {
    let folder = tempfile::TempDir::new().unwrap();
    let target = folder.path().join("archive").to_str().unwrap().to_owned();
    let machine = Machine::new();
    machine.set("k", "0");
    let archive = machine.archive(&target);
    machine.settle(&archive);
    // As an unmounted disk, in whose place a folder is made anew.
    std::fs::rename(&target, folder.path().join("unmounted")).unwrap();
    std::fs::create_dir(&target).unwrap();
    std::fs::write(folder.path().join("archive/other"), "").unwrap();
    machine.set("k", "1");
    let manifest = std::path::Path::new(&target).join(MANIFEST);
    wait_for(&archive, |status| {
        // A renewal that has begun before the folder was gone writes it into the new one.
        drop(std::fs::remove_file(&manifest));
        status.error.is_some()
    });
    let status = stop(archive);
    assert!(status.error.is_some_and(|error| error.contains("is gone from")));
    let begun_anew = machine.archive_with(machine.options(&target)).map(drop);
    assert!(begun_anew.unwrap_err().message().contains("is not empty and no archive"));
    std::fs::remove_dir_all(&target).unwrap();
    let again = machine.archive(&target);
    machine.settle(&again);
    stop(again);
    assert_eq!(machine.restored(&target, None).unwrap().1, machine.state().1);
    for found in std::fs::read_dir(format!("{target}/t00000001/snapshots")).unwrap() {
        std::fs::remove_file(found.unwrap().path()).unwrap();
    }
    let verified = verify(&target, &machine.path.with_extension("verify"), &mut |_, _| true);
    assert!(verified.unwrap().findings[0].contains("nothing can be restored"));
}

#[test]
fn a_clock_that_is_an_hour_off_disorders_nothing() {
    const HOUR_MS: i64 = 3_600_000;
    let target = add_test_store(Arc::new(InMemory::new()));
    let machine = Machine::new();
    machine.set("k", "0");
    let options = ArchiveOptions { snapshot_every_ms: 1000, ..machine.options(&target) };
    let archive = machine.archive_with(options).unwrap();
    let mut states = Vec::new();
    for (number, ms) in [10, HOUR_MS, 10, -HOUR_MS, 10, -HOUR_MS, 10, HOUR_MS].iter().enumerate() {
        machine.pass(*ms);
        machine.set("k", &number.to_string());
        states.push(machine.state());
        machine.settle(&archive);
    }
    stop(archive);
    for (version, expected) in states {
        let at = Some(When::Commit(Versionstamp::new(version)));
        assert_eq!(machine.restored(&target, at).unwrap().1, expected);
    }
}

#[test]
fn a_store_that_is_closed_ends_its_archiver() {
    let target = add_test_store(Arc::new(InMemory::new()));
    let mut machine = Machine::new();
    let archive = machine.archive(&target);
    machine.settle(&archive);
    machine.store = None;
    let status = wait_for(&archive, |status| status.state == "stopped");
    assert_eq!(status.error, None);
    machine.open();
    let archive = machine.archive(&target);
    machine.set("k", "1");
    machine.settle(&archive);
    stop(archive);
    assert_eq!(machine.restored(&target, None).unwrap().1, machine.state().1);
}
