//! Texts ⇄ keys, values and filters.
//!
//! Duty: the texts in which people and other programs write what the database stores: literals of
//! keys, the typed JSON of `docs/format.md` §5, plain JSON, and `where` as JSON.
//! Invariant: total. Every text gives a result or an `Invalid` error that names its place. No
//! function recurses deeper than a constant, and memory grows with the text or value.
//! `js/interchange` and `js/cli` implement the same forms; `tests/vectors/interchange.json` tests
//! both.
//! Never: I/O, a panic, text that is evaluated.

pub mod cbor_document;
mod json;
mod json_text;
pub mod key_json;
pub mod key_literal;
pub mod ndjson;
pub mod plain_json;
#[cfg(test)]
mod tests;
pub mod typed_json;
pub mod where_json;

pub use json_text::push_text;

use num_bigint::BigInt;

use crate::codec::{cbor, v8};
use crate::model::{BIGINT_TEXT_DIGITS_MAX, Encoding, Error, Result, Value};

/// The value of bytes in CBOR or V8's format.
fn decode(encoding: Encoding, bytes: &[u8]) -> Result<Value> {
    let decoded = match encoding {
        Encoding::V8 => v8::decode(bytes),
        Encoding::Cbor | Encoding::Le64 | Encoding::Bytes => cbor::decode(bytes),
    };
    decoded.map_err(|why| Error::corrupt(why.to_string()))
}

/// The integer of decimal digits, with or without a minus. The bound keeps the work small, which is quadratic.
///
/// ```
/// use openkv_core::interchange::bigint;
/// assert_eq!(bigint("-42"), Ok((-42).into()));
/// assert!(bigint("4.2").is_err() && bigint(&"9".repeat(100_000)).is_err());
/// ```
///
/// # Errors
/// What is wrong with the text.
pub fn bigint(text: &str) -> std::result::Result<BigInt, String> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let refused = || "value must be a string of decimal digits".to_owned();
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(refused());
    }
    if digits.len() > BIGINT_TEXT_DIGITS_MAX {
        return Err(format!(
            "a bigint has at most {BIGINT_TEXT_DIGITS_MAX} digits; write a larger one as CBOR"
        ));
    }
    text.parse().map_err(|_| refused())
}

/// The number of a `KvU64`.
fn le64(bytes: &[u8]) -> Result<u64> {
    let bytes = bytes.try_into().map_err(|_| Error::corrupt("a KvU64 that is not 8 bytes"))?;
    Ok(u64::from_le_bytes(bytes))
}
