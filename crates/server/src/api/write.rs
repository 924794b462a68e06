//! Writes of the HTTP API: a value out of a body, quotas, the commit.

use hyper::StatusCode;
use serde_json::value::RawValue;

use super::media::Form;
use super::problem::Problem;
use crate::clock::now_ms;
use crate::data::{Client, decided, has_room_for};
use openkv_core::codec::cbor;
use openkv_core::index::not_unique;
use openkv_core::interchange::{plain_json, typed_json};
use openkv_core::model::{
    AtomicWrite, Decision, EncodedValue, Encoding, Error, Limits, Node, Result, Results,
    TIME_MS_MAX, Time, Versionstamp, ViewClass, WriteParts,
};
use openkv_store::call::validate_untrusted;

/// The value of a body of one value.
pub(super) fn value_of(form: Form, body: &[u8]) -> Result<EncodedValue, Problem> {
    match form {
        Form::Json | Form::Typed => {
            let text = std::str::from_utf8(body)
                .map_err(|_| Problem::bad_request("The body is not UTF-8."))?;
            Ok(parsed(form, text)?)
        }
        Form::Cbor => of_cbor(body),
        Form::Bytes => Ok(EncodedValue { encoding: Encoding::Bytes, bytes: body.to_vec() }),
    }
}

/// The value of a member of a JSON body.
pub(super) fn value_in(form: Form, raw: &RawValue) -> Result<EncodedValue, Problem> {
    Ok(parsed(form, raw.get())?)
}

fn parsed(form: Form, text: &str) -> Result<EncodedValue> {
    match form {
        Form::Typed => typed_json::parse(text),
        _ => plain_json::parse(text),
    }
}

/// A single `Uint8Array` is stored as its bytes.
fn of_cbor(body: &[u8]) -> Result<EncodedValue, Problem> {
    let value = cbor::decode(body).map_err(|why| {
        Problem::new(StatusCode::BAD_REQUEST, format!("The value cannot be read: {why}"))
    })?;
    match value.node(value.root_id()) {
        Some(Node::View(ViewClass::Uint8, bytes)) => {
            Ok(EncodedValue { encoding: Encoding::Bytes, bytes: bytes.to_vec() })
        }
        _ => Ok(EncodedValue { encoding: Encoding::Cbor, bytes: body.to_vec() }),
    }
}

/// The expiry of an entry that expires in so many ms.
pub(crate) fn expiry(name: &str, ms: Option<u64>) -> Result<Option<Time>, Problem> {
    let max = TIME_MS_MAX;
    let time = |ms: u64| i64::try_from(ms).ok().filter(|ms| (1..=max).contains(ms));
    match ms {
        None => Ok(None),
        Some(ms) => time(ms).map(|ms| Some(Time::After(ms))).ok_or_else(|| {
            Problem::bad_request(format!("{name} must be from 1 to {max}: {ms} given"))
        }),
    }
}

/// The outcome of a write.
pub(crate) enum Done {
    Committed(Versionstamp, Results),
    /// By index: the checks that did not hold.
    CheckFailed(Vec<usize>),
}

/// Commits a write, within the quotas.
pub(crate) async fn commit(client: &Client, parts: WriteParts) -> Result<Done, Problem> {
    let (database, limits, now_ms) = (&client.database, Limits::wide(), now_ms());
    let write = validate_untrusted(AtomicWrite::new(parts, &limits)?, &limits, now_ms)?;
    has_room_for(database, &write).await?;
    match decided(database, write).await? {
        Decision::Rejected(error) => Err(error.into()),
        Decision::Deleted(_) => Err(Error::internal("a deletion as the answer of a write").into()),
        Decision::Committed(stamp) => Ok(Done::Committed(stamp, Results::default())),
        Decision::CommittedWith(stamp, results) => Ok(Done::Committed(stamp, *results)),
        Decision::CheckFailed(failed) => Ok(Done::CheckFailed(failed)),
        Decision::NotUnique(violations) => Err(not_unique(&violations).into()),
    }
}
