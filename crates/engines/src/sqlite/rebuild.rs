//! Rebuilds a database from a copy of an earlier state and the segments of the log after it.
//!
//! Duty: repeat many segments in few transactions, on a file that no other process has.
//! Invariant: after [`Rebuild::finish`] the file is closed, without a log beside it, and has a new incarnation.
//! Never: work on a file with a name that others open. A crash may leave it unusable.

use std::path::Path;
use std::time::{Duration, Instant};

use super::connection::{self, Access};
use super::errors::failure;
use super::identity;
use super::integrity_check::check;
use super::log_file::{Synced, set_synced};
use super::{SqliteEngine, SqliteReader, SqliteWriter};
use crate::{Engine, Indexer, Writer};
use openkv_core::model::{
    Error, IndexChoice, KeyRange, LogSegment, LogSettings, Origin, RESTORE_TRANSACTION_BYTES,
    Result, Setting,
};

/// No other process has the file, so nothing waits.
const BUSY: Duration = Duration::from_secs(5);

/// The settings of a copy: neither a log nor a history.
const WITHOUT_LOG: LogSettings =
    LogSettings { log: Setting::Off, history_ms: Setting::Off, messages: None };

/// A file that is being rebuilt.
pub struct Rebuild {
    engine: SqliteEngine,
    writer: SqliteWriter,
    version: u64,
    /// Bytes of changes in the open transaction, if one is open.
    pending: Option<usize>,
}

impl Rebuild {
    /// Opens a closed copy. Removes its log and its history.
    pub fn open(path: &Path) -> Result<Self> {
        let engine = SqliteEngine::open(path, false, BUSY)?;
        let mut writer = engine.writer()?;
        let unnamed = Origin { database: [0; 16], incarnation: 0 };
        let version = writer.set_log(&WITHOUT_LOG, unnamed, 0, deadline())?;
        set_synced(writer.connection(), Synced::Nothing)?;
        Ok(Self { engine, writer, version, pending: None })
    }

    /// The last commit.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Commits what was repeated, and returns a reader.
    pub fn reader(&mut self) -> Result<SqliteReader> {
        self.commit()?;
        self.engine.reader()
    }

    /// Repeats a segment. Leaves out what is not after the last commit.
    ///
    /// # Errors
    /// `Corrupt` for a damaged segment; errors of the file.
    pub fn replay(&mut self, segment: LogSegment<'_>) -> Result<()> {
        let pending = match self.pending {
            Some(pending) => pending,
            None => {
                self.writer.begin_transaction(deadline())?;
                0
            }
        };
        self.pending = Some(pending.saturating_add(segment.changes.len()));
        self.version = self.writer.repeat_or_roll_back(segment)?;
        if self.pending.is_some_and(|bytes| bytes >= RESTORE_TRANSACTION_BYTES) {
            self.commit()?;
            self.writer.checkpoint()?;
        }
        Ok(())
    }

    fn commit(&mut self) -> Result<()> {
        if self.pending.take().is_some() {
            self.writer.end()?;
        }
        Ok(())
    }

    /// Removes all entries outside of a range, all messages, and all search indexes.
    pub fn keep_only(&mut self, range: &KeyRange) -> Result<()> {
        self.commit()?;
        let indexes = self.engine.index_names()?;
        for name in indexes {
            self.writer.drop_index(&IndexChoice::Name(name), deadline())?;
        }
        let connection = self.writer.connection();
        let (start, end) = (range.start.as_bytes(), range.end.as_bytes());
        for sql in [
            "DELETE FROM openkv_spill WHERE id IN \
             (SELECT v FROM kv WHERE (k < ?1 OR k >= ?2) AND v_encoding >= 256)",
            "DELETE FROM kv WHERE k < ?1 OR k >= ?2",
        ] {
            connection.execute(sql, (start, end)).map_err(failure)?;
        }
        connection
            .execute_batch("DELETE FROM openkv_queue; DELETE FROM openkv_dead;")
            .map_err(failure)
    }

    /// Completes the file: rewrites it without free pages if `compact`, gives it a new incarnation, and closes it.
    pub fn finish(mut self, compact: bool) -> Result<()> {
        self.commit()?;
        self.writer.connection().execute_batch(identity::RENEW).map_err(failure)?;
        if compact {
            let goes_on: crate::GoesOn = std::sync::Arc::new(|| true);
            self.writer.write_anew(deadline(), &goes_on)?;
        }
        self.writer.checkpoint()?;
        Ok(())
    }
}

fn deadline() -> Instant {
    Instant::now() + BUSY
}

impl SqliteWriter {
    /// Repeats a segment in the open transaction, which it rolls back if that fails; returns the last
    /// commit.
    fn repeat_or_roll_back(&mut self, segment: LogSegment<'_>) -> Result<u64> {
        let done = self.start().and_then(|version| self.repeat_segment(version, segment));
        if done.is_err() {
            self.roll_back();
        }
        Ok(done?.versions.1)
    }
}

/// Checks every page, key and value of a closed file.
///
/// # Errors
/// `Corrupt` with the first finding.
pub fn verify(path: &Path) -> Result<()> {
    let goes_on: crate::GoesOn = std::sync::Arc::new(|| true);
    match check(path, BUSY, 1, &goes_on)?.first() {
        None => Ok(()),
        Some(finding) => {
            Err(Error::corrupt(format!("the restored database is damaged: {finding}")))
        }
    }
}

impl SqliteEngine {
    fn index_names(&self) -> Result<Vec<String>> {
        let connection = connection::open(&self.path, Access::Read, self.busy)?;
        let mut names =
            connection.prepare("SELECT name FROM openkv_index ORDER BY name").map_err(failure)?;
        let names = names.query_map([], |row| row.get(0)).map_err(failure)?;
        names.collect::<rusqlite::Result<_>>().map_err(failure)
    }
}
