//! Merged objects: who makes them, who reads them, and what becomes of them.

use super::*;
use crate::bucket::merging::Merges;
use openkv_core::chain::{Entry, Merged};
use openkv_core::codec::change_log;
use openkv_core::model::BUCKET_MERGED_FAN;

/// Requests of the opening of a database of many commits, at most.
const REQUESTS_MAX: usize = 200;

/// A leader's log gets so many batches without changes, each an object of its own, without a leader's work for them.
fn write_log(process: &mut Process, count: u64) {
    let mut position = process.driver.position;
    let target = &process.lead.objects;
    for _ in 0..count {
        let kind = EntryKind::Batch { before: position.version, after: position.version + 1 };
        let (number, epoch, previous) = (position.next, position.epoch, position.digest);
        let entry = Entry { number, epoch, previous, kind };
        let mut content = 1_000_000_i64.to_le_bytes().to_vec();
        content.extend(change_log::encode(position.version + 1, &[]));
        let (bytes, digest) = encode_object(&entry, &content);
        assert_eq!(target.create(number, &bytes).unwrap(), Created::New);
        position.take(&entry, digest);
    }
    process.driver.position = position;
}

fn merge(process: &Process) {
    let position = process.driver.position;
    let merges = &mut Merges::default();
    let place = (position.epoch, position.next);
    merges.run(&process.lead.objects, place, || true).unwrap();
    assert!(!merges.is_due(position.epoch, position.next));
    assert!(merges.is_due(position.epoch, position.next + BUCKET_MERGED_FAN as u64));
    // Another leader may have made others meanwhile.
    assert!(merges.is_due(position.epoch + 1, position.next));
}

/// The numbers of the merged objects that are there.
fn numbers(store: &Arc<Store>) -> Vec<(u64, u64)> {
    let objects = Objects { target: Target::over(store.clone(), "test") };
    let merged = objects.merged().unwrap();
    merged.iter().map(|(Merged { first, last, .. }, _)| (*first, *last)).collect()
}

/// The requests that `work` makes.
fn requests<T>(store: &Arc<Store>, work: impl FnOnce() -> T) -> (T, Vec<String>) {
    let before = store.requests("").len();
    let done = work();
    (done, store.requests("").split_off(before))
}

#[test]
fn opening_behind_many_small_commits_makes_few_requests() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    write_log(&mut process, 20_000);
    merge(&process);
    write_log(&mut process, 31);
    let (reader, made) =
        requests(&store, || opened(&store, LeadMode::Never, false).unwrap().driver.position);
    assert_eq!(reader, process.driver.position);
    assert!(made.len() <= REQUESTS_MAX, "{} requests", made.len());
}

#[test]
fn a_reader_that_is_far_behind_reads_merged_objects() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    let mut reader = opened(&store, LeadMode::Never, false).unwrap();
    write_log(&mut process, 2_000);
    merge(&process);
    let (_, made) = requests(&store, || reader.driver.follow().unwrap());
    assert_eq!(reader.driver.position, process.driver.position);
    assert!(made.len() <= REQUESTS_MAX, "{} requests", made.len());
    // One that is near asks for none.
    write_log(&mut process, 1);
    let (_, made) = requests(&store, || reader.driver.follow().unwrap());
    assert!(made.iter().all(|request| request.starts_with("GET log/")), "{made:?}");
}

#[test]
fn a_merged_object_that_is_missing_or_damaged_is_read_from_the_log() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    write_log(&mut process, 100);
    merge(&process);
    let target = Target::over(store.clone(), "test");
    let (name, _) = target.list("merged").unwrap().remove(0);
    let bytes = target.get(&name).unwrap();
    target.remove(std::slice::from_ref(&name)).unwrap();
    let without = opened(&store, LeadMode::Never, false).unwrap();
    assert_eq!(without.driver.position, process.driver.position);
    target.create(&name, bytes[..bytes.len() - 1].to_vec()).unwrap();
    let damaged = opened(&store, LeadMode::Never, false).unwrap();
    assert_eq!(damaged.driver.position, process.driver.position);
}

#[test]
fn a_leader_merges_while_it_leads_and_deletes_copies_with_what_they_copy() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    for _ in 0..BUCKET_MERGED_FAN {
        process.add().unwrap();
    }
    process.driver.snapshots.tend(&process.lead, &process.local);
    process.driver.snapshots.finish();
    // The beginning of the lead has number 0.
    assert_eq!(numbers(&store), [(0, BUCKET_MERGED_FAN as u64)]);
    let reader = opened(&store, LeadMode::Never, true).unwrap();
    assert_eq!(reader.count(), BUCKET_MERGED_FAN as u64);
    assert_eq!(store.requests("GET merged/").len(), 1);
    let objects = &process.lead.objects;
    objects.delete(Some(BUCKET_MERGED_FAN as u64 - 1), &[], || true).unwrap();
    assert_eq!(numbers(&store).len(), 1, "one of its objects stays");
    objects.delete(Some(BUCKET_MERGED_FAN as u64), &[], || true).unwrap();
    assert_eq!(numbers(&store), []);
}

#[test]
fn merging_goes_on_where_another_leader_has_ended() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    write_log(&mut process, 40);
    merge(&process);
    assert_eq!(numbers(&store), [(0, 40)]);
    write_log(&mut process, 40);
    let (_, made) = requests(&store, || merge(&process));
    assert_eq!(numbers(&store), [(0, 40), (41, 80)]);
    let read = made.iter().filter_map(|request| request.strip_prefix("GET log/"));
    assert_eq!(read.min(), Some("0000000000000029"));
}

#[test]
fn objects_that_are_large_are_not_copied() {
    let store = Arc::new(Store::default());
    let process = leader(&store);
    let value = vec![7; 60_000];
    for at in 0..BUCKET_MERGED_FAN {
        let names = (0..10).map(|n| format!("{at}-{n}"));
        process.apply(names.map(|name| write(vec![], vec![set(&name, &value)])).collect()).unwrap();
    }
    let next = BUCKET_MERGED_FAN as u64 + 1;
    let mut merges = Merges::default();
    merges.run(&process.lead.objects, (1, next), || true).unwrap();
    assert_eq!(numbers(&store), []);
    // What was left out is not read again.
    let (_, made) =
        requests(&store, || merges.run(&process.lead.objects, (1, next), || true).unwrap());
    assert_eq!(made, Vec::<String>::new());
}
