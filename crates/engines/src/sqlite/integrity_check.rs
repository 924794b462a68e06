//! The integrity check of a file: SQLite's check of the pages, then a check of keys, values and
//! counters.
//!
//! The content of a row causes a finding, never an error: rows that cannot be read are what the
//! check looks for.

use std::path::Path;
use std::time::Duration;

use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};

use super::connection::{self, Access};
use super::errors::failure;
use super::interrupt::interrupted_unless;
use super::layout::SPILLED;
use super::values::encoding;
use crate::GoesOn;
use openkv_core::codec::replaced::{self, ReplacedValue};
use openkv_core::codec::{cbor, key, v8};
use openkv_core::model::{Encoding, Error, Result};

/// The findings so far, up to a maximum.
struct Findings {
    found: Vec<String>,
    max: usize,
}

impl Findings {
    fn add(&mut self, finding: String) {
        if !self.is_full() {
            self.found.push(finding);
        }
    }

    fn is_full(&self) -> bool {
        self.found.len() >= self.max
    }
}

pub(super) fn check(
    path: &Path,
    busy: Duration,
    findings_max: usize,
    goes_on: &GoesOn,
) -> Result<Vec<String>> {
    let mut connection = connection::open(path, Access::Read, busy)?;
    connection.execute_batch("BEGIN").map_err(failure)?;
    interrupted_unless(&mut connection, goes_on, |connection| {
        let found = integrity_check(connection, findings_max)?;
        if !found.is_empty() {
            return Ok(found);
        }
        let mut findings = Findings { found, max: findings_max };
        check_rows(connection, &mut findings)?;
        check_history(connection, &mut findings)?;
        check_counts(connection, &mut findings)?;
        Ok(findings.found)
    })
}

/// Runs SQLite's check; returns at most `findings_max` findings.
pub(super) fn integrity_check(connection: &Connection, findings_max: usize) -> Result<Vec<String>> {
    let sql = format!("PRAGMA integrity_check({findings_max})");
    let mut statement = connection.prepare(&sql).map_err(failure)?;
    let rows = statement.query_map([], |row| row.get::<_, String>(0)).map_err(failure)?;
    let mut findings = Vec::new();
    for row in rows {
        let finding = row.map_err(failure)?;
        if finding != "ok" {
            findings.push(finding);
        }
    }
    findings.truncate(findings_max);
    Ok(findings)
}

/// Checks that keys and values are well formed, numbers have the right type, and no row is newer
/// than the file.
fn check_rows(connection: &Connection, findings: &mut Findings) -> Result<()> {
    let newest = "SELECT version FROM data_version WHERE k = 0";
    let newest = connection.query_row(newest, [], |row| integer(row, 0)).map_err(failure)?;
    if newest.is_none() {
        findings.add("the commit counter is not a number".into());
    }
    let sql = "SELECT kv.k, kv.v_encoding, kv.version, kv.expiration_ms, \
               iif(kv.v_encoding >= 256, openkv_spill.v, kv.v) FROM kv \
               LEFT JOIN openkv_spill ON kv.v_encoding >= 256 AND openkv_spill.id = kv.v";
    let mut statement = connection.prepare(sql).map_err(failure)?;
    let mut rows = statement.query([]).map_err(failure)?;
    while let Some(row) = rows.next().map_err(failure)?
        && !findings.is_full()
    {
        check_row(row, newest.unwrap_or(i64::MAX), findings).map_err(failure)?;
    }
    Ok(())
}

fn check_row(row: &Row<'_>, newest: i64, findings: &mut Findings) -> rusqlite::Result<()> {
    let ValueRef::Blob(at) = row.get_ref(0)? else {
        findings.add("an entry has a key that is not bytes".into());
        return Ok(());
    };
    let mut add = |what: String| findings.add(format!("entry {}: {what}", hex(at)));
    if let Err(error) = key::validate(at) {
        add(format!("its key is none: {error}"));
    }
    match integer(row, 2)? {
        None => add("its version is not a number".into()),
        Some(version) if version > newest => {
            add(format!("version {version} is beyond the counter, {newest}"));
        }
        Some(_) => {}
    }
    if integer(row, 3)?.is_none() {
        add("its end is not a number".into());
    }
    match (integer(row, 1)?, row.get_ref(4)?) {
        (None, _) => add("its value's encoding is not a number".into()),
        (Some(id), ValueRef::Blob(value)) => {
            if let Err(error) = readable(id, value) {
                add(format!("its value cannot be read: {error}"));
            }
        }
        (Some(id), _) if id >= SPILLED => add("its value is missing from openkv_spill".into()),
        (Some(_), _) => add("its value is not bytes".into()),
    }
    Ok(())
}

/// An integer column; `None` for another type.
fn integer(row: &Row<'_>, at: usize) -> rusqlite::Result<Option<i64>> {
    Ok(match row.get_ref(at)? {
        ValueRef::Integer(number) => Some(number),
        _ => None,
    })
}

fn readable(id: i64, value: &[u8]) -> Result<()> {
    let unreadable = |error: openkv_core::codec::Malformed| Error::corrupt(error.to_string());
    match encoding(if id < SPILLED { id } else { id - SPILLED })? {
        Encoding::Cbor => cbor::decode(value).map(drop).map_err(unreadable),
        Encoding::V8 => v8::decode(value).map(drop).map_err(unreadable),
        Encoding::Le64 if value.len() != 8 => Err(Error::corrupt("a KvU64 that is not 8 bytes")),
        Encoding::Le64 | Encoding::Bytes => Ok(()),
    }
}

/// The text of a finding, and the query that counts its rows.
const COUNTS: [(&str, &str); 7] = [
    (
        "values in openkv_spill belong to no entry",
        "SELECT count(*) FROM openkv_spill \
         WHERE id NOT IN (SELECT v FROM kv WHERE v_encoding >= 256 \
         UNION ALL SELECT place FROM temp.history_spill)",
    ),
    (
        "entries have a value in openkv_spill that is another one's too",
        "SELECT count(*) - count(DISTINCT v) FROM (SELECT v FROM kv WHERE v_encoding >= 256 \
         UNION ALL SELECT place FROM temp.history_spill)",
    ),
    (
        "values of the history are missing from openkv_spill",
        "SELECT count(*) FROM temp.history_spill \
         WHERE place NOT IN (SELECT id FROM openkv_spill)",
    ),
    (
        "messages have a time that is not a number",
        "SELECT count(*) FROM openkv_queue \
         WHERE typeof(due_ms) <> 'integer' OR typeof(lock_end_ms) NOT IN ('integer', 'real')",
    ),
    (
        "dead messages have a time that is not a number",
        "SELECT count(*) FROM openkv_dead \
         WHERE typeof(died_ms) <> 'integer' OR typeof(purge_ms) NOT IN ('integer', 'null')",
    ),
    (
        "messages of Deno's queue have a time that is not a number",
        "SELECT count(*) FROM queue WHERE typeof(ts) <> 'integer'",
    ),
    (
        "messages that Deno handles have a time that is not a number",
        "SELECT count(*) FROM queue_running WHERE typeof(deadline) <> 'integer'",
    ),
];

/// Collects the places of the spilled values that the history has, and checks its blocks and groups.
fn check_history(connection: &Connection, findings: &mut Findings) -> Result<()> {
    let create = "CREATE TEMP TABLE history_spill (place INTEGER NOT NULL)";
    connection.execute_batch(create).map_err(failure)?;
    let mut insert =
        connection.prepare("INSERT INTO temp.history_spill VALUES (?1)").map_err(failure)?;
    let mut blocks =
        connection.prepare("SELECT id, replaced FROM openkv_history").map_err(failure)?;
    let mut rows = blocks.query([]).map_err(failure)?;
    while let Some(row) = rows.next().map_err(failure)? {
        let mut places = Vec::new();
        let visited = replaced::visit(blob(row, 1).map_err(failure)?, |record| {
            if let Some(ReplacedValue::Spilled(_, place)) = record.entry.map(|entry| entry.value) {
                places.push(place);
            }
        });
        if let Err(error) = visited {
            let id = integer(row, 0).map_err(failure)?.unwrap_or_default();
            findings.add(format!("block {id} of the history cannot be read: {error}"));
        }
        for place in places {
            insert.execute([place]).map_err(failure)?;
        }
    }
    let mut groups =
        connection.prepare("SELECT k, records FROM openkv_history_groups").map_err(failure)?;
    let mut rows = groups.query([]).map_err(failure)?;
    while let Some(row) = rows.next().map_err(failure)? {
        if let Err(error) = replaced::visit_group(blob(row, 1).map_err(failure)?, |_, _| true) {
            let key = hex(blob(row, 0).map_err(failure)?);
            findings.add(format!("records of the history of {key} cannot be read: {error}"));
        }
    }
    Ok(())
}

/// A blob column; empty for another type.
fn blob<'r>(row: &'r Row<'_>, at: usize) -> rusqlite::Result<&'r [u8]> {
    Ok(match row.get_ref(at)? {
        ValueRef::Blob(bytes) => bytes,
        _ => &[],
    })
}

fn check_counts(connection: &Connection, findings: &mut Findings) -> Result<()> {
    for (what, sql) in COUNTS {
        let count: i64 = connection.query_row(sql, [], |row| row.get(0)).map_err(failure)?;
        if count > 0 {
            findings.add(format!("{count} {what}"));
        }
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::Maintenance;
    use crate::sqlite::fresh;

    /// Three entries, one of them spilled, and a message.
    const SOUND: &str = "
        UPDATE data_version SET version = 9;
        INSERT INTO openkv_spill VALUES (7, zeroblob(2000));
        INSERT INTO kv VALUES (x'026100', x'00', 3, 1, 0, -1), (x'026200', x'00', 3, 2, 0, 5),
          (x'026300', 7, 256 + 3, 3, 0, -1);
        INSERT INTO openkv_queue VALUES (1, 'q', 0, 5, 0, 0, 0, 5, 5, 5, NULL, NULL, x'', x'', x'');
    ";

    /// Some of these rows once ended the check with an error, others went undetected.
    #[test]
    fn invalid_rows_are_findings() {
        for (sql, expected) in [
            ("SELECT 1", None),
            ("UPDATE kv SET k = 'b' WHERE k = x'026200'", Some("not bytes")),
            (
                "UPDATE kv SET v_encoding = 'x' WHERE k = x'026100'",
                Some("encoding is not a number"),
            ),
            ("UPDATE kv SET v_encoding = -1 WHERE k = x'026100'", Some("cannot be read")),
            ("UPDATE kv SET v_encoding = 512 + 3 WHERE k = x'026300'", Some("cannot be read")),
            ("UPDATE kv SET v_encoding = 256 + 3 WHERE k = x'026100'", Some("missing from")),
            ("UPDATE kv SET v = 'text' WHERE k = x'026100'", Some("value is not bytes")),
            ("UPDATE kv SET version = 'x' WHERE k = x'026100'", Some("version is not a number")),
            ("UPDATE kv SET version = 10 WHERE k = x'026100'", Some("beyond the counter")),
            ("UPDATE data_version SET version = 'x'", Some("counter is not a number")),
            ("UPDATE kv SET expiration_ms = 'x'", Some("end is not a number")),
            ("UPDATE openkv_queue SET due_ms = 'x'", Some("1 messages have a time")),
            ("UPDATE openkv_queue SET lock_end_ms = 'x'", Some("1 messages have a time")),
            ("DELETE FROM kv WHERE k = x'026300'", Some("belong to no entry")),
            (
                "INSERT INTO kv SELECT x'026400', v, v_encoding, 3, 0, -1 FROM kv WHERE k = x'026300'",
                Some("1 entries have a value in openkv_spill that is another one's"),
            ),
            (
                "INSERT INTO openkv_history VALUES (1, 9, x'010906000403830207')",
                Some("1 entries have a value in openkv_spill that is another one's"),
            ),
            (
                "INSERT INTO openkv_history VALUES (1, 9, x'010906000403830208')",
                Some("1 values of the history are missing"),
            ),
            ("INSERT INTO openkv_history VALUES (1, 9, x'02')", Some("block 1 of the history")),
            (
                "INSERT INTO openkv_history_groups VALUES (x'026100', 9, x'80')",
                Some("records of the history of 026100"),
            ),
        ] {
            let (engine, folder) = fresh();
            let raw = Connection::open(folder.path().join("kv")).unwrap();
            let always: GoesOn = Arc::new(|| true);
            raw.execute_batch(SOUND).unwrap();
            raw.execute_batch(sql).unwrap();
            let findings = engine.check(100, &always).unwrap();
            match expected {
                None => assert_eq!(findings, Vec::<String>::new()),
                Some(what) => {
                    assert!(findings.iter().any(|f| f.contains(what)), "{sql}: {findings:?}");
                }
            }
        }
    }
}
