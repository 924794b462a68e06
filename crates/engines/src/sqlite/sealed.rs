//! Files in folders where this process can make no files: read-only mounts, images, another user's copies.
//!
//! Duty: decide whether such a file is opened as immutable, and detect that it was changed nevertheless.
//! Invariant: a file with a log, or with the index of a log, is not immutable: another process may have it open.
//! Never: a lock. SQLite takes none of an immutable file and reads no log.
//!
//! SQLite reads a file in WAL mode by the index of its log, which it makes beside the file. If it cannot,
//! and neither a log nor an index is there, the file itself is the whole database.

use std::fs::Metadata;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use super::identity::{beside, has_log};
use super::permissions::cannot_make_files_beside;
use openkv_core::model::{Error, Result};

/// A file that is opened as immutable.
#[derive(Clone)]
pub(super) struct SealedFile {
    path: PathBuf,
    opened: State,
}

/// The size, time and inode that show a change of a file.
#[derive(Clone, Copy, PartialEq, Eq)]
struct State {
    bytes: u64,
    modified: Option<SystemTime>,
    inode: u64,
}

impl State {
    fn of(path: &Path) -> Option<Self> {
        let found = path.metadata().ok()?;
        Some(Self { bytes: found.len(), modified: found.modified().ok(), inode: inode(&found) })
    }
}

#[cfg(unix)]
fn inode(found: &Metadata) -> u64 {
    std::os::unix::fs::MetadataExt::ino(found)
}

#[cfg(not(unix))]
fn inode(_: &Metadata) -> u64 {
    0
}

impl SealedFile {
    /// The file, if a reader has to open it as immutable.
    pub(super) fn of(path: &Path) -> Option<Self> {
        if !cannot_make_files_beside(path) || has_log(path) || has_index(path) {
            return None;
        }
        Some(Self { path: path.to_owned(), opened: State::of(path)? })
    }

    /// The name under which SQLite opens the file as immutable: a URI.
    pub(super) fn uri(&self) -> String {
        let mut uri = String::from(if self.path.is_absolute() { "file://" } else { "file:" });
        for byte in self.path.as_os_str().as_encoded_bytes() {
            match byte {
                b'/' | b'.' | b'_' | b'-' => uri.push(char::from(*byte)),
                byte if byte.is_ascii_alphanumeric() => uri.push(char::from(*byte)),
                byte => uri.push_str(&format!("%{byte:02X}")),
            }
        }
        uri.push_str("?immutable=1");
        uri
    }

    /// Passes if the file is as it was when it was opened.
    ///
    /// # Errors
    /// `Unavailable` once another process has opened the file for writing, or has replaced or changed it.
    pub(super) fn verify(&self) -> Result<()> {
        if State::of(&self.path) == Some(self.opened) && !has_index(&self.path) {
            return Ok(());
        }
        Err(Error::unavailable(format!(
            "{} was changed while it was open in a folder where this process can make no files: open it again",
            self.path.display()
        )))
    }
}

/// Whether the index of a log lies beside the file, as it does while a process has the file open.
pub(super) fn has_index(path: &Path) -> bool {
    beside(path, "-shm").symlink_metadata().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_of_a_path_is_kept_in_the_uri() {
        let state = State { bytes: 0, modified: None, inode: 0 };
        let uri = |path: &str| SealedFile { path: path.into(), opened: state }.uri();
        assert_eq!(uri("/a/b-c_1.db"), "file:///a/b-c_1.db?immutable=1");
        assert_eq!(uri("/ü?#% &"), "file:///%C3%BC%3F%23%25%20%26?immutable=1");
        assert_eq!(uri("kv"), "file:kv?immutable=1");
    }
}
