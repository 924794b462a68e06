//! Reads from the local copy, once it is known to be current; or at once, where the caller does not need that.

use std::sync::Arc;

use super::Local;
use super::lead::Lead;
use crate::sqlite::SqliteReader;
use crate::{GoesOn, Reader, Snapshot};
use openkv_core::model::Result;

/// A reader of a database in an object store.
pub struct BucketReader {
    inner: SqliteReader,
    waits: bool,
    lead: Arc<Lead>,
    // Dropped after the connection above.
    _local: Arc<Local>,
}

impl BucketReader {
    pub(super) fn new(inner: SqliteReader, lead: Arc<Lead>, local: Arc<Local>) -> Self {
        Self { inner, waits: true, lead, _local: local }
    }
}

impl Reader for BucketReader {
    fn read_within(
        &mut self,
        now_ms: i64,
        goes_on: Option<&GoesOn>,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        self.lead.fresh(self.waits)?;
        self.inner.read_within(now_ms, goes_on, job)
    }

    fn read_at_hand(
        &mut self,
        now_ms: i64,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        self.inner.read(now_ms, job)
    }

    fn release(&mut self) {
        self.inner.release();
    }

    fn never_wait(&mut self) -> Result<()> {
        self.waits = false;
        self.inner.never_wait()
    }

    fn take_cache_counts(&mut self) -> (u64, u64) {
        self.inner.take_cache_counts()
    }
}
