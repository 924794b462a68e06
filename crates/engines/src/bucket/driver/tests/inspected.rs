//! Status and verify of a database, over its objects.

use super::*;
use crate::bucket::inspect::{status_of, verify_of};

fn objects(store: &Arc<Store>) -> Objects {
    Objects { target: Target::over(store.clone(), "test") }
}

/// A database with two commits before a snapshot, and one behind it.
fn with_snapshot(store: &Arc<Store>) -> Process {
    let mut process = leader(store);
    process.add().unwrap();
    process.add().unwrap();
    begin_snapshot(&mut process);
    process.driver.snapshots.finish();
    process.add().unwrap();
    process
}

fn findings(store: &Arc<Store>) -> Vec<String> {
    verify_of(objects(store)).unwrap().findings
}

/// Replaces an object by another one, or removes it.
fn change(store: &Arc<Store>, name: &str, change: impl FnOnce(&mut Vec<u8>) -> bool) {
    let target = objects(store).target;
    let mut bytes = target.get(name).unwrap().to_vec();
    target.remove(&[name.to_owned()]).unwrap();
    if change(&mut bytes) {
        target.create(name, bytes).unwrap();
    }
}

#[test]
fn status_says_what_an_opening_reads_and_writes_nothing() {
    let store = Arc::new(Store::default());
    let mut process = with_snapshot(&store);
    let puts = store.requests("PUT ").len();
    let held = status_of(objects(&store)).unwrap();
    assert_eq!((held.snapshots, held.log_objects, held.opening_objects), (1, 4, 2));
    assert_eq!(held.snapshot.as_deref(), Some("00000000000000020000"));
    assert!(held.opening_bytes > held.snapshot_bytes && held.snapshot_bytes > 0);
    assert_eq!(held.leader.as_ref(), Some(&process.lead.name));
    assert!(!held.released);
    let verified = verify_of(objects(&store)).unwrap();
    assert_eq!(verified.findings, Vec::<String>::new());
    assert_eq!((verified.snapshots, verified.log_objects, verified.void_objects), (1, 4, 0));
    assert_eq!(verified.versionstamp, "00000000000000030000");
    assert_eq!(store.requests("PUT ").len(), puts);
    process.driver.release().unwrap();
    assert!(status_of(objects(&store)).unwrap().released);
}

#[test]
fn verify_finds_what_is_damaged_missing_or_of_another_chain() {
    let store = Arc::new(Store::default());
    drop(with_snapshot(&store));
    let log = objects(&store).target.list("log").unwrap();
    let (snapshot, _) = objects(&store).target.list("snapshots").unwrap().remove(0);
    let second = log[1].0.clone();
    // Without the beginning of the log the snapshot leads on.
    change(&store, &log[0].0, |_| false);
    change(&store, &second, |_| false);
    assert_eq!(findings(&store), Vec::<String>::new());
    change(&store, &log[3].0, |bytes| {
        let last = bytes.len() - 1;
        bytes[last] ^= 1;
        true
    });
    assert!(findings(&store)[0].contains("damaged"), "{:?}", findings(&store));
    change(&store, &snapshot, |bytes| {
        bytes.truncate(bytes.len() / 2);
        true
    });
    let all = findings(&store);
    assert!(all[0].contains(&snapshot) && all[1].contains("lost its beginning"), "{all:?}");
}

#[test]
fn merged_objects_are_counted_and_compared_with_the_log() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    for _ in 0..40 {
        process.add().unwrap();
    }
    process.driver.snapshots.tend(&process.lead, &process.local);
    process.driver.snapshots.finish();
    process.add().unwrap();
    let status = status_of(objects(&store)).unwrap();
    assert_eq!((status.log_objects, status.merged_objects, status.opening_objects), (42, 1, 2));
    assert!(status.merged_bytes > 0 && status.opening_bytes > status.merged_bytes);
    let verified = verify_of(objects(&store)).unwrap();
    assert_eq!((verified.merged_objects, verified.findings.len()), (1, 0));
    let (copy, _) = objects(&store).target.list("merged").unwrap().remove(0);
    // A copy of a log that has other objects.
    let other = Arc::new(Store::default());
    let mut process = leader(&other);
    for _ in 0..40 {
        process.apply(vec![write(vec![], vec![sum("other", 1)])]).unwrap();
    }
    process.driver.snapshots.tend(&process.lead, &process.local);
    process.driver.snapshots.finish();
    let (other_copy, _) = objects(&other).target.list("merged").unwrap().remove(0);
    let bytes = objects(&other).target.get(&other_copy).unwrap().to_vec();
    objects(&store).target.create(&other_copy, bytes).unwrap();
    let found = findings(&store);
    assert_eq!(found, [format!("{other_copy} is not what the log has at 1")]);
    change(&store, &copy, |bytes| {
        bytes.truncate(bytes.len() - 1);
        true
    });
    assert!(findings(&store).contains(&format!("{copy} is damaged")));
}

#[test]
fn verify_finds_a_gap_in_the_log() {
    let store = Arc::new(Store::default());
    let process = with_snapshot(&store);
    process.add().unwrap();
    let log = objects(&store).target.list("log").unwrap();
    // The snapshot contains it.
    change(&store, &log[2].0, |_| false);
    assert_eq!(findings(&store), Vec::<String>::new());
    change(&store, &log[3].0, |_| false);
    assert_eq!(findings(&store), ["the log has no object 3"]);
}
