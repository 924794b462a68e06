//! The times of a write.

use super::TIME_MS_MAX;

/// A time in a write: an expiry, or when a message is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Time {
    /// In ms since the epoch.
    At(i64),
    /// In ms from the commit, by the clock of the database. The clock of the caller does not count.
    After(i64),
}

impl Time {
    /// In ms since the epoch, for a commit at `now_ms`. A relative time is never after
    /// [`TIME_MS_MAX`].
    pub fn at_ms(self, now_ms: i64) -> i64 {
        match self {
            Self::At(ms) => ms,
            Self::After(ms) => now_ms.saturating_add(ms).min(TIME_MS_MAX),
        }
    }
}

impl Default for Time {
    fn default() -> Self {
        Self::At(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_relative_time_depends_on_the_commit() {
        assert_eq!(Time::At(7).at_ms(100), 7);
        assert_eq!(Time::After(7).at_ms(100), 107);
        assert_eq!(Time::After(0).at_ms(100), 100);
    }

    #[test]
    fn a_relative_time_ends_with_the_last_date() {
        assert_eq!(Time::After(TIME_MS_MAX - 100).at_ms(100), TIME_MS_MAX);
        assert_eq!(Time::After(TIME_MS_MAX - 100).at_ms(101), TIME_MS_MAX);
        assert_eq!(Time::After(i64::MAX).at_ms(100), TIME_MS_MAX);
    }
}
