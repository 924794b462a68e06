//! Changes of a queue that no consumer makes, in the writer's transaction.

use super::Messages;
use openkv_core::model::{Error, PAUSED_QUEUES, PRIORITY_MAX, QueueChange, Result, mark_of_paused};

impl Messages {
    /// The mark that a queue is paused.
    pub(super) fn mark_of(&mut self, queue: &str) -> Result<Option<i64>> {
        self.paused.run().text(1, PAUSED_QUEUES).text(2, queue).first_int()
    }

    pub(in crate::sqlite) fn change_queue(
        &mut self,
        queue: &str,
        change: QueueChange,
        now_ms: i64,
    ) -> Result<Vec<i64>> {
        if self.deno_of(!queue.is_empty()).is_some() {
            return Err(Error::unsupported(
                "Deno keeps the messages of the default queue of this file; name a queue",
            ));
        }
        match change {
            QueueChange::Pause => {
                Ok(self.add(&mark_of_paused(queue, now_ms), now_ms)?.into_iter().collect())
            }
            QueueChange::Resume => {
                let mark = self.mark_of(queue)?;
                self.delete_all(PAUSED_QUEUES, mark.into_iter().collect())
            }
            QueueChange::Drain { until_ms, delayed, max } => {
                let ids = self.waiting(queue, until_ms, delayed, max, now_ms)?;
                self.delete_all(queue, ids)
            }
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
             AND enqueued_ms <= ?3 LIMIT ?4",
        )?;
        let run = lost.run().text(1, queue).int(2, now_ms).int(3, until_ms).int(4, max as i64);
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
        Ok(ids)
    }

    pub(super) fn delete_all(&mut self, queue: &str, ids: Vec<i64>) -> Result<Vec<i64>> {
        for id in &ids {
            self.remove.run().int(1, *id).finish()?;
            self.depths.left(queue);
        }
        Ok(ids)
    }
}
