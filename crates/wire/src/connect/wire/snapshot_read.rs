//! `snapshot_read`: ranges of one snapshot.

use prost::Message;

use super::Entry;
use super::bytes::{at_most, decode, each_field};
use super::value::{bad_answer, entry_from_wire};
use crate::connect::schema::{
    KvEntry, ReadRange, ReadRangeOutput, STATUS_READ_DISABLED, STATUS_SUCCESS, SnapshotRead,
    SnapshotReadOutput,
};
use crate::connect::versions::Version;
use openkv_core::model::{Error, Key, Limits, Range, Result};

/// The result of a read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadAnswer {
    /// The entries of each range, in its order.
    Entries {
        /// One for each requested range.
        ranges: Vec<Vec<Entry>>,
        /// Whether the read was strongly consistent.
        strong: bool,
    },
    /// Reads are disabled at the endpoint; the client must fetch the metadata again.
    Disabled,
}

/// Encodes a request for these ranges.
pub fn write_request(ranges: &[Range]) -> Vec<u8> {
    let ranges = ranges.iter().map(|range| match range {
        Range::Point(key) => {
            let start = key.as_bytes().to_vec();
            let end = [start.as_slice(), &[0]].concat();
            ReadRange { start, end, limit: 1, reverse: false }
        }
        Range::Span { start, end, limit, reverse } => ReadRange {
            start: start.as_bytes().to_vec(),
            end: end.as_bytes().to_vec(),
            limit: i32::try_from(*limit).unwrap_or(i32::MAX),
            reverse: *reverse,
        },
    });
    SnapshotRead { ranges: ranges.collect() }.encode_to_vec()
}

/// Decodes a request.
///
/// # Errors
/// `Invalid` for a malformed request, and for one over the limits.
pub fn read_request(bytes: &[u8], limits: &Limits) -> Result<Vec<Range>> {
    let max = limits.ranges_max;
    let refusal = || format!("Too many read ranges requested in one read (max {max}).");
    at_most(bytes, 1, max, refusal)?;
    let request: SnapshotRead = decode(bytes)?;
    let mut rows: usize = 0;
    let mut ranges = Vec::with_capacity(request.ranges.len());
    for ReadRange { start, end, limit, reverse } in request.ranges {
        let limit = usize::try_from(limit).ok().filter(|limit| *limit > 0).ok_or_else(|| {
            Error::invalid(
                "The read range limit of the snapshot read request is invalid (it must be 1 or more).",
            )
        })?;
        rows = rows.saturating_add(limit);
        if start.len().max(end.len()) > limits.range_key_bytes_max {
            let max = limits.range_key_bytes_max;
            return Err(Error::invalid(format!(
                "A key exceeds the key size limit (max {max} bytes for reads)."
            )));
        }
        ranges.push(if end.split_last() == Some((&0, start.as_slice())) {
            Range::Point(Key::from_encoded(start))
        } else {
            let (start, end) = (Key::from_encoded(start), Key::from_encoded(end));
            Range::Span { start, end, limit, reverse }
        });
    }
    if rows > limits.rows_max {
        let max = limits.rows_max;
        return Err(Error::invalid(format!(
            "The total number of entries requested across read ranges in the read request is too \
             large (max {max})."
        )));
    }
    Ok(ranges)
}

/// Encodes the entries of each range. `strong`: they are of the newest state.
pub fn write_answer(ranges: Vec<Vec<KvEntry>>, strong: bool) -> Vec<u8> {
    let ranges = ranges.into_iter().map(|values| ReadRangeOutput { values }).collect();
    let output = SnapshotReadOutput {
        ranges,
        read_disabled: false,
        read_is_strongly_consistent: strong,
        status: STATUS_SUCCESS,
    };
    output.encode_to_vec()
}

/// Decodes the answer to a request for the ranges `requested`.
///
/// # Errors
/// `Unavailable` for a malformed answer: a wrong number of ranges, too many entries, an unknown
/// status, an unreadable value.
pub fn read_answer(bytes: &[u8], requested: &[Range], version: Version) -> Result<ReadAnswer> {
    count_entries(bytes, requested).map_err(bad_answer)?;
    let output: SnapshotReadOutput = decode(bytes).map_err(bad_answer)?;
    let disabled = match version {
        Version::V1 | Version::V2 => output.read_disabled,
        Version::V3 => match output.status {
            STATUS_SUCCESS => false,
            STATUS_READ_DISABLED => true,
            other => return Err(bad_answer(format!("Unspecified read error (code={other})"))),
        },
    };
    if disabled {
        return Ok(ReadAnswer::Disabled);
    }
    if output.ranges.len() != requested.len() {
        let (given, requested) = (output.ranges.len(), requested.len());
        return Err(bad_answer(format!("{given} ranges came where {requested} were requested")));
    }
    let mut ranges = Vec::with_capacity(output.ranges.len());
    for range in output.ranges {
        let entries = range.values.into_iter().map(entry_from_wire);
        ranges.push(entries.collect::<Result<Vec<_>>>().map_err(bad_answer)?);
    }
    // An answer of version 1 has no such field; its endpoints have one consistency for all answers.
    let strong = version == Version::V1 || output.read_is_strongly_consistent;
    Ok(ReadAnswer::Entries { ranges, strong })
}

/// Rejects more entries than requested.
fn count_entries(bytes: &[u8], requested: &[Range]) -> Result<()> {
    let mut ranges = requested.iter();
    each_field(bytes, &mut |tag, field| {
        if tag != 1 {
            return Ok(());
        }
        let limit = match ranges.next() {
            Some(Range::Point(_)) => 1,
            Some(Range::Span { limit, .. }) => *limit,
            None => return Err(Error::invalid("more ranges came than were requested")),
        };
        at_most(field, 1, limit, || format!("more entries came than the {limit} requested"))
    })
}
