//! Verified copies of a database's file, for downloads.
//!
//! Duty: make a copy, and keep it while a download reads it or may go on.
//! Invariant: a finished copy has no name in the folder, so that the system frees it with the process. A
//! copy that a crash has left is removed when a server starts, or the database is next copied.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::{Instant, sleep};

use super::answer::Refusal;
use super::pending::{Wanted, pending};
use super::quota::over;
use openkv_client::open::remove_copies;
use openkv_core::model::{Backup, Error, HTTP_BACKUP_KEPT_MS, HTTP_BACKUPS_MAX, Result};
use openkv_store::Store;

/// Suffix of the name of a copy under construction.
const END: &str = ".openkv-download";

/// A finished copy.
pub(super) struct Copied {
    /// The facts of the backup.
    pub(super) backup: Backup,
    /// SHA-256 of its bytes.
    pub(super) hash: [u8; 32],
    file: Mutex<File>,
}

/// A copy in the list, and the downloads that read it.
struct Kept {
    copied: Arc<Copied>,
    readers: usize,
    /// The parts that connections have taken, in order and apart.
    parts: Vec<(u64, u64)>,
    /// When the last download ended.
    idle_since: Instant,
}

/// The copies of one database.
pub(super) struct Downloads {
    kept: Mutex<Vec<Kept>>,
    /// Held while a copy is made.
    making: Arc<Semaphore>,
}

impl Default for Downloads {
    fn default() -> Self {
        Self { kept: Mutex::default(), making: Arc::new(Semaphore::new(1)) }
    }
}

/// A download of a copy. Dropping it ends it.
pub(super) struct Download {
    pub(super) copied: Arc<Copied>,
    downloads: Arc<Downloads>,
    /// The bytes that its connection has taken, once it has ended.
    pub(super) part: (u64, u64),
}

impl Kept {
    /// Whether connections have taken all bytes, after one more part.
    fn is_taken(&mut self, part: (u64, u64)) -> bool {
        self.parts.push(part);
        self.parts.sort_unstable();
        let mut joined: Vec<(u64, u64)> = Vec::new();
        for &(start, end) in &self.parts {
            match joined.last_mut().filter(|last| start <= last.1) {
                Some(last) => last.1 = last.1.max(end),
                None => joined.push((start, end)),
            }
        }
        self.parts = joined;
        self.parts.first() == Some(&(0, self.copied.backup.bytes))
    }
}

/// The file of a copy of this database.
fn path_of(database: &Path) -> PathBuf {
    let mut name = database.as_os_str().to_owned();
    name.push(END);
    name.into()
}

/// Refuses a download that could not be copied, in words of its client, who does not name a file.
fn require_writable_folder(copy: &Path) -> Result<()> {
    match File::create_new(copy) {
        Ok(_) => {
            // The copy is made under this name.
            let _absent = std::fs::remove_file(copy);
            Ok(())
        }
        Err(error) => match error.kind() {
            ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => Err(Error::unsupported(
                "a download is first copied beside the database, and the server cannot write to its folder: \
                 copy the file itself, or serve it from a folder that can be written",
            )),
            // The copy itself tells what is wrong.
            _ => Ok(()),
        },
    }
}

/// The file name of the database whose copy a file of this name is.
pub(super) fn database_of(name: &str) -> Option<&str> {
    name.split_once(END).map(|(database, _)| database)
}

/// Removes what crashes have left of the copies of a database. Lists its folder.
pub(super) fn remove_left(database: &Path) {
    let path = path_of(database);
    remove_copies(&path);
    // A missing file needs no removal.
    let _absent = std::fs::remove_file(path);
}

impl Downloads {
    /// Makes a copy of the database at this path, and begins its download. Dropping the future ends the
    /// work.
    pub(super) async fn make(
        self: &Arc<Self>,
        store: &Arc<Store>,
        database: &Path,
    ) -> Result<Result<Download>, Refusal> {
        let busy = || over("backups at one time", HTTP_BACKUPS_MAX as u64, "", 30);
        let making = self.making.clone().try_acquire_owned().map_err(|_| busy())?;
        if !self.has_place() {
            return Err(busy());
        }
        remove_left(database);
        if let Err(error) = require_writable_folder(&path_of(database)) {
            return Ok(Err(error));
        }
        let (path, (completion, made)) = (path_of(database), pending());
        let wanted = Wanted::new();
        let goes_on = wanted.liveness();
        let step = move |_, _| goes_on();
        let reply = move |copied: Result<Backup>| {
            let copied = copied.and_then(|backup| Copied::of(&path, backup));
            // With the permit: a client that has its answer may ask for another copy at once.
            completion.complete(Ok((copied, making)));
        };
        store.backup(path_of(database), step, reply);
        Ok(match made.await {
            Ok((made, _making)) => made.map(|copied| self.keep(copied)),
            Err(error) => Err(error),
        })
    }

    /// Removes the oldest copy that no download reads, if there are too many.
    fn has_place(&self) -> bool {
        let mut kept = self.kept.lock();
        if kept.len() < HTTP_BACKUPS_MAX {
            return true;
        }
        let idle = kept.iter().position(|copy| copy.readers == 0);
        idle.is_some_and(|at| {
            kept.remove(at);
            true
        })
    }

    fn keep(self: &Arc<Self>, copied: Copied) -> Download {
        let copied = Arc::new(copied);
        let (parts, idle_since) = (Vec::new(), Instant::now());
        let kept = Kept { copied: copied.clone(), readers: 1, parts, idle_since };
        self.kept.lock().push(kept);
        Download { copied, downloads: self.clone(), part: (0, 0) }
    }

    /// Begins another download of the copy with this hash, if it is still there.
    pub(super) fn resume(self: &Arc<Self>, hash: &[u8; 32]) -> Option<Download> {
        let mut kept = self.kept.lock();
        let found = kept.iter_mut().find(|copy| copy.copied.hash == *hash)?;
        found.readers += 1;
        let (copied, downloads) = (found.copied.clone(), self.clone());
        Some(Download { copied, downloads, part: (0, 0) })
    }

    /// Ends a download; `true` if the copy is kept for another one.
    fn ended(&self, download: &Download) -> bool {
        let mut kept = self.kept.lock();
        let is_it = |copy: &Kept| Arc::ptr_eq(&copy.copied, &download.copied);
        let Some(at) = kept.iter().position(is_it) else { return false };
        if let Some(copy) = kept.get_mut(at) {
            copy.readers -= 1;
            copy.idle_since = Instant::now();
            let is_taken = copy.is_taken(download.part);
            if copy.readers > 0 || !is_taken {
                return true;
            }
        }
        kept.remove(at);
        false
    }

    /// Removes the copies that no download has read for some time.
    fn remove_idle(&self) {
        let most = Duration::from_millis(HTTP_BACKUP_KEPT_MS);
        self.kept.lock().retain(|copy| copy.readers > 0 || copy.idle_since.elapsed() < most);
    }

    /// Removes all copies; downloads under way keep theirs.
    pub(super) fn clear(&self) {
        self.kept.lock().clear();
    }
}

impl Drop for Download {
    fn drop(&mut self) {
        let is_kept = self.downloads.ended(self);
        // Without a runtime the server is closing, which removes all copies.
        if is_kept && let Ok(runtime) = tokio::runtime::Handle::try_current() {
            let downloads = Arc::downgrade(&self.downloads);
            runtime.spawn(async move {
                sleep(Duration::from_millis(HTTP_BACKUP_KEPT_MS)).await;
                if let Some(downloads) = downloads.upgrade() {
                    downloads.remove_idle();
                }
            });
        }
    }
}

impl Copied {
    /// Takes the finished copy at a path out of its folder, and hashes it.
    fn of(path: &Path, backup: Backup) -> Result<Self> {
        let mut file = File::open(path).map_err(failed)?;
        std::fs::remove_file(path).map_err(failed)?;
        let mut hash = Sha256::new();
        std::io::copy(&mut file, &mut hash).map_err(failed)?;
        Ok(Self { backup, hash: hash.finalize().into(), file: Mutex::new(file) })
    }

    /// The piece from `at` on.
    pub(super) fn read(&self, at: u64, len: usize) -> Result<Vec<u8>> {
        let mut piece = vec![0; len];
        let mut file = self.file.lock();
        file.seek(SeekFrom::Start(at)).and_then(|_| file.read_exact(&mut piece)).map_err(failed)?;
        Ok(piece)
    }
}

fn failed(error: std::io::Error) -> Error {
    Error::unavailable(format!("the copy of the database cannot be read: {error}"))
}
