//! Changes of queues and of dead letters that no consumer makes.

use super::{Dead, Messages, Queued, is_of, key_of, with_groups};
use openkv_core::commit::{after_change, after_resume, set_limits};
use openkv_core::model::{
    DeadLetterChange, MessageDeletion, PAUSED_QUEUES, QueueChange, Result, Time, mark_of_paused,
};

impl Messages {
    /// Returns the numbers of the messages that it has changed, and of those that have changed besides.
    pub(in crate::memory) fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
    ) -> Result<(Vec<i64>, Vec<i64>)> {
        let ids = self.dead_letters_changed(queue, change, now_ms);
        let waiting = if change.requeues() { &ids[..] } else { &[] };
        let beside = after_change(self, &[], waiting, now_ms)?;
        Ok((ids, beside))
    }

    fn dead_letters_changed(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
    ) -> Vec<i64> {
        let is_here = |dead: &Dead| dead.message.queue == queue;
        match change {
            DeadLetterChange::Requeue(id) | DeadLetterChange::Delete(id)
                if !self.dead.get(id).is_some_and(is_here) =>
            {
                Vec::new()
            }
            DeadLetterChange::Requeue(id) => self.requeue(*id, now_ms).into_iter().collect(),
            DeadLetterChange::RequeueAll { before_ms, max } => {
                let old = self.old_dead(queue, *before_ms, now_ms, *max);
                old.into_iter().filter_map(|id| self.requeue(id, now_ms)).collect()
            }
            DeadLetterChange::Delete(id) => self.take_dead(*id).map(|_| *id).into_iter().collect(),
            DeadLetterChange::Purge { before_ms, max } => {
                let old = self.old_dead(queue, *before_ms, i64::MIN, *max);
                old.into_iter().filter(|id| self.take_dead(*id).is_some()).collect()
            }
        }
    }

    /// The dead letters of a queue that died before a time and are kept for longer than until `kept_ms`, those that died
    /// first.
    fn old_dead(&self, queue: &str, before_ms: i64, kept_ms: i64, max: usize) -> Vec<i64> {
        let is_kept = |dead: &Dead| dead.purge_ms.is_none_or(|at| at > kept_ms);
        let dead_order = self.dead_order.get(queue).into_iter().flatten();
        let old = dead_order.take_while(|(died, _)| *died < before_ms).map(|(_, id)| *id);
        old.filter(|id| self.dead.get(id).is_some_and(is_kept)).take(max).collect()
    }

    fn requeue(&mut self, id: i64, now_ms: i64) -> Option<i64> {
        let mut message = self.take_dead(id)?;
        message.due = Time::At(now_ms);
        if key_of(&message).is_some_and(|key| self.keys.contains_key(&key)) {
            message.deduplication_key = None;
        }
        self.insert(id, message, now_ms);
        Some(id)
    }

    pub(in crate::memory) fn change_queue(
        &mut self,
        queue: &str,
        change: QueueChange,
        now_ms: i64,
    ) -> Result<(Vec<i64>, Vec<i64>)> {
        let ids: Vec<i64> = match change {
            QueueChange::Limit(rule) => {
                return Ok((set_limits(self, queue, rule, now_ms)?, vec![]));
            }
            QueueChange::Pause if self.is_paused(queue) => Vec::new(),
            QueueChange::Pause => vec![self.add(mark_of_paused(queue, now_ms), now_ms)],
            QueueChange::Resume => {
                let mark = self.keys.get(&(PAUSED_QUEUES.to_owned(), queue.to_owned()));
                mark.copied().into_iter().collect()
            }
            QueueChange::Drain { until_ms, delayed, max } => {
                let waits = |queued: &Queued| match queued.lock {
                    0 => delayed || queued.due_ms <= now_ms,
                    _ => queued.lock_end_ms <= now_ms,
                };
                let waiting = with_groups(&self.waiting, queue).flatten().map(|(.., id)| *id);
                let locked = with_groups(&self.locked, queue).flatten().map(|(_, id)| *id);
                let goes = |id: &i64| {
                    let queued = self.live.get(id);
                    queued.is_some_and(|of| of.enqueued_ms <= until_ms && waits(of))
                };
                waiting.chain(locked).filter(goes).take(max).collect()
            }
        };
        let beside = match change {
            QueueChange::Pause | QueueChange::Limit(_) => Vec::new(),
            QueueChange::Resume => {
                self.delete(&ids);
                after_resume(self, queue, now_ms)?
            }
            QueueChange::Drain { .. } => {
                let freed = self.delete(&ids);
                after_change(self, &freed, &[], now_ms)?
            }
        };
        Ok((ids, beside))
    }

    /// Also returns the messages that have changed besides.
    pub(in crate::memory) fn delete_waiting(
        &mut self,
        queue: &str,
        id: i64,
        now_ms: i64,
    ) -> Result<(MessageDeletion, Vec<i64>)> {
        let is_here = |queued: &&Queued| is_of(queue, &queued.message.queue);
        match self.live.get(&id).filter(is_here) {
            None => Ok((MessageDeletion::Absent, Vec::new())),
            Some(held) if held.lock != 0 && held.lock_end_ms > now_ms => {
                Ok((MessageDeletion::Locked, Vec::new()))
            }
            Some(_) => {
                let freed = self.delete(&[id]);
                Ok((MessageDeletion::Deleted, after_change(self, &freed, &[], now_ms)?))
            }
        }
    }
}
