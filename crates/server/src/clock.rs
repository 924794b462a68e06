//! The clock of this machine.

use std::time::{SystemTime, UNIX_EPOCH};

/// The wall clock, in ms since the epoch.
pub(super) fn now_ms() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    now.ok().and_then(|now| i64::try_from(now.as_millis()).ok()).unwrap_or(0)
}
