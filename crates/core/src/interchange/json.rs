//! The parser of JSON.
//!
//! Duty: JSON → a [`Value`] of `null`, booleans, numbers, strings, arrays and objects, as
//! JavaScript's `JSON.parse` gives it: of a name that occurs twice the last value counts, indexes
//! come before other names, an escaped lone surrogate stays one, and a number beyond the range of a
//! double is infinite.
//! Invariant: accepts exactly RFC 8259, nested up to [`JSON_DEPTH_MAX`] levels, without integers that a
//! double would round.
//! Never: recursion. `serde_json` recurses, and refuses lone surrogates.

use indexmap::IndexMap;

use crate::model::{Error, JSON_DEPTH_MAX, JsString, Node, NodeId, Result, Value, push_number};

/// Parses one JSON value.
///
/// # Errors
/// `Invalid`, with the fault and its character.
pub(super) fn parse(text: &str) -> Result<Value> {
    let mut parser = Parser { text, at: 0, value: Value::new(Node::Null), frames: Vec::new() };
    parser.run()?;
    Ok(parser.value)
}

/// Array indexes first, ascending, as JavaScript orders properties.
pub(super) fn order_names(entries: &mut [(JsString, NodeId)]) {
    let place = |name: &JsString| name.as_array_index().map_or((true, 0), |index| (false, index));
    if !entries.is_sorted_by_key(|(name, _)| place(name)) {
        entries.sort_by_key(|(name, _)| place(name));
    }
}

/// Whether a number of the JSON is beyond the range of a double.
pub(super) fn has_infinity(json: &Value) -> bool {
    json.nodes().any(|node| matches!(node, Node::Number(n) if n.is_infinite()))
}

enum Frame {
    Array { id: NodeId, items: Vec<NodeId> },
    Object { id: NodeId, entries: IndexMap<JsString, NodeId>, name: JsString },
}

struct Parser<'t> {
    text: &'t str,
    /// The byte that is next.
    at: usize,
    value: Value,
    frames: Vec<Frame>,
}

impl<'t> Parser<'t> {
    fn run(&mut self) -> Result<()> {
        let mut whole = self.item(true)?;
        loop {
            let Some(id) = whole else {
                whole = self.first()?;
                continue;
            };
            match self.frames.last_mut() {
                None => break,
                Some(Frame::Array { items, .. }) => items.push(id),
                Some(Frame::Object { entries, name, .. }) => {
                    entries.insert(std::mem::take(name), id);
                }
            }
            whole = self.next()?;
        }
        self.skip_space();
        if self.at < self.text.len() { self.fail("nothing more was expected") } else { Ok(()) }
    }

    /// The first item of the container that was opened, or its end.
    fn first(&mut self) -> Result<Option<NodeId>> {
        self.skip_space();
        let end = self.end_byte();
        if self.peek() == Some(end) {
            return self.close().map(Some);
        }
        self.name()?;
        self.item(false)
    }

    /// The next item of the innermost container, or its end.
    fn next(&mut self) -> Result<Option<NodeId>> {
        self.skip_space();
        match self.peek() {
            Some(b',') => {
                self.at += 1;
                self.name()?;
                self.item(false)
            }
            Some(byte) if byte == self.end_byte() => self.close().map(Some),
            _ => self.fail(match self.frames.last() {
                Some(Frame::Array { .. }) => "',' or ']' was expected",
                _ => "',' or '}' was expected",
            }),
        }
    }

    fn end_byte(&self) -> u8 {
        match self.frames.last() {
            Some(Frame::Array { .. }) => b']',
            _ => b'}',
        }
    }

    fn close(&mut self) -> Result<NodeId> {
        self.at += 1;
        match self.frames.pop() {
            Some(Frame::Array { id, items }) => {
                self.value.set(id, Node::Array(items));
                Ok(id)
            }
            Some(Frame::Object { id, entries, .. }) => {
                let mut entries: Vec<_> = entries.into_iter().collect();
                order_names(&mut entries);
                self.value.set(id, Node::Object(entries));
                Ok(id)
            }
            None => self.fail("nothing more was expected"),
        }
    }

    /// Reads the name before the next item, in an object.
    fn name(&mut self) -> Result<()> {
        if !matches!(self.frames.last(), Some(Frame::Object { .. })) {
            return Ok(());
        }
        self.skip_space();
        if self.peek() != Some(b'"') {
            return self.fail("a name in quotes was expected");
        }
        let read = self.string()?;
        self.skip_space();
        if self.peek() != Some(b':') {
            return self.fail("':' was expected");
        }
        self.at += 1;
        if let Some(Frame::Object { name, .. }) = self.frames.last_mut() {
            *name = read;
        }
        Ok(())
    }

    /// A scalar, or `None` after opening a container.
    fn item(&mut self, is_root: bool) -> Result<Option<NodeId>> {
        self.skip_space();
        let node = match self.peek() {
            Some(open @ (b'[' | b'{')) => {
                if self.frames.len() >= JSON_DEPTH_MAX {
                    return self.fail("nested too deeply");
                }
                self.at += 1;
                let id = if is_root { self.value.root_id() } else { self.value.push(Node::Null) };
                self.frames.push(match open {
                    b'[' => Frame::Array { id, items: Vec::new() },
                    _ => {
                        let (entries, name) = (IndexMap::new(), JsString::default());
                        Frame::Object { id, entries, name }
                    }
                });
                return Ok(None);
            }
            Some(b'"') => Node::String(self.string()?),
            Some(b'-' | b'0'..=b'9') => Node::Number(self.number()?),
            Some(b't') => self.word("true", Node::Bool(true))?,
            Some(b'f') => self.word("false", Node::Bool(false))?,
            Some(b'n') => self.word("null", Node::Null)?,
            Some(_) => return self.fail("a value was expected"),
            None => return self.fail("a value is missing"),
        };
        if is_root {
            self.value.set(self.value.root_id(), node);
            return Ok(Some(self.value.root_id()));
        }
        Ok(Some(self.value.push(node)))
    }

    fn word(&mut self, word: &str, node: Node) -> Result<Node> {
        if !self.rest().starts_with(word.as_bytes()) {
            return self.fail("a value was expected");
        }
        self.at += word.len();
        Ok(node)
    }

    fn number(&mut self) -> Result<f64> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        let leads_with_zero = self.peek() == Some(b'0');
        let digits = self.digits();
        if digits == 0 || (leads_with_zero && digits > 1) {
            return self.fail("not a number");
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            if self.digits() == 0 {
                return self.fail("a digit was expected");
            }
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            if self.digits() == 0 {
                return self.fail("a digit was expected");
            }
        }
        let text = self.text.get(start..self.at).unwrap_or_default();
        let number = text.parse().or_else(|_| self.fail("not a number"))?;
        if rounds(text, number) {
            self.at = start;
            let place = self.place();
            return Err(Error::invalid(format!(
                "the integer at character {place} has digits that a number cannot hold: write it as a text, or \
                 in typed JSON as {{\"type\":\"bigint\",\"value\":\"…\"}}"
            )));
        }
        Ok(number)
    }

    /// Skips digits; returns their number.
    fn digits(&mut self) -> usize {
        let count = self.rest().iter().take_while(|byte| byte.is_ascii_digit()).count();
        self.at += count;
        count
    }

    fn string(&mut self) -> Result<JsString> {
        let start = self.at;
        self.at += 1;
        let mut read = Vec::new();
        loop {
            let rest = self.rest();
            let plain = rest.iter().take_while(|byte| !matches!(byte, b'"' | b'\\' | 0..=0x1f));
            let (plain, rest) = rest.split_at(plain.count());
            read.extend_from_slice(plain);
            self.at += plain.len();
            match rest.first() {
                Some(b'"') => {
                    self.at += 1;
                    break;
                }
                Some(b'\\') => self.escape(&mut read)?,
                Some(_) => return self.fail("a control character must be escaped"),
                None => {
                    self.at = start;
                    return self.fail("the string does not end");
                }
            }
        }
        JsString::from_wtf8(read).map_or_else(|| self.fail("not a string"), Ok)
    }

    fn escape(&mut self, out: &mut Vec<u8>) -> Result<()> {
        let escaped = self.rest().get(1).copied();
        out.push(match escaped {
            Some(byte @ (b'"' | b'\\' | b'/')) => byte,
            Some(b'b') => 0x08,
            Some(b'f') => 0x0c,
            Some(b'n') => b'\n',
            Some(b'r') => b'\r',
            Some(b't') => b'\t',
            Some(b'u') => {
                let Some(unit) = self.unit() else { return self.fail("not an escape") };
                self.at += UNIT_BYTES;
                let high = 0xd800..0xdc00_u32;
                let low = self.unit().filter(|low| (0xdc00..0xe000).contains(low));
                let point = match low.filter(|_| high.contains(&unit)) {
                    Some(low) => {
                        self.at += UNIT_BYTES;
                        0x1_0000 + ((unit - 0xd800) << 10) + (low - 0xdc00)
                    }
                    None => unit,
                };
                push_wtf8(out, point);
                return Ok(());
            }
            _ => return self.fail("not an escape"),
        });
        self.at += 2;
        Ok(())
    }

    /// The code unit of an escape with four digits, if that is next.
    fn unit(&self) -> Option<u32> {
        let digits = self.rest().get(..UNIT_BYTES)?.strip_prefix(b"\\u")?;
        digits.iter().try_fold(0, |unit, digit| Some(unit << 4 | char::from(*digit).to_digit(16)?))
    }

    fn skip_space(&mut self) {
        let space = |byte: &&u8| matches!(byte, b' ' | b'\t' | b'\n' | b'\r');
        self.at += self.rest().iter().take_while(space).count();
    }

    fn peek(&self) -> Option<u8> {
        self.rest().first().copied()
    }

    fn rest(&self) -> &'t [u8] {
        self.text.as_bytes().get(self.at..).unwrap_or_default()
    }

    /// The character that is next, from 1.
    fn place(&self) -> usize {
        let before = self.text.get(..self.at).unwrap_or(self.text);
        before.encode_utf16().count() + 1
    }

    fn fail<T>(&self, what: &str) -> Result<T> {
        let place = self.place();
        Err(Error::invalid(format!("not JSON: {what} at character {place}")))
    }
}

/// Digits that every double keeps.
const EXACT_DIGITS_MAX: usize = 15;

/// Whether a finite number is not the integer that its text says. As JavaScript prints it, `123456789012345680000` is
/// the text of a double, and is read to it.
pub(super) fn rounds(text: &str, number: f64) -> bool {
    let digits = text.strip_prefix('-').unwrap_or(text);
    let is_long =
        digits.len() > EXACT_DIGITS_MAX && digits.bytes().all(|byte| byte.is_ascii_digit());
    if !is_long || !number.is_finite() {
        return false;
    }
    let mut printed = String::new();
    push_number(&mut printed, number.abs());
    // Of a finite number the text has at most 309 digits.
    printed != digits && format!("{:.0}", number.abs()) != digits
}

/// Bytes of such an escape.
const UNIT_BYTES: usize = 6;

/// Appends a code point, a lone surrogate as its three bytes.
pub(super) fn push_wtf8(out: &mut Vec<u8>, point: u32) {
    match char::from_u32(point) {
        Some(c) => out.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
        None => out.extend(
            [0xe0 | point >> 12, 0x80 | point >> 6 & 0x3f, 0x80 | point & 0x3f].map(|b| b as u8),
        ),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::interchange::json_text;

    /// The value as JSON, in the same order.
    fn written(value: &Value, id: NodeId) -> String {
        let mut out = String::new();
        match value.node(id).unwrap() {
            Node::Null => out.push_str("null"),
            Node::Bool(b) => out.push_str(if *b { "true" } else { "false" }),
            Node::Number(n) if *n == 0.0 && n.is_sign_negative() => out.push_str("-0"),
            Node::Number(n) => super::push_number(&mut out, *n),
            Node::String(text) => json_text::push_string(&mut out, text),
            Node::Array(items) => {
                let items: Vec<_> = items.iter().map(|id| written(value, *id)).collect();
                out = format!("[{}]", items.join(","));
            }
            Node::Object(entries) => {
                let entries = entries.iter().map(|(name, id)| {
                    let mut out = String::new();
                    json_text::push_string(&mut out, name);
                    format!("{out}:{}", written(value, *id))
                });
                out = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
            }
            other => panic!("{other:?}"),
        }
        out
    }

    fn there(text: &str) -> String {
        let value = parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
        written(&value, value.root_id())
    }

    #[test]
    fn values_are_those_of_json_parse() {
        for (text, expected) in [
            (" [1 , -0,\t1.50,1e3,-1E-7 ]\r\n", "[1,-0,1.5,1000,-1e-7]"),
            (r#"{"b":1,"a":2,"b":3,"1":4,"0":5}"#, r#"{"0":5,"1":4,"b":3,"a":2}"#),
            (r#""\ud83d\ude00\/\u0041\u001f\n""#, "\"😀/A\\u001f\\n\""),
            (r#""\ud83d\ud83d\ude00\ude00x\udc00""#, r#""\ud83d😀\ude00x\udc00""#),
            ("[[],{},[null,true,false]]", "[[],{},[null,true,false]]"),
            (
                "[123456789012345680000,-9007199254740992]",
                "[123456789012345680000,-9007199254740992]",
            ),
            ("1152921504606846976", "1152921504606847000"),
        ] {
            assert_eq!(there(text), expected, "{text}");
        }
        let infinite = parse("-1e400").unwrap();
        assert_eq!(infinite.node(infinite.root_id()), Some(&Node::Number(f64::NEG_INFINITY)));
    }

    #[test]
    fn faults_are_named_with_their_character() {
        for (text, expected) in [
            ("", "not JSON: a value is missing at character 1"),
            ("[1,]", "not JSON: a value was expected at character 4"),
            ("[1 2]", "not JSON: ',' or ']' was expected at character 4"),
            ("{\"😀\" 1}", "not JSON: ':' was expected at character 7"),
            ("{a:1}", "not JSON: a name in quotes was expected at character 2"),
            ("01", "not JSON: not a number at character 3"),
            ("1.", "not JSON: a digit was expected at character 3"),
            ("\"a", "not JSON: the string does not end at character 1"),
            ("\"\t\"", "not JSON: a control character must be escaped at character 2"),
            ("\"\\x\"", "not JSON: not an escape at character 2"),
            ("\"\\ud83\"", "not JSON: not an escape at character 2"),
            ("1 1", "not JSON: nothing more was expected at character 3"),
            ("nul", "not JSON: a value was expected at character 1"),
            ("[1}", "not JSON: ',' or ']' was expected at character 3"),
        ] {
            assert_eq!(parse(text).unwrap_err().message(), expected, "{text}");
        }
    }

    /// `{"id":9007199254740993}` was stored as another number, in silence.
    #[test]
    fn integers_that_a_double_would_round_are_refused() {
        for (text, place) in [
            ("9007199254740993", 1),
            ("[-9007199254740993]", 2),
            (r#"{"a":12345678901234567890}"#, 6),
            ("123456789012345678901234567890", 1),
        ] {
            let message = parse(text).unwrap_err().message().to_owned();
            assert!(
                message.starts_with(&format!("the integer at character {place} ")),
                "{message}"
            );
        }
        for text in ["9007199254740992", "-9007199254740994", "9007199254740993.0", "1e25", "0.1"] {
            assert!(parse(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn nesting_has_a_bound() {
        let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        assert!(parse(&nested(JSON_DEPTH_MAX)).is_ok());
        assert!(parse(&nested(JSON_DEPTH_MAX + 1)).is_err());
        assert!(parse(&"[{\"a\":".repeat(1_000_000)).is_err());
    }

    proptest! {
        /// What `serde_json` accepts is accepted, and gives the same value. It refuses more: lone
        /// surrogates, numbers beyond a double.
        #[test]
        fn agrees_with_another_parser(text in r#"[\[\]{}:,"\\ua0-9eE.+ \-tnrflsx]{0,24}"#) {
            let (ours, theirs) = (parse(&text), serde_json::from_str::<serde_json::Value>(&text));
            match theirs {
                Ok(_) if ours.as_ref().is_err_and(|why| why.message().contains("cannot hold")) => {}
                Ok(theirs) => {
                    let ours = ours.unwrap();
                    let again = written(&ours, ours.root_id());
                    let again: serde_json::Value = serde_json::from_str(&again).unwrap();
                    prop_assert_eq!(plain(&again), plain(&theirs));
                }
                Err(why) if ours.is_ok() => {
                    let why = why.to_string();
                    prop_assert!(why.contains("surrogate") || why.contains("out of range")
                        || why.contains("hex escape"), "{}", why);
                }
                Err(_) => {}
            }
        }
    }

    /// All numbers as doubles.
    fn plain(json: &serde_json::Value) -> String {
        match json {
            serde_json::Value::Number(n) => format!("{:?}", n.as_f64().unwrap() + 0.0),
            serde_json::Value::Array(items) => {
                format!("{:?}", items.iter().map(plain).collect::<Vec<_>>())
            }
            serde_json::Value::Object(entries) => {
                let mut entries: Vec<_> = entries.iter().map(|(k, v)| (k, plain(v))).collect();
                entries.sort();
                format!("{entries:?}")
            }
            other => other.to_string(),
        }
    }
}
