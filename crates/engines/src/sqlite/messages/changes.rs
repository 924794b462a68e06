//! Changes of queues and of dead letters that no consumer makes, in the writer's transaction.

use super::{Messages, freed_of};
use openkv_core::commit::{after_change, after_resume, set_limits};
use openkv_core::model::{
    DeadLetterChange, Error, Freed, MessageDeletion, PAUSED_QUEUES, PRIORITY_MAX, QueueChange,
    Result, groups_range, mark_of_paused,
};

impl Messages {
    /// Returns the numbers of the messages that it has changed, and of those that have changed besides.
    pub(in crate::sqlite) fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
    ) -> Result<(Vec<i64>, Vec<i64>)> {
        let done = self.dead_letters.change(queue, change, now_ms)?;
        let mut beside = Vec::new();
        if change.requeues() && !done.is_empty() {
            self.depths.came(queue);
            if self.deno_of(!queue.is_empty()).is_none() {
                beside = after_change(self, &[], &done, now_ms)?;
            }
        }
        Ok((done, beside))
    }

    /// Also returns the messages that have changed besides.
    pub(in crate::sqlite) fn delete_waiting(
        &mut self,
        queue: &str,
        id: i64,
        now_ms: i64,
    ) -> Result<(MessageDeletion, Vec<i64>)> {
        if self.deno_of(!queue.is_empty()).is_some() {
            return Err(Error::unsupported(
                "delete: Deno keeps the messages of the default queue of this file; name a queue",
            ));
        }
        let mut held = self.remove.beside(
            "SELECT lock <> 0 AND lock_end_ms > ?3 FROM openkv_queue WHERE id = ?1 \
             AND (queue = ?2 OR queue > ?4 AND queue < ?5)",
        )?;
        let (from, to) = groups_range(queue);
        let run = held.run().int(1, id).text(2, queue).int(3, now_ms).text(4, &from).text(5, &to);
        match run.first_int()? {
            None => Ok((MessageDeletion::Absent, Vec::new())),
            Some(0) => {
                let freed = self.delete_all(queue, &[id])?;
                Ok((MessageDeletion::Deleted, after_change(self, &freed, &[], now_ms)?))
            }
            Some(_) => Ok((MessageDeletion::Locked, Vec::new())),
        }
    }

    /// The mark that a queue is paused.
    pub(super) fn mark_of(&mut self, queue: &str) -> Result<Option<i64>> {
        self.paused.run().text(1, PAUSED_QUEUES).text(2, queue).first_int()
    }

    /// Returns the messages that it has changed, and those that have changed besides.
    pub(in crate::sqlite) fn change_queue(
        &mut self,
        queue: &str,
        change: QueueChange,
        now_ms: i64,
    ) -> Result<(Vec<i64>, Vec<i64>)> {
        if self.deno_of(!queue.is_empty()).is_some() {
            return Err(Error::unsupported(
                "Deno keeps the messages of the default queue of this file; name a queue",
            ));
        }
        match change {
            QueueChange::Pause => {
                let mark = self.add(&mark_of_paused(queue, now_ms), now_ms)?;
                Ok((mark.into_iter().collect(), Vec::new()))
            }
            QueueChange::Resume => {
                let mark: Vec<i64> = self.mark_of(queue)?.into_iter().collect();
                self.delete_all(PAUSED_QUEUES, &mark)?;
                Ok((mark, after_resume(self, queue, now_ms)?))
            }
            QueueChange::Drain { until_ms, delayed, max } => {
                let ids = self.waiting(queue, until_ms, delayed, max, now_ms)?;
                let freed = self.delete_all(queue, &ids)?;
                Ok((ids, after_change(self, &freed, &[], now_ms)?))
            }
            QueueChange::Limit(rule) => Ok((set_limits(self, queue, rule, now_ms)?, Vec::new())),
        }
    }

    /// The messages of a queue that wait, by priority; with `delayed` also those that are not due.
    fn waiting(
        &mut self,
        queue: &str,
        until_ms: i64,
        delayed: bool,
        max: usize,
        now_ms: i64,
    ) -> Result<Vec<i64>> {
        let mut lost = self.remove.beside(
            "SELECT id FROM openkv_queue WHERE lock <> 0 AND queue = ?1 AND lock_end_ms <= ?2 \
             AND enqueued_ms <= ?3 UNION ALL SELECT id FROM openkv_queue WHERE lock <> 0 \
             AND queue > ?5 AND queue < ?6 AND lock_end_ms <= ?2 AND enqueued_ms <= ?3 LIMIT ?4",
        )?;
        let (from, to) = groups_range(queue);
        let run = lost.run().text(1, queue).int(2, now_ms).int(3, until_ms).int(4, max as i64);
        let run = run.text(5, &from).text(6, &to);
        let mut ids = run.all(|run| run.column_int(0))?;
        let mut waiting = self.remove.beside(
            "SELECT id FROM openkv_queue WHERE lock = 0 AND queue = ?1 AND priority = ?2 \
             AND due_ms <= ?3 AND enqueued_ms <= ?4 LIMIT ?5",
        )?;
        let due_ms = if delayed { i64::MAX } else { now_ms };
        let mut above = i64::from(PRIORITY_MAX) + 1;
        while ids.len() < max
            && let Some(priority) = self.priority_below(queue, above)?
        {
            let room = (max - ids.len()) as i64;
            let run = waiting.run().text(1, queue).int(2, priority).int(3, due_ms);
            ids.extend(run.int(4, until_ms).int(5, room).all(|run| run.column_int(0))?);
            above = priority;
        }
        if ids.len() < max {
            let mut of_groups = self.remove.beside(
                "SELECT id FROM openkv_queue WHERE lock = 0 AND queue > ?1 AND queue < ?2 \
                 AND due_ms <= ?3 AND enqueued_ms <= ?4 LIMIT ?5",
            )?;
            let room = (max - ids.len()) as i64;
            let run = of_groups.run().text(1, &from).text(2, &to).int(3, due_ms);
            ids.extend(run.int(4, until_ms).int(5, room).all(|run| run.column_int(0))?);
        }
        Ok(ids)
    }

    /// Deletes messages of a queue and of its groups. Returns of what the queues are free.
    pub(super) fn delete_all(&mut self, queue: &str, ids: &[i64]) -> Result<Vec<Freed>> {
        let mut delete =
            self.remove.beside("DELETE FROM openkv_queue WHERE id = ?1 RETURNING queue, dedup")?;
        let mut gone = Vec::with_capacity(ids.len());
        for id in ids {
            let mut run = delete.run().int(1, *id);
            gone.extend(run.step()?.then(|| freed_of(&run)));
            run.finish()?;
            self.depths.left(queue);
        }
        Ok(gone)
    }
}
