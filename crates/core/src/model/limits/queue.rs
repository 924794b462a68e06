//! Bounds of queues: messages, locks, consumers and dead letters.

/// Default time after which a lock expires if its consumer does not renew it.
pub const LOCK_MS: i64 = 5000;

/// How long after its deadline a message that Deno has claimed is left to Deno, which checks at the
/// same interval.
pub const DENO_RUNNING_MS: i64 = 60_000;

/// Lock of a message for a client of KeyVal, whose acknowledgements do not extend it.
// Public (a server): default `keyvalLockDuration`, in ms
pub const KEYVAL_LOCK_MS: i64 = 30_000;

/// The bits of a lock that have its duration at the claim, in ms: it counts if the clock is set back.
pub const LOCK_LENGTH_MASK: i64 = (1 << 27) - 1;
const _: () = assert!(LOCK_DURATION_MS_MAX as i64 <= LOCK_LENGTH_MASK);

/// Interval of renewing the lock of a message while its handler runs.
pub const LOCK_RENEWAL_MS: i64 = 1500;

/// Extension of expired locks found by a writer that had to wait for the file: the consumer had to
/// wait too, and renews the lock now. A shorter lock gets a third of its duration, but at least
/// twice [`FRUITLESS_PAUSE_MS`](super::FRUITLESS_PAUSE_MS), the pause after a failed renewal.
pub const LOCK_GRACE_MS: i64 = LOCK_RENEWAL_MS;

/// Shortest wait for the file after which expired locks get that extension. Shorter waits are
/// normal with several writers, and even the shortest lock is renewed in time.
pub const KEPT_OUT_MS_MIN: u64 = 50;

/// Messages of one claim.
pub const CLAIM_MESSAGES_MAX: usize = 256;

/// Delays before the retries of a message in a named queue without a schedule; JavaScript applies
/// it.
pub const NAMED_BACKOFF_DEFAULT_MS: [u32; 3] = [1000, 5000, 10_000];

/// Name of a queue, in UTF-8.
// Public (queues): bytes of the name of a queue
pub const QUEUE_NAME_BYTES_MAX: usize = 256;

/// Deduplication key of a message, in UTF-8.
// Public (queues): bytes of a `deduplicationKey`
pub const DEDUPLICATION_KEY_BYTES_MAX: usize = 1024;

/// Trace context of a message, in UTF-8; a longer one is left out.
// Public (queues): bytes of the trace context of a message
pub const MESSAGE_CONTEXT_BYTES_MAX: usize = 1024;

/// Highest priority of a message; the lowest is 0.
// Public (queues): `priority` of a message
pub const PRIORITY_MAX: u8 = 9;

/// Shortest lock of a named queue.
// Public (queues): shortest `lockDuration`, in ms
pub const LOCK_DURATION_MS_MIN: u32 = 100;
/// Longest lock of a named queue.
// Public (queues): longest `lockDuration`, in ms
pub const LOCK_DURATION_MS_MAX: u32 = 86_400_000;

/// Messages that one listener of a named queue handles at the same time.
// Public (queues): `concurrency` of `listen`
pub const CONCURRENCY_MAX: u32 = 1000;

/// Wait of one `receive`.
// Public (queues): `wait` of `receive`, in ms
pub const RECEIVE_WAIT_MS_MAX: u32 = 86_400_000;

/// Messages dispatched to a remote consumer beyond those that its connection has accepted.
pub const REMOTE_AHEAD_MESSAGES: u64 = 32;

/// Bytes of messages after which a frame of a consumer's stream ends.
pub const CONSUME_FRAME_BYTES: usize = 1024 * 1024;

/// A frame of a consumer's stream. One message of the largest size fits.
pub const CONSUME_FRAME_BYTES_MAX: usize = 17 * 1024 * 1024;

/// Messages of such a frame; the rest is for their other fields.
pub const CONSUME_MESSAGE_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Acknowledgements and renewals of locks in one request.
pub const LOCK_UPDATE_ITEMS_MAX: usize = 1000;

/// Texts of errors in one such request.
pub const LOCK_UPDATE_REASON_BYTES_MAX: usize = 512 * 1024;

/// Requests of one handle that wait for messages. Further ones queue.
pub const REMOTE_WAITS_MAX: usize = 256;

/// How long an abandoned stream or wait may take to deliver what it has already sent.
pub const LEAVE_MS_MAX: u64 = 1000;

/// Wait of one request for a message; the client repeats it for a longer wait.
pub const RECEIVE_POLL_MS_MAX: u32 = 20_000;

/// Retention of dead messages: a hundred years.
// Public (queues): `deadRetention`, in ms
pub const DEAD_RETENTION_MS_MAX: u64 = 100 * 365 * 86_400_000;

/// Dead messages of one page of a list.
// Public (queues): `limit` of `dead.list`
pub const DEAD_LIST_MAX: u32 = 1000;

/// Waiting and delivered messages of one page of `peek`.
// Public (queues): `limit` of `peek`
pub const PEEK_MAX: u32 = 1000;

/// Delays before the retries of a message without a schedule; JavaScript applies it.
pub const BACKOFF_DEFAULT_MS: [u32; 5] = [100, 1000, 5000, 30_000, 60_000];

/// Queues whose number of messages a writer keeps in memory.
pub const DEPTHS_KEPT_MAX: usize = 1024;

/// Dead messages that one transaction removes.
pub const DEAD_PURGE_ROWS_MAX: usize = 512;

/// Dead messages that one transaction enqueues again.
// Public (queues): dead letters that one request to requeue all of them enqueues
pub const DEAD_REQUEUE_ROWS_MAX: usize = 512;

/// Waiting messages that one transaction of a drain deletes.
pub const DRAIN_ROWS_MAX: usize = 512;

/// How long the entry about a cancelled message is kept whose result is not. A handler that asks for its signal later
/// than that learns of the cancellation when its lock is not renewed.
pub const CANCELLED_KEPT_MS: i64 = 3_600_000;

/// The value of an entry about a message, without the result or the progress in it.
pub const JOB_ENTRY_BYTES_MAX: usize = 256;

/// How long the progress of a message is kept whose result is not.
pub const PROGRESS_KEPT_MS: i64 = 3_600_000;

/// Name of the error of a dead message, in UTF-8; a longer one is truncated.
// Public (queues): bytes of the name of an error that a dead letter keeps; the rest is cut off
pub const DEAD_NAME_BYTES_MAX: usize = 256;

/// Message of the error of a dead message, in UTF-8; a longer one is truncated.
// Public (queues): bytes of its message; the rest is cut off
pub const DEAD_MESSAGE_BYTES_MAX: usize = 4096;

/// The queue whose messages are the schedules of all queues. No caller can name a queue that begins as it does.
pub const SCHEDULES_QUEUE: &str = "\u{1}schedules";

/// Name of a schedule, in UTF-8.
// Public (queues): bytes of the name of a schedule
pub const SCHEDULE_NAME_BYTES_MAX: usize = 256;

/// Cron pattern of a schedule, in UTF-8.
// Public (queues): bytes of `cron` of a schedule
pub const CRON_BYTES_MAX: usize = 256;

/// Shortest interval of a schedule.
// Public (queues): shortest `every` of a schedule, in ms
pub const SCHEDULE_INTERVAL_MS_MIN: i64 = 10;

/// Longest interval of a schedule: a year.
// Public (queues): longest `every` of a schedule, in ms
pub const SCHEDULE_INTERVAL_MS_MAX: i64 = 365 * 86_400_000;

/// How far ahead the next time of a cron pattern is looked for. Dates and weekdays repeat within so many years.
// Public (queues): years within which a cron pattern must have its next time
pub const SCHEDULE_YEARS_MAX: u16 = 40;

/// A due time is missed if no process keeps it for this long. A shorter delay, as by a restart, loses none.
pub const SCHEDULE_MISSED_MS: i64 = 10_000;

/// Messages of schedules that one transaction makes.
pub const SCHEDULE_FIRES_MAX: usize = 1000;

/// When a schedule that this version cannot read is tried again: one of a later version may have set it.
pub const SCHEDULE_UNREADABLE_MS: i64 = 60_000;

/// Schedules of one page of a list.
// Public (queues): `limit` of `schedules`
pub const SCHEDULES_LIST_MAX: u32 = 1000;

/// Name of a group of messages, in UTF-8.
// Public (queues): bytes of the `group` of a message
pub const MESSAGE_GROUP_BYTES_MAX: usize = 256;

/// Messages of a queue or of a group that consumers have at the same time, by its limits.
// Public (queues): `concurrency` of `setLimits`
pub const CONCURRENCY_LIMIT_MAX: u32 = 1_000_000;

/// Groups that one transaction looks at for a claim. Later transactions look at the others.
pub const TURNS_MAX: usize = 1000;

/// Groups of one page of a list.
// Public (queues): `limit` of `groups`
pub const GROUPS_LIST_MAX: u32 = 1000;

/// The due time of what waits for another message to end, in ms since the epoch.
pub const WAITS_FOR_ANOTHER_MS: i64 = 8_640_000_000_000_000;
