//! Named queues: consumers, deliveries and their answers.

use openkv::model::{
    Ask, AtomicWrite, Delivery, Limits, Message, Outcome, Renewal, Settlement, Time, WriteParts,
};

use crate::database::{Database, START_MS};
use crate::on_both;

const LOCK_MS: i64 = 900;

/// Messages of one byte each in the queue `mail`, which become dead letters at their second
/// failure.
fn mail(values: std::ops::Range<u8>, due_ms: i64) -> AtomicWrite {
    let message = |value| Message {
        queue: "mail".into(),
        due: Time::At(due_ms),
        backoff_ms: vec![60_000],
        value: vec![value],
        ..Message::default()
    };
    let messages = values.map(message).collect();
    let parts = WriteParts { messages, ..WriteParts::default() };
    AtomicWrite::new(parts, &Limits::default()).expect("within the limits")
}

fn done(delivery: &Delivery) -> Ask {
    Ask::Settle(Settlement::new(delivery.id, delivery.lock, Outcome::Done))
}

fn one_look_is_answered_at_once(database: Database) {
    assert_eq!(database.receive("mail", LOCK_MS, true).1.get(), Ok(None));
    database.must(mail(1..3, START_MS));
    let first = database.receive("mail", LOCK_MS, true).1.get().expect("open").expect("a message");
    assert_eq!((first.value[0], first.attempts, first.enqueued_ms), (1, 1, START_MS));
    assert_eq!(database.receive("other", LOCK_MS, true).1.get(), Ok(None));
    let second = database.receive("mail", 5, true).1.get().expect("open").expect("a message");
    assert_eq!(second.value[0], 2);
    assert_eq!(database.receive("mail", LOCK_MS, true).1.get(), Ok(None));
    assert_eq!(database.ask(done(&first)), Ok(true));
    assert_eq!(database.ask(done(&first)), Ok(false), "it is gone");
}

fn a_waiting_caller_gets_the_next_message(database: Database) {
    let waiting: Vec<_> = (0..3).map(|_| database.receive("mail", LOCK_MS, false)).collect();
    database.settle_down();
    database.must(mail(1..2, START_MS + 500));
    database.must(mail(2..3, START_MS));
    let value = |at: usize| waiting[at].1.get().expect("open").expect("a message").value[0];
    assert_eq!(value(0), 2);
    database.pass(499);
    database.settle_down();
    assert_eq!(waiting[1].1.now(), None);
    database.pass(1);
    assert_eq!(value(1), 1);
    database.store().receive_cancel(waiting[2].0);
    assert_eq!(waiting[2].1.get(), Ok(None));
    database.store().receive_cancel(waiting[2].0);
}

fn a_lock_ends_is_extended_and_lost(database: Database) {
    database.must(mail(1..2, START_MS));
    let (_, first) = database.receive("mail", LOCK_MS, true);
    let first = first.get().expect("open").expect("a message");
    let (_, next) = database.receive("mail", LOCK_MS, false);
    database.pass(LOCK_MS - 1);
    let extend = |lock_ms| Ask::Extend(Renewal { id: first.id, lock: first.lock, lock_ms });
    assert_eq!(database.ask(extend(5000)), Ok(true));
    database.pass(4999);
    database.settle_down();
    assert_eq!(next.now(), None, "its lock holds");
    database.pass(1);
    let second = next.get().expect("open").expect("a message");
    assert_eq!((second.id, second.attempts), (first.id, 2));
    assert_eq!(database.ask(extend(5000)), Ok(false));
    assert_eq!(database.ask(done(&first)), Ok(false));
    assert_eq!(database.ask(done(&second)), Ok(true));
}

fn listeners_and_receivers_share_a_queue_and_nothing_else(database: Database) {
    let deno = database.listen(10);
    let listener = database.listen_to("mail", LOCK_MS, 10);
    let (_, waiting) = database.receive("mail", 2 * LOCK_MS, false);
    database.must(mail(0..8, START_MS));
    database.settle_down();
    let received = waiting.get().expect("open").expect("a message");
    let mut all = listener.all();
    all.push(received.value[0]);
    all.sort_unstable();
    assert_eq!(all, (0..8).collect::<Vec<u8>>());
    assert!(deno.all().is_empty());
}

fn locks_of_listeners_go_on_while_they_handle(database: Database) {
    let listener = database.listen_to("mail", LOCK_MS, 10);
    database.must(mail(1..2, START_MS));
    let (number, _) = listener.get();
    let (_, waiting) = database.receive("mail", LOCK_MS, false);
    for _ in 0..9 {
        database.pass(LOCK_MS / 3);
        database.settle_down();
    }
    assert_eq!(waiting.now(), None);
    // Without a listener no lock is renewed.
    database.store().unlisten(listener.id);
    database.pass(LOCK_MS);
    let again = waiting.get().expect("open").expect("a message");
    assert_eq!(again.attempts, 2);
    database.store().settle(listener.id, number, Outcome::Done, None);
    database.settle_down();
    assert_eq!(database.ask(done(&again)), Ok(true));
}

/// A listener lost its messages to itself: its lapsed locks ended before they were renewed, and the
/// same transaction claimed for its credits.
fn a_late_writer_leaves_listeners_their_messages(database: Database) {
    let listener = database.listen_to("mail", LOCK_MS, 10);
    database.must(mail(1..2, START_MS));
    let (number, _) = listener.get();
    database.pass(LOCK_MS * 5);
    database.settle_down();
    database.store().settle(listener.id, number, Outcome::Done, None);
    database.settle_down();
    database.pass(100_000);
    database.settle_down();
    assert!(listener.all().is_empty());
}

fn a_message_that_a_listener_refuses_is_put_back_unused(database: Database) {
    let options = openkv::model::ConsumeOptions { queue: "mail".into(), lock_ms: LOCK_MS };
    let gone = database
        .store()
        .listen(options, 5, Box::new(|hand| hand), Box::new(drop))
        .expect("listening");
    database.must(mail(1..3, START_MS));
    database.settle_down();
    database.store().unlisten(gone);
    let other = database.listen_to("mail", LOCK_MS, 5);
    assert_eq!((other.get().1, other.get().1), (1, 2));
}

fn a_remote_consumer_settles_renews_and_gets_credits_by_calls(database: Database) {
    let there = database.listen_for(LOCK_MS, 1, 2);
    database.must(mail(0..4, START_MS));
    let first = there.delivery();
    database.settle_down();
    assert!(there.all().is_empty(), "one place");
    assert_eq!(database.ask(done(&first)), Ok(true));
    database.settle_down();
    assert!(there.all().is_empty(), "its credit is not granted yet");
    database.store().grant(there.id, 2);
    let second = there.delivery();
    assert_eq!(second.value[0], 1);
    // Only the remote consumer renews its lock.
    let renewal = Renewal { id: second.id, lock: second.lock, lock_ms: LOCK_MS };
    database.pass(LOCK_MS - 1);
    assert_eq!(database.ask(Ask::Extend(renewal)), Ok(true));
    database.pass(LOCK_MS - 1);
    let other = database.listen_to("mail", LOCK_MS, 10);
    database.settle_down();
    assert_eq!(other.all(), [2, 3], "the second is still locked");
    database.pass(1);
    assert_eq!(other.get().1, 1);
    assert_eq!(database.ask(done(&second)), Ok(false));
    database.store().unlisten(there.id);
    database.must(mail(4..5, START_MS));
    assert_eq!(other.get().1, 4);
}

fn the_callback_is_dropped_with_its_consumer(database: Database) {
    struct Dropped(std::sync::mpsc::Sender<()>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _nobody_asks = self.0.send(());
        }
    }
    let (sender, dropped) = std::sync::mpsc::channel();
    let taker = Dropped(sender);
    let options = openkv::model::ConsumeOptions { queue: "mail".into(), lock_ms: LOCK_MS };
    let consumer = openkv::store::RemoteConsumer { options, credits: 1, most: 1 };
    let refuse = move |hand| {
        let _taker = &taker;
        hand
    };
    let id = database.store().listen_for(consumer, Box::new(refuse)).expect("listening");
    database.must(mail(0..1, START_MS));
    database.store().unlisten(id);
    assert_eq!(dropped.recv_timeout(std::time::Duration::from_secs(30)), Ok(()));
    let other = database.listen_to("mail", LOCK_MS, 10);
    assert_eq!(other.get().1, 0);
}

/// After the clock was set back, a message that a killed worker had locked for 1.5 s, and one that was
/// delayed by 2 s, stayed for as long as it was set back.
fn a_clock_that_is_set_back_lets_locks_and_delays_count_by_length(database: Database) {
    // Not before the epoch.
    const BACK_MS: i64 = START_MS / 2;
    database.must(mail(1..2, START_MS));
    let lost = database.receive("mail", 1500, true).1.get().expect("open").expect("a message");
    let message = |due, value| Message {
        queue: "mail".into(),
        due,
        value: vec![value],
        ..Message::default()
    };
    let messages = vec![message(Time::At(START_MS + 3000), 3), message(Time::After(2000), 2)];
    let parts = WriteParts { messages, ..WriteParts::default() };
    database.must(AtomicWrite::new(parts, &Limits::default()).expect("within the limits"));
    let waiting: Vec<_> = (0..2).map(|_| database.receive("mail", LOCK_MS, false)).collect();
    database.settle_down();

    database.pass(-BACK_MS);
    database.settle_down();
    database.pass(1499);
    database.settle_down();
    assert_eq!(waiting[0].1.now(), None);
    database.pass(1);
    let again = waiting[0].1.get().expect("open").expect("a message");
    assert_eq!((again.id, again.attempts), (lost.id, 2));
    assert_eq!(database.ask(done(&again)), Ok(true));
    database.pass(499);
    database.settle_down();
    assert_eq!(waiting[1].1.now(), None);
    database.pass(1);
    let delayed = waiting[1].1.get().expect("open").expect("a message");
    assert_eq!(delayed.value.last(), Some(&2));
    assert_eq!(database.ask(done(&delayed)), Ok(true));

    // A date is a date.
    let dated = database.receive("mail", LOCK_MS, false);
    database.pass(BACK_MS - 2000 + 2999);
    database.settle_down();
    assert_eq!(dated.1.now(), None);
    database.pass(1);
    assert_eq!(dated.1.get().expect("open").expect("a message").value, [3]);
}

/// The same where a consumer begins after the step.
fn a_later_consumer_finds_times_that_are_too_far_ahead(database: Database) {
    database.must(mail(1..2, START_MS));
    let lost = database.receive("mail", 1500, true).1.get().expect("open").expect("a message");
    database.clock_only(-START_MS / 2);
    let waiting = database.receive("mail", LOCK_MS, false);
    database.settle_down();
    database.pass(1500);
    let again = waiting.1.get().expect("open").expect("a message");
    assert_eq!((again.id, again.attempts), (lost.id, 2));
}

on_both! {
    a_clock_that_is_set_back_lets_locks_and_delays_count_by_length
    a_later_consumer_finds_times_that_are_too_far_ahead
    a_remote_consumer_settles_renews_and_gets_credits_by_calls
    the_callback_is_dropped_with_its_consumer
    one_look_is_answered_at_once
    a_waiting_caller_gets_the_next_message
    a_lock_ends_is_extended_and_lost
    listeners_and_receivers_share_a_queue_and_nothing_else
    locks_of_listeners_go_on_while_they_handle
    a_late_writer_leaves_listeners_their_messages
    a_message_that_a_listener_refuses_is_put_back_unused
}

/// Messages that another process puts back or gives up are found without its help.
#[test]
fn another_store_gets_the_messages_of_an_ended_consumer() {
    let ours = Database::sqlite();
    let theirs = ours.another(false);
    theirs.must(mail(1..2, START_MS));
    let taken = theirs.receive("mail", LOCK_MS, true).1.get().expect("open").expect("a message");
    let listener = ours.listen_to("mail", LOCK_MS, 1);
    ours.settle_down();
    assert!(listener.all().is_empty());
    // A transaction that waited for the other store allows for that wait.
    ours.pass(2 * LOCK_MS);
    assert_eq!(listener.get().1, 1);
    assert_eq!(theirs.ask(done(&taken)), Ok(false));
}
