//! Dead letters of queues: list, read, delete, requeue.

use axum::Extension;
use axum::extract::Request;
use hyper::StatusCode;
use hyper::http::request::Parts;
use serde::Serialize;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::{json, wanted};
use super::deletion::Deleted;
use super::document_writer::{DocumentWriter, Stored, ValueError};
use super::envelope::as_document;
use super::item_page::Page;
use super::list::limit_of;
use super::media::Form;
use super::problem::{Answered, Problem};
use super::queue::{id_in, queue_of, stats_of};
use super::schema::{PageLimit, QueueName, TypedValue};
use super::target::Query;
use crate::answer::whole;
use crate::data::{Client, store_of};
use crate::pending::{BUSY, Pending};
use openkv_core::codec::message_context;
use openkv_core::model::{
    DEAD_PURGE_ROWS_MAX, DEAD_REQUEUE_ROWS_MAX, DeadLetter, DeadLetterChange, Encoding, Result,
};
use openkv_wire::connect::time::to_rfc3339;

/// A dead letter.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetter)]
pub(super) struct DeadLetterBody<V> {
    id: String,
    /// Absent if it cannot be read.
    #[schema(required = false)]
    value: V,
    /// Why the value cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_error: Option<ValueError>,
    attempts: u32,
    /// RFC 3339, as the other times.
    enqueued_at: String,
    first_attempt_at: String,
    last_attempt_at: String,
    died_at: String,
    /// The name of the error of its last delivery.
    error_name: String,
    error: String,
}

fn dead_letter(letter: &DeadLetter) -> DeadLetterBody<Stored<'_>> {
    DeadLetterBody {
        id: letter.id.to_string(),
        value: Stored(Encoding::Cbor, message_context::value_of(&letter.value)),
        value_error: None,
        attempts: letter.attempts,
        enqueued_at: to_rfc3339(letter.enqueued_ms),
        first_attempt_at: to_rfc3339(letter.first_ms),
        last_attempt_at: to_rfc3339(letter.last_ms),
        died_at: to_rfc3339(letter.died_ms),
        error_name: letter.reason.name().to_owned(),
        error: letter.reason.message().to_owned(),
    }
}

/// A page of dead letters.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeadLetters)]
pub(super) struct DeadLettersBody<V> {
    messages: Vec<DeadLetterBody<V>>,
    /// Where the next page begins; `null` at the end.
    cursor: Option<String>,
    has_more: bool,
}

/// A place in the list: when a letter died, and its number.
fn place(cursor: &str) -> Result<(i64, i64), Problem> {
    let parts =
        cursor.split_once('.').and_then(|(ms, id)| Some((ms.parse().ok()?, id.parse().ok()?)));
    parts.ok_or_else(|| Problem::wrong_cursor(cursor))
}

/// Lists the dead letters of a queue, in the order of their deaths.
#[utoipa::path(get, path = "/queue/dlq", tag = "queues", operation_id = "listDeadLetters",
    params(
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
        ("limit" = inline(Option<PageLimit>), Query, description = "Most letters: 1 to 1000, by default 100."),
        ("cursor" = Option<String>, Query, description = "Where the page before this one ended."),
    ),
    responses((status = 200, description = "A page of dead letters.", content(
            (DeadLettersBody<serde_json::Value> = "application/json"),
            (DeadLettersBody<TypedValue> = "application/vnd.openkv+json")))))]
pub(super) async fn list(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["queue", "limit", "cursor"])?;
    let (queue, form) = (queue_of(&query)?, wanted(&head, Form::OF_DOCUMENTS)?);
    let limit = limit_of(query.number("limit")?)?;
    let cursor = query.get("cursor").filter(|cursor| !cursor.is_empty());
    let after = cursor.map_or(Ok((i64::MIN, i64::MIN)), place)?;
    let page = Page::read(&client, limit, |store, page| {
        store.dead_letters(queue, after, page, |page, letter| {
            let bytes = letter.value.len();
            page.state.take(letter, bytes)
        });
    });
    let cursor = |last: &DeadLetter| format!("{}.{}", last.died_ms, last.id);
    page.await?.answer(form, cursor, |letters, cursor| DeadLettersBody {
        messages: letters.iter().map(dead_letter).collect(),
        has_more: cursor.is_some(),
        cursor,
    })
}

fn none() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "There is no such dead letter.")
}

fn queue_and_id(client: &Client, head: &Parts) -> Result<(String, i64), Problem> {
    let queue = queue_of(&Query::of(&head.uri, &["queue"])?)?;
    Ok((queue, id_in(client, &head.uri).ok_or_else(none)?))
}

/// Reads a dead letter.
#[utoipa::path(get, path = "/queue/dlq/{id}", tag = "queues", operation_id = "getDeadLetter",
    params(
        ("id" = i64, Path, description = "Its number."),
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
    ),
    responses(
        (status = 200, description = "The dead letter.", content(
            (DeadLetterBody<serde_json::Value> = "application/json"),
            (DeadLetterBody<TypedValue> = "application/vnd.openkv+json"))),
        (status = 404, description = "There is no such dead letter."),
    ))]
pub(super) async fn get(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let ((queue, id), form) = (queue_and_id(&client, &head)?, wanted(&head, Form::OF_DOCUMENTS)?);
    let store = store_of(&client.database).await?;
    let letter =
        Pending::of(|reply| store.dead_letter(queue, id, reply)).await?.ok_or_else(none)?;
    let (body, lossy) = DocumentWriter::of(form, 0, &dead_letter(&letter))?.finish();
    Ok(as_document(form, whole(body), lossy))
}

/// Changes dead letters. Returns their number.
pub(crate) async fn change(
    client: &Client,
    queue: String,
    change: DeadLetterChange,
) -> Result<usize, Problem> {
    let store = store_of(&client.database).await?;
    Ok(Pending::of(|reply| store.change_dead_letters(queue, change, BUSY, reply)).await?)
}

/// Deletes a dead letter.
#[utoipa::path(delete, path = "/queue/dlq/{id}", tag = "queues", operation_id = "deleteDeadLetter",
    params(
        ("id" = i64, Path, description = "Its number."),
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
    ),
    responses(
        (status = 200, description = "Deleted.", body = Deleted),
        (status = 404, description = "There is no such dead letter."),
    ))]
pub(super) async fn delete(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let (queue, id) = queue_and_id(&client, &head)?;
    match change(&client, queue, DeadLetterChange::Delete(id)).await? {
        0 => Err(none()),
        count => json(&Deleted { deleted: count as u64 }),
    }
}

/// The answer of a requeue.
#[derive(Serialize, ToSchema)]
pub(super) struct Requeued {
    ok: bool,
}

/// Enqueues a dead letter again.
#[utoipa::path(post, path = "/queue/dlq/{id}/requeue", tag = "queues",
    operation_id = "requeueDeadLetter",
    params(
        ("id" = i64, Path, description = "Its number."),
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
    ),
    responses(
        (status = 200, description = "Enqueued again.", body = Requeued),
        (status = 404, description = "There is no such dead letter."),
    ))]
pub(super) async fn requeue(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let (queue, id) = queue_and_id(&client, &head)?;
    match change(&client, queue, DeadLetterChange::Requeue(id)).await? {
        0 => Err(none()),
        _ => json(&Requeued { ok: true }),
    }
}

/// The answer of a requeue of many.
#[derive(Serialize, ToSchema)]
#[schema(as = RequeuedLetters)]
pub(super) struct RequeuedAll {
    /// The number of letters that this request has enqueued again.
    requeued: u64,
    /// The number of letters that the queue has left. Ask again while both numbers are above 0.
    left: u64,
}

/// Enqueues the dead letters of a queue again, those that died first, at most 512 of them.
#[utoipa::path(post, path = "/queue/dlq/requeue", tag = "queues",
    operation_id = "requeueDeadLetters",
    params(("queue" = inline(Option<QueueName>), Query, description = "The name of the queue.")),
    responses((status = 200, description = "How many are enqueued again, and how many are left.", body = RequeuedAll)))]
pub(super) async fn requeue_all(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let queue = queue_of(&Query::of(&head.uri, &["queue"])?)?;
    let before_ms = crate::clock::now_ms().saturating_add(1);
    let step = DeadLetterChange::RequeueAll { before_ms, max: DEAD_REQUEUE_ROWS_MAX };
    let requeued = change(&client, queue.clone(), step).await? as u64;
    json(&RequeuedAll { requeued, left: stats_of(&client, queue).await?.dead })
}

/// Deletes the dead letters of a queue, step by step.
#[utoipa::path(delete, path = "/queue/dlq", tag = "queues", operation_id = "purgeDeadLetters",
    params(("queue" = inline(Option<QueueName>), Query, description = "The name of the queue.")),
    responses((status = 200, description = "The number of deleted letters.", body = Deleted)))]
pub(super) async fn purge(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let queue = queue_of(&Query::of(&head.uri, &["queue"])?)?;
    json(&Deleted { deleted: purged(&client, &queue).await? })
}

/// Deletes the dead letters of a queue that there are now. Returns their number.
pub(crate) async fn purged(client: &Client, queue: &str) -> Result<u64, Problem> {
    // Letters that die meanwhile stay.
    let (before_ms, max) = (crate::clock::now_ms(), DEAD_PURGE_ROWS_MAX);
    let mut deleted = 0;
    loop {
        let step = DeadLetterChange::Purge { before_ms: before_ms.saturating_add(1), max };
        let count = change(client, queue.to_owned(), step).await?;
        deleted += count as u64;
        if count < max {
            return Ok(deleted);
        }
    }
}
