//! The result of a write that is not committed: a transaction reads its own writes.

use super::answering::Answering;
use super::{Call, Fault, value_index};
use crate::{OrderedScan, Patience, Place, Preview};
use openkv_core::codec::Malformed;
use openkv_core::filter::Filter;
use openkv_core::model::{AtomicWrite, Error, FRAMES_RECORDS_MAX, Result};
use openkv_wire::protocol::frame::{PreviewRequest, parse_preview, parse_writes_apart};

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
