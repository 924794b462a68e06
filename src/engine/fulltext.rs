//! The full-text part of an engine.

use std::time::Instant;

use crate::model::{HitVisitor, IndexChoice, IndexInfo, IndexSpec, Result, Search};

/// The part of a [`Writer`](super::Writer) that maintains indexes. A transaction that changes an
/// entry also updates the indexes that cover it.
pub trait Indexer {
    /// Creates an index; [`Indexer::build_indexes`] adds the entries that exist already. Returns an
    /// existing index with the same definition unchanged.
    ///
    /// # Errors
    /// `Invalid` for a definition out of bounds, and for a name or prefix of another index; the
    /// errors of [`Writer::begin`](super::Writer::begin).
    fn create_index(
        &mut self,
        spec: &IndexSpec,
        replace: bool,
        deadline: Instant,
    ) -> Result<IndexInfo>;

    /// Removes an index; `false` if there is none.
    ///
    /// # Errors
    /// Those of [`Writer::begin`](super::Writer::begin).
    fn drop_index(&mut self, choice: &IndexChoice, deadline: Instant) -> Result<bool>;

    /// One step of adding entries that are older than their index; `false` once all are indexed.
    ///
    /// # Errors
    /// Those of [`Writer::begin`](super::Writer::begin).
    fn build_indexes(&mut self, now_ms: i64, deadline: Instant) -> Result<bool>;
}

/// The part of a [`Snapshot`](super::Snapshot) that searches.
pub trait Finder {
    /// All indexes in the order of their names; counts their documents if `count` is set.
    ///
    /// # Errors
    /// Errors of the medium.
    fn indexes(&mut self, count: bool) -> Result<Vec<IndexInfo>>;

    /// Passes the hits of a search to a visitor, best first: entries of this snapshot that have not
    /// expired. Returns the index that it used.
    ///
    /// # Errors
    /// `Invalid` if no index covers the prefix, and for a malformed query; errors of the medium.
    fn search(&mut self, search: &Search, visitor: &mut dyn HitVisitor) -> Result<IndexInfo>;
}
