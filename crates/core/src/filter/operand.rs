//! Operands, and their comparison with items: exact, and only within one type.

use std::cmp::Ordering;

use num_bigint::{BigInt, Sign};

use crate::codec::cbor::Item;
use crate::codec::date;

/// The operand of a comparison.
#[derive(Clone, Debug)]
pub(crate) enum Operand {
    Null,
    Bool(bool),
    Number(f64),
    BigInt(BigInt),
    /// WTF-8.
    Text(Vec<u8>),
    Bytes(Vec<u8>),
    /// Ms since the epoch.
    Date(f64),
    /// The present, in ms since the epoch: compared with a Date, with a number or bigint of ms, and with a text in
    /// ISO 8601.
    Now(f64),
}

impl Operand {
    /// Whether the item is the same value. NaN is not equal to itself.
    pub(super) fn equals(&self, item: &Item<'_>) -> bool {
        match (item, self) {
            (Item::Null, Self::Null) => true,
            _ => self.compare(item) == Some(Ordering::Equal),
        }
    }

    /// The order of the item relative to this operand; `None` for different types and for NaN.
    pub(super) fn compare(&self, item: &Item<'_>) -> Option<Ordering> {
        match (item, self) {
            (Item::Bool(a), Self::Bool(b)) => Some(a.cmp(b)),
            (Item::Number(a), Self::Number(b)) | (Item::Date(a), Self::Date(b)) => a.partial_cmp(b),
            (Item::Number(a), Self::BigInt(b)) => compare_mixed(*a, b),
            (Item::BigInt { .. }, Self::Number(b)) => {
                compare_mixed(*b, &item.bigint()?).map(Ordering::reverse)
            }
            (Item::BigInt { .. }, Self::BigInt(b)) => Some(item.bigint()?.cmp(b)),
            (Item::Number(a) | Item::Date(a), Self::Now(now)) => a.partial_cmp(now),
            (Item::BigInt { .. }, Self::Now(now)) => {
                compare_mixed(*now, &item.bigint()?).map(Ordering::reverse)
            }
            (Item::Text(a), Self::Now(now)) => {
                let ms = std::str::from_utf8(a).ok().and_then(date::parse)?;
                (ms as f64).partial_cmp(now)
            }
            (Item::Text(a), Self::Text(b)) | (Item::Bytes(a), Self::Bytes(b)) => {
                Some((*a).cmp(b.as_slice()))
            }
            _ => None,
        }
    }
}

/// Bits of a double's fraction.
const FRACTION_BITS: u32 = 52;
/// Added to the exponent of a double when its fraction is read as an integer.
const EXPONENT_BIAS: i32 = 1075;

/// Compares a double with an integer without rounding either.
fn compare_mixed(number: f64, integer: &BigInt) -> Option<Ordering> {
    if number.is_nan() {
        return None;
    }
    if number.is_infinite() {
        return Some(if number > 0.0 { Ordering::Greater } else { Ordering::Less });
    }
    let whole = whole_part(number);
    let fraction = number.fract().partial_cmp(&0.0)?;
    Some(whole.cmp(integer).then(fraction))
}

/// The integer towards zero.
fn whole_part(number: f64) -> BigInt {
    let bits = number.abs().to_bits();
    let exponent = (bits >> FRACTION_BITS) as i32;
    let fraction = bits & ((1 << FRACTION_BITS) - 1);
    let mantissa = if exponent == 0 { fraction } else { fraction | 1 << FRACTION_BITS };
    let shift = exponent - EXPONENT_BIAS;
    let magnitude = match u32::try_from(shift) {
        Ok(left) => BigInt::from(mantissa) << left,
        Err(_) => BigInt::from(mantissa.checked_shr(shift.unsigned_abs()).unwrap_or(0)),
    };
    if number.is_sign_negative() && magnitude.sign() != Sign::NoSign {
        -magnitude
    } else {
        magnitude
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn doubles_and_integers_compare_exactly() {
        let two_53 = BigInt::from(1_u64 << 53);
        assert_eq!(compare_mixed(9_007_199_254_740_992.0, &two_53), Some(Ordering::Equal));
        let next: BigInt = &two_53 + 1;
        assert_eq!(compare_mixed(9_007_199_254_740_992.0, &next), Some(Ordering::Less));
        assert_eq!(compare_mixed(1e300, &next), Some(Ordering::Greater));
        assert_eq!(compare_mixed(-1e300, &next), Some(Ordering::Less));
        assert_eq!(compare_mixed(-0.5, &BigInt::from(0)), Some(Ordering::Less));
        assert_eq!(compare_mixed(-0.0, &BigInt::from(0)), Some(Ordering::Equal));
        assert_eq!(compare_mixed(-1.5, &BigInt::from(-1)), Some(Ordering::Less));
        assert_eq!(compare_mixed(f64::MIN_POSITIVE, &BigInt::from(0)), Some(Ordering::Greater));
        assert_eq!(compare_mixed(f64::NAN, &BigInt::from(0)), None);
        assert_eq!(compare_mixed(f64::INFINITY, &BigInt::from(0)), Some(Ordering::Greater));
    }

    proptest! {
        #[test]
        fn the_whole_part_is_that_of_the_double(n in -1e30..1e30_f64) {
            prop_assert_eq!(whole_part(n), BigInt::from(n as i128));
        }

        #[test]
        fn small_integers_compare_as_doubles_do(a in -1000..1000_i32, quarter in -4000..4000_i32) {
            let number = f64::from(quarter) / 4.0;
            prop_assert_eq!(
                compare_mixed(number, &BigInt::from(a)),
                number.partial_cmp(&f64::from(a)),
            );
        }
    }
}
