//! The queue: which consumer gets which message, when, and how often.

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

fn credits_are_respected(database: Database) {
    let consumer = database.listen(2);
    database.must(enqueue(0..5, START_MS, &[], &[]));
    let first = consumer.get();
    assert_eq!((first.1, consumer.get().1), (0, 1));
    database.settle_down();
    assert!(consumer.all().is_empty());
    database.store().settle(consumer.id, first.0, Outcome::Done, None);
    assert_eq!(consumer.get().1, 2);
    // Settling it again returns no second credit.
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

fn messages_from_before_the_first_listener_are_delivered(database: Database) {
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

fn renewal_keeps_a_message_with_its_handler(database: Database) {
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

/// A lock that was renewed before its clock was set back stayed for as long as the clock was set back.
fn a_clock_that_is_set_back_prolongs_no_lock_of_a_running_handler(database: Database) {
    let killed = database.listen(1);
    database.must(enqueue(1..2, START_MS, &[0], &[]));
    killed.get();
    database.pass(-20 * LOCK_MS);
    database.settle_down();
    database.store().unlisten(killed.id);
    let other = database.listen(10);
    database.pass(LOCK_MS - 1);
    database.settle_down();
    assert!(other.all().is_empty());
    database.pass(1);
    assert_eq!(other.get().1, 1);
}

fn a_stopped_consumer_keeps_its_messages_until_it_leaves(database: Database) {
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
    assert!(other.all().is_empty(), "its messages are still locked");
    database.store().settle(stopped.id, first.0, Outcome::Done, None);
    database.store().unlisten(stopped.id);
    pass_locks();
    assert_eq!(other.get().1, second.1, "its lock is not renewed any more");
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
    // The late settlement does not settle this delivery.
    database.store().settle(gone.id, stale, Outcome::Failed, None);
    database.settle_down();
    assert_eq!(database.read("dead"), None);
    database.store().settle(other.id, id, Outcome::Failed, None);
    database.settle_down();
    assert_eq!(database.read("dead"), Some(vec![1]));
}

fn messages_of_a_consumer_that_left_may_still_be_settled(database: Database) {
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
    assert_eq!(other.get().1, 5, "a consumer that left gets no message");
    assert!(gone.all().is_empty());
}

on_both! {
    consumers_take_turns
    credits_are_respected
    a_message_waits_until_it_is_due
    messages_from_before_the_first_listener_are_delivered
    a_failure_comes_back_by_its_schedule_and_then_dies
    renewal_keeps_a_message_with_its_handler
    a_clock_that_is_set_back_prolongs_no_lock_of_a_running_handler
    a_stopped_consumer_keeps_its_messages_until_it_leaves
    a_consumer_that_left_loses_its_lock
    messages_of_a_consumer_that_left_may_still_be_settled
}

/// Messages claimed for a consumer that left before their delivery stayed locked and then counted
/// as failed: without retries they became dead letters unseen.
#[test]
fn claimed_messages_without_a_consumer_wait_for_the_next_one() {
    let (claimed, seen) = channel::<()>();
    let (go, going) = channel::<()>();
    let gate = Mutex::new((claimed, going));
    let after_apply = move |_, report: &Report| {
        if report.deliveries.iter().map(Vec::len).sum::<usize>() == 3 {
            let gate = gate.lock().expect("no panic");
            gate.0.send(()).expect("a receiver");
            gate.1.recv().expect("a signal");
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
    // No time has passed, and no attempt was used up.
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
