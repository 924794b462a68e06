//! JavaScript numbers as texts.

use std::fmt::Write;

/// Largest exponent of ten that JavaScript writes without an `e`.
const POINT_MAX: i32 = 21;
/// Zeros behind the point that JavaScript writes at most.
const ZEROS_MAX: i32 = 5;

/// Appends a finite number: the shortest digits that give the same double. −0 is `0`.
pub fn push_number(out: &mut String, n: f64) {
    // Integers of so many digits are exact in either type.
    if n.fract() == 0.0 && n.abs() < 1e15 {
        let _ = write!(out, "{}", n as i64);
        return;
    }
    let text = format!("{:e}", n.abs());
    let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
    let digits = mantissa.replace('.', "");
    let exponent: i32 = exponent.parse().unwrap_or(0);
    if n < 0.0 {
        out.push('-');
    }
    // The place of the point among the digits.
    let point = exponent + 1;
    let len = i32::try_from(digits.len()).unwrap_or(i32::MAX);
    let zeros = |count: i32| "0".repeat(usize::try_from(count).unwrap_or(0));
    let _ = if len <= point && point <= POINT_MAX {
        write!(out, "{digits}{}", zeros(point - len))
    } else if 0 < point && point <= POINT_MAX {
        let (whole, fraction) = digits.split_at(usize::try_from(point).unwrap_or(0));
        write!(out, "{whole}.{fraction}")
    } else if (-ZEROS_MAX..=0).contains(&point) {
        write!(out, "0.{}{digits}", zeros(-point))
    } else {
        let (first, rest) = digits.split_at(1);
        let dot = if rest.is_empty() { "" } else { "." };
        write!(out, "{first}{dot}{rest}e{exponent:+}")
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn number(n: f64) -> String {
        let mut out = String::new();
        push_number(&mut out, n);
        out
    }

    #[test]
    fn numbers_are_those_of_javascript() {
        for (n, text) in [
            (0.0, "0"),
            (-0.0, "0"),
            (-1.5, "-1.5"),
            (1e15, "1000000000000000"),
            (123_456_789_012_345_680_000.0, "123456789012345680000"),
            (1e21, "1e+21"),
            (1.25e21, "1.25e+21"),
            (-1e-6, "-0.000001"),
            (1.5e-7, "1.5e-7"),
            (5e-324, "5e-324"),
            (f64::MAX, "1.7976931348623157e+308"),
            (9_007_199_254_740_993.0, "9007199254740992"),
            (0.1 + 0.2, "0.30000000000000004"),
            (1_234_567_890_123_456.8, "1234567890123456.8"),
        ] {
            assert_eq!(number(n), text);
        }
    }

    proptest! {
        #[test]
        fn a_number_comes_back(bits: u64) {
            let n = f64::from_bits(bits);
            prop_assume!(n.is_finite() && n != 0.0);
            prop_assert_eq!(number(n).parse::<f64>().unwrap().to_bits(), bits);
        }
    }
}
