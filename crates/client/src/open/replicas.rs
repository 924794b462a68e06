//! Databases behind URLs, and the replicas of this process.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Duration;

use parking_lot::Mutex;

use super::{ReplicaTarget, cannot, system, wait_closed_at};
use crate::database::{Database, Replica};
use crate::remote::{Cancel, Client, Opening, Servers};
use crate::replica::{LocalCopy, nothing_copied, require_log};
use openkv_core::model::{Error, Key, Kind, Result};
use openkv_engines::memory::MemoryEngine;
use openkv_engines::sqlite::SqliteEngine;
use openkv_store::Store;

/// The access to the server that leads a database in an object store.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaderAccess {
    /// The access token.
    pub token: String,
    /// Longest time of a call, with all its retries.
    pub timeout: Duration,
}

/// A database behind URLs.
pub(super) struct Remote<'a> {
    pub(super) urls: &'a [String],
    pub(super) access_token: &'a str,
    pub(super) timeout: Duration,
}

impl Remote<'_> {
    pub(super) fn client(&self, opening: Opening, cancel: Cancel) -> Result<Arc<Client>> {
        let at = (Servers::At(self.urls), self.access_token);
        Client::open(at, (self.timeout, opening), system(), cancel)
    }
}

/// Opens a remote database with a replica. If the server cannot be reached, the replica goes on from its
/// complete copy; without one, opening asks again if it `retries`.
pub(super) fn open_replica(
    remote: &Remote<'_>,
    retries: bool,
    target: &ReplicaTarget,
    cancel: Cancel,
) -> Result<Database> {
    let joined = |client, unreached: Option<&Error>| {
        // The replica goes on when this handle is closed and others are not.
        let copy = open_copy(remote.urls, target, unreached, |copy, prefixes, beat| {
            let client = remote.client(Opening::Later, Cancel::default())?;
            LocalCopy::start(copy, client, (prefixes, beat), target.advertised.clone(), unreached)
        })?;
        Ok(Database::Replica(Arc::new(Replica { copy, primary: Database::Remote(client) })))
    };
    let reached = |client: Arc<Client>| require_log(&client).and_then(|()| joined(client, None));
    let unreached = match remote.client(Opening::Once, cancel.clone()) {
        Ok(client) => return reached(client),
        Err(error) if error.kind() == Kind::Unavailable => error,
        Err(error) => return Err(error),
    };
    let without = joined(remote.client(Opening::Later, cancel.clone())?, Some(&unreached));
    match without {
        Err(error) if retries && error.kind() == Kind::Unavailable => {
            let unreached = |error: Error| match error.kind() {
                Kind::Unavailable => nothing_copied(&error),
                _ => error,
            };
            reached(remote.client(Opening::Retried, cancel).map_err(unreached)?)
        }
        without => without,
    }
}

/// The replicas of this process in files, each with the URLs that it follows.
pub(super) static COPIES: LazyLock<Mutex<Copies>> = LazyLock::new(Mutex::default);

pub(super) type Copies = HashMap<PathBuf, (Weak<LocalCopy>, Vec<String>)>;

/// Opens a replica, or joins the one that this process already has in its file. With `unreached`, only one
/// that has a complete copy.
pub(super) fn open_copy(
    urls: &[String],
    target: &ReplicaTarget,
    unreached: Option<&Error>,
    start: impl FnOnce(Store, Vec<Key>, Duration) -> Result<Arc<LocalCopy>>,
) -> Result<Arc<LocalCopy>> {
    let ReplicaTarget { path, busy, prefixes, beat, advertised: _ } = target;
    let is_there = path.as_ref().is_some_and(|path| path.exists());
    if let Some(error) = unreached
        && !is_there
    {
        return Err(nothing_copied(error));
    }
    let Some(path) = path else {
        let store = Store::start_copy(MemoryEngine::new(), system())?;
        return start(store, prefixes.clone(), *beat);
    };
    wait_closed_at(path);
    let mut copies = COPIES.lock();
    copies.retain(|_, (copy, _)| copy.strong_count() > 0);
    let place = || path.canonicalize().unwrap_or_else(|_| path.clone());
    if let Some((copy, of)) = copies.get(&place())
        && let Some(copy) = copy.upgrade()
    {
        if of.as_slice() != urls || copy.prefixes() != prefixes.as_slice() {
            return Err(Error::invalid(format!(
                "{} is open in this process as a replica of another URL, or with other prefixes: name another \
                 file, or close that handle first",
                path.display()
            )));
        }
        return match unreached {
            Some(error) if !copy.has_copy() => Err(nothing_copied(error)),
            _ => Ok(copy),
        };
    }
    if let Some(directory) = path.parent() {
        std::fs::create_dir_all(directory)
            .map_err(|error| cannot("create the directory", directory, &error))?;
    }
    let store = Store::start_copy(SqliteEngine::open_copy(path, *busy)?, system())?;
    let copy = start(store, prefixes.clone(), *beat)?;
    copies.insert(place(), (Arc::downgrade(&copy), urls.to_vec()));
    Ok(copy)
}
