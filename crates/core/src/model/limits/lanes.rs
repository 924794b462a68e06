//! Bounds of reads on the threads of JavaScript.

/// Time after the first synchronous read in a turn of the event loop, after which reads go to the
/// reader thread.
pub const TURN_BUDGET_US: u64 = 800;

/// Entries that a list with `where`, `orderBy` or other parts of the entries reads on the JavaScript thread for a page: those
/// of value indexes and those that they lead to, and one for each range of an index. A page that needs more goes to another
/// thread.
// Public (indexes): entries that a page of a list with `where` or `orderBy` reads without another thread
pub const BRIEF_SCAN_ENTRIES_MAX: usize = 128;

/// Bytes of values after which such a page goes to a thread for long reads.
// Public (indexes): bytes of their values
pub const BRIEF_SCAN_BYTES_MAX: usize = 256 * 1024;

/// Bytes of `where` after which such a page goes to a thread for long reads, because parsing and planning it takes long.
// Public (indexes): bytes of `where`, in the form in which it is sent
pub const BRIEF_SCAN_FILTER_BYTES_MAX: usize = 1024;

/// Interval of retries of a synchronous read that another process blocks.
pub const SYNC_READ_RETRY_MS: u64 = 1;

/// How long a lane keeps a snapshot if its turn of the event loop does not end. It is checked at
/// this interval, so the snapshot lasts at most twice as long.
pub const LANE_HELD_MS_MAX: u64 = 100;

/// How long the reader thread keeps a snapshot for consecutive reads.
pub const READER_HELD_MS_MAX: u64 = 10;

/// How long `Symbol.dispose` waits until the database of the handle is closed.
pub const DISPOSE_WAIT_MS_MAX: u64 = 500;
