//! The limits of queues, and their groups.

use axum::Extension;
use axum::extract::Request;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::{json, json_body};
use super::duration::Ms;
use super::list::limit_of;
use super::problem::{Answered, Problem, shown};
use super::queue::named_queue;
use super::queue_changes::change;
use super::schema::{DurationOfRate, PageLimit, QueueName};
use super::target::Query;
use crate::data::{Client, store_of};
use crate::pending::{Pending, Wanted};
use crate::request::Object;
use openkv_core::model::{
    LimitAlgorithm, PeekCursor, QueueChange, QueueRule, QueueStats, Rate, RunLimit,
};
use openkv_store::ListedGroups;

/// So many deliveries in a time.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewRate)]
pub(super) struct RateBody {
    /// Deliveries in `per`.
    #[schema(minimum = 1, maximum = 1_000_000_000)]
    limit: u32,
    /// Ms, or a text like `1m`.
    #[schema(value_type = DurationOfRate, inline)]
    per: Ms,
    /// `fixed` (the default), `sliding` or `token-bucket`.
    algorithm: Option<String>,
}

/// The limits of a group.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewGroupLimits)]
pub(super) struct GroupLimitsBody {
    /// Messages that consumers have at the same time.
    #[schema(minimum = 1, maximum = 1_000_000)]
    concurrency: Option<u32>,
    #[schema(value_type = Option<RateBody>)]
    rate: Option<Object<RateBody>>,
}

/// The limits of a queue. One that is left out does not limit.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NewLimits)]
pub(super) struct LimitsBody {
    /// Messages that consumers have at the same time.
    #[schema(minimum = 1, maximum = 1_000_000)]
    concurrency: Option<u32>,
    #[schema(value_type = Option<RateBody>)]
    rate: Option<Object<RateBody>>,
    /// Of each of its groups.
    #[schema(value_type = Option<GroupLimitsBody>)]
    group: Option<Object<GroupLimitsBody>>,
}

/// The answer of a change of limits.
#[derive(Serialize, ToSchema)]
#[schema(as = LimitsChanged)]
pub(super) struct LimitsChanged {
    /// Whether it has changed anything.
    changed: bool,
}

/// So many deliveries in a time.
#[derive(Serialize, ToSchema)]
#[schema(as = Rate)]
pub(super) struct RateOf {
    limit: u32,
    /// In ms.
    #[schema(value_type = u64)]
    per: f64,
    algorithm: &'static str,
}

/// What may run of a queue or of a group.
#[derive(Serialize, ToSchema)]
#[schema(as = GroupLimits)]
pub(super) struct GroupLimitsOf {
    /// `null`: any number.
    concurrency: Option<u32>,
    /// `null`: any.
    rate: Option<RateOf>,
}

/// The limits of a queue.
#[derive(Serialize, ToSchema)]
#[schema(as = Limits)]
pub(super) struct LimitsOf {
    /// `null`: any number.
    concurrency: Option<u32>,
    /// `null`: any.
    rate: Option<RateOf>,
    /// Of each of its groups.
    group: GroupLimitsOf,
}

/// A group with messages that wait.
#[derive(Serialize, ToSchema)]
#[schema(as = Group)]
pub(super) struct GroupBody {
    name: String,
    pending: u64,
    delayed: u64,
    processing: u64,
    paused: bool,
}

/// The limits of a queue, and a page of its groups.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Groups)]
pub(super) struct GroupsBody {
    limits: LimitsOf,
    groups: Vec<GroupBody>,
    /// Where the next page begins; `null` at the end.
    cursor: Option<String>,
    has_more: bool,
}

fn shown_limit(limit: RunLimit) -> GroupLimitsOf {
    let RunLimit { concurrency, rate } = limit;
    let rate = rate.map(|Rate { algorithm, limit, per_ms }| RateOf {
        limit,
        per: per_ms as f64,
        algorithm: algorithm.name(),
    });
    GroupLimitsOf { concurrency, rate }
}

fn shown_limits(rule: QueueRule) -> LimitsOf {
    let GroupLimitsOf { concurrency, rate } = shown_limit(rule.queue);
    LimitsOf { concurrency, rate, group: shown_limit(rule.group) }
}

async fn read(
    client: &Client,
    queue: String,
    limit: usize,
    after: Option<PeekCursor>,
) -> Result<ListedGroups, Problem> {
    let store = store_of(&client.database).await?;
    let wanted = Wanted::new();
    let patience = wanted.patience(&store, "queue.groups");
    Ok(Pending::of(|reply| store.groups(queue, limit, after, patience, reply)).await?)
}

/// Lists the groups of a queue that have messages which wait, and tells its limits.
#[utoipa::path(get, path = "/queue/groups", tag = "queues", operation_id = "listGroups",
    params(
        ("queue" = inline(QueueName), Query, description = "The name of the queue."),
        ("limit" = inline(Option<PageLimit>), Query, description = "Most groups: 1 to 1000, by default 100."),
        ("cursor" = Option<String>, Query, description = "Where the page before this one ended."),
    ),
    responses((status = 200, description = "A page of groups.", body = GroupsBody)))]
pub(super) async fn list(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(request.uri(), &["queue", "limit", "cursor"])?;
    let queue = named_queue(&query, "groups")?;
    let limit = limit_of(query.number("limit")?)?;
    let after = match query.get("cursor") {
        None | Some("") => None,
        Some(text) => Some(PeekCursor::parse(text).ok_or_else(|| Problem::wrong_cursor(text))?),
    };
    let ListedGroups { rule, groups, cursor } = read(&client, queue, limit, after).await?;
    let groups = groups.into_iter().map(|(name, stats)| {
        let QueueStats { pending, delayed, processing, dead: _, paused } = stats;
        GroupBody { name, pending, delayed, processing, paused }
    });
    json(&GroupsBody {
        limits: shown_limits(rule),
        groups: groups.collect(),
        has_more: cursor.is_some(),
        cursor: cursor.map(PeekCursor::text),
    })
}

/// Tells the limits of a queue.
#[utoipa::path(get, path = "/queue/limits", tag = "queues", operation_id = "getLimits",
    params(("queue" = inline(QueueName), Query, description = "The name of the queue.")),
    responses((status = 200, description = "The limits.", body = LimitsOf)))]
pub(super) async fn limits(client: Extension<Admitted>, request: Request) -> Answered {
    let queue = named_queue(&Query::of(request.uri(), &["queue"])?, "limits")?;
    let ListedGroups { rule, .. } = read(&client, queue, 1, None).await?;
    json(&shown_limits(rule))
}

/// Gives a queue its limits, in place of those that it had. They hold over all processes.
#[utoipa::path(put, path = "/queue/limits", tag = "queues", operation_id = "setLimits",
    params(("queue" = inline(QueueName), Query, description = "The name of the queue.")),
    request_body = LimitsBody,
    responses((status = 200, description = "Set.", body = LimitsChanged)))]
pub(super) async fn set(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let queue = named_queue(&Query::of(&head.uri, &["queue"])?, "limits")?;
    let (_, LimitsBody { concurrency, rate, group }) =
        json_body::<LimitsBody>(&client, &head, body).await?;
    let none = GroupLimitsBody { concurrency: None, rate: None };
    let group = group.map_or(none, |Object(group)| group);
    let rule = QueueRule {
        queue: run_limit("rate", concurrency, rate)?,
        group: run_limit("group.rate", group.concurrency, group.rate)?,
    };
    rule.check()?;
    let done = change(&client, &queue, QueueChange::Limit(rule)).await?;
    json(&LimitsChanged { changed: !done.ids.is_empty() })
}

fn run_limit(
    name: &str,
    concurrency: Option<u32>,
    rate: Option<Object<RateBody>>,
) -> Result<RunLimit, Problem> {
    let Some(Object(RateBody { limit, per: Ms(per), algorithm })) = rate else {
        return Ok(RunLimit { concurrency, rate: None });
    };
    let algorithm = match algorithm.as_deref() {
        None => LimitAlgorithm::Fixed,
        Some(text) => LimitAlgorithm::named(text).ok_or_else(|| {
            let given = shown(text);
            Problem::bad_request(format!(
                "{name}.algorithm: must be fixed, sliding or token-bucket: received {given}"
            ))
        })?,
    };
    let per_ms = i64::try_from(per).unwrap_or(i64::MAX);
    Ok(RunLimit { concurrency, rate: Some(Rate { algorithm, limit, per_ms }) })
}
