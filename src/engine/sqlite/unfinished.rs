//! Copies of a file that are not complete yet.
//!
//! Duty: a name beside the target while a copy is made, the target's name when it is complete.
//! Invariant: no file stands under the target's name that is not complete and synced.
//! Never: replaces a file; removes the copy of a process that is at work.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs::File;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;

use crate::model::{Error, Kind, Result};

/// How the name of an unfinished copy ends, behind its process and number.
const END: &str = ".unfinished";

/// The unfinished copies of this process, by number.
static COPIES: Mutex<Copies> = Mutex::new(Copies { last: 0, live: BTreeSet::new() });

struct Copies {
    last: u64,
    live: BTreeSet<u64>,
}

/// A file that is not complete, and is removed with this unless it is finished.
pub(super) struct Unfinished {
    path: PathBuf,
    copy: u64,
}

impl Unfinished {
    /// A new one, in the folder of `to`. Removes those of the same name that ended processes have
    /// left there.
    pub(super) fn beside(to: &Path) -> Self {
        remove_abandoned(to);
        let mut copies = COPIES.lock();
        copies.last += 1;
        let copy = copies.last;
        copies.live.insert(copy);
        drop(copies);
        let mut name = OsString::from(to);
        name.push(format!(".{}-{copy}{END}", std::process::id()));
        Self { path: name.into(), copy }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Gives it a name that is another file's, durably and at once; answers its size.
    pub(super) fn replace(&self, to: &Path) -> Result<u64> {
        let io = |error: std::io::Error| {
            Error::new(Kind::Unavailable, format!("{}: {error}", to.display()))
        };
        let file = File::open(&self.path).map_err(io)?;
        file.sync_all().map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        std::fs::rename(&self.path, to).map_err(io)?;
        sync_folder_of(to);
        Ok(bytes)
    }

    /// Gives it its name, durably.
    ///
    /// # Errors
    /// `Invalid` if a file of that name has come meanwhile.
    pub(super) fn finish(&self, to: &Path) -> Result<u64> {
        let io = |error: std::io::Error| {
            Error::new(Kind::Unavailable, format!("{}: {error}", to.display()))
        };
        let file = File::open(&self.path).map_err(io)?;
        file.sync_all().map_err(io)?;
        let bytes = file.metadata().map_err(io)?.len();
        // Unlike a renaming, a link does not replace a file that has come meanwhile.
        match std::fs::hard_link(&self.path, to) {
            Ok(()) => {}
            Err(error) if error.kind() == ErrorKind::AlreadyExists => return Err(taken(to)),
            // Not every system has links.
            Err(_) if to.exists() => return Err(taken(to)),
            Err(_) => std::fs::rename(&self.path, to).map_err(io)?,
        }
        sync_folder_of(to);
        Ok(bytes)
    }
}

/// Makes the names in a file's folder durable.
pub(super) fn sync_folder_of(path: &Path) {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Ok(folder) = File::open(folder.unwrap_or(Path::new("."))) {
        // Not every system syncs directories.
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
        let mut name = OsString::from(path);
        name.push(end);
        // A file that is not there need not be removed.
        let _absent = std::fs::remove_file(name);
    }
}

/// Removes the copies for `to` whose processes have ended without removing them.
fn remove_abandoned(to: &Path) {
    let (Some(folder), Some(name)) = (to.parent(), to.file_name().and_then(|name| name.to_str()))
    else {
        return;
    };
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    // A folder that cannot be listed cannot be cleaned; the backup tells if it cannot be written.
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

/// The process and the number of the copy that made a file of this name, if it is one for `target`.
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
    // SAFETY: signal 0 only asks whether there is such a process.
    let answer = unsafe { libc::kill(process, 0) };
    // A process of another user answers EPERM.
    answer == 0 || std::io::Error::last_os_error().raw_os_error() != Some(libc::ESRCH)
}

/// Where a file that is open cannot be removed, a failed removal is the answer.
#[cfg(not(unix))]
fn is_alive(_process: u32) -> bool {
    false
}

pub(super) fn taken(to: &Path) -> Error {
    Error::invalid(format!("{} exists already; name a file that does not", to.display()))
}
