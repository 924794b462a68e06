//! Changes of queues and of dead letters that no consumer makes, at once.

use super::super::message_changes::{Drain, change_dead_letters, delete_waiting, drained, resume};
use super::Messages;
use openkv_core::commit::{MessageTable, Placed, after_change, after_resume, set_limits};
use openkv_core::model::{DeadLetterChange, MessageDeletion, QueueChange, Result, mark_of_paused};

impl Messages {
    /// Requeues or deletes dead letters; answers their numbers, and those of the messages that have changed besides.
    pub(in crate::postgres) fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
    ) -> Result<(Vec<i64>, Vec<i64>)> {
        self.flushed = true;
        let changed = change_dead_letters(&self.link, self.db, queue, change, now_ms)?;
        match change {
            DeadLetterChange::Requeue(_) | DeadLetterChange::RequeueAll { .. } => {
                let beside = after_change(self, &[], &changed, now_ms)?;
                return Ok((changed, beside));
            }
            DeadLetterChange::Delete(_) | DeadLetterChange::Purge { .. } => {
                self.gone.extend(&changed);
            }
        }
        Ok((changed, Vec::new()))
    }

    /// Deletes a message, unless a consumer has it; answers also the messages that have changed besides.
    pub(in crate::postgres) fn delete_waiting(
        &mut self,
        queue: &str,
        id: i64,
        now_ms: i64,
    ) -> Result<(MessageDeletion, Vec<i64>)> {
        self.flushed = true;
        let (deletion, freed) = delete_waiting(&self.link, self.db, queue, id, now_ms)?;
        if deletion == MessageDeletion::Deleted {
            self.gone.insert(id);
        }
        Ok((deletion, after_change(self, &freed, &[], now_ms)?))
    }

    /// Answers the messages that it has changed, and those that have changed besides.
    pub(in crate::postgres) fn change_queue(
        &mut self,
        queue: &str,
        change: QueueChange,
        now_ms: i64,
    ) -> Result<(Vec<i64>, Vec<i64>)> {
        match change {
            QueueChange::Pause => {
                let Placed { enqueued, .. } =
                    self.enqueue(mark_of_paused(queue, now_ms), now_ms)?;
                let mark = enqueued.id.filter(|_| !enqueued.deduplicated);
                Ok((mark.into_iter().collect(), Vec::new()))
            }
            QueueChange::Limit(rule) => Ok((set_limits(self, queue, rule, now_ms)?, Vec::new())),
            QueueChange::Resume => {
                self.flushed = true;
                let ids = resume(&self.link, self.db, queue)?;
                self.gone.extend(&ids);
                Ok((ids, after_resume(self, queue, now_ms)?))
            }
            QueueChange::Drain { until_ms, delayed, max } => {
                self.flushed = true;
                let drain = Drain { until_ms, delayed, max };
                let (ids, freed) = drained(&self.link, self.db, queue, &drain, now_ms)?;
                self.gone.extend(&ids);
                Ok((ids, after_change(self, &freed, &[], now_ms)?))
            }
        }
    }
}
