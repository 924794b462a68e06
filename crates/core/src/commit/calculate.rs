//! sum, min and max by openkv's own rules: exact, bounded, and on every kind of number.
//!
//! A number combines with a number; a bigint combines with any bigint, and with a `KvU64`, whose
//! type the result keeps. Deno KV's rules for `mutate` are in `arith.rs`; where both allow a
//! calculation they agree.

use std::cmp::Ordering;

use num_bigint::BigInt;

use super::arith::numeric;
use crate::codec::cbor::{encode_bigint, encode_number};
use crate::model::{
    Arith, Bounds, Calculation, EncodedValue, Encoding, Error, Kind, Numeric, Operand, Result,
};

/// The value after the calculation; `stored` is `None` if the key is absent.
///
/// # Errors
/// `Invalid` for two values that cannot be combined, `Range` for a result out of bounds.
pub(super) fn calculate(
    calculation: &Calculation,
    stored: Option<&EncodedValue>,
) -> Result<EncodedValue> {
    let Calculation { op, operand, bounds, .. } = calculation;
    let bounds = bounds.as_deref();
    match operand {
        Operand::Number(n) => {
            let stored = stored.map(|value| number_in(*op, value)).transpose()?;
            let result = numbers(*op, stored, *n, bounds)?;
            Ok(EncodedValue { encoding: Encoding::Cbor, bytes: encode_number(result) })
        }
        Operand::U64(n) => match (stored.map(EncodedValue::as_le64), bounds) {
            (None, None) => Ok(EncodedValue::le64(*n)),
            // As in Deno, a sum wraps around.
            (Some(Some(stored)), None) => Ok(EncodedValue::le64(match op {
                Arith::Sum => stored.wrapping_add(*n),
                Arith::Min => stored.min(*n),
                Arith::Max => stored.max(*n),
            })),
            (None, _) => exact(*op, None, &BigInt::from(*n), true, bounds),
            (Some(_), _) => with_stored(*op, stored, &BigInt::from(*n), bounds),
        },
        Operand::BigInt(n) => with_stored(*op, stored, n, bounds),
    }
}

fn with_stored(
    op: Arith,
    stored: Option<&EncodedValue>,
    operand: &BigInt,
    bounds: Option<&Bounds>,
) -> Result<EncodedValue> {
    let Some(value) = stored else { return exact(op, None, operand, false, bounds) };
    match (value.as_le64(), numeric(value)) {
        (Some(stored), _) => exact(op, Some(stored.into()), operand, true, bounds),
        (None, Some(Numeric::BigInt(stored))) => exact(op, Some(stored), operand, false, bounds),
        (None, other) => {
            let stored = other.map_or(StoredType::Other, |_| StoredType::Number);
            Err(mixed(op, "non-U64", stored, OperandType::BigInt))
        }
    }
}

fn number_in(op: Arith, value: &EncodedValue) -> Result<f64> {
    match numeric(value) {
        Some(Numeric::Number(stored)) => Ok(stored),
        other => {
            let stored = match (value.as_le64(), other) {
                (Some(_), _) => StoredType::U64,
                (None, Some(_)) => StoredType::BigInt,
                (None, None) => StoredType::Other,
            };
            Err(mixed(op, "non-number", stored, OperandType::Number))
        }
    }
}

/// What is stored where a calculation does not fit.
#[derive(Clone, Copy)]
enum StoredType {
    Number,
    BigInt,
    U64,
    Other,
}

/// The operand that does not fit it.
#[derive(Clone, Copy)]
enum OperandType {
    Number,
    BigInt,
}

/// The message begins with Deno's text, which programs match on.
fn mixed(op: Arith, what: &str, stored: StoredType, operand: OperandType) -> Error {
    let op = op.name();
    let (stored, advice) = match stored {
        StoredType::Number => ("a number", "give a number (1)"),
        StoredType::BigInt => ("a bigint", "give a bigint (1n)"),
        StoredType::U64 => ("a KvU64", "give a bigint (1n)"),
        StoredType::Other => ("no number of any kind", "delete it, or store a number there first"),
    };
    let operand = match operand {
        OperandType::Number => "a number",
        OperandType::BigInt => "a bigint",
    };
    Error::invalid(format!(
        "Failed to perform '{op}' mutation on a {what} value in the database: it is {stored}, \
         and the operand is {operand}: {advice}"
    ))
}

fn numbers(op: Arith, stored: Option<f64>, operand: f64, bounds: Option<&Bounds>) -> Result<f64> {
    let exact = match (op, stored) {
        (_, None) => operand,
        (Arith::Sum, Some(stored)) => stored + operand,
        // As in Math.min and Math.max: −0 is below 0, and NaN is kept.
        (_, Some(stored)) if stored.is_nan() => stored,
        (Arith::Min, Some(stored)) if stored.total_cmp(&operand).is_gt() => operand,
        (Arith::Max, Some(stored)) if stored.total_cmp(&operand).is_lt() => operand,
        (Arith::Min | Arith::Max, Some(stored)) => stored,
    };
    let end = |bound: Option<&Numeric>| match bound {
        Some(Numeric::Number(n)) => Some(*n),
        _ => None,
    };
    let (min, max) =
        (end(bounds.and_then(|b| b.min.as_ref())), end(bounds.and_then(|b| b.max.as_ref())));
    let clamp = bounds.is_some_and(|bounds| bounds.clamp);
    let result = match (min, max) {
        (Some(min), _) if exact < min && clamp => min,
        (_, Some(max)) if exact > max && clamp => max,
        (Some(min), _) if exact < min => return Err(beyond(op, &exact, "min", &min)),
        (_, Some(max)) if exact > max => return Err(beyond(op, &exact, "max", &max)),
        _ => exact,
    };
    if !result.is_finite() {
        let op = op.name();
        let words = format!("Failed to perform '{op}' mutation: the result {result} is not finite");
        return Err(Error::new(Kind::Range, words));
    }
    Ok(result)
}

/// The exact result on integers. With `is_u64` it remains a `KvU64`, or fails.
fn exact(
    op: Arith,
    stored: Option<BigInt>,
    operand: &BigInt,
    is_u64: bool,
    bounds: Option<&Bounds>,
) -> Result<EncodedValue> {
    let mut result = match (op, stored) {
        (_, None) => operand.clone(),
        (Arith::Sum, Some(stored)) => stored + operand,
        (Arith::Min, Some(stored)) => stored.min(operand.clone()),
        (Arith::Max, Some(stored)) => stored.max(operand.clone()),
    };
    let end = |bound: Option<&Numeric>| match bound {
        Some(Numeric::BigInt(n)) => Some(n.clone()),
        _ => None,
    };
    let (zero, most) = (BigInt::ZERO, BigInt::from(u64::MAX));
    // The caller's bounds are checked last, so that no later step changes a result within them.
    let given_min = ("min", Ordering::Less, end(bounds.and_then(|bounds| bounds.min.as_ref())));
    let given_max = ("max", Ordering::Greater, end(bounds.and_then(|bounds| bounds.max.as_ref())));
    let own_min = ("the least KvU64", Ordering::Less, is_u64.then_some(zero));
    let own_max = ("the largest KvU64", Ordering::Greater, is_u64.then_some(most));
    let clamp = bounds.is_some_and(|bounds| bounds.clamp);
    if clamp {
        for (_, beyond, end) in [&given_min, &given_max, &own_min, &own_max] {
            if let Some(end) = end
                && result.cmp(end) == *beyond
            {
                result = end.clone();
            }
        }
    }
    for (name, side, end) in [given_min, given_max, own_min, own_max] {
        if let Some(end) = end
            && result.cmp(&end) == side
        {
            return Err(beyond(op, &ShortBigInt(&result), name, &ShortBigInt(&end)));
        }
    }
    match u64::try_from(&result) {
        Ok(n) if is_u64 => Ok(EncodedValue::le64(n)),
        _ => Ok(EncodedValue { encoding: Encoding::Cbor, bytes: encode_bigint(&result) }),
    }
}

fn beyond(
    op: Arith,
    result: &dyn std::fmt::Display,
    name: &str,
    end: &dyn std::fmt::Display,
) -> Error {
    let advice = match op {
        Arith::Sum => "clamp: true would store the bound",
        Arith::Min | Arith::Max => "store a bigint in place of the KvU64 to allow it",
    };
    let op = op.name();
    let words = format!(
        "Failed to perform '{op}' mutation: the result {result} is beyond {name} ({end}); {advice}"
    );
    Error::new(Kind::Range, words)
}

/// Size of a bigint, in bits, whose digits a message shows: printing them takes quadratic time.
const TOLD_BITS_MAX: u64 = 256;

/// A bigint in a message.
struct ShortBigInt<'a>(&'a BigInt);

impl std::fmt::Display for ShortBigInt<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0.bits() {
            ..=TOLD_BITS_MAX => write!(f, "{}n", self.0),
            bits => write!(f, "(a bigint of {bits} bits)"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cbor(bytes: Vec<u8>) -> EncodedValue {
        EncodedValue { encoding: Encoding::Cbor, bytes }
    }

    fn number(n: f64) -> EncodedValue {
        cbor(encode_number(n))
    }

    fn bigint(n: i128) -> EncodedValue {
        cbor(encode_bigint(&n.into()))
    }

    fn run(op: Arith, stored: Option<EncodedValue>, operand: Operand) -> Result<EncodedValue> {
        bounded(op, stored, operand, None)
    }

    fn bounded(
        op: Arith,
        stored: Option<EncodedValue>,
        operand: Operand,
        bounds: Option<Bounds>,
    ) -> Result<EncodedValue> {
        let bounds = bounds.map(Box::new);
        let calculation = Calculation { op, operand, bounds, value_bytes_max: 100 };
        calculate(&calculation, stored.as_ref())
    }

    fn between(min: i128, max: i128, clamp: bool) -> Option<Bounds> {
        let end = |n: i128| Some(Numeric::BigInt(n.into()));
        Some(Bounds { min: end(min), max: end(max), clamp })
    }

    #[test]
    fn a_u64_keeps_its_type_and_wraps_as_in_deno() {
        let most = || Some(EncodedValue::le64(u64::MAX));
        let sum = |operand| run(Arith::Sum, most(), operand);
        assert_eq!(sum(Operand::U64(2)), Ok(EncodedValue::le64(1)));
        assert_eq!(sum(Operand::BigInt((-1).into())), Ok(EncodedValue::le64(u64::MAX - 1)));
        assert_eq!(sum(Operand::BigInt(2.into())).unwrap_err().kind(), Kind::Range);
        let clamps = between(0, i128::MAX, true);
        let clamped = bounded(Arith::Sum, most(), Operand::BigInt(2.into()), clamps);
        assert_eq!(clamped, Ok(EncodedValue::le64(u64::MAX)));
        let under = run(Arith::Min, most(), Operand::BigInt((-1).into()));
        assert_eq!(under.unwrap_err().kind(), Kind::Range);
        assert_eq!(run(Arith::Sum, None, Operand::U64(7)), Ok(EncodedValue::le64(7)));
    }

    #[test]
    fn bigints_are_exact_and_bounded() {
        let sum = |by: i128, bounds| {
            bounded(Arith::Sum, Some(bigint(1 << 100)), Operand::BigInt(by.into()), bounds)
        };
        assert_eq!(sum(-1, None), Ok(bigint((1 << 100) - 1)));
        assert_eq!(run(Arith::Sum, Some(bigint(5)), Operand::U64(2)), Ok(bigint(7)));
        assert_eq!(run(Arith::Max, Some(bigint(-5)), Operand::U64(2)), Ok(bigint(2)));
        assert_eq!(run(Arith::Sum, None, Operand::BigInt((-3).into())), Ok(bigint(-3)));
        assert_eq!(sum(1, between(0, 10, true)), Ok(bigint(10)));
        let refused = sum(1, between(0, 10, false)).unwrap_err();
        assert_eq!(refused.kind(), Kind::Range);
        let words = "the result 1267650600228229401496703205377n is beyond max (10n)";
        assert!(refused.message().contains(words), "{}", refused.message());
    }

    #[test]
    fn numbers_stay_finite() {
        let sum = |stored: f64, by| run(Arith::Sum, Some(number(stored)), Operand::Number(by));
        assert_eq!(sum(0.5, 0.25), Ok(number(0.75)));
        assert_eq!(sum(f64::MAX, f64::MAX).unwrap_err().kind(), Kind::Range);
        assert_eq!(sum(f64::NAN, 1.0).unwrap_err().kind(), Kind::Range);
        let max = Some(Bounds { min: None, max: Some(Numeric::Number(9.0)), clamp: true });
        let clamped = bounded(Arith::Sum, Some(number(f64::MAX)), Operand::Number(f64::MAX), max);
        assert_eq!(clamped, Ok(number(9.0)));
    }

    #[test]
    fn kinds_do_not_mix() {
        let one = || EncodedValue::le64(1);
        for (stored, operand) in [
            (number(1.0), Operand::U64(1)),
            (number(1.0), Operand::BigInt(1.into())),
            (bigint(1), Operand::Number(1.0)),
            (one(), Operand::Number(1.0)),
            (cbor(vec![0xf6]), Operand::U64(1)),
            (cbor(vec![0xf6]), Operand::Number(1.0)),
        ] {
            let error = run(Arith::Sum, Some(stored), operand).unwrap_err();
            assert_eq!(error.kind(), Kind::Invalid);
            assert!(error.message().starts_with("Failed to perform 'sum' mutation on a non-"));
        }
    }
}
