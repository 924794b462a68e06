//! The file as a whole: copied while it is in use, and examined.

use std::ffi::OsString;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::backup::{Backup as Copying, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest, Sha256};

use super::connection::{self, Access};
use super::errors::failure;
use super::layout::SPILLED;
use super::reader::{encoding, stamp};
use crate::codec::{cbor, key, v8};
use crate::engine::Backup;
use crate::model::{Encoding, Error, Kind, Result};

/// Pages copied between two looks at whether to go on.
const STEP_PAGES: i32 = 256;

/// Copies the file into a new one; nothing is left behind by a failure.
pub(super) fn backup(
    from: &Path,
    to: &Path,
    busy: Duration,
    step: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Backup> {
    if to.exists() {
        let message = format!("{} exists already; name a file that does not", to.display());
        return Err(Error::invalid(message));
    }
    let unfinished = Unfinished::beside(to);
    let source = connection::open(from, Access::Read, busy)?;
    // One read transaction from here to the end: a state that stays, whoever commits meanwhile.
    source.execute_batch("BEGIN").map_err(failure)?;
    let entries = count(&source)?;
    let version = version(&source)?;
    copy(&source, &unfinished.path, step)?;
    let digest = digest(&source)?;
    drop(source);
    verify(&unfinished.path, digest)?;
    let bytes = unfinished.finish(to)?;
    Ok(Backup { bytes, entries, stamp: stamp(version), digest })
}

/// A file that is not complete, and goes with this unless it is finished.
struct Unfinished {
    path: PathBuf,
}

impl Unfinished {
    fn beside(to: &Path) -> Self {
        let mut name = OsString::from(to);
        name.push(format!(".{}.unfinished", std::process::id()));
        let unfinished = Self { path: name.into() };
        unfinished.remove();
        unfinished
    }

    fn remove(&self) {
        for end in ["", "-wal", "-shm", "-journal"] {
            let mut name = OsString::from(&self.path);
            name.push(end);
            // What is not there need not be removed.
            let _absent = std::fs::remove_file(name);
        }
    }

    /// Gives it its name, durably.
    fn finish(&self, to: &Path) -> Result<u64> {
        let io = |error: std::io::Error| {
            Error::new(Kind::Unavailable, format!("{}: {error}", to.display()))
        };
        let file = File::open(&self.path).map_err(io)?;
        file.sync_all().map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        // Unlike a renaming, a link does not replace a file that has come meanwhile.
        std::fs::hard_link(&self.path, to)
            .or_else(|_| std::fs::rename(&self.path, to))
            .map_err(io)?;
        let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
        if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
            // Not every system syncs directories.
            let _unsupported = folder.sync_all();
        }
        Ok(bytes)
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        self.remove();
    }
}

fn count(connection: &Connection) -> Result<u64> {
    let count: i64 =
        connection.query_row("SELECT count(*) FROM kv", [], |row| row.get(0)).map_err(failure)?;
    Ok(count.cast_unsigned())
}

fn version(connection: &Connection) -> Result<i64> {
    connection.query_row("SELECT version FROM data_version", [], |row| row.get(0)).map_err(failure)
}

fn copy(source: &Connection, to: &Path, step: &mut dyn FnMut(u64, u64) -> bool) -> Result<()> {
    let mut target = Connection::open(to).map_err(failure)?;
    let copying = Copying::new(source, &mut target).map_err(failure)?;
    loop {
        let done = copying.step(STEP_PAGES).map_err(failure)?;
        let progress = copying.progress();
        let pages = |n: i32| u64::try_from(n).unwrap_or(0);
        let (all, left) = (pages(progress.pagecount), pages(progress.remaining));
        if !step(all.saturating_sub(left), all) {
            return Err(Error::new(Kind::Unavailable, "the backup was ended before it was done"));
        }
        match done {
            StepResult::Done => return Ok(()),
            // The source is held by a read transaction and the target is ours.
            _ => continue,
        }
    }
}

fn verify(path: &Path, expected: [u8; 32]) -> Result<()> {
    let copy = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(failure)?;
    let findings = examine(&copy, 1)?;
    if let Some(finding) = findings.first() {
        return Err(Error::corrupt(format!("the copy is not sound ({finding}); check the disk")));
    }
    if digest(&copy)? != expected {
        return Err(Error::corrupt(
            "the copy's contents are not those of the source; check the disk",
        ));
    }
    Ok(())
}

/// The contents: every row of every table, but not where they lie.
fn digest(connection: &Connection) -> Result<[u8; 32]> {
    let mut hash = Sha256::new();
    // Virtual tables keep their contents in ordinary ones.
    let tables = "SELECT name FROM sqlite_master WHERE type = 'table' \
                  AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name";
    let mut tables = connection.prepare(tables).map_err(failure)?;
    let names = tables.query_map([], |row| row.get::<_, String>(0)).map_err(failure)?;
    for name in names {
        let name = name.map_err(failure)?;
        put(&mut hash, b't', name.as_bytes());
        // From the schema, and quoted as SQLite quotes names.
        let quoted = name.replace('"', "\"\"");
        let mut rows =
            connection.prepare(&format!("SELECT * FROM \"{quoted}\"")).map_err(failure)?;
        let columns = rows.column_count();
        let mut rows = rows.query([]).map_err(failure)?;
        while let Some(row) = rows.next().map_err(failure)? {
            for column in 0..columns {
                match row.get_ref(column).map_err(failure)? {
                    ValueRef::Null => put(&mut hash, b'0', &[]),
                    ValueRef::Integer(n) => put(&mut hash, b'i', &n.to_le_bytes()),
                    ValueRef::Real(n) => put(&mut hash, b'r', &n.to_bits().to_le_bytes()),
                    ValueRef::Text(text) => put(&mut hash, b's', text),
                    ValueRef::Blob(bytes) => put(&mut hash, b'b', bytes),
                }
            }
        }
    }
    Ok(hash.finalize().into())
}

/// No two sequences of parts have the same bytes.
fn put(hash: &mut Sha256, kind: u8, bytes: &[u8]) {
    hash.update([kind]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

/// Examines the file: SQLite's own check of its pages, then ours of what is in them.
pub(super) fn check(path: &Path, busy: Duration, findings_max: usize) -> Result<Vec<String>> {
    let connection = connection::open(path, Access::Read, busy)?;
    connection.execute_batch("BEGIN").map_err(failure)?;
    let mut findings = examine(&connection, findings_max)?;
    if findings.is_empty() {
        check_rows(&connection, findings_max, &mut findings)?;
        check_spill(&connection, findings_max, &mut findings)?;
    }
    findings.truncate(findings_max);
    Ok(findings)
}

fn examine(connection: &Connection, findings_max: usize) -> Result<Vec<String>> {
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
    Ok(findings)
}

/// Keys are keys, values are values, and no row is newer than the file.
fn check_rows(
    connection: &Connection,
    findings_max: usize,
    findings: &mut Vec<String>,
) -> Result<()> {
    let newest = version(connection)?;
    let sql = "SELECT kv.k, kv.v_encoding, kv.version, coalesce(openkv_spill.v, kv.v) FROM kv \
               LEFT JOIN openkv_spill ON kv.v_encoding >= 256 AND openkv_spill.id = kv.v";
    let mut statement = connection.prepare(sql).map_err(failure)?;
    let mut rows = statement.query([]).map_err(failure)?;
    while let Some(row) = rows.next().map_err(failure)? {
        if findings.len() >= findings_max {
            break;
        }
        let at: Vec<u8> = row.get(0).map_err(failure)?;
        let named = |what: String| format!("entry {}: {what}", hex(&at));
        let (id, version): (i64, i64) =
            (row.get(1).map_err(failure)?, row.get(2).map_err(failure)?);
        if let Err(error) = key::validate(&at) {
            findings.push(named(format!("its key is none: {error}")));
        }
        if version > newest {
            findings.push(named(format!("version {version} is beyond the counter, {newest}")));
        }
        let ValueRef::Blob(value) = row.get_ref(3).map_err(failure)? else {
            findings.push(named("its value is missing from openkv_spill".into()));
            continue;
        };
        if let Err(error) = readable(id, value) {
            findings.push(named(format!("its value cannot be read: {error}")));
        }
    }
    Ok(())
}

fn readable(id: i64, value: &[u8]) -> Result<()> {
    let unreadable = |error: crate::codec::Malformed| Error::corrupt(error.to_string());
    match encoding(id % SPILLED)? {
        Encoding::Cbor => cbor::decode(value).map(drop).map_err(unreadable),
        Encoding::V8 => v8::decode(value).map(drop).map_err(unreadable),
        Encoding::Le64 if value.len() != 8 => Err(Error::corrupt("a KvU64 that is not 8 bytes")),
        Encoding::Le64 | Encoding::Bytes => Ok(()),
    }
}

/// Rows of `openkv_spill` that nobody names take up room for nothing.
fn check_spill(
    connection: &Connection,
    findings_max: usize,
    findings: &mut Vec<String>,
) -> Result<()> {
    let named = "SELECT count(DISTINCT v) FROM kv WHERE v_encoding >= 256";
    let spilled = "SELECT count(*) FROM openkv_spill";
    let count = |sql: &str| -> Result<i64> {
        connection.query_row(sql, [], |row| row.get(0)).map_err(failure)
    };
    let unnamed = count(spilled)? - count(named)?;
    if unnamed > 0 && findings.len() < findings_max {
        findings.push(format!("{unnamed} values in openkv_spill belong to no entry"));
    }
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
