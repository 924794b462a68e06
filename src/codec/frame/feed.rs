//! Feeds: what is asked for when one is opened, and the batches that it tells.

use super::reader::Reader;
use crate::codec::Malformed;
use crate::model::{Change, KeyRange, Versionstamp};

/// The range of a feed and the stamp after which it is to go on.
///
/// # Errors
/// A frame that is cut short or goes on, or a stamp that is none.
pub fn parse_feed(bytes: &[u8]) -> Result<(KeyRange, Option<Versionstamp>), Malformed> {
    let mut reader = Reader::new(bytes);
    let since = if reader.u8()? == 0 {
        None
    } else {
        let hex = reader.take(Versionstamp::HEX_BYTES)?;
        Some(Versionstamp::parse(hex).ok_or_else(|| reader.refused("a stamp that is none"))?)
    };
    let (start, end) = (reader.key()?, reader.key()?);
    reader.end()?;
    Ok((KeyRange { start, end }, since))
}

const SET: u8 = 0;
const DELETED: u8 = 1;

/// Appends a batch: the stamp up to which everything is told, and the changes.
pub fn push_changes(out: &mut Vec<u8>, told: Versionstamp, changes: &[Change]) {
    out.extend_from_slice(&told.hex());
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Key;

    const OPEN: &[u8] = b"\x010000000000000abc0000\x01\x00\x00\x00\x14\x01\x00\x00\x00\x15";

    #[test]
    fn a_feed_comes_apart_and_every_cut_is_refused() {
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
}
