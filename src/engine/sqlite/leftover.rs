//! The log that two processes leave when they close a file at the same moment.
//!
//! Duty: put such a log into the file.
//!
//! The last connection to close moves the log into the file and deletes it, if no other connection has
//! the file open. Two that close at the same moment see each other, and leave the log to each other.

use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::errors::failure;
use super::identity;
use crate::model::{CLOSE_PAUSE_US_MAX, CLOSE_TRIES_MAX, Result};

/// Looks for a log when it is dropped, which must follow the closing of all connections.
pub(super) struct Leftover(Option<PathBuf>);

impl Leftover {
    /// What is closed for reading only leaves the log to others.
    pub(super) fn of(path: &Path, readonly: bool) -> Self {
        Self((!readonly).then(|| path.to_owned()))
    }
}

impl Drop for Leftover {
    fn drop(&mut self) {
        let Some(path) = &self.0 else { return };
        for _ in 0..CLOSE_TRIES_MAX {
            if !identity::has_log(path) {
                return;
            }
            // A random pause, since the other process may be here too.
            let random = RandomState::new().hash_one(path);
            std::thread::sleep(Duration::from_micros(random % CLOSE_PAUSE_US_MAX));
            // Where it cannot be opened, the next opening finds the log.
            if open_and_close(path).is_err() {
                return;
            }
        }
    }
}

/// A file that is gone is not made anew.
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
