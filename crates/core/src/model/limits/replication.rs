//! Bounds of the log and of history.

/// How long the log keeps a change unless the caller chooses otherwise, in ms: a day.
// Public (feeds): age of a change in a log that the option log has turned on, unless it says otherwise, in ms
pub const LOG_RETENTION_MS: i64 = 86_400_000;

/// Bytes of the log unless the caller chooses otherwise.
// Public (feeds): bytes of the log, unless the option log says otherwise
pub const LOG_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Segments that one transaction trims from the replication log, and as many whose changes it removes
/// from the history. A transaction adds one.
pub const LOG_TRIM_SEGMENTS: usize = 4;

/// Changes of old segments whose replaced entries one transaction removes from the history. A transaction
/// can have more; the next ones remove the rest.
pub const LOG_FORGET_CHANGES_MAX: usize = 10_000;

/// Bytes of segments after which a read of the replication log ends, after a whole segment.
pub const LOG_READ_BYTES: usize = 4 * 1024 * 1024;

/// Bytes of a block of the history, unless its only record has more: a row with them stays in a page of the
/// file.
pub const HISTORY_BLOCK_BYTES: usize = 4000;

/// Records of a block of the history. A power of two.
pub const HISTORY_BLOCK_RECORDS_MAX: usize = 64;

/// Records of a key that a reader of the past visits one by one, before it finds them by their group.
pub const HISTORY_CHAIN_RECORDS_MAX: usize = 16;

/// Versions of a key that one step of `history` returns.
pub const HISTORY_VERSIONS_MAX: usize = 100;

/// Bytes of values after which a step of `history` ends, after a whole version.
pub const HISTORY_STEP_BYTES: usize = 1024 * 1024;

/// Bytes of entries in one message of a copy, after a whole entry.
pub const COPY_PAGE_BYTES: usize = 256 * 1024;

/// Bytes of segments in one message to a follower, after a whole segment.
pub const FOLLOW_BATCH_BYTES: usize = 1024 * 1024;

/// Longest copy of a database to a follower, in ms. A snapshot is open meanwhile, so the log of a file
/// cannot be reset.
pub const COPY_MS_MAX: u64 = 6 * 3_600_000;

/// How often a server tells a follower its position, unless there are changes, in ms.
pub const FOLLOW_BEAT_MS: u64 = 2000;

/// Shortest interval of positions that a follower may ask for, in ms.
pub const FOLLOW_BEAT_MS_MIN: u64 = 50;

/// Silence after which a follower takes its stream for dead, in ms.
pub const FOLLOW_SILENCE_MS_MAX: u64 = 15_000;

/// Most prefixes of a replica.
pub const REPLICA_PREFIXES_MAX: usize = 100;

/// How long a server gathers commits for a follower, in ms.
pub const FOLLOW_LINGER_MS: u64 = 1;

/// How often a call that waits for a replica looks whether its caller still waits, in ms.
pub const REPLICA_WAIT_LOOK_MS: u64 = 50;

/// How long a read server relies on what its primary has said about a token, in ms.
pub const READ_SERVER_TOKEN_MS_MAX: u64 = 60_000;

/// How long a read server answers a known token before it asks a primary again that was not reached, in ms.
pub const READ_SERVER_RETRY_MS: u64 = 2000;

/// Longest wait of a read server for an answer of its primary about a token, in ms.
pub const READ_SERVER_ASK_MS_MAX: u64 = 5000;

/// Requests of a read server about tokens under way. Others wait, so that guessed tokens are no load for
/// the primary.
pub const READ_SERVER_REQUESTS_MAX: usize = 16;

/// Tokens that a read server knows.
pub const READ_SERVER_TOKENS_MAX: usize = 10_000;

/// Replicas that a read server of a folder has open. Each needs what a served database needs.
pub const READ_SERVER_COPIES_MAX: usize = 256;

/// How often a read server of a folder asks its primary for its databases, in ms.
pub const READ_SERVER_CATALOG_MS: u64 = 10_000;

/// Bytes of the answer to that.
pub const READ_SERVER_CATALOG_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Dropped databases that the folder of a server remembers, so that read servers remove their replicas.
pub const DROPPED_DATABASES_MAX: usize = 1000;

/// Characters of the name of a region.
pub const REGION_CHARS_MAX: usize = 64;

/// Read servers that a database names to clients.
pub const READ_SERVERS_MAX: usize = 12;

/// How long a read server answers a known access token while its primary cannot be reached, in ms.
pub const READ_SERVER_OUTAGE_MS_MAX: u64 = 3_600_000;

/// Shortest and longest pause before a replica follows a database of its process again, in ms. A pause
/// doubles with each failure.
pub const FOLLOW_PAUSE_MS_MIN: u64 = 100;
/// See [`FOLLOW_PAUSE_MS_MIN`].
pub const FOLLOW_PAUSE_MS_MAX: u64 = 10_000;
