//! Whether the entries that a write leaves have values that a unique index has for other entries.

use super::effect::{NewRow, RowEffect};
use super::evaluate::Evaluation;
use super::unique::Unique;
use crate::codec::key;
use crate::index::{Unfit, ValueIndex};
use crate::model::{Error, Key, Result, Violation};

impl Evaluation<'_> {
    /// Whether writes can be refused by a unique index.
    pub(super) fn has_unique(&self) -> bool {
        self.unique.is_some()
    }

    /// Notes an entry that is stored whatever its value is.
    pub(super) fn note_unchecked(&mut self, key: &Key, row: &NewRow) {
        if let Some(unique) = &mut self.unique {
            // A value that cannot be unique is found by the next write of the key.
            let _noted = unique.note(key, row);
        }
    }

    /// The violations by the entries that a write has left under these keys. The inner error rejects the
    /// write, the outer one is the base's.
    pub(super) fn violations<'k>(
        &mut self,
        keys: impl Iterator<Item = &'k Key>,
    ) -> Result<Result<Vec<Violation>>> {
        let Some(mut unique) = self.unique.take() else { return Ok(Ok(Vec::new())) };
        let found = self.violations_of(&mut unique, keys);
        self.unique = Some(unique);
        found
    }

    fn violations_of<'k>(
        &mut self,
        unique: &mut Unique,
        keys: impl Iterator<Item = &'k Key>,
    ) -> Result<Result<Vec<Violation>>> {
        let mut found: Vec<Violation> = Vec::new();
        for key in keys {
            let row = match self.rows.get(key) {
                Some(effect @ RowEffect::Stored(row)) if effect.version(self.now_ms).is_some() => {
                    row
                }
                // Without a new value nothing can be violated.
                _ => continue,
            };
            let values = match unique.note(key, row) {
                Ok(values) => values,
                Err((at, unfit)) => return Ok(Err(unfit_error(unique, at, unfit, key))),
            };
            for (at, value) in values {
                let Some(index) = unique.indexes.get(at) else { continue };
                let mut others = unique.others(at, &value, key);
                let mut other = others.find(|other| self.stores(index, other, &value)).cloned();
                if other.is_none() {
                    other = self.other_before(index, key, &value)?;
                }
                let index = index.spec().name.clone();
                let violation = other.map(|other| Violation { index, key: key.clone(), other });
                found.extend(violation.filter(|violation| !found.contains(violation)));
            }
        }
        Ok(Ok(found))
    }

    /// Whether the batch leaves an entry with this value under a key.
    fn stores(&self, index: &ValueIndex, key: &Key, value: &Vec<u8>) -> bool {
        match self.rows.get(key) {
            Some(effect @ RowEffect::Stored(row)) if effect.version(self.now_ms).is_some() => {
                let values = index.unique_values(row.value.encoding, &row.value.bytes);
                values.is_ok_and(|values| values.contains(value))
            }
            _ => false,
        }
    }

    /// Another entry with this value, from before the batch and not changed by it.
    fn other_before(&mut self, index: &ValueIndex, key: &Key, value: &[u8]) -> Result<Option<Key>> {
        let mut others = Vec::new();
        let end = [value, &[u8::MAX]].concat();
        self.base.walk_index(index.info.id, (value, &end), &mut |entry| {
            let other = entry.get(value.len()..).filter(|other| *other != key.as_bytes());
            others.extend(other.map(|other| Key::from_encoded(other.to_vec())));
            true
        })?;
        for other in others {
            let is_there = match self.rows.get(&other) {
                None => self.base.version(&other)?.is_some(),
                Some(effect @ RowEffect::ExpirySet { .. }) => effect.version(self.now_ms).is_some(),
                // Those that the batch has stored are known.
                Some(RowEffect::Stored(_) | RowEffect::Removed) => false,
            };
            if is_there {
                return Ok(Some(other));
            }
        }
        Ok(None)
    }
}

fn unfit_error(unique: &Unique, at: usize, unfit: Unfit, key: &Key) -> Error {
    let key = key::print(key.as_bytes());
    match unique.indexes.get(at) {
        Some(index) => unfit.error(index.spec(), &key),
        None => Error::internal("an index is not there"),
    }
}
