//! JSON of requests: members that are looked up one by one, since unknown ones are ignored, and documents in which
//! placeholders are replaced.

use std::collections::HashMap;
use std::fmt;

use hyper::body::Bytes;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::api::problem::Problem;
use crate::data::{Client, still};
use crate::request::{RequestBody, body_of, unreadable};
use openkv_core::model::{KEYVAL_JSON_DEPTH_MAX, REQUEST_BYTES_MAX};

/// The members of an object. Of a name that occurs twice the last value counts.
pub(super) struct Members(HashMap<String, Box<RawValue>>);

impl Members {
    /// The members of a body, whatever its content type.
    pub(super) async fn of_body(client: &Client, body: RequestBody) -> Result<Self, Problem> {
        Self::parse(&bytes_of(client, body).await?)
    }

    fn parse(body: &[u8]) -> Result<Self, Problem> {
        serde_json::from_slice(body)
            .map(Self)
            .map_err(|error| Problem::bad_request(unreadable(&error)))
    }

    /// The members of a nested object; none if it is no object.
    pub(super) fn inner(&self, name: &str) -> Self {
        let inner = self.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok());
        Self(inner.unwrap_or_default())
    }

    /// A member, also if it is `null`.
    pub(super) fn get(&self, name: &str) -> Option<&RawValue> {
        self.0.get(name).map(AsRef::as_ref)
    }

    /// A member that is not `null`.
    pub(super) fn given(&self, name: &str) -> Option<&RawValue> {
        self.get(name).filter(|raw| raw.get() != "null")
    }

    /// The text of a string.
    pub(super) fn text(&self, name: &str) -> Option<String> {
        self.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// A flag that is `true`.
    pub(super) fn is_true(&self, name: &str) -> bool {
        self.get(name).is_some_and(|raw| raw.get() == "true")
    }

    /// The items of an array; `None` for anything else.
    pub(super) fn items(&self, name: &str) -> Option<Vec<&RawValue>> {
        self.get(name).and_then(|raw| serde_json::from_str(raw.get()).ok())
    }

    /// The members of an item of an array.
    pub(super) fn of_item(place: &str, raw: &RawValue) -> Result<Self, Problem> {
        serde_json::from_str(raw.get())
            .map(Self)
            .map_err(|_| Problem::bad_request(format!("{place} must be an object")))
    }
}

/// The bytes of a body, within the bounds of a request.
pub(super) async fn bytes_of(client: &Client, body: RequestBody) -> Result<Bytes, Problem> {
    let (body, _claim) = body_of(&client.database, body, REQUEST_BYTES_MAX).await?;
    still(client)?;
    Ok(body)
}

/// A document, in which objects keep the order of their members.
#[derive(Debug)]
pub(super) enum Tree {
    Object(Vec<(String, Tree)>),
    Array(Vec<Tree>),
    /// A string, number, boolean or `null`, as its text.
    Scalar(String),
}

/// The members of an object, in their order.
struct Pairs(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Pairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(OfPairs)
    }
}

struct OfPairs;

impl<'de> Visitor<'de> for OfPairs {
    type Value = Pairs;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Pairs, A::Error> {
        let mut pairs = Vec::new();
        while let Some(pair) = map.next_entry()? {
            pairs.push(pair);
        }
        Ok(Pairs(pairs))
    }
}

impl Tree {
    /// # Errors
    /// A document that is nested deeper than [`KEYVAL_JSON_DEPTH_MAX`].
    pub(super) fn of(place: &str, raw: &RawValue) -> Result<Self, Problem> {
        Self::at(place, raw.get(), 0)
    }

    fn at(place: &str, text: &str, depth: usize) -> Result<Self, Problem> {
        if depth > KEYVAL_JSON_DEPTH_MAX {
            let text = format!("{place}: nested too deeply (max {KEYVAL_JSON_DEPTH_MAX} levels)");
            return Err(Problem::bad_request(text));
        }
        let wrong = |error| Problem::bad_request(unreadable(&error));
        let inner = |raw: &RawValue| Self::at(place, raw.get(), depth + 1);
        match text.as_bytes().first() {
            Some(b'{') => {
                let Pairs(pairs) = serde_json::from_str(text).map_err(wrong)?;
                let pairs = pairs.into_iter().map(|(name, raw)| Ok((name, inner(&raw)?)));
                Ok(Self::Object(pairs.collect::<Result<_, Problem>>()?))
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text).map_err(wrong)?;
                Ok(Self::Array(items.into_iter().map(inner).collect::<Result<_, _>>()?))
            }
            _ => Ok(Self::Scalar(text.to_owned())),
        }
    }

    /// The member of an object.
    pub(super) fn member(&self, name: &str) -> Option<&Self> {
        let Self::Object(members) = self else { return None };
        members.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// The text of a scalar.
    pub(super) fn scalar(&self) -> Option<&str> {
        match self {
            Self::Scalar(text) => Some(text),
            Self::Object(_) | Self::Array(_) => None,
        }
    }

    /// The offset of `{"$now":true}` in ms, which is beside it as `$offset` or `offset`; `None` for anything else.
    pub(super) fn now_offset_ms(&self) -> Option<f64> {
        let Self::Object(members) = self else { return None };
        let is_known = |name: &str| matches!(name, "$now" | "$offset" | "offset");
        let is_now = self.member("$now").and_then(Self::scalar) == Some("true");
        if !is_now || !members.iter().all(|(name, _)| is_known(name)) {
            return None;
        }
        let offset = self.member("$offset").or(self.member("offset"));
        match offset {
            None => Some(0.0),
            Some(offset) => offset.scalar()?.parse().ok().filter(|ms: &f64| ms.is_finite()),
        }
    }

    /// The document as text, with `{"$now":true}` as the number of ms at this time.
    pub(super) fn at_time(&self, now_ms: i64) -> String {
        if let Some(offset) = self.now_offset_ms() {
            return number_text(now_ms as f64 + offset);
        }
        match self {
            Self::Scalar(text) => text.clone(),
            Self::Array(items) => {
                let items: Vec<_> = items.iter().map(|item| item.at_time(now_ms)).collect();
                format!("[{}]", items.join(","))
            }
            Self::Object(members) => {
                let member = |(name, value): &(String, Self)| {
                    format!("{}:{}", quoted(name), value.at_time(now_ms))
                };
                format!("{{{}}}", members.iter().map(member).collect::<Vec<_>>().join(","))
            }
        }
    }
}

/// A string of JSON.
pub(super) fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A number of JSON.
pub(super) fn number_text(n: f64) -> String {
    let mut text = String::new();
    openkv_core::model::push_number(&mut text, n);
    text
}
