//! The log of changes of the formats 2 to 5, which feeds had beside the replication log.
//!
//! Duty: move what it has to the one log, in the transaction that migrates the file.
//! Invariant: the log is complete where it says so. A change whose value is no longer known is not moved, and
//! neither are those before it.

use rusqlite::{Connection, OptionalExtension as _, Row};

use super::SPILLED;
use crate::replication::extent::{FEED_BOUNDS, SEGMENT_BYTES};
use crate::sqlite::errors::failure;
use crate::sqlite::values::{encoding, shown};
use openkv_core::codec::change_log;
use openkv_core::model::{Change, ChangeKind, EncodedValue, Key, Result};

/// The encoding id of a removal.
const REMOVED: i64 = 0;

/// The encoding id of a change of only the expiry. A larger one is that of a value in its entry, plus [`SPILLED`].
const EXPIRY_SET: i64 = SPILLED;

/// The last commit whose changes are not all known: before the first row, or with a value in an entry that was
/// replaced.
const COMPLETE: &str = "
SELECT max(s.complete, ifnull((SELECT max(f.version) FROM openkv_feed AS f WHERE f.encoding > 256 AND NOT EXISTS
  (SELECT 1 FROM kv WHERE kv.k = f.k AND kv.version = f.version)), 0))
FROM openkv_feed_state AS s WHERE s.k = 0 AND NOT EXISTS (SELECT 1 FROM openkv_log_state)
";

const ROWS: &str = "
SELECT f.version, f.at_ms, f.encoding, f.k, f.v, f.expire_ms, kv.v_encoding, kv.v, s.v
FROM openkv_feed AS f
LEFT JOIN kv ON f.encoding > 256 AND kv.k = f.k AND kv.version = f.version
LEFT JOIN openkv_spill AS s ON kv.v_encoding >= 256 AND s.id = kv.v
WHERE f.version > ?1 ORDER BY f.version, f.seq
";

/// Commits whose removals may be missing: up to the last one of the rows that are not moved, but none after the
/// last removal.
const KEEP_REMOVED: &str = "
ALTER TABLE openkv_log_state ADD COLUMN removed INTEGER NOT NULL DEFAULT 0;
UPDATE openkv_log_state SET removed = min(complete, (SELECT seq FROM data_version WHERE k = 0), ifnull(
  (SELECT max(s.removed, ifnull((SELECT max(f.version) FROM openkv_feed AS f
    WHERE f.encoding = 0 AND f.version <= openkv_log_state.complete), 0)) FROM openkv_feed_state AS s),
  complete));
";

/// Up to format 5 a log counted only the changes of its segments.
const COUNT_SEGMENTS: &str =
    "UPDATE openkv_log_state SET bytes = bytes + ?1 * (SELECT count(*) FROM openkv_log)";

/// Moves the changes of feeds to the log, if it is off. A log that is on keeps what it has.
pub(super) fn move_to_log(file: &Connection) -> Result<()> {
    let complete = file.query_row(COMPLETE, [], |row| row.get(0)).optional().map_err(failure)?;
    if let Some(complete) = complete {
        begin(file, complete)?;
    }
    file.execute_batch(KEEP_REMOVED).map_err(failure)?;
    let segment = SEGMENT_BYTES.cast_signed();
    file.execute(COUNT_SEGMENTS, [segment]).map(drop).map_err(failure)
}

fn begin(file: &Connection, complete: i64) -> Result<()> {
    let sql = "SELECT version FROM data_version WHERE k = 0";
    let newest = file.query_row(sql, [], |row| row.get(0)).map_err(failure)?;
    let mut segments = Segments { file, last: complete, at_ms: 0, bytes: 0, changes: Vec::new() };
    let mut rows = file.prepare(ROWS).map_err(failure)?;
    let mut rows = rows.query([complete]).map_err(failure)?;
    while let Some(row) = rows.next().map_err(failure)? {
        segments.add(row)?;
    }
    segments.end(newest)?;
    let Segments { at_ms, bytes, .. } = segments;
    let bounds = FEED_BOUNDS;
    let sql = "INSERT INTO openkv_log_state (k, complete, bytes, newest_ms, retention_ms, bytes_max) \
               VALUES (0, ?1, ?2, ?3, ?4, ?5)";
    let row = (complete, bytes, at_ms, bounds.retention_ms, bounds.bytes_max.cast_signed());
    file.execute(sql, row).map(drop).map_err(failure)
}

/// The segments of the log: each ends with a commit that has rows, the last one with the last commit of the file.
struct Segments<'f> {
    file: &'f Connection,
    /// The last commit of the last segment.
    last: i64,
    /// The time of the last row. It does not decrease.
    at_ms: i64,
    /// Of the changes alone.
    bytes: i64,
    /// Those of the commit whose rows are being read.
    changes: Vec<Change>,
}

impl Segments<'_> {
    fn add(&mut self, row: &Row<'_>) -> Result<()> {
        let change = change_in(row)?;
        if let Some(before) = self.changes.first().map(|before| before.version)
            && before != change.version
        {
            self.end(before.cast_signed())?;
        }
        let at_ms: i64 = row.get(1).map_err(failure)?;
        self.at_ms = self.at_ms.max(at_ms);
        self.changes.push(change);
        Ok(())
    }

    /// Ends the segment with a commit.
    fn end(&mut self, version: i64) -> Result<()> {
        if version <= self.last {
            return Ok(());
        }
        let first = self.last + 1;
        let bytes = change_log::encode(first.cast_unsigned(), &self.changes);
        let sql = "INSERT INTO openkv_log (version, first, at_ms, changes) VALUES (?1, ?2, ?3, ?4)";
        let mut insert = self.file.prepare_cached(sql).map_err(failure)?;
        insert.execute((version, first, self.at_ms, &bytes)).map_err(failure)?;
        self.bytes += bytes.len() as i64;
        self.last = version;
        self.changes.clear();
        Ok(())
    }
}

/// The change of a row of [`ROWS`].
fn change_in(row: &Row<'_>) -> Result<Change> {
    let number = |at: usize| row.get::<_, i64>(at).map_err(failure);
    let blob = |at: usize| row.get::<_, Vec<u8>>(at).map_err(failure);
    let expire_at_ms: Option<i64> = row.get(5).map_err(failure)?;
    let kind = match number(2)? {
        REMOVED if expire_at_ms.is_some() => ChangeKind::Expired,
        REMOVED => ChangeKind::Deleted,
        EXPIRY_SET => ChangeKind::ExpirySet { expire_at_ms },
        id => {
            let (encoding, bytes) = if id < SPILLED {
                (encoding(id)?, blob(4)?)
            } else {
                let stored = number(6)?;
                if stored < SPILLED {
                    let bytes = blob(7)?;
                    let (encoding, bytes) = shown(encoding(stored)?, &bytes);
                    (encoding, bytes.into_owned())
                } else {
                    (encoding(stored - SPILLED)?, blob(8)?)
                }
            };
            ChangeKind::Set { value: EncodedValue { encoding, bytes }, expire_at_ms }
        }
    };
    let version = number(0)?.cast_unsigned();
    Ok(Change { key: Key::from_encoded(blob(3)?), version, kind })
}
