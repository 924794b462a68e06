//! Reads of a database, each from one snapshot of the server.

use std::sync::Arc;

use super::Shared;
use super::history::PastSnapshot;
use super::snapshot::PostgresSnapshot;
use crate::{GoesOn, Reader, Snapshot};
use openkv_core::model::{BEFORE_EXPIRY_MS, Error, Kind, Moment, Result};

/// Reads from a database.
pub struct PostgresReader {
    shared: Arc<Shared>,
    /// The moment of the past that it reads.
    moment: Option<Moment>,
    /// Whether it may wait for the server.
    waits: bool,
}

impl PostgresReader {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, moment: None, waits: true }
    }

    /// A reader of a moment of the past.
    pub(super) fn at(shared: Arc<Shared>, moment: Moment) -> Self {
        Self { shared, moment: Some(moment), waits: true }
    }
}

impl Reader for PostgresReader {
    fn read_within(
        &mut self,
        now_ms: i64,
        goes_on: Option<&GoesOn>,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        if !self.waits {
            return Err(Error::new(Kind::Unavailable, "the database is behind a network"));
        }
        if let Some(moment) = self.moment {
            let mut snapshot = PastSnapshot::new(self.shared.clone(), moment, goes_on.cloned());
            let done = job(&mut snapshot).and_then(|()| snapshot.check());
            snapshot.end();
            return done;
        }
        let now_ms = match now_ms {
            BEFORE_EXPIRY_MS => Some(BEFORE_EXPIRY_MS),
            now_ms => self.shared.time.of_tests(now_ms),
        };
        let mut snapshot = PostgresSnapshot::new(self.shared.clone(), now_ms, goes_on.cloned());
        let done = job(&mut snapshot);
        snapshot.end();
        done
    }

    fn never_wait(&mut self) -> Result<()> {
        self.waits = false;
        Ok(())
    }
}
