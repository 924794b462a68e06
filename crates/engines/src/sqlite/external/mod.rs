//! Detects commits of other processes, and that the file was deleted or replaced.
//!
//! A commit appends to the `-wal` file, which the operating system announces (inotify, kqueue,
//! ReadDirectoryChangesW); slow polling covers file systems without announcements. The announcement
//! precedes the commit: the log is written and synced before the header of the wal-index changes.
//! So each announcement is followed by checks at growing intervals. A check that finds a new header
//! reads the commit counter and compares it with the commits of this process ([`OwnCommits`]).
//!
//! All files of the process share one watcher and one thread ([`service`]).

mod announcer;
mod schedule;
mod service;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use rusqlite::Connection;

use super::identity::Presence;
use super::pool::Seat;
use super::statement::Statement;
use super::wal_index::{Header, WalIndex};
use crate::{ExternalCommits, ExternalWatch, TellExternal};
use openkv_core::model::{Error, Result};

/// The commits of this process, recorded by its writer.
#[derive(Default)]
pub(super) struct OwnCommits {
    /// The commit counter after the last commit of this process.
    version: AtomicU64,
    /// How often the writer, holding the write lock, has found a counter that another process had
    /// changed.
    external_commits: AtomicU64,
}

impl OwnCommits {
    /// Records that the writer has the write lock and reads this counter.
    pub(super) fn found(&self, version: u64) {
        if self.version.load(Ordering::Acquire) != version {
            self.external_commits.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// Records that the writer has committed with this counter. Must follow the commit: if a commit
    /// failed after being recorded, another process's commit with the same counter would be missed.
    pub(super) fn left(&self, version: u64) {
        self.version.store(version, Ordering::Release);
    }

    /// The commit counter after the last commit of this process.
    pub(super) fn last(&self) -> u64 {
        self.version.load(Ordering::Acquire)
    }

    fn external_commits(&self) -> u64 {
        self.external_commits.load(Ordering::Acquire)
    }

    fn left_last(&self, version: u64) -> bool {
        self.version.load(Ordering::Acquire) == version
    }
}

/// Watches until the guard is dropped. `connection` must not wait for locks, because all watched files
/// share the thread that reads with it.
pub(super) fn watch(
    (connection, seat): (Connection, Seat),
    wal: PathBuf,
    own: Arc<OwnCommits>,
    presence: Presence,
    tell: TellExternal,
) -> Result<ExternalWatch> {
    let mut looker = Looker::new(connection, own, presence, tell)?;
    looker.seat = Some(seat);
    let registration = service::register(wal, Box::new(move || looker.look()))?;
    Ok(ExternalWatch::new(registration))
}

/// Checks whether another process has committed since the last check.
struct Looker {
    counter: Counter,
    index: WalIndex,
    own: Arc<OwnCommits>,
    presence: Presence,
    /// The file was deleted or replaced: no commit is found any more.
    is_lost: bool,
    tell: TellExternal,
    /// The header at the last check.
    seen: Option<Header>,
    /// The number of external commits that the writer had found at that check.
    external_commits: u64,
    // Dropped after the fields above: it keeps the wal-index mapped and the statement valid.
    _connection: Connection,
    /// The place of the connection among those of the process.
    seat: Option<Seat>,
}

impl Looker {
    fn new(
        connection: Connection,
        own: Arc<OwnCommits>,
        presence: Presence,
        tell: TellExternal,
    ) -> Result<Self> {
        let sql = "SELECT version FROM data_version WHERE k = 0";
        let mut counter = Counter(Statement::prepare(&connection, sql)?);
        // The mapping exists only after a read.
        counter.read()?;
        let Some(index) = WalIndex::of(&connection) else {
            let reason = "the database is not in WAL mode, so it cannot be watched";
            return Err(Error::unsupported(reason));
        };
        let external_commits = own.external_commits();
        Ok(Self {
            counter,
            index,
            own,
            presence,
            is_lost: false,
            tell,
            seen: None,
            external_commits,
            _connection: connection,
            seat: None,
        })
    }

    fn look(&mut self) {
        if self.is_lost {
            return;
        }
        if let Err(gone) = self.presence.verify(Instant::now()) {
            self.is_lost = true;
            // Of its streams no attempt helps, where that of a read may meet the file again.
            let error = Error::corrupt(gone.message());
            return (self.tell)(&ExternalCommits::Lost(error));
        }
        let header = self.index.header();
        if self.seen == Some(header) {
            return;
        }
        // The first check always wakes: commits before it were not announced.
        let first = self.seen.replace(header).is_none();
        let met = self.own.external_commits();
        // A counter that cannot be read may include commits of other processes.
        let version = self.counter.read().ok();
        let ours = version.is_some_and(|version| self.own.left_last(version));
        if first || met != self.external_commits || !ours {
            self.external_commits = met;
            // The file does not say which keys a commit has changed.
            (self.tell)(&ExternalCommits::Unknown);
        }
    }
}

/// Reads the commit counter of the file.
struct Counter(Statement);

impl Counter {
    fn read(&mut self) -> Result<u64> {
        let mut run = self.0.run();
        run.row("the commit counter")?;
        Ok(run.column_int(0).cast_unsigned())
    }
}
