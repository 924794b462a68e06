//! Restores a backup to a path, where it may replace a database.
//!
//! Duty: verify the backup, copy it beside the target, and rename the copy to the target.
//! Invariant: at any time the target is either the old file or the complete backup.
//! Never: replace an open database, or leave its log beside the backup.

use std::fs::{File, OpenOptions};
use std::path::Path;
use std::time::Duration;

use rusqlite::{Connection, OpenFlags};

use super::backup::copied;
use super::connection::{self, Access};
use super::errors::failure;
use super::identity::beside;
use super::integrity_check::integrity_check;
use super::unfinished::{Unfinished, sync_folder_of};
use super::{identity, layout, page_cache, unopened};
use openkv_core::model::{Backup, Error, Result};

/// The suffixes of SQLite's files beside a database.
const SIDES: [&str; 3] = ["-wal", "-shm", "-journal"];

/// Wait for a process that writes to the backup.
const BUSY: Duration = Duration::from_secs(5);

/// Copies the file `from` to `to`; replaces an existing file only if `replace` is set. `step`
/// receives the number of pages done and of all pages; `false` cancels the work, and nothing is
/// left behind.
///
/// # Errors
/// `Invalid` if `to` exists and must not be replaced; `Unavailable` if it is open; `Corrupt` or
/// `Unsupported` for a file that is no valid backup.
pub fn restore(
    from: &Path,
    to: &Path,
    replace: bool,
    step: &mut dyn FnMut(u64, u64) -> bool,
) -> Result<Backup> {
    // Replaces the target of a symbolic link, not the link.
    let to = &to.canonicalize().unwrap_or_else(|_| to.to_owned());
    if from.canonicalize().is_ok_and(|from| from == *to) {
        return Err(Error::invalid(format!("{} cannot be restored to itself", to.display())));
    }
    let there = [""].iter().chain(&SIDES).map(|end| beside(to, end)).find(|file| file.exists());
    if let Some(file) = there.filter(|_| !replace) {
        return Err(Error::invalid(format!(
            "{} exists already; name a file that does not, or have it replaced (force: true, --force)",
            file.display()
        )));
    }
    let named = |error: Error| {
        let error = unopened::explain(error, from, Access::Read);
        Error::new(error.kind(), format!("{}: {}", from.display(), error.message()))
    };
    let source = open_backup(from).map_err(named)?;
    layout::recognize(&source).map_err(named)?;
    let findings = integrity_check(&source, 1).map_err(named)?;
    if let Some(finding) = findings.first() {
        let message = format!("the backup is damaged ({finding}); nothing was restored");
        return Err(named(Error::corrupt(message)));
    }
    let old = to.exists().then(|| Excluded::new(to)).transpose()?;
    let unfinished = Unfinished::beside(to);
    unfinished.create(to)?;
    let copied = copied(&source, unfinished.path(), step)?;
    drop(source);
    // No process may open the new file while the log of the old one is beside it.
    let new = Excluded::new(unfinished.path())?;
    let bytes = unfinished.replace(to)?;
    if let Some(old) = old {
        old.end();
    }
    remove_sides(to)?;
    drop(new);
    Ok(Backup { bytes, ..copied })
}

fn remove_sides(path: &Path) -> Result<()> {
    for end in SIDES {
        let file = beside(path, end);
        match std::fs::remove_file(&file) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => {}
            Err(error) => {
                let why = format!(
                    "the backup is restored, but {} of the file that was there before could not be \
                     removed, which has to be done before it is opened: {error}",
                    file.display()
                );
                return Err(Error::unavailable(why));
            }
        }
    }
    sync_folder_of(path);
    Ok(())
}

/// Opens a backup without creating files beside it, since it can be on a read-only medium.
fn open_backup(path: &Path) -> Result<Connection> {
    if !path.is_file() {
        return Err(Error::unavailable("there is no such file"));
    }
    if identity::has_log(path) {
        let connection = connection::open(path, Access::Read, BUSY)?;
        identity::verify_log(&connection, path)?;
        return Ok(connection);
    }
    #[cfg(unix)]
    super::locks::install();
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_encoded_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            _ => uri.push_str(&format!("%{byte:02x}")),
        }
    }
    uri.push_str("?immutable=1");
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
        | OpenFlags::SQLITE_OPEN_NO_MUTEX
        | OpenFlags::SQLITE_OPEN_URI;
    page_cache::install();
    Connection::open_with_flags(uri, flags).map_err(failure)
}

/// A file with an exclusive lock: no connection of any process has it open or can open it.
struct Excluded {
    file: File,
}

impl Excluded {
    fn new(path: &Path) -> Result<Self> {
        let mut options = OpenOptions::new();
        options.read(true).write(true);
        #[cfg(windows)]
        {
            use std::os::windows::fs::OpenOptionsExt;
            // Others may only delete or replace the file.
            const FILE_SHARE_DELETE: u32 = 4;
            options.share_mode(FILE_SHARE_DELETE);
        }
        let open = || {
            let message = "is open, in this process or another: close it there first";
            Error::unavailable(format!("{} {message}", path.display()))
        };
        let file = options.open(path).map_err(|error| match error.kind() {
            std::io::ErrorKind::PermissionDenied if cfg!(unix) => {
                let message = "may not be written by this process";
                Error::denied(format!("{} {message}", path.display()))
            }
            _ if cfg!(windows) => open(),
            _ => Error::unavailable(format!("{}: {error}", path.display())),
        })?;
        #[cfg(unix)]
        if !super::locks::exclude(&file) {
            return Err(open());
        }
        Ok(Self { file })
    }

    /// Ends the lock after the replacement. A connection that opened the old file and waits for its
    /// lock must find no database in it.
    fn end(self) {
        #[cfg(unix)]
        {
            use std::os::unix::fs::{FileExt, MetadataExt};
            const REPLACED: &[u8] = b"replaced by a restored backup";
            let nameless = self.file.metadata().is_ok_and(|file| file.nlink() == 0);
            if nameless && let Err(error) = self.file.write_all_at(REPLACED, 0) {
                tracing::warn!(%error, "marking a replaced file");
            }
        }
        drop(self.file);
    }
}
