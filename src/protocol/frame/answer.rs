//! Answers as JavaScript reads them.

use std::ops::Range;

use super::reader::Reader;
use crate::codec::Malformed;
use crate::model::{Encoding, Error, Kind, Row, Versionstamp};

/// Where an answer goes: a buffer of JavaScript's, which has an end, or a vector, which has none.
pub trait Out {
    /// Whether so many bytes fit.
    fn has_room(&self, bytes: usize) -> bool;
    /// Appends; what does not fit is cut off.
    fn put(&mut self, bytes: &[u8]);
    /// Bytes so far.
    fn len(&self) -> usize;
    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
    /// Writes over what was put before.
    fn patch(&mut self, at: usize, bytes: &[u8]);
}

impl Out for Vec<u8> {
    fn has_room(&self, _bytes: usize) -> bool {
        true
    }

    fn put(&mut self, bytes: &[u8]) {
        self.extend_from_slice(bytes);
    }

    fn len(&self) -> usize {
        self.len()
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}

/// A buffer that is filled from its start.
pub struct Fill<'b> {
    buffer: &'b mut [u8],
    len: usize,
}

impl<'b> Fill<'b> {
    /// Starts at the buffer's start.
    pub fn new(buffer: &'b mut [u8]) -> Self {
        Self { buffer, len: 0 }
    }
}

impl Out for Fill<'_> {
    fn has_room(&self, bytes: usize) -> bool {
        bytes <= self.buffer.len() - self.len
    }

    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.buffer.get_mut(self.len..self.len + bytes.len()) {
            place.copy_from_slice(bytes);
            self.len += bytes.len();
        }
    }

    fn len(&self) -> usize {
        self.len
    }

    fn patch(&mut self, at: usize, bytes: &[u8]) {
        if let Some(place) = self.buffer.get_mut(at..at + bytes.len()) {
            place.copy_from_slice(bytes);
        }
    }
}

/// Bytes of a point answer before its value: stamp and encoding.
pub const POINT_HEAD_BYTES: usize = Versionstamp::HEX_BYTES + 1;

/// Puts stamp, encoding and value: the answer of a point read that was asked for by key.
pub fn put_point(out: &mut impl Out, row: &Row<'_>) {
    out.put(&row.stamp.hex());
    out.put(&[row.encoding.id()]);
    out.put(row.value);
}

/// Bytes of a range answer's head: row count and whether there is more.
const RANGE_HEAD_BYTES: usize = 5;

/// A range answer being written.
pub struct Answer<'o, O: Out> {
    out: &'o mut O,
    at: usize,
    rows: u32,
    full: bool,
}

impl<'o, O: Out> Answer<'o, O> {
    /// Starts an answer without rows.
    pub fn new(out: &'o mut O) -> Self {
        let at = out.len();
        out.put(&[0; RANGE_HEAD_BYTES]);
        Self { out, at, rows: 0, full: false }
    }

    /// Appends a row, if there is room for it; point answers leave the key out.
    pub fn push(&mut self, row: &Row<'_>, with_key: bool) -> bool {
        let key = if with_key { row.key } else { &[] };
        if !self.out.has_room(8 + key.len() + POINT_HEAD_BYTES + row.value.len()) {
            self.full = true;
            return false;
        }
        self.out.put(&(key.len() as u32).to_le_bytes());
        self.out.put(key);
        self.out.put(&row.stamp.hex());
        self.out.put(&[row.encoding.id()]);
        self.out.put(&(row.value.len() as u32).to_le_bytes());
        self.out.put(row.value);
        self.rows += 1;
        true
    }

    /// Rows so far.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Whether a row did not fit.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// Bytes of the answer, and of those before it.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.out.len()
    }

    /// Fills in the head; `more`: it has been cut off.
    pub fn end(mut self, more: bool) {
        self.full |= more;
        self.finish();
    }

    /// Fills in the head.
    pub fn finish(self) {
        self.out.patch(self.at, &self.rows.to_le_bytes());
        self.out.patch(self.at + 4, &[u8::from(self.full)]);
    }
}

/// In place of "there is more": there is no answer, but an error.
const FAILED: u8 = 2;

/// Appends a range answer that is an error.
pub fn push_failed(out: &mut Vec<u8>, error: &Error) {
    out.extend_from_slice(&[0, 0, 0, 0, FAILED]);
    push_error(out, error);
}

/// One of the range answers of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerPlace {
    /// How many rows it has.
    pub rows: usize,
    /// Whether it was cut off because it would have become too large.
    pub more: bool,
    /// Where it is in the frame.
    pub bytes: Range<usize>,
}

/// Takes `count` range answers apart: each row with the number of its answer.
///
/// # Errors
/// A frame that is cut short or goes on, and a row that is none.
pub fn parse_answers<'b>(
    bytes: &'b [u8],
    count: usize,
    row: &mut dyn FnMut(usize, Row<'b>),
) -> Result<Vec<AnswerPlace>, Malformed> {
    let mut reader = Reader::new(bytes);
    let mut places = reader.room(count, RANGE_HEAD_BYTES);
    for number in 0..count {
        let start = reader.at();
        let rows = reader.u32()?;
        let more = match reader.u8()? {
            0 => false,
            1 => true,
            _ => return Err(reader.refused("an answer that is neither whole nor cut off")),
        };
        for _ in 0..rows {
            let key = reader.sized()?;
            let stamp = stamp(&mut reader)?;
            let encoding = Encoding::from_id(i64::from(reader.u8()?));
            let encoding = encoding.ok_or_else(|| reader.refused("an unknown encoding"))?;
            row(number, Row { key, stamp, encoding, value: reader.sized()? });
        }
        places.push(AnswerPlace { rows: rows as usize, more, bytes: start..reader.at() });
    }
    reader.end()?;
    Ok(places)
}

pub(super) fn stamp(reader: &mut Reader<'_>) -> Result<Versionstamp, Malformed> {
    let hex = reader.take(Versionstamp::HEX_BYTES)?;
    Versionstamp::parse(hex).ok_or_else(|| reader.refused("a stamp that is none"))
}

/// Appends an error record.
pub fn push_error(out: &mut Vec<u8>, error: &Error) {
    out.push(error.kind() as u8);
    out.extend_from_slice(&(error.message().len() as u32).to_le_bytes());
    out.extend_from_slice(error.message().as_bytes());
}

/// An error record, and nothing behind it.
///
/// # Errors
/// A record that is cut short or goes on, an unknown kind, text that is not UTF-8.
pub fn parse_error(bytes: &[u8]) -> Result<Error, Malformed> {
    let mut reader = Reader::new(bytes);
    let error = error(&mut reader)?;
    reader.end()?;
    Ok(error)
}

pub(super) fn error(reader: &mut Reader<'_>) -> Result<Error, Malformed> {
    let kind = Kind::from_number(reader.u8()?);
    let kind = kind.ok_or_else(|| reader.refused("an unknown kind of error"))?;
    Ok(Error::new(kind, reader.text()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_come_back_as_they_were_and_every_cut_is_refused() {
        let mut frame = Vec::new();
        for rows in [2, 0, 1] {
            let mut answer = Answer::new(&mut frame);
            (0..rows).for_each(|_| assert!(answer.push(&ROW, true)));
            answer.end(rows == 1);
        }
        let mut rows = Vec::new();
        let places = parse_answers(&frame, 3, &mut |of, row| {
            rows.push((of, row.key.to_vec(), row.stamp, row.value.to_vec()));
        });
        let row = |of| (of, ROW.key.to_vec(), ROW.stamp, ROW.value.to_vec());
        assert_eq!(rows, [row(0), row(0), row(2)]);
        let places = places.unwrap();
        let heads: Vec<_> = places.iter().map(|place| (place.rows, place.more)).collect();
        assert_eq!(heads, [(2, false), (0, false), (1, true)]);
        let joined: Vec<u8> =
            places.iter().flat_map(|place| &frame[place.bytes.clone()]).copied().collect();
        assert_eq!(joined, frame);
        for len in 0..frame.len() {
            assert!(parse_answers(&frame[..len], 3, &mut |_, _| ()).is_err(), "{len}");
        }
    }

    const ROW: Row<'static> = Row {
        key: &[0x14],
        stamp: Versionstamp::new(1),
        encoding: Encoding::Bytes,
        value: &[7, 8],
    };

    #[test]
    fn an_answer_stops_where_its_buffer_ends() {
        let mut buffer = [0; RANGE_HEAD_BYTES + 32 + 31];
        let mut fill = Fill::new(&mut buffer);
        let mut answer = Answer::new(&mut fill);
        assert!(answer.push(&ROW, true));
        assert!(!answer.push(&ROW, true));
        answer.finish();
        assert_eq!(fill.len(), RANGE_HEAD_BYTES + 32);
        assert_eq!(buffer[..10], [1, 0, 0, 0, 1, 1, 0, 0, 0, 0x14]);
    }

    #[test]
    fn a_vector_takes_every_row() {
        let mut out = vec![9];
        let mut answer = Answer::new(&mut out);
        assert!(answer.push(&ROW, false));
        answer.finish();
        assert_eq!(out[..10], [9, 1, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(out.len(), 1 + RANGE_HEAD_BYTES + 31);
    }
}
