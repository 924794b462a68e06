//! The two kinds of number in arithmetic on stored values.

use num_bigint::BigInt;

/// A JavaScript number or bigint. As in JavaScript, the two cannot be added.
#[derive(Clone, Debug, PartialEq)]
pub enum Numeric {
    /// A number: an IEEE-754 double.
    Number(f64),
    /// A bigint, of any size.
    BigInt(BigInt),
}
