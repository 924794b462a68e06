//! Changes below prefixes: as events, and by polling.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::Request;
use serde::Serialize;

use super::answer::entry_body;
use super::entries::first;
use super::keys::{Query, list, of_text, to_text};
use super::number::limit_of_text;
use super::watch::last_id;
use crate::api::admit::Admitted;
use crate::api::document_writer::DocumentWriter;
use crate::api::entries::Selection;
use crate::api::entries::{Entry, entries};
use crate::api::envelope::{answered, hex};
use crate::api::media::Form;
use crate::api::problem::{Answered, Problem};
use crate::api::range::Bounds;
use crate::api::schema::EntryBody;
use crate::api::watch_prefix::{self, Follow, Reports};
use openkv_core::model::{Error, HTTP_BATCH_KEYS_MAX, Key, Versionstamp};

/// The ranges of a request, in the order of their keys and without overlaps. `prefix` is about the keys below it,
/// `prefixes` are keys with all below them, as KeyVal's client means it.
fn ranges_of(query: &Query) -> Result<Vec<Bounds>, Problem> {
    let mut ranges = Vec::new();
    if let Some(prefix) = query.key("prefix")? {
        ranges.push(Bounds::within(Some(prefix), None, None)?);
    } else {
        for key in query.keys("prefixes")?.unwrap_or_default() {
            let (start, end) = Bounds::of_key_and_below(&key);
            ranges.push(Bounds::within(None, Some(start), Some(end))?);
        }
    }
    if ranges.is_empty() {
        return Err(Problem::bad_request("Missing 'prefix' query parameter"));
    }
    if ranges.len() > HTTP_BATCH_KEYS_MAX {
        let (count, max) = (ranges.len(), HTTP_BATCH_KEYS_MAX);
        return Err(Problem::bad_request(format!("Too many prefixes: {count} (max {max})")));
    }
    ranges.sort_by(|a, b| a.start.cmp(&b.start));
    let mut apart: Vec<Bounds> = Vec::new();
    for range in ranges {
        // Two of them overlap only if one is within the other.
        if apart.last().is_none_or(|last| last.end <= range.start) {
            apart.push(range);
        }
    }
    Ok(apart)
}

/// Follows the changes below prefixes.
pub(super) async fn follow(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(&client, request.uri());
    let ranges = ranges_of(&query)?;
    let limit = limit_of_text(query.get("limit"))?;
    let initial = query.get("initial") != Some("false");
    let since = last_id(request.headers()).and_then(|id| Versionstamp::parse(id.as_bytes()));
    let since = since.map(Versionstamp::version);
    let (form, reports) = (Form::Json, Reports::Values);
    watch_prefix::follow(&client, Follow { ranges, since, initial, limit, form, reports }).await
}

/// The entries that have changed, and all states as one text.
#[derive(Serialize)]
struct States<'e> {
    entries: Vec<EntryBody<'e>>,
    /// `a/1:V,a/2:V`
    versionstamps: String,
}

/// Reads the entries below prefixes that differ from those of the client.
pub(super) async fn poll(client: Extension<Admitted>, request: Request) -> Answered {
    let query = Query::of(&client, request.uri());
    let (ranges, rules) = (ranges_of(&query)?, query.rules());
    let limit = limit_of_text(query.get("limit"))?;
    let mut known: BTreeMap<&str, &str> = BTreeMap::new();
    for pair in list(query.get("versionstamps").unwrap_or_default()) {
        known.extend(
            pair.rsplit_once(':').filter(|(key, stamp)| !key.is_empty() && !stamp.is_empty()),
        );
    }
    let (mut found, mut claims): (Vec<Entry>, Vec<_>) = (Vec::new(), Vec::new());
    for range in ranges {
        if found.len() < limit {
            let (more, held) = first(&client, Selection::all(range), limit - found.len()).await?;
            found.extend(more);
            claims.extend(held);
        }
    }
    let texts: Vec<String> =
        found.iter().map(|entry| to_text(&entry.key, rules)).collect::<Result<_, _>>()?;
    // An entry that the client knows may be behind the limit by now.
    let gone: Vec<Key> = known
        .keys()
        .filter(|text| !texts.iter().any(|found| found == *text))
        .filter_map(|text| of_text(text, rules))
        .take(HTTP_BATCH_KEYS_MAX)
        .collect();
    let (mut bodies, mut states) = (Vec::new(), Vec::new());
    for (entry, text) in found.iter().zip(&texts) {
        let stamp = hex(entry.stamp);
        if known.get(text.as_str()) != Some(&stamp.as_str()) {
            bodies.push(entry_body(entry));
        }
        states.push(format!("{text}:{stamp}"));
    }
    let behind = match gone.is_empty() {
        true => None,
        false => Some(entries(&client, &gone).await?),
    };
    if let Some(behind) = &behind {
        for (key, entry) in gone.iter().zip(&behind.entries) {
            match entry {
                None => bodies.push(EntryBody::absent(key.as_bytes())),
                Some(entry) => {
                    let (text, stamp) = (to_text(&entry.key, rules)?, hex(entry.stamp));
                    if known.get(text.as_str()) != Some(&stamp.as_str()) {
                        bodies.push(entry_body(entry));
                    }
                    states.push(format!("{text}:{stamp}"));
                }
            }
        }
    }
    let states = States { entries: bodies, versionstamps: states.join(",") };
    let claim = claims.last().ok_or_else(|| Error::internal("entries without memory"))?;
    answered(Form::Json, DocumentWriter::of(Form::Json, 0, &states)?.finish(), claim)
}
