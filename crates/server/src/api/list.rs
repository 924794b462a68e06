//! Lists: pages and counts of a range, entries of many keys, their deletion.

use axum::Extension;
use axum::extract::Request;
use hyper::http::request::Parts;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::{IntoParams, ToSchema};

use super::admit::Admitted;
use super::body::{Raw, filter_in, json, json_body, key_in, keys_in, wanted};
use super::deletion::{Deleted, delete_below, delete_keys};
use super::entries::{Order, Selection, count, entries, ordered_page, page};
use super::envelope::{BatchAnswer, PageBody, batch_answer, page_answer};
use super::media::Form;
use super::order::{OrderBody, cursor_of, position_of};
use super::problem::{Answered, Problem};
use super::range::Bounds;
use super::schema::{
    Depth, EntryBody, Key as KeySchema, OrderBy, PageLimit, Prefix, TypedEntryBody, Where,
};
use super::target::Query;
use crate::data::Client;
use openkv_core::model::{
    HTTP_BATCH_KEYS_MAX, HTTP_LIST_ENTRIES_DEFAULT, HTTP_LIST_ENTRIES_MAX, Key,
};

/// The parameters of `GET /keys`.
pub(super) const LIST_NAMES: &[&str] =
    &["key", "prefix", "start", "end", "limit", "reverse", "cursor", "keysOnly", "depth"];
const COUNT_NAMES: &[&str] = &["prefix", "start", "end", "depth"];

/// The parameters of a list in a query.
#[derive(IntoParams)]
#[into_params(parameter_in = Query)]
pub(super) struct RangeQuery {
    /// A key as a literal of the command line: `users` or `["users",42n]`.
    #[param(value_type = Option<String>)]
    prefix: Option<Key>,
    /// The first key, included.
    #[param(value_type = Option<String>)]
    start: Option<Key>,
    /// The last key, excluded.
    #[param(value_type = Option<String>)]
    end: Option<Key>,
    /// Most entries: 1 to 1000, by default 100.
    #[param(value_type = Option<PageLimit>, inline)]
    limit: Option<u64>,
    /// From the end backwards.
    reverse: Option<bool>,
    /// Where the page before this one ended.
    cursor: Option<String>,
    /// Without values.
    #[param(rename = "keysOnly")]
    keys_only: Option<bool>,
    /// Most parts behind the prefix; longer keys are left out.
    #[param(value_type = Option<Depth>, inline)]
    depth: Option<u64>,
}

impl RangeQuery {
    fn of(query: &Query) -> Result<Self, Problem> {
        let Range { prefix, start, end } = Range::of_query(query)?;
        Ok(Self {
            prefix,
            start,
            end,
            limit: query.number("limit")?,
            reverse: query.flag("reverse")?,
            cursor: query.get("cursor").map(str::to_owned),
            keys_only: query.flag("keysOnly")?,
            depth: query.number("depth")?,
        })
    }
}

/// A list in a body.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct ListBody {
    /// A key.
    #[schema(value_type = Option<Prefix>)]
    prefix: Raw,
    /// The first key, included.
    #[schema(value_type = Option<Prefix>)]
    start: Raw,
    /// The last key, excluded.
    #[schema(value_type = Option<Prefix>)]
    end: Raw,
    /// Most entries: 1 to 1000, by default 100.
    #[schema(value_type = Option<PageLimit>, inline)]
    limit: Option<u64>,
    /// From the end backwards.
    reverse: Option<bool>,
    /// Where the page before this one ended.
    cursor: Option<String>,
    /// Without values.
    keys_only: Option<bool>,
    /// Most parts behind the prefix.
    #[schema(value_type = Option<Depth>, inline)]
    depth: Option<u64>,
    /// Only entries whose values match.
    #[serde(rename = "where")]
    #[schema(value_type = Option<Where>)]
    filter: Raw,
    /// The order of values instead of that of keys; needs a value index, or `sort`.
    #[schema(value_type = Option<OrderBy>)]
    order_by: Option<OrderBody>,
    /// Without an index for `orderBy` the entries are sorted in memory.
    sort: Option<bool>,
}

/// The number of entries.
#[derive(Serialize, ToSchema)]
pub(super) struct Counted {
    count: u64,
}

/// The range of a list.
pub(super) struct Range {
    prefix: Option<Key>,
    start: Option<Key>,
    end: Option<Key>,
}

impl ListBody {
    /// Most entries that it asks for.
    pub(super) fn limit(&self) -> Option<u64> {
        self.limit
    }
}

impl Range {
    pub(super) fn of_query(query: &Query) -> Result<Self, Problem> {
        let (prefix, start) = (query.key("prefix")?, query.key("start")?);
        Ok(Self { prefix, start, end: query.key("end")? })
    }

    fn of_body(body: &ListBody) -> Result<Self, Problem> {
        let key = |name, raw: &Raw| raw.as_ref().map(|raw| key_in(name, raw)).transpose();
        let (prefix, start) = (key("prefix", &body.prefix)?, key("start", &body.start)?);
        Ok(Self { prefix, start, end: key("end", &body.end)? })
    }

    pub(super) fn bounds(self) -> Result<Bounds, Problem> {
        Bounds::new(self.prefix, self.start, self.end)
    }
}

pub(super) fn depth_of(depth: Option<u64>) -> Result<Option<usize>, Problem> {
    let number = |depth: u64| usize::try_from(depth).ok().filter(|depth| *depth > 0);
    let refused = || Problem::bad_request("depth must be at least 1: 0 given");
    depth.map(|depth| number(depth).ok_or_else(refused)).transpose()
}

pub(super) fn limit_of(given: Option<u64>) -> Result<usize, Problem> {
    let limit = given.map_or(Some(HTTP_LIST_ENTRIES_DEFAULT), |limit| usize::try_from(limit).ok());
    limit.filter(|limit| (1..=HTTP_LIST_ENTRIES_MAX).contains(limit)).ok_or_else(|| {
        let given = given.unwrap_or_default();
        Problem::bad_request(format!(
            "limit must be from 1 to {HTTP_LIST_ENTRIES_MAX}: {given} given"
        ))
    })
}

/// The page that a query names.
pub(super) async fn page_of_query(client: &Client, head: &Parts, query: &Query) -> Answered {
    let range = RangeQuery::of(query)?;
    let whole = Bounds::new(range.prefix, range.start, range.end)?;
    let mut selection = Selection {
        bounds: whole.clone(),
        reverse: range.reverse.unwrap_or(false),
        keys_only: range.keys_only.unwrap_or(false),
        depth: depth_of(range.depth)?,
        filter: None,
    };
    if let Some(cursor) = range.cursor.filter(|cursor| !cursor.is_empty()) {
        selection.bounds.resume(&cursor, selection.reverse)?;
    }
    listed(client, head, selection, whole, range.limit).await
}

/// A list as a body gives it.
pub(super) struct ListRequest {
    pub(super) selection: Selection,
    pub(super) order: Order,
    /// All of the range.
    whole: Bounds,
}

impl ListRequest {
    pub(super) fn of(body: &ListBody) -> Result<Self, Problem> {
        let mut selection = Selection {
            bounds: Range::of_body(body)?.bounds()?,
            reverse: body.reverse.unwrap_or(false),
            keys_only: body.keys_only.unwrap_or(false),
            depth: depth_of(body.depth)?,
            filter: filter_in(&body.filter)?,
        };
        let whole = selection.bounds.clone();
        let sort = body.sort.unwrap_or(false);
        let mut order = Order { paths: Vec::new(), sort, after: None };
        let cursor = body.cursor.as_deref().filter(|cursor| !cursor.is_empty());
        if let Some(OrderBody(paths)) = &body.order_by {
            if selection.depth.is_some() {
                let text = "orderBy and depth do not go together: leave one out";
                return Err(Problem::bad_request(text));
            }
            order.paths.clone_from(paths);
            order.after = cursor.map(position_of).transpose()?;
        } else if sort {
            let text = "sort says how orderBy is executed: give orderBy";
            return Err(Problem::bad_request(text));
        } else if let Some(cursor) = cursor {
            selection.bounds.resume(cursor, selection.reverse)?;
        }
        Ok(Self { selection, order, whole })
    }
}

async fn listed(
    client: &Client,
    head: &Parts,
    selection: Selection,
    whole: Bounds,
    limit: Option<u64>,
) -> Answered {
    let (limit, form) = (limit_of(limit)?, wanted(head, Form::OF_DOCUMENTS)?);
    let found = page(client, &selection, limit).await?;
    let last = found.entries.entries.last().filter(|_| found.entries.has_more);
    let cursor = last.map(|entry| whole.cursor(&entry.key));
    let entries = (found.entries.entries, selection.keys_only);
    page_answer(entries, cursor, form, (&found.claim, found.bytes)).await
}

/// Lists a range, with conditions.
#[utoipa::path(post, path = "/keys/list", tag = "lists", operation_id = "list",
    request_body = ListBody,
    responses((status = 200, description = "A page of entries.", content(
            (PageBody<EntryBody<'static>> = "application/json"),
            (PageBody<TypedEntryBody> = "application/vnd.openkv+json")))))]
pub(super) async fn list(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let (_, body) = json_body::<ListBody>(&client, &head, body).await?;
    let ListRequest { selection, order, whole } = ListRequest::of(&body)?;
    if order.paths.is_empty() {
        return listed(&client, &head, selection, whole, body.limit).await;
    }
    let (limit, form) = (limit_of(body.limit)?, wanted(&head, Form::OF_DOCUMENTS)?);
    let (found, last) = ordered_page(&client, &selection, &order, limit).await?;
    let cursor = found.entries.has_more.then(|| cursor_of(&last));
    let entries = (found.entries.entries, selection.keys_only);
    page_answer(entries, cursor, form, (&found.claim, found.bytes)).await
}

/// A page of a range.
#[utoipa::path(get, path = "/keys/paginate", tag = "lists", operation_id = "paginateByQuery",
    params(RangeQuery),
    responses((status = 200, description = "A page of entries.", content(
            (PageBody<EntryBody<'static>> = "application/json"),
            (PageBody<TypedEntryBody> = "application/vnd.openkv+json")))))]
pub(super) async fn paginate_query(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let names: Vec<_> = LIST_NAMES.iter().copied().filter(|name| *name != "key").collect();
    let query = Query::of(&head.uri, &names)?;
    page_of_query(&client, &head, &query).await
}

/// A page of a range, with conditions.
#[utoipa::path(post, path = "/keys/paginate", tag = "lists", operation_id = "paginate",
    request_body = ListBody,
    responses((status = 200, description = "A page of entries.", content(
            (PageBody<EntryBody<'static>> = "application/json"),
            (PageBody<TypedEntryBody> = "application/vnd.openkv+json")))))]
pub(super) async fn paginate(client: Extension<Admitted>, request: Request) -> Answered {
    list(client, request).await
}

/// What a count selects.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct CountBody {
    /// A key.
    #[schema(value_type = Option<Prefix>)]
    prefix: Raw,
    /// The first key, included.
    #[schema(value_type = Option<Prefix>)]
    start: Raw,
    /// The last key, excluded.
    #[schema(value_type = Option<Prefix>)]
    end: Raw,
    /// Most parts behind the prefix.
    #[schema(value_type = Option<Depth>, inline)]
    depth: Option<u64>,
    /// Only entries whose values match.
    #[serde(rename = "where")]
    #[schema(value_type = Option<Where>)]
    filter: Raw,
}

/// Counts a range.
#[utoipa::path(get, path = "/keys/count", tag = "lists", operation_id = "countByQuery",
    params(
        ("prefix" = Option<String>, Query, description = "A key, as a literal."),
        ("start" = Option<String>, Query, description = "The first key, included."),
        ("end" = Option<String>, Query, description = "The last key, excluded."),
        ("depth" = inline(Option<Depth>), Query, description = "Most parts behind the prefix."),
    ),
    responses((status = 200, description = "The number of entries.", body = Counted)))]
pub(super) async fn count_query(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, COUNT_NAMES)?;
    let bounds = Range::of_query(&query)?.bounds()?;
    let depth = depth_of(query.number("depth")?)?;
    counted(&client, Selection { bounds, depth, reverse: false, keys_only: true, filter: None })
        .await
}

/// Counts a range, with conditions.
#[utoipa::path(post, path = "/keys/count", tag = "lists", operation_id = "count",
    request_body = CountBody,
    responses((status = 200, description = "The number of entries.", body = Counted)))]
pub(super) async fn count_body(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let (_, body) = json_body::<CountBody>(&client, &head, body).await?;
    let CountBody { prefix, start, end, depth, filter } = body;
    let range = ListBody { prefix, start, end, ..ListBody::default() };
    let bounds = Range::of_body(&range)?.bounds()?;
    let (depth, filter) = (depth_of(depth)?, filter_in(&filter)?);
    counted(&client, Selection { bounds, depth, reverse: false, keys_only: true, filter }).await
}

async fn counted(client: &Client, selection: Selection) -> Answered {
    json(&Counted { count: count(client, &selection).await? })
}

/// Keys.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct BatchBody {
    /// At most 1000.
    #[schema(value_type = Vec<KeySchema>, max_items = 1000)]
    keys: Vec<Box<RawValue>>,
}

fn checked(keys: &[Box<RawValue>]) -> Result<Vec<Key>, Problem> {
    let count = keys.len();
    if count > HTTP_BATCH_KEYS_MAX {
        let text = format!("Too many keys (max {HTTP_BATCH_KEYS_MAX}): {count} given");
        return Err(Problem::too_large(text));
    }
    let keys = keys_in(keys)?;
    match keys.iter().position(Key::is_empty) {
        Some(at) => Err(Problem::bad_request(format!("keys[{at}] has no parts"))),
        None => Ok(keys),
    }
}

/// Reads the entries of keys, from one state of the database.
#[utoipa::path(post, path = "/keys/batch", tag = "lists", operation_id = "batch",
    request_body = BatchBody,
    responses((status = 200, description = "An entry for each key.", content(
            (BatchAnswer<EntryBody<'static>> = "application/json"),
            (BatchAnswer<TypedEntryBody> = "application/vnd.openkv+json")))))]
pub(super) async fn batch(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let (_, body) = json_body::<BatchBody>(&client, &head, body).await?;
    let (keys, form) = (checked(&body.keys)?, wanted(&head, Form::OF_DOCUMENTS)?);
    client.database.owe_operations(keys.len().saturating_sub(1) as u64);
    let found = entries(&client, &keys).await?;
    batch_answer((keys, found.entries), form, (&found.claim, found.bytes)).await
}

/// Keys to delete.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct DeleteBatchBody {
    /// At most 1000.
    #[schema(value_type = Vec<KeySchema>, max_items = 1000)]
    keys: Vec<Box<RawValue>>,
    /// Also all entries below the keys: by default only with `where`.
    descendants: Option<bool>,
    /// Only entries whose values match.
    #[serde(rename = "where")]
    #[schema(value_type = Option<Where>)]
    filter: Raw,
}

/// Deletes the entries of keys, or all entries below them too.
#[utoipa::path(post, path = "/keys/delete-batch", tag = "lists", operation_id = "deleteBatch",
    request_body = DeleteBatchBody,
    responses((status = 200, description = "The number of deleted entries.", body = Deleted)))]
pub(super) async fn delete_batch(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let (_, body) = json_body::<DeleteBatchBody>(&client, &head, body).await?;
    let (keys, filter) = (checked(&body.keys)?, filter_in(&body.filter)?);
    let descendants = body.descendants.unwrap_or(filter.is_some());
    json(&Deleted { deleted: delete_all(&client, &keys, descendants, filter.as_deref()).await? })
}

/// Deletes the entries of keys, with or without all entries below them. Returns their number.
pub(crate) async fn delete_all(
    client: &Client,
    keys: &[Key],
    descendants: bool,
    filter: Option<&[u8]>,
) -> Result<u64, Problem> {
    client.database.owe_operations(keys.len().saturating_sub(1) as u64);
    if keys.is_empty() {
        return Ok(0);
    }
    if !descendants {
        return delete_keys(client, keys, filter).await;
    }
    let mut deleted = 0;
    for key in keys {
        deleted += delete_below(client, key, filter).await?;
    }
    Ok(deleted)
}
