//! Schedules: a page of those of a queue.

use super::Call;
use super::answering::Answering;
use super::queue::MessagesPage;
use openkv_core::model::{PeekCursor, Result, SCHEDULES_LIST_MAX};
use openkv_wire::protocol::frame::{frame_of, parse_schedules, push_peek_head, push_schedule};

/// Answer: u32 count, sized cursor of the next page (empty: none), schedules.
pub(super) fn list(frame: &[u8], call: Call) {
    let Some(((queue, limit, after), call)) = call.parsed(parse_schedules(frame)) else { return };
    let limit = limit.clamp(1, SCHEDULES_LIST_MAX as usize);
    let patience = call.patience("queue.schedules");
    let Call { store, reply, answer_bytes_max, .. } = call;
    let finish = |(page, last): (MessagesPage, Option<PeekCursor>), read: Result<()>| {
        read.and(page.lacks.map_or(Ok(()), Err))?;
        let cursor = last.filter(|_| page.more).map(PeekCursor::text).unwrap_or_default();
        let head = frame_of(|out| push_peek_head(out, page.count, &cursor));
        Ok([head, page.messages].concat())
    };
    let state = (MessagesPage::default(), None);
    let answering = Answering::new(reply, state, finish).within(&patience);
    store.schedules(queue, after, patience, answering, move |to, schedule| {
        let (page, last) = &mut to.state;
        let is_next = page.takes(schedule.row.value.len(), limit, answer_bytes_max);
        if is_next {
            push_schedule(&mut page.messages, &schedule.row, &schedule.kept);
            *last = Some(schedule.cursor);
            page.lacks = to.reply.holds(page.messages.len()).err();
        }
        is_next && page.lacks.is_none()
    });
}
