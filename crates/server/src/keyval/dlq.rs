//! Dead letters.

use axum::Extension;
use axum::extract::Request;
use hyper::{StatusCode, Uri};
use serde::Serialize;

use super::answer::{json, ok};
use super::keys::{Query, path_below_base};
use super::number::{leading, limit_of_text};
use super::queue::{QUEUE, counted};
use crate::answer::whole;
use crate::api::admit::Admitted;
use crate::api::dead_letters::{change, purged};
use crate::api::document_writer::{DocumentWriter, Stored};
use crate::api::envelope::{answered, as_document};
use crate::api::item_page::Page;
use crate::api::media::Form;
use crate::api::problem::{Answered, Problem};
use crate::data::{Client, store_of};
use crate::pending::Pending;
use openkv_core::codec::message_context;
use openkv_core::model::{DeadLetter, DeadLetterChange, Encoding, FRAMES_ANSWER_BYTES_MAX};

/// A dead letter.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Letter<'d> {
    id: String,
    original_id: String,
    value: Stored<'d>,
    error_message: &'d str,
    attempts: u32,
    original_created_at: f64,
    failed_at: f64,
}

fn letter(of: &DeadLetter) -> Letter<'_> {
    Letter {
        id: of.id.to_string(),
        original_id: of.id.to_string(),
        value: Stored(Encoding::Cbor, message_context::value_of(&of.value)),
        error_message: of.reason.message(),
        attempts: of.attempts,
        original_created_at: of.enqueued_ms as f64,
        failed_at: of.died_ms as f64,
    }
}

fn none() -> Problem {
    Problem::new(StatusCode::NOT_FOUND, "Message not found in DLQ")
}

/// The id in the path, behind `/queue/dlq/`; `None` for a text that is the id of none.
fn id_in(client: &Client, uri: &Uri) -> Option<i64> {
    path_below_base(client, uri).split('/').nth(3)?.parse().ok()
}

/// Lists the dead letters, the newest first.
pub(super) async fn list(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(&client, request.uri());
    let limit = limit_of_text(query.get("limit"))?;
    let offset = query.get("offset").and_then(leading).unwrap_or(0).max(0);
    let offset = usize::try_from(offset).unwrap_or(usize::MAX);
    // The store lists the oldest first.
    let all = usize::try_from(counted(&client).await?.dlq).unwrap_or(usize::MAX);
    let end = all.saturating_sub(offset);
    let start = end.saturating_sub(limit);
    let page = Page::read(&client, limit, |store, page| {
        let mut at = 0;
        let first = (i64::MIN, i64::MIN);
        store.dead_letters(QUEUE.to_owned(), first, page, move |page, letter| {
            let here = at;
            at += 1;
            if here < start {
                return true;
            }
            let bytes = letter.value.len();
            here < end && page.state.take(letter, bytes)
        });
    });
    let page = page.await?;
    if page.has_more() && page.items().len() < end - start {
        let max = FRAMES_ANSWER_BYTES_MAX;
        let text = format!(
            "The messages are too large for one answer (max {max} bytes): give a smaller limit"
        );
        return Err(Problem::too_large(text));
    }
    let letters: Vec<_> = page.items().iter().rev().map(letter).collect();
    answered(Form::Json, DocumentWriter::of(Form::Json, 0, &letters)?.finish(), page.claim())
}

/// Reads a dead letter.
pub(super) async fn get(client: Extension<Admitted>, request: Request) -> Answered {
    let id = id_in(&client, request.uri()).ok_or_else(none)?;
    let store = store_of(&client.database).await?;
    let found = Pending::of(|reply| store.dead_letter(QUEUE.to_owned(), id, reply)).await?;
    let found = found.ok_or_else(none)?;
    let (body, lossy) = DocumentWriter::of(Form::Json, 0, &letter(&found))?.finish();
    Ok(as_document(Form::Json, whole(body), lossy))
}

/// Deletes a dead letter.
pub(super) async fn delete(client: Extension<Admitted>, request: Request) -> Answered {
    if let Some(id) = id_in(&client, request.uri()) {
        change(&client, QUEUE.to_owned(), DeadLetterChange::Delete(id)).await?;
    }
    Ok(ok()?)
}

/// Enqueues a dead letter again. The message has the number of the letter.
pub(super) async fn requeue(client: Extension<Admitted>, request: Request) -> Answered {
    let id = id_in(&client, request.uri()).ok_or_else(none)?;
    match change(&client, QUEUE.to_owned(), DeadLetterChange::Requeue(id)).await? {
        0 => Err(none()),
        _ => Ok(json(&serde_json::json!({ "ok": true, "newId": id.to_string() }))?),
    }
}

/// Deletes all dead letters.
pub(super) async fn purge(client: Extension<Admitted>) -> Answered {
    let count = purged(&client, QUEUE).await?;
    Ok(json(&serde_json::json!({ "deletedCount": count }))?)
}
