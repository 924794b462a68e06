//! Atomic operations: checks and mutations, which take effect together or not at all.

use axum::Extension;
use axum::extract::Request;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::{json, json_body, key_in};
use super::duration::Ms;
use super::envelope::hex;
use super::media::Form;
use super::placeholders::{Uuids, WrittenKey};
use super::problem::{Answered, Problem, shown};
use super::queue::{EnqueueBody, message_of};
use super::schema::{
    BackoffTime, Delay, GroupName, HandlerTime, KeptTime, Key as KeySchema, Lifetime, NewKey,
    Priority, QueueName, Retention, Stamp,
};
use super::write::{Done, commit, expiry, value_in};
use crate::request::Object;
use crate::trace_context;
use openkv_core::codec::message_context::value_of;
use openkv_core::codec::{cbor, key};
use openkv_core::interchange::typed_json;
use openkv_core::model::{
    Arith, Calculation, Check, EncodedValue, Encoding, Limits, Message, Mutation, Numeric, Operand,
    Results, Target, Versionstamp, WriteParts,
};

/// An atomic operation.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct AtomicBody {
    /// Conditions, all of which must hold.
    #[serde(default)]
    #[schema(value_type = Vec<CheckBody>)]
    checks: Vec<Object<CheckBody>>,
    /// Changes, in their order.
    #[serde(default)]
    #[schema(value_type = Vec<MutationBody>)]
    mutations: Vec<Object<MutationBody>>,
}

/// A condition on one entry.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = Check)]
pub(super) struct CheckBody {
    #[schema(value_type = KeySchema)]
    key: Box<RawValue>,
    /// That of the entry; `null` if there must be none.
    #[schema(value_type = Option<Stamp>)]
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
    /// `{"type":"uuidv7"}`: the commit fills it in. With a `value`, which is a name, it is the same UUID as all others of that name.
    #[schema(value_type = Option<NewKey>)]
    key: Option<Box<RawValue>>,
    /// Not of `delete`. In the typed form `{"type":"uuidv7"}` is a string that the commit fills in. Of `sum`, `min` and `max` a number, or a typed bigint or `KvU64`; of `append`
    /// and `prepend` an array.
    #[schema(value_type = Option<serde_json::Value>)]
    value: Option<Box<RawValue>>,
    /// The entry expires after so long: ms, or a text like `1h`.
    #[schema(value_type = Option<Lifetime>, inline)]
    expire_in: Option<Ms>,
    /// Of `enqueue`: its queue.
    #[schema(value_type = Option<QueueName>, inline)]
    queue: Option<String>,
    /// Of `enqueue`, as the following ones: it is due after so long.
    #[schema(value_type = Option<Delay>, inline)]
    delay: Option<Ms>,
    /// When it is due, in ms since the epoch.
    at: Option<i64>,
    /// 0 to 9; the highest is delivered first.
    #[schema(value_type = Option<Priority>, inline)]
    priority: Option<u8>,
    /// The queue holds at most one message with this key.
    deduplication_key: Option<String>,
    /// With `enqueue`: what happens if that key is taken.
    deduplication: Option<String>,
    /// Its group, which takes turns with the other ones of the queue.
    #[schema(value_type = Option<GroupName>, inline)]
    group: Option<String>,
    /// Waiting times before the retries.
    #[schema(value_type = Option<Vec<BackoffTime>>)]
    backoff_schedule: Option<Vec<Ms>>,
    /// How long it is kept when it is dead.
    #[schema(value_type = Option<Retention>, inline)]
    dead_retention: Option<Ms>,
    /// How long its result and the entries about it are kept.
    #[schema(value_type = Option<KeptTime>, inline)]
    keep_result: Option<Ms>,
    /// The longest time of a handler of `listen`.
    #[schema(value_type = Option<HandlerTime>, inline)]
    timeout: Option<Ms>,
    /// The keys that get its value when it dies, at most 10.
    #[schema(value_type = Option<Vec<Vec<serde_json::Value>>>)]
    keys_if_undelivered: Option<Vec<Box<RawValue>>>,
}

impl MutationBody {
    /// Whether it has a member that only messages have.
    fn names_message(&self) -> bool {
        self.queue.is_some()
            || self.delay.is_some()
            || self.at.is_some()
            || self.priority.is_some()
            || self.deduplication_key.is_some()
            || self.deduplication.is_some()
            || self.backoff_schedule.is_some()
            || self.dead_retention.is_some()
            || self.keep_result.is_some()
            || self.group.is_some()
            || self.timeout.is_some()
            || self.keys_if_undelivered.is_some()
    }
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
    #[schema(value_type = Option<Stamp>)]
    versionstamp: Option<String>,
    /// The checks that did not hold, by index.
    #[serde(skip_serializing_if = "Option::is_none")]
    failed: Option<Vec<usize>>,
    /// The UUIDs of the placeholders, in the order in which they first occur; in a mutation the key comes before the value.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    uuids: Vec<String>,
    /// The messages, in their order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    messages: Vec<MessageOutcome>,
}

/// A message of an atomic operation.
#[derive(Serialize, ToSchema)]
pub(super) struct MessageOutcome {
    /// The number of the message, or of the earlier one with its deduplication key.
    id: Option<String>,
    deduplicated: bool,
}

/// Carries an atomic operation out.
#[utoipa::path(post, path = "/atomic", tag = "writes", operation_id = "atomic",
    request_body = AtomicBody,
    responses((status = 200, description = "Done, or refused by a check.", body = Outcome)))]
pub(super) async fn atomic(client: Extension<Admitted>, request: Request) -> Answered {
    let (head, body) = request.into_parts();
    let (form, operation) = json_body::<AtomicBody>(&client, &head, body).await?;
    let (mut parts, mut uuids) = (WriteParts::default(), Uuids::new()?);
    for (at, Object(check)) in operation.checks.iter().enumerate() {
        let key = key_in(&format!("checks[{at}].key"), &check.key)?;
        let expected = check.versionstamp.as_ref().map(|text| {
            Versionstamp::parse(text.as_bytes()).ok_or_else(|| {
                Problem::bad_request(format!(
                    "Invalid check: checks[{at}].versionstamp (key {}) must be 20 hexadecimal digits, or null for \
                     no entry: received {}",
                    key::print(key.as_bytes()),
                    shown(text),
                ))
            })
        });
        parts.checks.push(Check { key, expected: expected.transpose()? });
    }
    for (at, Object(mutation)) in operation.mutations.into_iter().enumerate() {
        push((&mut parts, &mut uuids), mutation, form, at)?;
    }
    trace_context::carry(&head.headers, &mut parts);
    let (stamp, failed, results) = match commit(&client, parts).await? {
        Done::Committed(stamp, results) => (Some(stamp), None, results),
        Done::CheckFailed(failed) => (None, Some(failed), Results::default()),
    };
    let messages = results.enqueued.iter().map(|message| MessageOutcome {
        id: message.id.map(|id| id.to_string()),
        deduplicated: message.deduplicated,
    });
    json(&Outcome {
        ok: stamp.is_some(),
        versionstamp: stamp.map(hex),
        failed,
        uuids: results.resolved.iter().map(|found| found.uuid.to_string()).collect(),
        messages: messages.collect(),
    })
}

/// Appends one mutation to a write.
fn push(
    (parts, uuids): (&mut WriteParts, &mut Uuids),
    mutation: MutationBody,
    form: Form,
    at: usize,
) -> Result<(), Problem> {
    let refused = |what: &str| Problem::bad_request(format!("mutations[{at}]{what}"));
    let raw = || mutation.value.as_deref().ok_or_else(|| refused(".value is missing"));
    let count = parts.mutations.len();
    let expiry = expiry(&format!("mutations[{at}].expireIn"), mutation.expire_in.map(|Ms(ms)| ms))?;
    let is_message = mutation.kind == MutationType::Enqueue;
    if !is_message && mutation.names_message() {
        return Err(refused(": queue and the options of a message are for the type enqueue"));
    }
    if is_message && mutation.key.is_some() {
        return Err(refused(": a message has no key"));
    }
    let accepts_expiry = !is_message && mutation.kind != MutationType::Delete;
    if expiry.is_some() && !accepts_expiry {
        return Err(refused(": expireIn is for types that store a value"));
    }
    let key = |uuids: &mut Uuids| {
        let raw = mutation.key.as_deref().ok_or_else(|| refused(".key is missing"))?;
        uuids.key(&format!("mutations[{at}].key"), raw, Target::Key(count))
    };
    let plain_key = |uuids: &mut Uuids| {
        let written = key(uuids)?;
        match written.suffixed || !written.patches.is_empty() {
            true => Err(refused(".key: placeholders are for the type set")),
            false => Ok(written.key),
        }
    };
    let value_bytes_max = Limits::wide().value_bytes_max;
    match mutation.kind {
        MutationType::Set => {
            let WrittenKey { key, suffixed, patches } = key(uuids)?;
            parts.patches.extend(patches);
            let (value, patches) = uuids.value(form, raw()?, Target::Value(count))?;
            parts.patches.extend(patches);
            parts.mutations.push(Mutation::Set { key, suffixed, value, expiry });
        }
        MutationType::Delete => parts.mutations.push(Mutation::Delete { key: plain_key(uuids)? }),
        MutationType::Sum | MutationType::Min | MutationType::Max => {
            let op = match mutation.kind {
                MutationType::Min => Arith::Min,
                MutationType::Max => Arith::Max,
                _ => Arith::Sum,
            };
            let key = plain_key(uuids)?;
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
            let front = mutation.kind == MutationType::Prepend;
            let (items, patches) = uuids.value(form, raw()?, Target::Value(count))?;
            let EncodedValue { encoding, bytes: items } = items;
            if encoding != Encoding::Cbor || cbor::plain_items(&cbor::unpacked(&items)).is_none() {
                return Err(refused(".value must be an array"));
            }
            let key = plain_key(uuids)?;
            parts.patches.extend(patches);
            parts.mutations.push(Mutation::Append { key, items, front, value_bytes_max, expiry });
        }
        MutationType::Enqueue => {
            let target = Target::Message(parts.messages.len());
            let value = uuids.value(form, raw()?, target).map(|(value, patches)| {
                parts.patches.extend(patches);
                value
            });
            let message =
                message(mutation, value).map_err(|fault| refused(&format!(".{fault}")))?;
            // The places of UUIDs count from the start of the message.
            let context_len = message.value.len() - value_of(&message.value).len();
            let own = parts.patches.iter_mut().filter(|patch| patch.target == target);
            own.for_each(|patch| patch.offset += context_len);
            parts.messages.push(message);
        }
    }
    Ok(())
}

/// The message of a mutation that has a value.
fn message(
    mutation: MutationBody,
    stored: Result<EncodedValue, Problem>,
) -> Result<Message, String> {
    let MutationBody { value, queue, delay, at, priority, deduplication_key, .. } = mutation;
    let body = EnqueueBody {
        value: value.unwrap_or_default(),
        delay,
        at,
        priority,
        deduplication_key,
        deduplication: mutation.deduplication,
        backoff_schedule: mutation.backoff_schedule,
        dead_retention: mutation.dead_retention,
        keep_result: mutation.keep_result,
        keys_if_undelivered: mutation.keys_if_undelivered,
        timeout: mutation.timeout,
        group: mutation.group,
    };
    message_of(queue.unwrap_or_default(), stored, body)
}

/// The operand of arithmetic. In plain JSON a bigint and a `KvU64` are typed objects.
fn operand(raw: &RawValue, form: Form) -> Result<EncodedValue, Problem> {
    match raw.get().starts_with('{') {
        true => Ok(typed_json::parse(raw.get())?),
        false => value_in(form, raw),
    }
}
