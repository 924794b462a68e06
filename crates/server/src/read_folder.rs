//! The databases of a primary with a folder, each with a replica of its own here.
//!
//! Duty: which databases there are, and which of their replicas are open.
//! Invariant: a replica is opened only for a client that its primary has admitted, or to be advertised. The
//! files of one are removed only when the primary itself says that it has dropped that database.
//! Never: more than [`READ_SERVER_COPIES_MAX`] open replicas; the end of a replica that a request uses.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::StatusCode;
use parking_lot::Mutex;
use tokio::sync::{Mutex as Turn, Semaphore};
use tokio::time::{Instant, sleep};
use url::Url;
use uuid::Uuid;

use super::answer::Refusal;
use super::database::{Database, Description};
use super::location::{Location, remove_file};
use super::memory::ServerMemory;
use super::options::{Quotas, replica_target};
use super::read_server::{Http, Primary, PrimaryClient, Unanswered};
use super::records::is_name;
use super::registry::{is_served, lock};
use openkv_core::model::{
    Advertised, Error, READ_SERVER_CATALOG_MS, READ_SERVER_COPIES_MAX, READ_SERVER_REQUESTS_MAX,
    Result,
};
use openkv_wire::connect::versions::Version;

/// The databases of a primary.
pub(super) struct PrimaryFolder {
    /// The URL of the primary; it ends with a slash.
    url: Url,
    /// The admin token of the primary.
    token: String,
    folder: PathBuf,
    advertised: Option<Advertised>,
    lock: File,
    client: PrimaryClient,
    http: Arc<Http>,
    memory: ServerMemory,
    copies: Mutex<BTreeMap<String, Kept>>,
    /// Held by requests about unknown names.
    asking: Semaphore,
    /// Held while a replica is opened, so that their number stays within its bound.
    opening: Turn<()>,
}

/// A known database.
struct Kept {
    database: Arc<Database>,
    primary: Arc<Primary>,
    used: Instant,
}

/// A database and where it is followed.
pub(super) type Known = (Arc<Database>, Arc<Primary>);

impl PrimaryFolder {
    /// Locks the folder of the replicas.
    ///
    /// # Errors
    /// `Denied` for a folder with databases of its own, `Unavailable` for one that another server uses.
    pub(super) fn new(
        url: &Url,
        token: &str,
        folder: &Path,
        advertised: Option<Advertised>,
        memory: ServerMemory,
    ) -> Result<Arc<Self>> {
        let (folder, lock) = lock(folder)?;
        if is_served(&folder) {
            return Err(Error::denied(format!(
                "{} has databases of its own, which a read server would not serve: name another folder. Nothing \
                 was changed",
                folder.display()
            )));
        }
        let mut url = url.clone();
        if !url.path().ends_with('/') {
            url.set_path(&format!("{}/", url.path()));
        }
        let http = Arc::new(Http::new()?);
        Ok(Arc::new(Self {
            client: PrimaryClient::new(http.clone(), &url),
            url,
            token: token.to_owned(),
            folder,
            advertised,
            lock,
            http,
            memory,
            copies: Mutex::default(),
            asking: Semaphore::new(READ_SERVER_REQUESTS_MAX),
            opening: Turn::default(),
        }))
    }

    /// The URL of the primary.
    pub(super) fn url(&self) -> &str {
        self.url.as_str().trim_end_matches('/')
    }

    /// Makes sure that the primary can be followed.
    ///
    /// # Errors
    /// `Denied` for a token that is not its admin's, `Invalid` for a server without a folder, `Unavailable`.
    pub(super) async fn check(&self) -> Result<()> {
        match self.client.catalog(&self.token).await {
            Ok(_) => Ok(()),
            Err(Unanswered::Refused) => Err(Error::denied(format!(
                "replicaToken is not the admin token of the server at {}: a read server of a whole folder needs \
                 that one",
                self.url()
            ))),
            Err(Unanswered::Unknown) => Err(Error::invalid(format!(
                "{} is not the root of a server with a folder of databases, or that is of an earlier version: give \
                 its root as replicaOf, or a file as path to follow the one database at this URL",
                self.url()
            ))),
            Err(Unanswered::Unreached(error)) => Err(error),
        }
    }

    /// A database that is known here.
    pub(super) fn known(&self, name: &str) -> Option<Arc<Database>> {
        self.copies.lock().get(name).map(|kept| kept.database.clone())
    }

    /// All databases that are known here.
    pub(super) fn all(&self) -> Vec<Arc<Database>> {
        self.copies.lock().values().map(|kept| kept.database.clone()).collect()
    }

    /// The database of this name. A name that is unknown here is looked up at the primary.
    ///
    /// # Errors
    /// That of an unknown token if the primary has no such database; `Unavailable`.
    pub(super) async fn by_name(self: &Arc<Self>, name: &str) -> Result<Known, Refusal> {
        if let Some(known) = self.used(name) {
            return Ok(known);
        }
        if !is_name(name) {
            return Err(Refusal::wrong_token());
        }
        let place = self.asking.acquire().await;
        let _place = place.map_err(|_| Error::closed())?;
        if let Some(known) = self.used(name) {
            return Ok(known);
        }
        let url = self.url.join(name).map_err(|error| Error::internal(error.to_string()))?;
        let client = PrimaryClient::new(self.http.clone(), &url);
        let metadata = client.metadata(&self.token, &Version::ALL, true).await?;
        let id = metadata.database;
        let primary = Primary::unopened(&url, client, &metadata)?;
        let database = Database::new(Description {
            name: name.to_owned(),
            id,
            created_ms: 0,
            location: Location::Replica { path: self.file_of(name, id), primary: primary.clone() },
            tokens: Vec::new(),
            open: false,
            admin: None,
            archive: None,
            quotas: Quotas::default(),
            memory: self.memory.share(),
        });
        // Another request may have opened it meanwhile.
        let mut copies = self.copies.lock();
        let kept = copies.entry(name.to_owned()).or_insert_with(|| {
            tokio::spawn(Primary::check_streams(Arc::downgrade(&primary)));
            Kept { database, primary, used: Instant::now() }
        });
        Ok((kept.database.clone(), kept.primary.clone()))
    }

    fn used(&self, name: &str) -> Option<Known> {
        let mut copies = self.copies.lock();
        let kept = copies.get_mut(name)?;
        kept.used = Instant::now();
        Some((kept.database.clone(), kept.primary.clone()))
    }

    /// The file of a replica: its name is for people, its UUID tells databases of one name apart.
    fn file_of(&self, name: &str, id: Uuid) -> PathBuf {
        self.folder.join(format!("{name}.{id}.sqlite3"))
    }

    /// Opens the replica of a database, if it is not open. Its primary has admitted a client to it.
    pub(super) async fn opened(&self, (database, primary): &Known) -> Result<(), Refusal> {
        if primary.is_open() {
            return Ok(());
        }
        let _turn = self.opening.lock().await;
        if primary.is_open() {
            return Ok(());
        }
        self.make_room(primary).await?;
        let path = self.file_of(&database.name, database.id);
        let advertised = self.advertised.as_ref().map(|of| Advertised {
            url: format!("{}/{}", of.url, database.name),
            region: of.region.clone(),
        });
        let target = replica_target(&primary.url(), self.token.clone(), path, advertised);
        let (opens, name) = (primary.clone(), database.name.clone());
        let opened = tokio::task::spawn_blocking(move || opens.open_copy(&target)).await;
        let opened = opened.map_err(|_| Error::internal("opening a replica ended by a panic"))?;
        opened.map_err(|error| {
            tracing::warn!(%error, database = name, "opening a replica");
            // A client of the read server cannot do anything about it; it reads at the primary.
            let why = database.without_path(&error);
            Error::unavailable(format!("the replica of this database cannot be opened: {why}"))
                .into()
        })
    }

    /// Closes the open replica that was used least recently and is not in use, if there are too many.
    async fn make_room(&self, wanted: &Arc<Primary>) -> Result<(), Refusal> {
        let victim = {
            let copies = self.copies.lock();
            let open: Vec<_> = copies.values().filter(|kept| kept.primary.is_open()).collect();
            if open.len() < READ_SERVER_COPIES_MAX {
                return Ok(());
            }
            let uses: Vec<_> = open.iter().map(|kept| (kept.is_idle(), kept.used)).collect();
            let victim = least_recent(&uses).and_then(|at| open.get(at));
            victim.map(|kept| kept.primary.clone())
        };
        let Some(victim) = victim.filter(|victim| !Arc::ptr_eq(victim, wanted)) else {
            let text = format!(
                "All {READ_SERVER_COPIES_MAX} replicas that this server may have open are in use: ask the \
                 primary, {}, or again later.",
                self.url()
            );
            return Err(Refusal::new(StatusCode::SERVICE_UNAVAILABLE, text).retry(5));
        };
        let closed = tokio::task::spawn_blocking(move || victim.close()).await;
        closed.map_err(|_| Error::internal("closing a replica ended by a panic").into())
    }

    /// Forgets a database whose name has become another one's.
    pub(super) async fn forget(&self, (database, _): &Known) {
        {
            let mut copies = self.copies.lock();
            let known = copies.get(&database.name);
            if known.is_some_and(|kept| Arc::ptr_eq(&kept.database, database)) {
                copies.remove(&database.name);
            }
        }
        let closing = database.clone();
        let _closed = tokio::task::spawn_blocking(move || closing.close()).await;
    }

    /// Asks for the databases of the primary at intervals: removes the replicas of dropped ones, and
    /// follows all that it can if it is advertised, since clients find it only where it follows.
    pub(super) async fn keep_up(self: Arc<Self>) {
        loop {
            match self.client.catalog(&self.token).await {
                Ok(catalog) => {
                    self.remove_dropped(&catalog.dropped).await;
                    if self.advertised.is_some() {
                        self.follow_all(&catalog.names).await;
                    }
                }
                Err(Unanswered::Unreached(error)) => {
                    tracing::debug!(%error, "asking for the databases of the primary");
                }
                Err(Unanswered::Refused | Unanswered::Unknown) => {
                    tracing::warn!(
                        "the primary refuses replicaToken: new databases are not followed"
                    );
                }
            }
            sleep(Duration::from_millis(READ_SERVER_CATALOG_MS)).await;
        }
    }

    async fn follow_all(self: &Arc<Self>, names: &[String]) {
        for name in names {
            let open = self.copies.lock().values().filter(|kept| kept.primary.is_open()).count();
            if open >= READ_SERVER_COPIES_MAX {
                return;
            }
            let is_open = |kept: &Kept| kept.primary.is_open();
            if self.copies.lock().get(name).is_some_and(is_open) {
                continue;
            }
            let opened = match self.by_name(name).await {
                Ok(known) => self.opened(&known).await,
                Err(refusal) => Err(refusal),
            };
            if let Err(refusal) = opened {
                tracing::debug!(why = refusal.text(), database = name, "following a database");
            }
        }
    }

    /// Removes the replicas of databases that the primary has dropped. A file that an opening at the same moment
    /// creates goes with the next call.
    async fn remove_dropped(&self, dropped: &BTreeSet<Uuid>) {
        let mut known = Vec::new();
        self.copies.lock().retain(|_, kept| {
            let is_dropped = dropped.contains(&kept.database.id);
            if is_dropped {
                known.push(kept.database.clone());
            }
            !is_dropped
        });
        let (folder, dropped) = (self.folder.clone(), dropped.clone());
        let removed = tokio::task::spawn_blocking(move || {
            for database in known {
                database.destroy();
            }
            for file in files_of(&folder, &dropped) {
                tracing::info!(file = %file.display(), "removing the replica of a dropped database");
                remove_file(&file);
            }
        });
        if removed.await.is_err() {
            tracing::error!("removing replicas ended by a panic; please report this");
        }
    }

    /// Closes all replicas, and releases the folder.
    pub(super) fn close(&self) {
        for database in self.all() {
            database.close();
        }
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, "unlocking the folder; the lock ends with the process");
        }
    }
}

impl Kept {
    /// Whether no request and no stream uses it.
    fn is_idle(&self) -> bool {
        Arc::strong_count(&self.database) == 1
    }
}

/// The place of the one that was used least recently among those that are idle.
fn least_recent(uses: &[(bool, Instant)]) -> Option<usize> {
    let idle = uses.iter().enumerate().filter(|(_, (is_idle, _))| *is_idle);
    idle.min_by_key(|(_, (_, used))| *used).map(|(at, _)| at)
}

/// The files of replicas of these databases, and those that SQLite puts beside them.
fn files_of(folder: &Path, databases: &BTreeSet<Uuid>) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let is_of_one = |file: &PathBuf| {
        let name = file.file_name().and_then(|name| name.to_str());
        let id = name.and_then(|name| name.rsplit_once(".sqlite3")?.0.rsplit_once('.'));
        id.and_then(|(_, id)| Uuid::try_parse(id).ok()).is_some_and(|id| databases.contains(&id))
    };
    files.map(|file| file.path()).filter(is_of_one).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_idle_one_that_was_used_least_recently_makes_room() {
        let now = Instant::now();
        let at = |s| now + Duration::from_secs(s);
        let uses = [(false, at(0)), (true, at(3)), (true, at(2)), (false, at(1))];
        assert_eq!(least_recent(&uses), Some(2));
        assert_eq!(least_recent(&[(false, at(0))]), None);
    }

    #[test]
    fn only_the_files_of_one_database_are_found() {
        let folder = tempfile::TempDir::new().unwrap();
        let id = |byte| uuid::Builder::from_random_bytes([byte; 16]).into_uuid();
        let of_first = ["", "-wal"].map(|end| format!("a.{}.sqlite3{end}", id(1)));
        let others = [format!("b.{}.sqlite3", id(2)), format!("{}", id(1)), "x.sqlite3".into()];
        for name in of_first.iter().chain(&others) {
            std::fs::write(folder.path().join(name), "").unwrap();
        }
        let mut found = files_of(folder.path(), &BTreeSet::from([id(1), id(3)]));
        found.sort();
        assert_eq!(found, of_first.map(|name| folder.path().join(name)));
    }
}
