//! Parses frames, and the requests of reads.

use crate::codec::Malformed;
use crate::model::{EncodedValue, Encoding, Key, Range, Request};

/// The bytes still to be read.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    len: usize,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, len: bytes.len() }
    }

    /// Parses all of `bytes`.
    pub(super) fn whole<T>(
        bytes: &'a [u8],
        parse: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<T, Malformed> {
        let mut reader = Self::new(bytes);
        let parsed = parse(&mut reader)?;
        reader.end()?;
        Ok(parsed)
    }

    pub(super) fn refused(&self, what: &'static str) -> Malformed {
        Malformed::new(what, self.len - self.bytes.len())
    }

    /// The number of bytes read.
    pub(super) fn at(&self) -> usize {
        self.len - self.bytes.len()
    }

    pub(super) fn take(&mut self, len: usize) -> Result<&'a [u8], Malformed> {
        let (taken, rest) = self
            .bytes
            .split_at_checked(len)
            .ok_or_else(|| self.refused("the frame is cut short"))?;
        self.bytes = rest;
        Ok(taken)
    }

    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], Malformed> {
        let (taken, rest) =
            self.bytes.split_first_chunk().ok_or_else(|| self.refused("the frame is cut short"))?;
        self.bytes = rest;
        Ok(*taken)
    }

    pub(super) fn u8(&mut self) -> Result<u8, Malformed> {
        self.array().map(u8::from_le_bytes)
    }

    pub(super) fn u16(&mut self) -> Result<usize, Malformed> {
        self.array().map(u16::from_le_bytes).map(usize::from)
    }

    pub(super) fn u32(&mut self) -> Result<u32, Malformed> {
        self.array().map(u32::from_le_bytes)
    }

    pub(super) fn u64(&mut self) -> Result<u64, Malformed> {
        self.array().map(u64::from_le_bytes)
    }

    /// A time in ms since the epoch: a double, truncated to whole milliseconds.
    pub(super) fn time_ms(&mut self) -> Result<i64, Malformed> {
        let ms = self.array().map(f64::from_le_bytes)?;
        if !ms.is_finite() {
            return Err(self.refused("a time that is not finite"));
        }
        Ok(ms as i64)
    }

    /// The expiry of an entry, if present.
    pub(super) fn end_ms(&mut self, present: bool) -> Result<Option<i64>, Malformed> {
        if present { self.time_ms().map(|ms| Some(ms.max(0))) } else { Ok(None) }
    }

    /// Bytes after their length.
    pub(super) fn sized(&mut self) -> Result<&'a [u8], Malformed> {
        let len = self.u32()?;
        self.take(len as usize)
    }

    /// UTF-8 after its length.
    pub(super) fn text(&mut self) -> Result<&'a str, Malformed> {
        let bytes = self.sized()?;
        std::str::from_utf8(bytes).map_err(|_| self.refused("text that is not UTF-8"))
    }

    pub(super) fn i64(&mut self) -> Result<i64, Malformed> {
        self.array().map(i64::from_le_bytes)
    }

    pub(super) fn key(&mut self) -> Result<Key, Malformed> {
        self.sized().map(|bytes| Key::from_encoded(bytes.to_vec()))
    }

    /// The bytes left.
    pub(super) fn value(&mut self) -> Result<EncodedValue, Malformed> {
        let id = self.u8()?;
        let encoding =
            Encoding::from_id(i64::from(id)).ok_or_else(|| self.refused("an unknown encoding"))?;
        let bytes = self.sized()?.to_vec();
        if encoding == Encoding::Le64 && bytes.len() != 8 {
            return Err(self.refused("a KvU64 that is not 8 bytes"));
        }
        Ok(EncodedValue { encoding, bytes })
    }

    pub(super) fn rest(&self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn end(&self) -> Result<(), Malformed> {
        if self.bytes.is_empty() { Ok(()) } else { Err(self.refused("the frame goes on")) }
    }

    /// A vector with capacity for `count` items of at least `least` bytes each, limited to those
    /// that the frame can hold.
    pub(super) fn room<T>(&self, count: usize, least: usize) -> Vec<T> {
        Vec::with_capacity(count.min(self.bytes.len() / least + 1))
    }
}

/// Parses `count` keys, each after its length.
///
/// # Errors
/// A truncated frame, or trailing bytes.
pub fn parse_keys(bytes: &[u8], count: usize) -> Result<Vec<Key>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut keys = reader.room(count, 4);
    for _ in 0..count {
        keys.push(reader.key()?);
    }
    reader.end()?;
    Ok(keys)
}

/// The next of several keys, each after its length, and the rest; `None` at the end and for a
/// truncated frame.
#[must_use]
pub fn next_key(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}

const REVERSE: u8 = 1;
const POINT: u8 = 2;

/// Flags of a request to a remote database.
const EVENTUAL: u8 = 64;
const TOGETHER: u8 = 128;

/// Parses `count` range requests.
///
/// # Errors
/// A truncated frame, trailing bytes, or unknown flags.
pub fn parse_ranges(bytes: &[u8], count: usize) -> Result<Vec<Range>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut ranges = reader.room(count, 13);
    for _ in 0..count {
        let flags = reader.u8()?;
        ranges.push(range(&mut reader, flags)?);
    }
    reader.end()?;
    Ok(ranges)
}

/// Appends range requests, for [`parse_ranges`].
pub fn push_ranges<'a>(out: &mut Vec<u8>, ranges: impl IntoIterator<Item = &'a Range>) {
    for range in ranges {
        let (flags, limit, start, end) = match range {
            Range::Point(key) => (POINT, 1, key.as_bytes(), &[][..]),
            Range::Span { start, end, limit, reverse } => {
                let limit = u32::try_from(*limit).unwrap_or(u32::MAX);
                (if *reverse { REVERSE } else { 0 }, limit, start.as_bytes(), end.as_bytes())
            }
        };
        out.push(flags);
        out.extend_from_slice(&limit.to_le_bytes());
        for key in [start, end] {
            out.extend_from_slice(&(key.len() as u32).to_le_bytes());
            out.extend_from_slice(key);
        }
    }
}

/// Parses `count` range requests to a remote database.
///
/// # Errors
/// As [`parse_ranges`].
pub fn parse_requests(bytes: &[u8], count: usize) -> Result<Vec<Request>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut requests = reader.room(count, 13);
    for _ in 0..count {
        let flags = reader.u8()?;
        requests.push(Request {
            range: range(&mut reader, flags & !(EVENTUAL | TOGETHER))?,
            eventual: flags & EVENTUAL != 0,
            together: flags & TOGETHER != 0,
        });
    }
    reader.end()?;
    Ok(requests)
}

/// Parses the rest of a range request after its flags.
fn range(reader: &mut Reader<'_>, flags: u8) -> Result<Range, Malformed> {
    if flags & !(REVERSE | POINT) != 0 {
        return Err(reader.refused("unknown flags of a range"));
    }
    let limit = reader.u32()? as usize;
    let start = reader.key()?;
    let end = reader.key()?;
    Ok(if flags & POINT != 0 {
        Range::Point(start)
    } else {
        Range::Span { start, end, limit, reverse: flags & REVERSE != 0 }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_parsed() {
        let frame = [3, 9, 0, 0, 0, 1, 0, 0, 0, 0x14, 0, 0, 0, 0];
        let point = Range::Point(Key::from_encoded(vec![0x14]));
        assert_eq!(parse_ranges(&frame, 1), Ok(vec![point]));
        assert!(parse_ranges(&frame, 2).is_err());
        assert!(parse_ranges(&frame[..13], 1).is_err());
        assert!(parse_ranges(&[8, 9, 0, 0, 0, 1, 0, 0, 0, 0x14, 0, 0, 0, 0], 1).is_err());
    }

    #[test]
    fn ranges_round_trip() {
        let key = |byte| Key::from_encoded(vec![byte]);
        let span = |reverse| Range::Span { start: key(1), end: key(2), limit: 7, reverse };
        let ranges = [Range::Point(key(9)), span(false), span(true)];
        let mut frame = Vec::new();
        push_ranges(&mut frame, &ranges);
        assert_eq!(parse_ranges(&frame, 3), Ok(ranges.to_vec()));
    }

    #[test]
    fn remote_requests_have_consistency_and_grouping() {
        let frame = [0x82, 9, 0, 0, 0, 1, 0, 0, 0, 0x14, 0, 0, 0, 0];
        let range = Range::Point(Key::from_encoded(vec![0x14]));
        let request = Request { range, eventual: false, together: true };
        assert_eq!(parse_requests(&frame, 1), Ok(vec![request]));
        assert!(parse_ranges(&frame, 1).is_err());
        assert!(parse_requests(&[4, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0], 1).is_err());
    }

    #[test]
    fn an_impossible_count_allocates_nothing() {
        assert!(parse_keys(&[], usize::MAX).is_err());
    }
}
