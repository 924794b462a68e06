//! Requests before they reach their endpoint: methods and bodies.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes};
use hyper::header::CONTENT_ENCODING;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use super::answer::Refusal;
use super::database::Database;
use super::memory::Claim;
use openkv_core::model::{REQUEST_BODY_MS_MAX, SHORT_BYTES_MAX};

/// The body of a request.
pub(super) type RequestBody = axum::body::Body;

/// A body and its memory. A long body is read only as memory is free.
pub(super) async fn body_of(
    database: &Database,
    body: RequestBody,
    bytes_max: usize,
) -> Result<(Bytes, Option<Arc<Claim>>), Refusal> {
    let said = body.size_hint().upper().and_then(|bytes| usize::try_from(bytes).ok());
    let most = said.unwrap_or(usize::MAX).min(bytes_max);
    if most <= SHORT_BYTES_MAX {
        return Ok((read(body, bytes_max).await?, None));
    }
    let claim = database.memory.claim(bytes_max);
    claim.wait(most).await?;
    let body = read(body, bytes_max).await?;
    claim.shrink(body.len());
    Ok((body, Some(claim)))
}

/// The name of the database in the path of a request, on a server with many.
pub(super) fn database_in(head: &Parts) -> &str {
    head.uri.path().split('/').nth(1).unwrap_or_default()
}

/// Refuses a body in a content coding: it would be stored or read as it is.
pub(super) fn unencoded(head: &Parts) -> Result<(), Refusal> {
    let is_identity = |coding: &[u8]| {
        let coding = coding.trim_ascii();
        coding.is_empty() || coding.eq_ignore_ascii_case(b"identity")
    };
    let codings = head.headers.get_all(CONTENT_ENCODING).iter();
    if codings.flat_map(|list| list.as_bytes().split(|byte| *byte == b',')).all(is_identity) {
        return Ok(());
    }
    let text = "Content-Encoding: the server decodes no bodies of requests: send the body as it is, without this \
                header.";
    Err(Refusal::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, text))
}

/// Refuses other methods.
pub(super) fn only(head: &Parts, methods: &[Method]) -> Result<(), Refusal> {
    if methods.contains(&head.method) {
        return Ok(());
    }
    let names: Vec<_> = methods.iter().map(Method::as_str).collect();
    let text = format!("Method not allowed: use {}.", names.join(" or "));
    Err(Refusal::not_allowed(methods, text))
}

/// Reads a body, within its bounds of length and time.
pub(super) async fn read(body: RequestBody, bytes_max: usize) -> Result<Bytes, Refusal> {
    let whole = Limited::new(body, bytes_max).collect();
    let wait = Duration::from_millis(REQUEST_BODY_MS_MAX);
    let Ok(read) = tokio::time::timeout(wait, whole).await else {
        let text = format!("The body of the request took too long (max {REQUEST_BODY_MS_MAX} ms).");
        return Err(Refusal::new(StatusCode::REQUEST_TIMEOUT, text));
    };
    match read {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.is::<LengthLimitError>() => Err(Refusal::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            format!(
                "Failed to buffer the request body: length limit exceeded (max {bytes_max} bytes)."
            ),
        )),
        Err(error) => {
            Err(Refusal::bad_request(format!("Failed to buffer the request body: {error}")))
        }
    }
}

/// An object. The fields of a derived type could also be given as an array, in their order.
#[derive(Debug)]
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfObject(PhantomData))
    }
}

struct OfObject<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for OfObject<T> {
    type Value = Object<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Object<T>, A::Error> {
        T::deserialize(MapAccessDeserializer::new(map)).map(Object)
    }
}

/// The message for a body that is not the wanted document, in the words of JSON: Rust's types are no words of
/// this API.
pub(super) fn unreadable(error: &serde_json::Error) -> String {
    let text = error.to_string().replace("expected ident", "expected true, false or null");
    let said = text.rsplit_once(", expected ").and_then(|(given, rest)| {
        let (wanted, place) = rest.split_once(" at line ")?;
        let wanted = match wanted {
            "u8" | "u16" | "u32" | "u64" | "usize" => "a whole number of at least 0",
            "i32" | "i64" => "a whole number",
            "f32" | "f64" => "a number",
            "a boolean" => "true or false",
            "a sequence" => "an array",
            "a map" => "an object",
            _ => return None,
        };
        Some(format!("{given}, expected {wanted} at line {place}"))
    });
    format!("The request cannot be read: {}", said.unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "only its errors are looked at")]
    struct Body {
        delay: u64,
        at: Option<i64>,
        fields: Option<Vec<u8>>,
        exact: Option<bool>,
    }

    // "expected u64" names a type of Rust to a caller of HTTP.
    #[test]
    fn what_was_expected_is_said_in_the_words_of_json() {
        let message =
            |body: &str| super::unreadable(&serde_json::from_str::<Body>(body).unwrap_err());
        for (body, said) in [
            (
                r#"{"delay":"1s"}"#,
                r#"string "1s", expected a whole number of at least 0 at line 1 column 13"#,
            ),
            (r#"{"delay":-1}"#, "integer `-1`, expected a whole number of at least 0 at line 1"),
            (r#"{"delay":1,"at":"soon"}"#, r#"string "soon", expected a whole number at line 1"#),
            (r#"{"delay":1,"fields":"t"}"#, r#"string "t", expected an array at line 1"#),
            (r#"{"delay":1,"exact":1}"#, "integer `1`, expected true or false at line 1"),
            (
                r#"{"delay":", expected u64 at line"}"#,
                "line\", expected a whole number of at least 0 at line 1",
            ),
            ("{", "EOF while parsing an object"),
            ("nonsense", "expected true, false or null at line 1 column 2"),
        ] {
            let message = message(body);
            assert!(message.contains(said), "{message}");
            assert!(message.starts_with("The request cannot be read: "), "{message}");
        }
    }
}
