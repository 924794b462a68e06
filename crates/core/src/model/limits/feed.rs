//! Bounds of change feeds and watches.

/// Age of a change that a log keeps which a feed has turned on.
// Public (feeds): age of a change in a log that a feed has turned on, in ms
pub const FEED_AGE_MS_MAX: i64 = 7 * 86_400_000;

/// Changes and bytes after which a batch of a feed ends, at the end of a commit.
// Public (feeds): changes of a batch; a commit is not split
pub const FEED_BATCH_CHANGES: usize = 1000;

/// See [`FEED_BATCH_CHANGES`].
// Public (feeds): bytes of a batch; a commit is not split
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
