//! V8 → CBOR in one pass, for values in which no object is met twice.

use super::fast::{Bytes, index_of, put_float, put_head, put_number};
use crate::model::VALUE_DEPTH_MAX;

/// A container with items still to come.
enum Open {
    Object {
        /// Where its head is: one byte, for a count that is not known yet.
        head: usize,
        /// Where its names start among all names.
        names: usize,
        /// The least index that may come next; `None` once there are other names.
        next_index: Option<u64>,
    },
    Array {
        left: u32,
        length: u32,
    },
}

struct Rewriter<'a> {
    from: Bytes<'a>,
    out: Vec<u8>,
    open: Vec<Open>,
    /// Where the names of open objects are in `out`: start and end.
    names: Vec<(usize, usize)>,
    /// Heads that need more than their one byte: where they are, and the counts.
    longer: Vec<(usize, usize)>,
}

/// The CBOR bytes, or `None` if the value is not that plain.
pub(super) fn plain(bytes: &[u8]) -> Option<Vec<u8>> {
    // The other versions differ in views only; 13 is rare enough for the other way.
    let [0xff, 14..=16, rest @ ..] = bytes else { return None };
    let mut rewriter = Rewriter {
        from: Bytes(rest),
        out: Vec::with_capacity(bytes.len()),
        open: Vec::new(),
        names: Vec::new(),
        longer: Vec::new(),
    };
    loop {
        rewriter.item()?;
        loop {
            if rewriter.open.is_empty() {
                return rewriter.finish();
            }
            if rewriter.next()? {
                break;
            }
        }
    }
}

impl Rewriter<'_> {
    fn tag(&mut self) -> Option<u8> {
        loop {
            match self.from.byte()? {
                0 => {}
                tag => return Some(tag),
            }
        }
    }

    /// Goes to the next item of the innermost container; `false` when that has ended instead.
    fn next(&mut self) -> Option<bool> {
        match self.open.last_mut()? {
            Open::Array { left: 0, length } => {
                let length = *length;
                // No properties beside the elements, and the length once more.
                let ends = self.tag()? == b'$'
                    && self.from.varint()? == 0
                    && self.from.varint()? == length;
                self.open.pop();
                ends.then_some(false)
            }
            Open::Array { left, .. } => {
                *left -= 1;
                Some(true)
            }
            &mut Open::Object { head, names, .. } => {
                let tag = self.tag()?;
                if tag != b'{' {
                    self.name(tag)?;
                    return Some(true);
                }
                let count = self.names.len() - names;
                if self.from.varint()? as usize != count
                    || has_twins(&self.out, self.names.get(names..)?)
                {
                    return None;
                }
                self.names.truncate(names);
                self.open.pop();
                self.close(head, count)?;
                Some(false)
            }
        }
    }

    /// Fills in the head of an object, or leaves that to the end: what is behind it would have to
    /// move, and at every level of a deep value again.
    fn close(&mut self, head: usize, count: usize) -> Option<()> {
        if count < 24 {
            *self.out.get_mut(head)? = 0xa0 | count as u8;
        } else {
            self.longer.push((head, count));
        }
        Some(())
    }

    /// All of it, with the heads that were left.
    fn finish(mut self) -> Option<Vec<u8>> {
        if self.longer.is_empty() {
            return Some(self.out);
        }
        self.longer.sort_unstable();
        let mut whole = Vec::with_capacity(self.out.len() + self.longer.len() * HEAD_BYTES_MORE);
        let mut from = 0;
        for (head, count) in self.longer {
            whole.extend_from_slice(self.out.get(from..head)?);
            put_head(&mut whole, 5, count as u64);
            from = head + 1;
        }
        whole.extend_from_slice(self.out.get(from..)?);
        Some(whole)
    }

    fn name(&mut self, tag: u8) -> Option<()> {
        let start = self.out.len();
        match tag {
            b'I' => {
                let index = self.zigzag()?;
                let text = index.to_string();
                put_head(&mut self.out, 3, text.len() as u64);
                self.out.extend_from_slice(text.as_bytes());
            }
            b'"' => self.one_byte_string()?,
            b'c' => self.two_byte_string()?,
            _ => return None,
        }
        self.names.push((start, self.out.len()));
        self.in_order(start)
    }

    /// JavaScript has indexes first, ascending. Where they are not, the other way sorts them.
    fn in_order(&mut self, start: usize) -> Option<()> {
        // Behind a head of one byte: what spells an index is short.
        let index = self.out.get(start + 1..).and_then(index_of).map(u64::from);
        let Some(Open::Object { next_index, .. }) = self.open.last_mut() else { return None };
        if index.is_some_and(|index| next_index.is_none_or(|next| index < next)) {
            return None;
        }
        *next_index = index.map(|index| index + 1);
        Some(())
    }

    /// Rewrites one item, up to the first item inside it.
    fn item(&mut self) -> Option<()> {
        match self.tag()? {
            b'_' => self.out.push(0xf7),
            b'0' => self.out.push(0xf6),
            b'T' => self.out.push(0xf5),
            b'F' => self.out.push(0xf4),
            b'I' => {
                let n = self.zigzag()?;
                put_number(&mut self.out, f64::from(n));
            }
            b'U' => {
                let n = self.from.varint()?;
                put_head(&mut self.out, 0, u64::from(n));
            }
            b'N' => {
                let n = f64::from_le_bytes(self.from.array()?);
                put_number(&mut self.out, n);
            }
            b'D' => {
                let ms = f64::from_le_bytes(self.from.array()?);
                // A time that no Date has is for the other way.
                if ms.abs() > 8.64e15 || ms.trunc() != ms && !ms.is_nan() {
                    return None;
                }
                self.out.push(0xc1);
                put_float(&mut self.out, (ms + 0.0) / 1000.0);
            }
            b'"' => self.one_byte_string()?,
            b'c' => self.two_byte_string()?,
            b'B' => self.bytes()?,
            b'o' => {
                let head = self.out.len();
                self.out.push(0xa0);
                self.enter(Open::Object { head, names: self.names.len(), next_index: Some(0) })?;
            }
            b'A' => {
                let length = self.from.varint()?;
                if length as usize > self.from.0.len() {
                    return None;
                }
                put_head(&mut self.out, 4, u64::from(length));
                self.enter(Open::Array { left: length, length })?;
            }
            _ => return None,
        }
        Some(())
    }

    fn enter(&mut self, container: Open) -> Option<()> {
        if self.open.len() >= VALUE_DEPTH_MAX {
            return None;
        }
        self.open.push(container);
        Some(())
    }

    fn zigzag(&mut self) -> Option<i32> {
        let n = self.from.varint()?;
        Some((n >> 1).cast_signed() ^ -((n & 1).cast_signed()))
    }

    fn one_byte_string(&mut self) -> Option<()> {
        let len = self.from.varint()? as usize;
        let bytes = self.from.take(len)?;
        if bytes.is_ascii() {
            put_head(&mut self.out, 3, len as u64);
            self.out.extend_from_slice(bytes);
        } else {
            let text: String = bytes.iter().map(|byte| char::from(*byte)).collect();
            put_head(&mut self.out, 3, text.len() as u64);
            self.out.extend_from_slice(text.as_bytes());
        }
        Some(())
    }

    fn two_byte_string(&mut self) -> Option<()> {
        let len = self.from.varint()? as usize;
        let (units, rest) = self.from.take(len)?.as_chunks();
        let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
        // A lone surrogate is for the other way.
        let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
        if !rest.is_empty() {
            return None;
        }
        put_head(&mut self.out, 3, text.len() as u64);
        self.out.extend_from_slice(text.as_bytes());
        Some(())
    }

    /// A buffer with the `Uint8Array` behind it. A later reference to the buffer ends the one-pass
    /// conversion.
    fn bytes(&mut self) -> Option<()> {
        let len = self.from.varint()? as usize;
        let bytes = self.from.take(len)?;
        if self.tag()? != b'V' || self.from.byte()? != b'B' {
            return None;
        }
        let (offset, length, flags) =
            (self.from.varint()?, self.from.varint()?, self.from.varint()?);
        let seen = bytes.get(offset as usize..(offset as usize).checked_add(length as usize)?)?;
        if flags != 0 {
            return None;
        }
        put_head(&mut self.out, 2, seen.len() as u64);
        self.out.extend_from_slice(seen);
        Some(())
    }
}

/// Room for a count of 32 bits behind the byte that was left for a head.
const HEAD_BYTES_MORE: usize = 4;

/// Up to this many names are compared each with each.
const FEW: usize = 16;

/// Whether a name occurs twice.
fn has_twins(out: &[u8], names: &[(usize, usize)]) -> bool {
    let text = |(start, end): (usize, usize)| out.get(start..end).unwrap_or_default();
    if names.len() > FEW {
        let mut sorted: Vec<&[u8]> = names.iter().map(|name| text(*name)).collect();
        sorted.sort_unstable();
        return !sorted.is_sorted_by(|a, b| a < b);
    }
    let mut rest = names;
    while let Some((first, others)) = rest.split_first() {
        let len = first.1 - first.0;
        if others.iter().any(|other| other.1 - other.0 == len && text(*other) == text(*first)) {
            return true;
        }
        rest = others;
    }
    false
}
