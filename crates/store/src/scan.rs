//! Scans in steps: a step visits a bounded number of entries, so that other work runs in between.

use std::cell::Cell;
use std::mem;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Caller, Patience, Store};
use openkv_core::codec::key;
use openkv_core::filter::Filter;
use openkv_core::index::{Gathered, ValueIndex, WalkEntries, gather, plan_keys};
use openkv_core::model::{
    BRIEF_SCAN_BYTES_MAX, BRIEF_SCAN_ENTRIES_MAX, Error, Key, LONG_STEP_MS, Needs, Result,
    SCAN_STEP_BYTES_MAX, SCAN_STEP_ROWS_MAX, Seen, Step, TURN_BUDGET_US, Walk,
};
use openkv_engines::Snapshot;
use openkv_wire::protocol::frame::ScanRequest;

/// A filtered range of entries. After a step, it is what is left of the range.
#[derive(Clone, Debug)]
pub struct Scan {
    /// First key, included.
    pub start: Vec<u8>,
    /// Last key, excluded.
    pub end: Vec<u8>,
    /// From the end backwards.
    pub reverse: bool,
    /// Whether visited entries have values.
    pub values: bool,
    /// Bytes of the prefix, and most parts behind it.
    pub depth: Option<(usize, usize)>,
    /// The filter for values.
    pub filter: Option<Filter>,
    /// Whether entries that do not match are visited too, for callers that must see the whole
    /// range.
    pub passed: bool,
    /// Whether a value index may skip entries although `passed` shows those that do not match.
    pub by_index: bool,
    /// What its steps have read.
    pub read: ReadSoFar,
}

/// What the steps of a scan have read.
#[derive(Clone, Copy, Debug, Default)]
pub struct ReadSoFar {
    /// Entries of indexes.
    pub(super) index_entries: u64,
    /// Entries.
    pub(super) entries: u64,
    /// Those of them that match.
    pub(super) matching: u64,
    /// Bytes of their values.
    bytes: usize,
    /// Whether indexes have found those of the last step.
    by_index: bool,
    /// Whether a step had a plan over indexes, and had to leave it, because they have too many entries for it.
    pub(super) left_indexes: bool,
}

impl Store {
    /// Does one step of a scan: visits up to `limit` entries, each with whether it matches. The
    /// result is what is left of the scan, and whether it is complete. Without a filter a step is a
    /// page, so it is a short read.
    pub fn scan<C: Caller<(Scan, bool)>>(
        &self,
        mut scan: Scan,
        limit: usize,
        patience: Arc<Patience>,
        caller: C,
        mut visit: impl FnMut(&mut C, &Seen<'_>, bool) + Send + 'static,
    ) {
        let long = scan.filter.is_some().then(|| patience.clone());
        self.read(long, caller, move |snapshot, caller| {
            let mut show = |seen: &Seen<'_>, chosen| visit(caller, seen, chosen);
            let done = scan.step(snapshot, limit, &patience, &mut show)?;
            Ok((scan, done))
        });
    }

    /// Counts the entries of a scan, step by step.
    pub fn count(&self, scan: Scan, patience: Arc<Patience>, caller: impl Caller<u64>) {
        let scan = Scan { values: false, passed: false, ..scan };
        self.long.send_steps(patience, caller, scan.counted());
    }
}

impl Scan {
    /// The keys of a range.
    pub fn of_range(start: Vec<u8>, end: Vec<u8>) -> Self {
        Self {
            start,
            end,
            reverse: false,
            values: false,
            depth: None,
            filter: None,
            passed: false,
            by_index: false,
            read: ReadSoFar::default(),
        }
    }

    /// The scan of a request, whose bounds it takes, with this value of `$now`.
    ///
    /// # Errors
    /// `Invalid` for its filter.
    pub fn of(request: &mut ScanRequest, now_ms: i64) -> Result<Self> {
        let filter = request.filter.as_deref();
        Ok(Self {
            start: mem::take(&mut request.start).into_bytes(),
            end: mem::take(&mut request.end).into_bytes(),
            reverse: request.reverse,
            values: !request.keys_only,
            depth: request.depth,
            filter: filter.map(|bytes| Filter::parse(bytes, now_ms)).transpose()?,
            passed: request.passed,
            // An index does not report the keys that the depth leaves out.
            by_index: request.indexed && request.depth.is_none(),
            read: ReadSoFar::default(),
        })
    }

    /// All entries, without their values.
    pub(super) fn all() -> Self {
        Self::of_range(Vec::new(), BEHIND_ALL_KEYS.to_vec())
    }

    /// Counts the entries of one more step at each call. Returns the number once all are counted.
    pub(super) fn counted(
        mut self,
    ) -> impl FnMut(&mut dyn Snapshot, &Patience) -> Result<Option<u64>> + Send {
        let mut count = 0;
        move |snapshot, patience| {
            let done = self.step(snapshot, usize::MAX, patience, &mut |_, _| count += 1)?;
            Ok(done.then_some(count))
        }
    }

    /// The same for a list in the order of values, which takes keys of any length.
    ///
    /// # Errors
    /// `Invalid` with a depth.
    pub fn whole_keys(self) -> Result<Self> {
        match self.depth {
            None => Ok(self),
            Some(_) => Err(Error::invalid("kv.list: orderBy and depth do not go together")),
        }
    }

    /// About `keys_max` keys of the next entries, if the value indexes of the snapshot have them, and read no more than
    /// `entries_max` entries of indexes for them.
    fn indexed(
        &mut self,
        indexes: &[ValueIndex],
        snapshot: &mut dyn Snapshot,
        keys_max: usize,
        entries_max: usize,
    ) -> Result<Option<Gathered>> {
        let filter = self.filter.as_ref().filter(|_| self.may_be_indexed());
        let Some(filter) = filter else { return Ok(None) };
        let Some(plan) = plan_keys(indexes, filter, &self.start, &self.end) else {
            return Ok(None);
        };
        let range = (self.start.as_slice(), self.end.as_slice());
        let (mut read, mut too_many) = (0, plan.ranges.len() > entries_max);
        let walk: WalkEntries<'_> = &mut |id, range, reverse, visit| {
            if too_many {
                return Ok(());
            }
            snapshot.walk_index(id, range, reverse, &mut |entry| {
                too_many = read == entries_max;
                read += usize::from(!too_many);
                !too_many && visit(entry)
            })
        };
        let gathered = gather(indexes, &plan, range, self.reverse, keys_max, walk)?;
        let gathered = gathered.filter(|_| !too_many);
        self.read.index_entries += read as u64;
        self.read.left_indexes |= gathered.is_none();
        Ok(gathered)
    }

    /// Whether its parts can come from an index. Indexes that have too many entries are not read again.
    pub(super) fn may_be_indexed(&self) -> bool {
        (!self.passed || self.by_index) && !self.read.left_indexes
    }

    /// Whether value indexes have found the entries of the last step, and left out others that `passed` would show.
    pub(crate) fn found_by_index(&self) -> bool {
        self.by_index && self.read.by_index
    }

    /// Whether a key has more parts than the depth.
    fn is_too_deep(&self, key: &[u8]) -> bool {
        let cut = |(prefix_bytes, parts)| key::cut(key, prefix_bytes, parts);
        self.depth.and_then(cut).is_some()
    }

    /// Visits up to `limit` entries, each with whether it matches, within the bounds of one step.
    /// Returns `true` if there are no more.
    ///
    /// # Errors
    /// Those of the engine; `Corrupt` for a value that the filter cannot read; the reason if
    /// `patience` ends.
    pub(super) fn step(
        &mut self,
        snapshot: &mut dyn Snapshot,
        limit: usize,
        patience: &Patience,
        show: &mut dyn FnMut(&Seen<'_>, bool),
    ) -> Result<bool> {
        let bounds = StepBounds {
            limit,
            rows: SCAN_STEP_ROWS_MAX,
            bytes: SCAN_STEP_BYTES_MAX,
            until: Instant::now() + Duration::from_millis(LONG_STEP_MS),
            check: &|| patience.check(),
        };
        let keys = limit.clamp(INDEXED_KEYS_MIN, SCAN_STEP_ROWS_MAX);
        let indexes = match &self.filter {
            Some(_) => snapshot.value_indexes()?,
            None => Arc::default(),
        };
        let indexed = self.indexed(&indexes, snapshot, keys, usize::MAX)?;
        self.visit(snapshot, indexed, &bounds, show)
    }

    /// As [`Self::step`], for the thread of a caller that must not wait. With a filter it visits all of `limit` entries, or
    /// all that there are; without one it may end before, but not without an entry. `None` if that takes more than such a
    /// step may, or if none of the value indexes of the snapshot has what the filter selects: what was visited does not
    /// count.
    pub(super) fn brief_step(
        &mut self,
        indexes: &[ValueIndex],
        snapshot: &mut dyn Snapshot,
        limit: usize,
        show: &mut dyn FnMut(&Seen<'_>, bool),
    ) -> Result<Option<bool>> {
        let until = Instant::now() + Duration::from_micros(TURN_BUDGET_US);
        let is_long = Cell::new(false);
        // Called once a filter has visited many items of one value.
        let check = || {
            is_long.set(true);
            Err(Error::closed())
        };
        if self.filter.is_none() {
            let (rows, bytes) = (BRIEF_SCAN_ENTRIES_MAX, BRIEF_SCAN_BYTES_MAX);
            let bounds = StepBounds { limit, rows, bytes, until, check: &check };
            // A step of fewer entries than were asked for costs more than one on another thread.
            let fits = limit <= BRIEF_SCAN_ENTRIES_MAX;
            let done = fits.then(|| self.visit(snapshot, None, &bounds, show)).transpose()?;
            return Ok(done.filter(|done| *done || self.read.matching > 0));
        }
        let mut keys = limit;
        loop {
            let left = self.read.leaves(BRIEF_SCAN_ENTRIES_MAX);
            let bytes = BRIEF_SCAN_BYTES_MAX.saturating_sub(self.read.bytes);
            let indexed = self.indexed(indexes, snapshot, keys.clamp(1, left), left)?;
            let Some(indexed) = indexed else { return Ok(None) };
            let rows = self.read.leaves(BRIEF_SCAN_ENTRIES_MAX);
            let shown = self.read.matching as usize;
            let bounds = StepBounds { limit: limit - shown, rows, bytes, until, check: &check };
            let done = self.visit(snapshot, Some(indexed), &bounds, show);
            if is_long.get() {
                return Ok(None);
            }
            let done = done?;
            if done || self.read.matching as usize == limit {
                return Ok(Some(done));
            }
            let is_full = self.read.leaves(BRIEF_SCAN_ENTRIES_MAX) == 0
                || self.read.bytes >= BRIEF_SCAN_BYTES_MAX;
            if is_full || Instant::now() >= until {
                return Ok(None);
            }
            keys = keys.saturating_mul(LOOK_GROWTH);
        }
    }

    /// Visits entries, of an index or in the order of keys, until one of the bounds.
    fn visit(
        &mut self,
        snapshot: &mut dyn Snapshot,
        indexed: Option<Gathered>,
        bounds: &StepBounds<'_>,
        show: &mut dyn FnMut(&Seen<'_>, bool),
    ) -> Result<bool> {
        self.read.by_index = indexed.is_some();
        let (mut rows, mut bytes, mut shown, mut matching) = (0, 0, 0, 0);
        let (mut stopped, mut failure, mut goes_on_behind) = (None, None, None);
        // Reading the clock costs as much as skipping an entry.
        let looks = if self.filter.is_some() { 1 } else { CLOCK_ROWS };
        let walk = Walk {
            start: &self.start,
            end: &self.end,
            reverse: self.reverse,
            values: self.values || self.filter.is_some(),
        };
        let mut visit = |seen: Seen<'_>| {
            let key = seen.row.key;
            let full = rows == bounds.rows || bytes >= bounds.bytes || shown == bounds.limit;
            let late = || rows > 0 && rows % looks == 0 && Instant::now() >= bounds.until;
            if full || late() {
                stopped = Some(key.to_vec());
                return Step::Stop;
            }
            rows += 1;
            bytes += seen.row.value.len();
            if let Some((prefix_bytes, parts)) = self.depth
                && let Some(deep) = key::cut(key, prefix_bytes, parts)
            {
                if self.passed {
                    shown += 1;
                    show(&seen, false);
                    return Step::Next;
                }
                // Skip the subtree or, in reverse, go to the key that it is under.
                let past = if self.reverse { BEFORE_EXTENSIONS } else { AFTER_EXTENSIONS };
                return Step::Seek([deep, &[past]].concat());
            }
            let goes_on = |_| (bounds.check)().is_ok();
            let met = self.filter.as_ref().map_or(Ok(Some(true)), |filter| {
                filter.matches_while(seen.row.encoding, seen.row.value, &goes_on)
            });
            match met {
                Ok(None) => {
                    failure = (bounds.check)().err().or_else(|| Some(Error::closed()));
                    return Step::Stop;
                }
                Ok(Some(chosen)) => {
                    matching += u64::from(chosen);
                    if chosen || self.passed {
                        shown += 1;
                        show(&seen, chosen);
                    }
                }
                Err(error) => {
                    failure = Some(Error::corrupt(format!(
                        "a value could not be compared with where: {error}"
                    )));
                    return Step::Stop;
                }
            }
            Step::Next
        };
        match indexed {
            None => snapshot.walk(walk, &mut visit)?,
            Some(Gathered { keys, is_complete }) => {
                goes_on_behind = keys.last().filter(|_| !is_complete).cloned();
                let keys = keys.into_iter().filter(|key| !self.is_too_deep(key));
                let keys: Vec<_> = keys.map(Key::from_encoded).collect();
                'all: for keys in keys.chunks(INDEXED_KEYS_MIN) {
                    snapshot.prefetch(Needs { keys, ranges: &[] })?;
                    for key in keys {
                        let mut step = Step::Next;
                        snapshot.entry(key.as_bytes(), &mut |seen| step = visit(seen))?;
                        if matches!(step, Step::Stop) {
                            break 'all;
                        }
                    }
                }
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        self.read.entries += rows as u64;
        self.read.matching += matching;
        self.read.bytes += bytes;
        let mut next = match (stopped, goes_on_behind) {
            (Some(next), _) => next,
            (None, None) => return Ok(true),
            (None, Some(last)) if self.reverse => {
                self.end = last;
                return Ok(false);
            }
            (None, Some(last)) => {
                self.start = [&last, &[BEFORE_EXTENSIONS][..]].concat();
                return Ok(false);
            }
        };
        if self.reverse {
            // The end is excluded, and this key is not visited yet.
            next.push(BEFORE_EXTENSIONS);
            self.end = next;
        } else {
            self.start = next;
        }
        Ok(false)
    }
}

impl ReadSoFar {
    /// What was read since the last call. That the indexes were left stays known.
    pub(super) fn take(&mut self) -> Self {
        let left_indexes = self.left_indexes;
        mem::replace(self, Self { left_indexes, ..Self::default() })
    }

    /// How many of so many entries, of indexes and others, are left to read.
    fn leaves(self, entries_max: usize) -> usize {
        let read = usize::try_from(self.index_entries + self.entries).unwrap_or(usize::MAX);
        entries_max.saturating_sub(read)
    }
}

/// Where a step ends.
struct StepBounds<'b> {
    /// Entries that are shown.
    limit: usize,
    /// Entries that are visited.
    rows: usize,
    /// Bytes of values, after which it ends.
    bytes: usize,
    until: Instant,
    /// Whether a filter goes on in one value.
    check: &'b dyn Fn() -> Result<()>,
}

/// Keys that a step takes from an index, at least: some do not match. The entries of so many are fetched together.
const INDEXED_KEYS_MIN: usize = 64;

/// How many times the entries of one look into the indexes the next one of the same step takes.
pub(super) const LOOK_GROWTH: usize = 4;

/// Entries without a filter between two readings of the clock.
const CLOCK_ROWS: usize = 64;

/// No part of a key begins with it.
const BEHIND_ALL_KEYS: [u8; 1] = [0xff];

/// The byte after a key: before all keys that extend it, and after them.
const BEFORE_EXTENSIONS: u8 = 0x00;
const AFTER_EXTENSIONS: u8 = 0xff;
