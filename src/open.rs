//! The composition root: from a path or URL and options to a database; all handles on a
//! file share one store.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock, Weak};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use parking_lot::Mutex;

use crate::backend::Database;
use crate::engine;
use crate::engine::memory::MemoryEngine;
use crate::engine::sqlite::{SqliteEngine, agree};
use crate::model::{Encoding, Env, Error, Kind, Result};
use crate::remote::{Abandon, Client};
use crate::store::Store;

/// What is to be opened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// A database of its own in memory.
    Memory,
    /// A file, by absolute path.
    File {
        /// Where it is; its directory is created if need be.
        path: PathBuf,
        /// Whether it must not be written.
        readonly: bool,
        /// Longest wait for other processes while opening.
        busy: Duration,
        /// The format of a new file's values, and of any other's: `Cbor`, or `V8`, for Deno.
        encoding: Option<Encoding>,
    },
    /// A database elsewhere, that a server offers by KV Connect.
    Url {
        /// The URL of its metadata exchange.
        url: String,
        /// What shows who asks.
        access_token: String,
        /// Longest time of opening and of every later call, with all their retries.
        timeout: Duration,
    },
}

/// The machine's clock and random numbers.
struct System {
    seeds: RandomState,
    drawn: std::sync::atomic::AtomicU64,
}

impl Env for System {
    fn now_ms(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.ok().and_then(|now| i64::try_from(now.as_millis()).ok()).unwrap_or(0)
    }

    fn random(&self) -> u64 {
        // Keyed hashes of a counter: the keys come from the operating system.
        self.seeds.hash_one(self.drawn.fetch_add(1, std::sync::atomic::Ordering::Relaxed))
    }
}

/// The stores of this process and the formats of their values, by file.
static STORES: LazyLock<Mutex<HashMap<Place, Opened>>> = LazyLock::new(Mutex::default);

/// A store, and how its file's values are encoded.
type Opened = (Weak<Store>, Encoding);

/// What makes two paths the same open database.
#[derive(Clone, PartialEq, Eq, Hash)]
struct Place {
    path: PathBuf,
    /// Which file stands at the path: a deleted and recreated one is another.
    file: Option<(u64, u64)>,
    readonly: bool,
}

impl Place {
    fn of(path: &Path, readonly: bool) -> Option<Self> {
        let path = path.canonicalize().ok()?;
        let file = file_number(&path);
        Some(Self { path, file, readonly })
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
/// As [`SqliteEngine::open`] and [`Client::open`]; `Unavailable` if the directory cannot be created.
pub fn open(target: &Target) -> Result<Database> {
    open_unless(target, Abandon::default())
}

/// As [`open`], of what somebody else may abandon: only a database elsewhere takes notice.
///
/// # Errors
/// As [`open`]; `Closed` when it was abandoned.
#[tracing::instrument(level = "debug", skip_all)]
pub fn open_unless(target: &Target, abandon: Abandon) -> Result<Database> {
    match target {
        Target::Memory => start(MemoryEngine::new(), false).map(Database::Store),
        Target::File { path, readonly, busy, encoding } => {
            open_file(path, *readonly, *busy, *encoding).map(Database::Store)
        }
        Target::Url { url, access_token, timeout } => {
            Client::open(url, access_token, *timeout, system(), abandon).map(Database::Remote)
        }
    }
}

fn open_file(
    path: &Path,
    readonly: bool,
    busy: Duration,
    wanted: Option<Encoding>,
) -> Result<Arc<Store>> {
    if let Some((store, encoding)) = joined(path, readonly) {
        let named = |error: Error| {
            Error::new(error.kind(), format!("{}: {}", path.display(), error.message()))
        };
        agree(encoding, wanted).map_err(named)?;
        return Ok(store);
    }
    if !readonly && let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory).map_err(|error| {
            let kind = match error.kind() {
                std::io::ErrorKind::PermissionDenied => Kind::Denied,
                _ => Kind::Unavailable,
            };
            Error::new(
                kind,
                format!("cannot create the directory {}: {error}", directory.display()),
            )
        })?;
    }
    let engine = SqliteEngine::open_as(path, readonly, busy, wanted)?;
    let encoding = engine.encoding();
    let mut stores = STORES.lock();
    let Some(place) = Place::of(path, readonly) else {
        return Err(Error::new(Kind::Unavailable, format!("{} has vanished", path.display())));
    };
    // Another thread may have opened it meanwhile.
    if let Some(store) = stores.get(&place).and_then(|(store, _)| store.upgrade()) {
        return Ok(store);
    }
    let store = start(engine, readonly)?;
    stores.retain(|_, (store, _)| store.strong_count() > 0);
    stores.insert(place, (Arc::downgrade(&store), encoding));
    Ok(store)
}

/// Puts a copy of a backup at `to`, which nobody has open; see [`engine::sqlite::restore`].
///
/// # Errors
/// As that.
pub fn restore(
    from: &Path,
    to: &Path,
    replace: bool,
    step: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<engine::Backup> {
    let open = [false, true].iter().any(|readonly| joined(to, *readonly).is_some());
    if open {
        let message = "is open in this process: close it first";
        return Err(Error::new(Kind::Unavailable, format!("{} {message}", to.display())));
    }
    engine::sqlite::restore(from, to, replace, step)
}

fn joined(path: &Path, readonly: bool) -> Option<(Arc<Store>, Encoding)> {
    let place = Place::of(path, readonly)?;
    let stores = STORES.lock();
    let (store, encoding) = stores.get(&place)?;
    Some((store.upgrade()?, *encoding))
}

fn start(engine: impl crate::engine::Engine, readonly: bool) -> Result<Arc<Store>> {
    Store::start(engine, system(), readonly).map(Arc::new)
}

fn system() -> Arc<dyn Env> {
    Arc::new(System { seeds: RandomState::new(), drawn: 0.into() })
}
