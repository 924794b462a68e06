//! Bounds of archives.

/// Pause between two looks of an archiver at the log, in ms: so that a commit is archived within a second.
pub const ARCHIVE_LOOK_MS: u64 = 500;

/// How often an archiver renews its ownership of an archive, in ms.
pub const ARCHIVE_RENEW_MS: u64 = 10_000;

/// An archive whose owner has not renewed for this long can be taken over, in ms. The owner itself writes
/// only for half of this time after its last renewal.
pub const ARCHIVE_LEASE_MS: u64 = 30_000;

/// How often an archiver takes a snapshot unless the caller chooses otherwise, in ms: a day.
pub const ARCHIVE_SNAPSHOT_EVERY_MS: i64 = 86_400_000;

/// How long an archive reaches back unless the caller chooses otherwise, in ms: 30 days.
pub const ARCHIVE_RETENTION_MS: i64 = 30 * 86_400_000;

/// Most bytes of the head of an object of an archive.
pub const ARCHIVE_HEAD_BYTES_MAX: usize = 4096;

/// Most bytes of an object with segments, compressed or not. A transaction of the log is never divided.
pub const ARCHIVE_SEGMENTS_BYTES_MAX: u64 = 1024 * 1024 * 1024;

/// Bytes of a part of a large upload.
pub const ARCHIVE_PART_BYTES: usize = 8 * 1024 * 1024;

/// Longest pause of an archiver after failures, in ms.
pub const ARCHIVE_PAUSE_MS_MAX: u64 = 60_000;

/// Longest time of one request to an object store, with its repetitions, in ms.
pub const ARCHIVE_REQUEST_MS_MAX: u64 = 60_000;

/// Repetitions of a request to an object store that failed.
pub const ARCHIVE_RETRIES_MAX: usize = 6;

/// Bytes of changes that a restore puts into one transaction.
pub const RESTORE_TRANSACTION_BYTES: usize = 32 * 1024 * 1024;

/// Objects that one prune removes between two looks at whether to go on.
pub const ARCHIVE_PRUNE_OBJECTS: usize = 500;

/// Pause between two looks of a server at which of its databases are to be archived, in ms.
pub const ARCHIVES_LOOK_MS: u64 = 500;

/// Unused databases that a server opens at one time, to archive what they have.
pub const ARCHIVE_VISITS_MAX: usize = 4;

/// Pause between two looks of a server at the file of an unused database, in ms: another process may
/// have written to it.
pub const ARCHIVE_FILE_LOOK_MS: u64 = 60_000;

/// Longest wait of a server that starts for the first answer of the archiver of its file, in ms.
pub const ARCHIVE_BEGIN_MS_MAX: u64 = 5_000;

/// Longest wait for an archiver that ends, when a server closes or drops a database, in ms. What is left is
/// archived after the next start.
pub const ARCHIVE_END_MS_MAX: u64 = 10_000;

/// Longest duration of an option of an archive, in ms: a hundred years.
pub const DURATION_MS_MAX: i64 = 36_525 * 86_400_000;
