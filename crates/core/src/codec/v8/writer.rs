//! Writes tags, numbers and strings.

use num_bigint::{BigInt, Sign};

use super::tag;
use crate::model::JsString;

/// The bytes written so far.
pub(in crate::codec) struct Writer(Vec<u8>);

impl Writer {
    /// Starts with the version.
    pub(in crate::codec) fn with_capacity(bytes: usize) -> Self {
        let mut writer = Self(Vec::with_capacity(bytes));
        writer.byte(tag::VERSION);
        writer.varint(u64::from(tag::VERSION_WRITTEN));
        writer
    }

    pub(in crate::codec) fn into_bytes(self) -> Vec<u8> {
        self.0
    }

    pub(in crate::codec) fn byte(&mut self, byte: u8) {
        self.0.push(byte);
    }

    pub(in crate::codec) fn bytes(&mut self, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
    }

    pub(in crate::codec) fn varint(&mut self, mut n: u64) {
        while n >= 0x80 {
            self.0.push(n as u8 | 0x80);
            n >>= 7;
        }
        self.0.push(n as u8);
    }

    pub(in crate::codec) fn double(&mut self, n: f64) {
        // JavaScript has only one NaN.
        let n = if n.is_nan() { f64::from_bits(0x7ff8_0000_0000_0000) } else { n };
        self.bytes(&n.to_le_bytes());
    }

    /// Writes a number with its tag: as an integer if it is small, otherwise as a double.
    pub(in crate::codec) fn number(&mut self, n: f64) {
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
        match string.as_str() {
            Some(text) => self.text(text),
            None => {
                let mut units = Vec::new();
                for_each_unit(string.as_wtf8(), |unit| units.extend(unit.to_le_bytes()));
                self.two_byte_string(units.len(), units);
            }
        }
    }

    /// Writes a string without lone surrogates, with its tag.
    pub(in crate::codec) fn text(&mut self, text: &str) {
        if text.is_ascii() {
            self.byte(tag::ONE_BYTE_STRING);
            self.varint(text.len() as u64);
            self.bytes(text.as_bytes());
        } else if text.chars().all(|c| u32::from(c) <= 0xff) {
            self.byte(tag::ONE_BYTE_STRING);
            self.varint(text.chars().count() as u64);
            self.0.extend(text.chars().map(|c| c as u8));
        } else {
            let units = text.encode_utf16();
            self.two_byte_string(units.clone().count() * 2, units.flat_map(u16::to_le_bytes));
        }
    }

    /// The characters start at an even offset.
    fn two_byte_string(&mut self, len: usize, units: impl IntoIterator<Item = u8>) {
        if (self.0.len() + 1 + varint_bytes(len as u64)) % 2 == 1 {
            self.byte(tag::PADDING);
        }
        self.byte(tag::TWO_BYTE_STRING);
        self.varint(len as u64);
        self.0.extend(units);
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
