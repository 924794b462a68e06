//! The registry: the file with a folder's databases, their quotas and the hashes of their tokens.
//!
//! It is JSON and replaced as a whole: written to a new file, synced, renamed. A server holds the
//! lock file beside it while it runs, so that two servers cannot overwrite each other's changes.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::auth::{Rights, TokenHash};
use super::database::{AccessToken, Database, Description};
use super::memory::ServerMemory;
use super::options::Quotas;
use crate::model::{Error, Result};
use crate::open::cannot;

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

/// A locked folder of databases.
pub(super) struct Registry {
    folder: PathBuf,
    lock: File,
}

impl Registry {
    /// Locks a folder, creating it if it is missing, and reads its registry.
    pub(super) fn open(folder: &Path, memory: &ServerMemory) -> Result<(Self, Vec<Arc<Database>>)> {
        std::fs::create_dir_all(folder).map_err(|error| cannot("create", folder, &error))?;
        let folder = folder.canonicalize().map_err(|error| cannot("open", folder, &error))?;
        let path = folder.join(LOCK);
        let lock = OpenOptions::new().create(true).append(true).open(&path);
        let lock = lock.map_err(|error| cannot("open", &path, &error))?;
        lock.try_lock().map_err(|error| {
            Error::unavailable(format!(
                "{} is served by another server already: {error}",
                folder.display()
            ))
        })?;
        let registry = Self { folder, lock };
        let databases = registry.read(memory)?;
        for file in registry.strays(&databases) {
            tracing::warn!(file = %file.display(), "a database file that the registry does not list");
        }
        Ok((registry, databases))
    }

    /// Releases the folder for another server.
    pub(super) fn unlock(&self) {
        if let Err(error) = self.lock.unlock() {
            tracing::warn!(%error, "unlocking the folder; the lock ends with the process");
        }
    }

    /// The path of a database's file. It is named by UUID, because a reused name is another
    /// database.
    pub(super) fn file_of(&self, id: Uuid) -> PathBuf {
        self.folder.join(format!("{id}.sqlite3"))
    }

    fn read(&self, memory: &ServerMemory) -> Result<Vec<Arc<Database>>> {
        let path = self.folder.join(FILE);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(cannot("read", &path, &error)),
        };
        let damaged = |why: String| Error::corrupt(format!("{}: {why}", path.display()));
        let page: Page =
            serde_json::from_slice(&text).map_err(|error| damaged(error.to_string()))?;
        if page.format != FORMAT {
            return Err(Error::unsupported(format!(
                "{} has format {}; this openkv knows {FORMAT}",
                path.display(),
                page.format
            )));
        }
        let mut databases = Vec::with_capacity(page.databases.len());
        for record in page.databases {
            let id = Uuid::try_parse(&record.id)
                .map_err(|_| damaged(format!("'{}' is no UUID", record.id)))?;
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

    /// Writes all of these databases, or none on failure.
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
        let mut file = private(&beside).map_err(|error| cannot("write", &beside, &error))?;
        let written = file.write_all(&text).and_then(|()| file.sync_all());
        written
            .and_then(|()| std::fs::rename(&beside, &path))
            .map_err(|error| cannot("write", &path, &error))?;
        // The rename is done, so a failed sync does not fail the call; a power loss may undo it.
        if let Err(error) = sync_folder(&self.folder) {
            tracing::error!(%error, folder = %self.folder.display(), "syncing the folder");
        }
        Ok(())
    }

    /// Database files that the registry does not list, left by a server that ended while it dropped
    /// them.
    fn strays(&self, databases: &[Arc<Database>]) -> Vec<PathBuf> {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_stray = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let id = name.strip_suffix(".sqlite3").and_then(|text| Uuid::try_parse(text).ok());
            id.is_some_and(|id| databases.iter().all(|database| database.id != id))
        };
        files.map(|file| file.path()).filter(is_stray).collect()
    }
}

fn token_record(token: AccessToken) -> TokenRecord {
    let AccessToken { id, rights, hash, created_ms } = token;
    TokenRecord { id, rights, sha256: hash.to_text(), created_ms }
}

/// Creates a file that only its owner can read.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unlisted_database_files_are_reported_and_kept() {
        let folder = tempfile::TempDir::new().unwrap();
        let (registry, none) = Registry::open(folder.path(), &ServerMemory::new()).unwrap();
        let stray = registry.file_of(uuid::Builder::from_random_bytes([7; 16]).into_uuid());
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
