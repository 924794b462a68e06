//! Two stores on one file, as in two processes.

use openkv::model::Outcome;

use crate::database::{Database, START_MS};
use crate::writes::{enqueue, set, write};

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
