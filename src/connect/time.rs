//! Times as RFC 3339 writes them ⇄ milliseconds since the epoch.

const DAY_MS: i64 = 86_400_000;

/// Writes a time in UTC, as `2026-11-21T04:45:59.123Z`. Years beyond 9999 do not fit the format and
/// become its last millisecond; times before year 0 its first.
#[must_use]
pub fn to_rfc3339(ms: i64) -> String {
    const FIRST_MS: i64 = -62_167_219_200_000;
    const LAST_MS: i64 = 253_402_300_799_999;
    let ms = ms.clamp(FIRST_MS, LAST_MS);
    let (year, month, day) = date_of(ms.div_euclid(DAY_MS));
    let rest = ms.rem_euclid(DAY_MS);
    let (hour, minute) = (rest / 3_600_000, rest / 60_000 % 60);
    let (second, milli) = (rest / 1000 % 60, rest % 1000);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Reads a time with its zone, of any precision; `None` for anything else. A leap second is the
/// second after it, what is finer than a millisecond is cut off.
#[must_use]
pub fn from_rfc3339(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let (&[a, b, c, d, b'-', e, f, b'-', g, h, middle, i, j, b':', k, l, b':', m, n], rest) =
        bytes.split_first_chunk()?
    else {
        return None;
    };
    if !matches!(middle, b'T' | b't' | b' ') {
        return None;
    }
    let (year, month, day) = (number(&[a, b, c, d])?, number(&[e, f])?, number(&[g, h])?);
    let (hour, minute, second) = (number(&[i, j])?, number(&[k, l])?, number(&[m, n])?);
    let valid = (1..=12).contains(&month)
        && (1..=days_of(year, month)).contains(&day)
        && hour <= 23
        && minute <= 59
        && second <= 60;
    if !valid {
        return None;
    }
    let (milli, zone) = fraction(rest)?;
    let offset = offset_minutes(zone)?;
    let days = days_before(year, month, day);
    let minutes = days * 1440 + hour * 60 + minute - offset;
    Some(minutes * 60_000 + second * 1000 + milli)
}

fn number(digits: &[u8]) -> Option<i64> {
    digits.iter().try_fold(0, |number, digit| {
        digit.is_ascii_digit().then(|| number * 10 + i64::from(digit - b'0'))
    })
}

/// Milliseconds of a fraction that may be there, and what follows it.
fn fraction(rest: &[u8]) -> Option<(i64, &[u8])> {
    let Some((b'.', rest)) = rest.split_first() else { return Some((0, rest)) };
    let len = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
    if len == 0 {
        return None;
    }
    let (digits, rest) = rest.split_at_checked(len)?;
    let padded = digits.iter().chain(b"00").take(3).copied();
    Some((number(&padded.collect::<Vec<u8>>())?, rest))
}

fn offset_minutes(zone: &[u8]) -> Option<i64> {
    match *zone {
        [b'Z' | b'z'] => Some(0),
        [sign @ (b'+' | b'-'), a, b, b':', c, d] => {
            let (hours, minutes) = (number(&[a, b])?, number(&[c, d])?);
            let offset = hours * 60 + minutes;
            let valid = hours <= 23 && minutes <= 59;
            valid.then_some(if sign == b'-' { -offset } else { offset })
        }
        _ => None,
    }
}

fn days_of(year: i64, month: i64) -> i64 {
    let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    match month {
        4 | 6 | 9 | 11 => 30,
        2 if leap => 29,
        2 => 28,
        _ => 31,
    }
}

/// Days from the epoch to a date, by counting years that begin in March: the leap day is the last.
fn days_before(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let of_year = (153 * ((month + 9) % 12) + 2) / 5 + day - 1;
    365 * year + year.div_euclid(4) - year.div_euclid(100) + year.div_euclid(400) + of_year
        - 719_468
}

/// The date of a day since the epoch.
fn date_of(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let era = day.div_euclid(146_097);
    let of_era = day.rem_euclid(146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (year_of_era + era * 400 + next, month, day)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_and_read() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_795_236_359_123, "2026-11-21T04:45:59.123Z"),
            (253_402_300_799_999, "9999-12-31T23:59:59.999Z"),
            (-62_167_219_200_000, "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(to_rfc3339(ms), text);
            assert_eq!(from_rfc3339(text), Some(ms), "{text}");
        }
        for ms in (-2_000_000_000_000..4_000_000_000_000).step_by(86_399_123_457) {
            assert_eq!(from_rfc3339(&to_rfc3339(ms)), Some(ms));
        }
        assert_eq!(to_rfc3339(i64::MAX), "9999-12-31T23:59:59.999Z");
    }

    #[test]
    fn zones_and_fractions_count() {
        let ms = Some(1_795_236_359_120);
        for text in [
            "2026-11-21T04:45:59.12Z",
            "2026-11-21t04:45:59.120999999z",
            "2026-11-21 06:45:59.12+02:00",
            "2026-11-20T23:15:59.12-05:30",
        ] {
            assert_eq!(from_rfc3339(text), ms, "{text}");
        }
        assert_eq!(from_rfc3339("2016-12-31T23:59:60Z"), from_rfc3339("2017-01-01T00:00:00Z"));
    }

    #[test]
    fn what_has_no_zone_or_is_no_date_is_none() {
        for bad in [
            "",
            "2026-11-21",
            "2026-11-21T04:45:59",
            "2026-11-21T04:45:59.Z",
            "2026-11-21T04:45:59+0200",
            "2026-11-21T04:45:59ZZ",
            "2026-02-29T04:45:59Z",
            "2026-13-01T04:45:59Z",
            "2026-11-21T24:45:59Z",
            "2026-11-21T04:45:61Z",
            "2026-11-21T04:45:5éZ",
            "+026-11-21T04:45:59Z",
        ] {
            assert_eq!(from_rfc3339(bad), None, "{bad}");
        }
    }
}
