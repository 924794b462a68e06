//! The context of a message, for its handler: the headers of W3C Trace Context at its enqueue, the bound of its
//! handlers, and the schedule that has made it.
//!
//! Duty: puts them in front of an encoded value, and takes them off (docs/format.md §2). The bytes
//! after them are the value, unchanged.
//! Never: a part of the value that a handler gets; a reason to refuse a message.

use crate::model::{MESSAGE_CONTEXT_BYTES_MAX, check_group};

/// CBOR tag 27 (generic object) on an array of three items, the first of which is `"Message"`. No value
/// begins with these bytes.
const HEAD: &[u8] = b"\xd8\x1b\x83\x67Message";
/// Names of the lines that are openkv's own.
const TIMEOUT: &str = "openkv-timeout";
const DELAY: &str = "openkv-delay";
const SCHEDULE: &str = "openkv-schedule";
const DUE: &str = "openkv-due";
const GROUP: &str = "openkv-group";
const AGAIN: &str = "openkv-again";
/// First bytes of a CBOR text of up to 23 bytes, and of those with a length of one and of two bytes.
const SHORT_TEXT: u8 = 0x60;
const TEXT_U8: u8 = 0x78;
const TEXT_U16: u8 = 0x79;
/// Longest text with its length in the first byte.
const SHORT_TEXT_BYTES_MAX: usize = 23;

/// The context (lines of `name: value`; empty if there is none) and the value of a message.
#[must_use]
pub fn split(message: &[u8]) -> (&str, &[u8]) {
    read(message).unwrap_or(("", message))
}

/// The value of a message.
#[must_use]
pub fn value_of(message: &[u8]) -> &[u8] {
    split(message).1
}

/// A message with a context. One that is empty or over [`MESSAGE_CONTEXT_BYTES_MAX`] is left out.
#[must_use]
pub fn with_context(context: &str, value: &[u8]) -> Vec<u8> {
    let length = context.len();
    let mut message = Vec::with_capacity(HEAD.len() + 3 + length + value.len());
    if (1..=MESSAGE_CONTEXT_BYTES_MAX).contains(&length) {
        message.extend_from_slice(HEAD);
        match (u8::try_from(length), u16::try_from(length)) {
            (Ok(short), _) if length <= SHORT_TEXT_BYTES_MAX => message.push(SHORT_TEXT | short),
            (Ok(length), _) => message.extend_from_slice(&[TEXT_U8, length]),
            (Err(_), Ok(length)) => {
                message.push(TEXT_U16);
                message.extend_from_slice(&length.to_be_bytes());
            }
            (Err(_), Err(_)) => return value.to_vec(),
        }
        message.extend_from_slice(context.as_bytes());
    }
    message.extend_from_slice(value);
    message
}

/// A message with more lines in its context. Lines for which [`MESSAGE_CONTEXT_BYTES_MAX`] has no room are left out.
#[must_use]
pub fn with_lines(lines: &str, message: &[u8]) -> Vec<u8> {
    let (context, value) = split(message);
    let both = match (context, lines) {
        ("", lines) => lines.to_owned(),
        (context, "") => context.to_owned(),
        (context, lines) => format!("{context}\n{lines}"),
    };
    let fits = both.len() <= MESSAGE_CONTEXT_BYTES_MAX;
    with_context(if fits { &both } else { context }, value)
}

/// The line of a context that has the delay of the message, in ms.
#[must_use]
pub fn delay_line(delay_ms: i64) -> String {
    format!("{DELAY}: {delay_ms}")
}

/// The delay with which a message was enqueued, in ms; `None` for a date.
#[must_use]
pub fn delay_of(message: &[u8]) -> Option<i64> {
    line(split(message).0, DELAY)?.parse().ok()
}

/// The line of a context that bounds the handlers of the message, in ms.
#[must_use]
pub fn timeout_line(timeout_ms: u32) -> String {
    format!("{TIMEOUT}: {timeout_ms}")
}

/// The line of a context that has the group of the message.
#[must_use]
pub fn group_line(group: &str) -> String {
    format!("{GROUP}: {group}")
}

/// The group of a message.
#[must_use]
pub fn group_of(message: &[u8]) -> Option<&str> {
    line(split(message).0, GROUP).filter(|group| check_group(group).is_ok())
}

/// The line of a context that has the due time of a message that waits for the end of another one, in ms since the
/// epoch.
#[must_use]
pub fn again_line(due_ms: i64) -> String {
    format!("{AGAIN}: {due_ms}")
}

/// The due time of a message that waits for the end of another one, in ms since the epoch.
#[must_use]
pub fn waits_until(message: &[u8]) -> Option<i64> {
    line(split(message).0, AGAIN)?.parse().ok()
}

/// The lines of a context that say which schedule has made the message, and for which due time.
#[must_use]
pub fn schedule_lines(name: &str, due_ms: i64) -> String {
    format!("{DUE}: {due_ms}\n{SCHEDULE}: {name}")
}

/// The schedule that has made a message, and the due time, in ms since the epoch.
#[must_use]
pub fn schedule_of(message: &[u8]) -> Option<(&str, i64)> {
    let (context, _) = split(message);
    Some((line(context, SCHEDULE)?, line(context, DUE)?.parse().ok()?))
}

/// The bound of the handlers of a message, in ms.
#[must_use]
pub fn timeout_of(message: &[u8]) -> Option<u32> {
    line(split(message).0, TIMEOUT)?.parse().ok()
}

fn line<'c>(context: &'c str, name: &str) -> Option<&'c str> {
    let mut lines = context.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(named, _)| *named == name).map(|(_, value)| value)
}

fn read(message: &[u8]) -> Option<(&str, &[u8])> {
    let (&first, rest) = message.strip_prefix(HEAD)?.split_first()?;
    let (length, rest, least) = match first {
        TEXT_U8 => {
            let (&length, rest) = rest.split_first()?;
            (usize::from(length), rest, SHORT_TEXT_BYTES_MAX + 1)
        }
        TEXT_U16 => {
            let (length, rest) = rest.split_first_chunk()?;
            (usize::from(u16::from_be_bytes(*length)), rest, usize::from(u8::MAX) + 1)
        }
        _ => (usize::from(first.checked_sub(SHORT_TEXT)?), rest, 1),
    };
    let is_short = first < TEXT_U8;
    let most = if is_short { SHORT_TEXT_BYTES_MAX } else { MESSAGE_CONTEXT_BYTES_MAX };
    if !(least..=most).contains(&length) {
        return None;
    }
    let (context, value) = rest.split_at_checked(length)?;
    Some((std::str::from_utf8(context).ok()?, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_context_of_any_allowed_length_is_taken_off_again() {
        let value = b"\x83\x01\x02\x03";
        for length in 1..=MESSAGE_CONTEXT_BYTES_MAX {
            let context = "x".repeat(length);
            assert_eq!(split(&with_context(&context, value)), (context.as_str(), &value[..]));
        }
    }

    #[test]
    fn lines_are_added_to_a_context_while_there_is_room() {
        let message = with_lines(&schedule_lines("report", 7), &with_context("a: 1", b"\x01"));
        let message = with_lines(&timeout_line(1500), &message);
        assert_eq!(schedule_of(&message), Some(("report", 7)));
        assert_eq!(timeout_of(&message), Some(1500));
        assert_eq!(split(&message).1, b"\x01");
        assert!(split(&message).0.starts_with("a: 1\n"));
        assert_eq!(with_lines(&"x".repeat(MESSAGE_CONTEXT_BYTES_MAX), &message), message);
        assert_eq!((schedule_of(b"\x01"), timeout_of(b"\x01")), (None, None));
        let message = with_lines(&again_line(9), &with_lines(&group_line("ada é"), b"\x01"));
        assert_eq!((group_of(&message), waits_until(&message)), (Some("ada é"), Some(9)));
        assert_eq!((group_of(b"\x01"), waits_until(b"\x01")), (None, None));
    }

    #[test]
    fn without_a_context_or_over_the_bound_the_message_is_its_value() {
        let long = "x".repeat(MESSAGE_CONTEXT_BYTES_MAX + 1);
        for context in ["", long.as_str()] {
            assert_eq!(with_context(context, b"\x01"), b"\x01");
        }
        assert_eq!(split(b"\x01"), ("", &b"\x01"[..]));
    }

    #[test]
    fn a_message_with_a_malformed_context_stays_as_it_is() {
        let whole = with_context("traceparent: 00", b"");
        for end in 0..whole.len() {
            assert_eq!(split(&whole[..end]), ("", &whole[..end]), "{end}");
        }
        // Lengths that are not in their shortest form, zero, not UTF-8, over the bound.
        let over = [&b"\x79\x04\x01"[..], &[b'x'; 1025]].concat();
        for rest in
            [&b"\x78\x01x\x01"[..], b"\x79\x00\x01x\x01", b"\x60\x01", b"\x61\xff\x01", &over]
        {
            let message = [HEAD, rest].concat();
            assert_eq!(split(&message), ("", message.as_slice()));
        }
    }
}
