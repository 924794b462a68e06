//! Removes the log that remains when two processes close a file at the same moment.
//!
//! Duty: move such a log into the file.
//!
//! The last connection to close moves the log into the file and deletes it, unless another
//! connection has the file open. Two connections that close at the same moment detect each other,
//! and neither removes the log. Nor does a connection that parking closes.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::errors::failure;
use super::identity;
use super::pool::PooledFile;
use openkv_core::model::{CLOSE_PAUSE_US_MAX, CLOSE_TRIES_MAX, Result};

/// Checks for a log when dropped, which must happen after all connections are closed.
pub(super) struct Leftover(Option<(PathBuf, Arc<PooledFile>)>);

impl Leftover {
    /// A read-only connection leaves the log to others.
    pub(super) fn of(path: &Path, readonly: bool, file: &Arc<PooledFile>) -> Self {
        Self((!readonly).then(|| (path.to_owned(), file.clone())))
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        let Some((path, file)) = &self.0 else { return };
        let mut was_parked = file.was_parked();
        for _ in 0..CLOSE_TRIES_MAX {
            // Parking also leaves a log without commits.
            let is_left = std::mem::take(&mut was_parked) && identity::log_of(path).exists();
            if !is_left && !identity::has_log(path) {
                return;
            }
            // A random pause, since the other process may do the same.
            let random = RandomState::new().hash_one(path);
            std::thread::sleep(Duration::from_micros(random % CLOSE_PAUSE_US_MAX));
            // If this fails, the next opening applies the log.
            if open_and_close(path).is_err() {
                return;
            }
        }
    }
}

/// Opens and closes the file, without creating it if it is gone.
fn open_and_close(path: &Path) -> Result<()> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failure)?;
    identity::keep_log(&connection, true)?;
    identity::verify_log(&connection, path)?;
    // A connection opens the log with its first read.
    let read = connection.query_row("SELECT count(*) FROM sqlite_master", [], |_| Ok(()));
    read.map_err(failure)?;
    identity::keep_log(&connection, false)
}
