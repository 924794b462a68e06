//! Expired entries are swept without a call.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use openkv::engine::Work;
use openkv::engine::memory::MemoryEngine;
use openkv::model::{DEADLINES_REFRESH_MS, Outcome, SWEEP_JOINED_ROWS_MAX, SWEEP_ROWS_MIN};

use crate::database::{Database, START_MS};
use crate::faulty::{Faulty, Plan};
use crate::on_both;
use crate::writes::{absent, checked, enqueue, set, set_until, write};

fn a_sweep_is_one_commit_and_leaves_nothing(database: Database) {
    let version = database.must(write(vec![set_until("a", b"", START_MS + 10), set("b", b"1")]));
    database.pass(10);
    database.settle_down();
    assert_eq!(database.read("a"), None);
    assert_eq!(database.read("b"), Some(b"1".to_vec()));
    // The sweep, and two writes without effect.
    assert_eq!(database.must(checked(vec![absent("a")], vec![])), version + 3);
}

fn many_ends_are_swept_in_steps(database: Database) {
    let count = SWEEP_JOINED_ROWS_MAX + SWEEP_ROWS_MIN + 10;
    let ending = |n| set_until(&format!("k{n:05}"), b"", START_MS + 10);
    database.must(write((0..count).map(ending).collect()));
    let watch = database.watch(&[&format!("k{:05}", count - 1)]);
    database.next(watch).get().expect("no error");
    let gone = database.next(watch);
    let version = database.must(write(vec![]));
    database.pass(10);
    assert_eq!(gone.get(), Ok(Some(vec![None])), "the last one is swept without a call");
    // The entry is absent from its expiry on, so the watch may report that before the last step.
    let steps = |writes: u64| database.must(write(vec![])) - version - writes;
    assert!((1..10_000).any(|writes| steps(writes) >= 2), "there were two steps");
}

fn an_earlier_end_that_is_written_later_is_kept(database: Database) {
    database.must(write(vec![set_until("late", b"", START_MS + DEADLINES_REFRESH_MS * 2)]));
    database.must(write(vec![set_until("soon", b"", START_MS + 50)]));
    let watch = database.watch(&["soon"]);
    database.next(watch).get().expect("no error");
    let waiting = database.next(watch);
    database.pass(50);
    assert_eq!(waiting.get(), Ok(Some(vec![None])));
    assert_eq!(database.read("late"), Some(Vec::new()));
}

/// A removal that a feed had reported was not synced. A power loss undid it, and its versionstamp
/// went to another commit, which the feed then skipped.
#[test]
fn a_sweep_is_synced_unless_a_write_shares_its_transaction() {
    let swept = Arc::new(Mutex::new(Vec::new()));
    let notes = swept.clone();
    let before_apply = move |_, work: &Work| {
        if work.sweep_max > 0 {
            notes.lock().expect("no panic").push((work.durable, work.writes.len()));
        }
        Ok(())
    };
    let plan = Plan { before_apply: Box::new(before_apply), ..Plan::default() };
    let database = Database::over(Faulty(MemoryEngine::new(), Arc::new(plan)));
    let consumer = database.listen(2);
    for step in 1..5 {
        let at_ms = START_MS + step * 10;
        // A message is claimed at the same time, without a sync.
        database.must(enqueue(1..2, at_ms, &[], &[]));
        database.must(write(vec![set_until("ending", b"", at_ms)]));
        database.settle_down();
        database.pass(10);
        let (message, _) = consumer.get();
        database.settle_down();
        database.store().settle(consumer.id, message, Outcome::Done, None);
    }
    let swept = swept.lock().expect("no panic");
    assert!(swept.len() >= 4);
    assert!(swept.iter().all(|(durable, writes)| *durable || *writes > 0), "{swept:?}");
}

/// Rows that no program writes kept the writer thread busy without end: each was due at once, and
/// the work on it found nothing.
#[test]
fn fruitless_work_in_a_damaged_file_is_paused() {
    for sql in [
        "INSERT INTO kv VALUES ('text', x'00', 3, 1, 0, 5)",
        "UPDATE kv SET expiration_ms = 'x'",
        "UPDATE openkv_queue SET due_ms = 'x'",
        "UPDATE openkv_queue SET lock = 5, lock_end_ms = 'x'",
        "INSERT INTO openkv_dead SELECT id, queue, 0, 0, 0, 0, 0, 0, '', '', 'x', NULL, NULL, \
         backoff_ms, undelivered, v FROM openkv_queue",
    ] {
        let plan = Arc::new(Plan::default());
        let database = Database::sqlite_wrapped(|engine| Faulty(engine, plan.clone()));
        database.must(write(vec![set("a", b"1")]));
        database.must(enqueue(1..2, START_MS + 1_000_000, &[], &[]));
        database.tamper(sql);
        let _consumer = database.listen(1);
        database.settle_down();
        let before = plan.calls();
        for _ in 0..20 {
            database.poke();
            std::thread::sleep(Duration::from_millis(1));
        }
        let calls = plan.calls() - before;
        assert!(calls <= 4, "{calls} calls although no time has passed: {sql}");
        let version = database.must(write(vec![]));
        assert!(version < 10, "nothing is removed repeatedly: {sql}");
    }
}

on_both! {
    a_sweep_is_one_commit_and_leaves_nothing
    many_ends_are_swept_in_steps
    an_earlier_end_that_is_written_later_is_kept
}
