//! The size of the file and the use of the page cache, from SQLite's own counters.

use std::path::PathBuf;

use rusqlite::Connection;

use super::connection::VACUUM_HAS_STEPS;
use super::statement::Statement;
use super::values::stamp;
use openkv_core::model::{Result, Stats};

/// The statements of `stats`.
pub(super) struct Measure {
    pages: Statement,
    log: PathBuf,
}

impl Measure {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        let mut log = connection.path().unwrap_or_default().to_owned();
        log.push_str("-wal");
        Ok(Self {
            pages: Statement::prepare(
                connection,
                "SELECT (SELECT page_count FROM pragma_page_count), \
                 (SELECT page_size FROM pragma_page_size), \
                 (SELECT freelist_count FROM pragma_freelist_count), version, \
                 (SELECT ifnull(sum(bytes), 0) FROM openkv_log_state), \
                 (SELECT auto_vacuum FROM pragma_auto_vacuum) \
                 FROM data_version WHERE k = 0",
            )?,
            log: log.into(),
        })
    }

    /// The metrics that the file keeps.
    pub(super) fn kept_metrics(&self) -> Result<Option<String>> {
        kept_metrics(&self.pages)
    }

    pub(super) fn stats(&mut self) -> Result<Stats> {
        let mut run = self.pages.run();
        run.row("the commit counter")?;
        let number = |at| u64::try_from(run.column_int(at)).unwrap_or(0);
        let (pages, page_bytes, free_pages) = (number(0), number(1), number(2));
        Ok(Stats {
            database_bytes: pages * page_bytes,
            // Without a log file the log is empty.
            log_bytes: std::fs::metadata(&self.log).map_or(0, |log| log.len()),
            page_bytes,
            free_pages,
            logged_bytes: number(4),
            vacuums_in_steps: run.column_int(5) == VACUUM_HAS_STEPS,
            stamp: stamp(run.column_int(3)),
        })
    }
}

/// The metrics that the file keeps. `on`: a statement of the connection.
pub(super) fn kept_metrics(on: &Statement) -> Result<Option<String>> {
    let mut kept = on.beside("SELECT value FROM openkv_meta WHERE name = 'metrics'")?;
    kept.run().first(|row| row.column_text(0))
}

/// Replaces the metrics that the file keeps. `on`: a statement of the connection.
pub(super) fn keep_metrics(on: &Statement, metrics: &str) -> Result<()> {
    let mut keep = on.beside("INSERT OR REPLACE INTO openkv_meta VALUES ('metrics', ?1)")?;
    keep.run().text(1, metrics).finish()
}
