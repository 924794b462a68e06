//! All databases of a server, by name and by UUID: that of a file, those of a folder, or those that
//! several servers share.

mod databases;
mod naming;
mod tokens;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use hyper::StatusCode;
use parking_lot::{Mutex, RwLock};
use uuid::{Builder, Uuid};

use databases::Databases;
use naming::{check_name, id_of, make_token};

use super::answer::Refusal;
use super::archive_policy::ArchivePolicy;
use super::auth::{self, AccessToken, Rights, TokenHash};
use super::clock::now_ms;
use super::database::{Database, Description};
use super::downloads::remove_left;
use super::location::Location;
use super::membership::Membership;
use super::memory::ServerMemory;
use super::options::{Plan, Quotas, ServedPath};
use super::read_folder::PrimaryFolder;
use super::read_server::Primary;
use super::records::{Change, Contents, Record, write_page};
use super::registry::Registry;
use openkv_core::model::{CATALOG_TRIES_MAX, CLOSINGS_AT_ONCE, DATABASES_MAX, Error, Result};

/// The authorization of a change to one database. It is checked again when the change is made,
/// because the token may be revoked, or the name reused, while the body arrives.
#[derive(Clone, Debug)]
pub(super) enum Requester {
    /// By the server's admin token.
    Server,
    /// By an admin token of this database.
    Own(Uuid, TokenHash),
}

impl Requester {
    /// Fails if this is another database, or the token was revoked.
    pub(super) fn still(&self, database: &Database) -> Result<(), Refusal> {
        match self {
            Self::Server => Ok(()),
            Self::Own(id, hash) if database.id == *id => match database.token(hash) {
                Some((Rights::Admin, _)) => Ok(()),
                _ => Err(Refusal::wrong_token()),
            },
            Self::Own(..) => Err(Refusal::wrong_token()),
        }
    }
}

/// The place of the list of databases.
enum Keeper {
    /// In the options: it never changes.
    Options,
    Folder(Registry),
    Cluster(Arc<Membership>),
    /// At the primary of a read server.
    Primary(Arc<PrimaryFolder>),
}

impl Keeper {
    fn location(&self, id: Uuid) -> Result<Location, Refusal> {
        match self {
            Self::Options | Self::Primary(_) => Err(Refusal::not_found()),
            Self::Folder(registry) => {
                Ok(Location::File { path: registry.file_of(id), readonly: false })
            }
            Self::Cluster(members) => {
                Ok(Location::Shared { members: members.clone(), name: id.to_string() })
            }
        }
    }
}

/// The databases of a server.
pub(super) struct Catalog {
    keeper: Keeper,
    databases: RwLock<Databases>,
    /// The tokens of the server, which may read its metrics.
    tokens: RwLock<Vec<AccessToken>>,
    memory: ServerMemory,
    /// The admin token, which has the rights of an admin's of each database.
    admin: Option<TokenHash>,
    /// Whether clients need no token.
    open: bool,
    /// Held during a change of the registry.
    changing: Mutex<()>,
    turn: AtomicUsize,
}

/// The name of a file's only database.
const ONLY: &str = "";

impl Catalog {
    pub(super) fn open(plan: &Plan) -> Result<Self> {
        let memory = ServerMemory::new();
        let admin = plan.admin_token.as_deref().map(TokenHash::of);
        let (keeper, contents) = match &plan.served {
            ServedPath::Folder(folder) => {
                let (registry, contents) = Registry::open(folder)?;
                (Keeper::Folder(registry), contents)
            }
            ServedPath::Cluster { engine, advertise, cache } => {
                let cluster = openkv_client::open::cluster(engine, false)?;
                let members = Membership::new(cluster, engine, advertise, cache.as_deref())?;
                (Keeper::Cluster(members), Contents::default())
            }
            ServedPath::Replicas { folder, of, token, advertised } => {
                let (advertised, memory) = (advertised.clone(), memory.clone());
                let folder = PrimaryFolder::new(of, token, folder, advertised, memory)?;
                (Keeper::Primary(folder), Contents::default())
            }
            ServedPath::Replica { path, of, target } => {
                let primary = Primary::open(of, target)?;
                let database = Database::new(Description {
                    name: ONLY.into(),
                    // Requests have the UUID of their token.
                    id: primary.id().unwrap_or_default(),
                    created_ms: 0,
                    location: Location::Replica { path: path.clone(), primary },
                    tokens: Vec::new(),
                    admin: None,
                    open: false,
                    quotas: Quotas::default(),
                    archive: None,
                    memory: memory.share(),
                });
                return Ok(Self::of_one(database, memory, false));
            }
            ServedPath::File { path, readonly, tokens, quotas } => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                let token = |id: &str, rights, token: &String| {
                    let (id, hash) = (id.to_owned(), TokenHash::of(token));
                    AccessToken { id, rights, hash, created_ms: 0 }
                };
                let read = tokens.read.iter().map(|of| token("readToken", Rights::Read, of));
                let write = tokens.write.iter().map(|of| token("accessToken", Rights::Write, of));
                let database = Database::new(Description {
                    name: ONLY.into(),
                    id: id_of(&path),
                    created_ms: 0,
                    location: Location::File { path, readonly: *readonly },
                    tokens: read.chain(write).collect(),
                    admin: None,
                    open: plan.open,
                    quotas: *quotas,
                    archive: None,
                    memory: memory.share(),
                });
                if !readonly && let Some(path) = database.file() {
                    remove_left(path);
                }
                // Opened now, so that an unusable file fails the start and not the first request.
                database.store()?;
                return Ok(Self::of_one(database, memory, plan.open));
            }
        };
        let (databases, changing) = (RwLock::default(), Mutex::default());
        let turn = AtomicUsize::new(0);
        let open = plan.open;
        let tokens = RwLock::default();
        let catalog = Self { keeper, databases, tokens, memory, admin, open, changing, turn };
        catalog.take(contents).map_err(|refusal| Error::internal(refusal.text()))?;
        catalog.refresh()?;
        Ok(catalog)
    }

    fn of_one(database: Arc<Database>, memory: ServerMemory, open: bool) -> Self {
        let databases = RwLock::<Databases>::default();
        databases.write().insert(database);
        let (changing, turn) = (Mutex::default(), AtomicUsize::new(0));
        let (keeper, tokens) = (Keeper::Options, RwLock::default());
        Self { keeper, databases, tokens, memory, admin: None, open, changing, turn }
    }

    /// The primary of a read server, and its only database.
    pub(super) fn replica(&self) -> Option<(Arc<Database>, Arc<Primary>)> {
        let database = self.by_name(ONLY)?;
        let primary = database.primary()?.clone();
        Some((database, primary))
    }

    /// The databases of the primary, if this is a read server of a folder.
    pub(super) fn primary_folder(&self) -> Option<&Arc<PrimaryFolder>> {
        match &self.keeper {
            Keeper::Options | Keeper::Folder(_) | Keeper::Cluster(_) => None,
            Keeper::Primary(folder) => Some(folder),
        }
    }

    /// The dropped databases that are remembered.
    pub(super) fn dropped(&self) -> Vec<Uuid> {
        match &self.keeper {
            Keeper::Options | Keeper::Cluster(_) | Keeper::Primary(_) => Vec::new(),
            Keeper::Folder(registry) => registry.dropped(),
        }
    }

    /// A number that differs from call to call.
    pub(super) fn next_turn(&self) -> usize {
        self.turn.fetch_add(1, Ordering::Relaxed)
    }

    /// The other servers, if there can be some.
    pub(super) fn members(&self) -> Option<&Arc<Membership>> {
        match &self.keeper {
            Keeper::Options | Keeper::Folder(_) | Keeper::Primary(_) => None,
            Keeper::Cluster(members) => Some(members),
        }
    }

    /// The time for tokens: all servers have the same one.
    pub(super) fn now_ms(&self) -> i64 {
        self.members().map_or_else(now_ms, |members| members.now_ms())
    }

    /// Takes the catalog that the servers share, if another one has changed it.
    pub(super) fn refresh(&self) -> Result<()> {
        let _changing = self.changing.lock();
        self.refresh_locked().map_err(|refusal| Error::unavailable(refusal.text()))
    }

    /// The result of `find`. Without one, the server refreshes the shared catalog and tries again.
    ///
    /// # Errors
    /// `Unavailable` if it cannot be read.
    pub(super) async fn find<T>(&self, find: impl Fn() -> Option<T>) -> Result<Option<T>> {
        match (find(), self.members()) {
            (None, Some(members)) => {
                members.catalog.refresh().await?;
                Ok(find())
            }
            (found, _) => Ok(found),
        }
    }

    /// Makes the list of databases that of this moment.
    pub(super) async fn make_current(&self) -> Result<()> {
        self.find(|| None::<()>).await.map(drop)
    }

    fn refresh_locked(&self) -> Result<(), Refusal> {
        let Some(members) = self.members() else { return Ok(()) };
        let (revision, contents) = members.read_catalog()?;
        self.take(contents)?;
        members.has_taken(revision);
        Ok(())
    }

    /// Replaces the list of databases, and the tokens of the server. Databases that are there already keep
    /// their state.
    fn take(&self, contents: Contents) -> Result<(), Refusal> {
        let Contents { databases: records, tokens } = contents;
        *self.tokens.write() = tokens;
        let mut known = self.databases.read().by_id.clone();
        let mut taken = Databases::default();
        for Record { name, id, created_ms, tokens, quotas, archive } in records {
            let database = match known.remove(&id) {
                Some(database) => {
                    database.set_quotas(quotas);
                    database.set_tokens(tokens);
                    database.set_archive_policy(archive);
                    database
                }
                None => {
                    let (location, memory) = (self.keeper.location(id)?, self.memory.share());
                    Database::new(Description {
                        name,
                        id,
                        created_ms,
                        location,
                        tokens,
                        admin: self.admin,
                        open: self.open,
                        quotas,
                        archive,
                        memory,
                    })
                }
            };
            taken.insert(database);
        }
        *self.databases.write() = taken;
        // Those that are left are gone, also if another database has their name by now.
        for database in known.values() {
            database.close();
            database.remove_copy();
        }
        Ok(())
    }

    /// Another server leads a database from now on: streams that need the leader end.
    pub(super) fn leader_changed(&self, name: &str) {
        let id = Uuid::try_parse(name).ok();
        if let Some(database) = id.and_then(|id| self.by_id(id)) {
            database.changed.send_replace(());
        }
    }

    /// Looks at the open databases of a place that does not tell leaders by itself.
    pub(super) fn tend_leads(&self) {
        for database in self.all() {
            database.tend_lead();
        }
    }

    /// Keeps the change that `decide` makes, before it is made here. It is called again if another server has changed
    /// the catalog meanwhile. The caller holds [`Catalog::changing`].
    fn keep(&self, mut decide: impl FnMut() -> Result<Change, Refusal>) -> Result<(), Refusal> {
        for _ in 0..CATALOG_TRIES_MAX {
            self.refresh_locked()?;
            let change = decide()?;
            let whole = || {
                let databases = self.databases.read().by_name.values().map(record_of).collect();
                let mut contents = Contents { databases, tokens: self.tokens() };
                contents.apply([change.clone()]);
                contents
            };
            match &self.keeper {
                Keeper::Options | Keeper::Primary(_) => return Err(Refusal::not_found()),
                Keeper::Folder(registry) => return Ok(registry.keep(&change, whole)?),
                Keeper::Cluster(members) if members.write_catalog(&write_page(whole())?)? => {
                    return Ok(());
                }
                Keeper::Cluster(_) => {}
            }
        }
        Err(Error::unavailable("other servers keep changing the catalog; try again").into())
    }

    /// Whether clients need no token.
    pub(super) fn is_open(&self) -> bool {
        self.open
    }

    /// Whether databases have names, and are created and dropped.
    pub(super) fn is_folder(&self) -> bool {
        !matches!(self.keeper, Keeper::Options)
    }

    pub(super) fn by_name(&self, name: &str) -> Option<Arc<Database>> {
        match &self.keeper {
            Keeper::Primary(folder) => folder.known(name),
            Keeper::Options | Keeper::Folder(_) | Keeper::Cluster(_) => {
                self.databases.read().by_name.get(name).cloned()
            }
        }
    }

    /// The database with a name. Those of several servers have their UUIDs as names too, which programs read that open
    /// them at their place.
    pub(super) fn named(&self, name: &str) -> Option<Arc<Database>> {
        let by_id = || match &self.keeper {
            Keeper::Cluster(_) => self.by_id(Uuid::try_parse(name).ok()?),
            Keeper::Options | Keeper::Folder(_) | Keeper::Primary(_) => None,
        };
        self.by_name(name).or_else(by_id)
    }

    pub(super) fn by_id(&self, id: Uuid) -> Option<Arc<Database>> {
        self.databases.read().by_id.get(&id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Database>> {
        match &self.keeper {
            Keeper::Primary(folder) => folder.all(),
            Keeper::Options | Keeper::Folder(_) | Keeper::Cluster(_) => self.databases.read().all(),
        }
    }

    /// As [`Databases::page`], of the databases that this server has itself.
    pub(super) fn page(&self, prefix: &str, after: &str, limit: usize) -> Vec<Arc<Database>> {
        self.databases.read().page(prefix, after, limit)
    }

    /// Creates a database with a first admin token, which only this answer shows.
    pub(super) fn create(
        &self,
        name: &str,
        quotas: Quotas,
    ) -> Result<(Arc<Database>, String), Refusal> {
        if !self.is_folder() {
            return Err(Refusal::not_found());
        }
        check_name(name)?;
        let _changing = self.changing.lock();
        let (token, record) = make_token(Rights::Admin)?;
        let id = Builder::from_random_bytes(auth::random()?).into_uuid();
        let database = Database::new(Description {
            name: name.to_owned(),
            id,
            created_ms: self.now_ms(),
            location: self.keeper.location(id)?,
            tokens: vec![record],
            admin: self.admin,
            open: self.open,
            quotas,
            archive: None,
            memory: self.memory.share(),
        });
        database.allows_quotas(&quotas)?;
        let mut opened = false;
        let kept = self.keep(|| {
            if self.by_name(name).is_some() {
                let text = format!("There is a database '{name}' already.");
                return Err(Refusal::new(StatusCode::CONFLICT, text));
            }
            if self.databases.read().by_name.len() >= DATABASES_MAX {
                let text = format!("Too many databases (max {DATABASES_MAX}).");
                return Err(Refusal::new(StatusCode::CONFLICT, text));
            }
            opened = true;
            database.store_for_client()?;
            Ok(Change::Set(record_of(&database)))
        });
        if let Err(refusal) = kept {
            if opened {
                database.destroy();
            }
            return Err(refusal);
        }
        self.databases.write().insert(database.clone());
        tracing::info!(database = name, id = %database.id, "database created");
        Ok((database, token))
    }

    /// Drops a database and removes its files. Waits for running requests. `before_removal` is called when no
    /// client finds it any more.
    pub(super) fn drop_database(
        &self,
        name: &str,
        before_removal: impl FnOnce(&Database),
    ) -> Result<(), Refusal> {
        let database = {
            let _changing = self.changing.lock();
            let mut dropped = None;
            self.keep(|| {
                let gone = self.by_name(name).ok_or_else(|| no_database(name))?;
                let change = Change::Drop(gone.id);
                dropped = Some(gone);
                Ok(change)
            })?;
            self.databases.write().remove(name);
            dropped.ok_or_else(|| no_database(name))?
        };
        before_removal(&database);
        if let Keeper::Folder(registry) = &self.keeper {
            registry.note_dropped(database.id);
        }
        database.destroy();
        tracing::info!(database = name, id = %database.id, "database dropped");
        Ok(())
    }

    /// Changes the record of a database, in the registry first.
    fn change(
        &self,
        name: &str,
        requester: &Requester,
        mut change: impl FnMut(&mut Record) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        if !self.is_folder() {
            return Err(Refusal::not_found());
        }
        let _changing = self.changing.lock();
        let mut changed = None;
        self.keep(|| {
            let database = self.by_name(name).ok_or_else(|| no_database(name))?;
            requester.still(&database)?;
            let mut new = record_of(&database);
            change(&mut new)?;
            database.allows_quotas(&new.quotas)?;
            changed = Some((database, new.clone()));
            Ok(Change::Set(new))
        })?;
        if let Some((database, Record { tokens, quotas, archive, .. })) = changed {
            database.set_tokens(tokens);
            database.set_quotas(quotas);
            database.set_archive_policy(archive);
        }
        Ok(())
    }

    pub(super) fn set_quotas(&self, name: &str, new: Quotas) -> Result<(), Refusal> {
        self.change(name, &Requester::Server, |record| {
            record.quotas = new;
            Ok(())
        })
    }

    /// Sets or removes the policy of archives of a database.
    pub(super) fn set_archive(
        &self,
        name: &str,
        policy: Option<&ArchivePolicy>,
    ) -> Result<(), Refusal> {
        self.change(name, &Requester::Server, |record| {
            record.archive = policy.cloned();
            Ok(())
        })
    }

    /// Closes all databases.
    pub(super) fn close(&self) {
        // Each gives its lead back as it is closed, which may take a request.
        let all = self.all();
        let threads = all.len().min(CLOSINGS_AT_ONCE);
        let left = Mutex::new(all);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                let left = &left;
                scope.spawn(move || {
                    loop {
                        // The lock is free while one is closed.
                        let Some(database) = left.lock().pop() else { return };
                        database.close();
                    }
                });
            }
        });
        match &self.keeper {
            Keeper::Options => {}
            Keeper::Primary(folder) => folder.close(),
            Keeper::Folder(registry) => registry.unlock(),
            Keeper::Cluster(members) => members.end(),
        }
    }
}

/// The record of a database in the catalog.
fn record_of(database: &Arc<Database>) -> Record {
    Record {
        name: database.name.clone(),
        id: database.id,
        created_ms: database.created_ms,
        tokens: database.tokens(),
        quotas: database.quotas(),
        archive: database.archive_policy(),
    }
}

pub(super) fn no_database(name: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("There is no database '{name}'."))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that had not heard of the drop before the name was used again kept the streams and the
    /// store of the dropped database.
    #[test]
    fn a_dropped_database_is_closed_though_its_name_is_used_again() {
        let folder = tempfile::TempDir::new().unwrap();
        let (registry, _) = Registry::open(folder.path()).unwrap();
        let catalog = Catalog {
            open: false,
            admin: None,
            keeper: Keeper::Folder(registry),
            databases: RwLock::default(),
            tokens: RwLock::default(),
            memory: ServerMemory::new(),
            changing: Mutex::default(),
            turn: AtomicUsize::new(0),
        };
        let (_, token) = make_token(Rights::Read).unwrap();
        let issued_for = token.hash.fingerprint();
        let take = |id| {
            let id = Builder::from_random_bytes([id; 16]).into_uuid();
            let (tokens, quotas) = (vec![token.clone()], Quotas::default());
            let (name, archive) = ("shop".into(), None);
            let record = Record { name, id, created_ms: 0, tokens, quotas, archive };
            let contents = Contents { databases: vec![record], tokens: Vec::new() };
            catalog.take(contents).unwrap();
            catalog.by_name("shop").unwrap()
        };
        let first = take(1);
        assert!(Arc::ptr_eq(&first, &take(1)) && first.has_token(issued_for));
        let second = take(2);
        assert!(second.has_token(issued_for) && !first.has_token(issued_for));
    }
}
