//! Arithmetic on stored numbers that Deno KV does not have.

use num_bigint::BigInt;

use super::Arith;

/// A JavaScript number or bigint. As in JavaScript, the two cannot be added.
#[derive(Clone, Debug, PartialEq)]
pub enum Numeric {
    /// A number: an IEEE-754 double.
    Number(f64),
    /// A bigint, of any size.
    BigInt(BigInt),
}

/// The operand of a calculation.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// A number: combines with numbers.
    Number(f64),
    /// A bigint: combines with bigints and `KvU64`s; without an entry it is stored as a bigint.
    BigInt(BigInt),
    /// A `KvU64`: combines with bigints and `KvU64`s; without an entry it is stored as a `KvU64`.
    U64(u64),
}

/// The bounds of a result, both of the operand's kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Bounds {
    /// The smallest result.
    pub min: Option<Numeric>,
    /// The largest result.
    pub max: Option<Numeric>,
    /// Whether a result out of bounds is clamped instead of rejected.
    pub clamp: bool,
}

/// One calculation with a stored number.
#[derive(Clone, Debug, PartialEq)]
pub struct Calculation {
    /// The arithmetic.
    pub op: Arith,
    /// The operand.
    pub operand: Operand,
    /// The bounds of the result.
    pub bounds: Option<Box<Bounds>>,
    /// Maximum size of the result.
    pub value_bytes_max: usize,
}

impl Calculation {
    /// The size that counts against the limits: that of the operand.
    pub(super) fn size_bytes(&self) -> usize {
        match &self.operand {
            Operand::Number(_) | Operand::U64(_) => 8,
            Operand::BigInt(n) => usize::try_from(n.bits().div_ceil(8)).unwrap_or(usize::MAX),
        }
    }
}
