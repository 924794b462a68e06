//! Bounds of the server.

use super::BUSY_TIMEOUT_MS_DEFAULT;

/// Requests under way in a server, from the check of their token to the end of their answer.
/// Further ones wait.
pub const SERVER_REQUESTS_MAX: usize = 1024;

/// Requests under way in one database. It never has more than it leaves free for the others.
pub const DATABASE_REQUESTS_MAX: usize = 512;

/// Bodies, answers and pieces of streams up to this size count as part of their request or watch.
/// Longer ones reserve their bytes from the memory below.
pub const SHORT_BYTES_MAX: usize = 64 * 1024;

/// Memory for bodies and answers over [`SHORT_BYTES_MAX`], for all databases of a server.
pub const SERVER_MEMORY_BYTES_MAX: usize = 512 * 1024 * 1024;

/// The same memory for one database, which never has more than it leaves free for the others. The
/// largest body fits.
pub const DATABASE_MEMORY_BYTES_MAX: usize = 128 * 1024 * 1024;

/// How long a request waits for a free place, and for memory.
pub const MEMORY_WAIT_MS_MAX: u64 = 10_000;

/// Body of a request to the server.
pub const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Shortest token that a server accepts; Deno's server requires the same.
// Public (a server): characters of a token of your own
pub const TOKEN_CHARS_MIN: usize = 12;

/// Default lifetime of a token of the data path.
pub const DATA_TOKEN_MS_DEFAULT: u64 = 15 * 60 * 1000;

/// Shortest lifetime; clients renew a token some seconds before its end.
// Public (a server): shortest `dataTokenMs`
pub const DATA_TOKEN_MS_MIN: u64 = 1000;

/// Longest lifetime.
// Public (a server): longest `dataTokenMs`
pub const DATA_TOKEN_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// Default number of connections of a server. A new connection replaces the oldest one that has not
/// presented a valid token.
// Public (a server): default of `connectionsMax`
pub const CONNECTIONS_MAX_DEFAULT: usize = 4096;

/// Concurrent requests of one HTTP/2 connection.
pub const STREAMS_PER_CONNECTION_MAX: u32 = 1024;

/// Time for the head of a request, a TLS handshake, or the first request of a connection.
pub const REQUEST_HEAD_MS_MAX: u64 = 10_000;

/// Head of a request: its path and headers.
pub const REQUEST_HEAD_BYTES_MAX: usize = 32 * 1024;

/// How long an idle connection stays open.
pub const CONNECTION_IDLE_MS_MAX: u64 = 30_000;

/// Size of the pieces in which a longer answer is sent.
pub const ANSWER_PIECE_BYTES: usize = 64 * 1024;

/// How long a client may accept no data while the server sends.
pub const ANSWER_STALL_MS_MAX: u64 = 30_000;

/// Bytes of answers that a connection may leave unread for [`ANSWER_STALL_MS_MAX`]. Each answer counts as
/// [`SHORT_BYTES_MAX`] at least.
pub const ANSWERS_UNREAD_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// How long a client may accept no data while more than [`ANSWERS_UNREAD_BYTES_MAX`] are unread.
pub const ANSWERS_UNREAD_MS_MAX: u64 = 5000;

/// Time for the body of a request.
pub const REQUEST_BODY_MS_MAX: u64 = 30_000;

/// Bytes that a server discards of the body of a request that it has answered already, so that a client that is
/// still sending gets the answer.
pub const UNREAD_BODY_BYTES_MAX: usize = 32 * 1024 * 1024;

/// Time for these bytes.
pub const UNREAD_BODY_MS_MAX: u64 = 2000;

/// Interval of keep-alives on a silent watch and on a silent HTTP/2 connection.
pub const ALIVE_INTERVAL_MS: u64 = 5000;

/// Interval of pings on a silent stream of events: less than the minute after which proxies give a silent answer up.
pub const EVENT_PING_INTERVAL_MS: u64 = 30_000;

/// How long a closing server waits for requests under way.
pub const SHUTDOWN_MS_MAX: u64 = 10_000;

/// Body of a request to the admin API.
pub const ADMIN_REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Interval at which a server asks for changes of the catalog that it shares with others, and for the
/// leaders of databases.
pub const CLUSTER_POLL_MS: u64 = 500;

/// Databases that a server closes at one time.
pub const CLOSINGS_AT_ONCE: usize = 16;

/// Least time between the beginnings of two refreshes of that catalog before requests are refused.
pub const CATALOG_REFRESH_MS_MIN: u64 = 50;

/// Longest wait of such a request.
pub const CATALOG_REFRESH_WAIT_MS_MAX: u64 = 5_000;

/// Longest wait for a connection to the server that a request is handed over to.
pub const FORWARD_CONNECT_MS_MAX: u64 = 2_000;

/// Attempts to change a catalog that other servers change meanwhile.
pub const CATALOG_TRIES_MAX: usize = 16;

/// Rows that one statement deletes of a dropped database on PostgreSQL.
pub const POSTGRES_EMPTY_STEP_ROWS: i64 = 5_000;

/// Databases of one server.
// Public (a server): databases of a folder
pub const DATABASES_MAX: usize = 100_000;

/// The registry of a folder up to which each change replaces it; beyond, changes are appended to a file beside it.
pub const REGISTRY_WHOLE_BYTES_MAX: usize = 256 * 1024;

/// Access tokens of one database.
// Public (a server): access tokens of a database
pub const ACCESS_TOKENS_MAX: usize = 1000;

/// Name of a database of a server.
// Public (a server): characters of the name of a database
pub const DATABASE_NAME_CHARS_MAX: usize = 63;

/// Watches of one database of a server, unless its quotas set another number.
// Public (a server): default of the quota `watches`
pub const DATABASE_WATCHES_MAX: u32 = 10_000;

/// How long dropping a database waits for its work under way: longer than a write waits for other
/// processes.
pub const DROP_WAIT_MS_MAX: u64 = 2 * BUSY_TIMEOUT_MS_DEFAULT;

/// How long a client may take to notice the end of an idle connection.
pub const FAREWELL_MS_MAX: u64 = 1000;

/// Delay before a server rejects a request over a quota, so that a client that retries at once
/// causes few requests.
pub const OVER_QUOTA_PAUSE_MS: u64 = 100;

/// How long the measured size of a database is used.
pub const SIZE_REFRESH_MS: u64 = 1000;
