//! Writes that arrive again with their ids.

use super::*;
use openkv_core::model::{
    Attempt, Check, Limits, Message, Versionstamp, WRITE_ID_KEPT_MS, WriteId, WriteParts,
};

const NOW: i64 = 1_000_000;

fn with_id(parts: WriteParts, number: u64) -> AtomicWrite {
    let attempt = Some(Attempt::first(WriteId::new(NOW, [0, number])));
    AtomicWrite::new(WriteParts { attempt, ..parts }, &Limits::default()).unwrap()
}

fn adds(number: u64) -> AtomicWrite {
    with_id(WriteParts { mutations: vec![sum("n", 1)], ..WriteParts::default() }, number)
}

/// It cannot be decided ahead.
fn enqueues_once(number: u64) -> AtomicWrite {
    let message = Message { deduplication_key: Some("key".into()), ..Message::default() };
    let parts = WriteParts { messages: vec![message], ..WriteParts::default() };
    with_id(parts, number)
}

fn decide_at(writer: &mut BucketWriter, write: AtomicWrite, now_ms: i64) -> Decision {
    let work = Work { writes: vec![write], durable: true, ..Work::default() };
    let deadline = Instant::now() + Duration::from_secs(30);
    writer.apply(work, now_ms, deadline).unwrap().decisions.remove(0)
}

fn decide(writer: &mut BucketWriter, write: AtomicWrite) -> Decision {
    decide_at(writer, write, NOW)
}

fn version_of(decision: &Decision) -> Versionstamp {
    match decision {
        Decision::Committed(stamp) | Decision::CommittedWith(stamp, _) => *stamp,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_repeated_write_gets_its_outcome_from_each_leader() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    let mut writer = process.writer();
    let first = decide(&mut writer, adds(1));
    let second = decide(&mut writer, enqueues_once(2));
    let failed = decide(
        &mut writer,
        with_id(
            WriteParts {
                checks: vec![Check { key: key("n"), expected: None }],
                ..WriteParts::default()
            },
            3,
        )
        .repeated(),
    );
    assert!(matches!(failed, Decision::CheckFailed(_)), "{failed:?}");
    let repeats = |process: &Process| {
        let mut writer = process.writer();
        assert_eq!(decide(&mut writer, adds(1).repeated()), first);
        assert_eq!(decide(&mut writer, enqueues_once(2).repeated()), second);
        // The first attempt, which arrives late.
        assert_eq!(decide(&mut writer, adds(3)), failed);
        assert_eq!((process.count(), writer.queue_depth("").unwrap()), (1, 1));
    };
    repeats(&process);
    // The memory of a leader outlives its own transactions of the file.
    let deadline = Instant::now() + Duration::from_secs(30);
    writer.keep_metrics(&mut |_| "{}".into(), deadline).unwrap();
    assert_eq!(decide(&mut writer, adds(1).repeated()), first);
    process.driver.release().unwrap();
    drop(writer);
    // One has read the log, the other the snapshot.
    let mut second_leader = leader(&store);
    repeats(&second_leader);
    begin_snapshot(&mut second_leader);
    second_leader.driver.snapshots.finish();
    second_leader.driver.release().unwrap();
    let mut third = leader(&store);
    assert_eq!(store.requests("GET snapshots/").len(), 1);
    repeats(&third);
    // So has a process that follows the log and leads later.
    third.driver.release().unwrap();
    process.driver.follow().unwrap();
    process.lead_again();
    repeats(&process);
    assert!(version_of(&decide(&mut process.writer(), adds(4))) > version_of(&second));
}

#[test]
fn an_id_is_remembered_for_its_time_by_the_next_leader_too() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    let first = decide(&mut process.writer(), adds(1));
    process.driver.release().unwrap();
    let next = leader(&store);
    let mut writer = next.writer();
    let last_ms = NOW + WRITE_ID_KEPT_MS;
    assert_eq!(decide_at(&mut writer, adds(1).repeated(), last_ms), first);
    // A leader forgets after each batch.
    decide_at(&mut writer, write(vec![], vec![set("other", &[1])]), last_ms + 1);
    let late = decide_at(&mut writer, adds(1).repeated(), last_ms + 1);
    assert!(matches!(&late, Decision::Rejected(error) if error.kind() == Kind::OutcomeUnknown));
    assert_eq!(next.count(), 1);
}

/// A batch on a disk that is nearly full is decided in a transaction of the file, which knew no ids.
#[test]
fn a_repeated_write_gets_its_outcome_while_the_disk_is_nearly_full() {
    let store = Arc::new(Store::default());
    let mut process = leader(&store);
    let mut writer = process.writer();
    let first = decide(&mut writer, adds(1));
    let local = process.local.clone();
    let decide_narrow = |writer: &mut BucketWriter, write| {
        local.writer.lock().be_narrow();
        decide(writer, write)
    };
    let mut fresh = process.writer();
    assert_eq!(decide_narrow(&mut writer, adds(1).repeated()), first);
    assert_eq!(decide_narrow(&mut fresh, adds(1).repeated()), first);
    let second = decide_narrow(&mut fresh, adds(2));
    assert_eq!(decide_narrow(&mut fresh, adds(2).repeated()), second);
    process.driver.release().unwrap();
    let next = leader(&store);
    assert_eq!(decide(&mut next.writer(), adds(2).repeated()), second);
    assert_eq!(next.count(), 2);
}
