//! The rules of changes of queues: pauses, drains, cancellations, and entries about messages.

use super::queues::{claim, end, enqueue, failed, message, stats, values};
use super::*;
use openkv_core::codec::{cbor, key, message_context};
use openkv_core::model::{KeyPart, PAUSED_QUEUES, QueueChange, QueueChanged, Time};

fn change(writer: &mut impl Writer, queue: &str, change: QueueChange, now_ms: i64) -> Vec<i64> {
    let QueueChanged { ids, versions } =
        writer.change_queue(queue, change, now_ms, soon()).unwrap();
    assert_eq!(versions.1 - versions.0, u64::from(!ids.is_empty()), "{change:?}");
    ids
}

fn is_paused(engine: &impl Engine, queue: &str) -> bool {
    read(&mut engine.reader().unwrap(), NOW, |snapshot| snapshot.queues()?.stats(queue)).paused
}

pub(super) fn a_paused_queue_delivers_nothing(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    enqueue(&mut writer, vec![message(1), message(2)]);
    let running = claim(&mut writer, 7, 1, NOW);
    assert_eq!(change(&mut writer, "mail", QueueChange::Pause, NOW).len(), 1);
    assert!(change(&mut writer, "mail", QueueChange::Pause, NOW).is_empty(), "it is paused");
    assert!(is_paused(engine, "mail") && !is_paused(engine, "other"));
    assert!(claim(&mut writer, 8, 10, NOW).is_empty());
    // Only the lock of the running message is to be looked at.
    assert_eq!(writer.next_message_ms("mail").unwrap(), Some(NOW + 1000));
    assert_eq!(stats(engine, NOW), [1, 0, 1, 0]);
    let names = read(&mut engine.reader().unwrap(), NOW, |snapshot| snapshot.queues()?.names(10));
    assert_eq!(names, [PAUSED_QUEUES, "mail"]);
    // What is under way ends as ever, and a failure waits.
    assert_eq!(end(&mut writer, failed(&running[0], "no"), NOW).settled, [true]);
    assert!(claim(&mut writer, 8, 10, NOW).is_empty());
    assert_eq!(writer.next_message_ms("mail").unwrap(), None);
    enqueue(&mut writer, vec![Message { queue: "other".into(), ..message(3) }]);
    assert_eq!(values(&claim_of(&mut writer, "other", 8, 1000, 10, NOW)), [3]);
    assert_eq!(change(&mut writer, "mail", QueueChange::Resume, NOW).len(), 1);
    assert!(change(&mut writer, "mail", QueueChange::Resume, NOW).is_empty());
    assert!(!is_paused(engine, "mail"));
    assert_eq!(values(&claim(&mut writer, 9, 10, NOW)), [2]);
}

pub(super) fn a_drain_deletes_what_waits_in_steps(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let keyed = Message { deduplication_key: Some("k".into()), priority: 3, ..message(2) };
    let later = Message { due: Time::At(NOW + 5), ..message(3) };
    let other = Message { queue: "other".into(), ..message(4) };
    enqueue(&mut writer, vec![message(0), message(1), keyed.clone(), later, other, message(5)]);
    assert_eq!(values(&claim(&mut writer, 7, 1, NOW)), [2]);
    let drain = |until_ms, delayed, max| QueueChange::Drain { until_ms, delayed, max };
    let mut drained = |step, now_ms| change(&mut writer, "mail", step, now_ms).len();
    assert_eq!(drained(drain(NOW - 1, true, 10), NOW), 0, "enqueued later");
    assert_eq!(drained(drain(NOW, false, 2), NOW), 2);
    assert_eq!(drained(drain(NOW, false, 2), NOW), 1);
    assert_eq!(stats(engine, NOW), [0, 1, 1, 0]);
    assert_eq!(drained(drain(NOW, true, 10), NOW), 1, "the delayed one");
    assert_eq!(drained(drain(NOW, true, 10), NOW + 999), 0, "a consumer has it");
    assert_eq!(drained(drain(NOW, true, 10), NOW + 1000), 1, "its lock is over");
    assert_eq!(stats(engine, NOW), [0; 4]);
    assert_eq!(writer.queue_depth("mail").unwrap(), 0);
    enqueue(&mut writer, vec![keyed]);
    assert_eq!(stats(engine, NOW), [1, 0, 0, 0], "its deduplication key is free");
}

fn cancel(writer: &mut impl Writer, queue: &str, id: i64) -> bool {
    end(writer, Settlement::cancelled(queue, id), NOW).settled[0]
}

fn tracked(value: u8) -> Message {
    let value = message_context::with_context("openkv-keep-result: 500", &[value]);
    Message { value, ..message(0) }
}

/// The keys of the entries about messages, behind their first part.
fn entries(engine: &impl Engine, now_ms: i64) -> Vec<String> {
    let mut found = Vec::new();
    read(&mut engine.reader().unwrap(), now_ms, |snapshot| {
        let start = key::encode(&[KeyPart::String("openkv:jobs".into())])?;
        let end = [start.as_bytes(), &[0xff]].concat();
        snapshot.scan(start.as_bytes(), &end, false, &mut |row| {
            let text = key::print(row.key);
            found.push(text.replace(r#"["openkv:jobs","mail","#, "["));
            true
        })
    });
    found
}

pub(super) fn a_cancelled_message_is_gone_whoever_has_it(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    enqueue(&mut writer, vec![message(1), message(2)]);
    let [running] = claim(&mut writer, 7, 1, NOW).try_into().unwrap();
    let waiting = running.id + 1;
    assert!(!cancel(&mut writer, "other", running.id), "of another queue");
    assert!(!cancel(&mut writer, "mail", waiting + 1), "there is none");
    assert_eq!(entries(engine, NOW), [""; 0]);
    for id in [running.id, waiting] {
        assert!(cancel(&mut writer, "mail", id));
        assert!(!cancel(&mut writer, "mail", id), "it is gone");
    }
    let done = Settlement::new(running.id, running.lock, Outcome::Done);
    assert_eq!(end(&mut writer, done, NOW).settled, [false]);
    assert_eq!(stats(engine, NOW), [0; 4]);
    let of = |id| format!(r#"["{id}","cancelled"]"#);
    assert_eq!(entries(engine, NOW), [of(running.id), of(waiting), r#"["cancelled"]"#.to_owned()]);
}

pub(super) fn what_happens_to_a_message_is_reported_by_entries(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let once = Message { backoff_ms: vec![10], ..tracked(1) };
    enqueue(&mut writer, vec![once, message(2)]);
    let [first, _] = claim(&mut writer, 7, 2, NOW).try_into().unwrap();
    let of = |event| format!(r#"["{}","{event}"]"#, first.id);
    assert_eq!(entries(engine, NOW), [of("enqueued")]);
    assert_eq!(end(&mut writer, failed(&first, "early"), NOW).settled, [true]);
    assert_eq!(entries(engine, NOW), [of("enqueued"), of("failed")]);
    let [second] = claim(&mut writer, 8, 1, NOW + 10).try_into().unwrap();
    assert_eq!(second.id, first.id);
    assert_eq!(end(&mut writer, failed(&second, "late"), NOW + 10).settled, [true]);
    assert_eq!(entries(engine, NOW + 10), [of("dead"), of("enqueued"), of("failed")]);
    let key = ["openkv:jobs", "mail", &first.id.to_string(), "dead"];
    let key = key::encode(&key.map(|part| KeyPart::String(part.into()))).unwrap();
    let mut text = String::new();
    read(&mut engine.reader().unwrap(), NOW + 10, |snapshot| {
        snapshot.get(key.as_bytes(), &mut |row| text = format!("{:?}", row.value))
    });
    assert!(!text.is_empty());
    assert_eq!(entries(engine, NOW + 500), [of("dead")], "each expires");
    assert_eq!(entries(engine, NOW + 510), [""; 0]);
    // A repetition by its deduplication key is no message.
    let keyed = Message { deduplication_key: Some("k".into()), ..tracked(3) };
    enqueue(&mut writer, vec![keyed.clone(), keyed]);
    assert_eq!(entries(engine, NOW).iter().filter(|key| key.contains("enqueued")).count(), 2);
    assert!(cbor::decode(message_context::value_of(&tracked(3).value)).is_ok());
}
