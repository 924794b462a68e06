//! The entries that the decision of writes depends on, as far as the writes name them. An engine
//! behind a network fetches them together, before the writes are decided.

use foldhash::fast::RandomState;
use indexmap::IndexMap;

use crate::model::{AtomicWrite, Key};

/// Keys, in the order in which they are first named, each with whether its value is needed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteNeeds {
    keys: IndexMap<Key, bool, RandomState>,
}

impl WriteNeeds {
    /// The needs of these writes. Ranges, keys with placeholders and messages are not among them.
    #[must_use]
    pub fn of(writes: &[AtomicWrite]) -> Self {
        let mut needs = Self::default();
        for write in writes {
            let (checks, mutations, _) = write.parts();
            checks.iter().for_each(|check| needs.add(&check.key, false));
            for mutation in mutations {
                if let Some(with_value) = mutation.needs_entry() {
                    needs.add(mutation.key(), with_value);
                }
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

    /// Whether nothing is needed.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty()
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
