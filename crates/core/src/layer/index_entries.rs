//! The entries of unique indexes that batches have added or removed, until every read sees the change. Other
//! indexes are not read before a decision.
//!
//! Invariant: for each entry that a batch has changed and that a read under way may have missed, it has the
//! state that the newest decided batch has left.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};

use crate::commit::IndexPoint;
use crate::index::{EntryChange, ValueIndex};

/// Values of unique indexes that were read, each with its entries.
pub(super) type Points = HashMap<IndexPoint, Vec<Vec<u8>>>;

/// The number of an index, and an entry of it.
type Place = (i64, Vec<u8>);

#[derive(Default)]
pub(super) struct IndexEntries {
    /// Whether the entry is there, and the last commit of the batch that has changed it.
    changed: BTreeMap<Place, (bool, u64)>,
    /// In the order of the batches.
    order: VecDeque<(u64, Place)>,
}

impl IndexEntries {
    /// Takes the changes of a batch that ends with the commit `version`.
    pub(super) fn change(&mut self, indexes: &[ValueIndex], changes: &[EntryChange], version: u64) {
        let is_unique = |id| indexes.iter().any(|of| of.info.id == id && of.spec().unique);
        for EntryChange { index, entry, added } in changes {
            if !is_unique(*index) {
                continue;
            }
            let place = (*index, entry.clone());
            self.changed.insert(place.clone(), (*added, version));
            self.order.push_back((version, place));
        }
    }

    /// The entries of a range as the newest batch has left them, over those that were read.
    pub(super) fn over<'e>(
        &'e self,
        read: &'e [Vec<u8>],
        index: i64,
        (lo, hi): (&[u8], &[u8]),
    ) -> BTreeSet<&'e [u8]> {
        let mut found: BTreeSet<&[u8]> = read.iter().map(Vec::as_slice).collect();
        for ((_, entry), (there, _)) in
            self.changed.range((index, lo.to_vec())..(index, hi.to_vec()))
        {
            if *there {
                found.insert(entry);
            } else {
                found.remove(entry.as_slice());
            }
        }
        found
    }

    /// Forgets the changes that every read under way, and every later one, sees: those of commits up to
    /// this one.
    pub(super) fn trim(&mut self, seen: u64) {
        while let Some((version, _)) = self.order.front()
            && *version <= seen
        {
            let Some((version, place)) = self.order.pop_front() else { return };
            if self.changed.get(&place).is_some_and(|(_, newest)| *newest == version) {
                self.changed.remove(&place);
            }
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.changed.clear();
        self.order.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Key, OrderPath, ValueIndexInfo, ValueIndexSpec, ValueIndexState};

    const UNIQUE: i64 = 1;
    const PLAIN: i64 = 2;

    fn indexes() -> [ValueIndex; 2] {
        [(UNIQUE, true), (PLAIN, false)].map(|(id, unique)| {
            let on = vec![OrderPath { path: "t".into(), descending: false }];
            let (name, prefix) = (id.to_string(), Key::from_encoded(Vec::new()));
            let spec = ValueIndexSpec { name, prefix, on, unique, multi: false, sparse: false };
            let state = ValueIndexState::Ready;
            ValueIndex::new(ValueIndexInfo { id, spec, state, scanned: 0 }).unwrap()
        })
    }

    fn change(entry: u8, added: bool) -> EntryChange {
        EntryChange { index: UNIQUE, entry: vec![entry], added }
    }

    #[test]
    fn the_newest_change_counts_until_every_read_sees_it() {
        let mut entries = IndexEntries::default();
        let indexes = indexes();
        entries.change(&indexes, &[change(1, true), change(2, false), change(9, true)], 5);
        entries.change(&indexes, &[change(1, false), change(3, true)], 6);
        let read = [vec![1], vec![2], vec![4]];
        let over = |entries: &IndexEntries| {
            let found = entries.over(&read, UNIQUE, (&[1], &[8]));
            found.into_iter().map(|entry| entry[0]).collect::<Vec<_>>()
        };
        assert_eq!(over(&entries), [3, 4]);
        entries.trim(5);
        // Of the entry 1 the change of the commit 6 is still needed.
        assert_eq!(over(&entries), [2, 3, 4]);
        entries.trim(6);
        assert_eq!(over(&entries), [1, 2, 4]);
    }

    /// A leader once kept the entries of all indexes, of which it reads those of unique ones only.
    #[test]
    fn entries_of_other_indexes_are_not_kept() {
        let mut entries = IndexEntries::default();
        let of_plain = EntryChange { index: PLAIN, ..change(1, true) };
        entries.change(&indexes(), &[of_plain, change(2, true)], 5);
        assert_eq!(entries.over(&[], PLAIN, (&[], &[9])).len(), 0);
        assert_eq!(entries.over(&[], UNIQUE, (&[], &[9])).len(), 1);
        assert_eq!(entries.order.len(), 1);
    }
}
