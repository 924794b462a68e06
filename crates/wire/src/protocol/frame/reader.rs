//! Parses frames, and the requests of reads.

use crate::protocol::numbers::range;
use openkv_core::codec::Malformed;
use openkv_core::model::{EncodedValue, Encoding, Error, Key, Range, Request, Time, Versionstamp};

/// Appends bytes after their length.
pub(super) fn push_sized(out: &mut Vec<u8>, bytes: &[u8]) {
    out.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    out.extend_from_slice(bytes);
}

/// Appends a whole number as a double, the only number of JavaScript.
pub(super) fn push_f64(out: &mut Vec<u8>, number: i64) {
    out.extend_from_slice(&(number as f64).to_le_bytes());
}

/// The bytes still to be read.
pub(super) struct Reader<'a> {
    bytes: &'a [u8],
    len: usize,
    /// Whether the time of the record is one from the commit, until it is read.
    pub(super) relative: bool,
}

impl<'a> Reader<'a> {
    pub(super) fn new(bytes: &'a [u8]) -> Self {
        Self { bytes, len: bytes.len(), relative: false }
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
        let split = self.bytes.split_at_checked(len);
        let (taken, rest) = split.ok_or_else(|| self.refused("the frame is cut short"))?;
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

    /// The time of a record.
    pub(super) fn time_of_record(&mut self) -> Result<Time, Malformed> {
        let ms = self.time_ms()?;
        match std::mem::take(&mut self.relative) {
            false => Ok(Time::At(ms)),
            true if ms >= 0 => Ok(Time::After(ms)),
            true => Err(self.refused("a time before the commit")),
        }
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

    /// Text that the parsed request owns.
    pub(super) fn string(&mut self) -> Result<String, Malformed> {
        self.text().map(str::to_owned)
    }

    pub(super) fn stamp(&mut self) -> Result<Versionstamp, Malformed> {
        let hex = self.take(Versionstamp::HEX_BYTES)?;
        Versionstamp::parse(hex).ok_or_else(|| self.refused("a stamp that is none"))
    }

    pub(super) fn encoding(&mut self) -> Result<Encoding, Malformed> {
        let id = i64::from(self.u8()?);
        Encoding::from_id(id).ok_or_else(|| self.refused("an unknown encoding"))
    }

    /// A byte of flags, of which none but the `known` ones is set.
    pub(super) fn flags(&mut self, known: u8) -> Result<u8, Malformed> {
        let flags = self.u8()?;
        if flags & !known == 0 { Ok(flags) } else { Err(self.refused("unknown flags")) }
    }

    /// What `parse` reads, if it is there.
    pub(super) fn optional<T>(
        &mut self,
        is_there: bool,
        parse: impl FnOnce(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Option<T>, Malformed> {
        if is_there { parse(self).map(Some) } else { Ok(None) }
    }

    pub(super) fn value(&mut self) -> Result<EncodedValue, Malformed> {
        let encoding = self.encoding()?;
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

    /// `count` items of at least `least` bytes each.
    pub(super) fn items<T>(
        &mut self,
        count: usize,
        least: usize,
        mut item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let mut items = self.room(count, least);
        for _ in 0..count {
            items.push(item(self)?);
        }
        Ok(items)
    }

    /// As [`Self::items`], after their number.
    pub(super) fn counted<T>(
        &mut self,
        least: usize,
        item: impl FnMut(&mut Self) -> Result<T, Malformed>,
    ) -> Result<Vec<T>, Malformed> {
        let count = self.u32()? as usize;
        self.items(count, least, item)
    }
}

/// Parses `count` keys, each after its length.
pub fn parse_keys(bytes: &[u8], count: usize) -> Result<Vec<Key>, Malformed> {
    Reader::whole(bytes, |reader| reader.items(count, 4, Reader::key))
}

/// The next of several keys, each after its length, and the rest; `None` at the end and for a
/// truncated frame.
pub fn next_key(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (len, rest) = bytes.split_first_chunk()?;
    rest.split_at_checked(u32::from_le_bytes(*len) as usize)
}

/// Size of flags, limit and the lengths of two bounds.
const RANGE_BYTES_MIN: usize = 13;

/// Parses `count` range requests.
pub fn parse_ranges(bytes: &[u8], count: usize) -> Result<Vec<Range>, Malformed> {
    let request = |reader: &mut Reader<'_>| {
        let flags = reader.u8()?;
        range(reader, flags)
    };
    Reader::whole(bytes, |reader| reader.items(count, RANGE_BYTES_MIN, request))
}

/// Appends range requests, for [`parse_ranges`].
pub fn push_ranges<'a>(out: &mut Vec<u8>, ranges: impl IntoIterator<Item = &'a Range>) {
    for range in ranges {
        let (flags, limit, start, end) = match range {
            Range::Point(key) => (range::POINT, 1, key.as_bytes(), &[][..]),
            Range::Span { start, end, limit, reverse } => {
                let limit = u32::try_from(*limit).unwrap_or(u32::MAX);
                (if *reverse { range::REVERSE } else { 0 }, limit, start.as_bytes(), end.as_bytes())
            }
        };
        out.push(flags);
        out.extend_from_slice(&limit.to_le_bytes());
        [start, end].iter().for_each(|key| push_sized(out, key));
    }
}

/// Parses `count` range requests to a remote database.
pub fn parse_requests(bytes: &[u8], count: usize) -> Result<Vec<Request>, Malformed> {
    let request = |reader: &mut Reader<'_>| {
        let flags = reader.u8()?;
        let range = range(reader, flags & !(range::EVENTUAL | range::TOGETHER))?;
        let (eventual, together) = (flags & range::EVENTUAL != 0, flags & range::TOGETHER != 0);
        Ok(Request { range, eventual, together })
    };
    Reader::whole(bytes, |reader| reader.items(count, RANGE_BYTES_MIN, request))
}

/// Parses the rest of a range request after its flags.
fn range(reader: &mut Reader<'_>, flags: u8) -> Result<Range, Malformed> {
    if flags & !(range::REVERSE | range::POINT) != 0 {
        return Err(reader.refused("unknown flags of a range"));
    }
    let limit = reader.u32()? as usize;
    let start = reader.key()?;
    let end = reader.key()?;
    Ok(if flags & range::POINT != 0 {
        Range::Point(start)
    } else {
        Range::Span { start, end, limit, reverse: flags & range::REVERSE != 0 }
    })
}

/// The error for a request that does not follow the contract.
pub(in crate::protocol) fn unreadable(why: impl std::fmt::Display) -> Error {
    Error::invalid(format!("The frame cannot be read: {why}"))
}

#[cfg(test)]
mod tests {
    use super::super::frame_of;
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
        let frame = frame_of(|out| push_ranges(out, &ranges));
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
