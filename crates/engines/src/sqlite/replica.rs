//! The transactions that only the follower of a copy begins.
//!
//! Duty: repeat the changes of the followed database, or replace all entries by its own, together with
//! the new position.
//! Never: an entry without its position, or the reverse.

use std::time::{Duration, Instant};

use super::errors::failure;
use super::followed::{encode, has_data, own_database, read};
use super::writer::SqliteWriter;
use crate::{NextEntries, Report, Writer as _};
use openkv_core::commit::{EntryTable as _, NewRow, RowEffect};
use openkv_core::model::{CopiedEntry, Error, Followed, LogSegment, Replacement, Result};

/// Checkpoints after a copy whose commits are older than those that it replaces, at most.
const CHECKPOINTS_MAX: usize = 50;
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(20);

impl SqliteWriter {
    fn keep_followed(&self, followed: &Followed) -> Result<()> {
        let sql = "INSERT OR REPLACE INTO openkv_meta VALUES ('follows', ?1)";
        let kept = self.connection().prepare_cached(sql);
        let kept = kept.and_then(|mut statement| statement.execute([encode(followed)]));
        kept.map(drop).map_err(failure)
    }

    /// Repeats segments, in the transaction of the caller.
    pub(super) fn repeat(
        &mut self,
        after: &Followed,
        segments: &[LogSegment<'_>],
    ) -> Result<Report> {
        let begun = self.start()?;
        let (before, version) = read(self.connection())?;
        if before.as_ref().map(|before| before.origin) != Some(after.origin) {
            return Err(followed_meanwhile());
        }
        let mut all = Report { versions: (begun, version), ..Report::default() };
        for segment in segments {
            let report = self.repeat_segment(all.versions.1, *segment)?;
            all.versions.1 = report.versions.1;
            all.touched.extend(report.touched);
        }
        let last = all.versions.1;
        // Another process may have followed further.
        if last > version {
            self.keep_followed(&Followed { version: last, ..after.clone() })?;
        }
        Ok(all)
    }

    /// Replaces all entries, in a transaction of its own.
    pub(super) fn replace_all(
        &mut self,
        replacement: &Replacement,
        entries: NextEntries<'_>,
        deadline: Instant,
    ) -> Result<Report> {
        let after = &replacement.after;
        let report = self.within(true, after.at_ms, deadline, |writer, _| {
            let version = writer.start()?;
            if read(writer.connection())?.0 != replacement.before {
                return Err(followed_meanwhile());
            }
            if replacement.before.is_none() && has_data(writer.connection())? {
                return Err(own_database());
            }
            let run =
                |writer: &Self, sql: &str| writer.connection().execute_batch(sql).map_err(failure);
            run(
                writer,
                "DELETE FROM kv; DELETE FROM openkv_history; DELETE FROM openkv_history_groups; \
                 DELETE FROM openkv_spill;",
            )?;
            writer.clear_indexes()?;
            writer.rows().begin(i64::MIN)?;
            while let Some(page) = entries()? {
                for CopiedEntry { key, version, value, expire_at_ms } in page {
                    let row = NewRow { version, value, expire_at_ms };
                    writer.rows().apply(&key, RowEffect::Stored(row))?;
                }
            }
            let sql = "UPDATE data_version SET version = ?1, seq = ?1 WHERE k = 0";
            let set = writer.connection().execute(sql, [after.version.cast_signed()]);
            set.map_err(failure)?;
            let named = writer.connection().execute(
                "INSERT OR REPLACE INTO openkv_meta VALUES ('database', ?1), ('generation', ?2)",
                rusqlite::params![after.origin.database, replacement.generation.cast_signed()],
            );
            named.map_err(failure)?;
            writer.rows().log.restart(after.version, after.at_ms)?;
            writer.keep_followed(after)?;
            Ok(Report { versions: (version, after.version), ..Report::default() })
        });
        // Also after a failure: the log and the indexes are loaded again.
        self.forget_features();
        let report = report?;
        if report.versions.1 < report.versions.0 {
            self.checkpoint_all();
        }
        Ok(report)
    }

    /// Moves the whole log into the file. A log whose commits are older than those of the file would
    /// look like that of another file, if this process was killed.
    fn checkpoint_all(&mut self) {
        for _ in 0..CHECKPOINTS_MAX {
            match self.checkpoint() {
                Ok(moved) if moved.log_pages == moved.moved_pages => return,
                Ok(_) => std::thread::sleep(CHECKPOINT_PAUSE),
                Err(error) => tracing::debug!(%error, "moving an older copy into the file"),
            }
        }
    }
}

fn followed_meanwhile() -> Error {
    Error::unavailable("another process has changed what the replica follows; it is read again")
}
