//! What a writer without work gives back.
//!
//! Duty: the memory of statements, of pages and of the parsed tables, which is most of what an open file takes.
//! Invariant: the next transaction finds everything again in the file.
//! Never: a lock, a call of the system.

use super::super::connection;
use super::super::identity::keep_log;
use super::super::log_length::LogLength;
use super::super::messages::Messages;
use super::super::rows::Rows;
use super::super::statement::Statement;
use super::SqliteWriter;
use openkv_core::model::Result;

impl SqliteWriter {
    /// Gives back the memory of the statements and of the connection, unless a transaction has begun. A writer that
    /// publishes its commits keeps it.
    pub(super) fn give_back(&mut self) {
        if self.has_begun || self.rows.log.captures() {
            return;
        }
        if let Err(error) = self.try_to_give_back() {
            tracing::debug!(%error, "giving back the memory of a writer without work");
        }
    }

    /// Prepares the connection for its end, which leaves the log as it is, for the next writer of this process.
    pub(super) fn leave_log(&mut self) -> bool {
        let may_end = !self.has_begun && !self.rows.log.captures();
        may_end && keep_log(&self.connection, true).is_ok()
    }

    /// Takes again what every transaction uses.
    pub(super) fn wake(&mut self) {
        if std::mem::take(&mut self.rests) {
            connection::wake(&self.connection);
        }
    }

    fn try_to_give_back(&mut self) -> Result<()> {
        self.rows = Rows::new(&self.connection, self.file)?;
        self.messages = Messages::new(&self.connection, self.file)?;
        self.log_length = LogLength::new(&self.connection)?;
        self.forget_features();
        self.rests = true;
        let control = [&mut self.begin, &mut self.commit, &mut self.rollback, &mut self.checkpoint];
        control.into_iter().for_each(Statement::forget);
        [&mut self.version, &mut self.set_version].into_iter().for_each(Statement::forget);
        connection::rest(&self.connection)
    }
}

#[cfg(test)]
mod tests {
    use std::ffi::c_int;
    use std::time::{Duration, Instant};

    use rusqlite::ffi;

    use super::*;
    use crate::sqlite::fresh;
    use crate::{Engine, Work, Writer};
    use openkv_core::model::{AtomicWrite, Limits, Message, WriteParts};

    /// Bytes that a connection has for pages, tables and statements.
    fn used_bytes(writer: &SqliteWriter) -> c_int {
        let of = |which| {
            let (mut used, mut highest) = (0, 0);
            // SAFETY: the connection is borrowed, and both pointers are valid.
            let code = unsafe {
                let db = writer.connection.handle();
                ffi::sqlite3_db_status(db, which, &mut used, &mut highest, 0)
            };
            assert_eq!(code, ffi::SQLITE_OK);
            used
        };
        let kinds = [ffi::SQLITE_DBSTATUS_SCHEMA_USED, ffi::SQLITE_DBSTATUS_STMT_USED];
        kinds.into_iter().chain([ffi::SQLITE_DBSTATUS_CACHE_USED]).map(of).sum()
    }

    /// A writer that has rested goes on with the commits and the messages that the file has.
    #[test]
    fn a_writer_gives_its_memory_back_and_goes_on() {
        const RESTING_BYTES_MAX: c_int = 16 * 1024;
        let (engine, _folder) = fresh();
        let mut writer = engine.writer().unwrap();
        let deadline = Instant::now() + Duration::from_secs(60);
        for before in 0..3 {
            let parts = WriteParts { messages: vec![Message::default()], ..WriteParts::default() };
            let writes = vec![AtomicWrite::new(parts, &Limits::default()).unwrap()];
            let report = writer.apply(Work { writes, ..Work::default() }, 0, deadline).unwrap();
            assert_eq!(report.versions, (before, before + 1));
            assert_eq!(writer.queue_depth("").unwrap(), before + 1);
            assert!(used_bytes(&writer) > RESTING_BYTES_MAX);
            writer.rest();
            let used = used_bytes(&writer);
            assert!(used <= RESTING_BYTES_MAX, "{used}");
        }
    }

    #[test]
    fn a_writer_whose_transaction_has_begun_does_not_rest() {
        let (engine, _folder) = fresh();
        let mut writer = engine.writer().unwrap();
        assert!(writer.begin_at_once(true));
        writer.rest();
        let deadline = Instant::now() + Duration::from_secs(60);
        writer.apply(Work { durable: true, ..Work::default() }, 0, deadline).unwrap();
    }
}
