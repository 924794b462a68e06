//! Messages of queues that are looked at and not taken.

use axum::Extension;
use axum::extract::Request;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::wanted;
use super::list::limit_of;
use super::media::Form;
use super::message_page::Page;
use super::problem::{Answered, Problem};
use super::queue::{push_value, queue_of};
use super::schema::{PageLimit, QueueName, QueueState, TypedValue};
use super::target::Query;
use crate::connect::time::to_rfc3339;
use crate::model::{MessagePlace, MessageState, Peeked, Result};

/// A message that waits or is delivered.
#[derive(ToSchema)]
#[schema(as = PeekedMessage, rename_all = "camelCase")]
#[expect(dead_code, reason = "it documents what `push` writes")]
pub(super) struct PeekedBody<V> {
    id: String,
    value: V,
    #[schema(value_type = QueueState, inline)]
    state: String,
    priority: u8,
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
#[derive(ToSchema)]
#[schema(as = PeekedMessages, rename_all = "camelCase")]
#[expect(dead_code, reason = "it documents what `list` writes")]
pub(super) struct PeekedMessagesBody<V> {
    messages: Vec<PeekedBody<V>>,
    /// Where the next page begins; `null` at the end.
    cursor: Option<String>,
    has_more: bool,
}

fn push(out: &mut String, form: Form, (message, state): &(Peeked, MessageState)) -> Result<()> {
    out.push_str(&format!("{{\"id\":\"{}\",\"value\":", message.id));
    push_value(out, form, &message.value)?;
    let (name, Peeked { priority, attempts, .. }) = (state.name(), message);
    out.push_str(&format!(",\"state\":\"{name}\",\"priority\":{priority},\"attempts\":{attempts}"));
    for (name, ms) in [("enqueuedAt", message.enqueued_ms), ("dueAt", message.due_ms)] {
        out.push_str(&format!(",\"{name}\":\"{}\"", to_rfc3339(ms)));
    }
    let lock_end = message.lock_end_ms.filter(|_| *state == MessageState::Processing);
    let until = lock_end.map_or("null".to_owned(), |ms| format!("\"{}\"", to_rfc3339(ms)));
    out.push_str(&format!(",\"lockedUntil\":{until}}}"));
    Ok(())
}

fn state_of(query: &Query) -> Result<Option<MessageState>, Problem> {
    let Some(name) = query.get("state") else { return Ok(None) };
    let found = MessageState::ALL.into_iter().find(|state| state.name() == name);
    let refused = || Problem::bad_request("state: pending, delayed or processing");
    found.ok_or_else(refused).map(Some)
}

/// Lists the messages of a queue without taking them: those that wait in the order of delivery, then
/// those that are delivered by the end of their lock.
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
    let (queue, form) = (queue_of(&query)?, wanted(&head, Form::OF_JSON)?);
    let (state, limit) = (state_of(&query)?, limit_of(query.number("limit")?)?);
    let after = match query.get("cursor") {
        None | Some("") => MessagePlace::START,
        Some(text) => {
            MessagePlace::parse(text).ok_or_else(|| Problem::bad_request("invalid cursor"))?
        }
    };
    let page = Page::read(&client, limit, |store, page| {
        store.peek(queue, state, after, page, |page, message, state| {
            let bytes = message.value.len();
            page.take((message, state), bytes)
        });
    });
    page.await?.answer(form, push, |(last, _)| last.place().text())
}
