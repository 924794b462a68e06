//! Queues: received messages, the statistics of a queue, and its dead letters.

use super::Call;
use super::job::{answer, answer_within};
use crate::model::{
    Ask, DEAD_LIST_MAX, DEAD_PURGE_ROWS_MAX, DeadLetterChange, LOCK_DURATION_MS_MAX,
};
use crate::protocol::frame::{
    parse_dead, parse_dead_list, parse_purge, parse_queue, parse_renewal, parse_settlement,
    push_dead, push_stats,
};

/// The parsed frame; otherwise answers that it is malformed and returns.
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
    answer_within(&store, (patience, true), reply, move |snapshot, _| {
        let mut answer = Vec::new();
        push_stats(&mut answer, &snapshot.queue_stats(&queue)?);
        Ok(answer)
    });
}

/// Answer: u32 count, u8 more, dead letters.
pub(super) fn dead_list(frame: &[u8], call: Call) {
    let (queue, limit, after) = parsed!(parse_dead_list(frame), call);
    let limit = limit.min(DEAD_LIST_MAX as usize);
    let Call { store, reply, answer_bytes_max, .. } = call;
    answer(&store, reply, move |snapshot, reply| {
        let (mut count, mut more, mut letters) = (0_u32, false, Vec::new());
        let mut lacks = None;
        snapshot.dead_letters(&queue, after, &mut |letter| {
            // At least one: the next page starts behind it.
            let full = count > 0 && letters.len() + letter.value.len() > answer_bytes_max;
            more = count as usize == limit || full;
            if !more {
                count += 1;
                push_dead(&mut letters, &letter);
                lacks = reply.holds(letters.len()).err();
            }
            !more && lacks.is_none()
        })?;
        lacks.map_or(Ok(()), Err)?;
        let head = [&count.to_le_bytes()[..], &[u8::from(more)]].concat();
        Ok([head, letters].concat())
    });
}

/// Answer: the dead letter, or no bytes.
pub(super) fn dead_get(frame: &[u8], call: Call) {
    let (queue, id) = parsed!(parse_dead(frame), call);
    let Call { store, reply, .. } = call;
    answer(&store, reply, move |snapshot, _| {
        let mut answer = Vec::new();
        if let Some(letter) = snapshot.dead_letter(&queue, id)? {
            push_dead(&mut answer, &letter);
        }
        Ok(answer)
    });
}

/// Answer: u32 the number of changed dead letters.
pub(super) fn dead_requeue(frame: &[u8], call: Call) {
    let (queue, id) = parsed!(parse_dead(frame), call);
    change(queue, DeadLetterChange::Requeue(id), call);
}

/// Answer: u32 the number of changed dead letters.
pub(super) fn dead_delete(frame: &[u8], call: Call) {
    let (queue, id) = parsed!(parse_dead(frame), call);
    change(queue, DeadLetterChange::Delete(id), call);
}

/// One bounded step. Answer: u32 the number of deleted dead letters.
pub(super) fn dead_purge(frame: &[u8], call: Call) {
    let (queue, purge) = parsed!(parse_purge(frame, DEAD_PURGE_ROWS_MAX), call);
    change(queue, purge, call);
}

fn change(queue: String, change: DeadLetterChange, Call { store, reply, busy, .. }: Call) {
    store.change_dead_letters(
        queue,
        change,
        busy,
        Box::new(move |done| match done {
            Ok(count) => reply.good((count as u32).to_le_bytes().to_vec()),
            Err(error) => reply.bad(error),
        }),
    );
}
