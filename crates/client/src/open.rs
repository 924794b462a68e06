//! The composition root: from a path or URL and options to a database. All handles on a file share
//! one store.

mod buckets;
mod clusters;
mod env;
mod replicas;

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};
use serde::Deserialize;

use self::buckets::open_bucket;
use self::replicas::{COPIES, Remote, open_copy, open_replica};
use crate::database::{Database, Replica};
use crate::remote::{Cancel, Opening};
use crate::replica::LocalCopy;
use openkv_core::model::{
    Advertised, BUSY_TIMEOUT_MS_DEFAULT, Backup, Capabilities, Capability, Encoding, Error, Key,
    Kind, PageMemory, Result,
};
use openkv_engines::BUCKET_SCHEMES;
use openkv_engines::bucket::{LeadMode, Timing};
use openkv_engines::memory::MemoryEngine;
use openkv_engines::postgres::{PostgresEngine, Server};
use openkv_engines::sqlite::{SqliteEngine, agree};
use openkv_store::{Store, on_file_thread};

pub use self::clusters::{cluster, of_cluster};
pub use self::env::{SetClock, system};
pub use self::replicas::LeaderAccess;

/// The database to open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A new database in memory.
    Memory,
    /// A file, by absolute path.
    File {
        /// The path; its directory is created if it is missing.
        path: PathBuf,
        /// Whether writes are refused.
        readonly: bool,
        /// Longest wait for other processes while opening.
        busy: Duration,
        /// The encoding of values in a new file: `Cbor`, or `V8` for Deno. It must match that of an
        /// existing file, if given.
        encoding: Option<Encoding>,
        /// Memory for its pages, which all handles of this process on it share.
        memory: PageMemory,
    },
    /// A database on a server of PostgreSQL.
    Postgres {
        /// The server, the user with a password, and the name of the database.
        url: SecretUrl,
        /// Whether writes are refused.
        readonly: bool,
        /// Longest wait for a connection.
        busy: Duration,
        /// The encoding of values that the caller names; only `Cbor` is possible.
        encoding: Option<Encoding>,
        /// The local copy, if there is to be one.
        replica: Option<ReplicaTarget>,
    },
    /// A database in an object store.
    Bucket {
        /// Its URL, without credentials.
        url: String,
        /// The folder of the local copy; `None`: one that is removed at the end.
        cache: Option<PathBuf>,
        /// `auto`, `wait` or `never`: whether the process leads.
        lead: String,
        /// Whether reads of a process that does not lead may miss the newest commits.
        eventual: bool,
        /// The URL of this process for clients, if it is a server: it leads from its first write on.
        advertise: Option<String>,
        /// The encoding of values that the caller names; only `Cbor` is possible.
        encoding: Option<Encoding>,
        /// The access to the server that leads it, if writes go there.
        leader: Option<LeaderAccess>,
    },
    /// A remote database, served by KV Connect.
    Url {
        /// The URLs of the metadata exchange, each on a server of the same database.
        urls: Vec<String>,
        /// The access token.
        access_token: String,
        /// Longest time of opening and of every later call, with all their retries.
        timeout: Duration,
        /// Whether opening asks a server that does not answer again, until the timeout.
        retries: bool,
        /// The local copy, if there is to be one.
        replica: Option<ReplicaTarget>,
    },
}

/// A local copy of a database behind a URL.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicaTarget {
    /// Its file, by absolute path; `None`: memory.
    pub path: Option<PathBuf>,
    /// Longest wait for other processes while opening.
    pub busy: Duration,
    /// The beginnings of the keys that it has; empty: all keys.
    pub prefixes: Vec<Key>,
    /// How often the server is to tell its position.
    pub beat: Duration,
    /// What the server may tell clients about a server of the copy.
    pub advertised: Option<Advertised>,
}

/// A URL that may hold a password: its debug output holds nothing of it.
#[derive(Clone, PartialEq, Eq, Deserialize)]
pub struct SecretUrl(String);

impl SecretUrl {
    /// With further parameters.
    #[must_use]
    pub fn with_parameters(&self, parameters: &[(&str, &str)]) -> Self {
        let mut url = self.0.clone();
        for (name, value) in parameters {
            url.push(if url.contains('?') { '&' } else { '?' });
            let value = value.replace('%', "%25").replace('&', "%26").replace('#', "%23");
            url.extend([name, "=", value.as_str()]);
        }
        Self(url)
    }

    /// Whether it is the URL of a place in an object store.
    #[must_use]
    pub fn is_of_bucket(&self) -> bool {
        let scheme = self.0.split_once("://").map(|(scheme, _)| scheme.to_ascii_lowercase());
        scheme.is_some_and(|scheme| BUCKET_SCHEMES.contains(&scheme.as_str()))
    }
}

impl From<String> for SecretUrl {
    fn from(url: String) -> Self {
        Self(url)
    }
}

impl std::fmt::Debug for SecretUrl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretUrl")
    }
}

/// The stores of this process and what their handles agree on.
static STORES: LazyLock<Mutex<Stores>> = LazyLock::new(Mutex::default);

/// The stores by identity. An entry of one that was dropped without [`close`] stays until as many others were added.
#[derive(Default)]
struct Stores {
    opened: HashMap<StoreIdentity, Opened>,
    /// The identities by the addresses of the stores.
    identities: HashMap<usize, StoreIdentity>,
    /// How many entries there are when those of dropped stores are removed next.
    swept_at: usize,
}

impl Stores {
    fn insert(&mut self, identity: StoreIdentity, store: &Arc<Store>, agreed: Agreed) {
        if self.opened.len() >= self.swept_at {
            self.opened.retain(|_, (store, _)| store.strong_count() > 0);
            let opened = &self.opened;
            self.identities.retain(|address, identity| {
                opened.get(identity).is_some_and(|(store, _)| store.as_ptr().addr() == *address)
            });
            self.swept_at = 2 * self.opened.len() + 1;
        }
        self.identities.insert(Arc::as_ptr(store).addr(), identity.clone());
        self.opened.insert(identity, (Arc::downgrade(store), agreed));
    }

    /// Removes the store at an address, which closes. Returns its identity, if it has one.
    fn remove(&mut self, address: usize) -> Option<StoreIdentity> {
        let identity = self.identities.remove(&address)?;
        // Another store may have been opened in its place.
        if self.opened.get(&identity).is_some_and(|(known, _)| known.as_ptr().addr() == address) {
            self.opened.remove(&identity);
        }
        Some(identity)
    }
}

/// The stores that are closing, by number, with their identities if they have any.
static CLOSING: Mutex<BTreeMap<u64, Option<StoreIdentity>>> = Mutex::new(BTreeMap::new());

/// Notified whenever one of [`CLOSING`] is closed.
static CLOSED: Condvar = Condvar::new();

/// A store and what its handles agree on.
type Opened = (Weak<Store>, Agreed);

/// The options that all handles on a store share: the encoding of its values, the memory for its pages.
type Agreed = (Encoding, PageMemory);

/// The identity of an open database: two paths or URLs with the same identity share a store.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum StoreIdentity {
    File {
        path: PathBuf,
        /// The identity of the file at the path: a file that is deleted and created again is another.
        file: Option<(u64, u64)>,
        readonly: bool,
    },
    Postgres {
        /// The identity of the server and its user.
        server: String,
        name: String,
        readonly: bool,
    },
    Bucket {
        /// The URL, with the parameters that choose the store.
        url: String,
        /// Those that do not.
        timing: Timing,
        cache: Option<PathBuf>,
        lead: LeadMode,
        eventual: bool,
        advertise: Option<String>,
    },
}

impl StoreIdentity {
    fn of(path: &Path, readonly: bool) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let file = file_number(&path);
        Some(Self::File { path, file, readonly })
    }
}

#[cfg(unix)]
fn file_number(path: &Path) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;
    path.metadata().ok().map(|found| (found.dev(), found.ino()))
}

#[cfg(not(unix))]
fn file_number(_path: &Path) -> Option<(u64, u64)> {
    None
}

/// Opens a database, or joins the store that this process already has on it.
///
/// # Errors
/// As [`SqliteEngine::open`], [`Client::open`](crate::remote::Client::open) and `PostgresEngine::open`; `Unavailable` if the
/// directory cannot be created.
pub fn open(target: &Target) -> Result<Database> {
    open_unless(target, Cancel::default())
}

/// As [`open`], with a signal that cancels the opening of a remote database, or of one in an object store. Other
/// databases ignore it.
///
/// # Errors
/// As [`open`]; `Closed` when cancelled.
#[tracing::instrument(level = "debug", skip_all)]
pub fn open_unless(target: &Target, cancel: Cancel) -> Result<Database> {
    match target {
        Target::Memory => start(MemoryEngine::new(), false).map(Database::Store),
        Target::File { path, readonly, busy, encoding, memory } => {
            open_file(path, *readonly, *busy, *encoding, *memory).map(Database::Store)
        }
        Target::Postgres { url, readonly, busy, encoding, replica } => {
            if *encoding == Some(Encoding::V8) {
                Capabilities::POSTGRES.require(Capability::V8Values)?;
            }
            let store = open_postgres(&url.0, *readonly, *busy)?;
            let Some(replica) = replica else { return Ok(Database::Store(store)) };
            let urls = std::slice::from_ref(&url.0);
            let copy = open_copy(urls, replica, None, |copy, prefixes, beat| {
                LocalCopy::start_in_process(copy, store.clone(), prefixes, beat)
            })?;
            Ok(Database::Replica(Arc::new(Replica { copy, primary: Database::Store(store) })))
        }
        Target::Bucket { url, cache, lead, eventual, advertise, encoding, leader } => {
            if *encoding == Some(Encoding::V8) {
                Capabilities::BUCKET.require(Capability::V8Values)?;
            }
            let how = (cache.clone(), lead.as_str(), *eventual, advertise.as_deref());
            open_bucket(url, how, leader.as_ref(), cancel)
        }
        Target::Url { urls, access_token, timeout, retries, replica } => {
            let remote = Remote { urls, access_token, timeout: *timeout };
            match replica {
                Some(replica) => open_replica(&remote, *retries, replica, cancel),
                None => {
                    let opening = if *retries { Opening::Retried } else { Opening::Once };
                    remote.client(opening, cancel).map(Database::Remote)
                }
            }
        }
    }
}

/// Sets how many databases in files this process keeps open; see [`openkv_engines::set_open_max`].
pub fn set_open_max(max: usize) {
    openkv_engines::set_open_max(max);
}

/// Opens a new database in memory, whose time is that of a clock.
///
/// # Errors
/// `Unavailable` if no thread can be started.
pub fn open_memory(clock: Arc<SetClock>) -> Result<Database> {
    let store = Store::start(MemoryEngine::new(), clock, false)?;
    Ok(Database::Store(Arc::new(store)))
}

fn open_file(
    path: &Path,
    readonly: bool,
    busy: Duration,
    wanted: Option<Encoding>,
    memory: PageMemory,
) -> Result<Arc<Store>> {
    wait_closed_at(path);
    let named =
        |error: Error| Error::new(error.kind(), format!("{}: {}", path.display(), error.message()));
    if let Some((store, (encoding, used))) = joined(path, readonly) {
        agree(encoding, wanted).and_then(|_| memory.join(used)).map_err(named)?;
        return Ok(store);
    }
    if !readonly && let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|error| cannot("create the directory", directory, &error))?;
    }
    let engine = SqliteEngine::open_as(path, readonly, busy, wanted)?.with_memory(memory);
    let encoding = engine.encoding();
    let identity = || {
        let vanished = || Error::unavailable(format!("{} has vanished", path.display()));
        StoreIdentity::of(path, readonly).ok_or_else(vanished)
    };
    let (store, (_, used)) = start_once(identity, (encoding, memory), || start(engine, readonly))?;
    memory.join(used).map_err(named)?;
    Ok(store)
}

/// The error of an operation on a file or directory.
pub fn cannot(what: &str, path: &Path, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::PermissionDenied => Kind::Denied,
        _ => Kind::Unavailable,
    };
    Error::new(kind, format!("cannot {what} {}: {error}", path.display()))
}

/// Starts a store, unless another thread has opened it meanwhile.
fn start_once(
    identity: impl FnOnce() -> Result<StoreIdentity>,
    agreed: Agreed,
    start: impl FnOnce() -> Result<Arc<Store>>,
) -> Result<(Arc<Store>, Agreed)> {
    let mut stores = STORES.lock();
    let identity = identity()?;
    if let Some(opened) = opened(&stores, &identity) {
        return Ok(opened);
    }
    let store = start()?;
    stores.insert(identity, &store, agreed);
    Ok((store, agreed))
}

/// The open store with this identity.
fn opened(stores: &Stores, identity: &StoreIdentity) -> Option<(Arc<Store>, Agreed)> {
    let (store, agreed) = stores.opened.get(identity)?;
    Some((store.upgrade()?, *agreed))
}

fn open_postgres(url: &str, readonly: bool, busy: Duration) -> Result<Arc<Store>> {
    let (server, name) = Server::parse(url)?;
    let identity = |readonly| StoreIdentity::Postgres {
        server: server.identity().to_owned(),
        name: name.clone(),
        readonly,
    };
    wait_closed_where(|known| [true, false].into_iter().any(|ro| *known == identity(ro)));
    if let Some((store, _)) = opened(&STORES.lock(), &identity(readonly)) {
        return Ok(store);
    }
    let reached = if readonly { server.clone().for_reading() } else { server.clone() };
    let engine = PostgresEngine::open(&reached, &name, readonly, busy)?;
    let env = engine.env(system());
    let start = || Store::start(engine, env, readonly).map(Arc::new);
    let agreed = (Encoding::Cbor, PageMemory::default());
    start_once(|| Ok(identity(readonly)), agreed, start).map(|(store, _)| store)
}

/// The SQL that creates the tables of databases on PostgreSQL.
#[must_use]
pub fn postgres_schema() -> String {
    openkv_engines::postgres::script()
}

/// Makes the replica in a file a database of its own; see [`SqliteEngine::promote`].
///
/// # Errors
/// As [`SqliteEngine::promote`]; `Unavailable` for a file that is not there, or is open in this process.
pub fn promote(path: &Path) -> Result<()> {
    wait_closed_at(path);
    let named = |what: &str| Error::unavailable(format!("{}: {what}", path.display()));
    let place = path.canonicalize().map_err(|error| named(&error.to_string()))?;
    let copies = COPIES.lock();
    if copies.get(&place).is_some_and(|(copy, _)| copy.strong_count() > 0) {
        return Err(named("the replica is open in this process: close it first"));
    }
    SqliteEngine::promote(path, Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT))
}

/// Copies a backup to `to`, which must not be open; see [`openkv_engines::sqlite::restore`].
pub fn restore(
    from: &Path,
    to: &Path,
    replace: bool,
    step: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Backup> {
    wait_closed_at(to);
    let open = [false, true].iter().any(|readonly| joined(to, *readonly).is_some());
    if open {
        let message = "is open in this process: close it first";
        return Err(Error::unavailable(format!("{} {message}", to.display())));
    }
    openkv_engines::sqlite::restore(from, to, replace, step)
}

/// Removes the unfinished copies for `to` that ended processes have left.
pub fn remove_copies(to: &Path) {
    openkv_engines::sqlite::remove_abandoned(to);
}

/// Closes a handle's share of a database; `closed` is called once its settlements are durable. If it
/// was the last one, another thread completes the submitted work, closes the database and then
/// calls `closed`. A later opening of the file waits for that.
pub fn close(database: Database, closed: impl FnOnce() + Send + 'static) {
    let store = match database {
        Database::Store(store) => store,
        Database::Remote(client) => return client.acknowledged(Box::new(closed)),
        Database::Replica(replica) => return close_replica(replica, closed),
        Database::Led(led) => {
            let (store, leader) = (led.store.clone(), led.leader.clone());
            drop(led);
            let closed: Box<dyn FnOnce() + Send> =
                Box::new(move || leader.acknowledged(Box::new(closed)));
            return close(Database::Store(store), closed);
        }
    };
    let mut closed: Option<Box<dyn FnOnce() + Send>> = Some(Box::new(closed));
    // A concurrent opening finds either the store or its closing.
    let mut stores = STORES.lock();
    // The last owner of the store may drop it meanwhile: then the closing store calls back.
    if Arc::strong_count(&store) > 1
        && let Some(closed) = closed.take()
    {
        store.acknowledged(closed);
    }
    // Taken out of its `Arc`, the store has another address.
    let address = Arc::as_ptr(&store).addr();
    let Some(store) = Arc::into_inner(store) else {
        drop(stores);
        return closed.into_iter().for_each(|closed| closed());
    };
    let closing = Closing::begin(stores.remove(address));
    drop(stores);
    let job = move |store| {
        drop(store);
        drop(closing);
        closed.into_iter().for_each(|closed| closed());
    };
    on_file_thread(store, job, close_here);
}

/// As [`close`], for a replica: its store may have to end a transaction.
fn close_replica(replica: Arc<Replica>, closed: impl FnOnce() + Send + 'static) {
    let place = COPIES.lock().iter().find_map(|(path, (copy, _))| {
        let same = copy.as_ptr() == Arc::as_ptr(&replica.copy);
        same.then(|| path.clone())
    });
    let closing = Closing::begin(place.and_then(|path| StoreIdentity::of(&path, false)));
    let job = move |replica: Arc<Replica>| {
        // A read under way keeps the copy, and then the primary, for a moment longer.
        let primary = Arc::into_inner(replica).map(|Replica { copy, primary }| {
            if let Some(copy) = Arc::into_inner(copy) {
                copy.close();
            }
            primary
        });
        drop(closing);
        match primary {
            Some(primary) => close(primary, closed),
            None => closed(),
        }
    };
    on_file_thread(replica, job, close_here);
}

/// Closes a database on this thread, because no other can be started.
fn close_here<T>(database: T, error: Error) {
    tracing::warn!(%error, "starting a thread that closes a database");
    drop(database);
}

/// Waits until all stores that are closing now are closed, at most this long.
pub fn wait_closed(longest: Duration) {
    let deadline = Instant::now() + longest;
    let mut closing = CLOSING.lock();
    let last = closing.keys().next_back().copied().unwrap_or(0);
    while closing.range(..=last).next().is_some() {
        if CLOSED.wait_until(&mut closing, deadline).timed_out() {
            return;
        }
    }
}

/// Marks a store as closing until it is dropped.
struct Closing(u64);

impl Closing {
    fn begin(identity: Option<StoreIdentity>) -> Self {
        let mut closing = CLOSING.lock();
        let number = closing.keys().next_back().map_or(1, |last| last + 1);
        closing.insert(number, identity);
        Self(number)
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        CLOSING.lock().remove(&self.0);
        CLOSED.notify_all();
    }
}

/// Waits for closing stores on a file, because their submitted work comes first.
fn wait_closed_at(path: &Path) {
    if CLOSING.lock().is_empty() {
        return;
    }
    let own = [true, false].map(|readonly| StoreIdentity::of(path, readonly));
    wait_closed_where(|known| own.iter().flatten().any(|own| own == known));
}

/// Waits for closing stores at identities that `is_it` accepts.
fn wait_closed_where(is_it: impl Fn(&StoreIdentity) -> bool) {
    let mut closing = CLOSING.lock();
    while !closing.is_empty() {
        if !closing.values().flatten().any(&is_it) {
            return;
        }
        CLOSED.wait(&mut closing);
    }
}

fn joined(path: &Path, readonly: bool) -> Option<(Arc<Store>, Agreed)> {
    opened(&STORES.lock(), &StoreIdentity::of(path, readonly)?)
}

fn start(engine: impl openkv_engines::Engine, readonly: bool) -> Result<Arc<Store>> {
    Store::start(engine, system(), readonly).map(Arc::new)
}
