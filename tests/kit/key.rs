//! The encoding of keys and the order of their parts, written without the code under test: what
//! `codec::key` decodes is compared with this.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use super::KeyPart;

/// Encodes a key; `None` if a bigint needs more than 255 bytes.
pub(crate) fn encode(parts: &[KeyPart]) -> Option<Vec<u8>> {
    let mut out = Vec::new();
    for part in parts {
        match part {
            KeyPart::Bytes(bytes) => push_escaped(&mut out, 0x01, bytes),
            KeyPart::String(text) => push_escaped(&mut out, 0x02, text.as_bytes()),
            KeyPart::BigInt(n) => push_bigint(&mut out, n)?,
            KeyPart::Number(n) => push_number(&mut out, *n),
            KeyPart::Bool(b) => out.push(0x26 + u8::from(*b)),
        }
    }
    Some(out)
}

fn push_escaped(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    for &byte in bytes {
        out.extend(if byte == 0 { &[0x00, 0xff][..] } else { std::slice::from_ref(&byte) });
    }
    out.push(0);
}

/// The length of a short magnitude is part of the tag, 0x14 for zero; a longer one has a length byte.
fn push_bigint(out: &mut Vec<u8>, n: &BigInt) -> Option<()> {
    let (sign, magnitude) = n.to_bytes_be();
    let len = u8::try_from(magnitude.len()).ok()?;
    match sign {
        Sign::NoSign => out.push(0x14),
        Sign::Plus => {
            if len <= 8 {
                out.push(0x14 + len)
            } else {
                out.extend([0x1d, len])
            }
            out.extend(magnitude);
        }
        Sign::Minus => {
            if len <= 8 {
                out.push(0x14 - len)
            } else {
                out.extend([0x0b, !len])
            }
            out.extend(magnitude.iter().map(|byte| !byte));
        }
    }
    Some(())
}

fn push_number(out: &mut Vec<u8>, n: f64) {
    let bits = one_nan(n).to_bits();
    let ordered = if n.is_sign_positive() { bits | 1 << 63 } else { !bits };
    out.push(0x21);
    out.extend(ordered.to_be_bytes());
}

/// All NaNs of one sign are one part, beyond the infinity of that sign.
fn one_nan(n: f64) -> f64 {
    if n.is_nan() { f64::NAN.copysign(n) } else { n }
}

/// The order of keys by their parts: bytes < strings < bigints < numbers < booleans, in a kind by
/// value, and −0 before 0.
pub(crate) fn compare(a: &[KeyPart], b: &[KeyPart]) -> Ordering {
    let different = a.iter().zip(b).map(|(a, b)| compare_parts(a, b)).find(|order| order.is_ne());
    different.unwrap_or_else(|| a.len().cmp(&b.len()))
}

fn compare_parts(a: &KeyPart, b: &KeyPart) -> Ordering {
    match (a, b) {
        (KeyPart::Bytes(a), KeyPart::Bytes(b)) => a.cmp(b),
        (KeyPart::String(a), KeyPart::String(b)) => a.cmp(b),
        (KeyPart::BigInt(a), KeyPart::BigInt(b)) => a.cmp(b),
        (KeyPart::Number(a), KeyPart::Number(b)) => one_nan(*a).total_cmp(&one_nan(*b)),
        (KeyPart::Bool(a), KeyPart::Bool(b)) => a.cmp(b),
        _ => kind(a).cmp(&kind(b)),
    }
}

fn kind(part: &KeyPart) -> u8 {
    match part {
        KeyPart::Bytes(_) => 0,
        KeyPart::String(_) => 1,
        KeyPart::BigInt(_) => 2,
        KeyPart::Number(_) => 3,
        KeyPart::Bool(_) => 4,
    }
}
