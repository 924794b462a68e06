//! Noticing other processes' commits.
//!
//! A commit appends to the `-wal` file, which the operating system announces (inotify, kqueue,
//! ReadDirectoryChangesW); a slow tick covers file systems that announce nothing. Each time, one
//! comparison of the wal-index header says whether anything was committed, and by whom: our own
//! writer leaves its headers in [`OwnCommit`].

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::time::Duration;

use notify::{RecommendedWatcher, RecursiveMode, Watcher};
use parking_lot::Mutex;
use rusqlite::Connection;

use super::wal_index::{Header, WalIndex};
use crate::engine::ForeignWatch;
use crate::model::{Error, FOREIGN_POLL_MS, Kind, Result};

/// The header that this process's writer left last.
#[derive(Default)]
pub(super) struct OwnCommit(Mutex<Header>);

impl OwnCommit {
    pub(super) fn note(&self, header: Header) {
        *self.0.lock() = header;
    }

    fn is(&self, header: Header) -> bool {
        *self.0.lock() == header
    }
}

/// Where the operating system's announcements cannot be relied on, look this often.
const UNRELIABLE_POLL_MS: u64 = 20;

/// Watches until the guard is dropped. `connection` keeps the wal-index mapped meanwhile.
pub(super) fn watch(
    connection: Connection,
    wal: PathBuf,
    own: Arc<OwnCommit>,
    wake: Box<dyn Fn() + Send>,
) -> Result<ForeignWatch> {
    // The mapping exists once something was read.
    let read = connection.query_row("SELECT version FROM data_version", [], |_| Ok(()));
    read.map_err(super::errors::failure)?;
    let index = WalIndex::of(&connection).ok_or_else(|| {
        Error::new(Kind::Unsupported, "the database is not in WAL mode, so it cannot be watched")
    })?;

    // Capacity 1: any number of announcements while one is being looked at are one more look.
    let (announce, announced) = sync_channel::<()>(1);
    let ended = announce.clone();
    let announcing = move |_event: notify::Result<notify::Event>| {
        let _already_announced = announce.try_send(());
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
        let mut seen = index.header();
        loop {
            match announced.recv_timeout(Duration::from_millis(poll_ms)) {
                Ok(()) | Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            if stopped.load(std::sync::atomic::Ordering::Acquire) {
                break;
            }
            let header = index.header();
            if header != seen {
                seen = header;
                if !own.is(header) {
                    wake();
                }
            }
        }
        drop(connection);
    };
    let thread = std::thread::Builder::new().name("openkv-foreign".into()).spawn(look);
    let thread = thread.map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
    Ok(ForeignWatch::new(Guard { _watcher: watcher, stop, ended, thread: Some(thread) }))
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
        self.stop.store(true, std::sync::atomic::Ordering::Release);
        let _full_is_as_good = self.ended.try_send(());
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the watch for other processes ended by a panic");
        }
    }
}
