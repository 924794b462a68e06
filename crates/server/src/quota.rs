//! The rate limit of a database's clients: a token bucket; the pause of those over a quota.

use std::time::Duration;

use hyper::StatusCode;

use super::Serving;
use super::answer::Refusal;
use openkv_core::model::OVER_QUOTA_PAUSE_MS;

/// The free operations at one moment. The clock is monotonic: a wall clock that is set back would
/// not refill the bucket for that long.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    /// Thousandths of operations taken and not refilled.
    debt: u64,
    at: Duration,
}

impl Bucket {
    /// Takes operations of a request beyond its first, even if they are not free yet.
    pub(super) fn owe(&mut self, count: u64) {
        self.debt = self.debt.saturating_add(count.saturating_mul(1000));
    }

    /// Takes one operation at `per_second`, which is also the burst.
    ///
    /// # Errors
    /// The seconds until one is free.
    pub(super) fn take(&mut self, per_second: u32, at: Duration) -> Result<(), u64> {
        let rate = u64::from(per_second);
        // Whole milliseconds only: the rest counts the next time.
        let passed = u64::try_from(at.saturating_sub(self.at).as_millis()).unwrap_or(u64::MAX);
        self.debt = self.debt.saturating_sub(passed.saturating_mul(rate));
        self.at += Duration::from_millis(passed);
        if self.debt + 1000 <= rate * 1000 {
            self.debt += 1000;
            return Ok(());
        }
        let left = (self.debt + 1000).saturating_sub(rate * 1000);
        Err(left.div_ceil(1000).checked_div(rate).map_or(60, |seconds| seconds.clamp(1, 60)))
    }
}

/// 429 with its text.
pub(super) fn over(what: &str, max: u64, unit: &str, retry_s: u64) -> Refusal {
    let text = format!("The database is over its quota of {what} (max {max}{unit}); try later.");
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, text).retry(retry_s)
}

/// Delays the answer to a client that is over a quota or finds no room. A client that repeats at
/// once would otherwise take the server's time from the others.
pub(super) async fn hold(serving: &Serving) {
    let mut closing = serving.closing.subscribe();
    let pause = Duration::from_millis(OVER_QUOTA_PAUSE_MS);
    let _either = tokio::time::timeout(pause, closing.wait_for(|closing| *closing)).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_of_one_second_is_allowed() {
        let at = Duration::from_millis;
        let mut bucket = Bucket::default();
        let took = (0..20).filter(|_| bucket.take(10, at(5000)).is_ok()).count();
        assert_eq!(took, 10);
        assert_eq!(bucket.take(10, at(5099)), Err(1));
        assert_eq!(bucket.take(10, at(5100)), Ok(()));
        // A caller with an older time refills nothing and takes nothing.
        assert_eq!(bucket.take(10, at(5000)), Err(1));
        assert_eq!(bucket.take(10, at(5200)), Ok(()));
        // More calls than the clock has ticks.
        let calls = (0..=4000).map(|quarter| at(5200) + Duration::from_micros(quarter * 250));
        assert_eq!(calls.filter(|at| bucket.take(10, *at).is_ok()).count(), 10);
        assert_eq!(Bucket::default().take(0, at(0)), Err(60));
        // A group of a hundred is ten seconds' worth.
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(10, at(0)), Ok(()));
        bucket.owe(99);
        assert_eq!(bucket.take(10, at(0)), Err(9));
        assert_eq!(bucket.take(10, at(9000)), Err(1));
        assert_eq!(bucket.take(10, at(9100)), Ok(()));
    }
}
