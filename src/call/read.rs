//! Points and ranges, all of one snapshot: reads that left the caller's own thread.

use std::time::Instant;

use super::{Call, too_large};
use crate::codec::frame::Answer;
use crate::metrics::Operation;
use crate::model::{Error, Range};

/// Answers the ranges. A list stops behind the entry with which the answer has come to
/// `page_bytes`, and says that there is more.
pub fn read(ranges: impl AsRef<[Range]> + Send + 'static, page_bytes: usize, call: Call) {
    let Call { store, reply, answer_bytes_max, .. } = call;
    let (metrics, since) = (store.metrics().clone(), Instant::now());
    let all = ranges.as_ref();
    let keys = all.iter().filter(|range| matches!(range, Range::Point(_))).count();
    let pages = all.len() - keys;
    store.read(Box::new(move |snapshot| {
        if !reply.is_wanted() {
            return reply.bad(Error::closed());
        }
        let mut out = Vec::new();
        let read = snapshot.and_then(|snapshot| {
            for range in ranges.as_ref() {
                let mut answer = Answer::new(&mut out);
                let mut more = false;
                match range {
                    Range::Point(key) => {
                        snapshot.get(key.as_bytes(), &mut |row| {
                            answer.push(&row, false);
                        })?;
                    }
                    Range::Span { start, end, limit, .. } if *limit == 0 || start >= end => {}
                    Range::Span { start, end, limit, reverse } => {
                        let (start, end) = (start.as_bytes(), end.as_bytes());
                        snapshot.scan(start, end, *reverse, &mut |row| {
                            answer.push(&row, true);
                            let goes_on = answer.rows() < *limit;
                            more = goes_on && answer.bytes() >= page_bytes;
                            goes_on && !more
                        })?;
                    }
                }
                answer.end(more);
                if out.len() > answer_bytes_max {
                    return Err(too_large(answer_bytes_max));
                }
                reply.holds(out.len())?;
            }
            Ok::<_, Error>(())
        });
        metrics.answered(Operation::Get, keys as u64, read.is_ok(), since);
        metrics.answered(Operation::List, pages as u64, read.is_ok(), since);
        match read {
            Ok(()) => reply.good(out),
            Err(error) => reply.bad(error),
        }
    }));
}
