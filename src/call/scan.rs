//! Scans with a filter, a depth, expiry times or without values; counts; entries with their expiry.

use std::sync::Arc;

use super::job::{answer, answer_within};
use super::{Call, Fault, Reply, too_large};
use crate::filter::Filter;
use crate::model::{Error, Result, Row, Seen, Step, Walk};
use crate::protocol::frame::{ScanRequest, next_key, parse_scan, put_absent, put_passed, put_seen};
use crate::store::{Patience, ReadJob, Scan, Store};

/// The scan of a frame, the request, and the value of `$now` in it.
fn asked(frame: &[u8], store: &Store) -> Result<(Scan, ScanRequest, i64), Fault> {
    let request = parse_scan(frame)?;
    let now_ms = request.now_ms.unwrap_or_else(|| store.now_ms());
    let filter = request.filter.as_deref().map(|bytes| Filter::parse(bytes, now_ms)).transpose()?;
    let scan = Scan {
        start: request.start.as_bytes().to_vec(),
        end: request.end.as_bytes().to_vec(),
        reverse: request.reverse,
        values: !request.keys_only,
        depth: request.depth,
        filter,
        passed: request.passed,
    };
    Ok((scan, request, now_ms))
}

/// One step. Answer: u8 whether the scan is complete, f64 the value of `$now`, u32 length and bytes of
/// the bound of the next step (its start; in reverse, its end), u32 number of rows, rows.
pub(super) fn scan(frame: &[u8], call: Call) {
    let patience = call.patience("kv.list");
    let Call { store, reply, .. } = call;
    let (mut scan, request, now_ms) = match asked(frame, &store) {
        Ok(asked) => asked,
        Err(error) => return reply.bad(error),
    };
    // Without a filter a step is a page.
    let (is_long, bounds) = (scan.filter.is_some(), patience.clone());
    answer_within(&store, (patience, is_long), reply, move |snapshot, _| {
        let mut rows = Vec::new();
        let mut count: u32 = 0;
        let keys_only = request.keys_only;
        let done = scan.step(snapshot, request.limit, &bounds, &mut |seen, chosen| {
            count += 1;
            if !chosen {
                let (key, stamp) = (seen.row.key, seen.row.stamp);
                return put_passed(&mut rows, key, stamp, request.with_expiry);
            }
            let value = if keys_only { &[] } else { seen.row.value };
            let seen = Seen { row: Row { value, ..seen.row }, ..*seen };
            put_seen(&mut rows, &seen, request.with_expiry);
        })?;
        let bound = if scan.reverse { &scan.end } else { &scan.start };
        let head = [
            &[u8::from(done)][..],
            &(now_ms as f64).to_le_bytes(),
            &(bound.len() as u32).to_le_bytes(),
            bound,
            &count.to_le_bytes(),
        ];
        let mut answer = head.concat();
        answer.append(&mut rows);
        Ok(answer)
    });
}

/// Frame: a scan without limit. Answer: f64 the number of entries.
pub(super) fn count(frame: &[u8], call: Call) {
    let patience = call.patience("kv.count");
    let Call { store, reply, .. } = call;
    match asked(frame, &store) {
        Ok((scan, _, _)) => {
            let scan = Scan { values: false, passed: false, ..scan };
            let tell = |count| (count as f64).to_le_bytes().to_vec();
            Count { scan, count: 0, patience, reply, tell: Box::new(tell) }.go_on(&store);
        }
        Err(error) => reply.bad(error),
    }
}

/// Counts all entries; `tell` makes the answer.
pub(super) fn count_all(store: &Arc<Store>, patience: Arc<Patience>, reply: Reply, tell: Tell) {
    let scan = Scan {
        start: Vec::new(),
        end: BEHIND_ALL_KEYS.to_vec(),
        reverse: false,
        values: false,
        depth: None,
        filter: None,
        passed: false,
    };
    Count { scan, count: 0, patience, reply, tell }.go_on(store);
}

/// The answer of a count.
type Tell = Box<dyn FnOnce(u64) -> Vec<u8> + Send>;

/// No part of a key begins with it.
const BEHIND_ALL_KEYS: [u8; 1] = [0xff];

/// A count under way.
struct Count {
    scan: Scan,
    count: u64,
    patience: Arc<Patience>,
    reply: Reply,
    tell: Tell,
}

impl Count {
    /// Does one step, and queues the next one behind the reads that wait by then.
    fn go_on(self, store: &Arc<Store>) {
        let (later, patience) = (Arc::downgrade(store), self.patience.clone());
        let job: ReadJob = Box::new(move |snapshot| {
            let mut this = self;
            let bounds = this.patience.clone();
            let done = bounds.check().and(snapshot).and_then(|snapshot| {
                let Self { scan, count, .. } = &mut this;
                scan.step(snapshot, usize::MAX, &bounds, &mut |_, _| *count += 1)
            });
            match (done, later.upgrade()) {
                (Ok(true), _) => this.reply.good((this.tell)(this.count)),
                (Ok(false), Some(store)) => this.go_on(&store),
                (Ok(false), None) => this.reply.bad(Error::closed()),
                (Err(error), _) => this.reply.bad(Fault::of_long(&bounds, error)),
            }
        });
        store.read_long(patience, job);
    }
}

/// Frame: keys, each behind its length. Answer: a row for each, without its key and with its expiry; the
/// row of an absent entry has no encoding (0).
pub(super) fn entries(frame: &[u8], Call { store, reply, answer_bytes_max, .. }: Call) {
    let frame = frame.to_vec();
    answer(&store, reply, move |snapshot, reply| {
        let mut rows = Vec::new();
        let mut rest = frame.as_slice();
        while let Some((key, after)) = next_key(rest) {
            if rows.len() > answer_bytes_max {
                return Err(too_large(answer_bytes_max));
            }
            reply.holds(rows.len())?;
            rest = after;
            let end = [key, &[0]].concat();
            let walk = Walk { start: key, end: &end, reverse: false, values: true };
            let mut found = false;
            snapshot.walk(walk, &mut |seen| {
                found = true;
                let row = Row { key: &[], ..seen.row };
                put_seen(&mut rows, &Seen { row, ..seen }, true);
                Step::Stop
            })?;
            if !found {
                put_absent(&mut rows);
            }
        }
        Ok(rows)
    });
}
