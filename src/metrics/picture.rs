//! The metrics of one moment: the nouns of the JSON that JavaScript gets.

use std::collections::BTreeMap;

use serde::Serialize;

/// Everything.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Picture {
    /// Operations by kind.
    pub operations: BTreeMap<&'static str, Operations>,
    /// Writes that happened.
    pub commits: u64,
    /// Writes whose checks did not hold.
    pub conflicts: u64,
    /// Writes that could not be carried out.
    pub rejections: u64,
    /// What the writes were carried out in.
    pub transactions: Transactions,
    /// Messages by queue.
    pub queues: BTreeMap<String, Depth>,
    /// Who waits for news.
    #[serde(flatten)]
    pub holders: Holders,
    /// Search indexes by name.
    pub indexes: BTreeMap<String, IndexSize>,
    /// Bytes on the disk.
    #[serde(flatten)]
    pub sizes: Sizes,
    /// Pages of the file in memory.
    pub cache: Cache,
}

/// Operations of one kind.
#[derive(Clone, Debug, Serialize)]
pub struct Operations {
    /// Those that were answered, with an error too.
    pub count: u64,
    /// Those of them that were answered with an error.
    pub errors: u64,
    /// How long they took; `None` as long as none was timed.
    pub latency: Option<Latency>,
}

/// How long operations took.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Latency {
    /// Those that were timed.
    pub samples: u64,
    /// Their times in sum.
    pub sum_ms: f64,
    /// Half took no longer.
    pub p50_ms: f64,
    /// Nine of ten took no longer.
    pub p90_ms: f64,
    /// 99 of 100 took no longer.
    pub p99_ms: f64,
    /// The longest.
    pub max_ms: f64,
}

/// Transactions that carried out writes.
#[derive(Clone, Debug, Serialize)]
pub struct Transactions {
    /// Transactions that failed as a whole.
    pub failures: u64,
    /// Writes in one; `None` before the first.
    pub writes: Option<Spread>,
}

/// How values are spread.
#[derive(Clone, Debug, Serialize)]
pub struct Spread {
    /// How many there were.
    pub count: u64,
    /// All together.
    pub sum: f64,
    /// Half were no larger.
    pub p50: f64,
    /// Nine of ten were no larger.
    pub p90: f64,
    /// 99 of 100 were no larger.
    pub p99: f64,
    /// The largest.
    pub max: f64,
}

/// Messages of a queue.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Depth {
    /// To be handed out now.
    pub pending: u64,
    /// To be handed out later.
    pub delayed: u64,
    /// Handed out.
    pub processing: u64,
    /// Given up.
    pub dead: u64,
}

/// Who waits for news in this process.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub struct Holders {
    /// Watches over keys.
    pub watches: usize,
    /// Watches over a range.
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

/// Bytes on the disk, zero where there is no file.
#[derive(Clone, Copy, Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Sizes {
    /// Of the database.
    pub database_bytes: u64,
    /// Of the log.
    pub wal_bytes: u64,
}

/// What became of looks at pages of the file.
#[derive(Clone, Copy, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cache {
    /// The page was in memory.
    pub hits: u64,
    /// It had to be read.
    pub misses: u64,
    /// The share of hits; `None` before the first look.
    pub hit_rate: Option<f64>,
}
