//! Explanations of lists: reads what a list would, and tells by what and how much.
//!
//! It runs in steps on the threads for long reads, as a count does, and ends behind the step that has read
//! [`EXPLAIN_ENTRIES_MAX`] entries.

use std::sync::Arc;

use super::ordered::Sorted;
use super::scan::ReadSoFar;
use super::{Caller, OrderedScan, Patience, Scan, Store};
use openkv_core::index::{
    Explanation, Method, branch_of_order, branches_of_keys, parse_paths, why_no_index,
};
use openkv_core::model::{
    EXPLAIN_ENTRIES_MAX, Result, SORT_ENTRIES_MAX, VALUE_INDEX_SORTED_ENTRIES_MAX,
    VALUE_INDEX_STEP_ENTRIES_MAX,
};
use openkv_engines::Snapshot;

impl Store {
    /// Explains a list of up to `limit` entries; without paths it is in the order of keys.
    pub fn explain(
        &self,
        list: OrderedScan,
        limit: usize,
        patience: Arc<Patience>,
        caller: impl Caller<Explanation>,
    ) {
        let mut explaining = Explaining { list, limit, known: None, sorted: None };
        self.long.send_steps(patience, caller, move |snapshot, patience| {
            explaining.step(snapshot, patience)
        });
    }
}

/// A list that is being read.
struct Explaining {
    /// What is left of it.
    list: OrderedScan,
    /// Most entries that it still has.
    limit: usize,
    known: Option<Explanation>,
    /// The page that is being sorted.
    sorted: Option<Sorted>,
}

impl Explaining {
    fn step(
        &mut self,
        snapshot: &mut dyn Snapshot,
        patience: &Patience,
    ) -> Result<Option<Explanation>> {
        let mut known = match self.known.take() {
            Some(known) => known,
            None => plan(&self.list, snapshot)?,
        };
        let is_done = match self.list.order.is_empty() {
            true => self.scan(&mut known, snapshot, patience)?,
            false => self.ordered(&mut known, snapshot, patience)?,
        };
        known.is_complete = is_done || self.limit == 0;
        if known.is_complete || known.index_entries + known.visited >= EXPLAIN_ENTRIES_MAX {
            return Ok(Some(known));
        }
        self.known = Some(known);
        Ok(None)
    }

    /// A step in the order of keys. Returns whether there are no more.
    fn scan(
        &mut self,
        known: &mut Explanation,
        snapshot: &mut dyn Snapshot,
        patience: &Patience,
    ) -> Result<bool> {
        let Self { list: OrderedScan { scan, .. }, limit, .. } = self;
        let is_done = scan.step(snapshot, *limit, patience, &mut |_, _| {})?;
        let read = scan.read.take();
        known.returned += read.matching;
        add(known, read);
        *limit = limit.saturating_sub(usize::try_from(read.matching).unwrap_or(usize::MAX));
        Ok(is_done)
    }

    /// As [`Self::scan`], in another order.
    fn ordered(
        &mut self,
        known: &mut Explanation,
        snapshot: &mut dyn Snapshot,
        patience: &Patience,
    ) -> Result<bool> {
        let Self { list, limit, sorted, .. } = self;
        let rows = match known.method {
            Method::Sort => SORT_ENTRIES_MAX,
            Method::Index | Method::Scan => VALUE_INDEX_STEP_ENTRIES_MAX,
        };
        let Some(page) = list.step(sorted, snapshot, rows.min(*limit), patience)? else {
            if let Some(sorted) = sorted {
                add(known, sorted.take_read());
            }
            return Ok(false);
        };
        *sorted = None;
        known.returned += page.entries.len() as u64;
        add(known, page.read);
        *limit = limit.saturating_sub(page.entries.len());
        list.after = page.next;
        Ok(list.after.is_none())
    }
}

fn add(known: &mut Explanation, read: ReadSoFar) {
    known.index_entries += read.index_entries;
    known.visited += read.entries;
    known.filtered += read.entries - read.matching;
    if read.left_indexes && !known.branches.is_empty() {
        known.branches.clear();
        let left = format!(
            "the ranges of the value indexes have more than {VALUE_INDEX_SORTED_ENTRIES_MAX} entries, too many to \
             sort by their keys: order the list by the value, or ask for less"
        );
        known.reason = Some(match &known.reason {
            Some(reason) => format!("{reason}, and {left}"),
            None => left,
        });
        if known.method == Method::Index {
            known.method = Method::Scan;
        }
    }
}

/// What the list reads, before it has read anything.
fn plan(list: &OrderedScan, snapshot: &mut dyn Snapshot) -> Result<Explanation> {
    let indexes = snapshot.value_indexes()?;
    let Scan { start, end, filter, .. } = &list.scan;
    let filter = filter.as_ref();
    let comparing = filter.filter(|_| list.scan.may_be_indexed());
    let by_where = || branches_of_keys(&indexes, comparing?, start, end);
    let (method, branches, reason) = match list.order.is_empty() {
        false => match list.plan(&indexes, &parse_paths(&list.order)?) {
            Some(plan) => {
                let branch = branch_of_order(&indexes, filter, &plan);
                (Method::Index, branch.into_iter().collect(), None)
            }
            None => {
                let reason = "no value index has the order".to_owned();
                (Method::Sort, by_where().unwrap_or_default(), Some(reason))
            }
        },
        true => match by_where() {
            Some(branches) => (Method::Index, branches, None),
            None => {
                let reason = |filter| why_no_index(&indexes, filter, start, end);
                (Method::Scan, Vec::new(), comparing.map(reason))
            }
        },
    };
    Ok(Explanation {
        method,
        branches,
        reason,
        index_entries: 0,
        visited: 0,
        filtered: 0,
        returned: 0,
        is_complete: false,
    })
}
