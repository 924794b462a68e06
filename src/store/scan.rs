//! Scans in steps: a step visits a bounded number of entries, so that other work runs in between.

use std::time::{Duration, Instant};

use super::patience::Patience;
use crate::codec::key;
use crate::engine::Snapshot;
use crate::filter::Filter;
use crate::model::{
    Error, LONG_STEP_MS, Result, SCAN_STEP_BYTES_MAX, SCAN_STEP_ROWS_MAX, Seen, Step, Walk,
};

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
}

impl Scan {
    /// Visits up to `limit` entries, each with whether it matches, within the bounds of one step.
    /// Returns `true` if there are no more.
    ///
    /// # Errors
    /// Those of the engine; `Corrupt` for a value that the filter cannot read; the reason if
    /// `patience` ends.
    pub fn step(
        &mut self,
        snapshot: &mut dyn Snapshot,
        limit: usize,
        patience: &Patience,
        show: &mut dyn FnMut(&Seen<'_>, bool),
    ) -> Result<bool> {
        let (mut rows, mut bytes, mut shown) = (0, 0, 0);
        let mut stopped = None;
        let mut failure = None;
        let until = Instant::now() + Duration::from_millis(LONG_STEP_MS);
        // Reading the clock costs as much as skipping an entry.
        let looks = if self.filter.is_some() { 1 } else { CLOCK_ROWS };
        let walk = Walk {
            start: &self.start,
            end: &self.end,
            reverse: self.reverse,
            values: self.values || self.filter.is_some(),
        };
        snapshot.walk(walk, &mut |seen| {
            let key = seen.row.key;
            let full = rows == SCAN_STEP_ROWS_MAX || bytes >= SCAN_STEP_BYTES_MAX || shown == limit;
            let late = || rows > 0 && rows % looks == 0 && Instant::now() >= until;
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
            let goes_on = |_| patience.lasts();
            let met = self.filter.as_ref().map_or(Ok(Some(true)), |filter| {
                filter.matches_while(seen.row.encoding, seen.row.value, &goes_on)
            });
            match met {
                Ok(None) => {
                    failure = patience.check().err().or_else(|| Some(Error::closed()));
                    return Step::Stop;
                }
                Ok(Some(chosen)) => {
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
        })?;
        if let Some(error) = failure {
            return Err(error);
        }
        let Some(mut next) = stopped else { return Ok(true) };
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

/// Entries without a filter between two readings of the clock.
const CLOCK_ROWS: usize = 64;

/// The byte after a key: before all keys that extend it, and after them.
const BEFORE_EXTENSIONS: u8 = 0x00;
const AFTER_EXTENSIONS: u8 = 0xff;
