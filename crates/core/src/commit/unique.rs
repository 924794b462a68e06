//! The unique indexes of a batch, and the values that it has stored.

use std::collections::HashMap;
use std::sync::Arc;

use super::effect::NewRow;
use crate::index::{Unfit, ValueIndex};
use crate::model::Key;

/// The unique indexes, and the values that the batch has stored.
pub(super) struct Unique {
    pub(super) indexes: Arc<[ValueIndex]>,
    /// The keys under which the batch has stored a value, by index and value. Later writes may have changed
    /// them again, or their write was refused.
    pub(super) stored: HashMap<(i64, Vec<u8>), Vec<Key>>,
}

/// Values, each with the place of its index.
pub(super) type Values = Vec<(usize, Vec<u8>)>;

impl Unique {
    /// `None` without a unique index.
    pub(super) fn of(indexes: Option<Arc<[ValueIndex]>>) -> Option<Self> {
        let indexes = indexes?;
        let any = indexes.iter().any(|index| index.spec().unique && index.is_kept());
        any.then(|| Self { indexes, stored: HashMap::new() })
    }

    /// The values of an entry that must be unique, with their indexes; notes that the batch has stored
    /// them.
    pub(super) fn note(&mut self, key: &Key, row: &NewRow) -> Result<Values, (usize, Unfit)> {
        let mut all = Vec::new();
        for (at, index) in self.indexes.iter().enumerate() {
            if !(index.spec().unique && index.is_kept() && index.spec().covers(key.as_bytes())) {
                continue;
            }
            let values = index.unique_values(row.value.encoding, &row.value.bytes);
            for value in values.map_err(|unfit| (at, unfit))? {
                let keys = self.stored.entry((index.info.id, value.clone())).or_default();
                if !keys.contains(key) {
                    keys.push(key.clone());
                }
                all.push((at, value));
            }
        }
        Ok(all)
    }
}
