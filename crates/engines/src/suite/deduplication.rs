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
