//! Paths: names between dots.

use std::mem;

use crate::model::{FILTER_PATH_STEPS_MAX, array_index, push_number};

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
    /// The number that JavaScript prints as the name.
    number: Option<f64>,
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
        let index = array_index(&name).and_then(|index| index.try_into().ok());
        let number = std::str::from_utf8(&name).ok().and_then(printed_number);
        Self { name, index, number }
    }

    /// Whether the name is that of a number key of a `Map`.
    pub(super) fn names_number(&self, key: f64) -> bool {
        self.number.is_some_and(|number| number == key || (number.is_nan() && key.is_nan()))
    }
}

/// The number that JavaScript prints as this text.
fn printed_number(text: &str) -> Option<f64> {
    match text {
        "Infinity" => Some(f64::INFINITY),
        "-Infinity" => Some(f64::NEG_INFINITY),
        "NaN" => Some(f64::NAN),
        _ => {
            let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
            let mut printed = String::with_capacity(text.len());
            push_number(&mut printed, number);
            (printed == text).then_some(number)
        }
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
        for (text, key) in [
            ("-1.5", -1.5),
            ("1e+21", 1e21),
            ("1.5e-7", 1.5e-7),
            ("Infinity", f64::INFINITY),
            ("-Infinity", f64::NEG_INFINITY),
            ("NaN", f64::NAN),
        ] {
            assert!(step(text).names_number(key), "{text}");
        }
        for other in ["1.50", "-0", "1e21", "1000000000000000000000", "inf", "infinity", "nan", ""]
        {
            assert_eq!(step(other).number, None, "{other}");
        }
    }

    #[test]
    fn the_number_of_steps_is_bounded() {
        assert!(Path::parse(&[b'.'; FILTER_PATH_STEPS_MAX - 1]).is_some());
        assert!(Path::parse(&[b'.'; FILTER_PATH_STEPS_MAX]).is_none());
    }
}
