//! Queues: messages that were received, how full a queue is, and its dead messages.

use super::{Call, Fault};
use crate::codec::frame::{
    parse_dead, parse_dead_list, parse_purge, parse_queue, parse_renewal, parse_settlement,
    push_dead, push_stats,
};
use crate::model::{DEAD_LIST_MAX, DEAD_PURGE_ROWS_MAX, DeadOrder, Error, LOCK_DURATION_MS_MAX};
use crate::store::{Ask, ReadJob};

/// What was parsed, or the answer that it is a bug.
macro_rules! parsed {
    ($parsed:expr, $call:ident) => {
        match $parsed {
            Ok(parsed) => parsed,
            Err(bug) => return $call.reply.bad(bug),
        }
    };
}

/// Answer: u8 whether the lock still held.
pub(super) fn settle(frame: &[u8], call: Call) {
    let mut settlement = parsed!(parse_settlement(frame), call);
    let most_ms = i64::try_from(call.limits.delay_ms_max).unwrap_or(i64::MAX);
    settlement.delay_ms = settlement.delay_ms.map(|ms| ms.min(most_ms));
    ask(Ask::Settle(settlement), call);
}

/// Answer: u8 whether the lock still held.
pub(super) fn extend(frame: &[u8], call: Call) {
    let mut renewal = parsed!(parse_renewal(frame), call);
    renewal.lock_ms = renewal.lock_ms.clamp(0, LOCK_DURATION_MS_MAX.into());
    ask(Ask::Extend(renewal), call);
}

fn ask(what: Ask, Call { store, reply, .. }: Call) {
    store.ask(
        what,
        Box::new(move |held| match held {
            Ok(held) => reply.good(vec![u8::from(held)]),
            Err(error) => reply.bad(error),
        }),
    );
}

/// Answer: f64 pending, delayed, processing, dead.
pub(super) fn stats(frame: &[u8], call: Call) {
    let queue = parsed!(parse_queue(frame), call);
    // It counts all messages of the queue.
    let patience = call.patience("queue.stats");
    let Call { store, reply, .. } = call;
    let bounds = patience.clone();
    let job: ReadJob = Box::new(move |snapshot| {
        match bounds.check().and(snapshot).and_then(|found| found.queue_stats(&queue)) {
            Ok(stats) => {
                let mut answer = Vec::new();
                push_stats(&mut answer, &stats);
                reply.good(answer);
            }
            Err(error) => reply.bad(Fault::of_long(&bounds, error)),
        }
    });
    store.read_long(patience, job);
}

/// Answer: u32 count, u8 more, dead messages.
pub(super) fn dead_list(frame: &[u8], call: Call) {
    let (queue, limit, after) = parsed!(parse_dead_list(frame), call);
    let limit = limit.min(DEAD_LIST_MAX as usize);
    let Call { store, reply, answer_bytes_max, .. } = call;
    store.read(Box::new(move |snapshot| {
        if !reply.is_wanted() {
            return reply.bad(Error::closed());
        }
        let (mut count, mut more, mut letters) = (0_u32, false, Vec::new());
        let mut lacks = None;
        let read = snapshot.and_then(|snapshot| {
            snapshot.dead_letters(&queue, after, &mut |letter| {
                // One at least: the next page goes on behind it.
                let full = count > 0 && letters.len() + letter.value.len() > answer_bytes_max;
                more = count as usize == limit || full;
                if !more {
                    count += 1;
                    push_dead(&mut letters, &letter);
                    lacks = reply.holds(letters.len()).err();
                }
                !more && lacks.is_none()
            })
        });
        let read = read.and_then(|()| lacks.map_or(Ok(()), Err));
        match read {
            Ok(()) => {
                let head = [&count.to_le_bytes()[..], &[u8::from(more)]].concat();
                reply.good([head, letters].concat());
            }
            Err(error) => reply.bad(error),
        }
    }));
}

/// Answer: the dead message, or nothing.
pub(super) fn dead_get(frame: &[u8], call: Call) {
    let (queue, id) = parsed!(parse_dead(frame), call);
    let Call { store, reply, .. } = call;
    store.read(Box::new(move |snapshot| {
        if !reply.is_wanted() {
            return reply.bad(Error::closed());
        }
        match snapshot.and_then(|snapshot| snapshot.dead_letter(&queue, id)) {
            Ok(letter) => reply.good(letter.map_or_else(Vec::new, |letter| {
                let mut answer = Vec::new();
                push_dead(&mut answer, &letter);
                answer
            })),
            Err(error) => reply.bad(error),
        }
    }));
}

/// Answer: u32 how many.
pub(super) fn dead_requeue(frame: &[u8], call: Call) {
    let (queue, id) = parsed!(parse_dead(frame), call);
    order(queue, DeadOrder::Requeue(id), call);
}

/// Answer: u32 how many.
pub(super) fn dead_delete(frame: &[u8], call: Call) {
    let (queue, id) = parsed!(parse_dead(frame), call);
    order(queue, DeadOrder::Delete(id), call);
}

/// One bounded step. Answer: u32 how many.
pub(super) fn dead_purge(frame: &[u8], call: Call) {
    let (queue, purge) = parsed!(parse_purge(frame, DEAD_PURGE_ROWS_MAX), call);
    order(queue, purge, call);
}

fn order(queue: String, order: DeadOrder, Call { store, reply, busy, .. }: Call) {
    store.order_dead(
        queue,
        order,
        busy,
        Box::new(move |done| match done {
            Ok(count) => reply.good((count as u32).to_le_bytes().to_vec()),
            Err(error) => reply.bad(error),
        }),
    );
}
