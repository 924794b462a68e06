//! Bounds of databases in an object store.

/// Time of a lease without a renewal, in ms, unless the URL says otherwise.
pub const BUCKET_LEASE_MS_DEFAULT: u64 = 15_000;

/// The same for a database of a server.
pub const BUCKET_SERVED_LEASE_MS_DEFAULT: u64 = 3_000;

/// How old what a server knows of the leader of a database may be when it sends a client there, in ms.
pub const BUCKET_LEADER_AGE_MS_MAX: u64 = 200;

/// By how much the id of a write may be ahead of the clock of its leader, in ms, and by how much it may be behind while its
/// client repeats it: a client has the clock of another server.
pub const BUCKET_WRITE_ID_AHEAD_MS_MAX: i64 = 90_000;

/// The pause between two looks of a server at the catalog in an object store, in ms.
pub const BUCKET_CLUSTER_POLL_MS: u64 = 1_000;

/// Shortest time of a lease, in ms.
pub const BUCKET_LEASE_MS_MIN: u64 = 300;

/// Longest time of a lease, in ms: ten minutes.
pub const BUCKET_LEASE_MS_MAX: u64 = 600_000;

/// Longest time from the beginning of one group of commits to that of the next one, in ms.
pub const BUCKET_LINGER_MS_MAX: u64 = 1_000;

/// The uploads of which the shortest is the time that groups of commits are apart, unless the URL says otherwise.
pub const BUCKET_LINGER_SAMPLES: usize = 16;

/// A group of fewer commits than the last one begins later, by this part of the time of an upload, unless it has as many by
/// then: the callers that the last one answers often commit again.
pub const BUCKET_LINGER_JOIN_PART: u32 = 4;

/// A leader that nobody has used for this long releases its lease, in ms.
pub const BUCKET_IDLE_MS: u64 = 60_000;

/// Pause of a reader between two looks at the log, while nothing changes, in ms.
pub const BUCKET_POLL_IDLE_MS: u64 = 1_000;

/// Pause of a reader between two looks at the log, while it changes, in ms.
pub const BUCKET_POLL_BUSY_MS: u64 = 100;

/// Longest wait of a read for a renewal of the lease or a look at the log, in ms.
pub const BUCKET_READ_WAIT_MS: u64 = 30_000;

/// How long the creation of an object of the log is tried, in ms. After that the outcome of its commit is unknown.
pub const BUCKET_COMMIT_MS_MAX: u64 = 60_000;

/// How often an opening that waits looks whether its caller has given up, in ms.
pub const BUCKET_OPENING_LOOK_MS: u64 = 20;

/// Pause between two attempts after a failed request, in ms.
pub const BUCKET_RETRY_MS: u64 = 200;

/// Attempts to open a database whose object store does not answer.
pub const BUCKET_OPENING_ATTEMPTS: u32 = 4;

/// How long after its beginning the opening of a database begins another attempt, in ms.
pub const BUCKET_OPENING_MS_MAX: u64 = 60_000;

/// Objects of the log that a reader asks for at once, at most.
pub const BUCKET_READS_AT_ONCE: usize = 32;

/// Objects of the log that become one merged object, and merged objects of one size that become a larger one, at least.
pub const BUCKET_MERGED_FAN: usize = 32;

/// Objects of the log that become one merged object, at most.
pub const BUCKET_MERGED_OBJECTS_MAX: usize = 1_024;

/// Bytes of a merged object, at most.
pub const BUCKET_MERGED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Objects on one page of a listing, as S3 has them; each page is a request.
pub const OBJECT_LIST_PAGE_ENTRIES: u64 = 1_000;

/// Slowest line on which an object is sent to a store, in bytes a second: the wait for an answer is so much longer.
pub const OBJECT_SENT_BYTES_PER_S_MIN: u64 = 64 * 1024;

/// Findings of a verified database in an object store, at most.
pub const BUCKET_FINDINGS_MAX: usize = 1_000;

/// Bytes of changes that a reader puts into one transaction, at most.
pub const BUCKET_FOLLOW_BYTES: usize = 8 * 1024 * 1024;

/// What each object of the log counts at least, in bytes, where a leader decides about a snapshot: reading many
/// small objects takes long.
pub const BUCKET_OBJECT_BYTES_MIN: u64 = 16 * 1024;

/// Smallest weight of the log behind the last snapshot at which a leader takes another one, in bytes.
pub const BUCKET_SNAPSHOT_BYTES_MIN: u64 = 16 * 1024 * 1024;

/// Most batches of a leader in flight: objects of the log that are created at a time.
pub const BUCKET_BATCHES_IN_FLIGHT_MAX: usize = 4;

/// Bytes of the writes in flight from which on no further batch begins.
pub const BUCKET_IN_FLIGHT_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Bytes of entries that a leader keeps beside those in flight: the others are in its file.
pub const BUCKET_LAYER_CACHE_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long a thread that has created an object of the log waits for another one, in ms.
pub const BUCKET_UPLOAD_IDLE_MS: u64 = 1_000;
