//! What the test crates share.

use std::time::{Duration, Instant};

/// Bounds every wait, against hanging.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// Waits until another thread or process has made this true.
pub(crate) fn until(is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < PATIENCE, "the condition did not hold in time");
        std::thread::sleep(Duration::from_millis(5));
    }
}
