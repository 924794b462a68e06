//! Reads from a snapshot that is kept between reads while it is known to be current.

use std::time::Duration;

use rusqlite::Connection;

use super::FileClaim;
use super::errors::failure;
use super::interrupt::interruptible;
use super::page_cache::PageCache;
use super::past::{Past, PastSnapshot};
use super::pool::Seat;
use super::sealed::SealedFile;
use super::snapshot::ReadStatements;
use super::statement::Statement;
use super::wal_index::{Header, WalIndex};
use crate::{GoesOn, Reader, Snapshot};
use openkv_core::model::{Encoding, Moment, Result};

/// A connection for reading.
///
/// Starting a read transaction is most of the cost of a point read, so it stays open between reads
/// until the header of the wal-index shows a new commit ([`WalIndex`]).
pub struct SqliteReader {
    rows: ReadStatements,
    begin: Statement,
    end: Statement,
    index: Option<WalIndex>,
    /// The file, if it is opened as immutable.
    sealed: Option<SealedFile>,
    held: ReadTransaction,
    /// The moment of the past that it reads, instead of the present.
    past: Option<Past>,
    cache: PageCache,
    // Dropped after the statements above.
    connection: Connection,
    /// The place of the connection among those of the process.
    pub(super) seat: Option<Seat>,
    // Last field: other copies of openkv may open the file once the connection is closed.
    pub(super) claim: FileClaim,
}

/// The state of the read transaction.
#[derive(Clone, Copy, PartialEq, Eq)]
enum ReadTransaction {
    Nothing,
    /// Open; it began after this header was read.
    Since(Header),
    /// Open, but not known to be current.
    Unproven,
    /// Open, of a file that no process may change.
    Sealed,
}

impl SqliteReader {
    pub(super) fn new(
        connection: Connection,
        cache: PageCache,
        sealed: Option<SealedFile>,
        file: Encoding,
    ) -> Result<Self> {
        let prepare = |sql| Statement::prepare(&connection, sql);
        Ok(Self {
            rows: ReadStatements::new(&connection, cache.pages(), file)?,
            begin: prepare("BEGIN")?,
            end: prepare("COMMIT")?,
            index: None,
            sealed,
            held: ReadTransaction::Nothing,
            past: None,
            cache,
            connection,
            seat: None,
            claim: FileClaim::default(),
        })
    }

    /// Reads a moment of the past from now on.
    pub(super) fn look_back(&mut self, moment: Moment) -> Result<()> {
        self.past = Some(Past::beside(&self.rows.get, moment)?);
        Ok(())
    }

    fn refresh(&mut self) -> Result<()> {
        if let Some(sealed) = &self.sealed {
            sealed.verify()?;
        }
        match (self.held, self.index) {
            (ReadTransaction::Sealed, _) => return Ok(()),
            (ReadTransaction::Since(header), Some(index)) if index.header() == header => {
                return Ok(());
            }
            (ReadTransaction::Nothing, _) => {}
            _ => self.release(),
        }
        // The mapping exists after the first read of the connection in WAL mode.
        if self.index.is_none() && self.sealed.is_none() {
            self.index = WalIndex::of(&self.connection);
        }
        let header = self.index.map(WalIndex::header);
        self.begin.execute()?;
        self.rows.begun();
        self.held = match (header, &self.sealed) {
            (Some(header), _) => ReadTransaction::Since(header),
            (None, Some(_)) => ReadTransaction::Sealed,
            (None, None) => ReadTransaction::Unproven,
        };
        if let Some(past) = &mut self.past
            && let Err(error) = past.check()
        {
            self.release();
            return Err(error);
        }
        Ok(())
    }

    /// Runs a job on the snapshot that is open.
    fn run(
        rows: &mut ReadStatements,
        past: Option<&mut Past>,
        now_ms: i64,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        match past {
            None => {
                rows.now_ms = now_ms;
                job(rows)
            }
            Some(past) => {
                rows.now_ms = past.moment.at_ms;
                job(&mut PastSnapshot { rows, past })
            }
        }
    }

    /// Ends the read transaction after a job, unless it can be kept.
    fn after(&mut self, done: Result<()>) -> Result<()> {
        if done.is_err() || self.held == ReadTransaction::Unproven {
            self.release();
        }
        done
    }
}

impl Reader for SqliteReader {
    fn read_within(
        &mut self,
        now_ms: i64,
        goes_on: Option<&GoesOn>,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        self.seat.iter().for_each(Seat::touch);
        // Starting and ending a transaction must not be interrupted.
        self.refresh()?;
        let (rows, past) = (&mut self.rows, self.past.as_mut());
        let run = || Self::run(rows, past, now_ms, job);
        let done = match goes_on {
            None => run(),
            Some(goes_on) => interruptible(&mut self.connection, goes_on, |_| run()),
        };
        self.after(done)
    }

    fn release(&mut self) {
        if self.held != ReadTransaction::Nothing {
            // If ending a read transaction fails, SQLite has already ended it.
            if let Err(error) = self.end.execute() {
                tracing::warn!(%error, "ending a read transaction");
            }
            self.held = ReadTransaction::Nothing;
        }
    }

    fn never_wait(&mut self) -> Result<()> {
        self.connection.busy_timeout(Duration::ZERO).map_err(failure)
    }

    fn take_cache_counts(&mut self) -> (u64, u64) {
        self.cache.take_counts(&self.connection)
    }
}
