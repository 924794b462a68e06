//! Bounds of filters and of the values they look at.

/// Encoded filter.
// Public (filters): bytes of an encoded filter
pub const FILTER_BYTES_MAX: usize = 256 * 1024;

/// Nesting of objects and arrays in a filter.
// Public (filters): levels of a filter
pub const FILTER_DEPTH_MAX: usize = 32;

/// Nesting of the body of a request in CBOR, outside of its embedded values.
pub const CBOR_DOCUMENT_DEPTH_MAX: usize = 128;

/// Conditions, operands and objects of one filter together.
// Public (filters): conditions and operands of a filter
pub const FILTER_NODES_MAX: usize = 1000;

/// Steps of one path in a filter.
// Public (filters): steps of one path
pub const FILTER_PATH_STEPS_MAX: usize = 100;

/// Items that all conditions of a filter together may visit behind references in one value. Without
/// a bound an object with many references to it could be visited exponentially often. Items outside
/// of references do not count.
// Public (filters): items behind references that a filter visits in one value
pub const FILTER_VISITS_MAX: usize = 1_000_000;

/// Bytes of a text, name or bigint that count as one visit.
pub const FILTER_VISIT_BYTES: usize = 16;

/// Visits of a filter in one value between two checks for cancellation.
pub const FILTER_LOOK_VISITS: usize = 10_000;

/// Length of a text from which a filter caches its case-folded form for other conditions.
pub const FILTER_FOLD_KEPT_BYTES_MIN: usize = 256;
