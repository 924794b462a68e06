//! A walk over a range in one snapshot, however long its visitor takes.

use std::sync::Arc;

use super::{Caller, MakeReader, Patience, Store, on_thread};
use openkv_core::model::{Result, Seen, Step, Walk};
use openkv_engines::GoesOn;

impl Store {
    /// Visits the entries from `start` (included) to `end` (excluded) in one snapshot, in order, until
    /// `visit` answers `false`. The walk has a thread and a reader of its own, so `visit` may wait.
    /// Meanwhile the log of a file cannot be reset, so the walk ends once the log is too long, which `visit`
    /// learns from `patience` while it waits.
    pub fn long_walk<C: Caller<()>>(
        &self,
        (start, end): (Vec<u8>, Vec<u8>),
        patience: Arc<Patience>,
        caller: C,
        mut visit: impl FnMut(&mut C, &Seen<'_>) -> bool + Send + 'static,
    ) {
        let (make_reader, now_ms) = (self.make_reader.clone(), self.env.now_ms());
        let keeper = self.log_keeper();
        let walk = move |mut caller: C| {
            let bounds = (start.as_slice(), end.as_slice());
            let begun = caller.check().and_then(|()| patience.keep_log(keeper));
            let walked = begun.and_then(|()| {
                let visit = &mut |seen: Seen<'_>| visit(&mut caller, &seen);
                walk(&make_reader, now_ms, bounds, &patience, visit)
            });
            caller.end(walked);
        };
        on_thread("openkv-walk", caller, walk, |caller, error| caller.end(Err(error)));
    }
}

fn walk(
    make_reader: &MakeReader,
    now_ms: i64,
    (start, end): (&[u8], &[u8]),
    patience: &Arc<Patience>,
    visit: &mut dyn FnMut(Seen<'_>) -> bool,
) -> Result<()> {
    let caller = patience.clone();
    let goes_on: GoesOn = Arc::new(move || caller.lasts());
    let walked = make_reader()?.read_while(now_ms, &goes_on, &mut |snapshot| {
        let walk = Walk { start, end, reverse: false, values: true };
        snapshot.walk(walk, &mut |seen| if visit(seen) { Step::Next } else { Step::Stop })
    });
    // The error of a call that was interrupted says less.
    patience.check().and(walked)
}
