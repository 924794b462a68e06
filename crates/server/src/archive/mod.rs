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
mod ending;
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
mod snapshot_file;
mod source;
mod status;
mod target;
#[cfg(test)]
mod tests;
mod verify;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde::Deserialize;

pub use listing::{ListedSnapshot, ListedTimeline, Listing};
pub use prune::Removed;
pub use restore::{Progress, RestoreOptions, Restored, restore};
pub use status::Status;
pub use verify::Verified;

use openkv_core::model::{
    ARCHIVE_LEASE_MS, ARCHIVE_LOOK_MS, ARCHIVE_RETENTION_MS, ARCHIVE_SNAPSHOT_EVERY_MS, Capability,
    Error, Result,
};
use openkv_store::Store;

/// The options of an archiver.
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
    /// The target instead, if `target` is the archive of another database.
    #[serde(skip)]
    pub otherwise: Option<String>,
    /// Whether it is that of a server: the metrics, which its clients read, leave out the target, and another
    /// archiver goes on after an error.
    #[serde(skip)]
    pub is_private: bool,
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
    /// The target as metrics name it; one that may have credentials is refused later, and not shown before.
    fn shown_target(&self) -> String {
        let is_shown = !self.is_private && !self.target.contains(['@', '?', '#']);
        if is_shown { self.target.clone() } else { String::new() }
    }

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
            otherwise: None,
            is_private: false,
        }
    }
}

/// A running archiver. Dropping it stops it, without a wait.
pub struct Archive {
    shared: Arc<status::ArchiverState>,
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
        Self::start_after(None, store, options, begun)
    }

    /// As [`Archive::start`], with the counts of an earlier archiver of the database.
    pub fn start_after(
        previous: Option<&Self>,
        store: Arc<Store>,
        options: ArchiveOptions,
        begun: impl FnOnce(Result<()>) + Send + 'static,
    ) -> Self {
        let previous = previous.map(|previous| &*previous.shared);
        let archive = Self { shared: Arc::new(status::ArchiverState::after(previous)) };
        let (shown, to) = (Arc::downgrade(&archive.shared), options.shown_target());
        let is_retried = options.is_private;
        store.show_archive(Box::new(move || shown.upgrade()?.figures(&to, is_retried)));
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

    /// Waits for its end, at most until then; returns whether it has ended.
    #[must_use]
    pub fn wait_ended_until(&self, deadline: Instant) -> bool {
        self.shared.wait_ended_until(deadline)
    }

    /// Whether everything is archived, and no snapshot is under way.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.shared.is_settled()
    }
}

impl Drop for Archive {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Checks a target without a request to it: `Ok` for a folder that exists or can be created, and for the URL of
/// an object store.
///
/// # Errors
/// `Invalid` for something else, for a file, and for a URL with credentials.
pub fn check_target(target: &str) -> Result<()> {
    target::Target::check(target)
}

/// The contents of an archive.
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
pub fn remove_before(target: &str, oldest_ms: i64) -> Result<Removed> {
    prune::by_retention(&prune::open(target)?, oldest_ms)
}

/// The error of a store that was closed.
fn closed() -> Error {
    Error::closed()
}
