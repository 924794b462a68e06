//! Deno's own queue, in files that it has in common with openkv.
//!
//! A message that waits is in Deno's `queue`, where both find it. One that openkv has claimed is in
//! `openkv_queue` until its delivery has ended: it is deleted, or goes back with what is left of its
//! backoff. One that Deno has claimed is in `queue_running`.

use rusqlite::Connection;

use super::messages::{pack_intervals, pack_keys, unpack_intervals, unpack_keys};
use super::statement::{Run, Statement};
use crate::codec::transcode::{to_cbor, to_v8};
use crate::model::{DENO_RUNNING_MS, EncodedValue, Encoding, Key, Message, Result};

/// What a dead message leaves behind: a value under keys.
type LeftBehind = (Vec<Key>, EncodedValue);

/// The statements that touch Deno's tables, and those that move messages between them and ours.
pub(super) struct DenoQueue {
    put: Statement,
    due: Statement,
    leave: Statement,
    take: Statement,
    row: Statement,
    forget: Statement,
    lost: Statement,
    end: Statement,
    first_due: Statement,
    first_end: Statement,
}

/// A message in one of Deno's tables.
struct Found {
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
            // The id is a UUID of version 4, which only has to be another for each message.
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
            lost: prepare(
                "SELECT rowid, deadline, data, backoff_schedule, keys_if_undelivered \
                 FROM queue_running WHERE deadline <= ?1 ORDER BY deadline LIMIT ?2",
            )?,
            end: prepare("DELETE FROM queue_running WHERE rowid = ?1")?,
            first_due: prepare("SELECT min(ts) FROM queue")?,
            first_end: prepare("SELECT min(deadline) FROM queue_running")?,
        })
    }

    pub(super) fn enqueue(&mut self, message: &Message) -> Result<()> {
        let Message { due_ms, value, backoff_ms, keys_if_undelivered, .. } = message;
        // A message that could not be read has come as it was.
        let data = to_v8(value).unwrap_or_else(|_| value.clone());
        self.put(*due_ms, &data, backoff_ms, keys_if_undelivered)
    }

    fn put(&mut self, due_ms: i64, data: &[u8], backoff_ms: &[u32], keys: &[Key]) -> Result<()> {
        let backoff = serde_json::json!(backoff_ms).to_string();
        let keys: Vec<_> = keys.iter().map(Key::as_bytes).collect();
        let keys = serde_json::json!(keys).to_string();
        self.put.run().int(1, due_ms).blob(2, data).text(3, &backoff).text(4, &keys).finish()
    }

    /// Moves messages that are due to where they are claimed.
    pub(super) fn fetch(&mut self, max: usize, now_ms: i64) -> Result<()> {
        for found in all(self.due.run().int(1, now_ms).int(2, max as i64))? {
            self.leave.run().int(1, found.rowid).finish()?;
            // What cannot be read fails where it is decoded.
            let value = to_cbor(&found.data).unwrap_or(found.data);
            let backoff = pack_intervals(&found.backoff_ms);
            let keys = pack_keys(&found.keys);
            let run = self.take.run().int(1, found.at_ms);
            run.blob(2, &backoff).blob(3, &keys).blob(4, &value).finish()?;
        }
        Ok(())
    }

    /// Moves a message that is no longer claimed back to where Deno finds it too.
    pub(super) fn give_back(&mut self, id: i64) -> Result<()> {
        let mut run = self.row.run().int(1, id);
        if !run.step()? {
            return Ok(());
        }
        let used = usize::try_from(run.column_int(4)).unwrap_or(0);
        let backoff_ms = unpack_intervals(run.column_blob(2));
        let message = Message {
            due_ms: run.column_int(0),
            value: run.column_blob(1).to_vec(),
            backoff_ms: backoff_ms.into_iter().skip(used).collect(),
            keys_if_undelivered: unpack_keys(run.column_blob(3)),
            ..Message::default()
        };
        drop(run);
        self.enqueue(&message)?;
        self.forget.run().int(1, id).finish()
    }

    /// Fails the deliveries of a Deno that is gone, as another Deno would; answers what those that
    /// are dead leave behind, and whether others wait again.
    pub(super) fn fail_lost(&mut self, max: usize, now_ms: i64) -> Result<(Vec<LeftBehind>, bool)> {
        let (mut left, mut queued) = (Vec::new(), false);
        let ended_ms = now_ms.saturating_sub(DENO_RUNNING_MS);
        for found in all(self.lost.run().int(1, ended_ms).int(2, max as i64))? {
            self.end.run().int(1, found.rowid).finish()?;
            match found.backoff_ms.split_first() {
                Some((wait_ms, rest)) => {
                    self.put(now_ms + i64::from(*wait_ms), &found.data, rest, &found.keys)?;
                    queued = true;
                }
                None => {
                    let value = EncodedValue { encoding: Encoding::V8, bytes: found.data };
                    left.push((found.keys, value));
                }
            }
        }
        Ok((left, queued))
    }

    /// When there is something to be done for the first time.
    pub(super) fn earliest(&mut self) -> Result<Option<i64>> {
        let due_ms = first(&mut self.first_due)?;
        Ok(due_ms.into_iter().chain(self.first_end()?).min())
    }

    /// When the first message that Deno has claimed counts as lost.
    pub(super) fn first_end(&mut self) -> Result<Option<i64>> {
        Ok(first(&mut self.first_end)?.map(|end| end.saturating_add(DENO_RUNNING_MS)))
    }
}

fn first(statement: &mut Statement) -> Result<Option<i64>> {
    let mut run = statement.run();
    Ok(if run.step()? { run.column_int_or_null(0) } else { None })
}

fn all(mut run: Run<'_, '_>) -> Result<Vec<Found>> {
    let mut all = Vec::new();
    while run.step()? {
        all.push(Found {
            rowid: run.column_int(0),
            at_ms: run.column_int(1),
            data: run.column_blob(2).to_vec(),
            backoff_ms: listed(run.column_blob(3)),
            keys: listed(run.column_blob(4)).into_iter().map(Key::from_encoded).collect(),
        });
    }
    Ok(all)
}

/// A list in JSON; `null` is an empty one. What is damaged must not hold up everything else.
fn listed<T: serde::de::DeserializeOwned>(json: &[u8]) -> Vec<T> {
    match serde_json::from_slice::<Option<Vec<T>>>(json) {
        Ok(list) => list.unwrap_or_default(),
        Err(error) => {
            tracing::error!(%error, "a message in Deno's queue has a damaged list; it is passed over");
            Vec::new()
        }
    }
}
