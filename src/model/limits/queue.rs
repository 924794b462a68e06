//! Bounds of queues: messages, locks, consumers and dead letters.

/// How long a delivered message stays hidden from other consumers without a sign of life.
pub const LOCK_MS: i64 = 5000;

/// How long behind its deadline a message that Deno has claimed is left to Deno, which looks as
/// often.
pub const DENO_RUNNING_MS: i64 = 60_000;

/// How often the lock of a message that is being handled is renewed.
pub const LOCK_RENEWAL_MS: i64 = 1500;

/// How much longer an expired lock holds that is found by a writer that had to wait for the file:
/// its holder waited too, and renews it now. Of a shorter lock a third, at least twice
/// [`FRUITLESS_PAUSE_MS`](super::FRUITLESS_PAUSE_MS), after which a failed renewal is tried again.
pub const LOCK_GRACE_MS: i64 = LOCK_RENEWAL_MS;

/// The shortest wait for the file after which expired locks get that grace. The shortest lock is
/// renewed in time beside shorter waits, which are ordinary among several writers.
pub const KEPT_OUT_MS_MIN: u64 = 50;

/// Most messages of one claim.
pub const CLAIM_MESSAGES_MAX: usize = 256;

/// Delays before the retries of a message in a named queue without a schedule; JavaScript applies
/// it.
pub const NAMED_BACKOFF_DEFAULT_MS: [u32; 3] = [1000, 5000, 10_000];

/// Name of a queue, in UTF-8.
pub const QUEUE_NAME_BYTES_MAX: usize = 256;

/// Deduplication key of a message, in UTF-8.
pub const DEDUPLICATION_KEY_BYTES_MAX: usize = 1024;

/// Highest priority of a message; the lowest is 0.
pub const PRIORITY_MAX: u8 = 9;

/// How long a lock of a named queue may be asked for, at least and at most.
pub const LOCK_DURATION_MS_MIN: u32 = 100;
/// As [`LOCK_DURATION_MS_MIN`].
pub const LOCK_DURATION_MS_MAX: u32 = 86_400_000;

/// Most messages that one listener of a named queue handles at a time.
pub const CONCURRENCY_MAX: u32 = 1000;

/// Longest wait of one `receive`.
pub const RECEIVE_WAIT_MS_MAX: u32 = 86_400_000;

/// Messages that a consumer behind a connection is dispatched ahead of what the connection has
/// taken.
pub const REMOTE_AHEAD_MESSAGES: u64 = 32;

/// Bytes of messages after which a frame of a consumer's stream ends.
pub const CONSUME_FRAME_BYTES: usize = 1024 * 1024;

/// A frame of a consumer's stream: one message of the largest size fits.
pub const CONSUME_FRAME_BYTES_MAX: usize = 17 * 1024 * 1024;

/// Messages of such a frame, which has room beside them for what is told of each.
pub const CONSUME_MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Ends of deliveries and renewals of locks of one request.
pub const LOCK_UPDATE_ITEMS_MAX: usize = 1000;

/// Texts of the errors that one of these requests tells.
pub const LOCK_UPDATE_REASON_BYTES_MAX: usize = 512 * 1024;

/// Requests of one handle that wait for messages at one time; more wait for a place.
pub const REMOTE_WAITS_MAX: usize = 256;

/// How long a stream or a wait that is given up may take to say what it had on its way.
pub const LEAVE_MS_MAX: u64 = 1000;

/// Longest wait of one request for a message; a client that waits longer asks again.
pub const RECEIVE_POLL_MS_MAX: u32 = 20_000;

/// Longest time that dead messages purge themselves after, a hundred years.
pub const DEAD_RETENTION_MS_MAX: u64 = 100 * 365 * 86_400_000;

/// Most dead messages of one page of a list.
pub const DEAD_LIST_MAX: u32 = 1000;
