//! The newest state of keys: as events, and by polling.

use axum::Extension;
use axum::extract::Request;
use hyper::header::HeaderMap;
use serde::Serialize;

use super::answer::entry_body;
use super::keys::Query;
use crate::api::admit::Admitted;
use crate::api::document_writer::DocumentWriter;
use crate::api::entries::entries;
use crate::api::envelope::{answered, hex};
use crate::api::media::Form;
use crate::api::problem::{Answered, Problem};
use crate::api::schema::EntryBody;
use crate::api::watch_keys;

/// The `id` of the last event that the client has received.
pub(super) fn last_id(headers: &HeaderMap) -> Option<&str> {
    let id = headers.get("last-event-id").and_then(|id| id.to_str().ok());
    id.filter(|id| !id.is_empty())
}

fn missing() -> Problem {
    Problem::bad_request("Missing 'keys' query parameter")
}

/// Follows the newest state of keys.
pub(super) async fn follow(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(&client, request.uri());
    let keys = watch_keys::checked(query.keys("keys")?.ok_or_else(missing)?)?;
    let initial = query.get("initial") != Some("false");
    let last = last_id(request.headers()).and_then(|id| watch_keys::seen_until(id, &keys));
    watch_keys::follow(&client, keys, initial, last, Form::Json).await
}

/// The states of keys.
#[derive(Serialize)]
struct States<'e> {
    entries: Vec<EntryBody<'e>>,
    /// Empty for a key without an entry.
    versionstamps: Vec<String>,
}

/// Reads the states of keys that differ from those of the client.
pub(super) async fn poll(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(&client, request.uri());
    let keys = watch_keys::checked(query.keys("keys")?.ok_or_else(missing)?)?;
    let known: Vec<&str> =
        query.get("versionstamps").unwrap_or_default().split(',').map(str::trim).collect();
    client.database.owe_operations(keys.len().saturating_sub(1) as u64);
    let found = entries(&client, &keys).await?;
    let mut states = States { entries: Vec::new(), versionstamps: Vec::new() };
    for (at, (key, entry)) in keys.iter().zip(&found.entries).enumerate() {
        let stamp = entry.as_ref().map(|entry| hex(entry.stamp)).unwrap_or_default();
        if known.get(at).copied().unwrap_or_default() != stamp {
            let absent = || EntryBody::absent(key.as_bytes());
            states.entries.push(entry.as_ref().map_or_else(absent, entry_body));
        }
        states.versionstamps.push(stamp);
    }
    answered(Form::Json, DocumentWriter::of(Form::Json, 0, &states)?.finish(), &found.claim)
}
