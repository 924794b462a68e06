//! An engine that reads one moment of the past of another engine.

use std::path::Path;
use std::sync::Arc;

use super::memory::MemoryWriter;
use super::{Engine, ExternalWatch, GoesOn, Maintenance, Reader, Snapshot, TellExternal};
use openkv_core::model::{Backup, Capabilities, Error, Result};

/// Makes readers of one moment.
type MakeReader = Arc<dyn Fn() -> Result<Box<dyn Reader>> + Send + Sync>;

/// The entries of a database at one moment, for reading only.
pub struct PastEngine {
    make: MakeReader,
    capabilities: Capabilities,
}

impl PastEngine {
    /// Reads with what `make` makes, from a database with these capabilities.
    #[must_use]
    pub fn new(make: MakeReader, capabilities: Capabilities) -> Self {
        Self { make, capabilities }
    }
}

fn only_reads(what: &str) -> Error {
    let why = "use the database itself";
    Error::unsupported(format!("{what} at a moment of the past: {why}"))
}

impl Maintenance for PastEngine {
    fn backup(&self, _to: &Path, _step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup> {
        Err(only_reads("backup"))
    }

    fn check(&self, _findings_max: usize, _goes_on: &GoesOn) -> Result<Vec<String>> {
        Err(only_reads("check"))
    }
}

impl Engine for PastEngine {
    type Reader = Box<dyn Reader>;
    /// Of any engine: none is made.
    type Writer = MemoryWriter;

    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn reader(&self) -> Result<Box<dyn Reader>> {
        (self.make)()
    }

    fn writer(&self) -> Result<MemoryWriter> {
        Err(only_reads("writing"))
    }

    fn watch_external(&self, _tell: TellExternal) -> Result<Option<ExternalWatch>> {
        Ok(None)
    }
}

impl Reader for Box<dyn Reader> {
    fn read_within(
        &mut self,
        now_ms: i64,
        goes_on: Option<&GoesOn>,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        (**self).read_within(now_ms, goes_on, job)
    }

    fn read_at_hand(
        &mut self,
        now_ms: i64,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        (**self).read_at_hand(now_ms, job)
    }

    fn release(&mut self) {
        (**self).release();
    }

    fn rest(&mut self) {
        (**self).rest();
    }

    fn never_wait(&mut self) -> Result<()> {
        (**self).never_wait()
    }

    fn take_cache_counts(&mut self) -> (u64, u64) {
        (**self).take_cache_counts()
    }
}
