//! Entries in the bodies of answers, in each form.

use std::borrow::Cow;

use hyper::StatusCode;
use hyper::body::Bytes;
use hyper::header::{ETAG, HeaderName, HeaderValue};

use super::entries::Entry;
use super::media::Form;
use super::problem::Problem;
use crate::codec::{cbor, key, transcode};
use crate::connect::time::to_rfc3339;
use crate::interchange::{key_json, plain_json, typed_json};
use crate::model::{
    Encoding, Error, FRAMES_APART_BYTES_MIN, KeyPart, Node, Result, Value, Versionstamp, ViewClass,
};
use crate::server::answer::{Answer, answer, whole};
use crate::server::memory::Claim;
use crate::store::Room;

/// Tells that a value is not the same in this form.
const LOSSY: HeaderName = HeaderName::from_static("openkv-lossy");
/// The expiry of an entry whose body is its value alone.
const EXPIRE_AT: HeaderName = HeaderName::from_static("openkv-expire-at");

const TAG_EMBEDDED: u64 = 24;

/// About the bytes of an entry in JSON beside its key and its value.
const ENVELOPE_BYTES: usize = 100;

/// A body under construction.
pub(super) struct Written {
    form: Form,
    text: String,
    bytes: Vec<u8>,
    lossy: bool,
}

impl Written {
    pub(super) fn new(form: Form) -> Self {
        Self { form, text: String::new(), bytes: Vec::new(), lossy: false }
    }

    /// Appends an entry with its value.
    pub(super) fn entry(&mut self, entry: &Entry, keys_only: bool) -> Result<()> {
        match self.form {
            Form::Json => self.plain(entry, keys_only),
            Form::Typed => self.typed(entry, keys_only),
            Form::Cbor | Form::Bytes => self.cbor(entry, keys_only),
        }
    }

    fn plain(&mut self, entry: &Entry, keys_only: bool) -> Result<()> {
        self.text.push_str("{\"key\":");
        key_json::push(&mut self.text, &entry.key)?;
        if !keys_only {
            self.text.push_str(",\"value\":");
            self.lossy |= plain_json::push(&mut self.text, entry.encoding, &entry.value)?;
        }
        push_stamp(&mut self.text, entry.stamp);
        if let Some(ms) = entry.expire_at_ms {
            self.text.push_str(&format!(",\"expireAt\":\"{}\"", to_rfc3339(ms)));
        }
        self.text.push('}');
        Ok(())
    }

    fn typed(&mut self, entry: &Entry, keys_only: bool) -> Result<()> {
        self.text.push_str("{\"key\":");
        key_json::push_typed(&mut self.text, &entry.key)?;
        if !keys_only {
            self.text.push_str(",\"value\":");
            typed_json::push(&mut self.text, entry.encoding, &entry.value)?;
        }
        push_stamp(&mut self.text, entry.stamp);
        if let Some(ms) = entry.expire_at_ms {
            self.text.push_str(&format!(",\"expireAt\":{ms}"));
        }
        self.text.push('}');
        Ok(())
    }

    fn cbor(&mut self, entry: &Entry, keys_only: bool) -> Result<()> {
        let pairs = 2 + u64::from(!keys_only) + u64::from(entry.expire_at_ms.is_some());
        push_head(&mut self.bytes, 5, pairs);
        push_text(&mut self.bytes, "key");
        self.bytes.extend(key_in_cbor(&entry.key)?);
        if !keys_only {
            let (value, lossy) = in_cbor(entry.encoding, &entry.value)?;
            self.lossy |= lossy;
            push_text(&mut self.bytes, "value");
            push_head(&mut self.bytes, 6, TAG_EMBEDDED);
            push_head(&mut self.bytes, 2, value.len() as u64);
            self.bytes.extend_from_slice(&value);
        }
        push_text(&mut self.bytes, "versionstamp");
        push_text(&mut self.bytes, &hex(entry.stamp));
        if let Some(ms) = entry.expire_at_ms {
            push_text(&mut self.bytes, "expireAt");
            self.bytes.extend(cbor::encode_number(ms as f64));
        }
        Ok(())
    }

    /// Appends that there is no entry of a key.
    pub(super) fn absent(&mut self, key: &[u8]) -> Result<()> {
        match self.form {
            Form::Json | Form::Typed => {
                self.text.push_str("{\"key\":");
                match self.form {
                    Form::Typed => key_json::push_typed(&mut self.text, key)?,
                    _ => key_json::push(&mut self.text, key)?,
                }
                self.text.push_str(",\"value\":null,\"versionstamp\":null}");
            }
            Form::Cbor | Form::Bytes => {
                push_head(&mut self.bytes, 5, 3);
                push_text(&mut self.bytes, "key");
                self.bytes.extend(key_in_cbor(key)?);
                for name in ["value", "versionstamp"] {
                    push_text(&mut self.bytes, name);
                    self.bytes.push(CBOR_NULL);
                }
            }
        }
        Ok(())
    }

    /// Begins entries without an object around them, in JSON.
    pub(super) fn begin(&mut self) {
        self.text.push('[');
    }

    /// Appends that only the expiry of an entry has changed, in JSON.
    pub(super) fn expiry(&mut self, key: &[u8], expire_at_ms: Option<i64>) -> Result<()> {
        self.text.push_str("{\"key\":");
        match self.form {
            Form::Typed => key_json::push_typed(&mut self.text, key)?,
            _ => key_json::push(&mut self.text, key)?,
        }
        let at = match (expire_at_ms, self.form) {
            (None, _) => "null".to_owned(),
            (Some(ms), Form::Typed) => ms.to_string(),
            (Some(ms), _) => format!("\"{}\"", to_rfc3339(ms)),
        };
        self.text.push_str(&format!(",\"expireAt\":{at}}}"));
        Ok(())
    }

    /// Whether a value so far is not the same as the stored one.
    pub(super) fn is_lossy(&self) -> bool {
        self.lossy
    }

    /// The text, in JSON.
    pub(super) fn into_text(self) -> String {
        self.text
    }

    fn into_bytes(self) -> Vec<u8> {
        match self.form {
            Form::Json | Form::Typed => self.text.into_bytes(),
            Form::Cbor | Form::Bytes => self.bytes,
        }
    }
}

const CBOR_NULL: u8 = 0xf6;
const CBOR_FALSE: u8 = 0xf4;

fn push_stamp(text: &mut String, stamp: Versionstamp) {
    text.push_str(",\"versionstamp\":\"");
    text.extend(stamp.hex().map(char::from));
    text.push('"');
}

/// The digits of a versionstamp.
pub(super) fn hex(stamp: Versionstamp) -> String {
    String::from_utf8_lossy(&stamp.hex()).into_owned()
}

/// Appends the head of an item of CBOR.
fn push_head(out: &mut Vec<u8>, major: u8, argument: u64) {
    let first = major << 5;
    match argument {
        0..=23 => out.push(first | argument as u8),
        24..=0xff => out.extend([first | 24, argument as u8]),
        0x100..=0xffff => {
            out.push(first | 25);
            out.extend((argument as u16).to_be_bytes());
        }
        0x1_0000..=0xffff_ffff => {
            out.push(first | 26);
            out.extend((argument as u32).to_be_bytes());
        }
        _ => {
            out.push(first | 27);
            out.extend(argument.to_be_bytes());
        }
    }
}

fn push_text(out: &mut Vec<u8>, text: &str) {
    push_head(out, 3, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
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
fn in_cbor(encoding: Encoding, bytes: &[u8]) -> Result<(Cow<'_, [u8]>, bool)> {
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

/// The entity tag of an entry.
pub(super) fn etag(stamp: Versionstamp) -> Result<HeaderValue> {
    let digits = stamp.hex();
    let quoted: Vec<u8> = [b"\"".as_slice(), &digits, b"\""].concat();
    HeaderValue::from_maybe_shared(Bytes::from(quoted))
        .map_err(|error| Error::internal(error.to_string()))
}

/// The body of one entry: the entry in JSON; in other forms its value alone.
fn one(entry: &Entry, form: Form) -> Result<(Vec<u8>, bool)> {
    match form {
        Form::Json | Form::Typed => {
            let mut written = Written::new(form);
            // Most values have few more bytes in JSON.
            written.text.reserve(2 * (entry.key.len() + entry.value.len()) + ENVELOPE_BYTES);
            written.entry(entry, false)?;
            let lossy = written.lossy;
            Ok((written.into_bytes(), lossy))
        }
        Form::Cbor => {
            let (value, lossy) = in_cbor(entry.encoding, &entry.value)?;
            Ok((value.into_owned(), lossy))
        }
        Form::Bytes => Ok((entry.value.clone(), false)),
    }
}

/// An entry as plain JSON.
pub(super) fn plain(entry: &Entry) -> Result<String> {
    let mut written = Written::new(Form::Json);
    written.entry(entry, false)?;
    Ok(written.text)
}

/// Carries out work for so many bytes, on a thread of its own if they are many.
async fn apart<T: Send + 'static>(
    bytes: usize,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    if bytes < FRAMES_APART_BYTES_MIN {
        return work();
    }
    let done = tokio::task::spawn_blocking(work).await;
    done.map_err(|_| Error::internal("writing an answer ended by a panic"))?
}

/// The answer with a body, and whether it is not the same as what is stored.
pub(super) fn answered(
    form: Form,
    (body, lossy): (Vec<u8>, bool),
    claim: &Claim,
) -> Result<Answer, Problem> {
    claim.holds(body.len())?;
    let mut answer = answer(StatusCode::OK, form.name(), whole(claim.bytes(body)));
    if lossy {
        answer.headers_mut().insert(LOSSY, HeaderValue::from_static("true"));
    }
    Ok(answer)
}

/// The answer with one entry.
pub(super) async fn entry_answer(
    entry: Entry,
    form: Form,
    claim: &Claim,
) -> Result<Answer, Problem> {
    let (stamp, expire_at_ms) = (entry.stamp, entry.expire_at_ms);
    let body = apart(entry.value.len(), move || one(&entry, form)).await?;
    let mut answer = answered(form, body, claim)?;
    answer.headers_mut().insert(ETAG, etag(stamp)?);
    if let Some(ms) = expire_at_ms
        && let Ok(at) = HeaderValue::from_str(&to_rfc3339(ms))
    {
        answer.headers_mut().insert(EXPIRE_AT, at);
    }
    Ok(answer)
}

/// The answer with entries of keys, in their order.
pub(super) async fn batch_answer(
    (keys, entries): (Vec<crate::model::Key>, Vec<Option<Entry>>),
    form: Form,
    (claim, bytes): (&Claim, usize),
) -> Result<Answer, Problem> {
    let body = apart(bytes, move || {
        let mut written = Written::new(form);
        written.open(1, entries.len());
        for (at, (key, entry)) in keys.iter().zip(&entries).enumerate() {
            written.separate(at);
            match entry {
                Some(entry) => written.entry(entry, false)?,
                None => written.absent(key.as_bytes())?,
            }
        }
        written.close();
        Ok((written.lossy, written))
    });
    let (lossy, written) = body.await?;
    answered(form, (written.end(), lossy), claim)
}

/// The answer with a page of a list.
pub(super) async fn page_answer(
    (entries, keys_only): (Vec<Entry>, bool),
    cursor: Option<String>,
    form: Form,
    (claim, bytes): (&Claim, usize),
) -> Result<Answer, Problem> {
    let body = apart(bytes, move || {
        let mut written = Written::new(form);
        written.open(3, entries.len());
        for (at, entry) in entries.iter().enumerate() {
            written.separate(at);
            written.entry(entry, keys_only)?;
        }
        written.close();
        written.cursor(cursor.as_deref());
        Ok((written.lossy, written))
    });
    let (lossy, written) = body.await?;
    answered(form, (written.end(), lossy), claim)
}

/// The object around the entries of an answer.
impl Written {
    /// Begins an object of `members` members, of which the first is the entries.
    fn open(&mut self, members: u64, entries: usize) {
        match self.form {
            Form::Json | Form::Typed => self.text.push_str("{\"entries\":["),
            Form::Cbor | Form::Bytes => {
                push_head(&mut self.bytes, 5, members);
                push_text(&mut self.bytes, "entries");
                push_head(&mut self.bytes, 4, entries as u64);
            }
        }
    }

    pub(super) fn separate(&mut self, at: usize) {
        if at > 0 && matches!(self.form, Form::Json | Form::Typed) {
            self.text.push(',');
        }
    }

    /// Ends the entries.
    pub(super) fn close(&mut self) {
        if matches!(self.form, Form::Json | Form::Typed) {
            self.text.push(']');
        }
    }

    /// Appends where the list continues.
    fn cursor(&mut self, cursor: Option<&str>) {
        match self.form {
            Form::Json | Form::Typed => {
                // A cursor is base64, which needs no escapes.
                let quoted = cursor.map_or("null".to_owned(), |cursor| format!("\"{cursor}\""));
                let more = cursor.is_some();
                self.text.push_str(&format!(",\"cursor\":{quoted},\"hasMore\":{more}"));
            }
            Form::Cbor | Form::Bytes => {
                push_text(&mut self.bytes, "cursor");
                match cursor {
                    Some(cursor) => push_text(&mut self.bytes, cursor),
                    None => self.bytes.push(CBOR_NULL),
                }
                push_text(&mut self.bytes, "hasMore");
                self.bytes.push(CBOR_FALSE | u8::from(cursor.is_some()));
            }
        }
    }

    fn end(mut self) -> Vec<u8> {
        if matches!(self.form, Form::Json | Form::Typed) {
            self.text.push('}');
        }
        self.into_bytes()
    }
}
