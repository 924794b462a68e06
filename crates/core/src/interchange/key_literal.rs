//! Keys as literals, as in a command line and in `?key=` of a URL: `["users",42,42n,u8"00ff",true]`,
//! or one part alone. Text that is no literal is a string: `/tmp/x`, `2026-01-01`.
//!
//! Invariant: [`parse`] reads what [`print()`] writes as the same key, and accepts the keys that `js/cli/literal.ts` accepts, with the same errors.
//! Never: text that is evaluated.

use num_bigint::{BigInt, BigUint};

use super::json::push_wtf8;
use super::json_text::push_text;
use super::key_json::without_surrogates;
use crate::codec::key;
use crate::model::{Error, JsString, KEY_LITERAL_BYTES_MAX, Key, KeyPart, Result, push_number};

/// The key of a literal.
///
/// ```
/// use openkv_core::codec::key;
/// use openkv_core::interchange::key_literal;
/// let parsed = key_literal::parse(r#"["users", 42n, u8"00ff"]"#)?;
/// assert_eq!(key::print(parsed.as_bytes()), r#"["users",42n,Uint8Array(2)]"#);
/// assert_eq!(key_literal::parse("users")?, key_literal::parse(r#"["users"]"#)?);
/// # Ok::<(), openkv_core::model::Error>(())
/// ```
///
/// # Errors
/// `Invalid`, with the fault and its character.
pub fn parse(text: &str) -> Result<Key> {
    if text.len() > KEY_LITERAL_BYTES_MAX {
        let len = text.len();
        return Err(Error::invalid(format!(
            "a key as text has at most {KEY_LITERAL_BYTES_MAX} bytes: {len} bytes given"
        )));
    }
    if is_word(text) {
        return key::encode(&[KeyPart::String(text.to_owned())]);
    }
    // No number is printed with a plus; numbers of telephones begin with one.
    if text.trim_start_matches(is_space).starts_with('+') {
        return key::encode(&[KeyPart::String(text.to_owned())]);
    }
    let mut parser = Parser { text, at: 0 };
    let parts = parser.key().and_then(|parts| parser.end().map(|()| parts));
    match parts {
        Ok(parts) => key::encode(&parts),
        Err(error) if starts_literal(text) => Err(error),
        Err(_) => key::encode(&[KeyPart::String(text.to_owned())]),
    }
}

/// The literal of a key. Bytes that are no key are printed as bytes.
///
/// ```
/// use openkv_core::interchange::key_literal::{parse, print};
/// let key = parse(r#"["users", -42n, u8"00ff", -0, NaN]"#)?;
/// assert_eq!(print(key.as_bytes()), r#"["users",-42n,u8"00ff",-0,NaN]"#);
/// assert_eq!(parse(&print(key.as_bytes()))?, key);
/// # Ok::<(), openkv_core::model::Error>(())
/// ```
pub fn print(key: &[u8]) -> String {
    let Ok(parts) = key::decode(key) else { return printed_bytes(key) };
    let parts: Vec<String> = parts.iter().map(printed).collect();
    format!("[{}]", parts.join(","))
}

fn printed(part: &KeyPart) -> String {
    match part {
        KeyPart::String(text) => {
            let mut out = String::new();
            push_text(&mut out, text);
            out
        }
        KeyPart::Number(n) if n.is_nan() => "NaN".to_owned(),
        KeyPart::Number(n) if n.is_infinite() && *n < 0.0 => "-Infinity".to_owned(),
        KeyPart::Number(n) if n.is_infinite() => "Infinity".to_owned(),
        KeyPart::Number(n) if *n == 0.0 && n.is_sign_negative() => "-0".to_owned(),
        KeyPart::Number(n) => {
            let mut out = String::new();
            push_number(&mut out, *n);
            out
        }
        KeyPart::BigInt(n) => format!("{n}n"),
        KeyPart::Bytes(bytes) => printed_bytes(bytes),
        KeyPart::Bool(b) => b.to_string(),
    }
}

fn printed_bytes(bytes: &[u8]) -> String {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("u8\"{digits}\"")
}

/// The keys of an array of keys, or of one key: `[["users",42],["config"]]`.
pub fn parse_many(text: &str) -> Result<Vec<Key>> {
    let mut parser = Parser { text, at: 0 };
    let is_list = parser.passes('[') && parser.next_is('[');
    if !is_list || text.len() > KEY_LITERAL_BYTES_MAX {
        return Ok(vec![parse(text)?]);
    }
    let mut keys = Vec::new();
    while !parser.passes(']') {
        parser.more()?;
        if !parser.next_is('[') {
            return parser.fail("'[' was expected");
        }
        keys.push(key::encode(&parser.key()?)?);
        if parser.passes(']') {
            break;
        }
        parser.comma()?;
    }
    parser.end()?;
    Ok(keys)
}

/// Whether the text is an array of keys, as [`parse_many`] reads it.
pub fn is_list(text: &str) -> bool {
    let mut parser = Parser { text, at: 0 };
    parser.passes('[') && parser.next_is('[')
}

/// Whether the text starts like a name and has no character of a literal.
fn is_word(text: &str) -> bool {
    let starts = text.starts_with(|c: char| c.is_alphabetic() || "_$@".contains(c));
    let ends = |c: char| is_space(c) || "\"'`()[]{},".contains(c);
    starts && !text.contains(ends) && !KNOWN_WORDS.contains(&text)
}

/// Whether a text without a literal is a mistake: it is empty, one of the words that are no parts, or
/// starts an array, an object, a string or a form such as `date(…)`.
fn starts_literal(text: &str) -> bool {
    let text = text.trim_matches(is_space);
    text.is_empty()
        || KNOWN_WORDS.contains(&text)
        || text.starts_with(['"', '\'', '[', '{'])
        || LITERAL_STARTS.iter().any(|start| text.starts_with(start))
}

/// The starts of forms, as in `js/cli/literal-grammar.ts`.
const LITERAL_STARTS: [&str; 11] = [
    "u8\"", "u8'", "u64(", "date(", "set(", "map(", "regexp(", "error(", "view(", "cbor(", "typed(",
];

/// Words that are no strings.
const KNOWN_WORDS: [&str; 6] = ["true", "false", "null", "undefined", "NaN", "Infinity"];

/// White space of JavaScript.
fn is_space(c: char) -> bool {
    c == '\u{feff}' || (c != '\u{85}' && c.is_whitespace())
}

struct Parser<'t> {
    text: &'t str,
    /// The byte that is next.
    at: usize,
}

impl<'t> Parser<'t> {
    fn key(&mut self) -> Result<Vec<KeyPart>> {
        self.space();
        if self.peek() != Some('[') {
            return Ok(vec![self.part()?]);
        }
        self.at += 1;
        let mut parts = Vec::new();
        while !self.passes(']') {
            self.more()?;
            parts.push(self.part()?);
            if self.passes(']') {
                break;
            }
            self.comma()?;
        }
        Ok(parts)
    }

    /// Fails if the text ends before the end of an array.
    fn more(&mut self) -> Result<()> {
        self.space();
        if self.peek().is_none() { self.fail("the closing ']' is missing") } else { Ok(()) }
    }

    /// The comma between two items of an array.
    fn comma(&mut self) -> Result<()> {
        self.more()?;
        if self.passes(',') { Ok(()) } else { self.fail("',' or ']' was expected") }
    }

    fn end(&mut self) -> Result<()> {
        self.space();
        if self.at < self.text.len() { self.fail("nothing more was expected") } else { Ok(()) }
    }

    fn next_is(&mut self, c: char) -> bool {
        self.space();
        self.peek() == Some(c)
    }

    fn part(&mut self) -> Result<KeyPart> {
        self.space();
        match self.peek() {
            None => self.fail("a value is missing"),
            Some('[' | '{') => self.no_part(),
            Some(quote @ ('"' | '\'')) => {
                Ok(KeyPart::String(without_surrogates(&self.string(quote)?)))
            }
            Some('0'..='9' | '.' | '+' | '-') => self.number(),
            Some(_) => self.word(),
        }
    }

    fn word(&mut self) -> Result<KeyPart> {
        let is_name = |c: char| c.is_alphanumeric() || c == '_' || c == '$';
        let len = self.rest().find(|c| !is_name(c)).unwrap_or(self.rest().len());
        let word = self.rest().get(..len).unwrap_or_default();
        if word.is_empty() || word.starts_with(char::is_numeric) {
            return self.fail("a value was expected");
        }
        let after = self.rest().get(len..).and_then(|rest| rest.chars().next());
        match (word, after) {
            ("u8", Some(quote @ ('"' | '\''))) => {
                self.at += len;
                self.bytes(quote)
            }
            ("true" | "false", _) => {
                self.at += len;
                Ok(KeyPart::Bool(word == "true"))
            }
            ("NaN" | "Infinity", _) => self.number(),
            ("null" | "undefined" | "u64" | "date", _) => self.no_part(),
            _ => self.fail(&format!("unknown word '{word}' (is it a string without quotes?)")),
        }
    }

    fn no_part<T>(&self) -> Result<T> {
        self.fail(
            "a part of a key is a string, number, bigint, boolean or bytes: a part was expected",
        )
    }

    fn number(&mut self) -> Result<KeyPart> {
        let start = self.at;
        let negative = self.peek() == Some('-');
        if matches!(self.peek(), Some('+' | '-')) {
            self.at += 1;
        }
        let Some((text, radix)) = self.number_text() else {
            self.at = start;
            return self.fail("a number was expected");
        };
        let digits = if radix == 16 { text.get(2..).unwrap_or_default() } else { text };
        if radix == 10 && matches!(digits.as_bytes(), [b'0', b'0'..=b'9', ..]) {
            self.at = start;
            return self.fail("no number begins with 0 and a digit");
        }
        let whole = || BigUint::parse_bytes(digits.as_bytes(), radix).map(BigInt::from);
        if self.peek() == Some('n') {
            self.at += 1;
            let Some(n) = whole() else {
                self.at = start;
                return self.fail("a bigint has no point and no exponent");
            };
            return Ok(KeyPart::BigInt(if negative { -n } else { n }));
        }
        let n = match (text, radix) {
            ("NaN", _) => f64::NAN,
            ("Infinity", _) => f64::INFINITY,
            (_, 16) => hex_number(digits),
            _ => text.parse().unwrap_or(f64::NAN),
        };
        if loses_digits((text, digits), radix, n) {
            self.at = start;
            return self.fail(
                "a number cannot hold these digits: a bigint ends with n, and quotes make a string",
            );
        }
        Ok(KeyPart::Number(if negative && !n.is_nan() { -n } else { n }))
    }

    /// The text of a number without its sign, and its radix.
    fn number_text(&mut self) -> Option<(&'t str, u32)> {
        let rest = self.text.get(self.at..)?;
        let bytes = rest.as_bytes();
        let count = |from: usize, is: fn(&u8) -> bool| {
            bytes.get(from..).unwrap_or_default().iter().take_while(|byte| is(byte)).count()
        };
        let digits = |from| count(from, u8::is_ascii_digit);
        let word = ["Infinity", "NaN"].into_iter().find(|word| rest.starts_with(word));
        let hex = if matches!(bytes, [b'0', b'x' | b'X', ..]) {
            count(2, u8::is_ascii_hexdigit)
        } else {
            0
        };
        let (len, radix) = match word {
            Some(word) => (word.len(), 10),
            None if hex > 0 => (2 + hex, 16),
            None => {
                let whole = digits(0);
                let mut len = whole;
                if bytes.get(len) == Some(&b'.') {
                    let fraction = digits(len + 1);
                    if whole == 0 && fraction == 0 {
                        return None;
                    }
                    len += 1 + fraction;
                }
                if len == 0 {
                    return None;
                }
                if matches!(bytes.get(len), Some(b'e' | b'E')) {
                    let sign = usize::from(matches!(bytes.get(len + 1), Some(b'+' | b'-')));
                    let exponent = digits(len + 1 + sign);
                    if exponent > 0 {
                        len += 1 + sign + exponent;
                    }
                }
                (len, 10)
            }
        };
        self.at += len;
        Some((rest.get(..len)?, radix))
    }

    fn bytes(&mut self, quote: char) -> Result<KeyPart> {
        let start = self.at;
        let text = self.string(quote)?;
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let digits = text.as_wtf8().iter().copied().filter(|byte| !byte.is_ascii_whitespace());
        let digits = digits.collect::<Vec<u8>>();
        let (pairs, odd) = digits.as_chunks::<2>();
        let bytes = pairs.iter().map(|[high, low]| {
            let byte = digit(*high)? << 4 | digit(*low)?;
            u8::try_from(byte).ok()
        });
        match bytes.collect::<Option<Vec<u8>>>().filter(|_| odd.is_empty()) {
            Some(bytes) => Ok(KeyPart::Bytes(bytes)),
            None => {
                self.at = start;
                self.fail("not hexadecimal bytes")
            }
        }
    }

    fn string(&mut self, quote: char) -> Result<JsString> {
        let start = self.at;
        self.at += 1;
        let mut points: Vec<u32> = Vec::new();
        loop {
            match self.take() {
                None => {
                    self.at = start;
                    return self.fail("the string does not end");
                }
                Some(c) if c == quote => break,
                Some('\\') => {
                    if let Some(point) = self.escape()? {
                        points.push(point);
                    }
                }
                Some(c) => points.push(u32::from(c)),
            }
        }
        Ok(joined(&points))
    }

    /// The code point of an escape, after the backslash; `None` at the end of the text.
    fn escape(&mut self) -> Result<Option<u32>> {
        let start = self.at;
        let Some(c) = self.take() else { return Ok(None) };
        let digits = match c {
            'x' => self.hex_digits(2),
            'u' if self.peek() == Some('{') => {
                let braced = self.rest().get(1..).and_then(|rest| rest.split_once('}'));
                braced.map(|(digits, _)| digits.to_owned()).inspect(|digits| {
                    self.at += digits.len() + 2;
                })
            }
            'u' => self.hex_digits(4),
            _ => {
                return Ok(Some(match c {
                    'b' => 0x08,
                    'f' => 0x0c,
                    'n' => 0x0a,
                    'r' => 0x0d,
                    't' => 0x09,
                    'v' => 0x0b,
                    '0' => 0,
                    other => u32::from(other),
                }));
            }
        };
        let is_hex = |digits: &String| {
            (1..=6).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        };
        let point = digits.filter(is_hex).and_then(|digits| u32::from_str_radix(&digits, 16).ok());
        if let Some(point) = point.filter(|point| *point <= u32::from(char::MAX)) {
            return Ok(Some(point));
        }
        self.at = start;
        self.fail("not an escape")
    }

    fn hex_digits(&mut self, count: usize) -> Option<String> {
        let digits = self.rest().get(..count)?.to_owned();
        self.at += count;
        Some(digits)
    }

    /// Skips white space and comments.
    fn space(&mut self) {
        loop {
            let rest = self.rest();
            let skipped = if let Some(comment) = rest.strip_prefix("/*") {
                // Without an end it is no comment.
                comment.find("*/").map_or(0, |end| end + 4)
            } else if rest.starts_with("//") {
                rest.find(['\n', '\r', '\u{2028}', '\u{2029}']).unwrap_or(rest.len())
            } else {
                rest.len() - rest.trim_start_matches(is_space).len()
            };
            if skipped == 0 {
                return;
            }
            self.at += skipped;
        }
    }

    /// Skips a character, if it is next; returns whether it was.
    fn passes(&mut self, c: char) -> bool {
        self.space();
        let is_next = self.peek() == Some(c);
        self.at += if is_next { c.len_utf8() } else { 0 };
        is_next
    }

    fn take(&mut self) -> Option<char> {
        let c = self.peek()?;
        self.at += c.len_utf8();
        Some(c)
    }

    fn peek(&self) -> Option<char> {
        self.rest().chars().next()
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn fail<T>(&self, what: &str) -> Result<T> {
        if self.text.trim_matches(is_space).is_empty() {
            return Err(Error::invalid(format!(
                "{what}: the text is empty (\"\" in quotes is an empty string)"
            )));
        }
        let before = self.text.get(..self.at).unwrap_or(self.text);
        let place = before.encode_utf16().count() + 1;
        Err(Error::invalid(format!("{what} at character {place} of {}", self.text)))
    }
}

/// Whether a number would be another one than its text says: an integer is rounded, or beyond all numbers.
fn loses_digits((text, digits): (&str, &str), radix: u32, number: f64) -> bool {
    if matches!(text, "NaN" | "Infinity") {
        return false;
    }
    if !number.is_finite() {
        return true;
    }
    let Some(whole) = BigUint::parse_bytes(digits.as_bytes(), radix) else { return false };
    // As it is printed, 123456789012345680000 is read to itself.
    let printed = || radix == 10 && number < 1e21 && number.to_string() == digits;
    !printed() && whole.to_string() != format!("{number:.0}")
}

/// The string of code points; two escaped surrogates that form a pair are one character.
fn joined(points: &[u32]) -> JsString {
    let mut out = Vec::new();
    let mut at = 0;
    while let Some(&point) = points.get(at) {
        at += 1;
        let low = points.get(at).filter(|low| (0xdc00..0xe000).contains(*low));
        match low {
            Some(low) if (0xd800..0xdc00).contains(&point) => {
                at += 1;
                push_wtf8(&mut out, 0x1_0000 + ((point - 0xd800) << 10) + (low - 0xdc00));
            }
            _ => push_wtf8(&mut out, point),
        }
    }
    JsString::from_wtf8(out).unwrap_or_default()
}

/// The double that is nearest to hexadecimal digits.
fn hex_number(digits: &str) -> f64 {
    let significant = digits.trim_start_matches('0');
    // A double has no more digits than 256: 2^1024 is beyond its range.
    if significant.len() > 256 {
        return f64::INFINITY;
    }
    let whole = BigUint::parse_bytes(digits.as_bytes(), 16).unwrap_or_default();
    // In decimal, so that the parser of numbers rounds.
    whole.to_string().parse().unwrap_or(f64::INFINITY)
}
