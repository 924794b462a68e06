//! The rules of groups and rates whose clock is set back. Each of these waited for as long as the clock was set back.

use super::groups::{done, grouped, limit, next, rate, running};
use super::queues::{claim, values};
use super::*;
use openkv_core::model::{RunLimit, Time};

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
