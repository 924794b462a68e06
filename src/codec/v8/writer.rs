//! Writes tags, numbers and strings.

use num_bigint::{BigInt, Sign};

use super::tag;
use crate::model::JsString;

/// The bytes written so far.
pub(super) struct Writer(Vec<u8>);

impl Writer {
    /// Starts with the version.
    pub(super) fn new() -> Self {
        let mut writer = Self(Vec::new());
        writer.byte(tag::VERSION);
        writer.varint(u64::from(tag::VERSION_WRITTEN));
        writer
    }

    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(super) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(super) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(super) fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    pub(super) fn double(&mut self, n: f64) {
        // JavaScript has only one NaN.
        let n = if n.is_nan() { f64::from_bits(0x7ff8_0000_0000_0000) } else { n };
        self.bytes(&n.to_le_bytes());
    }

    /// Writes a number with its tag: as an integer if it is small, otherwise as a double.
    pub(super) fn number(&mut self, n: f64) {
        let small = n as i32;
        let is_small = f64::from(small).to_bits() == n.to_bits();
        if is_small {
            self.byte(tag::INT32);
            let zigzag = (small << 1) ^ (small >> 31);
            self.varint(u64::from(zigzag.cast_unsigned()));
        } else {
            self.byte(tag::DOUBLE);
            self.double(n);
        }
    }

    /// Writes a bigint without its tag, in whole 64-bit words like V8.
    pub(super) fn bigint(&mut self, n: &BigInt) {
        let (sign, digits) = n.to_u64_digits();
        let len = digits.len() as u64 * 8;
        self.varint(len << 1 | u64::from(sign == Sign::Minus));
        for digit in digits {
            self.bytes(&digit.to_le_bytes());
        }
    }

    /// Writes a string with its tag.
    pub(super) fn string(&mut self, string: &JsString) {
        if let Some(text) = string.as_str() {
            if text.is_ascii() {
                self.byte(tag::ONE_BYTE_STRING);
                self.varint(text.len() as u64);
                self.bytes(text.as_bytes());
                return;
            }
            if text.chars().all(|c| u32::from(c) <= 0xff) {
                self.byte(tag::ONE_BYTE_STRING);
                self.varint(text.chars().count() as u64);
                self.0.extend(text.chars().map(|c| c as u8));
                return;
            }
        }
        let mut units = Vec::new();
        for_each_unit(string.as_wtf8(), |unit| units.extend_from_slice(&unit.to_le_bytes()));
        let len = units.len() as u64;
        // The characters start at an even offset.
        if (self.0.len() + 1 + varint_bytes(len)) % 2 == 1 {
            self.byte(tag::PADDING);
        }
        self.byte(tag::TWO_BYTE_STRING);
        self.varint(len);
        self.bytes(&units);
    }
}

fn varint_bytes(n: u64) -> usize {
    (64 - (n | 1).leading_zeros() as usize).div_ceil(7)
}

/// Visits the UTF-16 units of well-formed WTF-8.
fn for_each_unit(mut bytes: &[u8], mut visit: impl FnMut(u16)) {
    loop {
        let (text, odd) = match std::str::from_utf8(bytes) {
            Ok(text) => (text, &[][..]),
            Err(error) => {
                let (valid, odd) = bytes.split_at(error.valid_up_to());
                (std::str::from_utf8(valid).unwrap_or_default(), odd)
            }
        };
        text.encode_utf16().for_each(&mut visit);
        // Invalid UTF-8 here is a lone surrogate of three bytes.
        let [_, high, low, rest @ ..] = odd else { return };
        visit(0xd000 | u16::from(high & 0x3f) << 6 | u16::from(low & 0x3f));
        bytes = rest;
    }
}
