//! Value indexes: their definitions, states, and what breaks a unique one.

use super::{
    Error, INDEX_NAME_BYTES_MAX, Key, Result, VALUE_INDEX_PATH_BYTES_MAX, VALUE_INDEX_PATHS_MAX,
};

/// A path of a value index, or of an order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderPath {
    /// Steps separated by dots, as in `where`.
    pub path: String,
    /// From the largest value to the smallest.
    pub descending: bool,
}

/// The definition of a value index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueIndexSpec {
    /// The name; unique among all indexes of its database.
    pub name: String,
    /// The index covers the keys that extend this one.
    pub prefix: Key,
    /// The paths, the most significant first; at least one.
    pub on: Vec<OrderPath>,
    /// No two entries have the same values under all paths.
    pub unique: bool,
    /// Each element of an array or `Set` under the first path has an entry of its own.
    pub multi: bool,
    /// A value without anything under the first path has no entry.
    pub sparse: bool,
}

impl ValueIndexSpec {
    /// Checks the bounds of a definition.
    ///
    /// # Errors
    /// `Invalid` or `TooLarge`, with the option, the limit and the given value.
    pub fn check(&self) -> Result<()> {
        let given = self.name.len();
        if given == 0 || given > INDEX_NAME_BYTES_MAX {
            return Err(Error::invalid(format!(
                "kv.createIndex: name must have 1 to {INDEX_NAME_BYTES_MAX} bytes: {given} given; \
                 without a name it is made from the prefix and the paths: give a short one"
            )));
        }
        check_paths("kv.createIndex: on", &self.on, VALUE_INDEX_PATHS_MAX)
    }

    /// Whether the index covers an encoded key: the key extends the prefix by at least one part.
    pub fn covers(&self, key: &[u8]) -> bool {
        let rest = key.strip_prefix(self.prefix.as_bytes());
        rest.is_some_and(|rest| rest.first().is_some_and(|byte| *byte != u8::MAX))
    }

    /// Whether the index covers all keys of a range.
    pub fn covers_range(&self, start: &[u8], end: &[u8]) -> bool {
        let prefix = self.prefix.as_bytes();
        start.strip_prefix(prefix).is_some_and(|rest| !rest.is_empty())
            && end <= [prefix, &[u8::MAX]].concat().as_slice()
    }
}

/// Checks the paths of an index or of an order; `what` names the option.
///
/// # Errors
/// `Invalid` or `TooLarge`, with the option, the limit and the given value.
pub fn check_paths(what: &str, paths: &[OrderPath], count_max: usize) -> Result<()> {
    let given = paths.len();
    if given == 0 || given > count_max {
        return Err(Error::invalid(format!(
            "{what} must name 1 to {count_max} paths: {given} given"
        )));
    }
    for (at, OrderPath { path, .. }) in paths.iter().enumerate() {
        let given = path.len();
        if given == 0 {
            return Err(Error::invalid(format!("{what}: a path is empty: name a field")));
        }
        if given > VALUE_INDEX_PATH_BYTES_MAX {
            return Err(Error::too_large(format!(
                "{what}: a path is too long (max {VALUE_INDEX_PATH_BYTES_MAX} bytes): {given} given"
            )));
        }
        if paths.iter().take(at).any(|other| other.path == *path) {
            return Err(Error::invalid(format!("{what} names '{path}' twice")));
        }
    }
    Ok(())
}

/// A request for a value index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueIndexRequest {
    /// Its definition.
    pub spec: ValueIndexSpec,
    /// Another value index of the same name is removed.
    pub replace: bool,
}

/// Two entries of which a unique index allows one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The name of the index.
    pub index: String,
    /// The key that was written.
    pub key: Key,
    /// The key that has the value.
    pub other: Key,
}

/// Why a unique index could not be built.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BuildFailure {
    /// The entry that does not fit.
    pub key: Key,
    /// The entry with the same value; `None` if the value itself cannot be unique.
    pub other: Option<Key>,
}

/// The state of a value index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValueIndexState {
    /// Entries older than the index are still being added.
    Building,
    /// Complete.
    Ready,
    /// It was not built, and is neither read nor changed: drop it.
    Failed(BuildFailure),
}

/// A value index as a database describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueIndexInfo {
    /// Its number in the database.
    pub id: i64,
    /// Its definition.
    pub spec: ValueIndexSpec,
    /// Its state.
    pub state: ValueIndexState,
    /// The number of older entries that were processed.
    pub scanned: u64,
}
