//! Writing the file anew without what is free in it.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::errors::failure;
use crate::engine::Vacuumed;
use crate::model::{Kind, Result};

/// How long to wait for another process's transaction before asking again.
const PAUSE: Duration = Duration::from_millis(5);

/// Needs a connection without an open transaction.
#[tracing::instrument(skip_all)]
pub(super) fn vacuum(connection: &Connection, deadline: Instant) -> Result<Vacuumed> {
    let before_bytes = bytes(connection)?;
    loop {
        match connection.execute_batch("VACUUM").map_err(failure) {
            Err(error) if error.kind() == Kind::Unavailable && Instant::now() < deadline => {
                std::thread::sleep(PAUSE);
            }
            done => break done?,
        }
    }
    // The file itself only shrinks when the log is put into it; whoever reads may keep that from
    // happening now, and then a later checkpoint does it.
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    if let Err(error) = emptied {
        tracing::debug!(%error, "checkpoint after a vacuum");
    }
    Ok(Vacuumed { before_bytes, after_bytes: bytes(connection)? })
}

fn bytes(connection: &Connection) -> Result<u64> {
    let number = |name| {
        let read = connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        read.map(|n| u64::try_from(n).unwrap_or(0)).map_err(failure)
    };
    Ok(number("page_count")? * number("page_size")?)
}
