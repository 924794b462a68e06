//! Which objects of the log, and which snapshots, no reader needs any more.

use super::defect::{ChainDefect, Planted};

/// Snapshots that stay.
const SNAPSHOTS_KEPT: usize = 2;

/// A verified snapshot: the version of its database, and the last number of the log that it contains.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Mark {
    /// Its version.
    pub version: u64,
    /// The last object of the log that it contains.
    pub number: u64,
}

/// The snapshots that a leader has seen in listings, each since when by its own monotonic clock, in ms.
#[derive(Debug, Default)]
pub struct Deletion {
    seen: Vec<(Mark, u64)>,
    planted: Planted,
}

impl Deletion {
    /// As the default, with a defect.
    #[cfg(feature = "defects")]
    #[must_use]
    pub fn with_defect(defect: Option<ChainDefect>) -> Self {
        Self { planted: Planted::new(defect), ..Self::default() }
    }

    /// Notes a listing that ended at `now_ms`, while the chain ended before `next`. A snapshot counts from
    /// the time on at which the chain is known to go on behind it.
    ///
    /// Returns the last number of the log that may be deleted, with all before it, and the snapshots that
    /// may be: what a snapshot contains that has been there for four leases; all snapshots but the two newest.
    pub fn look(
        &mut self,
        listed: &[Mark],
        next: u64,
        now_ms: u64,
        lease_ms: u64,
    ) -> (Option<u64>, Vec<Mark>) {
        self.seen.retain(|(mark, _)| listed.contains(mark));
        for mark in listed {
            let known = self.seen.iter().any(|(seen, _)| seen == mark);
            if !known
                && (mark.number + 1 < next || self.planted.is(ChainDefect::DeletesUncontained))
            {
                self.seen.push((*mark, now_ms));
            }
        }
        let wait = if self.planted.is(ChainDefect::DeletesEarly) { 0 } else { 4 * lease_ms };
        let settled = self.seen.iter().filter(|(_, since)| now_ms.saturating_sub(*since) >= wait);
        let mut number = settled.map(|(mark, _)| mark.number).max();
        if self.planted.is(ChainDefect::DeletesUncontained) {
            number = number.map(|_| next.saturating_sub(1));
        }
        let mut sorted = listed.to_vec();
        sorted.sort_unstable();
        // A reader may be at an older one; it begins again with a newer one if that goes.
        let old = sorted.len().saturating_sub(SNAPSHOTS_KEPT);
        sorted.truncate(old);
        let newest = number.unwrap_or(0);
        sorted.retain(|mark| mark.number < newest);
        (number, sorted)
    }
}
