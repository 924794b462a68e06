//! The text that a value has under the fields of an index.

use std::fmt::Write;

use crate::codec::cbor;
use crate::model::{Encoding, Node, NodeId, Value};

/// The fields of an index, taken apart once.
pub struct Texts {
    fields: Vec<Vec<String>>,
}

/// Looks at nodes for one field, at least: a value can hold itself, or name one array very often. One
/// without shared objects is always walked to its end.
const LOOKS_MIN: usize = 10_000;

impl Texts {
    /// Fields as paths: steps separated by dots.
    #[must_use]
    pub fn new(fields: &[String]) -> Self {
        let steps = |field: &String| field.split('.').map(str::to_owned).collect();
        Self { fields: fields.iter().map(steps).collect() }
    }

    /// The text under each field, `None` if there is none under any of them.
    ///
    /// Text is: strings, numbers and bigints (their decimal digits); of arrays, sets and maps that
    /// a path ends at or leads through, what is inside, with a space between. Properties of objects
    /// are only what a path names.
    #[must_use]
    pub fn of(&self, encoding: Encoding, bytes: &[u8]) -> Option<Vec<String>> {
        if encoding != Encoding::Cbor {
            return None;
        }
        // What cannot be decoded cannot be read either; it has no text.
        let value = cbor::decode(bytes).ok()?;
        let mut any = false;
        let texts = self.fields.iter().map(|steps| {
            let mut text = String::new();
            collect(&value, steps, &mut text);
            any |= !text.is_empty();
            text
        });
        let texts = texts.collect();
        any.then_some(texts)
    }
}

/// Walks with a stack of its own; what is found first comes first.
fn collect(value: &Value, steps: &[String], out: &mut String) {
    let mut waiting: Vec<(NodeId, usize)> = vec![(value.root_id(), 0)];
    let mut looks = value.node_count().max(LOOKS_MIN) + 1;
    while let Some((id, at)) = waiting.pop() {
        looks -= 1;
        if looks == 0 {
            return;
        }
        let Some(node) = value.node(id) else { continue };
        match steps.get(at) {
            Some(step) => step_into(value, node, step, at, &mut waiting),
            None => match node {
                Node::String(text) => append(out, &String::from_utf8_lossy(text.as_wtf8())),
                Node::Number(n) if n.is_finite() => append(out, &n.to_string()),
                Node::BigInt(n) => append(out, &n.to_string()),
                Node::Array(items) | Node::Set(items) => {
                    waiting.extend(items.iter().rev().map(|item| (*item, at)));
                }
                Node::SparseArray { entries, .. } => {
                    waiting.extend(entries.iter().rev().map(|(_, item)| (*item, at)));
                }
                _ => {}
            },
        }
    }
}

/// What a step of a path leads to: a property, an entry of a `Map` under a string or a number, an
/// item of an array by its index; where an array has no such index, the step is taken from each of
/// its items.
fn step_into(
    value: &Value,
    node: &Node,
    step: &str,
    at: usize,
    waiting: &mut Vec<(NodeId, usize)>,
) {
    match node {
        Node::Object(properties) => {
            let named = properties.iter().find(|(name, _)| name.as_str() == Some(step));
            waiting.extend(named.map(|(_, id)| (*id, at + 1)));
        }
        Node::Map(entries) => {
            let named = entries.iter().find(|(key, _)| is_named(value.node(*key), step));
            waiting.extend(named.map(|(_, id)| (*id, at + 1)));
        }
        Node::Array(items) | Node::Set(items) => {
            let indexed = match node {
                Node::Array(_) => step.parse().ok().and_then(|index: usize| items.get(index)),
                _ => None,
            };
            match indexed {
                Some(item) => waiting.push((*item, at + 1)),
                None => waiting.extend(items.iter().rev().map(|item| (*item, at))),
            }
        }
        Node::SparseArray { entries, .. } => {
            match entries.iter().find(|(name, _)| name.as_str() == Some(step)) {
                Some((_, item)) => waiting.push((*item, at + 1)),
                None => waiting.extend(entries.iter().rev().map(|(_, item)| (*item, at))),
            }
        }
        _ => {}
    }
}

fn is_named(key: Option<&Node>, step: &str) -> bool {
    match key {
        Some(Node::String(text)) => text.as_str() == Some(step),
        Some(Node::Number(n)) => n.to_string() == step,
        _ => false,
    }
}

fn append(out: &mut String, text: &str) {
    if !out.is_empty() && !text.is_empty() {
        out.push(' ');
    }
    // Writing to a string cannot fail.
    let _ = out.write_str(text);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::JsString;

    fn object(value: &mut Value, properties: &[(&str, NodeId)]) -> Node {
        let _ = value;
        Node::Object(properties.iter().map(|(name, id)| (JsString::from(*name), *id)).collect())
    }

    fn texts(value: &Value, fields: &[&str]) -> Option<Vec<String>> {
        let bytes = cbor::encode(value).unwrap();
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        Texts::new(&fields).of(Encoding::Cbor, &bytes)
    }

    #[test]
    fn text_is_strings_numbers_and_what_arrays_hold() {
        let mut value = Value::new(Node::Null);
        let [a, b] = ["red", "green"].map(|text| value.push(Node::String(text.into())));
        let list = value.push(Node::Array(vec![a, b]));
        let year = value.push(Node::Number(1987.0));
        let big = value.push(Node::BigInt(5.into()));
        let flag = value.push(Node::Bool(true));
        let maker = object(&mut value, &[("name", a), ("year", year)]);
        let maker = value.push(maker);
        let makers = value.push(Node::Array(vec![maker, maker]));
        let root =
            object(&mut value, &[("tags", list), ("big", big), ("flag", flag), ("makers", makers)]);
        value.set(value.root_id(), root);
        // One object in two places is a shared one; as it is decoded again it still is.
        assert_eq!(texts(&value, &["tags", "big"]), Some(vec!["red green".into(), "5".into()]));
        assert_eq!(texts(&value, &["makers.year"]), Some(vec!["1987 1987".into()]));
        assert_eq!(
            texts(&value, &["makers.0.name", "tags.1"]),
            Some(vec!["red".into(), "green".into()])
        );
        assert_eq!(texts(&value, &["flag", "makers", "none.at.all"]), None);
    }

    #[test]
    fn a_value_that_holds_itself_ends() {
        let mut value = Value::new(Node::Null);
        let root = value.root_id();
        value.set(root, Node::Array(vec![root, root]));
        assert_eq!(texts(&value, &["a.b"]), None);
    }

    #[test]
    fn other_encodings_have_no_text() {
        let fields = ["a".to_owned()];
        assert_eq!(Texts::new(&fields).of(Encoding::Bytes, b"a"), None);
        assert_eq!(Texts::new(&fields).of(Encoding::Cbor, b"\xff"), None);
    }
}
