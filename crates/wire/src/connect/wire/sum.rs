//! Sums with bounds: `sum_min`, `sum_max` and `sum_clamp` beside an operand in V8's format.

use super::value::from_wire;
use crate::connect::schema::{ENCODING_V8, KvValue};
use openkv_core::codec::cbor::number_of;
use openkv_core::model::{
    Arith, Bounds, Calculation, Encoding, Error, Key, Mutation, Numeric, Operand, Result,
};

/// The bounds of a sum, still encoded.
pub(super) struct WireBounds {
    pub(super) min: Vec<u8>,
    pub(super) max: Vec<u8>,
    pub(super) clamp: bool,
}

impl WireBounds {
    /// Whether there are none.
    pub(super) fn is_empty(&self) -> bool {
        self.min.is_empty() && self.max.is_empty() && !self.clamp
    }

    /// The sum with these bounds.
    ///
    /// # Errors
    /// `Invalid`, with the text of Deno's server if it has one.
    pub(super) fn sum(
        self,
        key: Key,
        operand: KvValue,
        value_bytes_max: usize,
    ) -> Result<Mutation> {
        if operand.encoding != ENCODING_V8 {
            return Err(Error::invalid("Cannot use min/max parameters with KvU64 operands"));
        }
        let operand = numeric(operand.data, "operand")?;
        let bound = |bytes: Vec<u8>, name| match bytes.is_empty() {
            true => Ok(None),
            false => numeric(bytes, name).map(Some),
        };
        let (min, max) = (bound(self.min, "min")?, bound(self.max, "max")?);
        let fits = |bound: &Numeric| {
            matches!(operand, Numeric::BigInt(_)) == matches!(bound, Numeric::BigInt(_))
        };
        if ![&min, &max].into_iter().flatten().all(fits) {
            return Err(Error::invalid("Min/max parameters have different types than the operand"));
        }
        let operand = match operand {
            Numeric::Number(n) => Operand::Number(n),
            Numeric::BigInt(n) => Operand::BigInt(n),
        };
        let bounds = Some(Box::new(Bounds { min, max, clamp: self.clamp }));
        let calculation = Calculation { op: Arith::Sum, operand, bounds, value_bytes_max };
        Ok(Mutation::Calculate { key, calculation, expiry: None })
    }
}

/// Decodes a finite number or a bigint.
fn numeric(v8: Vec<u8>, name: &str) -> Result<Numeric> {
    let value = from_wire(ENCODING_V8, v8)?;
    let number = (value.encoding == Encoding::Cbor).then(|| number_of(&value.bytes)).flatten();
    number.filter(|number| !matches!(number, Numeric::Number(n) if !n.is_finite())).ok_or_else(
        || {
            Error::invalid(format!(
                "Invalid mutation kind or arguments: the {name} of a sum is no number."
            ))
        },
    )
}
