//! What servers of databases in an object store share: one object with their catalog and the key of their tokens, and
//! the lease of each database.
//!
//! ```text
//! catalog.json                      the catalog; replaced if nobody else has replaced it meanwhile
//! databases/<id>/                   the objects of one database
//! databases/<id>/openkv-dropped.json    it was dropped, and is never created again
//! ```
//!
//! Invariant: a catalog is replaced only by one that was made from it. A database has a leader while its lease changes,
//! by the clock of the server that looks.
//! Never: a comparison of clocks, or an object of a program that is not openkv.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::location::{self, Location, SERVED};
use super::objects::{IDENTITY, LEASE, folder_lock, lease_at, unconditional};
use super::seen_lease::{SeenLease, state_of};
use crate::cluster::{Cluster, ClusterDatabase, ClusterPoll, ClusterProperties, SharedCatalog};
use crate::objects::{Created, Target, Version, Versioned};
use openkv_core::model::{BUCKET_CLUSTER_POLL_MS, BUCKET_LEADER_AGE_MS_MAX, Error, Kind, Result};

const CATALOG: &str = "catalog.json";
/// Excludes other processes while the catalog in a folder is replaced.
const CATALOG_LOCK: &str = "catalog.lock";
/// It keeps a server that has not heard of the drop from creating the database again.
const DROPPED: &str = "openkv-dropped.json";
const FORMAT: u32 = 1;
/// Listings of a dropped database, each of which may find what a server has created meanwhile.
const EMPTYINGS_MAX: usize = 5;

/// The content of `catalog.json`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct CatalogDocument {
    openkv: u32,
    revision: i64,
    /// Of the server that has replaced it: tells its own replacement from another one.
    change: String,
    /// 64 hexadecimal digits.
    signing_key: String,
    /// `None` before the first change.
    catalog: Option<Value>,
}

/// What a server has last seen of the leader of a database.
struct Led {
    seen: Arc<SeenLease>,
    last: Mutex<Option<(Instant, Option<String>)>>,
}

/// The shared state in one object store.
pub struct BucketCluster {
    url: String,
    target: Target,
    lease_ms: u64,
    led: Mutex<HashMap<String, Arc<Led>>>,
    /// The catalog of the last poll.
    polled: Mutex<Option<(Version, i64)>>,
}

impl BucketCluster {
    /// Reads the place. It creates nothing, except that without `readonly` it creates a folder.
    ///
    /// # Errors
    /// `Invalid` for a wrong URL and for a place with other objects; with `readonly` `Unavailable` if there is no
    /// catalog; `Unsupported` for a newer format; errors of the store.
    pub fn open(url: &str, readonly: bool) -> Result<Self> {
        let lease_ms = location::served_lease_ms(url)?;
        let Location { target, .. } = location::open(url, !readonly)?;
        let cluster = Self::over(url, target, lease_ms);
        cluster.check(readonly)?;
        Ok(cluster)
    }

    pub(super) fn over(url: &str, target: Target, lease_ms: u64) -> Self {
        let (led, polled) = (Mutex::default(), Mutex::default());
        Self { url: url.to_owned(), target, lease_ms, led, polled }
    }

    pub(super) fn check(&self, readonly: bool) -> Result<()> {
        match self.read()? {
            Some(_) => Ok(()),
            None => self.refuse_other_places(readonly),
        }
    }

    fn refuse_other_places(&self, readonly: bool) -> Result<()> {
        let name = self.target.name();
        if self.target.find(IDENTITY)?.is_some() {
            return Err(Error::invalid(format!(
                "{name} is one database, which openKv opens by this URL: name a path of its own for the databases of \
                 servers; nothing was changed"
            )));
        }
        if readonly {
            return Err(Error::unavailable(format!(
                "{name}: no server has used this place: start one with openkv serve --engine"
            )));
        }
        match self.target.any_but(CATALOG_LOCK)? {
            // Another server begins at the same time.
            None => Ok(()),
            Some(other) if other == CATALOG => Ok(()),
            Some(other) => Err(Error::invalid(format!(
                "{name} has other objects in it (for example {other}): name an empty path; nothing was changed"
            ))),
        }
    }

    fn read(&self) -> Result<Option<(CatalogDocument, Version)>> {
        let found = self.target.versioned(CATALOG)?;
        found.map(|(bytes, version)| Ok((self.document(&bytes)?, version))).transpose()
    }

    fn document(&self, bytes: &[u8]) -> Result<CatalogDocument> {
        #[derive(Deserialize)]
        struct Numbered {
            openkv: u32,
        }
        let name = self.target.name();
        let damaged =
            |_| Error::corrupt(format!("{name}/{CATALOG} is damaged, or of another program"));
        let Numbered { openkv } = serde_json::from_slice(bytes).map_err(damaged)?;
        if openkv > FORMAT {
            return Err(Error::unsupported(format!(
                "{name}/{CATALOG} has the format {openkv}, and this version of openkv knows {FORMAT} at most: update \
                 openkv"
            )));
        }
        serde_json::from_slice(bytes).map_err(damaged)
    }

    /// Replaces the catalog if it still has this version. Whether it had.
    fn put(&self, next: &CatalogDocument, version: &Version) -> Result<bool> {
        let is_there = || Ok(self.read()?.is_some_and(|(found, _)| found.change == next.change));
        match self.target.replace(CATALOG, bytes_of(next)?, Some(version)) {
            Ok(Some(_)) => Ok(true),
            // Also a request that was repeated after its answer was lost.
            Ok(None) => is_there(),
            Err(error) if error.kind() == Kind::Unavailable => match is_there() {
                Ok(true) => Ok(true),
                _ => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Checks that the store refuses to create what is there, and to replace what has changed.
    fn probe(&self, is_new: bool) -> Result<()> {
        let Some((found, version)) = self.read()? else {
            return Err(Error::unavailable(format!(
                "{}: a new object cannot be read; try again",
                self.target.name()
            )));
        };
        if self.target.create(CATALOG, bytes_of(&found)?)? == Created::New {
            return Err(unconditional(&self.target));
        }
        if !is_new || self.target.as_folder().is_some() {
            return Ok(());
        }
        let next = CatalogDocument { change: super::random()?, ..found };
        if self.put(&next, &version)?
            && self.target.replace(CATALOG, bytes_of(&next)?, Some(&version))?.is_some()
        {
            return Err(unconditional(&self.target));
        }
        Ok(())
    }

    fn led(&self, database: &str) -> Result<Arc<Led>> {
        if let Some(led) = self.led.lock().get(database) {
            return Ok(led.clone());
        }
        let identity = location::identity(&location::served(&self.url, database)?)?;
        let led = Arc::new(Led { seen: SeenLease::of(identity), last: Mutex::default() });
        Ok(self.led.lock().entry(database.to_owned()).or_insert(led).clone())
    }
}

fn bytes_of(document: &CatalogDocument) -> Result<Vec<u8>> {
    serde_json::to_vec(document).map_err(|error| Error::internal(error.to_string()))
}

fn folder_of(database: &str) -> String {
    format!("{SERVED}/{database}")
}

impl Cluster for BucketCluster {
    fn properties(&self) -> ClusterProperties {
        ClusterProperties {
            place: "the object store",
            poll_ms: BUCKET_CLUSTER_POLL_MS,
            polls_leaders: false,
            measures_bytes: true,
            has_one_log: false,
        }
    }

    fn signing_key(&self, fresh: &[u8; 32]) -> Result<Vec<u8>> {
        let signing_key = fresh.iter().map(|byte| format!("{byte:02x}")).collect();
        let first = CatalogDocument {
            openkv: FORMAT,
            revision: 0,
            change: super::random()?,
            signing_key,
            catalog: None,
        };
        let is_new = match self.read()? {
            Some(_) => false,
            None => self.target.create(CATALOG, bytes_of(&first)?)? == Created::New,
        };
        self.probe(is_new)?;
        let damaged =
            || Error::corrupt(format!("{}/{CATALOG}: the key is damaged", self.target.name()));
        let (found, _) = self.read()?.ok_or_else(damaged)?;
        let digits = found.signing_key.as_bytes().chunks(2);
        let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
        digits.map(|pair| byte(pair).ok_or_else(damaged)).collect()
    }

    fn catalog(&self) -> Result<SharedCatalog> {
        let Some((found, _)) = self.read()? else {
            return Ok(SharedCatalog { revision: 0, text: Vec::new() });
        };
        let text = found.catalog.as_ref().map(serde_json::to_vec).transpose();
        let text = text.map_err(|error| Error::internal(error.to_string()))?;
        Ok(SharedCatalog { revision: found.revision, text: text.unwrap_or_default() })
    }

    /// The leaders are those of the requested databases, as of then.
    fn poll(&self) -> Result<ClusterPoll> {
        let mut polled = self.polled.lock();
        let before = polled.as_ref().map(|(version, _)| version);
        match self.target.versioned_since(CATALOG, before)? {
            Versioned::Unchanged => {}
            Versioned::Absent => *polled = None,
            Versioned::Found(bytes, version) => {
                *polled = Some((version, self.document(&bytes)?.revision));
            }
        }
        let revision = polled.as_ref().map_or(0, |(_, revision)| *revision);
        drop(polled);
        let leader = |(database, led): (&String, &Arc<Led>)| {
            // The next poll reports one that a call is looking up.
            let last = led.last.try_lock()?;
            let (_, leader) = last.as_ref()?;
            Some((database.clone(), leader.clone()?))
        };
        let leaders = self.led.lock().iter().filter_map(leader).collect();
        Ok(ClusterPoll { revision, now_ms: None, leaders })
    }

    fn replace_catalog(&self, revision: i64, text: &[u8]) -> Result<bool> {
        let _locked = folder_lock(&self.target, CATALOG_LOCK)?;
        let Some((found, version)) = self.read()? else { return Ok(false) };
        if found.revision != revision {
            return Ok(false);
        }
        let catalog = serde_json::from_slice(text);
        let catalog = catalog.map_err(|error| Error::internal(error.to_string()))?;
        let (revision, change) = (revision + 1, super::random()?);
        self.put(&CatalogDocument { revision, change, catalog, ..found }, &version)
    }

    fn leader_of(&self, database: &str) -> Result<Option<String>> {
        let led = self.led(database)?;
        let mut last = led.last.lock();
        let recent = Duration::from_millis(BUCKET_LEADER_AGE_MS_MAX.min(self.lease_ms / 6));
        if let Some((at, leader)) = &*last
            && at.elapsed() < recent
        {
            return Ok(leader.clone());
        }
        let began = Instant::now();
        let found = lease_at(&self.target, &format!("{}/{LEASE}", folder_of(database)))?;
        let state = state_of(found.as_ref(), |_| false);
        let is_free = led.seen.may_claim(&state, (began, Instant::now()), self.lease_ms);
        let leader = found.filter(|_| !is_free).and_then(|found| found.lease.url);
        *last = Some((began, leader.clone()));
        Ok(leader)
    }

    fn empty(&self, database: &str) -> Result<()> {
        let folder = folder_of(database);
        let dropped = format!("{folder}/{DROPPED}");
        self.target.create(&dropped, b"{}".to_vec())?;
        self.led.lock().remove(database);
        for _ in 0..EMPTYINGS_MAX {
            let names = self.target.list(&folder)?.into_iter().map(|(name, _)| name);
            let left: Vec<_> = names.filter(|name| *name != dropped).collect();
            if left.is_empty() {
                return Ok(());
            }
            self.target.remove(&left)?;
        }
        Ok(())
    }

    fn databases(&self, served: &[String]) -> Result<Vec<ClusterDatabase>> {
        let database = |name: &String| {
            let lease = lease_at(&self.target, &format!("{}/{LEASE}", folder_of(name)))?;
            let holder = lease.map(|found| found.lease).filter(|lease| !lease.released);
            let leader = holder.map(|lease| (lease.url.unwrap_or(lease.name), None));
            Ok(ClusterDatabase { name: name.clone(), epoch: None, version: None, leader })
        };
        served.iter().map(database).collect()
    }
}
