//! The place of the data of a served database.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use super::membership::Membership;
use super::pending::BUSY;
use super::read_server::Primary;
use openkv_client::open::{Target, open};
use openkv_core::model::{Error, PageMemory, Result};
use openkv_store::Store;

/// The lengths and times of a file and of its log. They change with every commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileStamp([Option<(u64, Option<SystemTime>)>; 2]);

/// The place of a database.
pub(super) enum Location {
    /// A file, and those that SQLite puts beside it.
    File {
        path: PathBuf,
        /// Whether writes are refused.
        readonly: bool,
    },
    /// The replica of a read server.
    Replica { path: PathBuf, primary: Arc<Primary> },
    /// A database of several servers.
    Shared {
        members: Arc<Membership>,
        /// Its name at the place. A reused name of the catalog is another database, so this
        /// is its UUID.
        name: String,
    },
}

impl Location {
    /// The store, which it opens unless it is open.
    pub(super) fn open(&self) -> Result<Arc<Store>> {
        let target = match self {
            Self::File { path, readonly } => Target::File {
                path: path.clone(),
                readonly: *readonly,
                busy: BUSY,
                encoding: None,
                memory: PageMemory::default(),
            },
            Self::Replica { primary, .. } => return primary.store(),
            Self::Shared { members, name } => members.target_of(name)?,
        };
        Ok(open(&target)?.store("Serving")?.clone())
    }

    /// The primary of a read server.
    pub(super) fn primary(&self) -> Option<&Arc<Primary>> {
        match self {
            Self::Replica { primary, .. } => Some(primary),
            Self::File { .. } | Self::Shared { .. } => None,
        }
    }

    /// Its file; `None` if it has none on this machine.
    pub(super) fn file(&self) -> Option<&Path> {
        match self {
            Self::File { path, .. } | Self::Replica { path, .. } => Some(path),
            Self::Shared { .. } => None,
        }
    }

    /// The same error without the path of the database's files, neither the file nor its folder. The
    /// errors of PostgreSQL name no place.
    pub(super) fn without_path(&self, error: &Error) -> Error {
        let mut message = error.message().to_owned();
        let named = match self {
            Self::File { path, .. } | Self::Replica { path, .. } => {
                [(Some(path.as_path()), "the database"), (path.parent(), "its folder")]
            }
            Self::Shared { members, .. } => [(members.cache(), "the cache"), (None, "")],
        };
        for (part, name) in named {
            // The root and an empty parent reveal nothing.
            if let Some(part) = part.and_then(Path::to_str).filter(|part| part.len() > 1) {
                message = message.replace(part, name);
            }
        }
        Error::new(error.kind(), message)
    }

    /// The present state of its file; `None` where there is none.
    pub(super) fn file_stamp(&self) -> Option<FileStamp> {
        let [file, log, _] = files(self.file()?);
        let of = |path: &Path| {
            // An empty log says as much as none.
            let found = path.metadata().ok().filter(|found| found.len() > 0)?;
            Some((found.len(), found.modified().ok()))
        };
        Some(FileStamp([of(&file), of(&log)]))
    }

    /// Deletes the data, which no caller uses any more.
    pub(super) fn destroy(&self) -> Result<()> {
        match self {
            Self::File { path, .. } | Self::Replica { path, .. } => {
                files(path).iter().for_each(|file| remove_file(file));
                Ok(())
            }
            Self::Shared { members, name } => {
                self.remove_copy();
                members.destroy(name)
            }
        }
    }

    /// Removes the local copy, if this server keeps one, of a database that was dropped.
    pub(super) fn remove_copy(&self) {
        let Self::Shared { members, name } = self else { return };
        if let Some(cache) = members.cache()
            && let Err(error) = std::fs::remove_dir_all(cache.join(name))
            && error.kind() != std::io::ErrorKind::NotFound
        {
            tracing::warn!(%error, database = name, "removing the copy of a dropped database");
        }
    }
}

/// Removes a file of a dropped database, if it is there.
pub(super) fn remove_file(file: &Path) {
    if let Err(error) = std::fs::remove_file(file)
        && error.kind() != std::io::ErrorKind::NotFound
    {
        tracing::warn!(%error, file = %file.display(), "removing the file of a dropped database");
    }
}

/// A database's file and those that SQLite puts beside it.
fn files(path: &Path) -> [PathBuf; 3] {
    ["", "-wal", "-shm"].map(|end| {
        let mut name = path.as_os_str().to_owned();
        name.push(end);
        name.into()
    })
}
