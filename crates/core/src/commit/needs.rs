//! The entries that the decision of writes depends on, as far as the writes name them. An engine
//! behind a network fetches them together, before the writes are decided. With value indexes these are also the
//! values that the writes replace, since the entries of the indexes follow from them.

use foldhash::fast::RandomState;
use indexmap::{IndexMap, IndexSet};

use crate::index::ValueIndex;
use crate::model::{AtomicWrite, Key, Mutation};

/// The number of a unique index, and a value in it: the beginning of the entries that have the value.
pub type IndexPoint = (i64, Vec<u8>);

/// Keys, in the order in which they are first named, each with whether its value is needed; and values of
/// unique indexes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteNeeds {
    keys: IndexMap<Key, bool, RandomState>,
    points: IndexSet<IndexPoint, RandomState>,
}

impl WriteNeeds {
    /// The needs of these writes in a database with these value indexes. Ranges, keys with placeholders, messages
    /// and values that a mutation computes are not among them.
    #[must_use]
    pub fn of(writes: &[AtomicWrite], indexes: &[ValueIndex]) -> Self {
        let mut needs = Self::default();
        for write in writes {
            let (checks, mutations, _) = write.parts();
            checks.iter().for_each(|check| needs.add(&check.key, false));
            for mutation in mutations {
                if let Some(with_value) = mutation.needs_entry() {
                    needs.add(mutation.key(), with_value);
                }
                needs.add_of_indexes(mutation, indexes);
            }
        }
        needs
    }

    /// Adds a key.
    pub fn add(&mut self, key: &Key, with_value: bool) {
        match self.keys.get_mut(key) {
            Some(known) => *known |= with_value,
            None => drop(self.keys.insert(key.clone(), with_value)),
        }
    }

    /// The value that a mutation replaces, and the values that it stores where they must be unique.
    fn add_of_indexes(&mut self, mutation: &Mutation, indexes: &[ValueIndex]) {
        if !mutation.changes_versionstamp() {
            return;
        }
        let key = mutation.key();
        for index in indexes.iter().filter(|index| index.is_kept_for(key.as_bytes())) {
            self.add(key, true);
            let Mutation::Set { value, .. } = mutation else { continue };
            if index.spec().unique {
                let values = index.unique_values(value.encoding, &value.bytes);
                let id = index.info.id;
                self.points.extend(values.unwrap_or_default().into_iter().map(|value| (id, value)));
            }
        }
    }

    /// Adds a value of a unique index.
    pub fn add_point(&mut self, point: IndexPoint) {
        self.points.insert(point);
    }

    /// Moves the values of unique indexes out.
    pub fn take_points(&mut self) -> Vec<IndexPoint> {
        std::mem::take(&mut self.points).into_iter().collect()
    }

    /// Whether nothing is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.points.is_empty()
    }

    /// Keeps the keys for which `keep` answers `true`.
    pub fn retain(&mut self, mut keep: impl FnMut(&Key, bool) -> bool) {
        self.keys.retain(|key, with_value| keep(key, *with_value));
    }
}

impl IntoIterator for WriteNeeds {
    type Item = (Key, bool);
    type IntoIter = indexmap::map::IntoIter<Key, bool>;

    fn into_iter(self) -> Self::IntoIter {
        self.keys.into_iter()
    }
}
