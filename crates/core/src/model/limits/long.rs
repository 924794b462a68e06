//! Bounds of long reads and of deletions of many entries.

/// Entries that one step of a deletion of many examines, and so the most that it deletes.
// Public (deletions): entries that one commit of a `deleteMany` reads
pub const DELETE_STEP_ROWS_MAX: usize = 2048;

/// Items that the filter of a deletion may visit inside a transaction, while all other writes wait.
/// The filter is evaluated before the transaction, inside it only for entries that have changed
/// since.
pub const DELETE_UNKNOWN_VISITS_MAX: usize = 2_000_000;

/// Attempts of a deletion in one transaction if more entries keep changing than that bound allows.
pub const DELETE_WHOLE_TRIES_MAX: usize = 5;

/// Entries that a deletion in one transaction examines.
// Public (deletions): entries that a `deleteMany` with `atomic: true` reads
pub const DELETE_WHOLE_ROWS_MAX: usize = 100_000;

/// Threads of a store for long reads: searches, counts, filtered lists.
pub const LONG_READERS_MAX: usize = 2;

/// How long a thread of a store, and a connection for reads, remain without work.
pub const STORE_THREAD_IDLE_MS: u64 = 1_000;

/// Writers and readers of a process that come to rest before the memory that they have freed goes back to the system.
pub const RESTED_MIN: usize = 32;

/// Time between two looks whether more have come to rest since.
pub const RESTED_LOOK_MS: u64 = 250;

/// Such looks after which the memory goes back although more and more come to rest.
pub const RESTED_LOOKS_MAX: u32 = 40;

/// Duration of one step of a long read, after which other reads have their turn. One large value
/// can exceed it.
pub const LONG_STEP_MS: u64 = 20;

/// Time limit of a search, a count or a filtered deletion, over all its steps.
// Public (reads): ms of one search, count or filtered read; then `UNAVAILABLE`
pub const LONG_READ_MS_MAX: u64 = 300_000;

/// The same limit for a client of a server.
// Public (reads): the same at a server
pub const SERVER_LONG_READ_MS_MAX: u64 = 60_000;

/// How long such work may continue after its handle was closed.
pub const CLOSE_GRACE_MS: u64 = 1000;

/// Virtual machine instructions of SQLite between two checks for cancellation.
pub const LONG_READ_INSTRUCTIONS: i32 = 1000;

/// Entries that one step of a count or filtered list examines.
// Public (reads): entries that one step of a count or a filtered list reads
pub const SCAN_STEP_ROWS_MAX: usize = 8192;

/// Bytes of values after which such a step ends.
pub const SCAN_STEP_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Entries of one page of `paginate`; JavaScript enforces it.
// Public (reads): `limit` of `paginate`
pub const PAGE_ENTRIES_MAX: usize = 1000;
