//! Scans with a filter, a depth, expiry times or without values; counts; entries with their expiry; when
//! an entry expires.

use std::sync::Arc;

use super::answering::Answering;
use super::{Call, Fault};
use crate::metrics::Subject;
use crate::{Scan, Store};
use openkv_core::model::{BRIEF_SCAN_FILTER_BYTES_MAX, Key, Result, Row, Seen};
use openkv_engines::Snapshot;
use openkv_wire::protocol::frame::{
    Out, ScanRequest, StepFlags, next_key, parse_scan, put_absent, put_passed, put_scan_answer,
    put_seen, scan_answer,
};

const ABSENT: u8 = 0;
const STAYS: u8 = 1;
const ENDS: u8 = 2;

/// The scan of a frame, the request, and the value of `$now` in it.
fn parsed_scan(frame: &[u8], store: &Store) -> Result<(Scan, ScanRequest, i64), Fault> {
    let mut request = parse_scan(frame)?;
    let now_ms = request.now_ms.unwrap_or_else(|| store.now_ms());
    Ok((Scan::of(&mut request, now_ms)?, request, now_ms))
}

/// One step. Answer: u8 its flags, f64 the value of `$now`, u32 length and bytes of the bound of the next step (its
/// start; in reverse, its end), u32 number of rows, rows.
pub(super) fn scan(frame: &[u8], call: Call) {
    let patience = call.patience("kv.list");
    let parsed = parsed_scan(frame, &call.store);
    let Some(((scan, request, now_ms), Call { store, mut reply, .. })) = call.parsed(parsed) else {
        return;
    };
    reply.about(Subject::span(&scan.start, &scan.end));
    let finish = move |(rows, count): (Vec<u8>, u32), scanned: Result<(Scan, bool)>| {
        let (scan, done) = scanned?;
        let bound = if scan.reverse { &scan.end } else { &scan.start };
        Ok(scan_answer(flags_of(&scan, done), now_ms, bound, count, &rows))
    };
    let answering = Answering::new(reply, (Vec::new(), 0), finish).within(&patience);
    store.scan(scan, request.limit, patience, answering, move |to, seen, chosen| {
        let (rows, count) = &mut to.state;
        *count += 1;
        put(rows, &request, seen, chosen);
    });
}

fn flags_of(scan: &Scan, done: bool) -> StepFlags {
    StepFlags { done, indexed: scan.found_by_index(), ..StepFlags::default() }
}

/// Puts an entry into the answer.
pub(super) fn put(rows: &mut Vec<u8>, request: &ScanRequest, seen: &Seen<'_>, chosen: bool) {
    if !chosen {
        return put_passed(rows, seen.row.key, seen.row.stamp, request.with_expiry);
    }
    let value = if request.keys_only { &[] } else { seen.row.value };
    let seen = Seen { row: Row { value, ..seen.row }, ..*seen };
    put_seen(rows, &seen, request.with_expiry);
}

/// Bytes of the rows of most answers of [`brief_scan`], so that their memory does not grow while they are written.
const ROWS_BYTES: usize = 512;

/// One step on the thread of a caller, at a time: writes its answer; `Some(false)` if it does not fit. `None` if it takes
/// more than [`BRIEF_SCAN_ENTRIES_MAX`](openkv_core::model::BRIEF_SCAN_ENTRIES_MAX), if no value index has what its filter
/// selects, or if that has more than [`BRIEF_SCAN_FILTER_BYTES_MAX`]. A count has the number of its rows, without the rows,
/// and must be complete.
///
/// # Errors
/// `Invalid` for the filter; those of the step.
pub fn brief_scan(
    request: &mut ScanRequest,
    counts: bool,
    (snapshot, now_ms): (&mut dyn Snapshot, i64),
    out: &mut impl Out,
) -> Result<Option<bool>> {
    let indexes = match &request.filter {
        None => Arc::default(),
        Some(_) => snapshot.value_indexes()?,
    };
    if !has_short_filter(request) || (request.filter.is_some() && indexes.is_empty()) {
        return Ok(None);
    }
    let now_ms = request.now_ms.unwrap_or(now_ms);
    let mut scan = Scan::of(request, now_ms)?;
    let (mut rows, mut count) = (Vec::with_capacity(ROWS_BYTES), 0);
    let done = scan.brief_step(&indexes, snapshot, request.limit, &mut |seen, chosen| {
        count += 1;
        if !counts {
            put(&mut rows, request, seen, chosen);
        }
    })?;
    let done = done.filter(|done| *done || !counts);
    let bound = if scan.reverse { &scan.end } else { &scan.start };
    Ok(done.map(|done| put_scan_answer(out, flags_of(&scan, done), now_ms, bound, (count, &rows))))
}

/// Whether the filter is short enough for a read on the thread of a caller.
pub(super) fn has_short_filter(request: &ScanRequest) -> bool {
    request.filter.as_ref().is_none_or(|filter| filter.len() <= BRIEF_SCAN_FILTER_BYTES_MAX)
}

/// Frame: a scan without limit. Answer: f64 the number of entries.
pub(super) fn count(frame: &[u8], call: Call) {
    let patience = call.patience("kv.count");
    let parsed = parsed_scan(frame, &call.store);
    let Some(((scan, ..), Call { store, mut reply, .. })) = call.parsed(parsed) else { return };
    reply.about(Subject::span(&scan.start, &scan.end));
    let finish = |(), count: Result<u64>| Ok((count? as f64).to_le_bytes().to_vec());
    store.count(scan, patience.clone(), Answering::new(reply, (), finish).within(&patience));
}

/// Frame: keys, each behind its length. Answer: a row for each, without its key and with its expiry; the
/// row of an absent entry has no encoding (0).
pub(super) fn entries(mut frame: &[u8], Call { store, mut reply, answer_bytes_max, .. }: Call) {
    let mut keys = Vec::new();
    reply.about(next_key(frame).map_or(Subject::NONE, |(key, _)| Subject::key(key)));
    while let Some((key, rest)) = next_key(frame) {
        keys.push(Key::from_encoded(key.to_vec()));
        frame = rest;
    }
    let answering = Answering::new(reply, Vec::new(), |rows, read: Result<()>| read.map(|()| rows));
    store.entries(keys, answering, move |to, seen| {
        to.holds(answer_bytes_max)?;
        match seen {
            Some(seen) => {
                let row = Row { key: &[], ..seen.row };
                put_seen(&mut to.state, &Seen { row, ..seen }, true);
            }
            None => put_absent(&mut to.state),
        }
        Ok(())
    });
}

/// Frame: the key. Answer: u8 0 absent, 1 stays, 2 expires; then f64 when, in ms since the epoch.
pub(super) fn ttl(frame: &[u8], Call { store, mut reply, .. }: Call) {
    reply.about(Subject::key(frame));
    let finish = |(), ends: Result<Vec<_>>| {
        Ok(match ends?.pop().flatten() {
            None => vec![ABSENT],
            Some(None) => vec![STAYS],
            Some(Some(end)) => [&[ENDS][..], &(end as f64).to_le_bytes()].concat(),
        })
    };
    let key = Key::from_encoded(frame.to_vec());
    store.expiries(vec![key], Answering::new(reply, (), finish));
}
