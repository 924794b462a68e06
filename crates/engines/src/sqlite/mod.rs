//! The embedded engine: one SQLite file in WAL mode, shared by any number of processes.
//!
//! Duty: [`crate::Engine`] on a file.
//! Invariant: every connection belongs to one thread at a time; statements are finalized before
//! their connection closes.
//! Never: open a file of the database directly, since closing it would drop the POSIX locks of this
//! process.

mod backup;
mod cached_tree;
mod clock;
mod connection;
mod contention;
mod database_log;
mod dead;
mod deno_queue;
mod depths;
mod disk_room;
mod errors;
mod external;
mod feed;
mod followed;
mod fulltext;
mod history;
mod identity;
mod indexer;
mod integrity_check;
mod interrupt;
mod kept_writes;
mod layout;
mod leftover;
#[cfg(unix)]
mod locks;
mod log_file;
mod log_length;
mod log_mover;
mod measure;
mod message_copies;
mod messages;
mod new_file;
mod page_cache;
mod past;
mod peek;
mod permissions;
mod pool;
mod published;
pub(crate) mod publisher;
mod reader;
mod rebuild;
mod replica;
mod replication_log;
mod restore;
mod rows;
mod sealed;
mod snapshot;
mod spill;
mod statement;
mod unfinished;
mod unopened;
mod value_index;
mod values;
mod wal_index;
mod walk;
mod writer;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use rusqlite::Connection;

pub use connection::give_back_freed_memory;
use connection::{Access, Opened};
use external::OwnCommits;
use followed::Role;
use identity::{FileIdentity, Presence};
pub use layout::{DENO_MIGRATION_VERSION, FORMAT_VERSION, SPILLED, agree};
use leftover::Leftover;
use page_cache::PageCache;
pub use pool::set_open_max;
use pool::{PooledFile, Seat, SeatFor, with_descriptors};
pub use reader::SqliteReader;
pub use rebuild::{Rebuild, verify};
pub use restore::restore;
pub use unfinished::{Unfinished, remove_abandoned};
pub use writer::SqliteWriter;

pub(super) use fulltext::{BuiltEntry, PrivateIndexes};

use super::{Engine, ExternalWatch, GoesOn, Lengths, Maintenance, Park, Reader as _, TellExternal};
use openkv_core::model::{Backup, Capabilities, Encoding, Error, Moment, PageMemory, Result};

/// An existing database file, or a new one with its tables created.
pub struct SqliteEngine {
    path: PathBuf,
    readonly: bool,
    /// Whether it was opened as immutable.
    sealed: Option<sealed::SealedFile>,
    encoding: Encoding,
    busy: Duration,
    memory: PageMemory,
    own: Arc<OwnCommits>,
    /// The connection that has prepared the file, for the first writer.
    prepared: Mutex<Option<(Connection, Seat)>>,
    /// Its connections among those of the process.
    pooled: Arc<PooledFile>,
    /// By which the file is known when it is opened again.
    identity: FileIdentity,
    // Dropped after all connections are closed, since the last may be one that only reads: such a connection cannot
    // move the log into the file and delete it.
    _leftover: Leftover,
    /// Released once all connections are closed.
    claim: FileClaim,
}

/// Excludes other copies of openkv in this process from a file whose locks do not exclude them.
#[derive(Clone, Default)]
pub(super) struct FileClaim {
    #[cfg(unix)]
    _claim: Option<Arc<locks::FileClaim>>,
}

impl FileClaim {
    fn of(path: &Path) -> Result<Self> {
        #[cfg(unix)]
        return Ok(Self { _claim: locks::FileClaim::of(path)?.map(Arc::new) });
        #[cfg(not(unix))]
        return Ok(Self::default());
    }
}

impl SqliteEngine {
    /// Opens a file, and creates it unless `readonly`. `busy` limits the wait for other processes.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be opened, `Denied` without permission, `Corrupt` for a file of
    /// another program, `Unsupported` for a newer version. `Denied` if it is opened for writing and
    /// has several hard links.
    pub fn open(path: &Path, readonly: bool, busy: Duration) -> Result<Self> {
        Self::open_as(path, readonly, busy, None)
    }

    /// As [`Self::open`], with the requested format of values: `Cbor`, or `V8` for Deno.
    ///
    /// # Errors
    /// As [`Self::open`]; `Invalid` for a file whose values have another format.
    pub fn open_as(
        path: &Path,
        readonly: bool,
        busy: Duration,
        wanted: Option<Encoding>,
    ) -> Result<Self> {
        let role = if readonly { Role::Reads } else { Role::Writes };
        Self::open_for(path, role, busy, wanted)
    }

    /// Opens or creates a file as a copy of another database.
    ///
    /// # Errors
    /// As [`Self::open`]; `Denied` for a database of its own; `Corrupt` for a copy that something else
    /// has written to.
    pub fn open_copy(path: &Path, busy: Duration) -> Result<Self> {
        Self::open_for(path, Role::Follows, busy, Some(Encoding::Cbor))
    }

    /// Makes the copy in a file a database of its own, which others may follow: its incarnation is another
    /// one than that of the database that it has followed.
    ///
    /// # Errors
    /// As [`Self::open`]; `Denied` for a file that is no copy; `Corrupt` for a copy that something else has
    /// written to.
    pub fn promote(path: &Path, busy: Duration) -> Result<()> {
        Self::open_for(path, Role::Promotes, busy, None).map(drop)
    }

    fn open_for(path: &Path, role: Role, busy: Duration, wanted: Option<Encoding>) -> Result<Self> {
        let pooled = PooledFile::new();
        with_descriptors(&pooled, busy, || Self::open_in(&pooled, path, role, busy, wanted))
    }

    fn open_in(
        pooled: &Arc<PooledFile>,
        path: &Path,
        role: Role,
        busy: Duration,
        wanted: Option<Encoding>,
    ) -> Result<Self> {
        let readonly = role == Role::Reads;
        let access = if readonly { Access::Read } else { Access::Write };
        let named = |error: Error| {
            let error = identity::hint(unopened::explain(error, path, access), path);
            Error::new(error.kind(), format!("{}: {}", path.display(), error.message()))
        };
        #[cfg(unix)]
        if !readonly {
            connection::refuse_links(path).map_err(named)?;
        }
        let creates = matches!(role, Role::Writes | Role::Follows);
        let is_new = creates && new_file::create(path, wanted.unwrap_or(Encoding::Cbor));
        let claim = FileClaim::of(path).map_err(named)?;
        // Declared first, so that the connection is closed before it.
        let (seat, _) = pooled.seat(SeatFor::Calls);
        let Opened { connection: mut first, sealed, .. } = match access {
            Access::Read => connection::open_to_read(path, busy),
            Access::Write => connection::open_to_write(path, busy),
        }
        .map_err(named)?;
        identity::keep_log(&first, true).map_err(named)?;
        let prepared = identity::verify_log(&first, path)
            .and_then(|()| layout::prepare(&mut first, readonly, wanted))
            .and_then(|header| followed::check(&first, role, header.follows).map(|()| header));
        // Closing must not apply a log that may belong to another file.
        if !prepared.as_ref().is_err_and(|error| identity::log_may_be_wrong(error, path)) {
            identity::keep_log(&first, false).map_err(named)?;
        }
        let layout::FileHeader { encoding, number, .. } = prepared.map_err(named)?;
        let identity = FileIdentity::of(path, number, role == Role::Follows);
        if is_new {
            log_file::begin_new_log(&first);
        }
        let prepared = Mutex::new((!readonly).then_some((first, seat)));
        let (leftover, pooled) = (Leftover::of(path, readonly, pooled), pooled.clone());
        let (path, own) = (path.to_owned(), Arc::default());
        Ok(Self {
            path,
            readonly,
            sealed,
            encoding,
            busy,
            memory: PageMemory::default(),
            own,
            prepared,
            pooled,
            identity,
            _leftover: leftover,
            claim,
        })
    }

    /// Gives the readers and the writer that are made from now on this memory for pages.
    #[must_use]
    pub fn with_memory(self, memory: PageMemory) -> Self {
        Self { memory, ..self }
    }

    /// The format of the file's values, `Cbor` or `V8`.
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// Another connection to the file, with its place. It waits for at most `most` for a descriptor. The first one
    /// after the file was parked finds whether it is still the same file.
    fn connect(&self, access: Access, of: SeatFor, most: Duration) -> Result<(Opened, Seat)> {
        let (seat, is_first) = self.pooled.seat(of);
        let opened = with_descriptors(&self.pooled, most, || {
            // Before it is opened, because SQLite would create it.
            self.identity.find(&self.path)?;
            let opened = match access {
                Access::Read => connection::open_to_read(&self.path, self.busy)?,
                Access::Write => connection::open_to_write(&self.path, self.busy)?,
            };
            if opened.sealed.is_none() {
                let connection = &opened.connection;
                self.identity.verify(&self.path, connection, is_first, self.own.last())?;
                // SQLite opens the log in the first read.
                read_anything(connection)?;
            }
            Ok(opened)
        })?;
        Ok((opened, seat))
    }

    /// A reader, which waits for at most `most` for a descriptor.
    fn reader_within(&self, most: Duration) -> Result<SqliteReader> {
        let (opened, seat) = self.connect(Access::Read, SeatFor::Calls, most)?;
        let Opened { connection, sealed, pages } = opened;
        let cache = PageCache::of(&connection, pages, self.memory)?;
        connection::map(&connection, self.memory)?;
        // A reader that is opened later sees the file as it was when the engine opened it, or an error.
        let sealed = self.sealed.clone().or(sealed);
        let mut reader = SqliteReader::new(connection, cache, sealed, self.encoding)?;
        (reader.seat, reader.claim) = (Some(seat), self.claim.clone());
        Ok(reader)
    }

    fn wal_path(&self) -> PathBuf {
        identity::log_of(&self.path)
    }
}

impl Maintenance for SqliteEngine {
    fn backup(&self, to: &Path, step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup> {
        backup::backup(&self.path, to, self.busy, step)
    }

    fn lengths(&self) -> Option<Lengths> {
        // Without a log file the log is empty.
        let of = |path: &Path| path.metadata().map_or(0, |found| found.len());
        Some(Lengths { file_bytes: of(&self.path), log_bytes: of(&self.wal_path()) })
    }

    fn set_park(&self, park: Option<Park>) {
        self.pooled.set_park(park);
    }

    fn check(&self, findings_max: usize, goes_on: &GoesOn) -> Result<Vec<String>> {
        integrity_check::check(&self.path, self.busy, findings_max, goes_on)
    }
}

impl Engine for SqliteEngine {
    type Reader = SqliteReader;
    type Writer = SqliteWriter;

    fn capabilities(&self) -> Capabilities {
        Capabilities::FILE
    }

    fn reader(&self) -> Result<SqliteReader> {
        self.reader_within(self.busy)
    }

    fn reader_at_once(&self) -> Result<SqliteReader> {
        let mut reader = self.reader_within(Duration::ZERO)?;
        reader.never_wait()?;
        Ok(reader)
    }

    fn reader_at(&self, moment: Moment) -> Result<SqliteReader> {
        let mut reader = self.reader()?;
        reader.look_back(moment)?;
        Ok(reader)
    }

    fn writer(&self) -> Result<SqliteWriter> {
        if self.readonly {
            return Err(Error::denied("the database was opened with readonly: true"));
        }
        let prepared = self.prepared.lock().take();
        let (connection, seat) = match prepared {
            Some(prepared) => prepared,
            None => {
                let (opened, seat) = self.connect(Access::Write, SeatFor::Calls, self.busy)?;
                (opened.connection, seat)
            }
        };
        // The writer waits for locks itself.
        connection.busy_timeout(Duration::ZERO).map_err(errors::failure)?;
        page_cache::set_bound(&connection, self.memory.cache_bytes())?;
        let mut writer = SqliteWriter::new(connection, self.encoding, self.own.clone())?;
        (writer.seat, writer.claim) = (Some(seat), self.claim.clone());
        writer.presence = Some(Presence::new(self.identity, self.path.clone()));
        Ok(writer)
    }

    fn watch_external(&self, tell: TellExternal) -> Result<Option<ExternalWatch>> {
        // No process commits to such a file; a read notices a commit (`SealedFile::verify`).
        if self.sealed.is_some() {
            return Ok(None);
        }
        let (Opened { connection, .. }, seat) =
            self.connect(Access::Read, SeatFor::Watch, self.busy)?;
        // The checks wait for no lock.
        connection.busy_timeout(Duration::ZERO).map_err(errors::failure)?;
        let presence = Presence::new(self.identity, self.path.clone());
        let connection = (connection, seat);
        external::watch(connection, self.wal_path(), self.own.clone(), presence, tell).map(Some)
    }
}

fn read_anything(connection: &Connection) -> Result<()> {
    connection.pragma_query_value(None, "schema_version", |_| Ok(())).map_err(errors::failure)
}

/// An engine on a new file, `kv` of the folder.
#[cfg(test)]
pub(super) fn fresh() -> (SqliteEngine, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("kv");
    (SqliteEngine::open(&path, false, Duration::from_secs(5)).unwrap(), folder)
}
