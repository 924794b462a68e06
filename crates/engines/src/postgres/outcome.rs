//! Resolves the outcome of batches whose answer is lost.

use std::time::{Duration, Instant};

use openkv_core::model::{POSTGRES_RESOLVE_MS_MAX, POSTGRES_RESOLVE_PAUSE_MS, Result};

/// Calls `ask` until it answers, at most for [`POSTGRES_RESOLVE_MS_MAX`]. `ask` gets the time at
/// which it must end.
///
/// # Errors
/// The error of the last attempt.
pub(super) fn until_answered<T>(mut ask: impl FnMut(Instant) -> Result<T>) -> Result<T> {
    let deadline = Instant::now() + Duration::from_millis(POSTGRES_RESOLVE_MS_MAX);
    loop {
        match ask(deadline) {
            Err(error) if Instant::now() < deadline => {
                tracing::warn!(%error, "asking again what became of a batch");
                std::thread::sleep(Duration::from_millis(POSTGRES_RESOLVE_PAUSE_MS));
            }
            answer => return answer,
        }
    }
}
