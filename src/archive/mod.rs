//! Archives: the log of a database in a folder or an object store, and restores to a point in time.
//!
//! Duty: an archiver copies the segments of the log and, at intervals, a snapshot; a restore puts a snapshot
//! and the segments after it together again.
//! Invariant: an object is written once and names its content by a hash; a segments object names the object
//! that it continues. One archiver writes at a time.
//! Never: a restore over a file; trust in an object that does not match its hash; a credential in a message.
//!
//! `names`, `object`, `manifest` and `plan` are pure. `target` is the only file that names `object_store`,
//! with the connections of `http`.

mod catalog;
mod content;
mod copying;
mod ending;
mod http;
mod listing;
mod manifest;
mod names;
mod object;
mod ownership;
mod plan;
mod prune;
mod restore;
mod run;
mod snapshot;
mod status;
mod target;
#[cfg(test)]
mod tests;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::Deserialize;

pub use listing::{ListedSnapshot, ListedTimeline, Listing};
pub use prune::Removed;
pub use restore::{Progress, RestoreOptions, Restored, restore};
pub use status::Status;
pub use verify::Verified;

use crate::model::{
    ARCHIVE_LEASE_MS, ARCHIVE_LOOK_MS, ARCHIVE_RETENTION_MS, ARCHIVE_SNAPSHOT_EVERY_MS, Capability,
    Error, Result,
};
use crate::store::Store;

/// What an archiver is to do.
#[derive(Clone, Debug, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ArchiveOptions {
    /// A folder, or a URL of an object store.
    pub target: String,
    /// Files of snapshots are written beside this path, and removed.
    pub beside: PathBuf,
    /// How often it takes a snapshot, in ms.
    #[serde(default = "snapshot_every_ms")]
    pub snapshot_every_ms: i64,
    /// How long the archive reaches back, in ms.
    #[serde(default = "retention_ms")]
    pub retention_ms: i64,
    /// The pause between two looks at the log, in ms.
    #[serde(default = "look_ms")]
    pub look_ms: u64,
    /// How long a silent owner keeps the archive, in ms.
    #[serde(default = "lease_ms")]
    pub lease_ms: u64,
}

fn snapshot_every_ms() -> i64 {
    ARCHIVE_SNAPSHOT_EVERY_MS
}

fn retention_ms() -> i64 {
    ARCHIVE_RETENTION_MS
}

fn look_ms() -> u64 {
    ARCHIVE_LOOK_MS
}

fn lease_ms() -> u64 {
    ARCHIVE_LEASE_MS
}

impl ArchiveOptions {
    /// The options with defaults for everything else.
    #[must_use]
    pub fn new(target: String, beside: PathBuf) -> Self {
        Self {
            target,
            beside,
            snapshot_every_ms: snapshot_every_ms(),
            retention_ms: retention_ms(),
            look_ms: look_ms(),
            lease_ms: lease_ms(),
        }
    }
}

/// A running archiver. Dropping it stops it, without a wait.
pub struct Archive {
    shared: Arc<status::Shared>,
}

impl Archive {
    /// Starts to archive a store. `begun` gets the outcome: the archiver owns the target, or cannot. It does
    /// not keep the store open.
    ///
    /// # Errors
    /// `begun` gets `Unsupported` for a database in memory and for a file of Deno, `Invalid` for a target that
    /// is not empty and no archive, or the archive of another database, `Unavailable` if another archiver
    /// writes, `Denied` without permission.
    pub fn start(
        store: Arc<Store>,
        options: ArchiveOptions,
        begun: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Self {
        let archive = Self { shared: Arc::new(status::Shared::new()) };
        if let Err(error) = store.capabilities().require(Capability::Archive) {
            archive.shared.ended(Some(&error));
            begun(Err(error));
            return archive;
        }
        let id = format!("{:016x}", store.random());
        run::start(store, options, archive.shared.clone(), id, begun);
        archive
    }

    /// Its state; the reports in it are not repeated.
    #[must_use]
    pub fn status(&self) -> Status {
        self.shared.status(true)
    }

    /// Asks it to archive what is left and to end.
    pub fn stop(&self) {
        self.shared.stop();
    }

    /// Waits for its end.
    pub fn wait_ended(&self) {
        self.shared.wait_ended();
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.stop();
    }
}

/// What an archive has.
///
/// # Errors
/// `Invalid` if the target is no archive; errors of the target.
pub fn list(target: &str) -> Result<Listing> {
    listing::of(&prune::open(target)?)
}

/// Verifies a whole archive in memory. Files are written beside `scratch`, and removed.
///
/// # Errors
/// As [`list`]; errors of the disk.
pub fn verify(target: &str, scratch: &Path, progress: Progress<'_>) -> Result<Verified> {
    verify::verify(&prune::open(target)?, scratch, progress)
}

/// Removes what no restore to a time since `oldest_ms` needs.
///
/// # Errors
/// As [`list`].
pub fn remove_before(target: &str, oldest_ms: i64) -> Result<Removed> {
    prune::by_retention(&prune::open(target)?, oldest_ms)
}

/// The error of a store that was closed.
fn closed() -> Error {
    Error::closed()
}
