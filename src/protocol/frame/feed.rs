//! Change feeds: the request that opens one, and its batches.

use super::reader::{Reader, push_sized};
use crate::codec::Malformed;
use crate::model::{Change, EncodedValue, KeyRange, Versionstamp};

/// Appends a request, for [`parse_feed`].
pub fn push_feed(out: &mut Vec<u8>, range: &KeyRange, since: Option<Versionstamp>) {
    out.push(u8::from(since.is_some()));
    if let Some(since) = since {
        out.extend_from_slice(&since.hex());
    }
    [&range.start, &range.end].iter().for_each(|bound| push_sized(out, bound.as_bytes()));
}

/// Parses the range of a feed and the versionstamp after which it resumes.
pub fn parse_feed(bytes: &[u8]) -> Result<(KeyRange, Option<Versionstamp>), Malformed> {
    Reader::whole(bytes, |reader| {
        let has_since = reader.u8()? != 0;
        let since = reader.optional(has_since, Reader::stamp)?;
        Ok((KeyRange { start: reader.key()?, end: reader.key()? }, since))
    })
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
        push_sized(out, key.as_bytes());
        if let Some(value) = value {
            out.push(value.encoding.id());
            push_sized(out, &value.bytes);
        }
    }
}

/// Parses a batch: the versionstamp up to which everything is reported, and the changes.
pub fn parse_changes(bytes: &[u8]) -> Result<(Versionstamp, Vec<Change>), Malformed> {
    Reader::whole(bytes, |reader| {
        Ok((reader.stamp()?, reader.counted(1 + Versionstamp::HEX_BYTES + 4, change)?))
    })
}

fn change(reader: &mut Reader<'_>) -> Result<Change, Malformed> {
    let kind = reader.u8()?;
    let (version, key) = (reader.stamp()?.version(), reader.key()?);
    let value = match kind {
        SET => {
            let encoding = reader.encoding()?;
            Some(EncodedValue { encoding, bytes: reader.sized()?.to_vec() })
        }
        DELETED => None,
        _ => return Err(reader.refused("an unknown type of change")),
    };
    Ok(Change { key, version, value })
}

#[cfg(test)]
mod tests {
    use super::super::{frame_of, no_part_is_parsed};
    use super::*;
    use crate::model::{Encoding, Key};

    const OPEN: &[u8] = b"\x010000000000000abc0000\x01\x00\x00\x00\x14\x01\x00\x00\x00\x15";

    #[test]
    fn a_feed_is_parsed_and_truncated_ones_are_rejected() {
        let key = |byte| Key::from_encoded(vec![byte]);
        let range = KeyRange { start: key(0x14), end: key(0x15) };
        assert_eq!(parse_feed(OPEN), Ok((range.clone(), Some(Versionstamp::new(0xabc)))));
        assert_eq!(parse_feed(&[&[0], &OPEN[21..]].concat()), Ok((range, None)));
        no_part_is_parsed(OPEN, parse_feed);
        assert!(parse_feed(&[&[1; 21], &OPEN[21..]].concat()).is_err());
    }

    #[test]
    fn requests_round_trip() {
        let key = |byte| Key::from_encoded(vec![byte]);
        let range = KeyRange { start: key(0x14), end: key(0x15) };
        for since in [None, Some(Versionstamp::new(0xabc))] {
            let out = frame_of(|out| push_feed(out, &range, since));
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
        let mut out = frame_of(|out| push_changes(out, position, &changes));
        assert_eq!(parse_changes(&out), Ok((position, changes)));
        no_part_is_parsed(&out, parse_changes);
        // A count beyond the size of the batch allocates no memory.
        out.truncate(Versionstamp::HEX_BYTES);
        out.extend([0xff; 4]);
        assert!(parse_changes(&out).is_err());
    }
}
