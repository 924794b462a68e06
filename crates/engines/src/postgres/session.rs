//! One connection to a server, driven by the thread that uses it.
//!
//! The connection makes progress only while a call waits for it. So a call costs no change of threads,
//! and an unused session costs nothing.

use tokio::runtime::{Builder, Runtime};
use tokio_postgres::Row;

use super::errors::{Fault, failure, not_connected};
use super::line::{Answers, Call, Line};
use super::url::Server;
use openkv_core::model::{Error, Kind, Result};

/// A connection.
pub(super) struct Session {
    line: Line,
    // Last: the line's tasks run on it.
    runtime: Runtime,
}

impl Session {
    /// Connects.
    ///
    /// # Errors
    /// `Unavailable` if no host accepts; `Denied` for a wrong user or password.
    pub(super) fn connect(server: &Server) -> Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
        let line = runtime.block_on(Line::connect(server));
        let line = line.map_err(|error| not_connected(&error, server))?;
        Ok(Self { line, runtime })
    }

    /// Whether the connection is lost.
    pub(super) fn is_closed(&self) -> bool {
        self.line.is_closed()
    }

    /// Runs one statement.
    pub(super) fn query(&mut self, call: Call<'_>) -> Result<Vec<Row>> {
        match self.run(&[call]).pop() {
            Some(answer) => answer.map(|answer| answer.rows).map_err(Fault::into_error),
            None => Err(Error::internal("a statement without an answer")),
        }
    }

    /// Runs statements without parameters that return nothing.
    pub(super) fn execute(&mut self, sql: &str) -> Result<()> {
        let done = self.runtime.block_on(self.line.execute(sql));
        done.map_err(|error| failure(&error))
    }

    /// As [`Line::run`].
    pub(super) fn run(&mut self, calls: &[Call<'_>]) -> Answers {
        self.runtime.block_on(self.line.run(calls))
    }

    /// As [`Line::take_unreplicated`], of the last [`Session::run`].
    pub(super) fn was_unreplicated(&self) -> bool {
        self.line.take_unreplicated()
    }
}
