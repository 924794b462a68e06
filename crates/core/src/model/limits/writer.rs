//! Bounds of the writer thread: its groups, its background work, and how a store closes.

/// Target duration of a step of the sweep. Writes wait during a step.
pub const SWEEP_STEP_US: u64 = 2_000;

/// Expired entries of one step of the sweep, at least.
pub const SWEEP_ROWS_MIN: usize = 64;

/// Expired entries of one step of the sweep, at most.
pub const SWEEP_ROWS_MAX: usize = 8192;

/// Expired entries that a transaction with other work deletes.
pub const SWEEP_JOINED_ROWS_MAX: usize = 32;

/// Pause after due work that found nothing to do, and after a failed transaction of
/// acknowledgements or renewals of locks.
pub const FRUITLESS_PAUSE_MS: i64 = 250;

/// Pause of a background part after its first failure; it doubles with each further one.
pub const BACKGROUND_PAUSE_MS: u64 = 100;

/// Upper bound of that pause.
pub const BACKGROUND_PAUSE_MS_MAX: u64 = 2000;

/// Interval of reading the commit counter while commits of other processes cannot be watched.
pub const BACKGROUND_POLL_MS: u64 = 100;

/// How long a background part may keep failing before the callers who depend on it get its error.
pub const BACKGROUND_FAILING_MS_MAX: u64 = 5000;

/// How long the writer thread spins after answering. Waking it costs a quarter of this, and an
/// answered caller often writes again at once.
pub const WRITER_SPIN_US: u64 = 50;

/// Times in a row without an arrival after which the writer thread gives spinning up.
pub const WRITER_SPIN_MISSES_MAX: u32 = 4;

/// Answers after which it tries again.
pub const WRITER_SPIN_TRIED_EVERY: u32 = 64;

/// Writes in one transaction, unless one call brought more.
pub const GROUP_WRITES_MAX: usize = 8192;

/// Bytes of queued writes after which a group is closed and committed.
pub const GROUP_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Text that names another copy of openkv in an error: its version and the path of its addon.
pub const COPY_NAME_BYTES_MAX: usize = 1024;

/// How often a closing process checks for another one that closes the file at the same moment;
/// without this check neither would remove the log.
pub const CLOSE_TRIES_MAX: usize = 3;

/// Upper bound of the random pause before each of these checks.
pub const CLOSE_PAUSE_US_MAX: u64 = 10_000;

/// Default of how long a writer waits for the transaction of another process.
// Public (opening): default of `busyTimeout`, in ms
pub const BUSY_TIMEOUT_MS_DEFAULT: u64 = 5000;

/// Interval of checking for commits of other processes without an announcement.
pub const EXTERNAL_POLL_MS: u64 = 1000;

/// The same interval where the operating system's announcements are unavailable or unreliable.
pub const EXTERNAL_POLL_UNANNOUNCED_MS: u64 = 20;

/// Pause before another request to the operating system to announce writes to a file; it doubles with
/// each refusal.
pub const EXTERNAL_RETRY_MS: u64 = 500;

/// Upper bound of that pause.
pub const EXTERNAL_RETRY_MS_MAX: u64 = 30_000;

/// How long the file watcher of the process and its thread remain after the last watched file, so
/// that starting and ending watches in turn does not restart them each time.
pub const EXTERNAL_LINGER_MS: u64 = 10_000;

/// Interval of reading the earliest expiry in the file, for entries of other processes.
pub const DEADLINES_REFRESH_MS: i64 = 60_000;

/// Size of key and value above which a value moves to the side table: a row of a `WITHOUT ROWID`
/// tree should take less than a quarter of a 4096-byte page.
pub const SPILL_ROW_BYTES_MIN: usize = 960;
