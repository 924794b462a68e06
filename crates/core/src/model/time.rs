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

/// The ms of numbers with units, like `7d` or `1h30m`, as js/arguments/duration.ts has them; `None` for any other text.
pub fn parse_duration(text: &str) -> Option<i64> {
    let mut rest = text;
    let mut ms: i64 = 0;
    while !rest.is_empty() {
        let unit_at = rest.find(|c: char| !c.is_ascii_digit())?;
        let (number, behind) = rest.split_at_checked(unit_at)?;
        let end = behind.find(|c: char| c.is_ascii_digit()).unwrap_or(behind.len());
        let (unit, left) = behind.split_at_checked(end)?;
        let unit_ms = match unit {
            "ms" => 1,
            "s" => 1000,
            "m" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        ms = ms.checked_add(number.parse::<i64>().ok()?.checked_mul(unit_ms)?)?;
        rest = left;
    }
    (!text.is_empty()).then_some(ms)
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
    fn durations_are_numbers_with_units() {
        for (text, ms) in
            [("250ms", 250), ("5m", 300_000), ("1h30m", 5_400_000), ("7d", 604_800_000), ("0s", 0)]
        {
            assert_eq!(parse_duration(text), Some(ms), "{text}");
        }
        for text in [
            "",
            "5",
            "m",
            "5 m",
            "5w",
            "-5m",
            "5m3",
            "1.5h",
            "99999999999999999999ms",
            "9223372036854775807d",
        ] {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn a_relative_time_ends_with_the_last_date() {
        assert_eq!(Time::After(TIME_MS_MAX - 100).at_ms(100), TIME_MS_MAX);
        assert_eq!(Time::After(TIME_MS_MAX - 100).at_ms(101), TIME_MS_MAX);
        assert_eq!(Time::After(i64::MAX).at_ms(100), TIME_MS_MAX);
    }
}
