//! Maintenance of the file: checkpoint, statistics, vacuum.

use super::Call;
use super::answering::Answering;
use crate::Failing;
use openkv_core::model::{Result, Stats};
use openkv_wire::protocol::frame::push_error;

/// Answer: u32 pages in the log, u32 moved pages.
pub(super) fn checkpoint(_frame: &[u8], Call { store, reply, .. }: Call) {
    store.checkpoint(move |done| {
        let bytes = |pages: u64| (pages as u32).to_le_bytes();
        reply.tell(done.map(|done| [done.log_pages, done.moved_pages].map(bytes).concat()));
    });
}

/// Frame: u8 whether to count. Answer: u8 whether it was counted, f64 entries, f64 bytes of the
/// database, of the log, of a page, f64 free pages, f64 whether a vacuum has steps, stamp(20) of the last commit;
/// then for each background part that fails, to the end: sized name, f64 since when, error record.
pub(super) fn stats(frame: &[u8], call: Call) {
    let patience = call.patience("kv.stats");
    let Call { store, reply, .. } = call;
    let count = frame.first() == Some(&1);
    let failing = store.failing();
    let finish = move |(), stats: Result<(Stats, Option<u64>)>| {
        let (stats, entries) = stats?;
        let mut out = vec![u8::from(entries.is_some())];
        let sizes = [stats.database_bytes, stats.log_bytes, stats.page_bytes];
        let numbers = [entries.unwrap_or(0)].into_iter().chain(sizes);
        for number in numbers.chain([stats.free_pages, stats.vacuums_in_steps.into()]) {
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
        Ok(out)
    };
    let answering = Answering::new(reply, (), finish).within(&patience);
    store.stats(count.then_some(patience), answering);
}

/// Answer: f64 bytes before, f64 bytes after.
pub(super) fn vacuum(_frame: &[u8], Call { store, reply, busy, .. }: Call) {
    store.vacuum(busy, reply.still_wanted(), move |done| {
        let bytes = |bytes: u64| (bytes as f64).to_le_bytes();
        reply.tell(done.map(|done| [done.before_bytes, done.after_bytes].map(bytes).concat()));
    });
}
