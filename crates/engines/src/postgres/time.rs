//! The time of a database: its server's, so that the clocks of its clients do not matter.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use super::Shared;
use openkv_core::model::Env;

/// Whose time counts.
pub(super) struct Time {
    of_caller: bool,
    /// The server's time less that of this machine, as of the last transaction, in ms.
    ahead_ms: AtomicI64,
}

impl Time {
    /// The server's.
    pub(super) fn of_server() -> Self {
        Self { of_caller: false, ahead_ms: AtomicI64::new(0) }
    }

    /// That of the caller: for tests.
    pub(super) fn of_caller() -> Self {
        Self { of_caller: true, ahead_ms: AtomicI64::new(0) }
    }

    /// The time that a statement uses instead of the server's.
    pub(super) fn of_tests(&self, now_ms: i64) -> Option<i64> {
        self.of_caller.then_some(now_ms)
    }

    /// Whether the time of the caller counts.
    pub(super) fn is_of_caller(&self) -> bool {
        self.of_caller
    }

    /// Notes the time of the server.
    pub(super) fn learn(&self, server_ms: i64) {
        self.ahead_ms.store(server_ms - machine_ms(), Ordering::Relaxed);
    }
}

fn machine_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.ok().and_then(|now| i64::try_from(now.as_millis()).ok()).unwrap_or(0)
}

struct ServerTime {
    shared: Arc<Shared>,
    inner: Arc<dyn Env>,
}

impl Env for ServerTime {
    fn now_ms(&self) -> i64 {
        self.inner.now_ms() + self.shared.time.ahead_ms.load(Ordering::Relaxed)
    }

    fn random(&self) -> u64 {
        self.inner.random()
    }
}

/// The time of the server, by the clock of `inner` and what is known of the difference.
pub(super) fn env(shared: Arc<Shared>, inner: Arc<dyn Env>) -> Arc<dyn Env> {
    Arc::new(ServerTime { shared, inner })
}
