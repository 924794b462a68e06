//! Moves the log of a vacuum into the file on a thread of its own.
//!
//! A vacuum writes the whole database to the log, and SQLite lets the next writer move a long log
//! before its commit is answered: with a large file, a write of another process waits for minutes.
//! Only one connection at a time moves a log, and a checkpoint that must wait for writers waits with
//! the lock for it. So a checkpoint begins while the vacuum runs, and once the vacuum has committed,
//! it goes on without waiting for writers (SQLite's `FULL`, which continues as `PASSIVE` when its busy
//! handler gives up).

use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, TryRecvError, sync_channel};
use std::thread::{Builder, JoinHandle};
use std::time::Duration;

use rusqlite::Connection;

use super::connection::{self, Access};
use super::errors::failure;
use super::wal_index::{Header, WalIndex};
use crate::GoesOn;
use openkv_core::model::{Error, Result};

/// Pause between two looks for the commit of the vacuum.
const PAUSE: Duration = Duration::from_millis(1);

/// The thread that waits for the commit of a vacuum. Dropping it waits until the log is moved.
pub(super) struct LogMover {
    index: WalIndex,
    running: Option<SyncSender<Header>>,
    thread: Option<JoinHandle<()>>,
}

impl LogMover {
    /// For a vacuum on this connection. `None` if there is no log.
    pub(super) fn start(vacuum: &Connection) -> Result<Option<Self>> {
        let (Some(path), Some(index)) = (vacuum.path(), WalIndex::of(vacuum)) else {
            return Ok(None);
        };
        let connection = connection::open(Path::new(path), Access::Write, Duration::ZERO)?;
        let (running, begun) = sync_channel(1);
        let work = move || {
            if let Err(error) = move_log(connection, begun) {
                tracing::debug!(%error, "moving the log of a vacuum");
            }
        };
        let thread = Builder::new().name("openkv-vacuum".into()).spawn(work);
        let thread = thread.map_err(|error| Error::internal(error.to_string()))?;
        Ok(Some(Self { index, running: Some(running), thread: Some(thread) }))
    }

    /// `goes_on`, which SQLite calls while the vacuum runs. A call shows that the vacuum has the lock for
    /// writing: the header of the log changes next when it commits.
    pub(super) fn observing(&self, goes_on: &GoesOn) -> GoesOn {
        let (goes_on, index, running) = (goes_on.clone(), self.index, self.running.clone());
        Arc::new(move || {
            if let Some(running) = &running {
                // It is full when the thread knows.
                let _ = running.try_send(index.header());
            }
            goes_on()
        })
    }
}

impl Drop for LogMover {
    fn drop(&mut self) {
        self.running = None;
        if let Some(thread) = self.thread.take() {
            // A panic has been reported by the thread.
            let _ = thread.join();
        }
    }
}

/// A vacuum that has the lock for writing.
struct Vacuum {
    index: WalIndex,
    before: Header,
    /// Disconnected at its end.
    running: Receiver<Header>,
}

thread_local! {
    /// SQLite hands nothing to a busy handler but the number of its tries.
    static VACUUM: RefCell<Option<Vacuum>> = const { RefCell::new(None) };
}

/// Whether the vacuum of this thread is still to commit. As a busy handler: whether to wait on.
fn is_uncommitted(_tries: i32) -> bool {
    std::thread::sleep(PAUSE);
    VACUUM.with_borrow(|vacuum| {
        vacuum.as_ref().is_some_and(|vacuum| {
            vacuum.index.header() == vacuum.before
                && vacuum.running.try_recv() != Err(TryRecvError::Disconnected)
        })
    })
}

fn move_log(mut connection: Connection, running: Receiver<Header>) -> Result<()> {
    // A vacuum that ends before SQLite asks leaves a short log.
    let Ok(before) = running.recv() else { return Ok(()) };
    let Some(index) = WalIndex::of(&connection) else { return Ok(()) };
    VACUUM.set(Some(Vacuum { index, before, running }));
    connection.busy_handler(Some(is_uncommitted)).map_err(failure)?;
    let checkpoint = |kind: &str| {
        let sql = format!("PRAGMA wal_checkpoint({kind})");
        connection.query_row(&sql, [], |_| Ok(())).map_err(failure)
    };
    // Ends early while another process moves the log.
    while is_uncommitted(0) {
        checkpoint("FULL")?;
    }
    checkpoint("PASSIVE")
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::time::Instant;

    use super::*;
    use crate::sqlite::SqliteEngine;

    const ENTRIES: &str = "
        BEGIN IMMEDIATE;
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 2000)
        INSERT INTO kv SELECT printf('%08d', i), zeroblob(1000), 3, 0, 0, -1 FROM n;";

    /// A new file and the connection of a vacuum, which leaves its log to others.
    fn file(path: &Path) -> Connection {
        drop(SqliteEngine::open(path, false, Duration::from_secs(5)).unwrap());
        let connection = Connection::open(path).unwrap();
        connection.execute_batch("PRAGMA wal_autocheckpoint = 0; SELECT k FROM kv").unwrap();
        connection
    }

    fn size(path: &Path) -> u64 {
        std::fs::metadata(path).unwrap().len()
    }

    /// A write of another process moved the whole log of a vacuum before it was answered.
    #[test]
    fn no_other_connection_moves_the_log_of_a_vacuum() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv");
        let vacuum = file(&path);
        let mover = LogMover::start(&vacuum).unwrap().unwrap();
        let handler = mover.observing(&(Arc::new(|| true) as GoesOn));
        vacuum.execute_batch(ENTRIES).unwrap();
        assert!(handler());
        let other = Connection::open(&path).unwrap();
        let is_refused = || {
            let sql = "PRAGMA wal_checkpoint(PASSIVE)";
            other.query_row(sql, [], |row| row.get::<_, i64>(0)).unwrap() == 1
        };
        let begun = Instant::now();
        while !is_refused() {
            assert!(begun.elapsed() < Duration::from_secs(30), "others can move the log");
            std::thread::sleep(PAUSE);
        }
        let before_bytes = size(&path);
        vacuum.execute_batch("COMMIT").unwrap();
        drop((handler, mover));
        assert!(size(&path) > before_bytes + 2_000_000, "the log was not moved");
    }

    #[test]
    fn a_vacuum_that_fails_leaves_the_log_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kv");
        let vacuum = file(&path);
        for is_called in [false, true] {
            let mover = LogMover::start(&vacuum).unwrap().unwrap();
            let handler = mover.observing(&(Arc::new(|| true) as GoesOn));
            vacuum.execute_batch(ENTRIES).unwrap();
            assert!(!is_called || handler());
            vacuum.execute_batch("ROLLBACK").unwrap();
            drop((handler, mover));
            vacuum.execute_batch("BEGIN IMMEDIATE; ROLLBACK").unwrap();
        }
    }
}
