//! The key of a request, in its path or its query, and the other parameters of a query.

use hyper::Uri;
use percent_encoding::percent_decode_str;
use url::form_urlencoded;

use super::BASE;
use super::problem::{Problem, shown};
use crate::data::Client;
use openkv_core::codec::key;
use openkv_core::interchange::key_literal;
use openkv_core::model::{Key, KeyPart};

/// What the path of an entry begins with, inside the API.
const ENTRY: &str = "/keys/";

/// The parameters of a query. Each may be given once.
pub(super) struct Query(Vec<(String, String)>);

impl Query {
    /// # Errors
    /// A parameter that is given twice, or has none of these names.
    pub(super) fn of(uri: &Uri, names: &[&str]) -> Result<Self, Problem> {
        let mut found: Vec<(String, String)> = Vec::new();
        for (name, value) in form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes()) {
            if !names.contains(&&*name) {
                let text = format!("unknown parameter '{name}': known are {}", names.join(", "));
                return Err(Problem::bad_request(text));
            }
            if found.iter().any(|(known, _)| *known == *name) {
                return Err(Problem::bad_request(format!("{name}: given twice")));
            }
            found.push((name.into_owned(), value.into_owned()));
        }
        Ok(Self(found))
    }

    pub(super) fn get(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// A key as a literal of the command line, or as JSON.
    pub(super) fn key(&self, name: &str) -> Result<Option<Key>, Problem> {
        self.get(name).map(|text| unambiguous(name, text)).transpose()
    }

    /// Keys as an array of literals, or one key.
    pub(super) fn keys(&self, name: &str) -> Result<Option<Vec<Key>>, Problem> {
        let Some(text) = self.get(name) else { return Ok(None) };
        if key_literal::is_list(text) {
            return Ok(Some(key_literal::parse_many(text).map_err(|error| error.at(name))?));
        }
        Ok(Some(vec![unambiguous(name, text)?]))
    }

    /// A whole number.
    pub(super) fn number(&self, name: &str) -> Result<Option<u64>, Problem> {
        let refused = |given| {
            Problem::bad_request(format!(
                "{name} must be a whole number: received {}",
                shown(given)
            ))
        };
        self.get(name).map(|given| given.parse().map_err(|_| refused(given))).transpose()
    }

    /// A flag: `true`, `false`, or the name alone.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, Problem> {
        match self.get(name) {
            None => Ok(None),
            Some("" | "true" | "1") => Ok(Some(true)),
            Some("false" | "0") => Ok(Some(false)),
            Some(given) => Err(Problem::bad_request(format!(
                "{name} must be true or false: received {}",
                shown(given)
            ))),
        }
    }
}

/// The key of a parameter. A text with slashes that is no literal could be a path or one part, so it is refused.
fn unambiguous(name: &str, text: &str) -> Result<Key, Problem> {
    let key = key_literal::parse(text).map_err(|error| error.at(name))?;
    if !text.contains('/') || key != key::encode(&[KeyPart::String(text.to_owned())])? {
        return Ok(key);
    }
    let parts: Vec<_> = text.split('/').filter(|part| !part.is_empty()).map(shown).collect();
    Err(Problem::bad_request(format!(
        "{name}: {text} is no key: write [{}] for one of parts, or [{}] for one part with slashes",
        parts.join(","),
        shown(text),
    )))
}

/// The path of a request inside the API of its database.
pub(super) fn path_in_api<'r>(client: &Client, uri: &'r Uri) -> &'r str {
    client.path_below(BASE, uri)
}

/// The key of an entry: the segments of the path, each of which is a string, or the parameter
/// `key`. `None` if the request has neither.
pub(super) fn key_of(path: &str, query: &Query) -> Result<Option<Key>, Problem> {
    let rest = path.strip_prefix(ENTRY).filter(|rest| !rest.is_empty());
    match (rest, query.key("key")?) {
        (Some(_), Some(_)) => {
            Err(Problem::bad_request("The key is in the path or in ?key=, not in both."))
        }
        (None, Some(key)) if key.is_empty() => Err(Problem::bad_request("The key has no parts.")),
        (None, key) => Ok(key),
        (Some(rest), None) => key_of_path(rest).map(Some),
    }
}

fn key_of_path(rest: &str) -> Result<Key, Problem> {
    // A segment is at least as long as its part without the tag and the end.
    let mut key = Vec::with_capacity(rest.len() + 2 * rest.split('/').count());
    for segment in rest.split('/') {
        let part = percent_decode_str(segment).decode_utf8().map_err(|_| {
            Problem::bad_request("A part of the key in the path is not UTF-8: use ?key= for bytes.")
        })?;
        key::push_string(&mut key, &part);
    }
    Ok(Key::from_encoded(key))
}

#[cfg(test)]
mod tests {
    use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
    use proptest::prelude::*;

    use super::*;
    use openkv_core::interchange::where_json;

    /// What a client may send: all that the HTTP library accepts as a URL.
    fn uri() -> impl Strategy<Value = Uri> {
        let piece = prop_oneof![
            "[ -~]{0,12}",
            "(%[0-9a-f]{2}){0,6}",
            "\\[[\"a-z0-9n,\\[\\]+-]{0,20}",
            "(key|keys|prefix|where|limit)=",
        ];
        prop::collection::vec(piece, 0..6)
            .prop_filter_map("no URL", |pieces| format!("/keys{}", pieces.concat()).parse().ok())
    }

    proptest! {
        #[test]
        fn no_url_ends_the_server(uri in uri()) {
            if let Ok(query) = Query::of(&uri, &["key", "keys", "prefix", "where", "limit", "exact"]) {
                let _ = (key_of(uri.path(), &query), query.key("prefix"), query.number("limit"));
                let _ = (query.flag("exact"), query.get("where").map(where_json::parse));
                let _ = query.keys("keys");
            }
        }

        #[test]
        fn a_path_is_the_key_of_its_segments(parts in prop::collection::vec(".{1,8}", 1..5)) {
            let segments: Vec<_> = parts
                .iter()
                .map(|part| utf8_percent_encode(part, NON_ALPHANUMERIC).to_string())
                .collect();
            let uri: Uri = format!("/keys/{}", segments.join("/")).parse().unwrap();
            let found = key_of(uri.path(), &Query::of(&uri, &[]).unwrap()).unwrap().unwrap();
            let expected: Vec<_> = parts.into_iter().map(KeyPart::String).collect();
            prop_assert_eq!(found, key::encode(&expected).unwrap());
        }

        #[test]
        fn a_parameter_is_the_literal_that_was_encoded(text in "[^/]{0,40}") {
            let encoded = utf8_percent_encode(&text, NON_ALPHANUMERIC);
            let uri: Uri = format!("/keys?key={encoded}").parse().unwrap();
            let query = Query::of(&uri, &["key"]).unwrap();
            prop_assert_eq!(query.get("key"), Some(text.as_str()));
            prop_assert_eq!(query.key("key").ok().flatten(), key_literal::parse(&text).ok());
        }
    }

    fn key(uri: &str) -> Option<String> {
        let uri: Uri = uri.parse().unwrap();
        let query = Query::of(&uri, &["key"]).ok()?;
        let key = key_of(uri.path(), &query).ok()??;
        Some(key::print(key.as_bytes()))
    }

    #[test]
    fn a_segment_is_a_string_and_the_query_has_any_part() {
        for (uri, expected) in [
            ("/keys/users/123", Some(r#"["users","123"]"#)),
            ("/keys/a%2Fb/%C3%A4", Some(r#"["a/b","ä"]"#)),
            ("/keys/a//b", Some(r#"["a","","b"]"#)),
            ("/keys/a/", Some(r#"["a",""]"#)),
            ("/keys/%ff", None),
            ("/keys/a?key=b", None),
            ("/keys?key=users", Some(r#"["users"]"#)),
            ("/keys?key=%5B%22users%22,42n%5D", Some(r#"["users",42n]"#)),
            ("/keys?key=%5B%5D", None),
            ("/keys?key=%5B", None),
            ("/keys?key=a&key=b", None),
            ("/keys?key=users/123", None),
            ("/keys?key=%2Ftmp", None),
            ("/keys?key=%22a/b%22", Some(r#"["a/b"]"#)),
            ("/keys?key=%5B%22a/b%22,1%5D", Some(r#"["a/b",1]"#)),
            ("/keys?other=a", None),
            ("/keys", None),
        ] {
            assert_eq!(key(uri).as_deref(), expected, "{uri}");
        }
    }
}
