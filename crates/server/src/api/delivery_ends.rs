//! Reports of consumers about messages that they hold: acknowledgements, failures, lock renewals, results and progress.

use std::time::Duration;

use axum::Extension;
use axum::extract::Request;
use hyper::http::request::Parts;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::admit::Admitted;
use super::body::{Raw, json, json_body};
use super::duration::Ms;
use super::media::Form;
use super::problem::{Answered, Problem, shown};
use super::queue::lock_of;
use super::schema::{Delay, LockDuration, Number as NumberText};
use super::target::Query;
use super::write::value_in;
use crate::data::{Client, store_of};
use crate::pending::Pending;
use openkv_core::model::{
    Ask, EncodedValue, Encoding, JOB_ENTRY_BYTES_MAX, Limits, Outcome, Reason, Renewal, Settlement,
};

/// A delivery that is handled.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DeliveryEnd)]
pub(super) struct AckBody {
    #[schema(value_type = NumberText)]
    id: String,
    /// That of the delivery.
    #[schema(value_type = NumberText)]
    lock: String,
    /// What its handler returns, which is stored by the same commit if the message was enqueued with `keepResult`.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<serde_json::Value>)]
    result: Raw,
}

/// The progress of a delivery.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DeliveryProgress)]
pub(super) struct ProgressBody {
    #[schema(value_type = NumberText)]
    id: String,
    /// That of the delivery.
    #[schema(value_type = NumberText)]
    lock: String,
    /// How far its handler is.
    #[schema(value_type = serde_json::Value)]
    value: Box<RawValue>,
}

/// A member that is given, `null` too.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Raw, D::Error> {
    Box::<RawValue>::deserialize(deserializer).map(Some)
}

/// A delivery that has failed.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = DeliveryFailure)]
pub(super) struct NackBody {
    #[schema(value_type = NumberText)]
    id: String,
    /// That of the delivery.
    #[schema(value_type = NumberText)]
    lock: String,
    /// The retry comes after so long, instead of the backoff's next interval.
    #[schema(value_type = Option<Delay>, inline)]
    delay: Option<Ms>,
    /// Why it failed.
    error: Option<String>,
    /// `false`: no retry can help, so the message is a dead letter now. Not together with `delay`.
    retry: Option<bool>,
}

/// A delivery whose lock is extended.
#[derive(Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = DeliveryExtension)]
pub(super) struct ExtendBody {
    #[schema(value_type = NumberText)]
    id: String,
    /// That of the delivery.
    #[schema(value_type = NumberText)]
    lock: String,
    /// From now until the lock expires.
    #[schema(value_type = Option<LockDuration>, inline)]
    lock_duration: Option<Ms>,
}

/// The number and the lock of a delivery.
fn delivery(id: &str, lock: &str) -> Result<(i64, i64), Problem> {
    let number = |name: &str, text: &str| {
        let number = text.parse::<i64>();
        number.map_err(|_| {
            let given = shown(text);
            Problem::bad_request(format!("{name}: must be that of the delivery: received {given}"))
        })
    };
    Ok((number("id", id)?, number("lock", lock)?))
}

/// The answer of an end.
#[derive(Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = DeliveryEnded)]
pub(super) struct Ended {
    /// Whether the lock still held. If not, nothing is changed, and another consumer may have the message.
    ok: bool,
    /// `LockExpired` if not.
    #[serde(skip_serializing_if = "Option::is_none")]
    error_name: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<&'static str>,
}

impl Ended {
    fn of(held: bool) -> Self {
        let lost = "The lock of this delivery does not hold any more, so another consumer may have the message: \
                    nothing is changed or stored. Poll again, and extend the lock of a message that takes long.";
        Self {
            ok: held,
            error_name: (!held).then_some("LockExpired"),
            error: (!held).then_some(lost),
        }
    }
}

async fn end<B: DeserializeOwned>(
    client: &Client,
    (head, body): (Parts, crate::request::RequestBody),
    ask: impl FnOnce(Form, &B) -> Result<Ask, Problem>,
) -> Answered {
    Query::of(&head.uri, &[])?;
    let (form, body) = json_body::<B>(client, &head, body).await?;
    json(&Ended::of(settle(client, ask(form, &body)?).await?))
}

/// A result or a progress, in CBOR.
fn cbor_value(form: Form, name: &str, raw: &RawValue) -> Result<Vec<u8>, Problem> {
    let EncodedValue { encoding, bytes } = value_in(form, raw)?;
    if encoding != Encoding::Cbor {
        return Err(Problem::bad_request(format!(
            "{name}: neither a Uint8Array nor a KvU64: put it into an object"
        )));
    }
    let (most, given) = (Limits::wide().value_bytes_max - JOB_ENTRY_BYTES_MAX, bytes.len());
    if given > most {
        return Err(Problem::too_large(format!(
            "{name}: too large (max {most} bytes): {given} bytes given"
        )));
    }
    Ok(bytes)
}

/// Settles or extends a delivery. Returns whether its lock still held.
pub(crate) async fn settle(client: &Client, ask: Ask) -> Result<bool, Problem> {
    let (id, lock, extension, ends) = match &ask {
        Ask::Settle(Settlement { id, lock, outcome, .. }) => {
            (*id, *lock, None, *outcome != Outcome::Progressed)
        }
        Ask::Extend(Renewal { id, lock, lock_ms }) => {
            (*id, *lock, Some(Duration::from_millis(lock_ms.unsigned_abs())), false)
        }
    };
    let store = store_of(&client.database).await?;
    let ok = Pending::of(|reply| store.ask(ask, reply)).await?;
    // If the lock has expired, the message is no longer this client's.
    if ends || !ok {
        client.database.deliveries.ended(&store, (id, lock));
    } else if let Some(lock_ends_in) = extension {
        client.database.deliveries.extended((id, lock), lock_ends_in);
    }
    Ok(ok)
}

/// Ends a delivery: the message is handled. Its result is stored by the same commit.
#[utoipa::path(post, path = "/queue/ack", tag = "queues", operation_id = "ack",
    request_body = AckBody,
    responses((status = 200, description = "Whether the lock still held.", body = Ended)))]
pub(super) async fn ack(client: Extension<Admitted>, request: Request) -> Answered {
    end(&client, request.into_parts(), |form, body: &AckBody| {
        let (id, lock) = delivery(&body.id, &body.lock)?;
        let value =
            body.result.as_deref().map(|raw| cbor_value(form, "result", raw)).transpose()?;
        Ok(Ask::Settle(Settlement { value, ..Settlement::new(id, lock, Outcome::Completed) }))
    })
    .await
}

/// Stores how far the handler of a delivery is; the message stays locked. Only of queues with a name. Kept for as long as
/// `keepResult` of the message says, and without it for an hour.
#[utoipa::path(post, path = "/queue/progress", tag = "queues", operation_id = "tellProgress",
    request_body = ProgressBody,
    responses((status = 200, description = "Whether the lock still held.", body = Ended)))]
pub(super) async fn progress(client: Extension<Admitted>, request: Request) -> Answered {
    end(&client, request.into_parts(), |form, body: &ProgressBody| {
        let (id, lock) = delivery(&body.id, &body.lock)?;
        let value = Some(cbor_value(form, "value", &body.value)?);
        Ok(Ask::Settle(Settlement { value, ..Settlement::new(id, lock, Outcome::Progressed) }))
    })
    .await
}

/// Ends a delivery: the message has failed, and is retried or becomes a dead letter.
#[utoipa::path(post, path = "/queue/nack", tag = "queues", operation_id = "nack",
    request_body = NackBody,
    responses((status = 200, description = "Whether the lock still held.", body = Ended)))]
pub(super) async fn nack(client: Extension<Admitted>, request: Request) -> Answered {
    end(&client, request.into_parts(), |_, body: &NackBody| {
        let (id, lock) = delivery(&body.id, &body.lock)?;
        let most = Limits::wide().delay_ms_max as u64;
        let delay_ms = body.delay.map(|Ms(ms)| i64::try_from(ms.min(most)).unwrap_or(i64::MAX));
        let reason = body.error.as_deref().map(|text| Reason::new("Error", text));
        let outcome = match (body.retry, body.delay) {
            (Some(false), Some(_)) => {
                return Err(Problem::bad_request("retry: false not together with delay"));
            }
            (Some(false), None) => Outcome::Dead,
            (Some(true) | None, _) => Outcome::Failed,
        };
        Ok(Ask::Settle(Settlement { delay_ms, reason, ..Settlement::new(id, lock, outcome) }))
    })
    .await
}

/// Extends the lock of a delivery.
#[utoipa::path(post, path = "/queue/extend", tag = "queues", operation_id = "extend",
    request_body = ExtendBody,
    responses((status = 200, description = "Whether the lock still held.", body = Ended)))]
pub(super) async fn extend(client: Extension<Admitted>, request: Request) -> Answered {
    end(&client, request.into_parts(), |_, body: &ExtendBody| {
        let (id, lock) = delivery(&body.id, &body.lock)?;
        Ok(Ask::Extend(Renewal {
            id,
            lock,
            lock_ms: lock_of(body.lock_duration.map(|Ms(ms)| ms))?,
        }))
    })
    .await
}
