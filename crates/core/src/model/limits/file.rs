//! Bounds of a file: the memory for its pages, the length of its log.

/// Default of the page cache of one connection.
// Public (opening): default of `cacheSize`, in bytes
pub const CACHE_BYTES_DEFAULT: u64 = 16 * 1024 * 1024;

/// The caches of a process that are not bounded by `cacheSize` grow, while reads miss them, by at most this together.
// Public (opening): bytes by which the caches of a process grow above `cacheSize`'s default, together
pub const GROWN_CACHES_BYTES_MAX: u64 = 256 * 1024 * 1024;

/// The caches of a process grow by at most one of so many parts of the memory of its machine or container.
// Public (opening): and at most one of so many parts of the memory
pub const GROWN_CACHES_MEMORY_SHARE: u64 = 8;

/// Lower bound of the page cache of one connection.
// Public (opening): smallest `cacheSize`
pub const CACHE_BYTES_MIN: u64 = 64 * 1024;

/// Upper bound of the page cache of one connection.
// Public (opening): largest `cacheSize`
pub const CACHE_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;

/// Upper bound of the part of a file that a reader maps into memory: that of SQLite.
// Public (opening): largest `mmapSize`
pub const MMAP_BYTES_MAX: u64 = 2_147_418_112;

/// How often a writer looks whether its file is still at its path, in ms.
pub const FILE_LOOK_MS: u64 = 1_000;

/// Length of the log, in pages, from which SQLite moves it into the file with each commit. A longer log
/// has fewer pages to move than commits have written, since most are written again and again. It stays
/// below the 4,062 pages of the first part of the index of a log, where a reader finds a page with one look.
pub const WAL_MOVED_PAGES: u32 = 4000;

/// Room that an inline commit leaves below [`WAL_MOVED_PAGES`].
pub const WAL_MOVED_MARGIN_PAGES: u32 = 128;

/// Length of the log from which a writer waits for readers, so that the log can be reset.
// Public (a server): bytes of the log beside a file that an export or a copy may keep, or the length of the file if that is more
pub const WAL_BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How often a walk that waits for its client looks at the length of the log, in ms.
pub const LOG_LOOK_MS: u64 = 100;

/// Length to which the file of the log is truncated at a reset, and its growth between attempts.
pub const WAL_KEPT_BYTES: u32 = 16 * 1024 * 1024;

/// How long a writer waits for readers before a reset of the log; meanwhile turns end and release
/// their snapshots. It doubles with each failed attempt.
pub const WAL_RESTART_WAIT_MS: u64 = 50;

/// Pages of 4 KiB that a step of a vacuum gives back. Moving so many takes a few milliseconds.
pub const VACUUM_STEP_PAGES: u64 = 128;

/// How often that wait is doubled.
pub const WAL_RESTART_DOUBLINGS_MAX: u32 = 4;

/// Bytes of a commit's frames that wait for one write to the log.
pub const LOG_GATHERED_BYTES_MAX: usize = 60 * 1024;

/// Least growth of the file of the log, with zeros, when a commit makes it longer.
pub const LOG_GROWTH_BYTES_MIN: u64 = 64 * 1024;

/// Largest growth of the file of the log; between the two it grows by its own length.
pub const LOG_GROWTH_BYTES_MAX: u64 = 256 * 1024;

/// Pages by which the log gets longer between two looks at the room on the disk.
pub const DISK_LOOK_PAGES: u32 = 64;

/// Free bytes of a disk below which a writer looks before each commit.
pub const DISK_NARROW_BYTES: u64 = 64 * 1024 * 1024;

/// Largest part of a disk that is kept for deletions and acknowledgements.
pub const DISK_RESERVE_BYTES_MAX: u64 = 512 * 1024;

/// That part of a small disk: one of so many.
pub const DISK_RESERVE_SHARE: u64 = 16;

/// Upper bound of `maxOpen`.
// Public (opening): largest `maxOpen`
pub const OPEN_DATABASES_MAX: usize = 1_000_000;

/// Databases in files that a process keeps open by default, if its descriptors suffice.
// Public (opening): largest default of `maxOpen`
pub const OPEN_DATABASES_DEFAULT_MAX: usize = 4096;

/// Databases in files that a process keeps open by default, however few descriptors it has.
pub const OPEN_DATABASES_MIN: usize = 8;

/// Descriptors that a database in a file is expected to need while calls are under way.
pub const DATABASE_DESCRIPTORS: usize = 7;

/// Databases that are parked at once when a process has no descriptor left.
pub const PARKED_AT_ONCE: usize = 16;

/// First pause before a process that has no descriptor left tries to open a file again; each next one is twice as long.
pub const DESCRIPTORS_PAUSE_MS: u64 = 1;

/// Longest such pause.
pub const DESCRIPTORS_PAUSE_MS_MAX: u64 = 50;
