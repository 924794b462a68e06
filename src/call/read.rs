//! Points and ranges, all of one snapshot: reads that left the caller's own thread.

use std::time::Instant;

use super::Call;
use super::answering::Answering;
use crate::metrics::Operation;
use crate::model::{Range, Result};
use crate::protocol::frame::Answer;

/// Answers the ranges. A list stops behind the entry with which the answer has come to
/// `page_bytes`, and says that there is more.
pub fn read(ranges: impl AsRef<[Range]> + Send + 'static, page_bytes: usize, call: Call) {
    let Call { store, reply, answer_bytes_max, .. } = call;
    let (metrics, since) = (store.metrics().clone(), Instant::now());
    let all = ranges.as_ref();
    let keys = all.iter().filter(|range| range.is_point()).count();
    let pages = all.len() - keys;
    let answering = Answering::new(reply, Vec::new(), move |out, read: Result<()>| {
        metrics.answered(Operation::Get, keys as u64, read.is_ok(), since);
        metrics.answered(Operation::List, pages as u64, read.is_ok(), since);
        read.map(|()| out)
    });
    store.read_ranges(ranges, answering, move |to, rows| {
        let (mut answer, mut more) = (Answer::new(&mut to.state), false);
        let with_key = !rows.range.is_point();
        rows.visit(|row, is_last| {
            answer.push(&row, with_key);
            more = with_key && !is_last && answer.bytes() >= page_bytes;
            !more
        })?;
        answer.end(more);
        to.holds(answer_bytes_max)
    });
}
