//! Messages of queues that are looked at and not taken, or deleted while they wait.

use axum::Extension;
use axum::extract::Request;
use hyper::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::{json, wanted};
use super::deletion::Deleted;
use super::document_writer::{Stored, ValueError};
use super::item_page::Page;
use super::list::limit_of;
use super::media::Form;
use super::problem::{Answered, Problem, shown};
use super::queue::{id_in, queue_of};
use super::schema::{PageLimit, QueueName, QueueState, TypedValue};
use super::target::Query;
use crate::data::store_of;
use crate::pending::{BUSY, Pending};
use openkv_core::codec::message_context;
use openkv_core::model::{
    Encoding, MessageDeletion, MessageState, Peek, PeekCursor, Peeked, Result,
};
use openkv_wire::connect::time::to_rfc3339;

/// A message that waits or is delivered.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PeekedMessage)]
pub(super) struct PeekedBody<V> {
    id: String,
    /// Absent if it cannot be read.
    #[schema(required = false)]
    value: V,
    /// Why the value cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_error: Option<ValueError>,
    #[schema(value_type = QueueState, inline)]
    state: &'static str,
    priority: u8,
    /// Its group.
    #[serde(skip_serializing_if = "Option::is_none")]
    group: Option<String>,
    /// Deliveries so far.
    attempts: u32,
    /// RFC 3339, as the other times.
    enqueued_at: String,
    /// When it is due, or was due before its delivery.
    due_at: String,
    /// The end of its consumer's lock; `null` without one.
    locked_until: Option<String>,
}

/// A page of messages.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PeekedMessages)]
pub(super) struct PeekedMessagesBody<V> {
    messages: Vec<PeekedBody<V>>,
    /// Where the next page begins; `null` at the end.
    cursor: Option<String>,
    has_more: bool,
}

fn peeked((message, cursor): &(Peeked, PeekCursor)) -> PeekedBody<Stored<'_>> {
    let state = cursor.place.state();
    let lock_end_ms = message.lock_end_ms.filter(|_| state == MessageState::Processing);
    PeekedBody {
        id: message.id.to_string(),
        value: Stored(Encoding::Cbor, message_context::value_of(&message.value)),
        value_error: None,
        state: state.name(),
        priority: message.priority,
        group: message_context::group_of(&message.value).map(str::to_owned),
        attempts: message.attempts,
        enqueued_at: to_rfc3339(message.enqueued_ms),
        due_at: to_rfc3339(message.due_ms),
        locked_until: lock_end_ms.map(to_rfc3339),
    }
}

fn state_of(query: &Query) -> Result<Option<MessageState>, Problem> {
    let Some(name) = query.get("state") else { return Ok(None) };
    let found = MessageState::ALL.into_iter().find(|state| state.name() == name);
    let refused = || {
        let given = shown(name);
        Problem::bad_request(format!("state: pending, delayed or processing: received {given}"))
    };
    found.ok_or_else(refused).map(Some)
}

/// Deletes a message of a queue that no consumer has.
#[utoipa::path(delete, path = "/queue/messages/{id}", tag = "queues", operation_id = "deleteMessage",
    params(
        ("id" = i64, Path, description = "Its number."),
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
    ),
    responses(
        (status = 200, description = "Deleted.", body = Deleted),
        (status = 404, description = "There is no such message."),
        (status = 409, description = "A consumer has the message."),
    ))]
pub(super) async fn delete(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let none = || Problem::new(StatusCode::NOT_FOUND, "The queue has no such message that waits.");
    let queue = queue_of(&Query::of(&head.uri, &["queue"])?)?;
    let id = id_in(&client, &head.uri).ok_or_else(none)?;
    let store = store_of(&client.database).await?;
    match Pending::of(|reply| store.delete_message(queue, id, BUSY, reply)).await? {
        MessageDeletion::Deleted => json(&Deleted { deleted: 1 }),
        MessageDeletion::Absent => Err(none()),
        MessageDeletion::Locked => {
            let text = "A consumer has the message: acknowledge it there, or wait for the end of its lock.";
            Err(Problem::new(StatusCode::CONFLICT, text))
        }
    }
}

/// Lists the messages of a queue in the order of delivery, without taking them.
#[utoipa::path(get, path = "/queue/messages", tag = "queues", operation_id = "peekMessages",
    params(
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
        ("state" = inline(Option<QueueState>), Query, description = "Only messages in this state."),
        ("limit" = inline(Option<PageLimit>), Query, description = "Most messages: 1 to 1000, by default 100."),
        ("cursor" = Option<String>, Query, description = "Where the page before this one ended."),
    ),
    responses((status = 200, description = "A page of messages.", content(
            (PeekedMessagesBody<serde_json::Value> = "application/json"),
            (PeekedMessagesBody<TypedValue> = "application/vnd.openkv+json")))))]
pub(super) async fn list(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["queue", "state", "limit", "cursor"])?;
    let (queue, form) = (queue_of(&query)?, wanted(&head, Form::OF_DOCUMENTS)?);
    let (state, limit) = (state_of(&query)?, limit_of(query.number("limit")?)?);
    let after = match query.get("cursor") {
        None | Some("") => None,
        Some(text) => Some(PeekCursor::parse(text).ok_or_else(|| Problem::wrong_cursor(text))?),
    };
    let page = Page::read(&client, limit, |store, page| {
        store.peek(queue, Peek { state, after }, page, |page, message, cursor| {
            let bytes = message.value.len();
            page.state.take((message, cursor), bytes)
        });
    });
    let cursor = |(_, last): &(Peeked, PeekCursor)| last.text();
    page.await?.answer(form, cursor, |messages, cursor| PeekedMessagesBody {
        messages: messages.iter().map(peeked).collect(),
        has_more: cursor.is_some(),
        cursor,
    })
}
