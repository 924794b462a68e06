//! Bounds of search indexes and queries.

/// Full-text indexes of one database; every write checks all of them.
// Public (search): indexes of a database
pub const INDEXES_MAX: usize = 64;

/// Fields of one full-text index.
// Public (search): fields of an index
pub const INDEX_FIELDS_MAX: usize = 32;

/// Name of a field of a full-text index.
// Public (search): bytes of the path of a field
pub const INDEX_FIELD_BYTES_MAX: usize = 256;

/// Name of a full-text index.
// Public (search): bytes of the name of an index
pub const INDEX_NAME_BYTES_MAX: usize = 256;

/// Prefix lengths of a full-text index.
// Public (search): `prefixLengths` of an index
pub const INDEX_PREFIX_LENGTHS_MAX: usize = 4;

/// One prefix length, in characters.
// Public (search): characters of one of them
pub const INDEX_PREFIX_CHARS_MAX: u8 = 32;

/// Largest bigint that is indexed as text, since conversion to digits takes more than linear time.
// Public (search): bits of a bigint that is indexed as text
pub const INDEX_BIGINT_BITS_MAX: u64 = 4096;

/// Work for finding the text of a field, for each byte of the value: nodes visited, names compared
/// and bytes of text together. A value without shared objects stays below it, since each unit of
/// work has a byte of its own.
pub const INDEX_FIELD_COST_PER_BYTE_MAX: usize = 3;

/// Allowance for this work in values of any size, for all fields together.
pub const INDEX_TEXT_COST_MIN: usize = 10_000;

/// Entries that one step of building an index processes.
pub const INDEX_BUILD_ROWS_MAX: usize = 512;

/// The same on a disk that is nearly full.
pub const INDEX_BUILD_NARROW_ROWS_MAX: usize = 16;

/// Bytes of values after which such a step ends.
pub const INDEX_BUILD_BYTES_MAX: usize = 1024 * 1024;

/// How long a step of building waits for another process before it is postponed.
pub const INDEX_BUILD_BUSY_MS: u64 = 50;

/// Length of a search query.
// Public (search): bytes of a query
pub const QUERY_BYTES_MAX: usize = 4096;

/// Nesting of parentheses in a search query. FTS5's parser has a stack of 100 symbols, of which a
/// level can take nine.
// Public (search): levels of parentheses of a query
pub const QUERY_DEPTH_MAX: usize = 8;

/// Terms and phrases of a search query.
// Public (search): terms of a query
pub const QUERY_TERMS_MAX: usize = 128;

/// Results of one search.
// Public (reads): `limit` of `search`
pub const SEARCH_ENTRIES_MAX: usize = 1000;

/// Hits that one search skips (`offset`).
// Public (reads): `offset` of `search`
pub const SEARCH_OFFSET_MAX: usize = 1_000_000;

/// Terms of one highlighted snippet; FTS5 allows no more.
// Public (search): terms of a highlighted snippet
pub const SNIPPET_TERMS_MAX: usize = 64;

/// Text of one mark in a highlighted snippet.
// Public (search): bytes of each of its marks
pub const SNIPPET_MARK_BYTES_MAX: usize = 256;
