//! Errors of the HTTP API: problem details (RFC 9457) with the codes of docs/limits.md#errors.

use axum::response::{IntoResponse, Response};
use hyper::StatusCode;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::schema::EntryBody;
use crate::answer::{Answer, Refusal, answer, whole};
use openkv_core::model::{Capability, Error, KEY_PRINT_CHARS_MAX, Kind};

pub(super) const PROBLEM_TYPE: &str = "application/problem+json";

/// Why a request is refused, with further members of its answer.
#[derive(Debug)]
pub(crate) struct Problem {
    refusal: Refusal,
    /// Of a failed precondition: the present entry, as JSON.
    entry: Option<Box<RawValue>>,
    /// The URL of the server that can answer instead.
    leader: Option<String>,
    /// Of an import: how far it came.
    stopped: Option<Stopped>,
}

/// How far an import came before the line that ended it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stopped {
    /// From 1.
    pub(super) line: u64,
    pub(super) imported: u64,
    pub(super) skipped: u64,
}

/// The text of a problem, beside its answer, for a door that answers errors in another form.
#[derive(Clone, Debug)]
pub(crate) struct ProblemText(pub(crate) String);

/// The result of a handler.
pub(crate) type Answered = Result<Answer, Problem>;

/// The body of an error (RFC 9457).
#[derive(Serialize, ToSchema)]
#[schema(as = Problem)]
pub(super) struct ProblemBody<'p> {
    /// Always `about:blank`: the code tells more than the status.
    #[serde(rename = "type")]
    kind: &'static str,
    /// The phrase of the status.
    title: &'static str,
    status: u16,
    /// For people; may change in any release.
    detail: &'p str,
    /// What happened, for programs.
    code: &'static str,
    /// The same as `detail`.
    error: &'p str,
    /// Of 412: the present entry, `null` if there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<EntryBody<'static>>)]
    entry: &'p Option<Box<RawValue>>,
    /// Of 421: the URL of the server that leads the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    leader: &'p Option<String>,
    /// Of an import: the number of the line that ended it, from 1. All lines before it are committed or
    /// skipped, and none from it on.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<u64>,
    /// Of an import: the entries that are committed.
    #[serde(skip_serializing_if = "Option::is_none")]
    imported: Option<u64>,
    /// Of an import: the entries that existed already or had expired.
    #[serde(skip_serializing_if = "Option::is_none")]
    skipped: Option<u64>,
}

impl Problem {
    pub(crate) fn new(status: StatusCode, text: impl Into<String>) -> Self {
        Refusal::new(status, text).into()
    }

    pub(crate) fn bad_request(text: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, text)
    }

    /// A cursor that no page has given.
    pub(super) fn wrong_cursor(given: &str) -> Self {
        let given = shown(given);
        Self::bad_request(format!(
            "invalid cursor: received {given}; pass on that of an earlier page"
        ))
    }

    /// More bytes or items than a limit.
    pub(crate) fn too_large(text: impl Into<String>) -> Self {
        Error::too_large(text).into()
    }

    /// A precondition does not hold. `entry`: the present one, as JSON.
    pub(super) fn precondition(entry: Box<RawValue>) -> Self {
        let text = "The entry is not as If-Match or If-None-Match says.";
        Self { entry: Some(entry), ..Self::new(StatusCode::PRECONDITION_FAILED, text) }
    }

    /// Another server leads the database.
    pub(super) fn led_by(leader: String) -> Self {
        let text = "Another server leads this database: write there.";
        Self { leader: Some(leader), ..Self::new(StatusCode::MISDIRECTED_REQUEST, text) }
    }

    /// Adds how far an import came.
    pub(super) fn stopped(self, stopped: Stopped) -> Self {
        let refusal = self.refusal.within(&format!("line {}: ", stopped.line));
        Self { refusal, stopped: Some(stopped), ..self }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.refusal.status
    }

    /// The kind of an error of the store.
    pub(crate) fn kind(&self) -> Option<Kind> {
        self.refusal.kind
    }

    pub(crate) fn text(&self) -> &str {
        self.refusal.text()
    }

    /// What the database lacks for the request.
    pub(super) fn lacks(&self) -> Option<Capability> {
        self.refusal.lacks
    }

    fn code(&self) -> &'static str {
        match self.refusal.kind {
            Some(kind) => kind.code(),
            None => code_of_status(self.refusal.status),
        }
    }

    pub(super) fn answer(&self) -> Answer {
        let status = self.refusal.status;
        let body = ProblemBody {
            kind: "about:blank",
            title: status.canonical_reason().unwrap_or("Error"),
            status: status.as_u16(),
            detail: self.refusal.text(),
            code: self.code(),
            error: self.refusal.text(),
            entry: &self.entry,
            leader: &self.leader,
            line: self.stopped.map(|stopped| stopped.line),
            imported: self.stopped.map(|stopped| stopped.imported),
            skipped: self.stopped.map(|stopped| stopped.skipped),
        };
        // Its members are text and JSON, which always serialize.
        let body = serde_json::to_vec(&body).unwrap_or_default();
        let mut answer = answer(status, PROBLEM_TYPE, whole(body));
        answer.extensions_mut().insert(ProblemText(self.refusal.text().to_owned()));
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
        self.refusal.put_headers(headers);
        answer
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        self.answer().into_response()
    }
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        let refusal = if refusal.kind.is_some() { refusal.reworded(in_words) } else { refusal };
        Self { refusal, entry: None, leader: None, stopped: None }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        Refusal::from(error).into()
    }
}

/// A text of a request, quoted and cut.
pub(crate) fn shown(given: &str) -> String {
    serde_json::Value::from(given.chars().take(KEY_PRINT_CHARS_MAX).collect::<String>()).to_string()
}

/// A message of the store in the words of the HTTP API, as `js/cli/advice.ts` has it in those of the command line:
/// routes in place of methods, and no advice about options of a handle that a request does not have.
fn in_words(message: &str) -> String {
    let mut text = message.to_owned();
    for (method, route) in ROUTES {
        text = text.replace(method, route);
    }
    if message.contains(MALFORMED_QUERY) {
        text.push_str(QUERY_ADVICE);
    }
    if let Some(at) = text.find(LIMIT_ADVICE) {
        let name = text.get(at + LIMIT_ADVICE.len()..).unwrap_or_default();
        if let Some(end) = name.find(LIMIT_ADVICE_END) {
            text.replace_range(at..at + LIMIT_ADVICE.len() + end + LIMIT_ADVICE_END.len(), "");
        }
    }
    text
}

/// What messages of the store name, and the routes and JSON that do the same.
const ROUTES: [(&str, &str); 11] = [
    ("a bigint (1n)", "a bigint ({\"type\":\"bigint\",\"value\":\"1\"})"),
    ("kv.createIndex({ prefix, fields })", "POST /indexes"),
    ("kv.createIndex: ", ""),
    ("kv.search: ", ""),
    ("kv.list: ", ""),
    ("kv.count: ", ""),
    ("kv.deleteMany: ", ""),
    ("kv.listIndexes: ", ""),
    ("kv.stats: ", ""),
    ("kv.list", "GET /keys"),
    ("kv.enqueue()", "POST /queue/enqueue"),
];

/// A part of the message about the syntax of a search, and what explains the syntax.
const MALFORMED_QUERY: &str = "malformed query at position ";
const QUERY_ADVICE: &str = "; a query has words, \"phrases in quotes\", beginnings*, field:word, AND, OR, NOT and \
                            parentheses; with mode=words any text is searched for";

/// The advice about a limit of a handle, around the limit's name. Those of a request are fixed.
const LIMIT_ADVICE: &str = "; raise limits.";
const LIMIT_ADVICE_END: &str = " of openKv to allow it";

/// The code of a refusal by the server itself.
fn code_of_status(status: StatusCode) -> &'static str {
    match status {
        StatusCode::UNAUTHORIZED => "UNAUTHORIZED",
        StatusCode::FORBIDDEN => "DENIED",
        StatusCode::NOT_FOUND => "NOT_FOUND",
        StatusCode::METHOD_NOT_ALLOWED => "METHOD_NOT_ALLOWED",
        StatusCode::NOT_ACCEPTABLE => "NOT_ACCEPTABLE",
        StatusCode::REQUEST_TIMEOUT => "TIMEOUT",
        StatusCode::CONFLICT => "CONFLICT",
        StatusCode::PRECONDITION_FAILED => "PRECONDITION_FAILED",
        StatusCode::PAYLOAD_TOO_LARGE => "TOO_LARGE",
        StatusCode::UNSUPPORTED_MEDIA_TYPE => "UNSUPPORTED_MEDIA_TYPE",
        StatusCode::MISDIRECTED_REQUEST => "MISDIRECTED",
        StatusCode::TOO_MANY_REQUESTS => "OVER_QUOTA",
        StatusCode::SERVICE_UNAVAILABLE => "UNAVAILABLE",
        StatusCode::UNPROCESSABLE_ENTITY => "UNSUPPORTED",
        status if status.is_server_error() => "INTERNAL",
        _ => "INVALID",
    }
}

#[cfg(test)]
mod tests {
    use super::in_words;

    #[test]
    fn messages_have_the_words_of_requests() {
        for (text, words) in [
            (
                "Value too large (max 9 bytes): 10 bytes given; raise limits.valueBytesMax of openKv to allow it",
                "Value too large (max 9 bytes): 10 bytes given",
            ),
            (
                "kv.search: no index covers this prefix; make one first with kv.createIndex({ prefix, fields })",
                "no index covers this prefix; make one first with POST /indexes",
            ),
            (
                "kv.search: malformed query at position 3: x",
                "malformed query at position 3: x; a query has words, \"phrases in quotes\", beginnings*, \
                 field:word, AND, OR, NOT and parentheses; with mode=words any text is searched for",
            ),
            (
                "it is a bigint, and the operand is a number: give a bigint (1n)",
                "it is a bigint, and the operand is a number: give a bigint ({\"type\":\"bigint\",\"value\":\"1\"})",
            ),
            ("where: too large", "where: too large"),
        ] {
            assert_eq!(in_words(text), words);
        }
    }
}
