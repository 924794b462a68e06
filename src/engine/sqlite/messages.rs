//! Queue messages in the writer's transaction.

use rusqlite::Connection;

use super::dead::{Burial, Graves};
use super::deno_queue::DenoQueue;
use super::depths::Depths;
use super::statement::{Run, Statement};
use crate::commit::{Failure, Settled, settle};
use crate::engine::Report;
use crate::model::{
    CLAIM_MESSAGES_MAX, Claim, DeadOrder, Delivery, EncodedValue, Encoding, Enqueued,
    FRUITLESS_PAUSE_MS, Key, LOCK_GRACE_MS, Message, Outcome, PRIORITY_MAX, Reason, Renewal,
    Result, Settlement,
};

/// What format 2 makes of the queue. Waiting messages are found in the order in which they are
/// handed out, locked ones by the end of their lock; a message is in one of the two indexes.
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

/// The statements that touch `openkv_queue`.
pub(super) struct Messages {
    insert: Statement,
    /// The message with a deduplication key.
    same: Statement,
    held: Statement,
    lost: Statement,
    put_off: Statement,
    priority: Statement,
    due: Statement,
    take: Statement,
    retry: Statement,
    renew: Statement,
    give_back: Statement,
    delete: Statement,
    /// As `delete`, telling the queue.
    delete_told: Statement,
    first_due: Statement,
    first_end: Statement,
    graves: Graves,
    pub(super) depths: Depths,
    /// Where the messages of Deno's queue are while they wait, in a file for Deno.
    deno: Option<DenoQueue>,
}

/// What dead messages leave behind: keys and the value that goes under them.
type Left = Vec<(Vec<Key>, EncodedValue)>;

/// What a message on its way is.
struct Queued {
    id: i64,
    message: Message,
    attempts: u32,
    enqueued_ms: i64,
    first_ms: Option<i64>,
    last_ms: Option<i64>,
    lock_end_ms: i64,
}

/// The columns of a [`Queued`], for [`queued_of`].
macro_rules! queued_where {
    ($condition:literal) => {
        concat!(
            "SELECT id, v, backoff_ms, undelivered, queue, priority, attempts, enqueued_ms, dedup, \
             dead_retention_ms, first_ms, last_ms, lock_end_ms FROM openkv_queue WHERE ",
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
            same: prepare("SELECT id FROM openkv_queue WHERE queue = ?1 AND dedup = ?2")?,
            held: prepare(queued_where!("id = ?1 AND lock = ?2 AND lock <> 0"))?,
            lost: prepare(queued_where!(
                "lock <> 0 AND queue = ?1 AND lock_end_ms <= ?2 ORDER BY lock_end_ms, id LIMIT ?3"
            ))?,
            put_off: prepare(
                "UPDATE openkv_queue SET lock_end_ms = ?3 + 0.5 WHERE lock <> 0 AND queue = ?1 \
                 AND lock_end_ms <= ?2 AND typeof(lock_end_ms) = 'integer'",
            )?,
            priority: prepare(
                "SELECT max(priority) FROM openkv_queue \
                 WHERE lock = 0 AND queue = ?1 AND priority < ?2",
            )?,
            due: prepare(
                "SELECT id, v, attempts, enqueued_ms FROM openkv_queue \
                 WHERE lock = 0 AND queue = ?1 AND priority = ?2 AND due_ms <= ?3 \
                 ORDER BY due_ms, id LIMIT ?4",
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
            give_back: prepare(
                "UPDATE openkv_queue SET lock = 0, lock_end_ms = 0, attempts = attempts - 1, \
                 first_ms = iif(attempts = 1, NULL, first_ms) \
                 WHERE id = ?1 AND lock = ?2 AND lock <> 0 RETURNING queue <> ''",
            )?,
            delete: prepare("DELETE FROM openkv_queue WHERE id = ?1 AND lock = ?2 AND lock <> 0")?,
            delete_told: prepare(
                "DELETE FROM openkv_queue WHERE id = ?1 AND lock = ?2 AND lock <> 0 \
                 RETURNING queue",
            )?,
            first_due: prepare(
                "SELECT min(due_ms) FROM openkv_queue \
                 WHERE lock = 0 AND queue = ?1 AND priority = ?2",
            )?,
            first_end: prepare(
                "SELECT min(lock_end_ms) FROM openkv_queue WHERE lock <> 0 AND queue = ?1",
            )?,
            graves: Graves::new(connection)?,
            depths: Depths::new(connection)?,
            deno: (file == Encoding::V8).then(|| DenoQueue::new(connection)).transpose()?,
        })
    }

    pub(super) fn enqueue(&mut self, message: &Message, now_ms: i64) -> Result<Enqueued> {
        if let Some(deno) = self.deno_of(message.is_named()) {
            deno.enqueue(message)?;
            return Ok(Enqueued { id: None, deduplicated: false });
        }
        let backoff = pack_intervals(&message.backoff_ms);
        let undelivered = pack_keys(&message.keys_if_undelivered);
        let run = (self.insert.run())
            .text(1, &message.queue)
            .int(2, message.priority.into())
            .int(3, message.due_ms)
            .int(4, now_ms)
            .text_or_null(5, message.deduplication_key.as_deref())
            .int_or_null(6, message.dead_retention_ms)
            .blob(7, &backoff)
            .blob(8, &undelivered)
            .blob(9, &message.value);
        if let Some(id) = run.inserted()? {
            self.depths.came(&message.queue);
            return Ok(Enqueued { id: Some(id), deduplicated: false });
        }
        // Another message has its deduplication key.
        let key = message.deduplication_key.as_deref();
        let mut run = self.same.run().text(1, &message.queue).text_or_null(2, key);
        let id = run.step()?.then(|| run.column_int(0));
        Ok(Enqueued { id, deduplicated: true })
    }

    /// Deletes a message whose lock still holds; `false` when there is no such.
    fn delete(&mut self, id: i64, lock: i64) -> Result<bool> {
        if !self.depths.are_kept() {
            return Ok(self.delete.run().int(1, id).int(2, lock).changes()? > 0);
        }
        let mut run = self.delete_told.run().int(1, id).int(2, lock);
        let held = run.step()?;
        if held {
            self.depths.left(&run.column_text(0));
        }
        run.finish()?;
        Ok(held)
    }

    /// Messages of a queue that wait or are being handled.
    pub(super) fn depth(&mut self, queue: &str) -> Result<u64> {
        // Messages of Deno's queue come and go between two tables in a file for Deno.
        let kept = self.deno.is_none() || !queue.is_empty();
        self.depths.of(queue, kept)
    }

    /// Where else messages of a queue are.
    fn deno_of(&mut self, named: bool) -> Option<&mut DenoQueue> {
        self.deno.as_mut().filter(|_| !named)
    }

    /// Ends deliveries whose lock still holds; answers what dead messages leave behind.
    pub(super) fn settle(
        &mut self,
        settlements: &[Settlement],
        now_ms: i64,
        report: &mut Report,
    ) -> Result<Left> {
        let mut left = Left::new();
        for Settlement { id, lock, outcome, delay_ms, reason } in settlements {
            let held = match outcome {
                Outcome::Done => self.delete(*id, *lock)?,
                Outcome::Returned => {
                    let mut run = self.give_back.run().int(1, *id).int(2, *lock);
                    let held = run.step()?;
                    let named = held && run.column_int(0) != 0;
                    report.queued |= held;
                    report.put_back |= named;
                    run.finish()?;
                    if held && let Some(deno) = self.deno_of(named) {
                        deno.give_back(*id)?;
                    }
                    held
                }
                Outcome::Failed => {
                    let mut run = self.held.run().int(1, *id).int(2, *lock);
                    let queued = if run.step()? { Some(queued_of(&run)) } else { None };
                    drop(run);
                    let held = queued.is_some();
                    if let Some(queued) = queued {
                        let failure = Failure::Told { delay_ms: *delay_ms };
                        let reason = reason.clone().unwrap_or_default();
                        left.extend(self.fail(queued, failure, &reason, now_ms, report)?);
                    }
                    held
                }
            };
            report.settled.push(held);
        }
        Ok(left)
    }

    /// Whether the lock of any delivery has run out in the queues of these claims.
    pub(super) fn any_lost(&mut self, claims: &[Claim], now_ms: i64) -> Result<bool> {
        for Claim { queue, .. } in claims {
            let end_ms = self.first_end(queue)?;
            let deno = self.deno_of(!queue.is_empty()).map(DenoQueue::first_end).transpose()?;
            if end_ms.into_iter().chain(deno.flatten()).any(|end| end <= now_ms) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// When the first lock of a queue runs out.
    fn first_end(&mut self, queue: &str) -> Result<Option<i64>> {
        let mut run = self.first_end.run().text(1, queue);
        Ok(if run.step()? { run.column_int_or_null(0) } else { None })
    }

    /// Puts off the ends of locks that have run out: their consumers could not renew them. Half a
    /// millisecond marks such an end, which is not put off again before its holder has renewed it.
    pub(super) fn put_off_lost(&mut self, claim: &Claim, now_ms: i64) -> Result<()> {
        // Holders renew a lock after a third of it, and consumers of one queue mostly ask for alike.
        let grace_ms = (claim.lock_ms / 3).clamp(2 * FRUITLESS_PAUSE_MS, LOCK_GRACE_MS);
        let run = self.put_off.run().text(1, &claim.queue).int(2, now_ms);
        run.int(3, now_ms + grace_ms).finish()
    }

    /// Fails the deliveries whose lock has run out: their consumer is gone.
    pub(super) fn fail_lost(
        &mut self,
        queue: &str,
        now_ms: i64,
        report: &mut Report,
    ) -> Result<Left> {
        let mut lost = Vec::new();
        let mut run = self.lost.run().text(1, queue).int(2, now_ms);
        run = run.int(3, CLAIM_MESSAGES_MAX as i64);
        while run.step()? {
            lost.push(queued_of(&run));
        }
        drop(run);
        report.lost += lost.len();
        let mut left = Left::new();
        if let Some(deno) = self.deno_of(!queue.is_empty()) {
            let (dead, queued) = deno.fail_lost(CLAIM_MESSAGES_MAX, now_ms)?;
            report.lost += dead.len();
            left.extend(dead);
            report.queued |= queued;
        }
        for queued in lost {
            let failure = Failure::LockLost { end_ms: queued.lock_end_ms };
            left.extend(self.fail(queued, failure, &Reason::lock_expired(), now_ms, report)?);
        }
        Ok(left)
    }

    fn fail(
        &mut self,
        queued: Queued,
        failure: Failure,
        reason: &Reason,
        now_ms: i64,
        report: &mut Report,
    ) -> Result<Option<(Vec<Key>, EncodedValue)>> {
        let Queued { id, message, attempts, enqueued_ms, first_ms, last_ms, .. } = queued;
        match settle(&message, attempts, failure, now_ms) {
            Settled::RetryAt(due_ms) => {
                self.retry.run().int(1, id).int(2, due_ms).finish()?;
                if let Some(deno) = self.deno_of(message.is_named()) {
                    deno.give_back(id)?;
                }
                report.queued = true;
                report.put_back |= message.is_named() && matches!(failure, Failure::Told { .. });
                Ok(None)
            }
            Settled::Dead => {
                if message.is_named() {
                    report.purge_ahead |= message.dead_retention_ms.is_some();
                    let times =
                        (enqueued_ms, first_ms.unwrap_or(now_ms), last_ms.unwrap_or(now_ms));
                    self.graves.bury(&Burial { id, attempts, times, now_ms, reason })?;
                }
                // Whatever its lock is: this transaction has decided that it is dead.
                self.graves.forget_live(id)?;
                self.depths.left(&message.queue);
                // What could not be read is what Deno has written: no CBOR begins like that.
                let unread = message.value.first() == Some(&u8::MAX);
                let encoding = if unread { Encoding::V8 } else { Encoding::Cbor };
                let value = EncodedValue { encoding, bytes: message.value };
                Ok(Some((message.keys_if_undelivered, value)))
            }
        }
    }

    pub(super) fn renew(&mut self, renewals: &[Renewal], now_ms: i64) -> Result<Vec<bool>> {
        let mut renewed = Vec::with_capacity(renewals.len());
        for Renewal { id, lock, lock_ms } in renewals {
            let run = self.renew.run().int(1, *id).int(2, *lock).int(3, now_ms + lock_ms);
            renewed.push(run.changes()? > 0);
        }
        Ok(renewed)
    }

    /// Locks and hands out messages that are due.
    pub(super) fn claim(&mut self, claim: &Claim, now_ms: i64) -> Result<Vec<Delivery>> {
        let Claim { queue, max, lock_ms, lock } = claim;
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
                deliveries.push(Delivery {
                    id: run.column_int(0),
                    lock: *lock,
                    attempts: u32::try_from(run.column_int(2) + 1).unwrap_or(u32::MAX),
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

    /// The next lower priority of which a message waits.
    fn priority_below(&mut self, queue: &str, above: i64) -> Result<Option<i64>> {
        let mut run = self.priority.run().text(1, queue).int(2, above);
        Ok(if run.step()? { run.column_int_or_null(0) } else { None })
    }

    pub(super) fn earliest(&mut self, queue: &str) -> Result<Option<i64>> {
        let mut earliest = self.first_end(queue)?;
        if let Some(deno) = self.deno_of(!queue.is_empty()) {
            return Ok(earliest.into_iter().chain(deno.earliest()?).min());
        }
        let mut above = i64::from(PRIORITY_MAX) + 1;
        while let Some(priority) = self.priority_below(queue, above)? {
            let mut run = self.first_due.run().text(1, queue).int(2, priority);
            let due_ms = if run.step()? { run.column_int_or_null(0) } else { None };
            earliest = earliest.into_iter().chain(due_ms).min();
            above = priority;
        }
        Ok(earliest)
    }

    pub(super) fn earliest_purge(&mut self) -> Result<Option<i64>> {
        self.graves.earliest_purge()
    }

    pub(super) fn purge(&mut self, max: usize, now_ms: i64) -> Result<usize> {
        self.graves.purge(max, now_ms)
    }

    pub(super) fn order_dead(
        &mut self,
        queue: &str,
        order: &DeadOrder,
        now_ms: i64,
    ) -> Result<usize> {
        let done = self.graves.order(queue, order, now_ms)?;
        if matches!(order, DeadOrder::Requeue(_)) && done > 0 {
            self.depths.came(queue);
        }
        Ok(done)
    }
}

/// The message in the current row of a query that [`queued_where`] makes.
fn queued_of(run: &Run<'_, '_>) -> Queued {
    let dedup = (!run.column_is_null(8)).then(|| run.column_text(8));
    Queued {
        id: run.column_int(0),
        message: Message {
            queue: run.column_text(4),
            priority: u8::try_from(run.column_int(5)).unwrap_or(0),
            due_ms: 0,
            backoff_ms: unpack_intervals(run.column_blob(2)),
            keys_if_undelivered: unpack_keys(run.column_blob(3)),
            deduplication_key: dedup,
            dead_retention_ms: run.column_int_or_null(9),
            value: run.column_blob(1).to_vec(),
        },
        attempts: u32::try_from(run.column_int(6)).unwrap_or(u32::MAX),
        enqueued_ms: run.column_int(7),
        first_ms: run.column_int_or_null(10),
        last_ms: run.column_int_or_null(11),
        lock_end_ms: run.column_int(12),
    }
}

/// Intervals as little-endian u32, one after the other.
pub(super) fn pack_intervals(intervals: &[u32]) -> Vec<u8> {
    intervals.iter().flat_map(|ms| ms.to_le_bytes()).collect()
}

pub(super) fn unpack_intervals(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four)).collect()
}

/// Keys one after the other, each behind its length as little-endian u32.
pub(super) fn pack_keys(keys: &[Key]) -> Vec<u8> {
    let mut packed = Vec::new();
    for key in keys {
        packed.extend_from_slice(&(key.len() as u32).to_le_bytes());
        packed.extend_from_slice(key.as_bytes());
    }
    packed
}

/// Stops at the first damaged key: one damaged message must not hold up everything else.
pub(super) fn unpack_keys(mut bytes: &[u8]) -> Vec<Key> {
    let mut keys = Vec::new();
    while !bytes.is_empty() {
        let split = bytes
            .split_first_chunk()
            .and_then(|(len, rest)| rest.split_at_checked(u32::from_le_bytes(*len) as usize));
        let Some((key, rest)) = split else {
            tracing::error!("a queued message names damaged keys; they are passed over");
            break;
        };
        keys.push(Key::from_encoded(key.to_vec()));
        bytes = rest;
    }
    keys
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    use crate::engine::sqlite::SqliteEngine;
    use crate::engine::{Engine, Work, Writer};
    use crate::model::{AtomicWrite, Limits, WriteParts};

    /// A lock that ran out was noticed by a transaction without a sync. What the message left
    /// behind was seen, taken back by a power loss, and its stamp given to another commit.
    #[test]
    fn what_a_dead_message_leaves_behind_is_synced() {
        let directory = tempfile::tempdir().unwrap();
        let busy = Duration::from_secs(5);
        let engine = SqliteEngine::open(&directory.path().join("kv"), false, busy).unwrap();
        let mut writer = engine.writer().unwrap();
        let key = Key::from_encoded(vec![2, b'k', 0]);
        let message = Message {
            keys_if_undelivered: vec![key.clone()],
            value: vec![1],
            ..Message::default()
        };
        let parts = WriteParts { messages: vec![message], ..WriteParts::default() };
        let writes = vec![AtomicWrite::new(parts, &Limits::default()).unwrap()];
        let deadline = Instant::now() + busy;
        writer.apply(Work { writes, ..Work::default() }, 0, deadline).unwrap();
        let mut claim = |now_ms| {
            let claims = vec![Claim { queue: String::new(), max: 1, lock_ms: 10, lock: 7 }];
            let report =
                writer.apply(Work { claims, ..Work::default() }, now_ms, deadline).unwrap();
            let level = "PRAGMA synchronous";
            let level: i64 = writer.connection().query_row(level, [], |row| row.get(0)).unwrap();
            (report.deliveries[0].len(), report.touched, level)
        };
        let (full, normal) = (2, 1);
        assert_eq!(claim(0), (1, vec![], normal));
        assert_eq!(claim(9), (0, vec![], normal));
        assert_eq!(claim(10), (0, vec![key], full));
    }

    #[test]
    fn packed_lists_come_back() {
        let keys = vec![Key::from_encoded(vec![0x15, 7]), Key::from_encoded(vec![0x26])];
        assert_eq!(unpack_keys(&pack_keys(&keys)), keys);
        assert_eq!(unpack_keys(&[pack_keys(&keys), vec![9, 0, 0, 0, 1]].concat()), keys);
        assert_eq!(unpack_intervals(&pack_intervals(&[1, 70_000])), [1, 70_000]);
    }
}
