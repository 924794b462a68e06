//! The indexes of an engine: full-text and value indexes.

use std::sync::Arc;
use std::time::Instant;

use openkv_core::index::ValueIndex;
use openkv_core::model::{
    Error, HitVisitor, INDEXES_MAX, IndexChoice, IndexInfo, IndexRequest, IndexSpec, Result,
    Search, Tokenizer, VALUE_INDEXES_MAX, ValueIndexInfo, ValueIndexRequest, ValueIndexSpec,
};

/// The part of a [`Writer`](super::Writer) that maintains indexes. A transaction that changes an
/// entry also updates the indexes that cover it.
pub trait Indexer {
    /// Creates an index; [`Indexer::build_indexes`] adds the entries that exist already. Returns an
    /// existing index with the same definition unchanged.
    ///
    /// # Errors
    /// `Invalid` for a definition out of bounds, and for a name or prefix of another index; the
    /// errors of [`Writer::begin`](super::Writer::begin).
    fn create_index(&mut self, _request: &IndexRequest, _deadline: Instant) -> Result<IndexInfo> {
        Err(no_indexes("kv.createIndex"))
    }

    /// As [`Indexer::create_index`], for a value index.
    ///
    /// # Errors
    /// As [`Indexer::create_index`]; `Unsupported` for a database that has none.
    fn create_value_index(
        &mut self,
        _request: &ValueIndexRequest,
        _deadline: Instant,
    ) -> Result<ValueIndexInfo> {
        Err(no_value_indexes())
    }

    /// Removes an index; `false` if there is none. A value index is chosen by its name.
    fn drop_index(&mut self, _choice: &IndexChoice, _deadline: Instant) -> Result<bool> {
        Ok(false)
    }

    /// One step of adding entries that are older than their index; `false` once all are indexed.
    fn build_indexes(&mut self, _now_ms: i64, _deadline: Instant) -> Result<bool> {
        Ok(false)
    }
}

/// The part of a [`Snapshot`](super::Snapshot) that searches.
pub trait Finder {
    /// All indexes in the order of their names; counts their documents if `count` is set.
    fn indexes(&mut self, _count: bool) -> Result<Vec<IndexInfo>> {
        Ok(Vec::new())
    }

    /// The value indexes; none for a moment of the past.
    fn value_indexes(&mut self) -> Result<Arc<[ValueIndex]>> {
        Ok(Arc::default())
    }

    /// Visits the entries of a value index with `lo <= entry < hi`, in order or in reverse, until `visit`
    /// returns `false`. Its number is from [`Finder::value_indexes`] of the same snapshot.
    fn walk_index(
        &mut self,
        _id: i64,
        _range: (&[u8], &[u8]),
        _reverse: bool,
        _visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        Ok(())
    }

    /// Passes the hits of a search to a visitor, best first: entries of this snapshot that have not
    /// expired. Returns the index that it used.
    ///
    /// # Errors
    /// `Invalid` if no index covers the prefix, and for a malformed query; errors of the medium.
    fn search(&mut self, _search: &Search, _visitor: &mut dyn HitVisitor) -> Result<IndexInfo> {
        Err(no_indexes("kv.search"))
    }
}

fn no_value_indexes() -> Error {
    Error::unsupported(
        "kv.createIndex: this database has no value indexes: keep the entries of the index under keys of \
         your own, in the same commit",
    )
}

/// The error of a full-text index with the name of a value index.
pub(super) fn taken_by_value(name: &str) -> Error {
    Error::invalid(format!(
        "kv.createIndex: the name '{name}' is that of a value index: give another name"
    ))
}

/// Decides the creation of a value index beside those that there are. `is_taken`: an index of the other
/// type has the name.
///
/// # Errors
/// `Invalid` for a definition out of bounds, and for the name of another index.
pub(super) fn decide_value<'i>(
    there: impl Iterator<Item = &'i ValueIndexSpec> + Clone,
    is_taken: bool,
    ValueIndexRequest { spec, replace }: &ValueIndexRequest,
) -> Result<Creation> {
    spec.check()?;
    let same = there.clone().find(|index| index.name == spec.name);
    match same {
        _ if is_taken => Err(Error::invalid(format!(
            "kv.createIndex: the name '{}' is that of a full-text index: give another name",
            spec.name
        ))),
        Some(same) if same == spec => Ok(Creation::Exists),
        Some(_) if *replace => Ok(Creation::Replaces),
        Some(_) => Err(Error::invalid(format!(
            "kv.createIndex: there is another index '{}': give replace: true, another name, or drop it first",
            spec.name
        ))),
        None if there.count() >= VALUE_INDEXES_MAX => Err(Error::too_large(format!(
            "kv.createIndex: too many value indexes (max {VALUE_INDEXES_MAX}): drop one first"
        ))),
        None => Ok(Creation::Creates),
    }
}

fn no_indexes(call: &str) -> Error {
    Error::unsupported(format!("{call}: this database has no full-text indexes"))
}

/// The result of creating an index.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Creation {
    /// There is the same one.
    Exists,
    /// It is new.
    Creates,
    /// It takes the place of the index of its prefix.
    Replaces,
}

/// Decides the creation of an index beside those that there are; returns its definition.
///
/// # Errors
/// `Invalid` for a definition out of bounds, and for a name or prefix of another index.
pub(super) fn decide<'i>(
    there: impl Iterator<Item = &'i IndexSpec> + Clone,
    request: &IndexRequest,
) -> Result<(IndexSpec, Creation)> {
    let IndexRequest { spec, is_default, replace } = request;
    let old = IndexSpec { tokenizer: Tokenizer::Unicode61, ..spec.clone() };
    let is_old = *is_default && there.clone().any(|index| *index == old);
    let spec = if is_old { old } else { spec.clone() };
    let creation = creation(there, &spec, *replace)?;
    Ok((spec, creation))
}

fn creation<'i>(
    there: impl Iterator<Item = &'i IndexSpec> + Clone,
    spec: &IndexSpec,
    replace: bool,
) -> Result<Creation> {
    spec.check()?;
    let clashes = |index: &IndexSpec| index.name == spec.name && index.prefix != spec.prefix;
    if there.clone().any(clashes) {
        return Err(Error::invalid(format!(
            "kv.createIndex: the name '{}' is that of an index with another prefix",
            spec.name
        )));
    }
    match there.clone().find(|index| index.prefix == spec.prefix) {
        Some(same) if same == spec => Ok(Creation::Exists),
        Some(_) if replace => Ok(Creation::Replaces),
        Some(other) => Err(Error::invalid(format!(
            "kv.createIndex: the prefix has an index already, '{}', that differs in {}: \
             give replace: true, or drop it first",
            other.name,
            difference(other, spec),
        ))),
        None if there.count() >= INDEXES_MAX => Err(Error::too_large(format!(
            "kv.createIndex: too many indexes (max {INDEXES_MAX}): drop one first"
        ))),
        None => Ok(Creation::Creates),
    }
}

fn difference(a: &IndexSpec, b: &IndexSpec) -> &'static str {
    match () {
        () if a.fields != b.fields => "its fields",
        () if a.tokenizer != b.tokenizer => "its tokenizer",
        () if a.prefix_lengths != b.prefix_lengths => "its prefixLengths",
        () => "its name",
    }
}
