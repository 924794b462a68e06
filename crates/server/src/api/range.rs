//! The range of a list, and cursors inside it. They are those of `kv.list`: `js/read/range.ts` and
//! `js/codec/cursor.ts` have the same rules.

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE;

use super::problem::{Problem, shown};
use openkv_core::codec::key;
use openkv_core::model::{Key, Limits};
use openkv_store::metrics::Subject;

/// The first byte behind every tag of a part: it ends the keys of a prefix.
const BEHIND_PREFIX: u8 = 0xff;

/// The cursor of a key that is all that the keys of the range have in common.
const CURSOR_OF_START: &[u8] = &[0];

/// The keys from `start` (included) to `end` (excluded).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) start: Vec<u8>,
    pub(crate) end: Vec<u8>,
    /// Bytes that cursors leave out: those of the prefix, or that both bounds have in common.
    pub(crate) common: usize,
}

impl Bounds {
    /// The range of a prefix, of a prefix with one bound, or of two bounds; all keys without any.
    pub(crate) fn new(
        prefix: Option<Key>,
        start: Option<Key>,
        end: Option<Key>,
    ) -> Result<Self, Problem> {
        Self::check_len([&prefix, &start, &end].into_iter().flatten().map(Key::len))?;
        let (prefix, start, end) = match (prefix, start, end) {
            (None, Some(start), Some(end)) => {
                let (start, end) = (start.into_bytes(), end.into_bytes());
                if start > end {
                    return Err(Problem::bad_request(format!(
                        "Start key is greater than end key: start {}, end {}",
                        key::print(&start),
                        key::print(&end)
                    )));
                }
                let common = start.iter().zip(&end).take_while(|(a, b)| a == b).count();
                return Ok(Self { start, end, common });
            }
            (None, None, None) => (Vec::new(), None, None),
            (Some(prefix), start, end) if start.is_none() || end.is_none() => {
                (prefix.into_bytes(), start, end)
            }
            _ => {
                return Err(Problem::bad_request(
                    "A range has a prefix, a prefix with start or end, or start and end",
                ));
            }
        };
        let inside = |key: Key, name| {
            let bytes = key.into_bytes();
            if bytes.len() <= prefix.len() || !bytes.starts_with(&prefix) {
                let text = format!("{name} key is not in the keyspace defined by prefix");
                return Err(Problem::bad_request(text));
            }
            Ok(bytes)
        };
        Ok(Self {
            start: start
                .map_or_else(|| Ok([&prefix[..], &[0]].concat()), |key| inside(key, "Start"))?,
            end: end.map_or_else(
                || Ok([&prefix[..], &[BEHIND_PREFIX]].concat()),
                |key| inside(key, "End"),
            )?,
            common: prefix.len(),
        })
    }

    /// The keys that extend the prefix and are between the bounds; any of the three may be missing.
    pub(crate) fn within(
        prefix: Option<Key>,
        start: Option<Key>,
        end: Option<Key>,
    ) -> Result<Self, Problem> {
        let mut bounds = Self::new(prefix, None, None)?;
        let given = [&start, &end].into_iter().flatten().map(Key::len);
        Self::check_len(given)?;
        if let Some(start) = start {
            bounds.start = bounds.start.max(start.into_bytes());
        }
        if let Some(end) = end {
            bounds.end = bounds.end.min(end.into_bytes());
        }
        bounds.end = bounds.end.max(bounds.start.clone());
        Ok(bounds)
    }

    /// What an operation on the range is about.
    pub(crate) fn subject(&self) -> Subject {
        Subject::span(&self.start, &self.end)
    }

    fn check_len(mut given: impl Iterator<Item = usize>) -> Result<(), Problem> {
        let max = Limits::wide().range_key_bytes_max;
        given.find(|bytes| *bytes > max).map_or(Ok(()), |bytes| {
            Err(Problem::too_large(format!(
                "Key too large for read (max {max} bytes): {bytes} bytes given"
            )))
        })
    }

    /// The key and all keys below it.
    pub(crate) fn of_key_and_below(key: &Key) -> (Key, Key) {
        let end = [key.as_bytes(), &[BEHIND_PREFIX]].concat();
        (key.clone(), Key::from_encoded(end))
    }

    /// The rest of the range behind a cursor.
    pub(crate) fn resume(&mut self, cursor: &str, reverse: bool) -> Result<(), Problem> {
        let rest = BASE64_URL_SAFE.decode(cursor);
        let rest = rest.map_err(|_| Problem::wrong_cursor(cursor))?;
        let common = self.start.get(..self.common).unwrap_or_default();
        let is_start = rest == CURSOR_OF_START && common.len() == self.start.len();
        let mut key = if is_start { common.to_vec() } else { [common, &rest].concat() };
        if !reverse {
            key.push(0);
        }
        if key < self.start || key > self.end {
            return Err(Problem::bad_request(format!(
                "cursor out of bounds: received {}; it is one of a list of another range",
                shown(cursor)
            )));
        }
        *(if reverse { &mut self.end } else { &mut self.start }) = key;
        Ok(())
    }

    /// The cursor of a key.
    pub(crate) fn cursor(&self, key: &[u8]) -> String {
        let rest = key.get(self.common..).unwrap_or_default();
        BASE64_URL_SAFE.encode(if rest.is_empty() { CURSOR_OF_START } else { rest })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::interchange::key_literal;

    fn key(text: &str) -> Key {
        key_literal::parse(text).unwrap()
    }

    #[test]
    fn a_cursor_continues_behind_its_key() {
        let all = Bounds::new(Some(key("[\"a\"]")), None, None).unwrap();
        let at = key("[\"a\",1]");
        let cursor = all.cursor(at.as_bytes());
        let (mut forward, mut back) = (all.clone(), all.clone());
        forward.resume(&cursor, false).unwrap();
        assert_eq!(forward.start, [at.as_bytes(), &[0]].concat());
        back.resume(&cursor, true).unwrap();
        assert_eq!(back.end, at.as_bytes());
        assert!(all.clone().resume("%", false).is_err());
        let (start, end) = (key("[\"a\"]"), key("[\"a\",5]"));
        let mut range = Bounds::new(None, Some(start.clone()), Some(end)).unwrap();
        let cursor = range.cursor(start.as_bytes());
        assert_eq!(cursor, "AA==");
        range.resume(&cursor, false).unwrap();
        assert_eq!(range.start, [start.as_bytes(), &[0]].concat());
        let mut part = Bounds::new(Some(key("[\"a\"]")), Some(key("[\"a\",3]")), None).unwrap();
        let cursor = part.cursor(at.as_bytes());
        assert!(part.resume(&cursor, false).is_err(), "it is before the start");
        assert!(part.resume(&cursor, true).is_err());
    }

    #[test]
    fn a_range_needs_a_prefix_or_two_bounds_in_order() {
        let bounds = |prefix: Option<&str>, start: Option<&str>, end: Option<&str>| {
            Bounds::new(prefix.map(key), start.map(key), end.map(key)).is_ok()
        };
        assert!(bounds(None, None, None));
        assert!(bounds(None, Some("a"), Some("b")));
        assert!(!bounds(None, Some("b"), Some("a")));
        assert!(!bounds(None, Some("a"), None));
        assert!(bounds(Some("a"), Some("[\"a\",1]"), None));
        assert!(!bounds(Some("a"), Some("b"), None));
        assert!(!bounds(Some("a"), Some("[\"a\",1]"), Some("[\"a\",2]")));
    }
}
