//! One entry: `GET`, `PUT` and `DELETE` of its key.

use axum::Extension;
use axum::extract::Request;
use hyper::header::ETAG;
use hyper::http::request::Parts;
use hyper::{StatusCode, Uri};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::admit::{Admitted, body_in};
use super::body::{Raw, filter_in, json, optional_body, wanted};
use super::deletion::{Deleted, delete_below, delete_keys};
use super::duration::duration_in;
use super::entries::{Entry, entry};
use super::envelope::{entry_answer, etag, hex, plain};
use super::list;
use super::media::Form;
use super::precondition::Preconditions;
use super::problem::{Answered, Problem};
use super::schema::{
    Binary, EntryBody, Lifetime, PageOrEntry, Stamp, TypedEntryBody, TypedPageOrEntry, TypedValue,
    Where,
};
use super::target::{Query, key_of, path_in_api};
use super::write::{Done, commit, expiry, value_of};
use crate::answer::{Answer, Body};
use crate::data::Client;
use openkv_core::model::{
    CONDITION_TRIES_MAX, Check, Encoding, Error, Key, Mutation, Versionstamp, WriteParts,
};

/// How the key of an entry is written.
pub(crate) const MISSING_KEY: &str = "The key is missing: write /keys/users/123 for strings, or /keys?key=[\"users\",123] for any parts.";

/// The key of a request for one entry.
fn key(client: &Client, uri: &Uri, query: &Query) -> Result<Key, Problem> {
    let missing = || Problem::bad_request(MISSING_KEY);
    key_of(path_in_api(client, uri), query)?.ok_or_else(missing)
}

/// Reads an entry.
#[utoipa::path(get, path = "/keys/{*path}", tag = "entries", operation_id = "getEntry",
    params(("path" = String, Path, description = "The parts of the key, each a string.")),
    responses(
        (status = 200, description = "The entry; in CBOR and as bytes, its value alone.", content(
            (EntryBody<'static> = "application/json"),
            (TypedEntryBody = "application/vnd.openkv+json"),
            (Binary = "application/cbor"),
            (Binary = "application/octet-stream")),
            headers(
                ("etag" = String, description = "The versionstamp, in quotes."),
                ("openkv-lossy" = String, description = "`true` if JSON simplifies the value."),
                ("openkv-expire-at" = String, description = "When it expires, in RFC 3339."))),
        (status = 304, description = "The entry is the one of If-None-Match."),
        (status = 404, description = "There is no entry."),
        (status = 412, description = "The entry is not as If-Match says."),
    ))]
pub(super) async fn get(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["key"])?;
    let key = key(&client, &head.uri, &query)?;
    read(&client, &head, &key).await
}

/// Reads the entry of `?key=`, or a list.
#[utoipa::path(get, path = "/keys", tag = "entries", operation_id = "listEntries",
    params(
        ("key" = Option<String>, Query, description = "Reads this entry instead of a list."),
        list::RangeQuery,
    ),
    responses(
        (status = 200, description = "A page of entries, or the entry of `key`.", content(
            (PageOrEntry = "application/json"),
            (TypedPageOrEntry = "application/vnd.openkv+json"),
            (Binary = "application/cbor"),
            (Binary = "application/octet-stream"))),
        (status = 304, description = "The entry is the one of If-None-Match."),
        (status = 404, description = "There is no entry of `key`."),
        (status = 412, description = "The entry of `key` is not as If-Match says."),
    ))]
pub(super) async fn get_or_list(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, list::LIST_NAMES)?;
    match key_of(path_in_api(&client, &head.uri), &query)? {
        None => list::page_of_query(&client, &head, &query).await,
        Some(key) => read(&client, &head, &key).await,
    }
}

async fn read(client: &Client, head: &Parts, key: &Key) -> Answered {
    let conditions = Preconditions::of(&head.headers)?;
    let found = entry(client, key).await?;
    let stamp = found.entries.as_ref().map(|entry| entry.stamp);
    if !conditions.matches(stamp) {
        return Err(failed(found.entries.as_ref())?);
    }
    let Some(entry) = found.entries else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "There is no entry of this key."));
    };
    if !conditions.differs(stamp) {
        return unchanged(entry.stamp);
    }
    let offered = match entry.encoding {
        Encoding::Bytes => Form::ALL,
        Encoding::Cbor | Encoding::V8 | Encoding::Le64 => Form::OF_DOCUMENTS,
    };
    entry_answer(entry, wanted(head, offered)?, &found.claim).await
}

fn unchanged(stamp: Versionstamp) -> Answered {
    let mut answer = Answer::new(Body::Whole(None));
    *answer.status_mut() = StatusCode::NOT_MODIFIED;
    answer.headers_mut().insert(ETAG, etag(stamp)?);
    Ok(answer)
}

/// The refusal of a request whose conditions do not hold for this entry.
fn failed(present: Option<&Entry>) -> Result<Problem, Problem> {
    let text = present.map_or_else(|| Ok("null".to_owned()), plain)?;
    let raw = RawValue::from_string(text).map_err(|error| Error::internal(error.to_string()))?;
    Ok(Problem::precondition(raw))
}

/// The answer of a write.
#[derive(Serialize, ToSchema)]
pub(super) struct Written {
    ok: bool,
    #[schema(value_type = Stamp)]
    versionstamp: String,
}

/// Writes an entry.
#[utoipa::path(put, path = "/keys/{*path}", tag = "entries", operation_id = "putEntry",
    params(
        ("path" = String, Path, description = "The parts of the key, each a string."),
        ("expireIn" = inline(Option<Lifetime>), Query, description = "The entry expires in so many ms."),
        ("expiresIn" = inline(Option<Lifetime>), Query, description = "The same."),
    ),
    request_body(description = "The value.", content(
        (serde_json::Value = "application/json"),
        (TypedValue = "application/vnd.openkv+json"),
        (Binary = "application/cbor"),
        (Binary = "application/octet-stream"))),
    responses(
        (status = 200, description = "Written.", body = Written),
        (status = 412, description = "The entry is not as the conditions say."),
    ))]
pub(super) async fn put(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let query = Query::of(&head.uri, &["key", "expireIn", "expiresIn"])?;
    let key = key(&client, &head.uri, &query)?;
    let name = if query.get("expireIn").is_some() { "expireIn" } else { "expiresIn" };
    let expiry = expiry(name, duration_in(&query, name)?)?;
    let conditions = Preconditions::of(&head.headers)?;
    let (form, body, _claim) = body_in(&client, &head, body, Form::ALL).await?;
    let value = value_of(form, &body)?;
    let mutation = |key: Key| Mutation::Set { key, suffixed: false, value: value.clone(), expiry };
    let stamp = conditional(&client, &key, &conditions, mutation).await?;
    let mut answer = json(&Written { ok: true, versionstamp: hex(stamp) })?;
    answer.headers_mut().insert(ETAG, etag(stamp)?);
    Ok(answer)
}

/// Writes the entry of `?key=`.
#[utoipa::path(put, path = "/keys", tag = "entries", operation_id = "putEntryOfKey",
    params(
        ("key" = String, Query, description = "The key, as a literal of the command line."),
        ("expireIn" = inline(Option<Lifetime>), Query, description = "The entry expires in so many ms."),
        ("expiresIn" = inline(Option<Lifetime>), Query, description = "The same."),
    ),
    request_body(description = "The value.", content(
        (serde_json::Value = "application/json"),
        (TypedValue = "application/vnd.openkv+json"),
        (Binary = "application/cbor"),
        (Binary = "application/octet-stream"))),
    responses(
        (status = 200, description = "Written.", body = Written),
        (status = 412, description = "The entry is not as the conditions say."),
    ))]
pub(super) async fn put_key(client: Extension<Admitted>, request: Request) -> Answered {
    put(client, request).await
}

/// Commits a change of one entry if the conditions hold.
async fn conditional(
    client: &Client,
    key: &Key,
    conditions: &Preconditions,
    mutation: impl Fn(Key) -> Mutation,
) -> Result<Versionstamp, Problem> {
    let mut expected = conditions.only();
    for _ in 0..CONDITION_TRIES_MAX {
        if !conditions.is_empty() && expected.is_none() {
            let found = entry(client, key).await?;
            let stamp = found.entries.as_ref().map(|entry| entry.stamp);
            if !conditions.matches(stamp) || !conditions.differs(stamp) {
                return Err(failed(found.entries.as_ref())?);
            }
            expected = Some(stamp);
        }
        let check = expected.take().map(|expected| Check { key: key.clone(), expected });
        let parts = WriteParts {
            checks: check.into_iter().collect(),
            mutations: vec![mutation(key.clone())],
            ..WriteParts::default()
        };
        if let Done::Committed(stamp, _) = commit(client, parts).await? {
            return Ok(stamp);
        }
    }
    let text = "Other writers keep changing the entry: try again.";
    Err(Problem::new(StatusCode::CONFLICT, text))
}

/// Which entries a deletion of a key takes.
#[derive(Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct DeleteBody {
    /// Also all entries below the key: by default only with `where`.
    descendants: Option<bool>,
    /// Only entries whose values match.
    #[serde(rename = "where")]
    #[schema(value_type = Option<Where>)]
    filter: Raw,
}

/// Deletes the entry of a key, or all entries below it too.
#[utoipa::path(delete, path = "/keys/{*path}", tag = "entries", operation_id = "deleteEntry",
    params(
        ("path" = String, Path, description = "The parts of the key, each a string."),
        ("descendants" = Option<bool>, Query, description = "Also all entries below the key: by default only with `where`."),
    ),
    request_body(content = Option<DeleteBody>, content_type = "application/json"),
    responses(
        (status = 200, description = "The number of deleted entries.", body = Deleted),
        (status = 412, description = "The entry is not as the conditions say."),
    ))]
pub(super) async fn delete(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let query = Query::of(&head.uri, &["key", "descendants"])?;
    let (key, descendants) = (key(&client, &head.uri, &query)?, query.flag("descendants")?);
    let conditions = Preconditions::of(&head.headers)?;
    let body: DeleteBody = optional_body(&client, &head, body).await?;
    let filter = filter_in(&body.filter)?;
    let descendants = descendants.or(body.descendants).unwrap_or(filter.is_some());
    if conditions.is_empty() {
        let deleted = match descendants {
            true => delete_below(&client, &key, filter.as_deref()).await?,
            false => delete_keys(&client, &[key], filter.as_deref()).await?,
        };
        return json(&Deleted { deleted });
    }
    if descendants || filter.is_some() {
        let text = "If-Match and If-None-Match are for one entry: leave out descendants and where.";
        return Err(Problem::bad_request(text));
    }
    let had = entry(&client, &key).await?.entries.is_some();
    conditional(&client, &key, &conditions, |key| Mutation::Delete { key }).await?;
    json(&Deleted { deleted: u64::from(had) })
}

/// Deletes the entry of `?key=`, or all entries below it too.
#[utoipa::path(delete, path = "/keys", tag = "entries", operation_id = "deleteEntryOfKey",
    params(
        ("key" = String, Query, description = "The key, as a literal of the command line."),
        ("descendants" = Option<bool>, Query, description = "Also all entries below the key: by default only with `where`."),
    ),
    request_body(content = Option<DeleteBody>, content_type = "application/json"),
    responses(
        (status = 200, description = "The number of deleted entries.", body = Deleted),
        (status = 412, description = "The entry is not as the conditions say."),
    ))]
pub(super) async fn delete_key(client: Extension<Admitted>, request: Request) -> Answered {
    delete(client, request).await
}
