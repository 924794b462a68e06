//! The writes with ids of a batch, in the log of batches: of each the id (16 bytes), by how many versions its
//! commit follows the batch's previous one (0 without a commit), a byte of the kind of its outcome, and the
//! rest of the outcome. Numbers have 4 bytes, the high one first; lists and texts come after their length.
//!
//! | kind | rest |
//! |---|---|
//! | 0, a commit | nothing |
//! | 1, a commit with results | a list of UUIDs (8 bytes of the placeholder, 16 of the UUID), of values (a byte of the encoding, the length, the bytes) and of messages (a byte of flags, 8 of the number if there is one) |
//! | 2, failed checks of a repetition | a list of their places |
//! | 3, a rejection of a repetition | a byte of the kind of the error, and its text |

use uuid::Uuid;

use super::Shared;
use super::cells::Cells;
use super::line::Call;
use openkv_core::layer::{Lead, Remembered};
use openkv_core::model::{
    Decision, EncodedValue, Encoding, Enqueued, Error, Kind, LAYER_WRITE_ID_BYTES,
    LAYER_WRITE_IDS_BYTES_MAX, POSTGRES_LOG_KEPT_MS, POSTGRES_WRITES_PAGE_BATCHES, Resolved,
    Result, Results, Versionstamp, WRITE_ID_KEPT_MS, WriteId, WriteRecord,
};

const _: () = assert!(
    POSTGRES_LOG_KEPT_MS >= WRITE_ID_KEPT_MS,
    "the log has all ids that a leader remembers"
);

/// The newest batches before a version, within the time for which ids are remembered.
const RECENT: &str = "\
SELECT version, at_ms, previous, writes FROM openkv.log \
WHERE db = $1 AND version < $2 AND at_ms >= $3 ORDER BY version DESC LIMIT $4";

const COMMITTED: u8 = 0;
const COMMITTED_WITH: u8 = 1;
const CHECK_FAILED: u8 = 2;
const REJECTED: u8 = 3;
/// Flags of a message.
const DEDUPLICATED: u8 = 1;
const HAS_ID: u8 = 2;

/// The bytes for the log; `None` without such writes. `previous`: the version before the batch.
pub(super) fn encoded(records: &[WriteRecord], previous: u64) -> Option<Vec<u8>> {
    let mut out = Vec::with_capacity(records.len() * (WriteId::BYTES + 5));
    for WriteRecord { id, decision } in records {
        let mut begin = |kind, stamp: Option<&Versionstamp>| {
            out.extend_from_slice(id.as_bytes());
            put_number(&mut out, stamp.map_or(0, |of| of.version().saturating_sub(previous)));
            out.push(kind);
        };
        match decision {
            Decision::Committed(stamp) => begin(COMMITTED, Some(stamp)),
            Decision::CommittedWith(stamp, results) => {
                begin(COMMITTED_WITH, Some(stamp));
                put_results(&mut out, results);
            }
            Decision::CheckFailed(failed) => {
                begin(CHECK_FAILED, None);
                put_number(&mut out, failed.len() as u64);
                failed.iter().for_each(|place| put_number(&mut out, *place as u64));
            }
            Decision::Rejected(error) => {
                begin(REJECTED, None);
                // The next leader may be of an earlier version.
                out.push(error.kind().known_to(Kind::KNOWN) as u8);
                put_number(&mut out, error.message().len() as u64);
                out.extend_from_slice(error.message().as_bytes());
            }
            // A database on PostgreSQL has no unique indexes.
            Decision::Deleted(_) | Decision::NotUnique(_) => {}
        }
    }
    (!out.is_empty()).then_some(out)
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&u32::try_from(number).unwrap_or(u32::MAX).to_be_bytes());
}

fn put_results(out: &mut Vec<u8>, Results { resolved, values, enqueued }: &Results) {
    put_number(out, resolved.len() as u64);
    for Resolved { placeholder, uuid } in resolved {
        out.extend_from_slice(&placeholder.to_be_bytes());
        out.extend_from_slice(uuid.as_bytes());
    }
    put_number(out, values.len() as u64);
    for EncodedValue { encoding, bytes } in values {
        out.push(encoding.id());
        put_number(out, bytes.len() as u64);
        out.extend_from_slice(bytes);
    }
    put_number(out, enqueued.len() as u64);
    for Enqueued { id, deduplicated } in enqueued {
        let flags = if *deduplicated { DEDUPLICATED } else { 0 };
        out.push(flags | if id.is_some() { HAS_ID } else { 0 });
        out.extend(id.iter().flat_map(|id| id.to_be_bytes()));
    }
}

/// The writes in stored bytes; `None` for bytes that are not from [`encoded`].
pub(super) fn decode(mut bytes: &[u8], previous: u64) -> Option<Vec<WriteRecord>> {
    let mut records = Vec::new();
    let bytes = &mut bytes;
    while !bytes.is_empty() {
        let id = WriteId::from_bytes(take(bytes)?);
        let stamp = Versionstamp::new(previous + u64::from(u32::from_be_bytes(take(bytes)?)));
        let decision = match take(bytes)? {
            [COMMITTED] => Decision::Committed(stamp),
            [COMMITTED_WITH] => Decision::CommittedWith(stamp, Box::new(results(bytes)?)),
            [CHECK_FAILED] => Decision::CheckFailed(list(bytes, length)?),
            [REJECTED] => {
                let [kind] = take(bytes)?;
                let text = String::from_utf8(sized(bytes)?).ok()?;
                Decision::Rejected(Error::new(Kind::from_number(kind)?, text))
            }
            _ => return None,
        };
        records.push(WriteRecord { id, decision });
    }
    Some(records)
}

fn results(bytes: &mut &[u8]) -> Option<Results> {
    let resolved = list(bytes, |bytes| {
        let placeholder = u64::from_be_bytes(take(bytes)?);
        Some(Resolved { placeholder, uuid: Uuid::from_bytes(take(bytes)?) })
    })?;
    let values = list(bytes, |bytes| {
        let [encoding] = take(bytes)?;
        let encoding = Encoding::from_id(i64::from(encoding))?;
        Some(EncodedValue { encoding, bytes: sized(bytes)? })
    })?;
    let enqueued = list(bytes, |bytes| {
        let [flags] = take(bytes)?;
        let has_id = flags & HAS_ID != 0;
        let id = if has_id { Some(i64::from_be_bytes(take(bytes)?)) } else { None };
        let is_known = flags & !(DEDUPLICATED | HAS_ID) == 0;
        is_known.then_some(Enqueued { id, deduplicated: flags & DEDUPLICATED != 0 })
    })?;
    Some(Results { resolved, values, enqueued })
}

fn list<T>(bytes: &mut &[u8], item: impl Fn(&mut &[u8]) -> Option<T>) -> Option<Vec<T>> {
    let count = u32::from_be_bytes(take(bytes)?);
    (0..count).map(|_| item(bytes)).collect()
}

fn length(bytes: &mut &[u8]) -> Option<usize> {
    usize::try_from(u32::from_be_bytes(take(bytes)?)).ok()
}

fn sized(bytes: &mut &[u8]) -> Option<Vec<u8>> {
    let length = length(bytes)?;
    let (head, rest) = bytes.split_at_checked(length)?;
    *bytes = rest;
    Some(head.to_vec())
}

fn take<const N: usize>(bytes: &mut &[u8]) -> Option<[u8; N]> {
    let (head, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(*head)
}

/// The writes with ids that were decided for good before this lead, as far as they are remembered. No
/// earlier leader can commit any more.
///
/// # Errors
/// The error of the server; `Corrupt` for rows of another form.
pub(super) fn remembered(shared: &Shared, lead: &Lead) -> Result<Remembered> {
    let mut from_ms = lead.clock_ms.saturating_sub(WRITE_ID_KEPT_MS);
    let (mut batches, mut bytes, mut before) = (Vec::new(), 0, i64::MAX);
    'pages: loop {
        let call: Call<'_> =
            (RECENT, vec![&shared.db, &before, &from_ms, &POSTGRES_WRITES_PAGE_BATCHES]);
        let rows = shared.query(call)?;
        for row in &rows {
            let cells = Cells::of("log", row);
            before = cells.get(0)?;
            let (at_ms, previous): (i64, _) = (cells.get(1)?, cells.unsigned(2)?);
            let Some(writes) = cells.get::<Option<&[u8]>>(3)? else { continue };
            let records = decode(writes, previous).ok_or_else(|| {
                Error::corrupt("openkv.log: the column writes has bytes of another form")
            })?;
            bytes += writes.len() + records.len() * LAYER_WRITE_ID_BYTES;
            batches.push((at_ms, records));
            if bytes > LAYER_WRITE_IDS_BYTES_MAX {
                // Some of this time may be missing.
                from_ms = at_ms + 1;
                break 'pages;
            }
        }
        if i64::try_from(rows.len()).is_ok_and(|count| count < POSTGRES_WRITES_PAGE_BATCHES) {
            break;
        }
    }
    let timed = |(at_ms, records): (i64, Vec<WriteRecord>)| {
        records.into_iter().map(move |record| (at_ms, record))
    };
    let records = batches.into_iter().rev().flat_map(timed).collect();
    Ok(Remembered { from_ms, records })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records() -> Vec<WriteRecord> {
        let record = |number, decision| WriteRecord { id: WriteId::new(5, [0, number]), decision };
        let resolved = vec![Resolved { placeholder: 3, uuid: Uuid::from_u128(77) }];
        let values = vec![EncodedValue::le64(9), EncodedValue::le64(10)];
        let enqueued = vec![
            Enqueued { id: Some(1 << 40), deduplicated: true },
            Enqueued { id: None, deduplicated: false },
        ];
        let results = Results { resolved, values, enqueued };
        vec![
            record(1, Decision::Committed(Versionstamp::new(101))),
            record(2, Decision::committed(Versionstamp::new(103), results)),
            record(3, Decision::CheckFailed(vec![0, 300])),
            record(4, Decision::CheckFailed(Vec::new())),
            record(5, Decision::Rejected(Error::invalid("a sum over 2^64 − 1"))),
        ]
    }

    #[test]
    fn writes_are_decoded_as_they_were_encoded() {
        let bytes = encoded(&records(), 100).unwrap();
        assert_eq!(decode(&bytes, 100), Some(records()));
        assert_eq!(encoded(&[], 100), None);
    }

    #[test]
    fn bytes_of_another_form_have_no_writes() {
        let bytes = encoded(&records(), 100).unwrap();
        let ends: Vec<_> =
            (1..=5).map(|count| encoded(&records()[..count], 100).unwrap().len()).collect();
        for length in (1..bytes.len()).filter(|length| !ends.contains(length)) {
            assert_eq!(decode(&bytes[..length], 100), None, "{length}");
        }
        assert_eq!(decode(&[bytes, vec![0]].concat(), 100), None);
    }
}
