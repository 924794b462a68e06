//! Lists in the order of values: by an index, or sorted in memory.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::scan::{LOOK_GROWTH, ReadSoFar};
use super::{Caller, Patience, Scan, Store};
use openkv_core::codec::key;
use openkv_core::filter::Filter;
use openkv_core::index::{
    OrderPlan, Ordered, Part, ValueIndex, gather_ordered, order_code, parse_paths, plan_order,
    position_mark,
};
use openkv_core::model::{
    BRIEF_SCAN_BYTES_MAX, BRIEF_SCAN_ENTRIES_MAX, Encoding, Error, Key, LONG_STEP_MS, Needs,
    OrderPath, Result, Row, SCAN_STEP_BYTES_MAX, SORT_BYTES_MAX, SORT_ENTRIES_MAX, Seen,
    TURN_BUDGET_US, VALUE_INDEX_STEP_ENTRIES_MAX, ValueIndexState, Versionstamp,
};
use openkv_engines::Snapshot;

/// A list in the order of values.
#[derive(Clone, Debug)]
pub struct OrderedScan {
    /// The range, the filter and the parts of the entries. Its order is that of `order`.
    pub scan: Scan,
    /// The order, as the caller gave it.
    pub order: Vec<OrderPath>,
    /// Without a fitting index the entries are sorted in memory.
    pub sort: bool,
    /// The position of the entry before the page.
    pub after: Option<Vec<u8>>,
}

/// An entry of a page.
#[derive(Clone, Debug)]
pub struct OwnedEntry {
    /// Its position, behind which a list continues.
    pub position: Vec<u8>,
    key: Vec<u8>,
    stamp: Versionstamp,
    encoding: Encoding,
    value: Vec<u8>,
    expire_at_ms: Option<i64>,
    /// It is in the page although it does not match. It has no value.
    pub is_passed: bool,
}

impl OwnedEntry {
    fn of(seen: &Seen<'_>, position: Vec<u8>, is_passed: bool) -> Self {
        let Seen { row: Row { key, stamp, encoding, value }, expire_at_ms } = *seen;
        let value = if is_passed { &[] } else { value };
        let (key, value) = (key.to_vec(), value.to_vec());
        Self { position, key, stamp, encoding, value, expire_at_ms, is_passed }
    }

    /// The entry.
    pub fn seen(&self) -> Seen<'_> {
        let Self { key, stamp, encoding, value, .. } = self;
        let row = Row { key, stamp: *stamp, encoding: *encoding, value };
        Seen { row, expire_at_ms: self.expire_at_ms }
    }

    fn bytes(&self) -> usize {
        self.position.len() + self.key.len() + self.value.len()
    }
}

/// A page of a list in the order of values.
#[derive(Clone, Debug, Default)]
pub struct OrderedPage {
    /// Its entries, in order.
    pub entries: Vec<OwnedEntry>,
    /// Where the next page begins; `None` if there is none. A page without entries can have a next one.
    pub next: Option<Vec<u8>>,
    /// How its order came about.
    pub way: OrderWay,
    /// What was read for it.
    pub(super) read: ReadSoFar,
}

/// How the order of a page came about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OrderWay {
    /// An index has it.
    Indexed {
        /// The index was read from its end, so that positions descend.
        reverse: bool,
    },
    /// The entries were sorted.
    Sorted {
        /// Value indexes have found them.
        by_index: bool,
    },
}

impl Default for OrderWay {
    fn default() -> Self {
        Self::Sorted { by_index: false }
    }
}

/// Where an entry is in a list in an order.
#[derive(Clone, Debug)]
pub struct Place {
    /// How the order comes about.
    pub way: OrderWay,
    /// The position of the entry; `None` if the list does not have it.
    pub position: Option<Vec<u8>>,
}

impl Store {
    /// Reads a page of up to `limit` entries.
    pub fn ordered(
        &self,
        list: OrderedScan,
        limit: usize,
        patience: Arc<Patience>,
        caller: impl Caller<OrderedPage>,
    ) {
        let mut sorted: Option<Sorted> = None;
        self.long.send_steps(patience, caller, move |snapshot, patience| {
            list.step(&mut sorted, snapshot, limit, patience)
        });
    }

    /// Whether the list has an index here, or may be sorted, and continues from its position.
    pub fn has_order(&self, list: OrderedScan, caller: impl Caller<bool>) {
        self.read(None, caller, move |snapshot, _| {
            let indexes = snapshot.value_indexes()?;
            let plan = list.plan(&indexes, &parse_paths(&list.order)?);
            let index = plan.as_ref().and_then(|plan| indexes.get(plan.index));
            let continues = list.position(&list.mark(index)).is_ok();
            Ok(continues && (index.is_some() || list.sort))
        });
    }
}

/// What a list does with the entry of an index.
enum Chosen {
    /// Its entry has expired.
    Absent,
    /// It does not match.
    Passed,
    /// It is in the page.
    Entry(OwnedEntry),
}

/// Where a page ends.
struct PageBounds<'b> {
    /// Entries.
    limit: usize,
    /// Entries of the index that are read.
    index_entries: usize,
    /// Bytes, after which it ends.
    bytes: usize,
    until: Instant,
    /// Whether a filter goes on in one value.
    check: &'b dyn Fn() -> Result<()>,
}

/// Most entries of a page whose values are fetched together.
const FETCHED_TOGETHER_MAX: usize = 64;

impl OrderedScan {
    /// Reads a page, or does a step of sorting one.
    pub(super) fn step(
        &self,
        sorted: &mut Option<Sorted>,
        snapshot: &mut dyn Snapshot,
        limit: usize,
        patience: &Patience,
    ) -> Result<Option<OrderedPage>> {
        let order = parse_paths(&self.order)?;
        if sorted.is_none() {
            let indexes = snapshot.value_indexes()?;
            match self.plan(&indexes, &order) {
                Some(plan) => {
                    let bounds = PageBounds {
                        limit,
                        index_entries: VALUE_INDEX_STEP_ENTRIES_MAX,
                        bytes: SCAN_STEP_BYTES_MAX,
                        until: Instant::now() + Duration::from_millis(LONG_STEP_MS),
                        check: &|| patience.check(),
                    };
                    return self.page(snapshot, &indexes, &plan, &bounds).map(Some);
                }
                None if !self.sort => return Err(self.no_index(&indexes)),
                None => {}
            }
        }
        let sorted = sorted.get_or_insert_with(|| Sorted::of(self, limit));
        sorted.step(self, &order, snapshot, patience)
    }

    /// A page for the thread of a caller that must not wait: all of `limit` entries, or all that there are. `None` if that
    /// takes more than such a page may, if no index has the order, or if the position is of another order: a replica
    /// leaves such a list to the database that it follows.
    pub(super) fn brief_page(
        &self,
        snapshot: &mut dyn Snapshot,
        limit: usize,
    ) -> Result<Option<OrderedPage>> {
        let indexes = snapshot.value_indexes()?;
        // One half are those of the index.
        let index_entries = BRIEF_SCAN_ENTRIES_MAX / 2;
        let Some(plan) = self.plan(&indexes, &parse_paths(&self.order)?) else { return Ok(None) };
        let continues = self.position(&self.mark(indexes.get(plan.index))).is_ok();
        if !continues || limit > index_entries || plan.ranges.len() > index_entries {
            return Ok(None);
        }
        let is_long = Cell::new(false);
        let check = || {
            is_long.set(true);
            Err(Error::closed())
        };
        let until = Instant::now() + Duration::from_micros(TURN_BUDGET_US);
        let bytes = BRIEF_SCAN_BYTES_MAX;
        let bounds = PageBounds { limit, index_entries, bytes, until, check: &check };
        let page = self.page(snapshot, &indexes, &plan, &bounds);
        if is_long.get() {
            return Ok(None);
        }
        let page = page?;
        Ok(Some(page).filter(|page| page.entries.len() == limit || page.next.is_none()))
    }

    /// The index that has the order.
    pub(super) fn plan(&self, indexes: &[ValueIndex], order: &[Part]) -> Option<OrderPlan> {
        let Scan { start, end, filter, .. } = &self.scan;
        plan_order(indexes, filter.as_ref(), order, start, end)
    }

    /// The place of an entry in the list.
    pub(super) fn place_of(
        &self,
        indexes: &[ValueIndex],
        key: &[u8],
        encoding: Encoding,
        value: &[u8],
    ) -> Result<Place> {
        let order = parse_paths(&self.order)?;
        let marked = |index, position: Vec<u8>| [self.mark(index), position].concat();
        match self.plan(indexes, &order) {
            Some(plan) => {
                let position = plan.position_of(indexes, key, encoding, value);
                let position = position.map(|at| marked(indexes.get(plan.index), at));
                Ok(Place { way: OrderWay::Indexed { reverse: plan.reverse }, position })
            }
            None if !self.sort => Err(self.no_index(indexes)),
            None => {
                let position = marked(None, order_code(&order, key, encoding, value));
                Ok(Place { way: OrderWay::default(), position: Some(position) })
            }
        }
    }

    /// The bytes before its positions.
    fn mark(&self, index: Option<&ValueIndex>) -> Vec<u8> {
        position_mark(index, &self.order)
    }

    /// What is behind the mark in the position.
    fn position<'p>(&'p self, mark: &[u8]) -> Result<Option<&'p [u8]>> {
        let Some(after) = &self.after else { return Ok(None) };
        after.strip_prefix(mark).map(Some).ok_or_else(|| {
            Error::invalid(
                "kv.list: the cursor is of another order, or its index was created or dropped meanwhile: begin \
                 the list again",
            )
        })
    }

    /// A page from an index: looks at about `limit` entries of it, and at more each time until the page is full.
    fn page(
        &self,
        snapshot: &mut dyn Snapshot,
        indexes: &[ValueIndex],
        plan: &OrderPlan,
        bounds: &PageBounds<'_>,
    ) -> Result<OrderedPage> {
        let mark = self.mark(indexes.get(plan.index));
        let mut after = self.position(&mark)?.map(<[u8]>::to_vec);
        let range = (self.scan.start.as_slice(), self.scan.end.as_slice());
        let way = OrderWay::Indexed { reverse: plan.reverse };
        let mut page = OrderedPage { way, ..OrderedPage::default() };
        let mut bytes = 0;
        let is_over = |page: &OrderedPage, bytes| {
            let late = || page.next.is_some() && Instant::now() >= bounds.until;
            page.entries.len() == bounds.limit || bytes >= bounds.bytes || late()
        };
        // Entries of each range.
        let most = |left: usize| left / plan.ranges.len().max(1);
        let mut look = bounds.limit.min(most(bounds.index_entries)).max(1);
        loop {
            let mut walk =
                |id, range: (&[u8], &[u8]), reverse, visit: &mut dyn FnMut(&[u8]) -> bool| {
                    snapshot.walk_index(id, range, reverse, visit)
                };
            let found = gather_ordered(indexes, plan, range, after.as_deref(), look, &mut walk)?;
            let Ordered { entries, next, visited } = found;
            page.read.index_entries += visited;
            let together = look.min(FETCHED_TOGETHER_MAX);
            for (at, (position, key)) in entries.iter().enumerate() {
                if is_over(&page, bytes) {
                    return Ok(page);
                }
                if at % together == 0 {
                    let next = entries.iter().skip(at).take(together);
                    let keys: Vec<_> =
                        next.map(|(_, key)| Key::from_encoded(key.clone())).collect();
                    snapshot.prefetch(Needs { keys: &keys, ranges: &[] })?;
                }
                let position = [mark.as_slice(), position].concat();
                match self.chosen(snapshot, key, &position, bounds)? {
                    Chosen::Absent => {}
                    Chosen::Passed => page.read.entries += 1,
                    Chosen::Entry(entry) => {
                        page.read.entries += 1;
                        page.read.matching += u64::from(!entry.is_passed);
                        bytes += entry.bytes();
                        page.entries.push(entry);
                    }
                }
                page.next = Some(position);
            }
            page.next = next.as_ref().map(|next| [mark.as_slice(), next].concat());
            let read = usize::try_from(page.read.index_entries).unwrap_or(usize::MAX);
            let left = most(bounds.index_entries.saturating_sub(read));
            // Looks that become shorter would cost more trips than they have entries.
            if next.is_none() || is_over(&page, bytes) || left < look {
                return Ok(page);
            }
            (after, look) = (next, look.saturating_mul(LOOK_GROWTH).min(left));
        }
    }

    /// The entry of a key, and whether it matches.
    fn chosen(
        &self,
        snapshot: &mut dyn Snapshot,
        key: &[u8],
        position: &[u8],
        bounds: &PageBounds<'_>,
    ) -> Result<Chosen> {
        let mut found = Ok(Chosen::Absent);
        snapshot.entry(key, &mut |seen| {
            found = self.matches(&seen, bounds).map(|matches| match matches || self.scan.passed {
                true => Chosen::Entry(OwnedEntry::of(&seen, position.to_vec(), !matches)),
                false => Chosen::Passed,
            });
        })?;
        found
    }

    fn matches(&self, seen: &Seen<'_>, bounds: &PageBounds<'_>) -> Result<bool> {
        let goes_on = |_| (bounds.check)().is_ok();
        let Some(filter) = &self.scan.filter else { return Ok(true) };
        match Filter::matches_while(filter, seen.row.encoding, seen.row.value, &goes_on) {
            Ok(Some(matches)) => Ok(matches),
            Ok(None) => Err((bounds.check)().err().unwrap_or_else(Error::closed)),
            Err(error) => {
                Err(Error::corrupt(format!("a value could not be compared with where: {error}")))
            }
        }
    }

    /// The error of a list whose order no index has.
    fn no_index(&self, indexes: &[ValueIndex]) -> Error {
        let shown = |path: &OrderPath| match path.descending {
            true => format!("{{ path: {:?}, order: \"desc\" }}", path.path),
            false => format!("{:?}", path.path),
        };
        let on = self.order.iter().map(shown).collect::<Vec<_>>().join(", ");
        let Scan { start, end, .. } = &self.scan;
        let has_order = |index: &&ValueIndex| {
            let paths = |path: &OrderPath| index.spec().on.iter().any(|on| on.path == path.path);
            index.spec().covers_range(start, end) && self.order.iter().all(paths)
        };
        let unready = indexes.iter().filter(has_order).find(|index| !index.is_ready());
        let instead = match unready.map(|index| (&index.info.state, &index.spec().name)) {
            Some((ValueIndexState::Building, name)) => {
                format!("the index '{name}' is being built: wait for its ready(), or")
            }
            Some((ValueIndexState::Failed(_), name)) => {
                format!("the index '{name}' could not be built: drop it and create it again, or")
            }
            _ => {
                let parts = key::print(start.strip_suffix(&[0]).unwrap_or(start));
                format!(
                    "create one with kv.createIndex({{ prefix, type: \"value\", on: [{on}] }}) (with the paths that \
                     where gives a value for in front) for the keys from {parts} on, or"
                )
            }
        };
        Error::invalid(format!(
            "kv.list: no index has the order of orderBy: {instead} give sort: true to sort in memory"
        ))
    }
}

/// A page that is being sorted: the first entries of those that were read so far.
pub(super) struct Sorted {
    scan: Scan,
    /// Whether value indexes find the entries; `None` before the first step.
    by_index: Option<bool>,
    limit: usize,
    first: BTreeMap<Vec<u8>, OwnedEntry>,
    bytes: usize,
    more: bool,
}

impl Sorted {
    fn of(list: &OrderedScan, limit: usize) -> Self {
        let scan = Scan { values: true, reverse: false, ..list.scan.clone() };
        let limit = limit.clamp(1, SORT_ENTRIES_MAX);
        Self { scan, by_index: None, limit, first: BTreeMap::new(), bytes: 0, more: false }
    }

    /// What was read for it since the last call.
    pub(super) fn take_read(&mut self) -> ReadSoFar {
        self.scan.read.take()
    }

    fn step(
        &mut self,
        list: &OrderedScan,
        order: &[Part],
        snapshot: &mut dyn Snapshot,
        patience: &Patience,
    ) -> Result<Option<OrderedPage>> {
        let mark = list.mark(None);
        let after = list.position(&mark)?;
        let requested = self.limit;
        let Self { scan, by_index, limit, first, bytes, more } = self;
        let done = scan.step(snapshot, usize::MAX, patience, &mut |seen, chosen| {
            let Row { key, encoding, value, .. } = seen.row;
            let position = order_code(order, key, encoding, value);
            let full = first.len() == *limit;
            let behind = first.last_key_value().is_some_and(|(last, _)| position > *last);
            if after.is_some_and(|after| position.as_slice() <= after) {
                return;
            }
            *more |= full;
            if full && behind {
                return;
            }
            let entry = OwnedEntry::of(seen, [mark.as_slice(), &position].concat(), !chosen);
            *bytes += entry.bytes();
            first.insert(position, entry);
            while first.len() > *limit || (*bytes > SORT_BYTES_MAX && first.len() > 1) {
                *bytes -= first.pop_last().map_or(0, |(_, entry)| entry.bytes());
                *more = true;
                *limit = (*limit).min(first.len());
            }
        })?;
        let found = scan.found_by_index();
        if *by_index == Some(true) && !found {
            // The steps before have left out entries that do not match, which a transaction must check now.
            *self = Self::of(list, requested);
            self.scan.by_index = false;
            return Ok(None);
        }
        (*by_index, scan.by_index) = (Some(found), found);
        if !done {
            return Ok(None);
        }
        let entries: Vec<_> = std::mem::take(first).into_values().collect();
        let next = entries.last().filter(|_| *more).map(|entry| entry.position.clone());
        let way = OrderWay::Sorted { by_index: found };
        Ok(Some(OrderedPage { entries, next, way, read: scan.read }))
    }
}
