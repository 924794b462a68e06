//! Messages whose times are too far ahead, because the clock was set back after they were written.
//!
//! A lock, a retry and a delay count by their length then, from now. A date stays as it is.

use super::messages::Messages;
use openkv_core::codec::message_context;
use openkv_core::commit::after_clock;
use openkv_core::model::{
    LIMITED_QUEUES, LOCK_LENGTH_MASK, Result, WAITS_FOR_ANOTHER_MS, groups_range,
};

impl Messages {
    /// Whether the clock has been set back since a message of the queue was taken, its limits counted one, or the last
    /// message of all was added.
    pub(super) fn is_ahead(&mut self, queue: &str, now_ms: i64) -> Result<bool> {
        let mut ahead = self.beside(
            "SELECT EXISTS (SELECT 1 FROM openkv_queue WHERE queue = ?1 AND lock <> 0 AND last_ms > ?2) \
             OR EXISTS (SELECT 1 FROM openkv_queue WHERE queue > ?3 AND queue < ?4 AND lock <> 0 AND last_ms > ?2) \
             OR coalesce((SELECT enqueued_ms FROM openkv_queue ORDER BY id DESC LIMIT 1) > ?2, 0) \
             OR EXISTS (SELECT 1 FROM openkv_queue WHERE queue = ?5 AND dedup = ?1 AND enqueued_ms > ?2)",
        )?;
        let (from, to) = groups_range(queue);
        let run = ahead.run().text(1, queue).int(2, now_ms).text(3, &from).text(4, &to);
        let run = run.text(5, LIMITED_QUEUES);
        Ok(run.first_int()? == Some(1))
    }

    /// Lets the times of a queue count by their length. Returns the messages that are due at another time, or whose
    /// group is looked at at another time.
    pub(super) fn bound_times(&mut self, queue: &str, now_ms: i64) -> Result<Vec<i64>> {
        let mut locks = self.beside(
            "UPDATE openkv_queue SET lock_end_ms = ?2 + (lock & ?3) \
             WHERE (queue = ?1 OR queue > ?4 AND queue < ?5) AND lock <> 0 AND last_ms > ?2 AND lock_end_ms > ?2 + (lock & ?3)",
        )?;
        let (from, to) = groups_range(queue);
        let run = locks.run().text(1, queue).int(2, now_ms).int(3, LOCK_LENGTH_MASK);
        run.text(4, &from).text(5, &to).finish()?;
        let mut waiting = self.beside(
            "SELECT id, due_ms, coalesce(last_ms, enqueued_ms), last_ms IS NULL, v FROM openkv_queue \
             WHERE (queue = ?1 OR queue > ?3 AND queue < ?4) AND lock = 0 AND due_ms > ?2 AND due_ms < ?5 \
             AND coalesce(last_ms, enqueued_ms) > ?2",
        )?;
        let run = waiting.run().text(1, queue).int(2, now_ms).text(3, &from).text(4, &to);
        let run = run.int(5, WAITS_FOR_ANOTHER_MS);
        let due = run.all(|run| {
            let (id, due_ms, since_ms) = (run.column_int(0), run.column_int(1), run.column_int(2));
            let is_first = run.column_int(3) != 0;
            let length_ms = match is_first {
                true => message_context::delay_of(run.column_blob(4)),
                false => Some(due_ms.saturating_sub(since_ms)),
            };
            length_ms.map(|length_ms| (id, due_ms.min(now_ms.saturating_add(length_ms))))
        })?;
        let mut set = self.beside("UPDATE openkv_queue SET due_ms = ?2 WHERE id = ?1")?;
        let mut changed = after_clock(self, queue, now_ms)?;
        for (id, due_ms) in due.into_iter().flatten() {
            set.run().int(1, id).int(2, due_ms).finish()?;
            changed.push(id);
        }
        Ok(changed)
    }
}
