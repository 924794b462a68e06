//! The limits of queues, and a page of the groups of one.

use super::Call;
use super::answering::Answering;
use crate::ListedGroups;
use openkv_core::model::{GROUPS_LIST_MAX, PeekCursor, QueueChange, QueueChanged, Result};
use openkv_wire::protocol::frame::{
    frame_of, parse_groups, parse_limits, push_group, push_limits, push_peek_head,
};

/// Answer: u8 whether that is a change.
pub(super) fn set_limits(frame: &[u8], call: Call) {
    let Some(((queue, change), call)) = call.parsed(parse_limits(frame)) else { return };
    let checked = match &change {
        QueueChange::Limit(rule) => rule.check(),
        QueueChange::Pause | QueueChange::Resume | QueueChange::Drain { .. } => Ok(()),
    };
    let Some(((), Call { store, reply, busy, .. })) = call.parsed(checked) else { return };
    store.change_queue(queue, change, busy, move |done| {
        let answer = |changed: QueueChanged| vec![u8::from(!changed.ids.is_empty())];
        reply.tell(done.map(answer));
    });
}

/// Answer: the limits, u32 count, sized cursor of the next page (empty: none), groups.
pub(super) fn list(frame: &[u8], call: Call) {
    let Some(((queue, limit, after), call)) = call.parsed(parse_groups(frame)) else { return };
    let limit = limit.clamp(1, GROUPS_LIST_MAX as usize);
    // It counts the messages of each group.
    let patience = call.patience("queue.groups");
    let Call { store, reply, .. } = call;
    let finish = |(), listed: Result<ListedGroups>| {
        listed.map(|ListedGroups { rule, groups, cursor }| {
            frame_of(|out| {
                push_limits(out, &rule);
                let cursor = cursor.map(PeekCursor::text).unwrap_or_default();
                push_peek_head(out, groups.len() as u32, &cursor);
                groups.iter().for_each(|(name, stats)| push_group(out, name, stats));
            })
        })
    };
    let answering = Answering::new(reply, (), finish).within(&patience);
    store.groups(queue, limit, after, patience, answering);
}
