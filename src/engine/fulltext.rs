//! What an engine does for full-text indexes, beside its rows.

use std::time::Instant;

use crate::model::{HitVisitor, IndexChoice, IndexInfo, IndexSpec, Result, Search};

/// The part of a [`Writer`](super::Writer) that looks after indexes. Once an index exists, every
/// transaction that changes an entry it covers changes the index too.
pub trait Indexer {
    /// Makes an index; entries that are there already are left to [`Indexer::build_indexes`]. One
    /// that exists with the same description is answered as it is.
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

    /// Indexes some of the entries that were there before their index; `false` when all are. What
    /// has been done survives a crash.
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

    /// Shows the hits of a search to a visitor, best first: entries of this same point in time that
    /// have not ended. Answers the index that was used.
    ///
    /// # Errors
    /// `Invalid` when no index covers the prefix and for a malformed query; what the medium answers.
    fn search(&mut self, search: &Search, visitor: &mut dyn HitVisitor) -> Result<IndexInfo>;
}
