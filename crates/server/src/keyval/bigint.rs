//! Integers of KeyVal's clients: numbers, digits as text, and `{"__type":"bigint","value":"5"}`.

use num_bigint::BigInt;
use serde_json::value::RawValue;

use super::json::{Members, quoted};
use crate::api::problem::{Problem, shown};
use openkv_core::interchange::bigint;

/// The largest integer up to which all are numbers.
pub(super) const SAFE_INTEGER_MAX: i64 = (1 << 53) - 1;

/// The digits of an object that stands for a bigint; `None` for any other text.
pub(super) fn digits_of(text: &str) -> Option<String> {
    if !text.starts_with('{') {
        return None;
    }
    let raw: &RawValue = serde_json::from_str(text).ok()?;
    let members = Members::of_item("value", raw).ok()?;
    if members.text("__type").as_deref() != Some("bigint") {
        return None;
    }
    let value = members.get("value")?;
    Some(serde_json::from_str::<String>(value.get()).unwrap_or_else(|_| value.get().to_owned()))
}

/// The typed object of an object that stands for a bigint.
pub(super) fn typed(text: &str) -> Option<String> {
    let digits = digits_of(text)?;
    Some(format!(r#"{{"type":"bigint","value":{}}}"#, quoted(&digits)))
}

/// The operand of a sum. As in KeyVal, the fraction of a number does not count.
pub(super) fn operand(name: &str, raw: Option<&RawValue>) -> Result<BigInt, Problem> {
    let text = raw.map_or("undefined", RawValue::get);
    let refused = |given: &str| {
        Problem::bad_request(format!(
            "{name} is not a valid integer: {}. Expected a numeric string like \"123\"",
            shown(given)
        ))
    };
    if let Some(digits) = digits_of(text) {
        return bigint(&digits).map_err(|_| refused(&digits));
    }
    if text.starts_with('"') {
        let given: String = serde_json::from_str(text).map_err(|_| refused(text))?;
        return bigint(given.trim()).map_err(|_| refused(&given));
    }
    if let Ok(n) = bigint(text) {
        return Ok(n);
    }
    let number = serde_json::from_str::<f64>(text).ok().filter(|n| n.is_finite());
    let whole = number.and_then(|n| whole(n.trunc()));
    whole.ok_or_else(|| {
        Problem::bad_request(format!(
            "{name} must be a number, bigint, or numeric string, received {}",
            shown(text)
        ))
    })
}

/// The integer that a number is; `None` for a fraction, and beyond 2^100.
pub(super) fn whole(n: f64) -> Option<BigInt> {
    let most = 2.0_f64.powi(100);
    (n.fract() == 0.0 && n.abs() <= most).then(|| BigInt::from(n as i128))
}
