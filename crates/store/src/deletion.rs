//! The search of a deletion before its commit: which entries match its filter.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Caller, Patience, Scan, Store};
use openkv_core::filter::Filter;
use openkv_core::model::{Among, Error, FilterResults, Key, LONG_STEP_MS, Result};
use openkv_engines::Snapshot;

/// A search of the entries of one commit, in steps.
pub struct Look {
    filter: Filter,
    patience: Arc<Patience>,
    /// The entries compared so far.
    pub known: FilterResults,
    /// How many of those match the filter.
    pub met: usize,
    /// Of a range: the first key that was not searched; `None` when all were.
    pub bound: Option<Key>,
    /// Of a range: where the next step begins, if one has been taken.
    at: Option<Key>,
    /// Of keys: how many have been searched.
    keys: usize,
    rows: usize,
    tries: usize,
}

impl Store {
    /// Searches the candidates of a deletion's next commit, step by step, until all are searched, or
    /// as many as that commit may read (`rows_max`) or delete (`met_max`). The result is the search
    /// and its candidates.
    pub fn look_for_deletion(
        &self,
        look: Look,
        among: Among,
        (rows_max, met_max): (usize, usize),
        caller: impl Caller<(Look, Among)>,
    ) {
        let patience = look.patience.clone();
        let mut under_way = Some((look, among));
        self.long.send_steps(patience, caller, move |snapshot, _| {
            let Some((look, among)) = &mut under_way else { return Ok(None) };
            let done = look.step(snapshot, among, (rows_max, met_max))?;
            Ok(if done { under_way.take() } else { None })
        });
    }
}

impl Look {
    /// A search by this filter, within these bounds.
    #[must_use]
    pub fn new(filter: Filter, patience: Arc<Patience>) -> Self {
        let (known, met, bound, at) = (FilterResults::new(), 0, None, None);
        Self { filter, patience, known, met, bound, at, keys: 0, rows: 0, tries: 0 }
    }

    /// Starts again for another commit. Returns how often this was called.
    pub fn start_again(&mut self) -> usize {
        self.known.clear();
        (self.met, self.keys, self.rows) = (0, 0, 0);
        (self.bound, self.at) = (None, None);
        self.tries += 1;
        self.tries
    }

    /// Does one step; `true` when the commit can follow: everything was searched, or as many entries as
    /// one commit may read or delete.
    fn step(
        &mut self,
        snapshot: &mut dyn Snapshot,
        among: &Among,
        (rows_max, met_max): (usize, usize),
    ) -> Result<bool> {
        match among {
            Among::Keys(keys) => self.step_keys(snapshot, keys),
            Among::Span { start, end } => {
                let start = self.at.take().unwrap_or_else(|| start.clone());
                let done = self.step_span(snapshot, (start, end), rows_max)?;
                Ok(done || self.rows >= rows_max || self.met >= met_max)
            }
        }
    }

    fn step_span(
        &mut self,
        snapshot: &mut dyn Snapshot,
        (start, end): (Key, &Key),
        rows_max: usize,
    ) -> Result<bool> {
        let mut scan = Scan {
            values: true,
            filter: Some(self.filter.clone()),
            passed: true,
            by_index: true,
            ..Scan::of_range(start.into_bytes(), end.as_bytes().to_vec())
        };
        let Self { known, met, rows, patience, .. } = self;
        let left = rows_max.saturating_sub(*rows).max(1);
        let done = scan.step(snapshot, left, patience, &mut |seen, chosen| {
            let key = Key::from_encoded(seen.row.key.to_vec());
            known.insert(key, (seen.row.stamp.version(), chosen));
            *met += usize::from(chosen);
            *rows += 1;
        })?;
        self.bound = (!done).then(|| Key::from_encoded(scan.start));
        self.at.clone_from(&self.bound);
        Ok(done)
    }

    fn step_keys(&mut self, snapshot: &mut dyn Snapshot, keys: &[Key]) -> Result<bool> {
        let until = Instant::now() + Duration::from_millis(LONG_STEP_MS);
        for key in keys.iter().skip(self.keys) {
            let mut seen = None;
            let (filter, patience) = (&self.filter, &self.patience);
            snapshot.get(key.as_bytes(), &mut |row| {
                let goes_on = |_| patience.lasts();
                let met = filter.matches_while(row.encoding, row.value, &goes_on);
                seen = Some((row.stamp.version(), met));
            })?;
            self.keys += 1;
            match seen {
                Some((version, Ok(Some(met)))) => {
                    self.known.insert(key.clone(), (version, met));
                    self.met += usize::from(met);
                }
                Some((_, Ok(None))) => {
                    return Err(self.patience.check().err().unwrap_or_else(Error::closed));
                }
                // The commit reports what is wrong with the value, if it still exists.
                Some((_, Err(_))) => self.met += 1,
                None => {}
            }
            if Instant::now() >= until {
                return Ok(self.keys == keys.len());
            }
        }
        Ok(true)
    }
}
