//! What feeds read of the log in a file.

use rusqlite::Connection;

use super::replication_log::LogReader;
use super::statement::Statement;
use crate::feed::{FeedLog, FeedState, changes_in};
use openkv_core::model::{Encoding, Logged, Result};

/// How far feeds can read back, in a snapshot.
pub(super) struct FeedExtent {
    state: Statement,
    /// The format of the file's values.
    file: Encoding,
}

impl FeedExtent {
    pub(super) fn new(connection: &Connection, file: Encoding) -> Result<Self> {
        let state = Statement::prepare(
            connection,
            "SELECT d.version, d.seq, s.complete, s.removed FROM data_version AS d \
             LEFT JOIN openkv_log_state AS s ON s.k = 0 WHERE d.k = 0",
        )?;
        Ok(Self { state, file })
    }

    fn read(&mut self) -> Result<FeedState> {
        let mut run = self.state.run();
        run.row("the commit counter")?;
        let number = |at| run.column_int(at).cast_unsigned();
        let version = number(0);
        let on = !run.column_is_null(2);
        // Deno has committed, and it logs no removals.
        if self.file == Encoding::V8 && number(1) != version {
            return Ok(FeedState { on, version, complete: version, removed: version });
        }
        Ok(if !on {
            FeedState { on: false, version, complete: version, removed: number(1) }
        } else {
            FeedState { on: true, version, complete: number(2), removed: number(3) }
        })
    }
}

/// The log in a snapshot. Its extent is read often; the statements for its segments are prepared when they
/// are needed.
pub(super) struct FeedView<'s> {
    pub(super) extent: &'s mut FeedExtent,
    pub(super) on: &'s Statement,
    pub(super) log: &'s mut Option<LogReader>,
}

impl FeedLog for FeedView<'_> {
    fn state(&mut self) -> Result<FeedState> {
        self.extent.read()
    }

    fn changes(&mut self, after: u64, visit: &mut dyn FnMut(Logged<'_>) -> bool) -> Result<()> {
        let mut log = LogReader::kept(self.log, self.on, self.extent.file)?;
        changes_in(&mut log, after, visit)
    }
}
