//! How large the file is, in numbers that SQLite has at hand.

use std::path::PathBuf;

use rusqlite::Connection;

use super::reader::stamp;
use super::statement::Statement;
use crate::engine::Stats;
use crate::model::{Error, Result};

/// The statements of `stats`.
pub(super) struct Measure {
    pages: Statement,
    entries: Statement,
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
                 (SELECT freelist_count FROM pragma_freelist_count), version \
                 FROM data_version WHERE k = 0",
            )?,
            entries: Statement::prepare(
                connection,
                "SELECT count(*) FROM kv WHERE expiration_ms < 0 OR expiration_ms > ?1",
            )?,
            log: log.into(),
        })
    }

    pub(super) fn stats(&mut self, count: bool, now_ms: i64) -> Result<Stats> {
        let mut run = self.pages.run();
        if !run.step()? {
            return Err(Error::corrupt("the commit counter is missing: the file is damaged"));
        }
        let number = |at| u64::try_from(run.column_int(at)).unwrap_or(0);
        let (pages, page_bytes, free_pages) = (number(0), number(1), number(2));
        let mut stats = Stats {
            entries: None,
            database_bytes: pages * page_bytes,
            // Without one there is nothing in it.
            log_bytes: std::fs::metadata(&self.log).map_or(0, |log| log.len()),
            page_bytes,
            free_pages,
            stamp: stamp(run.column_int(3)),
        };
        if count {
            let mut run = self.entries.run().int(1, now_ms);
            stats.entries = run.step()?.then(|| run.column_int(0).cast_unsigned());
        }
        Ok(stats)
    }
}
