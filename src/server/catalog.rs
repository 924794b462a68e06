//! All databases of a server, by name and by UUID: that of a file, or those of a folder.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use hyper::StatusCode;
use parking_lot::{Mutex, RwLock};
use sha2::{Digest, Sha256};
use uuid::{Builder, Uuid};

use super::answer::Refusal;
use super::auth::{self, Rights, TokenHash};
use super::database::{AccessToken, Database, Description};
use super::memory::ServerMemory;
use super::options::{Plan, Quotas, ServedPath};
use super::registry::Registry;
use crate::model::{ACCESS_TOKENS_MAX, DATABASE_NAME_CHARS_MAX, DATABASES_MAX, Result};

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

/// The databases of a server.
pub(super) struct Catalog {
    /// `None` for a file.
    registry: Option<Registry>,
    databases: RwLock<BTreeMap<String, Arc<Database>>>,
    memory: ServerMemory,
    /// Held during a change of the registry.
    changing: Mutex<()>,
}

/// The wall clock, in ms since the epoch.
pub(super) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.ok().and_then(|now| i64::try_from(now.as_millis()).ok()).unwrap_or(0)
}

/// The name of a file's only database.
const ONLY: &str = "";

impl Catalog {
    pub(super) fn open(plan: &Plan) -> Result<Self> {
        let memory = ServerMemory::new();
        let (registry, databases) = match &plan.served {
            ServedPath::Folder(folder) => {
                let (registry, databases) = Registry::open(folder, &memory)?;
                (Some(registry), databases)
            }
            ServedPath::File { path, readonly, tokens, quotas } => {
                let path = std::path::absolute(path).unwrap_or_else(|_| path.clone());
                let token = |id: &str, rights, token: &String| {
                    let (id, hash) = (id.to_owned(), TokenHash::of(token));
                    AccessToken { id, rights, hash, created_ms: 0 }
                };
                let read = tokens.read.iter().map(|of| token("readToken", Rights::Read, of));
                let write = token("accessToken", Rights::Write, &tokens.write);
                let database = Database::new(Description {
                    name: ONLY.into(),
                    id: id_of(&path),
                    created_ms: 0,
                    path,
                    readonly: *readonly,
                    tokens: read.chain([write]).collect(),
                    quotas: *quotas,
                    memory: memory.share(),
                });
                // Opened now, so that an unusable file fails the start and not the first request.
                database.store()?;
                (None, vec![database])
            }
        };
        let databases = databases.into_iter().map(|database| (database.name.clone(), database));
        let databases = RwLock::new(databases.collect());
        Ok(Self { registry, databases, memory, changing: Mutex::default() })
    }

    pub(super) fn is_folder(&self) -> bool {
        self.registry.is_some()
    }

    pub(super) fn by_name(&self, name: &str) -> Option<Arc<Database>> {
        self.databases.read().get(name).cloned()
    }

    pub(super) fn by_id(&self, id: Uuid) -> Option<Arc<Database>> {
        self.databases.read().values().find(|database| database.id == id).cloned()
    }

    pub(super) fn all(&self) -> Vec<Arc<Database>> {
        self.databases.read().values().cloned().collect()
    }

    /// Creates a database with a first admin token, which only this answer shows.
    pub(super) fn create(
        &self,
        name: &str,
        quotas: Quotas,
    ) -> Result<(Arc<Database>, String), Refusal> {
        let registry = self.registry.as_ref().ok_or_else(Refusal::not_found)?;
        check_name(name)?;
        let _changing = self.changing.lock();
        let count = self.databases.read().len();
        if self.by_name(name).is_some() {
            let text = format!("There is a database '{name}' already.");
            return Err(Refusal::new(StatusCode::CONFLICT, text));
        }
        if count >= DATABASES_MAX {
            let text = format!("Too many databases (max {DATABASES_MAX}).");
            return Err(Refusal::new(StatusCode::CONFLICT, text));
        }
        let (token, record) = make_token(Rights::Admin)?;
        let id = Builder::from_random_bytes(auth::random()?).into_uuid();
        let database = Database::new(Description {
            name: name.to_owned(),
            id,
            created_ms: now_ms(),
            path: registry.file_of(id),
            readonly: false,
            tokens: vec![record],
            quotas,
            memory: self.memory.share(),
        });
        database.store_for_client()?;
        let mut all = self.all();
        all.push(database.clone());
        let written = registry.write(all.iter().map(|of| (of, of.tokens(), of.quotas())));
        if let Err(error) = written {
            database.destroy();
            return Err(error.into());
        }
        self.databases.write().insert(name.to_owned(), database.clone());
        tracing::info!(database = name, id = %database.id, "database created");
        Ok((database, token))
    }

    /// Drops a database and removes its files. Waits for running requests.
    pub(super) fn drop_database(&self, name: &str) -> Result<(), Refusal> {
        let registry = self.registry.as_ref().ok_or_else(Refusal::not_found)?;
        let database = {
            let _changing = self.changing.lock();
            let database = self.by_name(name).ok_or_else(|| no_database(name))?;
            let left = self.all().into_iter().filter(|other| other.name != name);
            let left: Vec<_> = left.collect();
            registry.write(left.iter().map(|of| (of, of.tokens(), of.quotas())))?;
            self.databases.write().remove(name);
            database
        };
        database.destroy();
        tracing::info!(database = name, id = %database.id, "database dropped");
        Ok(())
    }

    /// Changes a database's tokens and quotas, in the registry first.
    fn change(
        &self,
        name: &str,
        requester: &Requester,
        change: impl FnOnce(&mut Vec<AccessToken>, &mut Quotas) -> Result<(), Refusal>,
    ) -> Result<(), Refusal> {
        let registry = self.registry.as_ref().ok_or_else(Refusal::not_found)?;
        let _changing = self.changing.lock();
        let database = self.by_name(name).ok_or_else(|| no_database(name))?;
        requester.still(&database)?;
        let (mut tokens, mut quotas) = (database.tokens(), database.quotas());
        change(&mut tokens, &mut quotas)?;
        let all = self.all();
        registry.write(all.iter().map(|of| {
            if of.name == name {
                (of, tokens.clone(), quotas)
            } else {
                (of, of.tokens(), of.quotas())
            }
        }))?;
        database.set_tokens(tokens);
        database.set_quotas(quotas);
        Ok(())
    }

    /// Creates a token. Only this answer shows it: the registry keeps its hash.
    pub(super) fn add_token(
        &self,
        name: &str,
        requester: &Requester,
        rights: Rights,
    ) -> Result<(String, AccessToken), Refusal> {
        let (token, record) = make_token(rights)?;
        let kept = record.clone();
        self.change(name, requester, |tokens, _| {
            if tokens.len() >= ACCESS_TOKENS_MAX {
                let text = format!("Too many tokens (max {ACCESS_TOKENS_MAX}): withdraw some.");
                return Err(Refusal::new(StatusCode::CONFLICT, text));
            }
            tokens.push(kept);
            Ok(())
        })?;
        tracing::info!(database = name, token = record.id, ?rights, "token made");
        Ok((token, record))
    }

    /// Revokes a token and all data-path tokens issued for it.
    pub(super) fn withdraw_token(
        &self,
        name: &str,
        requester: &Requester,
        id: &str,
    ) -> Result<(), Refusal> {
        self.change(name, requester, |tokens, _| {
            let before = tokens.len();
            tokens.retain(|token| token.id != id);
            if tokens.len() == before {
                let text = format!("The database '{name}' has no token '{id}'.");
                return Err(Refusal::new(StatusCode::NOT_FOUND, text));
            }
            Ok(())
        })?;
        tracing::info!(database = name, token = id, "token withdrawn");
        Ok(())
    }

    pub(super) fn set_quotas(&self, name: &str, new: Quotas) -> Result<(), Refusal> {
        self.change(name, &Requester::Server, |_, quotas| {
            *quotas = new;
            Ok(())
        })
    }

    /// Closes all databases.
    pub(super) fn close(&self) {
        for database in self.all() {
            database.close();
        }
        if let Some(registry) = &self.registry {
            registry.unlock();
        }
    }
}

pub(super) fn no_database(name: &str) -> Refusal {
    Refusal::new(StatusCode::NOT_FOUND, format!("There is no database '{name}'."))
}

fn make_token(rights: Rights) -> Result<(String, AccessToken)> {
    let token = auth::new_token()?;
    let id: [u8; 6] = auth::random()?;
    let id = id.iter().map(|byte| format!("{byte:02x}")).collect();
    let record = AccessToken { id, rights, hash: TokenHash::of(&token), created_ms: now_ms() };
    Ok((token, record))
}

/// A name is an unescaped part of URLs, and must differ from the server's own paths.
fn check_name(name: &str) -> Result<(), Refusal> {
    let chars = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
    let first = name.chars().next().is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
    let reserved = ["v1", "v2", "healthz", "readyz"].contains(&name);
    if first && name.len() <= DATABASE_NAME_CHARS_MAX && name.chars().all(chars) && !reserved {
        return Ok(());
    }
    Err(Refusal::bad_request(format!(
        "The name of a database has 1 to {DATABASE_NAME_CHARS_MAX} of a-z, 0-9, - and _, begins with \
         a letter or digit, and is not v1, v2, healthz or readyz: '{name}' given."
    )))
}

/// The UUID of a file that is served by itself. It depends only on the path.
fn id_of(path: &std::path::Path) -> Uuid {
    let digest: [u8; 32] = Sha256::digest(path.as_os_str().as_encoded_bytes()).into();
    let mut bytes = [0; 16];
    for (place, byte) in bytes.iter_mut().zip(digest) {
        *place = byte;
    }
    Builder::from_random_bytes(bytes).into_uuid()
}
