//! Lines of NDJSON (docs/format.md §5), one entry each.
//!
//! Invariant: [`parse`] reads what [`push`] writes as the same entry, and both agree with
//! `js/interchange`.

use super::{json, key_json, typed_json};
use crate::model::{EncodedValue, Error, Key, Node, NodeId, Result, Seen, Value};

/// The entry of a line. Its versionstamp does not count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Line {
    /// A key with at least one part.
    pub key: Key,
    /// The value.
    pub value: EncodedValue,
    /// The expiry, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
}

/// Largest whole number of which a double holds all neighbours.
const SAFE_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// Appends an entry, without the end of its line.
///
/// # Errors
/// `Corrupt` for a stored key or value that cannot be read.
pub fn push(out: &mut String, entry: &Seen<'_>) -> Result<()> {
    out.push_str("{\"key\":");
    key_json::push_typed(out, entry.row.key)?;
    out.push_str(",\"value\":");
    typed_json::push(out, entry.row.encoding, entry.row.value)?;
    out.push_str(",\"versionstamp\":\"");
    out.extend(entry.row.stamp.hex().iter().map(|digit| char::from(*digit)));
    out.push('"');
    if let Some(ms) = entry.expire_at_ms {
        out.push_str(&format!(",\"expireAt\":{ms}"));
    }
    out.push('}');
    Ok(())
}

/// The entry of a line.
///
/// ```
/// use openkv_core::interchange::{key_literal, ndjson};
/// let line = ndjson::parse(r#"{"key":["a"],"value":{"type":"null","value":null},"expireAt":5}"#)?;
/// assert_eq!((line.key, line.expire_at_ms), (key_literal::parse("a")?, Some(5)));
/// # Ok::<(), openkv_core::model::Error>(())
/// ```
///
/// # Errors
/// `Invalid`, with the fault and its place; `Range` for a value that is nested too deeply.
pub fn parse(text: &str) -> Result<Line> {
    let json = json::parse(text)?;
    let Some(Node::Object(entries)) = json.node(json.root_id()) else {
        return Err(Error::invalid("must be an object"));
    };
    let field = |wanted: &str| {
        let found = entries.iter().find(|(name, _)| name.as_wtf8() == wanted.as_bytes());
        found.map(|(_, id)| *id)
    };
    let missing = |name: &str| Error::invalid(format!("{name} is missing"));
    let key = key_json::of_json(&json, field("key").ok_or_else(|| missing("key"))?)?;
    if key.is_empty() {
        return Err(Error::invalid("key: must have parts"));
    }
    let value = typed_json::stored(&json, field("value").ok_or_else(|| missing("value"))?, None)?;
    Ok(Line { key, value, expire_at_ms: field("expireAt").map(|id| time(&json, id)).transpose()? })
}

fn time(json: &Value, id: NodeId) -> Result<i64> {
    match json.node(id) {
        Some(Node::Number(n)) if n.fract() == 0.0 && n.abs() <= SAFE_INTEGER_MAX => Ok(*n as i64),
        _ => Err(Error::invalid("expireAt must be milliseconds since the epoch")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interchange::key_literal;
    use crate::model::{Encoding, Row, Versionstamp};

    #[test]
    fn a_line_comes_back() {
        let key = key_literal::parse("[\"a\",42n,-0,true]").unwrap();
        let stored = EncodedValue { encoding: Encoding::Bytes, bytes: vec![0, 255] };
        for expire_at_ms in [None, Some(1_800_000_000_000)] {
            let stamp = Versionstamp::new(0xf46);
            let row =
                Row { key: key.as_bytes(), stamp, encoding: stored.encoding, value: &stored.bytes };
            let mut text = String::new();
            push(&mut text, &Seen { row, expire_at_ms }).unwrap();
            assert!(text.contains(r#","versionstamp":"0000000000000f460000""#), "{text}");
            let line = Line { key: key.clone(), value: stored.clone(), expire_at_ms };
            assert_eq!(parse(&text).unwrap(), line);
        }
    }

    #[test]
    fn a_line_that_is_no_entry_names_its_fault() {
        let value = r#""value":{"type":"null","value":null}"#;
        for (text, fault) in [
            ("", "JSON"),
            ("[]", "must be an object"),
            (&format!("{{{value}}}"), "key is missing"),
            (&format!("{{\"key\":[],{value}}}"), "key: must have parts"),
            (&format!("{{\"key\":[null],{value}}}"), "key[0]"),
            (r#"{"key":["a"]}"#, "value is missing"),
            (r#"{"key":["a"],"value":1}"#, "value: must be an object"),
            (&format!("{{\"key\":[\"a\"],{value},\"expireAt\":1.5}}"), "expireAt must be"),
            (&format!("{{\"key\":[\"a\"],{value},\"expireAt\":1e300}}"), "expireAt must be"),
            (&format!("{{\"key\":[\"a\"],{value},\"expireAt\":\"1\"}}"), "expireAt must be"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.message().contains(fault), "{text}: {error}");
        }
    }
}
