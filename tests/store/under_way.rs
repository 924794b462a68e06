//! Several batches under way at once: their outcomes are answered and announced in order, and all
//! other work has the writer to itself, which `pipeline.rs` checks in every test.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::time::Instant;

use openkv::engine::memory::MemoryEngine;
use openkv::engine::{Engine, Work, Writer};
use openkv::model::{Decision, Error, Kind, LOCK_RENEWAL_MS, Outcome, Result, SWEEP_ROWS_MIN};

use crate::database::{Answer, Database, START_MS};
use crate::faulty::{Faulty, Plan};
use crate::kit::until;
use crate::pipeline::{Call, Pipeline};
use crate::writes::{enqueue, set, set_until, stamp, write};

/// A database whose batches the test ends, once it calls [`Pipeline::hold`].
fn over(plan: Plan) -> (Database, Held) {
    let pipeline = Held(plan.pipeline.clone());
    let database = Database::over(Faulty(MemoryEngine::new(), Arc::new(plan)));
    database.settle_down();
    (database, pipeline)
}

/// Ends all batches when it is dropped, before the database: closing waits for them.
struct Held(Arc<Pipeline>);

impl Deref for Held {
    type Target = Pipeline;

    fn deref(&self) -> &Pipeline {
        &self.0
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.0.hold(0);
        while self.0.end(Ok(())) {}
    }
}

fn lost() -> Error {
    Error::new(Kind::OutcomeUnknown, "the connection was lost")
}

fn committed(version: u64) -> Vec<Decision> {
    vec![Decision::Committed(stamp(version))]
}

/// Submits a set of the key `a`.
fn submit(database: &Database, value: u8) -> Answer<Vec<Decision>> {
    database.submit(vec![Ok(write(vec![set("a", &[value])]))])
}

/// Submits sets of the key `a`, each as a batch of its own.
fn submit_apart<const N: usize>(
    database: &Database,
    pipeline: &Pipeline,
) -> [Answer<Vec<Decision>>; N] {
    std::array::from_fn(|at| {
        let before = pipeline.under_way();
        let answer = submit(database, u8::try_from(at).expect("few"));
        until(|| pipeline.under_way() == before + 1);
        answer
    })
}

/// Ends every batch at once, on a thread of its own, while `work` runs.
fn ending<T>(pipeline: &Pipeline, work: impl FnOnce() -> T) -> T {
    let done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !done.load(Ordering::SeqCst) {
                if pipeline.under_way() == 0 || !pipeline.end(Ok(())) {
                    std::thread::yield_now();
                }
            }
        });
        let _end = Set(&done);
        work()
    })
}

/// Sets a flag when it is dropped, also by a panic.
struct Set<'a>(&'a AtomicBool);

impl Drop for Set<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::SeqCst);
    }
}

#[test]
fn answers_come_in_order_after_their_batches_have_ended() {
    let (database, pipeline) = over(Plan::default());
    let last = database.must(write(vec![]));
    pipeline.hold(3);
    let answers = submit_apart::<3>(&database, &pipeline);
    let waiting = [submit(&database, 3), submit(&database, 4)];
    assert!(answers.iter().chain(&waiting).all(|answer| answer.now().is_none()));
    assert_eq!(database.read("a"), None);
    pipeline.end(Ok(()));
    assert_eq!(answers[0].get(), committed(last + 1));
    assert_eq!(database.read("a"), Some(vec![0]));
    until(|| pipeline.under_way() == 3);
    assert!(answers[1..].iter().chain(&waiting).all(|answer| answer.now().is_none()));
    assert!((0..3).all(|_| pipeline.end(Ok(()))));
    let rest = [&answers[1], &answers[2], &waiting[0], &waiting[1]];
    for (answer, version) in rest.into_iter().zip(last + 2..) {
        assert_eq!(answer.get(), committed(version));
    }
    assert_eq!(pipeline.calls()[..4], [1, 1, 1, 2].map(Call::Writes));
}

/// A deletion with a filter searched while the write before it was under way, and missed its entry.
#[test]
fn a_submission_without_writes_is_answered_after_the_batches_before_it() {
    let (database, pipeline) = over(Plan::default());
    pipeline.hold(3);
    let [before] = submit_apart(&database, &pipeline);
    let empty = database.submit(Vec::new());
    let refused = database.submit(vec![Err(lost())]);
    database.read("");
    assert!([&before, &empty, &refused].iter().all(|answer| answer.now().is_none()));
    pipeline.end(Ok(()));
    assert_eq!(empty.get(), []);
    assert_eq!(refused.get(), [Decision::Rejected(lost())]);
    assert!(before.now().is_some());
}

#[test]
fn a_failed_batch_fails_only_its_own_writes() {
    let (database, pipeline) = over(Plan::default());
    let last = database.must(write(vec![]));
    pipeline.hold(3);
    let answers = submit_apart::<3>(&database, &pipeline);
    for outcome in [Ok(()), Err(lost()), Ok(())] {
        pipeline.end(outcome);
    }
    assert_eq!(answers[0].get(), committed(last + 1));
    assert_eq!(answers[1].get(), [Decision::Rejected(lost())]);
    assert_eq!(answers[2].get(), committed(last + 2));
    assert_eq!(database.read("a"), Some(vec![2]));
}

#[test]
fn a_batch_that_could_not_begin_is_answered_after_those_before_it() {
    let tried = Arc::new(AtomicBool::new(false));
    let seen = tried.clone();
    let before_apply = move |_, work: &Work| match work.writes.len() {
        2 => {
            seen.store(true, Ordering::SeqCst);
            Err(lost())
        }
        _ => Ok(()),
    };
    let (database, pipeline) =
        over(Plan { before_apply: Box::new(before_apply), ..Plan::default() });
    pipeline.hold(3);
    let [first] = submit_apart(&database, &pipeline);
    let failed = database.submit(vec![Ok(write(vec![])), Ok(write(vec![]))]);
    until(|| tried.load(Ordering::SeqCst));
    let [behind] = submit_apart(&database, &pipeline);
    assert!([&first, &failed, &behind].iter().all(|answer| answer.now().is_none()));
    pipeline.end(Ok(()));
    assert_eq!(failed.get(), [Decision::Rejected(lost()), Decision::Rejected(lost())]);
    assert!(first.now().is_some() && behind.now().is_none());
    pipeline.end(Ok(()));
    behind.get();
}

#[test]
fn watches_and_feeds_are_notified_when_a_batch_has_ended() {
    let (database, pipeline) = over(Plan::default());
    let feed = database.feed(None);
    let watch = database.watch(&["a"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![None])));
    let (shown, batch) = (database.next(watch), database.batch(feed));
    database.settle_down();
    pipeline.hold(2);
    let _answers = submit_apart::<2>(&database, &pipeline);
    assert!(shown.now().is_none() && batch.now().is_none());
    pipeline.end(Ok(()));
    assert_eq!(shown.get(), Ok(Some(vec![Some(vec![0])])));
    assert_eq!(batch.get().expect("read").expect("not ended").changes.len(), 1);
    let (shown, batch) = (database.next(watch), database.batch(feed));
    database.read("");
    assert!(shown.now().is_none() && batch.now().is_none());
    pipeline.end(Err(lost()));
    let _answer = submit_apart::<1>(&database, &pipeline);
    assert!(shown.now().is_none() && batch.now().is_none(), "nothing was committed");
    pipeline.end(Ok(()));
    assert_eq!(shown.get(), Ok(Some(vec![Some(vec![0])])));
    assert_eq!(batch.get().expect("read").expect("not ended").changes.len(), 1);
}

#[test]
fn tasks_wait_for_all_batches_and_no_batch_begins_before_them() {
    let (database, pipeline) = over(Plan::default());
    pipeline.hold(3);
    let answers = submit_apart::<2>(&database, &pipeline);
    let (sender, depth) = channel();
    let (moved, checkpointed) = (sender.clone(), sender);
    let reply = move |depth: Result<u64>| moved.send(depth.is_ok()).expect("a receiver");
    database.store().queue_depth(String::new(), reply);
    database.store().checkpoint(move |done| checkpointed.send(done.is_ok()).expect("a receiver"));
    let behind = submit(&database, 9);
    pipeline.end(Ok(()));
    answers[0].get();
    pipeline.end(Ok(()));
    let answered = Answer::of(depth);
    assert!(answered.get() && answered.get());
    until(|| pipeline.under_way() == 1);
    assert!(behind.now().is_none());
    pipeline.end(Ok(()));
    behind.get();
    let in_order =
        [Call::Writes(1), Call::Writes(1), Call::Other("queue_depth"), Call::Other("checkpoint")];
    assert_eq!(pipeline.calls()[..4], in_order);
}

#[test]
fn due_work_is_not_put_off_by_writes() {
    let (database, pipeline) = over(Plan::default());
    database.must(write(vec![set_until("ending", b"", START_MS + 10)]));
    database.settle_down();
    pipeline.hold(3);
    let answers = submit_apart::<2>(&database, &pipeline);
    database.pass(10);
    let behind = submit(&database, 9);
    pipeline.end(Ok(()));
    answers[0].get();
    pipeline.end(Ok(()));
    until(|| pipeline.under_way() == 1);
    assert_eq!(pipeline.calls(), [Call::Writes(1), Call::Writes(1), Call::Mixed(0)]);
    database.poke();
    database.read("");
    assert_eq!(pipeline.under_way(), 1, "nothing begins behind the sweep");
    pipeline.end(Ok(()));
    until(|| pipeline.end(Ok(())));
    behind.get();
}

/// The round would begin anew after each step, and a long sweep would keep consumers waiting.
#[test]
fn a_sweep_of_many_steps_leaves_other_timed_work_its_turn() {
    let (database, pipeline) = over(Plan::default());
    let expiring = |at: usize| set_until(&at.to_string(), b"", START_MS + 10);
    // A step is at most twice as large as the last one, so three are needed.
    let entries = 3 * SWEEP_ROWS_MIN + 1;
    database.must(write((0..entries).map(expiring).collect()));
    database.settle_down();
    pipeline.hold(3);
    database.pass(10);
    for _ in 0..2 {
        until(|| pipeline.under_way() == 1);
        pipeline.end(Ok(()));
    }
    until(|| pipeline.under_way() == 1);
    let deadlines = Call::Other("next_deadlines");
    let step = Call::Mixed(0);
    assert_eq!(pipeline.calls(), [step, deadlines, step, deadlines, step]);
}

#[test]
fn a_lock_is_not_renewed_again_while_its_renewal_is_under_way() {
    let (database, pipeline) = over(Plan::default());
    let consumer = database.listen(1);
    database.must(enqueue(1..2, START_MS, &[], &[]));
    let (number, _) = consumer.get();
    database.settle_down();
    pipeline.hold(3);
    let [answer] = submit_apart(&database, &pipeline);
    database.pass(LOCK_RENEWAL_MS);
    pipeline.end(Ok(()));
    answer.get();
    until(|| pipeline.under_way() == 1);
    database.pass(LOCK_RENEWAL_MS / 2);
    let behind = submit(&database, 9);
    database.store().settle(consumer.id, number, Outcome::Done, None);
    pipeline.end(Ok(()));
    until(|| pipeline.under_way() == 1);
    pipeline.end(Ok(()));
    behind.get();
    let batches = pipeline.calls().into_iter().filter(|call| !matches!(call, Call::Other(_)));
    let expected = [Call::Writes(1), Call::Mixed(0), Call::Mixed(1)];
    assert_eq!(batches.collect::<Vec<_>>(), expected, "a write, the renewal, the settlement");
}

#[test]
fn every_message_is_delivered_once_among_many_writes() {
    const MESSAGES: u8 = 60;
    let (database, pipeline) = over(Plan::default());
    pipeline.hold(4);
    let consumer = database.listen(3);
    let mut delivered: Vec<u8> = ending(&pipeline, || {
        std::thread::scope(|scope| {
            scope.spawn(|| (0..200).for_each(|_| drop(submit(&database, 0).get())));
            scope.spawn(|| {
                for value in 0..MESSAGES {
                    database.must(enqueue(value..value + 1, START_MS, &[], &[]));
                }
            });
            let handle = |_| {
                let (number, value) = consumer.get();
                database.store().settle(consumer.id, number, Outcome::Done, None);
                value
            };
            (0..MESSAGES).map(handle).collect()
        })
    });
    delivered.sort_unstable();
    assert_eq!(delivered, (0..MESSAGES).collect::<Vec<_>>());
    ending(&pipeline, || database.settle_down());
    assert!(consumer.all().is_empty());
}

#[test]
fn no_end_of_a_batch_is_missed() {
    for depth in 1..4 {
        let (database, pipeline) = over(Plan::default());
        pipeline.hold(depth);
        let commits = AtomicUsize::new(0);
        let writes = || {
            for value in 0..200 {
                if matches!(submit(&database, value).get()[..], [Decision::Committed(_)]) {
                    commits.fetch_add(1, Ordering::SeqCst);
                }
            }
        };
        ending(&pipeline, || {
            std::thread::scope(|scope| (0..3).for_each(|_| drop(scope.spawn(writes))))
        });
        assert_eq!(commits.load(Ordering::SeqCst), 600);
    }
}

#[test]
fn closing_completes_all_batches() {
    let (mut database, pipeline) = over(Plan::default());
    pipeline.hold(2);
    let answers = submit_apart::<2>(&database, &pipeline);
    let waiting = submit(&database, 2);
    let closed = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            database.close();
            closed.store(true, Ordering::SeqCst);
        });
        for answer in &answers {
            assert!(!closed.load(Ordering::SeqCst));
            pipeline.end(Ok(()));
            answer.get();
        }
        until(|| pipeline.end(Ok(())));
        waiting.get();
    });
    assert_eq!(pipeline.under_way(), 0);
}

#[test]
fn a_panic_drops_the_replies_of_all_batches_under_way() {
    let before_apply = |_, work: &Work| match work.writes.len() {
        2 => panic!("a bug, for the test"),
        _ => Ok(()),
    };
    let (database, pipeline) =
        over(Plan { before_apply: Box::new(before_apply), ..Plan::default() });
    pipeline.hold(3);
    let answers = submit_apart::<2>(&database, &pipeline);
    let fatal = database.submit(vec![Ok(write(vec![])), Ok(write(vec![]))]);
    assert!(answers.iter().chain([&fatal]).all(Answer::is_dropped));
    let refused = submit(&database, 9).get();
    let is_internal =
        |d: &Decision| matches!(d, Decision::Rejected(e) if e.kind() == Kind::Internal);
    assert!(refused.iter().all(is_internal), "{refused:?}");
}

#[test]
fn work_is_executed_without_a_store() {
    let plan = Arc::new(Plan::default());
    let engine = Faulty(MemoryEngine::new(), plan.clone());
    let mut writer = engine.writer().expect("a writer");
    plan.pipeline.hold(1);
    let report = ending(&plan.pipeline, || {
        let writes = vec![write(vec![set("a", b"1")])];
        writer.apply(Work { writes, ..Work::default() }, START_MS, Instant::now())
    });
    assert_eq!(report.expect("applied").decisions, committed(1));
}
