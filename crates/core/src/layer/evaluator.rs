//! Decides a batch over the cache and the entries that were read for it.
//!
//! The operations of a batch form a graph: a check or a calculation reads what the last write of its
//! key has left, and a write is a choice between its value and the old one, made by its checks. One
//! pass in order over the newest state of each key evaluates this graph.

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use uuid::Uuid;

use super::cache::{Cache, Fetched};
use crate::commit::{Base, Begun, OldRow, Speculation, Work, WriteNeeds, speculate};
use crate::model::{Error, Key, Result, Seen, Step, Walk};

/// Entries that were read for one batch.
pub(super) type FetchedRows = IndexMap<Key, Fetched, RandomState>;

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
    cache: &mut Cache,
    fetched: &FetchedRows,
    begun: &Begun,
    (last_uuid, last_message): (Option<Uuid>, i64),
    work: &Work,
) -> Result<Evaluated> {
    let missing = WriteNeeds::default();
    let mut view =
        View { cache, fetched, now_ms: begun.now_ms, last_uuid, missing, contradicted: false };
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
    cache: &'v mut Cache,
    fetched: &'v FetchedRows,
    now_ms: i64,
    last_uuid: Option<Uuid>,
    missing: WriteNeeds,
    contradicted: bool,
}

impl Base for View<'_> {
    fn version(&mut self, key: &Key) -> Result<Option<u64>> {
        let Some(entry) = self.cache.get(key).or_else(|| self.fetched.get(key)) else {
            self.missing.add(key, false);
            return Ok(None);
        };
        Ok(entry.version_at(self.now_ms))
    }

    fn row(&mut self, key: &Key) -> Result<Option<OldRow>> {
        let row = match (self.cache.get(key), self.fetched.get(key)) {
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
        Ok(Some(row).filter(|row| row.expire_at_ms.is_none_or(|end| end > self.now_ms)))
    }

    fn walk(&mut self, _walk: Walk<'_>, _visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        Err(Error::internal("a batch with a range was decided ahead"))
    }

    fn last_uuid(&mut self) -> Result<Option<Uuid>> {
        Ok(self.last_uuid)
    }
}
