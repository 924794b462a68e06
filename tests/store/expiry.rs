//! Ends of entries: swept when they come, without anybody asking.

use openkv::model::{AGENDA_REFRESH_MS, SWEEP_JOINED_ROWS_MAX, SWEEP_ROWS_MIN};

use crate::database::{Database, START_MS};
use crate::on_both;
use crate::writes::{absent, checked, set, set_until, write};

fn a_sweep_is_one_commit_and_leaves_nothing(database: Database) {
    let version = database.must(write(vec![set_until("a", b"", START_MS + 10), set("b", b"1")]));
    database.pass(10);
    database.settle_down();
    assert_eq!(database.read("a"), None);
    assert_eq!(database.read("b"), Some(b"1".to_vec()));
    // The sweep, and three writes without effect.
    assert_eq!(database.must(checked(vec![absent("a")], vec![])), version + 4);
}

fn many_ends_are_swept_in_steps(database: Database) {
    let count = SWEEP_JOINED_ROWS_MAX + SWEEP_ROWS_MIN + 10;
    let ending = |n| set_until(&format!("k{n:05}"), b"", START_MS + 10);
    database.must(write((0..count).map(ending).collect()));
    let watch = database.watch(&[&format!("k{:05}", count - 1)]);
    database.next(watch).get().expect("no error");
    let gone = database.next(watch);
    let version = database.must(write(vec![]));
    database.pass(10);
    assert_eq!(gone.get(), Ok(Some(vec![None])), "the last one is swept without anybody's doing");
    // It is absent from its end on, so the watch may have been told before the last step.
    let steps = |writes: u64| database.must(write(vec![])) - version - writes;
    assert!((1..10_000).any(|writes| steps(writes) >= 2), "there were two steps");
}

fn an_earlier_end_that_is_written_later_is_kept(database: Database) {
    database.must(write(vec![set_until("late", b"", START_MS + AGENDA_REFRESH_MS * 2)]));
    database.must(write(vec![set_until("soon", b"", START_MS + 50)]));
    let watch = database.watch(&["soon"]);
    database.next(watch).get().expect("no error");
    let waiting = database.next(watch);
    database.pass(50);
    assert_eq!(waiting.get(), Ok(Some(vec![None])));
    assert_eq!(database.read("late"), Some(Vec::new()));
}

on_both! {
    a_sweep_is_one_commit_and_leaves_nothing
    many_ends_are_swept_in_steps
    an_earlier_end_that_is_written_later_is_kept
}
