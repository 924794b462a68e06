//! Value indexes: made, listed, read in their order; explanations of lists.

use super::answering::Answering;
use super::scan::{has_short_filter, put};
use super::{Call, Fault};
use crate::{OrderWay, OrderedPage, OrderedScan, Scan, Store};
use openkv_core::codec::key;
use openkv_core::index::{Explanation, parse_paths};
use openkv_core::model::{Result, ValueIndexInfo};
use openkv_engines::Snapshot;
use openkv_wire::protocol::frame::{
    OrderedRequest, Out, StepFlags, frame_of, parse_ordered, parse_value_index, push_explanation,
    push_value_indexes, put_scan_answer, scan_answer,
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

/// The list of a frame, the request, and the value of `$now` in it, which is the current time unless the request has one.
pub(super) fn parsed_list(
    frame: &[u8],
    now_ms: i64,
) -> Result<(OrderedScan, OrderedRequest, i64), Fault> {
    let mut request = parse_ordered(frame)?;
    let (list, now_ms) = list_of(&mut request, now_ms)?;
    Ok((list, request, now_ms))
}

/// The list of a request, whose bounds it takes, and the value of `$now` in it.
fn list_of(request: &mut OrderedRequest, now_ms: i64) -> Result<(OrderedScan, i64)> {
    let now_ms = request.scan.now_ms.unwrap_or(now_ms);
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
    Ok((OrderedScan { scan, order, sort, after }, now_ms))
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
    let parsed = parsed_list(frame, call.store.now_ms());
    let Some(((list, request, now_ms), Call { store, reply, .. })) = call.parsed(parsed) else {
        return;
    };
    let limit = request.scan.limit;
    let finish = move |(), page: Result<OrderedPage>| {
        let page = page?;
        let (flags, bound, rows) = parts_of(&page, &request);
        Ok(scan_answer(flags, now_ms, bound, page.entries.len() as u32, &rows))
    };
    let answering = Answering::new(reply, (), finish).within(&patience);
    store.ordered(list, limit, patience, answering);
}

/// The flags, the bound and the rows of the answer.
fn parts_of<'p>(page: &'p OrderedPage, request: &OrderedRequest) -> (StepFlags, &'p [u8], Vec<u8>) {
    let mut rows = Vec::new();
    for entry in &page.entries {
        put(&mut rows, &request.scan, &entry.seen(), !entry.is_passed);
        rows.extend_from_slice(&(entry.position.len() as u32).to_le_bytes());
        rows.extend_from_slice(&entry.position);
    }
    (flags_of(page.way, page.next.is_none()), page.next.as_deref().unwrap_or_default(), rows)
}

/// One page on the thread of a caller, at a time: writes its answer; `Some(false)` if it does not fit. `None` if no index
/// has the order, or not within the bounds of [`brief_scan`](super::brief_scan).
///
/// # Errors
/// `Invalid` for the request; those of the page.
pub fn brief_ordered(
    request: &mut OrderedRequest,
    (snapshot, now_ms): (&mut dyn Snapshot, i64),
    out: &mut impl Out,
) -> Result<Option<bool>> {
    if !has_short_filter(&request.scan) {
        return Ok(None);
    }
    let limit = request.scan.limit;
    let (list, now_ms) = list_of(request, now_ms)?;
    let Some(page) = list.brief_page(snapshot, limit)? else { return Ok(None) };
    let (flags, bound, rows) = parts_of(&page, request);
    let count = page.entries.len() as u32;
    Ok(Some(put_scan_answer(out, flags, now_ms, bound, (count, &rows))))
}

/// Whether the store has the order of the list of such a frame, or of one that is explained; of a list in the order of
/// keys it has.
pub fn has_order(frame: &[u8], store: &Store, then: impl FnOnce(Result<bool>) + Send + 'static) {
    match parsed_list(frame, store.now_ms()) {
        Ok((list, ..)) if !list.order.is_empty() => store.has_order(list, then),
        // The error is that of the list.
        Ok(_) | Err(_) => then(Ok(true)),
    }
}

/// Frame: as that of an ordered list, where no path is the order of keys, and a limit of 0 is none. Answer: the
/// explanation.
pub(super) fn explain(frame: &[u8], call: Call) {
    let patience = call.patience("kv.explain");
    let parsed = parsed_list(frame, call.store.now_ms());
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
