//! The header `Range` (RFC 9110, 14.2), for one range of bytes.

use hyper::header::HeaderValue;

/// The part of a file that a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RequestedRange {
    All,
    /// From the first byte (included) to the second (excluded).
    Part((u64, u64)),
    /// A part that the file does not have.
    Nothing,
}

/// What a header asks for. One that is malformed, or has several ranges, asks for all.
pub(super) fn requested_range(header: Option<&HeaderValue>, bytes: u64) -> RequestedRange {
    let text = header.and_then(|header| header.to_str().ok()).unwrap_or_default();
    let range = text.trim().strip_prefix("bytes=").and_then(|range| range.split_once('-'));
    let Some((first, last)) = range else { return RequestedRange::All };
    match (first.trim().parse::<u64>(), last.trim()) {
        (Ok(first), _) if first >= bytes => RequestedRange::Nothing,
        (Ok(first), "") => RequestedRange::Part((first, bytes)),
        (Ok(first), last) => match last.parse::<u64>() {
            Ok(last) if last >= first => {
                RequestedRange::Part((first, last.saturating_add(1).min(bytes)))
            }
            _ => RequestedRange::All,
        },
        (Err(_), last) if first.trim().is_empty() => match last.parse::<u64>() {
            Ok(0) => RequestedRange::Nothing,
            Ok(most) => RequestedRange::Part((bytes.saturating_sub(most), bytes)),
            Err(_) => RequestedRange::All,
        },
        (Err(_), _) => RequestedRange::All,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_a_part_of_the_file() {
        for (text, expected) in [
            ("bytes=0-", RequestedRange::Part((0, 100))),
            ("bytes=40-", RequestedRange::Part((40, 100))),
            ("bytes=40-49", RequestedRange::Part((40, 50))),
            ("bytes=99-1000", RequestedRange::Part((99, 100))),
            ("bytes=-10", RequestedRange::Part((90, 100))),
            ("bytes=-1000", RequestedRange::Part((0, 100))),
            ("bytes=100-", RequestedRange::Nothing),
            ("bytes=-0", RequestedRange::Nothing),
            ("bytes=5-4", RequestedRange::All),
            ("bytes=0-1,3-4", RequestedRange::All),
            ("bytes=a-", RequestedRange::All),
            ("lines=0-", RequestedRange::All),
            ("", RequestedRange::All),
        ] {
            assert_eq!(
                requested_range(HeaderValue::from_str(text).ok().as_ref(), 100),
                expected,
                "{text}"
            );
        }
        assert_eq!(requested_range(None, 100), RequestedRange::All);
    }
}
