//! Queue messages in the writer's transaction.

use rusqlite::Connection;

use super::statement::{Run, Statement};
use crate::commit::{Settled, settle};
use crate::engine::Report;
use crate::model::{
    CLAIM_MESSAGES_MAX, Delivery, EncodedValue, Key, LOCK_MS, Message, Outcome, Result, Settlement,
};

/// The statements that touch `openkv_queue`.
pub(super) struct Messages {
    insert: Statement,
    held: Statement,
    lost: Statement,
    due: Statement,
    take: Statement,
    retry: Statement,
    renew: Statement,
    give_back: Statement,
    delete: Statement,
    earliest: Statement,
}

/// What dead messages leave behind: keys and the value that goes under them.
type Dead = Vec<(Vec<Key>, EncodedValue)>;

impl Messages {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            insert: prepare(
                "INSERT INTO openkv_queue (due_ms, backoff_ms, undelivered, v) \
                 VALUES (?1, ?2, ?3, ?4)",
            )?,
            held: prepare(
                "SELECT id, v, backoff_ms, undelivered FROM openkv_queue \
                 WHERE id = ?1 AND lock = ?2",
            )?,
            lost: prepare(
                "SELECT id, v, backoff_ms, undelivered FROM openkv_queue \
                 WHERE due_ms <= ?1 AND lock <> 0 ORDER BY due_ms, id LIMIT ?2",
            )?,
            due: prepare(
                "SELECT id, v FROM openkv_queue \
                 WHERE due_ms <= ?1 AND lock = 0 ORDER BY due_ms, id LIMIT ?2",
            )?,
            take: prepare("UPDATE openkv_queue SET lock = ?2, due_ms = ?3 WHERE id = ?1")?,
            retry: prepare(
                "UPDATE openkv_queue SET lock = 0, due_ms = ?2, backoff_ms = ?3 WHERE id = ?1",
            )?,
            renew: prepare("UPDATE openkv_queue SET due_ms = ?3 WHERE id = ?1 AND lock = ?2")?,
            give_back: prepare("UPDATE openkv_queue SET lock = 0, due_ms = ?2 WHERE id = ?1")?,
            delete: prepare("DELETE FROM openkv_queue WHERE id = ?1 AND lock = ?2")?,
            earliest: prepare("SELECT min(due_ms) FROM openkv_queue")?,
        })
    }

    pub(super) fn enqueue(&mut self, message: &Message) -> Result<()> {
        let backoff = pack_intervals(&message.backoff_ms);
        let undelivered = pack_keys(&message.keys_if_undelivered);
        self.insert
            .run()
            .int(1, message.due_ms)
            .blob(2, &backoff)
            .blob(3, &undelivered)
            .blob(4, &message.value)
            .finish()
    }

    /// Ends deliveries whose lock still holds; answers what dead messages leave behind.
    pub(super) fn settle(
        &mut self,
        settlements: &[Settlement],
        now_ms: i64,
        report: &mut Report,
    ) -> Result<Dead> {
        let mut failed = Vec::new();
        for Settlement { id, lock, outcome } in settlements {
            match outcome {
                Outcome::Done => self.delete.run().int(1, *id).int(2, *lock).finish()?,
                Outcome::Returned => {
                    if self.held.run().int(1, *id).int(2, *lock).step()? {
                        self.give_back.run().int(1, *id).int(2, now_ms).finish()?;
                        report.queued = true;
                    }
                }
                Outcome::Failed => {
                    let mut run = self.held.run().int(1, *id).int(2, *lock);
                    if run.step()? {
                        failed.push(message_of(&run));
                    }
                }
            }
        }
        self.fail(failed, now_ms, report)
    }

    /// Fails the deliveries whose lock has run out: their consumer is gone.
    pub(super) fn fail_lost(&mut self, now_ms: i64, report: &mut Report) -> Result<Dead> {
        let mut lost = Vec::new();
        let mut run = self.lost.run().int(1, now_ms).int(2, CLAIM_MESSAGES_MAX as i64);
        while run.step()? {
            lost.push(message_of(&run));
        }
        drop(run);
        self.fail(lost, now_ms, report)
    }

    fn fail(
        &mut self,
        failed: Vec<(i64, Message)>,
        now_ms: i64,
        report: &mut Report,
    ) -> Result<Dead> {
        let mut dead = Vec::new();
        for (id, message) in failed {
            match settle(message, now_ms) {
                Settled::RetryAt { due_ms, backoff_ms } => {
                    let rest = pack_intervals(&backoff_ms);
                    self.retry.run().int(1, id).int(2, due_ms).blob(3, &rest).finish()?;
                    report.queued = true;
                }
                Settled::Dead { keys, value } => {
                    dead.push((keys, value));
                    self.remove(id)?;
                }
            }
        }
        Ok(dead)
    }

    fn remove(&mut self, id: i64) -> Result<()> {
        // Whatever its lock is: this transaction has already decided that it is dead.
        self.take.run().int(1, id).int(2, 0).int(3, 0).finish()?;
        self.delete.run().int(1, id).int(2, 0).finish()
    }

    pub(super) fn renew(&mut self, renewals: &[(i64, i64)], now_ms: i64) -> Result<()> {
        for (id, lock) in renewals {
            self.renew.run().int(1, *id).int(2, *lock).int(3, now_ms + LOCK_MS).finish()?;
        }
        Ok(())
    }

    /// Locks and hands out up to `max` messages that are due.
    pub(super) fn claim(&mut self, max: usize, lock: i64, now_ms: i64) -> Result<Vec<Delivery>> {
        let mut deliveries = Vec::new();
        if max > 0 {
            let mut run = self.due.run().int(1, now_ms).int(2, max as i64);
            while run.step()? {
                let value = run.column_blob(1).to_vec();
                deliveries.push(Delivery { id: run.column_int(0), value });
            }
        }
        for delivery in &deliveries {
            let until = now_ms + LOCK_MS;
            self.take.run().int(1, delivery.id).int(2, lock).int(3, until).finish()?;
        }
        Ok(deliveries)
    }

    pub(super) fn earliest(&mut self) -> Result<Option<i64>> {
        let mut run = self.earliest.run();
        Ok((run.step()? && !run.column_is_null(0)).then(|| run.column_int(0)))
    }
}

/// The message in the current row of a query that selects `id, v, backoff_ms, undelivered`.
fn message_of(run: &Run<'_, '_>) -> (i64, Message) {
    let message = Message {
        due_ms: 0,
        backoff_ms: unpack_intervals(run.column_blob(2)),
        keys_if_undelivered: unpack_keys(run.column_blob(3)),
        value: run.column_blob(1).to_vec(),
    };
    (run.column_int(0), message)
}

/// Intervals as little-endian u32, one after the other.
fn pack_intervals(intervals: &[u32]) -> Vec<u8> {
    intervals.iter().flat_map(|ms| ms.to_le_bytes()).collect()
}

fn unpack_intervals(bytes: &[u8]) -> Vec<u32> {
    bytes.as_chunks().0.iter().map(|four| u32::from_le_bytes(*four)).collect()
}

/// Keys one after the other, each behind its length as little-endian u32.
fn pack_keys(keys: &[Key]) -> Vec<u8> {
    let mut packed = Vec::new();
    for key in keys {
        packed.extend_from_slice(&(key.len() as u32).to_le_bytes());
        packed.extend_from_slice(key.as_bytes());
    }
    packed
}

/// Stops at the first damaged key: one damaged message must not hold up everything else.
fn unpack_keys(mut bytes: &[u8]) -> Vec<Key> {
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

    #[test]
    fn packed_lists_come_back() {
        let keys = vec![Key::from_encoded(vec![0x15, 7]), Key::from_encoded(vec![0x26])];
        assert_eq!(unpack_keys(&pack_keys(&keys)), keys);
        assert_eq!(unpack_keys(&[pack_keys(&keys), vec![9, 0, 0, 0, 1]].concat()), keys);
        assert_eq!(unpack_intervals(&pack_intervals(&[1, 70_000])), [1, 70_000]);
    }
}
