//! The registry: the file with a folder's databases, their quotas and the hashes of their tokens.
//!
//! It is JSON and replaced as a whole: written to a new file, synced, renamed. Beyond
//! [`REGISTRY_WHOLE_BYTES_MAX`] a change is a line that is appended to a file beside it, which it names, and synced. Once
//! these lines are longer than the registry, the next change replaces it, with another such file. A server holds the lock
//! file beside it while it runs, so that two servers cannot overwrite each other's changes.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::{ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use uuid::Uuid;

use super::downloads::{database_of, remove_left};
use super::records::{
    Change, Contents, Record, read_changed_page, read_changes, write_change, write_changed_page,
    write_page,
};
use openkv_client::open::cannot;
use openkv_core::model::{DROPPED_DATABASES_MAX, Error, REGISTRY_WHOLE_BYTES_MAX, Result};

const FILE: &str = "openkv-server.json";
/// The changes since, one a line; before their number.
const CHANGES: &str = "openkv-server.changes-";
const LOCK: &str = "openkv-server.lock";
/// The UUIDs of dropped databases, one a line, the newest last.
const DROPPED: &str = "openkv-server.dropped";

/// A locked folder of databases.
pub(super) struct Registry {
    folder: PathBuf,
    lock: File,
    dropped: Mutex<Vec<Uuid>>,
    changes: Mutex<Option<Changes>>,
}

/// The changes beside a registry, at whose end the next one is written.
struct Changes {
    number: u64,
    file: File,
    /// The length of those that were kept. [`u64::MAX`]: something else may be behind them.
    bytes: u64,
    /// The length of the registry.
    whole_bytes: u64,
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
        let registry = Self { folder, lock, dropped, changes: Mutex::default() };
        let contents = registry.read()?;
        let files = registry.files();
        let left: HashSet<_> = files.iter().filter_map(|name| database_of(name)).collect();
        left.iter().for_each(|database| remove_left(&registry.folder.join(database)));
        for file in registry.strays(&files, &contents.databases) {
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
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Contents::default()),
            Err(error) => return Err(cannot("read", &path, &error)),
        };
        let (mut contents, number) = read_changed_page(&text, &path.display().to_string())?;
        if let Some(number) = number {
            let (changes, kept) = self.read_changes(number, text.len() as u64)?;
            contents.apply(changes);
            *self.changes.lock() = Some(kept);
        }
        Ok(contents)
    }

    /// Reads the changes of a number, and removes one that was not written to its end.
    fn read_changes(&self, number: u64, whole_bytes: u64) -> Result<(Vec<Change>, Changes)> {
        let path = self.changes_of(number);
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::NotFound => Error::corrupt(missing(&path)),
            _ => cannot("read", &path, &error),
        };
        let mut file = OpenOptions::new().append(true).read(true).open(&path).map_err(failed)?;
        let mut text = Vec::new();
        file.read_to_end(&mut text).map_err(failed)?;
        let (changes, end) = read_changes(&text, &path.display().to_string())?;
        let bytes = end as u64;
        if end < text.len() {
            tracing::warn!(file = %path.display(), "a change that was not written to its end");
            file.set_len(bytes).and_then(|()| file.sync_all()).map_err(failed)?;
        }
        Ok((changes, Changes { number, file, bytes, whole_bytes }))
    }

    fn changes_of(&self, number: u64) -> PathBuf {
        self.folder.join(format!("{CHANGES}{number}"))
    }

    /// Keeps a change. `whole` answers the contents of the registry with it.
    pub(super) fn keep(&self, change: &Change, whole: impl FnOnce() -> Contents) -> Result<()> {
        let mut changes = self.changes.lock();
        if let Some(of) = &mut *changes
            && of.bytes <= of.whole_bytes
        {
            let written = of.append(&write_change(change)?);
            return written.map_err(|error| cannot("write", &self.changes_of(of.number), &error));
        }
        let contents = whole();
        let text = write_page(contents.clone())?;
        let replaced = if text.len() <= REGISTRY_WHOLE_BYTES_MAX {
            self.replace(FILE, &text)?;
            changes.take()
        } else {
            let number = changes.as_ref().map_or(1, |of| of.number + 1);
            let path = self.changes_of(number);
            // One that another registry has left is emptied.
            let emptied =
                |file: File| file.set_len(0).and_then(|()| file.sync_all()).map(|()| file);
            let file = private(&path, OpenOptions::new().append(true)).and_then(emptied);
            let file = file.map_err(|error| cannot("write", &path, &error))?;
            // It has to be there when the registry names it.
            sync_folder(&self.folder).map_err(|error| cannot("sync", &self.folder, &error))?;
            let text = write_changed_page(contents, number)?;
            self.replace(FILE, &text)?;
            let whole_bytes = text.len() as u64;
            changes.replace(Changes { number, file, bytes: 0, whole_bytes })
        };
        if let Some(Changes { number, .. }) = replaced
            && let Err(error) = std::fs::remove_file(self.changes_of(number))
        {
            tracing::warn!(%error, number, "removing the changes that are in the registry");
        }
        Ok(())
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

    /// Replaces a file.
    fn replace(&self, name: &str, text: &[u8]) -> Result<()> {
        let (path, beside) = (self.folder.join(name), self.folder.join(format!("{name}.new")));
        let mut file = private(&beside, OpenOptions::new().write(true).truncate(true))
            .map_err(|error| cannot("write", &beside, &error))?;
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

    /// The names of the files of the folder, which is listed once: it may have hundreds of thousands.
    fn files(&self) -> Vec<String> {
        let files = std::fs::read_dir(&self.folder).into_iter().flatten().flatten();
        files.filter_map(|file| file.file_name().into_string().ok()).collect()
    }

    /// Database files that the registry does not list, left by a server that ended while it dropped
    /// them.
    fn strays(&self, files: &[String], databases: &[Record]) -> Vec<PathBuf> {
        let listed: HashSet<Uuid> = databases.iter().map(|database| database.id).collect();
        let is_stray = |name: &&String| {
            let id = name.strip_suffix(".sqlite3").and_then(|text| Uuid::try_parse(text).ok());
            id.is_some_and(|id| !listed.contains(&id))
        };
        files.iter().filter(is_stray).map(|name| self.folder.join(name)).collect()
    }
}

/// The message about changes that are not there.
fn missing(path: &Path) -> String {
    format!(
        "{} is missing, which {FILE} beside it names: put it back from where the folder was copied; an empty file in its \
         place gives up the changes that were in it",
        path.display()
    )
}

impl Changes {
    /// Appends a line. After an error the file is as before, or the next change rewrites the registry.
    fn append(&mut self, line: &[u8]) -> std::io::Result<()> {
        let written = self.file.write_all(line).and_then(|()| self.file.sync_data());
        match &written {
            Ok(()) => self.bytes += line.len() as u64,
            Err(_) if self.file.set_len(self.bytes).is_ok() => {}
            Err(_) => self.bytes = u64::MAX,
        }
        written
    }
}

/// The UUIDs in a file. Without it, none is known.
fn read_dropped(path: &Path) -> Vec<Uuid> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().filter_map(|line| Uuid::try_parse(line).ok()).collect()
}

/// Opens a file that only its owner can read, and creates it if it is missing.
fn private(path: &Path, options: &mut OpenOptions) -> std::io::Result<File> {
    options.create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
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
    use super::super::options::Quotas;
    use super::*;

    #[test]
    fn unlisted_database_files_are_reported_and_kept() {
        let folder = tempfile::TempDir::new().unwrap();
        let (registry, none) = Registry::open(folder.path()).unwrap();
        let stray = registry.file_of(uuid::Builder::from_random_bytes([7; 16]).into_uuid());
        for path in [stray.clone(), stray.with_extension("sqlite3-wal"), folder.path().join("a")] {
            std::fs::write(path, "").unwrap();
        }
        let found = registry.strays(&registry.files(), &none.databases);
        assert_eq!(found, std::slice::from_ref(&stray));
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

    fn record(n: usize) -> Record {
        // Long enough that some records exceed the bound of a registry that is replaced as a whole.
        let name = format!("{n}{}", "x".repeat(REGISTRY_WHOLE_BYTES_MAX / 8));
        let (id, quotas, archive) = (Uuid::from_u128(n as u128), Quotas::default(), None);
        Record { name, id, created_ms: 1, tokens: Vec::new(), quotas, archive }
    }

    fn ids(contents: &Contents) -> Vec<u128> {
        let mut ids: Vec<_> = contents.databases.iter().map(|record| record.id.as_u128()).collect();
        ids.sort_unstable();
        ids
    }

    /// Keeps a change as the catalog does.
    fn keep(registry: &Registry, contents: &mut Contents, change: Change) -> Result<()> {
        let mut changed = contents.clone();
        changed.apply([change.clone()]);
        registry.keep(&change, || changed.clone())?;
        *contents = changed;
        Ok(())
    }

    fn changes_in(folder: &Path) -> Vec<(String, u64)> {
        let files = std::fs::read_dir(folder).unwrap().flatten();
        let changes = files.filter_map(|file| {
            let number = file.file_name().to_str()?.strip_prefix(CHANGES)?.to_owned();
            Some((number, file.metadata().unwrap().len()))
        });
        changes.collect()
    }

    #[test]
    fn a_long_registry_keeps_changes_beside_it_and_each_opening_has_them() {
        let folder = tempfile::TempDir::new().unwrap();
        let (mut registry, mut contents) = Registry::open(folder.path()).unwrap();
        let mut numbers = HashSet::new();
        for n in 0..40 {
            let change = match n % 4 {
                3 => Change::Drop(Uuid::from_u128(n as u128 - 1)),
                _ => Change::Set(record(n)),
            };
            keep(&registry, &mut contents, change).unwrap();
            let changes = changes_in(folder.path());
            assert!(changes.len() <= 1, "{changes:?}");
            let is_long = contents.databases.len() > 7;
            assert_eq!(!changes.is_empty(), is_long, "{} databases", contents.databases.len());
            numbers.extend(changes.into_iter().map(|(number, _)| number));
            drop(registry);
            let again = Registry::open(folder.path()).unwrap();
            assert_eq!(ids(&again.1), ids(&contents));
            registry = again.0;
        }
        // The changes became longer than the registry.
        assert!(numbers.len() > 1, "{numbers:?}");
        // It is short again, and what was beside it is gone.
        let all = ids(&contents);
        for id in all.into_iter().skip(1) {
            keep(&registry, &mut contents, Change::Drop(Uuid::from_u128(id))).unwrap();
        }
        registry.changes.lock().as_mut().unwrap().bytes = u64::MAX;
        keep(&registry, &mut contents, Change::Set(record(50))).unwrap();
        assert_eq!(changes_in(folder.path()), []);
        drop(registry);
        assert_eq!(ids(&Registry::open(folder.path()).unwrap().1), ids(&contents));
    }

    /// A crash leaves any beginning of the last line, and the changes of the next registry, empty or from before.
    #[test]
    fn what_a_crash_leaves_of_a_change_is_removed_and_the_next_one_is_kept() {
        let folder = tempfile::TempDir::new().unwrap();
        let (registry, mut contents) = Registry::open(folder.path()).unwrap();
        for n in 0..10 {
            keep(&registry, &mut contents, Change::Set(record(n))).unwrap();
        }
        let (number, bytes) = changes_in(folder.path()).pop().unwrap();
        assert!(bytes > 0);
        drop(registry);
        let path = folder.path().join(format!("{CHANGES}{number}"));
        let whole = std::fs::read(&path).unwrap();
        let line = write_change(&Change::Set(record(99))).unwrap();
        for cut in [1, 10, line.len() / 2, line.len() - 1] {
            std::fs::write(&path, [&whole, line.get(..cut).unwrap()].concat()).unwrap();
            let stale =
                folder.path().join(format!("{CHANGES}{}", number.parse::<u64>().unwrap() + 1));
            std::fs::write(&stale, &line).unwrap();
            let (registry, mut found) = Registry::open(folder.path()).unwrap();
            assert_eq!(ids(&found), ids(&contents));
            assert_eq!(std::fs::read(&path).unwrap(), whole);
            keep(&registry, &mut found, Change::Drop(Uuid::from_u128(0))).unwrap();
            // The next change writes the registry anew, and takes the place of the stale one.
            registry.changes.lock().as_mut().unwrap().bytes = u64::MAX;
            keep(&registry, &mut found, Change::Set(record(100))).unwrap();
            drop(registry);
            let (registry, again) = Registry::open(folder.path()).unwrap();
            assert_eq!(ids(&again), ids(&found));
            drop(registry);
            // As before, for the next cut.
            let text = write_changed_page(contents.clone(), number.parse().unwrap()).unwrap();
            std::fs::write(folder.path().join(FILE), text).unwrap();
            std::fs::write(&path, &whole).unwrap();
        }
    }

    #[test]
    fn a_registry_without_the_changes_that_it_names_is_refused() {
        let folder = tempfile::TempDir::new().unwrap();
        let text = write_changed_page(Contents::default(), 3).unwrap();
        std::fs::write(folder.path().join(FILE), text).unwrap();
        let error = Registry::open(folder.path()).err().unwrap();
        assert!(error.message().contains("put it back"), "{error}");
        std::fs::write(folder.path().join(format!("{CHANGES}3")), "").unwrap();
        assert_eq!(ids(&Registry::open(folder.path()).unwrap().1), []);
    }

    #[test]
    fn a_registry_that_names_no_changes_ignores_those_beside_it() {
        let folder = tempfile::TempDir::new().unwrap();
        let line = write_change(&Change::Set(record(1))).unwrap();
        std::fs::write(folder.path().join(format!("{CHANGES}1")), line).unwrap();
        std::fs::write(folder.path().join(FILE), write_page(Contents::default()).unwrap()).unwrap();
        assert_eq!(ids(&Registry::open(folder.path()).unwrap().1), []);
    }
}
