//! Queue messages in the writer's transaction.

mod changes;

use rusqlite::Connection;

use super::dead::DeadLetters;
use super::deno_queue::DenoQueue;
use super::depths::Depths;
use super::message_copies::MessageCopies;
use super::statement::{Run, Statement};
use crate::packed::{pack_intervals, pack_keys, packed_intervals, unpack_intervals, unpack_keys};
use openkv_core::commit::{LockedMessage, MessageTable, Placed, Undelivered};
use openkv_core::model::{
    Claim, Deduplication, Delivery, Encoding, Freed, KeptMessage, LIMITED_QUEUES, LoggedMessage,
    Message, PRIORITY_MAX, Reason, Result, Time, WAITS_FOR_ANOTHER_MS, attempts_left, awaited_key,
    groups_range, queue_of_callers, turns_queue,
};

/// The queue table of format 2. One index has waiting messages in the order of delivery, the other
/// has locked ones by the expiry of their lock; a message is in one of them.
pub(super) const TABLES: &str = "
DROP INDEX openkv_queue_due;
ALTER TABLE openkv_queue RENAME TO openkv_queue_1;
CREATE TABLE openkv_queue (
  id INTEGER PRIMARY KEY AUTOINCREMENT,
  queue TEXT NOT NULL,
  priority INTEGER NOT NULL,
  due_ms INTEGER NOT NULL,
  lock INTEGER NOT NULL DEFAULT 0,
  lock_end_ms INTEGER NOT NULL DEFAULT 0,
  attempts INTEGER NOT NULL DEFAULT 0,
  enqueued_ms INTEGER NOT NULL,
  first_ms INTEGER,
  last_ms INTEGER,
  dedup TEXT,
  dead_retention_ms INTEGER,
  backoff_ms BLOB NOT NULL,
  undelivered BLOB NOT NULL,
  v BLOB NOT NULL
);
INSERT INTO openkv_queue
  (id, queue, priority, due_ms, lock, lock_end_ms, attempts, enqueued_ms, backoff_ms, undelivered, v)
  SELECT id, '', 0, due_ms, lock, iif(lock, due_ms, 0), lock <> 0, due_ms, backoff_ms, undelivered, v
  FROM openkv_queue_1;
DROP TABLE openkv_queue_1;
CREATE INDEX openkv_queue_waiting ON openkv_queue (queue, priority, due_ms) WHERE lock = 0;
CREATE INDEX openkv_queue_locked ON openkv_queue (queue, lock_end_ms) WHERE lock <> 0;
CREATE UNIQUE INDEX openkv_queue_dedup ON openkv_queue (queue, dedup) WHERE dedup IS NOT NULL;
";

/// The statements on `openkv_queue`.
pub(super) struct Messages {
    insert: Statement,
    /// Finds the message with a deduplication key, and whether a consumer has it.
    same: Statement,
    /// Takes its deduplication key from a message.
    leave_key: Statement,
    /// Makes a waiting message another one.
    replace: Statement,
    held: Statement,
    locked: Statement,
    expired: Statement,
    extend_expired: Statement,
    priority: Statement,
    due: Statement,
    due_ids: Statement,
    take: Statement,
    retry: Statement,
    renew: Statement,
    put_back: Statement,
    delete: Statement,
    first_due: Statement,
    first_end: Statement,
    remove: Statement,
    paused: Statement,
    /// Until when a queue with limits delivers nothing.
    until: Statement,
    running: Statement,
    dead_letters: DeadLetters,
    copies: Option<MessageCopies>,
    pub(super) depths: Depths,
    /// In a file for Deno: Deno's table of waiting messages.
    deno: Option<DenoQueue>,
}

/// The columns of a [`LockedMessage`], for [`locked_of`].
macro_rules! locked_where {
    ($condition:literal) => {
        concat!(
            "SELECT id, attempts, lock_end_ms, queue, backoff_ms, undelivered, dead_retention_ms, v, dedup \
             FROM openkv_queue WHERE lock <> 0 AND ",
            $condition
        )
    };
}

impl Messages {
    pub(super) fn new(connection: &Connection, file: Encoding) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            insert: prepare(
                "INSERT INTO openkv_queue (queue, priority, due_ms, enqueued_ms, dedup, \
                 dead_retention_ms, backoff_ms, undelivered, v) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9) \
                 ON CONFLICT (queue, dedup) WHERE dedup IS NOT NULL DO NOTHING",
            )?,
            same: prepare(
                "SELECT id, lock <> 0, due_ms FROM openkv_queue WHERE queue = ?1 AND dedup = ?2",
            )?,
            leave_key: prepare("UPDATE openkv_queue SET dedup = ?2 WHERE id = ?1")?,
            replace: prepare(
                "UPDATE openkv_queue SET priority = ?2, due_ms = coalesce(?3, due_ms), \
                 enqueued_ms = ?4, dead_retention_ms = ?5, backoff_ms = ?6, undelivered = ?7, v = ?8, \
                 attempts = 0, first_ms = NULL, last_ms = NULL WHERE id = ?1",
            )?,
            held: prepare("SELECT 1 FROM openkv_queue WHERE id = ?1 AND lock = ?2 AND lock <> 0")?,
            locked: prepare(locked_where!("id = ?1 AND lock = ?2"))?,
            expired: prepare(concat!(
                locked_where!("queue = ?1 AND lock_end_ms <= ?2"),
                " UNION ALL ",
                locked_where!("queue > ?4 AND queue < ?5 AND lock_end_ms <= ?2"),
                " ORDER BY lock_end_ms, id LIMIT ?3"
            ))?,
            extend_expired: prepare(
                "UPDATE openkv_queue SET lock_end_ms = ?3 + 0.5 WHERE id IN (\
                 SELECT id FROM openkv_queue WHERE lock <> 0 AND queue = ?1 \
                 AND lock_end_ms <= ?2 AND typeof(lock_end_ms) = 'integer' UNION ALL \
                 SELECT id FROM openkv_queue WHERE lock <> 0 AND queue > ?4 AND queue < ?5 \
                 AND lock_end_ms <= ?2 AND typeof(lock_end_ms) = 'integer')",
            )?,
            priority: prepare(
                "SELECT max(priority) FROM openkv_queue \
                 WHERE lock = 0 AND queue = ?1 AND priority < ?2",
            )?,
            due: prepare(
                "SELECT id, v, attempts, enqueued_ms, length(backoff_ms) FROM openkv_queue \
                 WHERE lock = 0 AND queue = ?1 AND priority = ?2 AND due_ms <= ?3 \
                 ORDER BY due_ms, id LIMIT ?4",
            )?,
            due_ids: prepare(
                "SELECT id FROM openkv_queue WHERE lock = 0 AND queue = ?1 AND priority = ?2 \
                 AND due_ms <= ?3 ORDER BY due_ms, id LIMIT ?4",
            )?,
            take: prepare(
                "UPDATE openkv_queue SET lock = ?2, lock_end_ms = ?3, attempts = attempts + 1, \
                 first_ms = coalesce(first_ms, ?4), last_ms = ?4 WHERE id = ?1",
            )?,
            retry: prepare(
                "UPDATE openkv_queue SET lock = 0, lock_end_ms = 0, due_ms = ?2 WHERE id = ?1",
            )?,
            renew: prepare(
                "UPDATE openkv_queue SET lock_end_ms = ?3 \
                 WHERE id = ?1 AND lock = ?2 AND lock <> 0",
            )?,
            put_back: prepare(
                "UPDATE openkv_queue SET lock = 0, lock_end_ms = 0, attempts = attempts - 1, \
                 first_ms = iif(attempts = 1, NULL, first_ms) \
                 WHERE id = ?1 AND lock = ?2 AND lock <> 0 RETURNING queue, dedup",
            )?,
            delete: prepare(
                "DELETE FROM openkv_queue WHERE id = ?1 AND lock = ?2 AND lock <> 0 \
                 RETURNING queue, dedup",
            )?,
            first_due: prepare(
                "SELECT min(due_ms) FROM openkv_queue \
                 WHERE lock = 0 AND queue = ?1 AND priority = ?2",
            )?,
            first_end: prepare(
                "SELECT min(end_ms) FROM (SELECT min(lock_end_ms) AS end_ms FROM openkv_queue \
                 WHERE lock <> 0 AND queue = ?1 UNION ALL SELECT min(lock_end_ms) FROM openkv_queue \
                 WHERE lock <> 0 AND queue > ?2 AND queue < ?3)",
            )?,
            remove: prepare("DELETE FROM openkv_queue WHERE id = ?1")?,
            paused: prepare("SELECT id FROM openkv_queue WHERE queue = ?1 AND dedup = ?2")?,
            until: prepare("SELECT due_ms FROM openkv_queue WHERE queue = ?1 AND dedup = ?2")?,
            running: prepare(
                "SELECT (SELECT count(*) FROM openkv_queue WHERE lock <> 0 AND queue = ?1) \
                 + (SELECT count(*) FROM openkv_queue WHERE lock <> 0 AND queue > ?2 AND queue < ?3)",
            )?,
            dead_letters: DeadLetters::new(connection)?,
            copies: None,
            depths: Depths::new(connection, file == Encoding::V8)?,
            deno: (file == Encoding::V8).then(|| DenoQueue::new(connection)).transpose()?,
        })
    }

    /// The number of messages of a queue that wait or are locked.
    pub(super) fn depth(&mut self, queue: &str) -> Result<u64> {
        // In a file for Deno the messages of Deno's queue move between two tables.
        let kept = self.deno.is_none() || !queue.is_empty();
        self.depths.of(queue, kept)
    }

    /// Adds a message; `None` if another one has its deduplication key.
    fn add(&mut self, message: &Message, now_ms: i64) -> Result<Option<i64>> {
        let backoff = pack_intervals(&message.backoff_ms);
        let undelivered = pack_keys(&message.keys_if_undelivered);
        let run = (self.insert.run())
            .text(1, &message.queue)
            .int(2, message.priority.into())
            .int(3, message.due.at_ms(now_ms))
            .int(4, now_ms)
            .text_or_null(5, message.deduplication_key.as_deref())
            .int_or_null(6, message.dead_retention_ms)
            .blob(7, &backoff)
            .blob(8, &undelivered)
            .blob(9, &message.value);
        let id = run.inserted()?;
        if id.is_some() {
            self.depths.came(&message.queue);
        }
        Ok(id)
    }

    /// Makes a waiting message this one, as if it had just been enqueued; `due_ms`: its new due time.
    fn replace(
        &mut self,
        id: i64,
        message: &Message,
        due_ms: Option<i64>,
        now_ms: i64,
    ) -> Result<()> {
        let backoff = pack_intervals(&message.backoff_ms);
        let undelivered = pack_keys(&message.keys_if_undelivered);
        (self.replace.run())
            .int(1, id)
            .int(2, message.priority.into())
            .int_or_null(3, due_ms)
            .int(4, now_ms)
            .int_or_null(5, message.dead_retention_ms)
            .blob(6, &backoff)
            .blob(7, &undelivered)
            .blob(8, &message.value)
            .finish()
    }

    /// A statement that is rarely needed.
    pub(super) fn beside(&self, sql: &str) -> Result<Statement> {
        self.remove.beside(sql)
    }

    /// Uses the statements on whole messages, which are prepared when they are first needed.
    fn copies<T>(&mut self, used: impl FnOnce(&mut MessageCopies) -> Result<T>) -> Result<T> {
        let copies = match self.copies.take() {
            Some(copies) => copies,
            None => MessageCopies::beside(&self.remove)?,
        };
        used(self.copies.insert(copies))
    }

    /// Deno's tables, if they have the messages of the queue.
    fn deno_of(&mut self, named: bool) -> Option<&mut DenoQueue> {
        self.deno.as_mut().filter(|_| !named)
    }

    /// Whether any lock has expired in the queues of these claims.
    pub(super) fn any_expired(&mut self, claims: &[Claim], now_ms: i64) -> Result<bool> {
        for Claim { queue, .. } in claims {
            let end_ms = self.first_end(queue)?;
            let deno = self.deno_of(!queue.is_empty()).map(DenoQueue::first_end).transpose()?;
            if end_ms.into_iter().chain(deno.flatten()).any(|end| end <= now_ms) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// The earliest expiry of a lock in a queue and in its groups.
    fn first_end(&mut self, queue: &str) -> Result<Option<i64>> {
        let (from, to) = groups_range(queue);
        self.first_end.run().text(1, queue).text(2, &from).text(3, &to).first_int()
    }

    /// The earliest due time of a waiting message of a queue.
    fn first_due(&mut self, queue: &str) -> Result<Option<i64>> {
        let mut earliest: Option<i64> = None;
        let mut above = i64::from(PRIORITY_MAX) + 1;
        while let Some(priority) = self.priority_below(queue, above)? {
            let due_ms = self.first_due.run().text(1, queue).int(2, priority).first_int()?;
            earliest = earliest.into_iter().chain(due_ms).min();
            above = priority;
        }
        Ok(earliest)
    }

    /// The next lower priority with a waiting message.
    fn priority_below(&mut self, queue: &str, above: i64) -> Result<Option<i64>> {
        self.priority.run().text(1, queue).int(2, above).first_int()
    }

    pub(super) fn earliest(&mut self, queue: &str) -> Result<Option<i64>> {
        let earliest = self.first_end(queue)?;
        if let Some(deno) = self.deno_of(!queue.is_empty()) {
            return Ok(earliest.into_iter().chain(deno.earliest()?).min());
        }
        if self.mark_of(queue)?.is_some() {
            return Ok(earliest);
        }
        let until_ms = self.until.run().text(1, LIMITED_QUEUES).text(2, queue).first_int()?;
        let mut due_ms = self.first_due(queue)?;
        if let Some(until_ms) = until_ms {
            let turns = self.first_due(&turns_queue(queue))?;
            due_ms = due_ms.into_iter().chain(turns).min().map(|at| at.max(until_ms));
        }
        Ok(earliest.into_iter().chain(due_ms).min())
    }

    pub(super) fn earliest_purge(&mut self) -> Result<Option<i64>> {
        self.dead_letters.earliest_purge()
    }
}

impl MessageTable for Messages {
    fn acknowledge(&mut self, id: i64, lock: i64) -> Result<Option<Freed>> {
        let mut run = self.delete.run().int(1, id).int(2, lock);
        let freed = run.step()?.then(|| freed_of(&run));
        run.finish()?;
        if let Some(freed) = &freed {
            self.depths.left(&freed.queue);
        }
        Ok(freed)
    }

    fn is_held(&mut self, id: i64, lock: i64) -> Result<bool> {
        Ok(self.held.run().int(1, id).int(2, lock).first_int()?.is_some())
    }

    fn put_back(&mut self, id: i64, lock: i64) -> Result<Option<Freed>> {
        let mut run = self.put_back.run().int(1, id).int(2, lock);
        let freed = run.step()?.then(|| freed_of(&run));
        run.finish()?;
        if let Some(freed) = &freed
            && let Some(deno) = self.deno_of(freed.is_named())
        {
            deno.put_back(id)?;
        }
        Ok(freed)
    }

    fn cancel(&mut self, queue: &str, id: i64) -> Result<Option<(Freed, Vec<u8>)>> {
        if self.deno_of(!queue.is_empty()).is_some() {
            return Ok(None);
        }
        let mut value = self.remove.beside(
            "SELECT v FROM openkv_queue WHERE id = ?1 AND (queue = ?2 OR queue > ?3 AND queue < ?4)",
        )?;
        let (from, to) = groups_range(queue);
        let run = value.run().int(1, id).text(2, queue).text(3, &from).text(4, &to);
        let Some(value) = run.first(|run| run.column_blob(0).to_vec())? else { return Ok(None) };
        let freed = self.delete_all(queue, &[id])?.pop();
        Ok(freed.map(|freed| (freed, value)))
    }

    fn locked(&mut self, id: i64, lock: i64) -> Result<Option<LockedMessage>> {
        self.locked.run().int(1, id).int(2, lock).first(locked_of)
    }

    fn renew(&mut self, id: i64, lock: i64, end_ms: i64) -> Result<bool> {
        Ok(self.renew.run().int(1, id).int(2, lock).int(3, end_ms).changes()? > 0)
    }

    /// The added half millisecond marks a lock as extended until its consumer renews it.
    fn extend_expired(&mut self, queue: &str, now_ms: i64, end_ms: i64) -> Result<()> {
        let (from, to) = groups_range(queue);
        let run = self.extend_expired.run().text(1, queue).int(2, now_ms).int(3, end_ms);
        run.text(4, &from).text(5, &to).finish()
    }

    fn expired(&mut self, queue: &str, max: usize, now_ms: i64) -> Result<Vec<LockedMessage>> {
        let (from, to) = groups_range(queue);
        let run = self.expired.run().text(1, queue).int(2, now_ms).int(3, max as i64);
        run.text(4, &from).text(5, &to).all(locked_of)
    }

    fn fail_shared(
        &mut self,
        queue: &str,
        max: usize,
        now_ms: i64,
    ) -> Result<(Vec<Undelivered>, bool)> {
        let deno = self.deno_of(!queue.is_empty());
        deno.map_or(Ok((Vec::new(), false)), |deno| deno.fail_expired(max, now_ms))
    }

    fn retry(&mut self, locked: &LockedMessage, due_ms: i64) -> Result<()> {
        self.retry.run().int(1, locked.id).int(2, due_ms).finish()?;
        match self.deno_of(locked.message.is_named()) {
            Some(deno) => deno.put_back(locked.id),
            None => Ok(()),
        }
    }

    fn remove_dead(
        &mut self,
        locked: &LockedMessage,
        reason: Option<&Reason>,
        now_ms: i64,
    ) -> Result<()> {
        if let Some(reason) = reason {
            let queue = queue_of_callers(&locked.message.queue);
            self.dead_letters.insert(locked.id, queue, reason, now_ms)?;
        }
        self.remove.run().int(1, locked.id).finish()?;
        self.depths.left(&locked.message.queue);
        Ok(())
    }

    fn enqueue(&mut self, message: Message, now_ms: i64) -> Result<Placed> {
        if let Some(deno) = self.deno_of(message.is_named()) {
            deno.enqueue(&message, message.due.at_ms(now_ms))?;
            return Ok(Placed::only(None, false));
        }
        if let Some(id) = self.add(&message, now_ms)? {
            return Ok(Placed::only(Some(id), false));
        }
        // Another message has the deduplication key.
        let key = message.deduplication_key.as_deref();
        let run = self.same.run().text(1, &message.queue).text_or_null(2, key);
        let Some((earlier, is_locked, due_ms)) =
            run.first(|run| (run.column_int(0), run.column_int(1) != 0, run.column_int(2)))?
        else {
            return Ok(Placed::only(None, true));
        };
        match (message.deduplication, is_locked) {
            (Deduplication::Drop, _) | (Deduplication::Again, false) => {
                Ok(Placed::only(Some(earlier), true))
            }
            (Deduplication::Again, true) => {
                let awaited = key.map(awaited_key);
                let run = self.leave_key.run().int(1, earlier);
                run.text_or_null(2, awaited.as_deref()).finish()?;
                let message = Message { due: Time::At(WAITS_FOR_ANOTHER_MS), ..message };
                let id = self.add(&message, now_ms)?;
                Ok(id.map_or(Placed::only(None, false), |id| Placed::beside(id, earlier)))
            }
            (Deduplication::Replace | Deduplication::Debounce, true) => {
                self.leave_key(earlier)?;
                let id = self.add(&message, now_ms)?;
                Ok(id.map_or(Placed::only(None, false), |id| Placed::beside(id, earlier)))
            }
            (Deduplication::Replace, false) => {
                self.replace(earlier, &message, None, now_ms)?;
                Ok(Placed::instead(earlier))
            }
            (Deduplication::Debounce, false) => {
                let waits_for_another = due_ms >= WAITS_FOR_ANOTHER_MS;
                let due_ms = (!waits_for_another).then(|| message.due.at_ms(now_ms));
                self.replace(earlier, &message, due_ms, now_ms)?;
                Ok(Placed::instead(earlier))
            }
        }
    }

    fn with_key(&mut self, queue: &str, key: &str) -> Result<Option<i64>> {
        self.same.run().text(1, queue).text(2, key).first_int()
    }

    fn leave_key(&mut self, id: i64) -> Result<()> {
        self.leave_key.run().int(1, id).text_or_null(2, None).finish()
    }

    fn claim(&mut self, claim: &Claim, now_ms: i64) -> Result<Vec<Delivery>> {
        let Claim { queue, max, lock_ms, lock } = claim;
        if self.mark_of(queue)?.is_some() {
            return Ok(Vec::new());
        }
        if let Some(deno) = self.deno_of(!queue.is_empty()) {
            deno.fetch(*max, now_ms)?;
        }
        let mut deliveries = Vec::new();
        let mut above = i64::from(PRIORITY_MAX) + 1;
        while deliveries.len() < *max
            && let Some(priority) = self.priority_below(queue, above)?
        {
            let room = max - deliveries.len();
            let run = self.due.run().text(1, queue).int(2, priority);
            let mut run = run.int(3, now_ms).int(4, room as i64);
            while run.step()? {
                let attempts = u32::try_from(run.column_int(2) + 1).unwrap_or(u32::MAX);
                let backoff_bytes = usize::try_from(run.column_int(4)).unwrap_or(0);
                deliveries.push(Delivery {
                    id: run.column_int(0),
                    lock: *lock,
                    attempts,
                    attempts_left: attempts_left(packed_intervals(backoff_bytes), attempts),
                    enqueued_ms: run.column_int(3),
                    value: run.column_blob(1).to_vec(),
                });
            }
            above = priority;
        }
        for delivery in &deliveries {
            let run = self.take.run().int(1, delivery.id).int(2, *lock);
            run.int(3, now_ms + lock_ms).int(4, now_ms).finish()?;
        }
        Ok(deliveries)
    }

    fn due(&mut self, queue: &str, max: usize, now_ms: i64) -> Result<Vec<i64>> {
        let mut ids = Vec::new();
        let mut above = i64::from(PRIORITY_MAX) + 1;
        while ids.len() < max
            && let Some(priority) = self.priority_below(queue, above)?
        {
            let room = i64::try_from(max - ids.len()).unwrap_or(i64::MAX);
            let run = self.due_ids.run().text(1, queue).int(2, priority).int(3, now_ms);
            ids.extend(run.int(4, room).all(|run| run.column_int(0))?);
            above = priority;
        }
        Ok(ids)
    }

    fn next_due(&mut self, queue: &str) -> Result<Option<i64>> {
        if self.mark_of(queue)?.is_some() {
            return Ok(None);
        }
        self.first_due(queue)
    }

    fn next_end(&mut self, queue: &str) -> Result<Option<i64>> {
        self.first_end(queue)
    }

    fn running(&mut self, queue: &str) -> Result<u64> {
        let (from, to) = groups_range(queue);
        let run = self.running.run().text(1, queue).text(2, &from).text(3, &to);
        Ok(run.first_int()?.unwrap_or(0).cast_unsigned())
    }

    fn move_to(&mut self, id: i64, queue: &str) -> Result<()> {
        let mut moved = self.remove.beside(
            "UPDATE openkv_queue AS m SET queue = ?2, dedup = iif(EXISTS (SELECT 1 FROM openkv_queue \
             AS there WHERE there.queue = ?2 AND there.dedup = m.dedup), NULL, dedup) WHERE id = ?1",
        )?;
        moved.run().int(1, id).text(2, queue).finish()
    }

    fn kept(&mut self, ids: &[i64]) -> Result<Vec<Option<KeptMessage>>> {
        self.copies(|copies| ids.iter().map(|id| copies.read(*id)).collect())
    }

    fn repeat(&mut self, messages: &[LoggedMessage]) -> Result<()> {
        if messages.is_empty() {
            return Ok(());
        }
        // They come and go in many queues.
        self.depths.forget();
        self.copies(|copies| copies.replace(messages))
    }

    fn purge(&mut self, max: usize, now_ms: i64) -> Result<usize> {
        self.dead_letters.purge(max, now_ms)
    }
}

/// A message in the current row of a statement that returns its queue and its deduplication key.
fn freed_of(run: &Run<'_, '_>) -> Freed {
    let key = (!run.column_is_null(1)).then(|| run.column_text(1));
    Freed { queue: run.column_text(0), key }
}

/// The message in the current row of a query from [`locked_where`].
fn locked_of(run: &Run<'_, '_>) -> LockedMessage {
    let value = run.column_blob(7).to_vec();
    // An unreadable message of Deno's is kept as it is. No CBOR begins with this byte.
    let unread = value.first() == Some(&u8::MAX);
    LockedMessage {
        id: run.column_int(0),
        attempts: u32::try_from(run.column_int(1)).unwrap_or(u32::MAX),
        lock_end_ms: run.column_int(2),
        message: Message {
            queue: run.column_text(3),
            backoff_ms: unpack_intervals(run.column_blob(4)),
            keys_if_undelivered: unpack_keys(run.column_blob(5)),
            dead_retention_ms: run.column_int_or_null(6),
            deduplication_key: (!run.column_is_null(8)).then(|| run.column_text(8)),
            value,
            ..Message::default()
        },
        encoding: if unread { Encoding::V8 } else { Encoding::Cbor },
    }
}

#[cfg(test)]
mod tests;
