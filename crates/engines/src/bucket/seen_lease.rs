//! What this process has seen of the lease of a database, by its own clock.
//!
//! A server looks at leases to name the leaders, and its open databases to lead. Both share what they have seen, so a
//! lease that one has watched in silence can be claimed by the other at once.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock, Weak};
use std::time::Instant;

use parking_lot::Mutex;

use super::objects::FoundLease;
use openkv_core::chain::{LeaseState, LeaseWatch};

/// The leases that servers of this process look at, by the identities of their databases.
static SEEN: LazyLock<Mutex<HashMap<String, Weak<SeenLease>>>> = LazyLock::new(Mutex::default);

pub(super) struct SeenLease {
    started: Instant,
    watch: Mutex<LeaseWatch>,
}

impl Default for SeenLease {
    fn default() -> Self {
        Self { started: Instant::now(), watch: Mutex::default() }
    }
}

impl SeenLease {
    /// The one of a database, which all that look at it in this process share.
    pub(super) fn of(identity: String) -> Arc<Self> {
        let mut all = SEEN.lock();
        if let Some(seen) = all.get(&identity).and_then(Weak::upgrade) {
            return seen;
        }
        all.retain(|_, seen| seen.strong_count() > 0);
        let seen = Arc::<Self>::default();
        all.insert(identity, Arc::downgrade(&seen));
        seen
    }

    fn ms(&self, at: Instant) -> u64 {
        let passed = at.saturating_duration_since(self.started).as_millis();
        u64::try_from(passed).unwrap_or(u64::MAX)
    }

    /// As [`LeaseWatch::may_claim`].
    pub(super) fn may_claim(
        &self,
        state: &LeaseState,
        (began, ended): (Instant, Instant),
        lease_ms: u64,
    ) -> bool {
        self.watch.lock().may_claim(state, (self.ms(began), self.ms(ended)), lease_ms)
    }

    /// As [`LeaseWatch::is_alive`].
    pub(super) fn is_alive(&self, lease_ms: u64) -> bool {
        self.watch.lock().is_alive(self.ms(Instant::now()), lease_ms)
    }

    /// Forgets what was seen before this process has led.
    pub(super) fn forget(&self) {
        *self.watch.lock() = LeaseWatch::default();
    }
}

/// What a lease says to a process. `is_own`: whether the holder with this id has ended, or is the process itself.
pub(super) fn state_of(
    found: Option<&FoundLease>,
    is_own: impl FnOnce(&str) -> bool,
) -> LeaseState {
    match found {
        Some(FoundLease { lease, .. }) if !lease.released && !is_own(&lease.id) => {
            LeaseState::Held(format!("{}/{}", lease.id, lease.beat))
        }
        Some(_) | None => LeaseState::Free,
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_silence_that_one_has_watched_is_enough_for_another() {
        let (one, two) =
            (SeenLease::of("s3://b/silence".into()), SeenLease::of("s3://b/silence".into()));
        let held = |beat: u32| LeaseState::Held(format!("x/{beat}"));
        let begun = Instant::now();
        let at = |ms| begun + Duration::from_millis(ms);
        assert!(!one.may_claim(&held(1), (at(0), at(10)), 100));
        // The lease is counted from the end of the first look to the beginning of another.
        assert!(!two.may_claim(&held(1), (at(109), at(120)), 100));
        assert!(two.may_claim(&held(1), (at(110), at(120)), 100));
        assert!(!one.may_claim(&held(2), (at(120), at(121)), 100));
        two.forget();
        assert!(!one.may_claim(&held(2), (at(900), at(901)), 100));
        assert!(one.may_claim(&LeaseState::Free, (at(902), at(903)), 100));
    }
}
