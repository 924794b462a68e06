//! Every bound, its unit last in its name, in this one file and, of remote databases, in the one
//! below.
//!
//! [`Limits`] are those of a handle: the default is Deno KV's table, so that code which runs here
//! runs there; beside it stands the set "wide". JavaScript takes the same numbers from the binding;
//! nothing is spelled twice.

mod queue;
mod remote;

pub use queue::*;
pub use remote::*;

macro_rules! limits {
    ($($(#[$doc:meta])* $field:ident $name:literal = $value:expr, wide $wide:expr;)*) => {
        /// The bounds that a handle puts on its calls. The default is Deno KV's table.
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct Limits { $($(#[$doc])* pub $field: usize,)* }

        impl Default for Limits {
            fn default() -> Self { Self { $($field: $value,)* } }
        }

        impl Limits {
            /// The set for databases that stay with openkv: what is large fits.
            #[must_use]
            pub fn wide() -> Self { Self { $($field: $wide,)* } }

            /// Every bound with the name that JavaScript knows it by.
            pub fn entries(&self) -> impl Iterator<Item = (&'static str, usize)> {
                [$(($name, self.$field),)*].into_iter()
            }

            /// Changes the bound of that name; `false` when there is none.
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
    /// Encoded key of a check, mutation or undelivered message.
    key_bytes_max "keyBytesMax" = 2048, wide 2048;
    /// Encoded bound of a read; one more than a key, since a point read ends at `key 00`.
    range_key_bytes_max "rangeKeyBytesMax" = 2049, wide 2049;
    /// Encoded value of a mutation; a `KvU64` counts 8.
    value_bytes_max "valueBytesMax" = 65_536, wide 16 * MIB;
    /// Encoded queue message.
    message_bytes_max "messageBytesMax" = 65_536, wide 16 * MIB;
    /// Keys of one `getMany`, ranges of one read.
    ranges_max "rangesMax" = 10, wide 1000;
    /// Rows of one read, the sum of its ranges' limits.
    rows_max "rowsMax" = 1000, wide 1000;
    /// Checks of one commit.
    checks_max "checksMax" = 100, wide 1000;
    /// Entries that were seen by the range checks of one commit, all together.
    checked_rows_max "checkedRowsMax" = 1000, wide 100_000;
    /// Mutations and messages of one commit.
    mutations_max "mutationsMax" = 1000, wide 10_000;
    /// Keys of one watch.
    watched_keys_max "watchedKeysMax" = 10, wide 1000;
    /// Keys, values and messages of one commit together, as Deno counts them.
    commit_bytes_max "commitBytesMax" = 819_200, wide 64 * MIB;
    /// Keys of the value-bearing mutations of one commit together.
    commit_key_bytes_max "commitKeyBytesMax" = 81_920, wide 10_000 * 2048;
    /// Keys that receive an undeliverable message.
    undelivered_keys_max "undeliveredKeysMax" = 10, wide 10;
    /// Longest delay of a message.
    delay_ms_max "delayMsMax" = 2_592_000_000, wide 2_592_000_000;
    /// Retries in a message's backoff schedule.
    backoff_intervals_max "backoffIntervalsMax" = 5, wide 5;
    /// One interval of a backoff schedule.
    backoff_interval_ms_max "backoffIntervalMsMax" = 3_600_000, wide 3_600_000;
}

/// Most characters of a key in a message.
pub const KEY_PRINT_CHARS_MAX: usize = 100;

/// Deepest nesting of a stored value, counted in containers. Refused when written.
pub const VALUE_DEPTH_MAX: usize = 1000;

/// Delays before the retries of a message without a schedule; JavaScript applies it.
pub const BACKOFF_DEFAULT_MS: [u32; 5] = [100, 1000, 5000, 30_000, 60_000];

/// Queues of which a writer keeps how many messages they hold.
pub const DEPTHS_KEPT_MAX: usize = 1024;

/// Most dead messages removed by one transaction.
pub const DEAD_PURGE_ROWS_MAX: usize = 512;

/// Name of the error that a dead message keeps, in UTF-8; the rest is cut off.
pub const DEAD_NAME_BYTES_MAX: usize = 256;

/// Message of the error that a dead message keeps, in UTF-8; the rest is cut off.
pub const DEAD_MESSAGE_BYTES_MAX: usize = 4096;

/// How long a step of the sweep should last: a write that comes meanwhile waits for it.
pub const SWEEP_STEP_US: u64 = 2_000;

/// Fewest expired entries that a step of the sweep takes, however long that is.
pub const SWEEP_ROWS_MIN: usize = 64;

/// Most expired entries that a step of the sweep takes, however quick that is.
pub const SWEEP_ROWS_MAX: usize = 8192;

/// Most expired entries that a transaction with other work deletes beside it.
pub const SWEEP_JOINED_ROWS_MAX: usize = 32;

/// How long work that was due and found nothing to do waits before the next try; also ends of
/// deliveries and renewals of locks whose transaction failed.
pub const FRUITLESS_PAUSE_MS: i64 = 250;

/// How long a background part that has failed waits before it tries again; twice as long after each
/// further failure.
pub const BACKGROUND_PAUSE_MS: u64 = 100;

/// The longest of these pauses.
pub const BACKGROUND_PAUSE_MS_MAX: u64 = 2000;

/// How often the commit counter is read while other processes' commits cannot be watched for.
pub const BACKGROUND_POLL_MS: u64 = 100;

/// How long the tries of a background part may fail before callers who depend on it get its error.
pub const BACKGROUND_FAILING_MS_MAX: u64 = 5000;

/// How long the writer thread stays awake after answering: waking it costs a quarter of this, and
/// a caller that was answered often writes again at once.
pub const WRITER_LINGER_US: u64 = 50;

/// Most writes that share one transaction, unless they were handed over together.
pub const GROUP_WRITES_MAX: usize = 8192;

/// Bytes of queued writes beyond which a group is closed and committed.
pub const GROUP_BYTES_MAX: usize = 64 * 1024 * 1024;

/// Longest name of a copy of openkv that a refusal shows: its version and the path of its addon.
pub const COPY_NAME_BYTES_MAX: usize = 1024;

/// How often a process that has closed a file looks whether another one has closed it at the same
/// moment, so that the log is left.
pub const CLOSE_TRIES_MAX: usize = 3;

/// Longest pause before each of these looks.
pub const CLOSE_PAUSE_US_MAX: u64 = 10_000;

/// Longest time that a writer waits for another process to finish its transaction, by default.
pub const BUSY_TIMEOUT_MS_DEFAULT: u64 = 5000;

/// How long after the first synchronous read of a turn of the event loop reads leave the thread.
pub const TURN_BUDGET_US: u64 = 800;

/// How often a synchronous read that another process keeps from reading tries again.
pub const SYNC_READ_RETRY_MS: u64 = 1;

/// How often a process that waits for other processes' commits looks without being woken.
pub const EXTERNAL_POLL_MS: u64 = 1000;

/// How often it looks where the operating system's announcements cannot be had or relied on.
pub const EXTERNAL_POLL_UNANNOUNCED_MS: u64 = 20;

/// How long after a refusal the operating system is asked again to announce writes to a file; twice
/// as long after each further one.
pub const EXTERNAL_RETRY_MS: u64 = 500;

/// The longest of these pauses.
pub const EXTERNAL_RETRY_MS_MAX: u64 = 30_000;

/// How long the process's file watcher and its thread stay after the last watched file: opening and
/// leaving watches in turn must not start and end them each time.
pub const EXTERNAL_LINGER_MS: u64 = 10_000;

/// Longest time between two looks at the file's earliest expiry, for entries of other processes.
pub const DEADLINES_REFRESH_MS: i64 = 60_000;

/// Page cache of a connection that reads or writes.
pub const PAGE_CACHE_KIB: i64 = 16 * 1024;

/// Key and value bytes above which a value moves to the side table: a row of a `WITHOUT ROWID`
/// tree should stay under a quarter of a 4096-byte page.
pub const SPILL_ROW_BYTES_MIN: usize = 960;

/// Full-text indexes of one database: every write looks at all of them.
pub const INDEXES_MAX: usize = 64;

/// Fields of one full-text index.
pub const INDEX_FIELDS_MAX: usize = 32;

/// Name of a field of a full-text index.
pub const INDEX_FIELD_BYTES_MAX: usize = 256;

/// Name of a full-text index.
pub const INDEX_NAME_BYTES_MAX: usize = 256;

/// Lengths for which a full-text index has the beginnings of terms.
pub const INDEX_PREFIX_LENGTHS_MAX: usize = 4;

/// The longest of those, in characters.
pub const INDEX_PREFIX_CHARS_MAX: u8 = 32;

/// The longest bigint that has text: its digits take more than linear time.
pub const INDEX_BIGINT_BITS_MAX: u64 = 4096;

/// What finding a field's text may cost for each byte of a value: nodes visited, names compared and
/// bytes of text together. A value without shared objects never costs more, since each of these has
/// a byte of its own there.
pub const INDEX_FIELD_COST_PER_BYTE_MAX: usize = 3;

/// What the text of all fields of a value may cost however small it is.
pub const INDEX_TEXT_COST_MIN: usize = 10_000;

/// Entries that one transaction of building an index looks at.
pub const INDEX_BUILD_ROWS_MAX: usize = 512;

/// Bytes of values after which such a transaction ends.
pub const INDEX_BUILD_BYTES_MAX: usize = 1024 * 1024;

/// How long a step of building waits for another process; it is tried again later.
pub const INDEX_BUILD_BUSY_MS: u64 = 50;

/// A search query.
pub const QUERY_BYTES_MAX: usize = 4096;

/// Nesting of a search query in parentheses. FTS5's parser has a stack of 100 symbols, of which a
/// level can take nine.
pub const QUERY_DEPTH_MAX: usize = 8;

/// Terms and phrases of a search query.
pub const QUERY_TERMS_MAX: usize = 128;

/// Results of one search.
pub const SEARCH_ENTRIES_MAX: usize = 1000;

/// Hits that one search passes over: its offset.
pub const SEARCH_OFFSET_MAX: usize = 1_000_000;

/// Terms of one highlighted snippet; the full-text engine has no more.
pub const SNIPPET_TERMS_MAX: usize = 64;

/// A mark of a highlighted snippet.
pub const SNIPPET_MARK_BYTES_MAX: usize = 256;

/// Entries that one transaction of a deletion of many looks at, and so the most that it deletes.
pub const DELETE_STEP_ROWS_MAX: usize = 2048;

/// Items that the filter of a deletion may come by inside of one transaction, which keeps all other
/// writes waiting: values are held against it before, and only those that have changed since once
/// more.
pub const DELETE_UNKNOWN_VISITS_MAX: usize = 2_000_000;

/// How often a deletion in one transaction is tried when more entries change meanwhile than it may
/// hold against its filter.
pub const DELETE_WHOLE_TRIES_MAX: usize = 5;

/// Entries that a deletion in one transaction, as was asked for, looks at.
pub const DELETE_WHOLE_ROWS_MAX: usize = 100_000;

/// Threads of a store for reads that take long: searches, counts, filtered lists.
pub const LONG_READERS_MAX: usize = 2;

/// How long such a thread, and with it its connection, stays without work.
pub const LONG_READER_IDLE_MS: u64 = 10_000;

/// How long one step of such a read lasts before others have their turn, unless one value takes
/// longer.
pub const LONG_STEP_MS: u64 = 20;

/// How long a search, a count or a filtered deletion may take with all its steps.
pub const LONG_READ_MS_MAX: u64 = 300_000;

/// As [`LONG_READ_MS_MAX`], of a client of a server.
pub const SERVER_LONG_READ_MS_MAX: u64 = 60_000;

/// How long such work may still go on when its handle has been closed.
pub const CLOSE_GRACE_MS: u64 = 100;

/// Instructions of SQLite's virtual machine between two looks at whether such work is to go on.
pub const LONG_READ_INSTRUCTIONS: i32 = 1000;

/// Entries that one step of a count or a filtered list looks at, so that other reads come between.
pub const SCAN_STEP_ROWS_MAX: usize = 8192;

/// Bytes of values after which such a step ends.
pub const SCAN_STEP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Keys from which on a watch keeps what it has read, so that it need not read all of them again.
pub const WATCH_KNOWN_KEYS_MIN: usize = 32;

/// Bytes of values above which it does not.
pub const WATCH_KNOWN_BYTES_MAX: usize = 1024 * 1024;

/// Entries of one page of `paginate`; JavaScript checks it.
pub const PAGE_ENTRIES_MAX: usize = 1000;

/// Encoded bytes of a filter.
pub const FILTER_BYTES_MAX: usize = 256 * 1024;

/// Deepest nesting of a filter's objects and arrays.
pub const FILTER_DEPTH_MAX: usize = 32;

/// Conditions, operands and objects of a filter together.
pub const FILTER_NODES_MAX: usize = 1000;

/// Steps of one path of a filter.
pub const FILTER_PATH_STEPS_MAX: usize = 100;

/// Items behind references that a filter may come by in one value, passed over or looked at, all
/// its conditions together: an object that is met several times could otherwise be walked without
/// end. Items that stand in the value itself are not counted here.
pub const FILTER_VISITS_MAX: usize = 1_000_000;

/// Bytes of a text, name or bigint that is looked at which count as one more item.
pub const FILTER_VISIT_BYTES: usize = 16;

/// Items that a filter comes by in one value between two looks at whether it is to go on.
pub const FILTER_LOOK_VISITS: usize = 10_000;

/// Bytes of a text from which on a filter keeps it folded for the other conditions on it.
pub const FILTER_FOLD_KEPT_BYTES_MIN: usize = 256;

/// Changes that set something which the log of changes keeps, at most.
pub const FEED_CHANGES_MAX: u64 = 100_000;

/// Keys and values of those changes together.
pub const FEED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Removals which the log of changes keeps, at most: they can be found nowhere else.
pub const FEED_REMOVALS_MAX: u64 = 100_000;

/// Keys of those removals together.
pub const FEED_REMOVAL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// How long the log of changes keeps a change.
pub const FEED_AGE_MS_MAX: i64 = 7 * 86_400_000;

/// Most commits that one transaction drops from the log of changes, unless it adds half as many.
pub const FEED_TRIM_COMMITS: usize = 64;

/// Largest value that the log of changes copies; a larger one is read from its entry.
pub const FEED_VALUE_BYTES_MAX: usize = 65_536;

/// Changes and bytes after which a batch of a feed ends with the commit that it has come to.
pub const FEED_BATCH_CHANGES: usize = 1000;

/// See [`FEED_BATCH_CHANGES`].
pub const FEED_BATCH_BYTES: usize = 1024 * 1024;

/// Changes and bytes after which a batch ends that is put together from the entries themselves.
pub const FEED_COALESCED_CHANGES: usize = 10_000;

/// See [`FEED_COALESCED_CHANGES`].
pub const FEED_COALESCED_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of changes after which a batch of a feed is split before it goes over the network.
pub const FEED_PART_BYTES: usize = 65_536;

/// A batch of a feed as it goes over the network: the largest commits fit, which come whole.
pub const FEED_FRAME_BYTES_MAX: usize = 128 * 1024 * 1024;

/// A frame of a KV Connect watch: what Deno's client takes.
pub const WATCH_FRAME_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Endpoints of the metadata of a KV Connect server.
pub const METADATA_ENDPOINTS_MAX: usize = 256;

/// Requests that a server has under way at one time, from their token to the end of their answer;
/// more wait.
pub const SERVER_REQUESTS_MAX: usize = 1024;

/// Those of one database.
pub const DATABASE_REQUESTS_MAX: usize = 512;

/// Bodies, answers and pieces of streams up to this are only counted, with the request or the
/// watch; longer ones take their bytes from the memory that there is for them.
pub const SHORT_BYTES_MAX: usize = 64 * 1024;

/// Memory for what is longer, of all databases of a server.
pub const SERVER_MEMORY_BYTES_MAX: usize = 512 * 1024 * 1024;

/// Memory for what is longer, of one database: the largest of all fits.
pub const DATABASE_MEMORY_BYTES_MAX: usize = 128 * 1024 * 1024;

/// How long a request waits for its place, and for memory.
pub const MEMORY_WAIT_MS_MAX: u64 = 10_000;

/// Body of a request to the server.
pub const REQUEST_BYTES_MAX: usize = 2 * 1024 * 1024;

/// Body of a request of openkv's extension with a token that may only read: a thousand keys.
pub const FRAMES_READ_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Body of one that may write: a commit of the set "wide", with room for what is beside keys and
/// values.
pub const FRAMES_WRITE_BYTES_MAX: usize = 72 * 1024 * 1024;

/// Writes of one request, which is one group.
pub const FRAMES_WRITES_MAX: usize = 1000;

/// Checks, mutations, messages and places of UUIDs of one request, all its writes together, with an
/// end for each write: those of the largest commit, with a UUID in each key and value, and more.
pub const FRAMES_RECORDS_MAX: usize = 65_536;

/// Bodies of writes above this are taken apart away from the threads that serve.
pub const FRAMES_APART_BYTES_MIN: usize = 64 * 1024;

/// Bytes of writes after which no other write joins a request.
pub const FRAMES_GROUP_BYTES: usize = 1024 * 1024;

/// Bytes of an answer after which a list stops with the entry that it has come to; the next page
/// goes on there.
pub const FRAMES_PAGE_BYTES: usize = 8 * 1024 * 1024;

/// Bytes of an answer that cannot stop anywhere; more are refused.
pub const FRAMES_ANSWER_BYTES_MAX: usize = 112 * 1024 * 1024;

/// Bytes of an answer to JavaScript here that cannot stop anywhere; more are refused. It becomes
/// one `Buffer`, which in Node.js 20 has 4 GiB at most.
pub const ANSWER_BYTES_MAX: usize = u32::MAX as usize;

/// Ranges of one read of the extension, which is one snapshot.
pub const FRAMES_RANGES_MAX: usize = 1000;

/// Rows of one read of the extension, the sum of its ranges' limits.
pub const FRAMES_ROWS_MAX: usize = 1000;

/// Retries in the backoff schedule of a message that came over the network.
pub const WIRE_BACKOFF_INTERVALS_MAX: usize = 10;
/// Shortest token that a server takes: what Deno's own asks for.
pub const TOKEN_CHARS_MIN: usize = 12;

/// How long a token of the data path is good, by default.
pub const DATA_TOKEN_MS_DEFAULT: u64 = 15 * 60 * 1000;

/// The shortest such time: clients renew some seconds ahead.
pub const DATA_TOKEN_MS_MIN: u64 = 1000;

/// The longest such time.
pub const DATA_TOKEN_MS_MAX: u64 = 24 * 60 * 60 * 1000;

/// Connections that a server has at one time, by default. A new one takes the place of the oldest
/// one that has never shown a valid token.
pub const CONNECTIONS_MAX_DEFAULT: usize = 4096;

/// Requests that one HTTP/2 connection has at one time.
pub const STREAMS_PER_CONNECTION_MAX: u32 = 1024;

/// Time for the head of a request, a TLS handshake, or the first request of a connection.
pub const REQUEST_HEAD_MS_MAX: u64 = 10_000;

/// Head of a request: its path and headers.
pub const REQUEST_HEAD_BYTES_MAX: usize = 32 * 1024;

/// How long a connection stays on which nothing is under way.
pub const CONNECTION_IDLE_MS_MAX: u64 = 30_000;

/// Longer answers leave the server in pieces of this size.
pub const ANSWER_PIECE_BYTES: usize = 64 * 1024;

/// How long a client may take in nothing of what is sent to it.
pub const ANSWER_STALL_MS_MAX: u64 = 30_000;

/// Time for the body of a request.
pub const REQUEST_BODY_MS_MAX: u64 = 30_000;

/// How often a silent watch, and a silent HTTP/2 connection, shows that it is alive.
pub const ALIVE_INTERVAL_MS: u64 = 5000;

/// How long a server that closes waits for requests under way.
pub const SHUTDOWN_MS_MAX: u64 = 10_000;

/// Body of a request to the admin API.
pub const ADMIN_REQUEST_BYTES_MAX: usize = 64 * 1024;

/// Databases of one server.
pub const DATABASES_MAX: usize = 10_000;

/// Access tokens of one database.
pub const ACCESS_TOKENS_MAX: usize = 1000;

/// Name of a database of a server.
pub const DATABASE_NAME_CHARS_MAX: usize = 63;

/// Watches of one database of a server at one time, unless its quotas say another number.
pub const DATABASE_WATCHES_MAX: u32 = 10_000;

/// How long dropping a database waits for what is under way in it: more than a write waits for
/// other processes.
pub const DROP_WAIT_MS_MAX: u64 = 2 * BUSY_TIMEOUT_MS_DEFAULT;

/// How long a lane keeps a snapshot when the turn of the event loop in which it read does not end,
/// and how often that is looked at: at most twice as long.
pub const LANE_HELD_MS_MAX: u64 = 100;

/// How long the reader thread keeps a snapshot while reads follow each other.
pub const READER_HELD_MS_MAX: u64 = 10;

/// From this length on a writer waits for readers, so that the log is begun anew.
pub const WAL_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// What the file of the log is cut to when it is begun anew, and how much longer it gets between
/// tries.
pub const WAL_KEPT_BYTES: u32 = 16 * 1024 * 1024;

/// How long a writer waits for readers, so that the log is begun anew: turns of event loops end and
/// snapshots are released meanwhile. Twice as long after each try in vain.
pub const WAL_RESTART_WAIT_MS: u64 = 50;

/// How often that wait is doubled.
pub const WAL_RESTART_DOUBLINGS_MAX: u32 = 4;

/// How long `Symbol.dispose` of a handle waits for the handle's database to be closed.
pub const DISPOSE_WAIT_MS_MAX: u64 = 500;

/// How long a client may take to notice that its connection ends, on which nothing is under way.
pub const FAREWELL_MS_MAX: u64 = 1000;

/// How long a server waits before it refuses a request over a quota, so that a client that retries at
/// once costs the server few requests.
pub const OVER_QUOTA_PAUSE_MS: u64 = 100;

/// How long a measured size of a database's file is believed.
pub const SIZE_REFRESH_MS: i64 = 1000;

/// Reads of a lane of which one is timed: a clock read for each would cost more than counting.
pub const LATENCY_SAMPLE_READS: u32 = 32;

/// Times that a lane keeps before it shares them within a turn.
pub const LATENCY_SAMPLES_MAX: usize = 64;

/// Largest value that a metric tells apart from larger ones: an hour in ns.
pub const METRIC_VALUE_MAX: u64 = 3_600_000_000_000;

/// Decimal digits to which quantiles are exact.
pub const METRIC_DIGITS: u8 = 2;

/// Queues whose messages are counted for metrics; the first ones by name.
pub const METRIC_QUEUES_MAX: usize = 1000;
