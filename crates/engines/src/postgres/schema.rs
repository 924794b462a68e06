//! The tables of openkv in a PostgreSQL database, all in the schema `openkv`.
//!
//! One set of tables holds all openkv databases; `db` tells them apart. Text of users is `bytea`,
//! because PostgreSQL's text has no U+0000. Nothing here depends on a sequence, a trigger, LISTEN or an
//! advisory lock, so that other servers with PostgreSQL's protocol can follow.
//!
//! `dead_purge` and `past_order` have `db + 0` instead of `db`. Without statistics the planner takes any index that
//! begins with a column of the condition; so it takes these only where a statement names `db + 0`.
//!
//! `messages_locked` has the messages that consumers have, so the earliest end of a lock of all groups of a queue is
//! found among these and not among all messages. Statements name its condition: `locked`.

use super::cells::{Cells, first};
use super::session::Session;
use crate::replication::extent::{FEED_BOUNDS, segment_bytes};
use openkv_core::model::{Error, Kind, LogBounds, POSTGRES_NAMES_SHOWN_MAX, Result};

/// The format of the tables that this version reads and writes.
const FORMAT: i32 = 6;

/// Names of databases for an error about one that is not there.
const NAMES: &str = "SELECT name FROM openkv.databases ORDER BY id DESC LIMIT $1";

/// Oldest server, as `server_version_num` has it.
const SERVER_MIN: i32 = 150_000;

const TABLES: &str = "\
CREATE SCHEMA openkv;
CREATE TABLE openkv.format (version int4 NOT NULL);
CREATE TABLE openkv.databases (
  id int8 PRIMARY KEY,
  name bytea NOT NULL UNIQUE,
  epoch int8 NOT NULL DEFAULT 1,
  leader bytea,
  version int8 NOT NULL DEFAULT 0,
  removed int8 NOT NULL DEFAULT 0,
  clock_ms int8 NOT NULL DEFAULT 0,
  last_uuid bytea,
  last_message int8 NOT NULL DEFAULT 0,
  log_bits int2 NOT NULL DEFAULT 0,
  indexes int8 NOT NULL DEFAULT 0
) WITH (fillfactor = 50);
CREATE TABLE openkv.epochs (
  db int8 NOT NULL, epoch int8 NOT NULL, start int8 NOT NULL, PRIMARY KEY (db, epoch)
);
CREATE TABLE openkv.servers (
  id bytea PRIMARY KEY, name bytea NOT NULL, lease_until timestamptz NOT NULL
);
CREATE TABLE openkv.cluster (
  id int4 PRIMARY KEY, signing_key bytea NOT NULL, revision int8 NOT NULL DEFAULT 0,
  catalog bytea NOT NULL DEFAULT ''
);
CREATE TABLE openkv.entries (
  db int8 NOT NULL, k bytea NOT NULL, v bytea NOT NULL, encoding int2 NOT NULL,
  version int8 NOT NULL, expires_ms int8, PRIMARY KEY (db, k)
);
ALTER TABLE openkv.entries ALTER COLUMN v SET STORAGE EXTERNAL;
CREATE TABLE openkv.expiries (
  db int8 NOT NULL, k bytea NOT NULL, at_ms int8 NOT NULL, PRIMARY KEY (db, k)
);
CREATE INDEX expiries_order ON openkv.expiries (db, at_ms, k);
CREATE TABLE openkv.log (
  db int8 NOT NULL, version int8 NOT NULL, epoch int8 NOT NULL, at_ms int8 NOT NULL,
  batch bytea NOT NULL, previous int8 NOT NULL, keys bytea, writes bytea,
  PRIMARY KEY (db, version)
);
ALTER TABLE openkv.log ALTER COLUMN keys SET STORAGE EXTERNAL;
ALTER TABLE openkv.log ALTER COLUMN writes SET STORAGE EXTERNAL;
CREATE TABLE openkv.messages (
  db int8 NOT NULL, id int8 NOT NULL, queue bytea NOT NULL, priority int2 NOT NULL,
  due_ms int8 NOT NULL, lock int8 NOT NULL DEFAULT 0, lock_end_ms int8 NOT NULL DEFAULT 0,
  in_grace bool NOT NULL DEFAULT false, attempts int4 NOT NULL DEFAULT 0,
  enqueued_ms int8 NOT NULL, first_ms int8, last_ms int8, dedup bytea, dead_retention_ms int8,
  backoff_ms bytea NOT NULL, undelivered bytea NOT NULL, v bytea NOT NULL,
  locked bool NOT NULL DEFAULT false, PRIMARY KEY (db, id)
);
CREATE INDEX messages_waiting ON openkv.messages (db, queue, locked, priority DESC, due_ms, id);
CREATE INDEX messages_locked ON openkv.messages (db, queue, lock_end_ms, id) WHERE locked;
CREATE UNIQUE INDEX messages_dedup ON openkv.messages (db, queue, dedup);
CREATE TABLE openkv.dead (
  db int8 NOT NULL, id int8 NOT NULL, queue bytea NOT NULL, priority int2 NOT NULL,
  attempts int4 NOT NULL, enqueued_ms int8 NOT NULL, first_ms int8 NOT NULL,
  last_ms int8 NOT NULL, died_ms int8 NOT NULL, purge_ms int8, dedup bytea,
  dead_retention_ms int8, backoff_ms bytea NOT NULL, undelivered bytea NOT NULL,
  error_name bytea NOT NULL, error_message bytea NOT NULL, v bytea NOT NULL,
  PRIMARY KEY (db, id)
);
CREATE INDEX dead_order ON openkv.dead (db, queue, died_ms, id);
CREATE INDEX dead_purge ON openkv.dead ((db + 0), purge_ms);
";

/// The tables that the format 3 has added: the log, the name of each database for its replicas,
/// and the full-text indexes that replicas build.
const TABLES_OF_FORMAT_3: &str = "\
CREATE TABLE IF NOT EXISTS openkv.replication (
  db int8 PRIMARY KEY, name bytea NOT NULL, incarnation int8 NOT NULL, complete int8 NOT NULL,
  bytes int8 NOT NULL, newest_ms int8 NOT NULL, retention_ms int8 NOT NULL, bytes_max int8 NOT NULL
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS openkv.segments (
  db int8 NOT NULL, version int8 NOT NULL, first int8 NOT NULL, at_ms int8 NOT NULL,
  changes bytea NOT NULL, PRIMARY KEY (db, version)
);
ALTER TABLE openkv.segments ALTER COLUMN changes SET STORAGE EXTERNAL;
CREATE TABLE IF NOT EXISTS openkv.indexes (
  db int8 NOT NULL, name bytea NOT NULL, prefix bytea NOT NULL, fields bytea[] NOT NULL,
  tokenizer bytea NOT NULL, prefix_lengths bytea NOT NULL, PRIMARY KEY (db, name)
);
";

/// The tables that the format 4 has added: the history.
const TABLES_OF_FORMAT_4: &str = "\
ALTER TABLE openkv.replication ADD COLUMN IF NOT EXISTS history_ms int8;
ALTER TABLE openkv.replication ADD COLUMN IF NOT EXISTS history_version int8;
ALTER TABLE openkv.replication ADD COLUMN IF NOT EXISTS history_at_ms int8;
CREATE TABLE IF NOT EXISTS openkv.past (
  db int8 NOT NULL, k bytea NOT NULL, until int8 NOT NULL, version int8, encoding int2,
  v bytea, expires_ms int8, PRIMARY KEY (db, k, until)
);
ALTER TABLE openkv.past ALTER COLUMN v SET STORAGE EXTERNAL;
CREATE INDEX IF NOT EXISTS past_order ON openkv.past ((db + 0), until);
";

/// What the format 6 has added: what feeds need in the log, where a segment of an older format may have a removal;
/// the definitions of value indexes, and their entries.
const TABLES_OF_FORMAT_6: &str = "\
ALTER TABLE openkv.replication ADD COLUMN IF NOT EXISTS removed int8 NOT NULL DEFAULT 0;
ALTER TABLE openkv.segments ADD COLUMN IF NOT EXISTS removes bool NOT NULL DEFAULT true;
CREATE TABLE IF NOT EXISTS openkv.value_indexes (
  db int8 NOT NULL, id int8 NOT NULL, name bytea NOT NULL, prefix bytea NOT NULL,
  paths bytea[] NOT NULL, descending int2 NOT NULL, flags int2 NOT NULL, progress bytea, verified bytea,
  scanned int8 NOT NULL DEFAULT 0, failed bytea, failed_other bytea,
  dropped bool NOT NULL DEFAULT false, PRIMARY KEY (db, id)
);
CREATE TABLE IF NOT EXISTS openkv.value_entries (
  db int8 NOT NULL, id int8 NOT NULL, head bytea NOT NULL, digest bytea NOT NULL,
  tail bytea NOT NULL, PRIMARY KEY (db, id, head, digest)
);
";

/// Changes tables of an older format. The row of the format is locked, so that one process does it. An older
/// openkv that is connected would not write the history, the messages of the log, or value indexes: it fails for the
/// column `replicates` of the format 3, `keeps` of the format 4 or `log_parts` of the format 5, which are gone, and as
/// a leader for its epoch before that.
const FROM_OLDER_FORMATS: &str = "\
SELECT version FROM openkv.format FOR UPDATE;
ALTER TABLE openkv.log ADD COLUMN IF NOT EXISTS writes bytea;
ALTER TABLE openkv.log ALTER COLUMN writes SET STORAGE EXTERNAL;
ALTER TABLE openkv.databases ADD COLUMN IF NOT EXISTS replicates bool NOT NULL DEFAULT false;
ALTER TABLE openkv.databases ADD COLUMN IF NOT EXISTS keeps int2 NOT NULL DEFAULT 0;
ALTER TABLE openkv.databases ADD COLUMN IF NOT EXISTS log_parts int2 NOT NULL DEFAULT 0;
UPDATE openkv.databases SET log_parts = CASE WHEN keeps >= 2 THEN 3 ELSE 1 END
  WHERE (replicates OR keeps > 0) AND log_parts = 0;
ALTER TABLE openkv.databases DROP COLUMN replicates, DROP COLUMN keeps;
ALTER TABLE openkv.databases ADD COLUMN IF NOT EXISTS log_bits int2 NOT NULL DEFAULT 0;
ALTER TABLE openkv.databases ADD COLUMN IF NOT EXISTS indexes int8 NOT NULL DEFAULT 0;
UPDATE openkv.databases SET log_bits = log_parts WHERE log_parts <> 0;
ALTER TABLE openkv.databases DROP COLUMN log_parts;
DROP INDEX IF EXISTS openkv.messages_locked;
CREATE INDEX messages_locked ON openkv.messages (db, queue, lock_end_ms, id) WHERE locked;
WITH d AS (UPDATE openkv.databases SET epoch = epoch + 1 WHERE leader IS NOT NULL
  AND EXISTS (SELECT FROM openkv.format WHERE version < 6) RETURNING id, epoch, version)
INSERT INTO openkv.epochs (db, epoch, start) SELECT id, epoch, version FROM d;
";

/// Up to the format 5 a log counted only the changes of its segments, without their `SEGMENT_BYTES`.
const COUNT_SEGMENTS: &str = concat!(
    "UPDATE openkv.replication AS r SET bytes = r.bytes + ",
    segment_bytes!(),
    " * (SELECT count(*) FROM openkv.segments AS s
    WHERE s.db = r.db AND s.version > r.complete)
  WHERE EXISTS (SELECT FROM openkv.format WHERE version < 6);"
);

/// Before the format 6 feeds read a table of their own. A log begins for them at the last commit, if there is none.
fn feeds_of_older_formats() -> String {
    let LogBounds { retention_ms, bytes_max } = FEED_BOUNDS;
    format!(
        "\
ALTER TABLE openkv.databases ADD COLUMN IF NOT EXISTS logs bool NOT NULL DEFAULT false;
INSERT INTO openkv.replication AS r
  (db, name, incarnation, complete, bytes, newest_ms, retention_ms, bytes_max)
  SELECT id, uuid_send(gen_random_uuid()),
  ('x' || encode(substr(uuid_send(gen_random_uuid()), 1, 8), 'hex'))::bit(64)::int8,
  version, 0, clock_ms, {retention_ms}, {bytes_max} FROM openkv.databases WHERE logs AND log_bits = 0
  ON CONFLICT (db) DO UPDATE SET complete = excluded.complete, bytes = 0,
  newest_ms = greatest(r.newest_ms, excluded.newest_ms), retention_ms = excluded.retention_ms,
  bytes_max = excluded.bytes_max, history_ms = NULL;
UPDATE openkv.replication AS r SET removed = least(r.complete, d.removed)
  FROM openkv.databases AS d WHERE d.id = r.db;
UPDATE openkv.databases SET log_bits = 1 WHERE logs AND log_bits = 0;
ALTER TABLE openkv.databases DROP COLUMN logs, DROP COLUMN IF EXISTS feed_complete,
  DROP COLUMN IF EXISTS feed_removed, DROP COLUMN IF EXISTS feed_set_rows,
  DROP COLUMN IF EXISTS feed_set_bytes, DROP COLUMN IF EXISTS feed_removal_rows,
  DROP COLUMN IF EXISTS feed_removal_bytes;
DROP TABLE IF EXISTS openkv.changes;
"
    )
}

/// The SQL that creates the tables. An administrator may run it for a user without the right to.
#[must_use]
pub fn script() -> String {
    format!(
        "BEGIN;\n{TABLES}{TABLES_OF_FORMAT_3}{TABLES_OF_FORMAT_4}{TABLES_OF_FORMAT_6}INSERT INTO openkv.format VALUES ({FORMAT});\nCOMMIT;\n"
    )
}

/// Makes the session ready: checks the server, and creates the tables if there are none, except for a
/// session that only reads.
///
/// # Errors
/// `Unsupported` for another product, an older server and newer tables; `Corrupt` for a schema
/// `openkv` of another program; `Denied` without the right to create it; `Unavailable` for reading
/// without tables.
pub(super) fn prepare(session: &mut Session, readonly: bool) -> Result<()> {
    let row = session.query((
        "SELECT current_setting('server_version_num')::int4, version(), \
         to_regclass('openkv.format')::text, to_regnamespace('openkv')::text, \
         pg_is_in_recovery(), current_setting('fsync'), \
         current_setting('synchronous_standby_names')",
        vec![],
    ))?;
    let row = row.first().ok_or_else(|| Error::internal("no answer about the server"))?;
    let cells = Cells::of("settings", row);
    let number: i32 = cells.get(0)?;
    let product: String = cells.get(1)?;
    if number < SERVER_MIN || !product.starts_with("PostgreSQL") {
        let why = format!("the server is {product}; openkv needs PostgreSQL 15 or newer");
        return Err(Error::new(Kind::Unsupported, why));
    }
    if cells.get::<bool>(4)? && !readonly {
        let why = "the server is a standby: connect to the primary, or open with readonly: true";
        return Err(Error::new(Kind::Denied, why));
    }
    warn_of_settings(cells.get(5)?, cells.get(6)?);
    match (cells.get::<Option<&str>>(2)?, cells.get::<Option<&str>>(3)?) {
        (Some(_), _) => check_format(session, readonly),
        (None, Some(_)) => {
            let why = "the schema \"openkv\" is not openkv's: rename it, or use another PostgreSQL \
                       database";
            Err(Error::corrupt(why))
        }
        (None, None) if readonly => {
            let why = "there is no openkv database in this PostgreSQL database: open one without \
                       readonly first, or correct the URL";
            Err(Error::new(Kind::Unavailable, why))
        }
        (None, None) => create(session),
    }
}

/// Settings with which a crash or the loss of the primary loses commits.
fn warn_of_settings(fsync: &str, standbys: &str) {
    if fsync != "on" {
        tracing::warn!("PostgreSQL runs with fsync = {fsync}: a crash can lose or damage commits");
    }
    if standbys.is_empty() {
        tracing::warn!(
            "PostgreSQL has no synchronous standby (synchronous_standby_names is empty): the loss \
             of its machine can lose commits"
        );
    }
}

/// # Errors
/// `Unsupported` for newer tables, and for older ones that are only to be read; `Denied` for older ones
/// that this user may not change.
fn check_format(session: &mut Session, readonly: bool) -> Result<()> {
    let rows = session.query(("SELECT version FROM openkv.format", vec![]))?;
    match first::<i32>("format", &rows)? {
        Some(FORMAT) => Ok(()),
        Some(1..FORMAT) if readonly => {
            let why = "the tables have an older format: open a database of them for writing once, as \
                       the owner of the tables";
            Err(Error::new(Kind::Unsupported, why))
        }
        Some(1..FORMAT) => change_format(session),
        Some(other) => Err(Error::new(
            Kind::Unsupported,
            format!(
                "the tables have format {other}, and this version of openkv knows {FORMAT}: use a newer openkv"
            ),
        )),
        None => Err(Error::corrupt("the table openkv.format is empty")),
    }
}

fn change_format(session: &mut Session) -> Result<()> {
    let feeds = feeds_of_older_formats();
    let changed = session.execute(&format!(
        "BEGIN;\n{FROM_OLDER_FORMATS}{TABLES_OF_FORMAT_3}{TABLES_OF_FORMAT_4}{TABLES_OF_FORMAT_6}{COUNT_SEGMENTS}{feeds}\
         UPDATE openkv.format SET version = {FORMAT} WHERE version < {FORMAT};\nCOMMIT;\n"
    ));
    if let Err(error) = &changed {
        session.execute("ROLLBACK")?;
        if error.kind() == Kind::Denied {
            let advice = "the tables have an older format, which their owner changes by opening a \
                          database for writing";
            return Err(Error::new(Kind::Denied, format!("{}; {advice}", error.message())));
        }
    }
    changed
}

fn create(session: &mut Session) -> Result<()> {
    let made = session.execute(&script());
    if let Err(error) = &made {
        session.execute("ROLLBACK")?;
        // Another process may have been faster.
        let rows = session.query(("SELECT to_regclass('openkv.format')::text", vec![]))?;
        if first::<&str>("format", &rows)?.is_some() {
            return check_format(session, false);
        }
        if error.kind() == Kind::Denied {
            let advice = "or let an administrator run the SQL that 'openkv cluster schema' prints";
            return Err(Error::new(Kind::Denied, format!("{}; {advice}", error.message())));
        }
    }
    made
}

/// The number of a database, which is created if it is not there.
///
/// # Errors
/// The error of the server; `Unavailable` if it is not there and may not be created.
pub(super) fn database(session: &mut Session, name: &str, readonly: bool) -> Result<i64> {
    let find = "SELECT id FROM openkv.databases WHERE name = $1";
    let insert = "INSERT INTO openkv.databases (id, name) \
         SELECT coalesce(max(id), 0) + 1, $1 FROM openkv.databases ON CONFLICT DO NOTHING";
    loop {
        let rows = session.query((find, vec![&name.as_bytes()]))?;
        if let Some(id) = first("databases", &rows)? {
            return Ok(id);
        }
        if readonly {
            let rows = session.query((NAMES, vec![&POSTGRES_NAMES_SHOWN_MAX]))?;
            let known = rows.iter().map(|row| Cells::of("databases", row).text(0));
            let known = known.collect::<Result<Vec<_>>>()?.join(", ");
            let why = format!(
                "there is no database {name:?} (kv=): open it once without readonly, or name one \
                 that exists: {known}"
            );
            return Err(Error::new(Kind::Unavailable, why));
        }
        // Without effect where another process has taken the name or the number.
        session.query((insert, vec![&name.as_bytes()]))?;
    }
}
