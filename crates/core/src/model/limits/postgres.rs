//! Bounds of databases on PostgreSQL.

/// Most connections of a process to one PostgreSQL server, however many databases it has there.
pub const POSTGRES_CONNECTIONS_MAX: usize = 8;

/// The largest `keyBytesMax` of a database on PostgreSQL: a row of one of its indexes has at most 2,704 bytes, of which a key is
/// one column.
pub const POSTGRES_KEY_BYTES_MAX: usize = 2_600;

/// Most entries of a page that the PostgreSQL engine fetches.
pub const POSTGRES_PAGE_ROWS_MAX: i64 = 256;

/// Longest time to find out whether a commit has happened whose connection was lost, in ms.
pub const POSTGRES_RESOLVE_MS_MAX: u64 = 10_000;

/// Time between two looks for commits of other processes, in ms, while there are some.
pub const POSTGRES_POLL_BUSY_MS: u64 = 10;

/// Time between two looks for commits of other processes, in ms, while there are none.
pub const POSTGRES_POLL_IDLE_MS: u64 = 100;

/// How long after the last commit of another process the looks stay frequent, in ms.
pub const POSTGRES_POLL_IDLE_AFTER_MS: u64 = 1000;

/// Longest time that a transaction on PostgreSQL waits for its process between its two trips, in ms.
/// Then the server ends it, so that the processes behind it go on.
pub const POSTGRES_IDLE_MS_MAX: u64 = 800;

/// The slowest link on which a process can send a batch of any size to PostgreSQL, in bytes each second:
/// a transaction waits for a large batch longer than [`POSTGRES_IDLE_MS_MAX`], by the time this takes.
pub const POSTGRES_LINK_BYTES_PER_S_MIN: u64 = 1024 * 1024;

/// The PostgreSQL engine asks for a longer wait from so many bytes of writes on.
pub const POSTGRES_LONG_BATCH_BYTES_MIN: usize = 256 * 1024;

/// How long the PostgreSQL engine keeps the ids of batches, in ms: far longer than a process needs to
/// find out whether its batch has happened.
pub const POSTGRES_LOG_KEPT_MS: i64 = 600_000;

/// The PostgreSQL engine trims the ids of old batches in one of so many batches.
pub const POSTGRES_LOG_TRIM_BATCHES: u64 = 256;

/// Most ids of old batches that one transaction deletes.
pub const POSTGRES_LOG_TRIM_ROWS: i64 = 1024;

/// Segments that one statement reads from the replication log.
pub const POSTGRES_SEGMENTS_PAGE_ROWS: i64 = 256;

/// Bytes of segments after which a page of the replication log ends, after a whole segment.
pub const POSTGRES_SEGMENTS_PAGE_BYTES: i64 = 1024 * 1024;

/// Longest name of a database on PostgreSQL (`kv=` in its URL).
pub const POSTGRES_NAME_BYTES_MAX: usize = 255;

/// Names in the error about a database that is not there.
pub const POSTGRES_NAMES_SHOWN_MAX: i64 = 10;

/// Most hosts in the URL of PostgreSQL.
pub const POSTGRES_HOSTS_MAX: usize = 16;

/// How long a connection to one host of PostgreSQL may take to be made, in s.
pub const POSTGRES_CONNECT_TIMEOUT_S_DEFAULT: u64 = 5;

/// Longest `connect_timeout` in the URL of PostgreSQL, in s.
pub const POSTGRES_CONNECT_TIMEOUT_S_MAX: u64 = 600;

/// How long a connection to PostgreSQL is silent before it is probed, in s.
pub const POSTGRES_KEEPALIVE_IDLE_S: u64 = 10;

/// Time between two probes of a silent connection to PostgreSQL, in s.
pub const POSTGRES_KEEPALIVE_INTERVAL_S: u64 = 3;

/// Probes without an answer that end a connection to PostgreSQL.
pub const POSTGRES_KEEPALIVES_MAX: u32 = 3;

/// Most bytes of keys that the PostgreSQL engine logs with a batch. After a batch with more, the watches
/// of other processes read all their keys.
pub const POSTGRES_LOG_KEYS_BYTES_MAX: usize = 32 * 1024;

/// Most batches whose keys one look for commits of other processes fetches for a database. After more,
/// its watches read all their keys.
pub const POSTGRES_POLL_BATCHES_MAX: i64 = 64;

/// Pause between two attempts to begin a transaction on PostgreSQL, or to find out what became of one,
/// in ms.
pub const POSTGRES_RESOLVE_PAUSE_MS: u64 = 50;

/// How long a process leads its databases on PostgreSQL after its last sign of life, in ms.
pub const POSTGRES_LEASE_MS: i64 = 3000;

/// Time between two signs of life of a process that leads databases, in ms.
pub const POSTGRES_LEASE_RENEW_MS: u64 = 1000;

/// How long a leader keeps its own connections without a batch, in ms.
pub const POSTGRES_LEADER_IDLE_MS: u64 = 10_000;

/// How long a leader that is never idle keeps its connections while others of its process wait, in ms.
pub const POSTGRES_LEADER_TURN_MS: u64 = 100;

/// Longest wait of a closing leader for handing its database over, in ms.
pub const POSTGRES_HAND_OVER_MS_MAX: u64 = 1000;

/// Batches of the log that a new leader reads at a time, for the ids of their writes.
pub const POSTGRES_WRITES_PAGE_BATCHES: i64 = 4096;

/// Commits of all processes from one batch that trims the history to the next one.
pub const POSTGRES_PAST_TRIM_COMMITS: i64 = 64;

/// Rows of the history with which a batch trims the history by itself.
pub const POSTGRES_PAST_TRIM_MIN: i64 = 64;

/// Rows that a batch deletes from the history at most, beside twice as many as it inserts: more than all batches
/// insert that leave it to this one.
pub const POSTGRES_PAST_TRIM_ROWS: i64 = POSTGRES_PAST_TRIM_COMMITS * POSTGRES_PAST_TRIM_MIN;

/// Most versions of an entry that one statement reads from the history.
pub const POSTGRES_VERSIONS_PAGE_ROWS: i64 = 64;

/// Bytes of an entry of a value index that PostgreSQL's own index has: its rows have at most 2,704 bytes.
pub const POSTGRES_INDEX_HEAD_BYTES: usize = 2_560;
