//! What an engine does for full-text indexes, beside its rows.

use std::time::Instant;

use crate::model::{HitVisitor, IndexChoice, IndexInfo, IndexSpec, Result, Search};

/// The part of a [`Writer`](super::Writer) that maintains indexes. A transaction that changes an
/// entry also changes the indexes that cover it.
pub trait Indexer {
    /// Makes an index; [`Indexer::build_indexes`] adds the entries that exist already. An index that
    /// exists with the same description is answered unchanged.
    ///
    /// # Errors
    /// `Invalid` for a description out of bounds, and for a name or a prefix that another index has;
    /// what [`Writer::apply`](super::Writer::apply) answers.
    fn create_index(&mut self, spec: &IndexSpec, deadline: Instant) -> Result<IndexInfo>;

    /// Removes an index; `false` when there is none.
    ///
    /// # Errors
    /// What [`Writer::apply`](super::Writer::apply) answers.
    fn drop_index(&mut self, choice: &IndexChoice, deadline: Instant) -> Result<bool>;

    /// Indexes some of the entries that are older than their index; `false` when all are indexed.
    ///
    /// # Errors
    /// What [`Writer::apply`](super::Writer::apply) answers.
    fn build_indexes(&mut self, now_ms: i64, deadline: Instant) -> Result<bool>;
}

/// The part of a [`Snapshot`](super::Snapshot) that searches.
pub trait Finder {
    /// All indexes in the order of their names; the documents are counted only if asked for.
    ///
    /// # Errors
    /// What the medium answers.
    fn indexes(&mut self, count: bool) -> Result<Vec<IndexInfo>>;

    /// Shows the hits of a search to a visitor, best first: entries of this snapshot that have not
    /// expired. Answers the index that was used.
    ///
    /// # Errors
    /// `Invalid` when no index covers the prefix and for a malformed query; what the medium answers.
    fn search(&mut self, search: &Search, visitor: &mut dyn HitVisitor) -> Result<IndexInfo>;
}
