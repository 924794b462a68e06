//! sum, min and max on stored numbers.
//!
//! A `KvU64` combines with a `KvU64`; a bigint or number in CBOR is added to its own kind. The
//! messages are Deno KV's, since programs match on them.

use crate::codec::cbor::{encode_bigint, encode_number, number_of};
use crate::model::{Arith, EncodedValue, Encoding, Error, Numeric, Result};

/// The value after `op`; `stored` is `None` if the key is absent.
///
/// # Errors
/// `Invalid` for two values that the operation cannot combine.
pub(super) fn combine(
    op: Arith,
    stored: Option<EncodedValue>,
    operand: EncodedValue,
) -> Result<EncodedValue> {
    match (op, operand.as_le64()) {
        (_, Some(operand)) => combine_u64(op, stored, operand),
        (Arith::Sum, None) => sum(stored, &operand),
        (Arith::Min | Arith::Max, None) => Err(Error::invalid(format!(
            "Failed to perform '{}' mutation on a non-U64 operand",
            op.name()
        ))),
    }
}

fn combine_u64(op: Arith, stored: Option<EncodedValue>, operand: u64) -> Result<EncodedValue> {
    let Some(stored) = stored else { return Ok(EncodedValue::le64(operand)) };
    let stored = stored.as_le64().ok_or_else(|| {
        let op = op.name();
        Error::invalid(format!(
            "Failed to perform '{op}' mutation on a non-U64 value in the database"
        ))
    })?;
    Ok(EncodedValue::le64(match op {
        Arith::Sum => stored.wrapping_add(operand),
        Arith::Min => stored.min(operand),
        Arith::Max => stored.max(operand),
    }))
}

/// The sum with an operand that is not a `KvU64`.
fn sum(stored: Option<EncodedValue>, operand: &EncodedValue) -> Result<EncodedValue> {
    let number = numeric(operand)
        .ok_or_else(|| Error::invalid("Some of the parameters are not valid V8 values"))?;
    let Some(stored) = stored else { return Ok(cbor(&number)) };
    if let Some(stored) = stored.as_le64() {
        return sum_into_u64(stored, &number);
    }
    let stored = numeric(&stored).ok_or_else(|| Error::invalid("unsupported value type"))?;
    match (stored, number) {
        (Numeric::Number(a), Numeric::Number(b)) => Ok(cbor(&Numeric::Number(a + b))),
        (Numeric::BigInt(a), Numeric::BigInt(b)) => Ok(cbor(&Numeric::BigInt(a + b))),
        (Numeric::BigInt(_), Numeric::Number(_)) => {
            Err(Error::invalid("Cannot sum BigInt with Number"))
        }
        (Numeric::Number(_), Numeric::BigInt(_)) => {
            Err(Error::invalid("Cannot sum Number with BigInt"))
        }
    }
}

fn sum_into_u64(stored: u64, operand: &Numeric) -> Result<EncodedValue> {
    match operand {
        Numeric::Number(_) => Err(Error::invalid("Cannot sum KvU64 with Number")),
        Numeric::BigInt(operand) => match u64::try_from(operand) {
            Ok(operand) => Ok(EncodedValue::le64(stored.wrapping_add(operand))),
            Err(_) => Err(Error::invalid("Cannot sum KvU64 with BigInt")),
        },
    }
}

/// The number that a value is.
pub(super) fn numeric(value: &EncodedValue) -> Option<Numeric> {
    (value.encoding == Encoding::Cbor).then(|| number_of(&value.bytes))?
}

fn cbor(number: &Numeric) -> EncodedValue {
    let bytes = match number {
        Numeric::Number(n) => encode_number(*n),
        Numeric::BigInt(n) => encode_bigint(n),
    };
    EncodedValue { encoding: Encoding::Cbor, bytes }
}

#[cfg(test)]
mod tests {
    use super::*;

    use num_bigint::BigInt;

    fn number(n: f64) -> EncodedValue {
        cbor(&Numeric::Number(n))
    }

    fn bigint(n: i128) -> EncodedValue {
        cbor(&Numeric::BigInt(BigInt::from(n)))
    }

    fn text() -> EncodedValue {
        EncodedValue { encoding: Encoding::Cbor, bytes: vec![0x61, 0x61] }
    }

    fn refusal(op: Arith, stored: EncodedValue, operand: EncodedValue) -> String {
        combine(op, Some(stored), operand).unwrap_err().message().to_owned()
    }

    #[test]
    fn u64s_wrap_and_compare() {
        let max = EncodedValue::le64(u64::MAX);
        let two = EncodedValue::le64(2);
        let run = |op| combine(op, Some(max.clone()), two.clone()).unwrap().as_le64();
        assert_eq!(run(Arith::Sum), Some(1));
        assert_eq!(run(Arith::Min), Some(2));
        assert_eq!(run(Arith::Max), Some(u64::MAX));
    }

    #[test]
    fn an_absent_entry_becomes_the_operand() {
        for operand in [EncodedValue::le64(7), number(0.5), bigint(-(1 << 100))] {
            assert_eq!(combine(Arith::Sum, None, operand.clone()), Ok(operand));
        }
    }

    #[test]
    fn numbers_add_to_their_own_kind() {
        assert_eq!(combine(Arith::Sum, Some(number(0.5)), number(0.25)), Ok(number(0.75)));
        let big = 1_i128 << 90;
        assert_eq!(combine(Arith::Sum, Some(bigint(big)), bigint(-1)), Ok(bigint(big - 1)));
        let u64_and_bigint = combine(Arith::Sum, Some(EncodedValue::le64(1)), bigint(2));
        assert_eq!(u64_and_bigint.unwrap().as_le64(), Some(3));
    }

    #[test]
    fn mixed_types_are_rejected_with_the_text_of_deno() {
        let one = EncodedValue::le64(1);
        let cases = [
            (Arith::Sum, text(), one.clone(), "'sum' mutation on a non-U64 value"),
            (Arith::Max, number(1.0), one.clone(), "'max' mutation on a non-U64 value"),
            (Arith::Min, one.clone(), number(1.0), "'min' mutation on a non-U64 operand"),
            (Arith::Sum, bigint(1), number(1.0), "Cannot sum BigInt with Number"),
            (Arith::Sum, number(1.0), bigint(1), "Cannot sum Number with BigInt"),
            (Arith::Sum, one.clone(), bigint(-1), "Cannot sum KvU64 with BigInt"),
            (Arith::Sum, one.clone(), number(1.0), "Cannot sum KvU64 with Number"),
            (Arith::Sum, text(), number(1.0), "unsupported value type"),
            (Arith::Sum, number(1.0), text(), "not valid V8 values"),
        ];
        for (op, stored, operand, words) in cases {
            let message = refusal(op, stored, operand);
            assert!(message.contains(words), "{message}");
        }
    }
}
