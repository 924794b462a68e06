//! Short reads on the thread of their caller: no other thread has to wake.
//!
//! Invariant: a read here waits for no lock, no other process and no server. After a read that took long, as from a
//! file that is not in memory, the next reads go to the reader thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::reads::{Rows, find};
use super::{MakeReader, Store};
use crate::metrics::Metrics;
use openkv_core::model::{
    Capability, IMMEDIATE_KEYS_MAX, IMMEDIATE_READ_US_MAX, IMMEDIATE_READERS,
    IMMEDIATE_READS_SKIPPED, Key, Kind, READER_HELD_MS_MAX, Range, Result, Seen,
};
use openkv_engines::{Reader, Snapshot};

/// The readers of a store for reads on the threads of callers.
pub(super) struct Immediate {
    make_reader: MakeReader,
    metrics: Arc<Metrics>,
    /// Opened by the first read.
    readers: [Mutex<Option<Box<dyn Reader>>>; IMMEDIATE_READERS],
    /// How many reads go to the reader thread before the next one here.
    skips: AtomicU32,
    /// Whether a job will release the snapshots.
    releasing: AtomicBool,
}

impl Immediate {
    pub(super) fn new(make_reader: MakeReader, metrics: Arc<Metrics>) -> Arc<Self> {
        let (readers, skips) = (Default::default(), AtomicU32::new(0));
        let releasing = AtomicBool::new(false);
        Arc::new(Self { make_reader, metrics, readers, skips, releasing })
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
        let reader = match &mut *reader {
            Some(reader) => reader,
            none => {
                let mut reader = (self.make_reader)().ok()?;
                reader.never_wait().ok()?;
                none.insert(reader)
            }
        };
        let begun = Instant::now();
        let read = reader.read(now_ms, job);
        if begun.elapsed() > Duration::from_micros(IMMEDIATE_READ_US_MAX) {
            self.skips.store(IMMEDIATE_READS_SKIPPED, Ordering::Relaxed);
        }
        Some(read)
    }

    /// Ends the snapshots, so that a writer can reset the log.
    fn release(&self) {
        self.releasing.store(false, Ordering::SeqCst);
        for reader in &self.readers {
            if let Some(reader) = &mut *reader.lock() {
                reader.release();
                self.metrics.cached(reader.take_cache_counts());
            }
        }
    }
}

impl Store {
    /// As [`Store::entries`], on this thread. `None` if the read belongs to the reader thread: what was visited does
    /// not count.
    pub fn entries_immediately(
        &self,
        keys: &[Key],
        mut visit: impl FnMut(Option<Seen<'_>>),
    ) -> Option<Result<()>> {
        self.immediately(keys.len(), |snapshot| {
            keys.iter().try_for_each(|key| find(snapshot, key, &mut visit))
        })
    }

    /// As [`Store::read_ranges`], on this thread. `None` if the read belongs to the reader thread, as each list
    /// does: what was visited does not count.
    pub fn ranges_immediately(
        &self,
        ranges: &[Range],
        mut visit: impl FnMut(Rows<'_>) -> Result<()>,
    ) -> Option<Result<()>> {
        if !ranges.iter().all(Range::is_point) {
            return None;
        }
        self.immediately(ranges.len(), |snapshot| {
            ranges.iter().try_for_each(|range| visit(Rows { snapshot: &mut *snapshot, range }))
        })
    }

    /// Reads a number of keys on this thread, if that is short.
    fn immediately(
        &self,
        keys: usize,
        mut read: impl FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Option<Result<()>> {
        let immediate = &self.immediate;
        let is_short = keys <= IMMEDIATE_KEYS_MAX;
        if !is_short || !self.capabilities.has(Capability::SynchronousReads) || immediate.skips() {
            return None;
        }
        let read = immediate.read(self.env.now_ms(), &mut read)?;
        if !immediate.releasing.swap(true, Ordering::SeqCst) {
            let immediate = immediate.clone();
            let wait = Duration::from_millis(READER_HELD_MS_MAX);
            self.reads.send_after(wait, self.env.clone(), Box::new(move |_| immediate.release()));
        }
        match read {
            // The reader thread waits for the other process.
            Err(error) if error.kind() == Kind::Unavailable => None,
            read => Some(read),
        }
    }
}
