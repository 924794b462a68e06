//! The writes with ids of the newest commits of a file whose commits are published.
//!
//! Duty: keep them in the transaction that has their commits, and give them to the next lead.
//! Invariant: a copy of the file has the ids of all its commits that a leader remembers.
//! Never: an id without its commit.

use super::errors::failure;
use super::writer::SqliteWriter;
use openkv_core::codec::{Malformed, change_log};
use openkv_core::layer::{NewestWrites, Remembered};
use openkv_core::model::{Error, LAYER_WRITE_IDS_BYTES_MAX, LogSegment, Result, WRITE_ID_KEPT_MS};

/// `previous`: the version before the batch. `through`: what all batches up to this one weigh, also those that are gone.
pub(super) const TABLE: &str = "\
CREATE TABLE IF NOT EXISTS openkv_writes (\
previous INTEGER PRIMARY KEY, at_ms INTEGER NOT NULL, through INTEGER NOT NULL, writes BLOB NOT NULL)";

const ADD: &str = "\
INSERT INTO openkv_writes VALUES (?1, ?2, \
?3 + ifnull((SELECT through FROM openkv_writes ORDER BY previous DESC LIMIT 1), 0), ?4)";

/// Removes two batches at most, and so more than are added. A leader remembers the batch that exceeds its memory too.
const TRIM: &str = "\
DELETE FROM openkv_writes WHERE previous IN (SELECT previous FROM openkv_writes ORDER BY previous LIMIT 2) AND \
(at_ms < ?1 OR through < (SELECT through FROM openkv_writes ORDER BY previous DESC LIMIT 1) - ?2)";

const NEWEST: &str =
    "SELECT previous, at_ms, writes FROM openkv_writes WHERE at_ms >= ?1 ORDER BY previous DESC";

impl SqliteWriter {
    /// Keeps the writes of a segment, in the open transaction.
    pub(super) fn keep_writes(&mut self, segment: LogSegment<'_>) -> Result<()> {
        self.keep_writes_within(segment, LAYER_WRITE_IDS_BYTES_MAX)
    }

    fn keep_writes_within(&mut self, segment: LogSegment<'_>, bytes_max: usize) -> Result<()> {
        let LogSegment { first, last, at_ms, changes } = segment;
        let damaged = |error: Malformed| {
            Error::corrupt(format!("the segment {first} to {last} of the log is damaged: {error}"))
        };
        let (writes, _) = change_log::split_writes(changes).map_err(damaged)?;
        if writes.is_empty() {
            return Ok(());
        }
        let weight = NewestWrites::weight(writes).map_err(damaged)?;
        let run = |sql, parameters: &[&dyn rusqlite::ToSql]| {
            let statement = self.connection().prepare_cached(sql);
            statement.and_then(|mut of| of.execute(parameters)).map(drop).map_err(failure)
        };
        run(ADD, &[&(first - 1).cast_signed(), &at_ms, &(weight as i64), &writes])?;
        run(TRIM, &[&at_ms.saturating_sub(WRITE_ID_KEPT_MS), &(bytes_max as i64)])
    }

    /// The writes with ids that a lead remembers which begins at this time.
    pub(crate) fn kept_writes(&self, clock_ms: i64) -> Result<Remembered> {
        let mut newest = NewestWrites::before(clock_ms);
        let mut statement = self.connection().prepare_cached(NEWEST).map_err(failure)?;
        let mut rows = statement.query([newest.from_ms()]).map_err(failure)?;
        while let Some(row) = rows.next().map_err(failure)? {
            let previous: i64 = row.get(0).map_err(failure)?;
            let (at_ms, writes): (_, Vec<u8>) =
                (row.get(1).map_err(failure)?, row.get(2).map_err(failure)?);
            let has_room = newest.add(at_ms, previous.cast_unsigned(), &writes);
            if !has_room.map_err(|error| Error::corrupt(format!("openkv_writes: {error}")))? {
                break;
            }
        }
        Ok(newest.all())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Engine as _;
    use crate::sqlite::fresh;
    use openkv_core::codec::write_log;
    use openkv_core::model::{Decision, Versionstamp, WriteId, WriteRecord};

    #[test]
    fn writes_are_kept_for_their_time_and_within_the_bytes_and_a_lead_gets_them_in_order() {
        let (engine, _folder) = fresh();
        let mut writer = engine.writer().unwrap();
        writer.connection().execute(TABLE, []).unwrap();
        let record = |version: u64| {
            let decision = Decision::Committed(Versionstamp::new(version));
            WriteRecord { id: WriteId::new(1, [0, version]), decision }
        };
        let keep = |writer: &mut SqliteWriter, version: u64, at_ms, bytes_max| {
            let writes = write_log::encode(&[record(version)], version - 1);
            let changes = change_log::with_writes(change_log::encode(version, &[]), &writes);
            let segment = LogSegment { first: version, last: version, at_ms, changes: &changes };
            writer.keep_writes_within(segment, bytes_max).unwrap();
            NewestWrites::weight(&writes).unwrap()
        };
        let weight = keep(&mut writer, 1, 1000, usize::MAX >> 1);
        for version in 2..=4 {
            keep(&mut writer, version, 1000 + version as i64, usize::MAX >> 1);
        }
        // Of four others the oldest is not needed to see that there are more than fit.
        keep(&mut writer, 5, 1005, 3 * weight);
        let versions = |writer: &SqliteWriter, clock_ms| {
            let Remembered { from_ms, records } = writer.kept_writes(clock_ms).unwrap();
            assert_eq!(from_ms, clock_ms - WRITE_ID_KEPT_MS);
            let version = |(at_ms, of): (i64, WriteRecord)| match of.decision {
                Decision::Committed(stamp) => (at_ms, stamp.version()),
                other => panic!("{other:?}"),
            };
            records.into_iter().map(version).collect::<Vec<_>>()
        };
        assert_eq!(versions(&writer, 2000), [(1002, 2), (1003, 3), (1004, 4), (1005, 5)]);
        assert_eq!(versions(&writer, 1004 + WRITE_ID_KEPT_MS), [(1004, 4), (1005, 5)]);
        for version in [6, 7] {
            keep(&mut writer, version, 2000 + WRITE_ID_KEPT_MS, usize::MAX >> 1);
        }
        assert_eq!(versions(&writer, 2000).len(), 2);
    }
}
