//! Times of a `Date` ⇄ the format of ECMAScript: `2026-01-01T00:00:00.000Z`, years beyond four
//! digits with a sign and six.
//!
//! Never: a time zone that the text does not name. Where JavaScript would take the zone of the
//! machine, and in every other format that it guesses, the text is refused.

use std::fmt::Write;

/// The largest distance of a `Date` from the epoch, in ms.
const DATE_MS_MAX: i64 = 8_640_000_000_000_000;

const DAY_MS: i64 = 86_400_000;

/// Days of 400 years, after which the calendar repeats.
const CYCLE_DAYS: i64 = 146_097;
/// Days from 1 March of the year 0 to the epoch.
const EPOCH_DAYS: i64 = 719_468;

/// Appends the time as `Date.prototype.toISOString` does.
pub fn push(out: &mut String, ms: i64) {
    let (days, rest) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    // Years begin in March here, so that a leap day is the last of its year.
    let day = days + EPOCH_DAYS;
    let (cycle, day) = (day.div_euclid(CYCLE_DAYS), day.rem_euclid(CYCLE_DAYS));
    let year = (day - day / 1460 + day / 36_524 - day / (CYCLE_DAYS - 1)) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let date = day - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    let year = cycle * 400 + year + i64::from(month <= 2);
    let _ = match year {
        0..=9999 => write!(out, "{year:04}"),
        _ => write!(out, "{year:+07}"),
    };
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, ms) = (rest / 1000 % 60, rest % 1000);
    let _ = write!(out, "-{month:02}-{date:02}T{hour:02}:{minute:02}:{second:02}.{ms:03}Z");
}

/// The time in ms since the epoch: a date alone is in UTC, a time has `Z` or an offset. `None` for
/// anything else.
pub fn parse(text: &str) -> Option<i64> {
    let mut reader = Reader(text.as_bytes());
    let sign = reader.takes(b"+-");
    let year = reader.digits(if sign.is_some() { 6 } else { 4 })?;
    if sign == Some(b'-') && year == 0 {
        return None;
    }
    let year = if sign == Some(b'-') { -year } else { year };
    let (mut month, mut date) = (1, 1);
    if reader.takes(b"-").is_some() {
        month = reader.digits(2)?;
        if reader.takes(b"-").is_some() {
            date = reader.digits(2)?;
        }
    }
    if !(1..=12).contains(&month) || !(1..=days_in(year, month)).contains(&date) {
        return None;
    }
    let mut ms = days(year, month, date) * DAY_MS;
    if reader.takes(b"T").is_some() {
        ms += reader.time()?;
    }
    (reader.0.is_empty() && ms.abs() <= DATE_MS_MAX).then_some(ms)
}

struct Reader<'t>(&'t [u8]);

impl Reader<'_> {
    /// The next byte, if it is one of these.
    fn takes(&mut self, of: &[u8]) -> Option<u8> {
        let (first, rest) = self.0.split_first().filter(|(first, _)| of.contains(first))?;
        self.0 = rest;
        Some(*first)
    }

    /// A number of so many digits.
    fn digits(&mut self, count: usize) -> Option<i64> {
        let (digits, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        let all = digits.iter().all(u8::is_ascii_digit);
        std::str::from_utf8(digits).ok().filter(|_| all)?.parse().ok()
    }

    /// The time after `T`, with its zone, in ms.
    fn time(&mut self) -> Option<i64> {
        let hour = self.digits(2)?;
        self.takes(b":")?;
        let minute = self.digits(2)?;
        let second = self.takes(b":").map_or(Some(0), |_| self.digits(2))?;
        let mut ms = (hour * 60 + minute) * 60_000 + second * 1000;
        if self.takes(b".").is_some() {
            let count = self.0.iter().take_while(|byte| byte.is_ascii_digit()).count();
            let (decimals, rest) = self.0.split_at_checked(count).filter(|_| count > 0)?;
            self.0 = rest;
            let digit = |at: usize| decimals.get(at).map_or(0, |byte| i64::from(byte - b'0'));
            ms += digit(0) * 100 + digit(1) * 10 + digit(2);
        }
        if hour > 24 || minute > 59 || second > 59 || ms > DAY_MS {
            return None;
        }
        let zone = self.takes(b"Z+-")?;
        if zone == b'Z' {
            return Some(ms);
        }
        let hours = self.digits(2)?;
        self.takes(b":")?;
        let minutes = self.digits(2)?;
        let offset = (hours * 60 + minutes) * 60_000;
        let is_offset = hours <= 23 && minutes <= 59;
        is_offset.then_some(if zone == b'+' { ms - offset } else { ms + offset })
    }
}

fn days_in(year: i64, month: i64) -> i64 {
    match month {
        2 if year % 4 == 0 && (year % 100 != 0 || year % 400 == 0) => 29,
        2 => 28,
        4 | 6 | 9 | 11 => 30,
        _ => 31,
    }
}

/// Days from the epoch to a date.
fn days(year: i64, month: i64, date: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let (cycle, year) = (year.div_euclid(400), year.rem_euclid(400));
    let month = (month + 9) % 12;
    let day = year * 365 + year / 4 - year / 100 + (153 * month + 2) / 5 + date - 1;
    cycle * CYCLE_DAYS + day - EPOCH_DAYS
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(ms: i64) -> String {
        let mut out = String::new();
        push(&mut out, ms);
        out
    }

    #[test]
    fn times_are_written_as_in_javascript() {
        for (ms, expected) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (253_402_300_800_000, "+010000-01-01T00:00:00.000Z"),
            (-62_167_219_200_001, "-000001-12-31T23:59:59.999Z"),
            (DATE_MS_MAX, "+275760-09-13T00:00:00.000Z"),
            (-DATE_MS_MAX, "-271821-04-20T00:00:00.000Z"),
        ] {
            assert_eq!(text(ms), expected);
        }
    }

    #[test]
    fn other_forms_are_read_or_refused() {
        for (text, ms) in [
            ("2026", Some(1_767_225_600_000)),
            ("2026-02", Some(1_769_904_000_000)),
            ("2026-02-03", Some(1_770_076_800_000)),
            ("2026-02-03T04:05Z", Some(1_770_091_500_000)),
            ("2026-02-03T04:05:06+02:30", Some(1_770_082_506_000)),
            ("2026-02-03T04:05:06.1239Z", Some(1_770_091_506_123)),
            ("2026-02-03T24:00:00Z", Some(1_770_163_200_000)),
            ("+275760-09-13T00:00:00.001Z", None),
            ("-000000-01-01", None),
            ("2026-02-03T04:05:06", None),
            ("2026-02-29", None),
            ("2026-13", None),
            ("2026-00-01", None),
            ("2026-02-03T24:00:01Z", None),
            ("2026-02-03T04:05:06.Z", None),
            ("2026-02-03T04:05:06Z ", None),
            ("2026-2-3", None),
            ("2026T04:05Z", Some(1_767_240_300_000)),
            ("Jan 1 2026", None),
            ("", None),
        ] {
            assert_eq!(parse(text), ms, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_time_comes_back(ms in -DATE_MS_MAX..=DATE_MS_MAX) {
            prop_assert_eq!(parse(&text(ms)), Some(ms));
        }

        #[test]
        fn no_text_panics(text in "[-+0-9TZ:.é]{0,30}") {
            let _ = parse(&text);
        }
    }
}
