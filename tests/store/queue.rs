//! The queue: who gets what, when, and how often.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use openkv::engine::Report;
use openkv::engine::memory::MemoryEngine;
use openkv::model::{LOCK_MS, LOCK_RENEWAL_MS, Outcome};

use crate::database::{Consumer, Database, START_MS};
use crate::faulty::{Faulty, Plan};
use crate::on_both;
use crate::writes::{enqueue, write};

fn consumers_take_turns(database: Database) {
    let consumers: Vec<Consumer> = (0..3).map(|_| database.listen(100)).collect();
    database.must(enqueue(0..12, START_MS, &[], &[]));
    database.settle_down();
    let hands: Vec<Vec<u8>> = consumers.iter().map(Consumer::all).collect();
    assert_eq!(hands.iter().map(Vec::len).collect::<Vec<_>>(), [4, 4, 4]);
    let mut all = hands.concat();
    all.sort_unstable();
    assert_eq!(all, (0..12).collect::<Vec<u8>>());
    assert!(hands.iter().all(|hand| hand.is_sorted()), "{hands:?}");
}

fn places_are_respected(database: Database) {
    let consumer = database.listen(2);
    database.must(enqueue(0..5, START_MS, &[], &[]));
    let first = consumer.get();
    assert_eq!((first.1, consumer.get().1), (0, 1));
    database.settle_down();
    assert!(consumer.all().is_empty());
    database.store().settle(consumer.id, first.0, Outcome::Done, None);
    assert_eq!(consumer.get().1, 2);
    // Ending it again frees no second place.
    database.store().settle(consumer.id, first.0, Outcome::Done, None);
    database.settle_down();
    assert!(consumer.all().is_empty());
    let other = database.listen(10);
    assert_eq!((other.get().1, other.get().1), (3, 4));
}

fn a_message_waits_until_it_is_due(database: Database) {
    let consumer = database.listen(10);
    database.must(enqueue(1..2, START_MS + 1000, &[], &[]));
    database.must(enqueue(2..3, START_MS + 500, &[], &[]));
    database.pass(499);
    database.settle_down();
    assert!(consumer.all().is_empty());
    database.pass(1);
    assert_eq!(consumer.get().1, 2);
    database.pass(500);
    assert_eq!(consumer.get().1, 1);
}

fn what_was_enqueued_before_anybody_listened_is_delivered(database: Database) {
    database.must(enqueue(0..3, START_MS, &[], &[]));
    database.settle_down();
    let consumer = database.listen(10);
    assert_eq!([consumer.get().1, consumer.get().1, consumer.get().1], [0, 1, 2]);
}

fn a_failure_comes_back_by_its_schedule_and_then_dies(database: Database) {
    let consumer = database.listen(1);
    database.must(enqueue(9..10, START_MS, &[100, 1000], &["x", "y"]));
    for wait_ms in [100, 1000] {
        let (id, _) = consumer.get();
        database.store().settle(consumer.id, id, Outcome::Failed, None);
        database.settle_down();
        database.pass(wait_ms - 1);
        database.settle_down();
        assert!(consumer.all().is_empty());
        assert_eq!(database.read("x"), None);
        database.pass(1);
    }
    let (id, _) = consumer.get();
    database.store().settle(consumer.id, id, Outcome::Failed, None);
    database.settle_down();
    assert_eq!((database.read("x"), database.read("y")), (Some(vec![9]), Some(vec![9])));
    database.pass(LOCK_MS * 10);
    database.settle_down();
    assert!(consumer.all().is_empty());
}

fn renewal_keeps_a_message_with_who_handles_it(database: Database) {
    let consumer = database.listen(1);
    database.must(enqueue(1..2, START_MS, &[0], &[]));
    let (id, _) = consumer.get();
    let other = database.listen(10);
    for _ in 0..4 * LOCK_MS / LOCK_RENEWAL_MS {
        database.pass(LOCK_RENEWAL_MS);
        database.settle_down();
    }
    assert!(other.all().is_empty());
    database.store().settle(consumer.id, id, Outcome::Done, None);
    database.settle_down();
    database.pass(LOCK_MS * 2);
    database.settle_down();
    assert_eq!((consumer.all(), other.all()), (vec![], vec![]));
}

fn a_consumer_that_stopped_keeps_what_it_handles_until_it_leaves(database: Database) {
    let stopped = database.listen(2);
    database.must(enqueue(1..3, START_MS, &[0], &[]));
    let (first, second) = (stopped.get(), stopped.get());
    database.store().stop_listening(stopped.id);
    let other = database.listen(10);
    database.must(enqueue(3..4, START_MS, &[], &[]));
    assert_eq!(other.get().1, 3, "it takes no more");
    let pass_locks = || {
        for _ in 0..4 * LOCK_MS / LOCK_RENEWAL_MS {
            database.pass(LOCK_RENEWAL_MS);
            database.settle_down();
        }
    };
    pass_locks();
    assert!(other.all().is_empty(), "what it handles is still being handled");
    database.store().settle(stopped.id, first.0, Outcome::Done, None);
    database.store().unlisten(stopped.id);
    pass_locks();
    assert_eq!(other.get().1, second.1, "nobody says any more that it is being handled");
    assert!(other.all().is_empty());
}

fn a_consumer_that_left_loses_its_lock(database: Database) {
    let gone = database.listen(1);
    database.must(enqueue(1..2, START_MS, &[100], &["dead"]));
    let (stale, _) = gone.get();
    database.store().unlisten(gone.id);
    let other = database.listen(10);
    database.pass(LOCK_MS - 1);
    database.settle_down();
    assert!(other.all().is_empty());
    database.pass(1);
    database.settle_down();
    assert!(other.all().is_empty(), "its delivery has failed, so it waits for its retry");
    database.pass(100);
    let (id, value) = other.get();
    assert_eq!(value, 1);
    // The end that comes too late is not the end of this delivery.
    database.store().settle(gone.id, stale, Outcome::Failed, None);
    database.settle_down();
    assert_eq!(database.read("dead"), None);
    database.store().settle(other.id, id, Outcome::Failed, None);
    database.settle_down();
    assert_eq!(database.read("dead"), Some(vec![1]));
}

fn what_a_consumer_that_left_was_handling_may_still_end(database: Database) {
    let gone = database.listen(2);
    database.must(enqueue(1..3, START_MS, &[0], &[]));
    let (first, _) = gone.get();
    let (second, _) = gone.get();
    database.store().unlisten(gone.id);
    database.store().unlisten(gone.id);
    database.store().settle(gone.id, first, Outcome::Done, None);
    database.store().settle(gone.id, second, Outcome::Failed, None);
    let other = database.listen(10);
    assert_eq!(other.get().1, 2);
    database.must(enqueue(5..6, START_MS, &[], &[]));
    assert_eq!(other.get().1, 5, "who left gets nothing more");
    assert!(gone.all().is_empty());
}

on_both! {
    consumers_take_turns
    places_are_respected
    a_message_waits_until_it_is_due
    what_was_enqueued_before_anybody_listened_is_delivered
    a_failure_comes_back_by_its_schedule_and_then_dies
    renewal_keeps_a_message_with_who_handles_it
    a_consumer_that_stopped_keeps_what_it_handles_until_it_leaves
    a_consumer_that_left_loses_its_lock
    what_a_consumer_that_left_was_handling_may_still_end
}

/// Messages that were claimed for a consumer that left before they were dealt out stayed locked,
/// and then counted as failed: without retries they died unseen.
#[test]
fn what_nobody_could_be_given_waits_for_the_next_consumer() {
    let (claimed, seen) = channel::<()>();
    let (go, going) = channel::<()>();
    let gate = Mutex::new((claimed, going));
    let after_apply = move |_, report: &Report| {
        if report.deliveries.iter().map(Vec::len).sum::<usize>() == 3 {
            let gate = gate.lock().expect("no panic");
            gate.0.send(()).expect("asked");
            gate.1.recv().expect("told to go");
        }
        Ok(())
    };
    let plan = Plan { after_apply: Box::new(after_apply), ..Plan::default() };
    let database = Database::over(Faulty(MemoryEngine::new(), Arc::new(plan)));
    let gone = database.listen(10);
    let enqueued = database.submit(vec![Ok(enqueue(1..4, START_MS, &[], &["dead"]))]);
    seen.recv().expect("claimed");
    database.store().unlisten(gone.id);
    go.send(()).expect("waiting");
    enqueued.get();
    database.settle_down();
    let other = database.listen(1);
    // No time has passed, and no message was used up.
    for value in 1..4 {
        let (id, got) = other.get();
        assert_eq!(got, value);
        database.store().settle(other.id, id, Outcome::Done, None);
    }
    database.must(write(vec![]));
    database.pass(LOCK_MS * 2);
    database.settle_down();
    assert_eq!((database.read("dead"), gone.all(), other.all()), (None, vec![], vec![]));
}
