//! The log of changes in memory.

use std::collections::BTreeMap;
use std::ops::Bound;

use crate::feed::{Amount, Extent, FeedLog, FeedState, Shelf, trim};
use openkv_core::model::{Change, FEED_TRIM_COMMITS, Logged, Result};

/// The changes of one commit, and its time.
struct Commit {
    at_ms: i64,
    changes: Vec<Change>,
}

/// An enabled log.
#[derive(Default)]
pub(super) struct Log {
    commits: BTreeMap<u64, Commit>,
    extent: Extent,
}

impl Log {
    /// An empty log that begins after the commit `version`.
    pub(super) fn starting_at(version: u64, removed: u64) -> Self {
        let extent = Extent { complete: version, removed, ..Extent::default() };
        Self { commits: BTreeMap::new(), extent }
    }

    /// Logs changes, in the order of their commits, and trims old ones.
    pub(super) fn log(&mut self, changes: Vec<Change>, now_ms: i64) {
        let before = self.commits.len();
        for change in changes {
            let amount = match change.kind.is_removal() {
                false => &mut self.extent.sets,
                true => &mut self.extent.removals,
            };
            amount.add(change.size_bytes());
            let new = || Commit { at_ms: now_ms, changes: Vec::new() };
            self.commits.entry(change.version).or_insert_with(new).changes.push(change);
        }
        let commits = self.commits.len() - before;
        let mut extent = self.extent;
        if trim(self, &mut extent, now_ms, FEED_TRIM_COMMITS.max(2 * commits)).is_ok() {
            self.extent = extent;
        }
    }

    fn drop_where(&mut self, version: u64, which: impl Fn(&Change) -> bool) -> Amount {
        let mut dropped = Amount::default();
        if let Some(commit) = self.commits.get_mut(&version) {
            commit.changes.retain(|change| {
                let goes = which(change);
                if goes {
                    dropped.add(change.size_bytes());
                }
                !goes
            });
            if commit.changes.is_empty() {
                self.commits.remove(&version);
            }
        }
        dropped
    }
}

impl Shelf for Log {
    fn first_after(&mut self, after: u64) -> Result<Option<(u64, i64)>> {
        let mut rest = self.commits.range((Bound::Excluded(after), Bound::Unbounded));
        Ok(rest.next().map(|(version, commit)| (*version, commit.at_ms)))
    }

    fn drop_sets(&mut self, version: u64) -> Result<Amount> {
        Ok(self.drop_where(version, |change| !change.kind.is_removal()))
    }

    fn drop_removals(&mut self, version: u64) -> Result<Amount> {
        Ok(self.drop_where(version, |change| change.kind.is_removal()))
    }
}

/// The log in a snapshot.
pub(super) struct LogView<'t> {
    pub(super) log: Option<&'t Log>,
    pub(super) version: u64,
    pub(super) removed: u64,
}

impl FeedLog for LogView<'_> {
    fn state(&mut self) -> Result<FeedState> {
        let Self { version, removed, .. } = *self;
        Ok(match self.log {
            None => FeedState { on: false, version, complete: version, removed },
            Some(log) => {
                let Extent { complete, removed, .. } = log.extent;
                FeedState { on: true, version, complete, removed }
            }
        })
    }

    fn changes(&mut self, after: u64, visit: &mut dyn FnMut(Logged<'_>) -> bool) -> Result<()> {
        let Some(log) = self.log else { return Ok(()) };
        let rest = log.commits.range((Bound::Excluded(after), Bound::Unbounded));
        for change in rest.flat_map(|(_, commit)| &commit.changes) {
            let kind = change.kind.as_ref().map(|value| (value.encoding, value.bytes.as_slice()));
            let key = change.key.as_bytes();
            if !visit(Logged { version: change.version, key, kind }) {
                break;
            }
        }
        Ok(())
    }
}
