//! The databases of a place, by name and by UUID.

use std::collections::{BTreeMap, HashMap};
use std::ops::Bound::{Excluded, Included, Unbounded};
use std::sync::Arc;

use uuid::Uuid;

use crate::database::Database;

/// The databases of a place. Each is in both maps.
#[derive(Default)]
pub(super) struct Databases {
    pub(super) by_name: BTreeMap<String, Arc<Database>>,
    pub(super) by_id: HashMap<Uuid, Arc<Database>>,
}

impl Databases {
    pub(super) fn insert(&mut self, database: Arc<Database>) {
        self.by_id.insert(database.id, database.clone());
        self.by_name.insert(database.name.clone(), database);
    }

    pub(super) fn remove(&mut self, name: &str) {
        if let Some(removed) = self.by_name.remove(name) {
            self.by_id.remove(&removed.id);
        }
    }

    pub(super) fn all(&self) -> Vec<Arc<Database>> {
        self.by_name.values().cloned().collect()
    }

    /// Those whose names begin with `prefix` and are behind `after`, in the order of names: at most `limit`.
    pub(super) fn page(&self, prefix: &str, after: &str, limit: usize) -> Vec<Arc<Database>> {
        let from = if after < prefix { Included(prefix) } else { Excluded(after) };
        let behind = self.by_name.range::<str, _>((from, Unbounded));
        let named = behind.take_while(|(name, _)| name.starts_with(prefix));
        named.take(limit).map(|(_, database)| database.clone()).collect()
    }
}
