//! Short reads on the thread of their caller: no other thread has to wake.
//!
//! Invariant: a read here waits for no lock, no other process and no server. After a read that took long, as from a
//! file that is not in memory, the next reads go to the reader thread.

use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::alarm::{Alarm, Wakes};
use super::lane::LaneReader;
use super::reads::{Rows, find};
use super::{MakeReader, Store};
use crate::metrics::Metrics;
use openkv_core::model::{
    Capability, INLINE_KEYS_MAX, INLINE_READ_US_MAX, INLINE_READERS, INLINE_READS_SKIPPED, Key,
    Kind, READER_HELD_MS_MAX, Range, Result, STORE_THREAD_IDLE_MS, Seen,
};
use openkv_engines::{Reader, Snapshot};

/// The readers of a store for reads on the threads of callers.
pub(super) struct InlineReads {
    metrics: Arc<Metrics>,
    readers: [Mutex<LaneReader>; INLINE_READERS],
    /// How many reads go to the reader thread before the next one here.
    skips: AtomicU32,
    /// Whether the snapshots will be released: a read may have begun one since they last were.
    releasing: AtomicBool,
    alarm: Alarm,
}

impl Wakes for InlineReads {
    /// Ends the snapshots after a while, so that a writer can reset the log, and closes readers that had no
    /// read for long.
    fn wake(&self) {
        let has_read = self.releasing.swap(false, Ordering::SeqCst);
        // The reader of a read that is running is left as it is: that read sets the alarm again.
        for mut reader in self.readers.iter().filter_map(Mutex::try_lock) {
            if has_read {
                reader.release();
                self.metrics.cached(reader.take_cache_counts());
            } else {
                reader.rest();
            }
        }
        if has_read {
            self.alarm.set(Some(Instant::now() + Duration::from_millis(STORE_THREAD_IDLE_MS)));
        }
    }
}

impl InlineReads {
    pub(super) fn new(make_reader: MakeReader, metrics: Arc<Metrics>) -> Arc<Self> {
        let readers = std::array::from_fn(|_| Mutex::new(LaneReader::new(make_reader.clone())));
        let skips = AtomicU32::new(0);
        Arc::new_cyclic(|myself: &Weak<Self>| {
            let (releasing, alarm) = (AtomicBool::new(false), Alarm::new(myself.clone()));
            Self { metrics, readers, skips, releasing, alarm }
        })
    }

    /// Closes the readers, unless a read uses one. Returns whether they are closed.
    pub(super) fn park(&self) -> bool {
        let readers = self.readers.iter().map(Mutex::try_lock);
        let Some(readers) = readers.collect::<Option<Vec<_>>>() else { return false };
        readers.into_iter().for_each(|mut reader| reader.rest());
        true
    }

    /// Whether the next read is not for this thread.
    fn skips(&self) -> bool {
        let less = |left: u32| left.checked_sub(1);
        self.skips.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_ok()
    }

    /// Reads with a reader that is free; `None` if there is none.
    fn read(
        &self,
        now_ms: i64,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Option<Result<()>> {
        let mut reader = self.readers.iter().find_map(Mutex::try_lock)?;
        let begun = Instant::now();
        let read = reader.read(now_ms, job);
        if begun.elapsed() > Duration::from_micros(INLINE_READ_US_MAX) {
            self.skips.store(INLINE_READS_SKIPPED, Ordering::Relaxed);
        }
        Some(read)
    }
}

impl Store {
    /// As [`Store::entries`], on this thread. `None` if the read belongs to the reader thread: what was visited does
    /// not count.
    pub fn entries_inline(
        &self,
        keys: &[Key],
        mut visit: impl FnMut(Option<Seen<'_>>),
    ) -> Option<Result<()>> {
        self.run_inline(keys.len(), |snapshot| {
            keys.iter().try_for_each(|key| find(snapshot, key, &mut visit))
        })
    }

    /// As [`Store::read_ranges`], on this thread. `None` if the read belongs to the reader thread, as each list
    /// does: what was visited does not count.
    pub fn ranges_inline(
        &self,
        ranges: &[Range],
        mut visit: impl FnMut(Rows<'_>) -> Result<()>,
    ) -> Option<Result<()>> {
        if !ranges.iter().all(Range::is_point) {
            return None;
        }
        self.run_inline(ranges.len(), |snapshot| {
            ranges.iter().try_for_each(|range| visit(Rows { snapshot: &mut *snapshot, range }))
        })
    }

    /// Reads a number of keys on this thread, if that is short.
    fn run_inline(
        &self,
        keys: usize,
        mut read: impl FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Option<Result<()>> {
        let inline = &self.inline;
        let is_short = keys <= INLINE_KEYS_MAX;
        if !is_short || !self.capabilities.has(Capability::SynchronousReads) || inline.skips() {
            return None;
        }
        let read = inline.read(self.env.now_ms(), &mut read)?;
        if !inline.releasing.swap(true, Ordering::SeqCst) {
            let wait = Duration::from_millis(READER_HELD_MS_MAX);
            inline.alarm.set(Some(Instant::now() + wait));
        }
        match read {
            // The reader thread waits for the other process.
            Err(error) if error.kind() == Kind::Unavailable => None,
            read => Some(read),
        }
    }
}
