//! Bounds of reads and commits on the threads of callers.

/// Readers of a store for reads on the threads of the server, one for each of these.
pub const IMMEDIATE_READERS: usize = 2;

/// Keys of a read on a thread of the server.
pub const IMMEDIATE_KEYS_MAX: usize = 8;

/// A read on a thread of the server that takes longer sends [`IMMEDIATE_READS_SKIPPED`] reads to the reader thread.
pub const IMMEDIATE_READ_US_MAX: u64 = 1000;

/// See [`IMMEDIATE_READ_US_MAX`].
pub const IMMEDIATE_READS_SKIPPED: u32 = 16;

/// Writes of an immediate commit, on the thread of its caller.
// Public (opening): writes of a commit on the thread of its caller
pub const IMMEDIATE_WRITES_MAX: usize = 16;

/// Bytes of the writes of an immediate commit.
// Public (opening): bytes of these writes
pub const IMMEDIATE_BYTES_MAX: usize = 65_536;

/// Commits whose durations tell that of the next immediate one.
pub const IMMEDIATE_COMMITS_SEEN: usize = 8;
