//! Bounds of metrics.

/// One of so many reads of a lane is timed; reading the clock for each would cost more than
/// counting.
pub const LATENCY_SAMPLE_READS: u32 = 32;

/// Times that a lane collects in a turn before it publishes them.
pub const LATENCY_SAMPLES_MAX: usize = 64;

/// Largest value that a metric distinguishes: an hour in ns.
pub const METRIC_VALUE_MAX: u64 = 3_600_000_000_000;

/// Decimal digits to which quantiles are exact.
pub const METRIC_DIGITS: u8 = 2;

/// Processes whose last flush of metrics a database remembers.
pub const METRIC_FLUSHES_MAX: usize = 16;

/// Longest wait of a flush of metrics for other processes, in ms, when the database closes. Other flushes
/// do not wait.
pub const METRIC_LAST_FLUSH_MS_MAX: u64 = 1000;

/// Queues whose messages are counted for metrics, the first ones by name.
// Public (metrics): queues whose messages `metrics` counts, the first by name
pub const METRIC_QUEUES_MAX: usize = 1000;

/// From this time on an operation is in the slow log, in ms, if it is among the slowest.
// Public (metrics): milliseconds from which an operation is in `slowest` of `metrics`
pub const SLOW_OPERATION_MS_MIN: u64 = 10;

/// Operations in the slow log.
// Public (metrics): operations in `slowest`
pub const SLOW_OPERATIONS_MAX: usize = 64;

/// Longest stay of an operation in the slow log, in ms.
pub const SLOW_OPERATION_AGE_MS: u64 = 3_600_000;

/// Bytes of the encoded key of an operation in the slow log. Of a longer key it has the parts that fit.
pub const SLOW_KEY_BYTES_MAX: usize = 64;
