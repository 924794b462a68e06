//! The rules of messages in all queues, Deno's included.

use super::*;
use openkv_core::model::Renewal;

pub(super) fn messages_are_delivered_in_order_and_hidden_while_locked(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let due = [(1, NOW + 20), (2, NOW), (3, NOW), (4, NOW + 10)];
    commit(&mut writer, due.map(|(value, at)| enqueue(value, at, &[], &[])).to_vec());
    assert_eq!(writer.next_message_ms("").unwrap(), Some(NOW));
    let values =
        |claimed: &[(i64, Vec<u8>)]| claimed.iter().map(|(_, value)| value[0]).collect::<Vec<_>>();
    let first = claim(&mut writer, 77, NOW);
    assert_eq!(values(&first), [2, 3]);
    assert!(claim(&mut writer, 78, NOW + 1).is_empty());
    let second = claim(&mut writer, 79, NOW + 20);
    assert_eq!(values(&second), [4, 1]);
    for (id, _) in first {
        settle(&mut writer, id, 77, Outcome::Done, NOW + 30);
    }
    assert_eq!(writer.next_message_ms("").unwrap(), Some(NOW + 20 + LOCK_MS));
}

pub(super) fn a_failed_message_is_retried_until_its_schedule_ends(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    commit(&mut writer, vec![enqueue(9, NOW, &[50], &["dead1", "dead2"])]);
    let (id, _) = claim(&mut writer, 5, NOW).remove(0);
    let wrong_lock = settle(&mut writer, id, 6, Outcome::Failed, NOW);
    assert!(!wrong_lock.queued);
    assert!(settle(&mut writer, id, 5, Outcome::Failed, NOW).queued);
    assert!(claim(&mut writer, 7, NOW + 49).is_empty());
    let again = claim(&mut writer, 7, NOW + 50);
    assert_eq!(again.len(), 1);
    let last = settle(&mut writer, again[0].0, 7, Outcome::Failed, NOW + 60);
    assert_eq!(last.touched, [key("dead1"), key("dead2")]);
    let (version, value) = get(&mut reader, "dead1").unwrap();
    assert_eq!((version, value), (last.versions.1, vec![9]));
    assert_eq!(get(&mut reader, "dead2").unwrap().0, version);
    assert_eq!(writer.next_message_ms("").unwrap(), None);
}

pub(super) fn an_expired_lock_is_a_failure_unless_renewed(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    commit(&mut writer, vec![enqueue(1, NOW, &[100], &[]), enqueue(2, NOW, &[100], &[])]);
    let claimed = claim(&mut writer, 5, NOW);
    let renewal = |id, lock| Renewal { id, lock, lock_ms: LOCK_MS };
    let renewals = vec![renewal(claimed[0].0, 5), renewal(claimed[1].0, 999)];
    apply_at(&mut writer, Work { renewals, durable: true, ..Work::default() }, NOW + 4000);
    assert!(claim(&mut writer, 6, NOW + LOCK_MS).is_empty(), "one is renewed, one has to wait");
    let again = claim(&mut writer, 6, NOW + LOCK_MS + 100);
    assert_eq!(again, [(claimed[1].0, vec![2])]);
}
