//! Conditional requests: `If-Match` and `If-None-Match`, whose entity tags are versionstamps.

use hyper::header::{HeaderMap, HeaderName, IF_MATCH, IF_NONE_MATCH};

use super::problem::Problem;
use crate::model::Versionstamp;

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
        let malformed = || Problem::bad_request(format!("{name}: malformed entity tags"));
        let mut tags = None;
        for header in headers.get_all(&name) {
            let text = header.to_str().map_err(|_| malformed())?.trim();
            if text == "*" {
                tags = Some(Self::Any);
                continue;
            }
            for tag in text.split(',').map(str::trim).filter(|tag| !tag.is_empty()) {
                let (is_weak, tag) = tag.strip_prefix("W/").map_or((false, tag), |tag| (true, tag));
                let opaque = tag.strip_prefix('"').and_then(|tag| tag.strip_suffix('"'));
                let stamp = Versionstamp::parse(opaque.ok_or_else(malformed)?.as_bytes());
                if let Self::Of(stamps) = tags.get_or_insert(Self::Of(Vec::new())) {
                    stamps.extend(stamp.filter(|_| weak || !is_weak));
                }
            }
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
        let found = conditions(Some("\"another\""), None).unwrap();
        assert!(!found.matches(Some(one)) && !found.matches(None));
        assert!(conditions(None, None).unwrap().is_empty());
        assert_eq!(conditions(Some("unquoted"), None), None);
    }
}
