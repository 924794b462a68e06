//! Feeds: they report every change once and in order, from their start, and an error if they
//! cannot.

use std::sync::Arc;
use std::sync::mpsc::channel;
use std::time::Duration;

use openkv::model::{
    Ask, AtomicWrite, Batch, Change, DeadLetterChange, Error, FEED_AGE_MS_MAX, FEED_BATCH_CHANGES,
    Id, KeyRange, Kind, LOCK_MS, Limits, LogBounds, LogSettings, Message, Outcome, Result, Setting,
    Settlement, Time, WriteParts,
};

use crate::database::{Answer, Database, START_MS};
use crate::faulty::{Faulty, Plan};
use crate::on_both;
use crate::writes::{absent, checked, delete, enqueue, key, set, set_until, write};

/// Commit, key, first byte of the value; `None`: removed.
type Shown = (u64, &'static str, Option<u8>);

const NAMES: [&str; 6] = ["a", "b", "c", "d", "dead", "other"];

fn shown(change: &Change) -> Shown {
    let name = NAMES.into_iter().find(|name| key(name) == change.key).unwrap_or("?");
    let byte = change.kind.value().map(|value| value.bytes.first().copied().unwrap_or(0));
    (change.version, name, byte)
}

impl Database {
    /// A feed of the keys `a` to `dead`.
    pub(crate) fn feed(&self, since: Option<u64>) -> Id {
        let range = KeyRange { start: key("a"), end: key("e") };
        self.store().feed(range, since, None, Duration::from_secs(30), Box::new(drop))
    }

    pub(crate) fn batch(&self, feed: Id) -> Answer<Result<Option<Batch>>> {
        let (sender, answer) = channel();
        let reply = move |batch| {
            let _receiver_gone = sender.send(batch);
        };
        self.store().feed_next(feed, Box::new(reply));
        Answer::of(answer)
    }

    fn changes(&self, feed: Id) -> Vec<Shown> {
        let batch = self.batch(feed).get().expect("no error").expect("not ended");
        batch.changes.iter().map(shown).collect()
    }

    fn refusal(&self, feed: Id) -> Kind {
        self.batch(feed).get().expect_err("refused").kind()
    }

    /// Makes the log drop all commits.
    fn forget(&self) {
        self.pass(FEED_AGE_MS_MAX + 1);
        // Each transaction drops a bounded number of commits.
        for _ in 0..10 {
            self.must(write(vec![set("other", b"1")]));
        }
    }
}

fn everything_after_the_opening_is_reported_in_order(database: Database) {
    database.must(write(vec![set("a", b"0")]));
    let feed = database.feed(None);
    let writes = vec![
        write(vec![set("a", &[1]), set("other", &[1])]),
        write(vec![set("a", &[2]), set("b", &[2])]),
        checked(vec![absent("a")], vec![set("a", &[9])]),
        write(vec![delete("a")]),
    ];
    database.commit(writes);
    database.must(write(vec![set("c", &[5])]));
    let mut changes = Vec::new();
    while changes.len() < 5 {
        changes.extend(database.changes(feed));
    }
    let mut second = changes[1..3].to_vec();
    second.sort_unstable();
    assert_eq!(second, [(3, "a", Some(2)), (3, "b", Some(2))]);
    assert_eq!(
        (changes[0], &changes[3..]),
        ((2, "a", Some(1)), &[(4, "a", None), (5, "c", Some(5))][..])
    );
}

fn a_waiting_call_gets_the_next_change_in_the_range(database: Database) {
    let feed = database.feed(None);
    let waiting = database.batch(feed);
    database.must(write(vec![set("other", b"1")]));
    database.settle_down();
    assert_eq!(waiting.now(), None);
    let version = database.must(write(vec![set("b", &[7])]));
    let batch = waiting.get().expect("no error").expect("not ended");
    assert_eq!((shown(&batch.changes[0]), batch.version), ((version, "b", Some(7)), version));
    let waiting = database.batch(feed);
    database.settle_down();
    assert_eq!(waiting.now(), None, "nothing is reported twice");
}

fn ends_and_dead_messages_are_reported(database: Database) {
    let feed = database.feed(None);
    database.must(write(vec![set_until("a", &[1], START_MS + 10)]));
    assert_eq!(database.changes(feed), [(1, "a", Some(1))]);
    let waiting = database.batch(feed);
    database.pass(10);
    let batch = waiting.get().expect("no error").expect("not ended");
    assert_eq!(shown(&batch.changes[0]), (2, "a", None));
    let consumer = database.listen(1);
    database.must(enqueue(7..8, START_MS, &[], &["dead"]));
    let (id, _) = consumer.get();
    database.store().settle(consumer.id, id, Outcome::Failed, None);
    assert_eq!(database.changes(feed)[0].1, "dead");
}

fn batches_are_bounded_and_commits_are_whole(database: Database) {
    let feed = database.feed(None);
    let half = FEED_BATCH_CHANGES / 2 + 1;
    let names: Vec<String> = (0..half).map(|n| format!("b{n:05}")).collect();
    for n in 0..4 {
        database.must(write(names.iter().map(|name| set(name, &[n])).collect()));
    }
    let lens: Vec<usize> = (0..2).map(|_| database.changes(feed).len()).collect();
    assert_eq!(lens, [2 * half, 2 * half]);
}

fn a_file_that_logged_nothing_is_resumed_while_nothing_was_removed(database: Database) {
    database.must(write(vec![set("a", &[1]), set("other", &[1])]));
    database.must(write(vec![set("b", &[2])]));
    database.must(write(vec![set("a", &[3])]));
    let from_one = database.feed(Some(1));
    assert_eq!(database.changes(from_one), [(2, "b", Some(2)), (3, "a", Some(3))]);
    let from_none = database.feed(Some(0));
    assert_eq!(database.changes(from_none), [(2, "b", Some(2)), (3, "a", Some(3))]);
    // From now on removals are logged.
    database.must(write(vec![delete("b")]));
    let again = database.feed(Some(1));
    assert_eq!(database.changes(again), [(3, "a", Some(3))]);
    assert_eq!(database.changes(again), [(4, "b", None)]);
    let later = database.feed(Some(3));
    assert_eq!(database.changes(later), [(4, "b", None)]);
}

fn a_removal_that_was_not_logged_is_a_gap(database: Database) {
    database.must(write(vec![set("a", &[1])]));
    database.must(write(vec![delete("a")]));
    database.must(write(vec![set("b", &[3])]));
    let feed = database.feed(Some(1));
    assert_eq!(database.refusal(feed), Kind::FeedGap);
    assert_eq!(database.refusal(feed), Kind::FeedGap);
    let feed = database.feed(Some(2));
    assert_eq!(database.changes(feed), [(3, "b", Some(3))]);
    let ahead = database.feed(Some(4));
    assert_eq!(database.refusal(ahead), Kind::FeedGap);
}

fn a_reader_behind_the_log_gets_the_last_change_of_each_key(database: Database) {
    let slow = database.feed(None);
    let first = database.must(write(vec![set("a", &[1]), set("b", &[1]), set("c", &[1])]));
    database.must(write(vec![set("a", &[2])]));
    let last = database.must(write(vec![set("c", &[3])]));
    database.forget();
    assert_eq!(
        database.changes(slow),
        [(first, "b", Some(1)), (first + 1, "a", Some(2)), (last, "c", Some(3)),]
    );
    let version = database.must(write(vec![set("a", &[4])]));
    assert_eq!(database.changes(slow), [(version, "a", Some(4))]);
}

/// Only what has left the log is read from the entries: behind it every change is reported.
fn a_reader_behind_the_log_goes_on_in_it(database: Database) {
    let slow = database.feed(None);
    let first = database.must(write(vec![set("a", &[1]), set("b", &[1]), set("c", &[1])]));
    database.forget();
    let second = database.must(write(vec![set("a", &[2])]));
    let third = database.must(write(vec![delete("b"), set("d", &[3])]));
    let last = database.must(write(vec![set("a", &[4])]));
    assert_eq!(database.changes(slow), [(first, "c", Some(1))]);
    let mut rest = database.changes(slow);
    rest[1..3].sort_unstable();
    assert_eq!(
        rest,
        [(second, "a", Some(2)), (third, "b", None), (third, "d", Some(3)), (last, "a", Some(4))]
    );
}

fn a_reader_behind_forgotten_removals_gets_an_error(database: Database) {
    let slow = database.feed(None);
    database.must(write(vec![set("a", &[1])]));
    database.must(write(vec![delete("a")]));
    database.forget();
    assert_eq!(database.refusal(slow), Kind::FeedGap);
}

/// The log is one for feeds and replicas, so turning it off leaves a feed without what is committed then.
fn a_log_that_is_turned_off_is_a_gap_once_something_is_committed(database: Database) {
    let off = LogSettings { log: Setting::Off, ..LogSettings::default() };
    let turn_off = || database.store().set_log(off, Duration::from_secs(30)).expect("off");
    let [current, behind] = [database.feed(None), database.feed(None)];
    let first = database.must(write(vec![set("a", &[1])]));
    assert_eq!(database.changes(current), [(first, "a", Some(1))]);
    turn_off();
    let error = database.batch(behind).get().expect_err("a gap");
    assert_eq!(error.kind(), Kind::FeedGap);
    assert!(error.message().contains("log: false"), "{error}");
    let waiting = database.batch(current);
    database.settle_without_a_commit();
    assert_eq!(waiting.now(), None, "nothing was committed meanwhile");
    let second = database.must(write(vec![set("a", &[2])]));
    assert_eq!(waiting.get().expect_err("a gap").kind(), Kind::FeedGap);
    // A new feed turns it on again.
    let again = database.feed(Some(first));
    assert_eq!(database.changes(again), [(second, "a", Some(2))]);
    let last = database.must(write(vec![delete("a")]));
    assert_eq!(database.changes(again), [(last, "a", None)]);
}

/// A feed, a replica and an archive read the same segments, within the same bounds.
fn a_feed_has_the_bounds_of_the_log(database: Database) {
    let bounds = LogBounds { retention_ms: 1000, bytes_max: 1 << 30 };
    let settings = LogSettings { log: Setting::On(bounds), ..LogSettings::default() };
    database.store().set_log(settings, Duration::from_secs(30)).expect("on");
    let slow = database.feed(None);
    let first = database.must(write(vec![set("a", &[1])]));
    database.must(write(vec![set("a", &[2])]));
    database.pass(1001);
    for _ in 0..3 {
        database.must(write(vec![set("other", b"1")]));
    }
    assert_eq!(database.changes(slow), [(first + 1, "a", Some(2))]);
}

/// A waiting feed stays up to date, however many commits elsewhere leave the log.
fn waiting_for_long_loses_nothing(database: Database) {
    let [active, idle] = [database.feed(None), database.feed(None)];
    let waiting = database.batch(active);
    // The first reads of these feeds have run. The log keeps commits for days; here it drops them
    // in a moment.
    std::thread::sleep(Duration::from_millis(100));
    for _ in 0..3 {
        database.must(write(vec![set("other", b"1")]));
        database.must(write(vec![delete("other")]));
    }
    database.forget();
    let version = database.must(write(vec![set("a", &[1])]));
    let batch = waiting.get().expect("no error").expect("not ended");
    assert_eq!(batch.changes.iter().map(shown).collect::<Vec<_>>(), [(version, "a", Some(1))]);
    assert_eq!(database.changes(idle), [(version, "a", Some(1))]);
}

/// Messages that are put back are a commit without keys. It was not announced. So a feed without a
/// waiting call counted as one with changes to report, and its position stopped.
fn messages_put_back_do_not_hold_a_feed(database: Database) {
    let message = Message { queue: "mail".into(), due: Time::At(START_MS), ..Message::default() };
    let parts = WriteParts { messages: vec![message], ..WriteParts::default() };
    database.must(AtomicWrite::new(parts, &Limits::default()).expect("within the limits"));
    let (_, received) = database.receive("mail", LOCK_MS, true);
    let delivery = received.get().expect("open").expect("a message");
    let idle = database.feed(None);
    let died = Settlement::new(delivery.id, delivery.lock, Outcome::Failed);
    assert_eq!(database.ask(Ask::Settle(died)), Ok(true));
    let (sender, requeued) = channel();
    let change = DeadLetterChange::Requeue(delivery.id);
    let reply = Box::new(move |count| sender.send(count).expect("a receiver"));
    database.store().change_dead_letters("mail".into(), change, Duration::from_secs(30), reply);
    assert_eq!(requeued.recv().expect("answered"), Ok(1));
    for _ in 0..3 {
        database.must(write(vec![set("other", b"1")]));
        database.must(write(vec![delete("other")]));
    }
    database.forget();
    let version = database.must(write(vec![set("a", &[1])]));
    assert_eq!(database.changes(idle), [(version, "a", Some(1))]);
}

fn cancelling_answers_a_waiting_call(database: Database) {
    let feed = database.feed(None);
    let waiting = database.batch(feed);
    database.store().feed_cancel(feed);
    assert_eq!(waiting.get(), Ok(None));
    assert_eq!(database.batch(feed).get(), Ok(None));
    database.store().feed_cancel(feed);
    database.must(write(vec![set("a", &[1])]));
}

fn closing_answers_a_waiting_call(mut database: Database) {
    let feed = database.feed(None);
    let waiting = database.batch(feed);
    database.settle_down();
    database.close();
    assert_eq!(waiting.get(), Ok(None));
}

on_both! {
    everything_after_the_opening_is_reported_in_order
    a_waiting_call_gets_the_next_change_in_the_range
    ends_and_dead_messages_are_reported
    batches_are_bounded_and_commits_are_whole
    a_file_that_logged_nothing_is_resumed_while_nothing_was_removed
    a_removal_that_was_not_logged_is_a_gap
    a_reader_behind_the_log_gets_the_last_change_of_each_key
    a_reader_behind_the_log_goes_on_in_it
    a_reader_behind_forgotten_removals_gets_an_error
    a_log_that_is_turned_off_is_a_gap_once_something_is_committed
    a_feed_has_the_bounds_of_the_log
    waiting_for_long_loses_nothing
    messages_put_back_do_not_hold_a_feed
    cancelling_answers_a_waiting_call
    closing_answers_a_waiting_call
}

#[test]
fn a_feed_follows_and_resumes_in_another_process() {
    let ours = Database::sqlite();
    let theirs = ours.another(false);
    theirs.must(write(vec![set("a", &[0])]));
    let feed = ours.feed(None);
    let mut changes = Vec::new();
    // The same for a process whose writer has not yet seen that changes are logged.
    ours.settle_down();
    for n in 1..=100 {
        theirs.must(write(vec![set("a", &[n])]));
        ours.must(write(vec![set("b", &[n])]));
    }
    while changes.len() < 200 {
        changes.extend(ours.changes(feed));
    }
    assert!(changes.is_sorted_by(|a, b| a.0 < b.0));
    for name in ["a", "b"] {
        let values = changes.iter().filter(|change| change.1 == name).map(|change| change.2);
        assert!(values.eq((1..=100).map(Some)), "{name}");
    }
    let middle = changes[99].0;
    let resumed = theirs.feed(Some(middle));
    assert_eq!(theirs.changes(resumed), changes[100..]);
}

/// A commit of this process, announced before an external one was detected, marked a feed without a
/// waiting call for good, so that it fell behind.
#[test]
fn a_feed_without_a_waiting_call_advances_with_two_processes() {
    // External commits are detected late: by commits of this process that find them.
    let deaf = |_, (): &()| Err(Error::new(Kind::Unavailable, "nothing is heard"));
    let plan = Arc::new(Plan { before_external: Box::new(deaf), ..Plan::default() });
    let ours = Database::sqlite_wrapped(|engine| Faulty(engine, plan));
    let theirs = ours.another(false);
    let idle = ours.feed(None);
    ours.settle_down();
    theirs.must(write(vec![set("other", b"1")]));
    ours.must(write(vec![delete("other")]));
    ours.settle_down();
    ours.must(write(vec![set("other", b"1")]));
    ours.must(write(vec![delete("other")]));
    ours.forget();
    let version = ours.must(write(vec![set("a", &[1])]));
    assert_eq!(ours.changes(idle), [(version, "a", Some(1))]);
}

#[test]
fn a_read_only_store_follows_the_log() {
    let ours = Database::sqlite();
    ours.must(write(vec![set("a", &[1])]));
    let theirs = ours.another(true);
    let early = theirs.feed(None);
    assert_eq!(theirs.refusal(early), Kind::Denied);
    ours.feed(None);
    ours.settle_down();
    let feed = theirs.feed(None);
    let waiting = theirs.batch(feed);
    theirs.read("");
    let version = ours.must(write(vec![set("a", &[2])]));
    let batch = waiting.get().expect("no error").expect("not ended");
    assert_eq!(shown(&batch.changes[0]), (version, "a", Some(2)));
}
