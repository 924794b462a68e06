//! Messages of the queue: enqueue, take, settle, count.
//!
//! The id of a taken message contains its lock, so that a consumer that was too late does not settle the delivery of
//! another one, although KeyVal's clients know ids alone.

use std::time::Duration;

use axum::Extension;
use axum::extract::Request;
use serde::Serialize;

use super::answer::{json, ok};
use super::json::Members;
use super::keys::many_of_json;
use crate::api::admit::Admitted;
use crate::api::delivery_ends::settle;
use crate::api::document_writer::{DocumentWriter, Stored};
use crate::api::events::event;
use crate::api::listen;
use crate::api::media::Form;
use crate::api::problem::{Answered, Problem, shown};
use crate::api::queue::{number, polled, stats_of};
use crate::api::write::{Done, commit};
use crate::data::{Client, store_of};
use crate::extension::ReceiveRequest;
use crate::pending::{BUSY, Pending};
use openkv_core::codec::message_context;
use openkv_core::interchange::plain_json;
use openkv_core::model::{
    Ask, ConsumeOptions, DEAD_RETENTION_MS_MAX, Delivery, Encoding, Error,
    HTTP_LISTEN_MESSAGES_DEFAULT, Message, NAMED_BACKOFF_DEFAULT_MS, Outcome, QueueStats, Reason,
    Settlement, Time, WriteParts,
};

/// The queue of KeyVal's clients: the one of `kv.enqueue`.
pub(super) const QUEUE: &str = "";

/// Why a message of a client of KeyVal is dead, in KeyVal's words.
const DEAD: &str = "Max attempts exceeded";

fn whole(name: &str, options: &Members) -> Result<Option<i64>, Problem> {
    let Some(raw) = options.given(name) else { return Ok(None) };
    let ms = serde_json::from_str::<f64>(raw.get()).ok().filter(|ms| ms.is_finite());
    let refused = || {
        Problem::bad_request(format!(
            "{name} must be a number of ms: received {}",
            shown(raw.get())
        ))
    };
    ms.map(|ms| Some(ms as i64)).ok_or_else(refused)
}

fn message_of(members: &Members) -> Result<Message, Problem> {
    let options = members.inner("options");
    let text = members.get("value").map_or("null", |raw| raw.get());
    let backoff = match options.given("backoffSchedule") {
        None => NAMED_BACKOFF_DEFAULT_MS.to_vec(),
        Some(raw) => serde_json::from_str::<Vec<f64>>(raw.get())
            .ok()
            .filter(|all| all.iter().all(|ms| (0.0..=f64::from(u32::MAX)).contains(ms)))
            .map(|all| all.into_iter().map(|ms| ms as u32).collect())
            .ok_or_else(|| Problem::bad_request("backoffSchedule must be an array of ms"))?,
    };
    let keys = options.given("keysIfUndelivered");
    Ok(Message {
        queue: QUEUE.to_owned(),
        due: Time::After(whole("delay", &options)?.unwrap_or(0).max(0)),
        backoff_ms: backoff,
        keys_if_undelivered: keys.map_or(Ok(Vec::new()), |raw| many_of_json(Some(raw)))?,
        dead_retention_ms: Some(DEAD_RETENTION_MS_MAX.cast_signed()),
        value: plain_json::parse(text)?.bytes,
        ..Message::default()
    })
}

/// Enqueues a message.
pub(super) async fn enqueue(client: Extension<Admitted>, request: Request) -> Answered {
    let members = Members::of_body(&client, request.into_body()).await?;
    let parts = WriteParts { messages: vec![message_of(&members)?], ..WriteParts::default() };
    match commit(&client, parts).await? {
        Done::CheckFailed(_) => Err(Error::internal("a check of a write without checks").into()),
        Done::Committed(stamp, results) => {
            // Deno's messages in its own files have no number.
            let id = results.enqueued.first().and_then(|message| message.id);
            let id = id.map_or_else(|| stamp.version().to_string(), |id| id.to_string());
            Ok(json(&serde_json::json!({ "ok": true, "id": id }))?)
        }
    }
}

/// A taken message.
#[derive(Serialize)]
struct Taken<'d> {
    id: String,
    value: Stored<'d>,
    attempts: u32,
}

fn id_of(delivery: &Delivery) -> String {
    format!("{}.{}", delivery.id, delivery.lock)
}

fn taken(delivery: &Delivery) -> Taken<'_> {
    let value = Stored(Encoding::Cbor, message_context::value_of(&delivery.value));
    Taken { id: id_of(delivery), value, attempts: delivery.attempts }
}

/// A poll of the queue.
#[derive(Serialize)]
struct Polled<'d> {
    message: Option<Taken<'d>>,
}

/// Takes a message.
pub(super) async fn poll(client: Extension<Admitted>) -> Answered {
    let lock_ms = client.serving.keyval.lock_ms;
    let request = ReceiveRequest {
        queue: QUEUE.to_owned(),
        lock_ms,
        wait: Duration::ZERO,
        number: number()?,
    };
    let document = |delivery: Option<&Delivery>| {
        DocumentWriter::of(Form::Json, 0, &Polled { message: delivery.map(taken) })
    };
    polled(&client, request, Form::Json, document).await
}

/// Delivers messages as events.
pub(super) async fn listen(client: Extension<Admitted>) -> Answered {
    let options =
        ConsumeOptions { queue: QUEUE.to_owned(), lock_ms: client.serving.keyval.lock_ms };
    let write_event = |delivery: &Delivery| {
        let written = DocumentWriter::of(Form::Json, 0, &taken(delivery))?;
        Ok(event("message", &written.into_text(), Some(&id_of(delivery))))
    };
    listen::stream(&client, options, HTTP_LISTEN_MESSAGES_DEFAULT, Box::new(write_event)).await
}

/// The message that a client settles.
enum Named {
    /// A delivery: its number and its lock.
    Delivery(i64, i64),
    /// A message that was not taken, by the number that `enqueue` has answered.
    Message(i64),
    /// None that there is.
    Unknown,
}

async fn named(client: &Client, request: Request) -> Result<Named, Problem> {
    let members = Members::of_body(client, request.into_body()).await?;
    let refused = || Problem::bad_request("id must be a non-empty string");
    let id = members.text("id").filter(|id| !id.is_empty()).ok_or_else(refused)?;
    let numbers = id.split_once('.').map(|(id, lock)| (id.parse().ok(), lock.parse().ok()));
    Ok(match (numbers, id.parse()) {
        (Some((Some(id), Some(lock))), _) => Named::Delivery(id, lock),
        (None, Ok(id)) => Named::Message(id),
        _ => Named::Unknown,
    })
}

/// Ends a delivery: the message is handled. A message that was not taken is deleted, as KeyVal does.
pub(super) async fn ack(client: Extension<Admitted>, request: Request) -> Answered {
    match named(&client, request).await? {
        Named::Delivery(id, lock) => {
            settle(&client, Ask::Settle(Settlement::new(id, lock, Outcome::Done))).await?;
        }
        Named::Message(id) => {
            let store = store_of(&client.database).await?;
            Pending::of(|reply| store.delete_message(QUEUE.to_owned(), id, BUSY, reply)).await?;
        }
        Named::Unknown => {}
    }
    Ok(ok()?)
}

/// Ends a delivery: the message has failed.
pub(super) async fn nack(client: Extension<Admitted>, request: Request) -> Answered {
    if let Named::Delivery(id, lock) = named(&client, request).await? {
        let reason = Some(Reason::new("Error", DEAD));
        let failed = Settlement { reason, ..Settlement::new(id, lock, Outcome::Failed) };
        settle(&client, Ask::Settle(failed)).await?;
    }
    Ok(ok()?)
}

/// The messages of the queue, by state.
#[derive(Serialize)]
pub(super) struct Stats {
    pub(super) pending: u64,
    pub(super) processing: u64,
    pub(super) dlq: u64,
    pub(super) total: u64,
}

/// Counts the messages. A delayed one is pending.
pub(super) async fn counted(client: &Client) -> Result<Stats, Problem> {
    let QueueStats { pending, delayed, processing, dead, paused: _ } =
        stats_of(client, QUEUE.to_owned()).await?;
    let (pending, dlq) = (pending + delayed, dead);
    Ok(Stats { pending, processing, dlq, total: pending + processing + dlq })
}

/// Counts the messages by state.
pub(super) async fn stats(client: Extension<Admitted>) -> Answered {
    Ok(json(&counted(&client).await?)?)
}
