//! Every bound of the project, its unit last in its name. Those of some modules
//! have files of their own below this one.
//!
//! [`Limits`] are the bounds of a handle. The default is Deno KV's, so that the same code runs on
//! Deno; the other set is "wide". JavaScript reads these numbers from the binding.

mod archive;
mod file;
mod http;
mod immediate;
mod interchange;
mod layer;
mod postgres;
mod queue;
mod remote;
mod replication;

pub use archive::*;
pub use file::*;
pub use http::*;
pub use immediate::*;
pub use interchange::*;
pub use layer::*;
pub use postgres::*;
pub use queue::*;
pub use remote::*;
pub use replication::*;

macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident $name:literal = $value:expr, wide $wide:expr;)*) => {
        /// The bounds on the calls of a handle. The default is Deno KV's.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits { $($(#[$doc])* pub $field: usize,)* }

        impl Default for Limits {
            fn default() -> Self { Self { $($field: $value,)* } }
        }

        impl Limits {
            /// The set "wide", for databases that do not move to Deno.
            #[must_use]
            pub fn wide() -> Self { Self { $($field: $wide,)* } }

            /// Every bound with its name in JavaScript.
            pub fn entries(&self) -> impl Iterator<Item = (&'static str, usize)> {
                [$(($name, self.$field),)*].into_iter()
            }

            /// Sets the bound with this name; `false` if there is none.
            pub fn set(&mut self, name: &str, value: usize) -> bool {
                match name {
                    $($name => self.$field = value,)*
                    _ => return false,
                }
                true
            }
        }
    };
}

const MIB: usize = 1024 * 1024;

limits! {
    /// Encoded key of a check, a mutation or an undelivered message.
    key_bytes_max "keyBytesMax" = 2048, wide 2048;
    /// Encoded bound of a range. One byte more than a key, because a point read ends at `key 00`.
    range_key_bytes_max "rangeKeyBytesMax" = 2049, wide 2049;
    /// Encoded value of a mutation; a `KvU64` counts as 8.
    value_bytes_max "valueBytesMax" = 65_536, wide 16 * MIB;
    /// Encoded queue message.
    message_bytes_max "messageBytesMax" = 65_536, wide 16 * MIB;
    /// Keys of one `getMany`, or ranges of one read.
    ranges_max "rangesMax" = 10, wide 1000;
    /// Rows of one read: the sum of the limits of its ranges.
    rows_max "rowsMax" = 1000, wide 1000;
    /// Checks of one commit.
    checks_max "checksMax" = 100, wide 1000;
    /// Entries in all range checks of one commit.
    checked_rows_max "checkedRowsMax" = 1000, wide 100_000;
    /// Mutations and messages of one commit.
    mutations_max "mutationsMax" = 1000, wide 10_000;
    /// Keys of one watch.
    watched_keys_max "watchedKeysMax" = 10, wide 1000;
    /// Keys, values and messages of one commit together, counted as Deno counts them.
    commit_bytes_max "commitBytesMax" = 819_200, wide 64 * MIB;
    /// Keys of the mutations with values in one commit together.
    commit_key_bytes_max "commitKeyBytesMax" = 81_920, wide 10_000 * 2048;
    /// Keys that receive an undeliverable message.
    undelivered_keys_max "undeliveredKeysMax" = 10, wide 10;
    /// Longest delay of a message.
    delay_ms_max "delayMsMax" = 2_592_000_000, wide 2_592_000_000;
    /// Retries in the backoff schedule of a message.
    backoff_intervals_max "backoffIntervalsMax" = 5, wide 5;
    /// One interval of a backoff schedule.
    backoff_interval_ms_max "backoffIntervalMsMax" = 3_600_000, wide 3_600_000;
}

/// Characters of a key in a message of an error or log.
pub const KEY_PRINT_CHARS_MAX: usize = 100;

/// Nesting of a stored value, in containers. Writes over it are rejected.
pub const VALUE_DEPTH_MAX: usize = 1000;

/// Delays before the retries of a message without a schedule; JavaScript applies it.
pub const BACKOFF_DEFAULT_MS: [u32; 5] = [100, 1000, 5000, 30_000, 60_000];

/// Queues whose number of messages a writer keeps in memory.
pub const DEPTHS_KEPT_MAX: usize = 1024;

/// Dead messages that one transaction removes.
pub const DEAD_PURGE_ROWS_MAX: usize = 512;

/// Name of the error of a dead message, in UTF-8; a longer one is truncated.
pub const DEAD_NAME_BYTES_MAX: usize = 256;

/// Message of the error of a dead message, in UTF-8; a longer one is truncated.
pub const DEAD_MESSAGE_BYTES_MAX: usize = 4096;

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
pub const WRITER_LINGER_US: u64 = 50;

/// Times in a row without an arrival after which the writer thread gives spinning up.
pub const WRITER_LINGER_MISSES_MAX: u32 = 4;

/// Answers after which it tries again.
pub const WRITER_LINGER_TRIED_EVERY: u32 = 64;

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
pub const BUSY_TIMEOUT_MS_DEFAULT: u64 = 5000;

/// Time after the first synchronous read in a turn of the event loop, after which reads go to the
/// reader thread.
pub const TURN_BUDGET_US: u64 = 800;

/// Interval of retries of a synchronous read that another process blocks.
pub const SYNC_READ_RETRY_MS: u64 = 1;

/// Interval of checking for commits of other processes without an announcement.
pub const EXTERNAL_POLL_MS: u64 = 1000;

/// The same interval where the operating system's announcements are unavailable or unreliable.
pub const EXTERNAL_POLL_UNANNOUNCED_MS: u64 = 20;

/// Pause before the operating system is asked again to announce writes to a file; it doubles with
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

/// Full-text indexes of one database; every write checks all of them.
pub const INDEXES_MAX: usize = 64;

/// Fields of one full-text index.
pub const INDEX_FIELDS_MAX: usize = 32;

/// Name of a field of a full-text index.
pub const INDEX_FIELD_BYTES_MAX: usize = 256;

/// Name of a full-text index.
pub const INDEX_NAME_BYTES_MAX: usize = 256;

/// Prefix lengths of a full-text index.
pub const INDEX_PREFIX_LENGTHS_MAX: usize = 4;

/// One prefix length, in characters.
pub const INDEX_PREFIX_CHARS_MAX: u8 = 32;

/// Largest bigint that is indexed as text, since conversion to digits takes more than linear time.
pub const INDEX_BIGINT_BITS_MAX: u64 = 4096;

/// Work for finding the text of a field, for each byte of the value: nodes visited, names compared
/// and bytes of text together. A value without shared objects stays below it, since each unit of
/// work has a byte of its own.
pub const INDEX_FIELD_COST_PER_BYTE_MAX: usize = 3;

/// Allowance for this work in values of any size, for all fields together.
pub const INDEX_TEXT_COST_MIN: usize = 10_000;

/// Entries that one step of building an index processes.
pub const INDEX_BUILD_ROWS_MAX: usize = 512;

/// Bytes of values after which such a step ends.
pub const INDEX_BUILD_BYTES_MAX: usize = 1024 * 1024;

/// How long a step of building waits for another process before it is postponed.
pub const INDEX_BUILD_BUSY_MS: u64 = 50;

/// Length of a search query.
pub const QUERY_BYTES_MAX: usize = 4096;

/// Nesting of parentheses in a search query. FTS5's parser has a stack of 100 symbols, of which a
/// level can take nine.
pub const QUERY_DEPTH_MAX: usize = 8;

/// Terms and phrases of a search query.
pub const QUERY_TERMS_MAX: usize = 128;

/// Results of one search.
pub const SEARCH_ENTRIES_MAX: usize = 1000;

/// Hits that one search skips (`offset`).
pub const SEARCH_OFFSET_MAX: usize = 1_000_000;

/// Terms of one highlighted snippet; FTS5 allows no more.
pub const SNIPPET_TERMS_MAX: usize = 64;

/// Text of one mark in a highlighted snippet.
pub const SNIPPET_MARK_BYTES_MAX: usize = 256;

/// Entries that one step of a deletion of many examines, and so the most that it deletes.
pub const DELETE_STEP_ROWS_MAX: usize = 2048;

/// Items that the filter of a deletion may visit inside a transaction, while all other writes wait.
/// The filter is evaluated before the transaction, inside it only for entries that have changed
/// since.
pub const DELETE_UNKNOWN_VISITS_MAX: usize = 2_000_000;

/// Attempts of a deletion in one transaction if more entries keep changing than that bound allows.
pub const DELETE_WHOLE_TRIES_MAX: usize = 5;

/// Entries that a deletion in one transaction examines.
pub const DELETE_WHOLE_ROWS_MAX: usize = 100_000;

/// Threads of a store for long reads: searches, counts, filtered lists.
pub const LONG_READERS_MAX: usize = 2;

/// How long such a thread and its connection remain without work.
pub const LONG_READER_IDLE_MS: u64 = 10_000;

/// Duration of one step of a long read, after which other reads have their turn. One large value
/// can exceed it.
pub const LONG_STEP_MS: u64 = 20;

/// Time limit of a search, a count or a filtered deletion, over all its steps.
pub const LONG_READ_MS_MAX: u64 = 300_000;

/// The same limit for a client of a server.
pub const SERVER_LONG_READ_MS_MAX: u64 = 60_000;

/// How long such work may continue after its handle was closed.
pub const CLOSE_GRACE_MS: u64 = 100;

/// Virtual machine instructions of SQLite between two checks for cancellation.
pub const LONG_READ_INSTRUCTIONS: i32 = 1000;

/// Entries that one step of a count or filtered list examines.
pub const SCAN_STEP_ROWS_MAX: usize = 8192;

/// Bytes of values after which such a step ends.
pub const SCAN_STEP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Keys from which a watch caches the entries that it has read.
pub const WATCH_KNOWN_KEYS_MIN: usize = 32;

/// Bytes of values above which it does not cache them.
pub const WATCH_KNOWN_BYTES_MAX: usize = 1024 * 1024;

/// Entries of one page of `paginate`; JavaScript enforces it.
pub const PAGE_ENTRIES_MAX: usize = 1000;

/// Encoded filter.
pub const FILTER_BYTES_MAX: usize = 256 * 1024;

/// Nesting of objects and arrays in a filter.
pub const FILTER_DEPTH_MAX: usize = 32;

/// Nesting of the body of a request in CBOR, outside of its embedded values.
pub const CBOR_DOCUMENT_DEPTH_MAX: usize = 128;

/// Conditions, operands and objects of one filter together.
pub const FILTER_NODES_MAX: usize = 1000;

/// Steps of one path in a filter.
pub const FILTER_PATH_STEPS_MAX: usize = 100;

/// Items that all conditions of a filter together may visit behind references in one value. Without
/// a bound an object with many references to it could be visited exponentially often. Items outside
/// of references do not count.
pub const FILTER_VISITS_MAX: usize = 1_000_000;

/// Bytes of a text, name or bigint that count as one visit.
pub const FILTER_VISIT_BYTES: usize = 16;

/// Visits of a filter in one value between two checks for cancellation.
pub const FILTER_LOOK_VISITS: usize = 10_000;

/// Length of a text from which a filter caches its case-folded form for other conditions.
pub const FILTER_FOLD_KEPT_BYTES_MIN: usize = 256;

/// Changes with a value in the log of changes.
pub const FEED_CHANGES_MAX: u64 = 100_000;

/// Keys and values of those changes together.
pub const FEED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Removals in the log of changes, which are stored nowhere else.
pub const FEED_REMOVALS_MAX: u64 = 100_000;

/// Keys of those removals together.
pub const FEED_REMOVAL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// The last time of a `Date` of JavaScript, in ms since the epoch.
pub const TIME_MS_MAX: i64 = 8_640_000_000_000_000;

/// Age of a change in the log of changes.
pub const FEED_AGE_MS_MAX: i64 = 7 * 86_400_000;

/// Commits that one transaction trims from the log of changes, unless it adds more than half as
/// many.
pub const FEED_TRIM_COMMITS: usize = 64;

/// Largest value that the log of changes copies; a larger one is read from its entry.
pub const FEED_VALUE_BYTES_MAX: usize = 65_536;

/// Changes and bytes after which a batch of a feed ends, at the end of a commit.
pub const FEED_BATCH_CHANGES: usize = 1000;

/// See [`FEED_BATCH_CHANGES`].
pub const FEED_BATCH_BYTES: usize = 1024 * 1024;

/// Changes and bytes after which a batch ends that is built from the entries.
pub const FEED_COALESCED_CHANGES: usize = 10_000;

/// See [`FEED_COALESCED_CHANGES`].
pub const FEED_COALESCED_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of changes after which a batch of a feed is split for the network.
pub const FEED_PART_BYTES: usize = 65_536;

/// A batch of a feed on the network. A commit is not split, so the largest one fits.
pub const FEED_FRAME_BYTES_MAX: usize = 128 * 1024 * 1024;

/// A frame of a KV Connect watch; Deno's client accepts no more.
pub const WATCH_FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Endpoints of the metadata of a KV Connect server.
pub const METADATA_ENDPOINTS_MAX: usize = 256;

/// Requests under way in a server, from the check of their token to the end of their answer.
/// Further ones wait.
pub const SERVER_REQUESTS_MAX: usize = 1024;

/// Requests under way in one database.
pub const DATABASE_REQUESTS_MAX: usize = 512;

/// Bodies, answers and pieces of streams up to this size count as part of their request or watch.
/// Longer ones reserve their bytes from the memory below.
pub const SHORT_BYTES_MAX: usize = 64 * 1024;

/// Memory for bodies and answers over [`SHORT_BYTES_MAX`], for all databases of a server.
pub const SERVER_MEMORY_BYTES_MAX: usize = 512 * 1024 * 1024;

/// The same memory for one database. The largest body fits.
pub const DATABASE_MEMORY_BYTES_MAX: usize = 128 * 1024 * 1024;

/// How long a request waits for a free place, and for memory.
pub const MEMORY_WAIT_MS_MAX: u64 = 10_000;

/// Body of a request to the server.
pub const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Body of a request of openkv's extension with a read-only token: a thousand keys.
pub const FRAMES_READ_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Body of such a request with a token for writing: a commit of the set "wide", with room for its
/// other parts.
pub const FRAMES_WRITE_BYTES_MAX: usize = 72 * 1024 * 1024;

/// Writes of one request, which form one group.
pub const FRAMES_WRITES_MAX: usize = 1000;

/// Checks, mutations, messages and placeholders of one request, plus one for each write. The
/// largest commit with a UUID in each key and value stays below it.
pub const FRAMES_RECORDS_MAX: usize = 65_536;

/// Bodies of writes above this size are parsed outside of the server's threads.
pub const FRAMES_APART_BYTES_MIN: usize = 64 * 1024;

/// Bytes of writes after which no further write joins a request.
pub const FRAMES_GROUP_BYTES: usize = 1024 * 1024;

/// Bytes of an answer after which a list ends; the next page continues there.
pub const FRAMES_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of an answer that cannot be split.
pub const FRAMES_ANSWER_BYTES_MAX: usize = 112 * 1024 * 1024;

/// Bytes of a local answer that cannot be split. It becomes one `Buffer`, which has at most 4 GiB
/// in Node.js 20.
pub const ANSWER_BYTES_MAX: usize = u32::MAX as usize;

/// Ranges of one read of the extension, which share a snapshot.
pub const FRAMES_RANGES_MAX: usize = 1000;

/// Rows of one read of the extension: the sum of the limits of its ranges.
pub const FRAMES_ROWS_MAX: usize = 1000;

/// Retries in the backoff schedule of a message from the network.
pub const WIRE_BACKOFF_INTERVALS_MAX: usize = 10;
/// Shortest token that a server accepts; Deno's server requires the same.
pub const TOKEN_CHARS_MIN: usize = 12;

/// Default lifetime of a token of the data path.
pub const DATA_TOKEN_MS_DEFAULT: u64 = 15 * 60 * 1000;

/// Shortest lifetime; clients renew a token some seconds before its end.
pub const DATA_TOKEN_MS_MIN: u64 = 1000;

/// Longest lifetime.
pub const DATA_TOKEN_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// Default number of connections of a server. A new connection replaces the oldest one that has not
/// presented a valid token.
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

/// Time for the body of a request.
pub const REQUEST_BODY_MS_MAX: u64 = 30_000;

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

/// Longest wait for a connection to the server that a request is handed over to.
pub const FORWARD_CONNECT_MS_MAX: u64 = 2_000;

/// Attempts to change a catalog that other servers change meanwhile.
pub const CATALOG_TRIES_MAX: usize = 16;

/// Rows that one statement deletes of a dropped database on PostgreSQL.
pub const POSTGRES_EMPTY_STEP_ROWS: i64 = 5_000;

/// Databases of one server.
pub const DATABASES_MAX: usize = 10_000;

/// Access tokens of one database.
pub const ACCESS_TOKENS_MAX: usize = 1000;

/// Name of a database of a server.
pub const DATABASE_NAME_CHARS_MAX: usize = 63;

/// Watches of one database of a server, unless its quotas set another number.
pub const DATABASE_WATCHES_MAX: u32 = 10_000;

/// How long dropping a database waits for its work under way: longer than a write waits for other
/// processes.
pub const DROP_WAIT_MS_MAX: u64 = 2 * BUSY_TIMEOUT_MS_DEFAULT;

/// How long a lane keeps a snapshot if its turn of the event loop does not end. It is checked at
/// this interval, so the snapshot lasts at most twice as long.
pub const LANE_HELD_MS_MAX: u64 = 100;

/// How long the reader thread keeps a snapshot for consecutive reads.
pub const READER_HELD_MS_MAX: u64 = 10;

/// How long `Symbol.dispose` waits until the database of the handle is closed.
pub const DISPOSE_WAIT_MS_MAX: u64 = 500;

/// How long a client may take to notice the end of an idle connection.
pub const FAREWELL_MS_MAX: u64 = 1000;

/// Delay before a server rejects a request over a quota, so that a client that retries at once
/// causes few requests.
pub const OVER_QUOTA_PAUSE_MS: u64 = 100;

/// How long the measured size of a database file is used.
pub const SIZE_REFRESH_MS: i64 = 1000;

/// One of so many reads of a lane is timed; reading the clock for each would cost more than
/// counting.
pub const LATENCY_SAMPLE_READS: u32 = 32;

/// Times that a lane collects in a turn before it publishes them.
pub const LATENCY_SAMPLES_MAX: usize = 64;

/// Largest value that a metric distinguishes: an hour in ns.
pub const METRIC_VALUE_MAX: u64 = 3_600_000_000_000;

/// Decimal digits to which quantiles are exact.
pub const METRIC_DIGITS: u8 = 2;

/// Processes whose last flush of metrics a database remembers.
pub const METRIC_FLUSHES_MAX: usize = 16;

/// Longest wait of a flush of metrics for other processes, in ms, when the database closes. Other flushes
/// do not wait.
pub const METRIC_LAST_FLUSH_MS_MAX: u64 = 1000;

/// Queues whose messages are counted for metrics, the first ones by name.
pub const METRIC_QUEUES_MAX: usize = 1000;
