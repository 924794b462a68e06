//! Media types: the form of a body, chosen by `Accept` and named by `Content-Type`.

/// The form of values in a body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// Plain JSON, which may simplify values.
    Json,
    /// The typed JSON of docs/format.md §5.
    Typed,
    /// The stored form of a value; in documents as embedded CBOR (tag 24).
    Cbor,
    /// The bytes of a single `Uint8Array`.
    Bytes,
}

impl Form {
    /// The forms of documents with values, in requests and answers.
    pub(super) const OF_DOCUMENTS: &[Self] = &[Self::Json, Self::Typed, Self::Cbor];
    /// The forms of the data of events, which are text.
    pub(super) const OF_EVENTS: &[Self] = &[Self::Json, Self::Typed];
    /// All forms.
    pub(super) const ALL: &[Self] = &[Self::Json, Self::Typed, Self::Cbor, Self::Bytes];

    /// The media type.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Json => "application/json",
            Self::Typed => "application/vnd.openkv+json",
            Self::Cbor => "application/cbor",
            Self::Bytes => "application/octet-stream",
        }
    }
}

/// The form that a client prefers among those that are offered, of which the first is the default;
/// `None` if it accepts none of them.
pub(super) fn accepted(accept: Option<&str>, offered: &[Form]) -> Option<Form> {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else {
        return offered.first().copied();
    };
    let ranges: Vec<_> = accept.split(',').filter_map(range).collect();
    let mut best: Option<((u16, u8), Form)> = None;
    for form in offered {
        // The most specific range that matches decides about a type.
        let matching =
            ranges.iter().filter_map(|(range, q)| Some((specificity(range, form.name())?, *q)));
        let Some((specific, q)) = matching.max_by_key(|(specific, _)| *specific) else { continue };
        if q > 0 && best.is_none_or(|(rank, _)| (q, specific) > rank) {
            best = Some(((q, specific), *form));
        }
    }
    best.map(|(_, form)| form)
}

/// Whether a client accepts the only media type of a route.
pub(super) fn accepts(accept: Option<&str>, name: &str) -> bool {
    let Some(accept) = accept.filter(|accept| !accept.trim().is_empty()) else { return true };
    let ranges = accept.split(',').filter_map(range);
    let matching = ranges.filter_map(|(range, q)| Some((specificity(range, name)?, q)));
    matching.max_by_key(|(specific, _)| *specific).is_some_and(|(_, q)| q > 0)
}

/// The form of a `Content-Type`; `None` if it is none of these. JSON is always UTF-8.
pub(super) fn named(content_type: &str, offered: &[Form]) -> Option<Form> {
    offered.iter().copied().find(|form| names(content_type, form.name()))
}

/// Whether a `Content-Type` names a media type whose text is UTF-8.
pub(super) fn names(content_type: &str, wanted: &str) -> bool {
    let mut parts = content_type.split(';').map(str::trim);
    let is_wanted = parts.next().is_some_and(|name| name.eq_ignore_ascii_case(wanted));
    let is_utf8 = |part: &str| {
        let charset = part.split_once('=').filter(|(name, _)| name.eq_ignore_ascii_case("charset"));
        charset.is_none_or(|(_, set)| set.trim_matches('"').eq_ignore_ascii_case("utf-8"))
    };
    is_wanted && parts.all(is_utf8)
}

/// A media range and its weight in thousandths; `None` for a malformed one.
fn range(text: &str) -> Option<(&str, u16)> {
    let mut parts = text.split(';').map(str::trim);
    let range = parts.next().filter(|range| range.contains('/'))?;
    let weight = parts.find_map(|part| {
        let (name, q) = part.split_once('=')?;
        name.eq_ignore_ascii_case("q").then(|| q.trim().parse::<f32>().ok())
    });
    let q = weight.map_or(Some(1.0), |q| q.filter(|q| (0.0..=1.0).contains(q)))?;
    Some((range, (q * 1000.0) as u16))
}

/// How specifically a range names a media type; `None` if it does not.
fn specificity(range: &str, name: &str) -> Option<u8> {
    let (kind, _) = name.split_once('/')?;
    if range.eq_ignore_ascii_case(name) {
        return Some(2);
    }
    match range.split_once('/')? {
        ("*", "*") => Some(0),
        (given, "*") if given.eq_ignore_ascii_case(kind) => Some(1),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_highest_weight_wins_then_the_most_specific_range_then_the_default() {
        for (accept, form) in [
            (None, Some(Form::Json)),
            (Some(""), Some(Form::Json)),
            (Some("*/*"), Some(Form::Json)),
            (Some("application/*"), Some(Form::Json)),
            (Some("application/cbor"), Some(Form::Cbor)),
            (Some("Application/CBOR; q=0.5"), Some(Form::Cbor)),
            (Some("application/cbor, */*"), Some(Form::Cbor)),
            (Some("application/cbor;q=0.5, */*;q=0.8"), Some(Form::Json)),
            (Some("application/cbor, application/json"), Some(Form::Json)),
            (Some("text/html, application/vnd.openkv+json;q=0.9, */*;q=0.1"), Some(Form::Typed)),
            (Some("*/*, application/json;q=0"), Some(Form::Typed)),
            (Some("text/html"), None),
            (Some("application/json;q=0"), None),
            (Some("application/json;q=2"), None),
            (Some("application/json;q=x"), None),
            (Some("json"), None),
            (Some("application/octet-stream"), None),
        ] {
            assert_eq!(accepted(accept, Form::OF_DOCUMENTS), form, "{accept:?}");
        }
        assert_eq!(accepted(Some("application/octet-stream"), Form::ALL), Some(Form::Bytes));
    }

    #[test]
    fn the_only_type_of_a_route_is_accepted_or_not() {
        for (accept, expected) in [
            (None, true),
            (Some("*/*"), true),
            (Some("application/x-ndjson"), true),
            (Some("text/html, application/*;q=0.5"), true),
            (Some("application/json"), false),
            (Some("*/*, application/x-ndjson;q=0"), false),
        ] {
            assert_eq!(accepts(accept, "application/x-ndjson"), expected, "{accept:?}");
        }
    }

    #[test]
    fn a_body_names_its_form() {
        for (content_type, form) in [
            ("application/json", Some(Form::Json)),
            ("application/JSON; charset=UTF-8", Some(Form::Json)),
            ("application/json;charset=\"utf-8\"", Some(Form::Json)),
            ("application/json; charset=latin1", None),
            ("application/vnd.openkv+json", Some(Form::Typed)),
            ("text/plain", None),
            ("", None),
        ] {
            assert_eq!(named(content_type, Form::ALL), form, "{content_type}");
        }
        assert_eq!(named("application/cbor", Form::OF_EVENTS), None);
    }
}
