//! The times of commits, and the time between two of them.

use super::*;
use crate::bucket::leader::{Leader, apart};
use crate::bucket::publisher::segment_of;
use openkv_core::chain::decode as decode_object;

/// Commits at this time by the clock of the process.
fn add_at(process: &Process, now_ms: i64) {
    let mut writer = process.writer();
    let deadline = Instant::now() + Duration::from_secs(30);
    let writes = vec![write(vec![], vec![sum("n", 1)])];
    writer.apply(Work { writes, durable: true, ..Work::default() }, now_ms, deadline).unwrap();
}

/// The times of the batches in the log.
fn times(store: &Arc<Store>) -> Vec<i64> {
    let objects = Objects { target: Target::over(store.clone(), "test") };
    let batch = |bytes: &bytes::Bytes| {
        let (entry, content, _) = decode_object(bytes).unwrap();
        let EntryKind::Batch { before, after } = entry.kind else { return None };
        Some(segment_of((before, after), content).unwrap().at_ms)
    };
    objects.bytes(0, 100).unwrap().iter().filter_map(batch).collect()
}

/// A leader whose clock was behind that of the one before it wrote times that went back.
#[test]
fn the_times_of_commits_do_not_go_back_under_a_leader_whose_clock_is_behind() {
    let store = Arc::new(Store::default());
    let mut first = leader(&store);
    add_at(&first, 5_000_000);
    first.driver.release().unwrap();
    // It has repeated the log.
    let mut second = leader(&store);
    add_at(&second, 3_000_000);
    begin_snapshot(&mut second);
    second.driver.snapshots.finish();
    second.driver.release().unwrap();
    // It has the snapshot alone.
    let third = leader(&store);
    let alone = Segment { first: 3, last: 3, at_ms: 1_000_000, changes: Vec::new() };
    LogPublisher::new(third.lead.clone(), third.local.database).publish(alone).unwrap();
    assert_eq!(times(&store), [5_000_000; 3]);
}

#[test]
fn batches_begin_apart_and_one_that_was_left_behind_does_not_wait() {
    const LINGER: Duration = Duration::from_secs(3600);
    let store = Arc::new(Store::default());
    let timing = Timing { linger: Some(LINGER), ..TIMING };
    let process = opened_with(&store, LeadMode::Auto, false, timing).unwrap();
    let mut leader = Leader::new(process.lead.clone(), process.local.clone());
    let before = Instant::now();
    assert_eq!(leader.lingers(before, 1), Duration::ZERO, "nothing was sent");
    let writes = vec![write(vec![], vec![sum("n", 1)])];
    let work = Work { writes, durable: true, ..Work::default() };
    leader.begin(work, 1_000_000, Instant::now() + Duration::from_secs(30)).unwrap();
    assert!(!leader.lingers(Instant::now(), 1).is_zero());
    assert!(leader.lingers(Instant::now(), 0) <= LINGER, "the time in the URL is exact");
    assert_eq!(leader.lingers(before, 1), Duration::ZERO, "it came before the last batch");
}

#[test]
fn a_batch_that_is_smaller_than_the_last_one_waits_somewhat_longer() {
    let upload = Duration::from_millis(20);
    assert_eq!(apart(upload, 1, 1), upload, "a caller that is alone");
    assert_eq!(apart(upload, 500, 500), upload, "all callers are back");
    assert_eq!(apart(upload, 500, 1), Duration::from_millis(25), "the first of them");
}
