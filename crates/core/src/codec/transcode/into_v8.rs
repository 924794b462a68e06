//! CBOR → V8 in one pass, for values without shared objects.

use super::fast::Bytes;
use crate::codec::cbor::Packed;
use crate::codec::v8::Writer;
use crate::model::{VALUE_DEPTH_MAX, array_index};

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
    let mut to = Writer::with_capacity(bytes.len() + bytes.len() / 4 + 16);
    let mut open: Vec<Open> = Vec::new();
    loop {
        item(&mut from, &mut to, &mut open)?;
        loop {
            let Some(last) = open.last_mut() else {
                return from.0.is_empty().then(|| to.into_bytes());
            };
            if last.left > 0 {
                last.left -= 1;
                if last.is_object {
                    name(&mut from, &mut to)?;
                }
                break;
            }
            to.bytes(if last.is_object { b"{" } else { b"$\0" });
            to.varint(last.count);
            open.pop();
        }
    }
}

/// Rewrites one item, up to its first child.
fn item(from: &mut Bytes<'_>, to: &mut Writer, open: &mut Vec<Open>) -> Option<()> {
    let whole = from.0;
    let first = from.byte()?;
    let major = first >> 5;
    match (major, first) {
        (_, 0xf4) => to.byte(b'F'),
        (_, 0xf5) => to.byte(b'T'),
        (_, 0xf6) => to.byte(b'0'),
        (_, 0xf7) => to.byte(b'_'),
        (_, 0xfb) => to.number(f64::from_be_bytes(from.array()?)),
        (0, _) => to.number(argument(first, from)? as f64),
        (1, _) => to.number(-1.0 - argument(first, from)? as f64),
        (2, _) => {
            let len = argument(first, from)?;
            let bytes = from.take(usize::try_from(len).ok()?)?;
            to.byte(b'B');
            to.varint(len);
            to.bytes(bytes);
            to.bytes(b"VB\0");
            to.varint(len);
            to.byte(0);
        }
        (3, _) => {
            let len = argument(first, from)?;
            to.text(std::str::from_utf8(from.take(usize::try_from(len).ok()?)?).ok()?);
        }
        (4 | 5, _) => {
            let count = argument(first, from)?;
            let is_object = major == 5;
            // Each item has at least one byte; a larger count is left to the tree to reject.
            if open.len() >= VALUE_DEPTH_MAX || count > from.0.len() as u64 {
                return None;
            }
            to.byte(if is_object { b'o' } else { b'A' });
            if !is_object {
                to.varint(count);
            }
            open.push(Open { left: count, count, is_object });
        }
        (6, 0xd8) => {
            let (packed, end) = Packed::at_start(whole)?;
            if open.len() >= VALUE_DEPTH_MAX {
                return None;
            }
            from.0 = whole.get(end..)?;
            let count = packed.len() as u64;
            to.byte(b'A');
            to.varint(count);
            packed.iter().for_each(|n| to.number(n));
            to.bytes(b"$\0");
            to.varint(count);
        }
        (6, 0xc1) if from.peek() == Some(0xfb) => {
            from.byte()?;
            let seconds = f64::from_be_bytes(from.array()?);
            let ms = (seconds * 1000.0).round() + 0.0;
            // A date with inexact seconds is left to the tree.
            if !seconds.is_nan() && (ms / 1000.0).to_bits() != seconds.to_bits() {
                return None;
            }
            to.byte(b'D');
            to.double(ms);
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

fn name(from: &mut Bytes<'_>, to: &mut Writer) -> Option<()> {
    let first = from.byte()?;
    if first >> 5 != 3 {
        return None;
    }
    let len = argument(first, from)?;
    let bytes = from.take(usize::try_from(len).ok()?)?;
    match array_index(bytes) {
        Some(index) => to.number(f64::from(index)),
        None => to.text(std::str::from_utf8(bytes).ok()?),
    }
    Some(())
}
