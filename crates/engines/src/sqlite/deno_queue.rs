//! Deno's own queue, in files that Deno and openkv share.
//!
//! A waiting message is in Deno's table `queue`, where both programs find it. A message that openkv
//! has claimed is in `openkv_queue` until its delivery ends: then it is deleted, or moves back with
//! the rest of its backoff. A message that Deno has claimed is in `queue_running`.

use rusqlite::Connection;

use super::statement::{Run, Statement};
use crate::packed::{pack_intervals, pack_keys, unpack_intervals, unpack_keys};
use openkv_core::codec::message_context;
use openkv_core::codec::transcode::{to_cbor, to_v8};
use openkv_core::commit::Undelivered;
use openkv_core::model::{
    DENO_RUNNING_MS, EncodedValue, Encoding, Key, Message, QueueStats, Result,
};

/// The statements on Deno's tables, and those that move messages between them and `openkv_queue`.
pub(super) struct DenoQueue {
    put: Statement,
    due: Statement,
    leave: Statement,
    take: Statement,
    row: Statement,
    forget: Statement,
    expired: Statement,
    end: Statement,
    first_due: Statement,
    first_end: Statement,
}

/// A reader's statements that count the messages in Deno's tables.
pub(super) struct DenoCounts {
    waiting: Statement,
    running: Statement,
}

impl DenoCounts {
    /// Prepares them on the connection of `on`.
    pub(super) fn beside(on: &Statement) -> Result<Self> {
        Ok(Self {
            waiting: on.beside("SELECT count(*), total(ts <= ?1) FROM queue")?,
            running: on.beside("SELECT count(*), total(deadline <= ?1) FROM queue_running")?,
        })
    }

    /// A message whose Deno process is gone is pending, as it is for `DenoQueue::fail_expired`.
    pub(super) fn stats(&mut self, now_ms: i64) -> Result<QueueStats> {
        let (waiting, due) = counts(&mut self.waiting, now_ms)?;
        let (running, lost) = counts(&mut self.running, now_ms.saturating_sub(DENO_RUNNING_MS))?;
        let (pending, delayed) = (due + lost, waiting - due);
        Ok(QueueStats { pending, delayed, processing: running - lost, ..QueueStats::default() })
    }
}

/// The number of messages in a table of Deno's, and of those up to a time.
fn counts(statement: &mut Statement, until_ms: i64) -> Result<(u64, u64)> {
    let mut run = statement.run().int(1, until_ms);
    run.step()?;
    Ok((run.column_int(0).cast_unsigned(), run.column_int(1).cast_unsigned()))
}

/// A message in one of Deno's tables.
struct DenoMessage {
    rowid: i64,
    at_ms: i64,
    data: Vec<u8>,
    backoff_ms: Vec<u32>,
    keys: Vec<Key>,
}

impl DenoQueue {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            // The id is a UUID of version 4; it only has to be unique.
            put: prepare(
                "INSERT INTO queue (ts, id, data, backoff_schedule, keys_if_undelivered) \
                 SELECT ?1, lower(substr(h, 1, 8) || '-' || substr(h, 9, 4) || '-4' || \
                 substr(h, 14, 3) || '-a' || substr(h, 18, 3) || '-' || substr(h, 21)), ?2, ?3, ?4 \
                 FROM (SELECT hex(randomblob(16)) AS h)",
            )?,
            due: prepare(
                "SELECT rowid, ts, data, backoff_schedule, keys_if_undelivered FROM queue \
                 WHERE ts <= ?1 ORDER BY ts, rowid LIMIT ?2",
            )?,
            leave: prepare("DELETE FROM queue WHERE rowid = ?1")?,
            take: prepare(
                "INSERT INTO openkv_queue \
                 (queue, priority, due_ms, enqueued_ms, backoff_ms, undelivered, v) \
                 VALUES ('', 0, ?1, ?1, ?2, ?3, ?4)",
            )?,
            row: prepare(
                "SELECT due_ms, v, backoff_ms, undelivered, attempts FROM openkv_queue \
                 WHERE id = ?1",
            )?,
            forget: prepare("DELETE FROM openkv_queue WHERE id = ?1")?,
            expired: prepare(
                "SELECT rowid, deadline, data, backoff_schedule, keys_if_undelivered \
                 FROM queue_running WHERE deadline <= ?1 ORDER BY deadline LIMIT ?2",
            )?,
            end: prepare("DELETE FROM queue_running WHERE rowid = ?1")?,
            first_due: prepare("SELECT min(ts) FROM queue")?,
            first_end: prepare("SELECT min(deadline) FROM queue_running")?,
        })
    }

    pub(super) fn enqueue(&mut self, message: &Message, due_ms: i64) -> Result<()> {
        let Message { value, backoff_ms, keys_if_undelivered, .. } = message;
        // Deno reads the messages of its queue, so they are stored without their context.
        let value = message_context::value_of(value);
        // A message that could not be decoded is kept in Deno's format.
        let data = to_v8(value).unwrap_or_else(|_| value.to_vec());
        self.put(due_ms, &data, backoff_ms, keys_if_undelivered)
    }

    fn put(&mut self, due_ms: i64, data: &[u8], backoff_ms: &[u32], keys: &[Key]) -> Result<()> {
        let backoff = serde_json::json!(backoff_ms).to_string();
        let keys: Vec<_> = keys.iter().map(Key::as_bytes).collect();
        let keys = serde_json::json!(keys).to_string();
        self.put.run().int(1, due_ms).blob(2, data).text(3, &backoff).text(4, &keys).finish()
    }

    /// Moves messages that are due to `openkv_queue`, where they are claimed.
    pub(super) fn fetch(&mut self, max: usize, now_ms: i64) -> Result<()> {
        for found in self.due.run().int(1, now_ms).int(2, max as i64).all(message_of)? {
            self.leave.run().int(1, found.rowid).finish()?;
            // A value that cannot be converted is kept; decoding it reports the error.
            let value = to_cbor(&found.data).unwrap_or(found.data);
            let backoff = pack_intervals(&found.backoff_ms);
            let keys = pack_keys(&found.keys);
            let run = self.take.run().int(1, found.at_ms);
            run.blob(2, &backoff).blob(3, &keys).blob(4, &value).finish()?;
        }
        Ok(())
    }

    /// Moves a message that is no longer claimed back to Deno's `queue`.
    pub(super) fn put_back(&mut self, id: i64) -> Result<()> {
        let mut run = self.row.run().int(1, id);
        if !run.step()? {
            return Ok(());
        }
        let used = usize::try_from(run.column_int(4)).unwrap_or(0);
        let (due_ms, backoff_ms) = (run.column_int(0), unpack_intervals(run.column_blob(2)));
        let message = Message {
            value: run.column_blob(1).to_vec(),
            backoff_ms: backoff_ms.into_iter().skip(used).collect(),
            keys_if_undelivered: unpack_keys(run.column_blob(3)),
            ..Message::default()
        };
        drop(run);
        self.enqueue(&message, due_ms)?;
        self.forget.run().int(1, id).finish()
    }

    /// Fails the expired deliveries of a Deno process, as another Deno process would. Returns the
    /// undelivered values, and whether any message waits again.
    pub(super) fn fail_expired(
        &mut self,
        max: usize,
        now_ms: i64,
    ) -> Result<(Vec<Undelivered>, bool)> {
        let (mut dead, mut queued) = (Vec::new(), false);
        let ended_ms = now_ms.saturating_sub(DENO_RUNNING_MS);
        for found in self.expired.run().int(1, ended_ms).int(2, max as i64).all(message_of)? {
            self.end.run().int(1, found.rowid).finish()?;
            match found.backoff_ms.split_first() {
                Some((wait_ms, rest)) => {
                    self.put(now_ms + i64::from(*wait_ms), &found.data, rest, &found.keys)?;
                    queued = true;
                }
                None => {
                    let value = EncodedValue { encoding: Encoding::V8, bytes: found.data };
                    dead.push(Undelivered { keys: found.keys, value, expire_at_ms: None });
                }
            }
        }
        Ok((dead, queued))
    }

    /// The earliest due time or expiry of a message.
    pub(super) fn earliest(&mut self) -> Result<Option<i64>> {
        let due_ms = self.first_due.run().first_int()?;
        Ok(due_ms.into_iter().chain(self.first_end()?).min())
    }

    /// The earliest expiry of a delivery of a Deno process.
    pub(super) fn first_end(&mut self) -> Result<Option<i64>> {
        Ok(self.first_end.run().first_int()?.map(|end| end.saturating_add(DENO_RUNNING_MS)))
    }
}

fn message_of(run: &Run<'_, '_>) -> DenoMessage {
    DenoMessage {
        rowid: run.column_int(0),
        at_ms: run.column_int(1),
        data: run.column_blob(2).to_vec(),
        backoff_ms: listed(run.column_blob(3)),
        keys: listed(run.column_blob(4)).into_iter().map(Key::from_encoded).collect(),
    }
}

/// Parses a list in JSON; `null` is an empty one. A damaged list becomes empty, so that it does not
/// block other messages.
fn listed<T: serde::de::DeserializeOwned>(json: &[u8]) -> Vec<T> {
    match serde_json::from_slice::<Option<Vec<T>>>(json) {
        Ok(list) => list.unwrap_or_default(),
        Err(error) => {
            tracing::error!(%error, "a message in Deno's queue has a damaged list; it is passed over");
            Vec::new()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::sqlite::SqliteEngine;
    use crate::{Engine, Reader, Snapshot, Writer};

    /// Queues of a file for Deno once looked empty, as only openkv's own table was counted.
    #[test]
    fn the_messages_in_denos_tables_are_counted() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("kv");
        let (busy, wanted) = (Duration::from_secs(5), Some(Encoding::V8));
        let engine = SqliteEngine::open_as(&path, false, busy, wanted).unwrap();
        let (now, file) = (1_000_000, Connection::open(&path).unwrap());
        let add = |table: &str, time: &str, at_ms: i64| {
            let columns = "id, data, backoff_schedule, keys_if_undelivered";
            let row = format!("{at_ms}, '{at_ms}', x'', '[]', '[]'");
            file.execute(&format!("INSERT INTO {table} ({time}, {columns}) VALUES ({row})"), [])
                .unwrap();
        };
        for at_ms in [now - 1, now, now + 1] {
            add("queue", "ts", at_ms);
        }
        // Deno ends its own deliveries for a minute after their deadlines.
        for deadline in [now + 1, now - DENO_RUNNING_MS + 1, now - DENO_RUNNING_MS] {
            add("queue_running", "deadline", deadline);
        }
        let mut reader = engine.reader().unwrap();
        let mut look = |snapshot: &mut dyn Snapshot| {
            assert_eq!(snapshot.queues()?.names(10)?, [""]);
            let stats =
                QueueStats { pending: 3, delayed: 1, processing: 2, ..QueueStats::default() };
            assert_eq!(snapshot.queues()?.stats("")?, stats);
            Ok(())
        };
        reader.read(now, &mut look).unwrap();
        assert_eq!(engine.writer().unwrap().queue_depth("").unwrap(), 6);
    }
}
