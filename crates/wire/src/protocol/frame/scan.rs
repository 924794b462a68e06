//! Requests of scans, counts and deletions of many, and rows with expiries.

use super::reader::Reader;
use super::{Out, frame_of};
use crate::protocol::numbers::{Group, Number, numbers};
use openkv_core::codec::Malformed;
use openkv_core::model::{Among, Beyond, Deletion, FilterResults, Key, Seen, Versionstamp};

numbers! {
    /// Flags of a scan.
    scan: u8, "SCAN_" {
        /// The order is descending.
        REVERSE = 1;
        /// Rows have no values.
        KEYS = 2;
        /// A depth follows: u32 length of the prefix in bytes, u32 maximum number of parts after it.
        DEPTH = 4;
        /// A filter follows: u32 length, an object in CBOR.
        WHERE = 8;
        /// Rows have expiries.
        EXPIRY = 16;
        /// Entries that are not selected are rows too, without value and with encoding 0.
        PASSED = 32;
        /// With PASSED: value indexes may leave out entries that are not selected. The answer says whether they did.
        INDEXED = 64;
    }

    /// Flags of the answer of a step of a scan.
    step: u8, "STEP_" {
        /// It is complete.
        DONE = 1;
        /// Value indexes have found the entries of the step. Only with INDEXED.
        INDEXED = 2;
        /// Of a list in an order: its entries were sorted.
        SORTED = 4;
        /// Of a list in an order: its positions descend.
        DESCENDS = 8;
    }

    /// Flags of a preview.
    preview: u8, "PREVIEW_" {
        /// A list in an order follows, for the place of the entry in it: its length, its request.
        LIST = 1;
    }

    /// Flags of a deletion of many.
    deletion: u8, "DELETE_" {
        /// Keys follow, not a range.
        KEYS = 1;
        /// One commit deletes all.
        ATOMIC = 2;
        /// A filter follows.
        WHERE = 8;
    }
}

/// A scan.
#[derive(Clone, Debug, PartialEq)]
pub struct ScanRequest {
    /// Whether the order is descending.
    pub reverse: bool,
    /// Whether values are omitted.
    pub keys_only: bool,
    /// Whether rows have expiries.
    pub with_expiry: bool,
    /// Whether entries that are not selected are reported too, by [`put_passed`].
    pub passed: bool,
    /// Whether value indexes may leave out entries that are not selected although `passed` reports others.
    pub indexed: bool,
    /// Maximum number of rows.
    pub limit: usize,
    /// The value of `$now`, in ms since the epoch; `None` for the current time.
    pub now_ms: Option<i64>,
    /// First key, included.
    pub start: Key,
    /// Last key, excluded.
    pub end: Key,
    /// The length of the prefix in bytes, and the maximum number of parts after it.
    pub depth: Option<(usize, usize)>,
    /// A filter object in CBOR.
    pub filter: Option<Vec<u8>>,
}

impl ScanRequest {
    /// What it asks for that a server of KV Connect without openkv's extension lacks; `None` if pages of a range
    /// and a comparison of their values are enough.
    pub fn beyond_ranges(&self) -> Option<&'static str> {
        let extensions = [
            (self.with_expiry, "the ends of entries (withExpiry)"),
            (self.depth.is_some(), "lists of a depth"),
            (self.passed, "lists of a transaction"),
        ];
        extensions.into_iter().find_map(|(is_used, what)| is_used.then_some(what))
    }
}

/// Parses a scan.
pub fn parse_scan(bytes: &[u8]) -> Result<ScanRequest, Malformed> {
    Reader::whole(bytes, |reader| {
        let flags = reader.flags(scan::ALL)?;
        // The fields are read in this order.
        Ok(ScanRequest {
            reverse: flags & scan::REVERSE != 0,
            keys_only: flags & scan::KEYS != 0,
            with_expiry: flags & scan::EXPIRY != 0,
            passed: flags & scan::PASSED != 0,
            indexed: flags & scan::INDEXED != 0,
            limit: reader.u32()? as usize,
            now_ms: time_or_none(reader)?,
            start: reader.key()?,
            end: reader.key()?,
            depth: reader.optional(flags & scan::DEPTH != 0, |reader| {
                Ok((reader.u32()? as usize, reader.u32()? as usize))
            })?,
            filter: filter(reader, flags)?,
        })
    })
}

fn filter(reader: &mut Reader<'_>, flags: u8) -> Result<Option<Vec<u8>>, Malformed> {
    reader.optional(flags & scan::WHERE != 0, |reader| reader.sized().map(<[u8]>::to_vec))
}

/// A time in ms; NaN means none.
fn time_or_none(reader: &mut Reader<'_>) -> Result<Option<i64>, Malformed> {
    let ms = f64::from_le_bytes(reader.array()?);
    Ok(if ms.is_finite() { Some(ms as i64) } else { None })
}

/// Parses a deletion of many, and whether it is one commit. The caller sets bounds and `$now`.
pub fn parse_deletion(bytes: &[u8]) -> Result<(Deletion, bool), Malformed> {
    Reader::whole(bytes, |reader| {
        let flags = reader.flags(deletion::ALL)?;
        let count_max = match reader.u32()? {
            u32::MAX => usize::MAX,
            limit => limit as usize,
        };
        let filter = filter(reader, flags)?;
        let among = match flags & deletion::KEYS {
            0 => Among::Span { start: reader.key()?, end: reader.key()? },
            _ => Among::Keys(reader.counted(4, Reader::key)?),
        };
        let (known, beyond) = (FilterResults::new(), Beyond::Resume);
        let deletion = Deletion { among, filter, known, now_ms: 0, count_max, beyond };
        Ok((deletion, flags & deletion::ATOMIC != 0))
    })
}

/// Replaces the encoding if there is no value.
const NO_VALUE: u8 = 0;

/// Appends an entry: key, versionstamp, encoding and value, each variable part after its length,
/// and if requested its expiry in ms (NaN: none).
pub fn put_seen(out: &mut impl Out, seen: &Seen<'_>, with_expiry: bool) {
    let row = &seen.row;
    put_parts(out, row.key, row.stamp, row.encoding.id(), row.value);
    if with_expiry {
        out.put(&seen.expire_at_ms.map_or(f64::NAN, |end| end as f64).to_le_bytes());
    }
}

/// Appends key and versionstamp of an entry that was not selected.
pub fn put_passed(out: &mut impl Out, key: &[u8], stamp: Versionstamp, with_expiry: bool) {
    put_parts(out, key, stamp, NO_VALUE, &[]);
    if with_expiry {
        out.put(&f64::NAN.to_le_bytes());
    }
}

/// Appends that the entry is absent, in an answer without keys.
pub fn put_absent(out: &mut impl Out) {
    put_passed(out, &[], Versionstamp::new(0), true);
}

fn put_parts(out: &mut impl Out, key: &[u8], stamp: Versionstamp, encoding: u8, value: &[u8]) {
    out.put(&(key.len() as u32).to_le_bytes());
    out.put(key);
    out.put(&stamp.hex());
    out.put(&[encoding]);
    out.put(&(value.len() as u32).to_le_bytes());
    out.put(value);
}

/// What the answer of a step of a scan says about the step.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepFlags {
    /// It is complete.
    pub done: bool,
    /// Value indexes have found its entries.
    pub indexed: bool,
    /// The entries of a list in an order were sorted.
    pub sorted: bool,
    /// The positions of a list in an order descend.
    pub descends: bool,
}

impl StepFlags {
    /// Its byte.
    #[must_use]
    pub fn byte(self) -> u8 {
        let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
        flag(self.done, step::DONE)
            | flag(self.indexed, step::INDEXED)
            | flag(self.sorted, step::SORTED)
            | flag(self.descends, step::DESCENDS)
    }
}

/// The answer of a step of a scan: its flags, the value of `$now`, the bound of the next step, the number of the
/// rows, and the rows.
pub fn scan_answer(
    flags: StepFlags,
    now_ms: i64,
    bound: &[u8],
    count: u32,
    rows: &[u8],
) -> Vec<u8> {
    frame_of(|out| {
        out.reserve(SCAN_ANSWER_HEAD_BYTES + bound.len() + rows.len());
        put_scan_answer(out, flags, now_ms, bound, (count, rows));
    })
}

/// Writes the answer of [`scan_answer`]; `false` if it does not fit.
pub fn put_scan_answer(
    out: &mut impl Out,
    flags: StepFlags,
    now_ms: i64,
    bound: &[u8],
    (count, rows): (u32, &[u8]),
) -> bool {
    let fits = out.has_room(SCAN_ANSWER_HEAD_BYTES + bound.len() + rows.len());
    if fits {
        out.put(&[flags.byte()]);
        out.put(&(now_ms as f64).to_le_bytes());
        out.put(&(bound.len() as u32).to_le_bytes());
        out.put(bound);
        out.put(&count.to_le_bytes());
        out.put(rows);
    }
    fits
}

/// Bytes of an answer beside its bound and its rows.
const SCAN_ANSWER_HEAD_BYTES: usize = 1 + 8 + 4 + 4;

/// What the answer of a preview tells about the entry.
#[derive(Clone, Debug, PartialEq)]
pub enum PreviewRequest<'p> {
    /// Whether there is one.
    Entry,
    /// Whether it matches.
    Filter {
        /// A filter object in CBOR.
        filter: Vec<u8>,
        /// The value of `$now`, in ms since the epoch; `None` for the current time.
        now_ms: Option<i64>,
    },
    /// Whether it matches, and its place in a list in an order.
    List(&'p [u8]),
}

/// Parses what is before the write of a preview; returns it with the bytes of the write.
pub fn parse_preview(bytes: &[u8]) -> Result<(PreviewRequest<'_>, &[u8]), Malformed> {
    let mut reader = Reader::new(bytes);
    let request = match reader.u8()? {
        0 => PreviewRequest::Entry,
        scan::WHERE => {
            let now_ms = time_or_none(&mut reader)?;
            PreviewRequest::Filter { filter: reader.sized()?.to_vec(), now_ms }
        }
        preview::LIST => PreviewRequest::List(reader.sized()?),
        _ => return Err(reader.refused("an unknown kind of preview")),
    };
    Ok((request, reader.rest()))
}

/// The last commit in a [`deleted_answer`], if there was one.
pub fn read_deleted_stamp(answer: &[u8]) -> Option<Versionstamp> {
    let (has_commit, stamp) = answer.get(8..)?.split_first()?;
    (*has_commit == 1).then(|| Versionstamp::parse(stamp)).flatten()
}

/// The answer of a deletion of many: f64 count, u8 whether there was a commit, its versionstamp.
pub fn deleted_answer(count: u64, stamp: Option<Versionstamp>) -> Vec<u8> {
    let mut out = (count as f64).to_le_bytes().to_vec();
    out.push(u8::from(stamp.is_some()));
    out.extend(stamp.iter().flat_map(|stamp| stamp.hex()));
    out
}

#[cfg(test)]
mod tests {
    use super::super::no_part_is_parsed;
    use super::*;

    #[test]
    fn scans_are_parsed_and_truncated_ones_are_rejected() {
        let mut frame = vec![scan::REVERSE | scan::DEPTH | scan::WHERE, 5, 0, 0, 0];
        frame.extend(f64::NAN.to_le_bytes());
        frame.extend([1, 0, 0, 0, 0x14, 1, 0, 0, 0, 0x15]);
        frame.extend([0, 0, 0, 0, 2, 0, 0, 0]);
        frame.extend([1, 0, 0, 0, 0xa0]);
        let scan = parse_scan(&frame).unwrap();
        assert_eq!((scan.limit, scan.now_ms, scan.depth), (5, None, Some((0, 2))));
        assert_eq!(scan.filter.as_deref(), Some(&[0xa0][..]));
        no_part_is_parsed(&frame, parse_scan);
        frame[0] |= 128;
        assert!(parse_scan(&frame).is_err());
    }

    #[test]
    fn a_preview_has_a_filter_and_a_write() {
        let mut frame = vec![scan::WHERE];
        frame.extend(5.0_f64.to_le_bytes());
        frame.extend([1, 0, 0, 0, 0xa0]);
        for len in 0..frame.len() {
            assert!(parse_preview(&frame[..len]).is_err(), "{len}");
        }
        frame.extend([9, 9]);
        let filter = PreviewRequest::Filter { filter: vec![0xa0], now_ms: Some(5) };
        assert_eq!(parse_preview(&frame), Ok((filter, &[9, 9][..])));
        assert_eq!(parse_preview(&[0, 7]), Ok((PreviewRequest::Entry, &[7][..])));
        let listed = [preview::LIST, 2, 0, 0, 0, 5, 6, 7];
        assert_eq!(parse_preview(&listed), Ok((PreviewRequest::List(&[5, 6]), &[7][..])));
        assert!(parse_preview(&[3, 7]).is_err());
        assert!(parse_preview(&[1, 7]).is_err());
    }

    #[test]
    fn deletions_are_parsed() {
        let frame =
            [deletion::KEYS | deletion::ATOMIC, 255, 255, 255, 255, 1, 0, 0, 0, 1, 0, 0, 0, 0x14];
        let (deletion, atomic) = parse_deletion(&frame).unwrap();
        assert!(atomic && deletion.count_max == usize::MAX);
        assert_eq!(deletion.among, Among::Keys(vec![Key::from_encoded(vec![0x14])]));
        no_part_is_parsed(&frame, parse_deletion);
        let span = [deletion::WHERE, 7, 0, 0, 0, 1, 0, 0, 0, 0xa0, 0, 0, 0, 0, 1, 0, 0, 0, 0xff];
        let (deletion, atomic) = parse_deletion(&span).unwrap();
        assert!(!atomic && deletion.count_max == 7 && deletion.filter == Some(vec![0xa0]));
        let (start, end) = (Key::default(), Key::from_encoded(vec![0xff]));
        assert_eq!(deletion.among, Among::Span { start, end });
    }
}
