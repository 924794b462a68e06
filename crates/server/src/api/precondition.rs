//! Conditional requests: `If-Match` and `If-None-Match`, whose entity tags are versionstamps.

use hyper::header::{HeaderMap, HeaderName, IF_MATCH, IF_NONE_MATCH};

use super::problem::Problem;
use openkv_core::model::Versionstamp;

/// Entity tags.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Tags {
    /// `*`: those of any entry.
    Any,
    /// Those that are versionstamps; no entry has another one.
    Of(Vec<Versionstamp>),
}

impl Tags {
    /// `weak`: whether weak tags match too.
    fn of(headers: &HeaderMap, name: HeaderName, weak: bool) -> Result<Option<Self>, Problem> {
        let malformed = || {
            Problem::bad_request(format!(
                "{name}: malformed entity tags: each is in quotes, as \"0000000000000001\", with a comma between two"
            ))
        };
        let mut tags = None;
        for header in headers.get_all(&name) {
            if header.as_bytes().trim_ascii() == b"*" {
                tags = Some(Self::Any);
                continue;
            }
            for EntityTag { is_weak, opaque } in
                entity_tags(header.as_bytes()).ok_or_else(malformed)?
            {
                if let Self::Of(stamps) = tags.get_or_insert(Self::Of(Vec::new())) {
                    stamps.extend(Versionstamp::parse(opaque).filter(|_| weak || !is_weak));
                }
            }
        }
        // A client without a tag that sends the header all the same must not write unconditionally.
        if tags.is_none() && headers.contains_key(&name) {
            return Err(Problem::bad_request(format!(
                "{name}: no entity tag: give one in quotes, or leave the header out"
            )));
        }
        Ok(tags)
    }

    fn have(&self, present: Option<Versionstamp>) -> bool {
        match self {
            Self::Any => present.is_some(),
            Self::Of(stamps) => present.is_some_and(|stamp| stamps.contains(&stamp)),
        }
    }
}

/// An entity tag of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct EntityTag<'t> {
    pub(super) is_weak: bool,
    /// Between the quotes. It may have commas.
    pub(super) opaque: &'t [u8],
}

/// The entity tags of a list (RFC 9110, 8.8.3), whose commas are those outside of quotes; `None` for a malformed
/// one. Empty elements are no tags.
pub(super) fn entity_tags(list: &[u8]) -> Option<Vec<EntityTag<'_>>> {
    let mut tags = Vec::new();
    let mut rest = list.trim_ascii_start();
    while !rest.is_empty() {
        if !rest.starts_with(b",") {
            let (is_weak, tag) = rest.strip_prefix(b"W/").map_or((false, rest), |tag| (true, tag));
            let quoted = tag.strip_prefix(b"\"")?;
            let (opaque, behind) = quoted.split_at_checked(memchr::memchr(b'"', quoted)?)?;
            // No quote, space or control character is in a tag.
            if opaque.iter().any(|byte| *byte <= b' ' || *byte == 0x7f) {
                return None;
            }
            tags.push(EntityTag { is_weak, opaque });
            rest = behind.strip_prefix(b"\"")?.trim_ascii_start();
        }
        rest = match rest.split_first() {
            None => rest,
            Some((b',', rest)) => rest.trim_ascii_start(),
            Some(_) => return None,
        };
    }
    Some(tags)
}

/// The conditions of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Preconditions {
    is: Option<Tags>,
    is_not: Option<Tags>,
}

impl Preconditions {
    pub(super) fn of(headers: &HeaderMap) -> Result<Self, Problem> {
        let is = Tags::of(headers, IF_MATCH, false)?;
        Ok(Self { is, is_not: Tags::of(headers, IF_NONE_MATCH, true)? })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.is.is_none() && self.is_not.is_none()
    }

    /// The only state in which they can hold, if there is one: a versionstamp, or no entry.
    pub(super) fn only(&self) -> Option<Option<Versionstamp>> {
        match (&self.is, &self.is_not) {
            (None, Some(Tags::Any)) => Some(None),
            (Some(Tags::Of(stamps)), None) => match stamps.as_slice() {
                [stamp] => Some(Some(*stamp)),
                _ => None,
            },
            _ => None,
        }
    }

    /// Whether `If-Match` holds.
    pub(super) fn matches(&self, present: Option<Versionstamp>) -> bool {
        self.is.as_ref().is_none_or(|tags| tags.have(present))
    }

    /// Whether `If-None-Match` holds.
    pub(super) fn differs(&self, present: Option<Versionstamp>) -> bool {
        self.is_not.as_ref().is_none_or(|tags| !tags.have(present))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn conditions(is: Option<&str>, is_not: Option<&str>) -> Option<Preconditions> {
        let mut headers = HeaderMap::new();
        for (name, value) in [(IF_MATCH, is), (IF_NONE_MATCH, is_not)] {
            if let Some(value) = value {
                headers.insert(name, value.parse().unwrap());
            }
        }
        Preconditions::of(&headers).ok()
    }

    #[test]
    fn tags_are_versionstamps() {
        let (one, two) = (Versionstamp::new(1), Versionstamp::new(2));
        let tag = |stamp: Versionstamp| format!("\"{}\"", String::from_utf8_lossy(&stamp.hex()));
        let both = format!("{}, W/{}", tag(one), tag(two));
        let found = conditions(Some(&both), None).unwrap();
        assert!(found.matches(Some(one)) && !found.matches(Some(two)) && !found.matches(None));
        assert_eq!(found.only(), Some(Some(one)));
        let found = conditions(None, Some(&both)).unwrap();
        assert!(!found.differs(Some(one)) && !found.differs(Some(two)) && found.differs(None));
        assert_eq!(found.only(), None);
        let found = conditions(None, Some("*")).unwrap();
        assert!(found.differs(None) && !found.differs(Some(one)));
        assert_eq!(found.only(), Some(None));
        let found = conditions(Some("*"), None).unwrap();
        assert!(!found.matches(None) && found.matches(Some(one)));
        // An empty header was none: the write of a client without a tag replaced the entry.
        for none in ["", " ", ", ,"] {
            assert_eq!(conditions(Some(none), None), None);
            assert_eq!(conditions(None, Some(none)), None);
        }
        let found = conditions(Some("\"another\""), None).unwrap();
        assert!(!found.matches(Some(one)) && !found.matches(None));
        assert!(conditions(None, None).unwrap().is_empty());
        assert_eq!(conditions(Some("unquoted"), None), None);
    }

    /// A list was split at every comma, so a tag with one was refused, and with it the whole request.
    #[test]
    fn a_list_is_split_outside_of_quotes() {
        let tag = |is_weak, opaque: &'static str| EntityTag { is_weak, opaque: opaque.as_bytes() };
        for (list, expected) in [
            ("", Some(vec![])),
            (" , ,\t", Some(vec![])),
            ("\"a,b\"", Some(vec![tag(false, "a,b")])),
            (
                "\"a\" , W/\"b,\",,\"\"",
                Some(vec![tag(false, "a"), tag(true, "b,"), tag(false, "")]),
            ),
            ("W/\"W/\"", Some(vec![tag(true, "W/")])),
            ("\"a", None),
            ("\"a\" \"b\"", None),
            ("w/\"a\"", None),
            ("W/ \"a\"", None),
            ("\"a b\"", None),
            ("*, \"a\"", None),
            ("a,\"b\"", None),
        ] {
            assert_eq!(entity_tags(list.as_bytes()), expected, "{list:?}");
        }
        assert!(entity_tags(b"\"\xe9\"").is_some(), "bytes beyond ASCII are of a tag");
        let stamp = Versionstamp::new(1);
        let list = format!("\"a,b\", W/\"{}\"", String::from_utf8_lossy(&stamp.hex()));
        assert!(!conditions(None, Some(&list)).unwrap().differs(Some(stamp)), "weakly");
        assert!(!conditions(Some(&list), None).unwrap().matches(Some(stamp)), "strongly");
    }
}
