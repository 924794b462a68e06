//! Two stores on one file, as two processes have it.

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

/// A commit of ours right after one of theirs hid it: what was compared was only who had committed
/// last.
#[test]
fn our_own_commits_do_not_hide_theirs() {
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
fn two_busy_processes_end_on_the_last_state() {
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
fn a_consumer_gets_what_another_process_enqueues() {
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
