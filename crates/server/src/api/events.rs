//! Server-sent events (the HTML standard's `text/event-stream`): their text, and their resumption.

use std::time::Duration;

use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use hyper::http::request::Parts;

use super::body::wanted;
use super::duration::duration_in;
use super::envelope::hex;
use super::media::Form;
use super::problem::{Problem, shown};
use super::target::Query;
use crate::answer::Answer;
use crate::data::Client;
use crate::stream::{Source, stream_with};
use openkv_core::model::{EVENT_PING_INTERVAL_MS, HTTP_WAIT_MS_MAX, Versionstamp};

pub(super) const EVENT_TYPE: &str = "text/event-stream";

/// Sent in silence, so that both ends notice a connection that is gone.
const PING: &[u8] = b"event: ping\ndata: {}\n\n";

/// An event. `data` is JSON, which has no ends of lines. A client that connects again sends the
/// last `id`.
pub(crate) fn event(name: &str, data: &str, id: Option<&str>) -> String {
    let id = id.map_or(String::new(), |id| format!("id: {id}\n"));
    format!("event: {name}\n{id}data: {data}\n\n")
}

/// The event of a position without changes.
pub(crate) fn ping(stamp: Versionstamp) -> String {
    of_position("ping", stamp)
}

/// The event of a position before which changes are missing.
pub(crate) fn gap(stamp: Versionstamp) -> String {
    of_position("gap", stamp)
}

fn of_position(name: &str, stamp: Versionstamp) -> String {
    let stamp = hex(stamp);
    event(name, &format!("{{\"versionstamp\":\"{stamp}\"}}"), Some(&stamp))
}

pub(crate) fn silent_ping() -> Bytes {
    Bytes::from_static(PING)
}

/// The answer with a stream of events.
pub(super) fn events(client: &Client, source: impl Source) -> Answer {
    as_events(stream_with(client, EVENT_PING_INTERVAL_MS, source))
}

/// Marks an answer as a stream of events.
pub(super) fn as_events(mut answer: Answer) -> Answer {
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(EVENT_TYPE));
    // Proxies of nginx keep events back without it.
    let buffering = HeaderName::from_static("x-accel-buffering");
    answer.headers_mut().insert(buffering, HeaderValue::from_static("no"));
    answer
}

/// The form of values in events. `EventSource` accepts nothing but events, so it gets plain JSON.
pub(super) fn form_of(head: &Parts) -> Form {
    wanted(head, Form::OF_EVENTS).unwrap_or(Form::Json)
}

/// The `id` of the last event that the client has received: as `EventSource` sends it, or the
/// parameter `since`.
pub(super) fn last_id(head: &Parts, query: &Query) -> Result<Option<String>, Problem> {
    let sent = head.headers.get("last-event-id").map(HeaderValue::to_str).transpose();
    let sent = sent.map_err(|_| Problem::bad_request("Last-Event-ID is not text"))?;
    let given = sent.filter(|id| !id.is_empty()).or_else(|| query.get("since"));
    Ok(given.map(str::to_owned))
}

/// The versionstamp of a parameter.
pub(super) fn stamp_of(name: &str, text: &str) -> Result<Versionstamp, Problem> {
    Versionstamp::parse(text.as_bytes()).ok_or_else(|| {
        Problem::bad_request(format!(
            "{name} must be a versionstamp, 20 hexadecimal digits: received {}",
            shown(text)
        ))
    })
}

/// How long a poll waits.
pub(super) fn wait_of(query: &Query) -> Result<Duration, Problem> {
    let ms = duration_in(query, "wait")?.unwrap_or(0);
    if ms > HTTP_WAIT_MS_MAX {
        return Err(Problem::bad_request(format!(
            "wait must be from 0 to {HTTP_WAIT_MS_MAX} ms: {ms} given"
        )));
    }
    Ok(Duration::from_millis(ms))
}
