//! The changes of messages by a batch, as columns of the statements that carry it out.

use std::collections::HashSet;

use tokio_postgres::Row;

use super::cells::Cells;
use super::line::Call;
use super::link::Link;
use crate::packed::{pack_intervals, pack_keys, unpack_intervals, unpack_keys};
use openkv_core::model::{
    DeadLetterChange, Freed, KeptMessage, KeptState, Message, MessageDeletion, PAUSED_QUEUES,
    Reason, Result, groups_range,
};

const RENEW: &str = "\
UPDATE openkv.messages AS m SET lock_end_ms = u.end_ms, in_grace = false \
FROM unnest($2::int8[], $3::int8[]) AS u(id, end_ms) CROSS JOIN LATERAL (SELECT ctid FROM openkv.messages \
WHERE db = $1 AND id = u.id LIMIT 1) AS f WHERE m.ctid = f.ctid";

const PUT_BACK: &str = "\
UPDATE openkv.messages AS m SET locked = false, lock = 0, lock_end_ms = 0, \
attempts = m.attempts - 1, first_ms = CASE WHEN m.attempts = 1 THEN NULL ELSE m.first_ms END \
FROM unnest($2::int8[]) AS u(id) CROSS JOIN LATERAL (SELECT ctid FROM openkv.messages \
WHERE db = $1 AND id = u.id LIMIT 1) AS f WHERE m.ctid = f.ctid";

const RETRY: &str = "\
UPDATE openkv.messages AS m SET locked = false, lock = 0, lock_end_ms = 0, due_ms = u.due_ms \
FROM unnest($2::int8[], $3::int8[]) AS u(id, due_ms) CROSS JOIN LATERAL (SELECT ctid FROM openkv.messages \
WHERE db = $1 AND id = u.id LIMIT 1) AS f WHERE m.ctid = f.ctid";

/// A dead letter keeps all fields of its message, so that it can be requeued.
const DIE: &str = "\
INSERT INTO openkv.dead (db, id, queue, priority, attempts, enqueued_ms, first_ms, last_ms, \
died_ms, purge_ms, dedup, dead_retention_ms, backoff_ms, undelivered, error_name, error_message, v) \
SELECT $1, m.id, u.queue, m.priority, m.attempts, m.enqueued_ms, coalesce(m.first_ms, $2), \
coalesce(m.last_ms, $2), $2, $2 + m.dead_retention_ms, m.dedup, m.dead_retention_ms, m.backoff_ms, \
m.undelivered, u.error_name, u.error_message, m.v \
FROM unnest($3::int8[], $4::bytea[], $5::bytea[], $6::bytea[]) AS u(id, error_name, error_message, queue) \
CROSS JOIN LATERAL (SELECT * FROM openkv.messages WHERE db = $1 AND id = u.id LIMIT 1) AS m";

const DELETE: &str = "\
DELETE FROM openkv.messages AS m USING unnest($2::int8[]) AS u(id) CROSS JOIN LATERAL (SELECT ctid FROM openkv.messages \
WHERE db = $1 AND id = u.id LIMIT 1) AS f WHERE m.ctid = f.ctid";

const ENQUEUE: &str = "\
INSERT INTO openkv.messages (db, id, queue, priority, due_ms, enqueued_ms, dedup, \
dead_retention_ms, backoff_ms, undelivered, v) \
SELECT $1, u.id, u.queue, u.priority, u.due_ms, $2, u.dedup, u.retention, u.backoff, u.undelivered, \
u.v FROM unnest($3::int8[], $4::bytea[], $5::int2[], $6::int8[], $7::bytea[], $8::int8[], \
$9::bytea[], $10::bytea[], $11::bytea[]) \
AS u(id, queue, priority, due_ms, dedup, retention, backoff, undelivered, v)";

/// If another message has the deduplication key meanwhile, that message keeps it.
const REQUEUE: &str = "\
WITH gone AS (DELETE FROM openkv.dead WHERE db = $1 AND id = $2 AND queue = $3 RETURNING *) \
INSERT INTO openkv.messages (db, id, queue, priority, due_ms, enqueued_ms, dedup, \
dead_retention_ms, backoff_ms, undelivered, v) \
SELECT db, id, queue, priority, $4, $4, CASE WHEN EXISTS (SELECT 1 FROM openkv.messages AS live \
WHERE live.db = $1 AND live.queue = gone.queue AND live.dedup = gone.dedup) THEN NULL \
ELSE dedup END, dead_retention_ms, backoff_ms, undelivered, v FROM gone RETURNING id";

/// Of those with one deduplication key the first one has it.
const REQUEUE_ALL: &str = "\
WITH old AS MATERIALIZED (SELECT ctid AS place FROM openkv.dead \
WHERE db = $1 AND queue = $2 AND died_ms < $3 AND (purge_ms IS NULL OR purge_ms > $5) \
ORDER BY died_ms, id LIMIT $4), \
gone AS (DELETE FROM openkv.dead AS d USING old WHERE d.ctid = old.place RETURNING d.*) \
INSERT INTO openkv.messages (db, id, queue, priority, due_ms, enqueued_ms, dedup, \
dead_retention_ms, backoff_ms, undelivered, v) \
SELECT db, id, queue, priority, $5, $5, CASE WHEN row_number() OVER (PARTITION BY dedup ORDER BY died_ms, id) > 1 \
OR EXISTS (SELECT 1 FROM openkv.messages AS live \
WHERE live.db = $1 AND live.queue = gone.queue AND live.dedup = gone.dedup) THEN NULL \
ELSE dedup END, dead_retention_ms, backoff_ms, undelivered, v FROM gone RETURNING id";

const DELETE_DEAD: &str =
    "DELETE FROM openkv.dead WHERE db = $1 AND id = $2 AND queue = $3 RETURNING id";

const PURGE_DEAD: &str = "\
WITH old AS MATERIALIZED (SELECT ctid AS place FROM openkv.dead \
WHERE db = $1 AND queue = $2 AND died_ms < $3 ORDER BY died_ms, id LIMIT $4) \
DELETE FROM openkv.dead AS d USING old WHERE d.ctid = old.place RETURNING d.id";

/// Answers whether the message was not locked, and so is deleted.
const RESUME: &str = "\
DELETE FROM openkv.messages WHERE db = $1 AND queue = $2 AND dedup = $3 RETURNING id";

const DRAIN: &str = "\
WITH old AS MATERIALIZED (SELECT m.place FROM (\
SELECT ctid AS place, enqueued_ms, locked, due_ms, lock_end_ms FROM openkv.messages WHERE db = $1 AND queue = $2 UNION ALL \
SELECT ctid, enqueued_ms, locked, due_ms, lock_end_ms FROM openkv.messages WHERE db = $1 AND queue > $7 AND queue < $8) AS m \
WHERE enqueued_ms <= $4 AND (NOT locked AND (due_ms <= $3 OR $5) OR locked AND lock_end_ms <= $3) LIMIT $6) \
DELETE FROM openkv.messages AS m USING old WHERE m.ctid = old.place RETURNING m.queue, m.dedup, m.id";

const DELETE_WAITING: &str = "\
WITH found AS MATERIALIZED (SELECT ctid AS place, (NOT locked OR lock_end_ms <= $4) AS waits \
FROM openkv.messages WHERE db = $1 AND id = $2 AND (queue = $3 OR queue > $5 AND queue < $6)), \
gone AS (DELETE FROM openkv.messages AS m USING found AS f WHERE f.waits AND m.ctid = f.place \
RETURNING m.queue, m.dedup) \
SELECT gone.queue, gone.dedup, waits FROM found LEFT JOIN gone ON true";

/// The changes of a batch, in the order of the fields.
#[derive(Default)]
pub(super) struct MessageChanges {
    renewed: (Vec<i64>, Vec<i64>),
    put_back: Vec<i64>,
    retried: (Vec<i64>, Vec<i64>),
    dead: Dead,
    deleted: Vec<i64>,
    deleted_ids: HashSet<i64>,
    enqueued: EnqueuedRows,
}

#[derive(Default)]
struct Dead {
    now_ms: i64,
    ids: Vec<i64>,
    names: Vec<Vec<u8>>,
    messages: Vec<Vec<u8>>,
    queues: Vec<Vec<u8>>,
}

/// In the order of their numbers.
#[derive(Default)]
struct EnqueuedRows {
    now_ms: i64,
    ids: Vec<i64>,
    queues: Vec<Vec<u8>>,
    priorities: Vec<i16>,
    due_ms: Vec<i64>,
    keys: Vec<Option<Vec<u8>>>,
    retentions_ms: Vec<Option<i64>>,
    backoffs: Vec<Vec<u8>>,
    undelivered: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
}

impl MessageChanges {
    pub(super) fn renew(&mut self, id: i64, end_ms: i64) {
        self.renewed.0.push(id);
        self.renewed.1.push(end_ms);
    }

    pub(super) fn put_back(&mut self, id: i64) {
        self.put_back.push(id);
    }

    pub(super) fn retry(&mut self, id: i64, due_ms: i64) {
        self.retried.0.push(id);
        self.retried.1.push(due_ms);
    }

    /// Makes a dead letter of a queue of a message; its deletion is a change of its own.
    pub(super) fn die(&mut self, id: i64, queue: &str, reason: &Reason, now_ms: i64) {
        let dead = &mut self.dead;
        dead.now_ms = now_ms;
        dead.ids.push(id);
        dead.names.push(reason.name().as_bytes().to_vec());
        dead.messages.push(reason.message().as_bytes().to_vec());
        dead.queues.push(queue.as_bytes().to_vec());
    }

    pub(super) fn delete(&mut self, id: i64) {
        self.deleted.push(id);
        self.deleted_ids.insert(id);
    }

    /// Whether a message is to be deleted.
    pub(super) fn deletes(&self, id: i64) -> bool {
        self.deleted_ids.contains(&id)
    }

    pub(super) fn enqueue(&mut self, id: i64, message: Message, now_ms: i64) {
        let rows = &mut self.enqueued;
        rows.now_ms = now_ms;
        rows.ids.push(id);
        rows.queues.push(message.queue.into_bytes());
        rows.priorities.push(i16::from(message.priority));
        rows.due_ms.push(message.due.at_ms(now_ms));
        rows.keys.push(message.deduplication_key.map(String::into_bytes));
        rows.retentions_ms.push(message.dead_retention_ms);
        rows.backoffs.push(pack_intervals(&message.backoff_ms));
        rows.undelivered.push(pack_keys(&message.keys_if_undelivered));
        rows.values.push(message.value);
    }

    /// A message that is to be enqueued, as the log has it.
    pub(super) fn enqueued(&self, id: i64) -> Option<KeptMessage> {
        let EnqueuedRows { ids, queues, priorities, due_ms, keys, .. } = &self.enqueued;
        let EnqueuedRows { now_ms, retentions_ms, backoffs, undelivered, values, .. } =
            &self.enqueued;
        let at = ids.binary_search(&id).ok()?;
        let text = |bytes: &Vec<u8>| String::from_utf8_lossy(bytes).into_owned();
        Some(KeptMessage {
            queue: text(queues.get(at)?),
            priority: u8::try_from(*priorities.get(at)?).unwrap_or(u8::MAX),
            attempts: 0,
            enqueued_ms: *now_ms,
            first_ms: None,
            last_ms: None,
            deduplication_key: keys.get(at)?.as_ref().map(text),
            dead_retention_ms: *retentions_ms.get(at)?,
            backoff_ms: unpack_intervals(backoffs.get(at)?),
            keys_if_undelivered: unpack_keys(undelivered.get(at)?),
            value: values.get(at)?.clone(),
            state: KeptState::Waiting { due_ms: *due_ms.get(at)? },
        })
    }

    /// Adds the statements that carry them out.
    pub(super) fn calls<'a>(&'a self, db: &'a i64, calls: &mut Vec<Call<'a>>) {
        let Self { renewed, put_back, retried, dead, deleted, enqueued, .. } = self;
        if !renewed.0.is_empty() {
            calls.push((RENEW, vec![db, &renewed.0, &renewed.1]));
        }
        if !put_back.is_empty() {
            calls.push((PUT_BACK, vec![db, put_back]));
        }
        if !retried.0.is_empty() {
            calls.push((RETRY, vec![db, &retried.0, &retried.1]));
        }
        if !dead.ids.is_empty() {
            let Dead { now_ms, ids, names, messages, queues } = dead;
            calls.push((DIE, vec![db, now_ms, ids, names, messages, queues]));
        }
        if !deleted.is_empty() {
            calls.push((DELETE, vec![db, deleted]));
        }
        let EnqueuedRows { now_ms, ids, queues, priorities, due_ms, keys, retentions_ms, .. } =
            enqueued;
        let EnqueuedRows { backoffs, undelivered, values, .. } = enqueued;
        if !ids.is_empty() {
            let mut arguments: Vec<&super::line::Value<'_>> =
                vec![db, now_ms, ids, queues, priorities, due_ms, keys, retentions_ms];
            arguments.extend([backoffs as &super::line::Value<'_>, undelivered, values]);
            calls.push((ENQUEUE, arguments));
        }
    }
}

/// Deletes a message at once, unless a consumer has it.
pub(super) fn delete_waiting(
    link: &Link,
    db: i64,
    queue: &str,
    id: i64,
    now_ms: i64,
) -> Result<(MessageDeletion, Vec<Freed>)> {
    let (from, to) = groups_range(queue);
    let (queue, from, to) = (queue.as_bytes(), from.as_bytes(), to.as_bytes());
    let rows = link.query((DELETE_WAITING, vec![&db, &id, &queue, &now_ms, &from, &to]))?;
    let Some(row) = rows.first() else { return Ok((MessageDeletion::Absent, Vec::new())) };
    Ok(match Cells::of("messages", row).get(2)? {
        true => (MessageDeletion::Deleted, vec![freed_of(row)?]),
        false => (MessageDeletion::Locked, Vec::new()),
    })
}

/// Of what a queue is free: a row that begins with the queue and the deduplication key of a message.
pub(super) fn freed_of(row: &Row) -> Result<Freed> {
    let cells = Cells::of("messages", row);
    let key = cells.get::<Option<&[u8]>>(1)?;
    let key = key.map(|key| String::from_utf8_lossy(key).into_owned());
    Ok(Freed { queue: cells.text(0)?, key })
}

/// Ends the pause of a queue at once; answers the number of its mark.
pub(super) fn resume(link: &Link, db: i64, queue: &str) -> Result<Vec<i64>> {
    let (queue, paused) = (queue.as_bytes(), PAUSED_QUEUES.as_bytes());
    let rows = link.query((RESUME, vec![&db, &paused, &queue]))?;
    rows.iter().map(|row| Cells::of("messages", row).get(0)).collect()
}

/// As [`openkv_core::model::QueueChange::Drain`].
pub(super) struct Drain {
    pub(super) until_ms: i64,
    pub(super) delayed: bool,
    pub(super) max: usize,
}

/// Drains a queue at once; answers the numbers of the messages, and of what their queues are free.
pub(super) fn drained(
    link: &Link,
    db: i64,
    queue: &str,
    &Drain { until_ms, delayed, max }: &Drain,
    now_ms: i64,
) -> Result<(Vec<i64>, Vec<Freed>)> {
    let (from, to) = groups_range(queue);
    let (queue, from, to) = (queue.as_bytes(), from.as_bytes(), to.as_bytes());
    let max = i64::try_from(max).unwrap_or(i64::MAX);
    let values: Vec<&super::line::Value<'_>> =
        vec![&db, &queue, &now_ms, &until_ms, &delayed, &max, &from, &to];
    let rows = link.query((DRAIN, values))?;
    let gone = rows.iter().map(|row| -> Result<(i64, Freed)> {
        Ok((Cells::of("messages", row).get(2)?, freed_of(row)?))
    });
    gone.collect::<Result<Vec<_>>>().map(|gone| gone.into_iter().unzip())
}

/// Requeues or deletes dead letters at once; answers their numbers.
pub(super) fn change_dead_letters(
    link: &Link,
    db: i64,
    queue: &str,
    change: &DeadLetterChange,
    now_ms: i64,
) -> Result<Vec<i64>> {
    let queue = queue.as_bytes();
    let rows = match change {
        DeadLetterChange::Requeue(id) => link.query((REQUEUE, vec![&db, id, &queue, &now_ms]))?,
        DeadLetterChange::RequeueAll { before_ms, max } => {
            let max = i64::try_from(*max).unwrap_or(i64::MAX);
            link.query((REQUEUE_ALL, vec![&db, &queue, before_ms, &max, &now_ms]))?
        }
        DeadLetterChange::Delete(id) => link.query((DELETE_DEAD, vec![&db, id, &queue]))?,
        DeadLetterChange::Purge { before_ms, max } => {
            let max = i64::try_from(*max).unwrap_or(i64::MAX);
            link.query((PURGE_DEAD, vec![&db, &queue, before_ms, &max]))?
        }
    };
    rows.iter().map(|row| Cells::of("dead", row).get(0)).collect()
}
