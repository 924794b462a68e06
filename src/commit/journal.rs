//! The changes of a batch, commit by commit, for the change feed. It also has changes that a later
//! write of the same batch has overwritten.

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::effect::RowEffect;
use crate::model::{Change, EncodedValue, Key};

/// The changes of a batch. A journal that is off records only the last commit with a removal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    on: bool,
    /// Changes of the write under evaluation, each key once.
    begun: IndexMap<Key, Option<EncodedValue>, RandomState>,
    begun_removes: bool,
    changes: Vec<Change>,
    removed: Option<u64>,
}

impl Journal {
    pub(super) fn turn_on(&mut self) {
        self.on = true;
    }

    /// Records an effect of the write under evaluation, whose version will be `version` if it
    /// commits.
    pub(super) fn note(&mut self, key: &Key, effect: &RowEffect, version: u64) {
        let value = match effect {
            RowEffect::Removed => {
                self.begun_removes = true;
                None
            }
            RowEffect::Stored(row) if row.version == version => Some(row),
            // Only the expiry changes.
            RowEffect::Stored(_) | RowEffect::ExpirySet { .. } => return,
        };
        if self.on {
            self.begun.insert(key.clone(), value.map(|row| row.value.clone()));
        }
    }

    /// The write has committed.
    pub(super) fn keep(&mut self, version: u64) {
        if std::mem::take(&mut self.begun_removes) {
            self.removed = Some(version);
        }
        let begun = self.begun.drain(..);
        self.changes.extend(begun.map(|(key, value)| Change { key, version, value }));
    }

    /// The write has not committed.
    pub(super) fn forget(&mut self) {
        self.begun_removes = false;
        self.begun.clear();
    }

    /// The last commit that removed an entry.
    pub(super) fn removed(&self) -> Option<u64> {
        self.removed
    }

    /// Takes all changes, in the order of the commits.
    pub(super) fn take(&mut self) -> Vec<Change> {
        std::mem::take(&mut self.changes)
    }
}
