//! JavaScript strings: sequences of UTF-16 code units, not always well formed.

use std::fmt;

/// A JavaScript string in WTF-8: UTF-8 in which a lone surrogate has the three bytes of its code
/// point.
///
/// Invariant: the bytes are well-formed WTF-8. A surrogate pair is one character of four bytes,
/// never two of three, so equal strings have equal bytes.
#[derive(Clone, Default, PartialEq, Eq, Hash)]
pub struct JsString(Box<[u8]>);

impl JsString {
    /// A string of WTF-8; `None` if the bytes are not.
    ///
    /// ```
    /// use openkv_core::model::JsString;
    /// assert!(JsString::from_wtf8(vec![0xed, 0xa0, 0x80]).is_some()); // a lone U+D800
    /// assert!(JsString::from_wtf8(vec![0xff]).is_none());
    /// ```
    pub fn from_wtf8(bytes: Vec<u8>) -> Option<Self> {
        is_wtf8(&bytes).then(|| Self(bytes.into()))
    }

    /// The text; `None` if it contains a lone surrogate.
    pub fn as_str(&self) -> Option<&str> {
        std::str::from_utf8(&self.0).ok()
    }

    /// The WTF-8 bytes.
    pub fn as_wtf8(&self) -> &[u8] {
        &self.0
    }

    /// The number of an array index, `"0"` to `"4294967294"`, if the string is its canonical form.
    ///
    /// ```
    /// use openkv_core::model::JsString;
    /// assert_eq!(JsString::from("10").as_array_index(), Some(10));
    /// assert_eq!(JsString::from("010").as_array_index(), None);
    /// ```
    pub fn as_array_index(&self) -> Option<u32> {
        array_index(&self.0)
    }
}

/// As [`JsString::as_array_index`], of a name in WTF-8.
pub fn array_index(name: &[u8]) -> Option<u32> {
    let (first, rest) = name.split_first()?;
    if !first.is_ascii_digit() || (*first == b'0' && !rest.is_empty()) || name.len() > 10 {
        return None;
    }
    let text = std::str::from_utf8(name).ok()?;
    text.parse().ok().filter(|index| *index != u32::MAX)
}

impl From<String> for JsString {
    fn from(text: String) -> Self {
        Self(text.into_bytes().into())
    }
}

impl From<&str> for JsString {
    fn from(text: &str) -> Self {
        Self(text.as_bytes().into())
    }
}

/// In quotes, with lone surrogates as U+FFFD.
impl fmt::Debug for JsString {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&String::from_utf8_lossy(&self.0), f)
    }
}

/// The kind of surrogate that the three bytes encode; `None` if they encode another character.
fn surrogate(bytes: &[u8]) -> Option<Half> {
    match bytes {
        [0xed, 0xa0..=0xaf, 0x80..=0xbf, ..] => Some(Half::High),
        [0xed, 0xb0..=0xbf, 0x80..=0xbf, ..] => Some(Half::Low),
        _ => None,
    }
}

#[derive(Clone, Copy, PartialEq)]
enum Half {
    High,
    Low,
}

/// Whether the bytes are UTF-8 and lone surrogates, without two that form a pair.
fn is_wtf8(mut rest: &[u8]) -> bool {
    let mut after_high = false;
    loop {
        let Err(error) = std::str::from_utf8(rest) else {
            return true;
        };
        let (text, odd) = rest.split_at(error.valid_up_to());
        after_high &= text.is_empty();
        let Some(half) = surrogate(odd) else {
            return false;
        };
        if after_high && half == Half::Low {
            return false;
        }
        after_high = half == Half::High;
        rest = odd.get(3..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HIGH: [u8; 3] = [0xed, 0xa0, 0xbd];
    const LOW: [u8; 3] = [0xed, 0xb8, 0x80];

    fn accepted(pieces: &[&[u8]]) -> bool {
        JsString::from_wtf8(pieces.concat()).is_some()
    }

    #[test]
    fn lone_surrogates_are_accepted_and_pairs_are_not() {
        assert!(accepted(&[]));
        assert!(accepted(&["😀é".as_bytes()]));
        assert!(accepted(&[&HIGH]));
        assert!(accepted(&[&LOW, &HIGH]));
        assert!(accepted(&[&HIGH, b"x", &LOW]));
        assert!(accepted(&[&HIGH, &HIGH]));
        assert!(!accepted(&[&HIGH, &LOW]));
        assert!(!accepted(&[b"x", &HIGH, &HIGH, &LOW]));
    }

    #[test]
    fn invalid_bytes_are_rejected() {
        assert!(!accepted(&[&[0xed, 0xa0]]));
        assert!(!accepted(&[&[0xc0, 0x80]]));
        assert!(!accepted(&[&[0xf5, 0x80, 0x80, 0x80]]));
        assert!(!accepted(&[&[0x80]]));
    }

    #[test]
    fn only_well_formed_strings_are_text() {
        assert_eq!(JsString::from("é").as_str(), Some("é"));
        assert_eq!(JsString::from_wtf8(HIGH.to_vec()).unwrap().as_str(), None);
    }

    #[test]
    fn only_canonical_array_indexes_are_indexes() {
        let index = |text: &str| JsString::from(text).as_array_index();
        assert_eq!(index("0"), Some(0));
        assert_eq!(index("4294967294"), Some(4_294_967_294));
        for other in
            ["", "-1", "+1", "01", "1.0", "1e3", "4294967295", "99999999999999999999", " 1"]
        {
            assert_eq!(index(other), None, "{other}");
        }
    }
}
