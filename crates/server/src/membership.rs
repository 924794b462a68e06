//! What a server knows of the other servers at one place, PostgreSQL or an object store: the catalog they share, who
//! leads each database, and their common clock if there is one.

use std::collections::HashMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use parking_lot::{Condvar, Mutex, RwLock};

use super::auth;
use super::catalog_refresh::CatalogRefresh;
use super::clock::now_ms;
use super::pending::BUSY;
use super::records::{Contents, read_page};
use super::registry::lock;
use openkv_client::open::{SecretUrl, Target, of_cluster};
use openkv_core::model::{Error, Result};
use openkv_engines::cluster::{Cluster, ClusterProperties};

/// The changes since the last poll.
pub(super) struct Changes {
    /// Whether the catalog has.
    pub(super) catalog: bool,
    /// Databases that another server leads from now on, by their names at the place.
    pub(super) led_by_others: Vec<String>,
}

/// The place of this server among others.
pub(super) struct Membership {
    cluster: Box<dyn Cluster>,
    engine: SecretUrl,
    /// The URL of this server for clients, which is its name among the leaders.
    advertise: String,
    /// The folder of its copies of the databases, where the place has them.
    cache: Option<PathBuf>,
    /// Excludes other servers from that folder.
    lock: Option<File>,
    properties: ClusterProperties,
    /// The revision of the catalog that this server has.
    revision: AtomicI64,
    /// The leaders' URLs by database, as of the last poll.
    leaders: RwLock<HashMap<String, String, RandomState>>,
    /// How far the clock of the place is ahead of this machine's, in ms.
    ahead_ms: AtomicI64,
    ended: Mutex<bool>,
    ends: Condvar,
    /// For requests that would be refused without.
    pub(super) catalog: CatalogRefresh,
}

impl Membership {
    /// A server that has not polled yet.
    ///
    /// # Errors
    /// `Unavailable` if another server has the folder `cache`.
    pub(super) fn new(
        cluster: Box<dyn Cluster>,
        engine: &SecretUrl,
        advertise: &str,
        cache: Option<&Path>,
    ) -> Result<Arc<Self>> {
        let (cache, lock) = cache.map(own_folder).transpose()?.unzip();
        Ok(Arc::new(Self {
            properties: cluster.properties(),
            cluster,
            cache,
            lock,
            engine: engine.clone(),
            advertise: advertise.to_owned(),
            revision: AtomicI64::new(0),
            leaders: RwLock::default(),
            ahead_ms: AtomicI64::new(0),
            ended: Mutex::new(false),
            ends: Condvar::new(),
            catalog: CatalogRefresh::default(),
        }))
    }

    /// The key of all servers for the tokens of the data path.
    pub(super) fn signing_key(&self) -> Result<[u8; 32]> {
        let key = self.cluster.signing_key(&auth::random()?)?;
        key.try_into().map_err(|_| {
            Error::corrupt("the catalog of the servers: the signing key has no 32 bytes")
        })
    }

    /// How this server opens a database, which it leads under its own URL.
    ///
    /// # Errors
    /// `Unsupported` for an engine that this build is without.
    pub(super) fn target_of(&self, name: &str) -> Result<Target> {
        of_cluster(&self.engine, name, &self.advertise, self.cache.as_deref(), BUSY)
    }

    /// What differs from place to place.
    pub(super) fn properties(&self) -> &ClusterProperties {
        &self.properties
    }

    /// The folder of the copies of databases.
    pub(super) fn cache(&self) -> Option<&Path> {
        self.cache.as_deref()
    }

    /// The time of the place, by this machine's clock. Its servers agree on it. Without a clock of the place it is
    /// this machine's time.
    pub(super) fn now_ms(&self) -> i64 {
        now_ms() + self.ahead_ms.load(Ordering::Relaxed)
    }

    /// The URL of another server that leads a database, as of the last poll.
    pub(super) fn known_leader(&self, name: &str) -> Option<String> {
        self.leaders.read().get(name).filter(|leader| **leader != self.advertise).cloned()
    }

    /// The URL of another server that leads a database at present. Waits for the place.
    pub(super) fn leader(&self, name: &str) -> Result<Option<String>> {
        let leader = self.cluster.leader_of(name)?;
        let mut leaders = self.leaders.write();
        match &leader {
            Some(leader) => leaders.insert(name.to_owned(), leader.clone()),
            None => leaders.remove(name),
        };
        drop(leaders);
        Ok(leader.filter(|leader| *leader != self.advertise))
    }

    /// The catalog, and its revision.
    pub(super) fn read_catalog(&self) -> Result<(i64, Contents)> {
        let catalog = self.cluster.catalog()?;
        let contents = match catalog.text.as_slice() {
            [] => Contents::default(),
            text => read_page(text, "the catalog of the servers")?,
        };
        Ok((catalog.revision, contents))
    }

    /// Notes which revision of the catalog this server has.
    pub(super) fn has_taken(&self, revision: i64) {
        self.revision.store(revision, Ordering::Release);
    }

    /// Replaces the catalog that this server has. `false` if another server has changed it.
    pub(super) fn write_catalog(&self, text: &[u8]) -> Result<bool> {
        let revision = self.revision.load(Ordering::Acquire);
        let replaced = self.cluster.replace_catalog(revision, text)?;
        if replaced {
            self.has_taken(revision + 1);
        }
        Ok(replaced)
    }

    /// Deletes the data of a database that the catalog does not list any more, once all servers have
    /// taken that from it.
    pub(super) fn destroy(&self, name: &str) -> Result<()> {
        std::thread::sleep(2 * self.poll_interval());
        self.cluster.empty(name)
    }

    /// Waits for some time; `false` once the server ends.
    pub(super) fn wait(&self, longest: Duration) -> bool {
        let mut ended = self.ended.lock();
        if !*ended {
            self.ends.wait_for(&mut ended, longest);
        }
        !*ended
    }

    /// The time between two polls.
    pub(super) fn poll_interval(&self) -> Duration {
        Duration::from_millis(self.properties.poll_ms)
    }

    /// One cluster poll: asks the place what has changed.
    pub(super) fn poll(&self) -> Result<Changes> {
        let polled = self.cluster.poll()?;
        if let Some(at_ms) = polled.now_ms {
            self.ahead_ms.store(at_ms - now_ms(), Ordering::Relaxed);
        }
        let leaders: HashMap<_, _, RandomState> = polled.leaders.into_iter().collect();
        let before = std::mem::replace(&mut *self.leaders.write(), leaders.clone());
        let is_new = |(name, leader): &(&String, &String)| {
            **leader != self.advertise && before.get(*name) != Some(*leader)
        };
        let led_by_others = leaders.iter().filter(is_new).map(|(name, _)| name.clone()).collect();
        let catalog = polled.revision != self.revision.load(Ordering::Acquire);
        Ok(Changes { catalog, led_by_others })
    }

    /// Ends each [`Membership::wait`], and gives the folder of the copies to another server.
    pub(super) fn end(&self) {
        *self.ended.lock() = true;
        self.ends.notify_all();
        if let Some(lock) = &self.lock
            && let Err(error) = lock.unlock()
        {
            tracing::warn!(%error, "unlocking the cache; the lock ends with the process");
        }
    }
}

/// Takes a folder for the copies of one server.
fn own_folder(folder: &Path) -> Result<(PathBuf, File)> {
    lock(folder).map_err(|error| {
        let why = format!("cache: {}: name a folder that only this server uses", error.message());
        Error::new(error.kind(), why)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::CLUSTER_POLL_MS;
    use openkv_engines::cluster::{ClusterDatabase, ClusterPoll, SharedCatalog};

    const HOUR_MS: i64 = 3_600_000;
    const OWN: &str = "https://a.example";

    /// A database server whose clock is an hour ahead.
    #[derive(Clone)]
    struct Fake(Arc<Mutex<ClusterPoll>>);

    impl Cluster for Fake {
        fn properties(&self) -> ClusterProperties {
            ClusterProperties {
                place: "it",
                poll_ms: CLUSTER_POLL_MS,
                polls_leaders: true,
                measures_bytes: false,
                has_one_log: true,
            }
        }

        fn signing_key(&self, fresh: &[u8; 32]) -> Result<Vec<u8>> {
            Ok(fresh.to_vec())
        }

        fn catalog(&self) -> Result<SharedCatalog> {
            Ok(SharedCatalog { revision: self.0.lock().revision, text: Vec::new() })
        }

        fn poll(&self) -> Result<ClusterPoll> {
            Ok(ClusterPoll { now_ms: Some(now_ms() + HOUR_MS), ..self.0.lock().clone() })
        }

        fn replace_catalog(&self, revision: i64, _text: &[u8]) -> Result<bool> {
            let mut polled = self.0.lock();
            let is_newest = polled.revision == revision;
            polled.revision += i64::from(is_newest);
            Ok(is_newest)
        }

        fn leader_of(&self, database: &str) -> Result<Option<String>> {
            let polled = self.0.lock();
            let led = polled.leaders.iter().find(|(name, _)| name == database);
            Ok(led.map(|(_, leader)| leader.clone()))
        }

        fn empty(&self, _database: &str) -> Result<()> {
            Ok(())
        }

        fn databases(&self, _served: &[String]) -> Result<Vec<ClusterDatabase>> {
            Ok(Vec::new())
        }
    }

    fn member() -> (Arc<Membership>, Fake) {
        let polled = ClusterPoll { revision: 0, now_ms: None, leaders: Vec::new() };
        let fake = Fake(Arc::new(Mutex::new(polled)));
        let engine = SecretUrl::from("postgres://h/d?sslmode=disable".to_owned());
        (Membership::new(Box::new(fake.clone()), &engine, OWN, None).unwrap(), fake)
    }

    #[test]
    fn servers_have_the_time_of_the_database_server() {
        let (member, _) = member();
        member.poll().unwrap();
        let ahead_ms = member.now_ms() - now_ms();
        assert!((HOUR_MS - 60_000..=HOUR_MS).contains(&ahead_ms), "{ahead_ms}");
    }

    #[test]
    fn another_leader_is_reported_once_and_known_at_any_time() {
        let (member, fake) = member();
        let lead = |leader: &str| fake.0.lock().leaders = vec![("shop".into(), leader.into())];
        let led_by_others = || member.poll().unwrap().led_by_others;
        lead(OWN);
        assert!(led_by_others().is_empty() && member.known_leader("shop").is_none());
        lead("https://b.example");
        assert!(member.known_leader("shop").is_none());
        assert_eq!(member.leader("shop"), Ok(Some("https://b.example".into())));
        assert_eq!(member.known_leader("shop"), Some("https://b.example".into()));
        lead("https://c.example");
        assert_eq!(led_by_others(), ["shop"]);
        assert!(led_by_others().is_empty());
        fake.0.lock().leaders.clear();
        assert_eq!(member.leader("shop"), Ok(None));
        assert!(member.known_leader("shop").is_none());
    }

    #[test]
    fn a_catalog_that_another_server_has_changed_is_not_replaced() {
        let (member, fake) = member();
        assert_eq!(member.write_catalog(b"one"), Ok(true));
        assert!(!member.poll().unwrap().catalog, "its own change is no change");
        assert_eq!(fake.replace_catalog(1, b"of another"), Ok(true));
        assert_eq!(member.write_catalog(b"two"), Ok(false));
        assert!(member.poll().unwrap().catalog);
        let (revision, contents) = member.read_catalog().unwrap();
        assert!(contents.databases.is_empty());
        member.has_taken(revision);
        assert_eq!(member.write_catalog(b"two"), Ok(true));
    }

    #[test]
    fn a_database_is_opened_under_its_name_and_that_of_the_server() {
        let (member, _) = member();
        let expected = "postgres://h/d?sslmode=disable&kv=x&lead=https://a.example";
        let target = member.target_of("x").unwrap();
        let Target::Postgres { url, readonly: false, .. } = target else { panic!("{target:?}") };
        assert!(url == SecretUrl::from(expected.to_owned()));
    }
}
