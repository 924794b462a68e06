//! The wait before a retry: it grows with each one and differs between clients.

use std::time::Duration;

use openkv_core::model::{RETRY_DELAY_MS, RETRY_DELAY_MS_MAX};

/// The wait before try number `tries + 1`. It doubles from [`RETRY_DELAY_MS`] to
/// [`RETRY_DELAY_MS_MAX`]; `random` chooses between half of that and all of it.
pub(super) fn delay(tries: u32, random: u64) -> Duration {
    let doubled = RETRY_DELAY_MS.saturating_mul(1 << tries.min(16));
    let most = doubled.min(RETRY_DELAY_MS_MAX);
    let half = most / 2;
    Duration::from_millis(half + random % (most - half + 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_grow_to_a_bound_and_differ() {
        for tries in [0, 1, 5, 20, u32::MAX] {
            let most = (RETRY_DELAY_MS << tries.min(16)).min(RETRY_DELAY_MS_MAX);
            for random in [0, 1, 77, u64::MAX] {
                let ms = delay(tries, random).as_millis();
                assert!((u128::from(most / 2)..=u128::from(most)).contains(&ms), "{tries} {ms}");
            }
        }
        assert_ne!(delay(3, 1), delay(3, 2));
    }
}
