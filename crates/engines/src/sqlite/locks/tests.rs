//! Locks of connections that open, read, write and close in any order.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::{READ, UNLOCKED, WRITE, call, main_file, over, unclosed};
use crate::sqlite::connection::{self, Access};

/// The bytes of a main file that a read lock covers.
const SHARED: (libc::off_t, libc::off_t) = (0x4000_0002, 510);

/// A separate open file description without locks.
fn observer(path: &Path) -> File {
    OpenOptions::new().read(true).write(true).open(path).unwrap()
}

fn locked(observer: &File, range: (libc::off_t, libc::off_t)) -> bool {
    let mut lock = over(WRITE, range);
    call(observer.as_raw_fd(), libc::F_OFD_GETLK, &mut lock).unwrap();
    lock.l_type != UNLOCKED
}

fn opened(path: &Path, access: Access) -> Connection {
    connection::open(path, access, Duration::from_secs(5)).unwrap()
}

/// Connections have read once they are open: from then on they have a read lock until they close.
#[test]
fn locks_end_with_their_connections_in_any_order() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv");
    let wal = folder.path().join("kv-wal");
    opened(&path, Access::Write).execute_batch("CREATE TABLE t (n)").unwrap();
    let observer = observer(&path);
    let mut open: Vec<Connection> = Vec::new();
    let (mut rows, mut random, mut exclusive) = (0, 88_172_645_463_325_252_u64, 0);
    for _ in 0..4_000 {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let at = usize::try_from(random >> 32).unwrap() % open.len().max(1);
        let writes = |of: &Connection| !of.is_readonly("main").unwrap();
        let room = open.len() < 6;
        match (random % 8, open.get_mut(at)) {
            (0, _) if room => open.push(opened(&path, Access::Write)),
            (1, _) if room => open.push(opened(&path, Access::Read)),
            (2 | 3, Some(connection)) => {
                let count = "SELECT count(*) FROM t";
                let count: i64 = connection.query_row(count, [], |row| row.get(0)).unwrap();
                assert_eq!(count, rows);
            }
            (4, Some(connection)) if writes(connection) => {
                rows += i64::try_from(connection.execute("INSERT INTO t VALUES (1)", []).unwrap())
                    .unwrap();
            }
            (5 | 6, Some(_)) => {
                let closed = open.swap_remove(at);
                let alone = open.is_empty() && writes(&closed);
                drop(closed);
                // Needs an exclusive lock, whichever connection locked first.
                assert!(!alone || !wal.exists());
                exclusive += usize::from(alone);
            }
            _ => {}
        }
        let expected = !open.is_empty();
        assert_eq!(locked(&observer, SHARED), expected);
        assert_eq!(main_file::is_locked(&observer), expected);
        let mut posix = over(WRITE, SHARED);
        let taken = call(observer.as_raw_fd(), libc::F_SETLK, &mut posix).is_ok();
        assert_eq!(taken, !expected);
        call(observer.as_raw_fd(), libc::F_SETLK, &mut over(UNLOCKED, SHARED)).unwrap();
    }
    assert!(rows > 100 && exclusive > 10, "{rows} {exclusive}");
    drop(open);
    assert!(!locked(&observer, (0, 0)));
    assert!(!main_file::is_locked(&observer));
}

/// Another SQLite of the process once dropped the locks of this one, or was not excluded by them.
#[test]
fn another_library_of_the_process_is_excluded_and_drops_no_locks() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv");
    let one = connection::open(&path, Access::Write, Duration::ZERO).unwrap();
    one.execute_batch("CREATE TABLE t (n); BEGIN IMMEDIATE").unwrap();
    let index = observer(&folder.path().join("kv-shm"));
    let write = (120, 1);
    for command in [libc::F_SETLK, libc::F_OFD_SETLK] {
        assert!(call(index.as_raw_fd(), command, &mut over(WRITE, write)).is_err());
    }
    // The other library closes its descriptors like this.
    drop((observer(&path), observer(&folder.path().join("kv-shm"))));
    assert!(locked(&observer(&path), SHARED) && locked(&index, write));
    one.execute_batch("COMMIT").unwrap();
    call(index.as_raw_fd(), libc::F_SETLK, &mut over(WRITE, write)).unwrap();
    assert!(one.execute_batch("BEGIN IMMEDIATE").is_err());
    call(index.as_raw_fd(), libc::F_SETLK, &mut over(UNLOCKED, write)).unwrap();
    one.execute_batch("BEGIN IMMEDIATE").unwrap();
    assert!(call(index.as_raw_fd(), libc::F_SETLK, &mut over(READ, write)).is_err());
}

/// Closing a connection once dropped the locks of the other library.
#[test]
fn closing_a_connection_keeps_the_locks_of_another_library() {
    keeps_the_locks_of_another_library(false);
}

/// The system reports the locks of the other process, which are older, and not those of the library.
#[test]
fn closing_a_connection_beside_another_process_keeps_the_locks_of_another_library() {
    keeps_the_locks_of_another_library(true);
}

fn keeps_the_locks_of_another_library(beside_process: bool) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv");
    let shm = folder.path().join("kv-shm");
    let stays = opened(&path, Access::Write);
    stays.execute_batch("CREATE TABLE t (n)").unwrap();
    // The locks of another process are those of another open file description.
    let process = beside_process.then(|| [observer(&path), observer(&shm)]);
    for (file, range) in process.iter().flatten().zip([SHARED, (128, 1)]) {
        call(file.as_raw_fd(), libc::F_OFD_SETLK, &mut over(READ, range)).unwrap();
    }
    let (main, index, write) = (observer(&path), observer(&shm), (120, 1));
    let held = || [locked(&main, SHARED), locked(&index, write)];
    for _ in 0..20 {
        call(main.as_raw_fd(), libc::F_SETLK, &mut over(READ, SHARED)).unwrap();
        // The locks that a writer and any connection set there.
        call(index.as_raw_fd(), libc::F_SETLK, &mut over(WRITE, write)).unwrap();
        call(index.as_raw_fd(), libc::F_SETLK, &mut over(READ, (128, 1))).unwrap();
        drop(opened(&path, Access::Read));
    }
    drop(stays);
    // Another open file description reports them as locks of this process.
    assert_eq!(held(), [true, true]);
    let unclosed_now = unclosed::count(&main) + unclosed::count(&index);
    assert!((2..=4).contains(&unclosed_now), "{unclosed_now}");
    let again = opened(&path, Access::Read);
    assert!(again.execute_batch("SELECT * FROM t").is_ok());
    drop(again);
    assert_eq!(held(), [true, true]);
    for file in [&main, &index] {
        call(file.as_raw_fd(), libc::F_SETLK, &mut over(UNLOCKED, (0, 0))).unwrap();
    }
    drop((process, opened(&path, Access::Write)));
    assert_eq!(held(), [false, false]);
    assert_eq!(unclosed::count(&main) + unclosed::count(&index), 0);
}
