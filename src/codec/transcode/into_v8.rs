//! CBOR → V8 in one pass, for values without shared objects.

use super::fast::{Bytes, index_of};
use crate::model::VALUE_DEPTH_MAX;

/// A container whose end is not written yet.
struct Open {
    /// Items still to come.
    left: u64,
    /// The number of items.
    count: u64,
    is_object: bool,
}

/// The V8 bytes, or `None` if the value needs a tree.
pub(super) fn plain(bytes: &[u8]) -> Option<Vec<u8>> {
    let mut from = Bytes(bytes);
    // In V8's format names are one byte longer, heads one or two.
    let mut out = Vec::with_capacity(bytes.len() + bytes.len() / 4 + 16);
    out.extend_from_slice(&[0xff, 0x0f]);
    let mut open: Vec<Open> = Vec::new();
    loop {
        item(&mut from, &mut out, &mut open)?;
        loop {
            let Some(last) = open.last_mut() else {
                return from.0.is_empty().then_some(out);
            };
            if last.left > 0 {
                last.left -= 1;
                if last.is_object {
                    name(&mut from, &mut out)?;
                }
                break;
            }
            if last.is_object {
                out.push(b'{');
            } else {
                out.extend_from_slice(b"$\0");
            }
            put_varint(&mut out, last.count);
            open.pop();
        }
    }
}

/// Rewrites one item, up to its first child.
fn item(from: &mut Bytes<'_>, out: &mut Vec<u8>, open: &mut Vec<Open>) -> Option<()> {
    let first = from.byte()?;
    let major = first >> 5;
    match (major, first) {
        (_, 0xf4) => out.push(b'F'),
        (_, 0xf5) => out.push(b'T'),
        (_, 0xf6) => out.push(b'0'),
        (_, 0xf7) => out.push(b'_'),
        (_, 0xfb) => put_number(out, f64::from_be_bytes(from.array()?)),
        (0, _) => put_number(out, argument(first, from)? as f64),
        (1, _) => put_number(out, -1.0 - argument(first, from)? as f64),
        (2, _) => {
            let len = argument(first, from)?;
            let bytes = from.take(usize::try_from(len).ok()?)?;
            out.push(b'B');
            put_varint(out, len);
            out.extend_from_slice(bytes);
            out.extend_from_slice(b"VB\0");
            put_varint(out, len);
            out.push(0);
        }
        (3, _) => {
            let len = argument(first, from)?;
            put_string(out, from.take(usize::try_from(len).ok()?)?)?;
        }
        (4 | 5, _) => {
            let count = argument(first, from)?;
            let is_object = major == 5;
            // Each item has at least one byte; a larger count is left to the tree to reject.
            if open.len() >= VALUE_DEPTH_MAX || count > from.0.len() as u64 {
                return None;
            }
            if is_object {
                out.push(b'o');
            } else {
                out.push(b'A');
                put_varint(out, count);
            }
            open.push(Open { left: count, count, is_object });
        }
        (6, 0xc1) if from.peek() == Some(0xfb) => {
            from.byte()?;
            let seconds = f64::from_be_bytes(from.array()?);
            let ms = (seconds * 1000.0).round() + 0.0;
            // A date with inexact seconds is left to the tree.
            if !seconds.is_nan() && (ms / 1000.0).to_bits() != seconds.to_bits() {
                return None;
            }
            out.push(b'D');
            put_double(out, ms);
        }
        _ => return None,
    }
    Some(())
}

/// The argument of a head, which must have its shortest form.
fn argument(first: u8, from: &mut Bytes<'_>) -> Option<u64> {
    let (n, least) = match first & 0x1f {
        n @ 0..24 => (u64::from(n), 0),
        24 => (u64::from(from.byte()?), 24),
        25 => (u64::from(u16::from_be_bytes(from.array()?)), 0x100),
        26 => (u64::from(u32::from_be_bytes(from.array()?)), 0x1_0000),
        27 => (u64::from_be_bytes(from.array()?), 0x1_0000_0000),
        _ => return None,
    };
    // Numbers beyond 2^53 − 1 are not part of the format either.
    (n >= least && n < 1 << 53).then_some(n)
}

fn name(from: &mut Bytes<'_>, out: &mut Vec<u8>) -> Option<()> {
    let first = from.byte()?;
    if first >> 5 != 3 {
        return None;
    }
    let len = argument(first, from)?;
    let bytes = from.take(usize::try_from(len).ok()?)?;
    match index_of(bytes) {
        Some(index) => put_number(out, f64::from(index)),
        None => put_string(out, bytes)?,
    }
    Some(())
}

fn put_string(out: &mut Vec<u8>, bytes: &[u8]) -> Option<()> {
    if bytes.is_ascii() {
        out.push(b'"');
        put_varint(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
        return Some(());
    }
    let text = std::str::from_utf8(bytes).ok()?;
    if text.chars().all(|c| u32::from(c) <= 0xff) {
        out.push(b'"');
        put_varint(out, text.chars().count() as u64);
        out.extend(text.chars().map(|c| c as u8));
        return Some(());
    }
    let len = text.encode_utf16().count() as u64 * 2;
    let len_bytes = (64 - (len | 1).leading_zeros() as usize).div_ceil(7);
    if (out.len() + 1 + len_bytes) % 2 == 1 {
        out.push(0);
    }
    out.push(b'c');
    put_varint(out, len);
    out.extend(text.encode_utf16().flat_map(u16::to_le_bytes));
    Some(())
}

fn put_varint(out: &mut Vec<u8>, mut n: u64) {
    while n >= 0x80 {
        out.push(n as u8 | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn put_double(out: &mut Vec<u8>, n: f64) {
    let n = if n.is_nan() { f64::from_bits(0x7ff8_0000_0000_0000) } else { n };
    out.extend_from_slice(&n.to_le_bytes());
}

fn put_number(out: &mut Vec<u8>, n: f64) {
    let small = n as i32;
    if f64::from(small).to_bits() == n.to_bits() {
        out.push(b'I');
        put_varint(out, u64::from(((small << 1) ^ (small >> 31)).cast_unsigned()));
    } else {
        out.push(b'N');
        put_double(out, n);
    }
}
