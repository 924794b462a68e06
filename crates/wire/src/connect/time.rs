//! RFC 3339 times ⇄ milliseconds since the epoch.

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

/// Writes a time in UTC with three decimals, as `2026-11-21T04:45:59.123Z`. A time outside the
/// years 0 to 9999, which the format cannot represent, becomes the nearest one inside.
pub fn to_rfc3339(ms: i64) -> String {
    const FIRST_MS: i64 = -62_167_219_200_000;
    const LAST_MS: i64 = 253_402_300_799_999;
    let nanos = i128::from(ms.clamp(FIRST_MS, LAST_MS)) * 1_000_000;
    let time = OffsetDateTime::from_unix_timestamp_nanos(nanos);
    let time = time.unwrap_or(OffsetDateTime::UNIX_EPOCH);
    let (year, month, day) = (time.year(), u8::from(time.month()), time.day());
    let (hour, minute, second, milli) = time.to_hms_milli();
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{milli:03}Z")
}

/// Parses a time with a zone, of any precision; `None` for anything else. Decimals beyond
/// milliseconds are dropped. Second 60 is the first second of the next minute.
pub fn from_rfc3339(text: &str) -> Option<i64> {
    const SEPARATOR: usize = 10;
    const SECOND: std::ops::Range<usize> = 17..19;
    // `time` accepts any byte between date and time.
    if !matches!(text.as_bytes().get(SEPARATOR), Some(b'T' | b't' | b' ')) {
        return None;
    }
    // `time` reads a leap second as the last nanosecond of its minute.
    let leap = text.get(SECOND) == Some("60");
    let parsed = if leap {
        let (before, after) = (text.get(..SECOND.start)?, text.get(SECOND.end..)?);
        OffsetDateTime::parse(&format!("{before}59{after}"), &Rfc3339)
    } else {
        OffsetDateTime::parse(text, &Rfc3339)
    };
    let time = parsed.ok()?;
    let second = time.unix_timestamp() + i64::from(leap);
    Some(second * 1000 + i64::from(time.millisecond()))
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
    fn times_without_a_zone_and_invalid_dates_are_rejected() {
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
