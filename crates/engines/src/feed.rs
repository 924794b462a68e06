//! What change feeds read: the changes of the log, commit by commit.

use super::Snapshot;
use super::replication::damaged;
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
    /// Every removal of the commits after this one is in the log. Not after `complete`: no commit between them has
    /// removed an entry, so the entries still have the last change of each key.
    pub removed: u64,
}

impl FeedState {
    /// Of a database whose last commit is `version`, and whose last commit with a removal is `removed`. `log`: the
    /// same two of the log, [`Self::complete`] and [`Self::removed`]; `None` if it is off.
    pub(super) fn of(version: u64, removed: u64, log: Option<(u64, u64)>) -> Self {
        let (complete, removed) = log.unwrap_or((version, removed));
        Self { on: log.is_some(), version, complete, removed }
    }

    /// At a moment of the past, after this commit. There are no changes after it, and those before it are not known.
    pub(super) fn of_past(version: u64) -> Self {
        Self::of(version, version, Some((version, version)))
    }
}

impl dyn Snapshot + '_ {
    /// Visits the changes of the commits after `after`, in order, until `visit` returns `false`.
    ///
    /// # Errors
    /// `Corrupt` for a damaged segment; errors of the medium.
    pub fn changes(&mut self, after: u64, visit: &mut dyn FnMut(Logged<'_>) -> bool) -> Result<()> {
        let mut read = Ok(());
        self.log()?.segments(after, &mut |segment| {
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
}
