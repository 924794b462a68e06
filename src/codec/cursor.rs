//! Cursors: where a `list` stopped, as text that Deno KV understands and writes (docs/format.md §4).
//!
//! A cursor is the entry's encoded key without what all keys of the selector begin with, in URL-safe
//! base64 with padding. It says nothing of the direction: whoever resumes chooses that again.
//!
//! Invariant: resuming never widens a selector.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE;

use super::Malformed;

/// Follows a prefix in the first key that can extend it, and in the first that no longer does.
const FIRST_EXTENSION: u8 = 0x00;
const PAST_EXTENSIONS: u8 = 0xff;

/// What stands for the start of a range whose end extends it, since an empty cursor means "from the
/// beginning"; a zero follows no whole key. Deno KV has no cursor for it.
const OF_START: &[u8] = &[0];

/// What a list goes over, in encoded keys. Whether the bounds suit each other is not checked here.
#[derive(Clone, Copy, Debug)]
pub struct Selector<'a> {
    common: &'a [u8],
    start: Option<&'a [u8]>,
    end: Option<&'a [u8]>,
}

impl<'a> Selector<'a> {
    /// The keys that extend a prefix, from `start` (included) or up to `end` (excluded) if given.
    #[must_use]
    pub fn prefix(prefix: &'a [u8], start: Option<&'a [u8]>, end: Option<&'a [u8]>) -> Self {
        Self { common: prefix, start, end }
    }

    /// The keys with `start <= key < end`.
    #[must_use]
    pub fn between(start: &'a [u8], end: &'a [u8]) -> Self {
        let len = start.iter().zip(end).take_while(|(a, b)| a == b).count();
        let common = start.get(..len).unwrap_or_default();
        Self { common, start: Some(start), end: Some(end) }
    }

    /// The first key, included, and the last, excluded.
    #[must_use]
    pub fn bounds(&self) -> (Vec<u8>, Vec<u8>) {
        let bound = |explicit: Option<&[u8]>, extension: u8| {
            explicit.map_or_else(|| [self.common, &[extension]].concat(), <[u8]>::to_vec)
        };
        (bound(self.start, FIRST_EXTENSION), bound(self.end, PAST_EXTENSIONS))
    }

    /// The cursor of an entry, `None` if its key is not one of the selector's.
    ///
    /// ```
    /// use openkv::codec::cursor::Selector;
    /// let selector = Selector::prefix(b"\x02a\x00", None, None);
    /// assert_eq!(selector.cursor(b"\x02a\x00\x02b\x00").as_deref(), Some("AmIA"));
    /// ```
    #[must_use]
    pub fn cursor(&self, key: &[u8]) -> Option<String> {
        let rest = key.strip_prefix(self.common)?;
        Some(URL_SAFE.encode(if rest.is_empty() { OF_START } else { rest }))
    }

    /// The bounds of what is left after the entry of a cursor. Forward, the rest starts just after
    /// the entry; in reverse, it ends before it. An empty cursor is none. A cursor beyond the far
    /// bound leaves nothing: the start is then not below the end.
    ///
    /// # Errors
    /// Anything but URL-safe base64 with all of its padding and no stray bits ("invalid cursor"); a
    /// place on the near side of a bound that was given ("cursor out of bounds").
    pub fn resume(&self, cursor: &str, reverse: bool) -> Result<(Vec<u8>, Vec<u8>), Malformed> {
        const OUT_OF_BOUNDS: Malformed = Malformed::new("cursor out of bounds", 0);
        let (start, end) = self.bounds();
        if cursor.is_empty() {
            return Ok((start, end));
        }
        let rest = URL_SAFE.decode(cursor).map_err(|_| Malformed::new("invalid cursor", 0))?;
        // A start that is common to all keys is a whole key.
        let is_start = rest == OF_START && self.start == Some(self.common);
        let mut at = [self.common, if is_start { &[] } else { &rest }].concat();
        if reverse {
            match self.end {
                Some(explicit) if at.as_slice() > explicit => Err(OUT_OF_BOUNDS),
                _ => Ok((start, at.min(end))),
            }
        } else {
            at.push(0);
            match self.start {
                Some(explicit) if at.as_slice() < explicit => Err(OUT_OF_BOUNDS),
                _ => Ok((at.max(start), end)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const A: &[u8] = b"\x02a\x00";
    const B: &[u8] = b"\x02b\x00";

    fn under_a(part: &[u8]) -> Vec<u8> {
        [A, part].concat()
    }

    #[test]
    fn cursors_are_those_of_deno_kv() {
        let cursor = |selector: Selector<'_>, key: &[u8]| selector.cursor(key).unwrap();
        let prefix = Selector::prefix(A, None, None);
        assert_eq!(cursor(prefix, &under_a(B)), "AmIA");
        assert_eq!(cursor(Selector::prefix(b"", None, None), &under_a(B)), "AmEAAmIA");
        let (start, end) = (under_a(B), under_a(b"\x02z\x00"));
        let between = Selector::between(&start, &end);
        assert_eq!(cursor(between, &under_a(b"\x02c\x00")), "YwA=");
        assert_eq!(cursor(Selector::between(A, B), A), "YQA=");
        assert_eq!(prefix.cursor(B), None);
    }

    #[test]
    fn the_start_of_a_range_has_a_cursor_too() {
        // It had an empty one, and whoever went on from there began again.
        let end = under_a(B);
        let range = Selector::between(A, &end);
        assert_eq!(range.cursor(A).as_deref(), Some("AA=="));
        assert_eq!(range.resume("AA==", false), Ok((under_a(&[0]), end.clone())));
        assert_eq!(range.resume("AA==", true), Ok((A.to_vec(), A.to_vec())));
        assert_eq!(range.resume("", false), Ok(range.bounds()), "no cursor");
        // Where it is the end of a key, it is that.
        let words = Selector::between(A, b"\x02ab\x00");
        assert_eq!(words.cursor(A).as_deref(), Some("AA=="));
        assert_eq!(words.resume("AA==", true), Ok((A.to_vec(), A.to_vec())));
    }

    #[test]
    fn what_is_left_starts_after_the_entry_or_ends_before_it() {
        let prefix = Selector::prefix(A, None, None);
        let (first, last) = prefix.bounds();
        assert_eq!((first.as_slice(), last.as_slice()), (&b"\x02a\0\0"[..], &b"\x02a\0\xff"[..]));
        assert_eq!(prefix.resume("AmIA", false), Ok((under_a(b"\x02b\x00\x00"), last)));
        assert_eq!(prefix.resume("AmIA", true), Ok((first, under_a(B))));
    }

    #[test]
    fn text_that_is_no_cursor_is_refused() {
        let prefix = Selector::prefix(A, None, None);
        for text in ["AmI", "AmIA=", "Am+A", "Am/A", "YwA", "YwB=", "Yw A=", "é", "====", "A"] {
            assert_eq!(prefix.resume(text, false).unwrap_err().what(), "invalid cursor", "{text}");
        }
    }

    #[test]
    fn only_bounds_that_were_given_are_guarded() {
        let start = under_a(b"\x02m\x00");
        let before = "AmIA";
        let outside = |selector: Selector<'_>, cursor: &str, reverse: bool| {
            selector.resume(cursor, reverse).err().map(|error| error.what())
        };
        let out_of_bounds = Some("cursor out of bounds");
        let from_m = Selector::prefix(A, Some(&start), None);
        assert_eq!(outside(from_m, before, false), out_of_bounds);
        assert_eq!(outside(from_m, before, true), None);
        let to_m = Selector::prefix(A, None, Some(&start));
        assert_eq!(outside(to_m, "AnoA", true), out_of_bounds);
        assert_eq!(outside(to_m, "AnoA", false), None);
        // Past every extension of the prefix, which nobody named as the end.
        assert_eq!(outside(Selector::prefix(A, None, None), "____", true), None);
    }

    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        // No part of a key begins with a zero.
        prop::collection::vec(1u8..5, 0..5)
    }

    proptest! {
        #[test]
        fn resuming_parts_the_selector_at_the_entry(
            mut keys in prop::array::uniform3(any_key()), other in any_key(),
        ) {
            keys.sort();
            let [start, key, mut end] = keys;
            end.push(9);
            let selector = Selector::between(&start, &end);
            let within = |key: &Vec<u8>| start <= *key && *key < end;
            let cursor = selector.cursor(&key).expect("within the bounds");
            let (from, to) = selector.resume(&cursor, false).expect("its own cursor");
            prop_assert_eq!(from <= other && other < to, within(&other) && other > key);
            let (from, to) = selector.resume(&cursor, true).expect("its own cursor");
            prop_assert_eq!(from <= other && other < to, within(&other) && other < key);
        }
    }
}
