//! Reads that take long: other reads do not wait for them, and they end with their caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::time::Duration;

use openkv::model::{Error, Kind, QueueStats, Result};
use openkv::store::{CallerLiveness, Patience};

use crate::database::{Answer, Database};
use crate::faulty::{Faulty, Plan};
use crate::kit::PATIENCE;
use crate::on_both;
use crate::writes::{set, write};

on_both! {
    a_long_read_ends_with_its_caller
    a_long_read_ends_with_the_store
    a_panic_of_a_long_read_is_its_own
    point_reads_do_not_wait_for_long_ones
}

/// A read on a thread for long reads, which is not free before `end` returns.
fn read_long(
    db: &Database,
    patience: Arc<Patience>,
    end: impl FnOnce(Result<QueueStats>) + Send + 'static,
) {
    db.store().queue_stats(String::new(), patience, end);
}

/// A search of seconds held up every other read.
fn point_reads_do_not_wait_for_long_ones(db: Database) {
    db.must(write(vec![set("a", b"1")]));
    let ((begin, begun), (finish, finished)) = (channel(), channel::<()>());
    let (sender, answer) = channel();
    read_long(&db, db.store().patience("a test", PATIENCE, None), move |read| {
        read.expect("a snapshot");
        begin.send(()).expect("waited for");
        finished.recv().expect("a signal");
        sender.send(()).expect("a receiver");
    });
    Answer::of(begun).get();
    assert_eq!(db.read("a"), Some(b"1".to_vec()));
    // The same while a write waits for it, as it does in memory.
    let written = db.submit(vec![Ok(write(vec![set("a", b"2")]))]);
    std::thread::sleep(Duration::from_millis(20));
    assert!(db.read("a").is_some());
    let answer = Answer::of(answer);
    assert!(answer.now().is_none(), "it is still under way");
    finish.send(()).expect("waits");
    answer.get();
    written.get();
    assert_eq!(db.read("a"), Some(b"2".to_vec()));
}

/// Runs while its caller waits.
fn endless(db: &Database, wanted: Option<CallerLiveness>) -> (Answer<()>, Answer<Error>) {
    let ((begin, begun), (sender, answer)) = (channel(), channel());
    let patience = db.store().patience("a test", PATIENCE, wanted);
    let bounds = patience.clone();
    read_long(db, patience, move |_| {
        begin.send(()).expect("waited for");
        while bounds.lasts() {
            std::thread::yield_now();
        }
        sender.send(bounds.check().expect_err("it has ended")).expect("a receiver");
    });
    (Answer::of(begun), Answer::of(answer))
}

fn a_long_read_ends_with_its_caller(db: Database) {
    let here = Arc::new(AtomicBool::new(true));
    let flag = here.clone();
    let wanted: CallerLiveness = Arc::new(move || flag.load(Ordering::Relaxed));
    let (begun, ended) = endless(&db, Some(wanted));
    begun.get();
    here.store(false, Ordering::Relaxed);
    assert_eq!(ended.get().kind(), Kind::Closed);
}

/// Closing the last handle waited for a search of many seconds.
fn a_long_read_ends_with_the_store(mut db: Database) {
    let all: Vec<_> = (0..4).map(|_| endless(&db, None)).collect();
    all[0].0.get();
    db.close();
    for (_, ended) in all {
        // Reads that had not begun are answered as well.
        assert_eq!(ended.get().kind(), Kind::Closed);
    }
}

fn a_panic_of_a_long_read_is_its_own(db: Database) {
    let (sender, answer) = channel::<()>();
    let patience = || db.store().patience("a test", PATIENCE, None);
    read_long(&db, patience(), move |_| {
        let _dropped = sender;
        panic!("on purpose");
    });
    assert!(Answer::of(answer).is_dropped());
    for _ in 0..4 {
        let (sender, answer) = channel();
        read_long(&db, patience(), move |stats| sender.send(stats).expect("a receiver"));
        assert!(Answer::of(answer).get().is_ok());
    }
}

/// A reader is a connection with its descriptors.
#[test]
fn a_reader_for_long_reads_is_created_on_demand() {
    let plan = Arc::new(Plan::default());
    let shared = plan.clone();
    let db = Database::sqlite_wrapped(|engine| Faulty(engine, shared));
    db.must(write(vec![set("a", b"1")]));
    db.read("a");
    let before = plan.readers.load(Ordering::SeqCst);
    for _ in 0..6 {
        let (_begun, ended) = endless(&db, Some(Arc::new(|| false)));
        ended.get();
    }
    let made = plan.readers.load(Ordering::SeqCst) - before;
    assert!((1..=2).contains(&made), "{made} readers");
}

/// Making a reader fails once: that caller gets the error, and the next one is answered.
#[test]
fn creating_a_reader_is_retried() {
    let fails = Arc::new(AtomicBool::new(false));
    let failing = fails.clone();
    let plan = Arc::new(Plan {
        before_reader: Box::new(move |_, ()| match failing.load(Ordering::SeqCst) {
            true => Err(Error::new(Kind::Unavailable, "no descriptor is left")),
            false => Ok(()),
        }),
        ..Plan::default()
    });
    let db = Database::sqlite_wrapped(|engine| Faulty(engine, plan));
    let count = || {
        let (sender, answer) = channel();
        let patience = db.store().patience("a test", PATIENCE, None);
        read_long(&db, patience, move |stats| sender.send(stats).expect("a receiver"));
        Answer::of(answer).get()
    };
    fails.store(true, Ordering::SeqCst);
    assert_eq!(count().map_err(|error| error.kind()), Err(Kind::Unavailable));
    fails.store(false, Ordering::SeqCst);
    assert!(count().is_ok());
}
