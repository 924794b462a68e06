//! Reads: points and ranges, all of one snapshot.

use std::sync::Arc;

use super::{call, malformed};
use crate::answer::{Answer, Refusal};
use crate::database::Database;
use openkv_core::model::{FRAMES_PAGE_BYTES, FRAMES_RANGES_MAX, FRAMES_ROWS_MAX, Limits, Range};
use openkv_store::call::read_inline;
use openkv_wire::protocol::extension::split_count;
use openkv_wire::protocol::frame::parse_ranges;

/// Answers `read`.
pub(super) async fn read(
    database: &Arc<Database>,
    body: &[u8],
    kinds: u8,
) -> Result<Answer, Refusal> {
    let (count, frame) = split_count(body).map_err(malformed)?;
    if count > FRAMES_RANGES_MAX {
        return Err(over("ranges", FRAMES_RANGES_MAX, count));
    }
    let ranges = parse_ranges(frame, count).map_err(malformed)?;
    let rows = ranges.iter().map(rows_of).fold(0_usize, usize::saturating_add);
    if rows > FRAMES_ROWS_MAX {
        return Err(over("entries", FRAMES_ROWS_MAX, rows));
    }
    let ranges: Arc<[Range]> = ranges.into();
    let read = |call| {
        if let Some(call) = read_inline(&ranges, FRAMES_PAGE_BYTES, call) {
            openkv_store::call::read(ranges.clone(), FRAMES_PAGE_BYTES, call);
        }
    };
    call::ask(database, Limits::wide(), kinds, read).await
}

fn rows_of(range: &Range) -> usize {
    match range {
        Range::Point(_) => 1,
        Range::Span { limit, .. } => *limit,
    }
}

fn over(what: &str, max: usize, given: usize) -> Refusal {
    Refusal::bad_request(format!("A read has too many {what} (max {max}): {given} given"))
}
