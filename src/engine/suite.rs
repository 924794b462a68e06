//! The laws of [`Engine`], as tests that run for every implementor.
//!
//! Each law is a function of a fresh engine; the two modules at the end instantiate all of them.

mod conflict;
mod feed;
mod queues;
mod range;
mod search;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use super::{Engine, Reader, Report, Work, Writer};
use crate::model::{
    Arith, AtomicWrite, Check, Claim, Decision, Delivery, EncodedValue, Encoding, Key, LOCK_MS,
    Limits, Message, Mutation, Outcome, Patch, Renewal, Settlement, Target, Versionstamp,
    WriteParts,
};

use conflict::{
    a_range_is_seen_with_what_the_batch_has_done, a_range_is_what_was_seen_or_the_write_is_lost,
};
use feed::{
    ends_and_dead_messages_are_logged, every_commit_of_a_batch_is_logged_and_nothing_else,
    nothing_is_logged_until_it_is_asked_for,
    values_too_large_for_the_log_are_told_while_they_are_there,
};
use queues::{
    a_deduplication_key_is_held_until_its_message_is_gone,
    a_lost_lock_of_a_named_queue_is_due_at_once, dead_messages_are_kept_listed_and_purged,
    dead_messages_are_tried_again_as_new, higher_priorities_come_first_then_the_earlier,
    named_queues_keep_to_themselves, settlements_and_renewals_say_whether_the_lock_held,
    stats_count_every_state, what_is_returned_keeps_its_place_and_its_attempts,
};
use range::{
    a_deletion_chooses_by_its_filter, a_deletion_is_bounded_or_refused, a_deletion_sees_its_batch,
    walks_show_ends_and_jump,
};

const NOW: i64 = 1_000_000;

pub(super) fn key(text: &str) -> Key {
    let mut bytes = vec![2];
    bytes.extend_from_slice(text.as_bytes());
    bytes.push(0);
    Key::from_encoded(bytes)
}

fn bytes(value: &[u8]) -> EncodedValue {
    EncodedValue { encoding: Encoding::Bytes, bytes: value.to_vec() }
}

pub(super) fn set(name: &str, value: &[u8]) -> Mutation {
    set_until(name, value, None)
}

fn set_until(name: &str, value: &[u8], expire_at_ms: Option<i64>) -> Mutation {
    Mutation::Set { key: key(name), suffixed: false, value: bytes(value), expire_at_ms }
}

pub(super) fn sum(name: &str, n: u64) -> Mutation {
    Mutation::Arith { op: Arith::Sum, key: key(name), operand: EncodedValue::le64(n) }
}

pub(super) fn write(checks: Vec<Check>, mutations: Vec<Mutation>) -> AtomicWrite {
    let parts = WriteParts { checks, mutations, ..WriteParts::default() };
    AtomicWrite::new(parts, &Limits::default()).unwrap()
}

fn enqueue(value: u8, due_ms: i64, backoff_ms: &[u32], undelivered: &[&str]) -> AtomicWrite {
    let message = Message {
        due_ms,
        backoff_ms: backoff_ms.to_vec(),
        keys_if_undelivered: undelivered.iter().map(|name| key(name)).collect(),
        value: vec![value],
        ..Message::default()
    };
    let parts = WriteParts { messages: vec![message], ..WriteParts::default() };
    AtomicWrite::new(parts, &Limits::default()).unwrap()
}

fn apply_at(writer: &mut impl Writer, work: Work, now_ms: i64) -> Report {
    writer.apply(work, now_ms, Instant::now() + Duration::from_secs(5)).unwrap()
}

fn commit(writer: &mut impl Writer, writes: Vec<AtomicWrite>) -> Vec<Decision> {
    apply_at(writer, Work { writes, durable: true, ..Work::default() }, NOW).decisions
}

fn committed(version: u64) -> Decision {
    Decision::Committed(Versionstamp::new(version))
}

/// Version and value under a key.
fn get_at(reader: &mut impl Reader, name: &str, now_ms: i64) -> Option<(u64, Vec<u8>)> {
    let mut found = None;
    let visited = reader.read(now_ms, &mut |snapshot| {
        snapshot.get(key(name).as_bytes(), &mut |row| {
            assert_eq!(row.key, key(name).as_bytes());
            found = Some((row.stamp.version(), row.value.to_vec()));
        })?;
        Ok(())
    });
    visited.unwrap();
    found
}

fn get(reader: &mut impl Reader, name: &str) -> Option<(u64, Vec<u8>)> {
    get_at(reader, name, NOW)
}

fn scan(reader: &mut impl Reader, start: &str, end: &str, reverse: bool, max: usize) -> Vec<Key> {
    let mut keys = Vec::new();
    let visited = reader.read(NOW, &mut |snapshot| {
        snapshot.scan(key(start).as_bytes(), key(end).as_bytes(), reverse, &mut |row| {
            keys.push(Key::from_encoded(row.key.to_vec()));
            keys.len() < max
        })
    });
    visited.unwrap();
    keys
}

fn claim(writer: &mut impl Writer, lock: i64, now_ms: i64) -> Vec<(i64, Vec<u8>)> {
    let deliveries = claim_of(writer, "", lock, LOCK_MS, 10, now_ms);
    deliveries.into_iter().map(|delivery| (delivery.id, delivery.value)).collect()
}

fn claim_of(
    writer: &mut impl Writer,
    queue: &str,
    lock: i64,
    lock_ms: i64,
    max: usize,
    now_ms: i64,
) -> Vec<Delivery> {
    let claims = vec![Claim { queue: queue.into(), max, lock_ms, lock }];
    let work = Work { claims, durable: true, ..Work::default() };
    apply_at(writer, work, now_ms).deliveries.remove(0)
}

fn settle(writer: &mut impl Writer, id: i64, lock: i64, outcome: Outcome, now_ms: i64) -> Report {
    let settlements = vec![Settlement::new(id, lock, outcome)];
    apply_at(writer, Work { settlements, durable: true, ..Work::default() }, now_ms)
}

pub(super) fn what_is_committed_is_read(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    assert_eq!(get(&mut reader, "a"), None);
    let writes = vec![write(vec![], vec![set("a", b"1"), set("b", b"2")]), write(vec![], vec![])];
    assert_eq!(commit(&mut writer, writes), [committed(1), committed(2)]);
    assert_eq!(get(&mut reader, "a"), Some((1, b"1".to_vec())));
    assert_eq!(get(&mut reader, "b"), Some((1, b"2".to_vec())));
    commit(&mut writer, vec![write(vec![], vec![Mutation::Delete { key: key("a") }])]);
    assert_eq!(get(&mut reader, "a"), None);
    reader.release();
    assert_eq!(get(&mut reader, "b"), Some((1, b"2".to_vec())));
}

pub(super) fn a_kept_snapshot_is_never_stale(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    for round in 1..200_u64 {
        let value = round.to_be_bytes();
        commit(&mut writer, vec![write(vec![], vec![set("a", &value)])]);
        assert_eq!(get(&mut reader, "a"), Some((round, value.to_vec())));
        assert_eq!(get(&mut reader, "a"), Some((round, value.to_vec())));
    }
}

pub(super) fn a_rejected_write_leaves_nothing(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    commit(&mut writer, vec![write(vec![], vec![set("text", b"x"), set("old", b"1")])]);
    let decisions = commit(
        &mut writer,
        vec![
            write(vec![], vec![set("old", b"2"), set("new", b"3"), sum("text", 1)]),
            write(vec![], vec![set("after", b"4")]),
        ],
    );
    assert!(matches!(decisions[0], Decision::Rejected(_)));
    assert_eq!(decisions[1], committed(2));
    assert_eq!(get(&mut reader, "old"), Some((1, b"1".to_vec())));
    assert_eq!(get(&mut reader, "new"), None);
    assert_eq!(get(&mut reader, "after"), Some((2, b"4".to_vec())));
}

pub(super) fn writes_of_a_batch_see_each_other(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let absent = || vec![Check { key: key("a"), expected: None }];
    let stamped =
        |version| vec![Check { key: key("a"), expected: Some(Versionstamp::new(version)) }];
    let decisions = commit(
        &mut writer,
        vec![
            write(absent(), vec![set("a", b"1")]),
            write(absent(), vec![set("a", b"2")]),
            write(stamped(1), vec![sum("n", 5)]),
            write(vec![], vec![sum("n", 6)]),
        ],
    );
    let lost = Decision::CheckFailed(vec![0]);
    assert_eq!(decisions, [committed(1), lost, committed(2), committed(3)]);
    assert_eq!(get(&mut reader, "a"), Some((1, b"1".to_vec())));
    assert_eq!(get(&mut reader, "n"), Some((3, 11_u64.to_le_bytes().to_vec())));
}

pub(super) fn large_values_come_back_and_go(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    for len in [900, 950, 960, 1000, 5000, 60_000, 10, 2000] {
        let value: Vec<u8> = (0..len).map(|at| (at % 251) as u8).collect();
        commit(&mut writer, vec![write(vec![], vec![set("a", &value)])]);
        assert_eq!(get(&mut reader, "a").unwrap().1, value);
    }
    let scanned = scan(&mut reader, "", "z", false, 10);
    assert_eq!(scanned, [key("a")]);
    commit(&mut writer, vec![write(vec![], vec![Mutation::Delete { key: key("a") }])]);
    assert_eq!(get(&mut reader, "a"), None);
}

pub(super) fn scans_are_ordered_and_stop_when_told(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let names = ["d", "a", "c", "b", "e"];
    commit(&mut writer, vec![write(vec![], names.map(|name| set(name, b"")).to_vec())]);
    let keys = |names: &[&str]| names.iter().map(|name| key(name)).collect::<Vec<_>>();
    assert_eq!(scan(&mut reader, "b", "e", false, 10), keys(&["b", "c", "d"]));
    assert_eq!(scan(&mut reader, "b", "e", true, 10), keys(&["d", "c", "b"]));
    assert_eq!(scan(&mut reader, "b", "e", true, 2), keys(&["d", "c"]));
    assert_eq!(scan(&mut reader, "e", "b", false, 10), keys(&[]));
}

pub(super) fn ended_entries_are_absent_at_once_and_swept_in_steps(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let ending = |at: i64| set_until(&format!("k{at}"), b"v", Some(NOW + at));
    let report = apply_at(
        &mut writer,
        Work {
            writes: vec![write(vec![], (1..=5).map(ending).collect())],
            durable: true,
            ..Work::default()
        },
        NOW,
    );
    assert_eq!(report.expiry_ms, Some(NOW + 1));
    assert_eq!(writer.agenda().unwrap().expiry_ms, Some(NOW + 1));
    assert!(get_at(&mut reader, "k3", NOW + 2).is_some());
    assert_eq!(get_at(&mut reader, "k3", NOW + 3), None);

    // To a check and to a sum they are absent as well.
    let writes = vec![
        write(vec![Check { key: key("k1"), expected: None }], vec![]),
        write(vec![], vec![sum("k2", 7)]),
    ];
    let work = Work { writes, durable: true, ..Work::default() };
    let decisions = apply_at(&mut writer, work, NOW + 3).decisions;
    assert_eq!(decisions, [committed(2), committed(3)]);

    let sweep = || Work { sweep_max: 2, durable: true, ..Work::default() };
    let first = apply_at(&mut writer, sweep(), NOW + 4);
    assert_eq!((first.touched.len(), first.sweep_more), (2, true));
    let second = apply_at(&mut writer, sweep(), NOW + 4);
    assert_eq!((second.touched, second.sweep_more), (vec![key("k4")], false));
    assert_eq!(writer.agenda().unwrap().expiry_ms, Some(NOW + 5));
    assert!(get_at(&mut reader, "k2", NOW + 4).is_some(), "the sum has no end");
    // Each sweep that deleted something is a commit of its own.
    assert_eq!(commit(&mut writer, vec![write(vec![], vec![])]), [committed(6)]);
}

/// When an entry ends; the outer `None`: there is none.
fn expiry(reader: &mut impl Reader, name: &str) -> Option<Option<i64>> {
    let mut found = None;
    let read = reader.read(NOW, &mut |snapshot| {
        found = snapshot.expiry(key(name).as_bytes())?;
        Ok(())
    });
    read.unwrap();
    found
}

fn retime(name: &str, expire_at_ms: Option<i64>, required: bool) -> AtomicWrite {
    write(vec![], vec![Mutation::Retime { key: key(name), expire_at_ms, required }])
}

pub(super) fn an_end_moves_and_neither_value_nor_stamp_does(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let large = vec![7; 5000];
    commit(&mut writer, vec![write(vec![], vec![set("a", &large), set("b", b"1")])]);
    assert_eq!((expiry(&mut reader, "a"), expiry(&mut reader, "c")), (Some(None), None));
    let decisions = commit(
        &mut writer,
        vec![retime("a", Some(NOW + 10), true), retime("c", None, true), retime("c", None, false)],
    );
    assert_eq!(decisions, [committed(2), Decision::CheckFailed(vec![]), committed(3)]);
    assert_eq!(get(&mut reader, "a"), Some((1, large.clone())));
    assert_eq!(expiry(&mut reader, "a"), Some(Some(NOW + 10)));
    assert_eq!(get_at(&mut reader, "a", NOW + 10), None);
    assert_eq!(writer.agenda().unwrap().expiry_ms, Some(NOW + 10));
    commit(&mut writer, vec![retime("a", None, true)]);
    assert_eq!(writer.agenda().unwrap().expiry_ms, None);
    assert_eq!(get_at(&mut reader, "a", NOW + 10), Some((1, large)));
}

pub(super) fn moved_ends_count_inside_a_batch(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    commit(&mut writer, vec![write(vec![], vec![set("a", b"1"), set("b", b"1")])]);
    let one = vec![Check { key: key("a"), expected: Some(Versionstamp::new(1)) }];
    let absent = vec![Check { key: key("b"), expected: None }];
    let decisions = commit(
        &mut writer,
        vec![
            retime("a", Some(NOW + 5), true),
            write(one, vec![]),
            retime("b", Some(NOW), true),
            write(absent, vec![]),
            retime("b", None, true),
            write(vec![], vec![set("b", b"2")]),
            retime("b", Some(NOW + 7), true),
        ],
    );
    let lost = Decision::CheckFailed(vec![]);
    let stamps = [2, 3, 4, 5].map(committed);
    assert_eq!(decisions[..4], stamps);
    assert_eq!(decisions[4..], [lost, committed(6), committed(7)]);
    assert_eq!(get(&mut reader, "b"), Some((6, b"2".to_vec())));
    assert_eq!(expiry(&mut reader, "b"), Some(Some(NOW + 7)));
}

fn uuids_of(decision: &Decision) -> Vec<u128> {
    let Decision::CommittedWith(_, resolved) = decision else { panic!("{decision:?}") };
    resolved.iter().map(|resolved| resolved.uuid).collect()
}

/// Sets `<uuid>` and another key's value to it, and a third key's value to another UUID.
fn with_placeholders() -> AtomicWrite {
    let nil = std::str::from_utf8(crate::codec::uuid::NIL_TEXT).unwrap();
    let patch = |target, offset, placeholder| Patch { target, offset, placeholder };
    let parts = WriteParts {
        mutations: vec![set(nil, b"v"), set("same", nil.as_bytes()), set("other", nil.as_bytes())],
        patches: vec![
            patch(Target::Key(0), 1, 5),
            patch(Target::Value(1), 0, 5),
            patch(Target::Value(2), 0, 6),
        ],
        ..WriteParts::default()
    };
    AtomicWrite::new(parts, &Limits::default()).unwrap()
}

pub(super) fn uuids_rise_from_commit_to_commit(engine: &impl Engine) {
    let mut reader = engine.reader().unwrap();
    let mut all = Vec::new();
    // Each writer stands for another process, and the clock falls.
    for round in 0..4 {
        let mut writer = engine.writer().unwrap();
        let writes = vec![with_placeholders(), with_placeholders()];
        let work = Work { writes, durable: true, seed: 9, ..Work::default() };
        let report = apply_at(&mut writer, work, NOW - round * 10);
        all.extend(report.decisions.iter().flat_map(uuids_of));
        let [.., one, other] = all.as_slice() else { panic!("two in each") };
        let text = |uuid: &u128| crate::codec::uuid::text(*uuid);
        let name = String::from_utf8(text(one).to_vec()).unwrap();
        assert_eq!(get(&mut reader, &name).unwrap().1, b"v");
        assert_eq!(get(&mut reader, "same").unwrap().1, text(one));
        assert_eq!(get(&mut reader, "other").unwrap().1, text(other));
    }
    assert_eq!(all.len(), 16);
    assert!(all.is_sorted_by(|a, b| a < b), "{all:x?}");
}

/// Found by random operations: what a batch itself stored with an end that had come was still seen
/// by the writes behind it in the same batch.
pub(super) fn entries_that_end_inside_a_batch_are_absent_in_it(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let text = |end: i64| set_until("a", b"text", Some(end));
    let absent = || vec![Check { key: key("a"), expected: None }];
    let decisions = commit(
        &mut writer,
        vec![
            write(vec![], vec![text(NOW)]),
            write(absent(), vec![sum("a", 1)]),
            write(vec![], vec![text(NOW - 1), sum("a", 2)]),
            write(vec![], vec![text(NOW + 1)]),
            write(absent(), vec![]),
        ],
    );
    assert_eq!(decisions[..4], [committed(1), committed(2), committed(3), committed(4)]);
    assert!(matches!(decisions[4], Decision::CheckFailed(_)));
}

pub(super) fn messages_come_in_order_and_are_hidden_while_locked(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let due = [(1, NOW + 20), (2, NOW), (3, NOW), (4, NOW + 10)];
    commit(&mut writer, due.map(|(value, at)| enqueue(value, at, &[], &[])).to_vec());
    assert_eq!(writer.message_agenda("").unwrap(), Some(NOW));
    let values =
        |claimed: &[(i64, Vec<u8>)]| claimed.iter().map(|(_, value)| value[0]).collect::<Vec<_>>();
    let first = claim(&mut writer, 77, NOW);
    assert_eq!(values(&first), [2, 3]);
    assert!(claim(&mut writer, 78, NOW + 1).is_empty());
    let second = claim(&mut writer, 79, NOW + 20);
    assert_eq!(values(&second), [4, 1]);
    for (id, _) in first {
        settle(&mut writer, id, 77, Outcome::Done, NOW + 30);
    }
    assert_eq!(writer.message_agenda("").unwrap(), Some(NOW + 20 + LOCK_MS));
}

pub(super) fn a_failed_message_comes_back_until_its_schedule_is_spent(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    commit(&mut writer, vec![enqueue(9, NOW, &[50], &["dead1", "dead2"])]);
    let (id, _) = claim(&mut writer, 5, NOW).remove(0);
    let wrong_lock = settle(&mut writer, id, 6, Outcome::Failed, NOW);
    assert!(!wrong_lock.queued);
    assert!(settle(&mut writer, id, 5, Outcome::Failed, NOW).queued);
    assert!(claim(&mut writer, 7, NOW + 49).is_empty());
    let again = claim(&mut writer, 7, NOW + 50);
    assert_eq!(again.len(), 1);
    let last = settle(&mut writer, again[0].0, 7, Outcome::Failed, NOW + 60);
    assert_eq!(last.touched, [key("dead1"), key("dead2")]);
    let (version, value) = get(&mut reader, "dead1").unwrap();
    assert_eq!((version, value), (2, vec![9]));
    assert_eq!(get(&mut reader, "dead2").unwrap().0, 2);
    assert_eq!(writer.message_agenda("").unwrap(), None);
}

pub(super) fn a_lock_that_runs_out_is_a_failure_and_a_renewed_one_is_not(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    commit(&mut writer, vec![enqueue(1, NOW, &[100], &[]), enqueue(2, NOW, &[100], &[])]);
    let claimed = claim(&mut writer, 5, NOW);
    let renewal = |id, lock| Renewal { id, lock, lock_ms: LOCK_MS };
    let renewals = vec![renewal(claimed[0].0, 5), renewal(claimed[1].0, 999)];
    apply_at(&mut writer, Work { renewals, durable: true, ..Work::default() }, NOW + 4000);
    assert!(claim(&mut writer, 6, NOW + LOCK_MS).is_empty(), "one is renewed, one has to wait");
    let again = claim(&mut writer, 6, NOW + LOCK_MS + 100);
    assert_eq!(again, [(claimed[1].0, vec![2])]);
}

pub(super) fn a_second_writer_thread_never_mixes_with_the_first(engine: &impl Engine) {
    // Two writers stand for two processes: every sum must count.
    let engine_writers = [engine.writer().unwrap(), engine.writer().unwrap()];
    let done = Arc::new(AtomicUsize::new(0));
    std::thread::scope(|scope| {
        for mut writer in engine_writers {
            let done = done.clone();
            scope.spawn(move || {
                for _ in 0..50 {
                    let decisions = commit(&mut writer, vec![write(vec![], vec![sum("n", 1)])]);
                    assert!(matches!(decisions[0], Decision::Committed(_)));
                    done.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
    });
    let (_, value) = get(&mut engine.reader().unwrap(), "n").unwrap();
    assert_eq!(value, 100_u64.to_le_bytes());
}

use search::{
    an_index_follows_every_change, an_index_over_rows_is_built_in_steps_while_they_change,
    hits_are_ranked_paged_and_marked, indexes_are_listed_refused_and_dropped,
    the_largest_queries_are_carried_out,
};

macro_rules! laws {
    ($fresh:expr; $($law:ident)*) => {
        $(#[test]
        fn $law() {
            let (engine, _keep) = $fresh;
            super::$law(&engine);
        })*
    };
}

macro_rules! all_laws {
    ($fresh:expr) => {
        laws! { $fresh;
            what_is_committed_is_read
            a_kept_snapshot_is_never_stale
            a_rejected_write_leaves_nothing
            writes_of_a_batch_see_each_other
            large_values_come_back_and_go
            scans_are_ordered_and_stop_when_told
            walks_show_ends_and_jump
            a_deletion_sees_its_batch
            a_deletion_chooses_by_its_filter
            a_deletion_is_bounded_or_refused
            ended_entries_are_absent_at_once_and_swept_in_steps
            entries_that_end_inside_a_batch_are_absent_in_it
            an_end_moves_and_neither_value_nor_stamp_does
            moved_ends_count_inside_a_batch
            uuids_rise_from_commit_to_commit
            messages_come_in_order_and_are_hidden_while_locked
            a_failed_message_comes_back_until_its_schedule_is_spent
            a_lock_that_runs_out_is_a_failure_and_a_renewed_one_is_not
            a_second_writer_thread_never_mixes_with_the_first
            a_range_is_what_was_seen_or_the_write_is_lost
            a_range_is_seen_with_what_the_batch_has_done
            nothing_is_logged_until_it_is_asked_for
            every_commit_of_a_batch_is_logged_and_nothing_else
            ends_and_dead_messages_are_logged
            values_too_large_for_the_log_are_told_while_they_are_there
            an_index_follows_every_change
            an_index_over_rows_is_built_in_steps_while_they_change
            hits_are_ranked_paged_and_marked
            indexes_are_listed_refused_and_dropped
            the_largest_queries_are_carried_out
            a_deduplication_key_is_held_until_its_message_is_gone
            a_lost_lock_of_a_named_queue_is_due_at_once
            dead_messages_are_kept_listed_and_purged
            dead_messages_are_tried_again_as_new
            higher_priorities_come_first_then_the_earlier
            named_queues_keep_to_themselves
            settlements_and_renewals_say_whether_the_lock_held
            stats_count_every_state
            what_is_returned_keeps_its_place_and_its_attempts
        }
    };
}

mod memory {
    all_laws!((crate::engine::memory::MemoryEngine::new(), ()));
}

mod sqlite {
    use super::*;
    use crate::engine::sqlite::SqliteEngine;

    fn fresh() -> (SqliteEngine, tempfile::TempDir) {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kv.sqlite3");
        (SqliteEngine::open(&path, false, Duration::from_secs(5)).unwrap(), directory)
    }

    all_laws!(fresh());

    /// Found by eight handles on a new file: one saw the tables of another half made, and
    /// another gave up where SQLite does not wait.
    #[test]
    fn many_threads_open_one_new_file() {
        for _ in 0..10 {
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("kv.sqlite3");
            let opened: Vec<_> = std::thread::scope(|scope| {
                let open = || SqliteEngine::open(&path, false, Duration::from_secs(30)).map(|_| ());
                let threads: Vec<_> = (0..8).map(|_| scope.spawn(open)).collect();
                threads.into_iter().map(|thread| thread.join().unwrap()).collect()
            });
            assert_eq!(opened, vec![Ok(()); 8]);
        }
    }

    #[test]
    fn other_processes_commits_are_noticed_and_our_own_are_not() {
        let (engine, directory) = fresh();
        let path = directory.path().join("kv.sqlite3");
        let other = SqliteEngine::open(&path, false, Duration::from_secs(5)).unwrap();
        let (wake, woken) = mpsc::channel();
        let mut ours = engine.writer().unwrap();
        commit(&mut ours, vec![write(vec![], vec![set("a", b"0")])]);
        let watch = engine.watch_foreign(Box::new(move || wake.send(()).unwrap())).unwrap();
        let mut theirs = other.writer().unwrap();
        commit(&mut theirs, vec![write(vec![], vec![set("a", b"1")])]);
        woken.recv_timeout(Duration::from_secs(10)).unwrap();
        drop(watch);
        assert!(woken.recv().is_err(), "the guard ends the watch");
    }
}
