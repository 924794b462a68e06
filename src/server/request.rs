//! Requests before they reach their endpoint: methods and bodies.

use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::{Body as _, Bytes};
use hyper::header::CONTENT_ENCODING;
use hyper::http::request::Parts;
use hyper::{Method, StatusCode};

use super::answer::Refusal;
use super::database::Database;
use super::memory::Claim;
use crate::model::{REQUEST_BODY_MS_MAX, SHORT_BYTES_MAX};

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
    Err(Refusal::new(StatusCode::METHOD_NOT_ALLOWED, text))
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
