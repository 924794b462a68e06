//! The replication log: a row for each batch, written with it, and read from a snapshot.
//!
//! It is off by default; while it is on, each batch has one more statement. Turning the log or a part of it on or
//! off raises the epoch: a leader's batches under way then fail their fence, and the leader decides them again
//! after it has read the row of the database.

use std::ops::Range;

use super::cells::Cells;
use super::database::{DatabaseRow, LogParts, missing};
use super::history;
use super::kept_messages;
use super::line::Call;
use super::link::Link;
use crate::replication::extent::{Beginning, Extent, change, segment_bytes};
use crate::{FeedState, ReplicationLog};
use openkv_core::codec::change_log;
use openkv_core::model::{
    Change, Error, HistoryExtent, KeptMessage, LogBounds, LogExtent, LogSegment, LogSettings,
    LogState, LoggedMessage, Moment, Origin, POSTGRES_SEGMENTS_PAGE_BYTES,
    POSTGRES_SEGMENTS_PAGE_ROWS, PastEntry, Result,
};

/// The time of a segment never decreases, although a leader can be behind the clock of the server. A segment counts
/// `SEGMENT_BYTES` beside its changes.
pub(super) const APPEND: &str = concat!(
    "WITH kept AS (UPDATE openkv.replication SET bytes = bytes + octet_length($5::bytea) + ",
    segment_bytes!(),
    ", newest_ms = greatest(newest_ms, $4::int8) WHERE db = $1 RETURNING newest_ms) \
     INSERT INTO openkv.segments (db, version, first, at_ms, changes, removes) \
     SELECT $1, $2, $3, newest_ms, $5, $6 FROM kept"
);

/// Deletes the oldest segments, at most `$2`, that are older than the log is kept or beyond its bytes. The history
/// needs the times of its own.
pub(super) const TRIM: &str = concat!(
    "WITH log AS MATERIALIZED (SELECT bytes, bytes_max, newest_ms - retention_ms AS from_ms, \
     CASE WHEN history_ms IS NOT NULL THEN history_version END AS since \
     FROM openkv.replication WHERE db = $1), \
     old AS MATERIALIZED (SELECT place, at_ms, size, sum(size) OVER (ORDER BY version) - size AS before \
     FROM (SELECT ctid AS place, version, at_ms, octet_length(changes)::int8 + ",
    segment_bytes!(),
    " AS size \
     FROM openkv.segments WHERE db = $1 ORDER BY version LIMIT $2) AS s), \
     gone AS (DELETE FROM openkv.segments AS s USING log, old WHERE s.ctid = old.place \
     AND (old.at_ms < log.from_ms OR log.bytes - old.before > log.bytes_max) \
     AND (log.since IS NULL OR s.version <= log.since) RETURNING s.version, s.removes, old.size) \
     UPDATE openkv.replication SET bytes = greatest(bytes - g.size, 0), complete = greatest(complete, g.last), \
     removed = greatest(removed, g.removing) FROM (SELECT sum(size)::int8 AS size, max(version) AS last, \
     max(version) FILTER (WHERE removes) AS removing FROM gone) AS g \
     WHERE db = $1 AND g.last IS NOT NULL"
);

/// Deletes some segments, at most `$3`, of a log that was turned off after the commit `$2`.
pub(super) const FORGET: &str = "\
DELETE FROM openkv.segments WHERE db = $1 AND version = ANY (ARRAY(\
SELECT version FROM openkv.segments WHERE db = $1 AND version <= $2 LIMIT $3)) RETURNING 1";

/// The database keeps its name and the number of its copy also while the log is off.
const KEEP: &str = "\
INSERT INTO openkv.replication \
(db, name, incarnation, complete, bytes, newest_ms, retention_ms, bytes_max, \
history_ms, history_version, history_at_ms, removed) \
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12) ON CONFLICT (db) DO UPDATE SET \
complete = excluded.complete, removed = excluded.removed, bytes = excluded.bytes, \
newest_ms = greatest(replication.newest_ms, excluded.newest_ms), \
retention_ms = excluded.retention_ms, bytes_max = excluded.bytes_max, history_ms = excluded.history_ms, \
history_version = excluded.history_version, history_at_ms = excluded.history_at_ms";

const SWITCH: &str = "\
WITH d AS (UPDATE openkv.databases SET log_bits = $2, \
epoch = epoch + CASE WHEN leader IS NULL THEN 0 ELSE 1 END WHERE id = $1 \
RETURNING id, epoch, version, leader) \
INSERT INTO openkv.epochs (db, epoch, start) SELECT id, epoch, version FROM d WHERE leader IS NOT NULL";

/// A PostgreSQL server that was restored to an earlier time, or a standby that was promoted, has another
/// timeline; one that was made from a dump has another identifier.
const STATE: &str = "\
SELECT d.version, d.log_bits, r.name, r.incarnation, r.complete, r.bytes, r.newest_ms, \
r.retention_ms, r.bytes_max, (SELECT system_identifier FROM pg_control_system()), \
CASE WHEN pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_control_checkpoint()) \
ELSE ('x' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8))::bit(32)::int4 END, r.history_ms, r.history_version, r.history_at_ms, r.removed \
FROM openkv.databases AS d LEFT JOIN openkv.replication AS r ON r.db = d.id WHERE d.id = $1";

/// [`STATE`] without what only followers need.
const FEED_STATE: &str = "\
SELECT d.version, d.removed, d.log_bits, r.complete, r.removed FROM openkv.databases AS d \
LEFT JOIN openkv.replication AS r ON r.db = d.id WHERE d.id = $1";

/// A page ends behind the segment with which it has `$4` bytes.
const SEGMENTS: &str = "\
SELECT version, first, at_ms, changes FROM (SELECT s.*, \
sum(octet_length(changes)) OVER (ORDER BY version) - octet_length(changes) AS before \
FROM (SELECT version, first, at_ms, changes FROM openkv.segments \
WHERE db = $1 AND version > $2 ORDER BY version LIMIT $3) AS s) AS p \
WHERE before < $4 ORDER BY version";

/// The segment of a commit, or the last one before it.
const AT_COMMIT: &str = "\
SELECT version, at_ms FROM (\
(SELECT version, first, at_ms FROM openkv.segments WHERE db = $1 AND version >= $2 \
ORDER BY version LIMIT 1) UNION ALL \
(SELECT version, first, at_ms FROM openkv.segments WHERE db = $1 AND version < $2 \
ORDER BY version DESC LIMIT 1)) AS s WHERE first <= $2 ORDER BY version DESC LIMIT 1";

/// The last segment up to a time, by halves: times never decrease.
const AT_TIME: &str = "\
WITH RECURSIVE span(low, high) AS (SELECT (SELECT version FROM openkv.segments WHERE db = $1 \
ORDER BY version LIMIT 1), (SELECT version FROM openkv.segments WHERE db = $1 ORDER BY version DESC LIMIT 1) \
UNION ALL SELECT CASE WHEN s.at_ms <= $2 THEN m.middle ELSE span.low END, \
CASE WHEN s.at_ms <= $2 THEN span.high ELSE s.version - 1 END \
FROM span CROSS JOIN LATERAL (SELECT span.low + (span.high - span.low + 1) / 2 AS middle) AS m \
CROSS JOIN LATERAL (SELECT version, at_ms FROM openkv.segments WHERE db = $1 AND version <= m.middle \
ORDER BY version DESC LIMIT 1) AS s WHERE span.low < span.high) \
SELECT f.version, f.at_ms FROM (SELECT high FROM span WHERE low >= high LIMIT 1) AS e \
CROSS JOIN LATERAL (SELECT version, at_ms FROM openkv.segments WHERE db = $1 AND version <= e.high \
ORDER BY version DESC LIMIT 1) AS f WHERE f.at_ms <= $2";

/// The changes of a batch, as the log has them.
#[derive(Debug)]
pub(super) struct SegmentRow {
    /// The first commit of the batch.
    pub(super) first: i64,
    pub(super) changes: Vec<u8>,
    /// Whether one of the changes is a removal: trimming it moves what feeds can read.
    pub(super) removes: bool,
}

impl SegmentRow {
    /// Of the commits from `first` on.
    pub(super) fn of(first: u64, changes: &[Change], messages: &[LoggedMessage]) -> Self {
        Self {
            first: first.cast_signed(),
            removes: changes.iter().any(|change| change.kind.is_removal()),
            changes: change_log::encode_all(first, changes, messages),
        }
    }
}

/// The logs that a change of the settings has turned off, whose rows are of no more use.
#[derive(Clone, Copy, Debug)]
pub(super) struct TurnedOff {
    pub(super) log: bool,
    pub(super) history: bool,
}

/// Changes the settings of the log and of the history, in a transaction that has the lock of the database's row.
pub(super) fn set(
    link: &Link,
    db: i64,
    row: &DatabaseRow,
    settings: &LogSettings,
    origin: Origin,
) -> Result<TurnedOff> {
    let before = match row.log_parts.has_log() {
        true => state(link, db)?.1,
        false => None,
    };
    let (version, removed) = (row.version.cast_unsigned(), row.removed.cast_unsigned());
    let at = Beginning { version, removed };
    let changed = change(before, settings, at, row.now_ms);
    let parts = LogParts::of_extent(changed.extent.as_ref());
    if let Some(extent) = changed.extent {
        let LogBounds { retention_ms, bytes_max } = extent.bounds;
        let Extent { complete, removed, bytes, .. } = extent;
        let numbers = [origin.incarnation, complete, removed, bytes, bytes_max];
        let [incarnation, complete, removed, bytes, bytes_max] = numbers.map(u64::cast_signed);
        let name = origin.database.as_slice();
        let history_ms = extent.history.map(|history| history.kept_ms);
        let since = extent.history.map(|history| history.since);
        let since_version = since.map(|since| since.version.cast_signed());
        let since_ms = since.map(|since| since.at_ms);
        let call: Call<'_> = (
            KEEP,
            vec![
                &db,
                &name,
                &incarnation,
                &complete,
                &bytes,
                &extent.newest_ms,
                &retention_ms,
                &bytes_max,
                &history_ms,
                &since_version,
                &since_ms,
                &removed,
            ],
        );
        link.query(call)?;
    }
    if parts != row.log_parts {
        link.query((SWITCH, vec![&db, &parts.number()]))?;
    }
    let log = row.log_parts.has_log() && !parts.has_log();
    Ok(TurnedOff { log, history: changed.forgets })
}

/// The log, and its extent if it is on.
fn state(link: &Link, db: i64) -> Result<(LogState, Option<Extent>)> {
    let rows = link.query((STATE, vec![&db]))?;
    let row = rows.first().ok_or_else(missing)?;
    let cells = Cells::of("databases", row);
    let version = cells.unsigned(0)?;
    let parts = LogParts::of(cells.get(1)?);
    if !parts.has_log() {
        return Ok((LogState { version, log: None }, None));
    }
    let cells = Cells::of("replication", row);
    let database = cells.get::<&[u8]>(2)?.try_into();
    let database = database.map_err(|_| {
        Error::corrupt("openkv.replication: the column name has no name of a database")
    })?;
    let (system, timeline) = (cells.unsigned(9)?, cells.get::<i32>(10)?);
    let timeline = u64::from(timeline.cast_unsigned()).rotate_left(40);
    let origin = Origin { database, incarnation: cells.unsigned(3)? ^ system ^ timeline };
    let bounds = LogBounds { retention_ms: cells.get(7)?, bytes_max: cells.unsigned(8)? };
    let (complete, bytes) = (cells.unsigned(4)?, cells.unsigned(5)?);
    let newest_ms = cells.get(6)?;
    let history = match parts.has_history() {
        true => {
            let since = Moment { version: cells.unsigned(12)?, at_ms: cells.get(13)? };
            Some(HistoryExtent { kept_ms: cells.get(11)?, since })
        }
        false => None,
    };
    let messages = parts.has_messages();
    let log = Some(LogExtent { origin, bounds, complete, bytes, history, messages });
    let removed = cells.unsigned(14)?;
    let extent =
        Extent { complete, removed, bytes, newest_ms, bounds, history, messages, forgotten: None };
    Ok((LogState { version, log }, Some(extent)))
}

/// How far feeds can read back.
pub(super) fn feed_state(link: &Link, db: i64) -> Result<FeedState> {
    let rows = link.query((FEED_STATE, vec![&db]))?;
    let cells = Cells::of("databases", rows.first().ok_or_else(missing)?);
    let is_on = LogParts::of(cells.get(2)?).has_log();
    let log =
        is_on.then(|| Ok::<_, Error>((cells.unsigned(3)?, cells.unsigned(4)?))).transpose()?;
    Ok(FeedState::of(cells.unsigned(0)?, cells.unsigned(1)?, log))
}

/// The log in a snapshot.
pub(super) struct LogReader<'s> {
    pub(super) link: &'s Link,
    pub(super) db: i64,
    /// The last commit of this snapshot.
    pub(super) version: i64,
    /// The server's time in this snapshot.
    pub(super) now_ms: i64,
}

impl LogReader<'_> {
    fn place(&self, sql: &'static str, number: i64) -> Result<Option<(u64, i64)>> {
        let rows = self.link.query((sql, vec![&self.db, &number]))?;
        let cells = rows.first().map(|row| Cells::of("segments", row));
        cells.map(|cells| Ok((cells.unsigned(0)?, cells.get(1)?))).transpose()
    }
}

impl ReplicationLog for LogReader<'_> {
    /// The caller knows the server's time to within the duration of a trip, so it may be behind.
    fn present_ms(&self, now_ms: i64) -> i64 {
        now_ms.max(self.now_ms)
    }

    fn state(&mut self) -> Result<LogState> {
        Ok(state(self.link, self.db)?.0)
    }

    fn segments(
        &mut self,
        after: u64,
        visit: &mut dyn FnMut(LogSegment<'_>) -> bool,
    ) -> Result<()> {
        let mut after = after.cast_signed();
        while after < self.version {
            let (rows, bytes) = (POSTGRES_SEGMENTS_PAGE_ROWS, POSTGRES_SEGMENTS_PAGE_BYTES);
            let page = self.link.query((SEGMENTS, vec![&self.db, &after, &rows, &bytes]))?;
            for row in &page {
                let cells = Cells::of("segments", row);
                after = cells.get(0)?;
                let segment = LogSegment {
                    last: cells.unsigned(0)?,
                    first: cells.unsigned(1)?,
                    at_ms: cells.get(2)?,
                    changes: cells.get(3)?,
                };
                if !visit(segment) {
                    return Ok(());
                }
            }
            if page.is_empty() {
                break;
            }
        }
        Ok(())
    }

    fn messages(&mut self, visit: &mut dyn FnMut(i64, KeptMessage) -> bool) -> Result<()> {
        kept_messages::visit_all(self.link, self.db, visit)
    }

    fn at_commit(&mut self, version: u64) -> Result<Option<(u64, i64)>> {
        self.place(AT_COMMIT, version.cast_signed())
    }

    fn at_time(&mut self, at_ms: i64) -> Result<Option<(u64, i64)>> {
        self.place(AT_TIME, at_ms)
    }

    fn entry(&mut self, key: &[u8], before: Option<u64>) -> Result<Option<PastEntry>> {
        history::entry(self.link, self.db, key, before)
    }

    fn replaced(
        &mut self,
        key: &[u8],
        commits: Range<u64>,
        visit: &mut dyn FnMut(u64, Option<i64>, Option<PastEntry>) -> bool,
    ) -> Result<()> {
        history::replaced(self.link, self.db, key, commits, visit)
    }
}
