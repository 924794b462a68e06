//! What change feeds read: the changes of the log, commit by commit.
//!
//! A file and a database in memory have one log, whose segments replicas and archives read too. PostgreSQL
//! keeps the changes for feeds in a table of their own.

use super::replication::{ReplicationLog, damaged};
use openkv_core::codec::change_log;
use openkv_core::model::{Logged, Result};

/// How far feeds can read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FeedState {
    /// Whether changes are logged at all.
    pub on: bool,
    /// The last commit.
    pub version: u64,
    /// Every change of the commits after this one is in the log.
    pub complete: u64,
    /// Every removal of the commits after this one is in the log. Not after `complete`: without a removal
    /// between them, the entries still have the last change of each key.
    pub removed: u64,
}

/// The changes of one snapshot.
pub trait FeedLog {
    /// The extent.
    ///
    /// # Errors
    /// Errors of the medium.
    fn state(&mut self) -> Result<FeedState>;

    /// Visits the changes of the commits after `after`, in order, until `visit` returns `false`.
    /// PostgreSQL omits a value that was too large for its table and has been replaced since; its
    /// replacement follows later.
    ///
    /// # Errors
    /// Errors of the medium.
    fn changes(&mut self, after: u64, visit: &mut dyn FnMut(Logged<'_>) -> bool) -> Result<()>;
}

/// At a moment of the past, after this commit. There are no changes after it, and those before it are
/// not known.
pub(super) struct FeedOfPast(pub(super) u64);

impl FeedLog for FeedOfPast {
    fn state(&mut self) -> Result<FeedState> {
        Ok(FeedState { on: true, version: self.0, complete: self.0, removed: self.0 })
    }

    fn changes(&mut self, _after: u64, _visit: &mut dyn FnMut(Logged<'_>) -> bool) -> Result<()> {
        Ok(())
    }
}

/// The log of an engine that has none: it is never on. It has the last commit.
pub(super) struct NoFeed(pub(super) Result<u64>);

impl FeedLog for NoFeed {
    fn state(&mut self) -> Result<FeedState> {
        let version = self.0.clone()?;
        Ok(FeedState { on: false, version, complete: version, removed: version })
    }

    fn changes(&mut self, _after: u64, _visit: &mut dyn FnMut(Logged<'_>) -> bool) -> Result<()> {
        Ok(())
    }
}

/// Visits the changes of the commits after `after` in a log, as [`FeedLog::changes`] does.
///
/// # Errors
/// `Corrupt` for a damaged segment; errors of the medium.
pub(super) fn changes_in(
    log: &mut dyn ReplicationLog,
    after: u64,
    visit: &mut dyn FnMut(Logged<'_>) -> bool,
) -> Result<()> {
    let mut read = Ok(());
    log.segments(after, &mut |segment| {
        let mut goes_on = true;
        let decoded = change_log::decode(segment.first, segment.changes, |logged| {
            // The first segment can have earlier commits too.
            goes_on = logged.version <= after || visit(logged);
            goes_on
        });
        read = decoded.map_err(|error| damaged(segment.last, &error));
        goes_on && read.is_ok()
    })?;
    read
}
