//! The rules of messages whose deduplication key another one has.

use super::queues::{claim, end, failed, message, values};
use super::*;
use openkv_core::model::{DeadLetterChange, Deduplication, Enqueued, QueueChange, Time};

pub(super) fn a_message_replaces_the_waiting_one_with_its_key(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let keyed = |value, due_ms, deduplication| Message {
        due: Time::At(due_ms),
        deduplication_key: Some("k".into()),
        deduplication,
        backoff_ms: vec![0],
        ..message(value)
    };
    let placed = |writer: &mut _, messages: Vec<Message>| {
        let write = atomic(WriteParts { messages, ..WriteParts::default() });
        match commit(writer, vec![write]).remove(0) {
            Decision::CommittedWith(_, results) => results.enqueued,
            other => panic!("{other:?}"),
        }
    };
    let enqueued = placed(&mut writer, vec![keyed(1, NOW + 10, Deduplication::Replace)]);
    let first = enqueued[0].id.unwrap();
    assert!(!enqueued[0].deduplicated);
    let raised = Message { priority: 5, ..keyed(3, NOW + 99, Deduplication::Replace) };
    for message in [keyed(2, NOW + 99, Deduplication::Drop), raised] {
        let enqueued = placed(&mut writer, vec![message]);
        assert_eq!(enqueued, [Enqueued { id: Some(first), deduplicated: true }]);
        assert_eq!(writer.next_message_ms("mail").unwrap(), Some(NOW + 10), "as it was");
    }
    let debounced = keyed(4, NOW + 20, Deduplication::Debounce);
    let enqueued = placed(&mut writer, vec![debounced]);
    assert_eq!(enqueued, [Enqueued { id: Some(first), deduplicated: true }]);
    assert_eq!(writer.next_message_ms("mail").unwrap(), Some(NOW + 20));
    assert_eq!(writer.queue_depth("mail").unwrap(), 1);
    let [held] = claim(&mut writer, 7, 10, NOW + 20).try_into().unwrap();
    assert_eq!((held.id, held.attempts_left), (first, 1));
    assert_eq!(values(std::slice::from_ref(&held)), [4]);

    // A consumer has it: each further one goes beside it, and the next of the batch takes its place.
    let beside = vec![
        keyed(5, NOW, Deduplication::Debounce),
        keyed(6, NOW, Deduplication::Replace),
        keyed(7, NOW, Deduplication::Drop),
    ];
    let [added, replaced, dropped] = placed(&mut writer, beside).try_into().unwrap();
    let second = added.id.unwrap();
    assert!(!added.deduplicated && second != first);
    assert_eq!([replaced, dropped], [Enqueued { id: Some(second), deduplicated: true }; 2]);
    assert_eq!(writer.queue_depth("mail").unwrap(), 2);
    // The one that fails has left its key, and is retried beside the other.
    end(&mut writer, failed(&held, "once"), NOW + 20);
    let mut got = values(&claim(&mut writer, 8, 10, NOW + 20));
    got.sort_unstable();
    assert_eq!(got, [4, 6]);
}

fn again(value: u8, due: Time) -> Message {
    Message {
        due,
        deduplication_key: Some("k".into()),
        deduplication: Deduplication::Again,
        backoff_ms: vec![500],
        ..message(value)
    }
}

fn placed(writer: &mut impl Writer, message: Message) -> Enqueued {
    let write = atomic(WriteParts { messages: vec![message], ..WriteParts::default() });
    match commit(writer, vec![write]).remove(0) {
        Decision::CommittedWith(_, mut results) => results.enqueued.remove(0),
        other => panic!("{other:?}"),
    }
}

pub(super) fn a_message_runs_once_more_after_the_run_under_way(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let first = placed(&mut writer, again(1, Time::At(NOW)));
    assert!(!first.deduplicated);
    assert_eq!(
        placed(&mut writer, again(2, Time::At(NOW))),
        Enqueued { deduplicated: true, ..first }
    );
    let [held] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
    let second = placed(&mut writer, again(3, Time::At(NOW)));
    assert!(!second.deduplicated && second.id != first.id, "once more");
    for value in [4, 5] {
        let third = placed(&mut writer, again(value, Time::At(NOW)));
        assert_eq!(third, Enqueued { deduplicated: true, ..second }, "but not twice");
    }
    // The newest value stands, and still waits.
    let replaced = Message { deduplication: Deduplication::Debounce, ..again(6, Time::At(NOW)) };
    assert_eq!(placed(&mut writer, replaced), Enqueued { deduplicated: true, ..second });
    assert!(claim(&mut writer, 8, 10, NOW + 1).is_empty(), "the first one runs");
    let done = Settlement::new(held.id, 7, Outcome::Done);
    let report = end(&mut writer, done, NOW + 1);
    assert!(report.queued && report.put_back);
    let [next] = claim(&mut writer, 8, 10, NOW + 1).try_into().unwrap();
    assert_eq!((Some(next.id), values(&[next])), (second.id, vec![6]));
    assert_eq!(writer.queue_depth("mail").unwrap(), 1);
}

pub(super) fn what_waits_for_an_end_waits_for_a_retry_and_not_for_a_dead_letter(
    engine: &impl Engine,
) {
    let mut writer = engine.writer().unwrap();
    placed(&mut writer, again(1, Time::At(NOW)));
    let [held] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
    let second = placed(&mut writer, again(2, Time::At(NOW + 3000)));
    assert!(!second.deduplicated);
    // Its consumer dies; it runs again, and the other one goes on waiting.
    let [retried] = claim(&mut writer, 8, 10, NOW + 1000).try_into().unwrap();
    assert_eq!((retried.id, retried.attempts), (held.id, 2));
    let third = placed(&mut writer, again(3, Time::At(NOW)));
    assert_eq!(third, Enqueued { deduplicated: true, ..second });
    assert!(claim(&mut writer, 9, 10, NOW + 1500).is_empty());
    // Its consumer dies again: no retry is left. The other one goes, but not before it is due.
    assert!(claim(&mut writer, 9, 10, NOW + 2000).is_empty());
    assert_eq!(writer.next_message_ms("mail").unwrap(), Some(NOW + 3000));
    let [last] = claim(&mut writer, 9, 10, NOW + 3000).try_into().unwrap();
    assert_eq!(Some(last.id), second.id);
    // A cancellation is an end too.
    let fourth = placed(&mut writer, again(4, Time::At(NOW)));
    let cancelled = Settlement::cancelled("mail", last.id);
    assert_eq!(end(&mut writer, cancelled, NOW + 3000).settled, [true]);
    let [freed] = claim(&mut writer, 9, 10, NOW + 3000).try_into().unwrap();
    assert_eq!(Some(freed.id), fourth.id);
}

/// The run with the key could not be marked, because an earlier run was: the enqueue failed.
pub(super) fn what_waits_for_an_end_waits_for_the_run_with_the_key(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let done = |writer: &mut _, id, lock| {
        assert_eq!(end(writer, Settlement::new(id, lock, Outcome::Done), NOW).settled, [true]);
    };
    // A run is a dead letter, and is enqueued again while the next one runs.
    placed(&mut writer, again(1, Time::At(NOW)));
    let [dead] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
    let second = placed(&mut writer, again(2, Time::At(NOW)));
    end(&mut writer, Settlement::new(dead.id, 7, Outcome::Dead), NOW);
    let [running] = claim(&mut writer, 8, 10, NOW).try_into().unwrap();
    assert_eq!(Some(running.id), second.id);
    let requeue = DeadLetterChange::Requeue(dead.id);
    assert_eq!(writer.change_dead_letters("mail", &requeue, NOW, soon()).unwrap().count, 1);
    let third = placed(&mut writer, again(3, Time::At(NOW)));
    assert!(!third.deduplicated);
    let [requeued] = claim(&mut writer, 9, 10, NOW).try_into().unwrap();
    assert_eq!(requeued.id, dead.id);
    done(&mut writer, requeued.id, 9);
    assert!(claim(&mut writer, 9, 10, NOW).is_empty(), "the second one runs");
    done(&mut writer, running.id, 8);
    let [running] = claim(&mut writer, 9, 10, NOW).try_into().unwrap();
    assert_eq!(Some(running.id), third.id);
    // What waits for the run is deleted.
    placed(&mut writer, again(4, Time::At(NOW)));
    let drain = QueueChange::Drain { until_ms: NOW, delayed: true, max: 10 };
    assert_eq!(writer.change_queue("mail", drain, NOW, soon()).unwrap().ids.len(), 1);
    let fifth = placed(&mut writer, again(5, Time::At(NOW)));
    assert!(!fifth.deduplicated);
    let sixth = placed(&mut writer, again(6, Time::At(NOW)));
    assert_eq!(sixth, Enqueued { deduplicated: true, ..fifth });
    assert!(claim(&mut writer, 10, 10, NOW).is_empty(), "the third one runs");
    done(&mut writer, running.id, 9);
    assert_eq!(values(&claim(&mut writer, 10, 10, NOW)), [5]);
}

/// It was due at the end of the other one.
pub(super) fn what_replaces_one_that_waits_for_an_end_has_a_due_time(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    for (deduplication, due_ms) in
        [(Deduplication::Replace, NOW + 500), (Deduplication::Debounce, NOW + 700)]
    {
        placed(&mut writer, again(1, Time::At(NOW)));
        let [first] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
        placed(&mut writer, again(2, Time::At(NOW + 500)));
        let newer = Message { deduplication, ..again(3, Time::At(NOW + 700)) };
        assert!(placed(&mut writer, newer).deduplicated);
        end(&mut writer, Settlement::new(first.id, 7, Outcome::Done), NOW);
        assert_eq!(writer.next_message_ms("mail").unwrap(), Some(due_ms), "{deduplication:?}");
        let [next] = claim(&mut writer, 7, 10, due_ms).try_into().unwrap();
        assert_eq!(values(std::slice::from_ref(&next)), [3]);
        end(&mut writer, Settlement::new(next.id, 7, Outcome::Done), due_ms);
    }
}

/// One of them has the key, unless a message has it; those whose retention is over stay.
pub(super) fn dead_letters_with_one_key_are_requeued_together(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let keyed = |value, key: &str| Message {
        due: Time::At(NOW),
        deduplication_key: Some(key.into()),
        dead_retention_ms: Some(if value == 9 { 5 } else { 1000 }),
        ..message(value)
    };
    for (value, key, died_ms) in [(9, "a", 0), (1, "a", 3), (2, "a", 4), (3, "b", 5), (4, "c", 8)] {
        placed(&mut writer, keyed(value, key));
        let [dead] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
        end(&mut writer, Settlement::new(dead.id, 7, Outcome::Dead), NOW + died_ms);
    }
    let living = placed(&mut writer, keyed(5, "b"));
    let mut requeue = |max| {
        let all = DeadLetterChange::RequeueAll { before_ms: NOW + 8, max };
        writer.change_dead_letters("mail", &all, NOW + 7, soon()).unwrap().count
    };
    assert_eq!([requeue(2), requeue(2), requeue(2)], [2, 1, 0]);
    let [b, a] = ["b", "a"].map(|key| placed(&mut writer, keyed(6, key)));
    assert!(a.deduplicated && b == Enqueued { deduplicated: true, ..living });
    let mut values = values(&claim(&mut writer, 8, 10, NOW + 7));
    values.sort_unstable();
    assert_eq!(values, [1, 2, 3, 5]);
}
