//! Paths: names between dots.

use std::mem;

use crate::model::FILTER_PATH_STEPS_MAX;

/// The steps from a value to the tested item; none for the value itself.
#[derive(Clone, Debug, Default)]
pub(crate) struct Path(Vec<Step>);

/// One step: a property, a key of a `Map`, or an index.
#[derive(Clone, Debug)]
pub(crate) struct Step {
    /// WTF-8.
    pub(super) name: Vec<u8>,
    /// The array index that the name spells.
    pub(super) index: Option<usize>,
    /// The number whose decimal form is the name.
    pub(super) number: Option<f64>,
}

impl Path {
    /// Parses a path. A backslash makes the next character part of the name: a dot, a backslash or
    /// the dollar of an operator. `None`: too many steps.
    pub(crate) fn parse(text: &[u8]) -> Option<Self> {
        let (mut steps, mut name) = (Vec::with_capacity(1), Vec::with_capacity(text.len()));
        let mut bytes = text.iter();
        while let Some(&byte) = bytes.next() {
            if byte == b'.' {
                steps.push(Step::new(mem::take(&mut name)));
                if steps.len() == FILTER_PATH_STEPS_MAX {
                    return None;
                }
                continue;
            }
            name.push(if byte == b'\\' { *bytes.next().unwrap_or(&byte) } else { byte });
        }
        steps.push(Step::new(name));
        Some(Self(steps))
    }

    /// Whether both have the same names.
    pub(crate) fn is(&self, other: &Self) -> bool {
        let mut pairs = self.0.iter().zip(&other.0);
        self.0.len() == other.0.len() && pairs.all(|(a, b)| a.name == b.name)
    }

    pub(super) fn steps(&self) -> &[Step] {
        &self.0
    }
}

impl Step {
    fn new(name: Vec<u8>) -> Self {
        let text = std::str::from_utf8(&name).unwrap_or_default();
        let canonical = |text: &str| text == "0" || !text.starts_with('0');
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let index = if digits && canonical(text) { text.parse().ok() } else { None };
        let number = text.parse::<f64>().ok().filter(|n| n.to_string() == text);
        Self { name, index, number }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(text: &str) -> Vec<String> {
        let path = Path::parse(text.as_bytes()).unwrap();
        path.0.iter().map(|step| String::from_utf8(step.name.clone()).unwrap()).collect()
    }

    #[test]
    fn dots_split_paths_and_backslashes_escape() {
        assert_eq!(names("a"), ["a"]);
        assert_eq!(names("a.b.0"), ["a", "b", "0"]);
        assert_eq!(names(""), [""]);
        assert_eq!(names("."), ["", ""]);
        assert_eq!(names(r"a\.b\\.\$c"), [r"a.b\", "$c"]);
        assert_eq!(names("a\\"), ["a\\"]);
    }

    #[test]
    fn only_canonical_indexes_and_numbers_match() {
        let step = |text: &str| Step::new(text.as_bytes().to_vec());
        assert_eq!(step("10").index, Some(10));
        for other in ["", "010", "-1", "1.0", "x", "99999999999999999999999"] {
            assert_eq!(step(other).index, None, "{other}");
        }
        assert_eq!(step("-1.5").number, Some(-1.5));
        assert_eq!(step("1.50").number, None);
    }

    #[test]
    fn the_number_of_steps_is_bounded() {
        assert!(Path::parse(&[b'.'; FILTER_PATH_STEPS_MAX - 1]).is_some());
        assert!(Path::parse(&[b'.'; FILTER_PATH_STEPS_MAX]).is_none());
    }
}
