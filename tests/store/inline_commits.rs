//! Commits on the threads of callers: they happen beside the writer thread, never instead of its duties.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use openkv::model::{AtomicWrite, Decision, INLINE_COMMITS_SEEN, INLINE_WRITES_MAX, Kind};

use crate::database::{Answer, Database, START_MS};
use crate::faulty::{Faulty, Plan};
use crate::kit::PATIENCE;
use crate::writes::{enqueue, set, set_until, write};

/// Longer than any commit of a test takes.
const MOST: Duration = Duration::from_secs(60);

/// The decisions, or the answer that the writer thread will give.
fn try_now(
    database: &Database,
    writes: Vec<AtomicWrite>,
    most: Duration,
) -> Result<Vec<Decision>, Answer<Vec<Decision>>> {
    let (sender, answer) = channel();
    let reply = move || -> Box<dyn FnOnce(Vec<Decision>) + Send> {
        Box::new(move |decisions| drop(sender.send(decisions)))
    };
    let writes = writes.into_iter().map(Ok).collect();
    let decided = database.store().commit_inline(writes, (false, PATIENCE), most, reply);
    decided.ok_or(Answer::of(answer))
}

/// Commits one write on this thread, at the latest when the writer thread has nothing to do.
fn now(database: &Database, make: impl Fn() -> AtomicWrite) -> u64 {
    loop {
        match try_now(database, vec![make()], MOST) {
            Ok(decisions) => match decisions.as_slice() {
                [Decision::Committed(stamp)] => return stamp.version(),
                other => panic!("{other:?}"),
            },
            Err(later) => drop(later.get()),
        }
    }
}

/// A file whose last commits were short.
fn warm() -> Database {
    let database = Database::sqlite();
    warm_up(&database);
    database
}

fn warm_up(database: &Database) {
    for _ in 0..INLINE_COMMITS_SEEN {
        database.must(write(vec![set("a", b"warm")]));
    }
}

#[test]
fn a_commit_is_answered_visible_and_announced() {
    let database = warm();
    let watch = database.watch(&["a"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![Some(b"warm".to_vec())])));
    let mut last = 0;
    for n in 0..50 {
        let waiting = database.next(watch);
        let version = now(&database, || write(vec![set("a", &[n])]));
        assert!(version > last);
        last = version;
        assert_eq!(database.read("a"), Some(vec![n]));
        // The writer thread may have committed it before, and the watch may have shown that.
        let mut shown = waiting.get();
        while shown != Ok(Some(vec![Some(vec![n])])) {
            shown = database.next(watch).get();
        }
        assert_eq!(database.must(write(vec![set("b", &[n])])), version + 1);
        last += 1;
    }
}

#[test]
fn a_commit_that_may_take_long_is_for_the_writer_thread() {
    let database = Database::sqlite();
    let one = || write(vec![set("a", b"1")]);
    let later = try_now(&database, vec![one()], MOST).expect_err("no commit was measured");
    assert!(matches!(later.get().as_slice(), [Decision::Committed(_)]));
    warm_up(&database);
    now(&database, one);
    assert!(try_now(&database, vec![one()], Duration::ZERO).is_err());
    let many = (0..=INLINE_WRITES_MAX).map(|_| one()).collect();
    assert!(try_now(&database, many, MOST).is_err());
    let large = write(vec![set("a", &[0; 65_000]), set("b", &[0; 65_000])]);
    assert!(try_now(&database, vec![large], MOST).is_err());
}

#[test]
fn a_message_reaches_its_consumer() {
    let database = warm();
    let consumer = database.listen(1);
    let later = try_now(&database, vec![enqueue(7..8, START_MS, &[], &[])], MOST);
    later.expect_err("a consumer may wait for it").get();
    assert_eq!(consumer.get().1, 7);
}

/// The writer thread sleeps until what was due before the commit.
#[test]
fn an_entry_that_expires_is_removed_in_time() {
    let database = warm();
    let watch = database.watch(&["short"]);
    assert_eq!(database.next(watch).get(), Ok(Some(vec![None])));
    now(&database, || write(vec![set_until("short", b"1", START_MS + 20)]));
    assert_eq!(database.next(watch).get(), Ok(Some(vec![Some(b"1".to_vec())])));
    let waiting = database.next(watch);
    database.clock_only(30);
    assert_eq!(waiting.get(), Ok(Some(vec![None])));
}

#[test]
fn a_file_that_another_process_writes_to_is_waited_for_by_the_writer_thread() {
    let database = warm();
    now(&database, || write(vec![set("a", b"1")]));
    let held = database.hold_file();
    let later = try_now(&database, vec![write(vec![set("a", b"2")])], MOST);
    let later = later.expect_err("the file is locked");
    assert_eq!(later.now(), None);
    drop(held);
    assert!(matches!(later.get().as_slice(), [Decision::Committed(_)]));
    assert_eq!(database.read("a"), Some(b"2".to_vec()));
}

#[test]
fn commits_of_many_threads_are_one_order() {
    const EACH: u64 = 200;
    let database = warm();
    let before = database.must(write(vec![set("a", b"0")]));
    let mut versions: Vec<u64> = std::thread::scope(|scope| {
        let ours: Vec<_> = (0..4)
            .map(|n| {
                let database = &database;
                scope.spawn(move || -> Vec<u64> {
                    let one = || write(vec![set("a", &[n])]);
                    (0..EACH)
                        .map(|i| {
                            if i % 3 == 0 {
                                database.must(one())
                            } else {
                                committed(database, one())
                            }
                        })
                        .collect()
                })
            })
            .collect();
        ours.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect()
    });
    versions.sort_unstable();
    let expected: Vec<u64> = (1..=4 * EACH).map(|n| before + n).collect();
    assert_eq!(versions, expected);
}

/// The version of a write, whichever thread has committed it.
fn committed(database: &Database, write: AtomicWrite) -> u64 {
    let decisions = try_now(database, vec![write], MOST).unwrap_or_else(|later| later.get());
    match decisions.as_slice() {
        [Decision::Committed(stamp)] => stamp.version(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_panic_fails_the_call_and_rejects_later_writes() {
    let plan = Plan {
        before_apply: Box::new(|_, work| match work.writes.len() {
            3 => panic!("a bug, for the test"),
            _ => Ok(()),
        }),
        ..Plan::default()
    };
    let plan = Arc::new(plan);
    let database = Database::sqlite_wrapped(|engine| Faulty(engine, plan));
    warm_up(&database);
    now(&database, || write(vec![set("a", b"1")]));
    let three = || (0..3).map(|_| write(vec![set("a", b"2")])).collect();
    // If the writer thread has it, that one panics and drops the reply.
    let decisions = try_now(&database, three(), MOST)
        .unwrap_or_else(|later| later.now_or_dropped().unwrap_or_default());
    assert!(decisions.iter().all(is_internal));
    assert!(is_internal(&database.commit(vec![write(vec![set("a", b"3")])])[0]));
    assert!(try_now(&database, vec![write(vec![set("a", b"3")])], MOST).is_err());
    assert_eq!(database.read("a"), Some(b"1".to_vec()));
}

fn is_internal(decision: &Decision) -> bool {
    matches!(decision, Decision::Rejected(error) if error.kind() == Kind::Internal)
}
