//! The metrics of a store: what it has counted, and what is looked up when somebody asks.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::Store;
use crate::engine::Snapshot;
use crate::metrics::{Depth, Holders, IndexSize, Metrics, Picture, Sizes};
use crate::model::{METRIC_QUEUES_MAX, Result};

impl Store {
    /// What this store counts.
    #[must_use]
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// All metrics of one moment. Messages and documents are counted for it, on the reader thread.
    pub fn picture(&self, reply: Box<dyn FnOnce(Result<Picture>) + Send>) {
        let holders = Holders {
            watches: self.watches.len(),
            feeds: self.feeds.len(),
            listeners: self.writes.waiting.lock().consumers.listeners(),
        };
        let metrics = self.metrics.clone();
        self.read(Box::new(move |snapshot| {
            reply(snapshot.and_then(|seen| look(seen, &metrics, holders)));
        }));
    }
}

fn look(seen: &mut dyn Snapshot, metrics: &Metrics, holders: Holders) -> Result<Picture> {
    let stats = seen.stats(false)?;
    let sizes = Sizes { database_bytes: stats.database_bytes, wal_bytes: stats.log_bytes };
    let mut queues = BTreeMap::new();
    for queue in seen.queues(METRIC_QUEUES_MAX)? {
        let of = seen.queue_stats(&queue)?;
        let depth = Depth {
            pending: of.pending,
            delayed: of.delayed,
            processing: of.processing,
            dead: of.dead,
        };
        queues.insert(queue, depth);
    }
    let indexes = seen.indexes(true)?.into_iter().map(|index| {
        let size = IndexSize { documents: index.documents, building: index.building };
        (index.spec.name, size)
    });
    Ok(metrics.picture(sizes, holders, queues, indexes.collect()))
}
