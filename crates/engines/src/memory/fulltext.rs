//! Full-text indexes of rows in memory, in a private SQLite database.

use std::ops::Bound;
use std::sync::Arc;
use std::time::Instant;

use super::{MemorySnapshot, MemoryWriter, NewRow, Tables, alive, seen};
use crate::fulltext::taken_by_value;
use crate::sqlite::{BuiltEntry, PrivateIndexes};
use crate::{Finder, Indexer};
use openkv_core::index::ValueIndex;
use openkv_core::model::{
    Error, HitVisitor, INDEX_BUILD_BYTES_MAX, INDEX_BUILD_ROWS_MAX, IndexChoice, IndexInfo,
    IndexRequest, Key, Result, Search, ValueIndexInfo, ValueIndexRequest,
};

impl Tables {
    /// Passes a change to the indexes, if there are any. Fails only if memory is exhausted.
    pub(super) fn tell_indexes(&mut self, tell: impl FnOnce(&mut PrivateIndexes) -> Result<()>) {
        if let Some(indexes) = self.indexes.get_mut()
            && let Err(error) = tell(indexes)
        {
            tracing::error!(%error, "a full-text index in memory has failed");
        }
    }

    pub(super) fn index(&mut self, key: &Key, row: Option<&NewRow>) {
        let value = row.map(|row| (row.value.encoding, row.value.bytes.as_slice()));
        self.tell_indexes(|indexes| indexes.changed((key.as_bytes(), value)));
    }

    pub(super) fn building(&mut self) -> Result<bool> {
        self.indexes.get_mut().as_ref().map_or(Ok(false), PrivateIndexes::building)
    }
}

impl Indexer for MemoryWriter {
    fn create_index(&mut self, request: &IndexRequest, _deadline: Instant) -> Result<IndexInfo> {
        let spec = &request.spec;
        let mut tables = self.0.write();
        if tables.values.has_name(&spec.name) {
            return Err(taken_by_value(&spec.name));
        }
        let Tables { rows, indexes, .. } = &mut *tables;
        if indexes.get_mut().is_none() {
            *indexes.get_mut() = Some(PrivateIndexes::new()?);
        }
        let indexes = indexes.get_mut().as_mut();
        let indexes = indexes.ok_or_else(|| Error::internal("the indexes are not there"))?;
        let from = (Bound::Excluded(spec.prefix.as_bytes()), Bound::Unbounded);
        let next = rows.range::<[u8], _>(from).next();
        // Keys that only continue the last string of the prefix sort after those that extend it.
        let any = next.is_some_and(|(key, _)| spec.covers(key.as_bytes()));
        indexes.create(request, &mut || Ok(any))
    }

    fn drop_index(&mut self, choice: &IndexChoice, _deadline: Instant) -> Result<bool> {
        let mut tables = self.0.write();
        let indexes = tables.indexes.get_mut().as_mut();
        let removed = indexes.map_or(Ok(false), |indexes| indexes.remove(choice))?;
        Ok(removed || tables.values.remove(choice))
    }

    fn create_value_index(
        &mut self,
        request: &ValueIndexRequest,
        _deadline: Instant,
    ) -> Result<ValueIndexInfo> {
        let mut tables = self.0.write();
        let others = match tables.indexes.get_mut() {
            Some(indexes) => indexes.indexes(false)?,
            None => Vec::new(),
        };
        let is_taken = others.iter().any(|index| index.spec.name == request.spec.name);
        tables.create_value_index(request, is_taken)
    }

    fn build_indexes(&mut self, now_ms: i64, _deadline: Instant) -> Result<bool> {
        let mut tables = self.0.write();
        if tables.build_value_index(now_ms) {
            return Ok(true);
        }
        let Tables { rows, indexes, .. } = &mut *tables;
        let Some(indexes) = indexes.get_mut() else { return Ok(false) };
        indexes.build(&mut |after, before| {
            let range = (Bound::Excluded(after), Bound::Excluded(before));
            let (mut entries, mut bytes) = (Vec::new(), 0);
            for (key, row) in rows.range::<[u8], _>(range) {
                if entries.len() == INDEX_BUILD_ROWS_MAX || bytes >= INDEX_BUILD_BYTES_MAX {
                    return (entries, true);
                }
                let value = alive(row, now_ms).then_some(&row.value);
                bytes += value.map_or(0, |value| value.bytes.len());
                let value = value.map(|value| (value.encoding, value.bytes.clone()));
                entries.push(BuiltEntry { key: key.as_bytes().to_vec(), value });
            }
            (entries, false)
        })
    }
}

impl Finder for MemorySnapshot<'_> {
    fn indexes(&mut self, count: bool) -> Result<Vec<IndexInfo>> {
        self.is_present("search")?;
        let indexes = self.tables.indexes.lock();
        indexes.as_ref().map_or(Ok(Vec::new()), |indexes| indexes.indexes(count))
    }

    fn value_indexes(&mut self) -> Result<Arc<[ValueIndex]>> {
        // Those of the past are not kept.
        let is_present = self.past.is_none();
        Ok(if is_present { self.tables.values.shared() } else { Arc::default() })
    }

    fn walk_index(
        &mut self,
        id: i64,
        range: (&[u8], &[u8]),
        reverse: bool,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        self.tables.values.walk(id, range, reverse, visit);
        Ok(())
    }

    fn search(&mut self, search: &Search, visitor: &mut dyn HitVisitor) -> Result<IndexInfo> {
        self.is_present("search")?;
        let mut indexes = self.tables.indexes.lock();
        if indexes.is_none() {
            *indexes = Some(PrivateIndexes::new()?);
        }
        let indexes = indexes.as_mut();
        let indexes = indexes.ok_or_else(|| Error::internal("the indexes are not there"))?;
        let lookup = &mut |key: &[u8], visit: &mut dyn FnMut(openkv_core::model::Row<'_>)| {
            Ok(self.tables.alive(key, self.now_ms).map(|row| visit(seen(key, row))).is_some())
        };
        indexes.search(search, self.goes_on, lookup, visitor)
    }
}
