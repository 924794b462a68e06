//! The writes with ids of a batch, in the log of a led database (docs/format.md §9).

use uuid::Uuid;

use super::Malformed;
use crate::model::{
    Decision, EncodedValue, Encoding, Enqueued, Error, Key, Kind, Resolved, Results, Versionstamp,
    Violation, WriteId, WriteRecord,
};

const COMMITTED: u8 = 0;
const COMMITTED_WITH: u8 = 1;
const CHECK_FAILED: u8 = 2;
const REJECTED: u8 = 3;
const NOT_UNIQUE: u8 = 4;
/// Flags of a message.
const DEDUPLICATED: u8 = 1;
const HAS_ID: u8 = 2;

/// The bytes of writes; none without any. `previous`: the version before the batch.
#[must_use]
pub fn encode(records: &[WriteRecord], previous: u64) -> Vec<u8> {
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
            Decision::NotUnique(violations) => {
                begin(NOT_UNIQUE, None);
                put_number(&mut out, violations.len() as u64);
                for Violation { index, key, other } in violations {
                    for part in [index.as_bytes(), key.as_bytes(), other.as_bytes()] {
                        put_number(&mut out, part.len() as u64);
                        out.extend_from_slice(part);
                    }
                }
            }
            // No write is answered so.
            Decision::Deleted(_) => {}
        }
    }
    out
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

/// The writes in the bytes of a batch.
///
/// # Errors
/// For bytes that are not from [`encode`].
pub fn decode(bytes: &[u8], previous: u64) -> Result<Vec<WriteRecord>, Malformed> {
    records_in(bytes, previous).ok_or(Malformed::new("writes with ids of another form", 0))
}

fn records_in(mut bytes: &[u8], previous: u64) -> Option<Vec<WriteRecord>> {
    let mut records = Vec::new();
    let bytes = &mut bytes;
    while !bytes.is_empty() {
        let id = WriteId::from_bytes(take(bytes)?);
        let stamp =
            Versionstamp::new(previous.checked_add(u64::from(u32::from_be_bytes(take(bytes)?)))?);
        let decision = match take(bytes)? {
            [COMMITTED] => Decision::Committed(stamp),
            [COMMITTED_WITH] => Decision::CommittedWith(stamp, Box::new(results(bytes)?)),
            [CHECK_FAILED] => Decision::CheckFailed(list(bytes, length)?),
            [REJECTED] => {
                let [kind] = take(bytes)?;
                let text = String::from_utf8(sized(bytes)?).ok()?;
                Decision::Rejected(Error::new(Kind::from_number(kind)?, text))
            }
            [NOT_UNIQUE] => Decision::NotUnique(list(bytes, violation)?),
            _ => return None,
        };
        records.push(WriteRecord { id, decision });
    }
    Some(records)
}

fn violation(bytes: &mut &[u8]) -> Option<Violation> {
    let index = String::from_utf8(sized(bytes)?).ok()?;
    let (key, other) = (Key::from_encoded(sized(bytes)?), Key::from_encoded(sized(bytes)?));
    Some(Violation { index, key, other })
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
        let [key, other] = [b"a", b"b"].map(|key| Key::from_encoded(key.to_vec()));
        let results = Results { resolved, values, enqueued };
        vec![
            record(1, Decision::Committed(Versionstamp::new(101))),
            record(2, Decision::committed(Versionstamp::new(103), results)),
            record(3, Decision::CheckFailed(vec![0, 300])),
            record(4, Decision::CheckFailed(Vec::new())),
            record(5, Decision::Rejected(Error::invalid("a sum over 2^64 − 1"))),
            record(6, Decision::NotUnique(vec![Violation { index: "é".into(), key, other }])),
        ]
    }

    #[test]
    fn writes_are_decoded_as_they_were_encoded() {
        assert_eq!(decode(&encode(&records(), 100), 100), Ok(records()));
        assert!(encode(&[], 100).is_empty());
    }

    #[test]
    fn bytes_of_another_form_have_no_writes() {
        let bytes = encode(&records(), 100);
        let ends: Vec<_> = (1..=6).map(|count| encode(&records()[..count], 100).len()).collect();
        for length in (1..bytes.len()).filter(|length| !ends.contains(length)) {
            assert!(decode(&bytes[..length], 100).is_err(), "{length}");
        }
        assert!(decode(&[bytes, vec![0]].concat(), 100).is_err());
    }
}
