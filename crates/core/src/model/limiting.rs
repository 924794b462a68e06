//! The rule of a limiter, and how it counts.

use super::{DURATION_MS_MAX, Error, LIMITER_COST_MAX, LIMITER_LIMIT_MAX, Result};

/// How a limiter counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LimitAlgorithm {
    /// A window begins with the first take, and the next one after its end.
    Fixed,
    /// As fixed windows one after the other, with the previous one counted by the part of it that the sliding
    /// window still covers.
    Sliding,
    /// A bucket of `limit` tokens that is filled evenly, `limit` tokens in `per_ms`.
    TokenBucket,
}

impl LimitAlgorithm {
    /// All, by their numbers in frames.
    pub const ALL: [Self; 3] = [Self::Fixed, Self::Sliding, Self::TokenBucket];

    /// The name in the API, and in the stored state.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Fixed => "fixed",
            Self::Sliding => "sliding",
            Self::TokenBucket => "token-bucket",
        }
    }

    /// The one with the name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|of| of.name() == name)
    }
}

/// One take from a limiter; a rule out of bounds cannot be constructed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limiting {
    algorithm: LimitAlgorithm,
    limit: u32,
    per_ms: i64,
    cost: u32,
    peek: bool,
}

impl Limiting {
    /// `cost` points of the `limit` points in `per_ms`. A `peek` takes nothing.
    ///
    /// # Errors
    /// `Invalid`, with the bound.
    pub fn new(
        algorithm: LimitAlgorithm,
        limit: u32,
        per_ms: i64,
        cost: u32,
        peek: bool,
    ) -> Result<Self> {
        let refused = |name: &str, least: u32, most: i64, given: i64| {
            Error::invalid(format!(
                "limiter: {name} must be from {least} to {most}: received {given}"
            ))
        };
        if limit > LIMITER_LIMIT_MAX {
            return Err(refused("limit", 0, LIMITER_LIMIT_MAX.into(), limit.into()));
        }
        if !(1..=DURATION_MS_MAX).contains(&per_ms) {
            return Err(refused("per, in ms,", 1, DURATION_MS_MAX, per_ms));
        }
        if !(1..=LIMITER_COST_MAX).contains(&cost) {
            return Err(refused("cost", 1, LIMITER_COST_MAX.into(), cost.into()));
        }
        Ok(Self { algorithm, limit, per_ms, cost, peek })
    }

    /// How it counts.
    #[must_use]
    pub const fn algorithm(&self) -> LimitAlgorithm {
        self.algorithm
    }

    /// The points in `per_ms`.
    #[must_use]
    pub const fn limit(&self) -> u32 {
        self.limit
    }

    /// The time of the limit, in ms.
    #[must_use]
    pub const fn per_ms(&self) -> i64 {
        self.per_ms
    }

    /// The points to take.
    #[must_use]
    pub const fn cost(&self) -> u32 {
        self.cost
    }

    /// Whether it only tells, and takes nothing.
    #[must_use]
    pub const fn is_peek(&self) -> bool {
        self.peek
    }
}
