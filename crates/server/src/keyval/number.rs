//! Numbers as KeyVal reads them: of a text the leading digits count.

use serde_json::value::RawValue;

use super::json::Members;
use crate::api::problem::{Problem, shown};
use crate::api::write::expiry;
use openkv_core::model::{HTTP_LIST_ENTRIES_DEFAULT, HTTP_LIST_ENTRIES_MAX, Time};

/// The number of the leading digits, as of JavaScript's `parseInt`; `None` without any.
pub(super) fn leading(text: &str) -> Option<i64> {
    let text = text.trim_start();
    let (sign, rest) = match text.strip_prefix(['-', '+']) {
        Some(rest) => (if text.starts_with('-') { -1 } else { 1 }, rest),
        None => (1, text),
    };
    let digits = rest.find(|c: char| !c.is_ascii_digit()).map_or(rest, |end| &rest[..end]);
    match digits.is_empty() {
        true => None,
        false => Some(sign * digits.parse::<i64>().unwrap_or(i64::MAX)),
    }
}

/// The number in a member: a number's whole part, or the leading digits of a text.
fn in_member(raw: &RawValue) -> Option<i64> {
    match serde_json::from_str::<String>(raw.get()) {
        Ok(text) => leading(&text),
        Err(_) => serde_json::from_str::<f64>(raw.get()).ok().map(|n| n as i64),
    }
}

fn limit(given: Option<i64>, text: &str) -> Result<usize, Problem> {
    let limit = given.and_then(|n| usize::try_from(n).ok()).filter(|n| *n > 0);
    let refused = || {
        Problem::bad_request(format!("limit must be a positive number, received {}", shown(text)))
    };
    limit.map(|n| n.min(HTTP_LIST_ENTRIES_MAX)).ok_or_else(refused)
}

/// The limit of a query: 100 without one, and at most 1000.
pub(super) fn limit_of_text(text: Option<&str>) -> Result<usize, Problem> {
    text.map_or(Ok(HTTP_LIST_ENTRIES_DEFAULT), |text| limit(leading(text), text))
}

/// The limit of a body.
pub(super) fn limit_of_member(members: &Members) -> Result<usize, Problem> {
    let raw = members.given("limit");
    raw.map_or(Ok(HTTP_LIST_ENTRIES_DEFAULT), |raw| limit(in_member(raw), raw.get()))
}

fn lifetime(given: Option<i64>, text: &str) -> Result<Option<Time>, Problem> {
    match given.and_then(|ms| u64::try_from(ms).ok()).filter(|ms| *ms > 0) {
        Some(ms) => expiry("expiresIn", Some(ms)),
        None => Err(Problem::bad_request(format!(
            "expiresIn must be a positive number (milliseconds), received {}",
            shown(text)
        ))),
    }
}

/// The expiry of a query.
pub(super) fn expiry_of_text(text: Option<&str>) -> Result<Option<Time>, Problem> {
    text.map_or(Ok(None), |text| lifetime(leading(text), text))
}

/// The expiry of a member.
pub(super) fn expiry_of_member(members: &Members) -> Result<Option<Time>, Problem> {
    let raw = members.given("expiresIn");
    raw.map_or(Ok(None), |raw| lifetime(in_member(raw), raw.get()))
}
