//! The metrics at one moment, in the shape of the JSON that JavaScript gets.

use std::collections::BTreeMap;

use serde::Serialize;

/// All metrics.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct MetricsSnapshot {
    /// Operations by kind.
    pub operations: BTreeMap<&'static str, Operations>,
    /// Writes that committed.
    pub commits: u64,
    /// Writes whose checks failed.
    pub conflicts: u64,
    /// Writes that were rejected with an error.
    pub rejections: u64,
    /// The transactions that contained the writes.
    pub transactions: Transactions,
    /// Messages by queue.
    pub queues: BTreeMap<String, Depth>,
    /// Watches, feeds and listeners.
    #[serde(flatten)]
    pub holders: Holders,
    /// Search indexes by name.
    pub indexes: BTreeMap<String, IndexSize>,
    /// Sizes of the files.
    #[serde(flatten)]
    pub sizes: Sizes,
    /// Hits and misses of the page caches.
    pub cache: Cache,
    /// Background parts by name, and whether each fails. `kv.stats()` has them as an object, with
    /// the errors.
    #[serde(skip)]
    pub parts: Vec<(&'static str, bool)>,
}

/// Operations of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Operations {
    /// Answered operations, including errors.
    pub count: u64,
    /// Operations that were answered with an error.
    pub errors: u64,
    /// Their latency; `None` before the first timed operation.
    pub latency: Option<Latency>,
}

/// The latency of operations.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// Timed operations.
    pub samples: u64,
    /// The sum of their times.
    pub sum_ms: f64,
    /// The median.
    pub p50_ms: f64,
    /// The 90th percentile.
    pub p90_ms: f64,
    /// The 99th percentile.
    pub p99_ms: f64,
    /// The maximum.
    pub max_ms: f64,
}

/// Transactions that contained writes.
#[derive(Clone, Debug, Serialize)]
pub struct Transactions {
    /// Transactions that failed as a whole.
    pub failures: u64,
    /// Writes per transaction; `None` before the first.
    pub writes: Option<Spread>,
}

/// The distribution of values.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    /// The number of values.
    pub count: u64,
    /// Their sum.
    pub sum: f64,
    /// The median.
    pub p50: f64,
    /// The 90th percentile.
    pub p90: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
}

/// Messages of a queue.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Depth {
    /// Due messages.
    pub pending: u64,
    /// Messages that are due later.
    pub delayed: u64,
    /// Delivered messages that are not acknowledged yet.
    pub processing: u64,
    /// Dead letters.
    pub dead: u64,
}

/// Watches, feeds and listeners of this process.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Holders {
    /// Watches of keys.
    pub watches: usize,
    /// Change feeds.
    pub feeds: usize,
    /// Listeners of queues.
    pub listeners: usize,
}

/// A search index.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct IndexSize {
    /// Documents in it.
    pub documents: u64,
    /// Whether it is still being built.
    pub building: bool,
}

/// Sizes in bytes; zero without a file.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sizes {
    /// Of the database.
    pub database_bytes: u64,
    /// Of the log.
    pub wal_bytes: u64,
}

/// Page cache lookups.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cache {
    /// Lookups that found the page in memory.
    pub hits: u64,
    /// Lookups that had to read the file.
    pub misses: u64,
    /// Hits divided by lookups; `None` before the first lookup.
    pub hit_rate: Option<f64>,
}
