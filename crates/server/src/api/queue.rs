//! Queues: enqueue, poll, statistics.

use axum::Extension;
use axum::extract::Request;
use hyper::Uri;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::{json, json_body, keys_in, wanted};
use super::document_writer::{DocumentWriter, Lossy, Stored, ValueError};
use super::duration::{Ms, duration_in, small};
use super::envelope::{as_document, hex};
use super::events::wait_of;
use super::media::Form;
use super::problem::{Answered, Problem, shown};
use super::schema::{
    BackoffTime, Delay, GroupName, HandlerTime, KeptTime, LockDuration, Priority, QueueName,
    Retention, Stamp, TypedValue, Wait,
};
use super::target::{Query, path_in_api};
use super::write::{Done, commit, value_in};
use crate::answer::{Body, whole};
use crate::data::{Client, store_of};
use crate::extension::{ReceiveRequest, received};
use crate::pending::{Pending, Wanted};
use crate::trace_context::{self, TRACEPARENT, TRACESTATE, header_of};
use openkv_core::codec::message_context;
use openkv_core::model::{
    BACKOFF_DEFAULT_MS, DEAD_RETENTION_MS_MAX, Deduplication, Delivery, EncodedValue, Encoding,
    Error, KEEP_RESULT, LOCK_DURATION_MS_MAX, LOCK_DURATION_MS_MIN, LOCK_MS, Message,
    NAMED_BACKOFF_DEFAULT_MS, QUEUE_NAME_BYTES_MAX, QueueStats, Result, Time, WriteParts,
    check_group, is_own_queue, own_queue,
};
use openkv_wire::connect::time::to_rfc3339;

/// The queue of a request; without a name the one of `kv.enqueue`.
pub(super) fn queue_of(query: &Query) -> Result<String, Problem> {
    let name = query.get("queue").unwrap_or_default();
    if name.len() > QUEUE_NAME_BYTES_MAX {
        let given = name.len();
        return Err(Problem::too_large(format!(
            "queue: too long (max {QUEUE_NAME_BYTES_MAX} bytes): {given} bytes given"
        )));
    }
    if is_own_queue(name) {
        return Err(own_queue().into());
    }
    Ok(name.to_owned())
}

/// The queue of a request, which must have a name, since only such queues have `what`.
pub(super) fn named_queue(query: &Query, what: &str) -> Result<String, Problem> {
    let queue = queue_of(query)?;
    if queue.is_empty() {
        return Err(Problem::bad_request(format!("queue: only queues with a name have {what}")));
    }
    Ok(queue)
}

/// The number of a message in the path, behind `/queue/messages/` or `/queue/dlq/`. `None` for a text that is the id
/// of none.
pub(super) fn id_in(client: &Client, uri: &Uri) -> Option<i64> {
    path_in_api(client, uri).split('/').nth(3)?.parse().ok()
}

/// A message to enqueue.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewMessage)]
pub(super) struct EnqueueBody {
    #[schema(value_type = serde_json::Value)]
    pub(super) value: Box<RawValue>,
    /// It is due after so long: ms, or a text like `5m`.
    #[schema(value_type = Option<Delay>, inline)]
    pub(super) delay: Option<Ms>,
    /// When it is due, in ms since the epoch; not together with `delay`.
    pub(super) at: Option<i64>,
    /// 0 to 9; the highest is delivered first.
    #[schema(value_type = Option<Priority>, inline)]
    pub(super) priority: Option<u8>,
    /// The queue holds at most one message with this key.
    pub(super) deduplication_key: Option<String>,
    /// What happens if that key is taken: `drop` (nothing), `replace` (the message gets this value), `debounce`
    /// (and this due time), or `again` (if a consumer has the message, this one runs after it; else nothing).
    pub(super) deduplication: Option<String>,
    /// Its group, which takes turns with the other ones of the queue. Not for the default queue.
    #[schema(value_type = Option<GroupName>, inline)]
    pub(super) group: Option<String>,
    /// Waiting times before the retries.
    #[schema(value_type = Option<Vec<BackoffTime>>)]
    pub(super) backoff_schedule: Option<Vec<Ms>>,
    /// How long it is kept when it is dead.
    #[schema(value_type = Option<Retention>, inline)]
    pub(super) dead_retention: Option<Ms>,
    /// How long its result and the entries about it are kept. Not for the default queue.
    #[schema(value_type = Option<KeptTime>, inline)]
    pub(super) keep_result: Option<Ms>,
    /// The keys that get its value when it dies, at most 10.
    #[schema(value_type = Option<Vec<Vec<serde_json::Value>>>)]
    pub(super) keys_if_undelivered: Option<Vec<Box<RawValue>>>,
    /// The longest time of a handler of `listen`, at most a day.
    #[schema(value_type = Option<HandlerTime>, inline)]
    pub(super) timeout: Option<Ms>,
}

/// The answer of an enqueue.
#[derive(Serialize, ToSchema)]
#[schema(as = Enqueued)]
pub(super) struct EnqueuedBody {
    ok: bool,
    #[schema(value_type = Stamp)]
    versionstamp: String,
    /// The number of the message, or of the earlier one with its deduplication key.
    id: Option<String>,
    deduplicated: bool,
}

/// Enqueues a message.
#[utoipa::path(post, path = "/queue/enqueue", tag = "queues", operation_id = "enqueue",
    params(("queue" = inline(Option<QueueName>), Query, description = "The name of the queue.")),
    request_body = EnqueueBody,
    responses((status = 200, description = "Enqueued.", body = EnqueuedBody)))]
pub(super) async fn enqueue(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let queue = queue_of(&Query::of(&head.uri, &["queue"])?)?;
    let (form, body) = json_body::<EnqueueBody>(&client, &head, body).await?;
    let value = value_in(form, &body.value);
    let message = message_of(queue, value, body).map_err(Problem::bad_request)?;
    let mut parts = WriteParts { messages: vec![message], ..WriteParts::default() };
    trace_context::carry(&head.headers, &mut parts);
    match commit(&client, parts).await? {
        Done::CheckFailed(_) => Err(Error::internal("a check of a write without checks").into()),
        Done::Committed(stamp, results) => {
            let enqueued = results.enqueued.first();
            json(&EnqueuedBody {
                ok: true,
                versionstamp: hex(stamp),
                id: enqueued.and_then(|message| message.id).map(|id| id.to_string()),
                deduplicated: enqueued.is_some_and(|message| message.deduplicated),
            })
        }
    }
}

/// The message of a request.
///
/// # Errors
/// The text of a fault, which begins with the name of the member.
pub(super) fn message_of(
    queue: String,
    value: Result<EncodedValue, Problem>,
    body: EnqueueBody,
) -> Result<Message, String> {
    let EncodedValue { encoding, bytes: value } =
        value.map_err(|problem| problem.text().to_owned())?;
    if encoding != Encoding::Cbor {
        return Err("value: a message is neither a Uint8Array nor a KvU64".to_owned());
    }
    let ms = |name: &str, ms: Option<Ms>| {
        ms.map(|Ms(ms)| i64::try_from(ms)).transpose().map_err(|_| format!("{name}: too large"))
    };
    let usual = || match queue.as_str() {
        "" => BACKOFF_DEFAULT_MS.to_vec(),
        _ => NAMED_BACKOFF_DEFAULT_MS.to_vec(),
    };
    let due = match (ms("delay", body.delay)?, body.at) {
        (Some(_), Some(_)) => return Err("at: not together with delay".to_owned()),
        (delay, None) => Time::After(delay.unwrap_or(0)),
        (None, Some(at)) => Time::At(at),
    };
    let deduplication = match body.deduplication.as_deref() {
        None => Deduplication::Drop,
        Some(_) if body.deduplication_key.is_none() => {
            return Err("deduplication: give a deduplicationKey too".to_owned());
        }
        Some(name) => {
            Deduplication::ALL.into_iter().find(|mode| mode.name() == name).ok_or_else(|| {
                format!(
                    "deduplication: must be drop, replace, debounce or again: received {}",
                    shown(name)
                )
            })?
        }
    };
    let keys = keys_in(body.keys_if_undelivered.as_deref().unwrap_or_default());
    let keys = keys.map_err(|problem| problem.text().replacen("keys", "keysIfUndelivered", 1))?;
    let value = match body.timeout {
        None => value,
        Some(Ms(ms)) if (1..=u64::from(LOCK_DURATION_MS_MAX)).contains(&ms) => {
            let line = message_context::timeout_line(small("timeout", Ms(ms))?);
            message_context::with_lines(&line, &value)
        }
        Some(Ms(ms)) => {
            return Err(format!(
                "timeout: must be from 1 to {LOCK_DURATION_MS_MAX} ms: {ms} given"
            ));
        }
    };
    let value = match body.keep_result {
        None => value,
        Some(_) if queue.is_empty() => return Err("keepResult: name a queue".to_owned()),
        Some(Ms(ms @ 1..=DEAD_RETENTION_MS_MAX)) => {
            message_context::with_lines(&format!("{KEEP_RESULT}: {ms}"), &value)
        }
        Some(Ms(ms)) => {
            return Err(format!(
                "keepResult: must be from 1 to {DEAD_RETENTION_MS_MAX} ms: {ms} given"
            ));
        }
    };
    let value = match body.group.as_deref() {
        None => value,
        Some(_) if queue.is_empty() => return Err("group: name a queue".to_owned()),
        Some(group) => {
            check_group(group).map_err(|error| error.message().to_owned())?;
            message_context::with_lines(&message_context::group_line(group), &value)
        }
    };
    let backoff_ms = match body.backoff_schedule {
        None => usual(),
        Some(times) => {
            let ms = times.into_iter().map(|time| small("backoffSchedule", time));
            ms.collect::<Result<_, String>>()?
        }
    };
    // Nobody could see why a message of this queue was never handled, if it left nothing behind.
    let retention = ms("deadRetention", body.dead_retention)?;
    let kept = queue.is_empty().then_some(DEAD_RETENTION_MS_MAX.cast_signed());
    Ok(Message {
        due,
        priority: body.priority.unwrap_or(0),
        backoff_ms,
        keys_if_undelivered: keys,
        deduplication_key: body.deduplication_key,
        deduplication,
        dead_retention_ms: retention.or(kept),
        schedule: None,
        value,
        queue,
    })
}

/// A delivered message.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Delivery)]
pub(super) struct DeliveryBody<V> {
    id: String,
    /// Names the delivery when it ends.
    lock: String,
    /// Absent if it cannot be read.
    #[schema(required = false)]
    value: V,
    /// Why the value cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_error: Option<ValueError>,
    /// The number of deliveries, including this one.
    attempts: u32,
    /// The number of deliveries that can follow, if this one fails.
    attempts_left: u32,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// RFC 3339.
    enqueued_at: String,
    /// The trace context of the enqueue, as the headers of W3C Trace Context.
    #[serde(skip_serializing_if = "Option::is_none")]
    traceparent: Option<String>,
    /// That of the enqueue.
    #[serde(skip_serializing_if = "Option::is_none")]
    tracestate: Option<String>,
}

/// A poll of a queue.
#[derive(Serialize, ToSchema)]
#[schema(as = Received)]
pub(super) struct ReceivedBody<V> {
    /// `null` if no message was due.
    message: Option<DeliveryBody<V>>,
}

pub(super) fn delivered(delivery: &Delivery) -> DeliveryBody<Stored<'_>> {
    DeliveryBody {
        id: delivery.id.to_string(),
        lock: delivery.lock.to_string(),
        value: Stored(Encoding::Cbor, message_context::value_of(&delivery.value)),
        value_error: None,
        attempts: delivery.attempts,
        attempts_left: delivery.attempts_left,
        group: message_context::group_of(&delivery.value).map(str::to_owned),
        enqueued_at: to_rfc3339(delivery.enqueued_ms),
        traceparent: header_of(&delivery.value, &TRACEPARENT),
        tracestate: header_of(&delivery.value, &TRACESTATE),
    }
}

/// The document of a poll.
fn received_in(form: Form, delivery: Option<&Delivery>) -> Result<DocumentWriter> {
    DocumentWriter::of(form, 0, &ReceivedBody { message: delivery.map(delivered) })
}

/// How long a message is locked.
pub(crate) fn lock_of(given: Option<u64>) -> Result<i64, Problem> {
    let (least, most) = (i64::from(LOCK_DURATION_MS_MIN), i64::from(LOCK_DURATION_MS_MAX));
    let ms = given.map_or(Some(LOCK_MS), |ms| i64::try_from(ms).ok());
    ms.filter(|ms| (least..=most).contains(ms)).ok_or_else(|| {
        let given = given.unwrap_or_default();
        Problem::bad_request(format!(
            "lockDuration must be from {least} to {most} ms: {given} given"
        ))
    })
}

/// Takes a message, or waits for one. It is hidden from other consumers until its lock expires.
#[utoipa::path(get, path = "/queue/poll", tag = "queues", operation_id = "pollQueue",
    params(
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
        ("lockDuration" = inline(Option<LockDuration>), Query, description = "Ms until another consumer gets the message."),
        ("wait" = inline(Option<Wait>), Query, description = "Wait so many ms for a message."),
    ),
    responses((status = 200, description = "A message, or none.", content(
            (ReceivedBody<serde_json::Value> = "application/json"),
            (ReceivedBody<TypedValue> = "application/vnd.openkv+json")))))]
pub(super) async fn poll(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["queue", "lockDuration", "wait"])?;
    let form = wanted(&head, Form::OF_DOCUMENTS)?;
    let request = ReceiveRequest {
        queue: queue_of(&query)?,
        lock_ms: lock_of(duration_in(&query, "lockDuration")?)?,
        wait: wait_of(&query)?,
        number: number()?,
    };
    polled(&client, request, form, move |delivery| received_in(form, delivery)).await
}

/// Takes a message, and answers with the document of it or of none.
pub(crate) async fn polled(
    client: &Client,
    request: ReceiveRequest,
    form: Form,
    document: impl Fn(Option<&Delivery>) -> Result<DocumentWriter> + Send + Sync + 'static,
) -> Answered {
    let lossy = Lossy::default();
    let of_it = lossy.clone();
    let none = document(None)?;
    let taken = move |delivery: &Delivery| Ok(document(Some(delivery))?.finish_for(&of_it));
    let body = match received(client, request, taken).await?? {
        Some(parcel) => Body::Drawn(Box::new(parcel)),
        None => whole(none.finish().0),
    };
    Ok(as_document(form, body, lossy.is_set()))
}

/// A number for a wait, which no other request has.
pub(crate) fn number() -> Result<u64> {
    let mut bytes = [0; 8];
    getrandom::fill(&mut bytes).map_err(|error| Error::internal(error.to_string()))?;
    Ok(u64::from_le_bytes(bytes))
}

/// The messages of a queue, by state.
#[derive(Serialize, ToSchema)]
#[schema(as = QueueStats)]
pub(super) struct StatsBody {
    pending: u64,
    delayed: u64,
    processing: u64,
    dead: u64,
    /// Whether the queue is paused.
    paused: bool,
}

/// Counts the messages of a queue.
#[utoipa::path(get, path = "/queue/stats", tag = "queues", operation_id = "queueStats",
    params(("queue" = inline(Option<QueueName>), Query, description = "The name of the queue.")),
    responses((status = 200, description = "Messages by state.", body = StatsBody)))]
pub(super) async fn stats(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let queue = queue_of(&Query::of(&head.uri, &["queue"])?)?;
    let QueueStats { pending, delayed, processing, dead, paused } =
        stats_of(&client, queue).await?;
    json(&StatsBody { pending, delayed, processing, dead, paused })
}

/// The messages of a queue, by state.
pub(crate) async fn stats_of(client: &Client, queue: String) -> Result<QueueStats, Problem> {
    let store = store_of(&client.database).await?;
    let wanted = Wanted::new();
    let patience = wanted.patience(&store, "queue.stats");
    Ok(Pending::of(|reply| store.queue_stats(queue, patience, reply)).await?)
}
