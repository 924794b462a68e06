//! The reader of a thread that must not wait: it is open only while there are reads.
//!
//! Invariant: it opens its connection in its first read, and again in the first after [`Reader::rest`]. So a
//! handle without reads holds none.

use super::MakeReader;
use super::rested_memory::one_rests;
use openkv_core::model::Result;
use openkv_engines::{GoesOn, Reader, Snapshot};

pub(super) struct LaneReader {
    // Closed before the engine may be.
    open: Option<Box<dyn Reader>>,
    /// Makes readers that never wait.
    make_reader: MakeReader,
}

impl LaneReader {
    pub(super) fn new(make_reader: MakeReader) -> Self {
        Self { make_reader, open: None }
    }

    fn open(&mut self) -> Result<&mut Box<dyn Reader>> {
        match &mut self.open {
            Some(reader) => Ok(reader),
            none => Ok(none.insert((self.make_reader)()?)),
        }
    }
}

impl Reader for LaneReader {
    fn read_within(
        &mut self,
        now_ms: i64,
        goes_on: Option<&GoesOn>,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        self.open()?.read_within(now_ms, goes_on, job)
    }

    fn release(&mut self) {
        if let Some(reader) = &mut self.open {
            reader.release();
        }
    }

    fn rest(&mut self) {
        if self.open.take().is_some() {
            one_rests();
        }
    }

    fn take_cache_counts(&mut self) -> (u64, u64) {
        self.open.as_mut().map_or((0, 0), |reader| reader.take_cache_counts())
    }
}
