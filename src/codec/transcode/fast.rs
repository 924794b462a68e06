//! Shared by both one-pass converters: the input, and the conditions for giving up.
//!
//! `None` means that one pass is not enough, not that the bytes are invalid. The caller then
//! converts through a tree, which reports errors.

/// The bytes still to be read.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

impl<'a> Bytes<'a> {
    pub(super) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub(super) fn peek(&self) -> Option<u8> {
        self.0.first().copied()
    }

    pub(super) fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(super) fn varint(&mut self) -> Option<u32> {
        let mut n = 0_u32;
        for shift in [0, 7, 14, 21, 28] {
            let byte = self.byte()?;
            if shift == 28 && byte > 0x0f {
                return None;
            }
            n |= u32::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(n);
            }
        }
        None
    }
}

/// The largest integer that a number represents exactly.
const SAFE_INTEGER_MAX: f64 = 9_007_199_254_740_991.0;

/// Appends a CBOR head in its shortest form.
pub(super) fn put_head(out: &mut Vec<u8>, major: u8, n: u64) {
    let major = major << 5;
    match n {
        0..24 => out.push(major | n as u8),
        24..0x100 => out.extend_from_slice(&[major | 24, n as u8]),
        0x100..0x1_0000 => {
            out.push(major | 25);
            out.extend_from_slice(&(n as u16).to_be_bytes());
        }
        0x1_0000..0x1_0000_0000 => {
            out.push(major | 26);
            out.extend_from_slice(&(n as u32).to_be_bytes());
        }
        _ => {
            out.push(major | 27);
            out.extend_from_slice(&n.to_be_bytes());
        }
    }
}

/// Appends a CBOR number: an integer if that is exact, otherwise eight bytes.
pub(super) fn put_number(out: &mut Vec<u8>, n: f64) {
    let whole = n as i64;
    let is_whole = n.abs() <= SAFE_INTEGER_MAX && (whole as f64).to_bits() == n.to_bits();
    match u64::try_from(whole) {
        Ok(n) if is_whole => put_head(out, 0, n),
        Err(_) if is_whole => put_head(out, 1, (-1 - whole).cast_unsigned()),
        _ => put_float(out, n),
    }
}

pub(super) fn put_float(out: &mut Vec<u8>, n: f64) {
    let n = if n.is_nan() { f64::from_bits(0x7ff8_0000_0000_0000) } else { n };
    out.push(0xfb);
    out.extend_from_slice(&n.to_be_bytes());
}

/// The array index that a name is in JavaScript.
pub(super) fn index_of(name: &[u8]) -> Option<u32> {
    let (first, rest) = name.split_first()?;
    if !first.is_ascii_digit() || (*first == b'0' && !rest.is_empty()) || name.len() > 10 {
        return None;
    }
    let text = std::str::from_utf8(name).ok()?;
    text.parse().ok().filter(|index| *index != u32::MAX)
}
