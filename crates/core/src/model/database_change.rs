//! Changes of a database besides those of its entries and messages.

use super::{BuildFailure, IndexSpec, Key, ValueIndexSpec};

/// A change that a log has in a commit of its own, where it has such changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DatabaseChange {
    /// A full-text index was created. `building`: there are older entries, which steps of building add.
    SearchIndex {
        /// Its definition.
        spec: IndexSpec,
        /// Whether it has to be built.
        building: bool,
    },
    /// A value index was created.
    ValueIndex {
        /// Its definition.
        spec: ValueIndexSpec,
        /// Whether it has to be built.
        building: bool,
    },
    /// The index with this name was dropped.
    IndexDropped(String),
    /// A step of building has ended.
    IndexBuilt {
        /// The index.
        name: String,
        /// It has the older entries up to this key; `None`: all of them, or it has failed.
        through: Option<Key>,
        /// How many entries the step has processed.
        scanned: u64,
        /// Why a unique index is not built.
        failed: Option<BuildFailure>,
    },
    /// The counters that the database keeps.
    Metrics(String),
}
