//! Watches: their states, when they answer, and when they do not.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use openkv::engine::memory::MemoryEngine;
use openkv::model::{Error, Key, Kind, Outcome, Result, Versionstamp};
use openkv::store::Room;

use crate::database::{Database, START_MS};
use crate::faulty::{Faulty, Plan};
use crate::on_both;
use crate::writes::{delete, enqueue, key, set, set_suffixed, set_until, write};

fn some(value: &[u8]) -> Option<Vec<u8>> {
    Some(value.to_vec())
}

fn the_first_state_comes_at_once(database: Database) {
    database.must(write(vec![set("b", b"1")]));
    let watch = database.watch(&["a", "b"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![None, some(b"1")])));
    let nothing = database.watch(&[]);
    assert_eq!(database.next(nothing).get(), Ok(Some(vec![])));
}

fn a_change_answers_a_waiting_call(database: Database) {
    let watch = database.watch(&["a"]);
    database.next(watch).get().expect("no error");
    let waiting = database.next(watch);
    database.must(write(vec![set("a", b"1")]));
    assert_eq!(waiting.get(), Ok(Some(vec![some(b"1")])));
    let waiting = database.next(watch);
    database.must(write(vec![set("a", b"1")]));
    assert_eq!(waiting.get(), Ok(Some(vec![some(b"1")])), "the same value is a new entry");
    let waiting = database.next(watch);
    database.must(write(vec![delete("a")]));
    assert_eq!(waiting.get(), Ok(Some(vec![None])));
}

fn a_slow_reader_sees_the_newest_state_once(database: Database) {
    let watch = database.watch(&["a"]);
    database.next(watch).get().expect("no error");
    for n in 0..20 {
        database.must(write(vec![set("a", &[n])]));
    }
    assert_eq!(database.next(watch).get(), Ok(Some(vec![some(&[19])])));
    let waiting = database.next(watch);
    database.settle_down();
    assert_eq!(waiting.now(), None);
    database.must(write(vec![set("a", b"x")]));
    assert_eq!(waiting.get(), Ok(Some(vec![some(b"x")])));
}

fn no_news_is_no_answer_unless_raw(database: Database) {
    let quiet = database.watch(&["a"]);
    let raw = database.store().watch(vec![key("a")], true, None);
    let states = [quiet, raw].map(|watch| database.next(watch).get());
    assert_eq!(states, [Ok(Some(vec![None])), Ok(Some(vec![None]))]);
    let nothing_visible = [vec![delete("a")], vec![set("a", b"1"), delete("a")]];
    for mutations in nothing_visible {
        let waiting = [quiet, raw].map(|watch| database.next(watch));
        database.must(write(mutations));
        assert_eq!(waiting[1].get(), Ok(Some(vec![None])));
        database.settle_down();
        assert_eq!(waiting[0].now(), None);
        // The unanswered call ends with its watch.
        database.must(write(vec![set("a", b"2")]));
        assert_eq!(waiting[0].get(), Ok(Some(vec![some(b"2")])));
        database.must(write(vec![delete("a")]));
        database.settle_down();
        assert_eq!([quiet, raw].map(|watch| database.next(watch).get()), states);
    }
    let waiting = database.next(raw);
    database.must(write(vec![set("unwatched", b"")]));
    database.settle_down();
    assert_eq!(waiting.now(), None, "a watch does not report other keys, raw or not");
}

/// The last watch ended while the watch for external commits was starting, which then stayed
/// without an owner: with its thread, its connection and its resources of the operating system.
#[test]
fn a_starting_watch_for_external_commits_ends_with_the_last_watch() {
    let (beginning, begun) = channel();
    let (go, going) = channel::<()>();
    let gate = Mutex::new((beginning, going));
    let before_external = move |count, (): &()| {
        let gate = gate.lock().expect("no panic");
        gate.0.send(count).expect("a receiver");
        gate.1.recv().expect("a signal");
        Ok(())
    };
    let before_external = Box::new(before_external);
    let plan = Arc::new(Plan { before_external, ..Plan::default() });
    let database = Database::sqlite_wrapped(|engine| Faulty(engine, plan.clone()));
    let open = || {
        database.read("");
        plan.external_open.load(Ordering::SeqCst)
    };
    let watch = database.watch(&["a"]);
    assert_eq!(begun.recv(), Ok(0));
    database.store().watch_cancel(watch);
    go.send(()).expect("waiting");
    assert_eq!(open(), 0);
    database.watch(&["a"]);
    assert_eq!(begun.recv(), Ok(1));
    go.send(()).expect("waiting");
    assert_eq!(open(), 1);
}

fn cancelling_answers_a_waiting_call(database: Database) {
    let watch = database.watch(&["a"]);
    database.next(watch).get().expect("no error");
    let waiting = database.next(watch);
    database.store().watch_cancel(watch);
    assert_eq!(waiting.get(), Ok(None));
    assert_eq!(database.next(watch).get(), Ok(None));
    database.store().watch_cancel(watch);
    let unread = database.watch(&["a"]);
    database.store().watch_cancel(unread);
    assert_eq!(database.next(unread).get(), Ok(None));
    database.must(write(vec![set("a", b"1")]));
}

fn a_cancelled_watch_that_is_being_read_answers_once(database: Database) {
    for _ in 0..50 {
        let watch = database.watch(&["a"]);
        let waiting = database.next(watch);
        database.store().watch_cancel(watch);
        let answer = waiting.get();
        assert!(answer == Ok(None) || answer == Ok(Some(vec![None])), "{answer:?}");
        assert!(waiting.is_dropped(), "answered twice");
    }
}

fn watches_on_one_key_do_not_disturb_each_other(database: Database) {
    let watches = [&["a"][..], &["a"], &["b", "a", "a"]].map(|names| database.watch(names));
    for watch in watches {
        database.next(watch).get().expect("no error");
    }
    let [first, second, third] = watches.map(|watch| database.next(watch));
    database.must(write(vec![set("a", b"1")]));
    assert_eq!(first.get(), Ok(Some(vec![some(b"1")])));
    assert_eq!(second.get(), Ok(Some(vec![some(b"1")])));
    assert_eq!(third.get(), Ok(Some(vec![None, some(b"1"), some(b"1")])));
    database.store().watch_cancel(watches[0]);
    let [second, third] = [watches[1], watches[2]].map(|watch| database.next(watch));
    database.must(write(vec![set("a", b"2")]));
    assert_eq!(second.get(), Ok(Some(vec![some(b"2")])));
    assert_eq!(third.get(), Ok(Some(vec![None, some(b"2"), some(b"2")])));
}

fn every_answer_is_one_snapshot(database: Database) {
    let watch = database.watch(&["a", "b"]);
    database.next(watch).get().expect("no error");
    let mut answers = 0;
    let mut waiting = database.next(watch);
    for n in 1..=200_u8 {
        drop(database.submit(vec![Ok(write(vec![set("a", &[n]), set("b", &[n])]))]));
        if let Some(answer) = waiting.now() {
            let entries = answer.expect("no error").expect("not ended");
            assert_eq!(entries[0], entries[1]);
            answers += 1;
            waiting = database.next(watch);
        }
    }
    loop {
        let entries = waiting.get().expect("no error").expect("not ended");
        assert_eq!(entries[0], entries[1]);
        answers += 1;
        if entries[0] == some(&[200]) {
            break;
        }
        waiting = database.next(watch);
    }
    assert!(answers <= 200, "{answers} answers to 200 commits");
}

fn dead_letters_are_announced(database: Database) {
    let watch = database.watch(&["dead"]);
    database.next(watch).get().expect("no error");
    let waiting = database.next(watch);
    let consumer = database.listen(1);
    database.must(enqueue(7..8, START_MS, &[], &["dead"]));
    let (id, _) = consumer.get();
    database.store().settle(consumer.id, id, Outcome::Failed, None);
    assert_eq!(waiting.get(), Ok(Some(vec![some(&[7])])));
}

fn suffixed_keys_are_announced_as_they_are_stored(database: Database) {
    let version = database.must(write(vec![]));
    let mut stored = key("log").into_bytes();
    stored.push(2);
    stored.extend(Versionstamp::new(version + 1).hex());
    stored.push(0);
    let watch = database.store().watch(vec![Key::from_encoded(stored), key("log")], false, None);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![None, None])));
    let waiting = database.next(watch);
    assert_eq!(database.must(write(vec![set_suffixed("log", b"1")])), version + 1);
    assert_eq!(waiting.get(), Ok(Some(vec![some(b"1"), None])));
}

fn an_end_is_announced_when_it_comes(database: Database) {
    database.must(write(vec![set_until("a", b"1", START_MS + 100), set("b", b"2")]));
    let watch = database.watch(&["a", "b"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![some(b"1"), some(b"2")])));
    let waiting = database.next(watch);
    database.pass(99);
    database.settle_down();
    assert_eq!(waiting.now(), None);
    database.pass(1);
    assert_eq!(waiting.get(), Ok(Some(vec![None, some(b"2")])));
}

/// Room for this number of bytes.
struct Narrow(AtomicUsize);

impl Room for Narrow {
    fn holds(&self, bytes: usize) -> Result<()> {
        match bytes <= self.0.load(Ordering::SeqCst) {
            true => Ok(()),
            false => Err(Error::new(Kind::Unavailable, "no room")),
        }
    }
}

/// A read collected all values of a state before it checked their length.
fn a_state_without_room_is_an_error_and_reported_once_it_fits(database: Database) {
    database.must(write(vec![set("a", &[7; 60])]));
    for copies in [2, 40] {
        let room = Arc::new(Narrow(100.into()));
        let keys = vec![key("a"); copies];
        let watch = database.store().watch(keys, false, Some(room.clone()));
        let error = database.next(watch).get().expect_err("no room");
        assert_eq!(error.kind(), Kind::Unavailable);
        room.0.store(copies * 60, Ordering::SeqCst);
        let state = database.next(watch).get().expect("room");
        assert_eq!(state.map(|state| state.len()), Some(copies));
    }
}

on_both! {
    the_first_state_comes_at_once
    a_change_answers_a_waiting_call
    a_slow_reader_sees_the_newest_state_once
    no_news_is_no_answer_unless_raw
    cancelling_answers_a_waiting_call
    a_cancelled_watch_that_is_being_read_answers_once
    watches_on_one_key_do_not_disturb_each_other
    every_answer_is_one_snapshot
    dead_letters_are_announced
    suffixed_keys_are_announced_as_they_are_stored
    an_end_is_announced_when_it_comes
    a_state_without_room_is_an_error_and_reported_once_it_fits
}

/// A failed read left the watch waiting for a commit that might never come.
#[test]
fn reading_a_state_is_retried() {
    let fails = |count, (): &()| match count {
        // The first read starts the watch for other processes.
        1 | 2 | 5 => Err(Error::new(Kind::Unavailable, "not now")),
        _ => Ok(()),
    };
    let plan = Plan { before_read: Box::new(fails), ..Plan::default() };
    let database = Database::over(Faulty(MemoryEngine::new(), Arc::new(plan)));
    let watch = database.watch(&["a"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![None])));
    assert_eq!(database.store().failing(), []);
    let waiting = database.next(watch);
    database.must(write(vec![set("a", b"1")]));
    assert_eq!(waiting.get(), Ok(Some(vec![some(b"1")])));
}
