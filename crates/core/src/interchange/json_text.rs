//! The scalars of JSON as JavaScript's `JSON.stringify` and `String` write them.

use std::fmt::Write;

use base64::Engine as _;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use base64::prelude::{BASE64_STANDARD, BASE64_URL_SAFE_NO_PAD};

use crate::model::JsString;

/// Appends a string in quotes. A lone surrogate is an escape.
pub(super) fn push_string(out: &mut String, text: &JsString) {
    out.push('"');
    let mut rest = text.as_wtf8();
    loop {
        let (plain, odd) = match std::str::from_utf8(rest) {
            Ok(all) => (all, &[][..]),
            Err(error) => {
                let (plain, odd) = rest.split_at(error.valid_up_to());
                (std::str::from_utf8(plain).unwrap_or_default(), odd)
            }
        };
        push_escaped(out, plain);
        let [_, second, third, after @ ..] = odd else { break };
        // The first byte of a surrogate is always 0xed.
        let unit = 0xd000 | u32::from(second & 0x3f) << 6 | u32::from(third & 0x3f);
        let _ = write!(out, "\\u{unit:04x}");
        rest = after;
    }
    out.push('"');
}

/// Appends a text in quotes.
pub fn push_text(out: &mut String, text: &str) {
    out.push('"');
    push_escaped(out, text);
    out.push('"');
}

fn push_escaped(out: &mut String, text: &str) {
    let mut start = 0;
    for (at, byte) in text.bytes().enumerate() {
        if byte >= 0x20 && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.push_str(text.get(start..at).unwrap_or_default());
        start = at + 1;
        match byte {
            b'"' => out.push_str("\\\""),
            b'\\' => out.push_str("\\\\"),
            0x08 => out.push_str("\\b"),
            0x0c => out.push_str("\\f"),
            b'\n' => out.push_str("\\n"),
            b'\r' => out.push_str("\\r"),
            b'\t' => out.push_str("\\t"),
            _ => {
                let _ = write!(out, "\\u{byte:04x}");
            }
        }
    }
    out.push_str(text.get(start..).unwrap_or_default());
}

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

/// Appends base64 without padding, in the alphabet of URLs.
pub(super) fn push_base64url(out: &mut String, bytes: &[u8]) {
    BASE64_URL_SAFE_NO_PAD.encode_string(bytes, out);
}

/// Appends base64 with padding, in the ordinary alphabet.
pub(super) fn push_base64(out: &mut String, bytes: &[u8]) {
    BASE64_STANDARD.encode_string(bytes, out);
}

const EITHER: GeneralPurpose = GeneralPurpose::new(
    &base64::alphabet::STANDARD,
    GeneralPurposeConfig::new()
        .with_decode_allow_trailing_bits(true)
        .with_decode_padding_mode(DecodePaddingMode::RequireNone),
);

/// Most padding of base64.
const PADDING_CHARS_MAX: usize = 2;

/// The bytes of base64 in either alphabet, with padding or without; `None` for other text.
pub(super) fn from_base64(text: &JsString) -> Option<Vec<u8>> {
    let text = text.as_str()?;
    let digits = text.trim_end_matches('=');
    if text.len() - digits.len() > PADDING_CHARS_MAX {
        return None;
    }
    EITHER.decode(digits.replace('-', "+").replace('_', "/")).ok()
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

    #[test]
    fn base64_is_read_in_either_alphabet() {
        for (text, bytes) in [
            ("", Some(&[][..])),
            ("AP8-", Some(&[0, 255, 62][..])),
            ("AP8+", Some(&[0, 255, 62])),
            ("AA==", Some(&[0])),
            ("AB", Some(&[0])),
            ("A", None),
            ("A=A", None),
            ("AA===", None),
            ("A A=", None),
            ("ä", None),
        ] {
            assert_eq!(from_base64(&text.into()).as_deref(), bytes, "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_number_comes_back(bits: u64) {
            let n = f64::from_bits(bits);
            prop_assume!(n.is_finite() && n != 0.0);
            prop_assert_eq!(number(n).parse::<f64>().unwrap().to_bits(), bits);
        }

        #[test]
        fn a_string_comes_back(text: String) {
            let mut out = String::new();
            push_string(&mut out, &text.as_str().into());
            prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }
}
