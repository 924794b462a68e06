//! Plain JSON of values that have only its types, in one pass over their bytes.
//!
//! Invariant: the text is the one that the way through a tree gives. Anything that could make a
//! difference, and bytes that are no value, take that way.

use crate::codec::cbor::{SimpleItem, SimpleReader};
use crate::interchange::json_text::push_text;
use crate::model::push_number;

/// Levels of nesting; deeper values take a tree.
const DEPTH_MAX: usize = 16;
/// Members of an object; one with more takes a tree, which finds names that occur twice.
const MEMBERS_MAX: usize = 16;

/// Appends a value as it is. `false`, and `out` as before, if it takes a tree.
pub(super) fn push(out: &mut String, bytes: &[u8]) -> bool {
    let (start, mut reader) = (out.len(), SimpleReader::new(bytes));
    let is_done = item(out, &mut reader, DEPTH_MAX).is_some() && reader.is_at_end();
    if !is_done {
        out.truncate(start);
    }
    is_done
}

fn item(out: &mut String, reader: &mut SimpleReader<'_>, depth_left: usize) -> Option<()> {
    match reader.item()? {
        SimpleItem::Null => out.push_str("null"),
        SimpleItem::Bool(b) => out.push_str(if b { "true" } else { "false" }),
        SimpleItem::Number(n) => number(out, n)?,
        SimpleItem::Text(text) => push_text(out, text),
        SimpleItem::Array(len) => {
            let depth_left = depth_left.checked_sub(1)?;
            out.push('[');
            for at in 0..len {
                separate(out, at);
                item(out, reader, depth_left)?;
            }
            out.push(']');
        }
        SimpleItem::Numbers(packed) => {
            depth_left.checked_sub(1)?;
            out.push('[');
            for (at, n) in packed.iter().enumerate() {
                separate(out, at);
                number(out, n)?;
            }
            out.push(']');
        }
        SimpleItem::Object(len) => {
            let depth_left = depth_left.checked_sub(1)?;
            let mut names = [""; MEMBERS_MAX];
            out.push('{');
            for at in 0..len {
                let SimpleItem::Text(name) = reader.item()? else { return None };
                let (known, rest) = names.split_at_mut_checked(at)?;
                // Array indexes come first in a text, so their objects are put in order by a tree.
                if known.contains(&name) || name.starts_with(|c: char| c.is_ascii_digit()) {
                    return None;
                }
                *rest.first_mut()? = name;
                separate(out, at);
                push_text(out, name);
                out.push(':');
                item(out, reader, depth_left)?;
            }
            out.push('}');
        }
    }
    Some(())
}

/// A number that JSON has.
fn number(out: &mut String, n: f64) -> Option<()> {
    if !n.is_finite() || (n == 0.0 && n.is_sign_negative()) {
        return None;
    }
    push_number(out, n);
    Some(())
}

fn separate(out: &mut String, at: usize) {
    if at > 0 {
        out.push(',');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::cbor;
    use crate::codec::hex::hex;
    use crate::interchange::plain_json::Writer;
    use crate::model::Encoding;

    /// The texts of both ways; `None` for a value that takes a tree.
    fn both(bytes: &[u8]) -> (Option<String>, String, bool) {
        let (mut simple, mut whole) = ("before".to_owned(), String::new());
        let is_simple = push(&mut simple, bytes);
        let simplified = Writer::new(&cbor::decode(bytes).unwrap(), &mut whole).run();
        if !is_simple {
            assert_eq!(simple, "before", "nothing is left of the attempt");
        }
        let text = is_simple.then(|| simple.trim_start_matches("before").to_owned());
        (text, whole, simplified)
    }

    #[test]
    fn the_text_is_that_of_a_tree() {
        let file: serde_json::Value =
            serde_json::from_str(include_str!("../../../../../tests/vectors/interchange.json"))
                .unwrap();
        let mut simple = 0;
        for row in file["values"].as_array().unwrap() {
            let bytes = hex(row["hex"].as_str().unwrap());
            if row["encoding"] != Encoding::Cbor.id() {
                continue;
            }
            let (text, whole, simplified) = both(&bytes);
            if let Some(text) = text {
                assert_eq!((text, simplified), (whole, false), "{row}");
                simple += 1;
            }
        }
        assert!(simple > 10, "{simple} values");
    }

    fn value(json: &str) -> Vec<u8> {
        crate::interchange::plain_json::parse(json).unwrap().bytes
    }

    #[test]
    fn values_within_the_bounds_are_simple() {
        let nested = |depth: usize| format!("{}1{}", "[".repeat(depth), "]".repeat(depth));
        let members = |count: usize| {
            let all: Vec<_> = (0..count).map(|n| format!("\"m{n}\":{n}")).collect();
            format!("{{{}}}", all.join(","))
        };
        for (json, is_simple) in [
            (r#"{"a":[1,2.5,"x\n",null,true,{"b":{}}],"c":[]}"#.to_owned(), true),
            (nested(DEPTH_MAX), true),
            (nested(DEPTH_MAX + 1), false),
            (members(MEMBERS_MAX), true),
            (members(MEMBERS_MAX + 1), false),
            (r#"{"b":1,"0":2}"#.to_owned(), false),
        ] {
            let (text, whole, simplified) = both(&value(&json));
            assert_eq!((text.is_some(), simplified), (is_simple, false), "{json}");
            assert!(text.is_none_or(|text| text == whole), "{json}");
        }
    }

    #[test]
    fn other_bytes_take_a_tree() {
        for bytes in [
            &b"\xa2\x61a\x01\x61a\x02"[..], // a name twice
            b"\x01\x01",                    // bytes after the end
            b"\x82\x01",                    // cut off
            b"\x18\x01",                    // not the shortest form
            b"\xf9\x80\x00",                // -0, as a half
            b"\xfb\x7f\xf8\0\0\0\0\0\0",    // NaN
            b"\xf7",                        // undefined
            b"\xc2\x41\x01",                // a bigint
            b"\x61\xff",                    // not UTF-8
            b"\xa1\x01\x01",                // a name that is no text
            b"",
        ] {
            let mut out = "before".to_owned();
            assert!(!push(&mut out, bytes), "{bytes:?}");
            assert_eq!(out, "before");
        }
    }
}
