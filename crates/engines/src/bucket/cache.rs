//! The folder in which a process keeps its copy of a database.
//!
//! Duty: exclude other processes, say whether the copy is a beginning of the chain, replace one that is not.
//! Invariant: at most one process has the folder. A file with the name of the database is whole.
//! Never: a file of another program.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::objects::{Objects, snapshot_name};
use crate::objects::Target;
use crate::sqlite::SqliteEngine;
use crate::{Engine as _, Maintenance as _};
use openkv_core::chain::{Mark, Position};
use openkv_core::model::{
    ARCHIVE_PART_BYTES, BUSY_TIMEOUT_MS_DEFAULT, Encoding, Error, Kind, Result,
};

const FILE: &str = "openkv-cache.sqlite3";
const LOCK: &str = "openkv-cache.lock";
const UNFINISHED: &str = "restoring";
/// How the name of a temporary folder begins.
const TEMPORARY: &str = "openkv-cache-";
/// The id of the last process that has led with this folder.
const LEADER: &str = "leader";
const BUSY: std::time::Duration = std::time::Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT);
const ZSTD_LEVEL: i32 = 3;

/// The place that the file has reached.
pub(super) struct Prepared {
    pub(super) position: Position,
    /// The time of the last batch in the file.
    pub(super) at_ms: i64,
    /// A look that began at this time, by the clock of the process, has found no snapshot behind it.
    pub(super) listed_ms: u64,
    /// The file was made now, so that the log behind it may be long.
    pub(super) is_fresh: bool,
}

/// A folder that this process has.
pub(super) struct Cache {
    folder: PathBuf,
    /// Whether it is removed at the end.
    is_temporary: bool,
    _lock: File,
}

impl Cache {
    /// Takes a folder; without one, a new folder that is removed at the end.
    ///
    /// # Errors
    /// `Unavailable` if another process has it; errors of the disk.
    pub(super) fn take(folder: Option<&Path>, random: &str) -> Result<Self> {
        let is_temporary = folder.is_none();
        let folder = folder.map_or_else(
            || std::env::temp_dir().join(format!("{TEMPORARY}{random}")),
            Path::to_path_buf,
        );
        if let (true, Some(parent)) = (is_temporary, folder.parent()) {
            remove_abandoned(parent);
        }
        let failed = |error: std::io::Error| failed(&folder, &error);
        match is_temporary {
            true => create_private(&folder).map_err(failed)?,
            false => std::fs::create_dir_all(&folder).map_err(failed)?,
        }
        let path = folder.join(LOCK);
        let lock = File::options().write(true).create(true).truncate(false).open(path);
        let lock = lock.map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => Ok(Self { folder, is_temporary, _lock: lock }),
            Err(std::fs::TryLockError::Error(error)) => Err(failed(error)),
            Err(std::fs::TryLockError::WouldBlock) => Err(Error::unavailable(format!(
                "cache: another process has {} open, or another handle of this process with other options: name \
                 another folder, or leave the option out",
                folder.display()
            ))),
        }
    }

    pub(super) fn file(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Whether the process with this id, which has led with this folder, has ended.
    pub(super) fn was_led_by(&self, id: &str) -> bool {
        std::fs::read_to_string(self.folder.join(LEADER)).is_ok_and(|led| led == id)
    }

    /// Notes the id of this process before it leads.
    pub(super) fn led_by(&self, id: &str) -> Result<()> {
        let path = self.folder.join(LEADER);
        std::fs::write(&path, id).map_err(|error| failed(&path, &error))
    }

    /// Makes the file one that the chain can go on from: the one that is there, if it is a beginning of the
    /// chain, or the newest snapshot, or an empty one. `now_ms`: the clock of the process.
    ///
    /// # Errors
    /// Errors of the store and the disk.
    pub(super) fn prepare(
        &self,
        objects: &Objects,
        database: &[u8; 16],
        now_ms: impl Fn() -> u64,
    ) -> Result<(SqliteEngine, Prepared)> {
        let mut fault = None;
        for _ in 0..crate::objects::READS {
            let listed_ms = now_ms();
            let at =
                |(position, at_ms), is_fresh| Prepared { position, at_ms, listed_ms, is_fresh };
            let snapshots = objects.snapshots()?;
            let newest = snapshots.last().copied();
            if let Some((engine, place)) = self.kept(objects, database, newest)? {
                return Ok((engine, at(place, false)));
            }
            self.remove()?;
            match newest.map(|mark| self.restore(objects, database, mark)).transpose() {
                Ok(Some((engine, place))) => return Ok((engine, at(place, true))),
                Ok(None) => {
                    let (engine, _) = open(&self.file())?;
                    let start = (Position::default(), i64::MIN);
                    engine.writer()?.set_mark(&encode(database, &start.0, start.1))?;
                    return Ok((engine, at(start, true)));
                }
                // It may have been deleted meanwhile, or it is damaged: another look tells.
                Err(error) => fault = Some(error),
            }
        }
        Err(fault.unwrap_or_else(|| Error::internal("a cache without an attempt")))
    }

    /// The file that is there, if it is a beginning of the chain that the log leads on from.
    fn kept(
        &self,
        objects: &Objects,
        database: &[u8; 16],
        newest: Option<Mark>,
    ) -> Result<Option<(SqliteEngine, Place)>> {
        if !self.file().exists() {
            return Ok(None);
        }
        let Ok((engine, Some((of, position, at_ms)))) = open(&self.file()) else {
            return Ok(None);
        };
        let last = position.next.checked_sub(1);
        let is_known = match last {
            _ if of != *database => false,
            None => newest.is_none(),
            Some(last) => match objects.object(last)? {
                Some(object) => object.digest == position.digest,
                None => false,
            },
        };
        // What the newest snapshot contains may be deleted.
        if is_known && newest.is_none_or(|mark| position.next > mark.number) {
            return Ok(Some((engine, (position, at_ms))));
        }
        tracing::debug!("the cache is no beginning of the database; it is restored");
        Ok(None)
    }

    /// Removes the file.
    pub(super) fn remove(&self) -> Result<()> {
        let file = self.file();
        for end in ["", "-wal", "-shm"] {
            let mut path = file.clone().into_os_string();
            path.push(end);
            match std::fs::remove_file(&path) {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(failed(Path::new(&path), &error));
                }
                _ => {}
            }
        }
        Ok(())
    }

    /// Makes the file a snapshot.
    ///
    /// # Errors
    /// `Corrupt` for one that is damaged; errors of the store and the disk.
    pub(super) fn restore(
        &self,
        objects: &Objects,
        database: &[u8; 16],
        mark: Mark,
    ) -> Result<(SqliteEngine, Place)> {
        let name = snapshot_name(mark);
        let unfinished = self.folder.join(UNFINISHED);
        download(&objects.target, &name, &unfinished)?;
        let file = self.file();
        std::fs::rename(&unfinished, &file).map_err(|error| failed(&file, &error))?;
        let damaged = || Error::corrupt(format!("{}/{name} is damaged", objects.target.name()));
        match open(&file)? {
            (engine, Some((of, position, at_ms)))
                if of == *database
                    && position.version == mark.version
                    && position.next == mark.number + 1 =>
            {
                Ok((engine, (position, at_ms)))
            }
            _ => Err(damaged()),
        }
    }

    /// Uploads a verified copy of the file, and returns what it contains. `None` if the copy has nothing to
    /// contain.
    pub(super) fn upload(&self, engine: &SqliteEngine, objects: &Objects) -> Result<Option<Mark>> {
        let copy = self.folder.join("snapshot.sqlite3");
        let packed = self.folder.join("snapshot.zst");
        let done = self.upload_by(engine, objects, &copy, &packed);
        drop((std::fs::remove_file(&copy), std::fs::remove_file(&packed)));
        done
    }

    fn upload_by(
        &self,
        engine: &SqliteEngine,
        objects: &Objects,
        copy: &Path,
        packed: &Path,
    ) -> Result<Option<Mark>> {
        drop(std::fs::remove_file(copy));
        engine.backup(copy, &mut |_, _| true)?;
        let Some((_, position, _)) = open(copy)?.1 else {
            return Err(Error::internal(
                "a copy of a database in an object store without its place",
            ));
        };
        let Some(number) = position.next.checked_sub(1) else { return Ok(None) };
        let mark = Mark { version: position.version, number };
        if objects.snapshots()?.contains(&mark) {
            return Ok(Some(mark));
        }
        pack(copy, packed).map_err(|error| failed(packed, &error))?;
        let mut file = File::open(packed).map_err(|error| failed(packed, &error))?;
        objects.target.upload(&snapshot_name(mark), || {
            let mut bytes = Vec::new();
            let part = (&mut file).take(ARCHIVE_PART_BYTES as u64).read_to_end(&mut bytes);
            part.map_err(|error| failed(packed, &error))?;
            Ok(bytes)
        })?;
        Ok(Some(mark))
    }
}

impl Drop for Cache {
    fn drop(&mut self) {
        if self.is_temporary
            && let Err(error) = std::fs::remove_dir_all(&self.folder)
        {
            tracing::warn!(%error, "removing a temporary cache");
        }
    }
}

/// Removes the temporary folders of processes that were killed. A folder whose lock is free is one of them if it has a file of
/// a database: a process has the lock before it makes that file. What cannot be removed is left to the next process.
fn remove_abandoned(parent: &Path) {
    let folders = std::fs::read_dir(parent).into_iter().flatten().flatten();
    for folder in folders {
        let is_named = folder.file_name().to_str().is_some_and(|name| name.starts_with(TEMPORARY));
        let folder = folder.path();
        if !is_named || ![FILE, UNFINISHED].iter().any(|file| folder.join(file).exists()) {
            continue;
        }
        let lock = File::options().write(true).open(folder.join(LOCK));
        if lock.is_ok_and(|lock| lock.try_lock().is_ok()) {
            tracing::debug!(folder = %folder.display(), "removing the cache of a process that was killed");
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
}

/// Creates a folder that other users cannot read: it gets the whole database.
fn create_private(folder: &Path) -> std::io::Result<()> {
    if let Some(parent) = folder.parent() {
        std::fs::create_dir_all(parent)?;
    }
    #[cfg(unix)]
    {
        use std::os::unix::fs::DirBuilderExt as _;
        std::fs::DirBuilder::new().mode(0o700).create(folder)
    }
    #[cfg(not(unix))]
    std::fs::create_dir(folder)
}

/// How far a file is, and the time of its last batch.
type Place = (Position, i64);
type Opened = (SqliteEngine, Option<([u8; 16], Position, i64)>);

/// Opens a file and reads its place in the chain; `None` if it has none, or was written by others.
fn open(path: &Path) -> Result<Opened> {
    let engine = SqliteEngine::open_as(path, false, BUSY, Some(Encoding::Cbor))?;
    let mut writer = engine.writer()?;
    let mark = writer.mark()?;
    let version = writer.last_commit()?;
    let place =
        mark.as_deref().and_then(decode).filter(|(_, position, _)| position.version == version);
    drop(writer);
    Ok((engine, place))
}

/// The bytes of a place: the database, the next number, epoch and version, little-endian, the digest, and the time of
/// the last batch.
pub(super) fn encode(database: &[u8; 16], position: &Position, at_ms: i64) -> Vec<u8> {
    let mut bytes = database.to_vec();
    for number in [position.next, position.epoch, position.version] {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    bytes.extend_from_slice(&position.digest);
    bytes.extend_from_slice(&at_ms.to_le_bytes());
    bytes
}

pub(super) fn decode(bytes: &[u8]) -> Option<([u8; 16], Position, i64)> {
    let (database, rest) = bytes.split_first_chunk()?;
    let (next, rest) = rest.split_first_chunk()?;
    let (epoch, rest) = rest.split_first_chunk()?;
    let (version, rest) = rest.split_first_chunk()?;
    let (digest, at_ms) = rest.split_first_chunk()?;
    let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
    let position = Position {
        next: number(next),
        epoch: number(epoch),
        version: number(version),
        digest: *digest,
    };
    Some((*database, position, i64::from_le_bytes(at_ms.try_into().ok()?)))
}

/// Compresses a file. The SHA-256 of the compressed bytes is behind them.
fn pack(from: &Path, to: &Path) -> std::io::Result<()> {
    let mut out = Hashing { inner: File::create(to)?, hash: Sha256::new() };
    zstd::stream::copy_encode(File::open(from)?, &mut out, ZSTD_LEVEL)?;
    let hash = out.hash.finalize();
    out.inner.write_all(&hash)
}

struct Hashing {
    inner: File,
    hash: Sha256,
}

impl Write for Hashing {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        let written = self.inner.write(bytes)?;
        self.hash.update(bytes.get(..written).unwrap_or_default());
        Ok(written)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.inner.flush()
    }
}

/// Downloads a snapshot, which it checks before it writes it.
fn download(target: &Target, name: &str, to: &Path) -> Result<()> {
    let mut packed = to.as_os_str().to_owned();
    packed.push(".zst");
    let packed = PathBuf::from(packed);
    let failed = |error: std::io::Error| failed(to, &error);
    let mut out = Hashing { inner: File::create(&packed).map_err(failed)?, hash: Sha256::new() };
    // The last 32 bytes so far, which may be the hash.
    let mut held = Vec::new();
    target.download(name, |part| {
        held.extend_from_slice(part);
        let ready = held.len().saturating_sub(32);
        out.write_all(held.get(..ready).unwrap_or_default()).map_err(failed)?;
        held.drain(..ready);
        Ok(())
    })?;
    if out.hash.finalize().as_slice() != held.as_slice() {
        drop(std::fs::remove_file(&packed));
        return Err(Error::corrupt(format!("{}/{name} is damaged", target.name())));
    }
    let unpack = || {
        let unpacked = File::create(to)?;
        zstd::stream::copy_decode(File::open(&packed)?, &unpacked)?;
        // A file with the name of the database is whole, also after a power loss.
        unpacked.sync_all()
    };
    let unpacked = unpack().map_err(failed);
    drop(std::fs::remove_file(&packed));
    unpacked
}

fn failed(path: &Path, error: &std::io::Error) -> Error {
    let kind = match error.kind() {
        std::io::ErrorKind::PermissionDenied => Kind::Denied,
        _ => Kind::Unavailable,
    };
    Error::new(kind, format!("cache: {}: {error}", path.display()))
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_temporary_cache_is_private_and_goes_with_its_process() {
        let random = crate::bucket::random().unwrap();
        let cache = Cache::take(None, &random).unwrap();
        let folder = cache.folder.clone();
        assert_eq!(folder.metadata().unwrap().permissions().mode() & 0o777, 0o700);
        // Another process cannot have prepared the folder for this one.
        assert!(Cache::take(None, &random).is_err());
        drop(cache);
        assert!(!folder.exists());
    }

    #[test]
    fn the_temporary_caches_of_killed_processes_are_removed_and_no_others() {
        let parent = tempfile::tempdir().unwrap();
        let folder = |name: &str, files: &[&str]| {
            let folder = parent.path().join(name);
            std::fs::create_dir(&folder).unwrap();
            for file in files {
                std::fs::write(folder.join(file), "").unwrap();
            }
            folder
        };
        let killed = folder("openkv-cache-killed", &[LOCK, FILE]);
        let killed_while_restoring = folder("openkv-cache-restoring", &[LOCK, UNFINISHED]);
        let used = folder("openkv-cache-used", &[LOCK, FILE]);
        let made_now = folder("openkv-cache-new", &[LOCK]);
        let named_otherwise = folder("kept", &[LOCK, FILE]);
        let lock = File::options().write(true).open(used.join(LOCK)).unwrap();
        lock.try_lock().unwrap();
        remove_abandoned(parent.path());
        assert!(!killed.exists() && !killed_while_restoring.exists());
        assert!(used.exists() && made_now.exists() && named_otherwise.exists());
    }
}
