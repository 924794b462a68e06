//! Leases: how long a leader may answer, and when another process may take the lead.

use super::defect::{ChainDefect, Planted};

/// What `lease.json` says at one look.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseState {
    /// No process leads: there is none yet, or its holder has released it.
    Free,
    /// A process holds it. The text changes with each renewal.
    Held(String),
}

/// A process that would like to lead watches the lease of another one. All times are those of its own
/// monotonic clock, in ms.
#[derive(Debug, Default)]
pub struct LeaseWatch {
    /// What it has seen, since when, and whether it has seen it change.
    seen: Option<(String, u64)>,
    changed_ms: Option<u64>,
    planted: Planted,
}

impl LeaseWatch {
    /// As the default, with a defect.
    #[cfg(feature = "defects")]
    #[must_use]
    pub fn with_defect(defect: Option<ChainDefect>) -> Self {
        Self { planted: Planted::new(defect), ..Self::default() }
    }

    /// Notes a look that began and ended at these times. Whether the process may claim the lease: it is free, or
    /// was the same from the end of a look to the beginning of another, a whole lease of `lease_ms` later.
    pub fn may_claim(
        &mut self,
        state: &LeaseState,
        (began_ms, ended_ms): (u64, u64),
        lease_ms: u64,
    ) -> bool {
        let LeaseState::Held(text) = state else { return true };
        match &self.seen {
            Some((seen, since_ms)) if seen == text => {
                let enough = match self.planted.is(ChainDefect::ClaimsEarly) {
                    true => lease_ms / 16,
                    false => lease_ms,
                };
                began_ms.saturating_sub(*since_ms) >= enough
            }
            before => {
                if before.is_some() {
                    self.changed_ms = Some(ended_ms);
                }
                self.seen = Some((text.clone(), ended_ms));
                false
            }
        }
    }

    /// Whether the holder has renewed it during the last lease, as far as this process has seen.
    #[must_use]
    pub fn is_alive(&self, now_ms: u64, lease_ms: u64) -> bool {
        self.changed_ms.is_some_and(|at_ms| now_ms.saturating_sub(at_ms) < lease_ms)
    }
}

/// The time for which a leader leads. All times are those of its own monotonic clock, in ms.
#[derive(Clone, Copy, Debug)]
pub struct Tenure {
    lease_ms: u64,
    /// The start of the last successful renewal.
    renewed_ms: u64,
    planted: Planted,
}

impl Tenure {
    /// Of a leader whose claim began at `begun_ms`.
    #[must_use]
    pub fn new(lease_ms: u64, begun_ms: u64) -> Self {
        Self { lease_ms, renewed_ms: begun_ms, planted: Planted::default() }
    }

    /// As [`Tenure::new`], with a defect.
    #[cfg(feature = "defects")]
    #[must_use]
    pub fn with_defect(lease_ms: u64, begun_ms: u64, defect: Option<ChainDefect>) -> Self {
        Self { planted: Planted::new(defect), ..Self::new(lease_ms, begun_ms) }
    }

    /// A renewal has succeeded that took from `begun_ms` to `ended_ms`.
    pub fn renewed(&mut self, begun_ms: u64, ended_ms: u64) {
        let counted = self.planted.is(ChainDefect::LeaseFromEnd);
        let at_ms = if counted { ended_ms } else { begun_ms };
        self.renewed_ms = self.renewed_ms.max(at_ms);
    }

    /// Whether commits and strong reads may be answered: for half a lease after a renewal.
    #[must_use]
    pub fn may_answer(&self, now_ms: u64) -> bool {
        self.planted.is(ChainDefect::AnswersWithoutLease)
            // The lease alone would keep a leader that ignores fences from harm.
            || self.planted.is(ChainDefect::IgnoresFence)
            || now_ms.saturating_sub(self.renewed_ms) < self.lease_ms / 2
    }

    /// The time up to which [`Tenure::may_answer`] holds without a renewal.
    #[must_use]
    pub fn answers_until_ms(&self) -> u64 {
        self.renewed_ms + self.lease_ms / 2
    }

    /// Whether it is time for the next renewal: after a third of a lease.
    #[must_use]
    pub fn is_due(&self, now_ms: u64) -> bool {
        now_ms.saturating_sub(self.renewed_ms) >= self.lease_ms / 3
    }
}

/// When a reader may believe what it finds behind its place: an object, or none. What was there may have been
/// deleted, and a late write of a former leader may have taken the number. But an object is deleted only four
/// leases after it was created. So if the log has ended at the reader's place lately, or no snapshot was
/// behind it, nothing behind it was deleted meanwhile.
#[derive(Clone, Copy, Debug, Default)]
pub struct EndWatch {
    looked_ms: Option<u64>,
    planted: Planted,
}

impl EndWatch {
    /// As the default, with a defect.
    #[cfg(feature = "defects")]
    #[must_use]
    pub fn with_defect(defect: Option<ChainDefect>) -> Self {
        Self { planted: Planted::new(defect), ..Self::default() }
    }

    /// Whether a look counts whose answer came at `now_ms`. Otherwise the reader lists the snapshots after it, and
    /// begins with the newest one if that is behind its own place.
    #[must_use]
    pub fn trusts(&self, now_ms: u64, lease_ms: u64) -> bool {
        self.planted.is(ChainDefect::TrustsAbsence)
            || self.looked_ms.is_some_and(|at| now_ms.saturating_sub(at) < 2 * lease_ms)
    }

    /// The end was found, or that no snapshot is behind the reader's place, by a look that began at `now_ms`.
    pub fn found(&mut self, now_ms: u64) {
        self.looked_ms = Some(now_ms);
    }
}
