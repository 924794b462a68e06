//! The metrics of a store: its counters, and the figures that are read on demand.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use super::Store;
use super::health::Part;
use crate::metrics::{
    ArchiveFigures, BucketFigures, Depth, Holders, IndexSize, Metrics, MetricsSnapshot,
    OwnCounters, ReplicaFigures, Sizes,
};
use openkv_core::model::{METRIC_QUEUES_MAX, Result, is_own_queue};
use openkv_engines::{Leadership, Snapshot};

/// Says how far a replica is.
pub(super) type ReplicaFiguresOf = Box<dyn Fn() -> ReplicaFigures + Send + Sync>;

/// Says what an archiver does; `None` once it has ended.
pub(super) type ArchiveFiguresOf = Box<dyn Fn() -> Option<ArchiveFigures> + Send + Sync>;

impl Store {
    /// From now on the metrics say what an archiver of this store does, until it has ended.
    pub fn show_archive(&self, figures: ArchiveFiguresOf) {
        self.archive_figures.lock().push(figures);
    }

    fn archives(&self) -> Vec<ArchiveFigures> {
        let mut archives = Vec::new();
        self.archive_figures.lock().retain(|figures| {
            let figures = figures();
            let goes_on = figures.is_some();
            archives.extend(figures);
            goes_on
        });
        archives
    }

    /// From now on the metrics say how far the replica is that this store is. Only the first one is kept.
    pub fn show_replica(&self, figures: ReplicaFiguresOf) {
        let _kept = self.replica_figures.set(figures);
    }

    /// The counters of this store.
    pub fn metrics(&self) -> &Arc<Metrics> {
        &self.metrics
    }

    /// Its watches, feeds and listeners.
    pub fn holders(&self) -> Holders {
        Holders {
            watches: self.watches.len(),
            feeds: self.feeds.len(),
            listeners: self.writes.waiting.lock().consumers.listeners(),
        }
    }

    /// What this process is to the database, as far as it knows without a request.
    pub fn leadership(&self) -> Leadership {
        self.whole.leadership()
    }

    /// All metrics at one moment. The reader thread counts messages and documents in what this process has of the
    /// database, so that a scrape makes no request to an object store.
    pub fn metrics_snapshot(&self, reply: Box<dyn FnOnce(Result<MetricsSnapshot>) + Send>) {
        let own = self.metrics.own();
        let slowest = Some(own.slowest((Instant::now(), self.env.now_ms())));
        let is_kept = self.is_keeping_metrics();
        let holders = self.holders();
        let failing = self.failing();
        let fails = |part: Part| failing.iter().any(|failing| failing.part == part);
        let replica = self.replica_figures.get().map(|figures| figures());
        let archives = self.archives();
        let bucket = self.whole.requests().map(BucketFigures::from);
        let parts = Part::ALL.map(|part| (part.name(), fails(part))).to_vec();
        self.read_at_hand(reply, move |snapshot, _| {
            let taken = take(snapshot, own, is_kept, holders)?;
            Ok(MetricsSnapshot { parts, bucket, replica, archives, slowest, ..taken })
        });
    }
}

fn take(
    seen: &mut dyn Snapshot,
    own: OwnCounters,
    is_kept: bool,
    holders: Holders,
) -> Result<MetricsSnapshot> {
    let kept = if is_kept { seen.kept_metrics()? } else { None };
    let stats = seen.stats()?;
    let sizes = Sizes { database_bytes: stats.database_bytes, wal_bytes: stats.log_bytes };
    let mut depths = BTreeMap::new();
    let mut queues = seen.queues()?;
    let of_callers = |queue: &String| !is_own_queue(queue);
    for queue in queues.names(METRIC_QUEUES_MAX)?.into_iter().filter(of_callers) {
        let of = queues.stats(&queue)?;
        let depth = Depth {
            pending: of.pending,
            delayed: of.delayed,
            processing: of.processing,
            dead: of.dead,
        };
        depths.insert(queue, depth);
    }
    drop(queues);
    let indexes = seen.indexes(true)?.into_iter().map(|index| {
        let size = IndexSize { documents: index.documents, building: index.building };
        (index.spec.name, size)
    });
    let taken = own.snapshot(kept.as_deref(), sizes, holders, depths, indexes.collect());
    Ok(taken.with_sharing(seen.sharing()?.unwrap_or_default()))
}
