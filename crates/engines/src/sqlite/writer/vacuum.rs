//! Gives the free pages of the file back to the system.
//!
//! A file that openkv creates has SQLite's incremental vacuum: [`step`] moves pages from the end of the file into free
//! ones and shortens it, in a transaction like any other, and other writers come between two steps. A file of Deno or
//! of an older version is written anew as a whole, and has steps from then on.

use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::super::connection::{ENABLE_VACUUM_STEPS, VACUUM_HAS_STEPS};
use super::super::errors::failure;
use super::super::interrupt::interruptible;
use super::super::log_mover::LogMover;
use super::SqliteWriter;
use crate::GoesOn;
use openkv_core::model::{Error, Kind, Result, VACUUM_STEP_PAGES, Vacuumed};

/// Pause before another attempt while another process has a transaction.
const PAUSE: Duration = Duration::from_millis(5);

impl SqliteWriter {
    /// Writes the whole file anew, without free pages and in the order of its tables.
    pub(in super::super) fn write_anew(
        &mut self,
        deadline: Instant,
        goes_on: &GoesOn,
    ) -> Result<Vacuumed> {
        write_anew(&mut self.connection, deadline, goes_on)
    }

    /// One step of a vacuum, or the whole file anew where there are none.
    pub(super) fn give_pages_back(
        &mut self,
        deadline: Instant,
        goes_on: &GoesOn,
    ) -> Result<Vacuumed> {
        if !goes_on() {
            return Err(Error::closed());
        }
        // A step that a crash takes back is done again by the next vacuum.
        self.set_durable(false)?;
        let before_bytes = bytes(&self.connection)?;
        self.begin_transaction(deadline)?;
        // The caller may have given up while another process had the file.
        if !goes_on() {
            self.roll_back();
            return Err(Error::closed());
        }
        let steps_left = match step(&self.connection) {
            Ok(Some(steps_left)) => steps_left,
            done => {
                self.roll_back();
                done?;
                return self.write_anew(deadline, goes_on);
            }
        };
        self.end()?;
        self.mind_log();
        if steps_left == 0
            && let Err(error) = self.log_length.empty(&self.connection)
        {
            tracing::debug!(%error, "emptying the log after a vacuum");
        }
        Ok(Vacuumed { before_bytes, after_bytes: bytes(&self.connection)?, steps_left })
    }
}

/// A step, in an open transaction that writes. Returns the number of steps that are left; `None` if the file has none.
fn step(connection: &Connection) -> Result<Option<u64>> {
    if number(connection, "auto_vacuum")? != VACUUM_HAS_STEPS {
        return Ok(None);
    }
    let sql = format!("PRAGMA incremental_vacuum({VACUUM_STEP_PAGES})");
    let mut statement = connection.prepare(&sql).map_err(failure)?;
    // Each step of the statement gives one page back.
    let mut rows = statement.raw_query();
    while rows.next().map_err(failure)?.is_some() {}
    let free = number(connection, "freelist_count")?.cast_unsigned();
    Ok(Some(free.div_ceil(VACUUM_STEP_PAGES)))
}

/// Writes the file anew. The connection must have no open transaction.
#[tracing::instrument(skip_all)]
fn write_anew(
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
    let handler = mover.as_ref().map_or_else(|| goes_on.clone(), |mover| mover.observing(goes_on));
    let done =
        interruptible(connection, &handler, |connection| run_vacuum(connection, deadline, goes_on));
    drop((handler, mover));
    done.map_err(|error| if goes_on() { error } else { Error::closed() })?;
    // The file shrinks once the log is moved into it. If readers prevent that now, a later
    // checkpoint does it.
    let emptied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()));
    if let Err(error) = emptied {
        tracing::debug!(%error, "checkpoint after a vacuum");
    }
    Ok(Vacuumed { before_bytes, after_bytes: bytes(connection)?, steps_left: 0 })
}

fn run_vacuum(connection: &Connection, deadline: Instant, goes_on: &GoesOn) -> Result<()> {
    connection.execute_batch(ENABLE_VACUUM_STEPS).map_err(failure)?;
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

/// Bytes of the database.
fn bytes(connection: &Connection) -> Result<u64> {
    let (pages, page) = (number(connection, "page_count")?, number(connection, "page_size")?);
    Ok(u64::try_from(pages * page).unwrap_or(0))
}

fn number(connection: &Connection, pragma: &str) -> Result<i64> {
    connection.pragma_query_value(None, pragma, |row| row.get(0)).map_err(failure)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use super::*;
    use crate::sqlite::fresh;
    use crate::{Engine, Maintenance, Writer};

    const BUSY: Duration = Duration::from_secs(60);
    const FULL: &str = "
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 20000)
        INSERT INTO kv SELECT unhex('02' || hex(printf('%08d', i * 7919 % 20000)) || '00'), zeroblob(100), 3, 0, 0, -1 FROM n;
        DELETE FROM kv WHERE k >= unhex('02' || hex('00004000') || '00');
    ";

    fn free(connection: &Connection) -> i64 {
        number(connection, "freelist_count").unwrap()
    }

    fn has_steps(connection: &Connection) -> bool {
        let sql =
            "SELECT (SELECT auto_vacuum FROM pragma_auto_vacuum) FROM data_version WHERE k = 0";
        connection
            .query_row(sql, [], |row| row.get(0))
            .map(|mode: i64| mode == VACUUM_HAS_STEPS)
            .unwrap()
    }

    #[test]
    fn a_vacuum_gives_pages_back_in_steps_between_which_others_write() {
        let (engine, folder) = fresh();
        let other = Connection::open(folder.path().join("kv")).unwrap();
        assert!(has_steps(&other));
        other.execute_batch(FULL).unwrap();
        let (goes_on, ended): (GoesOn, GoesOn) = (Arc::new(|| true), Arc::new(|| false));
        let mut writer = engine.writer().unwrap();
        let deadline = || Instant::now() + BUSY;
        let before = free(&other);
        let refused = writer.vacuum(deadline(), &ended).map_err(|error| error.kind());
        assert_eq!((refused, free(&other)), (Err(Kind::Closed), before));
        let mut steps = Vec::new();
        loop {
            let step = writer.vacuum(deadline(), &goes_on).unwrap();
            assert!(step.after_bytes < step.before_bytes, "{step:?}");
            steps.push(step.steps_left);
            other
                .execute("UPDATE kv SET v = zeroblob(101) WHERE k = (SELECT min(k) FROM kv)", [])
                .unwrap();
            if step.steps_left == 0 {
                break;
            }
        }
        assert!(steps.len() > 2 && steps.windows(2).all(|two| two[0] == two[1] + 1), "{steps:?}");
        assert_eq!(free(&other), 0);
        let count: i64 = other.query_row("SELECT count(*) FROM kv", [], |row| row.get(0)).unwrap();
        assert_eq!(count, 4000);
        assert_eq!(engine.check(100, &goes_on).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn a_file_without_steps_has_them_once_it_was_written_anew() {
        let (engine, folder) = fresh();
        let other = Connection::open(folder.path().join("kv")).unwrap();
        other.execute_batch("PRAGMA auto_vacuum = NONE; VACUUM").unwrap();
        assert!(!has_steps(&other));
        other.execute_batch(FULL).unwrap();
        let goes_on: GoesOn = Arc::new(|| true);
        let done = engine.writer().unwrap().vacuum(Instant::now() + BUSY, &goes_on).unwrap();
        assert!(done.steps_left == 0 && done.after_bytes < done.before_bytes, "{done:?}");
        assert_eq!((free(&other), has_steps(&other)), (0, true));
    }
}
