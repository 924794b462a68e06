//! Answers in the form of KeyVal: entries, and errors.

use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue};
use serde::Serialize;

use crate::answer::{Answer, RoutedBody, answer, whole};
use crate::api::document_writer::Stored;
use crate::api::entries::Entry;
use crate::api::media::Form;
use crate::api::problem::{Problem, ProblemText};
use crate::api::schema::EntryBody;
use openkv_core::model::{Encoding, Error, Result};

/// An entry: key, value and versionstamp.
pub(super) fn entry_body(entry: &Entry) -> EntryBody<'_> {
    let value = Stored(entry.encoding, &entry.value);
    EntryBody::new(&entry.key, entry.stamp, Some(value), None)
}

/// Whether the value is `null` in JSON, as that of a key without an entry.
pub(super) fn is_null(entry: &Entry) -> bool {
    entry.encoding == Encoding::Cbor && matches!(entry.value.as_slice(), [0xf6 | 0xf7])
}

/// A small answer.
pub(super) fn json(body: &impl Serialize) -> Result<Answer> {
    let body = serde_json::to_vec(body).map_err(|error| Error::internal(error.to_string()))?;
    Ok(answer(StatusCode::OK, Form::Json.name(), whole(body)))
}

/// `{ok: true}`.
pub(super) fn ok() -> Result<Answer> {
    json(&serde_json::json!({ "ok": true }))
}

/// The status that a client of KeyVal knows. Those of the server itself, as for a wrong token, stay.
fn status_of(status: StatusCode) -> StatusCode {
    let is_of_server = matches!(
        status,
        StatusCode::UNAUTHORIZED
            | StatusCode::FORBIDDEN
            | StatusCode::NOT_FOUND
            | StatusCode::METHOD_NOT_ALLOWED
            | StatusCode::REQUEST_TIMEOUT
            | StatusCode::MISDIRECTED_REQUEST
            | StatusCode::TOO_MANY_REQUESTS
            | StatusCode::SERVICE_UNAVAILABLE
    );
    match status {
        _ if is_of_server => status,
        _ if status.is_server_error() => StatusCode::INTERNAL_SERVER_ERROR,
        _ => StatusCode::BAD_REQUEST,
    }
}

/// Answers problems as KeyVal answers errors: `{"error": text}`.
pub(super) async fn as_keyval(response: Response) -> Response {
    let Some(ProblemText(text)) = response.extensions().get::<ProblemText>().cloned() else {
        return response;
    };
    let (mut parts, _) = response.into_parts();
    parts.status = status_of(parts.status);
    parts.headers.insert(CONTENT_TYPE, HeaderValue::from_static(Form::Json.name()));
    parts.headers.remove(CONTENT_LENGTH);
    let body = serde_json::json!({ "error": text }).to_string();
    Response::from_parts(parts, RoutedBody::from(body))
}

/// The answer with a problem, outside the router.
pub(super) fn of_problem(problem: &Problem) -> Response {
    let body = serde_json::json!({ "error": problem.text() }).to_string();
    answer(status_of(problem.status()), Form::Json.name(), whole(body)).into_response()
}
