//! The code of one value in an entry of an index: bytes in the order of the values.
//!
//! Classes in order: absent, null, bytes, text, numbers and bigints, dates, booleans, all other
//! values. No code is the beginning of another one, so codes can follow each other, and the complements
//! of codes sort in reverse.

use memchr::memchr;
use num_bigint::{BigInt, Sign};

use crate::codec::cbor::Item;
use crate::model::VALUE_INDEX_PART_BYTES_MAX;

/// Nothing under the path, or undefined.
pub(super) const ABSENT: u8 = 0x02;
pub(super) const NULL: u8 = 0x03;
pub(super) const BYTES: u8 = 0x04;
pub(super) const TEXT: u8 = 0x05;
pub(super) const NEGATIVE: u8 = 0x10;
pub(super) const ZERO: u8 = 0x11;
pub(super) const POSITIVE: u8 = 0x12;
pub(super) const DATE: u8 = 0x18;
pub(super) const FALSE: u8 = 0x20;
pub(super) const TRUE: u8 = 0x21;
/// What has no order: objects, arrays, NaN, several values, bytes that cannot be read.
pub(super) const OTHER: u8 = 0x30;
/// In a `multi` index: a text or bytes that is no element, for `$contains`.
pub(super) const LOOSE: u8 = 0x31;

/// Ends the codes of an entry; its key follows.
pub(super) const BEFORE_KEY: u8 = 0x80;

/// A zero byte in text, bytes or digits, and the mark behind it.
const ZERO_BYTE: u8 = 0x00;
/// The string ends here.
const WHOLE: u8 = 0x01;
/// The string is cut here.
const CUT: u8 = 0xfe;
/// The zero is part of the string.
const ESCAPED: u8 = 0xff;

/// The bytes of an exponent, big-endian, with this bias.
const EXPONENT_BYTES: usize = 4;
const EXPONENT_BIAS: i64 = 1 << 31;

/// Bytes that most entries of one path have beside the value: the tag, the end, [`BEFORE_KEY`], and the key.
const ROOM_BYTES: usize = 40;

const SIGN_BIT: u64 = 1 << 63;

/// A code, and whether it stands for this value alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Code {
    pub(super) bytes: Vec<u8>,
    /// The value was too long; others with the same beginning have the same code.
    pub(super) is_cut: bool,
}

impl Code {
    pub(super) fn of(tag: u8) -> Self {
        Self::begun(tag, size_of::<u64>())
    }

    /// A code that becomes an entry, with room for this many bytes of the value.
    fn begun(tag: u8, room: usize) -> Self {
        let mut bytes = Vec::with_capacity(room + ROOM_BYTES);
        bytes.push(tag);
        Self { bytes, is_cut: false }
    }

    pub(super) fn tag(&self) -> u8 {
        self.bytes.first().copied().unwrap_or(OTHER)
    }

    /// The code of an item; arrays and objects are `OTHER`.
    pub(super) fn of_item(item: &Item<'_>) -> Self {
        match item {
            Item::Undefined => Self::of(ABSENT),
            Item::Null => Self::of(NULL),
            Item::Bool(value) => Self::of(if *value { TRUE } else { FALSE }),
            Item::Number(number) => Self::of_number(*number),
            Item::BigInt { .. } => {
                item.bigint().map_or(Self::of(OTHER), |number| Self::of_bigint(&number))
            }
            Item::Text(text) => Self::of_string(TEXT, text),
            Item::Bytes(bytes) => Self::of_string(BYTES, bytes),
            Item::Date(ms) => Self::of_date(*ms),
            Item::Array(..)
            | Item::Numbers(_)
            | Item::SparseArray(..)
            | Item::Set(..)
            | Item::Object(..)
            | Item::Map(..)
            | Item::Other => Self::of(OTHER),
        }
    }

    pub(super) fn of_string(tag: u8, string: &[u8]) -> Self {
        let mut code = Self::begun(tag, string.len().min(VALUE_INDEX_PART_BYTES_MAX));
        code.push(string);
        code
    }

    /// Appends a string with its end, or as much of it as a code may have.
    fn push(&mut self, string: &[u8]) {
        let kept = string.get(..VALUE_INDEX_PART_BYTES_MAX).unwrap_or(string);
        push_escaped(&mut self.bytes, kept);
        self.is_cut = kept.len() < string.len();
        self.bytes.extend([ZERO_BYTE, if self.is_cut { CUT } else { WHOLE }]);
    }

    /// NaN is `OTHER`.
    pub(super) fn of_number(number: f64) -> Self {
        if number.is_nan() {
            return Self::of(OTHER);
        }
        if number == 0.0 {
            return Self::of(ZERO);
        }
        let negative = number < 0.0;
        if number.is_infinite() {
            return Self::of_digits(negative, EXPONENT_BIAS - 1, &[]);
        }
        let bits = number.abs().to_bits();
        let (exponent, fraction) = ((bits >> 52) as i64, bits & ((1 << 52) - 1));
        let (integer, power) = match exponent {
            0 => (fraction, -1074),
            _ => (fraction | 1 << 52, exponent - 1075),
        };
        // As an integer times a power of 256.
        let shift = power.rem_euclid(8);
        let digits = (integer << shift).to_be_bytes();
        let zeros = digits.iter().take_while(|digit| **digit == 0).count();
        let digits = digits.get(zeros..).unwrap_or_default();
        Self::of_digits(negative, (power - shift) / 8 + digits.len() as i64, digits)
    }

    pub(super) fn of_bigint(number: &BigInt) -> Self {
        let (sign, digits) = number.to_bytes_be();
        match sign {
            Sign::NoSign => Self::of(ZERO),
            _ => Self::of_digits(sign == Sign::Minus, digits.len() as i64, &digits),
        }
    }

    /// The number ±0.`digits` · 256^`exponent`, in base 256, whose first digit is not zero.
    fn of_digits(negative: bool, exponent: i64, digits: &[u8]) -> Self {
        let zeros = digits.iter().rev().take_while(|digit| **digit == 0).count();
        let digits = digits.get(..digits.len() - zeros).unwrap_or_default();
        let mut code = Self::of(if negative { NEGATIVE } else { POSITIVE });
        let biased = (exponent + EXPONENT_BIAS) as u32;
        code.bytes.extend_from_slice(&biased.to_be_bytes());
        code.push(digits);
        if negative {
            code.bytes.iter_mut().skip(1).for_each(|byte| *byte = !*byte);
        }
        code
    }

    /// An invalid date is `OTHER`.
    pub(super) fn of_date(ms: f64) -> Self {
        if ms.is_nan() {
            return Self::of(OTHER);
        }
        // -0 and 0 are equal.
        let bits = (ms + 0.0).to_bits();
        let ordered = if bits & SIGN_BIT == 0 { bits | SIGN_BIT } else { !bits };
        let mut code = Self::of(DATE);
        code.bytes.extend_from_slice(&ordered.to_be_bytes());
        code
    }
}

/// What a code, or the beginning of one, stands for.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Decoded {
    /// A class without values, or a class of values, of which no more is given.
    Class(u8),
    /// Text or bytes, and whether they are whole.
    String(u8, Vec<u8>, bool),
    /// The number ±0.`digits` · 256^`exponent`; without digits it is infinite.
    Number { is_negative: bool, exponent: i64, digits: Vec<u8> },
    /// Milliseconds since the epoch.
    Date(f64),
}

/// Reads a code that is not complemented, or its beginning.
pub(super) fn decoded(code: &[u8]) -> Decoded {
    let Some((&tag, rest)) = code.split_first() else { return Decoded::Class(OTHER) };
    match tag {
        TEXT | BYTES if !rest.is_empty() => {
            let (string, is_whole) = unescaped(rest);
            Decoded::String(tag, string, is_whole)
        }
        NEGATIVE | POSITIVE => {
            let is_negative = tag == NEGATIVE;
            let mask = if is_negative { u8::MAX } else { 0 };
            let rest: Vec<_> = rest.iter().map(|byte| byte ^ mask).collect();
            let Some((biased, digits)) = rest.split_first_chunk() else {
                return Decoded::Class(tag);
            };
            let exponent = i64::from(u32::from_be_bytes(*biased)) - EXPONENT_BIAS;
            Decoded::Number { is_negative, exponent, digits: unescaped(digits).0 }
        }
        DATE => match rest.first_chunk().map(|bytes| u64::from_be_bytes(*bytes)) {
            None => Decoded::Class(tag),
            Some(ordered) if ordered & SIGN_BIT == 0 => Decoded::Date(f64::from_bits(!ordered)),
            Some(ordered) => Decoded::Date(f64::from_bits(ordered & !SIGN_BIT)),
        },
        _ => Decoded::Class(tag),
    }
}

/// A string without its end, and whether that was there.
fn unescaped(bytes: &[u8]) -> (Vec<u8>, bool) {
    let mut string = Vec::with_capacity(bytes.len());
    let mut rest = bytes.iter();
    while let Some(&byte) = rest.next() {
        if byte == ZERO_BYTE {
            match rest.next() {
                Some(&ESCAPED) => {}
                end => return (string, end == Some(&WHOLE)),
            }
        }
        string.push(byte);
    }
    (string, false)
}

/// The beginning of the codes of all strings that begin with this one.
pub(super) fn beginning(tag: u8, string: &[u8]) -> Vec<u8> {
    let mut bytes = vec![tag];
    push_escaped(&mut bytes, string.get(..VALUE_INDEX_PART_BYTES_MAX).unwrap_or(string));
    bytes
}

fn push_escaped(out: &mut Vec<u8>, string: &[u8]) {
    out.reserve(string.len() + 2);
    let mut rest = string;
    while let Some(zero) = memchr(ZERO_BYTE, rest) {
        let (piece, after) = rest.split_at(zero + 1);
        out.extend_from_slice(piece);
        out.push(ESCAPED);
        rest = after;
    }
    out.extend_from_slice(rest);
}

/// The length of the code at the start of `bytes`, which is complemented by `mask`.
pub(super) fn length(bytes: &[u8], mask: u8) -> Option<usize> {
    match bytes.first()? ^ mask {
        ABSENT | NULL | ZERO | FALSE | TRUE | OTHER | LOOSE => Some(1),
        DATE => Some(1 + 8),
        BYTES | TEXT => end_of_string(bytes, 1, mask),
        POSITIVE => end_of_string(bytes, 1 + EXPONENT_BYTES, mask),
        NEGATIVE => end_of_string(bytes, 1 + EXPONENT_BYTES, !mask),
        _ => None,
    }
}

fn end_of_string(bytes: &[u8], mut at: usize, mask: u8) -> Option<usize> {
    loop {
        if bytes.get(at)? ^ mask != ZERO_BYTE {
            at += 1;
            continue;
        }
        at += 2;
        if bytes.get(at - 1)? ^ mask != ESCAPED {
            return Some(at);
        }
    }
}
