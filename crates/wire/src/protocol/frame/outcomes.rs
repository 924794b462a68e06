//! The outcomes of writes.

use super::answer::{error, push_error};
use super::reader::{Reader, push_sized};
use crate::protocol::numbers::status::{
    CHECK_FAILED, CHECKS_FAILED, COMMITTED, COMMITTED_RETURNING, COMMITTED_WITH, NOT_UNIQUE,
    REJECTED,
};
use openkv_core::codec::{Malformed, uuid};
use openkv_core::model::{
    Decision, EncodedValue, Enqueued, Resolved, Result, Results, Versionstamp, Violation,
};

/// Flags of the result for a message.
const DEDUPLICATED: u8 = 1;
const HAS_ID: u8 = 2;

/// Appends the outcomes of writes.
pub fn push_outcomes(out: &mut Vec<u8>, decisions: &[Decision]) {
    out.reserve(decisions.len() * (1 + Versionstamp::HEX_BYTES));
    for decision in decisions {
        match decision {
            Decision::CheckFailed(failed) if !failed.is_empty() => {
                out.push(CHECKS_FAILED);
                push_count(out, failed.len());
                failed.iter().for_each(|at| push_count(out, *at));
            }
            Decision::CommittedWith(stamp, results) if !is_plain(results) => {
                out.push(COMMITTED_RETURNING);
                out.extend_from_slice(&stamp.hex());
                push_results(out, results);
            }
            Decision::NotUnique(violations) => {
                out.push(NOT_UNIQUE);
                push_count(out, violations.len());
                for Violation { index, key, other } in violations {
                    push_sized(out, index.as_bytes());
                    push_sized(out, key.as_bytes());
                    push_sized(out, other.as_bytes());
                }
            }
            decision => push_plain(out, decision),
        }
    }
}

/// Appends the outcomes for a client that only knows the status bytes 0 to 3.
pub fn push_plain_outcomes(out: &mut Vec<u8>, decisions: &[Decision]) {
    decisions.iter().for_each(|decision| push_plain(out, decision));
}

/// Whether the results contain only UUIDs.
fn is_plain(results: &Results) -> bool {
    results.values.is_empty() && results.enqueued.is_empty()
}

fn push_results(out: &mut Vec<u8>, results: &Results) {
    let Results { resolved, values, enqueued } = results;
    push_resolved(out, resolved);
    push_count(out, values.len());
    for EncodedValue { encoding, bytes } in values {
        out.push(encoding.id());
        push_sized(out, bytes);
    }
    push_count(out, enqueued.len());
    for Enqueued { id, deduplicated } in enqueued {
        let has_id = if id.is_some() { HAS_ID } else { 0 };
        let deduplicated = if *deduplicated { DEDUPLICATED } else { 0 };
        out.push(has_id | deduplicated);
        out.extend(id.iter().flat_map(|id| (*id as f64).to_le_bytes()));
    }
}

fn push_plain(out: &mut Vec<u8>, decision: &Decision) {
    match decision {
        Decision::Committed(stamp) => {
            out.push(COMMITTED);
            out.extend_from_slice(&stamp.hex());
        }
        Decision::CommittedWith(stamp, results) => {
            let Results { resolved, .. } = results.as_ref();
            out.push(if resolved.is_empty() { COMMITTED } else { COMMITTED_WITH });
            out.extend_from_slice(&stamp.hex());
            if !resolved.is_empty() {
                push_resolved(out, resolved);
            }
        }
        // DELETE_MANY has an answer of its own.
        Decision::Deleted(_) => {}
        Decision::CheckFailed(_) | Decision::NotUnique(_) => out.push(CHECK_FAILED),
        Decision::Rejected(error) => {
            out.push(REJECTED);
            push_error(out, error);
        }
    }
}

fn push_count(out: &mut Vec<u8>, count: usize) {
    out.extend_from_slice(&(count as u32).to_le_bytes());
}

fn push_resolved(out: &mut Vec<u8>, resolved: &[Resolved]) {
    push_count(out, resolved.len());
    for Resolved { placeholder, uuid } in resolved {
        out.extend_from_slice(&placeholder.to_le_bytes());
        out.extend_from_slice(&uuid::text(*uuid));
    }
}

/// Parses the outcomes of `count` writes.
pub fn parse_outcomes(bytes: &[u8], count: usize) -> Result<Vec<Decision>, Malformed> {
    Reader::whole(bytes, |reader| reader.items(count, 1, decision))
}

fn decision(reader: &mut Reader<'_>) -> Result<Decision, Malformed> {
    Ok(match reader.u8()? {
        COMMITTED => Decision::Committed(reader.stamp()?),
        CHECK_FAILED => Decision::CheckFailed(Vec::new()),
        CHECKS_FAILED => {
            Decision::CheckFailed(reader.counted(4, |reader| Ok(reader.u32()? as usize))?)
        }
        NOT_UNIQUE => Decision::NotUnique(reader.counted(12, |reader| {
            let (index, key, other) = (reader.text()?, reader.key()?, reader.key()?);
            Ok(Violation { index: index.to_owned(), key, other })
        })?),
        REJECTED => Decision::Rejected(error(reader)?),
        COMMITTED_WITH => {
            let (stamp, resolved) = (reader.stamp()?, resolved(reader)?);
            Decision::committed(stamp, Results { resolved, ..Results::default() })
        }
        COMMITTED_RETURNING => {
            let (stamp, resolved) = (reader.stamp()?, resolved(reader)?);
            let values = reader.counted(5, Reader::value)?;
            let enqueued = reader.counted(1, |reader| {
                let flags = reader.flags(DEDUPLICATED | HAS_ID)?;
                let id = reader.optional(flags & HAS_ID != 0, Reader::time_ms)?;
                Ok(Enqueued { id, deduplicated: flags & DEDUPLICATED != 0 })
            })?;
            Decision::committed(stamp, Results { resolved, values, enqueued })
        }
        _ => return Err(reader.refused("an unknown outcome")),
    })
}

fn resolved(reader: &mut Reader<'_>) -> Result<Vec<Resolved>, Malformed> {
    reader.counted(8 + uuid::TEXT_BYTES, |reader| {
        let placeholder = reader.u64()?;
        let uuid = uuid::parse(reader.take(uuid::TEXT_BYTES)?);
        let uuid = uuid.ok_or_else(|| reader.refused("a UUID that is none"))?;
        Ok(Resolved { placeholder, uuid })
    })
}

#[cfg(test)]
mod tests {
    use super::super::{frame_of, no_part_is_parsed};
    use super::*;
    use openkv_core::model::Error;

    fn decisions() -> Vec<Decision> {
        let uuid = ::uuid::Uuid::from_u128(0x0192_3456_789a_7bcd_8ef0_1234_5678_9abc);
        let resolved = vec![Resolved { placeholder: 7, uuid }];
        vec![
            Decision::Committed(Versionstamp::new(5)),
            Decision::CheckFailed(Vec::new()),
            Decision::CheckFailed(vec![0, 300]),
            Decision::NotUnique(vec![Violation {
                index: "email".to_owned(),
                key: openkv_core::model::Key::from_encoded(vec![0x14]),
                other: openkv_core::model::Key::from_encoded(vec![0x26]),
            }]),
            Decision::Rejected(Error::closed()),
            Decision::committed(
                Versionstamp::new(6),
                Results { resolved: resolved.clone(), ..Results::default() },
            ),
            Decision::committed(
                Versionstamp::new(7),
                Results {
                    resolved,
                    values: vec![EncodedValue::le64(7)],
                    enqueued: vec![
                        Enqueued { id: Some(1 << 40), deduplicated: true },
                        Enqueued { id: None, deduplicated: false },
                    ],
                },
            ),
        ]
    }

    #[test]
    fn outcomes_round_trip_and_truncated_ones_are_rejected() {
        let decisions = decisions();
        let frame = frame_of(|out| push_outcomes(out, &decisions));
        let count = decisions.len();
        assert_eq!(parse_outcomes(&frame, count), Ok(decisions));
        no_part_is_parsed(&frame, |bytes| parse_outcomes(bytes, count));
    }

    #[test]
    fn an_outcome_without_results_is_plain() {
        for (status, counts) in [(COMMITTED_WITH, 1), (COMMITTED_RETURNING, 3)] {
            let stamp = Versionstamp::new(5);
            let frame = [&[status][..], &stamp.hex(), &vec![0; 4 * counts]].concat();
            assert_eq!(parse_outcomes(&frame, 1), Ok(vec![Decision::Committed(stamp)]));
        }
    }

    #[test]
    fn plain_outcomes_omit_results() {
        let mut decisions = decisions();
        let frame = frame_of(|out| push_plain_outcomes(out, &decisions));
        decisions[2] = Decision::CheckFailed(Vec::new());
        decisions[3] = Decision::CheckFailed(Vec::new());
        if let Decision::CommittedWith(_, results) = &mut decisions[6] {
            results.values.clear();
            results.enqueued.clear();
        }
        assert_eq!(parse_outcomes(&frame, decisions.len()), Ok(decisions));
    }
}
