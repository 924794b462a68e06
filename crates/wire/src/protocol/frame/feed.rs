//! Change feeds: the request that opens one, and its batches.

use super::reader::{Reader, push_sized};
use crate::protocol::numbers::change::{DELETED, EXPIRED, SET, SET_TO_EXPIRE};
use openkv_core::codec::Malformed;
use openkv_core::model::{Change, ChangeKind, EncodedValue, KeyRange, Versionstamp};

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

/// Appends a batch: the versionstamp up to which everything is reported, and the changes. `expiries`:
/// the reader knows expiries. Omits changes of only the expiry, which feeds do not report.
pub fn push_changes(out: &mut Vec<u8>, position: Versionstamp, changes: &[Change], expiries: bool) {
    out.extend_from_slice(&position.hex());
    let count_at = out.len();
    out.extend_from_slice(&[0; 4]);
    let mut count: u32 = 0;
    for Change { key, version, kind } in changes {
        let (kind, end_ms, value) = match kind {
            ChangeKind::Set { value, expire_at_ms: Some(end_ms) } if expiries => {
                (SET_TO_EXPIRE, Some(*end_ms), Some(value))
            }
            ChangeKind::Set { value, .. } => (SET, None, Some(value)),
            ChangeKind::Expired if expiries => (EXPIRED, None, None),
            ChangeKind::Expired | ChangeKind::Deleted => (DELETED, None, None),
            ChangeKind::ExpirySet { .. } => continue,
        };
        count += 1;
        out.push(kind);
        out.extend_from_slice(&Versionstamp::new(*version).hex());
        push_sized(out, key.as_bytes());
        if let Some(end_ms) = end_ms {
            out.extend_from_slice(&end_ms.to_le_bytes());
        }
        if let Some(value) = value {
            out.push(value.encoding.id());
            push_sized(out, &value.bytes);
        }
    }
    if let Some(place) = out.get_mut(count_at..count_at + 4) {
        place.copy_from_slice(&count.to_le_bytes());
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
    let kind = match kind {
        SET | SET_TO_EXPIRE => {
            let expire_at_ms = reader.optional(kind == SET_TO_EXPIRE, Reader::i64)?;
            let encoding = reader.encoding()?;
            let value = EncodedValue { encoding, bytes: reader.sized()?.to_vec() };
            ChangeKind::Set { value, expire_at_ms }
        }
        DELETED => ChangeKind::Deleted,
        EXPIRED => ChangeKind::Expired,
        _ => return Err(reader.refused("an unknown type of change")),
    };
    Ok(Change { key, version, kind })
}

#[cfg(test)]
mod tests {
    use super::super::{frame_of, no_part_is_parsed};
    use super::*;
    use openkv_core::model::{Encoding, Key};

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
        let set = |expire_at_ms| ChangeKind::Set { value: value.clone(), expire_at_ms };
        let batch = |kinds: Vec<_>| -> Vec<_> {
            kinds.into_iter().map(|kind| Change { key: key(1), version: 7, kind }).collect()
        };
        let all = vec![
            set(None),
            set(Some(i64::MAX)),
            ChangeKind::ExpirySet { expire_at_ms: None },
            ChangeKind::Deleted,
            ChangeKind::Expired,
        ];
        let position = Versionstamp::new(9);
        let out = frame_of(|out| push_changes(out, position, &batch(all.clone()), false));
        let plain = vec![set(None), set(None), ChangeKind::Deleted, ChangeKind::Deleted];
        assert_eq!(parse_changes(&out), Ok((position, batch(plain))));
        let mut out = frame_of(|out| push_changes(out, position, &batch(all), true));
        let exact = vec![set(None), set(Some(i64::MAX)), ChangeKind::Deleted, ChangeKind::Expired];
        assert_eq!(parse_changes(&out), Ok((position, batch(exact))));
        no_part_is_parsed(&out, parse_changes);
        // A count beyond the size of the batch allocates no memory.
        out.truncate(Versionstamp::HEX_BYTES);
        out.extend([0xff; 4]);
        assert!(parse_changes(&out).is_err());
    }
}
