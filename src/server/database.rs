//! One served database: its tokens, its quotas, its store.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Semaphore, watch as flag};
use uuid::Uuid;

use super::answer::Refusal;
use super::auth::{Rights, TokenHash};
use super::memory::Memory;
use super::options::Quotas;
use super::quota::{Bucket, over};
use crate::model::{
    BUSY_TIMEOUT_MS_DEFAULT, DATABASE_WATCHES_MAX, DROP_WAIT_MS_MAX, Error, Result, SIZE_REFRESH_MS,
};
use crate::open::{Target, open};
use crate::store::Store;

/// An access token of a database.
#[derive(Clone, Debug)]
pub(super) struct AccessToken {
    /// Its id in the admin API.
    pub(super) id: String,
    pub(super) rights: Rights,
    pub(super) hash: TokenHash,
    pub(super) created_ms: i64,
}

/// A database of a server.
pub(super) struct Database {
    pub(super) name: String,
    pub(super) id: Uuid,
    pub(super) created_ms: i64,
    pub(super) path: PathBuf,
    pub(super) readonly: bool,
    tokens: RwLock<Vec<AccessToken>>,
    quotas: RwLock<Quotas>,
    store: Mutex<Option<Arc<Store>>>,
    bucket: Mutex<Bucket>,
    /// The zero of the bucket's clock.
    begun: Instant,
    watches: AtomicU32,
    /// The memory of its clients' requests.
    pub(super) memory: Arc<Memory>,
    /// Held while a command checks the file.
    pub(super) checking: Arc<Semaphore>,
    /// Size of its files, and when it was measured.
    size: Mutex<(u64, i64)>,
    /// Notified when the tokens change or the database is dropped: watches check their grants.
    pub(super) changed: flag::Sender<()>,
    gone: AtomicBool,
}

/// A watch's place within the quota.
pub(super) struct WatchPlace(Arc<Database>);

impl Drop for WatchPlace {
    fn drop(&mut self) {
        self.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The same error without the path of the database's files, neither the file nor its folder.
fn without_path(error: &Error, path: &Path) -> Error {
    let mut message = error.message().to_owned();
    for (part, name) in [(Some(path), "the database"), (path.parent(), "its folder")] {
        // The root and an empty parent reveal nothing.
        if let Some(part) = part.and_then(Path::to_str).filter(|part| part.len() > 1) {
            message = message.replace(part, name);
        }
    }
    Error::new(error.kind(), message)
}

/// The parameters of a database.
pub(super) struct Description {
    pub(super) name: String,
    pub(super) id: Uuid,
    pub(super) created_ms: i64,
    pub(super) path: PathBuf,
    pub(super) readonly: bool,
    pub(super) tokens: Vec<AccessToken>,
    pub(super) quotas: Quotas,
    pub(super) memory: Arc<Memory>,
}

impl Database {
    pub(super) fn new(of: Description) -> Arc<Self> {
        let Description { name, id, created_ms, path, readonly, tokens, quotas, memory } = of;
        Arc::new(Self {
            name,
            id,
            created_ms,
            path,
            readonly,
            tokens: RwLock::new(tokens),
            quotas: RwLock::new(quotas),
            store: Mutex::default(),
            bucket: Mutex::default(),
            begun: Instant::now(),
            watches: AtomicU32::new(0),
            memory,
            checking: Arc::new(Semaphore::new(1)),
            size: Mutex::default(),
            changed: flag::Sender::new(()),
            gone: AtomicBool::new(false),
        })
    }

    /// The store for a request. The first request opens it and may wait for the disk. Its error
    /// names the database and not the server's path, because a client reads it; the log has the
    /// path.
    pub(super) fn store_for_client(&self) -> Result<Arc<Store>> {
        self.store().map_err(|error| {
            tracing::warn!(%error, database = %self.name, "opening a database for a request");
            without_path(&error, &self.path)
        })
    }

    /// The store. The first caller opens it and may wait for the disk.
    pub(super) fn store(&self) -> Result<Arc<Store>> {
        let mut store = self.store.lock();
        if self.gone.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        if let Some(store) = &*store {
            return Ok(store.clone());
        }
        let opened = open(&Target::File {
            path: self.path.clone(),
            readonly: self.readonly,
            busy: Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT),
            encoding: None,
        })?;
        Ok(store.insert(opened.store("Serving")?.clone()).clone())
    }

    /// The store if it is open.
    pub(super) fn open_store(&self) -> Option<Arc<Store>> {
        self.store.try_lock().and_then(|store| store.clone())
    }

    /// The rights of an access token, compared with every token in constant time.
    pub(super) fn token(&self, given: &TokenHash) -> Option<(Rights, [u8; 8])> {
        let mut found = None;
        for token in &*self.tokens.read() {
            if token.hash.is(given) {
                found = Some((token.rights, token.hash.fingerprint()));
            }
        }
        found
    }

    /// Whether the token with this fingerprint is still valid.
    pub(super) fn has_token(&self, fingerprint: [u8; 8]) -> bool {
        let tokens = self.tokens.read();
        let known = tokens.iter().any(|token| token.hash.fingerprint() == fingerprint);
        known && !self.gone.load(Ordering::Acquire)
    }

    pub(super) fn tokens(&self) -> Vec<AccessToken> {
        self.tokens.read().clone()
    }

    pub(super) fn set_tokens(&self, tokens: Vec<AccessToken>) {
        *self.tokens.write() = tokens;
        self.changed.send_replace(());
    }

    pub(super) fn quotas(&self) -> Quotas {
        *self.quotas.read()
    }

    pub(super) fn set_quotas(&self, quotas: Quotas) {
        *self.quotas.write() = quotas;
    }

    /// Counts a request against the quota.
    pub(super) fn take_operation(&self) -> Result<(), Refusal> {
        let Some(rate) = self.quotas().operations_per_second else { return Ok(()) };
        self.bucket
            .lock()
            .take(rate, self.begun.elapsed())
            .map_err(|retry_s| over("operations", u64::from(rate), " a second", retry_s))
    }

    /// Counts further operations of a request. Later requests wait for them.
    pub(super) fn owe_operations(&self, count: u64) {
        if self.quotas().operations_per_second.is_some() {
            self.bucket.lock().owe(count);
        }
    }

    /// Fails if the files have reached their quota.
    pub(super) fn has_room(&self, now_ms: i64) -> Result<(), Refusal> {
        let Some(max) = self.quotas().bytes else { return Ok(()) };
        if self.size(now_ms) < max {
            return Ok(());
        }
        Err(over("storage: deletes are still accepted", max, " bytes", 60))
    }

    /// Bytes of its files, measured a short time ago.
    pub(super) fn size(&self, now_ms: i64) -> u64 {
        let mut size = self.size.lock();
        if size.1 == 0 || (now_ms - size.1).abs() >= SIZE_REFRESH_MS {
            let bytes = |path: &Path| path.metadata().map_or(0, |found| found.len());
            *size = (files(&self.path).iter().map(|file| bytes(file)).sum(), now_ms);
        }
        size.0
    }

    /// A place for one more watch.
    pub(super) fn take_watch(self: &Arc<Self>) -> Result<WatchPlace, Refusal> {
        let max = self.quotas().watches.unwrap_or(DATABASE_WATCHES_MAX);
        let place = WatchPlace(self.clone());
        if self.watches.fetch_add(1, Ordering::Relaxed) < max {
            return Ok(place);
        }
        Err(over("watches", u64::from(max), "", 5))
    }

    pub(super) fn watch_count(&self) -> u32 {
        self.watches.load(Ordering::Relaxed)
    }

    /// Releases the store. Running requests keep it until they are answered.
    pub(super) fn close(&self) {
        self.gone.store(true, Ordering::Release);
        self.changed.send_replace(());
        drop(self.store.lock().take());
    }

    /// Closes the database and removes its files. Waits for running requests and then closes the
    /// store on this thread, so that no request has to wait for the store's threads.
    pub(super) fn destroy(&self) {
        self.gone.store(true, Ordering::Release);
        self.changed.send_replace(());
        let store = self.store.lock().take();
        if let Some(Err(_shared)) = store.map(|store| last_of(store, DROP_WAIT_MS_MAX)) {
            let file = self.path.display();
            tracing::warn!(%file, "dropped while another handle of this process holds it");
        }
        for file in files(&self.path) {
            if let Err(error) = std::fs::remove_file(&file)
                && error.kind() != std::io::ErrorKind::NotFound
            {
                tracing::warn!(%error, file = %file.display(), "removing the file of a dropped database");
            }
        }
    }

    pub(super) fn allows(&self, rights: Rights, needed: Rights) -> Result<(), Refusal> {
        if rights >= needed {
            return Ok(());
        }
        let text = "The token does not have the rights for this: it may only read.";
        Err(Refusal::new(StatusCode::FORBIDDEN, text))
    }
}

/// The value once this is its only owner; the shared value again after `wait_ms`.
fn last_of<T>(mut shared: Arc<T>, wait_ms: u64) -> std::result::Result<T, Arc<T>> {
    let deadline = Instant::now() + Duration::from_millis(wait_ms);
    let mut pause = Duration::from_millis(1);
    loop {
        shared = match Arc::try_unwrap(shared) {
            Ok(last) => return Ok(last),
            Err(shared) if Instant::now() >= deadline => return Err(shared),
            Err(shared) => shared,
        };
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(50));
    }
}

/// A database's file and those that SQLite puts beside it.
fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        name.into()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The last owner closed the store, and its wait for threads blocked a thread that serves
    /// requests. And a handle of the same process kept the wait from ending.
    #[test]
    fn the_last_owner_ends_the_value_or_the_wait_ends() {
        let (tell, thread) = std::sync::mpsc::channel();
        struct Ended(std::sync::mpsc::Sender<std::thread::ThreadId>);
        impl Drop for Ended {
            fn drop(&mut self) {
                self.0.send(std::thread::current().id()).unwrap();
            }
        }
        let shared = Arc::new(Ended(tell));
        let other = shared.clone();
        let (shared, kept) = (last_of(shared, 5).err().unwrap(), other);
        assert!(thread.try_recv().is_err(), "it still has another owner");
        let other = std::thread::spawn(move || drop(kept));
        drop(last_of(shared, 60_000));
        assert_eq!(thread.recv().unwrap(), std::thread::current().id());
        other.join().unwrap();
    }
}
