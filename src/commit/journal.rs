//! What a batch did, commit by commit: for the feed of changes, which tells also what a later write
//! of the same batch has changed again.

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::left::Left;
use crate::model::{Change, EncodedValue, Key};

/// The changes of a batch. One that is off notes no more than when something was removed last.
#[derive(Debug, Default)]
pub(super) struct Journal {
    on: bool,
    /// Of the write that is being decided, each key once.
    begun: IndexMap<Key, Option<EncodedValue>, RandomState>,
    begun_removes: bool,
    changes: Vec<Change>,
    removed: Option<u64>,
}

impl Journal {
    pub(super) fn turn_on(&mut self) {
        self.on = true;
    }

    /// The write that is being decided, which is to become `version`, leaves this.
    pub(super) fn note(&mut self, key: &Key, left: &Left, version: u64) {
        let value = match left {
            Left::Removed => {
                self.begun_removes = true;
                None
            }
            Left::Stored(row) if row.version == version => Some(row),
            // Only an end has moved.
            Left::Stored(_) | Left::Retimed { .. } => return,
        };
        if self.on {
            self.begun.insert(key.clone(), value.map(|row| row.value.clone()));
        }
    }

    /// The write has become this commit.
    pub(super) fn keep(&mut self, version: u64) {
        if std::mem::take(&mut self.begun_removes) {
            self.removed = Some(version);
        }
        let begun = self.begun.drain(..);
        self.changes.extend(begun.map(|(key, value)| Change { key, version, value }));
    }

    /// The write has come to nothing.
    pub(super) fn forget(&mut self) {
        self.begun_removes = false;
        self.begun.clear();
    }

    /// The last commit that removed something.
    pub(super) fn removed(&self) -> Option<u64> {
        self.removed
    }

    /// Everything kept, in the order of the commits.
    pub(super) fn take(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }
}
