//! Bounds of a client of a remote database.

/// How long a call on a remote database may take with all its retries, by default.
pub const REMOTE_TIMEOUT_MS_DEFAULT: u64 = 10_000;

/// The wait before the first retry of a request.
pub const RETRY_DELAY_MS: u64 = 100;

/// The longest wait between two tries of a request.
pub const RETRY_DELAY_MS_MAX: u64 = 10_000;

/// The longest wait before another try that a server can ask for.
pub const RETRY_AFTER_MS_MAX: u64 = 60_000;

/// Least time between two metadata exchanges of one handle, whatever the server says of its expiry.
pub const METADATA_INTERVAL_MS_MIN: u64 = 1000;

/// Longest body of a metadata exchange.
pub const METADATA_BYTES_MAX: usize = 64 * 1024;

/// Redirects that a metadata exchange follows.
pub const REDIRECTS_MAX: usize = 5;

/// Longest body of an answer to a read.
pub const REMOTE_ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;

/// What is read, and shown, of the text of a refusal.
pub const REFUSAL_BYTES_MAX: usize = 4096;

/// How long the text of a refusal is waited for; what has come by then is shown.
pub const REFUSAL_WAIT_MS_MAX: u64 = 1000;

/// How long a watch of a remote database may be silent before it is asked for anew; servers send a sign
/// of life every few seconds.
pub const WATCH_SILENCE_MS_MAX: u64 = 60_000;

/// How long a stream that brings no news must have lasted for the next one to be asked for soon.
pub const STREAM_STEADY_MS_MIN: u64 = 1000;

/// Ranges of one request to a server, which is one snapshot.
pub const REMOTE_RANGES_MAX: usize = 10;

/// Rows of one request to a server, the sum of its ranges' limits.
pub const REMOTE_ROWS_MAX: usize = 1000;

/// Entries of a page that is counted or chosen from here, because the server cannot.
pub const REMOTE_PAGE_ROWS_MAX: usize = 500;

/// Requests of one handle to its server under way at one time; more wait.
pub const REMOTE_REQUESTS_MAX: usize = 128;

/// What a server may send of a stream that nobody reads.
pub const REMOTE_STREAM_WINDOW_BYTES: usize = 256 * 1024;

/// Watches that share a connection, so that a server's bound of streams is not met.
pub const REMOTE_WATCHES_PER_CONNECTION_MAX: usize = 64;
