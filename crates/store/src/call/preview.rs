//! The decision of a write that is not committed: a transaction reads its own writes, and one without writes checks what it
//! has read.

use super::answering::Answering;
use super::{Call, Fault, value_index};
use crate::preview::{CheckedReads, check_reads as checked_in, has_few_checks};
use crate::{OrderedScan, Patience, Place, Preview};
use openkv_core::codec::Malformed;
use openkv_core::filter::Filter;
use openkv_core::model::{AtomicWrite, Error, FRAMES_RECORDS_MAX, Limits, Result};
use openkv_engines::Snapshot;
use openkv_wire::protocol::frame::{Out, PreviewRequest, parse_preview, parse_writes_apart};
use openkv_wire::protocol::numbers::length::STAMP_BYTES;

/// A parsed preview: what it reports about an entry, and the write that leaves the entry.
struct Parsed {
    filter: Option<Filter>,
    list: Option<OrderedScan>,
    write: AtomicWrite,
}

fn parsed(frame: &[u8], call: &Call) -> Result<Parsed, Fault> {
    let (request, frame) = parse_preview(frame)?;
    let (filter, list) = match request {
        PreviewRequest::Entry => (None, None),
        PreviewRequest::Filter { filter, now_ms } => {
            let now_ms = now_ms.unwrap_or_else(|| call.store.now_ms());
            (Some(Filter::parse(&filter, now_ms)?), None)
        }
        PreviewRequest::List(list) => {
            let (list, ..) = value_index::parsed_list(list, call.store.now_ms())?;
            (list.scan.filter.clone(), Some(list))
        }
    };
    let records_max = FRAMES_RECORDS_MAX.max(call.limits.mutations_max);
    let mut writes = parse_writes_apart(frame, 1, &call.limits, records_max)?;
    let write = writes.pop().map(|(write, _)| write).transpose()?;
    let write = write.filter(|write| write.first_key().is_some());
    let write = write.ok_or(Malformed::new("a preview of nothing", 0))?;
    Ok(Parsed { filter, list, write })
}

/// Frame: u8 what follows: nothing (0), the value of `$now` and a filter (8), or a list in an order (1); one write,
/// without checks, of one key. Answer: u8 whether there is an entry, its stamp(20) if so; u8 whether
/// there would be one, if so u8 whether it matches the filter, of a list u8 the flags of its steps and the position of
/// the entry (no bytes if the list does not have it), f64 its expiry, u8 encoding and the value.
pub(super) fn preview(frame: &[u8], call: Call) {
    let patience = call.patience("kv.transaction");
    let parsed = parsed(frame, &call);
    let Some((parsed, Call { store, reply, .. })) = call.parsed(parsed) else { return };
    let Parsed { filter, list, write } = parsed;
    let long = (filter.is_some() || list.is_some()).then(|| patience.clone());
    let bounds = patience.clone();
    let finish = move |(), seen: Result<Preview>| answer(seen?, filter.as_ref(), &bounds);
    let answering = Answering::new(reply, (), finish).within(&patience);
    store.preview(write, list, long, answering);
}

/// A write of checks alone.
fn parsed_checks(frame: &[u8], limits: &Limits) -> Result<AtomicWrite, Fault> {
    let records_max = FRAMES_RECORDS_MAX.max(limits.checks_max.saturating_add(1));
    let write = parse_writes_apart(frame, 1, limits, records_max)?.pop();
    let write = write.map(|(write, _)| write).transpose()?;
    let write = write.filter(|write| write.is_only_checks());
    Ok(write.ok_or(Malformed::new("checks with something else", 0))?)
}

/// Frame: one write of checks alone. Answer: stamp(20) of the last commit of the state in which they were compared, u32 the number of
/// each that does not hold.
pub(super) fn check_reads(frame: &[u8], call: Call) {
    let patience = call.patience("kv.transaction");
    let parsed = parsed_checks(frame, &call.limits);
    let Some((write, Call { store, reply, .. })) = call.parsed(parsed) else { return };
    let long = (!has_few_checks(&write)).then(|| patience.clone());
    let finish = |(), checked: Result<CheckedReads>| {
        let mut out = Vec::new();
        put_checked(&mut out, &checked?);
        Ok(out)
    };
    store.check_reads(write, long, Answering::new(reply, (), finish).within(&patience));
}

/// The same on the thread of a caller, at a time: writes its answer; `Some(false)` if it does not fit. `None` if it may read many
/// entries.
///
/// # Errors
/// Those of the snapshot.
pub fn brief_check_reads(
    frame: &[u8],
    (snapshot, now_ms): (&mut dyn Snapshot, i64),
    out: &mut impl Out,
) -> Result<Option<bool>> {
    let write = parsed_checks(frame, &Limits::default()).ok().filter(has_few_checks);
    let Some(write) = write else { return Ok(None) };
    let checked = checked_in(snapshot, write, now_ms)?;
    let fits = out.has_room(STAMP_BYTES + 4 * checked.failed.len());
    if fits {
        put_checked(out, &checked);
    }
    Ok(Some(fits))
}

fn put_checked(out: &mut impl Out, CheckedReads { at, failed }: &CheckedReads) {
    out.put(&at.hex());
    for number in failed {
        out.put(&(*number as u32).to_le_bytes());
    }
}

fn answer(seen: Preview, filter: Option<&Filter>, patience: &Patience) -> Result<Vec<u8>> {
    let Preview { before, after, expire_at_ms, place } = seen;
    let mut out = vec![u8::from(before.is_some())];
    out.extend(before.iter().flat_map(|stamp| stamp.hex()));
    out.push(u8::from(after.is_some()));
    if let Some(value) = after {
        let goes_on = |_| patience.lasts();
        let met = filter.map_or(Ok(Some(true)), |filter| {
            filter.matches_while(value.encoding, &value.bytes, &goes_on)
        });
        let met = met.map_err(|error| {
            Error::corrupt(format!("a value could not be compared with where: {error}"))
        })?;
        let met = met.ok_or_else(|| patience.check().err().unwrap_or_else(Error::closed))?;
        out.push(u8::from(met));
        if let Some(Place { way, position }) = place {
            let position = position.unwrap_or_default();
            out.push(value_index::flags_of(way, false).byte());
            out.extend((position.len() as u32).to_le_bytes());
            out.extend(position);
        }
        out.extend(expire_at_ms.map_or(f64::NAN, |end| end as f64).to_le_bytes());
        out.push(value.encoding.id());
        out.extend(value.bytes);
    }
    Ok(out)
}
