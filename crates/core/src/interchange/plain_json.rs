//! Values in plain JSON, for programs that know only JSON, by the rules of docs/cli.md.
//!
//! Invariant: every value has a plain form. [`push`] tells whether it had to simplify: if it did
//! not, [`parse`] reads the same value. Neither recurses deeper than a constant, and the length of the text is bounded by
//! the value and [`PLAIN_JSON_REPEATED_BYTES_MAX`].

mod simple;

use std::slice::Iter;

use num_bigint::BigInt;

use super::json::order_names;
use super::json_text::{push_base64, push_string};
use super::typed_json::scalar::regexp_text;
use super::{decode, json, le64};
use crate::codec::{cbor, date};
use crate::model::{
    BIGINT_TEXT_BITS_MAX, Boxed, EncodedValue, Encoding, Error, JsString, Node, NodeId,
    PLAIN_JSON_REPEATED_BYTES_MAX, Result, Value, ViewClass, push_number,
};

/// Appends a stored value. Returns whether it was simplified.
///
/// ```
/// use openkv_core::interchange::plain_json;
/// use openkv_core::model::Encoding;
/// let mut text = String::new();
/// assert!(!plain_json::push(&mut text, Encoding::Cbor, b"\xa1\x61a\x01")?);
/// assert_eq!(text, r#"{"a":1}"#);
/// text.clear();
/// assert!(plain_json::push(&mut text, Encoding::Bytes, b"hi")?);
/// assert_eq!(text, r#""aGk=""#);
/// # Ok::<(), openkv_core::model::Error>(())
/// ```
///
/// # Errors
/// `Corrupt` for bytes that are no value.
pub fn push(out: &mut String, encoding: Encoding, bytes: &[u8]) -> Result<bool> {
    match encoding {
        Encoding::Le64 => push_bigint(out, &le64(bytes)?.into()),
        Encoding::Bytes => push_quoted_base64(out, bytes),
        Encoding::Cbor if simple::push(out, bytes) => return Ok(false),
        Encoding::Cbor | Encoding::V8 => {
            let value = decode(encoding, bytes)?;
            return Ok(Writer::new(&value, out).run());
        }
    }
    Ok(true)
}

/// The stored value of a JSON text, always CBOR. Of a name that occurs twice the last value counts.
///
/// # Errors
/// `Invalid` for text that is not JSON and for a number beyond the range of a double; `Range` for a
/// value that is nested too deeply.
pub fn parse(text: &str) -> Result<EncodedValue> {
    let value = json::parse(text)?;
    if json::has_infinity(&value) {
        return Err(Error::invalid("a number is beyond the range of a double"));
    }
    Ok(EncodedValue { encoding: Encoding::Cbor, bytes: cbor::encode(&value)? })
}

/// A step that is still to be written, the next one last.
enum Step<'v> {
    Text(char),
    Node(NodeId),
    Items(Iter<'v, NodeId>),
    /// The items of an array by their index, `null` for the others, up to the length.
    Sparse {
        entries: Iter<'v, (JsString, NodeId)>,
        at: u32,
        length: u32,
    },
    Pairs(Iter<'v, (NodeId, NodeId)>),
    Entries(std::vec::IntoIter<(JsString, NodeId)>),
    /// The end of an object that contained the ones after it.
    Leave(NodeId),
}

/// How often an object has been met.
#[derive(Clone, Copy, PartialEq)]
enum Met {
    Never,
    /// It contains what is being written.
    Around,
    Before,
}

struct Writer<'v, 'o> {
    value: &'v Value,
    out: &'o mut String,
    start: usize,
    steps: Vec<Step<'v>>,
    met: Vec<Met>,
    simplified: bool,
}

impl<'v, 'o> Writer<'v, 'o> {
    fn new(value: &'v Value, out: &'o mut String) -> Self {
        let (steps, met) =
            (vec![Step::Node(value.root_id())], vec![Met::Never; value.node_count()]);
        let start = out.len();
        Self { value, out, start, steps, met, simplified: false }
    }

    fn run(mut self) -> bool {
        while let Some(step) = self.steps.pop() {
            match step {
                Step::Text(c) => self.out.push(c),
                Step::Node(id) => self.node(id),
                Step::Leave(id) => {
                    if let Some(met) = self.met.get_mut(id.index()) {
                        *met = Met::Before;
                    }
                }
                Step::Items(mut items) => {
                    if let Some(id) = items.next() {
                        self.steps.push(Step::Items(items));
                        self.separate();
                        self.steps.push(Step::Node(*id));
                    }
                }
                Step::Sparse { entries, at, length } => self.sparse_item(entries, at, length),
                Step::Pairs(mut pairs) => {
                    if let Some((key, item)) = pairs.next() {
                        self.steps.push(Step::Pairs(pairs));
                        self.separate();
                        self.out.push('[');
                        self.steps.push(Step::Text(']'));
                        self.steps.push(Step::Node(*item));
                        self.steps.push(Step::Text(','));
                        self.steps.push(Step::Node(*key));
                    }
                }
                Step::Entries(mut entries) => {
                    if let Some((name, id)) = entries.next() {
                        self.steps.push(Step::Entries(entries));
                        self.separate();
                        push_string(self.out, &name);
                        self.out.push(':');
                        self.steps.push(Step::Node(id));
                    }
                }
            }
        }
        self.simplified
    }

    fn sparse_item(&mut self, entries: Iter<'v, (JsString, NodeId)>, at: u32, length: u32) {
        if at == length {
            return;
        }
        self.separate();
        let mut after = entries.clone();
        let next = after.next().filter(|(name, _)| name.as_array_index() == Some(at));
        let entries = if next.is_some() { after } else { entries };
        self.steps.push(Step::Sparse { entries, at: at + 1, length });
        match next {
            Some((_, id)) => self.steps.push(Step::Node(*id)),
            None => self.out.push_str("null"),
        }
    }

    /// A comma, unless the container was just opened.
    fn separate(&mut self) {
        if !self.out.ends_with(['[', '{']) {
            self.out.push(',');
        }
    }

    /// Whether the text is longer than what a value without repetitions is given.
    fn is_long(&self, more_bytes: usize) -> bool {
        (self.out.len() - self.start).saturating_add(more_bytes) > PLAIN_JSON_REPEATED_BYTES_MAX
    }

    fn node(&mut self, id: NodeId) {
        let Some(node) = self.value.node(id) else { return };
        if !node.is_primitive() {
            let met = self.met.get(id.index()).copied().unwrap_or(Met::Never);
            self.simplified |= met != Met::Never;
            if met == Met::Around || (met == Met::Before && self.is_long(0)) {
                self.out.push_str("null");
                return;
            }
            if let Some(met) = self.met.get_mut(id.index()) {
                *met = Met::Around;
            }
            self.steps.push(Step::Leave(id));
        }
        match node {
            Node::Object(entries) => self.object(entries.iter().cloned()),
            Node::Array(items) => self.items(items),
            node => {
                self.simplified |= self.is_simplified(node);
                self.other(node);
            }
        }
    }

    fn is_simplified(&self, node: &Node) -> bool {
        match node {
            Node::Null | Node::Bool(_) | Node::String(_) => false,
            Node::Number(n) => !n.is_finite() || (*n == 0.0 && n.is_sign_negative()),
            _ => true,
        }
    }

    /// Nodes that are no plain object or array.
    fn other(&mut self, node: &'v Node) {
        match node {
            Node::Bool(b) => self.out.push_str(if *b { "true" } else { "false" }),
            Node::Number(n) => push_double(self.out, *n),
            Node::BigInt(n) => push_bigint(self.out, n),
            Node::String(text) => push_string(self.out, text),
            Node::Date(ms) if !ms.is_nan() => {
                self.out.push('"');
                date::push(self.out, *ms as i64);
                self.out.push('"');
            }
            Node::Undefined | Node::Null | Node::Date(_) => self.out.push_str("null"),
            Node::RegExp(regexp) => push_string(self.out, &regexp_text(regexp)),
            Node::Boxed(boxed) => match &**boxed {
                Boxed::Boolean(b) => self.out.push_str(if *b { "true" } else { "false" }),
                Boxed::Number(n) => push_double(self.out, *n),
                Boxed::String(text) => push_string(self.out, text),
                Boxed::BigInt(n) => push_bigint(self.out, n),
            },
            Node::Error(error) => {
                let message = error.message.clone().unwrap_or_default();
                self.named(&error.name.name().into(), &message);
            }
            Node::DomException(exception) => self.named(&exception.name, &exception.message),
            Node::Buffer(buffer) => push_quoted_base64(self.out, &buffer.bytes),
            Node::Blob(blob) => push_quoted_base64(self.out, &blob.bytes),
            Node::View(class, bytes) => self.view(*class, bytes),
            Node::Window(window) => {
                let Some(Node::Buffer(buffer)) = self.value.node(window.buffer) else { return };
                let start = usize::try_from(window.offset_bytes).unwrap_or(usize::MAX);
                let shown = buffer.bytes.get(start..).unwrap_or_default();
                let element = window.class.element_bytes();
                let len = match window.length {
                    Some(length) => usize::try_from(length).unwrap_or(usize::MAX),
                    None => shown.len() / element,
                };
                let len = len.saturating_mul(element).min(shown.len());
                self.view(window.class, shown.get(..len).unwrap_or_default());
            }
            Node::Set(items) | Node::Array(items) => self.items(items),
            Node::Map(pairs) => {
                let name = |(key, item): &(NodeId, NodeId)| match self.value.node(*key) {
                    Some(Node::String(name)) => Some((name.clone(), *item)),
                    _ => None,
                };
                match pairs.iter().map(name).collect::<Option<Vec<_>>>() {
                    Some(entries) => self.object(entries.into_iter()),
                    None => self.open('[', ']', Step::Pairs(pairs.iter())),
                }
            }
            Node::Object(entries) => self.object(entries.iter().cloned()),
            Node::SparseArray { length, entries } => self.sparse(*length, entries),
        }
    }

    /// An array with holes. One with so many that the text would be too long is an object.
    fn sparse(&mut self, length: u32, entries: &'v [(JsString, NodeId)]) {
        const HOLE_BYTES: usize = "null,".len();
        let length_bytes =
            usize::try_from(length).map_or(usize::MAX, |n| n.saturating_mul(HOLE_BYTES));
        if self.is_long(length_bytes) {
            let indexed = entries.iter().filter(|(name, _)| name.as_array_index().is_some());
            return self.object(indexed.cloned());
        }
        self.open('[', ']', Step::Sparse { entries: entries.iter(), at: 0, length });
    }

    fn items(&mut self, items: &'v [NodeId]) {
        self.open('[', ']', Step::Items(items.iter()));
    }

    /// An object without its properties that are `undefined`.
    fn object(&mut self, entries: impl Iterator<Item = (JsString, NodeId)>) {
        let mut kept = Vec::with_capacity(entries.size_hint().0);
        for (name, id) in entries {
            match self.value.node(id) {
                Some(Node::Undefined) | None => self.simplified = true,
                Some(_) => kept.push((name, id)),
            }
        }
        order_names(&mut kept);
        self.open('{', '}', Step::Entries(kept.into_iter()));
    }

    fn open(&mut self, start: char, end: char, inside: Step<'v>) {
        self.out.push(start);
        self.steps.push(Step::Text(end));
        self.steps.push(inside);
    }

    fn named(&mut self, name: &JsString, message: &JsString) {
        self.out.push_str("{\"name\":");
        push_string(self.out, name);
        self.out.push_str(",\"message\":");
        push_string(self.out, message);
        self.out.push('}');
    }

    fn view(&mut self, class: ViewClass, bytes: &[u8]) {
        if matches!(class, ViewClass::Uint8 | ViewClass::DataView) {
            return push_quoted_base64(self.out, bytes);
        }
        self.out.push('[');
        for (at, element) in bytes.chunks_exact(class.element_bytes()).enumerate() {
            if at > 0 {
                self.out.push(',');
            }
            push_element(self.out, class, element);
        }
        self.out.push(']');
    }
}

/// Appends an element of a typed array, which is little-endian.
fn push_element(out: &mut String, class: ViewClass, element: &[u8]) {
    let bits = element.iter().rev().fold(0_u64, |bits, byte| bits << 8 | u64::from(*byte));
    let unused = 64 - 8 * class.element_bytes() as u32;
    let signed = (bits << unused) as i64 >> unused;
    match class {
        ViewClass::Int8 | ViewClass::Int16 | ViewClass::Int32 => push_double(out, signed as f64),
        ViewClass::Uint8
        | ViewClass::Uint8Clamped
        | ViewClass::DataView
        | ViewClass::Uint16
        | ViewClass::Uint32 => push_double(out, bits as f64),
        ViewClass::BigInt64 => push_bigint(out, &signed.into()),
        ViewClass::BigUint64 => push_bigint(out, &bits.into()),
        ViewClass::Float16 => push_double(out, half(bits)),
        ViewClass::Float32 => push_double(out, f64::from(f32::from_bits(bits as u32))),
        ViewClass::Float64 => push_double(out, f64::from_bits(bits)),
    }
}

/// The double of a half-precision float.
fn half(bits: u64) -> f64 {
    let (exponent, fraction) = ((bits >> 10 & 0x1f) as i32, (bits & 0x3ff) as f64);
    let magnitude = match exponent {
        0 => fraction * 2.0_f64.powi(-24),
        0x1f if fraction == 0.0 => f64::INFINITY,
        0x1f => f64::NAN,
        _ => (1024.0 + fraction) * 2.0_f64.powi(exponent - 25),
    };
    if bits & 0x8000 == 0 { magnitude } else { -magnitude }
}

fn push_double(out: &mut String, n: f64) {
    match n.is_finite() {
        true => push_number(out, n),
        false => out.push_str("null"),
    }
}

/// Largest integer up to which all are doubles.
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// A number as long as a number holds it exactly, else text.
fn push_bigint(out: &mut String, n: &BigInt) {
    let safe = i64::try_from(n).ok().filter(|n| n.unsigned_abs() <= SAFE_INTEGER_MAX);
    match safe {
        Some(n) => push_number(out, n as f64),
        None if n.bits() > BIGINT_TEXT_BITS_MAX => {
            let sign = if n.sign() == num_bigint::Sign::Minus { "-" } else { "" };
            out.push_str(&format!("\"{sign}0x{:x}\"", n.magnitude()));
        }
        None => out.push_str(&format!("\"{n}\"")),
    }
}

fn push_quoted_base64(out: &mut String, bytes: &[u8]) {
    out.push('"');
    push_base64(out, bytes);
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn there(value: &Value) -> (String, bool) {
        let mut out = String::new();
        let simplified = push(&mut out, Encoding::Cbor, &cbor::encode(value).unwrap()).unwrap();
        (out, simplified)
    }

    /// 2^60 items, if each reference were written.
    #[test]
    fn an_object_that_doubles_itself_is_cut() {
        let mut value = Value::new(Node::Null);
        let mut inner = value.push(Node::String("x".repeat(1000).into()));
        for _ in 0..60 {
            inner = value.push(Node::Array(vec![inner, inner]));
        }
        value.set(value.root_id(), Node::Array(vec![inner, inner]));
        let (text, simplified) = there(&value);
        assert!(simplified);
        let bytes = text.len();
        assert!(
            (PLAIN_JSON_REPEATED_BYTES_MAX..2 * PLAIN_JSON_REPEATED_BYTES_MAX).contains(&bytes)
        );
        assert!(parse(&text).is_ok());
    }

    #[test]
    fn an_array_of_holes_is_cut() {
        let mut value = Value::new(Node::Null);
        let one = value.push(Node::Number(1.0));
        let sparse =
            |length, name: &str| Node::SparseArray { length, entries: vec![(name.into(), one)] };
        value.set(value.root_id(), sparse(3, "1"));
        assert_eq!(there(&value), ("[null,1,null]".to_owned(), true));
        value.set(value.root_id(), sparse(u32::MAX, "7"));
        assert_eq!(there(&value), (r#"{"7":1}"#.to_owned(), true));
    }

    #[test]
    fn numbers_beyond_a_double_are_refused() {
        for text in ["1e400", r#"{"a":[-1e309]}"#] {
            let message = parse(text).unwrap_err().message().to_owned();
            assert_eq!(message, "a number is beyond the range of a double");
        }
        assert_ne!(parse("-0").unwrap(), parse("0").unwrap());
    }

    #[test]
    fn large_bigints_are_hexadecimal() {
        let text = |n: BigInt| there(&Value::new(Node::BigInt(n))).0;
        let largest: BigInt = (BigInt::from(1) << BIGINT_TEXT_BITS_MAX) - 1;
        assert!(text(largest).starts_with("\"14"));
        let beyond: BigInt = -(BigInt::from(1) << BIGINT_TEXT_BITS_MAX);
        assert_eq!(text(beyond), format!("\"-0x1{}\"", "0".repeat(8192)));
    }
}
