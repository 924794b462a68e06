//! Decides a batch over the cache and the entries that were read for it.
//!
//! The operations of a batch form a graph: a check or a calculation reads what the last write of its
//! key has left, and a write is a choice between its value and the old one, made by its checks. One
//! pass in order over the newest state of each key evaluates this graph.

use std::sync::Arc;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use uuid::Uuid;

use super::cache::{Cache, Fetched};
use super::index_entries::{IndexEntries, Points};
use crate::commit::{Base, Begun, OldRow, Speculation, Work, WriteNeeds, speculate};
use crate::index::ValueIndex;
use crate::model::{EncodedValue, Error, Key, Result, Seen, Step, Walk};

/// Entries that were read for one batch.
pub(super) type FetchedRows = IndexMap<Key, Fetched, RandomState>;

/// What is known of the database before a batch.
pub(super) struct Known<'k> {
    pub(super) cache: &'k mut Cache,
    /// The entries of unique indexes that batches have changed.
    pub(super) entries: &'k IndexEntries,
    /// The value indexes.
    pub(super) indexes: &'k Arc<[ValueIndex]>,
    /// What was read for the batch.
    pub(super) fetched: &'k FetchedRows,
    pub(super) points: &'k Points,
}

/// A batch that was evaluated.
pub(super) enum Evaluated {
    Decided(Box<Speculation>),
    /// Entries that are not known are needed.
    Missing(WriteNeeds),
    /// An entry that was read contradicts the cache: another process has written.
    Contradicted,
}

/// Decides a batch.
///
/// # Errors
/// `Internal` for work that cannot be decided ahead.
pub(super) fn evaluate(
    known: Known<'_>,
    begun: &Begun,
    (last_uuid, last_message): (Option<Uuid>, i64),
    work: &Work,
) -> Result<Evaluated> {
    let missing = WriteNeeds::default();
    let mut view = View { known, now_ms: begun.now_ms, last_uuid, missing, contradicted: false };
    let speculation = speculate(&mut view, begun, work, last_message)?;
    Ok(match view.missing.is_empty() {
        _ if view.contradicted => Evaluated::Contradicted,
        true => Evaluated::Decided(Box::new(speculation)),
        false => Evaluated::Missing(view.missing),
    })
}

/// The database before the batch. An unknown entry counts as absent and is noted as missing, so the
/// evaluation finds all that is missing, and is then discarded.
struct View<'v> {
    known: Known<'v>,
    now_ms: i64,
    last_uuid: Option<Uuid>,
    missing: WriteNeeds,
    contradicted: bool,
}

impl Base for View<'_> {
    fn version(&mut self, key: &Key) -> Result<Option<u64>> {
        let Known { cache, fetched, .. } = &mut self.known;
        let Some(entry) = cache.get(key).or_else(|| fetched.get(key)) else {
            self.missing.add(key, false);
            return Ok(None);
        };
        Ok(entry.version_at(self.now_ms))
    }

    fn row(&mut self, key: &Key) -> Result<Option<OldRow>> {
        let row = self.kept_row(key)?;
        Ok(row.filter(|row| row.expire_at_ms.is_none_or(|end| end > self.now_ms)))
    }

    fn kept_value(&mut self, key: &Key) -> Result<Option<EncodedValue>> {
        Ok(self.kept_row(key)?.map(|row| row.value))
    }

    fn value_indexes(&self) -> Option<Arc<[ValueIndex]>> {
        Some(self.known.indexes.clone()).filter(|indexes| !indexes.is_empty())
    }

    fn walk_index(
        &mut self,
        id: i64,
        (value, end): (&[u8], &[u8]),
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let Known { points, entries, .. } = &self.known;
        let point = (id, value.to_vec());
        let Some(read) = points.get(&point) else {
            self.missing.add_point(point);
            return Ok(());
        };
        let _ended = entries.over(read, id, (value, end)).iter().all(|entry| visit(entry));
        Ok(())
    }

    fn walk(&mut self, _walk: Walk<'_>, _visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        Err(Error::internal("a batch with a range was decided ahead"))
    }

    fn last_uuid(&mut self) -> Result<Option<Uuid>> {
        Ok(self.last_uuid)
    }
}

impl View<'_> {
    /// The entry of a key, also if it has expired.
    fn kept_row(&mut self, key: &Key) -> Result<Option<OldRow>> {
        let Known { cache, fetched, .. } = &mut self.known;
        let row = match (cache.get(key), fetched.get(key)) {
            (Some(Fetched::Absent), _) | (None, Some(Fetched::Absent)) => return Ok(None),
            (Some(Fetched::Row(row)), _) | (None, Some(Fetched::Row(row))) => row.clone(),
            (Some(Fetched::Version { version, expire_at_ms }), Some(Fetched::Row(row)))
                if row.version == *version =>
            {
                OldRow { expire_at_ms: *expire_at_ms, ..row.clone() }
            }
            (Some(Fetched::Version { .. }), Some(Fetched::Row(_) | Fetched::Absent)) => {
                self.contradicted = true;
                return Ok(None);
            }
            (Some(Fetched::Version { .. }) | None, Some(Fetched::Version { .. }) | None) => {
                self.missing.add(key, true);
                return Ok(None);
            }
        };
        Ok(Some(row))
    }
}
