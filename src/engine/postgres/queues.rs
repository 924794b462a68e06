//! Queues as a snapshot and the timers see them.

use super::Shared;
use super::link::Link;
use crate::model::{DeadLetter, QueueStats, Result};

/// The earliest end of a dead letter's retention.
pub(super) const EARLIEST_PURGE: &str = "SELECT min(purge_ms) FROM openkv.dead WHERE db = $1";

pub(super) fn next_message_ms(_shared: &Shared, _queue: &str) -> Result<Option<i64>> {
    Ok(None)
}

pub(super) fn depth(_shared: &Shared, _queue: &str) -> Result<u64> {
    Ok(0)
}

/// Queues in a snapshot.
pub(super) struct QueueReader<'s> {
    pub(super) link: &'s Link,
    pub(super) db: i64,
    pub(super) now_ms: i64,
}

impl QueueReader<'_> {
    pub(super) fn stats(&self, _queue: &str) -> Result<QueueStats> {
        let _ = (self.link, self.db, self.now_ms);
        Ok(QueueStats::default())
    }

    pub(super) fn names(&self, _count_max: usize) -> Result<Vec<String>> {
        Ok(Vec::new())
    }

    pub(super) fn letters(
        &self,
        _queue: &str,
        _after: (i64, i64),
        _visit: &mut dyn FnMut(DeadLetter) -> bool,
    ) -> Result<()> {
        Ok(())
    }

    pub(super) fn letter(&self, _queue: &str, _id: i64) -> Result<Option<DeadLetter>> {
        Ok(None)
    }
}
