//! Bounds of change feeds and watches.

/// Keys from which a watch caches the entries that it has read.
pub const WATCH_KNOWN_KEYS_MIN: usize = 32;

/// Bytes of values above which it does not cache them.
pub const WATCH_KNOWN_BYTES_MAX: usize = 1024 * 1024;

/// Changes with a value that PostgreSQL keeps for feeds. In a file and in memory feeds read the one log.
// Public (feeds): sets that PostgreSQL keeps for feeds
pub const FEED_CHANGES_MAX: u64 = 100_000;

/// Keys and values of those changes together.
// Public (feeds): bytes of these sets
pub const FEED_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// Removals that PostgreSQL keeps for feeds, which are stored nowhere else.
// Public (feeds): deletions that PostgreSQL keeps for feeds
pub const FEED_REMOVALS_MAX: u64 = 100_000;

/// Keys of those removals together.
// Public (feeds): bytes of their keys
pub const FEED_REMOVAL_BYTES_MAX: u64 = 16 * 1024 * 1024;

/// Age of a change that a log keeps which a feed has turned on.
// Public (feeds): age of a change in a log that a feed has turned on, in ms
pub const FEED_AGE_MS_MAX: i64 = 7 * 86_400_000;

/// Commits that one transaction trims from what PostgreSQL keeps for feeds, unless it adds more than half as
/// many.
pub const FEED_TRIM_COMMITS: usize = 64;

/// Largest value that PostgreSQL keeps for feeds; a larger one is read from its entry.
// Public (feeds): bytes of a value that PostgreSQL keeps for feeds
pub const FEED_VALUE_BYTES_MAX: usize = 65_536;

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
