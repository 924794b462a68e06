//! The metrics of a database: counting them, and writing them as JSON or Prometheus text.
//!
//! Duty: counts and latencies of operations, commits and transactions, and the slowest operations; a snapshot of
//! them, as JSON and as Prometheus text.
//! Invariant: every answered operation is counted once, whichever lane answers it.
//! Never: a clock or a lock for each point read: a lane counts in [`LocalCounters`].

mod counters;
mod exposition;
mod families;
mod kept;
mod latency;
mod local_counters;
mod operation;
mod shared_counters;
mod slow;
mod snapshot;

pub use exposition::{exposition, exposition_of_many, exposition_with_replica, open_metrics};
pub use families::{DescribedMetric, METRICS, MetricGroup, MetricKind};
pub use local_counters::LocalCounters;
pub use operation::Operation;
pub use shared_counters::{Metrics, Notes, OwnCounters};
pub use slow::{SlowId, Subject};
pub use snapshot::{
    ArchiveFigures, Batches, BucketBytes, BucketFigures, BucketRequests, Cache, Depth, Holders,
    IndexSize, LATENCY_BOUNDS_MS, Latency, Leader, MetricsSnapshot, Operations, ReplicaFigures,
    Sizes, SlowOperation, Spread, Transactions, Waiting,
};
