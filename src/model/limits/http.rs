//! The bounds of the HTTP API.

/// Entries of a page of a list, if the request names no limit.
pub const HTTP_LIST_ENTRIES_DEFAULT: usize = 100;

/// Most entries of a page of a list.
pub const HTTP_LIST_ENTRIES_MAX: usize = 1000;

/// Most keys of a batch.
pub const HTTP_BATCH_KEYS_MAX: usize = 1000;

/// Attempts of a conditional write whose entry other writers keep changing.
pub const CONDITION_TRIES_MAX: usize = 8;

/// Answers of at least so many bytes are compressed.
pub const HTTP_COMPRESS_BYTES_MIN: u16 = 1024;

/// How long a poll of a watch waits at most.
pub const HTTP_WAIT_MS_MAX: u64 = 60_000;

/// Interval at which a poll whose time is over asks whether its feed has nothing to report.
pub const HTTP_POLL_LOOK_MS: u64 = 10;
