//! What is known of the messages of a queue: how they have ended, their progress, and what happens to them.
//!
//! Duty: reads the entries below [`JOB_ENTRIES`] (docs/format.md §2.3), which the commits that change messages store.
//! They are entries like others, so replicas answer too.

use std::sync::Arc;

use axum::Extension;
use axum::extract::Request;
use hyper::body::Bytes;
use hyper::{StatusCode, Uri};
use serde::Serialize;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::wanted;
use super::document_writer::{DocumentWriter, StampDigits, Stored, ValueError};
use super::entries::{Entry, Found, entries, entry};
use super::envelope::{answered, apart, hex};
use super::events::{event, events, form_of, gap, last_id, ping, silent_ping, stamp_of, wait_of};
use super::media::Form;
use super::problem::{Answered, Problem, shown};
use super::queue::{id_in, named_queue};
use super::range::Bounds;
use super::schema::{QueueName, Stamp, TypedValue, Wait};
use super::target::Query;
use super::watch_keys::difference;
use super::watch_prefix::range_of;
use crate::data::{Client, store_of};
use crate::feed::{self, BATCH_BYTES_MAX, Following};
use crate::memory::Claim;
use crate::watch;
use openkv_core::codec::job_entry::{JobEntry, happened};
use openkv_core::codec::key;
use openkv_core::model::{
    Change, ChangeKind, Encoding, Entry as StoredEntry, Error, JOB_ENTRIES, Key, KeyPart, Result,
    Versionstamp, WATCH_FRAME_BYTES_MAX,
};
use openkv_wire::connect::time::to_rfc3339;

/// How a message has ended.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum MessageEnd {
    /// Acknowledged.
    Completed,
    /// A dead letter.
    Dead,
    Cancelled,
}

/// The ends, with the last parts of the keys of their entries.
const ENDS: [(&str, MessageEnd); 3] = [
    (happened::COMPLETED, MessageEnd::Completed),
    (happened::DEAD, MessageEnd::Dead),
    (happened::CANCELLED, MessageEnd::Cancelled),
];

/// What has happened to a message.
#[derive(Clone, Copy, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum MessageEventType {
    Enqueued,
    /// A handler has it.
    Started,
    /// A handler has reported its progress.
    Progress,
    /// A delivery has failed, and a retry follows.
    Failed,
    Completed,
    Dead,
    Cancelled,
}

/// The events, with the last parts of the keys of their entries.
const EVENTS: [(&str, MessageEventType); 7] = [
    (happened::ENQUEUED, MessageEventType::Enqueued),
    (happened::STARTED, MessageEventType::Started),
    (happened::PROGRESS, MessageEventType::Progress),
    (happened::FAILED, MessageEventType::Failed),
    (happened::COMPLETED, MessageEventType::Completed),
    (happened::DEAD, MessageEventType::Dead),
    (happened::CANCELLED, MessageEventType::Cancelled),
];

/// How a message has ended.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MessageResult)]
pub(super) struct ResultBody<V> {
    state: MessageEnd,
    /// RFC 3339.
    at: String,
    /// What its handler has returned; of `completed` alone. Absent if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<V>,
    /// Why the value cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_error: Option<ValueError>,
    /// The name of the error of its last delivery; of `dead` alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// The last progress of a message.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MessageProgress)]
pub(super) struct ProgressBody<V> {
    /// RFC 3339.
    at: String,
    /// The number of deliveries, including that of the handler that reported it.
    attempts: Option<u32>,
    /// Absent if it cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<V>,
    /// Why the value cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_error: Option<ValueError>,
}

/// What has happened to a message, as the data of an event has it.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct MessageEvent<'v> {
    r#type: MessageEventType,
    id: String,
    at: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    attempts: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Stored<'v>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    value_error: Option<ValueError>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error_name: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<String>,
    versionstamp: StampDigits,
}

fn stored(value: Option<&[u8]>) -> Option<Stored<'_>> {
    value.map(|bytes| Stored(Encoding::Cbor, bytes))
}

/// The key of an entry about a message, or of all about the messages of a queue.
fn job_key(parts: &[&str]) -> Result<Key> {
    let parts = [JOB_ENTRIES].iter().chain(parts).map(|part| KeyPart::String((*part).to_owned()));
    key::encode(&parts.collect::<Vec<_>>())
}

/// The queue of a request, and the number of its message.
fn message_of(client: &Client, uri: &Uri, query: &Query) -> Result<(String, i64), Problem> {
    let queue = named_queue(query, "results and progress")?;
    let none =
        || Problem::new(StatusCode::NOT_FOUND, "There is no such message: its id is a number.");
    Ok((queue, id_in(client, uri).ok_or_else(none)?))
}

/// The answer with the document of the entry of a message.
async fn entry_answer(
    (entry, claim): (Entry, Arc<Claim>),
    form: Form,
    document: impl FnOnce(JobEntry<'_>) -> Result<DocumentWriter> + Send + 'static,
) -> Answered {
    let body = apart(entry.value.len(), move || {
        Ok(document(JobEntry::read(entry.encoding, &entry.value)?)?.finish())
    });
    answered(form, body.await?, &claim)
}

/// Tells how a message has ended, or waits for its end.
#[utoipa::path(get, path = "/queue/messages/{id}/result", tag = "queues",
    operation_id = "messageResult",
    params(
        ("id" = i64, Path, description = "Its number."),
        ("queue" = inline(QueueName), Query, description = "The name of the queue."),
        ("wait" = inline(Option<Wait>), Query, description = "Wait so many ms for its end."),
    ),
    responses(
        (status = 200, description = "How it has ended.", content(
            (ResultBody<serde_json::Value> = "application/json"),
            (ResultBody<TypedValue> = "application/vnd.openkv+json"))),
        (status = 404, description = "It has not ended, or its result is not kept: `keepResult` of the enqueue says for how long."),
    ))]
pub(super) async fn result(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["queue", "wait"])?;
    let (queue, id) = message_of(&client, &head.uri, &query)?;
    let (form, wait) = (wanted(&head, Form::OF_DOCUMENTS)?, wait_of(&query)?);
    let number = id.to_string();
    let keys = ENDS.map(|(name, _)| job_key(&[&queue, &number, name]));
    let keys = keys.into_iter().collect::<Result<Vec<_>>>()?;
    let mut ended = end_of(&client, &keys).await?;
    if ended.is_none()
        && !wait.is_zero()
        && difference(&client, keys.clone(), Ended, wait).await?.is_some()
    {
        ended = end_of(&client, &keys).await?;
    }
    let Some((state, entry)) = ended else { return Err(no_result(&queue, id)) };
    entry_answer(entry, form, move |read| {
        let JobEntry { at_ms, attempts: _, value, error } = read;
        let (error_name, error) = error.unzip();
        let (at, value) = (to_rfc3339(at_ms), stored(value));
        let body = ResultBody { state, at, value, value_error: None, error_name, error };
        DocumentWriter::of(form, 0, &body)
    })
    .await
}

fn no_result(queue: &str, id: i64) -> Problem {
    let text = format!(
        "Message {id} of the queue {} has not ended, or its result is not kept: a result is kept for as long as \
         keepResult of the enqueue says, and without keepResult there is none.",
        shown(queue)
    );
    Problem::new(StatusCode::NOT_FOUND, text)
}

/// The last end of a message, from the entries of [`ENDS`]. A dead letter that was requeued can end once more.
async fn end_of(
    client: &Client,
    keys: &[Key],
) -> Result<Option<(MessageEnd, (Entry, Arc<Claim>))>, Problem> {
    let Found { entries, claim, bytes: _ } = entries(client, keys).await?;
    let ends = ENDS.into_iter().zip(entries);
    let ends = ends.filter_map(|((_, end), entry)| entry.map(|entry| (end, entry)));
    let last = ends.max_by_key(|(_, entry)| entry.stamp);
    Ok(last.map(|(end, entry)| (end, (entry, claim))))
}

/// A watch of the end of a message, which reports only that there is one.
struct Ended;

impl watch::Form for Ended {
    const BYTES_MAX: usize = WATCH_FRAME_BYTES_MAX;

    fn frame(&mut self, _keys: &[Key], entries: &[Option<StoredEntry>]) -> Result<Vec<u8>> {
        let has_ended = entries.iter().any(Option::is_some);
        Ok(if has_ended { vec![1] } else { Vec::new() })
    }

    fn end(&self, _error: &Error) -> Option<Bytes> {
        None
    }

    fn alive(&self) -> Bytes {
        Bytes::new()
    }
}

/// Reads the last progress of a message.
#[utoipa::path(get, path = "/queue/messages/{id}/progress", tag = "queues",
    operation_id = "messageProgress",
    params(
        ("id" = i64, Path, description = "Its number."),
        ("queue" = inline(QueueName), Query, description = "The name of the queue."),
    ),
    responses(
        (status = 200, description = "Its last progress.", content(
            (ProgressBody<serde_json::Value> = "application/json"),
            (ProgressBody<TypedValue> = "application/vnd.openkv+json"))),
        (status = 404, description = "Its handlers have reported none, or it is not kept any more."),
    ))]
pub(super) async fn progress(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["queue"])?;
    let (queue, id) = message_of(&client, &head.uri, &query)?;
    let form = wanted(&head, Form::OF_DOCUMENTS)?;
    let key = job_key(&[&queue, &id.to_string(), happened::PROGRESS])?;
    let Found { entries: found, claim, bytes: _ } = entry(&client, &key).await?;
    let Some(found) = found else { return Err(no_progress(&queue, id)) };
    entry_answer((found, claim), form, move |read| {
        let JobEntry { at_ms, attempts, value, error: _ } = read;
        let (at, value) = (to_rfc3339(at_ms), stored(value));
        DocumentWriter::of(form, 0, &ProgressBody { at, attempts, value, value_error: None })
    })
    .await
}

fn no_progress(queue: &str, id: i64) -> Problem {
    let text = format!(
        "No progress of message {id} of the queue {} is kept: its handlers have reported none, or it has expired. It is \
         kept for as long as keepResult of the enqueue says, and without keepResult for an hour.",
        shown(queue)
    );
    Problem::new(StatusCode::NOT_FOUND, text)
}

/// The event of a change of an entry; `None` for one that tells none.
fn event_of(change: &Change) -> Option<MessageEvent<'_>> {
    let ChangeKind::Set { value, .. } = &change.kind else { return None };
    let parts = key::decode(change.key.as_bytes()).ok()?;
    let [_, _, KeyPart::String(id), KeyPart::String(name)] = parts.as_slice() else { return None };
    let (_, r#type) = EVENTS.into_iter().find(|(known, _)| known == name)?;
    let read = JobEntry::read(value.encoding, &value.bytes).ok()?;
    let (error_name, error) = read.error.unzip();
    Some(MessageEvent {
        r#type,
        id: id.clone(),
        at: to_rfc3339(read.at_ms),
        attempts: read.attempts,
        value: stored(read.value),
        value_error: None,
        error_name,
        error,
        versionstamp: StampDigits(Versionstamp::new(change.version)),
    })
}

/// Changes as events of messages.
struct Events {
    form: Form,
}

impl feed::Form for Events {
    const TELLS_GAPS: bool = true;

    fn batch(&mut self, version: u64, changes: &[Change]) -> Result<Vec<u8>> {
        let events: Vec<_> = changes.iter().filter_map(event_of).collect();
        let stamp = Versionstamp::new(version);
        if events.is_empty() {
            return Ok(ping(stamp).into_bytes());
        }
        let data = DocumentWriter::of(self.form, 0, &events)?.into_text();
        Ok(event("events", &data, Some(&hex(stamp))).into_bytes())
    }

    fn gap(&mut self, version: u64) -> Result<Vec<u8>> {
        Ok(gap(Versionstamp::new(version)).into_bytes())
    }

    /// The client connects again and gets the error by status.
    fn end(&mut self, _error: &Error) -> Option<Bytes> {
        None
    }

    fn alive(&self) -> Bytes {
        silent_ping()
    }
}

/// Follows what happens to the messages of a queue whose results are kept.
#[utoipa::path(get, path = "/queue/events", tag = "queues", operation_id = "queueEvents",
    params(
        ("queue" = inline(QueueName), Query, description = "The name of the queue."),
        ("since" = inline(Option<Stamp>), Query, description = "The id of the last event that was received; without it, from now on."),
    ),
    responses((status = 200, description = "Events: events, ping, gap.",
        content_type = "text/event-stream", body = String)))]
pub(super) async fn follow(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["queue", "since"])?;
    let queue = named_queue(&query, "events")?;
    let since = last_id(&head, &query)?;
    let since = since.map(|text| stamp_of("since", &text)).transpose()?;
    let range = range_of(&Bounds::new(Some(job_key(&[&queue])?), None, None)?);
    let database = &client.database;
    let place = client.take_watch().await?;
    let store = store_of(database).await?;
    let claim = database.memory.claim(BATCH_BYTES_MAX);
    let form = Events { form: form_of(&head) };
    let since = since.map(Versionstamp::version);
    Ok(events(&client, Following::open((store, place), claim, (range, since), form)))
}
