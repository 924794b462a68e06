//! The tables of the file, their version, and their migration. `tests/format_page.rs` compares
//! `docs/format.md` §3 with this.
//!
//! The tables of Deno KV are as Deno creates them; the names of openkv's own begin with `openkv_`.

mod old_feed;

use rusqlite::{Connection, OptionalExtension, TransactionBehavior};

use super::errors::failure;
use openkv_core::model::{Encoding, Error, Result};

/// Version of the `openkv_` tables and of the form of values; a file with a newer one is rejected.
/// Format 5 may have packed arrays; format 6 has one log.
pub const FORMAT_VERSION: i64 = 6;

/// Version of Deno's tables: the last row of its `migration_state`.
pub const DENO_MIGRATION_VERSION: i64 = 3;

/// Added to the encoding id of a row whose `v` is the number of an `openkv_spill` row.
pub const SPILLED: i64 = 256;

/// The format of values, as stored in `openkv_meta`.
const CBOR: &str = "cbor";
const V8: &str = "v8";

/// The log of changes of the formats 2 to 5. From format 2 on, `data_version.seq` is the commit of the
/// last removal. Earlier removals are unknown, so it starts with the last commit.
const FEED_TABLES: &str = "
CREATE TABLE openkv_feed (
  version INTEGER NOT NULL,
  seq INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  encoding INTEGER NOT NULL,
  k BLOB NOT NULL,
  v BLOB,
  PRIMARY KEY (version, seq)
) WITHOUT ROWID;
CREATE TABLE openkv_feed_state (
  k INTEGER PRIMARY KEY,
  complete INTEGER NOT NULL,
  removed INTEGER NOT NULL,
  sets INTEGER NOT NULL DEFAULT 0,
  set_bytes INTEGER NOT NULL DEFAULT 0,
  removals INTEGER NOT NULL DEFAULT 0,
  removal_bytes INTEGER NOT NULL DEFAULT 0
);
UPDATE data_version SET seq = version;
";

/// Deno's tables after its third migration.
const DENO_TABLES: &str = "
CREATE TABLE migration_state (k INTEGER NOT NULL PRIMARY KEY, version INTEGER NOT NULL);
INSERT INTO migration_state (k, version) VALUES (0, 3);
CREATE TABLE data_version (
  k INTEGER PRIMARY KEY, version INTEGER NOT NULL, seq INTEGER NOT NULL DEFAULT 0
);
INSERT INTO data_version (k, version) VALUES (0, 0);
CREATE TABLE kv (
  k BLOB PRIMARY KEY,
  v BLOB NOT NULL,
  v_encoding INTEGER NOT NULL,
  version INTEGER NOT NULL,
  seq INTEGER NOT NULL DEFAULT 0,
  expiration_ms INTEGER NOT NULL DEFAULT -1
) WITHOUT ROWID;
CREATE TABLE queue (
  ts INTEGER NOT NULL, id TEXT NOT NULL, data BLOB NOT NULL,
  backoff_schedule TEXT NOT NULL, keys_if_undelivered BLOB NOT NULL,
  PRIMARY KEY (ts, id)
);
CREATE TABLE queue_running (
  deadline INTEGER NOT NULL, id TEXT NOT NULL, data BLOB NOT NULL,
  backoff_schedule TEXT NOT NULL, keys_if_undelivered BLOB NOT NULL,
  PRIMARY KEY (deadline, id)
);
";

/// openkv's tables in format 1. No triggers: with one, SQLite journals every statement on `kv`, a
/// quarter of the cost of a small write.
const OPENKV_TABLES: &str = "
CREATE TABLE openkv_meta (name TEXT NOT NULL PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE openkv_spill (id INTEGER PRIMARY KEY, v BLOB NOT NULL);
CREATE TABLE openkv_queue (
  id INTEGER PRIMARY KEY,
  due_ms INTEGER NOT NULL,
  lock INTEGER NOT NULL DEFAULT 0,
  backoff_ms BLOB NOT NULL,
  undelivered BLOB NOT NULL,
  v BLOB NOT NULL
);
CREATE INDEX openkv_queue_due ON openkv_queue (due_ms, id);
CREATE INDEX openkv_expiry ON kv (expiration_ms) WHERE expiration_ms >= 0;
";

/// The changes of format 2. A new file is created with format 1 and migrated to the later ones, so that
/// new and migrated files are equal.
const FORMAT_2: &[&str] = &[
    "INSERT INTO openkv_meta (name, value) VALUES ('features', 0);",
    FEED_TABLES,
    super::messages::TABLES,
    super::dead::TABLES,
    super::fulltext::TABLES,
];

/// The change of format 3: the log has expiries. Those of the entries that are still there are known; an
/// entry of the log that was replaced or removed has a later change behind it.
const FORMAT_3: &str = "
ALTER TABLE openkv_feed ADD COLUMN expire_ms INTEGER;
UPDATE openkv_feed SET expire_ms = (
  SELECT expiration_ms FROM kv
  WHERE kv.k = openkv_feed.k AND kv.version = openkv_feed.version AND kv.expiration_ms >= 0
) WHERE encoding <> 0;
";

/// The change of format 4: the replication log and the history.
const FORMAT_4: &str = "
CREATE TABLE openkv_log (
  version INTEGER PRIMARY KEY,
  first INTEGER NOT NULL,
  at_ms INTEGER NOT NULL,
  changes BLOB NOT NULL
);
CREATE INDEX openkv_log_time ON openkv_log (at_ms);
CREATE TABLE openkv_log_state (
  k INTEGER PRIMARY KEY,
  complete INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  newest_ms INTEGER NOT NULL,
  retention_ms INTEGER NOT NULL,
  bytes_max INTEGER NOT NULL,
  history_ms INTEGER,
  history_version INTEGER,
  history_at_ms INTEGER,
  history_forgotten INTEGER
);
CREATE TABLE openkv_history (
  id INTEGER PRIMARY KEY,
  version INTEGER NOT NULL,
  replaced BLOB NOT NULL
);
CREATE TABLE openkv_history_groups (
  k BLOB NOT NULL,
  version INTEGER NOT NULL,
  records BLOB NOT NULL,
  PRIMARY KEY (k, version)
) WITHOUT ROWID;
";

/// The change of format 5, beside packed arrays: the log can have messages.
const FORMAT_5: &str =
    "ALTER TABLE openkv_log_state ADD COLUMN messages INTEGER NOT NULL DEFAULT 0;";

/// The change of format 6, behind [`old_feed::move_to_log`]: feeds read the one log.
const FORMAT_6: &str = "
DROP TABLE openkv_feed;
DROP TABLE openkv_feed_state;
";

/// The next write of a process of an earlier version that has the file open fails: it loads anew what it
/// maintains, and does not find the table of feeds.
const STOP_EARLIER: &str = "UPDATE openkv_meta SET value = value + 1 WHERE name = 'features';";

/// The kind of an existing file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FileKind {
    /// Without tables.
    Empty,
    /// openkv's, in this format version.
    Openkv(i64),
    /// Deno's, after this migration, without openkv's tables.
    Deno(i64),
    /// Another program's.
    NotOpenkv,
}

fn inspect(connection: &Connection) -> rusqlite::Result<FileKind> {
    let has = |name: &str| {
        connection
            .query_row("SELECT 1 FROM sqlite_master WHERE name = ?1", [name], |_| Ok(()))
            .optional()
            .map(|row| row.is_some())
    };
    if has("openkv_meta")? {
        let version = connection
            .query_row("SELECT value FROM openkv_meta WHERE name = 'format'", [], |row| row.get(0))
            .optional()?;
        return Ok(FileKind::Openkv(version.unwrap_or(0)));
    }
    let tables: i64 =
        connection.query_row("SELECT count(*) FROM sqlite_master", [], |row| row.get(0))?;
    if tables == 0 {
        return Ok(FileKind::Empty);
    }
    if !(has("kv")? && has("migration_state")?) {
        return Ok(FileKind::NotOpenkv);
    }
    let migration = connection
        .query_row("SELECT version FROM migration_state WHERE k = 0", [], |row| row.get(0))
        .optional()?;
    Ok(FileKind::Deno(migration.unwrap_or(0)))
}

/// What opening needs of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct FileHeader {
    pub(super) encoding: Encoding,
    /// The number of the file; `None` for a file of an earlier version that was not written since.
    pub(super) number: Option<i64>,
    /// Whether it follows another database.
    pub(super) follows: bool,
    format: i64,
    /// Whether its database has a name.
    is_named: bool,
}

impl FileHeader {
    /// That of a file of openkv's; reads it in one statement.
    fn read(connection: &Connection) -> rusqlite::Result<Option<Self>> {
        let sql = "WITH meta AS (SELECT name, value FROM openkv_meta) \
                   SELECT (SELECT value FROM meta WHERE name = 'format'), \
                          (SELECT value FROM meta WHERE name = 'encoding'), \
                          (SELECT seq FROM data_version WHERE k = 1), \
                          EXISTS (SELECT 1 FROM meta WHERE name = 'follows'), \
                          EXISTS (SELECT 1 FROM meta WHERE name = 'database')";
        connection.query_row(sql, [], |row| {
            let name: Option<String> = row.get(1)?;
            let Some(encoding) = encoding_of(name.as_deref()) else { return Ok(None) };
            let (number, format): (_, Option<i64>) = (row.get(2)?, row.get(0)?);
            let (follows, is_named) = (row.get(3)?, row.get(4)?);
            let format = format.unwrap_or(0);
            Ok(Some(Self { encoding, number, follows, format, is_named }))
        })
    }
}

/// Creates the tables of a new file, migrates an older format, or checks that the file is openkv's
/// and not newer than this version. Adds openkv's tables to a file of Deno's. `wanted` is the
/// format of the values of a new file, and must match that of an existing one.
///
/// # Errors
/// `Unsupported` for a newer format, another migration of Deno's, and a file that needs a migration
/// but is opened read-only; `Invalid` for another format of values than `wanted`; `Corrupt` for a
/// file of another program.
pub(super) fn prepare(
    connection: &mut Connection,
    readonly: bool,
    wanted: Option<Encoding>,
) -> Result<FileHeader> {
    // An error is that of a file without these tables, or comes again.
    if let Ok(Some(header)) = FileHeader::read(connection)
        && header.format == FORMAT_VERSION
        && ((header.is_named && header.number.is_some()) || readonly)
    {
        return agree(header.encoding, wanted).map(|_| header);
    }
    prepare_any(connection, readonly, wanted)?;
    let header = FileHeader::read(connection).map_err(failure)?;
    header.ok_or_else(unnamed_format)
}

/// As [`prepare`], for any file.
fn prepare_any(
    connection: &mut Connection,
    readonly: bool,
    wanted: Option<Encoding>,
) -> Result<()> {
    // One transaction, so that all reads see one state: other processes may be creating the tables.
    let found = {
        let transaction = connection.transaction().map_err(failure)?;
        inspect(&transaction).map_err(failure)?
    };
    if !needs_writing(found)? {
        agreed(connection, wanted)?;
        if !readonly {
            give_number(connection);
        }
        return Ok(());
    }
    if readonly {
        let what = match found {
            FileKind::Empty => "is empty",
            FileKind::Deno(_) => "was made by Deno",
            _ => "has an older format",
        };
        return Err(Error::unsupported(format!(
            "the database {what} and was opened with readonly: true; open it for writing once"
        )));
    }
    let transaction =
        connection.transaction_with_behavior(TransactionBehavior::Immediate).map_err(failure)?;
    // Another process may have migrated the file while this one waited for the lock.
    let found = inspect(&transaction).map_err(failure)?;
    if needs_writing(found)? {
        migrate(&transaction, found, wanted)?;
    }
    // Checked before any change, so that a rejected file is unchanged.
    agreed(&transaction, wanted)?;
    transaction.commit().map_err(failure)
}

/// Gives a number and a name to a file of an earlier version. A failure is ignored; the next opening
/// tries again.
fn give_number(connection: &Connection) {
    let sql = "SELECT 1 FROM data_version, openkv_meta WHERE k = 1 AND name = 'database'";
    let missing = connection.query_row(sql, [], |_| Ok(())).optional();
    if let Ok(None) = missing
        && let Err(error) = connection.execute_batch(super::identity::ENSURE)
    {
        tracing::debug!(%error, "a file stays without a number");
    }
}

/// Rejects a file of another program or of a newer format.
pub(super) fn recognize(connection: &Connection) -> Result<()> {
    match inspect(connection).map_err(failure)? {
        FileKind::Empty => Err(Error::corrupt("the file is empty")),
        found => needs_writing(found).map(drop),
    }
}

/// As [`recognize`], for a file that may be empty.
pub(super) fn refuse_others(connection: &Connection) -> rusqlite::Result<Result<()>> {
    Ok(needs_writing(inspect(connection)?).map(drop))
}

/// Reads the format of the file's values, and checks it against the requested one.
fn agreed(connection: &Connection, wanted: Option<Encoding>) -> Result<Encoding> {
    let name: Option<String> = connection
        .query_row("SELECT value FROM openkv_meta WHERE name = 'encoding'", [], |row| row.get(0))
        .optional()
        .map_err(failure)?;
    let encoding = encoding_of(name.as_deref()).ok_or_else(unnamed_format)?;
    agree(encoding, wanted)
}

fn encoding_of(name: Option<&str>) -> Option<Encoding> {
    match name? {
        CBOR => Some(Encoding::Cbor),
        V8 => Some(Encoding::V8),
        _ => None,
    }
}

fn unnamed_format() -> Error {
    Error::corrupt(
        "the file does not name the format of its values: its openkv_meta table is damaged",
    )
}

/// Checks the format of a file's values against the requested one.
///
/// # Errors
/// `Invalid` if they differ.
pub fn agree(encoding: Encoding, wanted: Option<Encoding>) -> Result<Encoding> {
    match wanted {
        Some(wanted) if wanted != encoding => Err(Error::invalid(format!(
            "the option encoding is \"{}\", but the file's values are in \"{}\", which does not \
             change: leave the option out, or copy the file's entries into a new one",
            name_of(wanted),
            name_of(encoding)
        ))),
        _ => Ok(encoding),
    }
}

fn name_of(encoding: Encoding) -> &'static str {
    if encoding == Encoding::V8 { V8 } else { CBOR }
}

/// Creates or migrates all tables, in the transaction of the caller.
#[tracing::instrument(skip_all)]
fn migrate(transaction: &Connection, found: FileKind, wanted: Option<Encoding>) -> Result<()> {
    let run = |sql: &str| transaction.execute_batch(sql).map_err(failure);
    let encoding = match found {
        FileKind::Empty => {
            run(DENO_TABLES)?;
            if wanted == Some(Encoding::V8) {
                run(super::values::INDEX)?;
            }
            Some(wanted.unwrap_or(Encoding::Cbor))
        }
        FileKind::Deno(_) => Some(Encoding::V8),
        FileKind::Openkv(_) | FileKind::NotOpenkv => None,
    };
    if let Some(encoding) = encoding {
        run(OPENKV_TABLES)?;
        let sql = "INSERT INTO openkv_meta (name, value) VALUES ('format', 1), ('encoding', ?1)";
        transaction.execute(sql, [name_of(encoding)]).map_err(failure)?;
    }
    let before = if let FileKind::Openkv(format) = found { format } else { 1 };
    if before < 2 {
        FORMAT_2.iter().try_for_each(|sql| run(sql))?;
    }
    if before < 3 {
        run(FORMAT_3)?;
    }
    if before < 4 {
        run(FORMAT_4)?;
    }
    if before < 5 {
        run(FORMAT_5)?;
    }
    if before < 6 {
        old_feed::move_to_log(transaction)?;
        run(FORMAT_6)?;
        if matches!(found, FileKind::Openkv(_)) {
            run(STOP_EARLIER)?;
        }
    }
    run(super::identity::ENSURE)?;
    let stamp = "UPDATE openkv_meta SET value = ?1 WHERE name = 'format'";
    transaction.execute(stamp, [FORMAT_VERSION]).map(drop).map_err(failure)
}

/// Whether the file needs a migration before use.
fn needs_writing(found: FileKind) -> Result<bool> {
    match found {
        FileKind::Openkv(version) if version > FORMAT_VERSION => Err(Error::unsupported(format!(
            "the file has format version {version}, newer than {FORMAT_VERSION}, \
             the newest that this openkv knows: update openkv"
        ))),
        FileKind::Openkv(version) if version < 1 => Err(Error::corrupt(
            "the file names no format version: its openkv_meta table is damaged",
        )),
        FileKind::Openkv(version) => Ok(version < FORMAT_VERSION),
        FileKind::Empty => Ok(true),
        FileKind::Deno(DENO_MIGRATION_VERSION) => Ok(true),
        FileKind::Deno(version) => Err(Error::unsupported(format!(
            "the file was made by a Deno whose tables have version {version}; openkv knows \
             version {DENO_MIGRATION_VERSION}, that of Deno 2: open it once with such a Deno if \
             its version is lower, else update openkv"
        ))),
        FileKind::NotOpenkv => Err(Error::corrupt(
            "the file is a SQLite database of another program, not an openkv database",
        )),
    }
}
