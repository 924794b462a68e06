//! The limits of queues and their groups: reading them.

use std::sync::Arc;

use super::{Caller, Patience, Store};
use openkv_core::codec::turns::{KeptRule, KeptTurn};
use openkv_core::model::{
    LIMITED_QUEUES, Peek, PeekCursor, Peeked, QueueRule, QueueStats, queue_of_group, turns_queue,
};

/// The limits of a queue, and a page of its groups.
#[derive(Clone, Debug, Default)]
pub struct ListedGroups {
    /// The limits.
    pub rule: QueueRule,
    /// The groups that have messages which wait, by their turns, with what they have in each state.
    pub groups: Vec<(String, QueueStats)>,
    /// Where the next page begins; `None` at the end.
    pub cursor: Option<PeekCursor>,
}

impl Store {
    /// Reads the limits of a queue, and up to `limit` of its groups after `after`. It looks at the limits of all
    /// queues. What this version cannot read is left out.
    pub fn groups(
        &self,
        queue: String,
        limit: usize,
        after: Option<PeekCursor>,
        patience: Arc<Patience>,
        caller: impl Caller<ListedGroups>,
    ) {
        self.read(Some(patience), caller, move |snapshot, _| {
            let mut listed = ListedGroups::default();
            let mut rule = |row: Peeked, _| match KeptRule::decode(&row.value) {
                Ok(kept) if kept.queue == queue => {
                    listed.rule = kept.rule;
                    false
                }
                _ => true,
            };
            let mut queues = snapshot.queues()?;
            queues.peek(LIMITED_QUEUES, Peek::default(), &mut rule)?;
            let (mut names, mut last, mut more) = (Vec::new(), None, false);
            let mut turn = |row: Peeked, cursor| {
                let Ok(kept) = KeptTurn::decode(&row.value) else { return true };
                more = names.len() == limit;
                if !more {
                    names.push(kept.group);
                    last = Some(cursor);
                }
                !more
            };
            queues.peek(&turns_queue(&queue), Peek { state: None, after }, &mut turn)?;
            listed.cursor = last.filter(|_| more);
            for name in names {
                let stats = queues.stats(&queue_of_group(&queue, &name))?;
                // One without may have a turn until it is looked at again.
                if stats.pending + stats.delayed > 0 {
                    listed.groups.push((name, stats));
                }
            }
            Ok(listed)
        });
    }
}
