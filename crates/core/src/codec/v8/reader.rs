//! Reads tags, numbers and strings.

use num_bigint::{BigInt, Sign};

use super::Malformed;
use super::tag;
use crate::model::JsString;

/// The bytes still to be read.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

const CUT: &str = "invalid value: cut short";

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    pub(super) fn fail<T>(&self, what: &'static str) -> Result<T, Malformed> {
        Err(Malformed::new(what, self.at))
    }

    pub(super) fn left(&self) -> usize {
        self.bytes.len() - self.at
    }

    pub(super) fn byte(&mut self) -> Result<u8, Malformed> {
        match self.bytes.get(self.at) {
            Some(byte) => {
                self.at += 1;
                Ok(*byte)
            }
            None => self.fail(CUT),
        }
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let end = self.at.checked_add(len);
        match end.and_then(|end| self.bytes.get(self.at..end)) {
            Some(taken) => {
                self.at += len;
                Ok(taken)
            }
            None => self.fail(CUT),
        }
    }

    /// Reads the next tag, after padding.
    pub(super) fn tag(&mut self) -> Result<u8, Malformed> {
        loop {
            match self.byte()? {
                tag::PADDING => {}
                tag => return Ok(tag),
            }
        }
    }

    /// The next tag, without consuming it.
    pub(super) fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at..)?.iter().copied().find(|byte| *byte != tag::PADDING)
    }

    pub(super) fn varint(&mut self) -> Result<u32, Malformed> {
        let start = *self;
        match u32::try_from(self.varint64()?) {
            Ok(n) => Ok(n),
            Err(_) => start.fail("invalid value: number beyond 32 bits"),
        }
    }

    pub(super) fn varint64(&mut self) -> Result<u64, Malformed> {
        let start = *self;
        let mut n = 0_u64;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if shift == 63 && bits > 1 {
                break;
            }
            n |= bits << shift;
            if byte & 0x80 == 0 {
                return Ok(n);
            }
        }
        start.fail("invalid value: number beyond 64 bits")
    }

    pub(super) fn zigzag(&mut self) -> Result<i32, Malformed> {
        let n = self.varint()?;
        Ok((n >> 1).cast_signed() ^ -((n & 1).cast_signed()))
    }

    pub(super) fn double(&mut self) -> Result<f64, Malformed> {
        let bytes = self.take(8)?;
        let Ok(bytes) = bytes.try_into() else { return self.fail(CUT) };
        let n = f64::from_le_bytes(bytes);
        // JavaScript has only one NaN.
        Ok(if n.is_nan() { f64::NAN } else { n })
    }

    /// Reads a length and checks that the input has so many bytes left.
    pub(super) fn length(&mut self) -> Result<usize, Malformed> {
        let start = *self;
        match usize::try_from(self.varint64()?) {
            Ok(len) if len <= self.left() => Ok(len),
            _ => start.fail(CUT),
        }
    }

    pub(super) fn sized(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.length()?;
        self.take(len)
    }

    pub(super) fn bigint(&mut self) -> Result<BigInt, Malformed> {
        let bits = self.varint()?;
        let magnitude = self.take((bits >> 1) as usize)?;
        let sign = if bits & 1 == 1 { Sign::Minus } else { Sign::Plus };
        Ok(BigInt::from_bytes_le(sign, magnitude))
    }

    /// Reads a string with its tag.
    pub(super) fn tagged_string(&mut self) -> Result<JsString, Malformed> {
        let start = *self;
        let tag = self.tag()?;
        match self.string(tag)? {
            Some(string) => Ok(string),
            None => start.fail("invalid value: no string where one must be"),
        }
    }

    /// Reads the string after a tag; `None` for any other tag.
    pub(super) fn string(&mut self, tag: u8) -> Result<Option<JsString>, Malformed> {
        let start = *self;
        Ok(Some(match tag {
            tag::ONE_BYTE_STRING => {
                let bytes = self.sized()?;
                match std::str::from_utf8(bytes) {
                    Ok(text) if text.is_ascii() => text.into(),
                    _ => bytes.iter().map(|byte| char::from(*byte)).collect::<String>().into(),
                }
            }
            tag::TWO_BYTE_STRING => {
                let (units, rest) = self.sized()?.as_chunks();
                if !rest.is_empty() {
                    return start.fail("invalid value: half a character");
                }
                from_utf16(units)
            }
            tag::UTF8_STRING => match std::str::from_utf8(self.sized()?) {
                Ok(text) => text.into(),
                Err(_) => return start.fail("invalid value: text that is not UTF-8"),
            },
            _ => return Ok(None),
        }))
    }
}

fn from_utf16(units: &[[u8; 2]]) -> JsString {
    let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
    let mut bytes = Vec::new();
    for decoded in char::decode_utf16(units) {
        match decoded {
            Ok(c) => bytes.extend_from_slice(c.encode_utf8(&mut [0; 4]).as_bytes()),
            Err(lone) => {
                let unit = lone.unpaired_surrogate();
                let low = |shift: u32| 0x80 | ((unit >> shift) & 0x3f) as u8;
                bytes.extend_from_slice(&[0xed, low(6), low(0)]);
            }
        }
    }
    // A surrogate here is unpaired and encoded as three bytes, so the text is WTF-8.
    JsString::from_wtf8(bytes).unwrap_or_default()
}
