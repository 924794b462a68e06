//! Bounds of leases.

/// How long a lease is held without a renewal, unless the caller chooses otherwise, in ms.
// Public (leases): default of `ttl`, in ms
pub const LEASE_TTL_MS_DEFAULT: u64 = 10_000;

/// Shortest time of a lease without a renewal, in ms.
// Public (leases): smallest `ttl`, in ms
pub const LEASE_TTL_MS_MIN: u64 = 100;
