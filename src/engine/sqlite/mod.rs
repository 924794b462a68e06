//! The embedded engine: one SQLite file in WAL mode, shared with any number of processes.
//!
//! Duty: [`crate::engine::Engine`] on a file.
//! Invariant: every connection is used by one thread at a time; statements die before connections.
//! Never: open a file of the database by hand (closing it would drop this process's POSIX locks).

mod backup;
mod connection;
mod dead;
mod deno_queue;
mod depths;
mod errors;
mod external;
mod feed;
mod fulltext;
mod identity;
mod indexer;
mod integrity_check;
mod interrupt;
mod layout;
mod leftover;
#[cfg(unix)]
mod locks;
mod log_length;
mod measure;
mod messages;
mod packed;
mod reader;
mod restore;
mod rows;
mod spill;
mod statement;
mod unfinished;
mod unopened;
mod vacuum;
mod values;
mod wal_index;
mod walk;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

use connection::Access;
use external::OwnCommits;
pub use layout::{DENO_MIGRATION_VERSION, FORMAT_VERSION, SPILLED, agree};
use leftover::Leftover;
pub use reader::SqliteReader;
pub use restore::restore;
pub use writer::SqliteWriter;

pub(super) use fulltext::{BuiltEntry, PrivateIndexes};

use super::{Backup, Engine, ExternalWatch, GoesOn, Maintenance};
use crate::model::{Encoding, Error, Kind, Result};

/// A file that has been checked and, if it was new, given its tables.
pub struct SqliteEngine {
    path: PathBuf,
    readonly: bool,
    encoding: Encoding,
    busy: Duration,
    own: Arc<OwnCommits>,
    /// The last connection to close moves the log into the file and deletes it, which a read-only
    /// connection cannot: without this connection closing leaves two files. The looks for external
    /// commits use it, so it waits for no lock.
    last_to_close: Arc<Mutex<Connection>>,
    // Closed after all connections.
    _leftover: Leftover,
    /// Given back when all connections are closed.
    claim: FileClaim,
}

/// What keeps other copies of openkv in this process from a file whose locks do not.
#[derive(Clone, Default)]
pub(super) struct FileClaim {
    #[cfg(unix)]
    _claim: Option<Arc<locks::Claim>>,
}

impl FileClaim {
    fn of(path: &Path) -> Result<Self> {
        #[cfg(unix)]
        return Ok(Self { _claim: locks::Claim::of(path)?.map(Arc::new) });
        #[cfg(not(unix))]
        return Ok(Self::default());
    }
}

impl SqliteEngine {
    /// Opens a file, creating it unless `readonly`. `busy` bounds the wait for other processes.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be opened, `Denied` if permissions forbid it, `Corrupt` if it is
    /// something else, `Unsupported` if it is newer than this code. To be written, it must have one
    /// name: `Denied` with several hard links.
    pub fn open(path: &Path, readonly: bool, busy: Duration) -> Result<Self> {
        Self::open_as(path, readonly, busy, None)
    }

    /// As [`Self::open`], with a say in the format of values: `Cbor` or `V8`, for Deno.
    ///
    /// # Errors
    /// As [`Self::open`]; `Invalid` for a file whose values have another format.
    pub fn open_as(
        path: &Path,
        readonly: bool,
        busy: Duration,
        wanted: Option<Encoding>,
    ) -> Result<Self> {
        let access = if readonly { Access::Read } else { Access::Write };
        let named = |error: Error| {
            let error = identity::hint(unopened::explain(error, path, access), path);
            Error::new(error.kind(), format!("{}: {}", path.display(), error.message()))
        };
        #[cfg(unix)]
        if !readonly {
            connection::refuse_links(path).map_err(named)?;
        }
        let claim = FileClaim::of(path).map_err(named)?;
        let mut first = connection::open(path, access, busy).map_err(named)?;
        identity::keep_log(&first, true).map_err(named)?;
        let prepared = identity::verify_log(&first, path)
            .and_then(|()| layout::prepare(&mut first, readonly, wanted));
        // A log that may belong to another file is left alone.
        if !prepared.as_ref().is_err_and(|error| identity::may_be_a_strangers(error, path)) {
            identity::keep_log(&first, false).map_err(named)?;
        }
        let encoding = prepared.map_err(named)?;
        first.busy_timeout(Duration::ZERO).map_err(errors::failure)?;
        let last_to_close = Arc::new(Mutex::new(first));
        let leftover = Leftover::of(path, readonly);
        let (path, own) = (path.to_owned(), Arc::default());
        Ok(Self { path, readonly, encoding, busy, own, last_to_close, _leftover: leftover, claim })
    }

    /// The format of its values, `Cbor` or `V8`.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    fn wal_path(&self) -> PathBuf {
        identity::log_of(&self.path)
    }
}

impl Maintenance for SqliteEngine {
    fn backup(&self, to: &Path, step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup> {
        backup::backup(&self.path, to, self.busy, step)
    }

    fn check(&self, findings_max: usize, goes_on: &GoesOn) -> Result<Vec<String>> {
        integrity_check::check(&self.path, self.busy, findings_max, goes_on)
    }
}

impl Engine for SqliteEngine {
    type Reader = SqliteReader;
    type Writer = SqliteWriter;

    fn reader(&self) -> Result<SqliteReader> {
        let connection = connection::open(&self.path, Access::Read, self.busy)?;
        let mut reader = SqliteReader::new(connection, self.encoding)?;
        reader.claim = self.claim.clone();
        Ok(reader)
    }

    fn writer(&self) -> Result<SqliteWriter> {
        if self.readonly {
            return Err(Error::new(Kind::Denied, "the database was opened with readonly: true"));
        }
        // Waiting for locks is the writer's own loop.
        let connection = connection::open(&self.path, Access::Write, self.busy)?;
        connection.busy_timeout(Duration::ZERO).map_err(errors::failure)?;
        let mut writer = SqliteWriter::new(connection, self.encoding, self.own.clone())?;
        writer.claim = self.claim.clone();
        Ok(writer)
    }

    fn watch_external(&self, wake: Box<dyn Fn() + Send>) -> Result<Option<ExternalWatch>> {
        let connection = self.last_to_close.clone();
        external::watch(connection, self.wal_path(), self.own.clone(), wake).map(Some)
    }
}
