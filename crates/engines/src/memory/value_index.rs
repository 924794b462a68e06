//! Value indexes of rows in memory.

use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

use super::{NewRow, Tables, alive};
use crate::fulltext::{Creation, decide_value};
use openkv_core::index::{IndexDefect, ValueIndex, changes};
use openkv_core::model::{
    BuildFailure, Encoding, Error, INDEX_BUILD_BYTES_MAX, INDEX_BUILD_ROWS_MAX, IndexChoice, Key,
    Result, ValueIndexInfo, ValueIndexRequest, ValueIndexSpec, ValueIndexState,
};

/// The value indexes of a database in memory.
#[derive(Default)]
pub(super) struct ValueIndexes {
    /// In the order of their numbers.
    indexes: Arc<[ValueIndex]>,
    /// The entries of each.
    entries: Vec<BTreeSet<Vec<u8>>>,
    /// The number of the next one.
    next: i64,
    /// The last key that the index being built has, for each such index.
    built: Vec<(i64, Vec<u8>)>,
    /// A planted defect of all of them.
    pub(super) defect: Option<IndexDefect>,
}

impl ValueIndexes {
    pub(super) fn shared(&self) -> Arc<[ValueIndex]> {
        self.indexes.clone()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.indexes.iter().any(|index| index.spec().name == name)
    }

    pub(super) fn is_building(&self) -> bool {
        !self.built.is_empty()
    }

    /// Visits the entries of an index.
    pub(super) fn walk(
        &self,
        id: i64,
        (lo, hi): (&[u8], &[u8]),
        reverse: bool,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) {
        let Some(entries) = self.place(id).and_then(|at| self.entries.get(at)) else { return };
        if lo >= hi {
            return;
        }
        let range = entries.range::<[u8], _>((Bound::Included(lo), Bound::Excluded(hi)));
        let mut visit = |entry: &Vec<u8>| visit(entry);
        let _ended = if reverse { range.rev().all(&mut visit) } else { range.clone().all(visit) };
    }

    fn place(&self, id: i64) -> Option<usize> {
        self.indexes.iter().position(|index| index.info.id == id)
    }

    /// Changes the indexes with a row.
    pub(super) fn changed(&mut self, key: &Key, old: Option<&NewRow>, new: Option<&NewRow>) {
        let indexes = self.indexes.clone();
        let (old, new) = (old.map(value_of), new.map(value_of));
        let done = changes(&indexes, key.as_bytes(), old, new, &mut |id, change| {
            if let Some(entries) = self.place(id).and_then(|at| self.entries.get_mut(at)) {
                for (entry, added) in change.each() {
                    if added {
                        entries.insert(entry.to_vec());
                    } else {
                        entries.remove(entry);
                    }
                }
            }
            Ok(())
        });
        debug_assert!(done.is_ok(), "nothing in memory fails");
    }

    fn replace(&mut self, change: impl FnOnce(&mut Vec<ValueIndex>)) {
        let mut indexes = self.indexes.to_vec();
        change(&mut indexes);
        self.indexes = indexes.into();
    }

    fn set_state(&mut self, at: usize, state: ValueIndexState, scanned: usize) {
        self.replace(|indexes| {
            if let Some(index) = indexes.get_mut(at) {
                index.info.state = state;
                index.info.scanned += scanned as u64;
            }
        });
    }

    pub(super) fn remove(&mut self, choice: &IndexChoice) -> bool {
        let IndexChoice::Name(name) = choice else { return false };
        let Some(at) = self.indexes.iter().position(|index| index.spec().name == *name) else {
            return false;
        };
        self.entries.remove(at);
        self.replace(|indexes| {
            let removed = indexes.remove(at);
            debug_assert_eq!(removed.spec().name, *name);
        });
        let indexes = self.indexes.clone();
        self.built.retain(|(id, _)| indexes.iter().any(|index| index.info.id == *id));
        true
    }
}

fn value_of(row: &NewRow) -> (Encoding, &[u8]) {
    (row.value.encoding, &row.value.bytes)
}

impl Tables {
    pub(super) fn create_value_index(
        &mut self,
        request: &ValueIndexRequest,
        is_taken: bool,
    ) -> Result<ValueIndexInfo> {
        let there = self.values.indexes.clone();
        let specs = there.iter().map(ValueIndex::spec);
        match decide_value(specs, is_taken, request)? {
            Creation::Exists => {}
            Creation::Creates => self.add(&request.spec)?,
            Creation::Replaces => {
                // The new one is checked before the old one is removed.
                self.add(&request.spec)?;
                self.values.remove(&IndexChoice::Name(request.spec.name.clone()));
            }
        }
        let found = self.values.indexes.iter().rfind(|index| *index.spec() == request.spec);
        let missing = || Error::internal("a new index is not there");
        found.map(|index| index.info.clone()).ok_or_else(missing)
    }

    fn add(&mut self, spec: &ValueIndexSpec) -> Result<()> {
        let from = (Bound::Excluded(spec.prefix.as_bytes()), Bound::Unbounded);
        let next = self.rows.range::<[u8], _>(from).next();
        let any = next.is_some_and(|(key, _)| spec.covers(key.as_bytes()));
        let id = self.values.next;
        let state = if any { ValueIndexState::Building } else { ValueIndexState::Ready };
        let info = ValueIndexInfo { id, spec: spec.clone(), state, scanned: 0 };
        let index = ValueIndex::new(info)?.with_defect(self.values.defect);
        self.values.next += 1;
        self.values.replace(|indexes| indexes.push(index));
        self.values.entries.push(BTreeSet::new());
        if any {
            self.values.built.push((id, spec.prefix.as_bytes().to_vec()));
        }
        Ok(())
    }

    /// One step of building value indexes; returns whether more is to be built.
    pub(super) fn build_value_index(&mut self, now_ms: i64) -> bool {
        let Some((id, after)) = self.values.built.first().cloned() else { return false };
        let Some(at) = self.values.place(id) else { return false };
        let indexes = self.values.indexes.clone();
        let Some(index) = indexes.get(at) else { return false };
        let end = [index.spec().prefix.as_bytes(), &[u8::MAX]].concat();
        let range = (Bound::Excluded(after.as_slice()), Bound::Excluded(end.as_slice()));
        let (mut last, mut count, mut bytes, mut failed) = (None, 0, 0, None);
        for (key, row) in self.rows.range::<[u8], _>(range) {
            if count == INDEX_BUILD_ROWS_MAX || bytes >= INDEX_BUILD_BYTES_MAX {
                break;
            }
            count += 1;
            bytes += row.value.bytes.len();
            failed = self.unfit(index, key, row, now_ms);
            if failed.is_some() {
                break;
            }
            let entries = index.entries(key.as_bytes(), row.value.encoding, &row.value.bytes);
            if let Some(all) = self.values.entries.get_mut(at) {
                all.extend(entries);
            }
            last = Some(key.as_bytes().to_vec());
        }
        let more = count == INDEX_BUILD_ROWS_MAX || bytes >= INDEX_BUILD_BYTES_MAX;
        match (failed, last.filter(|_| more)) {
            (Some(failure), _) => {
                self.values.built.remove(0);
                self.values.set_state(at, ValueIndexState::Failed(failure), count);
            }
            (None, Some(last)) => {
                if let Some(first) = self.values.built.first_mut() {
                    first.1 = last;
                }
                self.values.set_state(at, ValueIndexState::Building, count);
            }
            (None, None) => {
                self.values.built.remove(0);
                self.values.set_state(at, ValueIndexState::Ready, count);
            }
        }
        self.values.is_building()
    }

    /// Why an entry does not fit into a unique index.
    fn unfit(
        &self,
        index: &ValueIndex,
        key: &Key,
        row: &NewRow,
        now_ms: i64,
    ) -> Option<BuildFailure> {
        // As in a file: a copy checks no unique index.
        if !index.spec().unique || self.followed.is_some() || !alive(row, now_ms) {
            return None;
        }
        let values = index.unique_values(row.value.encoding, &row.value.bytes);
        let Ok(values) = values else {
            return Some(BuildFailure { key: key.clone(), other: None });
        };
        let mut other = None;
        for value in values {
            let end = [value.as_slice(), &[u8::MAX]].concat();
            self.values.walk(index.info.id, (&value, &end), false, &mut |entry| {
                let found = entry.get(value.len()..).unwrap_or_default();
                if found != key.as_bytes() && self.alive(found, now_ms).is_some() {
                    other = Some(Key::from_encoded(found.to_vec()));
                }
                other.is_none()
            });
        }
        other.map(|other| BuildFailure { key: key.clone(), other: Some(other) })
    }
}
