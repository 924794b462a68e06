//! The rules of messages in the replication log.

use std::collections::BTreeMap;

use super::groups::{done, drained, grouped, limit, next, running};
use super::replication::{assert_gapless, segments};
use super::*;
use crate::memory::MemoryEngine;
use openkv_core::model::{
    DeadLetterChange, Deduplication, LogBounds, LogSegment, LogSettings, MessageDeletion, Missed,
    Peek, Reason, RunLimit, SCHEDULES_QUEUE, Schedule, ScheduleChange, Segment, Setting, Timing,
};

const QUEUES: [&str; 2] = ["", "mail"];

fn log_messages(writer: &mut impl Writer, messages: bool) {
    let bounds = LogBounds { retention_ms: 1 << 40, bytes_max: 1 << 40 };
    let settings = LogSettings {
        log: Setting::On(bounds),
        messages: Some(messages),
        ..LogSettings::default()
    };
    writer.set_log(&settings, super::history::ORIGIN, NOW, soon()).unwrap();
}

/// What is known of each message, by its number: all but the lock, and the deliveries of one that has a lock.
type Messages = BTreeMap<i64, String>;

fn messages_in(reader: &mut impl Reader) -> Messages {
    read(reader, NOW, |snapshot| {
        let mut found = Messages::new();
        for queue in [QUEUES[0], QUEUES[1], SCHEDULES_QUEUE] {
            snapshot.queues()?.peek(queue, Peek::default(), &mut |message, _| {
                let attempts = message.lock_end_ms.is_none().then_some(message.attempts);
                let facts = (message.priority, attempts, message.enqueued_ms, message.due_ms);
                found.insert(message.id, format!("{queue} {facts:?} {:?}", message.value));
                true
            })?;
            snapshot.queues()?.dead_letters(queue, (i64::MIN, i64::MIN), &mut |letter| {
                found.insert(letter.id, format!("{queue} {letter:?}"));
                true
            })?;
        }
        Ok(found)
    })
}

/// Equal but for the deliveries of messages with a lock, which a log does not have.
fn assert_same(found: &Messages, expected: &Messages) {
    let without = |messages: &Messages, other: &Messages| -> Messages {
        let unknown = |text: &str| text.contains(" (") && text.contains("None,");
        let one = |(id, text): (&i64, &String)| {
            let hidden = unknown(text) || other.get(id).is_some_and(|other| unknown(other));
            (*id, if hidden { String::new() } else { text.clone() })
        };
        messages.iter().map(one).collect()
    };
    assert_eq!(without(found, expected), without(expected, found));
}

fn repeated(all: &[Segment]) -> Messages {
    messages_in(&mut copy_of(all).reader().unwrap())
}

fn copy_of(all: &[Segment]) -> MemoryEngine {
    let copy = MemoryEngine::new();
    let mut writer = copy.writer().unwrap();
    for Segment { first, last, at_ms, changes } in all {
        let segment = LogSegment { first: *first, last: *last, at_ms: *at_ms, changes };
        writer.replay(segment, soon()).unwrap();
    }
    copy
}

/// One step of a random life of messages.
fn step(writer: &mut impl Writer, draw: &mut impl FnMut(u64) -> u64, held: &mut Vec<(i64, i64)>) {
    let message = |draw: &mut dyn FnMut(u64) -> u64| Message {
        queue: QUEUES[draw(2) as usize].into(),
        priority: draw(3) as u8,
        due: Time::At(NOW + draw(2).cast_signed()),
        backoff_ms: vec![5; draw(2) as usize],
        deduplication_key: (draw(2) == 0).then(|| format!("key {}", draw(4))),
        deduplication: Deduplication::ALL[draw(4) as usize],
        dead_retention_ms: (draw(2) == 0).then_some(1 << 40),
        keys_if_undelivered: if draw(2) == 0 { vec![key("undelivered")] } else { vec![] },
        schedule: None,
        value: vec![draw(200) as u8],
    };
    match draw(10) {
        0 | 1 => {
            let many = 1 + draw(3);
            let one = |draw: &mut dyn FnMut(u64) -> u64| {
                let mut message = message(draw);
                if message.queue.is_empty() {
                    (message.deduplication_key, message.dead_retention_ms) = (None, None);
                }
                atomic(WriteParts { messages: vec![message], ..WriteParts::default() })
            };
            let writes = (0..many).map(|_| one(draw)).collect();
            commit(writer, writes);
        }
        2 | 3 => {
            let queue = QUEUES[draw(2) as usize];
            let lock = 1 + draw(1000).cast_signed();
            let taken = claim_of(writer, queue, lock, LOCK_MS, 1 + draw(2) as usize, NOW + 10);
            held.extend(taken.iter().map(|delivery| (delivery.id, delivery.lock)));
        }
        4 | 5 if !held.is_empty() => {
            let (id, lock) = held.swap_remove(draw(held.len() as u64) as usize);
            let outcome = match draw(3) {
                0 => Outcome::Done,
                1 => Outcome::Failed,
                _ => Outcome::Returned,
            };
            let reason = Some(Reason::new("Error", "why"));
            let settlements = vec![Settlement { reason, ..Settlement::new(id, lock, outcome) }];
            apply_at(writer, Work { settlements, durable: true, ..Work::default() }, NOW);
        }
        6 => {
            let name = format!("schedule {}", draw(3));
            let timing = Timing::Every { every_ms: 10 + draw(2).cast_signed(), offset_ms: 0 };
            let set = Schedule::new(name.clone(), timing, Missed::All).unwrap();
            let change = match draw(3) {
                0 => ScheduleChange::Remove(name),
                _ => ScheduleChange::Set(set),
            };
            let (queue, schedule) = ("mail".to_owned(), Some(Box::new(change)));
            let message = Message { queue, schedule, ..message(draw) };
            commit(
                writer,
                vec![atomic(WriteParts { messages: vec![message], ..WriteParts::default() })],
            );
        }
        7 => {
            let work = Work { fires: true, durable: true, ..Work::default() };
            apply_at(writer, work, NOW + draw(40).cast_signed());
        }
        8 => {
            let id = 1 + draw(20).cast_signed();
            let change = match draw(3) {
                0 => DeadLetterChange::Requeue(id),
                1 => DeadLetterChange::Delete(id),
                _ => DeadLetterChange::Purge { before_ms: NOW + 1, max: 1 },
            };
            writer.change_dead_letters("mail", &change, NOW, soon()).unwrap();
        }
        _ => {
            let id = 1 + draw(20).cast_signed();
            let deletion = writer.delete_message("mail", id, NOW, soon()).unwrap();
            assert!(deletion != MessageDeletion::Locked || !held.is_empty());
        }
    }
}

pub(super) fn a_copy_has_the_messages_of_every_commit(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    log_messages(&mut writer, true);
    let mut state = 0x5eed_u64;
    let mut draw = move |below: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (state >> 33) % below
    };
    let mut held = Vec::new();
    for _ in 0..12 {
        for _ in 0..20 {
            step(&mut writer, &mut draw, &mut held);
        }
        let all = segments(&mut reader, 0);
        assert_gapless(&all, 0);
        let expected = messages_in(&mut reader);
        assert_same(&repeated(&all), &expected);
    }
    // What was enqueued by one commit of a batch belongs to it.
    let message = |value| Message { value: vec![value], due: Time::At(NOW), ..Message::default() };
    let one =
        |value| atomic(WriteParts { messages: vec![message(value)], ..WriteParts::default() });
    commit(&mut writer, vec![one(1), one(2), one(3)]);
    let last = segments(&mut reader, 0).pop().unwrap();
    let sent = openkv_core::codec::change_log::messages(last.first, &last.changes).unwrap();
    let versions: Vec<u64> = sent.iter().map(|message| message.version).collect();
    assert_eq!(versions, [last.first, last.first + 1, last.last]);
}

/// The turns of groups of which consumers had a message were gone in the copy, or waited for the end of a lock that
/// a copy does not have.
pub(super) fn a_copy_delivers_what_consumers_of_the_original_had(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    log_messages(&mut writer, true);
    let none = RunLimit::default();
    for (of_queue, of_group) in [(none, none), (none, running(1)), (running(1), none)] {
        limit(&mut writer, of_queue, of_group);
        groups::enqueue(&mut writer, vec![grouped("a", 1), grouped("a", 2), grouped("b", 3)]);
        let taken = queues::claim(&mut writer, 7, 10, NOW);
        assert!(queues::claim(&mut writer, 8, 10, NOW).is_empty(), "it has looked at all groups");
        let mut copy = copy_of(&segments(&mut reader, 0)).writer().unwrap();
        assert_eq!(next(&mut copy), Some(NOW + 1000), "the end of the locks");
        let mut found = drained(&mut copy, NOW + 1000);
        found.sort_unstable();
        assert_eq!((found, next(&mut copy)), (vec![1, 2, 3], None), "{of_queue:?} {of_group:?}");
        taken.iter().for_each(|delivery| done(&mut writer, delivery, NOW));
        drained(&mut writer, NOW);
    }
}

/// A batch that ends, sends and takes messages, and finds a lock that has expired.
pub(super) fn all_that_one_batch_does_is_logged(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    log_messages(&mut writer, true);
    let mail = |value, backoff_ms: &[u32]| {
        let (queue, backoff_ms) = ("mail".to_owned(), backoff_ms.to_vec());
        let due = Time::At(NOW);
        let keys_if_undelivered = vec![key("undelivered")];
        let message = Message {
            queue,
            due,
            backoff_ms,
            keys_if_undelivered,
            value: vec![value],
            ..Message::default()
        };
        atomic(WriteParts { messages: vec![message], ..WriteParts::default() })
    };
    commit(&mut writer, vec![mail(1, &[]), mail(2, &[7]), mail(3, &[])]);
    let taken = claim_of(&mut writer, "mail", 7, LOCK_MS, 3, NOW);
    let of = |value| taken.iter().find(|delivery| delivery.value == [value]).unwrap().id;
    let later = NOW + LOCK_MS + 1;
    let work = Work {
        writes: vec![mail(4, &[]), mail(5, &[])],
        settlements: vec![Settlement::new(of(3), 7, Outcome::Done)],
        claims: vec![Claim { queue: "mail".into(), max: 1, lock_ms: LOCK_MS, lock: 8 }],
        durable: true,
        ..Work::default()
    };
    let report = apply_at(&mut writer, work, later);
    assert_eq!((report.lost, report.deliveries[0].len()), (2, 1));
    let expected = read(&mut reader, later, |snapshot| {
        let letters = snapshot.queues()?.stats("mail")?;
        Ok((letters.pending + letters.delayed + letters.processing, letters.dead))
    });
    assert_eq!(expected, (3, 1), "the retry, and both new ones; the one without a retry");
    let all = segments(&mut reader, 0);
    assert_same(&repeated(&all), &messages_in(&mut reader));
    let last = all.last().unwrap();
    let messages = openkv_core::codec::change_log::messages(last.first, &last.changes).unwrap();
    let mut gone: Vec<_> = messages.iter().filter(|message| message.kept.is_none()).collect();
    assert_eq!(gone.pop().map(|gone| gone.id), Some(of(3)));
    assert_eq!((messages.len(), gone.len()), (5, 0));
}

pub(super) fn messages_are_logged_only_when_requested(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let sent = || vec![enqueue(1, NOW, &[], &[])];
    let acknowledge = |writer: &mut _| {
        let taken = claim(writer, 7, NOW);
        let settlements = vec![Settlement::new(taken[0].0, 7, Outcome::Done)];
        let work = Work { settlements, durable: true, ..Work::default() };
        let (before, after) = apply_at(writer, work, NOW).versions;
        after - before
    };
    log_messages(&mut writer, false);
    commit(&mut writer, sent());
    assert_eq!(acknowledge(&mut writer), 0, "the end of a delivery is no commit");
    assert_eq!(repeated(&segments(&mut reader, 0)), Messages::new());
    log_messages(&mut writer, true);
    let before = segments(&mut reader, 0).last().unwrap().last;
    commit(&mut writer, sent());
    let found = read(&mut reader, NOW, |snapshot| snapshot.log()?.state());
    assert!(found.log.unwrap().messages);
    assert_eq!(acknowledge(&mut writer), 1);
    let has: Vec<usize> = segments(&mut reader, before)
        .iter()
        .map(|one| openkv_core::codec::change_log::messages(one.first, &one.changes).unwrap().len())
        .collect();
    assert_eq!(has, [1, 1]);
    // The setting stays when a follower turns on a log that is on.
    writer.set_log(&LogSettings::default(), super::history::ORIGIN, NOW, soon()).unwrap();
    let found = read(&mut reader, NOW, |snapshot| snapshot.log()?.state());
    assert!(found.log.unwrap().messages);
}
