//! Reads on the threads of their callers.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openkv::engine::memory::MemoryEngine;
use openkv::model::{
    Error, INLINE_KEYS_MAX, INLINE_READ_US_MAX, INLINE_READS_SKIPPED, Kind, Result,
};

use crate::database::{Database, START_MS};
use crate::faulty::{Faulty, Plan};
use crate::kit::until;
use crate::on_both;
use crate::writes::{key, set, set_until, write};

on_both! {
    a_read_sees_what_was_answered_before
    a_read_of_many_keys_is_for_the_reader_thread
}

/// The values of keys, read on this thread; `None` if the read is not for it.
fn values(db: &Database, names: &[&str]) -> Option<Result<Vec<Option<Vec<u8>>>>> {
    let keys: Vec<_> = names.iter().map(|name| key(name)).collect();
    let mut found = Vec::new();
    let read = db.store().entries_inline(&keys, |seen| {
        found.push(seen.map(|seen| seen.row.value.to_vec()));
    })?;
    Some(read.map(|()| found))
}

/// The same, until one of the next reads is for this thread: a read that a busy machine interrupts counts as long.
fn read_all(db: &Database, names: &[&str]) -> Vec<Option<Vec<u8>>> {
    let tries = 0..=INLINE_READS_SKIPPED;
    let read = tries.into_iter().find_map(|_| values(db, names));
    read.expect("for this thread").expect("read")
}

fn read(db: &Database, name: &str) -> Option<Vec<u8>> {
    read_all(db, &[name]).remove(0)
}

fn a_read_sees_what_was_answered_before(db: Database) {
    assert_eq!(read(&db, "a"), None);
    for n in 0..20 {
        db.must(write(vec![set("a", &[n])]));
        assert_eq!(read(&db, "a"), Some(vec![n]));
    }
    db.must(write(vec![set_until("b", b"1", START_MS + 10)]));
    assert_eq!(read_all(&db, &["b", "a"]), [Some(b"1".to_vec()), Some(vec![19])]);
    db.pass(10);
    assert_eq!(read(&db, "b"), None);
}

fn a_read_of_many_keys_is_for_the_reader_thread(db: Database) {
    assert!(values(&db, &["a"; INLINE_KEYS_MAX]).is_some());
    assert!(values(&db, &["a"; INLINE_KEYS_MAX + 1]).is_none());
}

/// A snapshot that is held keeps the pages of later commits in the log.
#[test]
fn the_snapshot_of_a_read_ends_soon() {
    let db = Database::sqlite();
    db.must(write(vec![set("a", b"1")]));
    assert!(read(&db, "a").is_some());
    until(|| {
        db.must(write(vec![set("a", b"2")]));
        let (sender, answer) = channel();
        db.store().checkpoint(move |done| sender.send(done).expect("a receiver"));
        let done = answer.recv().expect("an answer").expect("a checkpoint");
        done.log_pages == done.moved_pages
    });
}

fn over(before_read: impl Fn() -> Result<()> + Send + Sync + 'static) -> Database {
    let before_read = Box::new(move |_, (): &()| before_read());
    let plan = Plan { before_read, ..Plan::default() };
    Database::over(Faulty(MemoryEngine::new(), Arc::new(plan)))
}

#[test]
fn after_a_read_that_takes_long_some_are_for_the_reader_thread() {
    let slow = Arc::new(AtomicBool::new(true));
    let is_slow = slow.clone();
    let db = over(move || {
        if is_slow.load(Ordering::SeqCst) {
            std::thread::sleep(Duration::from_micros(2 * INLINE_READ_US_MAX));
        }
        Ok(())
    });
    assert!(values(&db, &["a"]).is_some());
    slow.store(false, Ordering::SeqCst);
    for _ in 0..INLINE_READS_SKIPPED {
        assert!(values(&db, &["a"]).is_none());
    }
    assert!(values(&db, &["a"]).is_some());
}

#[test]
fn a_read_that_would_wait_for_another_process_is_for_the_reader_thread() {
    let kind = Arc::new(Mutex::new(Kind::Unavailable));
    let present = kind.clone();
    let db = over(move || Err(Error::new(*present.lock().expect("no panic"), "for the test")));
    assert!(values(&db, &["a"]).is_none());
    *kind.lock().expect("no panic") = Kind::Corrupt;
    let error = values(&db, &["a"]).expect("for this thread").expect_err("it fails");
    assert_eq!(error.kind(), Kind::Corrupt);
}
