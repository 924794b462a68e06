//! The changes of a batch, commit by commit, for the change feed. It also has changes that a later
//! write of the same batch has overwritten.

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use super::effect::RowEffect;
use crate::model::{Change, ChangeKind, EncodedValue, Key};

/// The changes of a batch. A journal that is off records only the last commit with a removal.
#[derive(Debug, Default)]
pub(super) struct Journal {
    on: bool,
    /// Changes of the write under evaluation, each key once.
    begun: IndexMap<Key, ChangeKind<EncodedValue>, RandomState>,
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
        self.begun_removes |= matches!(effect, RowEffect::Removed);
        if !self.on {
            return;
        }
        let expire_at_ms = effect.expire_at_ms();
        let kind = match effect {
            RowEffect::Removed => ChangeKind::Deleted,
            RowEffect::Stored(row) if row.version == version => {
                ChangeKind::Set { value: row.value.clone(), expire_at_ms }
            }
            RowEffect::Stored(_) | RowEffect::ExpirySet { .. } => {
                ChangeKind::ExpirySet { expire_at_ms }
            }
        };
        self.begun.insert(key.clone(), kind);
    }

    /// The write has committed.
    pub(super) fn keep(&mut self, version: u64) {
        if std::mem::take(&mut self.begun_removes) {
            self.removed = Some(version);
        }
        let begun = self.begun.drain(..);
        self.changes.extend(begun.map(|(key, kind)| Change { key, version, kind }));
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
