//! JSON bodies of requests, and small JSON answers.

use hyper::StatusCode;
use hyper::header::ACCEPT;
use hyper::http::request::Parts;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::admit::body_in;
use super::media::{Form, accepted};
use super::problem::Problem;
use crate::answer::{Answer, answer, whole};
use crate::data::Client;
use crate::request::{Object, RequestBody, unreadable};
use openkv_core::interchange::{cbor_document, key_json, where_json};
use openkv_core::model::{Error, Key};

/// A part of a body that is read by the rules of its form.
pub(super) type Raw = Option<Box<RawValue>>;

/// A JSON body, in one of the forms of JSON, or as the same document in CBOR, which is read as its typed form.
pub(super) async fn json_body<T: DeserializeOwned>(
    client: &Client,
    head: &Parts,
    body: RequestBody,
) -> Result<(Form, T), Problem> {
    let (form, body, _claim) = body_in(client, head, body, Form::OF_DOCUMENTS).await?;
    match form {
        Form::Cbor => {
            let text = cbor_document::to_typed_json(&body)?;
            Ok((Form::Typed, parsed(text.as_bytes())?))
        }
        form => Ok((form, parsed(&body)?)),
    }
}

/// As [`json_body`]; without a body the default.
pub(super) async fn optional_body<T: DeserializeOwned + Default>(
    client: &Client,
    head: &Parts,
    body: RequestBody,
) -> Result<T, Problem> {
    if hyper::body::Body::is_end_stream(&body) {
        return Ok(T::default());
    }
    json_body(client, head, body).await.map(|(_, body)| body)
}

fn parsed<'b, T: Deserialize<'b>>(body: &'b [u8]) -> Result<T, Problem> {
    serde_json::from_slice(body)
        .map(|Object(body)| body)
        .map_err(|error| Problem::bad_request(unreadable(&error)))
}

/// The key in a member of a body.
pub(super) fn key_in(name: &str, raw: &RawValue) -> Result<Key, Problem> {
    Ok(key_json::parse(raw.get()).map_err(|error| error.at(name))?)
}

/// A key in an answer.
pub(super) fn shown_key(key: &Key) -> openkv_core::model::Result<Box<RawValue>> {
    let mut text = String::new();
    key_json::push(&mut text, key.as_bytes())?;
    RawValue::from_string(text).map_err(|error| Error::internal(error.to_string()))
}

/// The keys in a member of a body.
pub(super) fn keys_in(raws: &[Box<RawValue>]) -> Result<Vec<Key>, Problem> {
    raws.iter().enumerate().map(|(at, raw)| key_in(&format!("keys[{at}]"), raw)).collect()
}

/// The filter in a member of a body, in CBOR.
pub(super) fn filter_in(raw: &Raw) -> Result<Option<Vec<u8>>, Problem> {
    Ok(raw.as_ref().map(|raw| where_json::parse(raw.get())).transpose()?)
}

/// A small answer, which is the same in all forms.
pub(super) fn json(body: &impl Serialize) -> Result<Answer, Problem> {
    let body = serde_json::to_vec(body).map_err(|error| Error::internal(error.to_string()))?;
    Ok(answer(StatusCode::OK, Form::Json.name(), whole(body)))
}

/// The form in which a client wants a body.
pub(super) fn wanted(head: &Parts, offered: &[Form]) -> Result<Form, Problem> {
    let accept = head.headers.get(ACCEPT).and_then(|accept| accept.to_str().ok());
    accepted(accept, offered).ok_or_else(|| {
        let names: Vec<_> = offered.iter().map(|form| form.name()).collect();
        let text = format!("The body is available as {}.", names.join(", "));
        Problem::new(StatusCode::NOT_ACCEPTABLE, text)
    })
}
