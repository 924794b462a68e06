//! One served database: its tokens, its quotas, its store.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use hyper::StatusCode;
use parking_lot::{Mutex, RwLock};
use tokio::sync::{Semaphore, watch as flag};
use uuid::Uuid;

use super::answer::Refusal;
use super::archive_policy::ArchivePolicy;
use super::auth::{AccessToken, Rights, TokenHash};
use super::deliveries::Deliveries;
use super::downloads::Downloads;
use super::followers::Followers;
use super::location::FileStamp;
use super::location::Location;
use super::memory::Memory;
use super::options::Quotas;
use super::quota::{Bucket, over};
use super::read_server::Primary;
use openkv_core::model::{
    DATABASE_WATCHES_MAX, DROP_WAIT_MS_MAX, Error, HTTP_EXPORTS_MAX, Result, SIZE_REFRESH_MS,
};
use openkv_engines::Leadership;
use openkv_store::Store;

/// How often polls ask who leads a database whose lead this server has lost: the first answer may be of before.
const LEADER_ASKS: u32 = 2;

/// A database of a server.
pub(super) struct Database {
    pub(super) name: String,
    pub(super) id: Uuid,
    pub(super) created_ms: i64,
    location: Location,
    tokens: RwLock<Vec<AccessToken>>,
    /// The admin token of the server, which has the rights of an admin's of this database.
    admin: Option<TokenHash>,
    /// Whether clients need no token.
    open: bool,
    quotas: RwLock<Quotas>,
    archive: RwLock<Option<ArchivePolicy>>,
    store: Mutex<Option<Arc<Store>>>,
    bucket: Mutex<Bucket>,
    /// The zero of the bucket's clock.
    begun: Instant,
    watches: AtomicU32,
    /// The memory of its clients' requests.
    pub(super) memory: Arc<Memory>,
    /// Held while a command checks the file.
    pub(super) checking: Arc<Semaphore>,
    /// Held while an export reads one state of the database.
    pub(super) exporting: Arc<Semaphore>,
    /// The messages under way in event streams.
    pub(super) deliveries: Deliveries,
    /// The replicas that follow it here.
    pub(super) followers: Arc<Followers>,
    /// Downloads of it for downloads.
    pub(super) downloads: Arc<Downloads>,
    /// The bytes that it holds, and when they were measured.
    bytes: Mutex<Option<(u64, Instant)>>,
    /// Notified when the tokens change or the database is dropped: watches check their grants.
    pub(super) changed: flag::Sender<()>,
    gone: AtomicBool,
    /// How often polls still ask who leads it.
    leader_asks: Mutex<u32>,
}

/// A watch's place within the quota.
pub(super) struct WatchPlace(Arc<Database>);

impl Drop for WatchPlace {
    fn drop(&mut self) {
        self.0.watches.fetch_sub(1, Ordering::Relaxed);
    }
}

/// The parameters of a database.
pub(super) struct Description {
    pub(super) name: String,
    pub(super) id: Uuid,
    pub(super) created_ms: i64,
    pub(super) location: Location,
    pub(super) tokens: Vec<AccessToken>,
    pub(super) admin: Option<TokenHash>,
    pub(super) open: bool,
    pub(super) quotas: Quotas,
    /// Its own policy of archives.
    pub(super) archive: Option<ArchivePolicy>,
    pub(super) memory: Arc<Memory>,
}

impl Database {
    pub(super) fn new(of: Description) -> Arc<Self> {
        let Description {
            name,
            id,
            created_ms,
            location,
            tokens,
            admin,
            open,
            quotas,
            archive,
            memory,
        } = of;
        let changed = location.primary().map(|primary| primary.changes().clone());
        let changed = changed.unwrap_or_else(|| flag::Sender::new(()));
        Arc::new(Self {
            name,
            id,
            created_ms,
            location,
            tokens: RwLock::new(tokens),
            admin,
            open,
            quotas: RwLock::new(quotas),
            archive: RwLock::new(archive),
            store: Mutex::default(),
            bucket: Mutex::default(),
            begun: Instant::now(),
            watches: AtomicU32::new(0),
            memory,
            checking: Arc::new(Semaphore::new(1)),
            exporting: Arc::new(Semaphore::new(HTTP_EXPORTS_MAX)),
            deliveries: Deliveries::default(),
            followers: Arc::default(),
            downloads: Arc::default(),
            bytes: Mutex::default(),
            changed,
            gone: AtomicBool::new(false),
            leader_asks: Mutex::default(),
        })
    }

    /// The store for a request. The first request opens it and may wait for the disk. Its error
    /// names the database and not the server's path, because a client reads it; the log has the
    /// path.
    pub(super) fn store_for_client(&self) -> Result<Arc<Store>> {
        self.store().map_err(|error| {
            tracing::warn!(%error, database = %self.name, "opening a database for a request");
            self.location.without_path(&error)
        })
    }

    /// The store. The first caller opens it and may wait for the disk.
    pub(super) fn store(&self) -> Result<Arc<Store>> {
        let mut store = self.store.lock();
        if self.gone.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        if let Some(store) = &*store
            && store.leadership() != Leadership::Ended
        {
            return Ok(store.clone());
        }
        // Before the next one: they may share a folder.
        drop(store.take());
        let opened = self.location.open()?;
        if self.primary().is_some() {
            // It may have to be copied again at any time.
            return Ok(opened);
        }
        Ok(store.insert(opened).clone())
    }

    /// The store for an archiver, which its clients need not have open. Its caller closes it.
    pub(super) fn visit_store(&self) -> Result<Arc<Store>> {
        let store = self.store.lock();
        if self.gone.load(Ordering::Acquire) {
            return Err(Error::closed());
        }
        store.as_ref().map_or_else(|| self.location.open(), |store| Ok(store.clone()))
    }

    /// The primary of a read server.
    pub(super) fn primary(&self) -> Option<&Arc<Primary>> {
        self.location.primary()
    }

    /// Whether writes are refused.
    pub(super) fn is_readonly(&self) -> bool {
        matches!(self.location, Location::File { readonly: true, .. })
    }

    /// Its file; `None` if it has none on this machine.
    pub(super) fn file(&self) -> Option<&Path> {
        self.location.file()
    }

    /// As [`Location::file_stamp`].
    pub(super) fn file_stamp(&self) -> Option<FileStamp> {
        self.location.file_stamp()
    }

    /// As [`Location::without_path`].
    pub(super) fn without_path(&self, error: &Error) -> Error {
        self.location.without_path(error)
    }

    /// Whether its leader remembers the ids of writes.
    pub(super) fn remembers_writes(&self) -> bool {
        matches!(self.location, Location::Shared { .. })
    }

    /// Whether replicas may follow its replication log, at whichever server.
    pub(super) fn can_be_followed(&self) -> bool {
        !matches!(&self.location, Location::Shared { members, .. } if !members.properties().has_one_log)
    }

    /// Whether another server may lead it, as far as this one knows without asking.
    pub(super) fn may_be_led_elsewhere(&self) -> bool {
        let Location::Shared { members, .. } = &self.location else {
            return self.known_leader().is_some();
        };
        let leads =
            || self.open_store().is_some_and(|store| store.leadership() == Leadership::Leads);
        match self.known_leader() {
            Some(_) => true,
            None => !members.properties().polls_leaders && !leads(),
        }
    }

    /// Asks who leads once this server does not any more; then streams that need the leader end.
    pub(super) fn tend_lead(&self) {
        let Location::Shared { members, name } = &self.location else { return };
        let Some(store) = self.open_store() else { return };
        let mut asks = self.leader_asks.lock();
        if store.leadership() == Leadership::Leads {
            *asks = LEADER_ASKS;
        } else if *asks > 0 {
            match members.leader(name) {
                Ok(Some(_)) => *asks = 0,
                Ok(None) => *asks -= 1,
                // The next poll asks again.
                Err(_) => return,
            }
            drop(asks);
            self.changed.send_replace(());
        }
    }

    /// The URL of another server that leads it, as of a short time ago.
    pub(super) fn known_leader(&self) -> Option<String> {
        match &self.location {
            Location::File { .. } => None,
            Location::Replica { primary, .. } => Some(primary.url()),
            Location::Shared { members, name } => members.known_leader(name),
        }
    }

    /// The URL of another server that leads it at present.
    pub(super) async fn leader(self: &Arc<Self>) -> Result<Option<String>> {
        if !matches!(self.location, Location::Shared { .. }) {
            return Ok(self.known_leader());
        }
        let database = self.clone();
        let lookup = tokio::task::spawn_blocking(move || match &database.location {
            Location::File { .. } | Location::Replica { .. } => Ok(None),
            Location::Shared { members, name } => members.leader(name),
        });
        lookup.await.map_err(|_| Error::internal("asking for the leader ended by a panic"))?
    }

    /// Fails for a quota that this kind of database cannot have.
    pub(super) fn allows_quotas(&self, quotas: &Quotas) -> Result<(), Refusal> {
        match &self.location {
            Location::Shared { members, .. }
                if quotas.bytes.is_some() && !members.properties().measures_bytes =>
            {
                let text = "quotas.bytes is for databases in files: bound the size of PostgreSQL's \
                            database instead.";
                Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, text))
            }
            Location::File { .. } | Location::Replica { .. } | Location::Shared { .. } => Ok(()),
        }
    }

    /// The store if it is open.
    pub(super) fn open_store(&self) -> Option<Arc<Store>> {
        match self.primary() {
            Some(primary) => primary.store().ok(),
            None => {
                let store = self.store.try_lock().and_then(|store| store.clone());
                store.filter(|store| store.leadership() != Leadership::Ended)
            }
        }
    }

    /// The highest rights that a token of it can have.
    pub(super) fn highest_rights(&self) -> Rights {
        match &self.location {
            Location::File { .. } if self.name.is_empty() => Rights::Write,
            Location::File { .. } | Location::Replica { .. } | Location::Shared { .. } => {
                Rights::Admin
            }
        }
    }

    /// The rights of a client without a token, if it needs none.
    pub(super) fn open_rights(&self) -> Option<(Rights, [u8; 8])> {
        self.open.then_some((Rights::Admin, [0; 8]))
    }

    /// The rights of an access token, compared with every token in constant time.
    pub(super) fn token(&self, given: &TokenHash) -> Option<(Rights, [u8; 8])> {
        let admin = self.admin.filter(|admin| admin.is(given));
        let mut found = admin.map(|admin| (Rights::Admin, admin.fingerprint()));
        for token in &*self.tokens.read() {
            if token.hash.is(given) {
                found = Some((token.rights, token.hash.fingerprint()));
            }
        }
        found
    }

    /// Whether the token with this fingerprint is still valid.
    pub(super) fn has_token(&self, fingerprint: [u8; 8]) -> bool {
        if let Some(primary) = self.primary() {
            return primary.has_token(fingerprint) && !self.gone.load(Ordering::Acquire);
        }
        let tokens = self.tokens.read();
        let mut known = tokens.iter().map(|token| token.hash).chain(self.admin);
        let known = known.any(|hash| hash.fingerprint() == fingerprint);
        (known || self.open) && !self.gone.load(Ordering::Acquire)
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

    /// Its own policy of archives.
    pub(super) fn archive_policy(&self) -> Option<ArchivePolicy> {
        self.archive.read().clone()
    }

    pub(super) fn set_archive_policy(&self, policy: Option<ArchivePolicy>) {
        *self.archive.write() = policy;
    }

    /// Fails for a database that cannot be archived here.
    pub(super) fn allows_archive(&self) -> Result<(), Refusal> {
        let text = match &self.location {
            Location::File { readonly: false, .. } => return Ok(()),
            Location::File { readonly: true, .. } => {
                "An archive turns the replication log on, which writes to the file: serve it without readonly."
            }
            Location::Replica { .. } => {
                "A read server has a replica: archive the database at its server."
            }
            Location::Shared { .. } => {
                "Archives are of databases in files: archive each database on PostgreSQL with openkv archive run; one in \
                 an object store is in one already."
            }
        };
        Err(Refusal::new(StatusCode::UNPROCESSABLE_ENTITY, text))
    }

    /// Asks whether a quota allows something. If it does not, the catalog that servers share is looked at
    /// first: another server may have raised it.
    pub(super) async fn within_quota<T>(
        &self,
        allowed: impl Fn() -> Result<T, Refusal>,
    ) -> Result<T, Refusal> {
        match (allowed(), &self.location) {
            (Err(_), Location::Shared { members, .. }) => {
                members.catalog.refresh().await?;
                allowed()
            }
            (answer, _) => answer,
        }
    }

    /// Counts a request against the quota.
    pub(super) async fn take_operation(&self) -> Result<(), Refusal> {
        self.within_quota(|| self.try_operation()).await
    }

    fn try_operation(&self) -> Result<(), Refusal> {
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

    /// The bytes that it holds, if they were measured a short time ago.
    pub(super) fn known_bytes(&self) -> Option<u64> {
        let recent = Duration::from_millis(SIZE_REFRESH_MS);
        self.bytes.lock().filter(|(_, at)| at.elapsed() < recent).map(|(bytes, _)| bytes)
    }

    /// It was measured now.
    pub(super) fn has_bytes(&self, bytes: u64) {
        *self.bytes.lock() = Some((bytes, Instant::now()));
    }

    /// Whether what is stored in it can be measured here.
    pub(super) fn is_measured(&self) -> bool {
        match &self.location {
            Location::File { .. } | Location::Replica { .. } => true,
            Location::Shared { members, .. } => members.properties().measures_bytes,
        }
    }

    /// Bytes of its file; `None` where there is none.
    pub(super) fn file_bytes(&self) -> Option<u64> {
        self.file().map(|path| path.metadata().map_or(0, |found| found.len()))
    }

    /// A place for one more watch.
    pub(super) async fn take_watch(self: &Arc<Self>) -> Result<WatchPlace, Refusal> {
        self.within_quota(|| self.try_watch()).await
    }

    fn try_watch(self: &Arc<Self>) -> Result<WatchPlace, Refusal> {
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
        self.downloads.clear();
        drop(self.store.lock().take());
        if let Some(primary) = self.primary() {
            primary.end();
        }
    }

    /// Closes the database and deletes its data. Waits for running requests and then closes the
    /// store on this thread, so that no request has to wait for the store's threads.
    pub(super) fn destroy(&self) {
        self.gone.store(true, Ordering::Release);
        self.changed.send_replace(());
        self.downloads.clear();
        let store = self.store.lock().take();
        if let Some(Err(_shared)) = store.map(|store| last_of(store, DROP_WAIT_MS_MAX)) {
            let id = self.id;
            tracing::warn!(%id, "dropped while another handle of this process holds it");
        }
        if let Some(primary) = self.primary() {
            primary.end();
        }
        if let Err(error) = self.location.destroy() {
            tracing::warn!(%error, id = %self.id, "deleting the data of a dropped database");
        }
    }

    /// As [`Location::remove_copy`].
    pub(super) fn remove_copy(&self) {
        self.location.remove_copy();
    }

    pub(super) fn allows(&self, rights: Rights, needed: Rights) -> Result<(), Refusal> {
        if rights >= needed {
            return Ok(());
        }
        let text = match rights {
            Rights::Metrics => {
                "The token does not have the rights for this: it may only read metrics."
            }
            _ => "The token does not have the rights for this: it may only read.",
        };
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
