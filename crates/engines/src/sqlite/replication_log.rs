//! The replication log in a file, for the writer and for readers.

use std::ops::{Range, RangeInclusive};

use rusqlite::Connection;

use super::history::{HistoryReader, HistoryWriter};
use super::statement::{Run, Statement};
use crate::replication::extent::{
    Beginning, Changed, Extent, Outline, Segments, change, counted, has_removal, trim,
};
use crate::replication::{ReplicationLog, time_of};
use openkv_core::codec::{change_log, write_log};
use openkv_core::model::{
    Change, DatabaseChange, Encoding, Error, HistoryExtent, LogBounds, LogExtent, LogSegment,
    LogSettings, LogState, LoggedMessage, Moment, Origin, PastEntry, Result, Segment, WriteRecord,
};

/// The extent of the log that is on; no row without.
const EXTENT: &str = "SELECT complete, bytes, newest_ms, retention_ms, bytes_max, history_ms, \
                      history_version, history_at_ms, history_forgotten, messages, removed \
                      FROM openkv_log_state WHERE k = 0";

/// The log of the current row of [`EXTENT`].
fn extent_in(run: &Run<'_, '_>) -> Extent {
    let number = |at| run.column_int(at).cast_unsigned();
    let history = run.column_int_or_null(5).map(|kept_ms| HistoryExtent {
        kept_ms,
        since: Moment { version: number(6), at_ms: run.column_int(7) },
    });
    Extent {
        complete: number(0),
        removed: number(10),
        bytes: number(1),
        newest_ms: run.column_int(2),
        bounds: LogBounds { retention_ms: run.column_int(3), bytes_max: number(4) },
        history,
        forgotten: run.column_int_or_null(8).and_then(|count| usize::try_from(count).ok()),
        messages: run.column_int(9) != 0,
    }
}

/// The log in the writer's transaction.
pub(super) struct LogWriter {
    extent_of_file: Statement,
    store: Statement,
    insert: Statement,
    after: Statement,
    changes: Statement,
    drop: Statement,
    raise: Statement,
    pub(super) history: HistoryWriter,
    /// That of the open transaction; `None` if the log is off.
    extent: Option<Extent>,
    on: bool,
    /// Whether what a transaction logs is kept for its writer, also if the log is off.
    captures: bool,
    captured: Option<Segment>,
}

impl LogWriter {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            extent_of_file: prepare(EXTENT)?,
            store: prepare(
                "INSERT OR REPLACE INTO openkv_log_state (k, complete, bytes, newest_ms, retention_ms, \
                 bytes_max, history_ms, history_version, history_at_ms, history_forgotten, \
                 messages, removed) VALUES (0, ?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11)",
            )?,
            insert: prepare(
                "INSERT INTO openkv_log (version, first, at_ms, changes) VALUES (?1, ?2, ?3, ?4)",
            )?,
            after: prepare(
                "SELECT version, first, at_ms, length(changes) FROM openkv_log WHERE version > ?1 \
                 ORDER BY version LIMIT 1",
            )?,
            changes: prepare("SELECT changes FROM openkv_log WHERE version = ?1")?,
            drop: prepare("DELETE FROM openkv_log WHERE version = ?1")?,
            raise: prepare("UPDATE openkv_meta SET value = value + 1 WHERE name = 'features'")?,
            history: HistoryWriter::new(connection)?,
            extent: None,
            on: false,
            captures: false,
            captured: None,
        })
    }

    /// Reads whether the log is on.
    pub(super) fn reload(&mut self) -> Result<()> {
        self.on = self.extent_of_file.run().step()?;
        Ok(())
    }

    /// Whether the log is on, as of the last [`Self::reload`].
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// Must be called at the start of a transaction; returns whether its changes are logged.
    pub(super) fn begin(&mut self) -> Result<bool> {
        self.extent = None;
        if self.on {
            self.extent = self.extent_of_file.run().first(extent_in)?;
        }
        self.history.begin(self.extent.is_some_and(|extent| extent.history.is_some()));
        Ok(self.extent.is_some() || self.captures)
    }

    /// Whether the open transaction logs messages.
    pub(super) fn has_messages(&self) -> bool {
        self.captures || self.extent.is_some_and(|extent| extent.messages)
    }

    /// Whether to keep what a transaction logs for [`LogWriter::take_captured`].
    pub(super) fn capture(&mut self, captures: bool) {
        self.captures = captures;
    }

    /// Whether what a transaction logs is kept for its writer.
    pub(super) fn captures(&self) -> bool {
        self.captures
    }

    /// What the open transaction has logged.
    pub(super) fn take_captured(&mut self) -> Option<Segment> {
        self.captured.take()
    }

    /// Logs what the commits of the transaction have made of entries and messages, each in order, and trims
    /// old segments.
    pub(super) fn log(
        &mut self,
        commits: RangeInclusive<u64>,
        changes: &[Change],
        messages: &[LoggedMessage],
        now_ms: i64,
    ) -> Result<()> {
        let extent = self.extent.take();
        if extent.is_none() && !self.captures {
            return Ok(());
        }
        let (first, last) = commits.into_inner();
        if self.captures {
            let changes = change_log::encode_all(first, changes, messages);
            self.captured = Some(Segment { first, last, at_ms: now_ms, changes });
        }
        let Some(mut extent) = extent else { return Ok(()) };
        // A publisher gets messages also where the log of the file has none.
        let messages = if extent.messages { messages } else { &[] };
        let bytes = change_log::encode_all(first, changes, messages);
        // A clock that was set back must not disorder the log.
        extent.newest_ms = extent.newest_ms.max(now_ms);
        extent.bytes += counted(bytes.len() as u64);
        let run = self.insert.run().int(1, last.cast_signed());
        let run = run.int(2, first.cast_signed()).int(3, extent.newest_ms);
        run.blob(4, &bytes).finish()?;
        trim(self, &mut extent)?;
        self.keep(&extent)
    }

    /// Logs changes of the database, which are a commit of their own. The log of the file has the commit without them.
    pub(super) fn log_database(
        &mut self,
        version: u64,
        changes: &[DatabaseChange],
        now_ms: i64,
    ) -> Result<()> {
        self.log(version..=version, &[], &[], now_ms)?;
        if let Some(captured) = &mut self.captured {
            captured.changes = change_log::encode_database(changes);
        }
        Ok(())
    }

    /// Adds the writes with ids of the commits that were logged to what is kept for the writer.
    pub(super) fn log_writes(&mut self, records: &[WriteRecord]) {
        if let Some(captured) = &mut self.captured {
            let writes = write_log::encode(records, captured.first - 1);
            captured.changes =
                change_log::with_writes(std::mem::take(&mut captured.changes), &writes);
        }
    }

    fn keep(&mut self, extent: &Extent) -> Result<()> {
        let history = extent.history;
        let since = history.map(|history| history.since);
        let run = self.store.run().int(1, extent.complete.cast_signed());
        let run = run.int(2, extent.bytes.cast_signed()).int(3, extent.newest_ms);
        let run = run.int(4, extent.bounds.retention_ms);
        run.int(5, extent.bounds.bytes_max.cast_signed())
            .int_or_null(6, history.map(|history| history.kept_ms))
            .int_or_null(7, since.map(|since| since.version.cast_signed()))
            .int_or_null(8, since.map(|since| since.at_ms))
            .int_or_null(9, extent.forgotten.map(|count| count as i64))
            .int(10, extent.messages.into())
            .int(11, extent.removed.cast_signed())
            .finish()
    }

    /// Begins the log anew after a commit, in the transaction of the caller, with the same settings.
    pub(super) fn restart(&mut self, version: u64, at_ms: i64) -> Result<()> {
        let Some(before) = self.extent_of_file.run().first(extent_in)? else { return Ok(()) };
        self.store.beside("DELETE FROM openkv_log")?.execute()?;
        self.history.clear()?;
        let since = Moment { version, at_ms };
        let history = before.history.map(|history| HistoryExtent { since, ..history });
        let (complete, removed, newest_ms) = (version, version, at_ms);
        let begun = Extent { complete, removed, bytes: 0, newest_ms, history, ..before };
        self.keep(&Extent { forgotten: None, ..begun })
    }

    /// Changes the settings, in the transaction of the caller, and makes the writers of all processes load
    /// anew what they maintain. A log that is turned on begins at `at`; `database` becomes the name of a
    /// database without one.
    pub(super) fn set(
        &mut self,
        settings: &LogSettings,
        database: [u8; 16],
        at: Beginning,
        now_ms: i64,
    ) -> Result<()> {
        self.raise.execute()?;
        let before = self.extent_of_file.run().first(extent_in)?;
        let Changed { extent, forgets } = change(before, settings, at, now_ms);
        if forgets {
            self.history.clear()?;
        }
        match extent {
            Some(extent) => {
                let name = "INSERT OR IGNORE INTO openkv_meta VALUES ('database', ?1)";
                self.store.beside(name)?.run().blob(1, &database).finish()?;
                self.keep(&extent)
            }
            None => {
                self.store.beside("DELETE FROM openkv_log")?.execute()?;
                self.store.beside("DELETE FROM openkv_log_state")?.execute()
            }
        }
    }
}

impl Segments for LogWriter {
    fn after(&mut self, version: u64) -> Result<Option<Outline>> {
        self.after.run().int(1, version.cast_signed()).first(|run| Outline {
            last: run.column_int(0).cast_unsigned(),
            first: run.column_int(1).cast_unsigned(),
            at_ms: run.column_int(2),
            bytes: counted(run.column_int(3).cast_unsigned()),
        })
    }

    fn drop(&mut self, segment: &Outline) -> Result<bool> {
        let last = segment.last.cast_signed();
        let removes = self
            .changes
            .run()
            .int(1, last)
            .first(|row| has_removal(segment.first, row.column_blob(0)));
        let removes = removes?.unwrap_or(false);
        self.drop.run().int(1, last).finish()?;
        Ok(removes)
    }

    fn forget(&mut self, segment: &Outline, _from: usize, max: usize) -> Result<usize> {
        self.history.forget(segment.last, max)
    }
}

/// The log in a snapshot.
pub(super) struct LogReader {
    /// Whether Deno writes to the file too: then only feeds read the log, because Deno logs nothing.
    is_denos: bool,
    extent: Statement,
    version: Statement,
    origin: Statement,
    segments: Statement,
    at_commit: Statement,
    at_time: Statement,
    history: HistoryReader,
}

impl LogReader {
    /// The reader that a connection keeps. Its statements are prepared beside `on`, when they are needed.
    pub(super) fn kept<'k>(
        kept: &'k mut Option<Self>,
        on: &Statement,
        file: Encoding,
    ) -> Result<&'k mut Self> {
        let reader = match kept.take() {
            Some(reader) => reader,
            None => Self::beside(on, file)?,
        };
        Ok(kept.insert(reader))
    }

    fn beside(on: &Statement, file: Encoding) -> Result<Self> {
        Ok(Self {
            is_denos: file == Encoding::V8,
            extent: on.beside(EXTENT)?,
            version: on.beside("SELECT version FROM data_version WHERE k = 0")?,
            origin: on.beside(
                "SELECT (SELECT value FROM openkv_meta WHERE name = 'database'), \
                 (SELECT seq FROM data_version WHERE k = 1), \
                 (SELECT value FROM openkv_meta WHERE name = 'generation')",
            )?,
            segments: on.beside(
                "SELECT version, first, at_ms, changes FROM openkv_log WHERE version > ?1 \
                 ORDER BY version",
            )?,
            at_commit: on.beside(
                "SELECT version, at_ms FROM openkv_log WHERE first <= ?1 AND version IN \
                 ((SELECT min(version) FROM openkv_log WHERE version >= ?1), \
                 (SELECT max(version) FROM openkv_log WHERE version < ?1)) \
                 ORDER BY version DESC LIMIT 1",
            )?,
            at_time: on.beside(
                "SELECT version, at_ms FROM openkv_log WHERE at_ms <= ?1 \
                 ORDER BY at_ms DESC, version DESC LIMIT 1",
            )?,
            history: HistoryReader::beside(on)?,
        })
    }

    fn origin(&mut self) -> Result<Origin> {
        let mut run = self.origin.run();
        run.row("the origin of the replication log")?;
        let database = run.column_blob(0).try_into().map_err(|_| {
            Error::corrupt("the file does not name its database: its openkv_meta table is damaged")
        })?;
        // A copy is another one each time that all of it is replaced.
        let generation = run.column_int_or_null(2).unwrap_or(0);
        let incarnation = (run.column_int(1) ^ generation).cast_unsigned();
        Ok(Origin { database, incarnation })
    }
}

/// The place of a segment in a row of `version, at_ms`.
fn place(run: Run<'_, '_>) -> Result<Option<(u64, i64)>> {
    run.first(|run| (run.column_int(0).cast_unsigned(), run.column_int(1)))
}

impl ReplicationLog for &mut LogReader {
    fn state(&mut self) -> Result<LogState> {
        let version = self.version.run().first_int()?.unwrap_or(0).cast_unsigned();
        let extent = self.extent.run().first(extent_in)?;
        let Some(extent) = extent.filter(|_| !self.is_denos) else {
            return Ok(LogState { version, log: None });
        };
        let Extent { complete, bytes, bounds, history, messages, .. } = extent;
        let origin = self.origin()?;
        let log = LogExtent { origin, bounds, complete, bytes, history, messages };
        Ok(LogState { version, log: Some(log) })
    }

    fn segments(
        &mut self,
        after: u64,
        visit: &mut dyn FnMut(LogSegment<'_>) -> bool,
    ) -> Result<()> {
        let mut run = self.segments.run().int(1, after.cast_signed());
        while run.step()? {
            let segment = LogSegment {
                last: run.column_int(0).cast_unsigned(),
                first: run.column_int(1).cast_unsigned(),
                at_ms: run.column_int(2),
                changes: run.column_blob(3),
            };
            if !visit(segment) {
                break;
            }
        }
        Ok(())
    }

    fn at_commit(&mut self, version: u64) -> Result<Option<(u64, i64)>> {
        place(self.at_commit.run().int(1, version.cast_signed()))
    }

    fn at_time(&mut self, at_ms: i64) -> Result<Option<(u64, i64)>> {
        place(self.at_time.run().int(1, at_ms))
    }

    fn entry(&mut self, key: &[u8], before: Option<u64>) -> Result<Option<PastEntry>> {
        self.history.entry(key, before)
    }

    fn replaced(
        &mut self,
        key: &[u8],
        commits: Range<u64>,
        visit: &mut dyn FnMut(u64, Option<i64>, Option<PastEntry>) -> bool,
    ) -> Result<()> {
        let LogReader { history, at_commit, .. } = &mut **self;
        let mut time = |version: u64| {
            let found = place(at_commit.run().int(1, version.cast_signed()))?;
            Ok(time_of(found, version))
        };
        history.replaced(key, commits, &mut time, visit)
    }
}
