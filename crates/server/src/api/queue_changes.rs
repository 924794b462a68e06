//! Changes of a queue that no consumer makes: pause, resume, drain, and the cancellation of a message.

use axum::Extension;
use axum::extract::Request;
use hyper::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::json;
use super::deletion::Deleted;
use super::problem::{Answered, Problem};
use super::queue::{id_in, queue_of};
use super::schema::{GroupName, QueueName};
use super::target::Query;
use crate::data::{Client, store_of};
use crate::pending::{BUSY, Pending};
use openkv_core::model::{DRAIN_ROWS_MAX, QueueChange, QueueChanged, check_group, queue_of_group};

/// The answer of a change.
#[derive(Serialize, ToSchema)]
#[schema(as = QueueChanged)]
pub(super) struct Changed {
    ok: bool,
}

pub(super) async fn change(
    client: &Client,
    queue: &str,
    change: QueueChange,
) -> Result<QueueChanged, Problem> {
    let (store, queue) = (store_of(&client.database).await?, queue.to_owned());
    Ok(Pending::of(|reply| store.change_queue(queue, change, BUSY, reply)).await?)
}

/// The queue of a request, or that of its group.
fn target_of(query: &Query) -> Result<String, Problem> {
    let queue = queue_of(query)?;
    let Some(group) = query.get("group") else { return Ok(queue) };
    if queue.is_empty() {
        return Err(Problem::bad_request("group: only queues with a name have groups"));
    }
    check_group(group)?;
    Ok(queue_of_group(&queue, group))
}

/// Pauses a queue, or a group of it: no consumer gets a message until it resumes. Deliveries under way are not affected.
#[utoipa::path(post, path = "/queue/pause", tag = "queues", operation_id = "pauseQueue",
    params(
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
        ("group" = inline(Option<GroupName>), Query, description = "Only this group of it."),
    ),
    responses((status = 200, description = "The queue is paused.", body = Changed)))]
pub(super) async fn pause(client: Extension<Admitted>, request: Request) -> Answered {
    let queue = target_of(&Query::of(request.uri(), &["queue", "group"])?)?;
    change(&client, &queue, QueueChange::Pause).await?;
    json(&Changed { ok: true })
}

/// Ends the pause of a queue, or of a group of it.
#[utoipa::path(post, path = "/queue/resume", tag = "queues", operation_id = "resumeQueue",
    params(
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
        ("group" = inline(Option<GroupName>), Query, description = "Only this group of it."),
    ),
    responses((status = 200, description = "The queue is not paused.", body = Changed)))]
pub(super) async fn resume(client: Extension<Admitted>, request: Request) -> Answered {
    let queue = target_of(&Query::of(request.uri(), &["queue", "group"])?)?;
    change(&client, &queue, QueueChange::Resume).await?;
    json(&Changed { ok: true })
}

/// Deletes the messages of a queue that wait, step by step. They leave no dead letters.
#[utoipa::path(post, path = "/queue/drain", tag = "queues", operation_id = "drainQueue",
    params(
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
        ("delayed" = Option<bool>, Query, description = "Also those that are not due yet."),
        ("group" = inline(Option<GroupName>), Query, description = "Only those of this group."),
    ),
    responses((status = 200, description = "The number of deleted messages.", body = Deleted)))]
pub(super) async fn drain(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(request.uri(), &["queue", "delayed", "group"])?;
    let (queue, delayed) = (target_of(&query)?, query.flag("delayed")?.unwrap_or(false));
    let (until_ms, max) = (store_of(&client.database).await?.now_ms(), DRAIN_ROWS_MAX);
    let mut deleted = 0;
    loop {
        let step = QueueChange::Drain { until_ms, delayed, max };
        let count = change(&client, &queue, step).await?.ids.len();
        deleted += count as u64;
        if count < max {
            return json(&Deleted { deleted });
        }
    }
}

/// Removes a message that waits or that a consumer has. The lock of its consumer is lost.
#[utoipa::path(post, path = "/queue/messages/{id}/cancel", tag = "queues",
    operation_id = "cancelMessage",
    params(
        ("id" = i64, Path, description = "Its number."),
        ("queue" = inline(Option<QueueName>), Query, description = "The name of the queue."),
    ),
    responses(
        (status = 200, description = "Cancelled.", body = Changed),
        (status = 404, description = "There is no such message."),
    ))]
pub(super) async fn cancel(client: Extension<Admitted>, request: Request) -> Answered {
    let none = || Problem::new(StatusCode::NOT_FOUND, "The queue has no such message.");
    let queue = queue_of(&Query::of(request.uri(), &["queue"])?)?;
    let id = id_in(&client, request.uri()).ok_or_else(none)?;
    let store = store_of(&client.database).await?;
    match Pending::of(|reply| store.cancel_message(&queue, id, Box::new(reply))).await? {
        true => json(&Changed { ok: true }),
        false => Err(none()),
    }
}
