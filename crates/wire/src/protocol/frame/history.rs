//! The versions of an entry.

use super::reader::{Reader, push_f64, push_sized};
use crate::protocol::numbers::version;
use openkv_core::codec::Malformed;
use openkv_core::model::{EntryVersion, Key, Versionstamp};

/// Parses a request for a page of the versions of an entry: the number of versions, the commit that they
/// are older than, and the key.
pub fn parse_history(bytes: &[u8]) -> Result<(Key, usize, Option<u64>), Malformed> {
    Reader::whole(bytes, |reader| {
        let limit = reader.u32()? as usize;
        let before = match reader.sized()? {
            [] => None,
            stamp => Some(
                Versionstamp::parse(stamp)
                    .ok_or_else(|| reader.refused("a versionstamp of another form"))?
                    .version(),
            ),
        };
        Ok((reader.key()?, limit, before))
    })
}

/// Appends the number of versions, and whether there are more.
pub fn push_history_head(out: &mut Vec<u8>, count: u32, more: bool) {
    out.extend_from_slice(&count.to_le_bytes());
    out.push(u8::from(more));
}

/// Appends a version.
pub fn push_version(out: &mut Vec<u8>, version: &EntryVersion) {
    let EntryVersion { commit, at_ms, entry } = version;
    out.push(match entry {
        None => version::REMOVED,
        Some(entry) if entry.version == *commit => version::SET,
        Some(_) => version::EXPIRY,
    });
    out.extend_from_slice(&Versionstamp::new(*commit).hex());
    push_time(out, *at_ms);
    if let Some(entry) = entry {
        push_time(out, entry.expire_at_ms);
        out.push(entry.value.encoding.id());
        push_sized(out, &entry.value.bytes);
    }
}

/// A time; NaN for none.
fn push_time(out: &mut Vec<u8>, at_ms: Option<i64>) {
    match at_ms {
        Some(at_ms) => push_f64(out, at_ms),
        None => out.extend_from_slice(&f64::NAN.to_le_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::super::no_part_is_parsed;
    use super::*;
    use openkv_core::model::{EncodedValue, Encoding, PastEntry};

    #[test]
    fn requests_are_parsed() {
        let stamp = Versionstamp::new(9).hex();
        let mut frame = 7_u32.to_le_bytes().to_vec();
        push_sized(&mut frame, &stamp);
        push_sized(&mut frame, b"key");
        let key = Key::from_encoded(b"key".to_vec());
        assert_eq!(parse_history(&frame).unwrap(), (key.clone(), 7, Some(9)));
        no_part_is_parsed(&frame, parse_history);
        frame.truncate(4);
        push_sized(&mut frame, b"");
        push_sized(&mut frame, b"key");
        assert_eq!(parse_history(&frame).unwrap(), (key, 7, None));
        frame.truncate(4);
        push_sized(&mut frame, b"a time");
        push_sized(&mut frame, b"key");
        assert!(parse_history(&frame).is_err());
    }

    #[test]
    fn versions_name_their_kind() {
        let value = EncodedValue { encoding: Encoding::Cbor, bytes: vec![1, 2] };
        let entry = PastEntry { version: 3, value, expire_at_ms: Some(50) };
        let kind = |commit, entry| {
            let mut out = Vec::new();
            push_version(&mut out, &EntryVersion { commit, at_ms: None, entry });
            (out[0], out.len())
        };
        assert_eq!(kind(3, None), (version::REMOVED, 29));
        assert_eq!(kind(3, Some(entry.clone())), (version::SET, 29 + 8 + 1 + 4 + 2));
        assert_eq!(kind(4, Some(entry)), (version::EXPIRY, 29 + 8 + 1 + 4 + 2));
    }
}
