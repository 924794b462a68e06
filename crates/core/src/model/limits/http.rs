//! The bounds of the HTTP API.

/// Entries of a page of a list, if the request names no limit.
pub const HTTP_LIST_ENTRIES_DEFAULT: usize = 100;

/// Most entries of a page of a list.
pub const HTTP_LIST_ENTRIES_MAX: usize = 1000;

/// Entries after which an answer with the sizes of prefixes ends.
pub const HTTP_SIZES_ENTRIES_MAX: usize = 10_000;

/// Prefixes after which such an answer ends.
pub const HTTP_SIZES_PREFIXES_MAX: usize = 1000;

/// Entries of one of the reads that it consists of.
pub const HTTP_SIZES_STEP_ENTRIES: usize = 500;

/// Most keys of a batch.
pub const HTTP_BATCH_KEYS_MAX: usize = 1000;

/// Attempts of a conditional write whose entry other writers keep changing.
pub const CONDITION_TRIES_MAX: usize = 8;

/// Answers of at least so many bytes are compressed.
pub const HTTP_COMPRESS_BYTES_MIN: u16 = 1024;

/// How long a poll of a watch waits at most.
pub const HTTP_WAIT_MS_MAX: u64 = 60_000;

/// Interval at which a poll whose time is over asks whether its feed has nothing to report.
pub const HTTP_POLL_LOOK_MS: u64 = 10;

/// Exports of one database at one time: each keeps a state of the database from being overwritten.
// Public (a server): exports, and copies for replicas, of a database at one time
pub const HTTP_EXPORTS_MAX: usize = 2;

/// How long an export takes at most.
pub const HTTP_EXPORT_MS_MAX: u64 = 6 * 3_600_000;

/// A line of an import. A `Uint8Array` of 16 MiB, the largest value, takes 21.4 MiB.
pub const HTTP_IMPORT_LINE_BYTES_MAX: usize = 24 * 1024 * 1024;

/// Memory for reading a long line, for each of its bytes.
pub const HTTP_IMPORT_BYTES_PER_BYTE: usize = 4;

/// Entries of an import after which they are committed.
pub const HTTP_IMPORT_COMMIT_ENTRIES_MAX: usize = 500;

/// Bytes of lines of an import after which their entries are committed.
pub const HTTP_IMPORT_COMMIT_BYTES_MAX: usize = 256 * 1024;

/// Copies of one database that downloads are reading, or may go on reading.
pub const HTTP_BACKUPS_MAX: usize = 2;

/// How long a copy is kept for a download that broke off.
pub const HTTP_BACKUP_KEPT_MS: u64 = 300_000;

/// Messages of a stream of a queue that are not acknowledged, if the request names no number.
pub const HTTP_LISTEN_MESSAGES_DEFAULT: u64 = 10;

/// Entries of a page of a search, if the request names no limit.
pub const HTTP_SEARCH_ENTRIES_DEFAULT: usize = 20;

/// Terms of a snippet, if the request names no number.
pub const HTTP_SNIPPET_TERMS_DEFAULT: u8 = 32;

/// Parts of a key in a request of a client of KeyVal.
// Public (a server): parts of a key for a client of KeyVal
pub const KEYVAL_KEY_PARTS_MAX: usize = 20;

/// Nesting of a JSON document in which a client of KeyVal may write placeholders and filters.
pub const KEYVAL_JSON_DEPTH_MAX: usize = 64;

/// Attempts of an atomic operation of a client of KeyVal whose results the server computes, while other writers change its
/// entries.
pub const KEYVAL_TRIES_MAX: usize = 64;
