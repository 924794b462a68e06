//! Maintenance of the file: checkpoint, statistics, vacuum.

use std::sync::Arc;
use std::time::Instant;

use super::Call;
use super::job::job;
use super::scan::count_all;
use crate::model::Error;
use crate::protocol::frame::push_error;
use crate::store::Failing;

/// Answer: u32 pages in the log, u32 moved pages.
pub(super) fn checkpoint(_frame: &[u8], Call { store, reply, .. }: Call) {
    store.run_on_writer(Box::new(move |writer| {
        match writer.and_then(|writer| writer.checkpoint()) {
            Ok(done) => {
                let numbers =
                    [done.log_pages, done.moved_pages].map(|pages| (pages as u32).to_le_bytes());
                reply.good(numbers.concat());
            }
            Err(error) => reply.bad(error),
        }
    }));
}

/// Frame: u8 whether to count. Answer: u8 whether it was counted, f64 entries, f64 bytes of the
/// database, of the log, of a page, f64 free pages, stamp(20) of the last commit; then for each
/// background part that fails, to the end: sized name, f64 since when, error record.
pub(super) fn stats(frame: &[u8], call: Call) {
    let patience = call.patience("kv.stats");
    let Call { store, reply, .. } = call;
    let count = frame.first() == Some(&1);
    let later = Arc::downgrade(&store);
    store.read(job(reply, move |reply, snapshot| {
        let stats = match snapshot.and_then(|snapshot| snapshot.stats()) {
            Ok(stats) => stats,
            Err(error) => return reply.bad(error),
        };
        let failing = later.upgrade().map_or_else(Vec::new, |store| store.failing());
        let tell = move |entries: Option<u64>| {
            let mut out = vec![u8::from(entries.is_some())];
            let sizes = [stats.database_bytes, stats.log_bytes, stats.page_bytes];
            let numbers = [entries.unwrap_or(0)].into_iter().chain(sizes);
            for number in numbers.chain([stats.free_pages]) {
                out.extend((number as f64).to_le_bytes());
            }
            out.extend(stats.stamp.hex());
            for Failing { part, error, since_ms } in &failing {
                let name = part.name().as_bytes();
                out.extend((name.len() as u32).to_le_bytes());
                out.extend(name);
                out.extend((*since_ms as f64).to_le_bytes());
                push_error(&mut out, error);
            }
            out
        };
        match later.upgrade() {
            _ if !count => reply.good(tell(None)),
            Some(store) => {
                count_all(&store, patience, reply, Box::new(move |count| tell(Some(count))))
            }
            None => reply.bad(Error::closed()),
        }
    }));
}

/// Answer: f64 bytes before, f64 bytes after.
pub(super) fn vacuum(_frame: &[u8], Call { store, reply, busy, .. }: Call) {
    let wanted = reply.still_wanted();
    store.run_on_writer(Box::new(move |writer| {
        match writer.and_then(|writer| writer.vacuum(Instant::now() + busy, &wanted)) {
            Ok(done) => {
                let sizes = [done.before_bytes, done.after_bytes];
                reply.good(sizes.map(|bytes| (bytes as f64).to_le_bytes()).concat());
            }
            Err(error) => reply.bad(error),
        }
    }));
}
