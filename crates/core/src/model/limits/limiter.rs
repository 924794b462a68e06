//! Bounds of limiters.

/// Largest limit of a limiter.
// Public (limiters): largest `limit`
pub const LIMITER_LIMIT_MAX: u32 = 1_000_000_000;

/// Most points of one take.
// Public (limiters): largest cost of a take
pub const LIMITER_COST_MAX: u32 = 1_000_000_000;

/// Bytes that the state of a limiter counts as in a write: its largest state has fewer.
pub const LIMITER_STATE_BYTES_MAX: usize = 48;
