//! The text of a value under the fields of an index.

use std::fmt::Write;

use super::division::divided;
use crate::codec::cbor;
use crate::model::{
    Encoding, INDEX_BIGINT_BITS_MAX, INDEX_FIELD_COST_PER_BYTE_MAX, INDEX_TEXT_COST_MIN, JsString,
    Node, NodeId, Tokenizer, Value,
};

/// The parsed fields of an index.
pub struct Texts {
    fields: Vec<Vec<String>>,
    tokenizer: Tokenizer,
}

/// Digits of a number that cost as much as a byte of text: a number of 9 bytes can have 327 digits.
const DIGITS_PER_COST: usize = 40;

impl Texts {
    /// Fields as paths: steps separated by dots.
    #[must_use]
    pub fn new(fields: &[String], tokenizer: Tokenizer) -> Self {
        let steps = |field: &String| field.split('.').map(str::to_owned).collect();
        Self { fields: fields.iter().map(steps).collect(), tokenizer }
    }

    /// The text under each field, as the index stores it; `None` if no field has any.
    ///
    /// Text is: strings; numbers, and bigints of up to [`INDEX_BIGINT_BITS_MAX`] bits, as decimal
    /// digits; the contents of arrays, sets and maps on a path or at its end, separated by spaces.
    /// Object properties count only if a path names them. A value may contain itself, or one object
    /// many times: the cost is bounded by that of a value of its size without references.
    pub fn of(&self, encoding: Encoding, bytes: &[u8]) -> Option<Vec<String>> {
        if encoding != Encoding::Cbor {
            return None;
        }
        // A value that cannot be decoded has no text.
        let value = cbor::decode(bytes).ok()?;
        let field_cost_max = bytes.len().saturating_mul(INDEX_FIELD_COST_PER_BYTE_MAX);
        let cost_max = field_cost_max.saturating_mul(self.fields.len());
        let mut budget = Budget(cost_max.max(INDEX_TEXT_COST_MIN));
        let mut any = false;
        let texts = self.fields.iter().map(|steps| {
            let mut text = String::new();
            collect(&value, steps, &mut budget, &mut text);
            any |= !text.is_empty();
            match self.tokenizer {
                Tokenizer::Auto => divided(&text),
                Tokenizer::Unicode61
                | Tokenizer::Porter
                | Tokenizer::Ascii
                | Tokenizer::Trigram => text,
            }
        });
        let texts = texts.collect();
        any.then_some(texts)
    }
}

/// The remaining cost for a value.
struct Budget(usize);

impl Budget {
    /// Spends the cost. Returns whether there was enough.
    fn spend(&mut self, cost: usize) -> bool {
        let left = self.0.checked_sub(cost);
        self.0 = left.unwrap_or(0);
        left.is_some()
    }
}

/// Walks with a stack of its own, in the value's order.
fn collect(value: &Value, steps: &[String], budget: &mut Budget, out: &mut String) {
    let mut waiting: Vec<(NodeId, usize)> = vec![(value.root_id(), 0)];
    while let Some((id, at)) = waiting.pop() {
        let Some(node) = value.node(id) else { continue };
        if !budget.spend(1 + cost(node, at < steps.len())) {
            return;
        }
        match steps.get(at) {
            Some(step) => step_into(value, node, step, at, &mut waiting),
            None => match node {
                Node::String(text) => append(out, &String::from_utf8_lossy(text.as_wtf8())),
                Node::Number(n) if n.is_finite() => {
                    let digits = n.to_string();
                    if !budget.spend(digits.len() / DIGITS_PER_COST) {
                        return;
                    }
                    append(out, &digits);
                }
                Node::BigInt(n) if n.bits() <= INDEX_BIGINT_BITS_MAX => append(out, &n.to_string()),
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

/// The cost of a node beside the visit: the names to compare if a step is taken from it, the items
/// to visit, its text.
fn cost(node: &Node, steps: bool) -> usize {
    match node {
        Node::Object(properties) if steps => properties.len(),
        Node::Map(entries) if steps => entries.len(),
        Node::Array(items) | Node::Set(items) => items.len(),
        Node::SparseArray { entries, .. } => entries.len(),
        Node::String(text) if !steps => text.as_wtf8().len(),
        Node::BigInt(n) if !steps => usize::try_from(n.bits() / 8).unwrap_or(usize::MAX),
        _ => 0,
    }
}

/// The targets of one step: a property, an entry of a `Map` under a string or a number, an array
/// item by its index. If an array has no such index, the step is taken from each of its items.
fn step_into(
    value: &Value,
    node: &Node,
    step: &str,
    at: usize,
    waiting: &mut Vec<(NodeId, usize)>,
) {
    match node {
        Node::Object(properties) => {
            let named = properties.iter().find(|(name, _)| is_same(name, step));
            waiting.extend(named.map(|(_, id)| (*id, at + 1)));
        }
        Node::Map(entries) => {
            // Only an equal number can have the same text.
            let number: Option<f64> = step.parse().ok();
            let named = entries.iter().find(|(key, _)| match value.node(*key) {
                Some(Node::String(text)) => is_same(text, step),
                Some(Node::Number(n)) => {
                    number.is_some_and(|same| same.total_cmp(n).is_eq()) && n.to_string() == step
                }
                _ => false,
            });
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
            match entries.iter().find(|(name, _)| is_same(name, step)) {
                Some((_, item)) => waiting.push((*item, at + 1)),
                None => waiting.extend(entries.iter().rev().map(|(_, item)| (*item, at))),
            }
        }
        _ => {}
    }
}

fn is_same(name: &JsString, step: &str) -> bool {
    name.as_wtf8() == step.as_bytes()
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
    use num_bigint::BigInt;

    use super::*;

    fn object(value: &mut Value, properties: &[(&str, NodeId)]) -> Node {
        let _ = value;
        Node::Object(properties.iter().map(|(name, id)| (JsString::from(*name), *id)).collect())
    }

    fn texts(value: &Value, fields: &[&str]) -> Option<Vec<String>> {
        let bytes = cbor::encode(value).unwrap();
        let fields: Vec<String> = fields.iter().map(|field| (*field).to_owned()).collect();
        Texts::new(&fields, Tokenizer::Unicode61).of(Encoding::Cbor, &bytes)
    }

    #[test]
    fn text_is_strings_numbers_and_array_items() {
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
        // An object in two places is shared, and stays so after decoding.
        assert_eq!(texts(&value, &["tags", "big"]), Some(vec!["red green".into(), "5".into()]));
        assert_eq!(texts(&value, &["makers.year"]), Some(vec!["1987 1987".into()]));
        assert_eq!(
            texts(&value, &["makers.0.name", "tags.1"]),
            Some(vec!["red".into(), "green".into()])
        );
        assert_eq!(texts(&value, &["flag", "makers", "none.at.all"]), None);
    }

    #[test]
    fn a_cyclic_value_is_indexed() {
        let mut value = Value::new(Node::Null);
        let root = value.root_id();
        value.set(root, Node::Array(vec![root, root]));
        assert_eq!(texts(&value, &["a.b"]), None);
    }

    /// One object under many names made every field walk it as often, for seconds.
    #[test]
    fn shared_objects_cost_no_more_than_copies() {
        let mut value = Value::new(Node::Null);
        let text = value.push(Node::String("x".repeat(1000).as_str().into()));
        let shared = object(&mut value, &[("text", text)]);
        let shared = value.push(shared);
        let root = value.root_id();
        value.set(root, Node::Array(vec![shared; 20_000]));
        let bytes = cbor::encode(&value).unwrap().len();
        let text = texts(&value, &["text"]).unwrap().remove(0);
        assert!(
            (10_000..=INDEX_FIELD_COST_PER_BYTE_MAX * bytes).contains(&text.len()),
            "{}",
            text.len()
        );
    }

    #[test]
    fn a_value_without_shared_objects_is_walked_to_its_end() {
        let mut value = Value::new(Node::Null);
        let smallest = f64::from_bits(1);
        let items: Vec<_> = (0..5000)
            .map(|n| {
                let number = if n % 2 == 0 { 1.0 } else { smallest };
                let properties = [("n", value.push(Node::Number(number)))];
                let item = object(&mut value, &properties);
                value.push(item)
            })
            .collect();
        let root = value.root_id();
        value.set(root, Node::Array(items));
        let fields = ["n"; 32];
        let words = |text: &String| text.split(' ').count();
        assert!(texts(&value, &fields).unwrap().iter().map(words).eq([5000; 32]));
    }

    #[test]
    fn bigints_have_text_up_to_a_bound() {
        let mut value = Value::new(Node::Null);
        let longest = value.push(Node::BigInt(BigInt::from(1) << (INDEX_BIGINT_BITS_MAX - 1)));
        let longer = value.push(Node::BigInt(BigInt::from(-1) << INDEX_BIGINT_BITS_MAX));
        let root = object(&mut value, &[("longest", longest), ("longer", longer)]);
        value.set(value.root_id(), root);
        let found = texts(&value, &["longest", "longer"]).unwrap();
        assert_eq!((found[0].len(), found[1].as_str()), (1233, ""));
    }

    #[test]
    fn other_encodings_have_no_text() {
        let fields = ["a".to_owned()];
        assert_eq!(Texts::new(&fields, Tokenizer::Unicode61).of(Encoding::Bytes, b"a"), None);
        assert_eq!(Texts::new(&fields, Tokenizer::Unicode61).of(Encoding::Cbor, b"\xff"), None);
    }
}
