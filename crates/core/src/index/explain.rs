//! Explanations: what a list reads, in words.

use num_bigint::{BigInt, Sign};

use super::code::{
    ABSENT, BYTES, DATE, Decoded, FALSE, LOOSE, NEGATIVE, NULL, OTHER, POSITIVE, TEXT, TRUE, ZERO,
    decoded,
};
use super::entry::ValueIndex;
use super::plan::{Branch, Interval, OrderPlan, branches, intervals};
use crate::codec::date;
use crate::filter::{Condition, Filter};
use crate::model::{EXPLAINED_TEXT_CHARS_MAX, ValueIndexState};

/// How a list finds its entries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// By value indexes.
    Index,
    /// By their keys.
    Scan,
    /// By their keys, or by value indexes for conditions, and sorts them in memory.
    Sort,
}

/// What a list reads, and how much.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// How it finds its entries.
    pub method: Method,
    /// What it reads of indexes.
    pub branches: Vec<ReadBranch>,
    /// Why it reads no index, or none with the order, if it has conditions or an order.
    pub reason: Option<String>,
    /// Entries of indexes that were read.
    pub index_entries: u64,
    /// Entries that were read.
    pub visited: u64,
    /// Those of them that do not match.
    pub filtered: u64,
    /// Entries of the list.
    pub returned: u64,
    /// Whether all of it was read.
    pub is_complete: bool,
}

/// What a list reads of one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReadBranch {
    /// The name of the index.
    pub index: String,
    /// The first paths of the index; with no path the whole index is read.
    pub bounds: Vec<PathBounds>,
}

/// The values under a path that a list reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathBounds {
    /// The path.
    pub path: String,
    /// Values and ranges of values, in words.
    pub ranges: Vec<String>,
}

/// What a list in the order of keys reads; `None` if no index helps.
pub fn branches_of_keys(
    indexes: &[ValueIndex],
    filter: &Filter,
    start: &[u8],
    end: &[u8],
) -> Option<Vec<ReadBranch>> {
    let found = branches(indexes, filter, start, end)?;
    let of = |Branch { at, condition, bounded, .. }| {
        indexes.get(at).map(|index| branch(index, Some(condition), bounded))
    };
    Some(found.into_iter().filter_map(of).collect())
}

/// What a list in another order reads.
pub fn branch_of_order(
    indexes: &[ValueIndex],
    filter: Option<&Filter>,
    plan: &OrderPlan,
) -> Option<ReadBranch> {
    let index = indexes.get(plan.index)?;
    Some(branch(index, filter.map(Filter::condition), plan.bounded))
}

fn branch(index: &ValueIndex, condition: Option<&Condition>, bounded: usize) -> ReadBranch {
    let paths = index.spec().on.iter().enumerate().take(bounded);
    let bounds = paths.filter_map(|(at, on)| {
        let found = intervals(index, at, condition?)?;
        Some(PathBounds { path: on.path.clone(), ranges: found.iter().map(in_words).collect() })
    });
    ReadBranch { index: index.spec().name.clone(), bounds: bounds.collect() }
}

/// Why a list in the order of keys reads no index.
pub fn why_no_index(indexes: &[ValueIndex], filter: &Filter, start: &[u8], end: &[u8]) -> String {
    let covers = |index: &&ValueIndex| index.spec().covers_range(start, end);
    let covering: Vec<_> = indexes.iter().filter(covers).cloned().collect();
    if covering.is_empty() {
        return "no value index has the keys of the list under its prefix".to_owned();
    }
    let mut ready = covering.clone();
    ready.iter_mut().for_each(|index| index.info.state = ValueIndexState::Ready);
    let found = branches(&ready, filter, start, end).unwrap_or_default();
    let unready = found.iter().filter_map(|branch| covering.get(branch.at));
    for index in unready {
        let name = &index.spec().name;
        match index.info.state {
            ValueIndexState::Ready => {}
            ValueIndexState::Building => {
                return format!("the value index '{name}' is being built: wait for its ready()");
            }
            ValueIndexState::Failed(_) => {
                return format!(
                    "the value index '{name}' could not be built: drop it and create it again"
                );
            }
        }
    }
    "no value index begins with a path that where compares".to_owned()
}

/// An interval of codes.
fn in_words(Interval { lo, hi, is_value }: &Interval) -> String {
    if *is_value {
        return value_in_words(lo);
    }
    let (first, last) = (decoded(lo), decoded(hi));
    if lo == hi {
        return match first {
            Decoded::String(_, _, false) => format!("begins with {}", string_in_words(lo)),
            Decoded::Class(_) | Decoded::String(..) | Decoded::Number { .. } | Decoded::Date(_) => {
                value_in_words(lo)
            }
        };
    }
    let is_open = |decoded: &Decoded| {
        matches!(decoded, Decoded::Class(TEXT | BYTES | DATE | NEGATIVE | POSITIVE))
    };
    match (is_open(&first), is_open(&last)) {
        (true, true) => class_in_words(NEGATIVE).to_owned(),
        (true, false) => format!("to {}", value_in_words(hi)),
        (false, true) => format!("from {}", value_in_words(lo)),
        (false, false) => format!("from {} to {}", value_in_words(lo), value_in_words(hi)),
    }
}

fn class_in_words(tag: u8) -> &'static str {
    match tag {
        ABSENT => "absent",
        NULL => "null",
        BYTES => "any bytes",
        TEXT => "any string",
        ZERO => "0",
        NEGATIVE | POSITIVE => "any number",
        DATE => "any date",
        FALSE => "false",
        TRUE => "true",
        LOOSE => "strings and bytes that are no elements",
        OTHER => "values without an order",
        _ => "unknown values",
    }
}

fn value_in_words(code: &[u8]) -> String {
    match decoded(code) {
        Decoded::Class(tag) => class_in_words(tag).to_owned(),
        Decoded::String(..) => string_in_words(code),
        Decoded::Number { is_negative, exponent, digits } => {
            let sign = if is_negative { "-" } else { "" };
            format!("{sign}{}", number_in_words(exponent, &digits))
        }
        Decoded::Date(ms) => {
            let mut text = String::new();
            date::push(&mut text, ms as i64);
            text
        }
    }
}

/// A string in quotes, or bytes in hexadecimal digits; with `…` if there is more.
fn string_in_words(code: &[u8]) -> String {
    let Decoded::String(tag, string, is_whole) = decoded(code) else { return String::new() };
    let text = match tag {
        TEXT => {
            let text = String::from_utf8_lossy(&string);
            return cut(&text, is_whole, |text| serde_json::Value::from(text).to_string());
        }
        _ => string.iter().map(|byte| format!("{byte:02x}")).collect::<String>(),
    };
    cut(&text, is_whole, |text| format!("0x{text}"))
}

fn cut(text: &str, is_whole: bool, shown: impl Fn(&str) -> String) -> String {
    match text.char_indices().nth(EXPLAINED_TEXT_CHARS_MAX) {
        Some((at, _)) => format!("{}…", shown(text.get(..at).unwrap_or(text))),
        None if is_whole => shown(text),
        None => format!("{}…", shown(text)),
    }
}

/// Digits of a double.
const DOUBLE_DIGITS: usize = 8;
/// Whole numbers up to so many bytes are written without an exponent.
const PLAIN_BYTES: i64 = 8;

fn number_in_words(exponent: i64, digits: &[u8]) -> String {
    let Some(length) = i64::try_from(digits.len()).ok().filter(|length| *length > 0) else {
        return "Infinity".to_owned();
    };
    let is_whole = exponent >= length;
    if is_whole && (exponent <= PLAIN_BYTES || digits.len() > DOUBLE_DIGITS) {
        let mut bytes = digits.to_vec();
        let zeros = usize::try_from(exponent - length).unwrap_or_default();
        // Its last digits are not in an index.
        if zeros > digits.len() + PLAIN_BYTES as usize {
            return format!("a bigint of {exponent} bytes");
        }
        bytes.resize(digits.len() + zeros, 0);
        return cut(&BigInt::from_bytes_be(Sign::Plus, &bytes).to_string(), true, str::to_owned);
    }
    let kept = digits.get(..DOUBLE_DIGITS).unwrap_or(digits);
    let whole = kept.iter().fold(0_u64, |number, digit| number << 8 | u64::from(*digit));
    let power = i32::try_from(exponent).unwrap_or(i32::MAX).saturating_sub(kept.len() as i32);
    // In two steps: the power of the smallest numbers alone is zero.
    let scaled = whole as f64 * 256_f64.powi(power / 2) * 256_f64.powi(power - power / 2);
    match scaled {
        number if !number.is_finite() => format!("a bigint of {exponent} bytes"),
        number if (1e-6..1e21).contains(&number) => format!("{number}"),
        number => format!("{number:e}"),
    }
}

#[cfg(test)]
mod tests {
    use super::super::code::{Code, beginning};
    use super::*;
    use crate::model::VALUE_INDEX_PART_BYTES_MAX;

    fn number(number: f64) -> String {
        value_in_words(&Code::of_number(number).bytes)
    }

    #[test]
    fn codes_are_shown_as_their_values() {
        for shown in ["0", "1", "-1", "1.5", "-255", "256", "65536.5", "0.1", "1e300", "5e-324"] {
            assert_eq!(number(shown.parse().unwrap()), shown);
        }
        assert_eq!(number(9_007_199_254_740_991.0), "9007199254740991");
        assert_eq!(number(f64::NEG_INFINITY), "-Infinity");
        let bigint = |number: BigInt| value_in_words(&Code::of_bigint(&number).bytes);
        assert_eq!(
            bigint(BigInt::from(-123_456_789_012_345_678_901_i128)),
            "-123456789012345678901"
        );
        assert_eq!(bigint(BigInt::from(2).pow(8000)), "a bigint of 1001 bytes");
        for ms in [0.0, -5.0, 1e12] {
            let mut text = String::new();
            date::push(&mut text, ms as i64);
            assert_eq!(value_in_words(&Code::of_date(ms).bytes), text);
        }
        let text = |text: &str| value_in_words(&Code::of_string(TEXT, text.as_bytes()).bytes);
        assert_eq!(text("a\0b\"é"), r#""a\u0000b\"é""#);
        assert_eq!(text(""), r#""""#);
        assert_eq!(text(&"x".repeat(65)), format!("\"{}\"…", "x".repeat(64)));
        assert_eq!(value_in_words(&Code::of_string(BYTES, &[0, 255]).bytes), "0x00ff");
        assert_eq!(value_in_words(&Code::of(NULL).bytes), "null");
    }

    #[test]
    fn intervals_are_shown_with_their_ends() {
        let shown = |lo: Vec<u8>, hi: Vec<u8>| in_words(&Interval { lo, hi, is_value: false });
        let (one, two) = (Code::of_number(1.0).bytes, Code::of_number(2.0).bytes);
        assert_eq!(shown(one.clone(), two.clone()), "from 1 to 2");
        assert_eq!(shown(one, vec![POSITIVE]), "from 1");
        assert_eq!(shown(vec![NEGATIVE], two), "to 2");
        assert_eq!(shown(vec![NEGATIVE], vec![POSITIVE]), "any number");
        assert_eq!(shown(vec![TEXT], vec![TEXT]), "any string");
        let lo = beginning(TEXT, b"Lo");
        assert_eq!(shown(lo.clone(), lo), r#"begins with "Lo"…"#);
        assert_eq!(shown(vec![TRUE], vec![TRUE]), "true");
        let one = |code: Code| shown(code.bytes.clone(), code.bytes);
        assert_eq!(one(Code::of_number(25.0)), "25");
        assert_eq!(one(Code::of_bigint(&BigInt::from(-7))), "-7");
        assert_eq!(one(Code::of_date(0.0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(one(Code::of_string(TEXT, b"Lo")), r#""Lo""#);
        assert_eq!(one(Code::of_string(BYTES, &[7])), "0x07");
        let cut = one(Code::of_string(TEXT, &[b'x'; VALUE_INDEX_PART_BYTES_MAX + 1]));
        assert_eq!(cut, format!("begins with \"{}\"…", "x".repeat(64)));
    }
}
