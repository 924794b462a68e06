//! Backup: copies the file while it is in use, and verifies the copy.

use std::path::Path;
use std::time::Duration;

use rusqlite::backup::{Backup as Copying, StepResult};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags};
use sha2::{Digest, Sha256};

use super::connection::{self, Access};
use super::errors::failure;
use super::identity;
use super::integrity_check::integrity_check;
use super::unfinished::{Unfinished, taken};
use super::values::stamp;
use openkv_core::model::{Backup, Error, Result};

/// Pages copied between two checks for cancellation.
const STEP_PAGES: i32 = 256;

/// Copies the file into a new one. A failure leaves no file behind.
pub(super) fn backup(
    from: &Path,
    to: &Path,
    busy: Duration,
    step: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Backup> {
    if to.exists() {
        return Err(taken(to));
    }
    let unfinished = Unfinished::beside(to);
    unfinished.create(to)?;
    let source = connection::open(from, Access::Read, busy)?;
    let copied = copied(&source, unfinished.path(), step)?;
    drop(source);
    let bytes = unfinished.finish(to)?;
    Ok(Backup { bytes, ..copied })
}

/// Copies a file and verifies the copy. Returns its contents; the caller adds the size.
pub(super) fn copied(
    source: &Connection,
    to: &Path,
    step: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Backup> {
    // One read transaction for the whole backup, so that later commits do not change what it reads.
    source.execute_batch("BEGIN").map_err(failure)?;
    let entries = count(source)?;
    let version = version(source)?;
    copy(source, to, step)?;
    let digest = digest(source)?;
    verify(to, digest)?;
    Ok(Backup { bytes: 0, entries, stamp: stamp(version), digest })
}

fn count(connection: &Connection) -> Result<u64> {
    let count: i64 =
        connection.query_row("SELECT count(*) FROM kv", [], |row| row.get(0)).map_err(failure)?;
    Ok(count.cast_unsigned())
}

fn version(connection: &Connection) -> Result<i64> {
    let sql = "SELECT version FROM data_version WHERE k = 0";
    connection.query_row(sql, [], |row| row.get(0)).map_err(failure)
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
            return Err(Error::unavailable("the backup was ended before it was done"));
        }
        match done {
            StepResult::Done => break,
            // Busy: the source has a read transaction and no other connection has the target, so
            // retry.
            _ => continue,
        }
    }
    drop(copying);
    // A log of the source that is left beside the copy must not match the copy.
    target.execute_batch(identity::RENEW).map_err(failure)
}

fn verify(path: &Path, expected: [u8; 32]) -> Result<()> {
    let copy = Connection::open_with_flags(
        path,
        OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX,
    )
    .map_err(failure)?;
    let findings = integrity_check(&copy, 1)?;
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

/// SHA-256 of every row of every table, independent of the layout of pages.
fn digest(connection: &Connection) -> Result<[u8; 32]> {
    let mut hash = Sha256::new();
    // Virtual tables store their contents in ordinary ones.
    let tables = "SELECT name FROM sqlite_master WHERE type = 'table' \
                  AND sql NOT LIKE 'CREATE VIRTUAL%' ORDER BY name";
    let mut tables = connection.prepare(tables).map_err(failure)?;
    let names = tables.query_map([], |row| row.get::<_, String>(0)).map_err(failure)?;
    for name in names {
        let name = name.map_err(failure)?;
        put(&mut hash, b't', name.as_bytes());
        // The name comes from the schema, and is quoted as SQLite quotes names.
        let quoted = name.replace('"', "\"\"");
        // The other row of this table is the file number, which differs between copies.
        let only = if name == "data_version" { "WHERE k = 0" } else { "" };
        let mut rows =
            connection.prepare(&format!("SELECT * FROM \"{quoted}\" {only}")).map_err(failure)?;
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

/// Different sequences of parts give different bytes.
fn put(hash: &mut Sha256, kind: u8, bytes: &[u8]) {
    hash.update([kind]);
    hash.update((bytes.len() as u64).to_le_bytes());
    hash.update(bytes);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Maintenance;
    use crate::sqlite::fresh;
    use openkv_core::model::Kind;

    /// A process that ends during a backup leaves its copy; the next backup removes it.
    #[cfg(unix)]
    #[test]
    fn a_backup_removes_copies_of_ended_processes() {
        let (engine, folder) = fresh();
        let to = folder.path().join("copy");
        // Larger than any process id of this system, and this process's own, which has copies 0, 1,
        // 2 ….
        let dead = ["copy.4194999-0.unfinished", "copy.4194999-0.unfinished-journal"];
        let own = format!("copy.{}-9000000.unfinished", std::process::id());
        let alive = format!("copy.{}-0.unfinished", std::os::unix::process::parent_id());
        let other = ["other.4194999-0.unfinished", "copy.unfinished", "copy.4194999.unfinished"];
        let kept = || other.iter().copied().chain([alive.as_str()]);
        for name in dead.iter().copied().chain([own.as_str()]).chain(kept()) {
            std::fs::write(folder.path().join(name), "left").unwrap();
        }
        engine.backup(&to, &mut |_, _| true).unwrap();
        for name in kept() {
            assert!(folder.path().join(name).exists(), "{name} is not this backup's to remove");
        }
        assert_eq!(unfinished(&folder), kept().count());
    }

    fn unfinished(folder: &tempfile::TempDir) -> usize {
        let names = std::fs::read_dir(folder.path()).unwrap();
        let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        names.filter(|name| name.contains("unfinished")).count()
    }

    /// On file systems without links, the fallback once replaced an existing file.
    #[test]
    fn a_file_created_meanwhile_is_not_replaced() {
        let (engine, folder) = fresh();
        let to = folder.path().join("copy");
        let refused = engine.backup(&to, &mut |_, _| std::fs::write(&to, "precious").is_ok());
        assert_eq!(refused.map_err(|error| error.kind()), Err(Kind::Invalid));
        assert_eq!(std::fs::read(&to).unwrap(), b"precious");
        assert_eq!(unfinished(&folder), 0);
    }

    /// Both once used the same unfinished file, and the second began by deleting it.
    #[test]
    fn one_of_two_backups_to_the_same_file_succeeds() {
        let (engine, folder) = fresh();
        let to = folder.path().join("copy");
        let mut second = None;
        let first = engine.backup(&to, &mut |_, _| {
            second.get_or_insert_with(|| engine.backup(&to, &mut |_, _| true));
            true
        });
        assert_eq!(first.map_err(|error| error.kind()), Err(Kind::Invalid));
        let won = second.unwrap().unwrap();
        assert_eq!(std::fs::metadata(&to).unwrap().len(), won.bytes);
        verify(&to, won.digest).unwrap();
        assert_eq!(unfinished(&folder), 0);
    }
}
