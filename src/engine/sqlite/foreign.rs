//! Noticing other processes' commits.
//!
//! A commit appends to the `-wal` file, which the operating system announces (inotify, kqueue,
//! ReadDirectoryChangesW); a slow tick covers file systems that announce nothing. The announcement
//! comes before the commit: the log is written, then synced, and only then does the wal-index
//! header change. So each announcement is followed by looks at ever longer intervals. A look at
//! which the header differs reads the commit counter, which tells, with what our own writer notes
//! in [`OwnCommits`], whether anything of it is somebody else's.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use rusqlite::Connection;

use super::statement::Statement;
use super::wal_index::WalIndex;
use crate::engine::ForeignWatch;
use crate::model::{Error, FOREIGN_POLL_MS, Kind, Result};

/// What this process's writer knows of who has committed.
#[derive(Default)]
pub(super) struct OwnCommits {
    /// The commit counter as our last commit left it.
    version: AtomicU64,
    /// How often our writer, holding the lock, found a counter that it had not left.
    strangers: AtomicU64,
}

impl OwnCommits {
    /// The writer has the lock and finds this counter.
    pub(super) fn found(&self, version: u64) {
        if self.version.load(Ordering::Acquire) != version {
            self.strangers.fetch_add(1, Ordering::AcqRel);
        }
    }

    /// The writer has committed, and left this counter. Must follow the commit: noted before one
    /// that then fails, the same counter could be another process's next.
    pub(super) fn left(&self, version: u64) {
        self.version.store(version, Ordering::Release);
    }

    fn strangers(&self) -> u64 {
        self.strangers.load(Ordering::Acquire)
    }

    fn left_last(&self, version: u64) -> bool {
        self.version.load(Ordering::Acquire) == version
    }
}

/// How soon after an announcement to look; each further wait is twice as long.
const FIRST_LOOK_US: u64 = 1000;

/// How long further announcements are left to the operating system, which merges those that wait:
/// each of our own commits is several, and they must not cost as much as the commit.
const ANNOUNCEMENT_PAUSE_MS: u64 = 2;

/// Where the operating system's announcements cannot be relied on, look this often.
const UNRELIABLE_POLL_MS: u64 = 20;

/// Watches until the guard is dropped. `connection` keeps the wal-index mapped meanwhile.
pub(super) fn watch(
    connection: Connection,
    wal: PathBuf,
    own: Arc<OwnCommits>,
    wake: Box<dyn Fn() + Send>,
) -> Result<ForeignWatch> {
    // The mapping exists once something was read.
    let mut counter = Counter(Statement::prepare(&connection, "SELECT version FROM data_version")?);
    counter.read()?;
    let index = WalIndex::of(&connection).ok_or_else(|| {
        Error::new(Kind::Unsupported, "the database is not in WAL mode, so it cannot be watched")
    })?;

    // Capacity 1: any number of announcements while one is being looked at are one more look.
    let (announce, announced) = sync_channel::<()>(1);
    let ended = announce.clone();
    let announcing = move |_event: notify::Result<notify::Event>| {
        let _already_announced = announce.try_send(());
        // This thread does nothing but announce.
        std::thread::sleep(Duration::from_millis(ANNOUNCEMENT_PAUSE_MS));
    };
    let (watcher, poll_ms) = match watch_file(announcing, &wal) {
        Ok(watcher) if cfg!(target_os = "linux") => (Some(watcher), FOREIGN_POLL_MS),
        Ok(watcher) => (Some(watcher), UNRELIABLE_POLL_MS),
        Err(error) => {
            tracing::warn!(%error, "no file notifications; polling instead");
            (None, UNRELIABLE_POLL_MS)
        }
    };
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let stopped = stop.clone();
    let look = move || {
        let poll = Duration::from_millis(poll_ms);
        let mut wait = poll;
        let mut seen = None;
        let mut strangers = own.strangers();
        loop {
            let header = index.header();
            if seen != Some(header) {
                // The first look wakes too: what was committed before it, nobody has told.
                let first = seen.replace(header).is_none();
                let met = own.strangers();
                let ours = counter.read().is_ok_and(|version| own.left_last(version));
                if first || met != strangers || !ours {
                    strangers = met;
                    wake();
                }
            }
            wait = match announced.recv_timeout(wait) {
                Ok(()) => Duration::from_micros(FIRST_LOOK_US),
                Err(RecvTimeoutError::Timeout) => poll.min(wait * 2),
                Err(RecvTimeoutError::Disconnected) => break,
            };
            if stopped.load(Ordering::Acquire) {
                break;
            }
        }
        drop(counter);
        drop(connection);
    };
    let thread = std::thread::Builder::new().name("openkv-foreign".into()).spawn(look);
    let thread = thread.map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
    Ok(ForeignWatch::new(Guard { _watcher: watcher, stop, ended, thread: Some(thread) }))
}

/// The database's commit counter, as the file has it now.
struct Counter(Statement);

impl Counter {
    fn read(&mut self) -> Result<u64> {
        let mut run = self.0.run();
        match run.step()? {
            true => Ok(run.column_int(0).cast_unsigned()),
            false => Err(Error::corrupt("the commit counter is missing: the file is damaged")),
        }
    }
}

fn watch_file(
    announcing: impl notify::EventHandler,
    wal: &std::path::Path,
) -> notify::Result<RecommendedWatcher> {
    let mut watcher = notify::recommended_watcher(announcing)?;
    watcher.watch(wal, RecursiveMode::NonRecursive)?;
    Ok(watcher)
}

/// Ends the thread and the file watch when dropped.
struct Guard {
    _watcher: Option<RecommendedWatcher>,
    stop: Arc<std::sync::atomic::AtomicBool>,
    ended: std::sync::mpsc::SyncSender<()>,
    thread: Option<std::thread::JoinHandle<()>>,
}

impl Drop for Guard {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        let _full_is_as_good = self.ended.try_send(());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the watch for other processes ended by a panic");
        }
    }
}
