//! The metrics at one moment, in the shape of the JSON that JavaScript gets.

use std::collections::BTreeMap;

use serde::Serialize;

use openkv_core::model::{LeaderFigures, RequestCounts, Sharing};

/// The bounds of a histogram of latencies, in ms.
pub const LATENCY_BOUNDS_MS: [u64; 11] = [1, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000];

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
    /// Commits of a database on a server that this process has not looked at yet, if it looks.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lag_commits: Option<u64>,
    /// The figures of this process as the leader of a database on a server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub leader: Option<Leader>,
    /// The requests of this process to the object store of the database.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bucket: Option<BucketFigures>,
    /// How far the replica is, if the database is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub replica: Option<ReplicaFigures>,
    /// The archivers of this process.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub archives: Vec<ArchiveFigures>,
    /// The slowest operations of the last hour, the slowest first. `None` for a reader who may not see keys.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub slowest: Option<Vec<SlowOperation>>,
    /// Background parts by name, and whether each fails. `kv.stats()` has them as an object, with
    /// the errors.
    #[serde(skip)]
    pub parts: Vec<(&'static str, bool)>,
}

/// The requests of a process to the object store of its database.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BucketFigures {
    /// Requests by kind.
    pub requests: BucketRequests,
    /// Bytes of objects by kind.
    pub bytes: BucketBytes,
}

/// Requests by kind.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BucketRequests {
    /// Reads of objects.
    pub get: u64,
    /// Writes of objects.
    pub put: u64,
    /// Pages of listings.
    pub list: u64,
    /// Deletions.
    pub delete: u64,
}

/// Bytes of objects.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct BucketBytes {
    /// Read.
    pub get: u64,
    /// Sent to be written.
    pub put: u64,
}

impl From<RequestCounts> for BucketFigures {
    fn from(of: RequestCounts) -> Self {
        let RequestCounts { get, put, list, delete, got_bytes, put_bytes } = of;
        Self {
            requests: BucketRequests { get, put, list, delete },
            bytes: BucketBytes { get: got_bytes, put: put_bytes },
        }
    }
}

/// How far a replica is.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReplicaFigures {
    /// Its state, as `kv.replica.status()` says.
    pub state: &'static str,
    /// Whether reads are answered from it.
    pub usable: bool,
    /// How long ago it had everything; `None`: not since it was opened.
    pub lag_ms: Option<f64>,
    /// The number of the commit up to which it has every change.
    pub version: u64,
    /// Complete copies since it was opened.
    pub copies: u64,
}

/// The counts and the progress of an archiver.
#[derive(Clone, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ArchiveFigures {
    /// Its target. Empty for that of a server: its clients read the metrics.
    pub to: String,
    /// `starting`, `waiting` for another archiver, `running`, `failing`, `stopped` by an error, or `idle`:
    /// nobody uses the database, and everything is archived.
    pub state: &'static str,
    /// How long ago it had everything, or began; `None` for one that is idle.
    pub lag_ms: Option<f64>,
    /// The last archived commit.
    pub versionstamp: Option<String>,
    /// Objects written.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Snapshots among them.
    pub snapshots: u64,
    /// Attempts that have failed.
    pub failures: u64,
    /// How often the log no longer reached back to the archived commits.
    pub gaps: u64,
    /// Objects removed by the retention.
    pub pruned: u64,
    /// When the newest snapshot was taken, in ms since the epoch.
    pub snapshot_ms: Option<i64>,
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

/// An operation that was slow, or several that were answered together.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SlowOperation {
    /// The kind of the operation, or of the first one.
    pub operation: &'static str,
    /// Its key, or its first key, as a literal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// In place of a key: the parts that all of its keys have in common, or the first parts of a long key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
    /// Operations that were answered together.
    pub times: u64,
    /// Whether it ended with an error.
    pub failed: bool,
    /// Its time, its waiting included.
    pub duration_ms: f64,
    /// When it ended, in ms since the epoch.
    pub at_ms: i64,
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
    /// Timed operations of at most so many ms, by [`LATENCY_BOUNDS_MS`].
    #[serde(skip)]
    pub within: [u64; LATENCY_BOUNDS_MS.len()],
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

/// The counts and the present state of a process as the leader of a database.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Leader {
    /// Whether it leads now.
    pub leading: bool,
    /// The epoch of its last lead.
    pub epoch: u64,
    /// Epochs that it has begun.
    pub epochs: u64,
    /// Its batches.
    pub batches: Batches,
    /// Batches that it may have in flight at present.
    pub depth: u64,
    /// Writes without an answer.
    pub waiting: Waiting,
    /// Writes that were refused, because too many waited.
    pub refused: u64,
}

/// The batches of a leader.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Batches {
    /// Batches that were sent, each time.
    pub begun: u64,
    /// Writes in these.
    pub writes: u64,
    /// Batches that are durable or confirmed.
    pub durable: u64,
    /// Decisions ahead that were discarded.
    pub discarded: u64,
    /// Batches in flight.
    pub in_flight: u64,
}

/// Writes without an answer.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Waiting {
    /// Their number.
    pub writes: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl MetricsSnapshot {
    /// Adds the part of this process in a database on a server.
    #[must_use]
    pub fn with_sharing(self, sharing: Sharing) -> Self {
        let Sharing { lag_commits, leader } = sharing;
        Self { lag_commits, leader: leader.map(Leader::from), ..self }
    }
}

impl From<LeaderFigures> for Leader {
    fn from(of: LeaderFigures) -> Self {
        let counts = of.counts;
        Self {
            leading: of.leading,
            epoch: of.epoch,
            epochs: counts.epochs,
            batches: Batches {
                begun: counts.batches_begun,
                writes: counts.writes,
                durable: counts.batches_durable,
                discarded: counts.decisions_discarded,
                in_flight: of.in_flight,
            },
            depth: of.depth,
            waiting: Waiting { writes: of.waiting_writes, bytes: of.waiting_bytes },
            refused: counts.writes_refused,
        }
    }
}
