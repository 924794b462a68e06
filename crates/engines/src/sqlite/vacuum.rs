//! Rewrites the file without its free pages.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::errors::failure;
use super::interrupt::interruptible;
use super::log_mover::LogMover;
use crate::GoesOn;
use openkv_core::model::{Error, Kind, Result, Vacuumed};

/// Pause before another attempt while another process has a transaction.
const PAUSE: Duration = Duration::from_millis(5);

/// The connection must have no open transaction.
#[tracing::instrument(skip_all)]
pub(super) fn vacuum(
    connection: &mut Connection,
    deadline: Instant,
    goes_on: &GoesOn,
) -> Result<Vacuumed> {
    let before_bytes = bytes(connection)?;
    if !goes_on() {
        return Err(Error::closed());
    }
    // Without it the log is moved later.
    let mover = LogMover::start(connection).unwrap_or_else(|error| {
        tracing::debug!(%error, "starting to move the log of a vacuum");
        None
    });
    let asked = mover.as_ref().map_or_else(|| goes_on.clone(), |mover| mover.asked_with(goes_on));
    let done =
        interruptible(connection, &asked, |connection| written_anew(connection, deadline, goes_on));
    drop((asked, mover));
    done.map_err(|error| if goes_on() { error } else { Error::closed() })?;
    // The file shrinks once the log is moved into it. If readers prevent that now, a later
    // checkpoint does it.
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    if let Err(error) = emptied {
        tracing::debug!(%error, "checkpoint after a vacuum");
    }
    Ok(Vacuumed { before_bytes, after_bytes: bytes(connection)? })
}

fn written_anew(connection: &Connection, deadline: Instant, goes_on: &GoesOn) -> Result<()> {
    loop {
        match connection.execute_batch("VACUUM").map_err(failure) {
            Err(error)
                if error.kind() == Kind::Unavailable && goes_on() && Instant::now() < deadline =>
            {
                std::thread::sleep(PAUSE);
            }
            done => return done,
        }
    }
}

fn bytes(connection: &Connection) -> Result<u64> {
    let number = |name| {
        let read = connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        read.map(|n| u64::try_from(n).unwrap_or(0)).map_err(failure)
    };
    Ok(number("page_count")? * number("page_size")?)
}
