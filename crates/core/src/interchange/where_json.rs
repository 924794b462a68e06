//! `where` as JSON: the filter of docs/reading.md#filters, with its operands as JSON or as the typed objects
//! of docs/format.md §5.
//!
//! Invariant: an operand is never ambiguous. No operand of a filter is an object, except
//! `{"$now":true}`, so an object with a `type` behind a path or an operator is a typed value.
//! Never: a decision about operators; [`Filter::parse`] decides.

use super::{json, typed_json};
use crate::codec::cbor;
use crate::filter::Filter;
use crate::model::{
    Error, FILTER_DEPTH_MAX, JsString, Node, NodeId, Result, Value, WHERE_JSON_BYTES_MAX,
};

/// The encoded filter of a text, as [`Filter::parse`] takes it.
///
/// ```
/// use openkv_core::interchange::where_json;
/// assert!(where_json::parse(r#"{"age":{"$gte":18},"at":{"$lt":{"$now":true}}}"#).is_ok());
/// assert!(where_json::parse(r#"{"total":{"$gt":{"type":"bigint","value":"5"}}}"#).is_ok());
/// let refused = where_json::parse(r#"{"age":{"$gtee":18}}"#).unwrap_err();
/// assert!(refused.message().starts_with("where.age.$gtee: unknown operator"));
/// ```
///
/// # Errors
/// `Invalid`, with the fault and its place.
pub fn parse(text: &str) -> Result<Vec<u8>> {
    if text.len() > WHERE_JSON_BYTES_MAX {
        let len = text.len();
        return Err(Error::invalid(format!(
            "where: too large (max {WHERE_JSON_BYTES_MAX} bytes): {len} bytes given"
        )));
    }
    let json = json::parse(text).map_err(|why| Error::invalid(format!("where: {why}")))?;
    if json::has_infinity(&json) {
        return Err(Error::invalid("where: a number is beyond the range of a double"));
    }
    let mut copier = Copier { json: &json, out: Value::new(Node::Null) };
    let top = copier.conditions(json.root_id(), "where", 0)?;
    let top = copier.out.node(top).cloned().unwrap_or(Node::Null);
    copier.out.set(copier.out.root_id(), top);
    let bytes = cbor::encode(&copier.out)?;
    // The time is that of the read; here only the shape counts.
    Filter::parse(&bytes, 0)?;
    Ok(bytes)
}

struct Copier<'j> {
    json: &'j Value,
    out: Value,
}

impl<'j> Copier<'j> {
    /// An object whose names are paths and operators.
    fn conditions(&mut self, id: NodeId, place: &str, depth: usize) -> Result<NodeId> {
        check_depth(place, depth)?;
        let Some(Node::Object(entries)) = self.json.node(id) else {
            return self.plain(id, place, depth);
        };
        let mut copied = Vec::with_capacity(entries.len());
        for (name, id) in entries {
            let place = format!("{place}.{}", shown(name));
            let is_list = matches!(name.as_str(), Some("$and" | "$or"));
            let item = match self.json.node(*id) {
                Some(Node::Array(filters)) if is_list => {
                    let filters = self.each(filters, &place, depth, Self::conditions)?;
                    self.out.push(Node::Array(filters))
                }
                _ if name.as_str() == Some("$not") => self.conditions(*id, &place, depth + 1)?,
                Some(Node::Array(operands)) => {
                    let operands = self.each(operands, &place, depth, Self::operand)?;
                    self.out.push(Node::Array(operands))
                }
                _ => self.operand(*id, &place, depth + 1)?,
            };
            copied.push((name.clone(), item));
        }
        Ok(self.out.push(Node::Object(copied)))
    }

    fn each(
        &mut self,
        items: &[NodeId],
        place: &str,
        depth: usize,
        copy: fn(&mut Self, NodeId, &str, usize) -> Result<NodeId>,
    ) -> Result<Vec<NodeId>> {
        let one =
            |(at, id): (usize, &NodeId)| copy(self, *id, &format!("{place}[{at}]"), depth + 2);
        items.iter().enumerate().map(one).collect()
    }

    /// What is behind a path or an operator: an operand, or an object of operators.
    fn operand(&mut self, id: NodeId, place: &str, depth: usize) -> Result<NodeId> {
        check_depth(place, depth)?;
        let Some(Node::Object(entries)) = self.json.node(id) else {
            return self.plain(id, place, depth);
        };
        if entries.iter().any(|(name, _)| name.as_wtf8().starts_with(b"$")) {
            return self.conditions(id, place, depth);
        }
        if entries.iter().any(|(name, _)| name.as_str() == Some("type")) {
            let value = typed_json::read(self.json, id, place)?;
            return Ok(self.out.absorb(value));
        }
        self.plain(id, place, depth)
    }

    /// A copy.
    fn plain(&mut self, id: NodeId, place: &str, depth: usize) -> Result<NodeId> {
        check_depth(place, depth)?;
        let copy = match self.json.node(id) {
            Some(Node::Array(items)) => Node::Array(self.each(items, place, depth, Self::plain)?),
            Some(Node::Object(entries)) => {
                let mut copied = Vec::with_capacity(entries.len());
                for (name, id) in entries {
                    copied.push((name.clone(), self.plain(*id, place, depth + 1)?));
                }
                Node::Object(copied)
            }
            Some(scalar) => scalar.clone(),
            None => Node::Null,
        };
        Ok(self.out.push(copy))
    }
}

/// Bounds the recursion. [`Filter::parse`] counts the levels itself, and refuses fewer.
fn check_depth(place: &str, depth: usize) -> Result<()> {
    if depth <= FILTER_DEPTH_MAX + 2 {
        return Ok(());
    }
    Err(Error::invalid(format!("{place}: nested too deeply (max {FILTER_DEPTH_MAX} levels)")))
}

fn shown(name: &JsString) -> String {
    String::from_utf8_lossy(name.as_wtf8()).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Encoding;

    /// Whether the filter holds for a value in plain or typed JSON.
    fn holds(filter: &str, value: &str) -> bool {
        let stored = match value.starts_with(r#"{"type":"#) {
            true => typed_json::parse(value).unwrap(),
            false => super::super::plain_json::parse(value).unwrap(),
        };
        assert_eq!(stored.encoding, Encoding::Cbor);
        let filter = Filter::parse(&parse(filter).unwrap(), 1000).unwrap();
        filter.matches(stored.encoding, &stored.bytes).unwrap()
    }

    #[test]
    fn plain_and_typed_operands_stand_beside_each_other() {
        let value = r#"{"type":"object","value":{"total":{"type":"bigint","value":"120"},
            "at":{"type":"Date","value":"1970-01-01T00:00:00.500Z"},
            "type":{"type":"string","value":"Date"}}}"#;
        for (filter, expected) in [
            (r#"{"total":{"$gt":99.5}}"#, true),
            (r#"{"total":{"type":"bigint","value":"120"}}"#, true),
            (r#"{"total":{"$in":[1,{"type":"bigint","value":"120"}]}}"#, true),
            (r#"{"total":{"$between":[{"type":"bigint","value":"121"},500]}}"#, false),
            (r#"{"at":{"$lt":{"$now":true}}}"#, true),
            (r#"{"at":{"$lt":{"$now":true,"$offset":-600}}}"#, false),
            (r#"{"at":{"$lt":{"type":"Date","value":"1970-01-02"}}}"#, true),
            (r#"{"at":{"$lt":"1970-01-02"}}"#, false),
            // Paths at the top, whatever their names.
            (r#"{"type":"Date","total":{"$exists":true}}"#, true),
            (
                r#"{"$or":[{"type":"x"},{"$not":{"total":{"$lt":{"type":"number","value":5}}}}]}"#,
                true,
            ),
            (r#"{"total":{"$not":{"$gt":{"type":"bigint","value":"200"}}}}"#, true),
        ] {
            assert_eq!(holds(filter, value), expected, "{filter}");
        }
        assert!(holds(r#"{"$gte":{"type":"number","value":"-Infinity"}}"#, "5"));
    }

    #[test]
    fn faults_are_named_with_their_place() {
        for (filter, expected) in [
            ("[]", "where: a filter is an object: received an array"),
            ("{", "where: not JSON: a name in quotes was expected at character 2"),
            (r#"{"a":1e999}"#, "where: a number is beyond the range of a double"),
            (r#"{"a":{"b":1}}"#, "where.a.b: an operator must be here"),
            (r#"{"a":{"$gt":{"type":"Date","value":"x"}}}"#, "where.a.$gt: not a time"),
            (r#"{"a":{"$gt":{"type":"Dat"}}}"#, "where.a.$gt: unknown type Dat"),
            (
                r#"{"$or":[{"a":{"$in":[{"type":"bigint"}]}}]}"#,
                "where.$or[0].a.$in[0]: value must be",
            ),
            (r#"{"a":{"$gt":{"type":"Array","value":[]}}}"#, "where.a.$gt: takes a number"),
            (r#"{"a":{"$like":"x"}}"#, "where.a.$like: unknown operator: known are $eq"),
        ] {
            let message = parse(filter).unwrap_err().message().to_owned();
            assert!(message.starts_with(expected), "{filter}: {message}");
        }
    }

    #[test]
    fn nesting_and_size_have_bounds() {
        let nested =
            |depth: usize| format!("{}{{}}{}", "{\"$not\":".repeat(depth), "}".repeat(depth));
        assert!(parse(&nested(FILTER_DEPTH_MAX)).is_ok());
        for depth in [FILTER_DEPTH_MAX + 1, 500, 4000, 100_000] {
            assert!(parse(&nested(depth)).is_err(), "{depth}");
        }
        let spaces = |len: usize| format!("{{}}{}", " ".repeat(len - 2));
        assert!(parse(&spaces(WHERE_JSON_BYTES_MAX)).is_ok());
        assert!(parse(&spaces(WHERE_JSON_BYTES_MAX + 1)).is_err());
    }
}
