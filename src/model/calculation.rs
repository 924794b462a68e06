//! Arithmetic on stored numbers beyond Deno KV's.

use num_bigint::BigInt;

use super::{Arith, Numeric};

/// What is combined with a stored number.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A number: goes with numbers.
    Number(f64),
    /// A bigint: goes with bigints and `KvU64`s; alone it becomes a bigint.
    BigInt(BigInt),
    /// A `KvU64`: goes with bigints and `KvU64`s; alone it becomes a `KvU64`.
    U64(u64),
}

/// Between what a result has to be. Both ends are of the operand's kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// The smallest result.
    pub min: Option<Numeric>,
    /// The largest result.
    pub max: Option<Numeric>,
    /// Whether a result beyond them is brought back to them, rather than refused.
    pub clamp: bool,
}

/// One calculation with a stored number.
#[derive(Clone, Debug, PartialEq)]
pub struct Calculation {
    /// Which arithmetic.
    pub op: Arith,
    /// With what.
    pub operand: Operand,
    /// Between what.
    pub bounds: Option<Box<Bounds>>,
    /// Most bytes of the result.
    pub value_bytes_max: usize,
}

impl Calculation {
    /// Bytes that count against the limits: those of the operand.
    pub(super) fn size_bytes(&self) -> usize {
        match &self.operand {
            Operand::Number(_) | Operand::U64(_) => 8,
            Operand::BigInt(n) => usize::try_from(n.bits().div_ceil(8)).unwrap_or(usize::MAX),
        }
    }
}
