//! The rules of queues with limits and with groups.

use super::queues::{claim, end, failed, message, stats, values};
use super::*;
use openkv_core::codec::message_context;
use openkv_core::model::{
    DeadLetterChange, LimitAlgorithm, MessageDeletion, MessageState, Peek, QueueChange, QueueRule,
    Rate, RunLimit, TURNS_MAX, Time, queue_of_group,
};

pub(super) fn grouped(group: &str, value: u8) -> Message {
    let line = message_context::group_line(group);
    let message = message(value);
    Message { value: message_context::with_lines(&line, &message.value), ..message }
}

pub(super) fn enqueue(writer: &mut impl Writer, messages: Vec<Message>) -> Vec<i64> {
    let write = atomic(WriteParts { messages, ..WriteParts::default() });
    match commit(writer, vec![write]).remove(0) {
        Decision::CommittedWith(_, results) => {
            results.enqueued.iter().map(|of| of.id.unwrap()).collect()
        }
        other => panic!("{other:?}"),
    }
}

pub(super) fn limit(writer: &mut impl Writer, queue: RunLimit, group: RunLimit) -> bool {
    let change = QueueChange::Limit(QueueRule { queue, group });
    !writer.change_queue("mail", change, NOW, soon()).unwrap().ids.is_empty()
}

pub(super) fn running(most: u32) -> RunLimit {
    RunLimit { concurrency: Some(most), rate: None }
}

pub(super) fn rate(limit: u32, per_ms: i64) -> RunLimit {
    let rate = Some(Rate { algorithm: LimitAlgorithm::Fixed, limit, per_ms });
    RunLimit { concurrency: None, rate }
}

pub(super) fn next(writer: &mut impl Writer) -> Option<i64> {
    writer.next_message_ms("mail").unwrap()
}

pub(super) fn done(writer: &mut impl Writer, delivery: &Delivery, now_ms: i64) {
    let settled = Settlement::new(delivery.id, delivery.lock, Outcome::Done);
    assert_eq!(end(writer, settled, now_ms).settled, [true]);
}

/// Takes messages one at a time and acknowledges them, until none is left.
pub(super) fn drained(writer: &mut impl Writer, now_ms: i64) -> Vec<u8> {
    let mut found = Vec::new();
    while let Some(delivery) = claim(writer, 9, 1, now_ms).pop() {
        found.extend(values(std::slice::from_ref(&delivery)));
        done(writer, &delivery, now_ms);
    }
    found
}

pub(super) fn groups_take_turns(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let many = (10..20).map(|value| grouped("many", value)).collect();
    enqueue(&mut writer, many);
    enqueue(&mut writer, vec![grouped("one", 1), grouped("two", 2), grouped("two", 3), message(7)]);
    assert_eq!(stats(engine, NOW), [14, 0, 0, 0]);
    assert!(next(&mut writer).unwrap() <= NOW);
    let order = drained(&mut writer, NOW);
    assert_eq!(order.len(), 14);
    let at = |value: u8| order.iter().position(|found| *found == value).unwrap();
    // A message without a group has every other turn, and no group waits for another one.
    assert!(at(7) < 2 && at(1) < 5 && at(2) < 5 && at(3) < 8, "{order:?}");
    let of_many: Vec<u8> = order.iter().copied().filter(|value| *value >= 10).collect();
    assert_eq!(of_many, (10..20).collect::<Vec<_>>());
    // Nothing is left of them.
    assert_eq!(next(&mut writer), None);
    let names = read(&mut engine.reader().unwrap(), NOW, |snapshot| snapshot.queues()?.names(10));
    assert!(names.is_empty(), "{names:?}");
}

pub(super) fn a_group_runs_no_more_than_its_concurrency(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    assert!(limit(&mut writer, RunLimit::default(), running(1)));
    assert!(!limit(&mut writer, RunLimit::default(), running(1)), "the same");
    enqueue(&mut writer, vec![grouped("a", 1), grouped("a", 2), grouped("b", 3), message(4)]);
    let taken = claim(&mut writer, 7, 10, NOW);
    let mut found = values(&taken);
    found.sort_unstable();
    assert_eq!(found, [1, 3, 4]);
    assert!(claim(&mut writer, 8, 10, NOW).is_empty());
    assert_eq!(next(&mut writer), Some(NOW + 1000), "the end of a lock");
    let of = |value| taken.iter().find(|of| values(std::slice::from_ref(*of)) == [value]).unwrap();
    done(&mut writer, of(3), NOW);
    assert!(claim(&mut writer, 8, 10, NOW).is_empty());
    // The consumer of the first one has died.
    let again = claim(&mut writer, 9, 10, NOW + 1000);
    assert!(again.iter().all(|of| of.id != taken[0].id || of.attempts > 1));
    assert_eq!(stats(engine, NOW + 1000)[3], 2, "without a retry they are dead letters");
    assert_eq!(values(&again), [2]);
}

pub(super) fn a_failure_and_a_return_free_the_place(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    limit(&mut writer, RunLimit::default(), running(1));
    let retried = Message { backoff_ms: vec![500], ..grouped("a", 1) };
    enqueue(&mut writer, vec![retried, grouped("a", 2)]);
    let [first] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
    assert!(end(&mut writer, failed(&first, "no"), NOW).put_back);
    let [second] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
    assert_eq!(values(std::slice::from_ref(&second)), [2]);
    let returned = Settlement::new(second.id, second.lock, Outcome::Returned);
    assert_eq!(end(&mut writer, returned, NOW).settled, [true]);
    assert_eq!(drained(&mut writer, NOW), [2]);
    assert_eq!(next(&mut writer), Some(NOW + 500));
    assert!(claim(&mut writer, 8, 10, NOW + 499).is_empty());
    assert_eq!(next(&mut writer), Some(NOW + 500));
    let [again] = claim(&mut writer, 8, 10, NOW + 500).try_into().unwrap();
    assert_eq!((again.id, again.attempts), (first.id, 2));
}

pub(super) fn a_rate_says_when_the_next_message_goes(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    limit(&mut writer, rate(3, 1000), rate(1, 400));
    let all = vec![grouped("a", 1), grouped("a", 2), grouped("b", 3), message(4), message(5)];
    enqueue(&mut writer, all);
    let mut found = values(&claim(&mut writer, 7, 10, NOW));
    found.sort_unstable();
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(!found.contains(&2));
    assert!(claim(&mut writer, 7, 10, NOW + 1).is_empty());
    assert_eq!(next(&mut writer), Some(NOW + 1000));
    assert!(claim(&mut writer, 7, 10, NOW + 999).is_empty());
    let taken = claim_of(&mut writer, "mail", 8, 60_000, 10, NOW + 1000);
    assert_eq!(taken.len(), 2);
    // Without limits everything goes at once.
    limit(&mut writer, RunLimit::default(), rate(1, 60_000));
    enqueue(&mut writer, vec![grouped("c", 6), grouped("c", 7)]);
    let taken = claim_of(&mut writer, "mail", 9, 90_000, 10, NOW + 1000);
    assert_eq!(values(&taken), [6]);
    assert!(claim(&mut writer, 9, 10, NOW + 1000).is_empty());
    assert!(limit(&mut writer, RunLimit::default(), RunLimit::default()));
    assert_eq!(values(&claim(&mut writer, 10, 10, NOW + 1000)), [7]);
}

pub(super) fn a_queue_runs_no_more_than_its_concurrency(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    limit(&mut writer, running(2), RunLimit::default());
    enqueue(&mut writer, vec![grouped("a", 1), message(2), message(3), grouped("b", 4)]);
    let taken = claim(&mut writer, 7, 10, NOW);
    assert_eq!(taken.len(), 2);
    assert!(claim(&mut writer, 8, 10, NOW).is_empty());
    assert_eq!(next(&mut writer), Some(NOW + 1000));
    // Consumers of other processes learn of the free place by a commit.
    let settlements = vec![Settlement::new(taken[0].id, 7, Outcome::Done)];
    let work = Work { settlements, durable: true, ..Work::default() };
    let report = apply_at(&mut writer, work, NOW);
    assert!(report.queued && report.versions.1 > report.versions.0);
    assert!(next(&mut writer).unwrap() <= NOW);
    assert_eq!(claim(&mut writer, 8, 10, NOW).len(), 1);
    assert!(claim(&mut writer, 9, 10, NOW).is_empty());
    let cancelled = Settlement::cancelled("mail", taken[1].id);
    assert_eq!(end(&mut writer, cancelled, NOW).settled, [true]);
    assert_eq!(claim(&mut writer, 9, 10, NOW).len(), 1);
}

pub(super) fn a_group_is_paused_drained_and_looked_at(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let group = queue_of_group("mail", "a");
    let dying = Message { due: Time::At(NOW), ..grouped("a", 1) };
    let ids = enqueue(&mut writer, vec![dying, grouped("a", 2), grouped("b", 3)]);
    writer.change_queue(&group, QueueChange::Pause, NOW, soon()).unwrap();
    assert_eq!(drained(&mut writer, NOW), [3]);
    assert!(next(&mut writer).unwrap() > NOW + 1_000_000_000_000, "not before it is resumed");
    writer.change_queue(&group, QueueChange::Resume, NOW, soon()).unwrap();
    let [first] = claim(&mut writer, 7, 1, NOW).try_into().unwrap();
    assert_eq!(first.id, ids[0]);
    let mut seen = Vec::new();
    read(&mut engine.reader().unwrap(), NOW, |snapshot| {
        snapshot.queues()?.peek("mail", Peek::default(), &mut |row, cursor| {
            seen.push((row.id, cursor.place.state()));
            true
        })
    });
    assert_eq!(seen, [(ids[1], MessageState::Pending), (ids[0], MessageState::Processing)]);
    // Its dead letter is one of the queue, and goes back into its group.
    end(&mut writer, failed(&first, "no"), NOW);
    assert_eq!(stats(engine, NOW), [1, 0, 0, 1]);
    writer.change_queue(&group, QueueChange::Pause, NOW, soon()).unwrap();
    let requeue = DeadLetterChange::Requeue(ids[0]);
    assert_eq!(writer.change_dead_letters("mail", &requeue, NOW, soon()).unwrap().count, 1);
    assert!(claim(&mut writer, 8, 10, NOW).is_empty(), "its group is paused");
    assert_eq!(writer.queue_depth("mail").unwrap(), 2);
    assert_eq!(
        writer.delete_message("mail", ids[1], NOW, soon()).unwrap(),
        MessageDeletion::Deleted
    );
    let drain = QueueChange::Drain { until_ms: NOW, delayed: false, max: 10 };
    let more = enqueue(&mut writer, vec![grouped("b", 4)]);
    assert_eq!(writer.change_queue(&group, drain, NOW, soon()).unwrap().ids, [ids[0]]);
    assert_eq!(writer.change_queue("mail", drain, NOW, soon()).unwrap().ids, more);
    writer.change_queue(&group, QueueChange::Resume, NOW, soon()).unwrap();
    assert!(claim(&mut writer, 8, 10, NOW).is_empty());
    assert_eq!(stats(engine, NOW), [0; 4]);
}

pub(super) fn a_delayed_message_of_a_group_goes_when_it_is_due(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let later = Message { due: Time::At(NOW + 50), ..grouped("a", 1) };
    let soonest = Message { due: Time::At(NOW + 20), ..grouped("a", 2) };
    enqueue(&mut writer, vec![later, soonest]);
    assert_eq!(next(&mut writer), Some(NOW + 20));
    assert!(claim(&mut writer, 7, 10, NOW).is_empty());
    assert_eq!(values(&claim(&mut writer, 7, 10, NOW + 20)), [2]);
    assert!(claim(&mut writer, 7, 10, NOW + 21).is_empty());
    assert_eq!(next(&mut writer), Some(NOW + 50));
    assert_eq!(values(&claim(&mut writer, 7, 10, NOW + 50)), [1]);
}

/// A claim delivered nothing while more groups had become due than one transaction looks at.
pub(super) fn many_groups_that_become_due_do_not_keep_a_claim_from_delivering(
    engine: &impl Engine,
) {
    let mut writer = engine.writer().unwrap();
    let delayed =
        |group: usize| Message { due: Time::At(NOW + 50), ..grouped(&group.to_string(), 1) };
    let groups: Vec<usize> = (0..=TURNS_MAX).collect();
    for part in groups.chunks(100) {
        enqueue(&mut writer, part.iter().copied().map(delayed).collect());
    }
    assert_eq!(claim(&mut writer, 7, 10, NOW + 50).len(), 10);
}
