//! The forms of values that contain no others, both directions together.

use num_bigint::BigInt;

use crate::codec::date;
use crate::interchange::bigint;
use crate::interchange::json_text::{from_base64, push_base64url, push_string};
use crate::model::{
    BIGINT_TEXT_BITS_MAX, Buffer, JsString, Node, NodeId, RegExp, Value, ViewClass, push_number,
};

/// Appends a value; `false`, without a change, if the form has none for it.
pub(in crate::interchange) fn push(out: &mut String, node: &Node) -> bool {
    match node {
        Node::Undefined => out.push_str(r#"{"type":"undefined"}"#),
        Node::Null => out.push_str(r#"{"type":"null","value":null}"#),
        Node::Bool(true) => out.push_str(r#"{"type":"boolean","value":true}"#),
        Node::Bool(false) => out.push_str(r#"{"type":"boolean","value":false}"#),
        Node::Number(n) if *n == 0.0 && n.is_sign_negative() => return false,
        Node::Number(n) => {
            out.push_str(r#"{"type":"number","value":"#);
            match (n.is_finite(), n.is_nan(), n.is_sign_positive()) {
                (true, ..) => push_number(out, *n),
                (_, true, _) => out.push_str(r#""NaN""#),
                (.., true) => out.push_str(r#""Infinity""#),
                (.., false) => out.push_str(r#""-Infinity""#),
            }
            out.push('}');
        }
        Node::BigInt(n) if n.bits() > BIGINT_TEXT_BITS_MAX => return false,
        Node::BigInt(n) => push_digits(out, "bigint", n),
        Node::String(text) => {
            out.push_str(r#"{"type":"string","value":"#);
            push_string(out, text);
            out.push('}');
        }
        Node::Date(ms) if ms.is_nan() => out.push_str(r#"{"type":"Date","value":null}"#),
        Node::Date(ms) => {
            out.push_str(r#"{"type":"Date","value":""#);
            date::push(out, *ms as i64);
            out.push_str("\"}");
        }
        Node::RegExp(regexp) => {
            out.push_str(r#"{"type":"RegExp","value":"#);
            push_string(out, &regexp_text(regexp));
            out.push('}');
        }
        Node::Buffer(buffer) if buffer.max_bytes.is_none() => {
            push_bytes(out, BUFFER, &buffer.bytes);
        }
        Node::View(class, bytes) => push_bytes(out, class.name(), bytes),
        Node::Object(_)
        | Node::Array(_)
        | Node::SparseArray { .. }
        | Node::Map(_)
        | Node::Set(_)
        | Node::Boxed(_)
        | Node::Error(_)
        | Node::DomException(_)
        | Node::Buffer(_)
        | Node::Window(_)
        | Node::Blob(_) => return false,
    }
    true
}

const BUFFER: &str = "ArrayBuffer";

/// Appends an integer under a type.
pub(in crate::interchange) fn push_digits(
    out: &mut String,
    name: &str,
    n: &impl std::fmt::Display,
) {
    out.push_str(&format!(r#"{{"type":"{name}","value":"{n}"}}"#));
}

/// Appends bytes under a type.
pub(in crate::interchange) fn push_bytes(out: &mut String, name: &str, bytes: &[u8]) {
    out.push_str(&format!(r#"{{"type":"{name}","value":""#));
    push_base64url(out, bytes);
    out.push_str(&format!(r#"","byteLength":{}}}"#, bytes.len()));
}

/// The text of a regular expression, `/source/flags`.
pub(in crate::interchange) fn regexp_text(regexp: &RegExp) -> JsString {
    let text = [b"/", regexp.source.as_wtf8(), b"/", regexp.flags.as_bytes()].concat();
    JsString::from_wtf8(text).unwrap_or_default()
}

/// The type and the value of a typed object. An error says what the object lacks.
pub(in crate::interchange) fn envelope(
    json: &Value,
    id: NodeId,
) -> Result<(&str, Option<NodeId>), String> {
    let Some(Node::Object(entries)) = json.node(id) else {
        return Err("must be an object".to_owned());
    };
    let field = |wanted: &str| {
        let found = entries.iter().find(|(name, _)| name.as_wtf8() == wanted.as_bytes());
        found.map(|(_, id)| *id)
    };
    let name = match field("type").and_then(|id| json.node(id)) {
        Some(Node::String(name)) => name.as_str().unwrap_or("\u{fffd}"),
        Some(_) => return Err("type must be a string".to_owned()),
        None => return Err("an object with a type was expected".to_owned()),
    };
    Ok((name, field("value")))
}

/// The value under a type; `None` for types of this form that are no scalars, and for unknown ones.
pub(in crate::interchange) fn parse(
    json: &Value,
    name: &str,
    value: Option<NodeId>,
) -> Result<Option<Node>, String> {
    let value = value.and_then(|id| json.node(id));
    Ok(Some(match name {
        "undefined" => Node::Undefined,
        "null" => Node::Null,
        "string" => Node::String(text(value)?.clone()),
        "boolean" => match value {
            Some(Node::Bool(b)) => Node::Bool(*b),
            _ => return Err("value must be true or false".to_owned()),
        },
        "number" => Node::Number(number(value)?),
        "bigint" => Node::BigInt(integer(value)?),
        "Date" => Node::Date(time(value)?),
        "RegExp" => Node::RegExp(Box::new(regexp(text(value)?)?)),
        BUFFER => Node::Buffer(Box::new(Buffer { bytes: bytes(value)?, max_bytes: None })),
        _ => match ViewClass::from_name(name) {
            Some(class) => view(class, bytes(value)?)?,
            None => return Ok(None),
        },
    }))
}

pub(super) fn text(value: Option<&Node>) -> Result<&JsString, String> {
    match value {
        Some(Node::String(text)) => Ok(text),
        _ => Err("value must be a string".to_owned()),
    }
}

fn number(value: Option<&Node>) -> Result<f64, String> {
    Ok(match value {
        Some(Node::Number(n)) => *n,
        Some(Node::String(text)) => match text.as_str() {
            Some("NaN") => f64::NAN,
            Some("Infinity") => f64::INFINITY,
            Some("-Infinity") => f64::NEG_INFINITY,
            Some("-0") => -0.0,
            _ => return Err("value must be a number".to_owned()),
        },
        _ => return Err("value must be a number".to_owned()),
    })
}

pub(super) fn integer(value: Option<&Node>) -> Result<BigInt, String> {
    let text = match value {
        Some(Node::String(text)) => text.as_str().unwrap_or_default(),
        _ => "",
    };
    bigint(text)
}

pub(super) fn bytes(value: Option<&Node>) -> Result<Vec<u8>, String> {
    from_base64(text(value)?).ok_or_else(|| "value must be base64url".to_owned())
}

fn view(class: ViewClass, bytes: Vec<u8>) -> Result<Node, String> {
    if !bytes.len().is_multiple_of(class.element_bytes()) {
        return Err(format!("{} bytes are no whole {}", bytes.len(), class.name()));
    }
    Ok(Node::View(class, bytes.into()))
}

fn time(value: Option<&Node>) -> Result<f64, String> {
    if matches!(value, Some(Node::Null)) {
        return Ok(f64::NAN);
    }
    let text = text(value)?;
    let ms = text.as_str().and_then(date::parse);
    ms.map(|ms| ms as f64).ok_or_else(|| {
        format!("not a time in ISO 8601 with a zone: {}", String::from_utf8_lossy(text.as_wtf8()))
    })
}

/// All flags of regular expressions, in the order of JavaScript's `flags`.
const FLAGS: &str = "dgimsuvy";

fn regexp(text: &JsString) -> Result<RegExp, String> {
    let refused =
        || format!("not a regular expression: {}", String::from_utf8_lossy(text.as_wtf8()));
    let inner = text.as_wtf8().strip_prefix(b"/").ok_or_else(refused)?;
    let end = inner.iter().rposition(|byte| *byte == b'/').ok_or_else(refused)?;
    let (source, flags) = inner.split_at(end);
    let flags = std::str::from_utf8(flags.get(1..).unwrap_or_default()).map_err(|_| refused())?;
    let sorted: String = FLAGS.chars().filter(|flag| flags.contains(*flag)).collect();
    if sorted.len() != flags.len() || sorted.contains("uv") {
        return Err(refused());
    }
    let source = JsString::from_wtf8(escaped_source(source)).ok_or_else(refused)?;
    Ok(RegExp { source, flags: sorted })
}

/// The `source` of an expression: a slash outside a class and the ends of lines are escaped.
fn escaped_source(source: &[u8]) -> Vec<u8> {
    if source.is_empty() {
        return b"(?:)".to_vec();
    }
    let mut out = Vec::with_capacity(source.len());
    let (mut escaped, mut in_class) = (false, false);
    let mut rest = source;
    while let Some((&byte, after)) = rest.split_first() {
        rest = after;
        let was_escaped = std::mem::take(&mut escaped);
        let line_end: Option<&[u8]> = match (byte, after) {
            (b'\n', _) => Some(b"n"),
            (b'\r', _) => Some(b"r"),
            (0xe2, [0x80, 0xa8, ..]) => Some(b"u2028"),
            (0xe2, [0x80, 0xa9, ..]) => Some(b"u2029"),
            _ => None,
        };
        if let Some(name) = line_end {
            if !was_escaped {
                out.push(b'\\');
            }
            out.extend_from_slice(name);
            rest = after.get(if byte == 0xe2 { 2 } else { 0 }..).unwrap_or_default();
            continue;
        }
        match byte {
            b'\\' => escaped = !was_escaped,
            b'[' if !was_escaped => in_class = true,
            b']' if !was_escaped => in_class = false,
            b'/' if !was_escaped && !in_class => out.push(b'\\'),
            _ => {}
        }
        out.push(byte);
    }
    out
}
