//! The statements of messages. `$1` is the database.

macro_rules! locked_columns {
    () => {
        "id, lock, attempts, lock_end_ms, queue, backoff_ms, undelivered, dead_retention_ms, v, dedup"
    };
}

/// The conditions on the lock are outside the search by number, for which the planner may otherwise take the index of
/// locked messages and visit all of a database.
pub(super) const HELD: &str = concat!(
    "SELECT m.id, m.lock, m.attempts, m.lock_end_ms, m.queue, m.backoff_ms, m.undelivered, \
     m.dead_retention_ms, CASE WHEN u.fails THEN m.v ELSE ''::bytea END AS v, m.dedup \
     FROM unnest($2::int8[], $3::int8[], $4::bool[]) AS u(id, lock, fails) \
     CROSS JOIN LATERAL (SELECT ",
    locked_columns!(),
    ", locked FROM openkv.messages WHERE db = $1 AND id = u.id LIMIT 1) AS m \
     WHERE m.locked AND m.lock = u.lock"
);

/// The earliest end of a lock of each claimed queue and of its groups, before the batch.
pub(super) const FIRST_ENDS: &str = "\
SELECT u.queue, m.lock_end_ms FROM unnest($2::bytea[], $3::bytea[], $4::bytea[]) AS u(queue, first, last) \
CROSS JOIN LATERAL ((SELECT lock_end_ms FROM openkv.messages \
WHERE db = $1 AND queue = u.queue AND locked ORDER BY lock_end_ms LIMIT 1) UNION ALL \
(SELECT lock_end_ms FROM openkv.messages WHERE db = $1 AND queue > u.first AND queue < u.last \
AND locked ORDER BY lock_end_ms LIMIT 1)) AS m";

/// Which of the claimed queues, and of those of the named messages, have a rule.
pub(super) const LIMITED: &str = "\
SELECT dedup FROM openkv.messages WHERE db = $1 AND queue = $2 AND (dedup = ANY ($3::bytea[]) \
OR dedup IN (SELECT m.queue FROM unnest($4::int8[]) AS u(id) CROSS JOIN LATERAL (SELECT queue \
FROM openkv.messages WHERE db = $1 AND id = u.id LIMIT 1) AS m))";

pub(super) const DUE: &str = "\
SELECT m.id FROM generate_series($5::int4, 0, -1) AS p(priority) \
CROSS JOIN LATERAL (SELECT id, due_ms FROM openkv.messages WHERE db = $1 AND queue = $2 \
AND NOT locked AND priority = p.priority::int2 AND due_ms <= $3 ORDER BY due_ms, id LIMIT $4) AS m \
ORDER BY p.priority DESC, m.due_ms, m.id LIMIT $4";

pub(super) const NEXT_DUE: &str = "\
SELECT min(m.due_ms) FROM generate_series($3::int4, 0, -1) AS p(priority) \
CROSS JOIN LATERAL (SELECT due_ms FROM openkv.messages WHERE db = $1 AND queue = $2 \
AND NOT locked AND priority = p.priority::int2 ORDER BY due_ms LIMIT 1) AS m \
WHERE NOT EXISTS (SELECT 1 FROM openkv.messages WHERE db = $1 AND queue = $4 AND dedup = $2)";

pub(super) const RUNNING: &str = "\
SELECT (SELECT count(*) FROM openkv.messages WHERE db = $1 AND queue = $2 AND locked) \
+ (SELECT count(*) FROM openkv.messages WHERE db = $1 AND queue > $3 AND queue < $4 AND locked)";

pub(super) const NEXT_END: &str = "\
SELECT min(m.lock_end_ms) FROM ((SELECT lock_end_ms FROM openkv.messages \
WHERE db = $1 AND queue = $2 AND locked ORDER BY lock_end_ms LIMIT 1) UNION ALL (SELECT lock_end_ms FROM openkv.messages \
WHERE db = $1 AND queue > $3 AND queue < $4 AND locked ORDER BY lock_end_ms LIMIT 1)) AS m";

pub(super) const MOVE: &str = "\
UPDATE openkv.messages AS m SET queue = $3, dedup = CASE WHEN EXISTS (SELECT 1 FROM openkv.messages \
AS there WHERE there.db = $1 AND there.queue = $3 AND there.dedup = m.dedup) THEN NULL ELSE m.dedup END \
WHERE m.db = $1 AND m.id = $2";

pub(super) const EXPIRED: &str = concat!(
    "SELECT ",
    locked_columns!(),
    " FROM ((SELECT * FROM openkv.messages WHERE db = $1 AND queue = $2 AND locked \
     AND lock_end_ms <= $3 ORDER BY lock_end_ms, id LIMIT $4) UNION ALL \
     (SELECT * FROM openkv.messages WHERE db = $1 AND queue > $5 AND queue < $6 AND locked \
     AND lock_end_ms <= $3 ORDER BY lock_end_ms, id LIMIT $4)) AS m ORDER BY lock_end_ms, id LIMIT $4"
);

pub(super) const EXTEND_EXPIRED: &str = "\
UPDATE openkv.messages SET lock_end_ms = $4, in_grace = true WHERE ctid = ANY (ARRAY(\
SELECT ctid FROM openkv.messages WHERE db = $1 AND queue = $2 AND locked AND lock_end_ms <= $3 AND NOT in_grace \
UNION ALL SELECT ctid FROM openkv.messages WHERE db = $1 AND queue > $5 AND queue < $6 AND locked \
AND lock_end_ms <= $3 AND NOT in_grace))";

pub(super) const SAME_KEY: &str =
    "SELECT id, locked, due_ms FROM openkv.messages WHERE db = $1 AND queue = $2 AND dedup = $3";

pub(super) const LEAVE_KEY: &str =
    "UPDATE openkv.messages SET dedup = $3 WHERE db = $1 AND id = $2";

pub(super) const REPLACE: &str = "\
UPDATE openkv.messages SET priority = $3, due_ms = coalesce($4, due_ms), enqueued_ms = $5, \
dead_retention_ms = $6, backoff_ms = $7, undelivered = $8, v = $9, attempts = 0, first_ms = NULL, \
last_ms = NULL WHERE db = $1 AND id = $2";

pub(super) const CANCEL: &str = "\
DELETE FROM openkv.messages WHERE db = $1 AND id = $2 \
AND (queue = $3 OR queue > $4 AND queue < $5) RETURNING queue, dedup, v";

/// One priority after the other, so that messages that are not due yet are not visited. None of a paused queue.
pub(super) const CLAIM: &str = "\
WITH due AS MATERIALIZED (SELECT m.place FROM generate_series($7::int4, 0, -1) AS p(priority) \
CROSS JOIN LATERAL (SELECT ctid AS place, id, due_ms FROM openkv.messages WHERE db = $1 AND queue = $2 \
AND NOT locked AND priority = p.priority::int2 AND due_ms <= $3 ORDER BY due_ms, id LIMIT $4) AS m \
WHERE NOT EXISTS (SELECT 1 FROM openkv.messages WHERE db = $1 AND queue = $8 AND dedup = $2) \
ORDER BY p.priority DESC, m.due_ms, m.id LIMIT $4) \
UPDATE openkv.messages AS m SET locked = true, lock = $5, lock_end_ms = $6, in_grace = false, \
attempts = attempts + 1, first_ms = coalesce(first_ms, $3), last_ms = $3 \
FROM due WHERE m.ctid = due.place \
RETURNING m.id, m.attempts, m.enqueued_ms, m.v, m.priority, m.due_ms, octet_length(m.backoff_ms)";

pub(super) const PURGE: &str = "\
WITH old AS MATERIALIZED (SELECT ctid AS place FROM openkv.dead WHERE db + 0 = $1 AND purge_ms <= $2 \
ORDER BY purge_ms LIMIT $3) \
DELETE FROM openkv.dead AS d USING old WHERE d.ctid = old.place RETURNING 1";
