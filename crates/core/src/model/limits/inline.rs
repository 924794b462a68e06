//! Bounds of reads and commits on the threads of callers.

/// Readers of a store for reads on the threads of the server, one for each of these.
pub const INLINE_READERS: usize = 2;

/// Keys of a read on a thread of the server.
pub const INLINE_KEYS_MAX: usize = 8;

/// A read on a thread of the server that takes longer sends [`INLINE_READS_SKIPPED`] reads to the reader thread.
pub const INLINE_READ_US_MAX: u64 = 1000;

/// See [`INLINE_READ_US_MAX`].
pub const INLINE_READS_SKIPPED: u32 = 16;

/// Writes of an inline commit, on the thread of its caller. An atomic one counts as often as it has records.
// Public (opening): writes of a commit on the thread of its caller
pub const INLINE_WRITES_MAX: usize = 16;

/// Bytes of the writes of an inline commit.
// Public (opening): bytes of these writes
pub const INLINE_BYTES_MAX: usize = 65_536;

/// Commits whose durations tell that of the next inline one.
pub const INLINE_COMMITS_SEEN: usize = 8;
