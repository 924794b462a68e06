//! Hexadecimal byte strings in tests.

/// The bytes of hexadecimal text; spaces are allowed.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digit = |c: char| c.to_digit(16).expect("a hex digit") as u8;
    let digits: Vec<u8> = text.chars().filter(|c| *c != ' ').map(digit).collect();
    assert!(digits.len().is_multiple_of(2), "half a byte: {text}");
    digits.chunks_exact(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}
