//! Scans, counts and deletions of many: what they ask for, and rows with ends.

use super::Out;
use super::reader::Reader;
use crate::codec::Malformed;
use crate::model::{Among, Beyond, Deletion, Key, Seen, Versionstamp};

const REVERSE: u8 = 1;
const KEYS_ONLY: u8 = 2;
const DEPTH: u8 = 4;
const FILTER: u8 = 8;
const WITH_EXPIRY: u8 = 16;

/// What a scan asks for.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanRequest {
    /// From the end backwards.
    pub reverse: bool,
    /// No values.
    pub keys_only: bool,
    /// Ends of entries.
    pub with_expiry: bool,
    /// Most rows to answer.
    pub limit: usize,
    /// What `$now` is, in ms since the epoch; `None`: what it is now.
    pub now_ms: Option<i64>,
    /// First key, included.
    pub start: Key,
    /// Last key, excluded.
    pub end: Key,
    /// Bytes of the prefix, and most parts behind it.
    pub depth: Option<(usize, usize)>,
    /// A filter object in CBOR.
    pub filter: Option<Vec<u8>>,
}

/// A scan.
///
/// # Errors
/// A frame that is cut short or goes on, or has unknown flags.
pub fn parse_scan(bytes: &[u8]) -> Result<ScanRequest, Malformed> {
    let mut reader = Reader::new(bytes);
    let flags = reader.u8()?;
    if flags & !(REVERSE | KEYS_ONLY | DEPTH | FILTER | WITH_EXPIRY) != 0 {
        return Err(reader.refused("unknown flags of a scan"));
    }
    let limit = reader.u32()? as usize;
    let now_ms = time_or_none(&mut reader)?;
    let (start, end) = (reader.key()?, reader.key()?);
    let depth = match flags & DEPTH {
        0 => None,
        _ => Some((reader.u32()? as usize, reader.u32()? as usize)),
    };
    let filter = match flags & FILTER {
        0 => None,
        _ => Some(reader.sized()?.to_vec()),
    };
    reader.end()?;
    Ok(ScanRequest {
        reverse: flags & REVERSE != 0,
        keys_only: flags & KEYS_ONLY != 0,
        with_expiry: flags & WITH_EXPIRY != 0,
        limit,
        now_ms,
        start,
        end,
        depth,
        filter,
    })
}

/// A time in ms; NaN stands for none.
fn time_or_none(reader: &mut Reader<'_>) -> Result<Option<i64>, Malformed> {
    let bytes = reader.take(8)?;
    let bits = bytes.try_into().map_or(0, u64::from_le_bytes);
    let ms = f64::from_bits(bits);
    Ok(if ms.is_finite() { Some(ms as i64) } else { None })
}

const BY_KEYS: u8 = 1;
const ATOMIC: u8 = 2;

/// A deletion of many, and whether it is to be one commit. Bounds and `$now` are the caller's.
///
/// # Errors
/// As [`parse_scan`].
pub fn parse_deletion(bytes: &[u8]) -> Result<(Deletion, bool), Malformed> {
    let mut reader = Reader::new(bytes);
    let flags = reader.u8()?;
    if flags & !(BY_KEYS | ATOMIC | FILTER) != 0 {
        return Err(reader.refused("unknown flags of a deletion"));
    }
    let count_max = match reader.u32()? {
        u32::MAX => usize::MAX,
        limit => limit as usize,
    };
    let filter = match flags & FILTER {
        0 => None,
        _ => Some(reader.sized()?.to_vec()),
    };
    let among = match flags & BY_KEYS {
        0 => Among::Span { start: reader.key()?, end: reader.key()? },
        _ => {
            let count = reader.u32()? as usize;
            let mut keys = reader.room(count, 4);
            for _ in 0..count {
                keys.push(reader.key()?);
            }
            Among::Keys(keys)
        }
    };
    reader.end()?;
    let deletion = Deletion { among, filter, now_ms: 0, count_max, beyond: Beyond::Resume };
    Ok((deletion, flags & ATOMIC != 0))
}

/// Puts an entry: key, stamp, encoding and value, each variable part behind its length, and
/// its end in ms (NaN: none) if that was asked for.
pub fn put_seen(out: &mut impl Out, seen: &Seen<'_>, with_expiry: bool) {
    let row = &seen.row;
    out.put(&(row.key.len() as u32).to_le_bytes());
    out.put(row.key);
    out.put(&row.stamp.hex());
    out.put(&[row.encoding.id()]);
    out.put(&(row.value.len() as u32).to_le_bytes());
    out.put(row.value);
    if with_expiry {
        out.put(&seen.expire_at_ms.map_or(f64::NAN, |end| end as f64).to_le_bytes());
    }
}

/// What a deletion of many did: f64 count, u8 whether there was a commit, its stamp.
#[must_use]
pub fn deleted_answer(count: u64, stamp: Option<Versionstamp>) -> Vec<u8> {
    let mut out = (count as f64).to_le_bytes().to_vec();
    out.push(u8::from(stamp.is_some()));
    out.extend(stamp.iter().flat_map(|stamp| stamp.hex()));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scans_come_apart_and_every_cut_is_refused() {
        let mut frame = vec![REVERSE | DEPTH | FILTER, 5, 0, 0, 0];
        frame.extend(f64::NAN.to_le_bytes());
        frame.extend([1, 0, 0, 0, 0x14, 1, 0, 0, 0, 0x15]);
        frame.extend([0, 0, 0, 0, 2, 0, 0, 0]);
        frame.extend([1, 0, 0, 0, 0xa0]);
        let scan = parse_scan(&frame).unwrap();
        assert_eq!((scan.limit, scan.now_ms, scan.depth), (5, None, Some((0, 2))));
        assert_eq!(scan.filter.as_deref(), Some(&[0xa0][..]));
        for len in 0..frame.len() {
            assert!(parse_scan(&frame[..len]).is_err(), "{len}");
        }
        frame[0] |= 128;
        assert!(parse_scan(&frame).is_err());
    }

    #[test]
    fn deletions_come_apart() {
        let frame = [BY_KEYS | ATOMIC, 255, 255, 255, 255, 1, 0, 0, 0, 1, 0, 0, 0, 0x14];
        let (deletion, atomic) = parse_deletion(&frame).unwrap();
        assert!(atomic && deletion.count_max == usize::MAX);
        assert_eq!(deletion.among, Among::Keys(vec![Key::from_encoded(vec![0x14])]));
        for len in 0..frame.len() {
            assert!(parse_deletion(&frame[..len]).is_err(), "{len}");
        }
    }
}
