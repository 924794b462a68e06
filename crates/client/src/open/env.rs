//! The time and the random numbers of stores: the machine's, or a clock that its owner sets.

use std::hash::{BuildHasher, RandomState};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use openkv_core::model::Env;

/// The machine's clock and random numbers.
#[derive(Debug, Default)]
struct System {
    seeds: RandomState,
    drawn: AtomicU64,
}

impl Env for System {
    fn now_ms(&self) -> i64 {
        let now = SystemTime::now().duration_since(UNIX_EPOCH);
        now.ok().and_then(|now| i64::try_from(now.as_millis()).ok()).unwrap_or(0)
    }

    fn random(&self) -> u64 {
        // Keyed hashes of a counter: the keys come from the operating system.
        self.seeds.hash_one(self.drawn.fetch_add(1, Ordering::Relaxed))
    }
}

/// The machine's clock and random numbers, for a [`Store`](openkv_store::Store) over an engine of the caller.
#[must_use]
pub fn system() -> Arc<dyn Env> {
    Arc::new(System::default())
}

/// A clock that stands still until it is set, for tests of programs. Random numbers are the machine's.
#[derive(Debug)]
pub struct SetClock {
    now_ms: AtomicI64,
    machine: System,
}

impl SetClock {
    /// A clock that stands at a time, in ms since the epoch.
    #[must_use]
    pub fn new(now_ms: i64) -> Self {
        Self { now_ms: now_ms.into(), machine: System::default() }
    }

    /// Sets the time. Its store learns of that from [`Store::clock_was_set`](openkv_store::Store::clock_was_set).
    pub fn set(&self, now_ms: i64) {
        self.now_ms.store(now_ms, Ordering::Release);
    }
}

impl Env for SetClock {
    fn now_ms(&self) -> i64 {
        self.now_ms.load(Ordering::Acquire)
    }

    fn random(&self) -> u64 {
        self.machine.random()
    }
}
