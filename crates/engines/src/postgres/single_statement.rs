//! A batch as one statement, which is its own transaction: one message to the server and one plan,
//! instead of one for each table between BEGIN and COMMIT.
//!
//! Every change takes its rows from `fence`, so nothing is changed before the row of the database is
//! locked, and nothing at all if the fence fails. The keys of a batch are distinct, so no two changes
//! meet in one row.

use super::commit_statements::CommitStatements;
use super::line::{Call, Value};

/// The fence is that of [`super::database::FENCE`], without the number of the last message.
const BATCH: &str = "\
WITH fence AS (UPDATE openkv.databases SET \
version = CASE WHEN epoch = $2::int8 AND version = $3::int8 THEN $4::int8 END, \
removed = greatest(removed, $5), last_uuid = coalesce($6, last_uuid), \
clock_ms = greatest(clock_ms, $7::int8) WHERE id = $1 \
RETURNING floor(extract(epoch FROM clock_timestamp()) * 1000)::int8 AS now_ms), \
logged AS (INSERT INTO openkv.log (db, version, epoch, batch, at_ms, previous, keys, writes) \
SELECT $1, $4, $2, $8::bytea, $7, $3, $9::bytea, $19::bytea FROM fence), \
put AS (INSERT INTO openkv.entries (db, k, v, encoding, version, expires_ms) \
SELECT $1, u.k, u.v, u.encoding, u.version, u.expires_ms \
FROM fence CROSS JOIN unnest($10::bytea[], $11::bytea[], $12::int2[], $13::int8[], $14::int8[]) \
AS u(k, v, encoding, version, expires_ms) \
ON CONFLICT (db, k) DO UPDATE SET v = excluded.v, encoding = excluded.encoding, \
version = excluded.version, expires_ms = excluded.expires_ms), \
gone AS (DELETE FROM openkv.entries AS e USING fence CROSS JOIN unnest($15::bytea[]) AS u(k) \
CROSS JOIN LATERAL (SELECT ctid FROM openkv.entries WHERE db = $1 AND k = u.k LIMIT 1) AS f \
WHERE e.ctid = f.ctid), \
lasting AS (DELETE FROM openkv.expiries AS x USING fence CROSS JOIN unnest($16::bytea[]) AS u(k) \
CROSS JOIN LATERAL (SELECT ctid FROM openkv.expiries WHERE db = $1 AND k = u.k LIMIT 1) AS f \
WHERE x.ctid = f.ctid), \
ending AS (INSERT INTO openkv.expiries (db, k, at_ms) SELECT $1, u.k, u.at_ms \
FROM fence CROSS JOIN unnest($17::bytea[], $18::int8[]) AS u(k, at_ms) \
ON CONFLICT (db, k) DO UPDATE SET at_ms = excluded.at_ms) \
SELECT now_ms FROM fence";

/// A batch that sets and deletes entries as one statement; `None` for any other.
pub(super) fn call(of: &CommitStatements) -> Option<Call<'_>> {
    let CommitStatements { db, epoch, version, next, removed, uuid, now_ms, name, keys, .. } = of;
    let writes = &of.writes;
    if !of.changes_only_entries() {
        return None;
    }
    let mut values: Vec<&Value<'_>> = vec![db, epoch, version, next, removed, uuid, now_ms];
    values.extend([name as &Value<'_>, keys]);
    values.extend(of.entries.sets_and_deletions()?);
    values.push(writes);
    Some((BATCH, values))
}
