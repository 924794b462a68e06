//! The trace context of requests: the headers of W3C Trace Context that JavaScript gives for the requests which it
//! hands over next.
//!
//! Invariant: a handle without a context pays one look at an empty place for each request.
//! Never: another header than these two.

use hyper::header::{HeaderMap, HeaderName, HeaderValue};

/// The headers that a context may have.
static NAMES: [HeaderName; 2] =
    [HeaderName::from_static("traceparent"), HeaderName::from_static("tracestate")];

/// The headers of one context.
#[derive(Clone, Debug, Default)]
pub(super) struct TraceHeaders(HeaderMap);

impl TraceHeaders {
    /// Those of a text with a line for each, `name: value`; `None` if it has none of the two.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let mut headers = HeaderMap::new();
        for (name, value) in text.lines().filter_map(|line| line.split_once(": ")) {
            let known = NAMES.iter().find(|known| known.as_str() == name);
            if let (Some(known), Ok(value)) = (known, HeaderValue::from_str(value)) {
                headers.insert(known.clone(), value);
            }
        }
        (!headers.is_empty()).then_some(Self(headers))
    }

    /// Adds them to those of a request.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        headers.extend(self.0.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_two_headers_of_the_standard_are_sent_and_no_other() {
        let text = "traceparent: 00-1-2-01\nauthorization: Bearer x\ntracestate: a=1,b=2\nhost: y";
        let mut headers = HeaderMap::new();
        TraceHeaders::parse(text).unwrap().add_to(&mut headers);
        let sent =
            headers.iter().map(|(name, value)| format!("{name}: {}", value.to_str().unwrap()));
        let sent: Vec<_> = sent.collect();
        assert_eq!(sent, ["traceparent: 00-1-2-01", "tracestate: a=1,b=2"]);
    }

    #[test]
    fn what_is_no_header_is_left_out() {
        for text in ["", "traceparent", "host: y", "traceparent: \u{1}", "Traceparent: 00"] {
            assert!(TraceHeaders::parse(text).is_none(), "{text:?}");
        }
    }
}
