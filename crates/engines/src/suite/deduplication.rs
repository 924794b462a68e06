//! The rules of messages whose deduplication key another one has.

use super::queues::{claim, end, failed, message, values};
use super::*;
use openkv_core::model::{Deduplication, Enqueued, Time};

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
    assert_eq!((held.id, &held.value[..], held.attempts_left), (first, &[4][..], 1));

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
