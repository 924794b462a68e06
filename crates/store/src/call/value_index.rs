//! Value indexes: made, listed, read in their order; explanations of lists.

use super::answering::Answering;
use super::scan::put;
use super::{Call, Fault};
use crate::{OrderWay, OrderedPage, OrderedScan, Scan, Store};
use openkv_core::codec::key;
use openkv_core::index::{Explanation, parse_paths};
use openkv_core::model::{Result, ValueIndexInfo};
use openkv_wire::protocol::frame::{
    OrderedRequest, StepFlags, frame_of, parse_ordered, parse_value_index, push_explanation,
    push_value_indexes, scan_answer,
};

/// Frame: the description. Answer: the one index.
pub(super) fn create(frame: &[u8], call: Call) {
    let parsed = parse_value_index(frame);
    // `listIndexes` shows the prefix to every client.
    let parsed =
        parsed.and_then(|request| key::validate(request.spec.prefix.as_bytes()).map(|()| request));
    let Some((request, Call { store, reply, .. })) = call.parsed(parsed) else { return };
    store.create_value_index(request, move |made| {
        reply.tell(made.map(|index| pushed(&[index])));
    });
}

fn pushed(indexes: &[ValueIndexInfo]) -> Vec<u8> {
    frame_of(|out| push_value_indexes(out, indexes))
}

/// No frame. Answer: the indexes.
pub(super) fn list(_frame: &[u8], Call { store, reply, .. }: Call) {
    let finish = |(), indexes: Result<Vec<_>>| Ok(pushed(&indexes?));
    store.value_indexes(Answering::new(reply, (), finish));
}

/// The list of a frame, the request, and the value of `$now` in it.
pub(super) fn parsed_list(
    frame: &[u8],
    store: &Store,
) -> Result<(OrderedScan, OrderedRequest, i64), Fault> {
    let mut request = parse_ordered(frame)?;
    let now_ms = request.scan.now_ms.unwrap_or_else(|| store.now_ms());
    // The reverse of an order is the order of each path in reverse.
    for path in &mut request.order {
        path.descending ^= request.scan.reverse;
    }
    if !request.order.is_empty() {
        parse_paths(&request.order)?;
    }
    let scan = Scan::of(&mut request.scan, now_ms)?;
    // Without an order it is explained as a list in the order of keys.
    let scan = match request.order.is_empty() {
        true => scan,
        false => Scan { reverse: false, ..scan }.whole_keys()?,
    };
    let (order, sort, after) = (request.order.clone(), request.sort, request.after.clone());
    Ok((OrderedScan { scan, order, sort, after }, request, now_ms))
}

/// What the answer says about a list in an order.
pub(super) fn flags_of(way: OrderWay, done: bool) -> StepFlags {
    let flags = StepFlags { done, ..StepFlags::default() };
    match way {
        OrderWay::Indexed { reverse } => StepFlags { indexed: true, descends: reverse, ..flags },
        OrderWay::Sorted { by_index } => StepFlags { sorted: true, indexed: by_index, ..flags },
    }
}

/// One page. Answer: as that of a scan, where the bound is the position of the next page, and behind each row
/// is its position.
pub(super) fn ordered(frame: &[u8], call: Call) {
    let patience = call.patience("kv.list");
    let parsed = parsed_list(frame, &call.store);
    let Some(((list, request, now_ms), Call { store, reply, .. })) = call.parsed(parsed) else {
        return;
    };
    let limit = request.scan.limit;
    let finish = move |(), page: Result<OrderedPage>| {
        let OrderedPage { entries, next, way, .. } = page?;
        let mut rows = Vec::new();
        for entry in &entries {
            put(&mut rows, &request.scan, &entry.seen(), !entry.is_passed);
            rows.extend_from_slice(&(entry.position.len() as u32).to_le_bytes());
            rows.extend_from_slice(&entry.position);
        }
        let bound = next.as_deref().unwrap_or_default();
        let flags = flags_of(way, next.is_none());
        Ok(scan_answer(flags, now_ms, bound, entries.len() as u32, &rows))
    };
    let answering = Answering::new(reply, (), finish).within(&patience);
    store.ordered(list, limit, patience, answering);
}

/// Whether the store has the order of the list of such a frame, or of one that is explained; of a list in the order of
/// keys it has.
pub fn has_order(frame: &[u8], store: &Store, then: impl FnOnce(Result<bool>) + Send + 'static) {
    match parsed_list(frame, store) {
        Ok((list, ..)) if !list.order.is_empty() => store.has_order(list, then),
        // The error is that of the list.
        Ok(_) | Err(_) => then(Ok(true)),
    }
}

/// Frame: as that of an ordered list, where no path is the order of keys, and a limit of 0 is none. Answer: the
/// explanation.
pub(super) fn explain(frame: &[u8], call: Call) {
    let patience = call.patience("kv.explain");
    let parsed = parsed_list(frame, &call.store);
    let Some(((mut list, request, _), Call { store, reply, .. })) = call.parsed(parsed) else {
        return;
    };
    list.scan.passed = false;
    let limit = match request.scan.limit {
        0 => usize::MAX,
        limit => limit,
    };
    let finish = |(), explained: Result<Explanation>| {
        let explained = explained?;
        Ok(frame_of(|out| push_explanation(out, &explained)))
    };
    let answering = Answering::new(reply, (), finish).within(&patience);
    store.explain(list, limit, patience, answering);
}
