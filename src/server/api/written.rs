//! The document of an answer: objects, arrays and scalars, with keys and values of the database, in
//! the form that the client wants.
//!
//! Invariant: a document has the same members in every form. In CBOR it is the typed document, with
//! each value as embedded CBOR (tag 24). Commas and lengths are written here and nowhere else.

use std::borrow::Cow;
use std::fmt::Display;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::media::Form;
use crate::codec::{cbor, key, transcode};
use crate::connect::time::to_rfc3339;
use crate::interchange::{key_json, plain_json, push_number, push_text, typed_json};
use crate::model::{Encoding, Error, KeyPart, Node, Result, Value, Versionstamp, ViewClass};

const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;
const TAG_EMBEDDED: u64 = 24;
const CBOR_NULL: u8 = 0xf6;
const CBOR_FALSE: u8 = 0xf4;

/// A document under construction.
pub(super) struct Written {
    out: Out,
    /// The members so far of the object that is written.
    members: u64,
    lossy: bool,
    /// Why a value of the document cannot be read.
    unreadable: Option<Error>,
}

enum Out {
    Plain(String),
    Typed(String),
    Cbor(Vec<u8>),
}

/// Whether a document that another task has written simplifies a value.
#[derive(Clone, Default)]
pub(super) struct Lossy(Arc<AtomicBool>);

impl Lossy {
    pub(super) fn is_set(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

/// A place in a document, to which it can be cut.
struct Mark {
    len: usize,
    members: u64,
}

impl Written {
    /// A document of about so many bytes; 0 if that is not known.
    pub(super) fn new(form: Form, bytes: usize) -> Self {
        let out = match form {
            Form::Json => Out::Plain(String::with_capacity(bytes)),
            Form::Typed => Out::Typed(String::with_capacity(bytes)),
            // A single `Uint8Array` is no document.
            Form::Cbor | Form::Bytes => Out::Cbor(Vec::with_capacity(bytes)),
        };
        Self { out, members: 0, lossy: false, unreadable: None }
    }

    /// The bytes, and whether a value is not the same as the stored one.
    pub(super) fn finish(self) -> (Vec<u8>, bool) {
        let bytes = match self.out {
            Out::Plain(text) | Out::Typed(text) => text.into_bytes(),
            Out::Cbor(bytes) => bytes,
        };
        (bytes, self.lossy)
    }

    /// As [`Self::finish`], for an answer that another task sends.
    pub(super) fn finish_for(self, lossy: &Lossy) -> Vec<u8> {
        let (bytes, is_lossy) = self.finish();
        lossy.0.fetch_or(is_lossy, Ordering::Release);
        bytes
    }

    /// The text of a document in JSON; empty in CBOR.
    pub(super) fn into_text(self) -> String {
        match self.out {
            Out::Plain(text) | Out::Typed(text) => text,
            Out::Cbor(_) => String::new(),
        }
    }

    /// Appends an object.
    pub(super) fn object(&mut self, members: impl FnOnce(&mut Self) -> Result<()>) -> Result<()> {
        self.separate();
        let outer = std::mem::take(&mut self.members);
        let start = match &mut self.out {
            Out::Plain(text) | Out::Typed(text) => {
                text.push('{');
                text.len()
            }
            Out::Cbor(bytes) => bytes.len(),
        };
        members(self)?;
        match &mut self.out {
            Out::Plain(text) | Out::Typed(text) => text.push('}'),
            // The number of members is known only now. Objects are short.
            Out::Cbor(bytes) => drop(bytes.splice(start..start, head(MAP, self.members))),
        }
        self.members = outer;
        Ok(())
    }

    /// Appends an array.
    pub(super) fn array<I: ExactSizeIterator>(
        &mut self,
        items: I,
        mut each: impl FnMut(&mut Self, I::Item) -> Result<()>,
    ) -> Result<()> {
        self.separate();
        match &mut self.out {
            Out::Plain(text) | Out::Typed(text) => text.push('['),
            Out::Cbor(bytes) => bytes.extend(head(ARRAY, items.len() as u64)),
        }
        for item in items {
            each(self, item)?;
        }
        if let Out::Plain(text) | Out::Typed(text) = &mut self.out {
            text.push(']');
        }
        Ok(())
    }

    /// Appends the name of a member; its value is appended next.
    pub(super) fn member(&mut self, name: &str) -> &mut Self {
        self.text(name);
        self.members += 1;
        if let Out::Plain(text) | Out::Typed(text) = &mut self.out {
            text.push(':');
        }
        self
    }

    pub(super) fn text(&mut self, item: &str) {
        self.separate();
        match &mut self.out {
            Out::Plain(text) | Out::Typed(text) => push_text(text, item),
            Out::Cbor(bytes) => {
                bytes.extend(head(TEXT, item.len() as u64));
                bytes.extend_from_slice(item.as_bytes());
            }
        }
    }

    pub(super) fn null(&mut self) {
        self.literal("null", CBOR_NULL);
    }

    /// Appends a text or `null`.
    pub(super) fn text_or_null(&mut self, item: Option<&str>) {
        match item {
            Some(item) => self.text(item),
            None => self.null(),
        }
    }

    pub(super) fn boolean(&mut self, item: bool) {
        self.literal(if item { "true" } else { "false" }, CBOR_FALSE | u8::from(item));
    }

    /// Appends a finite number; another one as `null`.
    pub(super) fn number(&mut self, item: f64) {
        if !item.is_finite() {
            return self.null();
        }
        self.separate();
        match &mut self.out {
            Out::Plain(text) | Out::Typed(text) => push_number(text, item),
            Out::Cbor(bytes) => bytes.extend(cbor::encode_number(item)),
        }
    }

    /// Appends a number that may be beyond the integers of JSON, as text.
    pub(super) fn digits(&mut self, item: impl Display) {
        self.text(&item.to_string());
    }

    /// Appends a time, in RFC 3339.
    pub(super) fn time(&mut self, ms: i64) {
        self.text(&to_rfc3339(ms));
    }

    pub(super) fn stamp(&mut self, stamp: Versionstamp) {
        self.text(std::str::from_utf8(&stamp.hex()).unwrap_or_default());
    }

    /// Appends a key, as an array of its parts.
    pub(super) fn key(&mut self, bytes: &[u8]) -> Result<()> {
        self.separate();
        match &mut self.out {
            Out::Plain(text) => key_json::push(text, bytes),
            Out::Typed(text) => key_json::push_typed(text, bytes),
            Out::Cbor(out) => key_in_cbor(bytes).map(|key| out.extend(key)),
        }
    }

    /// Appends the expiry of an entry: a time in plain JSON, ms in the other forms.
    pub(super) fn expiry(&mut self, ms: i64) {
        match self.out {
            Out::Plain(_) => self.time(ms),
            Out::Typed(_) | Out::Cbor(_) => self.number(ms as f64),
        }
    }

    /// Appends the member `value`. A value that cannot be read does not fail the document: the
    /// member `valueError` tells of it instead, with its code and its text.
    pub(super) fn value_member(&mut self, encoding: Encoding, bytes: &[u8]) -> Result<()> {
        let mark = self.mark();
        self.member("value");
        let Err(error) = self.try_value(encoding, bytes) else { return Ok(()) };
        self.cut(mark);
        self.member("valueError").object(|written| {
            written.member("code").text(error.kind().code());
            written.member("detail").text(error.message());
            Ok(())
        })?;
        self.unreadable = Some(error);
        Ok(())
    }

    fn try_value(&mut self, encoding: Encoding, bytes: &[u8]) -> Result<()> {
        match &mut self.out {
            Out::Plain(text) => self.lossy |= plain_json::push(text, encoding, bytes)?,
            Out::Typed(text) => typed_json::push(text, encoding, bytes)?,
            Out::Cbor(out) => {
                let (value, lossy) = in_cbor(encoding, bytes)?;
                self.lossy |= lossy;
                out.extend(head(TAG, TAG_EMBEDDED));
                out.extend(head(BYTES, value.len() as u64));
                out.extend_from_slice(&value);
            }
        }
        Ok(())
    }

    /// Why a value of the document cannot be read, if one cannot.
    pub(super) fn take_unreadable(&mut self) -> Option<Error> {
        self.unreadable.take()
    }

    fn mark(&self) -> Mark {
        let len = match &self.out {
            Out::Plain(text) | Out::Typed(text) => text.len(),
            Out::Cbor(bytes) => bytes.len(),
        };
        Mark { len, members: self.members }
    }

    fn cut(&mut self, mark: Mark) {
        match &mut self.out {
            Out::Plain(text) | Out::Typed(text) => text.truncate(mark.len),
            Out::Cbor(bytes) => bytes.truncate(mark.len),
        }
        self.members = mark.members;
    }

    fn literal(&mut self, json: &str, byte: u8) {
        self.separate();
        match &mut self.out {
            Out::Plain(text) | Out::Typed(text) => text.push_str(json),
            Out::Cbor(bytes) => bytes.push(byte),
        }
    }

    /// Appends a comma, unless a document, an object, an array or the value of a member begins here.
    fn separate(&mut self) {
        if let Out::Plain(text) | Out::Typed(text) = &mut self.out
            && !matches!(text.as_bytes().last(), None | Some(b'{' | b'[' | b':'))
        {
            text.push(',');
        }
    }
}

/// The head of an item of CBOR.
fn head(major: u8, argument: u64) -> impl Iterator<Item = u8> {
    let first = major << 5;
    let (first, width) = match argument {
        0..=23 => (first | argument as u8, 0),
        24..=0xff => (first | 24, 1),
        0x100..=0xffff => (first | 25, 2),
        0x1_0000..=0xffff_ffff => (first | 26, 4),
        _ => (first | 27, 8),
    };
    std::iter::once(first).chain(argument.to_be_bytes().into_iter().skip(8 - width))
}

/// A key as an array of values.
fn key_in_cbor(bytes: &[u8]) -> Result<Vec<u8>> {
    let parts = key::decode(bytes).map_err(|why| Error::corrupt(why.to_string()))?;
    let mut value = Value::new(Node::Null);
    let mut items = Vec::with_capacity(parts.len());
    for part in parts {
        items.push(value.push(match part {
            KeyPart::Bytes(bytes) => Node::View(ViewClass::Uint8, bytes.into()),
            KeyPart::String(text) => Node::String(text.as_str().into()),
            KeyPart::BigInt(n) => Node::BigInt(n),
            KeyPart::Number(n) => Node::Number(n),
            KeyPart::Bool(b) => Node::Bool(b),
        }));
    }
    let root = value.root_id();
    value.set(root, Node::Array(items));
    cbor::encode(&value)
}

/// A value in the stored form, and whether it has changed its type: a `KvU64` becomes a bigint.
pub(super) fn in_cbor(encoding: Encoding, bytes: &[u8]) -> Result<(Cow<'_, [u8]>, bool)> {
    Ok(match encoding {
        Encoding::Cbor => (bytes.into(), false),
        Encoding::V8 => (transcode::to_cbor(bytes)?.into(), false),
        Encoding::Bytes => {
            let value = Value::new(Node::View(ViewClass::Uint8, bytes.into()));
            (cbor::encode(&value)?.into(), false)
        }
        Encoding::Le64 => {
            let n: [u8; 8] = bytes.try_into().map_err(|_| Error::corrupt("not a KvU64"))?;
            (cbor::encode_bigint(&u64::from_le_bytes(n).into()).into(), true)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn document(form: Form, value: &[u8]) -> Vec<u8> {
        let mut written = Written::new(form, 0);
        let done = written.object(|written| {
            written.member("items").array([1, 2].into_iter(), |written, item| {
                written.object(|written| {
                    written.member("n").number(f64::from(item));
                    Ok(())
                })
            })?;
            written.member("none").array([(); 0].into_iter(), |_, ()| Ok(()))?;
            written.value_member(Encoding::V8, value)?;
            written.member("more").boolean(true);
            written.member("at").null();
            written.member("text").text("a\"b\n{");
            written.member("last").digits(i64::MIN);
            Ok(())
        });
        done.unwrap();
        written.finish().0
    }

    #[test]
    fn a_document_has_the_same_members_in_each_form() {
        // The number 7 in V8's format.
        let value = [0xff, 0x0f, b'I', 14];
        let rest = r#""more":true,"at":null,"text":"a\"b\n{","last":"-9223372036854775808"}"#;
        let begin = r#"{"items":[{"n":1},{"n":2}],"none":[],"value":"#;
        let text = |bytes| String::from_utf8(bytes).unwrap();
        assert_eq!(text(document(Form::Json, &value)), format!("{begin}7,{rest}"));
        let typed = r#"{"type":"number","value":7}"#;
        assert_eq!(text(document(Form::Typed, &value)), format!("{begin}{typed},{rest}"));
        let cbor = crate::interchange::cbor_document::to_typed_json(&document(Form::Cbor, &value));
        let embedded = r#"{"type":"CBOR","value":"Bw","byteLength":1}"#;
        assert_eq!(cbor.unwrap(), format!("{begin}{embedded},{rest}"));
    }

    #[test]
    fn a_value_that_cannot_be_read_is_an_error_beside_the_other_members() {
        for form in [Form::Json, Form::Typed] {
            let text = String::from_utf8(document(form, &[0xff, 0x0f, b'?'])).unwrap();
            let json: serde_json::Value = serde_json::from_str(&text).unwrap();
            assert_eq!(json["valueError"]["code"], "CORRUPT", "{text}");
            assert!(json.get("value").is_none(), "{text}");
            assert_eq!(json["more"], true);
        }
        let cbor = document(Form::Cbor, &[0xff, 0x0f, b'?']);
        let text = crate::interchange::cbor_document::to_typed_json(&cbor).unwrap();
        assert!(text.contains(r#""valueError":{"code":"CORRUPT","detail":"#), "{text}");
    }

    #[test]
    fn an_object_of_many_members_has_a_longer_head() {
        let mut written = Written::new(Form::Cbor, 0);
        let done = written.object(|written| {
            for n in 0..300 {
                written.member(&n.to_string()).null();
            }
            Ok(())
        });
        done.unwrap();
        let (bytes, _) = written.finish();
        assert_eq!(bytes.get(..3), Some(&[0xb9, 0x01, 0x2c][..]));
        let text = crate::interchange::cbor_document::to_typed_json(&bytes).unwrap();
        assert!(text.ends_with(r#""299":null}"#));
    }
}
