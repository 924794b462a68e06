//! The trace context of a request: the headers of W3C Trace Context, which its log lines name and its
//! messages carry to their handlers.
//!
//! Never: a refusal. A malformed header is ignored, as the standard asks.

use hyper::header::{HeaderMap, HeaderName};

use openkv_core::codec::message_context::{split, with_lines};
use openkv_core::model::{Target, WriteParts};

/// The headers, which are passed on as they are.
pub(super) const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
pub(super) const TRACESTATE: HeaderName = HeaderName::from_static("tracestate");

/// Digits of the parts of a `traceparent`: version, trace, parent and flags.
const PART_DIGITS: [usize; 4] = [2, 32, 16, 2];

/// The `traceparent` of a request, if it is well formed.
pub(super) fn traceparent_of(headers: &HeaderMap) -> Option<&str> {
    let text = headers.get(TRACEPARENT)?.to_str().ok()?;
    let mut parts = text.split('-');
    let is_hex = |part: &str| part.bytes().all(|b| matches!(b, b'0'..=b'9' | b'a'..=b'f'));
    let is_good = PART_DIGITS
        .iter()
        .all(|digits| parts.next().is_some_and(|part| part.len() == *digits && is_hex(part)));
    (is_good && parts.next().is_none()).then_some(text)
}

/// Lets the messages of a write carry the context of its request.
pub(super) fn carry(headers: &HeaderMap, parts: &mut WriteParts) {
    let Some(traceparent) = traceparent_of(headers) else { return };
    let state = headers.get(TRACESTATE).and_then(|state| state.to_str().ok());
    let mut context = format!("{TRACEPARENT}: {traceparent}");
    if let Some(state) = state {
        context.push_str(&format!("\n{TRACESTATE}: {state}"));
    }
    let mut context_lens = Vec::with_capacity(parts.messages.len());
    for message in &mut parts.messages {
        // A schedule that is set again is compared with the one that is kept, so it carries none.
        let carrying = match &message.schedule {
            None => with_lines(&context, &message.value),
            Some(_) => message.value.clone(),
        };
        context_lens.push(carrying.len() - message.value.len());
        message.value = carrying;
    }
    for patch in &mut parts.patches {
        if let Target::Message(at) = patch.target {
            patch.offset += context_lens.get(at).copied().unwrap_or(0);
        }
    }
}

/// A header of the context of a message.
pub(super) fn header_of(message: &[u8], name: &HeaderName) -> Option<String> {
    let (context, _) = split(message);
    let mut lines = context.lines().filter_map(|line| line.split_once(": "));
    lines.find(|(named, _)| *named == name.as_str()).map(|(_, value)| value.to_owned())
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;
    use openkv_core::model::{Message, Patch};

    const GOOD: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    fn with(traceparent: &str) -> HeaderMap {
        let value = HeaderValue::from_str(traceparent).unwrap();
        HeaderMap::from_iter([(TRACEPARENT, value)])
    }

    #[test]
    fn only_a_well_formed_traceparent_counts() {
        assert_eq!(traceparent_of(&with(GOOD)), Some(GOOD));
        assert_eq!(traceparent_of(&HeaderMap::new()), None);
        for bad in ["", "00", &GOOD[1..], &GOOD.to_uppercase(), &format!("{GOOD}-00")] {
            assert_eq!(traceparent_of(&with(bad)), None, "{bad}");
        }
    }

    #[test]
    fn messages_carry_it_and_places_of_uuids_move_with_their_value() {
        let mut headers = with(GOOD);
        headers.insert(TRACESTATE, HeaderValue::from_static("vendor=1"));
        let message = Message { value: b"\x01".to_vec(), ..Message::default() };
        let patch = Patch { target: Target::Message(0), offset: 3, placeholder: 7 };
        let other = Patch { target: Target::Key(0), ..patch };
        let mut parts = WriteParts {
            messages: vec![message],
            patches: vec![patch, other],
            ..WriteParts::default()
        };
        carry(&headers, &mut parts);
        let value = &parts.messages[0].value;
        assert_eq!(header_of(value, &TRACEPARENT).as_deref(), Some(GOOD));
        assert_eq!(header_of(value, &TRACESTATE).as_deref(), Some("vendor=1"));
        assert_eq!(split(value).1, b"\x01");
        assert_eq!(parts.patches[0].offset, 3 + value.len() - 1);
        assert_eq!(parts.patches[1].offset, 3);
    }

    #[test]
    fn a_request_without_a_context_changes_nothing() {
        let message = Message { value: b"\x01".to_vec(), ..Message::default() };
        let mut parts = WriteParts { messages: vec![message], ..WriteParts::default() };
        carry(&with("00"), &mut parts);
        assert_eq!(parts.messages[0].value, b"\x01");
        assert_eq!(header_of(&parts.messages[0].value, &TRACEPARENT), None);
    }
}
