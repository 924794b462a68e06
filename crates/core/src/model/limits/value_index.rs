//! Limits of value indexes.

/// Value indexes of one database; every write under their prefixes changes them.
// Public (indexes): value indexes of a database
pub const VALUE_INDEXES_MAX: usize = 64;

/// Paths of one value index.
// Public (indexes): paths of a value index
pub const VALUE_INDEX_PATHS_MAX: usize = 8;

/// Path of a value index.
// Public (indexes): bytes of a path of a value index
pub const VALUE_INDEX_PATH_BYTES_MAX: usize = 256;

/// Text, bytes or digits of a number that an entry of a value index has; longer ones are cut, or refused in a
/// unique index.
// Public (indexes): bytes of a string, `Uint8Array` or bigint in a value index
pub const VALUE_INDEX_PART_BYTES_MAX: usize = 1024;

/// Elements that a `multi` index has of one value; a value with more is compared as a whole.
// Public (indexes): elements of one value in a `multi` index
pub const VALUE_INDEX_ELEMENTS_MAX: usize = 1000;

/// Ranges of one index that a list reads together.
pub const VALUE_INDEX_RANGES_MAX: usize = 128;

/// Entries of an index that a list in the order of keys reads for a page before it reads the entries themselves
/// instead.
pub const VALUE_INDEX_SORTED_ENTRIES_MAX: usize = 10_000;

/// Entries of an index that the check of an ordered list reads at a commit beside those that the list has read: of keys
/// outside its range, and of expired entries.
// Public (indexes): other entries of the index that the check of a list with `orderBy` reads
pub const ORDER_CHECK_OTHERS_MAX: usize = 10_000;

/// Entries of an index that one step of an ordered list reads, from all ranges together.
pub const VALUE_INDEX_STEP_ENTRIES_MAX: usize = 4096;

/// Paths of `orderBy`.
// Public (indexes): paths of `orderBy`
pub const ORDER_PATHS_MAX: usize = 8;

/// Entries of a page that is sorted in memory.
// Public (indexes): entries of a page that `sort: true` sorts
pub const SORT_ENTRIES_MAX: usize = 10_000;

/// Bytes of a page that is sorted in memory.
// Public (indexes): bytes of a page that `sort: true` sorts
pub const SORT_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Entries that `kv.explain` reads, of indexes and of the database together; it ends behind the step that has read
/// them.
// Public (indexes): entries that `explain` reads before it ends
pub const EXPLAIN_ENTRIES_MAX: u64 = 100_000;

/// Characters of a string that an explanation shows.
pub const EXPLAINED_TEXT_CHARS_MAX: usize = 64;
