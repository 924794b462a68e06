//! The rules of groups and rates whose clock is set back. Each of these waited for as long as the clock was set back.

use super::groups::{done, grouped, limit, next, rate, running};
use super::queues::{claim, values};
use super::schedules::{every, fire, placed};
use super::*;
use openkv_core::model::{LimitAlgorithm, Limiting, RunLimit, SCHEDULES_QUEUE, Time};

/// Before this time messages are enqueued.
const EARLY: i64 = NOW - 900_000;
/// The time to which the clock is set.
const BACK: i64 = NOW - 500_000;

fn enqueue_early(writer: &mut impl Writer, messages: Vec<Message>) {
    let messages = messages.into_iter().map(|of| Message { due: Time::At(EARLY), ..of }).collect();
    let writes = vec![atomic(WriteParts { messages, ..WriteParts::default() })];
    apply_at(writer, Work { writes, durable: true, ..Work::default() }, EARLY);
}

/// The clock is set back; nothing waits for a time before it.
fn set_back(writer: &mut impl Writer) {
    assert!(next(writer).unwrap() > NOW);
    writer.bound_times("mail", BACK, soon()).unwrap();
    assert!(next(writer).unwrap() <= BACK);
    assert!(claim(writer, 8, 10, BACK).is_empty());
}

pub(super) fn the_window_of_a_rate_begins_anew(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    for (of_queue, of_group) in
        [(rate(1, 1000), RunLimit::default()), (RunLimit::default(), rate(1, 1000))]
    {
        limit(&mut writer, of_queue, of_group);
        enqueue_early(&mut writer, vec![grouped("a", 1), grouped("a", 2)]);
        let [first] = claim(&mut writer, 7, 10, NOW).try_into().unwrap();
        done(&mut writer, &first, NOW);
        assert!(claim(&mut writer, 8, 10, NOW).is_empty());
        set_back(&mut writer);
        assert_eq!(next(&mut writer), Some(BACK + 1000));
        let [second] = claim(&mut writer, 9, 10, BACK + 1000).try_into().unwrap();
        assert_eq!(values(std::slice::from_ref(&second)), [2]);
        done(&mut writer, &second, BACK + 1000);
    }
}

pub(super) fn locks_and_delays_of_groups_count_by_their_length(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let delayed = Message { due: Time::After(50), ..grouped("a", 1) };
    commit(
        &mut writer,
        vec![atomic(WriteParts { messages: vec![delayed], ..WriteParts::default() })],
    );
    set_back(&mut writer);
    assert_eq!(next(&mut writer), Some(BACK + 50));
    let [first] = claim(&mut writer, 9, 10, BACK + 50).try_into().unwrap();
    done(&mut writer, &first, BACK + 50);

    for (of_queue, of_group) in
        [(running(1), RunLimit::default()), (RunLimit::default(), running(1))]
    {
        limit(&mut writer, of_queue, of_group);
        let retried = Message { priority: 5, backoff_ms: vec![0], ..grouped("a", 2) };
        enqueue_early(&mut writer, vec![retried, grouped("a", 3)]);
        // The low bits of a lock are its length.
        let [held] = claim_of(&mut writer, "mail", 1000, 1000, 10, NOW).try_into().unwrap();
        assert!(claim(&mut writer, 8, 10, NOW).is_empty());
        writer.bound_times("mail", BACK, soon()).unwrap();
        assert!(claim(&mut writer, 8, 10, BACK).is_empty());
        assert_eq!(next(&mut writer), Some(BACK + 1000));
        let [again] = claim(&mut writer, 9, 10, BACK + 1000).try_into().unwrap();
        assert_eq!((again.id, again.attempts), (held.id, 2));
        done(&mut writer, &again, BACK + 1000);
        let [last] = claim(&mut writer, 9, 10, BACK + 1000).try_into().unwrap();
        done(&mut writer, &last, BACK + 1000);
    }
}

const HOUR: i64 = 3_600_000;
/// Before all clocks of the table.
const STEPS: [i64; 3] = [-HOUR, -500, HOUR];

fn commit_at(writer: &mut impl Writer, write: AtomicWrite, now_ms: i64) -> Decision {
    let work = Work { writes: vec![write], durable: true, ..Work::default() };
    apply_at(writer, work, now_ms).decisions.remove(0)
}

/// A take that is refused, and the entry of a lease whose holder is dead, stayed as they were until the clock had reached
/// the time of before.
pub(super) fn limiters_and_leases_count_by_their_length(engine: &impl Engine) {
    let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
    let begin = NOW + 2 * HOUR;
    for step in STEPS {
        for algorithm in LimitAlgorithm::ALL {
            let name = format!("{} {step}", algorithm.name());
            let mut take = |now_ms| {
                let limiting = Limiting::new(algorithm, 1, 1000, 1, false).unwrap();
                let mutations = vec![Mutation::Limit { key: key(&name), limiting }];
                let parts = WriteParts { mutations, returns_values: true, ..WriteParts::default() };
                match commit_at(&mut writer, atomic(parts), now_ms) {
                    // The second item is whether it is allowed.
                    Decision::CommittedWith(_, results) => results.values[0].bytes[1] == 0xf5,
                    other => panic!("{other:?}"),
                }
            };
            assert!(take(begin), "{name}");
            let allowed = [0, 700, 1400, 2000].map(|ms| take(begin + step + ms));
            assert!(allowed.contains(&true), "{name}: {allowed:?}");
            assert_eq!(allowed[0], step > 0, "{name}");
        }

        let lease = format!("lease {step}");
        let held = set_until(&lease, b"v", Some(begin + 1000));
        commit_at(&mut writer, write(vec![], vec![held]), begin);
        let mut shortened = |now_ms| {
            let shorten = Mutation::SetExpiry {
                key: key(&lease),
                expiry: Some(Time::After(1000)),
                required: false,
                shortens: true,
            };
            commit_at(&mut writer, write(vec![], vec![shorten]), now_ms);
            read(&mut reader, NOW - 2 * HOUR, |snapshot| snapshot.expiry(key(&lease).as_bytes()))
        };
        let set_back = begin + step;
        let expected = Some(Some(set_back.min(begin) + 1000));
        assert_eq!(shortened(set_back), expected, "{lease}");
        // Another caller that waits does not make it longer.
        assert_eq!(shortened(set_back + 10), expected, "{lease}");
    }
}

pub(super) fn no_due_time_of_a_schedule_comes_twice(engine: &impl Engine) {
    let mut writer = engine.writer().unwrap();
    let first = NOW + 100;
    assert_eq!(placed(&mut writer, vec![every(100, "a", 1)]), [true]);
    assert_eq!(fire(&mut writer, first), 1);
    // Set back: the due times up to the first one have given their messages.
    for now_ms in [first - HOUR, first - 500, first, first + 99] {
        assert_eq!(fire(&mut writer, now_ms), 0, "{now_ms}");
        assert_eq!(writer.next_message_ms(SCHEDULES_QUEUE).unwrap(), Some(first + 100));
    }
    assert_eq!(claim(&mut writer, 7, 10, first).len(), 1);
    // Set forward: the due times that are left out give their messages, by the rule of the schedule.
    assert_eq!(fire(&mut writer, first + 300), 1);
    assert_eq!(claim(&mut writer, 8, 10, first + 300).len(), 3);
}
