//! Bounds of the replication log and of history.

/// How long the replication log keeps a change unless the caller chooses otherwise, in ms: a day.
pub const LOG_RETENTION_MS: i64 = 86_400_000;

/// Bytes of the replication log unless the caller chooses otherwise.
pub const LOG_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Segments that one transaction trims from the replication log, and as many whose changes it removes
/// from the history. A transaction adds one.
pub const LOG_TRIM_SEGMENTS: usize = 4;

/// Changes of old segments whose replaced entries one transaction removes from the history. A transaction
/// can have more; the next ones remove the rest.
pub const LOG_FORGET_CHANGES_MAX: usize = 10_000;

/// Bytes of segments after which a read of the replication log ends, after a whole segment.
pub const LOG_READ_BYTES: usize = 4 * 1024 * 1024;

/// Versions of a key that one step of `history` returns.
pub const HISTORY_VERSIONS_MAX: usize = 100;

/// Bytes of values after which a step of `history` ends, after a whole version.
pub const HISTORY_STEP_BYTES: usize = 1024 * 1024;
