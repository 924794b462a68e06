//! Queues: received messages, the statistics of a queue, and its dead letters.

use super::Call;
use super::answering::Answering;
use openkv_core::model::{
    Ask, DEAD_LIST_MAX, DEAD_PURGE_ROWS_MAX, DEAD_REQUEUE_ROWS_MAX, DRAIN_ROWS_MAX, DeadLetter,
    DeadLetterChange, Error, LOCK_DURATION_MS_MAX, Limits, MessageDeletion, PEEK_MAX, PeekCursor,
    QueueChange, QueueChanged, QueueStats, Result,
};
use openkv_wire::protocol::frame::{
    frame_of, parse_dead, parse_dead_list, parse_drain, parse_pause, parse_peek, parse_purge,
    parse_queue, parse_renewal, parse_settlement, push_dead, push_drained, push_peek_head,
    push_peeked, push_stats,
};

/// Answer: u8 whether the lock still held.
pub(super) fn settle(frame: &[u8], call: Call) {
    let Some((settlement, call)) = call.parsed(parse_settlement(frame)) else { return };
    ask(Ask::Settle(settlement), call);
}

/// Answer: u8 whether the lock still held.
pub(super) fn extend(frame: &[u8], call: Call) {
    let Some((renewal, call)) = call.parsed(parse_renewal(frame)) else { return };
    ask(Ask::Extend(renewal), call);
}

/// Bounds the delay of a retry and the duration of a lock.
pub(super) fn bound(ask: &mut Ask, limits: &Limits) {
    let most_ms = i64::try_from(limits.delay_ms_max).unwrap_or(i64::MAX);
    match ask {
        Ask::Settle(end) => end.delay_ms = end.delay_ms.map(|ms| ms.min(most_ms)),
        Ask::Extend(renewal) => {
            renewal.lock_ms = renewal.lock_ms.clamp(0, LOCK_DURATION_MS_MAX.into());
        }
    }
}

fn ask(mut what: Ask, Call { store, reply, limits, .. }: Call) {
    bound(&mut what, &limits);
    store.ask(what, Box::new(move |held| reply.tell(held.map(|held| vec![u8::from(held)]))));
}

/// Answer: f64 pending, delayed, processing, dead, and 1 if it is paused.
pub(super) fn stats(frame: &[u8], call: Call) {
    let Some((queue, call)) = call.parsed(parse_queue(frame)) else { return };
    // It counts all messages of the queue.
    let patience = call.patience("queue.stats");
    let Call { store, reply, .. } = call;
    let finish =
        |(), stats: Result<QueueStats>| stats.map(|stats| frame_of(|out| push_stats(out, &stats)));
    let answering = Answering::new(reply, (), finish).within(&patience);
    store.queue_stats(queue, patience, answering);
}

/// Answer: u32 count, u8 more, dead letters.
pub(super) fn dead_list(frame: &[u8], call: Call) {
    let Some(((queue, limit, after), call)) = call.parsed(parse_dead_list(frame)) else { return };
    let limit = limit.min(DEAD_LIST_MAX as usize);
    let Call { store, reply, answer_bytes_max, .. } = call;
    let finish = |page: MessagesPage, read: Result<()>| {
        read.and(page.lacks.map_or(Ok(()), Err))?;
        let head = [&page.count.to_le_bytes()[..], &[u8::from(page.more)]].concat();
        Ok([head, page.messages].concat())
    };
    let answering = Answering::new(reply, MessagesPage::default(), finish);
    store.dead_letters(queue, after, answering, move |to, letter| {
        let page = &mut to.state;
        let is_next = page.takes(letter.value.len(), limit, answer_bytes_max);
        if is_next {
            push_dead(&mut page.messages, &letter);
            page.lacks = to.reply.holds(page.messages.len()).err();
        }
        is_next && page.lacks.is_none()
    });
}

/// A page of messages.
#[derive(Default)]
pub(super) struct MessagesPage {
    pub(super) count: u32,
    pub(super) more: bool,
    pub(super) messages: Vec<u8>,
    /// There was no memory for more.
    pub(super) lacks: Option<Error>,
}

impl MessagesPage {
    /// Counts a message with so long a value if the page has room for it; else there are more.
    pub(super) fn takes(&mut self, value_len: usize, limit: usize, bytes_max: usize) -> bool {
        // At least one: the next page starts behind it.
        let is_full = self.count > 0 && self.messages.len() + value_len > bytes_max;
        self.more = self.count as usize == limit || is_full;
        self.count += u32::from(!self.more);
        !self.more
    }
}

/// Answer: u32 count, sized cursor of the next page (empty: none), messages.
pub(super) fn peek(frame: &[u8], call: Call) {
    let Some(((queue, limit, peek), call)) = call.parsed(parse_peek(frame)) else { return };
    let limit = limit.clamp(1, PEEK_MAX as usize);
    let Call { store, reply, answer_bytes_max, .. } = call;
    let finish = |(page, last): (MessagesPage, Option<PeekCursor>), read: Result<()>| {
        read.and(page.lacks.map_or(Ok(()), Err))?;
        let cursor = last.filter(|_| page.more).map(PeekCursor::text).unwrap_or_default();
        let head = frame_of(|out| push_peek_head(out, page.count, &cursor));
        Ok([head, page.messages].concat())
    };
    let answering = Answering::new(reply, (MessagesPage::default(), None), finish);
    store.peek(queue, peek, answering, move |to, message, cursor| {
        let (page, last) = &mut to.state;
        let is_next = page.takes(message.value.len(), limit, answer_bytes_max);
        if is_next {
            push_peeked(&mut page.messages, &message, cursor.place.state());
            *last = Some(cursor);
            page.lacks = to.reply.holds(page.messages.len()).err();
        }
        is_next && page.lacks.is_none()
    });
}

/// Answer: the dead letter, or no bytes.
pub(super) fn dead_get(frame: &[u8], call: Call) {
    let Some(((queue, id), call)) = call.parsed(parse_dead(frame)) else { return };
    let Call { store, reply, .. } = call;
    let finish = |(), letter: Result<Option<DeadLetter>>| {
        let mut answer = Vec::new();
        if let Some(letter) = letter? {
            push_dead(&mut answer, &letter);
        }
        Ok(answer)
    };
    store.dead_letter(queue, id, Answering::new(reply, (), finish));
}

/// Answer: u8 0 there is no such message, 1 it is deleted, 2 a consumer has it.
pub(super) fn delete(frame: &[u8], call: Call) {
    let Some(((queue, id), call)) = call.parsed(parse_dead(frame)) else { return };
    let Call { store, reply, busy, .. } = call;
    store.delete_message(queue, id, busy, move |done| {
        reply.tell(done.map(|deletion| {
            vec![match deletion {
                MessageDeletion::Absent => 0,
                MessageDeletion::Deleted => 1,
                MessageDeletion::Locked => 2,
            }]
        }));
    });
}

/// Answer: nothing.
pub(super) fn pause(frame: &[u8], call: Call) {
    let Some(((queue, change), call)) = call.parsed(parse_pause(frame)) else { return };
    let Call { store, reply, busy, .. } = call;
    store.change_queue(queue, change, busy, move |done| {
        reply.tell(done.map(|_| Vec::new()));
    });
}

/// One bounded step. Answer: u32 the number of deleted messages, f64 the time for the next step.
pub(super) fn drain(frame: &[u8], call: Call) {
    let Some(((queue, delayed, until_ms), call)) = call.parsed(parse_drain(frame)) else { return };
    let Call { store, reply, busy, .. } = call;
    let until_ms = if until_ms == 0 { store.now_ms() } else { until_ms };
    let change = QueueChange::Drain { until_ms, delayed, max: DRAIN_ROWS_MAX };
    store.change_queue(queue, change, busy, move |done| {
        let answer =
            |changed: QueueChanged| frame_of(|out| push_drained(out, changed.ids.len(), until_ms));
        reply.tell(done.map(answer));
    });
}

/// Answer: u8 whether there was such a message.
pub(super) fn cancel(frame: &[u8], call: Call) {
    let Some(((queue, id), call)) = call.parsed(parse_dead(frame)) else { return };
    let Call { store, reply, .. } = call;
    let answer = move |done: Result<bool>| reply.tell(done.map(|done| vec![u8::from(done)]));
    store.cancel_message(&queue, id, Box::new(answer));
}

/// Answer: u32 the number of changed dead letters.
pub(super) fn dead_requeue(frame: &[u8], call: Call) {
    let Some(((queue, id), call)) = call.parsed(parse_dead(frame)) else { return };
    change(queue, DeadLetterChange::Requeue(id), call);
}

/// Answer: u32 the number of changed dead letters.
pub(super) fn dead_delete(frame: &[u8], call: Call) {
    let Some(((queue, id), call)) = call.parsed(parse_dead(frame)) else { return };
    change(queue, DeadLetterChange::Delete(id), call);
}

/// One bounded step. Answer: u32 the number of deleted dead letters.
pub(super) fn dead_purge(frame: &[u8], call: Call) {
    let Some(((queue, purge), call)) = call.parsed(parse_purge(frame, DEAD_PURGE_ROWS_MAX)) else {
        return;
    };
    change(queue, purge, call);
}

/// One bounded step. Answer: u32 the number of dead letters that are enqueued again, f64 the time for the next step.
pub(super) fn dead_requeue_all(frame: &[u8], call: Call) {
    let Some(((queue, before_ms), call)) = call.parsed(parse_dead(frame)) else { return };
    let Call { store, reply, busy, .. } = call;
    // Those that die again meanwhile stay.
    let before_ms = if before_ms == 0 { store.now_ms().saturating_add(1) } else { before_ms };
    let change = DeadLetterChange::RequeueAll { before_ms, max: DEAD_REQUEUE_ROWS_MAX };
    store.change_dead_letters(queue, change, busy, move |done| {
        reply.tell(done.map(|count| frame_of(|out| push_drained(out, count, before_ms))));
    });
}

fn change(queue: String, change: DeadLetterChange, Call { store, reply, busy, .. }: Call) {
    store.change_dead_letters(queue, change, busy, move |done| {
        reply.tell(done.map(|count| (count as u32).to_le_bytes().to_vec()));
    });
}
