//! Keys: parts ⇄ bytes that sort in the order of the parts (docs/format.md §1).
//!
//! Invariant: every key has exactly one encoding, and the decoder accepts only that one. JavaScript
//! encodes its keys by `js/codec/key.ts`; `tests/vectors/keys.json` tests both.

mod encode;
mod print;

use num_bigint::{BigInt, Sign};

use super::Malformed;
use crate::model::{Key, KeyPart, Versionstamp};

pub use encode::encode;
pub use print::print;

const BYTES: u8 = 0x01;
const STRING: u8 = 0x02;
const BIGINT_NEGATIVE_LONG: u8 = 0x0b;
const BIGINT_ZERO: u8 = 0x14;
const BIGINT_POSITIVE_LONG: u8 = 0x1d;
const NUMBER: u8 = 0x21;
const FALSE: u8 = 0x26;
const TRUE: u8 = 0x27;

/// Ends a byte string or text; inside one, [`ESCAPE`] follows each zero byte.
const TERMINATOR: u8 = 0x00;
const ESCAPE: u8 = 0xff;

/// Longest magnitude whose length is part of the tag, in bytes; a longer one has a length byte.
const BIGINT_SHORT_BYTES_MAX: usize = 8;

/// Longest magnitude of a bigint in a key, in bytes.
pub const BIGINT_BYTES_MAX: usize = 255;

const SIGN_BIT: u64 = 1 << 63;
/// The bits of the only NaN in keys, without its sign.
const NAN_BITS: u64 = 0x7ff8_0000_0000_0000;

/// The key with the 20 digits of the versionstamp as an additional string part.
pub fn with_versionstamp(key: &Key, stamp: Versionstamp) -> Key {
    let mut out = Vec::with_capacity(key.len() + Versionstamp::HEX_BYTES + 2);
    out.extend_from_slice(key.as_bytes());
    push_escaped(&mut out, STRING, &stamp.hex());
    Key::from_encoded(out)
}

/// Decodes the parts of an encoded key.
pub fn decode(bytes: &[u8]) -> Result<Vec<KeyPart>, Malformed> {
    let mut reader = Reader { bytes, at: 0 };
    let mut parts = Vec::new();
    while let Some(part) = reader.next_part()? {
        parts.push(part.decode());
    }
    Ok(parts)
}

/// Checks that the bytes are an encoded key, without decoding or allocating. No bytes are the key
/// without parts.
///
/// # Errors
/// An unknown tag, a part that ends too early, text that is not UTF-8, a bigint with leading zeros,
/// or a NaN other than the two that are written.
pub fn validate(bytes: &[u8]) -> Result<(), Malformed> {
    let mut reader = Reader { bytes, at: 0 };
    while reader.next_part()?.is_some() {}
    Ok(())
}

/// The prefix of `prefix_bytes` bytes and the next `parts` parts; `None` if the key has no more
/// parts than that, or is invalid.
pub fn cut(bytes: &[u8], prefix_bytes: usize, parts: usize) -> Option<&[u8]> {
    let mut reader = Reader { bytes, at: prefix_bytes };
    for _ in 0..parts {
        reader.next_part().ok()??;
    }
    if reader.at < bytes.len() { bytes.get(..reader.at) } else { None }
}

/// The longest start of these bytes that is an encoded key.
pub fn whole_parts(bytes: &[u8]) -> &[u8] {
    let mut reader = Reader { bytes, at: 0 };
    loop {
        let end = reader.at;
        if !matches!(reader.next_part(), Ok(Some(_))) {
            return bytes.get(..end).unwrap_or_default();
        }
    }
}

/// Whether the part at offset `at` of an encoded key is bytes or text, so that its characters can
/// be replaced by as many others.
pub fn is_text_at(bytes: &[u8], at: usize) -> bool {
    let mut reader = Reader { bytes, at: 0 };
    loop {
        let start = reader.at;
        match reader.next_part() {
            Ok(Some(part)) if reader.at > at => {
                return start < at && matches!(part, RawPart::Bytes(_) | RawPart::String(_));
            }
            Ok(Some(_)) => {}
            _ => return false,
        }
    }
}

/// Appends a string part to the bytes of a key.
pub fn push_string(out: &mut Vec<u8>, text: &str) {
    push_escaped(out, STRING, text.as_bytes());
}

fn push_escaped(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.reserve(bytes.len() + 2);
    out.push(tag);
    for &byte in bytes {
        out.push(byte);
        if byte == TERMINATOR {
            out.push(ESCAPE);
        }
    }
    out.push(TERMINATOR);
}

/// A part that is well formed, not yet copied out of the key.
enum RawPart<'a> {
    /// Still escaped.
    Bytes(&'a [u8]),
    /// Still escaped; UTF-8 between the escapes.
    String(&'a [u8]),
    /// The magnitude is complemented for a negative number.
    BigInt {
        sign: Sign,
        magnitude: &'a [u8],
    },
    Number(f64),
    Bool(bool),
}

impl RawPart<'_> {
    fn decode(self) -> KeyPart {
        match self {
            Self::Bytes(escaped) => KeyPart::Bytes(unescape(escaped)),
            Self::String(escaped) => {
                // The text was checked to be UTF-8 when it was read, so nothing is replaced.
                KeyPart::String(String::from_utf8_lossy(&unescape(escaped)).into_owned())
            }
            Self::BigInt { sign: Sign::Minus, magnitude } => {
                let magnitude: Vec<u8> = magnitude.iter().map(|byte| !byte).collect();
                KeyPart::BigInt(BigInt::from_bytes_be(Sign::Minus, &magnitude))
            }
            Self::BigInt { sign, magnitude } => {
                KeyPart::BigInt(BigInt::from_bytes_be(sign, magnitude))
            }
            Self::Number(n) => KeyPart::Number(n),
            Self::Bool(b) => KeyPart::Bool(b),
        }
    }
}

/// Removes the escape after each zero.
fn unescape(escaped: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(escaped.len());
    let mut bytes = escaped.iter();
    while let Some(&byte) = bytes.next() {
        out.push(byte);
        if byte == TERMINATOR {
            bytes.next();
        }
    }
    out
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Reader<'a> {
    /// The next part, `None` at the end of the key.
    fn next_part(&mut self) -> Result<Option<RawPart<'a>>, Malformed> {
        let start = self.at;
        let Some(&tag) = self.bytes.get(start) else {
            return Ok(None);
        };
        self.at += 1;
        let part = match tag {
            BYTES => RawPart::Bytes(self.escaped(start)?),
            STRING => {
                let escaped = self.escaped(start)?;
                if !is_escaped_utf8(escaped) {
                    return Err(Malformed::new("invalid key: not UTF-8", start));
                }
                RawPart::String(escaped)
            }
            BIGINT_NEGATIVE_LONG => self.long_bigint(Sign::Minus, start)?,
            BIGINT_ZERO => RawPart::BigInt { sign: Sign::NoSign, magnitude: &[] },
            BIGINT_POSITIVE_LONG => self.long_bigint(Sign::Plus, start)?,
            0x0c..BIGINT_ZERO => self.bigint(Sign::Minus, usize::from(BIGINT_ZERO - tag), start)?,
            0x15..BIGINT_POSITIVE_LONG => {
                self.bigint(Sign::Plus, usize::from(tag - BIGINT_ZERO), start)?
            }
            NUMBER => self.number(start)?,
            FALSE => RawPart::Bool(false),
            TRUE => RawPart::Bool(true),
            _ => return Err(Malformed::new("invalid key: unknown tag", start)),
        };
        Ok(Some(part))
    }

    fn take(&mut self, len: usize, start: usize) -> Result<&'a [u8], Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let taken = rest.get(..len).ok_or(Malformed::new("invalid key: truncated", start))?;
        self.at += len;
        Ok(taken)
    }

    /// Reads up to the terminator, which is a zero without an escape behind it.
    fn escaped(&mut self, start: usize) -> Result<&'a [u8], Malformed> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let mut len = 0;
        loop {
            let tail = rest.get(len..).unwrap_or_default();
            match tail.iter().position(|&byte| byte == TERMINATOR) {
                None => return Err(Malformed::new("invalid key: truncated", start)),
                Some(zero) if tail.get(zero + 1) == Some(&ESCAPE) => len += zero + 2,
                Some(zero) => {
                    let taken = self.take(len + zero, start)?;
                    self.at += 1;
                    return Ok(taken);
                }
            }
        }
    }

    fn bigint(&mut self, sign: Sign, len: usize, start: usize) -> Result<RawPart<'a>, Malformed> {
        let magnitude = self.take(len, start)?;
        let leading_zero = if sign == Sign::Minus { 0xff } else { 0x00 };
        if magnitude.first() == Some(&leading_zero) {
            return Err(Malformed::new("invalid key: bigint with leading zeros", start));
        }
        Ok(RawPart::BigInt { sign, magnitude })
    }

    fn long_bigint(&mut self, sign: Sign, start: usize) -> Result<RawPart<'a>, Malformed> {
        let len = self.take(1, start)?.first().copied().unwrap_or_default();
        let len = usize::from(if sign == Sign::Minus { !len } else { len });
        if len <= BIGINT_SHORT_BYTES_MAX {
            return Err(Malformed::new("invalid key: bigint in the long form", start));
        }
        self.bigint(sign, len, start)
    }

    fn number(&mut self, start: usize) -> Result<RawPart<'a>, Malformed> {
        let bytes = self.take(size_of::<u64>(), start)?;
        let ordered = bytes.iter().fold(0, |bits, &byte| bits << 8 | u64::from(byte));
        let bits = if ordered & SIGN_BIT == 0 { !ordered } else { ordered & !SIGN_BIT };
        let n = f64::from_bits(bits);
        if n.is_nan() && bits & !SIGN_BIT != NAN_BITS {
            return Err(Malformed::new("invalid key: NaN with a payload", start));
        }
        Ok(RawPart::Number(n))
    }
}

/// A zero byte is a character of its own, so the text between escapes is valid UTF-8 by itself.
fn is_escaped_utf8(escaped: &[u8]) -> bool {
    let mut rest = escaped;
    loop {
        let zero = rest.iter().position(|&byte| byte == TERMINATOR);
        let run = rest.get(..zero.unwrap_or(rest.len())).unwrap_or_default();
        if std::str::from_utf8(run).is_err() {
            return false;
        }
        let Some(zero) = zero else { return true };
        rest = rest.get(zero + 2..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests;
