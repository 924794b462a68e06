//! How much a database's clients may do: a bucket of tokens that fills with time.

use super::answer::Refusal;
use hyper::StatusCode;

/// Operations that are left, as of a moment.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Bucket {
    /// Thousandths of operations taken and not yet given back.
    owed: u64,
    at_ms: i64,
}

impl Bucket {
    /// Takes operations that are not asked for one by one, also those that are not there yet.
    pub(super) fn owe(&mut self, count: u64, now_ms: i64) {
        self.owed = self.owed.saturating_add(count.saturating_mul(1000));
        self.at_ms = self.at_ms.max(now_ms);
    }

    /// Takes one operation of `per_second`, which may also come all at once.
    ///
    /// # Errors
    /// After how many seconds there will be one.
    pub(super) fn take(&mut self, per_second: u32, now_ms: i64) -> Result<(), u64> {
        let (rate, elapsed) = (u64::from(per_second), now_ms.saturating_sub(self.at_ms).max(0));
        let back = elapsed.unsigned_abs().saturating_mul(rate);
        self.owed = self.owed.saturating_sub(back);
        self.at_ms = self.at_ms.max(now_ms);
        if self.owed + 1000 <= rate * 1000 {
            self.owed += 1000;
            return Ok(());
        }
        let left = (self.owed + 1000).saturating_sub(rate * 1000);
        Err(left.div_ceil(1000).checked_div(rate).map_or(60, |seconds| seconds.clamp(1, 60)))
    }
}

/// 429 with its text.
pub(super) fn over(what: &str, max: u64, unit: &str, retry_s: u64) -> Refusal {
    let text = format!("The database is over its quota of {what} (max {max}{unit}); try later.");
    Refusal::new(StatusCode::TOO_MANY_REQUESTS, text).retry(retry_s)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_s_worth_may_come_at_once_and_then_as_time_goes() {
        let mut bucket = Bucket::default();
        let now_ms = 1_000_000;
        let took = (0..20).filter(|_| bucket.take(10, now_ms).is_ok()).count();
        assert_eq!(took, 10);
        assert_eq!(bucket.take(10, now_ms + 99), Err(1));
        assert_eq!(bucket.take(10, now_ms + 100), Ok(()));
        // A clock that goes back gives nothing, and takes nothing.
        assert_eq!(bucket.take(10, now_ms - 5000), Err(1));
        assert_eq!(bucket.take(10, now_ms + 200), Ok(()));
        assert_eq!(Bucket::default().take(0, now_ms), Err(60));
        // A group of a hundred is ten seconds' worth.
        let mut bucket = Bucket::default();
        assert_eq!(bucket.take(10, now_ms), Ok(()));
        bucket.owe(99, now_ms);
        assert_eq!(bucket.take(10, now_ms), Err(9));
        assert_eq!(bucket.take(10, now_ms + 9000), Err(1));
        assert_eq!(bucket.take(10, now_ms + 9100), Ok(()));
    }
}
