//! The rules of named queues.

use super::*;
use openkv_core::codec::message_context::value_of;
use openkv_core::model::{
    DeadLetter, DeadLetterChange, MessageDeletion, MessagePlace, MessageState, Peek, PeekCursor,
    Peeked, Reason, Renewal, Time,
};

pub(super) fn message(value: u8) -> Message {
    Message { queue: "mail".into(), due: Time::At(NOW), value: vec![value], ..Message::default() }
}

pub(super) fn enqueue(writer: &mut impl Writer, messages: Vec<Message>) {
    commit(writer, vec![atomic(WriteParts { messages, ..WriteParts::default() })]);
}

pub(super) fn claim(writer: &mut impl Writer, lock: i64, max: usize, now_ms: i64) -> Vec<Delivery> {
    claim_of(writer, "mail", lock, 1000, max, now_ms)
}

pub(super) fn values(deliveries: &[Delivery]) -> Vec<u8> {
    deliveries.iter().map(|delivery| value_of(&delivery.value)[0]).collect()
}

pub(super) fn end(writer: &mut impl Writer, settlement: Settlement, now_ms: i64) -> Report {
    let settlements = vec![settlement];
    apply_at(writer, Work { settlements, durable: true, ..Work::default() }, now_ms)
}

pub(super) fn failed(delivery: &Delivery, reason: &str) -> Settlement {
    let reason = Some(Reason::new("Error", reason));
    Settlement { reason, ..Settlement::new(delivery.id, delivery.lock, Outcome::Failed) }
}

pub(super) fn stats(engine: &impl Engine, now_ms: i64) -> [u64; 4] {
    let mut reader = engine.reader().unwrap();
    let found = read(&mut reader, now_ms, |snapshot| snapshot.queues()?.stats("mail"));
    [found.pending, found.delayed, found.processing, found.dead]
}

fn letters(engine: &impl Engine, queue: &str, after: (i64, i64), now_ms: i64) -> Vec<DeadLetter> {
    read(&mut engine.reader().unwrap(), now_ms, |snapshot| {
        let mut found = Vec::new();
        snapshot.queues()?.dead_letters(queue, after, &mut |letter| {
            found.push(letter);
            found.len() < 2
        })?;
        Ok(found)
    })
}

fn change(writer: &mut impl Writer, change: DeadLetterChange, now_ms: i64) -> usize {
    let requeues = matches!(change, DeadLetterChange::Requeue(_));
    let done = writer.change_dead_letters("mail", &change, now_ms, soon()).unwrap();
    let (before, last) = done.versions;
    // Other changes are commits where the log has messages.
    let commits = u64::from(done.count > 0);
    assert!((if requeues { commits } else { 0 }..=commits).contains(&(last - before)));
    done.count
}

pub(super) fn named_queues_are_separate(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let other = Message { queue: "other".into(), ..message(2) };
    let deno = Message { queue: String::new(), ..message(3) };
    enqueue(&mut writer, vec![message(1), other, deno]);
    for (queue, value) in [("mail", 1), ("other", 2), ("", 3), ("nobody's", 0)] {
        let expected: &[u8] = if value == 0 { &[] } else { &[value] };
        assert_eq!(values(&claim_of(&mut writer, queue, 9, 1000, 10, NOW)), expected, "{queue}");
    }
    assert_eq!(writer.next_message_ms("mail").unwrap(), Some(NOW + 1000));
    assert_eq!(writer.next_message_ms("nobody's").unwrap(), None);
}

/// A writer keeps the number; another writer and readers count.
pub(super) fn the_depth_is_the_number_of_live_messages(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let checked = |writer: &mut _, now_ms| {
        let [pending, delayed, processing, _] = stats(engine, now_ms);
        let depth = Writer::queue_depth(writer, "mail").unwrap();
        assert_eq!(depth, pending + delayed + processing);
        depth
    };
    assert_eq!(checked(&mut writer, NOW), 0);
    let keyed = |value| Message { deduplication_key: Some("k".into()), ..message(value) };
    let late = Message { due: Time::At(NOW + 5000), ..message(3) };
    let kept = Message { dead_retention_ms: Some(9000), ..message(4) };
    enqueue(&mut writer, vec![keyed(1), keyed(2), late, kept, message(5)]);
    assert_eq!(checked(&mut writer, NOW), 4);
    let claimed = claim(&mut writer, 1, 3, NOW);
    assert_eq!(checked(&mut writer, NOW), 4);
    let [first, second, third] = claimed.as_slice() else { panic!("{claimed:?}") };
    let done = || Settlement::new(first.id, 1, Outcome::Done);
    end(&mut writer, done(), NOW);
    end(&mut writer, done(), NOW);
    assert_eq!(checked(&mut writer, NOW), 3);
    end(&mut writer, Settlement::new(third.id, 1, Outcome::Returned), NOW);
    assert_eq!(checked(&mut writer, NOW), 3);
    end(&mut writer, failed(second, "dies"), NOW);
    assert_eq!(checked(&mut writer, NOW), 2);
    assert_eq!(change(&mut writer, DeadLetterChange::Requeue(second.id), NOW), 1);
    assert_eq!(change(&mut writer, DeadLetterChange::Requeue(second.id), NOW), 0);
    assert_eq!(checked(&mut writer, NOW), 3);
    // Without renewal of these locks the next claim counts both as failed, and they are dead.
    assert_eq!(claim(&mut writer, 2, 2, NOW).len(), 2);
    claim(&mut writer, 3, 1, NOW + 1001);
    assert_eq!(checked(&mut writer, NOW + 1001), 1);
}

/// In Deno's queue and in a named one; without a delay a message is due in its own batch.
pub(super) fn a_delay_counts_from_the_time_of_the_batch(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    for (lock, queue, now_ms) in [(1, "", NOW), (10, "mail", NOW + 100)] {
        let of = |value, ms| Message {
            queue: queue.into(),
            due: Time::After(ms),
            value: vec![value],
            ..Message::default()
        };
        let messages = vec![of(1, 0), of(2, 50)];
        let claims = vec![Claim { queue: queue.into(), max: 10, lock_ms: 1000, lock }];
        let writes = vec![atomic(WriteParts { messages, ..WriteParts::default() })];
        let work = Work { writes, claims, durable: true, ..Work::default() };
        let mut report = apply_at(&mut writer, work, now_ms);
        assert_eq!(values(&report.deliveries.remove(0)), [1], "{queue:?}");
        let mut later = |lock, ms| claim_of(&mut writer, queue, lock, 1000, 10, now_ms + ms);
        assert_eq!(later(lock + 1, 49), [], "{queue:?}");
        assert_eq!(values(&later(lock + 2, 50)), [2], "{queue:?}");
    }
}

pub(super) fn higher_priorities_come_first_then_earlier_due_times(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let of =
        |value, priority, due_ms| Message { priority, due: Time::At(due_ms), ..message(value) };
    let all = [
        of(1, 0, NOW),
        of(2, 0, NOW - 5),
        of(3, 9, NOW + 10),
        of(4, 5, NOW),
        of(5, 5, NOW),
        of(6, 9, NOW - 1),
    ];
    enqueue(&mut writer, all.to_vec());
    let first = claim(&mut writer, 1, 2, NOW);
    assert_eq!(values(&first), [6, 4]);
    assert_eq!(values(&claim(&mut writer, 2, 10, NOW)), [5, 2, 1]);
    assert_eq!(writer.next_message_ms("mail").unwrap(), Some(NOW + 10));
    assert_eq!(values(&claim(&mut writer, 3, 10, NOW + 10)), [3]);
}

pub(super) fn a_deduplication_key_is_taken_until_its_message_is_removed(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let keyed = |value, queue: &str| Message {
        queue: queue.into(),
        deduplication_key: Some("k".into()),
        ..message(value)
    };
    enqueue(&mut writer, vec![keyed(1, "mail"), keyed(2, "mail"), keyed(3, "other")]);
    enqueue(&mut writer, vec![keyed(4, "mail")]);
    let claimed = claim(&mut writer, 1, 10, NOW);
    assert_eq!(values(&claimed), [1]);
    enqueue(&mut writer, vec![keyed(5, "mail")]);
    assert!(claim(&mut writer, 2, 10, NOW).is_empty(), "it is being handled");
    end(&mut writer, Settlement::new(claimed[0].id, 1, Outcome::Done), NOW);
    enqueue(&mut writer, vec![keyed(6, "mail"), keyed(7, "mail")]);
    let claimed = claim(&mut writer, 3, 10, NOW);
    assert_eq!(values(&claimed), [6]);
    end(&mut writer, failed(&claimed[0], "dies"), NOW);
    enqueue(&mut writer, vec![keyed(8, "mail")]);
    // Requeued beside the message that has the deduplication key now.
    assert_eq!(change(&mut writer, DeadLetterChange::Requeue(claimed[0].id), NOW), 1);
    enqueue(&mut writer, vec![keyed(9, "mail")]);
    let mut both = values(&claim(&mut writer, 4, 10, NOW));
    both.sort_unstable();
    assert_eq!(both, [6, 8]);
}

pub(super) fn a_message_with_an_expired_lock_is_due_at_once(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    enqueue(&mut writer, vec![Message { backoff_ms: vec![60_000], ..message(1) }]);
    let first = claim(&mut writer, 1, 10, NOW);
    assert_eq!(first[0].attempts, 1);
    assert!(claim(&mut writer, 2, 10, NOW + 999).is_empty());
    assert_eq!(writer.next_message_ms("mail").unwrap(), Some(NOW + 1000));
    let second = claim(&mut writer, 3, 10, NOW + 1000);
    assert_eq!((second[0].id, second[0].attempts), (first[0].id, 2));
    assert_eq!(end(&mut writer, failed(&first[0], "late"), NOW + 1000).settled, [false]);
    assert!(claim(&mut writer, 4, 10, NOW + 2000).is_empty(), "no interval was left");
    let dead = letters(engine, "mail", (0, 0), NOW + 2000);
    assert_eq!(dead[0].reason.name(), "LockExpired");
    assert_eq!(dead[0].attempts, 2);
}

pub(super) fn settlements_and_renewals_report_whether_the_lock_held(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    enqueue(&mut writer, vec![message(1), message(2)]);
    let [a, b] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
    let settle = |delivery: &Delivery, lock| Settlement::new(delivery.id, lock, Outcome::Done);
    let renew = |delivery: &Delivery, lock| Renewal { id: delivery.id, lock, lock_ms: 5000 };
    let work = Work {
        settlements: vec![settle(&a, 8), settle(&a, 7), settle(&a, 7), settle(&a, 0)],
        renewals: vec![renew(&a, 7), renew(&b, 8), renew(&b, 7), renew(&b, 0)],
        durable: true,
        ..Work::default()
    };
    let report = apply_at(&mut writer, work, NOW);
    assert_eq!(report.settled, [false, true, false, false]);
    assert_eq!(report.renewed, [false, false, true, false]);
    assert_eq!(writer.next_message_ms("mail").unwrap(), Some(NOW + 5000));
    // An expired lock stays valid until another consumer claims the message.
    assert_eq!(end(&mut writer, settle(&b, 7), NOW + 6000).settled, [true]);
}

/// A late writer found that locks which it was about to renew had expired, and claimed the messages
/// of its own handlers a second time.
pub(super) fn an_expired_lock_renewed_with_a_claim_is_kept(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let once_more = |value| Message { backoff_ms: vec![0], ..message(value) };
    enqueue(&mut writer, vec![once_more(1), once_more(2)]);
    let [kept, lost] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
    let late = NOW + 5000;
    let claim = |lock| Claim { queue: "mail".into(), max: 10, lock_ms: 1000, lock };
    let renewals = vec![Renewal { id: kept.id, lock: 7, lock_ms: 1000 }];
    let claims = vec![claim(8)];
    let work = Work { renewals, claims, durable: true, ..Work::default() };
    let report = apply_at(&mut writer, work, late);
    assert_eq!(report.renewed, [true]);
    let claimed: Vec<_> = report.deliveries[0].iter().map(|d| (d.id, d.attempts)).collect();
    assert_eq!(claimed, [(lost.id, 2)], "only what nobody renews");
    assert_eq!(writer.next_message_ms("mail").unwrap(), Some(late + 1000));
}

pub(super) fn what_is_returned_keeps_its_place_and_its_attempts(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    enqueue(&mut writer, vec![message(1), message(2)]);
    let first = claim(&mut writer, 1, 1, NOW + 5);
    let returned = end(&mut writer, Settlement::new(first[0].id, 1, Outcome::Returned), NOW + 9);
    assert!(returned.queued && returned.put_back);
    let again = claim(&mut writer, 2, 10, NOW + 10);
    assert_eq!(values(&again), [1, 2]);
    assert_eq!(again[0].attempts, 1);
    end(&mut writer, failed(&again[0], "dies"), NOW + 11);
    assert_eq!(letters(engine, "mail", (0, 0), NOW + 11)[0].first_ms, NOW + 10);
}

pub(super) fn dead_messages_are_kept_listed_and_purged(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let kept = |value| Message {
        backoff_ms: vec![10],
        keys_if_undelivered: vec![key("dead")],
        ..message(value)
    };
    let purged = Message { dead_retention_ms: Some(100), ..message(4) };
    enqueue(&mut writer, vec![kept(1), message(2), message(3), purged]);
    let claimed = claim(&mut writer, 1, 10, NOW + 1);
    let delayed = Settlement { delay_ms: Some(20), ..failed(&claimed[0], "first") };
    end(&mut writer, delayed, NOW + 2);
    assert!(claim(&mut writer, 2, 10, NOW + 21).is_empty());
    let again = claim(&mut writer, 2, 10, NOW + 22);
    assert!(end(&mut writer, failed(&claimed[1], "second"), NOW + 23).settled[0]);
    end(&mut writer, failed(&again[0], "last"), NOW + 23);
    end(&mut writer, failed(&claimed[2], "third"), NOW + 24);
    assert!(end(&mut writer, failed(&claimed[3], "fourth"), NOW + 24).purge_ahead);

    assert_eq!(get(&mut reader, "dead").unwrap().1, [1]);
    let expected = DeadLetter {
        id: claimed[0].id,
        attempts: 2,
        enqueued_ms: NOW,
        first_ms: NOW + 1,
        last_ms: NOW + 22,
        died_ms: NOW + 23,
        reason: Reason::new("Error", "last"),
        value: vec![1],
    };
    let page = letters(engine, "mail", (0, 0), NOW + 24);
    assert_eq!(page[0], expected);
    let (second, rest) = ((page[1].died_ms, page[1].id), NOW + 24);
    assert_eq!(page[1].value, [2]);
    let values = |letters: Vec<DeadLetter>| letters.iter().map(|l| l.value[0]).collect::<Vec<_>>();
    assert_eq!(values(letters(engine, "mail", second, rest)), [3, 4]);
    // A dead letter whose retention is over is absent, swept or not.
    assert_eq!(writer.next_deadlines().unwrap().purge_ms, Some(NOW + 124));
    assert_eq!(values(letters(engine, "mail", second, NOW + 124)), [3]);
    assert_eq!(stats(engine, NOW + 124)[3], 4);
    apply_at(&mut writer, Work { purge_max: 5, ..Work::default() }, NOW + 124);
    assert_eq!((stats(engine, NOW + 124)[3], writer.next_deadlines().unwrap().purge_ms), (3, None));
    assert!(letters(engine, "other", (0, 0), NOW).is_empty());

    let of_other = DeadLetterChange::Delete(claimed[0].id);
    assert_eq!(writer.change_dead_letters("other", &of_other, NOW, soon()).unwrap().count, 0);
    assert_eq!(change(&mut writer, DeadLetterChange::Delete(claimed[0].id), NOW + 30), 1);
    assert_eq!(change(&mut writer, DeadLetterChange::Delete(claimed[0].id), NOW + 30), 0);
    let purge = |before_ms, max| DeadLetterChange::Purge { before_ms, max };
    assert_eq!(change(&mut writer, purge(NOW + 23, 9), NOW + 30), 0);
    assert_eq!(change(&mut writer, purge(NOW + 99, 1), NOW + 30), 1);
    assert_eq!(values(letters(engine, "mail", (0, 0), NOW + 30)), [3]);
}

fn peeked(
    engine: &impl Engine,
    state: Option<MessageState>,
    now_ms: i64,
) -> Vec<(u8, MessageState, Option<i64>)> {
    let all = listed(engine, "mail", state, now_ms);
    all.into_iter()
        .map(|(message, place)| {
            assert_eq!(message.attempts, u32::from(message.lock_end_ms.is_some()));
            assert_eq!(message.enqueued_ms, NOW);
            (message.value[0], place.state(), message.lock_end_ms)
        })
        .collect()
}

/// Looks at a queue in pages of two, each from its cursor and a second after the one before.
fn listed(
    engine: &impl Engine,
    queue: &str,
    state: Option<MessageState>,
    now_ms: i64,
) -> Vec<(Peeked, MessagePlace)> {
    let (mut found, mut peek, mut at_ms) = (Vec::new(), Peek { state, after: None }, now_ms);
    loop {
        let page = read(&mut engine.reader().unwrap(), at_ms, |snapshot| {
            let mut page = Vec::new();
            snapshot.queues()?.peek(queue, peek, &mut |message, cursor| {
                page.push((message, cursor));
                page.len() < 2
            })?;
            Ok(page)
        });
        let Some((_, last)) = page.last() else { return found };
        assert_eq!(last.as_of_ms, now_ms);
        (peek.after, at_ms) = (Some(PeekCursor::parse(&last.text()).unwrap()), at_ms + 1000);
        found.extend(page.into_iter().map(|(message, cursor)| (message, cursor.place)));
    }
}

pub(super) fn messages_are_looked_at_and_not_taken(engine: &impl Engine) {
    use MessageState::{Delayed, Pending, Processing};
    let mut writer = engine.writer().unwrap();
    let at =
        |value, priority, due_ms| Message { priority, due: Time::At(due_ms), ..message(value) };
    enqueue(&mut writer, vec![at(1, 9, NOW), at(2, 9, NOW)]);
    assert_eq!(values(&claim(&mut writer, 7, 1, NOW)), [1]);
    assert_eq!(values(&claim_of(&mut writer, "mail", 8, 5, 1, NOW)), [2]);
    let other = Message { queue: "other".into(), ..message(9) };
    let messages =
        vec![at(3, 0, NOW - 1), at(4, 0, NOW - 2), at(5, 5, NOW + 20), at(6, 5, NOW), other];
    enqueue(&mut writer, messages);
    let (short, long) = (Some(NOW + 5), Some(NOW + 1000));
    let expected = [
        (2, Pending, short),
        (6, Pending, None),
        (4, Pending, None),
        (3, Pending, None),
        (5, Delayed, None),
        (1, Processing, long),
    ];
    let before = stats(engine, NOW + 10);
    assert_eq!(peeked(engine, None, NOW + 10), expected);
    for state in MessageState::ALL {
        let found = peeked(engine, Some(state), NOW + 10);
        let wanted: Vec<_> = expected.iter().filter(|(_, of, _)| *of == state).copied().collect();
        assert_eq!(found, wanted, "{state:?}");
    }
    assert_eq!(peeked(engine, Some(Processing), NOW).len(), 2);
    assert_eq!(peeked(engine, Some(Delayed), NOW + 20), []);
    assert_eq!(stats(engine, NOW + 10), before);
}

/// `peek` listed an urgent message that was not due before all that were, and one whose lock had expired behind all,
/// while a consumer got them in another order.
pub(super) fn peek_lists_in_the_order_of_delivery(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let mut random = 27;
    let mut below = |bound: u64| {
        random = u64::wrapping_add(u64::wrapping_mul(random, 6_364_136_223_846_793_005), 99);
        (random >> 33) % bound
    };
    // A clock goes on, also from one queue to the next.
    for (queue, base) in [("a", NOW), ("b", NOW + 1000), ("c", NOW + 2000), ("", NOW + 3000)] {
        let messages = (0..60).map(|value| Message {
            queue: queue.into(),
            priority: if queue.is_empty() { 0 } else { below(10) as u8 },
            due: Time::At(base + below(60) as i64 - 40),
            backoff_ms: vec![5; 5],
            value: vec![value],
            ..Message::default()
        });
        enqueue(&mut writer, messages.collect());
        // Of those that are due some are taken, and fail, go back, stay locked for long or for a while.
        for step in 0..25 {
            let lock = 1000 + step;
            let lock_ms = [4, 8, 1_000_000][below(3) as usize];
            let claimed = claim_of(&mut writer, queue, lock, lock_ms, 1, base);
            let delay_ms = [None, Some(0), Some(7)][below(3) as usize];
            let id = claimed[0].id;
            let outcome = match below(4) {
                0 => Settlement { delay_ms, ..Settlement::new(id, lock, Outcome::Failed) },
                1 => Settlement::new(id, lock, Outcome::Returned),
                _ => continue,
            };
            end(&mut writer, outcome, base);
        }
        let now_ms = base + 10;
        let listed = |state| listed(engine, queue, state, now_ms);
        let all = listed(None);
        assert!(all.is_sorted_by_key(|(_, place)| *place), "{queue:?}");
        assert!(all.iter().all(|(message, place)| message.place(now_ms) == *place));
        let [pending, delayed, processing] = MessageState::ALL.map(|state| listed(Some(state)));
        assert!([&pending, &delayed, &processing].iter().all(|list| !list.is_empty()), "{queue:?}");
        let counts =
            read(&mut engine.reader().unwrap(), now_ms, |snapshot| snapshot.queues()?.stats(queue));
        assert_eq!(counts.pending as usize, pending.len());
        assert_eq!(counts.delayed as usize, delayed.len());
        assert_eq!(counts.processing as usize, processing.len());
        assert_eq!(all, [&pending[..], &delayed[..], &processing[..]].concat());
        if queue.is_empty() {
            // Deno's queue waits an interval of the backoff after a lock that expired.
            continue;
        }
        // A consumer that is there all the time gets them one by one: what is due, and the rest when it is.
        let mut delivered = Vec::new();
        let mut take = |writer: &mut _, at_ms| {
            let claimed = claim_of(writer, queue, 7, 10_000_000, 1, at_ms);
            delivered.extend(claimed.iter().map(|delivery| delivery.id));
            !claimed.is_empty()
        };
        while take(&mut writer, now_ms) {}
        for (message, _) in &delayed {
            while take(&mut writer, message.due_ms) {}
        }
        let expected: Vec<_> =
            pending.iter().chain(&delayed).map(|(message, _)| message.id).collect();
        assert_eq!(delivered, expected, "{queue:?}");
    }
}

pub(super) fn a_message_is_deleted_while_no_consumer_has_it(engine: &impl Engine) {
    use MessageDeletion::{Absent, Deleted, Locked};
    let mut writer = engine.writer().unwrap();
    let keyed = Message { deduplication_key: Some("k".into()), ..message(2) };
    let later = Message { due: Time::At(NOW + 50), ..message(3) };
    enqueue(&mut writer, vec![message(1), keyed.clone(), later]);
    let ids = read(&mut engine.reader().unwrap(), NOW, |snapshot| {
        let mut ids = [0; 4];
        snapshot.queues()?.peek("mail", Peek::default(), &mut |message, _| {
            ids[usize::from(message.value[0])] = message.id;
            true
        })?;
        Ok(ids)
    });
    let delete = |writer: &mut _, queue: &str, value: usize, now_ms| {
        Writer::delete_message(writer, queue, ids[value], now_ms, soon()).unwrap()
    };
    assert_eq!(writer.queue_depth("mail").unwrap(), 3);
    let claimed = claim(&mut writer, 7, 1, NOW);
    assert_eq!(claimed[0].value, [1]);
    assert_eq!(delete(&mut writer, "mail", 1, NOW + 999), Locked);
    assert_eq!(delete(&mut writer, "other", 2, NOW), Absent, "of another queue");
    for (value, state) in [(2, "pending"), (3, "delayed")] {
        assert_eq!(delete(&mut writer, "mail", value, NOW), Deleted, "{state}");
        assert_eq!(delete(&mut writer, "mail", value, NOW), Absent);
    }
    assert_eq!(stats(engine, NOW), [0, 0, 1, 0], "none is dead");
    assert_eq!(writer.queue_depth("mail").unwrap(), 1);
    // Its deduplication key is free.
    enqueue(&mut writer, vec![keyed]);
    assert_eq!(stats(engine, NOW), [1, 0, 1, 0]);
    assert_eq!(delete(&mut writer, "mail", 1, NOW + 1000), Deleted, "its lock is over");
    let late = Settlement::new(claimed[0].id, 7, Outcome::Done);
    assert_eq!(end(&mut writer, late, NOW).settled, [false]);
    assert_eq!(stats(engine, NOW + 1000), [1, 0, 0, 0]);
}

pub(super) fn dead_messages_are_requeued_as_new(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let first = Message { backoff_ms: vec![10], priority: 3, ..message(1) };
    enqueue(&mut writer, vec![first]);
    let id = claim(&mut writer, 1, 10, NOW)[0].id;
    assert_eq!(change(&mut writer, DeadLetterChange::Requeue(id), NOW), 0, "it lives");
    claim(&mut writer, 2, 10, NOW + 1000);
    claim(&mut writer, 3, 10, NOW + 2000);
    assert_eq!(stats(engine, NOW + 2000), [0, 0, 0, 1]);
    assert_eq!(change(&mut writer, DeadLetterChange::Requeue(id), NOW + 2500), 1);
    assert_eq!(stats(engine, NOW + 2500), [1, 0, 0, 0]);
    let again = claim(&mut writer, 4, 10, NOW + 3000);
    let seen = (again[0].id, again[0].attempts, again[0].enqueued_ms);
    assert_eq!(seen, (id, 1, NOW + 2500));
    assert!(end(&mut writer, failed(&again[0], "again"), NOW + 3000).queued, "all its intervals");
    // Numbers are not reused, so a dead letter keeps its number.
    let last = claim(&mut writer, 5, 10, NOW + 3010);
    end(&mut writer, failed(&last[0], "dies"), NOW + 3010);
    enqueue(&mut writer, vec![message(2)]);
    assert!(claim(&mut writer, 6, 10, NOW + 3010)[0].id > id);
}

pub(super) fn stats_count_every_state(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let later = |value| Message { due: Time::At(NOW + 50), ..message(value) };
    enqueue(&mut writer, vec![message(1), message(2), message(3), later(4), later(5)]);
    assert_eq!(stats(engine, NOW), [3, 2, 0, 0]);
    let claimed = claim(&mut writer, 1, 2, NOW);
    assert_eq!(stats(engine, NOW), [1, 2, 2, 0]);
    end(&mut writer, failed(&claimed[0], "dies"), NOW);
    assert_eq!(stats(engine, NOW + 50), [3, 0, 1, 1]);
    assert_eq!(stats(engine, NOW + 1000), [4, 0, 0, 1], "its lock is over");
}

pub(super) fn queues_are_listed_while_they_have_a_message_in_any_state(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let mut listed =
        |max| read(&mut reader, NOW, |snapshot| snapshot.queues()?.names(max)).join(" ");
    assert_eq!(listed(9), "");
    let of = |queue: &str| Message { queue: queue.into(), ..message(1) };
    let later = Message { due: Time::At(NOW + 50), ..of("later") };
    enqueue(&mut writer, vec![of("held"), of("dead"), later, of(""), of("due"), of("due")]);
    assert_eq!(listed(9), " dead due held later");
    assert_eq!(listed(3), " dead due", "the first so many");
    let claimed = |writer: &mut _, queue| claim_of(writer, queue, 1, 1000, 1, NOW).remove(0);
    let held = claimed(&mut writer, "held");
    let dead = claimed(&mut writer, "dead");
    end(&mut writer, failed(&dead, "dies"), NOW);
    assert_eq!(listed(9), " dead due held later");
    for delivery in [held, claimed(&mut writer, ""), claimed(&mut writer, "due")] {
        end(&mut writer, Settlement::new(delivery.id, 1, Outcome::Done), NOW);
    }
    assert_eq!(listed(9), "dead due later");
    writer.change_dead_letters("dead", &DeadLetterChange::Delete(dead.id), NOW, soon()).unwrap();
    assert_eq!(listed(9), "due later");
}

pub(super) fn a_message_that_no_retry_can_help_dies_at_once(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    enqueue(&mut writer, vec![Message { backoff_ms: vec![0, 0, 0], ..message(1) }]);
    let [first] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
    assert_eq!((first.attempts, first.attempts_left), (1, 3));
    end(&mut writer, failed(&first, "once"), NOW);
    let [second] = claim(&mut writer, 8, 10, NOW).try_into().unwrap();
    assert_eq!((second.attempts, second.attempts_left), (2, 2));
    let dead = Settlement { outcome: Outcome::Dead, ..failed(&second, "never") };
    assert_eq!(end(&mut writer, dead.clone(), NOW).settled, [true]);
    assert_eq!(end(&mut writer, dead, NOW).settled, [false]);
    assert_eq!(stats(engine, NOW), [0, 0, 0, 1]);
    let [letter] = letters(engine, "mail", (0, 0), NOW).try_into().unwrap();
    assert_eq!((letter.attempts, letter.reason.message()), (2, "never"));
}
