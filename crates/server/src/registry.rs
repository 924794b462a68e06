//! The registry: the file with a folder's databases, their quotas and the hashes of their tokens.
//!
//! It is JSON and replaced as a whole: written to a new file, synced, renamed. A server holds the
//! lock file beside it while it runs, so that two servers cannot overwrite each other's changes.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use uuid::Uuid;

use super::records::{Contents, Record, read_page};
use openkv_client::open::cannot;
use openkv_core::model::{DROPPED_DATABASES_MAX, Error, Result};

const FILE: &str = "openkv-server.json";
const LOCK: &str = "openkv-server.lock";
/// The UUIDs of dropped databases, one a line, the newest last.
const DROPPED: &str = "openkv-server.dropped";

/// A locked folder of databases.
pub(super) struct Registry {
    folder: PathBuf,
    lock: File,
    dropped: Mutex<Vec<Uuid>>,
}

/// Locks a folder, creating it if it is missing. Returns its absolute path, and the lock.
///
/// # Errors
/// `Unavailable` if another server has it.
pub(super) fn lock(folder: &Path) -> Result<(PathBuf, File)> {
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
    Ok((folder, lock))
}

/// Whether a folder has a registry.
pub(super) fn is_served(folder: &Path) -> bool {
    folder.join(FILE).exists()
}

impl Registry {
    /// Locks a folder, creating it if it is missing, and reads its registry.
    pub(super) fn open(folder: &Path) -> Result<(Self, Contents)> {
        let (folder, lock) = lock(folder)?;
        let dropped = Mutex::new(read_dropped(&folder.join(DROPPED)));
        let registry = Self { folder, lock, dropped };
        let contents = registry.read()?;
        for file in registry.strays(&contents.databases) {
            tracing::warn!(file = %file.display(), "a database file that the registry does not list");
        }
        Ok((registry, contents))
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

    fn read(&self) -> Result<Contents> {
        let path = self.folder.join(FILE);
        match std::fs::read(&path) {
            Ok(text) => read_page(&text, &path.display().to_string()),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Contents::default()),
            Err(error) => Err(cannot("read", &path, &error)),
        }
    }

    /// Replaces the file.
    pub(super) fn write(&self, text: &[u8]) -> Result<()> {
        self.replace(FILE, text)
    }

    /// The databases that were dropped, the newest last.
    pub(super) fn dropped(&self) -> Vec<Uuid> {
        self.dropped.lock().clone()
    }

    /// Notes that a database was dropped, which the registry says already. If that fails, read servers keep
    /// its replica.
    pub(super) fn note_dropped(&self, id: Uuid) {
        let mut dropped = self.dropped.lock();
        dropped.push(id);
        let over = dropped.len().saturating_sub(DROPPED_DATABASES_MAX);
        dropped.drain(..over);
        let lines: Vec<_> = dropped.iter().map(ToString::to_string).collect();
        if let Err(error) = self.replace(DROPPED, lines.join("\n").as_bytes()) {
            tracing::warn!(%error, %id, "noting a dropped database");
        }
    }

    fn replace(&self, name: &str, text: &[u8]) -> Result<()> {
        let (path, beside) = (self.folder.join(name), self.folder.join(format!("{name}.new")));
        let mut file = private(&beside).map_err(|error| cannot("write", &beside, &error))?;
        let written = file.write_all(text).and_then(|()| file.sync_all());
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
    fn strays(&self, databases: &[Record]) -> Vec<PathBuf> {
        let listed: HashSet<Uuid> = databases.iter().map(|database| database.id).collect();
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let is_stray = |path: &PathBuf| {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let id = name.strip_suffix(".sqlite3").and_then(|text| Uuid::try_parse(text).ok());
            id.is_some_and(|id| !listed.contains(&id))
        };
        files.map(|file| file.path()).filter(is_stray).collect()
    }
}

/// The UUIDs in a file. Without it, none is known.
fn read_dropped(path: &Path) -> Vec<Uuid> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| Uuid::try_parse(line).ok()).collect()
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
        let (registry, none) = Registry::open(folder.path()).unwrap();
        let stray = registry.file_of(uuid::Builder::from_random_bytes([7; 16]).into_uuid());
        for path in [stray.clone(), stray.with_extension("sqlite3-wal"), folder.path().join("a")] {
            std::fs::write(path, "").unwrap();
        }
        assert_eq!(registry.strays(&none.databases), std::slice::from_ref(&stray));
        drop(registry);
        let (registry, _) = Registry::open(folder.path()).unwrap();
        assert!(stray.exists());
        registry.unlock();
    }

    #[test]
    fn the_newest_dropped_databases_are_remembered() {
        let folder = tempfile::TempDir::new().unwrap();
        let id = |n: usize| uuid::Uuid::from_u128(n as u128 + 1);
        let (registry, _) = Registry::open(folder.path()).unwrap();
        assert!(registry.dropped().is_empty());
        *registry.dropped.lock() = (0..DROPPED_DATABASES_MAX).map(id).collect();
        registry.note_dropped(id(DROPPED_DATABASES_MAX));
        drop(registry);
        let (registry, _) = Registry::open(folder.path()).unwrap();
        let expected: Vec<_> = (1..=DROPPED_DATABASES_MAX).map(id).collect();
        assert_eq!(registry.dropped(), expected);
    }
}
