//! What the steps of a batch do to the open transaction of the writer.

use std::ops::RangeInclusive;

use super::SqliteWriter;
use openkv_core::commit::{EntryTable, MessageTable, Transaction, batch};
use openkv_core::model::{Change, Encoding, LoggedMessage, Result};

impl Transaction for SqliteWriter {
    fn entries(&mut self) -> &mut impl EntryTable {
        &mut self.rows
    }

    fn messages(&mut self) -> &mut impl MessageTable {
        &mut self.messages
    }

    fn log(
        &mut self,
        commits: RangeInclusive<u64>,
        changes: Vec<Change>,
        messages: &[LoggedMessage],
        now_ms: i64,
    ) -> Result<()> {
        self.rows.log.log(commits, &changes, messages, now_ms)
    }

    fn set_version(&mut self, version: u64, removed: Option<u64>) -> Result<()> {
        // In a file for Deno, `seq` is the last commit up to which only openkv has committed.
        let removed = if self.file == Encoding::V8 { version } else { removed.unwrap_or(0) };
        let run = self.set_version.run().int(1, version.cast_signed());
        run.int(2, removed.cast_signed()).finish()
    }
}

impl SqliteWriter {
    /// Logs what a transaction without a batch has made of messages, as a commit of its own if the log has
    /// messages or `commits` says so. Returns the last commit.
    pub(super) fn log_messages(
        &mut self,
        before: u64,
        changed: &[i64],
        commits: bool,
        now_ms: i64,
    ) -> Result<u64> {
        let logs = self.rows.log.begin()?;
        let logs_messages = self.rows.log.has_messages();
        if changed.is_empty() || !(commits || logs_messages) {
            return Ok(before);
        }
        let version = before + 1;
        self.set_version(version, None)?;
        if logs {
            let logged = if logs_messages { changed } else { &[] };
            let messages = batch::logged_alone(&mut self.messages, logged, version)?;
            self.rows.log.log(version..=version, &[], &messages, now_ms)?;
        }
        Ok(version)
    }
}
