//! Points and ranges, all of one snapshot: reads that left the caller's own thread.

use std::time::Instant;

use super::answering::Answering;
use super::{Call, too_large};
use crate::Rows;
use crate::metrics::{Metrics, Operation, Subject};
use openkv_core::model::{Range, Result};
use openkv_wire::protocol::frame::Answer;

/// Answers the ranges. A list stops behind the entry with which the answer has come to
/// `page_bytes`, and says that there is more.
pub fn read(ranges: impl AsRef<[Range]> + Send + 'static, page_bytes: usize, call: Call) {
    let Call { store, reply, answer_bytes_max, .. } = call;
    let (metrics, counts) = (store.metrics().clone(), ReadCounts::of(ranges.as_ref()));
    let answering = Answering::new(reply, Vec::new(), move |out, read: Result<()>| {
        counts.count(&metrics, read.is_ok());
        read.map(|()| out)
    });
    store.read_ranges(ranges, answering, move |to, rows| {
        push(&mut to.state, rows, page_bytes)?;
        to.holds(answer_bytes_max)
    });
}

/// As [`read`], on this thread. Gives the call back if the read belongs to the reader thread.
#[must_use]
pub fn read_inline(ranges: &[Range], page_bytes: usize, call: Call) -> Option<Call> {
    let (mut out, counts) = (Vec::new(), ReadCounts::of(ranges));
    let read = call.store.ranges_inline(ranges, |rows| {
        push(&mut out, rows, page_bytes)?;
        let bytes_max = call.answer_bytes_max;
        if out.len() > bytes_max { Err(too_large(bytes_max)) } else { call.reply.holds(out.len()) }
    });
    let Some(read) = read else { return Some(call) };
    counts.count(call.store.metrics(), read.is_ok());
    call.reply.tell(read.map(|()| out));
    None
}

/// Appends the rows of a range to an answer.
fn push(out: &mut Vec<u8>, rows: Rows<'_>, page_bytes: usize) -> Result<()> {
    let (mut answer, mut more) = (Answer::new(out), false);
    let with_key = !rows.range.is_point();
    rows.visit(|row, is_last| {
        answer.push(&row, with_key);
        more = with_key && !is_last && answer.bytes() >= page_bytes;
        !more
    })?;
    answer.end(more);
    Ok(())
}

/// What a read is counted as.
struct ReadCounts {
    keys: u64,
    pages: u64,
    since: Instant,
    /// What the first range is about.
    subject: Subject,
}

impl ReadCounts {
    fn of(ranges: &[Range]) -> Self {
        let keys = ranges.iter().filter(|range| range.is_point()).count() as u64;
        let subject = ranges.first().map_or(Subject::NONE, Subject::range);
        Self { keys, pages: ranges.len() as u64 - keys, since: Instant::now(), subject }
    }

    fn count(&self, metrics: &Metrics, is_ok: bool) {
        metrics.answered(Operation::Get, (self.keys, is_ok), self.since, || self.subject);
        metrics.answered(Operation::List, (self.pages, is_ok), self.since, || self.subject);
    }
}
