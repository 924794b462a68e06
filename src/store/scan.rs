//! Scans in steps: a reader looks at so many entries and no more, and then others have their turn.

use std::time::{Duration, Instant};

use super::patience::Patience;
use crate::codec::key;
use crate::engine::Snapshot;
use crate::filter::Filter;
use crate::model::{
    Error, LONG_STEP_MS, Result, SCAN_STEP_BYTES_MAX, SCAN_STEP_ROWS_MAX, Seen, Step, Walk,
};

/// Entries that are chosen among those of a range; what is left of it after the last step.
#[derive(Clone, Debug)]
pub struct Scan {
    /// First key, included.
    pub start: Vec<u8>,
    /// Last key, excluded.
    pub end: Vec<u8>,
    /// From the end backwards.
    pub reverse: bool,
    /// Whether what is shown has values.
    pub values: bool,
    /// Bytes of the prefix, and most parts behind it.
    pub depth: Option<(usize, usize)>,
    /// What values have to meet.
    pub filter: Option<Filter>,
    /// Whether those that are not chosen are shown too, so that all of a range has been seen.
    pub passed: bool,
}

impl Scan {
    /// Shows up to `limit` entries and whether each is chosen, as far as one step goes; `true` when
    /// there are no more.
    ///
    /// # Errors
    /// What the engine answers; `Corrupt` for a value that the filter cannot read; why its caller's
    /// patience has ended.
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
        // Looking at the clock costs as much as passing over an entry.
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
                // Past the subtree, or, in reverse, to the key that it is under.
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
            // The end is excluded, and this key has not been looked at.
            next.push(BEFORE_EXTENSIONS);
            self.end = next;
        } else {
            self.start = next;
        }
        Ok(false)
    }
}

/// Entries without a filter between two looks at the clock.
const CLOCK_ROWS: usize = 64;

/// Behind a key: before all keys that extend it, and after them.
const BEFORE_EXTENSIONS: u8 = 0x00;
const AFTER_EXTENSIONS: u8 = 0xff;
