//! The heads of data items. `ciborium` parses them; this file checks that each is in the canonical
//! form.
//!
//! Invariant: every length is definite, every head has its shortest form, every float has 64 bits
//! and every NaN the same bits; a number is an integer head exactly when it can be one.

use ciborium_ll::{Decoder, Error, Header};

use super::Malformed;
use crate::model::JsString;

/// Largest magnitude of a number that is written as an integer: `Number.MAX_SAFE_INTEGER`.
const SAFE_INTEGER_MAX: u64 = (1 << 53) - 1;

/// The bits of every NaN.
pub(super) const NAN_BITS: u64 = 0x7ff8_0000_0000_0000;

const SIMPLE_FALSE: u8 = 20;
const SIMPLE_TRUE: u8 = 21;
const SIMPLE_NULL: u8 = 22;
const SIMPLE_UNDEFINED: u8 = 23;

const MAJOR_POSITIVE: u8 = 0;
const MAJOR_NEGATIVE: u8 = 1;
const MAJOR_BYTES: u8 = 2;
const MAJOR_TEXT: u8 = 3;
const MAJOR_ARRAY: u8 = 4;
const MAJOR_MAP: u8 = 5;
const MAJOR_TAG: u8 = 6;
const MAJOR_SIMPLE: u8 = 7;
const INITIAL_FLOAT64: u8 = 0xfb;
const FLOAT64_HEAD_BYTES: usize = 9;

const TRUNCATED: &str = "invalid value: truncated";

pub(in crate::codec) const TAG_DATE: u64 = 1;
pub(super) const TAG_BIGINT: u64 = 2;
pub(super) const TAG_NEGATIVE_BIGINT: u64 = 3;
pub(super) const TAG_GENERIC: u64 = 27;
pub(super) const TAG_SHAREABLE: u64 = 28;
pub(super) const TAG_SHARED: u64 = 29;
pub(super) const TAG_SET: u64 = 258;
pub(super) const TAG_MAP: u64 = 259;
pub(super) const TAG_WTF8: u64 = 273;

/// One head. It is the whole item unless a body or items follow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Head {
    Undefined,
    Null,
    Bool(bool),
    Number(f64),
    /// The length of the body, in bytes.
    Bytes(usize),
    /// The length of the body, in bytes of UTF-8.
    Text(usize),
    /// The number of items.
    Array(usize),
    /// The number of pairs.
    Map(usize),
    Tag(u64),
}

/// Reads items in order.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// A reader at the beginning of the same bytes.
    pub(super) fn rewound(self) -> Self {
        Self { at: 0, ..self }
    }

    /// The offset of the next item.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    fn left(&self) -> usize {
        self.bytes.len().saturating_sub(self.at)
    }

    /// The bytes read since `start`.
    pub(super) fn since(&self, start: usize) -> &'a [u8] {
        self.bytes.get(start..self.at).unwrap_or_default()
    }

    pub(super) fn fail<T>(&self, what: &'static str) -> Result<T, Malformed> {
        Err(Malformed::new(what, self.at))
    }

    /// Fails if bytes are left.
    pub(super) fn end(&self) -> Result<(), Malformed> {
        if self.at == self.bytes.len() {
            Ok(())
        } else {
            self.fail("invalid value: bytes after the end")
        }
    }

    /// Reads the next head, which must be canonical.
    pub(super) fn head(&mut self) -> Result<Head, Malformed> {
        if let Some((head, len)) = self.short_head() {
            self.at += len;
            return Ok(head);
        }
        let start = *self;
        let head = match self.header()? {
            Header::Positive(n) if n <= SAFE_INTEGER_MAX => Head::Number(n as f64),
            Header::Negative(n) if n < SAFE_INTEGER_MAX => Head::Number(-1.0 - n as f64),
            Header::Positive(_) | Header::Negative(_) => {
                return start.fail("invalid value: integer that is not a safe integer");
            }
            Header::Float(n) if is_integer_head(n) => {
                return start.fail("invalid value: float that is an integer");
            }
            Header::Float(n) => Head::Number(n),
            Header::Simple(SIMPLE_FALSE) => Head::Bool(false),
            Header::Simple(SIMPLE_TRUE) => Head::Bool(true),
            Header::Simple(SIMPLE_NULL) => Head::Null,
            Header::Simple(SIMPLE_UNDEFINED) => Head::Undefined,
            Header::Simple(_) => return start.fail("invalid value: unknown simple value"),
            Header::Bytes(Some(len)) => Head::Bytes(len),
            Header::Text(Some(len)) => Head::Text(len),
            // Each item has at least one byte.
            Header::Array(Some(len)) if len > self.left() => return start.fail(TRUNCATED),
            Header::Map(Some(len)) if len > self.left() / 2 => return start.fail(TRUNCATED),
            Header::Array(Some(len)) => Head::Array(len),
            Header::Map(Some(len)) => Head::Map(len),
            Header::Tag(tag) => Head::Tag(tag),
            Header::Bytes(None)
            | Header::Text(None)
            | Header::Array(None)
            | Header::Map(None)
            | Header::Break => return start.fail("invalid value: indefinite length"),
        };
        Ok(head)
    }

    /// The next head and its length, if that is at most five bytes, as of most heads. `None` for all others, and for those
    /// with something wrong.
    fn short_head(&self) -> Option<(Head, usize)> {
        let (first, rest) = self.bytes.get(self.at..)?.split_first()?;
        let (argument, len) = match first & 0x1f {
            short @ 0..24 => (u32::from(short), 1),
            24 => (rest.first().map(|n| u32::from(*n))?, 2),
            25 => (rest.first_chunk().map(|n| u32::from(u16::from_be_bytes(*n)))?, 3),
            26 => (rest.first_chunk().map(|n| u32::from_be_bytes(*n))?, 5),
            _ => return None,
        };
        if len != argument_head_bytes(argument.into()) {
            return None;
        }
        let (count, left) = (usize::try_from(argument).ok()?, self.left() - len);
        let head = match first >> 5 {
            MAJOR_POSITIVE => Head::Number(f64::from(argument)),
            MAJOR_NEGATIVE => Head::Number(-1.0 - f64::from(argument)),
            MAJOR_BYTES => Head::Bytes(count),
            MAJOR_TEXT => Head::Text(count),
            MAJOR_ARRAY if count <= left => Head::Array(count),
            MAJOR_MAP if count <= left / 2 => Head::Map(count),
            MAJOR_TAG => Head::Tag(u64::from(argument)),
            MAJOR_SIMPLE if len == 1 => match first & 0x1f {
                SIMPLE_FALSE => Head::Bool(false),
                SIMPLE_TRUE => Head::Bool(true),
                SIMPLE_NULL => Head::Null,
                SIMPLE_UNDEFINED => Head::Undefined,
                _ => return None,
            },
            _ => return None,
        };
        Some((head, len))
    }

    /// Reads a float64 of any value. Only a date may have a whole number in this form.
    pub(super) fn float(&mut self) -> Result<f64, Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        if let Some((&INITIAL_FLOAT64, rest)) = rest.split_first()
            && let Some(bytes) = rest.first_chunk()
            && let number = f64::from_be_bytes(*bytes)
            && !number.is_nan()
        {
            self.at += FLOAT64_HEAD_BYTES;
            return Ok(number);
        }
        let start = *self;
        match self.header()? {
            Header::Float(n) => Ok(n),
            _ => start.fail("invalid value: not a float"),
        }
    }

    /// Reads the next `len` bytes of a body.
    pub(super) fn body(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let Some(body) = rest.get(..len) else {
            return self.fail(TRUNCATED);
        };
        self.at += len;
        Ok(body)
    }

    pub(super) fn text(&mut self, len: usize) -> Result<&'a str, Malformed> {
        let start = *self;
        let body = self.body(len)?;
        std::str::from_utf8(body).or_else(|_| start.fail("invalid value: text that is not UTF-8"))
    }

    /// Reads an item that must be a byte string.
    pub(super) fn byte_string(&mut self) -> Result<&'a [u8], Malformed> {
        let start = *self;
        match self.head()? {
            Head::Bytes(len) => self.body(len),
            _ => start.fail("invalid value: no byte string where there must be one"),
        }
    }

    /// Reads an item that must be a string.
    pub(super) fn string(&mut self) -> Result<JsString, Malformed> {
        let start = *self;
        let head = self.head()?;
        self.string_of(head).or_else(|error| match head {
            Head::Text(_) | Head::Tag(TAG_WTF8) => Err(error),
            _ => start.fail("invalid value: no string where there must be one"),
        })
    }

    /// Reads the rest of an item that must be a string.
    pub(super) fn string_of(&mut self, head: Head) -> Result<JsString, Malformed> {
        match head {
            Head::Text(len) => Ok(self.text(len)?.into()),
            Head::Tag(TAG_WTF8) => self.wtf8(),
            _ => self.fail("invalid value: no string where there must be one"),
        }
    }

    /// Reads an item that must be a whole number from 0 to [`SAFE_INTEGER_MAX`].
    pub(super) fn count(&mut self) -> Result<u64, Malformed> {
        let start = *self;
        match self.head()? {
            Head::Number(n) if n >= 0.0 && is_integer_head(n) => Ok(n as u64),
            _ => start.fail("invalid value: no length where there must be one"),
        }
    }

    /// Reads the rest of a string with lone surrogates, after its tag.
    pub(super) fn wtf8(&mut self) -> Result<JsString, Malformed> {
        let start = *self;
        let string = JsString::from_wtf8(self.byte_string()?.to_vec());
        match string.filter(|string| string.as_str().is_none()) {
            Some(string) => Ok(string),
            None => start.fail("invalid value: WTF-8 without a lone surrogate, or not WTF-8"),
        }
    }

    fn header(&mut self) -> Result<Header, Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let mut decoder = Decoder::from(rest);
        let header = decoder.pull().or_else(|error| match error {
            Error::Io(_) => self.fail(TRUNCATED),
            Error::Syntax(_) => self.fail("invalid value: not CBOR"),
        })?;
        let len = decoder.offset();
        if len != head_bytes(&header) {
            return self.fail("invalid value: head that is not in its shortest form");
        }
        if let Header::Float(n) = header
            && n.is_nan()
            && n.to_bits() != NAN_BITS
        {
            return self.fail("invalid value: NaN with a sign or a payload");
        }
        self.at += len;
        Ok(header)
    }
}

/// Length of a head in the encoding.
fn head_bytes(header: &Header) -> usize {
    let argument = match *header {
        Header::Float(_) => return FLOAT64_HEAD_BYTES,
        Header::Simple(_) | Header::Break => return 1,
        Header::Positive(n) | Header::Negative(n) | Header::Tag(n) => n,
        Header::Bytes(len) | Header::Text(len) | Header::Array(len) | Header::Map(len) => {
            len.map_or(0, |len| len as u64)
        }
    };
    argument_head_bytes(argument)
}

/// Length of the shortest head with this argument.
fn argument_head_bytes(argument: u64) -> usize {
    match argument {
        0..24 => 1,
        24..0x100 => 2,
        0x100..0x1_0000 => 3,
        0x1_0000..0x1_0000_0000 => 5,
        _ => 9,
    }
}

/// Whether the number is written as an integer: a safe integer other than −0.
fn is_integer_head(n: f64) -> bool {
    n.trunc() == n && n.abs() <= SAFE_INTEGER_MAX as f64 && !(n == 0.0 && n.is_sign_negative())
}

/// Appends items to a byte string.
pub(in crate::codec) struct Writer {
    pub(in crate::codec) out: Vec<u8>,
}

impl Writer {
    pub(super) fn new() -> Self {
        Self::with_capacity(0)
    }

    pub(in crate::codec) fn with_capacity(bytes: usize) -> Self {
        Self { out: Vec::with_capacity(bytes) }
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.out
    }

    pub(in crate::codec) fn undefined(&mut self) {
        self.head(MAJOR_SIMPLE, u64::from(SIMPLE_UNDEFINED));
    }

    pub(in crate::codec) fn null(&mut self) {
        self.head(MAJOR_SIMPLE, u64::from(SIMPLE_NULL));
    }

    pub(in crate::codec) fn bool(&mut self, b: bool) {
        self.head(MAJOR_SIMPLE, u64::from(if b { SIMPLE_TRUE } else { SIMPLE_FALSE }));
    }

    pub(in crate::codec) fn number(&mut self, n: f64) {
        if !is_integer_head(n) {
            self.float(n);
        } else if n >= 0.0 {
            self.head(MAJOR_POSITIVE, n as u64);
        } else {
            self.head(MAJOR_NEGATIVE, (-1.0 - n) as u64);
        }
    }

    /// Writes a whole number up to [`SAFE_INTEGER_MAX`].
    pub(super) fn count(&mut self, n: u64) {
        self.head(MAJOR_POSITIVE, n);
    }

    pub(in crate::codec) fn float(&mut self, n: f64) {
        let bits = if n.is_nan() { NAN_BITS } else { n.to_bits() };
        self.out.push(INITIAL_FLOAT64);
        self.out.extend(bits.to_be_bytes());
    }

    pub(in crate::codec) fn bytes(&mut self, bytes: &[u8]) {
        self.head(MAJOR_BYTES, bytes.len() as u64);
        self.out.extend_from_slice(bytes);
    }

    pub(in crate::codec) fn text(&mut self, text: &str) {
        self.head(MAJOR_TEXT, text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
    }

    pub(super) fn string(&mut self, string: &JsString) {
        match string.as_str() {
            Some(text) => self.text(text),
            None => {
                self.tag(TAG_WTF8);
                self.bytes(string.as_wtf8());
            }
        }
    }

    pub(in crate::codec) fn array(&mut self, len: usize) {
        self.head(MAJOR_ARRAY, len as u64);
    }

    pub(in crate::codec) fn map(&mut self, len: usize) {
        self.head(MAJOR_MAP, len as u64);
    }

    pub(in crate::codec) fn tag(&mut self, tag: u64) {
        self.head(MAJOR_TAG, tag);
    }

    fn head(&mut self, major: u8, argument: u64) {
        let major = major << 5;
        let [.., c3, c2, c1, c0] = argument.to_be_bytes();
        match argument {
            0..24 => self.out.push(major | c0),
            24..0x100 => self.out.extend([major | 24, c0]),
            0x100..0x1_0000 => self.out.extend([major | 25, c1, c0]),
            0x1_0000..0x1_0000_0000 => self.out.extend([major | 26, c3, c2, c1, c0]),
            _ => {
                self.out.push(major | 27);
                self.out.extend(argument.to_be_bytes());
            }
        }
    }
}
