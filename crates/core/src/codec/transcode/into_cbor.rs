//! V8 → CBOR in one pass, for values without shared objects.

use super::fast::Bytes;
use crate::codec::cbor::{TAG_DATE, Writer};
use crate::model::{VALUE_DEPTH_MAX, array_index};

/// A container with items still to come.
enum Open {
    Object {
        /// The offset of its head: one byte, reserved until the count is known.
        head: usize,
        /// The index of its first name in `names`.
        names: usize,
        /// The lowest valid index; `None` once a name that is no index has been read.
        next_index: Option<u64>,
    },
    Array {
        left: u32,
        length: u32,
    },
}

struct Rewriter<'a> {
    from: Bytes<'a>,
    to: Writer,
    open: Vec<Open>,
    /// Start and end in `to` of the names of open objects.
    names: Vec<(usize, usize)>,
    /// Offsets of heads that need more than the reserved byte, with their counts.
    longer: Vec<(usize, usize)>,
}

/// The CBOR bytes, or `None` if the value needs a tree.
pub(super) fn plain(bytes: &[u8]) -> Option<Vec<u8>> {
    // The other versions differ in views only, and 13 is rare.
    let [0xff, 14..=16, rest @ ..] = bytes else { return None };
    let mut rewriter = Rewriter {
        from: Bytes(rest),
        to: Writer::with_capacity(bytes.len()),
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

    /// Moves to the next item of the innermost container; returns `false` if the container ends.
    fn next(&mut self) -> Option<bool> {
        match self.open.last_mut()? {
            Open::Array { left: 0, length } => {
                let length = *length;
                // The end of an array without further properties, which repeats its length.
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
                    || has_duplicates(&self.to.out, self.names.get(names..)?)
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

    /// Fills in the head of an object. A longer head waits for [`Self::finish`]: inserting it now
    /// would move the bytes behind it once for each level of nesting.
    fn close(&mut self, head: usize, count: usize) -> Option<()> {
        if count < 24 {
            *self.to.out.get_mut(head)? = 0xa0 | count as u8;
        } else {
            self.longer.push((head, count));
        }
        Some(())
    }

    /// The output, with the longer heads inserted.
    fn finish(mut self) -> Option<Vec<u8>> {
        let out = self.to.out;
        if self.longer.is_empty() {
            return Some(out);
        }
        self.longer.sort_unstable();
        let mut whole = Writer::with_capacity(out.len() + self.longer.len() * HEAD_BYTES_MORE);
        let mut from = 0;
        for (head, count) in self.longer {
            whole.out.extend_from_slice(out.get(from..head)?);
            whole.map(count);
            from = head + 1;
        }
        whole.out.extend_from_slice(out.get(from..)?);
        Some(whole.out)
    }

    fn name(&mut self, tag: u8) -> Option<()> {
        let start = self.to.out.len();
        match tag {
            b'I' => {
                let index = self.zigzag()?;
                self.to.text(&index.to_string());
            }
            b'"' => self.one_byte_string()?,
            b'c' => self.two_byte_string()?,
            _ => return None,
        }
        self.names.push((start, self.to.out.len()));
        self.in_order(start)
    }

    /// JavaScript puts indexes first, ascending. Any other order is left to the tree, which sorts.
    fn in_order(&mut self, start: usize) -> Option<()> {
        // The head has one byte, since an index is short.
        let index = self.to.out.get(start + 1..).and_then(array_index).map(u64::from);
        let Some(Open::Object { next_index, .. }) = self.open.last_mut() else { return None };
        if index.is_some_and(|index| next_index.is_none_or(|next| index < next)) {
            return None;
        }
        *next_index = index.map(|index| index + 1);
        Some(())
    }

    /// Rewrites one item, up to its first child.
    fn item(&mut self) -> Option<()> {
        match self.tag()? {
            b'_' => self.to.undefined(),
            b'0' => self.to.null(),
            b'T' => self.to.bool(true),
            b'F' => self.to.bool(false),
            b'I' => {
                let n = self.zigzag()?;
                self.to.number(f64::from(n));
            }
            b'U' => self.to.number(f64::from(self.from.varint()?)),
            b'N' => self.to.number(f64::from_le_bytes(self.from.array()?)),
            b'D' => {
                let ms = f64::from_le_bytes(self.from.array()?);
                // An invalid time is left to the tree.
                if ms.abs() > 8.64e15 || ms.trunc() != ms && !ms.is_nan() {
                    return None;
                }
                self.to.tag(TAG_DATE);
                self.to.float((ms + 0.0) / 1000.0);
            }
            b'"' => self.one_byte_string()?,
            b'c' => self.two_byte_string()?,
            b'B' => self.bytes()?,
            b'o' => {
                let head = self.to.out.len();
                self.to.map(0);
                self.enter(Open::Object { head, names: self.names.len(), next_index: Some(0) })?;
            }
            b'A' => {
                let length = self.from.varint()?;
                if length as usize > self.from.0.len() {
                    return None;
                }
                self.to.array(length as usize);
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
        match std::str::from_utf8(bytes) {
            Ok(text) if text.is_ascii() => self.to.text(text),
            _ => self.to.text(&bytes.iter().map(|byte| char::from(*byte)).collect::<String>()),
        }
        Some(())
    }

    fn two_byte_string(&mut self) -> Option<()> {
        let len = self.from.varint()? as usize;
        let (units, rest) = self.from.take(len)?.as_chunks();
        let units = units.iter().map(|unit| u16::from_le_bytes(*unit));
        // A lone surrogate is left to the tree.
        let text = char::decode_utf16(units).collect::<Result<String, _>>().ok()?;
        if !rest.is_empty() {
            return None;
        }
        self.to.text(&text);
        Some(())
    }

    /// A buffer and the `Uint8Array` that follows it. A later reference to the buffer ends the
    /// one-pass conversion.
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
        self.to.bytes(seen);
        Some(())
    }
}

/// Additional bytes of a head with a 32-bit count.
const HEAD_BYTES_MORE: usize = 4;

/// Up to this many names are compared pairwise.
const PAIRWISE_MAX: usize = 16;

/// Whether a name occurs twice.
fn has_duplicates(out: &[u8], names: &[(usize, usize)]) -> bool {
    let text = |(start, end): (usize, usize)| out.get(start..end).unwrap_or_default();
    if names.len() > PAIRWISE_MAX {
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
