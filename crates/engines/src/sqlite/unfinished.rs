//! Copies of a file that are not complete yet.
//!
//! Duty: write a copy under a temporary name beside the target, and rename it once it is complete.
//! Invariant: a file with the target's name is complete and synced.
//! Never: replace a file in [`Unfinished::finish`]; remove the copy of a running process.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use super::identity::beside;
use openkv_core::model::{Error, Result};

/// Suffix of the temporary name, after the process id and the number of the copy.
const END: &str = ".unfinished";

/// The unfinished copies of this process, by number.
static COPIES: Mutex<Copies> = Mutex::new(Copies { last: 0, live: BTreeSet::new() });

struct Copies {
    last: u64,
    live: BTreeSet<u64>,
}

/// An incomplete file, which is removed when dropped unless it is finished.
pub struct Unfinished {
    path: PathBuf,
    copy: u64,
}

impl Unfinished {
    /// A new one in the folder of `to`. Removes copies for the same target that ended processes
    /// have left.
    pub fn beside(to: &Path) -> Self {
        remove_abandoned(to);
        let mut copies = COPIES.lock();
        copies.last += 1;
        let copy = copies.last;
        copies.live.insert(copy);
        drop(copies);
        let path = beside(to, &format!(".{}-{copy}{END}", std::process::id()));
        Self { path, copy }
    }

    /// Creates the file, empty. An error names `to`, and what is wrong with its folder.
    pub(super) fn create(&self, to: &Path) -> Result<()> {
        let created = File::create_new(&self.path);
        created.map(drop).map_err(|error| {
            let advice = match error.kind() {
                ErrorKind::NotFound | ErrorKind::NotADirectory => {
                    "there is no such folder; create it first"
                }
                ErrorKind::PermissionDenied | ErrorKind::ReadOnlyFilesystem => {
                    "its folder cannot be written; name a file in another one"
                }
                _ => return about(to)(error),
            };
            Error::unavailable(format!("{}: {advice} ({error})", to.display()))
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Renames it to replace another file, atomically and durably; returns its size.
    pub(super) fn replace(&self, to: &Path) -> Result<u64> {
        let bytes = self.sync().map_err(about(to))?;
        std::fs::rename(&self.path, to).map_err(about(to))?;
        sync_folder_of(to);
        Ok(bytes)
    }

    /// Makes its content durable; returns its size.
    fn sync(&self) -> std::io::Result<u64> {
        let file = File::open(&self.path)?;
        file.sync_all()?;
        Ok(file.metadata()?.len())
    }

    /// Renames it to `to`, durably.
    ///
    /// # Errors
    /// `Invalid` if a file of that name exists meanwhile.
    pub fn finish(&self, to: &Path) -> Result<u64> {
        let bytes = self.sync().map_err(about(to))?;
        // Unlike a rename, a hard link does not replace a file that was created meanwhile.
        match std::fs::hard_link(&self.path, to) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(taken(to)),
            // Not every file system has hard links.
            Err(_) if to.exists() => return Err(taken(to)),
            Err(_) => std::fs::rename(&self.path, to).map_err(about(to))?,
        }
        sync_folder_of(to);
        Ok(bytes)
    }
}

fn about(path: &Path) -> impl Fn(std::io::Error) -> Error {
    move |error| Error::unavailable(format!("{}: {error}", path.display()))
}

/// Makes the directory entries in a file's folder durable.
pub(super) fn sync_folder_of(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
        // Not every system can sync directories.
        let _unsupported = folder.sync_all();
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        remove(&self.path);
        COPIES.lock().live.remove(&self.copy);
    }
}

fn remove(path: &Path) {
    for end in ["", "-wal", "-shm", "-journal"] {
        // A missing file needs no removal.
        let _absent = std::fs::remove_file(beside(path, end));
    }
}

/// Removes the copies for `to` whose processes have ended without removing them.
pub fn remove_abandoned(to: &Path) {
    let (Some(folder), Some(name)) = (to.parent(), to.file_name().and_then(|name| name.to_str()))
    else {
        return;
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // If the folder cannot be listed, nothing is cleaned; the backup reports it if it cannot write.
    let Ok(files) = std::fs::read_dir(folder) else { return };
    for file in files.flatten() {
        let found = file.file_name();
        let maker = found.to_str().and_then(|found| maker_of(found, name));
        if maker.is_some_and(|maker| !is_at_work(maker)) {
            tracing::info!(file = %file.path().display(), "removing an unfinished backup");
            remove(&file.path());
        }
    }
}

/// The process id and the number of the copy in a file name, if it is a copy for `target`.
fn maker_of(name: &str, target: &str) -> Option<(u32, u64)> {
    let rest = name.strip_prefix(target)?.strip_prefix('.')?.strip_suffix(END)?;
    let (process, copy) = rest.split_once('-')?;
    Some((process.parse().ok()?, copy.parse().ok()?))
}

fn is_at_work((process, copy): (u32, u64)) -> bool {
    if process == std::process::id() {
        return COPIES.lock().live.contains(&copy);
    }
    is_alive(process)
}

#[cfg(unix)]
fn is_alive(process: u32) -> bool {
    let Ok(process) = libc::pid_t::try_from(process) else { return false };
    // SAFETY: signal 0 only checks whether the process exists.
    let answer = unsafe { libc::kill(process, 0) };
    // EPERM means a process of another user.
    answer == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// On these systems an open file cannot be removed, so the removal itself is the check.
#[cfg(not(unix))]
fn is_alive(_process: u32) -> bool {
    false
}

pub(super) fn taken(to: &Path) -> Error {
    Error::invalid(format!("{} exists already; name a file that does not", to.display()))
}
