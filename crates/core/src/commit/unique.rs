//! The unique indexes of a batch, and the values that it has stored.

use std::collections::HashMap;
use std::sync::Arc;

use foldhash::fast::RandomState;

use super::effect::NewRow;
use crate::index::{Unfit, ValueIndex};
use crate::model::Key;

/// The unique indexes, and the values that the batch has stored.
pub(super) struct Unique {
    pub(super) indexes: Arc<[ValueIndex]>,
    /// For each index the keys under which the batch has stored a value, by value. Later writes may have changed
    /// them again, or their write was refused.
    stored: Vec<HashMap<Vec<u8>, Vec<Key>, RandomState>>,
}

/// Values, each with the place of its index.
pub(super) type Values = Vec<(usize, Vec<u8>)>;

impl Unique {
    /// `None` without a unique index.
    pub(super) fn of(indexes: Option<Arc<[ValueIndex]>>) -> Option<Self> {
        let indexes = indexes?;
        let any = indexes.iter().any(|index| index.spec().unique && index.is_kept());
        any.then(|| Self { stored: vec![HashMap::default(); indexes.len()], indexes })
    }

    /// The other keys under which the batch has stored a value.
    pub(super) fn others<'u>(
        &'u self,
        at: usize,
        value: &[u8],
        key: &'u Key,
    ) -> impl Iterator<Item = &'u Key> {
        let keys = self.stored.get(at).and_then(|stored| stored.get(value));
        keys.into_iter().flatten().filter(move |other| *other != key)
    }

    /// The values of an entry that must be unique, with their indexes; notes that the batch has stored
    /// them.
    pub(super) fn note(&mut self, key: &Key, row: &NewRow) -> Result<Values, (usize, Unfit)> {
        let mut all = Vec::new();
        for ((at, index), stored) in self.indexes.iter().enumerate().zip(&mut self.stored) {
            if !(index.spec().unique && index.is_kept() && index.spec().covers(key.as_bytes())) {
                continue;
            }
            let values = index.unique_values(row.value.encoding, &row.value.bytes);
            for value in values.map_err(|unfit| (at, unfit))? {
                let keys = stored.entry(value.clone()).or_default();
                if !keys.contains(key) {
                    keys.push(key.clone());
                }
                all.push((at, value));
            }
        }
        Ok(all)
    }
}
