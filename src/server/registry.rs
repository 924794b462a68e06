//! The file in which a folder's databases, their quotas and the hashes of their tokens are kept.
//!
//! JSON, replaced as a whole: written beside it, synced, renamed. A server holds the lock beside it
//! for as long as it runs, so that two cannot overwrite each other's.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::auth::{Rights, TokenHash};
use super::database::{AccessToken, Database, Description};
use super::memory::ServerMemory;
use super::options::Quotas;
use crate::connect::database_id::DatabaseId;
use crate::model::{Error, Kind, Result};

const FILE: &str = "openkv-server.json";
const LOCK: &str = "openkv-server.lock";
const FORMAT: u32 = 1;

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    format: u32,
    databases: Vec<DatabaseRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct DatabaseRecord {
    name: String,
    id: String,
    created_ms: i64,
    quotas: Quotas,
    tokens: Vec<TokenRecord>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct TokenRecord {
    id: String,
    rights: Rights,
    sha256: String,
    created_ms: i64,
}

/// A folder of databases, locked.
pub(super) struct Registry {
    folder: PathBuf,
    lock: File,
}

impl Registry {
    /// Locks a folder, making it if need be, and reads what is in it.
    pub(super) fn open(folder: &Path, memory: &ServerMemory) -> Result<(Self, Vec<Arc<Database>>)> {
        std::fs::create_dir_all(folder).map_err(|error| failed("create", folder, &error))?;
        let folder = folder.canonicalize().map_err(|error| failed("open", folder, &error))?;
        let path = folder.join(LOCK);
        let lock = OpenOptions::new().create(true).append(true).open(&path);
        let lock = lock.map_err(|error| failed("open", &path, &error))?;
        lock.try_lock().map_err(|error| {
            Error::new(
                Kind::Unavailable,
                format!("{} is served by another server already: {error}", folder.display()),
            )
        })?;
        let registry = Self { folder, lock };
        let databases = registry.read(memory)?;
        for file in registry.strays(&databases) {
            tracing::warn!(file = %file.display(), "a database that is in no record");
        }
        Ok((registry, databases))
    }

    /// Lets another server have the folder.
    pub(super) fn unlock(&self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, "the folder's lock ends with the process");
        }
    }

    /// Where a database's file is. By its UUID: a name that is used again is another database.
    pub(super) fn file_of(&self, id: DatabaseId) -> PathBuf {
        self.folder.join(format!("{id}.sqlite3"))
    }

    fn read(&self, memory: &ServerMemory) -> Result<Vec<Arc<Database>>> {
        let path = self.folder.join(FILE);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(failed("read", &path, &error)),
        };
        let damaged = |why: String| Error::corrupt(format!("{}: {why}", path.display()));
        let page: Page =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if page.format != FORMAT {
            return Err(Error::new(
                Kind::Unsupported,
                format!(
                    "{} has format {}; this openkv knows {FORMAT}",
                    path.display(),
                    page.format
                ),
            ));
        }
        let mut databases = Vec::with_capacity(page.databases.len());
        for record in page.databases {
            let id = DatabaseId::parse(&record.id)
                .ok_or_else(|| damaged(format!("'{}' is no UUID", record.id)))?;
            let mut tokens = Vec::with_capacity(record.tokens.len());
            for token in record.tokens {
                let hash = TokenHash::from_text(&token.sha256)
                    .ok_or_else(|| damaged(format!("token {} has no hash", token.id)))?;
                let TokenRecord { id, rights, created_ms, .. } = token;
                tokens.push(AccessToken { id, rights, hash, created_ms });
            }
            databases.push(Database::new(Description {
                name: record.name,
                id,
                created_ms: record.created_ms,
                path: self.file_of(id),
                readonly: false,
                tokens,
                quotas: record.quotas,
                memory: memory.share(),
            }));
        }
        Ok(databases)
    }

    /// Writes down these databases: all of them, or none if that fails.
    pub(super) fn write<'a>(
        &self,
        databases: impl Iterator<Item = (&'a Arc<Database>, Vec<AccessToken>, Quotas)>,
    ) -> Result<()> {
        let databases = databases.map(|(database, tokens, quotas)| DatabaseRecord {
            name: database.name.clone(),
            id: database.id.to_string(),
            created_ms: database.created_ms,
            quotas,
            tokens: tokens.into_iter().map(token_record).collect(),
        });
        let page = Page { format: FORMAT, databases: databases.collect() };
        let text =
            serde_json::to_vec_pretty(&page).map_err(|error| Error::internal(error.to_string()))?;
        let (path, beside) = (self.folder.join(FILE), self.folder.join(format!("{FILE}.new")));
        let mut file = private(&beside).map_err(|error| failed("write", &beside, &error))?;
        let written = file.write_all(&text).and_then(|()| file.sync_all());
        written
            .and_then(|()| std::fs::rename(&beside, &path))
            .map_err(|error| failed("write", &path, &error))?;
        // It is written down by now, whatever becomes of it when the power fails.
        if let Err(error) = sync_folder(&self.folder) {
            tracing::error!(%error, folder = %self.folder.display(), "syncing the folder");
        }
        Ok(())
    }

    /// Files of databases that are in no record: left by a server that ended while it dropped them.
    fn strays(&self, databases: &[Arc<Database>]) -> Vec<PathBuf> {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_stray = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let id = name.strip_suffix(".sqlite3").and_then(DatabaseId::parse);
            id.is_some_and(|id| databases.iter().all(|database| database.id != id))
        };
        files.map(|file| file.path()).filter(is_stray).collect()
    }
}

fn token_record(token: AccessToken) -> TokenRecord {
    let AccessToken { id, rights, hash, created_ms } = token;
    TokenRecord { id, rights, sha256: hash.to_text(), created_ms }
}

/// A new file that only its owner reads.
fn private(path: &Path) -> std::io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(true).write(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

#[cfg(unix)]
fn sync_folder(folder: &Path) -> std::io::Result<()> {
    File::open(folder)?.sync_all()
}

#[cfg(not(unix))]
fn sync_folder(_folder: &Path) -> std::io::Result<()> {
    Ok(())
}

fn failed(what: &str, path: &Path, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::PermissionDenied => Kind::Denied,
        _ => Kind::Unavailable,
    };
    Error::new(kind, format!("cannot {what} {}: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_databases_without_a_record_are_found_and_left_alone() {
        let folder = tempfile::TempDir::new().unwrap();
        let (registry, none) = Registry::open(folder.path(), &ServerMemory::new()).unwrap();
        let stray = registry.file_of(DatabaseId::random([7; 16]));
        for path in [stray.clone(), stray.with_extension("sqlite3-wal"), folder.path().join("a")] {
            std::fs::write(path, "").unwrap();
        }
        assert_eq!(registry.strays(&none), std::slice::from_ref(&stray));
        drop(registry);
        let (registry, _) = Registry::open(folder.path(), &ServerMemory::new()).unwrap();
        assert!(stray.exists());
        registry.unlock();
    }
}
