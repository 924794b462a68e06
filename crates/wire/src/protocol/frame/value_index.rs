//! Frames of value indexes, of lists in the order of values, and of explanations.

use super::reader::{Reader, push_sized};
use super::scan::{ScanRequest, parse_scan};
use openkv_core::codec::Malformed;
use openkv_core::index::{Explanation, Method, PathBounds, ReadBranch};
use openkv_core::model::{
    BuildFailure, OrderPath, ValueIndexInfo, ValueIndexRequest, ValueIndexSpec, ValueIndexState,
};

/// Flags of a value index.
const UNIQUE: u8 = 1;
const MULTI: u8 = 2;
const SPARSE: u8 = 4;
/// Only of a request.
const REPLACE: u8 = 8;

/// States.
const BUILDING: u8 = 1;
const READY: u8 = 0;
const FAILED: u8 = 2;

/// Flags of an ordered list.
const SORT: u8 = 1;
const AFTER: u8 = 2;

fn path(reader: &mut Reader<'_>) -> Result<OrderPath, Malformed> {
    let descending = reader.flags(1)? != 0;
    Ok(OrderPath { path: reader.string()?, descending })
}

/// Parses a definition.
pub(super) fn value_spec(reader: &mut Reader<'_>) -> Result<ValueIndexSpec, Malformed> {
    let flags = reader.flags(UNIQUE | MULTI | SPARSE)?;
    spec(reader, flags)
}

/// Appends a definition.
pub(super) fn push_value_spec(out: &mut Vec<u8>, spec: &ValueIndexSpec) {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    out.push(flag(spec.unique, UNIQUE) | flag(spec.multi, MULTI) | flag(spec.sparse, SPARSE));
    push_sized(out, spec.name.as_bytes());
    push_sized(out, spec.prefix.as_bytes());
    out.extend_from_slice(&(spec.on.len() as u32).to_le_bytes());
    for OrderPath { path, descending } in &spec.on {
        out.push(u8::from(*descending));
        push_sized(out, path.as_bytes());
    }
}

fn spec(reader: &mut Reader<'_>, flags: u8) -> Result<ValueIndexSpec, Malformed> {
    Ok(ValueIndexSpec {
        name: reader.string()?,
        prefix: reader.key()?,
        on: reader.counted(5, path)?,
        unique: flags & UNIQUE != 0,
        multi: flags & MULTI != 0,
        sparse: flags & SPARSE != 0,
    })
}

/// Parses a request for a value index, without checking its bounds.
pub fn parse_value_index(bytes: &[u8]) -> Result<ValueIndexRequest, Malformed> {
    Reader::whole(bytes, |reader| {
        let flags = reader.flags(UNIQUE | MULTI | SPARSE | REPLACE)?;
        Ok(ValueIndexRequest { spec: spec(reader, flags)?, replace: flags & REPLACE != 0 })
    })
}

/// Appends value indexes, after their number.
pub fn push_value_indexes(out: &mut Vec<u8>, indexes: &[ValueIndexInfo]) {
    out.extend_from_slice(&(indexes.len() as u32).to_le_bytes());
    for ValueIndexInfo { id, spec, state, scanned } in indexes {
        push_value_spec(out, spec);
        out.extend_from_slice(&id.to_le_bytes());
        out.extend_from_slice(&(*scanned as f64).to_le_bytes());
        match state {
            ValueIndexState::Ready => out.push(READY),
            ValueIndexState::Building => out.push(BUILDING),
            ValueIndexState::Failed(BuildFailure { key, other }) => {
                out.push(FAILED);
                push_sized(out, key.as_bytes());
                out.push(u8::from(other.is_some()));
                if let Some(other) = other {
                    push_sized(out, other.as_bytes());
                }
            }
        }
    }
}

/// Parses value indexes.
pub fn parse_value_indexes(bytes: &[u8]) -> Result<Vec<ValueIndexInfo>, Malformed> {
    Reader::whole(bytes, |reader| {
        reader.counted(30, |reader| {
            let spec = value_spec(reader)?;
            let id = reader.i64()?;
            let scanned = f64::from_le_bytes(reader.array()?) as u64;
            let state = match reader.u8()? {
                READY => ValueIndexState::Ready,
                BUILDING => ValueIndexState::Building,
                FAILED => {
                    let key = reader.key()?;
                    let has_other = reader.flags(1)? != 0;
                    let other = reader.optional(has_other, Reader::key)?;
                    ValueIndexState::Failed(BuildFailure { key, other })
                }
                _ => return Err(reader.refused("an unknown state of an index")),
            };
            Ok(ValueIndexInfo { id, spec, state, scanned })
        })
    })
}

/// A list in the order of values, or with no path in the order of keys, to be explained.
#[derive(Clone, Debug, PartialEq)]
pub struct OrderedRequest {
    /// The order.
    pub order: Vec<OrderPath>,
    /// Without a fitting index the entries are sorted.
    pub sort: bool,
    /// The position of the entry before the page.
    pub after: Option<Vec<u8>>,
    /// The range, the filter and the parts of the entries.
    pub scan: ScanRequest,
}

/// Parses a list in the order of values.
pub fn parse_ordered(bytes: &[u8]) -> Result<OrderedRequest, Malformed> {
    let mut reader = Reader::new(bytes);
    let flags = reader.flags(SORT | AFTER)?;
    let order = reader.counted(5, path)?;
    let after = reader.optional(flags & AFTER != 0, Reader::sized)?.map(<[u8]>::to_vec);
    let scan = parse_scan(reader.rest())?;
    Ok(OrderedRequest { order, sort: flags & SORT != 0, after, scan })
}

/// How a list finds its entries.
const BY_INDEX: u8 = 0;
const BY_SCAN: u8 = 1;
const BY_SORT: u8 = 2;

/// Appends an explanation.
pub fn push_explanation(out: &mut Vec<u8>, explanation: &Explanation) {
    let Explanation { method, branches, reason, is_complete, .. } = explanation;
    out.push(match method {
        Method::Index => BY_INDEX,
        Method::Scan => BY_SCAN,
        Method::Sort => BY_SORT,
    });
    out.push(u8::from(*is_complete));
    let Explanation { index_entries, visited, filtered, returned, .. } = explanation;
    for number in [index_entries, visited, filtered, returned] {
        out.extend_from_slice(&(*number as f64).to_le_bytes());
    }
    push_sized(out, reason.as_deref().unwrap_or_default().as_bytes());
    out.extend_from_slice(&(branches.len() as u32).to_le_bytes());
    for ReadBranch { index, bounds } in branches {
        push_sized(out, index.as_bytes());
        out.extend_from_slice(&(bounds.len() as u32).to_le_bytes());
        for PathBounds { path, ranges } in bounds {
            push_sized(out, path.as_bytes());
            out.extend_from_slice(&(ranges.len() as u32).to_le_bytes());
            for range in ranges {
                push_sized(out, range.as_bytes());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{frame_of, no_part_is_parsed};
    use super::*;
    use openkv_core::model::Key;

    #[test]
    fn indexes_round_trip_and_truncated_ones_are_rejected() {
        let spec = ValueIndexSpec {
            name: "a".to_owned(),
            prefix: Key::from_encoded(vec![0x14]),
            on: vec![
                OrderPath { path: "b".to_owned(), descending: true },
                OrderPath { path: "c.d".to_owned(), descending: false },
            ],
            unique: true,
            multi: false,
            sparse: true,
        };
        let key = Key::from_encoded(vec![0x14, 0x26]);
        let states = [
            ValueIndexState::Ready,
            ValueIndexState::Building,
            ValueIndexState::Failed(BuildFailure { key: key.clone(), other: None }),
            ValueIndexState::Failed(BuildFailure { key: key.clone(), other: Some(key) }),
        ];
        let info = |(id, state)| ValueIndexInfo { id, spec: spec.clone(), state, scanned: 7 };
        let indexes: Vec<_> = (0..).zip(states).map(info).collect();
        let frame = frame_of(|out| push_value_indexes(out, &indexes));
        assert_eq!(parse_value_indexes(&frame), Ok(indexes));
        no_part_is_parsed(&frame, parse_value_indexes);
    }

    #[test]
    fn requests_are_parsed() {
        let frame = [
            &[UNIQUE | REPLACE, 1, 0, 0, 0, b'n', 1, 0, 0, 0, 0x14, 1, 0, 0, 0, 1][..],
            &[1, 0, 0, 0, b'p'],
        ]
        .concat();
        let request = parse_value_index(&frame).unwrap();
        assert!(request.replace && request.spec.unique && !request.spec.multi);
        assert_eq!(request.spec.on, [OrderPath { path: "p".to_owned(), descending: true }]);
        no_part_is_parsed(&frame, parse_value_index);
        let scan = [&[0, 5, 0, 0, 0][..], &f64::NAN.to_le_bytes(), &[0; 8]].concat();
        let frame = [&[SORT | AFTER, 0, 0, 0, 0, 1, 0, 0, 0, 9][..], &scan].concat();
        let request = parse_ordered(&frame).unwrap();
        assert_eq!((request.sort, request.after, request.scan.limit), (true, Some(vec![9]), 5));
        no_part_is_parsed(&frame, parse_ordered);
    }
}
