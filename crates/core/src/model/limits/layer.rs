//! Bounds of the transaction layer.

/// Bytes of entries that the transaction layer of a database keeps. Effects that are not durable are
/// kept beyond it.
pub const LAYER_CACHE_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of an entry in that cache beside its key and value.
pub const LAYER_CACHE_ROW_BYTES: usize = 96;

/// Most batches of a database in flight.
pub const LAYER_DEPTH_MAX: usize = 16;

/// The depth is taken from so many of the last batches.
pub const LAYER_DEPTH_SAMPLES: usize = 32;

/// In one of so many batches the depth differs by one, to measure what the usual depth does not show.
pub const LAYER_DEPTH_PROBE_BATCHES: u64 = 64;

/// Bytes of writes that the transaction layer of a database accepts before the first of them is
/// answered.
pub const LAYER_WAITING_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Writes that the transaction layer of a database accepts before the first of them is answered.
pub const LAYER_WAITING_WRITES_MAX: usize = 100_000;

/// Bytes of the ids of writes that a leader remembers, with their outcomes.
pub const LAYER_WRITE_IDS_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Bytes of an id beside its results: a map, a queue, the outcome.
pub const LAYER_WRITE_ID_BYTES: usize = 96;

/// How long a leader remembers the id of a write, in ms. Longer than a client repeats the write.
pub const WRITE_ID_KEPT_MS: i64 = 300_000;

/// By how much the id of a write may be ahead of the clock of the database, in ms: clients know that
/// clock from their last metadata exchange.
pub const WRITE_ID_AHEAD_MS_MAX: i64 = 1000;

/// How long a client repeats a write with one id, in ms.
pub const WRITE_REPEAT_MS_MAX: u64 = 120_000;
