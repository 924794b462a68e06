//! The two kinds of number that arithmetic on stored values knows.

use num_bigint::BigInt;

/// A JavaScript number or bigint. They never mix: JavaScript refuses to add one to the other, and
/// so does a sum.
#[derive(Clone, Debug, PartialEq)]
pub enum Numeric {
    /// A number: an IEEE-754 double.
    Number(f64),
    /// A bigint, of any size.
    BigInt(BigInt),
}
