//! What a server knows of the other servers in front of one PostgreSQL: the catalog they share, who
//! leads each database, and their common clock.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use foldhash::fast::RandomState;
use parking_lot::{Condvar, Mutex, RwLock};

use super::auth;
use super::clock::now_ms;
use super::records::{Record, read_page};
use crate::engine::cluster::Cluster;
use crate::model::{CLUSTER_POLL_MS, Error, Result};
use crate::open::{SecretUrl, cluster};

/// What has changed since the last news.
pub(super) struct Changes {
    /// Whether the catalog has.
    pub(super) catalog: bool,
    /// Databases that another server leads from now on, by their names on the database server.
    pub(super) led_by_others: Vec<String>,
}

/// The place of this server among others.
pub(super) struct Membership {
    cluster: Box<dyn Cluster>,
    engine: SecretUrl,
    /// The URL of this server for clients, which is its name among the leaders.
    advertise: String,
    /// The revision of the catalog that this server has.
    revision: AtomicI64,
    /// The leaders' URLs by database, as of the last poll.
    leaders: RwLock<HashMap<String, String, RandomState>>,
    /// How far the clock of the database server is ahead of this machine's, in ms.
    ahead_ms: AtomicI64,
    ended: Mutex<bool>,
    ends: Condvar,
}

impl Membership {
    /// Connects to the database server.
    ///
    /// # Errors
    /// As [`cluster`].
    pub(super) fn join(engine: &SecretUrl, advertise: &str) -> Result<Arc<Self>> {
        Ok(Arc::new(Self {
            cluster: cluster(engine, false)?,
            engine: engine.clone(),
            advertise: advertise.to_owned(),
            revision: AtomicI64::new(0),
            leaders: RwLock::default(),
            ahead_ms: AtomicI64::new(0),
            ended: Mutex::new(false),
            ends: Condvar::new(),
        }))
    }

    /// The key of all servers for the tokens of the data path.
    pub(super) fn signing_key(&self) -> Result<[u8; 32]> {
        let key = self.cluster.signing_key(&auth::random()?)?;
        key.try_into()
            .map_err(|_| Error::corrupt("openkv.cluster: the signing key has no 32 bytes"))
    }

    /// The URL of a database on the database server, which this server leads under its own URL.
    pub(super) fn url_of(&self, name: &str) -> SecretUrl {
        self.engine.with_parameters(&[("kv", name), ("lead", &self.advertise)])
    }

    /// The time of the database server, by this machine's clock. Its servers agree on it.
    pub(super) fn now_ms(&self) -> i64 {
        now_ms() + self.ahead_ms.load(Ordering::Relaxed)
    }

    /// The URL of another server that leads a database, as of the last poll.
    pub(super) fn known_leader(&self, name: &str) -> Option<String> {
        self.leaders.read().get(name).filter(|leader| **leader != self.advertise).cloned()
    }

    /// The URL of another server that leads a database at present. Waits for the database server.
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
    pub(super) fn read_catalog(&self) -> Result<(i64, Vec<Record>)> {
        let catalog = self.cluster.catalog()?;
        let records = match catalog.text.as_slice() {
            [] => Vec::new(),
            text => read_page(text, "the catalog in openkv.cluster")?,
        };
        Ok((catalog.revision, records))
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
        std::thread::sleep(Duration::from_millis(2 * CLUSTER_POLL_MS));
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

    /// Asks the database server for news.
    pub(super) fn take_news(&self) -> Result<Changes> {
        let news = self.cluster.news()?;
        self.ahead_ms.store(news.now_ms - now_ms(), Ordering::Relaxed);
        let leaders: HashMap<_, _, RandomState> = news.leaders.into_iter().collect();
        let before = std::mem::replace(&mut *self.leaders.write(), leaders.clone());
        let is_new = |(name, leader): &(&String, &String)| {
            **leader != self.advertise && before.get(*name) != Some(*leader)
        };
        let led_by_others = leaders.iter().filter(is_new).map(|(name, _)| name.clone()).collect();
        let catalog = news.revision != self.revision.load(Ordering::Acquire);
        Ok(Changes { catalog, led_by_others })
    }

    /// Ends each [`Membership::wait`].
    pub(super) fn end(&self) {
        *self.ended.lock() = true;
        self.ends.notify_all();
    }
}
