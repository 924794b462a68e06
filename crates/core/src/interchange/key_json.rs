//! Keys in JSON: an array with strings, finite numbers and booleans as they are, and all other parts
//! as the typed objects of docs/format.md §5: `["users",42,{"type":"bigint","value":"42"}]`.
//!
//! Invariant: [`parse`] reads what [`push`] and [`push_typed`] write as the same key.

use super::json::{self, push_wtf8};
use super::json_text::push_text;
use super::typed_json::scalar;
use crate::codec::key;
use crate::model::{
    Error, JsString, Key, KeyPart, Node, NodeId, Result, Value, ViewClass, push_number,
};

/// Appends a key.
///
/// ```
/// use openkv_core::interchange::{key_json, key_literal};
/// let key = key_literal::parse(r#"["users",42,42n]"#)?;
/// let mut text = String::new();
/// key_json::push(&mut text, key.as_bytes())?;
/// assert_eq!(text, r#"["users",42,{"type":"bigint","value":"42"}]"#);
/// assert_eq!(key_json::parse(&text)?, key);
/// # Ok::<(), openkv_core::model::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` for bytes that are no key.
pub fn push(out: &mut String, key: &[u8]) -> Result<()> {
    push_parts(out, key, |out, part| match part {
        KeyPart::String(text) => push_text(out, text),
        KeyPart::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
        KeyPart::Number(n) if n.is_finite() && !is_negative_zero(*n) => push_number(out, *n),
        KeyPart::Number(_) | KeyPart::BigInt(_) | KeyPart::Bytes(_) => push_typed_part(out, part),
    })
}

/// Appends a key whose parts are all typed objects, as in a line of NDJSON.
pub fn push_typed(out: &mut String, key: &[u8]) -> Result<()> {
    push_parts(out, key, push_typed_part)
}

fn push_parts(out: &mut String, key: &[u8], one: fn(&mut String, &KeyPart)) -> Result<()> {
    let parts = key::decode(key).map_err(|why| Error::corrupt(why.to_string()))?;
    out.push('[');
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        one(out, part);
    }
    out.push(']');
    Ok(())
}

fn push_typed_part(out: &mut String, part: &KeyPart) {
    let said = match part {
        KeyPart::String(text) => scalar::push(out, &Node::String(text.as_str().into())),
        KeyPart::BigInt(n) => scalar::push(out, &Node::BigInt(n.clone())),
        KeyPart::Number(n) => scalar::push(out, &Node::Number(*n)),
        KeyPart::Bool(b) => scalar::push(out, &Node::Bool(*b)),
        KeyPart::Bytes(bytes) => {
            scalar::push_bytes(out, ViewClass::Uint8.name(), bytes);
            true
        }
    };
    // −0 is the only part without a form of its own.
    if !said {
        out.push_str(r#"{"type":"number","value":"-0"}"#);
    }
}

fn is_negative_zero(n: f64) -> bool {
    n == 0.0 && n.is_sign_negative()
}

/// The key of a JSON array. Each part may also be a typed object.
///
/// # Errors
/// `Invalid`, with the fault and its place.
pub fn parse(text: &str) -> Result<Key> {
    let json = json::parse(text)?;
    of_json(&json, json.root_id())
}

/// The key of an array inside parsed JSON.
pub(super) fn of_json(json: &Value, id: NodeId) -> Result<Key> {
    let Some(Node::Array(items)) = json.node(id) else {
        return Err(Error::invalid("key: must be an array of parts"));
    };
    let mut parts = Vec::with_capacity(items.len());
    for (at, id) in items.iter().enumerate() {
        let refused = |what: &str| Error::invalid(format!("key[{at}]: {what}"));
        parts.push(match json.node(*id) {
            Some(Node::String(text)) => KeyPart::String(without_surrogates(text)),
            Some(Node::Bool(b)) => KeyPart::Bool(*b),
            Some(Node::Number(n)) if n.is_finite() => KeyPart::Number(*n),
            Some(Node::Number(_)) => return Err(refused("a number beyond the range of a double")),
            Some(Node::Object(_)) => typed_part(json, *id, &refused)?,
            _ => {
                return Err(refused("must be a string, number, boolean or an object with a type"));
            }
        });
    }
    key::encode(&parts)
}

/// The types of the parts of a key.
const PART_TYPES: [&str; 5] = ["string", "number", "bigint", "boolean", "Uint8Array"];

fn typed_part(json: &Value, id: NodeId, refused: &dyn Fn(&str) -> Error) -> Result<KeyPart> {
    let (name, value) = scalar::envelope(json, id).map_err(|what| refused(&what))?;
    if !PART_TYPES.contains(&name) {
        return Err(refused(&format!("unknown type of a key part: {name}")));
    }
    let node = scalar::parse(json, name, value).map_err(|what| refused(&what))?;
    match node {
        Some(Node::String(text)) => Ok(KeyPart::String(without_surrogates(&text))),
        Some(Node::Number(n)) => Ok(KeyPart::Number(n)),
        Some(Node::BigInt(n)) => Ok(KeyPart::BigInt(n)),
        Some(Node::Bool(b)) => Ok(KeyPart::Bool(b)),
        Some(Node::View(_, bytes)) => Ok(KeyPart::Bytes(bytes.into_vec())),
        _ => Err(refused("unknown type of a key part")),
    }
}

/// The text of a part: U+FFFD replaces each lone surrogate.
pub(super) fn without_surrogates(text: &JsString) -> String {
    if let Some(text) = text.as_str() {
        return text.to_owned();
    }
    let mut out = Vec::new();
    for chunk in text.as_wtf8().utf8_chunks() {
        out.extend_from_slice(chunk.valid().as_bytes());
        // A surrogate is three invalid bytes, of which only the first one is 0xed.
        if chunk.invalid().first() == Some(&0xed) {
            push_wtf8(&mut out, u32::from(char::REPLACEMENT_CHARACTER));
        }
    }
    String::from_utf8(out).unwrap_or_default()
}
