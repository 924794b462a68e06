//! Keys in messages, shortened to fit a line.

use std::fmt::Write;

use super::decode;
use crate::model::{KEY_PRINT_CHARS_MAX, KeyPart};

/// A key as a JavaScript literal, shortened. Never fails: for invalid bytes it returns their
/// number.
///
/// ```
/// use openkv_core::codec::key;
/// assert_eq!(key::print(b"\x02a\x00\x15\x05\x27"), r#"["a",5n,true]"#);
/// ```
pub fn print(bytes: &[u8]) -> String {
    let Ok(parts) = decode(bytes) else { return format!("of {} bytes", bytes.len()) };
    let mut out = String::from("[");
    for (at, part) in parts.iter().enumerate() {
        if at > 0 {
            out.push(',');
        }
        push_part(&mut out, part);
        if out.chars().nth(KEY_PRINT_CHARS_MAX).is_some() {
            let cut = out.char_indices().nth(KEY_PRINT_CHARS_MAX).map_or(out.len(), |(at, _)| at);
            out.truncate(cut);
            out.push('…');
            return out;
        }
    }
    out.push(']');
    out
}

fn push_part(out: &mut String, part: &KeyPart) {
    // Writing to a string does not fail.
    let _ = match part {
        KeyPart::Bytes(bytes) => write!(out, "Uint8Array({})", bytes.len()),
        KeyPart::String(text) => write!(out, "{:?}", Text(text)),
        KeyPart::BigInt(n) => write!(out, "{n}n"),
        KeyPart::Number(n) => write!(out, "{n}"),
        KeyPart::Bool(b) => write!(out, "{b}"),
    };
}

/// The beginning of a text, up to the limit.
struct Text<'a>(&'a str);

impl std::fmt::Debug for Text<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text: String = self.0.chars().take(KEY_PRINT_CHARS_MAX).collect();
        write!(f, "{text:?}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_keys_are_cut() {
        let key = ["\x02", &"\"é".repeat(400), "\0\x27"].concat();
        let text = print(key.as_bytes());
        assert_eq!(text.chars().count(), KEY_PRINT_CHARS_MAX + 1);
        assert!(text.starts_with(r#"["\"é\"é"#) && text.ends_with('…'));
        assert_eq!(print(&[]), "[]");
        assert_eq!(print(&[0xff]), "of 1 bytes");
    }
}
