//! Documents of JSON in CBOR, with values in the stored form: as embedded CBOR (tag 24).

use ciborium_ll::{Decoder, Header};
use num_bigint::{BigInt, Sign};

use super::json_text::push_string;
use super::typed_json::scalar;
use crate::model::{
    BIGINT_TEXT_BITS_MAX, CBOR_DOCUMENT_DEPTH_MAX, Error, Node, Result, ViewClass, push_number,
};

const TAG_BIGINT: u64 = 2;
const TAG_NEGATIVE_BIGINT: u64 = 3;
const TAG_EMBEDDED: u64 = 24;

const SIMPLE_FALSE: u8 = 20;
const SIMPLE_TRUE: u8 = 21;
const SIMPLE_NULL: u8 = 22;

/// Largest integer up to which all are doubles.
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// The same document as text, in which bigints, byte strings and embedded values are typed objects.
///
/// ```
/// use openkv_core::interchange::cbor_document;
/// let text = cbor_document::to_typed_json(b"\xa1\x65value\xd8\x18\x43\x82\x01\x02")?;
/// assert_eq!(text, r#"{"value":{"type":"CBOR","value":"ggEC","byteLength":3}}"#);
/// # Ok::<(), openkv_core::model::Error>(())
/// ```
///
/// # Errors
/// `Invalid` for bytes that are no such document, with the place.
pub fn to_typed_json(bytes: &[u8]) -> Result<String> {
    let mut reader = Reader { bytes, at: 0 };
    let mut text = String::with_capacity(2 * bytes.len());
    reader.item(&mut text, 0)?;
    match reader.at == bytes.len() {
        true => Ok(text),
        false => reader.fail("bytes after the end"),
    }
}

struct Reader<'b> {
    bytes: &'b [u8],
    at: usize,
}

impl<'b> Reader<'b> {
    fn fail<T>(&self, what: &str) -> Result<T> {
        Err(Error::invalid(format!("CBOR at byte {}: {what}", self.at)))
    }

    fn header(&mut self) -> Result<Header> {
        let mut decoder = Decoder::from(self.bytes.get(self.at..).unwrap_or_default());
        let Ok(header) = decoder.pull() else { return self.fail("malformed, or cut off") };
        self.at += decoder.offset();
        Ok(header)
    }

    fn body(&mut self, len: Option<usize>) -> Result<&'b [u8]> {
        let Some(len) = len else { return self.fail("an indefinite length") };
        let body = self.bytes.get(self.at..).and_then(|rest| rest.get(..len));
        let Some(body) = body else { return self.fail("cut off") };
        self.at += len;
        Ok(body)
    }

    fn byte_string(&mut self) -> Result<&'b [u8]> {
        match self.header()? {
            Header::Bytes(len) => self.body(len),
            _ => self.fail("a tag without a byte string"),
        }
    }

    fn text(&mut self, len: Option<usize>, out: &mut String) -> Result<()> {
        let body = self.body(len)?;
        let Ok(text) = std::str::from_utf8(body) else {
            return self.fail("text that is not UTF-8");
        };
        push_string(out, &text.into());
        Ok(())
    }

    fn item(&mut self, out: &mut String, depth: usize) -> Result<()> {
        if depth > CBOR_DOCUMENT_DEPTH_MAX {
            return self.fail(&format!("nested deeper than {CBOR_DOCUMENT_DEPTH_MAX} levels"));
        }
        match self.header()? {
            Header::Positive(n) if n <= SAFE_INTEGER_MAX => push_number(out, n as f64),
            Header::Negative(n) if n < SAFE_INTEGER_MAX => push_number(out, -1.0 - n as f64),
            Header::Positive(n) => scalar::push_digits(out, "bigint", &n),
            Header::Negative(n) => scalar::push_digits(out, "bigint", &(-1 - i128::from(n))),
            Header::Float(n) => Self::float(out, n),
            Header::Simple(SIMPLE_FALSE) => out.push_str("false"),
            Header::Simple(SIMPLE_TRUE) => out.push_str("true"),
            Header::Simple(SIMPLE_NULL) => out.push_str("null"),
            Header::Bytes(len) => scalar::push_bytes(out, ViewClass::Uint8.name(), self.body(len)?),
            Header::Text(len) => self.text(len, out)?,
            Header::Tag(TAG_EMBEDDED) => scalar::push_bytes(out, "CBOR", self.byte_string()?),
            Header::Tag(tag @ (TAG_BIGINT | TAG_NEGATIVE_BIGINT)) => self.bigint(out, tag)?,
            Header::Array(Some(len)) => {
                out.push('[');
                for at in 0..len {
                    if at > 0 {
                        out.push(',');
                    }
                    self.item(out, depth + 1)?;
                }
                out.push(']');
            }
            Header::Map(Some(len)) => {
                out.push('{');
                for at in 0..len {
                    if at > 0 {
                        out.push(',');
                    }
                    match self.header()? {
                        Header::Text(len) => self.text(len, out)?,
                        _ => return self.fail("a name that is no text"),
                    }
                    out.push(':');
                    self.item(out, depth + 1)?;
                }
                out.push('}');
            }
            Header::Array(None) | Header::Map(None) | Header::Break => {
                return self.fail("an indefinite length");
            }
            Header::Simple(_) | Header::Tag(_) => return self.fail("an item that JSON lacks"),
        }
        Ok(())
    }

    /// A number that JSON lacks is a typed object, as a part of a key may be.
    fn float(out: &mut String, n: f64) {
        match n.is_finite() && !(n == 0.0 && n.is_sign_negative()) {
            true => push_number(out, n),
            false if n == 0.0 => out.push_str(r#"{"type":"number","value":"-0"}"#),
            false => drop(scalar::push(out, &Node::Number(n))),
        }
    }

    fn bigint(&mut self, out: &mut String, tag: u64) -> Result<()> {
        let magnitude = BigInt::from_bytes_be(Sign::Plus, self.byte_string()?);
        if magnitude.bits() > BIGINT_TEXT_BITS_MAX {
            return self.fail("a bigint that is too large");
        }
        let n = if tag == TAG_NEGATIVE_BIGINT { -1 - magnitude } else { magnitude };
        scalar::push_digits(out, "bigint", &n);
        Ok(())
    }
}
