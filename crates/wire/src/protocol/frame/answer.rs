//! Answers for JavaScript.

use std::ops::Range;

use super::reader::{Reader, push_sized};
use crate::protocol::numbers::length::{POINT_HEAD_BYTES, RANGE_HEAD_BYTES};
use crate::protocol::numbers::range_answer;
use openkv_core::codec::Malformed;
use openkv_core::model::{Backup, Capabilities, Error, Kind, Row};

/// The destination of an answer: a JavaScript buffer of fixed size, or a growing vector.
#[expect(clippy::len_without_is_empty, reason = "no caller asks")]
pub trait Out {
    /// Whether so many bytes fit.
    fn has_room(&self, bytes: usize) -> bool;
    /// Appends bytes; drops those that do not fit.
    fn put(&mut self, bytes: &[u8]);
    /// The number of bytes so far.
    fn len(&self) -> usize;
    /// Overwrites earlier bytes.
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

/// A buffer of fixed size.
pub struct Fill<'b> {
    buffer: &'b mut [u8],
    len: usize,
}

impl<'b> Fill<'b> {
    /// An empty one.
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

/// Writes versionstamp, encoding and value, the answer of a point read.
pub fn put_point(out: &mut impl Out, row: &Row<'_>) {
    out.put(&row.stamp.hex());
    out.put(&[row.encoding.id()]);
    out.put(row.value);
}

/// A range answer being written.
pub struct Answer<'o, O: Out> {
    out: &'o mut O,
    at: usize,
    rows: u32,
    full: bool,
}

impl<'o, O: Out> Answer<'o, O> {
    /// An answer without rows.
    pub fn new(out: &'o mut O) -> Self {
        let at = out.len();
        out.put(&[0; RANGE_HEAD_BYTES]);
        Self { out, at, rows: 0, full: false }
    }

    /// Appends a row, if it fits; point answers omit the key.
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

    /// The number of rows so far.
    pub fn rows(&self) -> usize {
        self.rows as usize
    }

    /// Whether a row did not fit.
    pub fn is_full(&self) -> bool {
        self.full
    }

    /// The number of bytes of this answer and of those before it.
    pub fn bytes(&self) -> usize {
        self.out.len()
    }

    /// Writes the head; `more` means that rows were omitted.
    pub fn end(mut self, more: bool) {
        self.full |= more;
        self.finish();
    }

    /// Writes the head.
    pub fn finish(self) {
        self.out.patch(self.at, &self.rows.to_le_bytes());
        self.out.patch(self.at + 4, &[u8::from(self.full)]);
    }
}

/// Appends an error in place of a range answer.
pub fn push_failed(out: &mut Vec<u8>, error: &Error) {
    out.extend_from_slice(&[0, 0, 0, 0, range_answer::FAILED]);
    push_error(out, error);
}

/// A range answer of a frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnswerPlace {
    /// The number of rows.
    pub rows: usize,
    /// Whether rows were omitted because the answer would be too large.
    pub more: bool,
    /// Its position in the frame.
    pub bytes: Range<usize>,
}

/// Parses `count` range answers; passes on each row with the index of its answer.
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
            let (key, stamp, encoding) = (reader.sized()?, reader.stamp()?, reader.encoding()?);
            row(number, Row { key, stamp, encoding, value: reader.sized()? });
        }
        places.push(AnswerPlace { rows: rows as usize, more, bytes: start..reader.at() });
    }
    reader.end()?;
    Ok(places)
}

/// Appends an error record.
pub fn push_error(out: &mut Vec<u8>, error: &Error) {
    out.push(error.kind() as u8);
    push_sized(out, error.message().as_bytes());
}

/// Appends what an opened database lacks: for each capability u8 its number, u32 length and text of the
/// advice.
pub fn push_lacks(out: &mut Vec<u8>, capabilities: Capabilities) {
    for (what, advice) in capabilities.lacks() {
        out.push(what.number());
        push_sized(out, advice.as_bytes());
    }
}

/// Appends the description of a verified copy: f64 bytes, f64 entries, versionstamp, SHA-256 as 32
/// bytes.
pub fn push_copied(out: &mut Vec<u8>, copy: &Backup) {
    out.extend_from_slice(&(copy.bytes as f64).to_le_bytes());
    out.extend_from_slice(&(copy.entries as f64).to_le_bytes());
    out.extend_from_slice(&copy.stamp.hex());
    out.extend_from_slice(&copy.digest);
}

/// Parses an error record without trailing bytes.
pub fn parse_error(bytes: &[u8]) -> Result<Error, Malformed> {
    Reader::whole(bytes, error)
}

pub(super) fn error(reader: &mut Reader<'_>) -> Result<Error, Malformed> {
    let kind = Kind::from_number(reader.u8()?);
    let kind = kind.ok_or_else(|| reader.refused("an unknown kind of error"))?;
    Ok(Error::new(kind, reader.text()?))
}

#[cfg(test)]
mod tests {
    use super::super::no_part_is_parsed;
    use super::*;
    use openkv_core::model::{Encoding, Versionstamp};

    #[test]
    fn answers_round_trip_and_truncated_ones_are_rejected() {
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
        no_part_is_parsed(&frame, |bytes| parse_answers(bytes, 3, &mut |_, _| ()));
    }

    const ROW: Row<'static> = Row {
        key: &[0x14],
        stamp: Versionstamp::new(1),
        encoding: Encoding::Bytes,
        value: &[7, 8],
    };

    #[test]
    fn an_answer_stops_at_the_end_of_its_buffer() {
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
