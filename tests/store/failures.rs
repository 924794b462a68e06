//! An engine that fails or panics: every caller gets the error, nothing spins, and the rest
//! continues.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openkv::engine::memory::MemoryEngine;
use openkv::engine::{Report, Work};
use openkv::model::{
    BACKGROUND_FAILING_MS_MAX, BACKGROUND_PAUSE_MS_MAX, Decision, Error, FRUITLESS_PAUSE_MS,
    KeyRange, Kind, LOCK_MS, LOCK_RENEWAL_MS, Outcome, Result,
};
use openkv::store::Part;

use crate::database::{Database, START_MS, deno};
use crate::faulty::{Faulty, Plan};
use crate::kit::until;
use crate::writes::{enqueue, key, set, set_until, write};

/// Switches a failure on and off from outside.
#[derive(Clone, Default)]
struct Broken(Arc<AtomicBool>);

impl Broken {
    fn set(&self, broken: bool) {
        self.0.store(broken, Ordering::SeqCst);
    }

    fn check(&self) -> Result<()> {
        match self.0.load(Ordering::SeqCst) {
            true => Err(Error::new(Kind::Unavailable, "the disk is full")),
            false => Ok(()),
        }
    }
}

fn over(plan: Plan) -> (Database, Arc<Plan>) {
    let plan = Arc::new(plan);
    (Database::over(Faulty(MemoryEngine::new(), plan.clone())), plan)
}

fn broken_writes() -> (Database, Arc<Plan>, Broken) {
    let broken = Broken::default();
    let check = broken.clone();
    let before_apply = move |_, _: &Work| check.check();
    let (database, plan) = over(Plan { before_apply: Box::new(before_apply), ..Plan::default() });
    (database, plan, broken)
}

fn full() -> Decision {
    Decision::Rejected(Error::new(Kind::Unavailable, "the disk is full"))
}

#[test]
fn every_reply_gets_the_error_and_the_next_commit_may_succeed() {
    let (database, _plan, broken) = broken_writes();
    database.must(write(vec![set("a", b"1")]));
    broken.set(true);
    let own = Error::invalid("its own error");
    let writes = || vec![Ok(write(vec![set("a", b"2")])), Err(own.clone()), Ok(write(vec![]))];
    let answers = [(); 5].map(|()| database.submit(writes()));
    for answer in answers {
        assert_eq!(answer.get(), [full(), Decision::Rejected(own.clone()), full()]);
    }
    assert_eq!(database.read("a"), Some(b"1".to_vec()));
    broken.set(false);
    assert_eq!(database.must(write(vec![set("a", b"3")])), 2);
    assert_eq!(database.read("a"), Some(b"3".to_vec()));
}

#[test]
fn settlements_are_retried_until_they_succeed() {
    let (database, plan, broken) = broken_writes();
    let consumer = database.listen(5);
    database.must(enqueue(1..3, START_MS, &[], &["dead"]));
    let [(done, _), (failed, _)] = [consumer.get(), consumer.get()];
    let watch = database.watch(&["dead"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![None])));
    let waiting = database.next(watch);
    database.settle_down();
    broken.set(true);
    let before = plan.applies.load(Ordering::SeqCst);
    database.store().settle(consumer.id, done, Outcome::Done, None);
    database.store().settle(consumer.id, failed, Outcome::Failed, None);
    for _ in 0..4 {
        database.pass(250);
        assert_eq!(database.commit(vec![write(vec![])]), [full()]);
    }
    assert!(plan.applies.load(Ordering::SeqCst) > before + 3);
    broken.set(false);
    // Only the clock moves: there is no write.
    database.pass(250);
    assert_eq!(waiting.get(), Ok(Some(vec![Some(vec![2])])));
    database.pass(LOCK_MS * 2);
    database.settle_down();
    assert!(consumer.all().is_empty());
}

#[test]
fn failed_renewals_are_retried_after_a_pause() {
    let (broken, renewed) = (Broken::default(), Arc::new(AtomicUsize::new(0)));
    let (check, count) = (broken.clone(), renewed.clone());
    let before_apply = move |_, work: &Work| {
        check.check()?;
        count.fetch_add(work.renewals.len(), Ordering::SeqCst);
        Ok(())
    };
    let (database, plan) = over(Plan { before_apply: Box::new(before_apply), ..Plan::default() });
    let consumer = database.listen(1);
    database.must(enqueue(1..2, START_MS, &[], &[]));
    consumer.get();
    broken.set(true);
    database.pass(LOCK_RENEWAL_MS);
    assert_eq!(database.commit(vec![write(vec![])]), [full()]);
    let before = plan.applies.load(Ordering::SeqCst);
    for _ in 0..20 {
        database.poke();
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(plan.applies.load(Ordering::SeqCst) <= before + 1, "no time has passed");
    broken.set(false);
    database.pass(250);
    database.settle_down();
    assert_eq!(renewed.load(Ordering::SeqCst), 1);
}

/// Locks count from the start of the transaction that took them, which may take longer than they
/// last. The first renewal was scheduled from its end.
#[test]
fn a_lock_that_expires_before_delivery_is_renewed_at_once() {
    let (claimed, seen) = channel::<()>();
    let (go, going) = channel::<()>();
    let gate = Mutex::new((claimed, going));
    let after_apply = move |_, report: &Report| {
        if report.deliveries.iter().any(|deliveries| !deliveries.is_empty()) {
            let gate = gate.lock().expect("no panic");
            gate.0.send(()).expect("a receiver");
            // Only once: later the sender is dropped.
            let _signal = gate.1.recv();
        }
        Ok(())
    };
    let (database, _plan) = over(Plan { after_apply: Box::new(after_apply), ..Plan::default() });
    let consumer = database.listen(10);
    let enqueued = database.submit(vec![Ok(enqueue(1..2, START_MS, &[0], &[]))]);
    seen.recv().expect("claimed");
    database.pass(LOCK_MS * 2);
    go.send(()).expect("waiting");
    enqueued.get();
    assert_eq!(consumer.get().1, 1);
    drop(go);
    database.settle_down();
    assert!(consumer.all().is_empty());
}

/// A clock that was set back made failed work wait for the same time.
#[test]
fn a_clock_that_is_set_back_delays_nothing() {
    let (database, _plan, broken) = broken_writes();
    let consumer = database.listen(5);
    database.must(enqueue(1..2, START_MS, &[], &["dead"]));
    let (id, _) = consumer.get();
    let watch = database.watch(&["dead"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![None])));
    let waiting = database.next(watch);
    broken.set(true);
    database.store().settle(consumer.id, id, Outcome::Failed, None);
    assert_eq!(database.commit(vec![write(vec![])]), [full()]);
    broken.set(false);
    database.pass(-900_000);
    assert_eq!(waiting.get(), Ok(Some(vec![Some(vec![1])])));
}

/// A caller that requested a message due now was neither answered nor dropped, and the writer
/// thread repeated its claim without end.
#[test]
fn closing_answers_a_waiting_receive() {
    let (begun, seen) = channel::<()>();
    let begun = Mutex::new(begun);
    let before_apply = move |_, work: &Work| {
        if !work.writes.is_empty() {
            begun.lock().expect("no panic").send(()).expect("a receiver");
            // Long enough to ask and to begin closing.
            std::thread::sleep(Duration::from_millis(100));
        }
        Ok(())
    };
    let (mut database, _plan) =
        over(Plan { before_apply: Box::new(before_apply), ..Plan::default() });
    let written = database.submit(vec![Ok(write(vec![]))]);
    seen.recv().expect("begun");
    let (_, received) = database.receive("mail", 1000, true);
    database.close();
    written.get();
    assert_eq!(received.get(), Err(Error::closed()));
}

/// Jobs queued behind a panic were dropped, and the feed never opened.
#[test]
fn a_feed_whose_opening_is_dropped_is_refused() {
    let database = Database::memory();
    let (begun, seen) = channel::<()>();
    let (go, going) = channel::<()>();
    database.store().checkpoint(move |_| {
        begun.send(()).expect("a receiver");
        going.recv().expect("a signal");
    });
    seen.recv().expect("begun");
    database.store().checkpoint(|_| panic!("a bug, for the test"));
    let range = KeyRange { start: key("a"), end: key("b") };
    let (sender, opened) = channel();
    let reply = Box::new(move |last: Result<u64>| sender.send(last).expect("a receiver"));
    let feed = database.store().feed(range, None, None, Duration::from_secs(30), reply);
    go.send(()).expect("waiting");
    assert_eq!(opened.recv().expect("answered").map_err(|error| error.kind()), Err(Kind::Internal));
    let (sender, batch) = channel();
    let reply = move |batch: Result<_>| {
        sender.send(batch.map_err(|error| error.kind())).expect("a receiver")
    };
    database.store().feed_next(feed, Box::new(reply));
    assert_eq!(batch.recv(), Ok(Err(Kind::Internal)));
}

#[test]
fn settlements_are_tried_once_more_when_the_store_is_dropped() {
    let broken = Broken::default();
    let check = broken.clone();
    let before_apply = move |_, _: &Work| check.check();
    let plan = Plan { before_apply: Box::new(before_apply), ..Plan::default() };
    let engine = MemoryEngine::new();
    let mut first = Database::over(Faulty(engine.clone(), Arc::new(plan)));
    let consumer = first.listen(5);
    first.must(enqueue(1..2, START_MS, &[0], &[]));
    let (id, _) = consumer.get();
    broken.set(true);
    first.store().settle(consumer.id, id, Outcome::Done, None);
    assert_eq!(first.commit(vec![write(vec![])]), [full()]);
    broken.set(false);
    first.close();

    let second = Database::over(engine);
    let consumer = second.listen(5);
    second.pass(LOCK_MS * 2);
    second.settle_down();
    assert!(consumer.all().is_empty());
}

#[test]
fn a_store_closes_even_if_its_last_attempt_fails() {
    let (mut database, plan, broken) = broken_writes();
    let consumer = database.listen(5);
    database.must(enqueue(1..2, START_MS, &[0], &[]));
    let (id, _) = consumer.get();
    broken.set(true);
    database.store().settle(consumer.id, id, Outcome::Done, None);
    assert_eq!(database.commit(vec![write(vec![])]), [full()]);
    let before = plan.applies.load(Ordering::SeqCst);
    database.close();
    assert!(plan.applies.load(Ordering::SeqCst) <= before + 2);
}

#[test]
fn timed_work_waits_after_a_failure() {
    let broken = Broken::default();
    let (of_apply, of_deadlines) = (broken.clone(), broken.clone());
    let (database, plan) = over(Plan {
        before_apply: Box::new(move |_, _: &Work| of_apply.check()),
        before_deadlines: Box::new(move |_, ()| of_deadlines.check()),
        ..Plan::default()
    });
    let consumer = database.listen(5);
    let ending = set_until("ending", b"", START_MS + 10);
    database.must(write(vec![ending]));
    database.must(enqueue(1..2, START_MS + 10, &[], &[]));
    database.settle_down();
    broken.set(true);
    // A settlement, a message, a read of the deadlines: all are due, all fail.
    database.pass(10);
    assert_eq!(database.commit(vec![write(vec![])]), [full()]);
    let before = plan.calls();
    for _ in 0..20 {
        database.poke();
        std::thread::sleep(Duration::from_millis(2));
    }
    let calls = plan.calls() - before;
    assert!(calls <= 1, "{calls} calls although no time has passed");
    for _ in 0..10 {
        database.pass(250);
        assert_eq!(database.commit(vec![write(vec![])]), [full()]);
    }
    let calls = plan.calls() - before;
    assert!(calls <= 10 * 4, "{calls} calls in ten pauses");

    broken.set(false);
    let watch = database.watch(&["ending"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![None])));
    database.pass(BACKGROUND_PAUSE_MS_MAX as i64);
    assert_eq!(consumer.get().1, 1);
}

/// There was a try every 250 ms, however long it failed.
#[test]
fn pauses_of_the_background_grow_with_failures() {
    let broken = Broken::default();
    let (of_sweep, of_deadlines) = (broken.clone(), broken.clone());
    let before_apply = move |_, work: &Work| match work.sweep_max {
        0 => Ok(()),
        _ => of_sweep.check().map_err(|_| Error::corrupt("an index is damaged")),
    };
    let (database, plan) = over(Plan {
        before_apply: Box::new(before_apply),
        before_deadlines: Box::new(move |_, ()| of_deadlines.check()),
        ..Plan::default()
    });
    database.must(write(vec![set_until("ending", b"", START_MS + 10)]));
    database.settle_down();
    broken.set(true);
    // Makes the known due times stale.
    database.must(enqueue(1..2, START_MS, &[], &[]));
    let (mut applies, mut deadlines) = (0, 0);
    for _ in 0..40 {
        let before = plan.applies.load(Ordering::SeqCst);
        let read_before = plan.deadlines.load(Ordering::SeqCst);
        database.pass(250);
        database.settle_down();
        // Two are of `settle_down`.
        applies += plan.applies.load(Ordering::SeqCst) - before - 2;
        deadlines += plan.deadlines.load(Ordering::SeqCst) - read_before;
    }
    assert!((4..=12).contains(&applies), "{applies} sweeps in ten seconds");
    assert!((1..=12).contains(&deadlines), "{deadlines} looks at the due times in ten seconds");
    broken.set(false);
    database.pass(BACKGROUND_PAUSE_MS_MAX as i64);
    until(|| database.store().failing().is_empty());
}

/// `receive` waited forever, and so did the stream of a remote listener.
#[test]
fn each_consumer_gets_the_error_when_due_times_cannot_be_read_for_long() {
    let broken = Broken::default();
    each_consumer_gets_the_error(Plan::default(), broken);
}

/// Each failed claim put off the look at the due times.
#[test]
fn each_consumer_gets_the_error_when_claims_fail_too() {
    let broken = Broken::default();
    let of_claims = broken.clone();
    let before_apply = move |_, work: &Work| match work.claims.is_empty() {
        true => Ok(()),
        false => of_claims.check(),
    };
    each_consumer_gets_the_error(
        Plan { before_apply: Box::new(before_apply), ..Plan::default() },
        broken,
    );
}

/// The due times cannot be read while it is broken.
fn each_consumer_gets_the_error(plan: Plan, broken: Broken) {
    let of_deadlines = broken.clone();
    let before_deadlines = move |_, (): &()| of_deadlines.check();
    let (database, _plan) = over(Plan { before_deadlines: Box::new(before_deadlines), ..plan });
    database.settle_down();
    broken.set(true);
    let (_, received) = database.receive("mail", LOCK_MS, false);
    let connected = database.listen_for(LOCK_MS, 1, 1);
    for _ in 0..BACKGROUND_FAILING_MS_MAX / 50 + 10 {
        database.pass(BACKGROUND_PAUSE_MS_MAX as i64);
        std::thread::sleep(Duration::from_millis(50));
    }
    assert_eq!(received.get().expect_err("the time is over").kind(), Kind::Unavailable);
    assert!(connected.is_ended());
    broken.set(false);
    let consumer = database.listen(1);
    database.must(enqueue(1..2, START_MS, &[], &[]));
    assert_eq!(consumer.get().1, 1);
}

/// An expired entry that could not be deleted failed the writes in its transaction.
#[test]
fn damage_in_a_sweep_does_not_fail_writes() {
    let broken = Broken::default();
    let check = broken.clone();
    let before_apply = move |_, work: &Work| match work.sweep_max {
        0 => Ok(()),
        _ => check.check().map_err(|_| Error::corrupt("an index is damaged")),
    };
    let (database, plan) = over(Plan { before_apply: Box::new(before_apply), ..Plan::default() });
    database.must(write(vec![set_until("ending", b"", START_MS + 10)]));
    database.settle_down();
    broken.set(true);
    database.pass(10);
    database.settle_down();
    let before = plan.applies.load(Ordering::SeqCst);
    for _ in 0..5 {
        database.pass(FRUITLESS_PAUSE_MS);
        database.must(write(vec![set("other", b"")]));
    }
    database.settle_down();
    let applies = plan.applies.load(Ordering::SeqCst) - before;
    assert!(applies > 5 + 2 + 2, "{applies}: the sweep is tried again by itself");
}

#[test]
fn deadlines_that_could_not_be_read_are_read_again() {
    let broken = Broken::default();
    let of_deadlines = broken.clone();
    let before_deadlines = move |_, (): &()| of_deadlines.check();
    let (database, _plan) =
        over(Plan { before_deadlines: Box::new(before_deadlines), ..Plan::default() });
    broken.set(true);
    let consumer = database.listen(1);
    database.must(enqueue(1..3, START_MS, &[], &[]));
    let (id, _) = consumer.get();
    database.store().settle(consumer.id, id, Outcome::Done, None);
    database.settle_down();
    broken.set(false);
    // The pause grows with each failure, and there is one for each transaction.
    database.pass(BACKGROUND_PAUSE_MS_MAX.cast_signed());
    assert_eq!(consumer.get().1, 2);
}

fn is_internal(decisions: &[Decision]) -> bool {
    let internal = |d: &Decision| matches!(d, Decision::Rejected(e) if e.kind() == Kind::Internal);
    !decisions.is_empty() && decisions.iter().all(internal)
}

/// Writes until a write is refused. Before that, replies may be dropped with their transaction.
fn wait_for_the_end(database: &Database) {
    let answer = || database.submit(vec![Ok(write(vec![]))]).now_or_dropped();
    while !answer().is_some_and(|decisions| is_internal(&decisions)) {}
}

/// After a panic of the writer thread every call gets that error, and none hangs.
fn is_out_of_order(mut database: Database) {
    let writes = || vec![Ok(write(vec![])), Ok(write(vec![]))];
    assert!(is_internal(&database.submit(writes()).get()));
    let listening = database.store().listen(deno(), 1, Box::new(|_| Vec::new()), Box::new(drop));
    assert_eq!(listening.map_err(|error| error.kind()), Err(Kind::Internal));
    assert_eq!(database.read("a"), Some(b"1".to_vec()), "reads go on");
    let watch = database.watch(&["a"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![Some(b"1".to_vec())])));
    let waiting = database.next(watch);
    database.poke();
    database.close();
    assert_eq!(waiting.now(), Some(Ok(None)));
}

#[test]
fn a_panic_while_writing_drops_replies_and_rejects_later_writes() {
    let before_apply = |count, work: &Work| match (count, work.writes.len()) {
        (_, 3) => panic!("a bug, for the test"),
        _ => Ok(()),
    };
    let (database, _plan) = over(Plan { before_apply: Box::new(before_apply), ..Plan::default() });
    database.must(write(vec![set("a", b"1")]));
    let consumer = database.listen(1);
    database.must(enqueue(1..2, START_MS, &[], &[]));
    let (id, _) = consumer.get();
    let fatal = database.submit(vec![Ok(write(vec![])), Ok(write(vec![])), Ok(write(vec![]))]);
    assert!(fatal.is_dropped());
    database.store().settle(consumer.id, id, Outcome::Done, None);
    is_out_of_order(database);
}

#[test]
fn waiting_calls_are_refused_after_a_panic_of_the_writer() {
    let (enter, entered) = std::sync::mpsc::channel::<()>();
    let (go, going) = std::sync::mpsc::channel::<()>();
    let gate = std::sync::Mutex::new((enter, going));
    let before_apply = move |_, work: &Work| {
        if work.writes.len() == 2 {
            let gate = gate.lock().expect("no panic");
            gate.0.send(()).expect("awaited");
            gate.1.recv().expect("a signal");
            panic!("a bug, for the test");
        }
        Ok(())
    };
    let (database, _plan) = over(Plan { before_apply: Box::new(before_apply), ..Plan::default() });
    database.must(write(vec![set("a", b"1")]));
    let fatal = database.submit(vec![Ok(write(vec![])), Ok(write(vec![]))]);
    entered.recv().expect("under way");
    let waiting = [(); 10].map(|()| database.submit(vec![Ok(write(vec![]))]));
    go.send(()).expect("waiting");
    assert!(waiting.iter().all(|answer| is_internal(&answer.get())));
    assert!(fatal.is_dropped());
    is_out_of_order(database);
}

#[test]
fn a_panic_while_reading_deadlines_rejects_later_writes() {
    let before_deadlines = |count, (): &()| match count {
        0 => Ok(()),
        _ => panic!("a bug, for the test"),
    };
    let (database, _plan) =
        over(Plan { before_deadlines: Box::new(before_deadlines), ..Plan::default() });
    database.must(write(vec![set("a", b"1")]));
    // A consumer needs the due time of the next message.
    let _consumer = database.listen(1);
    wait_for_the_end(&database);
    is_out_of_order(database);
}

#[test]
fn a_panic_in_a_reply_rejects_later_writes() {
    let (database, _plan) = over(Plan::default());
    database.must(write(vec![set("a", b"1")]));
    let reply = |_| panic!("a bug, for the test");
    database.store().commit(vec![], false, Duration::from_secs(5), Box::new(reply));
    wait_for_the_end(&database);
    is_out_of_order(database);
}

/// The reader thread ended, and the next watch waited forever.
#[test]
fn a_panic_while_reading_drops_one_reply() {
    let before_read = |count, (): &()| match count {
        // The first read is the test's, the second starts the watch for other processes.
        2 => panic!("a bug, for the test"),
        _ => Ok(()),
    };
    let (database, _plan) = over(Plan { before_read: Box::new(before_read), ..Plan::default() });
    database.must(write(vec![set("a", b"1")]));
    database.settle_down();
    let watch = database.watch(&["a"]);
    assert!(database.next(watch).is_dropped());
    assert_eq!(database.read("a"), Some(b"1".to_vec()));
    let end = |_: Result<Vec<_>>| panic!("a bug, for the test");
    database.store().expiries(vec![key("a")], end);
    assert_eq!(database.read("a"), Some(b"1".to_vec()));
    let another = database.watch(&["a"]);
    assert_eq!(database.next(another).get(), Ok(Some(vec![Some(b"1".to_vec())])));
    // The watch that lost its answer continues with the next commit.
    let waiting = database.next(watch);
    database.must(write(vec![set("a", b"2")]));
    assert_eq!(waiting.get(), Ok(Some(vec![Some(b"2".to_vec())])));
}

/// No caller got an error, and a waiting watch never saw an external commit.
#[test]
fn a_failing_watch_for_external_commits_is_reported_retried_and_replaced_by_polling() {
    let broken = Broken::default();
    broken.set(true);
    let check = broken.clone();
    let before_external = move |_, (): &()| check.check();
    let plan = Plan { before_external: Box::new(before_external), ..Plan::default() };
    let (database, plan) = over(plan);
    let watch = database.watch(&["a"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![None])));
    let waiting = database.next(watch);
    until(|| plan.external.load(Ordering::SeqCst) > 2);
    let [failing] = &database.store().failing()[..] else { panic!("one part fails") };
    assert_eq!((failing.part, failing.error.kind()), (Part::ExternalCommits, Kind::Unavailable));
    assert_eq!(plan.external_open.load(Ordering::SeqCst), 0);
    broken.set(false);
    until(|| plan.external_open.load(Ordering::SeqCst) == 1);
    until(|| database.store().failing().is_empty());
    database.must(write(vec![set("a", b"1")]));
    assert_eq!(waiting.get(), Ok(Some(vec![Some(b"1".to_vec())])));
}

/// The watch waited forever for commits that could not be detected any more.
#[test]
fn waiting_calls_fail_when_polling_for_external_commits_fails_too() {
    let broken = Broken::default();
    let (external, reads) = (broken.clone(), broken.clone());
    broken.set(true);
    let plan = Plan {
        before_external: Box::new(move |_, (): &()| match external.0.load(Ordering::SeqCst) {
            true => Err(Error::new(Kind::Unavailable, "no thread")),
            false => Ok(()),
        }),
        before_read: Box::new(move |count, (): &()| match count {
            // The first reads are the watch's start and its first state.
            0..=1 => Ok(()),
            _ => reads.check(),
        }),
        ..Plan::default()
    };
    let (database, _plan) = over(plan);
    let watch = database.watch(&["a"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![None])));
    let error = database.next(watch).get().unwrap_err();
    assert_eq!(error.kind(), Kind::Unavailable);
    assert!(error.message().contains("the disk is full"), "{error}");
    broken.set(false);
    let waiting = database.next(watch);
    database.must(write(vec![set("a", b"1")]));
    assert_eq!(waiting.get(), Ok(Some(vec![Some(b"1".to_vec())])));
}
