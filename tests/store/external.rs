//! Two stores on one file, as in two processes; or on one memory, where the test announces the commits.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use openkv::engine::ExternalCommits;
use openkv::engine::memory::MemoryEngine;
use openkv::model::Outcome;

use crate::database::{Database, START_MS};
use crate::faulty::{Faulty, Plan};
use crate::kit::until;
use crate::writes::{enqueue, key, set, write};

#[test]
fn a_watch_sees_another_process() {
    let ours = Database::sqlite();
    let theirs = ours.another(false);
    let watch = ours.watch(&["a"]);
    assert_eq!(ours.next(watch).get(), Ok(Some(vec![None])));
    for n in 0..100 {
        let waiting = ours.next(watch);
        theirs.must(write(vec![set("a", &[n])]));
        assert_eq!(waiting.get(), Ok(Some(vec![Some(vec![n])])));
    }
}

/// A commit of this process right after an external one hid that: the store compared only the
/// author of the last commit.
#[test]
fn own_commits_do_not_hide_external_ones() {
    let ours = Database::sqlite();
    let theirs = ours.another(false);
    let watch = ours.watch(&["a"]);
    assert_eq!(ours.next(watch).get(), Ok(Some(vec![None])));
    for n in 0..100 {
        let waiting = ours.next(watch);
        theirs.must(write(vec![set("a", &[n])]));
        ours.must(write(vec![set("b", &[n])]));
        assert_eq!(waiting.get(), Ok(Some(vec![Some(vec![n])])));
    }
}

#[test]
fn watches_of_two_busy_processes_reach_the_last_state() {
    let ours = Database::sqlite();
    let theirs = ours.another(false);
    let watches = [(&ours, ours.watch(&["theirs"])), (&theirs, theirs.watch(&["ours"]))];
    std::thread::scope(|scope| {
        for (database, name) in [(&ours, "ours"), (&theirs, "theirs")] {
            scope.spawn(move || {
                for n in 0..=200 {
                    database.must(write(vec![set(name, &[n])]));
                }
            });
        }
        for (database, watch) in watches {
            while database.next(watch).get() != Ok(Some(vec![Some(vec![200])])) {}
        }
    });
}

#[test]
fn a_consumer_gets_messages_of_another_process() {
    let ours = Database::sqlite();
    let theirs = ours.another(false);
    let consumer = ours.listen(1);
    for n in 0..50 {
        theirs.must(enqueue(n..n + 1, START_MS, &[], &[]));
        let (id, value) = consumer.get();
        assert_eq!(value, n);
        ours.store().settle(consumer.id, id, Outcome::Done, None);
    }
}

/// Two stores on one memory. The first hears of commits of the second only from the test.
fn two_stores() -> (Database, Database, Arc<Plan>) {
    let (engine, plan) = (MemoryEngine::new(), Arc::new(Plan::default()));
    let ours = Database::over(Faulty(engine.clone(), plan.clone()));
    (ours, Database::over(engine), plan)
}

fn known(versions: (u64, u64), names: &[&str]) -> ExternalCommits {
    ExternalCommits::Known { versions, keys: names.iter().map(|name| key(name)).collect() }
}

#[test]
fn a_watch_reads_only_after_external_commits_of_its_keys() {
    let (ours, theirs, plan) = two_stores();
    let (watches, [a, b]) = ours.watches_of_absent(["a", "b"]);
    ours.hears_others(&plan);
    let before = plan.reads.load(Ordering::SeqCst);
    let version = theirs.must(write(vec![set("a", b"1")]));
    plan.tell(&known((version - 1, version), &["a"]));
    assert_eq!(a.get(), Ok(Some(vec![Some(b"1".to_vec())])));
    ours.read("");
    assert_eq!(plan.reads.load(Ordering::SeqCst), before + 2, "one of the watch, one of the test");
    let version = theirs.must(write(vec![set("b", b"1")]));
    plan.tell(&ExternalCommits::Unknown);
    assert_eq!(b.get(), Ok(Some(vec![Some(b"1".to_vec())])));
    let [a, b] = watches.map(|watch| ours.next(watch));
    plan.tell(&known((version - 1, version), &["b"]));
    ours.read("");
    assert!(a.now().is_none() && b.now().is_none(), "the commit was shown already");
}

/// External commits whose keys are known are reported late, and together with own commits.
#[test]
fn a_watch_of_many_keys_sees_all_commits_of_two_processes() {
    let (ours, theirs, plan) = two_stores();
    let names: Vec<String> = (0..32).map(|at| at.to_string()).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let watch = ours.watch(&names);
    let mut expected = vec![None; names.len()];
    assert_eq!(ours.next(watch).get(), Ok(Some(expected.clone())));
    until(|| plan.external_open.load(Ordering::SeqCst) == 1);
    for n in 0..100_u8 {
        let count = names.len();
        let [of_theirs, of_ours, last] = [0, 3, 5].map(|step| (usize::from(n) * 7 + step) % count);
        let before = theirs.must(write(vec![set(names[of_theirs], &[n, 0])])) - 1;
        ours.must(write(vec![set(names[of_ours], &[n, 1])]));
        let after = theirs.must(write(vec![set(names[last], &[n, 2])]));
        let places = [of_theirs, of_ours, last];
        for (order, place) in places.into_iter().enumerate() {
            expected[place] = Some(vec![n, u8::try_from(order).expect("few")]);
        }
        plan.tell(&known((before, after), &places.map(|place| names[place])));
        while ours.next(watch).get() != Ok(Some(expected.clone())) {}
    }
}

#[test]
fn a_feed_reads_only_after_external_commits_in_its_range() {
    let (ours, theirs, plan) = two_stores();
    let feed = ours.feed(None);
    let batch = ours.batch(feed);
    ours.hears_others(&plan);
    let before = plan.reads.load(Ordering::SeqCst);
    let version = theirs.must(write(vec![set("other", b"1")]));
    plan.tell(&known((version - 1, version), &["other"]));
    ours.read("");
    assert_eq!(plan.reads.load(Ordering::SeqCst), before + 1, "the read of the test");
    let version = theirs.must(write(vec![set("a", b"1")]));
    plan.tell(&known((version - 1, version), &["a"]));
    assert_eq!(batch.get().expect("read").expect("not ended").changes.len(), 1);
    // A commit that a read has reported is announced again, together with a later one.
    let batch = ours.batch(feed);
    let later = theirs.must(write(vec![set("b", b"1")]));
    plan.tell(&known((version - 1, later), &["a", "b"]));
    let changes = batch.get().expect("read").expect("not ended").changes;
    assert_eq!(changes.iter().map(|change| change.version).collect::<Vec<_>>(), [later]);
}
