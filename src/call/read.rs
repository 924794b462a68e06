//! Points and ranges, all of one snapshot: reads that left the caller's own thread.

use std::time::Instant;

use super::job::job;
use super::{Call, too_large};
use crate::metrics::Operation;
use crate::model::{Range, Result};
use crate::protocol::frame::Answer;
use crate::store::{Snapshot, visit_range};

/// Answers the ranges. A list stops behind the entry with which the answer has come to
/// `page_bytes`, and says that there is more.
pub fn read(ranges: impl AsRef<[Range]> + Send + 'static, page_bytes: usize, call: Call) {
    let Call { store, reply, answer_bytes_max, .. } = call;
    let (metrics, since) = (store.metrics().clone(), Instant::now());
    let all = ranges.as_ref();
    let keys = all.iter().filter(|range| range.is_point()).count();
    let pages = all.len() - keys;
    store.read(job(reply, move |reply, snapshot| {
        let mut holds = |bytes| {
            if bytes > answer_bytes_max {
                return Err(too_large(answer_bytes_max));
            }
            reply.holds(bytes)
        };
        let read = snapshot
            .and_then(|snapshot| answers(snapshot, ranges.as_ref(), page_bytes, &mut holds));
        metrics.answered(Operation::Get, keys as u64, read.is_ok(), since);
        metrics.answered(Operation::List, pages as u64, read.is_ok(), since);
        match read {
            Ok(out) => reply.good(out),
            Err(error) => reply.bad(error),
        }
    }));
}

/// The answers of the ranges; `holds` is asked behind each for the bytes so far.
fn answers(
    snapshot: &mut dyn Snapshot,
    ranges: &[Range],
    page_bytes: usize,
    holds: &mut dyn FnMut(usize) -> Result<()>,
) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    for range in ranges {
        let (mut answer, mut more) = (Answer::new(&mut out), false);
        let with_key = !range.is_point();
        visit_range(snapshot, range, |row, is_last| {
            answer.push(&row, with_key);
            more = with_key && !is_last && answer.bytes() >= page_bytes;
            !more
        })?;
        answer.end(more);
        holds(out.len())?;
    }
    Ok(out)
}
