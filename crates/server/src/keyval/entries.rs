//! Entries: one, lists, pages, counts, batches, and their writes.

use axum::Extension;
use axum::extract::Request;
use hyper::StatusCode;
use serde::Serialize;

use super::answer::{entry_body, is_null, json};
use super::filter;
use super::json::{Members, bytes_of};
use super::keys::{Query, in_path, many_of_json, of_json, prefix_of_json};
use super::number::{expiry_of_text, limit_of_member, limit_of_text};
use crate::api::admit::Admitted;
use crate::api::document_writer::DocumentWriter;
use crate::api::entries::{Entry, Selection, entries, entry, page};
use crate::api::envelope::{answered, hex};
use crate::api::media::Form;
use crate::api::problem::{Answered, Problem};
use crate::api::range::Bounds;
use crate::api::schema::EntryBody;
use crate::api::write::{Done, commit};
use crate::clock::now_ms;
use crate::data::Client;
use crate::memory::Claim;
use openkv_core::interchange::plain_json;
use openkv_core::model::{Error, FRAMES_ANSWER_BYTES_MAX, Mutation, WriteParts};
use std::sync::Arc;

/// Up to `limit` entries, however large they are, with the memory that they take.
pub(super) async fn first(
    client: &Client,
    mut selection: Selection,
    limit: usize,
) -> Result<(Vec<Entry>, Vec<Arc<Claim>>), Problem> {
    let whole = selection.bounds.clone();
    let (mut all, mut claims, mut bytes) = (Vec::new(), Vec::new(), 0);
    loop {
        let found = page(client, &selection, limit - all.len()).await?;
        bytes += found.bytes;
        if bytes > FRAMES_ANSWER_BYTES_MAX {
            let max = FRAMES_ANSWER_BYTES_MAX;
            let text = format!(
                "The entries are too large for one answer (max {max} bytes): give a smaller limit"
            );
            return Err(Problem::too_large(text));
        }
        claims.push(found.claim);
        let has_more = found.entries.has_more;
        all.extend(found.entries.entries);
        match all.last().filter(|_| has_more && all.len() < limit) {
            Some(last) => {
                selection.bounds.resume(&whole.cursor(&last.key), selection.reverse)?;
            }
            None => return Ok((all, claims)),
        }
    }
}

async fn listed(client: &Client, selection: Selection, limit: usize) -> Answered {
    let (entries, claims) = first(client, selection, limit).await?;
    let bodies: Vec<_> = entries.iter().map(entry_body).collect();
    bare(&bodies, &claims)
}

/// The answer with an array of entries.
fn bare(bodies: &[EntryBody<'_>], claims: &[Arc<Claim>]) -> Answered {
    let body = DocumentWriter::of(Form::Json, 0, &bodies)?.finish();
    let claim = claims.last().ok_or_else(|| Error::internal("entries without memory"))?;
    answered(Form::Json, body, claim)
}

/// Lists entries.
pub(super) async fn list(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(&client, request.uri());
    let bounds = Bounds::within(query.key("prefix")?, query.key("start")?, query.key("end")?)?;
    let reverse = query.get("reverse") == Some("true");
    let limit = limit_of_text(query.get("limit"))?;
    listed(&client, Selection { reverse, ..Selection::all(bounds) }, limit).await
}

/// Lists entries, with conditions.
pub(super) async fn list_in_body(client: Extension<Admitted>, request: Request) -> Answered {
    let members = Members::of_body(&client, request.into_body()).await?;
    let key = |name| members.given(name).map(of_json).transpose();
    let prefix = members.given("prefix").map_or(Ok(None), prefix_of_json)?;
    let bounds = Bounds::within(prefix, key("start")?, key("end")?)?;
    let filter = filter::of_json(members.given("where"), now_ms())?;
    let selection =
        Selection { reverse: members.is_true("reverse"), filter, ..Selection::all(bounds) };
    listed(&client, selection, limit_of_member(&members)?).await
}

/// Reads the entries of keys.
pub(super) async fn batch(client: Extension<Admitted>, request: Request) -> Answered {
    let members = Members::of_body(&client, request.into_body()).await?;
    let keys = many_of_json(members.get("keys"))?;
    client.database.owe_operations(keys.len().saturating_sub(1) as u64);
    let found = entries(&client, &keys).await?;
    let bodies = keys.iter().zip(&found.entries).map(|(key, entry)| match entry {
        Some(entry) => entry_body(entry),
        None => EntryBody::absent(key.as_bytes()),
    });
    bare(&bodies.collect::<Vec<_>>(), &[found.claim])
}

/// Counts the entries below a prefix.
pub(super) async fn count(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(&client, request.uri());
    let bounds = Bounds::within(query.key("prefix")?, None, None)?;
    let selection = Selection { keys_only: true, ..Selection::all(bounds) };
    let count = crate::api::entries::count(&client, &selection).await?;
    Ok(json(&serde_json::json!({ "count": count }))?)
}

/// A page of a list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page<'e> {
    entries: Vec<EntryBody<'e>>,
    cursor: Option<String>,
    has_more: bool,
}

/// Lists entries in pages.
pub(super) async fn paginate(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(&client, request.uri());
    let whole = Bounds::within(query.key("prefix")?, None, None)?;
    let reverse = query.get("reverse") == Some("true");
    let mut bounds = whole.clone();
    if let Some(cursor) = query.get("cursor") {
        bounds.resume(cursor, reverse)?;
    }
    let limit = limit_of_text(query.get("limit"))?;
    let found = page(&client, &Selection { reverse, ..Selection::all(bounds) }, limit).await?;
    let entries = &found.entries.entries;
    let last = entries.last().filter(|_| found.entries.has_more);
    let cursor = last.map(|entry| whole.cursor(&entry.key));
    let has_more = cursor.is_some();
    let body = Page { entries: entries.iter().map(entry_body).collect(), cursor, has_more };
    answered(Form::Json, DocumentWriter::of(Form::Json, 0, &body)?.finish(), &found.claim)
}

/// Reads an entry.
pub(super) async fn get(client: Extension<Admitted>, request: Request) -> Answered {
    let key = in_path(&client, request.uri())?;
    let found = entry(&client, &key).await?;
    let Some(entry) = found.entries.filter(|entry| !is_null(entry)) else {
        return Err(Problem::new(StatusCode::NOT_FOUND, "Key not found"));
    };
    let body = DocumentWriter::of(Form::Json, 0, &entry_body(&entry))?.finish();
    answered(Form::Json, body, &found.claim)
}

/// Writes an entry.
pub(super) async fn put(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let query = Query::of(&client, &head.uri);
    let key = in_path(&client, &head.uri)?;
    let expiry = expiry_of_text(query.get("expiresIn"))?;
    let body = bytes_of(&client, body).await?;
    let text =
        std::str::from_utf8(&body).map_err(|_| Problem::bad_request("The body is not UTF-8."))?;
    let value = plain_json::parse(text)?;
    let mutations = vec![Mutation::Set { key, suffixed: false, value, expiry }];
    match commit(&client, WriteParts { mutations, ..WriteParts::default() }).await? {
        Done::Committed(stamp, _) => {
            Ok(json(&serde_json::json!({ "ok": true, "versionstamp": hex(stamp) }))?)
        }
        Done::CheckFailed(_) => Err(Error::internal("a check of a write without checks").into()),
    }
}
