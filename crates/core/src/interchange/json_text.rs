//! The strings of JSON as JavaScript's `JSON.stringify` writes them, and base64.

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
        fn a_string_comes_back(text: String) {
            let mut out = String::new();
            push_string(&mut out, &text.as_str().into());
            prop_assert_eq!(serde_json::from_str::<String>(&out).unwrap(), text);
        }
    }
}
