//! The rules of schedules.

use super::queues::{claim, values};
use super::*;
use openkv_core::codec::message_context::{schedule_of, value_of};
use openkv_core::codec::schedule;
use openkv_core::model::{
    Deduplication, Enqueued, Missed, Peek, SCHEDULES_QUEUE, Schedule, ScheduleChange, Timing,
};

/// The first due time after [`NOW`].
const FIRST: i64 = NOW + 100;

pub(super) fn every(every_ms: i64, name: &str, value: u8) -> Message {
    let timing = Timing::Every { every_ms, offset_ms: 0 };
    let schedule = Schedule::new(name.into(), timing, Missed::All).unwrap();
    Message {
        queue: "mail".into(),
        schedule: Some(Box::new(ScheduleChange::Set(schedule))),
        value: vec![value],
        ..Message::default()
    }
}

fn without(name: &str) -> Message {
    let schedule = Some(Box::new(ScheduleChange::Remove(name.into())));
    Message { queue: "mail".into(), schedule, ..Message::default() }
}

/// Whether each has changed anything.
pub(super) fn placed(writer: &mut impl Writer, messages: Vec<Message>) -> Vec<bool> {
    let writes = messages
        .into_iter()
        .map(|message| atomic(WriteParts { messages: vec![message], ..WriteParts::default() }));
    let decisions = commit(writer, writes.collect());
    decisions
        .into_iter()
        .map(|decision| match decision {
            Decision::CommittedWith(_, results) => {
                let [Enqueued { deduplicated, .. }] = results.enqueued[..] else { panic!() };
                !deduplicated
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

pub(super) fn fire(writer: &mut impl Writer, now_ms: i64) -> usize {
    let report = apply_at(writer, Work { fires: true, durable: true, ..Work::default() }, now_ms);
    // Other processes see a commit.
    assert_eq!(report.versions.1 > report.versions.0, report.fired > 0);
    assert_eq!(report.scheduled, report.fired > 0);
    report.fired
}

/// The names and next due times.
fn listed(engine: &impl Engine, now_ms: i64) -> Vec<(String, i64)> {
    read(&mut engine.reader().unwrap(), now_ms, |snapshot| {
        let mut found = Vec::new();
        snapshot.queues()?.peek(SCHEDULES_QUEUE, Peek::default(), &mut |row, _| {
            let kept = schedule::decode(&row.value).unwrap();
            assert_eq!(kept.queue, "mail");
            found.push((kept.schedule.name().to_owned(), row.due_ms));
            true
        })?;
        Ok(found)
    })
}

pub(super) fn a_due_time_gives_one_message(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let keyed = Message {
        priority: 4,
        backoff_ms: vec![7],
        deduplication_key: Some("k".into()),
        ..every(100, "b", 2)
    };
    assert_eq!(placed(&mut writer, vec![every(100, "a", 1), keyed]), [true; 2]);
    assert_eq!(writer.next_message_ms(SCHEDULES_QUEUE).unwrap(), Some(FIRST));
    assert_eq!(fire(&mut writer, FIRST - 1), 0);
    assert_eq!(claim(&mut writer, 7, 10, FIRST).len(), 0);
    assert_eq!(fire(&mut writer, FIRST), 2);
    assert_eq!(fire(&mut writer, FIRST), 0, "once only");
    assert_eq!(writer.next_message_ms(SCHEDULES_QUEUE).unwrap(), Some(FIRST + 100));
    let taken = claim(&mut writer, 7, 10, FIRST);
    let messages: Vec<_> = taken
        .iter()
        .map(|of| (value_of(&of.value)[0], of.attempts_left, schedule_of(&of.value)))
        .collect();
    assert_eq!(messages, [(2, 1, Some(("b", FIRST))), (1, 0, Some(("a", FIRST)))]);
    // The key of the message of `b` is taken, until it is done.
    assert_eq!(fire(&mut writer, FIRST + 250), 2);
    let taken = claim(&mut writer, 8, 10, FIRST + 250);
    let due: Vec<_> = taken.iter().map(|of| schedule_of(&of.value).unwrap()).collect();
    assert_eq!(due, [("a", FIRST + 100), ("a", FIRST + 200)]);
}

pub(super) fn the_same_schedule_again_is_no_change(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    // Also in one batch.
    let all = vec![
        every(100, "a", 1),
        every(100, "a", 1),
        every(200, "a", 1),
        without("a"),
        without("a"),
        every(100, "a", 1),
        every(100, "a", 2),
        every(100, "b", 1),
    ];
    let changed = placed(&mut writer, all);
    assert_eq!(changed, [true, false, true, true, false, true, true, true]);
    assert_eq!(placed(&mut writer, vec![every(100, "a", 2), every(100, "b", 1)]), [false; 2]);
    assert_eq!(listed(engine, NOW), [("a".into(), FIRST), ("b".into(), FIRST)]);
    assert_eq!(writer.queue_depth("mail").unwrap(), 0);
    let raised = Message { priority: 3, ..every(100, "b", 1) };
    assert_eq!(placed(&mut writer, vec![raised]), [true]);
    assert_eq!(fire(&mut writer, FIRST), 2);
    // A clock that is set back gives no due time again.
    assert_eq!(placed(&mut writer, vec![every(100, "a", 9), without("b")]), [true; 2]);
    assert_eq!(listed(engine, NOW), [("a".into(), FIRST + 100)]);
    let taken = claim(&mut writer, 7, 10, FIRST);
    let plain: Vec<_> = taken.iter().map(|of| value_of(&of.value)[0]).collect();
    assert_eq!(plain, [1, 2], "those of `b` first");
    assert_eq!(placed(&mut writer, vec![without("a")]), [true]);
    assert_eq!(writer.next_message_ms(SCHEDULES_QUEUE).unwrap(), None);
    assert!(values(&claim(&mut writer, 9, 10, FIRST + 500)).is_empty());
}

/// A queue with a schedule of a later version, and one that never fires.
pub(super) fn what_cannot_fire_stays_or_is_refused(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let unknown = Message {
        queue: SCHEDULES_QUEUE.into(),
        due: Time::At(NOW),
        deduplication: Deduplication::Drop,
        value: vec![99],
        ..Message::default()
    };
    // No caller can name the queue.
    let parts = WriteParts { messages: vec![unknown], ..WriteParts::default() };
    let refused = AtomicWrite::new(parts, &Limits::default()).unwrap_err();
    assert!(refused.to_string().contains("U+0001"), "{refused}");
    let timing = Timing::Cron { pattern: "0 0 0 1 1 * 1969".into(), zone: "UTC".into() };
    let never = Schedule::new("never".into(), timing, Missed::Once).unwrap();
    let schedule = Some(Box::new(ScheduleChange::Set(never)));
    let message = Message { schedule, ..every(100, "a", 1) };
    let write = atomic(WriteParts { messages: vec![message], ..WriteParts::default() });
    match commit(&mut writer, vec![write]).remove(0) {
        Decision::Rejected(error) => assert!(error.to_string().contains("never fires"), "{error}"),
        other => panic!("{other:?}"),
    }
    assert_eq!(writer.next_message_ms(SCHEDULES_QUEUE).unwrap(), None);
}

/// Many messages are made in several transactions, and none is lost.
pub(super) fn a_long_pause_is_made_up_in_steps(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    assert_eq!(placed(&mut writer, vec![every(10, "a", 1)]), [true]);
    let now_ms = NOW + 25_000;
    let mut steps = 0;
    while writer.next_message_ms(SCHEDULES_QUEUE).unwrap().unwrap() <= now_ms {
        assert_eq!(fire(&mut writer, now_ms), 1);
        steps += 1;
    }
    assert_eq!((steps, writer.queue_depth("mail").unwrap()), (3, 2500));
    assert_eq!(writer.next_message_ms(SCHEDULES_QUEUE).unwrap(), Some(now_ms + 10));
}
