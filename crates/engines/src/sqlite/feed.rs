//! What feeds read of the log in a file.

use rusqlite::Connection;

use super::statement::Statement;
use crate::feed::FeedState;
use openkv_core::model::{Encoding, Result};

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

    pub(super) fn read(&mut self) -> Result<FeedState> {
        let mut run = self.state.run();
        run.row("the commit counter")?;
        let number = |at| run.column_int(at).cast_unsigned();
        let version = number(0);
        let on = !run.column_is_null(2);
        // Deno has committed, and it logs no removals.
        if self.file == Encoding::V8 && number(1) != version {
            return Ok(FeedState::of(version, version, on.then_some((version, version))));
        }
        let log = on.then(|| (number(2), number(3)));
        Ok(FeedState::of(version, number(1), log))
    }
}
