//! The document of an answer, in the form that the client wants: a serializer of the types that also
//! describe it to the OpenAPI document, with keys and values of the database spliced in.
//!
//! Invariant: a document has the same members in every form. In CBOR it is the typed document, with
//! each value as embedded CBOR (tag 24). Commas and lengths are written here and nowhere else.

mod serializer;

use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use serde::{Serialize, Serializer};
use utoipa::ToSchema;

use self::serializer::{Fault, Members};
use super::media::Form;
use openkv_core::codec::{cbor, key, transcode};
use openkv_core::interchange::{key_json, plain_json, push_text, typed_json};
use openkv_core::model::{
    Encoding, Error, KeyPart, Node, Result, Value, Versionstamp, ViewClass, push_number,
};
use openkv_wire::connect::time::to_rfc3339;

const BYTES: u8 = 2;
const TEXT: u8 = 3;
const ARRAY: u8 = 4;
const MAP: u8 = 5;
const TAG: u8 = 6;
const TAG_EMBEDDED: u64 = 24;
const CBOR_NULL: u8 = 0xf6;
const CBOR_FALSE: u8 = 0xf4;

/// A document. It is complete when [`DocumentWriter::of`] returns it.
pub(crate) struct DocumentWriter {
    out: Out,
    /// The members so far of the object that is written.
    members: u64,
    /// What the bytes or the number that come next stand for.
    next: Option<Spliced>,
    lossy: bool,
    /// Why a value of the document cannot be read.
    unreadable: Option<Error>,
}

enum Out {
    Plain(String),
    Typed(String),
    Cbor(Vec<u8>),
}

/// What a document has of the database.
#[derive(Clone, Copy)]
enum Spliced {
    Key,
    Value(Encoding),
    Expiry,
}

/// The bytes of a key: an array of its parts.
#[derive(Clone, Copy)]
pub(crate) struct KeyBytes<'e>(pub(crate) &'e [u8]);

/// A stored value. As a member that cannot be read, it does not fail the document: the member
/// `valueError` takes its place, with the code and the text of the error.
#[derive(Clone, Copy)]
pub(crate) struct Stored<'e>(pub(crate) Encoding, pub(crate) &'e [u8]);

/// The expiry of an entry: a time in plain JSON, ms in the other forms.
#[derive(Clone, Copy, Serialize)]
pub(super) struct ExpiryMs(pub(super) i64);

/// The digits of a versionstamp.
#[derive(Clone, Copy)]
pub(crate) struct StampDigits(pub(crate) Versionstamp);

/// Why the value of an entry or of a message cannot be read. The other members are as they are stored.
#[derive(Serialize, ToSchema)]
pub(crate) struct ValueError {
    /// What happened, for programs.
    code: &'static str,
    /// For people; may change in any release.
    detail: String,
}

impl ValueError {
    fn of(error: &Error) -> Self {
        Self { code: error.kind().code(), detail: error.message().to_owned() }
    }
}

/// The names by which the serializer knows what it splices in.
const KEY: &str = "KeyBytes";
const STORED: &str = "Stored";
const EXPIRY: &str = "ExpiryMs";

/// Bytes for [`Serializer::serialize_bytes`].
struct Bytes<'b>(&'b [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_bytes(self.0)
    }
}

impl Serialize for KeyBytes<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_newtype_struct(KEY, &Bytes(self.0))
    }
}

impl Serialize for Stored<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_newtype_variant(STORED, self.0.id().into(), "", &Bytes(self.1))
    }
}

impl Serialize for StampDigits {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(std::str::from_utf8(&self.0.hex()).unwrap_or_default())
    }
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

impl DocumentWriter {
    /// Writes a document of about so many bytes; 0 if that is not known.
    pub(crate) fn of(form: Form, bytes: usize, document: &impl Serialize) -> Result<Self> {
        let out = match form {
            Form::Json => Out::Plain(String::with_capacity(bytes)),
            Form::Typed => Out::Typed(String::with_capacity(bytes)),
            // A single `Uint8Array` is no document.
            Form::Cbor | Form::Bytes => Out::Cbor(Vec::with_capacity(bytes)),
        };
        let mut written = Self { out, members: 0, next: None, lossy: false, unreadable: None };
        match document.serialize(&mut written) {
            Ok(()) => Ok(written),
            Err(Fault::Unreadable(error) | Fault::Failed(error)) => Err(error),
        }
    }

    /// The bytes, and whether a value is not the same as the stored one.
    pub(crate) fn finish(self) -> (Vec<u8>, bool) {
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
    pub(crate) fn into_text(self) -> String {
        match self.out {
            Out::Plain(text) | Out::Typed(text) => text,
            Out::Cbor(_) => String::new(),
        }
    }

    /// Why a value of the document cannot be read, if one cannot.
    pub(super) fn take_unreadable(&mut self) -> Option<Error> {
        self.unreadable.take()
    }

    fn array(&mut self, items: usize) {
        self.separate();
        match &mut self.out {
            Out::Plain(text) | Out::Typed(text) => text.push('['),
            Out::Cbor(bytes) => bytes.extend(head(ARRAY, items as u64)),
        }
    }

    fn object(&mut self) -> Members<'_> {
        self.separate();
        let outer = std::mem::take(&mut self.members);
        if let Out::Plain(text) | Out::Typed(text) = &mut self.out {
            text.push('{');
        }
        let start = self.mark().len;
        Members { written: self, outer, start }
    }

    /// Appends a member. A value that cannot be read is an error beside the other members.
    fn member<T: Serialize + ?Sized>(
        &mut self,
        name: &(impl Serialize + ?Sized),
        value: &T,
    ) -> Result<(), Fault> {
        let mark = self.mark();
        name.serialize(&mut *self)?;
        self.members += 1;
        if let Out::Plain(text) | Out::Typed(text) = &mut self.out {
            text.push(':');
        }
        let Err(fault) = value.serialize(&mut *self) else { return Ok(()) };
        let Fault::Unreadable(error) = fault else { return Err(fault) };
        self.cut(mark);
        self.member("valueError", &ValueError::of(&error))?;
        self.unreadable = Some(error);
        Ok(())
    }

    fn text(&mut self, item: &str) {
        self.separate();
        match &mut self.out {
            Out::Plain(text) | Out::Typed(text) => push_text(text, item),
            Out::Cbor(bytes) => {
                bytes.extend(head(TEXT, item.len() as u64));
                bytes.extend_from_slice(item.as_bytes());
            }
        }
    }

    fn null(&mut self) {
        self.literal("null", CBOR_NULL);
    }

    fn boolean(&mut self, item: bool) {
        self.literal(if item { "true" } else { "false" }, CBOR_FALSE | u8::from(item));
    }

    /// Appends a finite number; another one as `null`.
    fn number(&mut self, item: f64) {
        if !item.is_finite() {
            return self.null();
        }
        self.separate();
        match &mut self.out {
            Out::Plain(text) | Out::Typed(text) => push_number(text, item),
            Out::Cbor(bytes) => bytes.extend(cbor::encode_number(item)),
        }
    }

    /// Appends a key, as an array of its parts.
    fn key(&mut self, bytes: &[u8]) -> Result<()> {
        self.separate();
        match &mut self.out {
            Out::Plain(text) => key_json::push(text, bytes),
            Out::Typed(text) => key_json::push_typed(text, bytes),
            Out::Cbor(out) => key_in_cbor(bytes).map(|key| out.extend(key)),
        }
    }

    fn expiry(&mut self, ms: i64) {
        match self.out {
            Out::Plain(_) => self.text(&to_rfc3339(ms)),
            Out::Typed(_) | Out::Cbor(_) => self.number(ms as f64),
        }
    }

    fn value(&mut self, encoding: Encoding, bytes: &[u8]) -> Result<()> {
        self.separate();
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
    use std::collections::BTreeMap;

    use super::*;

    #[derive(Serialize)]
    struct Item {
        n: u8,
    }

    #[derive(Serialize)]
    struct Document<'d> {
        items: Vec<Item>,
        none: Vec<()>,
        value: Stored<'d>,
        more: bool,
        at: Option<ExpiryMs>,
        text: &'d str,
        last: String,
    }

    fn document(form: Form, value: &[u8]) -> Vec<u8> {
        let document = Document {
            items: vec![Item { n: 1 }, Item { n: 2 }],
            none: Vec::new(),
            value: Stored(Encoding::V8, value),
            more: true,
            at: None,
            text: "a\"b\n{",
            last: i64::MIN.to_string(),
        };
        DocumentWriter::of(form, 0, &document).unwrap().finish().0
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
        let cbor =
            openkv_core::interchange::cbor_document::to_typed_json(&document(Form::Cbor, &value));
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
        let text = openkv_core::interchange::cbor_document::to_typed_json(&cbor).unwrap();
        assert!(text.contains(r#""valueError":{"code":"CORRUPT","detail":"#), "{text}");
    }

    #[test]
    fn an_object_of_many_members_has_a_longer_head() {
        let members: BTreeMap<_, _> = (0..300).map(|n| (format!("{n:03}"), ())).collect();
        let (bytes, _) = DocumentWriter::of(Form::Cbor, 0, &members).unwrap().finish();
        assert_eq!(bytes.get(..3), Some(&[0xb9, 0x01, 0x2c][..]));
        let text = openkv_core::interchange::cbor_document::to_typed_json(&bytes).unwrap();
        assert!(text.ends_with(r#""299":null}"#));
    }

    #[test]
    fn an_expiry_is_a_time_in_plain_json_alone() {
        let text =
            |form| DocumentWriter::of(form, 0, &[ExpiryMs(0)].as_slice()).unwrap().into_text();
        assert_eq!(text(Form::Json), r#"["1970-01-01T00:00:00.000Z"]"#);
        assert_eq!(text(Form::Typed), "[0]");
    }
}
