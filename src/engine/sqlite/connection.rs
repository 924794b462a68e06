//! Opening the file.

use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::errors::failure;
use crate::model::{PAGE_CACHE_KIB, Result};

/// Whether a connection may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    Read,
    Write,
}

/// Opens a connection, ready for the log, with the waiting time for its locks.
pub(super) fn open(path: &Path, access: Access, busy: Duration) -> Result<Connection> {
    let mode = match access {
        Access::Read => OpenFlags::SQLITE_OPEN_READ_ONLY,
        Access::Write => OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE,
    };
    // One thread at a time uses a connection, so SQLite needs no mutex of its own. The path is a
    // path: URIs are not interpreted.
    let flags = mode | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(failure)?;
    connection.busy_timeout(busy).map_err(failure)?;
    connection.pragma_update(None, "cache_size", -PAGE_CACHE_KIB).map_err(failure)?;
    connection.pragma_update(None, "trusted_schema", false).map_err(failure)?;
    if access == Access::Write {
        connection.pragma_update(None, "journal_mode", "wal").map_err(failure)?;
    }
    Ok(connection)
}
