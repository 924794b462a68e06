//! The versions of an entry, of a database that keeps a history.

use axum::Extension;
use axum::extract::Request;
use hyper::StatusCode;
use serde::Serialize;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::wanted;
use super::document_writer::{StampDigits, Stored, ValueError};
use super::envelope::hex;
use super::item_page::Page;
use super::media::Form;
use super::problem::{Answered, Problem, shown};
use super::schema::{Stamp, TypedVersionValue, VersionsLimit};
use super::target::{Query, key_of};
use openkv_core::model::{Capability, EntryVersion, HISTORY_VERSIONS_MAX, Versionstamp};
use openkv_wire::connect::time::to_rfc3339;

/// What a commit has made of an entry.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EntryVersion)]
pub(super) struct VersionBody<V> {
    /// `set`: the commit has stored the value; `expiry`: it has changed the expiry alone; `delete`: it has removed
    /// the entry.
    r#type: VersionType,
    /// `null` for `delete`. Absent if it cannot be read.
    #[schema(required = false)]
    value: Option<V>,
    /// Why the value cannot be read.
    #[serde(skip_serializing_if = "Option::is_none")]
    value_error: Option<ValueError>,
    #[schema(value_type = Stamp)]
    versionstamp: StampDigits,
    /// RFC 3339; `null` for a commit before the beginning of the history.
    committed_at: Option<String>,
    /// RFC 3339; `null` without an expiry.
    expire_at: Option<String>,
}

#[derive(Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(super) enum VersionType {
    Set,
    Expiry,
    Delete,
}

/// A page of the versions of an entry.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = EntryVersions)]
pub(super) struct VersionsBody<V> {
    versions: Vec<VersionBody<V>>,
    /// Where the next page begins; `null` at the end.
    cursor: Option<String>,
    has_more: bool,
}

fn version(version: &EntryVersion) -> VersionBody<Stored<'_>> {
    let EntryVersion { commit, at_ms, entry } = version;
    let stored = entry.as_ref();
    VersionBody {
        r#type: match stored {
            None => VersionType::Delete,
            Some(entry) if entry.version == *commit => VersionType::Set,
            Some(_) => VersionType::Expiry,
        },
        value: stored.map(|entry| Stored(entry.value.encoding, &entry.value.bytes)),
        value_error: None,
        versionstamp: StampDigits(Versionstamp::new(*commit)),
        committed_at: at_ms.map(to_rfc3339),
        expire_at: stored.and_then(|entry| entry.expire_at_ms).map(to_rfc3339),
    }
}

fn limit_of(given: Option<u64>) -> Result<usize, Problem> {
    let limit = given.map_or(Some(HISTORY_VERSIONS_MAX), |given| usize::try_from(given).ok());
    limit.filter(|limit| (1..=HISTORY_VERSIONS_MAX).contains(limit)).ok_or_else(|| {
        let given = given.unwrap_or_default();
        Problem::bad_request(format!(
            "limit must be from 1 to {HISTORY_VERSIONS_MAX}: {given} given"
        ))
    })
}

/// The commit before which the page begins.
fn before_of(cursor: &str) -> Result<u64, Problem> {
    let stamp = Versionstamp::parse(cursor.as_bytes());
    stamp.map(Versionstamp::version).ok_or_else(|| {
        let given = shown(cursor);
        Problem::bad_request(format!(
            "cursor must be a versionstamp, 20 hexadecimal digits: received {given}"
        ))
    })
}

/// Says how a history is switched on to a client that does not open the database itself.
fn advised(problem: Problem) -> Problem {
    if problem.lacks() != Some(Capability::History) {
        return problem;
    }
    let text = "The database keeps no history. It begins when a program opens the database once with the \
                option history: openKv(path, { history: \"7d\" }). The server need not be started again.";
    Problem::new(StatusCode::UNPROCESSABLE_ENTITY, text)
}

/// Lists the versions of the entry of a key, the newest first.
#[utoipa::path(get, path = "/history", tag = "entries", operation_id = "listEntryVersions",
    params(
        ("key" = String, Query, description = "The key of the entry."),
        ("limit" = inline(Option<VersionsLimit>), Query, description = "Most versions: 1 to 100, by default 100."),
        ("cursor" = inline(Option<Stamp>), Query, description = "Where the page before this one ended: only older versions than this one."),
    ),
    responses(
        (status = 200, description = "A page of versions.", content(
            (VersionsBody<serde_json::Value> = "application/json"),
            (VersionsBody<TypedVersionValue> = "application/vnd.openkv+json"))),
        (status = 422, description = "The database keeps no history."),
    ))]
pub(super) async fn list(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, _) = request.into_parts();
    let query = Query::of(&head.uri, &["key", "limit", "cursor"])?;
    let form = wanted(&head, Form::OF_DOCUMENTS)?;
    let missing = || Problem::bad_request("The key is missing: give it as ?key=.");
    let key = key_of("", &query)?.ok_or_else(missing)?;
    let limit = limit_of(query.number("limit")?)?;
    let cursor = query.get("cursor").filter(|cursor| !cursor.is_empty());
    let before = cursor.map(before_of).transpose()?;
    let page = Page::read(&client, limit, |store, page| {
        store.versions(key, before, page, |page, version| {
            let bytes = version.entry.as_ref().map_or(0, |entry| entry.value.bytes.len());
            page.state.take(version, bytes)
        });
    });
    let cursor = |last: &EntryVersion| hex(Versionstamp::new(last.commit));
    page.await.map_err(advised)?.answer(form, cursor, |versions, cursor| VersionsBody {
        versions: versions.iter().map(version).collect(),
        has_more: cursor.is_some(),
        cursor,
    })
}
