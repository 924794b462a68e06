//! Commits through the VFS, as other connections and copies of the file see them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

use super::super::connection::{self, Access};
use super::{Synced, set_synced};
use openkv_core::model::LOG_GROWTH_BYTES_MIN;

const PAGE_BYTES: u64 = 4096;
const FRAME_BYTES: u64 = 24 + PAGE_BYTES;

fn open(path: &Path) -> Connection {
    let connection = connection::open(path, Access::Write, Duration::from_secs(5)).unwrap();
    connection
        .execute_batch("CREATE TABLE IF NOT EXISTS t (i INTEGER PRIMARY KEY, v BLOB)")
        .unwrap();
    connection
}

/// Writes rows of half a page, in one transaction.
fn write(connection: &Connection, from: u32, count: u32) -> rusqlite::Result<usize> {
    connection.execute(
        "WITH RECURSIVE n(i) AS (SELECT ?1 UNION ALL SELECT i + 1 FROM n WHERE i < ?2) \
         INSERT OR REPLACE INTO t SELECT i, randomblob(2000) FROM n",
        [from, from + count - 1],
    )
}

/// The number of rows of an intact file, read by a connection of SQLite's own.
fn rows(path: &Path) -> u32 {
    let other = Connection::open(path).unwrap();
    let ask = |sql| other.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap();
    assert_eq!(ask("PRAGMA integrity_check"), "ok");
    ask("SELECT CAST(count(*) AS TEXT) FROM t").parse().unwrap()
}

fn log_of(path: &Path) -> PathBuf {
    path.with_extension("sqlite3-wal")
}

fn log_bytes(path: &Path) -> u64 {
    std::fs::metadata(log_of(path)).unwrap().len()
}

/// Copies the file and its log, as a loss of power would leave them, into another folder.
fn copied(path: &Path, folder: &Path) -> PathBuf {
    let copy = folder.join("copy.sqlite3");
    std::fs::copy(path, &copy).unwrap();
    std::fs::copy(log_of(path), log_of(&copy)).unwrap();
    copy
}

#[test]
fn a_commit_is_in_the_file_when_others_see_it() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv.sqlite3");
    let connection = open(&path);
    let mut written = 0;
    for synced in [Synced::Commits, Synced::Moves, Synced::Commits, Synced::Nothing] {
        set_synced(&connection, synced).unwrap();
        for count in [1, 3, 300] {
            write(&connection, written, count).unwrap();
            written += count;
            assert_eq!(rows(&path), written, "{synced:?}");
        }
        assert_eq!(rows(&copied(&path, folder.path())), written, "{synced:?}");
    }
}

/// Pages that the cache has no room for go to the log before the commit, are read from there, and are
/// written once more at their place.
#[test]
fn a_transaction_larger_than_the_cache_is_read_and_committed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv.sqlite3");
    let connection = open(&path);
    connection.execute_batch("PRAGMA cache_size = 10").unwrap();
    for synced in [Synced::Commits, Synced::Moves, Synced::Nothing] {
        set_synced(&connection, synced).unwrap();
        connection.execute_batch("BEGIN").unwrap();
        write(&connection, 0, 500).unwrap();
        for _ in 0..3 {
            connection.execute("UPDATE t SET v = randomblob(1999) WHERE i % 7 = 0", []).unwrap();
        }
        connection.execute_batch("COMMIT").unwrap();
        assert_eq!(rows(&path), 500);
        connection.execute_batch("BEGIN").unwrap();
        write(&connection, 1000, 500).unwrap();
        connection.execute_batch("ROLLBACK").unwrap();
        write(&connection, 0, 1).unwrap();
        assert_eq!(rows(&path), 500);
        assert_eq!(rows(&copied(&path, folder.path())), 500);
    }
}

#[test]
fn the_log_grows_in_steps_and_is_used_again() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv.sqlite3");
    let connection = open(&path);
    set_synced(&connection, Synced::Commits).unwrap();
    write(&connection, 0, 1).unwrap();
    let first_bytes = log_bytes(&path);
    assert!(first_bytes > LOG_GROWTH_BYTES_MIN, "{first_bytes}");
    write(&connection, 1, 1).unwrap();
    assert_eq!(log_bytes(&path), first_bytes);
    for n in 2..1000 {
        write(&connection, n, 1).unwrap();
    }
    let all_bytes = log_bytes(&path);
    connection.execute_batch("PRAGMA wal_checkpoint(RESTART)").unwrap();
    for n in 0..100 {
        write(&connection, n, 1).unwrap();
    }
    assert_eq!(log_bytes(&path), all_bytes);
    // Another connection shortens the log, which this one has not seen.
    Connection::open(&path).unwrap().execute_batch("PRAGMA wal_checkpoint(TRUNCATE)").unwrap();
    assert_eq!(log_bytes(&path), 0);
    write(&connection, 1000, 1).unwrap();
    assert!(log_bytes(&path) > LOG_GROWTH_BYTES_MIN);
    assert_eq!(rows(&path), 1001);
}

/// A disk has room for a commit, but not for the growth of the log.
#[cfg(unix)]
#[test]
fn a_log_that_cannot_grow_takes_what_fits() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv.sqlite3");
    let connection = open(&path);
    set_synced(&connection, Synced::Commits).unwrap();
    write(&connection, 0, 1).unwrap();
    let full = log_bytes(&path);
    limit_files(full + 8 * FRAME_BYTES);
    let mut written = 1;
    while write(&connection, written, 1).is_ok() {
        written += 1;
    }
    let spare = full + 8 * FRAME_BYTES - log_bytes(&path);
    assert!(written > 2 && spare < 4 * FRAME_BYTES, "{written} rows, {spare} bytes are left");
    assert_eq!(rows(&path), written);
    for synced in [Synced::Commits, Synced::Moves] {
        set_synced(&connection, synced).unwrap();
        write(&connection, written, 3).unwrap_err();
        // Its own reads do not wait for room.
        let count = "SELECT count(*) FROM t";
        assert_eq!(connection.query_row(count, [], |row| row.get::<_, u32>(0)).unwrap(), written);
    }
    limit_files(libc::RLIM_INFINITY);
    write(&connection, written, 1).unwrap();
    assert_eq!(rows(&path), written + 1);
    assert_eq!(rows(&copied(&path, folder.path())), written + 1);
}

/// Makes the system refuse longer files to this process, instead of ending it.
#[cfg(unix)]
fn limit_files(bytes: libc::rlim_t) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: the limit is valid, and ignoring a signal calls nothing.
    unsafe {
        libc::signal(libc::SIGXFSZ, libc::SIG_IGN);
        assert_eq!(libc::setrlimit(libc::RLIMIT_FSIZE, &raw const limit), 0);
    }
}
