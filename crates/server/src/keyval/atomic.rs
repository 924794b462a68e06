//! Atomic operations.
//!
//! A sum of a number, and an append to an array, are mutations of the store. What those refuse, because the
//! entry is no number or no array, or because a number would not hold the result, is computed here, and committed if
//! the entries have not changed meanwhile.

use axum::Extension;
use axum::extract::Request;
use hyper::StatusCode;
use serde_json::value::RawValue;

use super::answer::json;
use super::arithmetic::{Change, Computed};
use super::bigint::operand;
use super::json::{Members, Tree};
use super::keys::{new_key_of_json, of_json};
use super::number::expiry_of_member;
use crate::api::admit::Admitted;
use crate::api::entries::entries;
use crate::api::envelope::hex;
use crate::api::problem::{Answered, Problem};
use crate::api::write::{Done, commit};
use crate::clock::now_ms;
use crate::data::Client;
use openkv_core::interchange::plain_json;
use openkv_core::model::{
    Arith, Check, EncodedValue, KEYVAL_TRIES_MAX, Key, Kind, Mutation, Versionstamp, WriteParts,
};

/// The checks and changes of an operation; `None` for a check that cannot hold.
struct Operation {
    checks: Vec<Option<Check>>,
    changes: Vec<Change>,
}

/// Carries an atomic operation out.
pub(super) async fn atomic(client: Extension<Admitted>, request: Request) -> Answered {
    let members = Members::of_body(&client, request.into_body()).await?;
    let operation = operation(&members)?;
    let checks: Option<Vec<Check>> = operation.checks.into_iter().collect();
    let stamp = match checks {
        Some(checks) => committed(&client, &checks, &operation.changes).await?,
        None => None,
    };
    Ok(match stamp {
        Some(stamp) => json(&serde_json::json!({ "ok": true, "versionstamp": hex(stamp) }))?,
        None => json(&serde_json::json!({ "ok": false }))?,
    })
}

fn operation(members: &Members) -> Result<Operation, Problem> {
    let mut operation = Operation { checks: Vec::new(), changes: Vec::new() };
    let array = |name: &str| match members.given(name) {
        None => Ok(Vec::new()),
        Some(_) => members
            .items(name)
            .ok_or_else(|| Problem::bad_request(format!("{name} must be an array"))),
    };
    for (at, raw) in array("checks")?.into_iter().enumerate() {
        let check = Members::of_item(&format!("checks[{at}]"), raw)?;
        let key = key_of(&check, &format!("checks[{at}]"))?;
        let expected = match check.given("versionstamp") {
            None => Some(None),
            // A versionstamp of KeyVal, or another text, is that of no entry.
            Some(_) => check
                .text("versionstamp")
                .and_then(|text| Versionstamp::parse(text.as_bytes()))
                .map(Some),
        };
        operation.checks.push(expected.map(|expected| Check { key, expected }));
    }
    for (at, raw) in array("mutations")?.into_iter().enumerate() {
        let mutation = Members::of_item(&format!("mutations[{at}]"), raw)?;
        operation.changes.extend(change_of(&mutation, &format!("mutations[{at}]"))?);
    }
    Ok(operation)
}

fn key_of(members: &Members, place: &str) -> Result<Key, Problem> {
    let missing = || Problem::bad_request(format!("{place}.key is missing"));
    of_json(members.get("key").ok_or_else(missing)?)
}

/// The change of a mutation; none for a type that KeyVal does not have, which it ignores.
fn change_of(mutation: &Members, place: &str) -> Result<Option<Change>, Problem> {
    let kind = mutation.text("type").unwrap_or_default();
    let missing = || Problem::bad_request(format!("{place}.key is missing"));
    let raw = mutation.get("key").ok_or_else(missing)?;
    if kind == "set" {
        let (key, suffixed) = new_key_of_json(raw)?;
        // JSON leaves out a value that is undefined.
        let value =
            mutation.get("value").map_or_else(|| Ok(plain_json::parse("null")?), value_of)?;
        let expiry = expiry_of_member(mutation)?;
        return Ok(Some(Change::Set { key, suffixed, value, expiry }));
    }
    let key = of_json(raw)?;
    let sum = |op, key| {
        let operand = operand(&format!("{kind} value"), mutation.get("value"))?;
        Ok(Some(Change::Sum { op, key, operand }))
    };
    let append = |front, key| {
        let refused = || Problem::bad_request(format!("{kind} value must be an array"));
        let raw = mutation.get("value").filter(|raw| raw.get().starts_with('['));
        let items = value_of(raw.ok_or_else(refused)?)?.bytes;
        Ok(Some(Change::Append { key, items, front }))
    };
    match kind.as_str() {
        "delete" => Ok(Some(Change::Delete { key })),
        "sum" => sum(Arith::Sum, key),
        "min" => sum(Arith::Min, key),
        "max" => sum(Arith::Max, key),
        "append" => append(false, key),
        "prepend" => append(true, key),
        _ => Ok(None),
    }
}

/// A value, in which the client's placeholder of the present is the time of the request in ms.
fn value_of(raw: &RawValue) -> Result<EncodedValue, Problem> {
    if !raw.get().contains("\"$now\"") {
        return Ok(plain_json::parse(raw.get())?);
    }
    Ok(plain_json::parse(&Tree::of("value", raw)?.at_time(now_ms()))?)
}

/// Commits an operation; `None` if a check does not hold.
async fn committed(
    client: &Client,
    checks: &[Check],
    changes: &[Change],
) -> Result<Option<Versionstamp>, Problem> {
    let computed: Option<Vec<Mutation>> = changes.iter().map(Computed::by_the_store).collect();
    if let Some(mutations) = computed {
        let parts = WriteParts { checks: checks.to_vec(), mutations, ..WriteParts::default() };
        match commit(client, parts).await {
            Ok(Done::Committed(stamp, _)) => return Ok(Some(stamp)),
            Ok(Done::CheckFailed(_)) => return Ok(None),
            Err(problem) => {
                let kinds = [Some(Kind::Invalid), Some(Kind::Range)];
                let depends_on_entries = changes
                    .iter()
                    .any(|change| matches!(change, Change::Sum { .. } | Change::Append { .. }));
                if !depends_on_entries || !kinds.contains(&problem.kind()) {
                    return Err(problem);
                }
            }
        }
    }
    for _ in 0..KEYVAL_TRIES_MAX {
        let computed = computed_here(client, changes).await?;
        let all = checks.iter().cloned().chain(computed.checks).collect();
        let parts =
            WriteParts { checks: all, mutations: computed.mutations, ..WriteParts::default() };
        match commit(client, parts).await? {
            Done::Committed(stamp, _) => return Ok(Some(stamp)),
            Done::CheckFailed(failed) if failed.iter().any(|at| *at < checks.len()) => {
                return Ok(None);
            }
            Done::CheckFailed(_) => {}
        }
    }
    let text = "Other writers keep changing the entries: try again.";
    Err(Problem::new(StatusCode::SERVICE_UNAVAILABLE, text))
}

async fn computed_here(client: &Client, changes: &[Change]) -> Result<Computed, Problem> {
    let mut keys: Vec<Key> = Vec::new();
    for change in changes {
        if let Change::Sum { key, .. } | Change::Append { key, .. } = change
            && !keys.contains(key)
        {
            keys.push(key.clone());
        }
    }
    let found = entries(client, &keys).await?;
    let mut computed = Computed::new(keys.into_iter().zip(found.entries));
    for change in changes {
        computed.push(change)?;
    }
    Ok(computed)
}
