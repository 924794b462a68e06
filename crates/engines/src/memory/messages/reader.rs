//! Messages as a snapshot sees them.

use std::collections::BTreeSet;
use std::ops::Bound;

use super::{Dead, Messages, with_groups};
use crate::Queues;
use openkv_core::model::{
    DeadLetter, GROUP_QUEUES, LIMITED_QUEUES, MessagePlace, Peek, PeekCursor, Peeked, QueueStats,
    Result,
};

pub(in crate::memory) struct QueueReader<'t> {
    pub(in crate::memory) messages: &'t Messages,
    pub(in crate::memory) now_ms: i64,
}

impl QueueReader<'_> {
    fn is_kept(&self, dead: &Dead) -> bool {
        dead.purge_ms.is_none_or(|at| at > self.now_ms)
    }
}

impl Queues for QueueReader<'_> {
    fn stats(&mut self, queue: &str) -> Result<QueueStats> {
        let Self { messages, now_ms } = *self;
        let mut stats = QueueStats::default();
        for (_, due_ms, _) in with_groups(&messages.waiting, queue).flatten() {
            *(if *due_ms <= now_ms { &mut stats.pending } else { &mut stats.delayed }) += 1;
        }
        for (end_ms, _) in with_groups(&messages.locked, queue).flatten() {
            *(if *end_ms <= now_ms { &mut stats.pending } else { &mut stats.processing }) += 1;
        }
        stats.paused = messages.is_paused(queue);
        stats.dead = messages.dead_order.get(queue).map_or(0, |order| order.len() as u64);
        Ok(stats)
    }

    fn names(&mut self, count_max: usize) -> Result<Vec<String>> {
        let Messages { waiting, locked, dead_order, keys, .. } = self.messages;
        let dead = dead_order.iter().filter(|(_, of)| !of.is_empty()).map(|(name, _)| name);
        let (from, to) = GROUP_QUEUES;
        let is_listed = |name: &&String| name.as_str() < from || name.as_str() >= to;
        let names = waiting.keys().chain(locked.keys()).chain(dead).filter(is_listed);
        let limited = keys.keys().filter(|(queue, _)| queue == LIMITED_QUEUES);
        let names: BTreeSet<_> = names.chain(limited.map(|(_, key)| key)).collect();
        Ok(names.into_iter().take(count_max).cloned().collect())
    }

    fn peek(
        &mut self,
        queue: &str,
        peek: Peek,
        visit: &mut dyn FnMut(Peeked, PeekCursor) -> bool,
    ) -> Result<()> {
        let Messages { waiting, locked, live, .. } = self.messages;
        let as_of_ms = peek.as_of_ms(self.now_ms);
        let waiting = with_groups(waiting, queue).flatten().map(|(.., id)| id);
        let locked = with_groups(locked, queue).flatten().map(|(_, id)| id);
        let places =
            waiting.chain(locked).filter_map(|id| Some(live.get(id)?.place(*id, as_of_ms)));
        let is_wanted = |place: &MessagePlace| {
            peek.after.is_none_or(|after| *place > after.place)
                && peek.state.is_none_or(|state| state == place.state())
        };
        let mut places: Vec<MessagePlace> = places.filter(is_wanted).collect();
        places.sort_unstable();
        for place in places {
            let (.., id) = place.parts();
            let message = live.get(&id).map(|queued| queued.peeked(id));
            if message.is_some_and(|message| !visit(message, PeekCursor { as_of_ms, place })) {
                break;
            }
        }
        Ok(())
    }

    fn dead_letters(
        &mut self,
        queue: &str,
        after: (i64, i64),
        visit: &mut dyn FnMut(DeadLetter) -> bool,
    ) -> Result<()> {
        let order = self.messages.dead_order.get(queue).into_iter();
        for (_, id) in order.flat_map(|of| of.range((Bound::Excluded(after), Bound::Unbounded))) {
            let letter = self.dead_letter(queue, *id)?;
            if letter.is_some_and(|letter| !visit(letter)) {
                break;
            }
        }
        Ok(())
    }

    fn dead_letter(&mut self, queue: &str, id: i64) -> Result<Option<DeadLetter>> {
        let dead = self.messages.dead.get(&id).filter(|dead| dead.message.queue == queue);
        Ok(dead
            .filter(|dead| self.is_kept(dead))
            .map(|dead| DeadLetter { value: dead.message.value.clone(), ..dead.letter.clone() }))
    }
}
