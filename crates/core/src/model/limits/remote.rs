//! Bounds of a client of a remote database.

/// Default time limit of a call on a remote database, with all its retries.
// Public (opening): default of `timeout` of a remote database, in ms
pub const REMOTE_TIMEOUT_MS_DEFAULT: u64 = 10_000;

/// Delay before the first retry of a request.
pub const RETRY_DELAY_MS: u64 = 100;

/// Upper bound of the delay between two attempts of a request.
pub const RETRY_DELAY_MS_MAX: u64 = 10_000;

/// Upper bound of the delay that a server can request before a retry.
pub const RETRY_AFTER_MS_MAX: u64 = 60_000;

/// Interval between two metadata exchanges of one handle, whatever expiry the server sets.
pub const METADATA_INTERVAL_MS_MIN: u64 = 1000;

/// URLs of one remote database.
// Public (opening): URLs of one remote database
pub const REMOTE_URLS_MAX: usize = 16;

/// How long the only attempt of an opening waits for a connection.
pub const REMOTE_FIRST_CONNECT_MS_MAX: u64 = 3000;

/// How long a metadata exchange waits for one of several URLs before it asks the next one.
pub const REMOTE_URL_TRY_MS_MAX: u64 = 3000;

/// Body of a metadata exchange.
pub const METADATA_BYTES_MAX: usize = 64 * 1024;

/// Redirects that a metadata exchange follows.
pub const REDIRECTS_MAX: usize = 5;

/// Body of an answer to a read.
pub const REMOTE_ANSWER_BYTES_MAX: usize = 128 * 1024 * 1024;

/// Part of an error text of a server that is read and shown.
pub const REFUSAL_BYTES_MAX: usize = 4096;

/// How long the client waits for an error text; it shows the part received by then.
pub const REFUSAL_WAIT_MS_MAX: u64 = 1000;

/// How long a watch of a remote database may be silent before it is reopened; servers send a
/// keep-alive every few seconds.
pub const WATCH_SILENCE_MS_MAX: u64 = 60_000;

/// How long a stream without changes must have lasted for the next one to be opened without backoff.
pub const STREAM_STEADY_MS_MIN: u64 = 1000;

/// Ranges of one request to a server, which share a snapshot.
pub const REMOTE_RANGES_MAX: usize = 10;

/// Rows of one request to a server: the sum of the limits of its ranges.
pub const REMOTE_ROWS_MAX: usize = 1000;

/// Entries of a page that the client counts or filters because the server cannot.
pub const REMOTE_PAGE_ROWS_MAX: usize = 500;

/// Requests of one handle under way. Further ones wait.
pub const REMOTE_REQUESTS_MAX: usize = 128;

/// Bytes of the body of a request that goes in HTTP/1.1 while no other one of its handle waits.
pub const REMOTE_LONE_BYTES_MAX: usize = 16 * 1024;

/// Bytes that a server may send on a stream before the client reads them.
pub const REMOTE_STREAM_WINDOW_BYTES: usize = 256 * 1024;

/// Watches on one connection, below a server's limit of streams.
pub const REMOTE_WATCHES_PER_CONNECTION_MAX: usize = 64;

/// How long a server may take to make a backup before its first byte.
pub const REMOTE_BACKUP_ANSWER_MS_MAX: u64 = 3_600_000;

/// Copies of which a download of a backup begins, because earlier ones are no longer there.
pub const REMOTE_BACKUP_COPIES_MAX: u32 = 3;

/// Interval of checking whether the caller has ended a download.
pub const REMOTE_BACKUP_LOOK_MS: u64 = 50;

/// The unit of the progress of a download, as the pages of a local backup.
pub const REMOTE_BACKUP_UNIT_BYTES: u64 = 4096;

/// How often an eventual read asks another endpoint than the nearest one, to find out whether that is nearer
/// by now, in ms.
pub const ENDPOINT_LATENCY_RETRY_MS: u64 = 30_000;

/// Bytes of an answer beyond which its time says nothing about how near its server is.
pub const ENDPOINT_LATENCY_ANSWER_BYTES_MAX: usize = 16 * 1024;

/// The least time that a failed request counts as, in ms.
pub const ENDPOINT_LATENCY_FAILED_MS: u64 = 1000;

/// The share of the newest time in the mean of an endpoint's times.
pub const ENDPOINT_LATENCY_WEIGHT: f64 = 0.2;
