//! Schedules of queues: list, set, remove.

use axum::Extension;
use axum::extract::Request;
use hyper::{StatusCode, Uri};
use percent_encoding::percent_decode_str;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::{json, json_body, wanted};
use super::document_writer::{Stored, ValueError};
use super::duration::Ms;
use super::item_page::Page;
use super::list::limit_of;
use super::media::Form;
use super::problem::{Answered, Problem, shown};
use super::queue::{EnqueueBody, message_of, named_queue};
use super::schema::{
    BackoffTime, GroupName, HandlerTime, Interval, KeptTime, Offset, PageLimit, Priority,
    QueueName, Retention, TypedValue,
};
use super::target::{Query, path_in_api};
use super::write::{Done, commit, value_in};
use crate::data::Client;
use crate::pending::Wanted;
use openkv_core::codec::message_context;
use openkv_core::model::{
    Encoding, Error, Message, Missed, PeekCursor, Result, Schedule, ScheduleChange, Timing,
    WriteParts,
};
use openkv_store::ListedSchedule;
use openkv_wire::connect::time::to_rfc3339;

/// A schedule to set: a cron pattern or an interval, and what its messages are.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewSchedule)]
pub(super) struct ScheduleBody {
    /// The value of its messages.
    #[schema(value_type = serde_json::Value)]
    value: Box<RawValue>,
    /// Five fields, or six with seconds in front; not together with `every`.
    cron: Option<String>,
    /// The IANA name of the pattern's time zone; by default `UTC`.
    time_zone: Option<String>,
    /// The interval: ms, or a text like `5m`.
    #[schema(value_type = Option<Interval>, inline)]
    every: Option<Ms>,
    /// What is added to the multiples of the interval.
    #[schema(value_type = Option<Offset>, inline)]
    offset: Option<Ms>,
    /// What happens for due times that no process could keep: `skip`, `once` (one message for all; the default), or
    /// `all`.
    missed: Option<String>,
    /// 0 to 9.
    #[schema(value_type = Option<Priority>, inline)]
    priority: Option<u8>,
    /// Of its messages, the queue holds at most one with this key.
    deduplication_key: Option<String>,
    /// What happens if that key is taken.
    deduplication: Option<String>,
    /// The group of its messages.
    #[schema(value_type = Option<GroupName>, inline)]
    group: Option<String>,
    /// Waiting times before the retries.
    #[schema(value_type = Option<Vec<BackoffTime>>)]
    backoff_schedule: Option<Vec<Ms>>,
    /// How long a message is kept when it is dead.
    #[schema(value_type = Option<Retention>, inline)]
    dead_retention: Option<Ms>,
    /// How long the results of its messages are kept.
    #[schema(value_type = Option<KeptTime>, inline)]
    keep_result: Option<Ms>,
    /// The keys that get the value of a message when it dies, at most 10.
    #[schema(value_type = Option<Vec<Vec<serde_json::Value>>>)]
    keys_if_undelivered: Option<Vec<Box<RawValue>>>,
    /// The longest time of a handler of `listen`.
    #[schema(value_type = Option<HandlerTime>, inline)]
    timeout: Option<Ms>,
}

/// The answer of a change of a schedule.
#[derive(Serialize, ToSchema)]
#[schema(as = ScheduleChanged)]
pub(super) struct ChangedBody {
    /// Whether it has changed anything.
    changed: bool,
}

/// A schedule.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Schedule)]
pub(super) struct ListedBody<V> {
    name: String,
    /// Absent if it has an interval.
    #[serde(skip_serializing_if = "Option::is_none")]
    cron: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    time_zone: Option<String>,
    /// In ms; absent if it has a cron pattern.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    every: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<u64>)]
    offset: Option<f64>,
    missed: &'static str,
    /// Its next due time, RFC 3339.
    next_at: String,
    priority: u8,
    /// Absent if it cannot be read.
    #[schema(required = false)]
    value: V,
    /// Why the value cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_error: Option<ValueError>,
}

/// A page of schedules.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Schedules)]
pub(super) struct SchedulesBody<V> {
    schedules: Vec<ListedBody<V>>,
    /// Where the next page begins; `null` at the end.
    cursor: Option<String>,
    has_more: bool,
}

fn listed(of: &ListedSchedule) -> ListedBody<Stored<'_>> {
    let schedule = &of.kept.schedule;
    let (cron, time_zone, every, offset) = match schedule.timing() {
        Timing::Cron { pattern, zone } => (Some(pattern.clone()), Some(zone.clone()), None, None),
        Timing::Every { every_ms, offset_ms } => {
            (None, None, Some(*every_ms as f64), Some(*offset_ms as f64))
        }
    };
    ListedBody {
        name: schedule.name().to_owned(),
        cron,
        time_zone,
        every,
        offset,
        missed: schedule.missed().name(),
        next_at: to_rfc3339(of.row.due_ms),
        priority: of.row.priority,
        value: Stored(Encoding::Cbor, message_context::value_of(&of.kept.value)),
        value_error: None,
    }
}

/// The name of the schedule in the path, behind `/queue/schedules/`.
fn name_in(client: &Client, uri: &Uri) -> Result<String, Problem> {
    let path = path_in_api(client, uri);
    let name = path.splitn(4, '/').nth(3).unwrap_or_default();
    let text = percent_decode_str(name).decode_utf8();
    Ok(text.map_err(|_| Problem::bad_request("name: not UTF-8"))?.into_owned())
}

/// Sets or removes a schedule; whether that has changed anything.
async fn change(client: &Client, message: Message) -> Result<bool, Problem> {
    let parts = WriteParts { messages: vec![message], ..WriteParts::default() };
    match commit(client, parts).await? {
        Done::CheckFailed(_) => Err(Error::internal("a check of a write without checks").into()),
        Done::Committed(_, results) => Ok(!results.enqueued.iter().any(|of| of.deduplicated)),
    }
}

/// Lists the schedules of a queue by their next due times.
#[utoipa::path(get, path = "/queue/schedules", tag = "queues", operation_id = "listSchedules",
    params(
        ("queue" = inline(QueueName), Query, description = "The name of the queue."),
        ("limit" = inline(Option<PageLimit>), Query, description = "Most schedules: 1 to 1000, by default 100."),
        ("cursor" = Option<String>, Query, description = "Where the page before this one ended."),
    ),
    responses((status = 200, description = "A page of schedules.", content(
            (SchedulesBody<serde_json::Value> = "application/json"),
            (SchedulesBody<TypedValue> = "application/vnd.openkv+json")))))]
pub(super) async fn list(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["queue", "limit", "cursor"])?;
    let (queue, form) = (named_queue(&query, "schedules")?, wanted(&head, Form::OF_DOCUMENTS)?);
    let limit = limit_of(query.number("limit")?)?;
    let after = match query.get("cursor") {
        None | Some("") => None,
        Some(text) => Some(PeekCursor::parse(text).ok_or_else(|| Problem::wrong_cursor(text))?),
    };
    let wanted = Wanted::new();
    let page = Page::read(&client, limit, |store, page| {
        let patience = wanted.patience(store, "queue.schedules");
        store.schedules(queue, after, patience, page, |page, schedule| {
            let bytes = schedule.row.value.len();
            page.state.take(schedule, bytes)
        });
    });
    let cursor = |last: &ListedSchedule| last.cursor.text();
    page.await?.answer(form, cursor, |schedules, cursor| SchedulesBody {
        schedules: schedules.iter().map(listed).collect(),
        has_more: cursor.is_some(),
        cursor,
    })
}

/// Sets a schedule: the queue gets a message at each due time. The same schedule again changes nothing; another one of
/// the same name replaces it.
#[utoipa::path(put, path = "/queue/schedules/{name}", tag = "queues", operation_id = "setSchedule",
    params(
        ("name" = String, Path, description = "Its name."),
        ("queue" = inline(QueueName), Query, description = "The name of the queue."),
    ),
    request_body = ScheduleBody,
    responses((status = 200, description = "Set.", body = ChangedBody)))]
pub(super) async fn set(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let queue = named_queue(&Query::of(&head.uri, &["queue"])?, "schedules")?;
    let name = name_in(&client, &head.uri)?;
    let (form, body) = json_body::<ScheduleBody>(&client, &head, body).await?;
    let value = value_in(form, &body.value);
    let schedule = schedule_of(name, &body)?;
    let message = EnqueueBody {
        value: body.value,
        delay: None,
        at: None,
        priority: body.priority,
        deduplication_key: body.deduplication_key,
        deduplication: body.deduplication,
        backoff_schedule: body.backoff_schedule,
        dead_retention: body.dead_retention,
        keys_if_undelivered: body.keys_if_undelivered,
        timeout: body.timeout,
        keep_result: body.keep_result,
        group: body.group,
    };
    let message = message_of(queue, value, message).map_err(Problem::bad_request)?;
    let schedule = Some(Box::new(ScheduleChange::Set(schedule)));
    let changed = change(&client, Message { schedule, ..message }).await?;
    json(&ChangedBody { changed })
}

fn schedule_of(name: String, body: &ScheduleBody) -> Result<Schedule, Problem> {
    let missed = match body.missed.as_deref() {
        None => Missed::default(),
        Some(text) => {
            let found = Missed::ALL.into_iter().find(|missed| missed.name() == text);
            found.ok_or_else(|| {
                let given = shown(text);
                Problem::bad_request(format!("missed: must be skip, once or all: received {given}"))
            })?
        }
    };
    let ms = |Ms(ms): Ms| i64::try_from(ms).unwrap_or(i64::MAX);
    let timing = match (&body.cron, body.every) {
        (Some(_), Some(_)) | (None, None) => {
            return Err(Problem::bad_request("give either cron or every"));
        }
        (Some(_), None) if body.offset.is_some() => {
            return Err(Problem::bad_request("offset: is for every, not for cron"));
        }
        (None, Some(_)) if body.time_zone.is_some() => {
            return Err(Problem::bad_request("timeZone: is for cron, not for every"));
        }
        (Some(pattern), None) => Timing::Cron {
            pattern: pattern.clone(),
            zone: body.time_zone.clone().unwrap_or_else(|| "UTC".to_owned()),
        },
        (None, Some(every)) => {
            Timing::Every { every_ms: ms(every), offset_ms: ms(body.offset.unwrap_or(Ms(0))) }
        }
    };
    Ok(Schedule::new(name, timing, missed)?)
}

/// Removes a schedule. The messages that it has made stay.
#[utoipa::path(delete, path = "/queue/schedules/{name}", tag = "queues", operation_id = "removeSchedule",
    params(
        ("name" = String, Path, description = "Its name."),
        ("queue" = inline(QueueName), Query, description = "The name of the queue."),
    ),
    responses(
        (status = 200, description = "Removed.", body = ChangedBody),
        (status = 404, description = "The queue has no such schedule."),
    ))]
pub(super) async fn remove(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let queue = named_queue(&Query::of(&head.uri, &["queue"])?, "schedules")?;
    let name = name_in(&client, &head.uri)?;
    let schedule = Some(Box::new(ScheduleChange::Remove(name)));
    if change(&client, Message { queue, schedule, ..Message::default() }).await? {
        return json(&ChangedBody { changed: true });
    }
    Err(Problem::new(StatusCode::NOT_FOUND, "The queue has no such schedule."))
}
