//! Atomic operations: checks and mutations, which take effect together or not at all.

use axum::Extension;
use axum::extract::Request;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;
use uuid::Uuid;

use super::admit::Admitted;
use super::body::{json, json_body, key_in};
use super::envelope::hex;
use super::media::Form;
use super::problem::{Answered, Problem};
use super::write::{Done, commit, expiry, value_in};
use crate::codec::cbor;
use crate::interchange::typed_json;
use crate::model::{
    Arith, BACKOFF_DEFAULT_MS, Calculation, Check, EncodedValue, Encoding, Key, Limits, Message,
    Mutation, NAMED_BACKOFF_DEFAULT_MS, Numeric, Operand, Patch, Target, Time, Versionstamp,
    WriteParts,
};

/// An atomic operation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AtomicBody {
    /// Conditions, all of which must hold.
    #[serde(default)]
    checks: Vec<CheckBody>,
    /// Changes, in their order.
    #[serde(default)]
    mutations: Vec<MutationBody>,
}

/// A condition on one entry.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Check)]
pub(super) struct CheckBody {
    #[schema(value_type = Vec<serde_json::Value>)]
    key: Box<RawValue>,
    /// That of the entry; `null` if there must be none.
    versionstamp: Option<String>,
}

/// A change, or a message.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = Mutation)]
pub(super) struct MutationBody {
    #[serde(rename = "type")]
    kind: MutationType,
    /// Not of `enqueue`. Of `set`, the last part may be `{"type":"commitVersionstamp"}`, and any part
    /// `{"type":"uuidv7"}`: the commit fills it in.
    #[schema(value_type = Option<Vec<serde_json::Value>>)]
    key: Option<Box<RawValue>>,
    /// Not of `delete`. Of `sum`, `min` and `max` a number, or a typed bigint or `KvU64`; of `append`
    /// and `prepend` an array.
    #[schema(value_type = Option<serde_json::Value>)]
    value: Option<Box<RawValue>>,
    /// The entry expires in so many ms.
    expire_in: Option<u64>,
    /// Of `enqueue`: its queue.
    queue: Option<String>,
    /// Of `enqueue`: it is due in so many ms.
    delay: Option<u64>,
}

/// The kind of a change.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) enum MutationType {
    Set,
    Delete,
    Sum,
    Min,
    Max,
    Append,
    Prepend,
    Enqueue,
}

/// The outcome of an atomic operation.
#[derive(Serialize, ToSchema)]
#[schema(as = AtomicOutcome)]
pub(super) struct Outcome {
    /// Whether all checks held and everything happened.
    ok: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    versionstamp: Option<String>,
    /// The checks that did not hold, by index.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<Vec<usize>>,
    /// The UUIDs of the placeholders, in the order of the keys.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    uuids: Vec<String>,
}

/// Carries an atomic operation out.
#[utoipa::path(post, path = "/atomic", tag = "writes", operation_id = "atomic",
    request_body = AtomicBody,
    responses((status = 200, description = "Done, or refused by a check.", body = Outcome)))]
pub(super) async fn atomic(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let (form, asked) = json_body::<AtomicBody>(&client, &head, body).await?;
    let mut parts = WriteParts::default();
    for (at, check) in asked.checks.iter().enumerate() {
        let expected = check.versionstamp.as_ref().map(|text| {
            Versionstamp::parse(text.as_bytes()).ok_or_else(|| {
                let text = format!("checks[{at}].versionstamp must be 20 hexadecimal digits");
                Problem::bad_request(text)
            })
        });
        let key = key_in(&format!("checks[{at}].key"), &check.key)?;
        parts.checks.push(Check { key, expected: expected.transpose()? });
    }
    for (at, mutation) in asked.mutations.iter().enumerate() {
        push(&mut parts, mutation, form, at)?;
    }
    let (stamp, failed, resolved) = match commit(&client, parts).await? {
        Done::Committed(stamp, results) => (Some(stamp), None, results.resolved),
        Done::CheckFailed(failed) => (None, Some(failed), Vec::new()),
    };
    json(&Outcome {
        ok: stamp.is_some(),
        versionstamp: stamp.map(hex),
        failed,
        uuids: resolved.iter().map(|found| found.uuid.to_string()).collect(),
    })
}

/// Appends one mutation to a write.
fn push(
    parts: &mut WriteParts,
    asked: &MutationBody,
    form: Form,
    at: usize,
) -> Result<(), Problem> {
    let refused = |what: &str| Problem::bad_request(format!("mutations[{at}]{what}"));
    let raw = || asked.value.as_deref().ok_or_else(|| refused(".value is missing"));
    let value = || value_in(form, raw()?);
    let expiry = expiry(&format!("mutations[{at}].expireIn"), asked.expire_in)?;
    let is_message = asked.kind == MutationType::Enqueue;
    if !is_message && (asked.queue.is_some() || asked.delay.is_some()) {
        return Err(refused(": queue and delay are for the type enqueue"));
    }
    if is_message && asked.key.is_some() {
        return Err(refused(": a message has no key"));
    }
    let accepts_expiry = !is_message && asked.kind != MutationType::Delete;
    if expiry.is_some() && !accepts_expiry {
        return Err(refused(": expireIn is for types that store a value"));
    }
    let target = Target::Key(parts.mutations.len());
    let key = || {
        let raw = asked.key.as_deref().ok_or_else(|| refused(".key is missing"))?;
        let first = parts.patches.len() as u64;
        written_key(&format!("mutations[{at}].key"), raw, (target, first))
    };
    let plain_key = || {
        let written = key()?;
        match written.suffixed || !written.patches.is_empty() {
            true => Err(refused(".key: placeholders are for the type set")),
            false => Ok(written.key),
        }
    };
    let value_bytes_max = Limits::wide().value_bytes_max;
    match asked.kind {
        MutationType::Set => {
            let WrittenKey { key, suffixed, patches } = key()?;
            parts.patches.extend(patches);
            parts.mutations.push(Mutation::Set { key, suffixed, value: value()?, expiry });
        }
        MutationType::Delete => parts.mutations.push(Mutation::Delete { key: plain_key()? }),
        MutationType::Sum | MutationType::Min | MutationType::Max => {
            let op = match asked.kind {
                MutationType::Min => Arith::Min,
                MutationType::Max => Arith::Max,
                _ => Arith::Sum,
            };
            let key = plain_key()?;
            let operand = operand(raw()?, form)?;
            let refuse = || refused(".value must be a number, or a typed bigint or KvU64");
            parts.mutations.push(match operand.encoding {
                Encoding::Le64 if expiry.is_none() => Mutation::Arith { op, key, operand },
                _ => {
                    let operand = match (operand.as_le64(), cbor::number_of(&operand.bytes)) {
                        (Some(n), _) => Operand::U64(n),
                        (None, Some(Numeric::Number(n))) => Operand::Number(n),
                        (None, Some(Numeric::BigInt(n))) => Operand::BigInt(n),
                        (None, None) => return Err(refuse()),
                    };
                    let bounds = None;
                    let calculation = Calculation { op, operand, bounds, value_bytes_max };
                    Mutation::Calculate { key, calculation, expiry }
                }
            });
        }
        MutationType::Append | MutationType::Prepend => {
            let front = asked.kind == MutationType::Prepend;
            let EncodedValue { encoding, bytes: items } = value()?;
            if encoding != Encoding::Cbor || cbor::plain_items(&items).is_none() {
                return Err(refused(".value must be an array"));
            }
            let key = plain_key()?;
            parts.mutations.push(Mutation::Append { key, items, front, value_bytes_max, expiry });
        }
        MutationType::Enqueue => {
            let EncodedValue { encoding, bytes } = value()?;
            if encoding != Encoding::Cbor {
                return Err(refused(".value: a message is neither a Uint8Array nor a KvU64"));
            }
            let delay = asked.delay.map(i64::try_from).transpose();
            let delay = delay.map_err(|_| refused(".delay is too large"))?;
            let backoff_ms: Vec<u32> = match asked.queue.as_deref().unwrap_or_default() {
                "" => BACKOFF_DEFAULT_MS.into(),
                _ => NAMED_BACKOFF_DEFAULT_MS.into(),
            };
            parts.messages.push(Message {
                queue: asked.queue.clone().unwrap_or_default(),
                due: Time::After(delay.unwrap_or(0)),
                backoff_ms,
                value: bytes,
                ..Message::default()
            });
        }
    }
    Ok(())
}

/// The operand of arithmetic. In plain JSON a bigint and a `KvU64` are typed objects.
fn operand(raw: &RawValue, form: Form) -> Result<EncodedValue, Problem> {
    match raw.get().starts_with('{') {
        true => Ok(typed_json::parse(raw.get())?),
        false => value_in(form, raw),
    }
}

/// A key with placeholders.
struct WrittenKey {
    key: Key,
    /// Whether the commit appends its versionstamp.
    suffixed: bool,
    patches: Vec<Patch>,
}

/// A part that the commit fills in.
#[derive(Deserialize)]
#[serde(tag = "type", rename_all = "camelCase", deny_unknown_fields)]
enum Placeholder {
    CommitVersionstamp,
    Uuidv7,
}

/// `first`: the number of its first placeholder.
fn written_key(
    name: &str,
    raw: &RawValue,
    (target, first): (Target, u64),
) -> Result<WrittenKey, Problem> {
    let parts: Vec<&RawValue> = serde_json::from_str(raw.get())
        .map_err(|_| Problem::bad_request(format!("{name}: must be an array of parts")))?;
    let (mut texts, mut patches, mut suffixed) = (Vec::new(), Vec::new(), false);
    for (at, part) in parts.iter().enumerate() {
        match serde_json::from_str::<Placeholder>(part.get()) {
            Err(_) => texts.push(part.get().to_owned()),
            Ok(Placeholder::CommitVersionstamp) if at + 1 == parts.len() => suffixed = true,
            Ok(Placeholder::CommitVersionstamp) => {
                let text = format!("{name}: only the last part can be a versionstamp");
                return Err(Problem::bad_request(text));
            }
            Ok(Placeholder::Uuidv7) => {
                let before = array_key(name, &texts)?;
                // The text begins behind the tag of its part.
                let offset = before.len() + 1;
                let placeholder = first + patches.len() as u64;
                patches.push(Patch { target, offset, placeholder });
                texts.push(format!("\"{}\"", Uuid::nil()));
            }
        }
    }
    Ok(WrittenKey { key: array_key(name, &texts)?, suffixed, patches })
}

fn array_key(name: &str, texts: &[String]) -> Result<Key, Problem> {
    let text = format!("[{}]", texts.join(","));
    let raw = RawValue::from_string(text)
        .map_err(|error| Problem::bad_request(format!("{name}: {error}")))?;
    key_in(name, &raw)
}
