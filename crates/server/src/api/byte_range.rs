//! The header `Range` (RFC 9110, 14.2), for one range of bytes.

use hyper::header::HeaderValue;

/// The part of a file that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Asked {
    All,
    /// From the first byte (included) to the second (excluded).
    Part((u64, u64)),
    /// A part that the file does not have.
    Nothing,
}

/// What a header asks for. One that is malformed, or has several ranges, asks for all.
pub(super) fn asked(header: Option<&HeaderValue>, bytes: u64) -> Asked {
    let text = header.and_then(|header| header.to_str().ok()).unwrap_or_default();
    let range = text.trim().strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    let Some((first, last)) = range else { return Asked::All };
    match (first.trim().parse::<u64>(), last.trim()) {
        (Ok(first), _) if first >= bytes => Asked::Nothing,
        (Ok(first), "") => Asked::Part((first, bytes)),
        (Ok(first), last) => match last.parse::<u64>() {
            Ok(last) if last >= first => Asked::Part((first, last.saturating_add(1).min(bytes))),
            _ => Asked::All,
        },
        (Err(_), last) if first.trim().is_empty() => match last.parse::<u64>() {
            Ok(0) => Asked::Nothing,
            Ok(most) => Asked::Part((bytes.saturating_sub(most), bytes)),
            Err(_) => Asked::All,
        },
        (Err(_), _) => Asked::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_part_of_the_file() {
        for (text, expected) in [
            ("bytes=0-", Asked::Part((0, 100))),
            ("bytes=40-", Asked::Part((40, 100))),
            ("bytes=40-49", Asked::Part((40, 50))),
            ("bytes=99-1000", Asked::Part((99, 100))),
            ("bytes=-10", Asked::Part((90, 100))),
            ("bytes=-1000", Asked::Part((0, 100))),
            ("bytes=100-", Asked::Nothing),
            ("bytes=-0", Asked::Nothing),
            ("bytes=5-4", Asked::All),
            ("bytes=0-1,3-4", Asked::All),
            ("bytes=a-", Asked::All),
            ("lines=0-", Asked::All),
            ("", Asked::All),
        ] {
            assert_eq!(asked(HeaderValue::from_str(text).ok().as_ref(), 100), expected, "{text}");
        }
        assert_eq!(asked(None, 100), Asked::All);
    }
}
