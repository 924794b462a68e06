//! Change feeds: the request that opens one, and its batches.

use super::reader::Reader;
use crate::codec::Malformed;
use crate::model::{Change, EncodedValue, Encoding, KeyRange, Versionstamp};

/// Appends a request, for [`parse_feed`].
pub fn push_feed(out: &mut Vec<u8>, range: &KeyRange, since: Option<Versionstamp>) {
    out.push(u8::from(since.is_some()));
    if let Some(since) = since {
        out.extend_from_slice(&since.hex());
    }
    for bound in [&range.start, &range.end] {
        out.extend_from_slice(&(bound.len() as u32).to_le_bytes());
        out.extend_from_slice(bound.as_bytes());
    }
}

/// Parses the range of a feed and the versionstamp after which it resumes.
///
/// # Errors
/// A malformed frame or versionstamp.
pub fn parse_feed(bytes: &[u8]) -> Result<(KeyRange, Option<Versionstamp>), Malformed> {
    let mut reader = Reader::new(bytes);
    let since = if reader.u8()? == 0 { None } else { Some(stamp(&mut reader)?) };
    let (start, end) = (reader.key()?, reader.key()?);
    reader.end()?;
    Ok((KeyRange { start, end }, since))
}

fn stamp(reader: &mut Reader<'_>) -> Result<Versionstamp, Malformed> {
    let hex = reader.take(Versionstamp::HEX_BYTES)?;
    Versionstamp::parse(hex).ok_or_else(|| reader.refused("a stamp that is none"))
}

const SET: u8 = 0;
const DELETED: u8 = 1;

/// Appends a batch: the versionstamp up to which everything is reported, and the changes.
pub fn push_changes(out: &mut Vec<u8>, position: Versionstamp, changes: &[Change]) {
    out.extend_from_slice(&position.hex());
    out.extend_from_slice(&(changes.len() as u32).to_le_bytes());
    for Change { key, version, value } in changes {
        out.push(if value.is_some() { SET } else { DELETED });
        out.extend_from_slice(&Versionstamp::new(*version).hex());
        out.extend_from_slice(&(key.len() as u32).to_le_bytes());
        out.extend_from_slice(key.as_bytes());
        if let Some(value) = value {
            out.push(value.encoding.id());
            out.extend_from_slice(&(value.bytes.len() as u32).to_le_bytes());
            out.extend_from_slice(&value.bytes);
        }
    }
}

/// Parses a batch: the versionstamp up to which everything is reported, and the changes.
///
/// # Errors
/// A malformed batch or versionstamp, an unknown type or encoding.
pub fn parse_changes(bytes: &[u8]) -> Result<(Versionstamp, Vec<Change>), Malformed> {
    let mut reader = Reader::new(bytes);
    let position = stamp(&mut reader)?;
    let count = reader.u32()? as usize;
    let mut changes = reader.room(count, 1 + Versionstamp::HEX_BYTES + 4);
    for _ in 0..count {
        let kind = reader.u8()?;
        let version = stamp(&mut reader)?.version();
        let key = reader.key()?;
        let value = match kind {
            SET => {
                let encoding = Encoding::from_id(reader.u8()?.into());
                let encoding = encoding.ok_or_else(|| reader.refused("an unknown encoding"))?;
                Some(EncodedValue { encoding, bytes: reader.sized()?.to_vec() })
            }
            DELETED => None,
            _ => return Err(reader.refused("an unknown type of change")),
        };
        changes.push(Change { key, version, value });
    }
    reader.end()?;
    Ok((position, changes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Key;

    const OPEN: &[u8] = b"\x010000000000000abc0000\x01\x00\x00\x00\x14\x01\x00\x00\x00\x15";

    #[test]
    fn a_feed_is_parsed_and_truncated_ones_are_rejected() {
        let key = |byte| Key::from_encoded(vec![byte]);
        let range = KeyRange { start: key(0x14), end: key(0x15) };
        assert_eq!(parse_feed(OPEN), Ok((range.clone(), Some(Versionstamp::new(0xabc)))));
        assert_eq!(parse_feed(&[&[0], &OPEN[21..]].concat()), Ok((range, None)));
        for len in 0..OPEN.len() {
            assert!(parse_feed(&OPEN[..len]).is_err(), "{len}");
        }
        assert!(parse_feed(&[OPEN, &[0]].concat()).is_err());
        assert!(parse_feed(&[&[1; 21], &OPEN[21..]].concat()).is_err());
    }

    #[test]
    fn requests_round_trip() {
        let key = |byte| Key::from_encoded(vec![byte]);
        let range = KeyRange { start: key(0x14), end: key(0x15) };
        for since in [None, Some(Versionstamp::new(0xabc))] {
            let mut out = Vec::new();
            push_feed(&mut out, &range, since);
            assert_eq!(parse_feed(&out), Ok((range.clone(), since)));
        }
    }

    #[test]
    fn a_batch_round_trips_and_truncated_ones_are_rejected() {
        let key = |byte| Key::from_encoded(vec![byte]);
        let value = EncodedValue { encoding: Encoding::Bytes, bytes: vec![1, 2, 3] };
        let changes = vec![
            Change { key: key(1), version: 7, value: Some(value) },
            Change { key: key(2), version: 8, value: None },
        ];
        let position = Versionstamp::new(9);
        let mut out = Vec::new();
        push_changes(&mut out, position, &changes);
        assert_eq!(parse_changes(&out), Ok((position, changes)));
        for len in 0..out.len() {
            assert!(parse_changes(&out[..len]).is_err(), "{len}");
        }
        assert!(parse_changes(&[&out[..], &[0]].concat()).is_err());
        // A count beyond the size of the batch allocates no memory.
        out.truncate(Versionstamp::HEX_BYTES);
        out.extend([0xff; 4]);
        assert!(parse_changes(&out).is_err());
    }
}
