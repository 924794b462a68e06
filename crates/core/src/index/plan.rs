//! Plans: the ranges of an index that have every entry which meets the conditions of a list.

use super::code::{
    ABSENT, BEFORE_KEY, BYTES, Code, DATE, FALSE, LOOSE, NEGATIVE, NULL, OTHER, POSITIVE, TEXT,
    TRUE, beginning,
};
use super::defect::IndexDefect;
use super::entry::{Part, ValueIndex};
use crate::filter::{Condition, Filter, Operand, Path, Test};
use crate::model::{
    Encoding, ORDER_PATHS_MAX, OrderPath, Result, VALUE_INDEX_RANGES_MAX, check_paths,
};

/// A range of the entries of one index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRange {
    /// First entry, included.
    pub lo: Vec<u8>,
    /// Last entry, excluded.
    pub hi: Vec<u8>,
    /// Bytes at the start that all entries of the range have, before the part that is in order.
    pub fixed: usize,
    /// All values are given: the entries of the range are in the order of their keys.
    pub is_point: bool,
}

/// What a list in the order of keys reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPlan {
    /// Each range with the place of its index in the list of indexes.
    pub ranges: Vec<(usize, EntryRange)>,
}

impl KeyPlan {
    /// Whether the ranges have an entry of this entry of the database, whose key each index covers.
    pub fn finds(
        &self,
        indexes: &[ValueIndex],
        key: &[u8],
        encoding: Encoding,
        value: &[u8],
    ) -> bool {
        let mut last = None;
        self.ranges.iter().any(|(at, EntryRange { lo, hi, .. })| {
            // The ranges of an index come one after the other.
            if last.as_ref().is_none_or(|(of, _)| of != at) {
                let entries = indexes.get(*at).map(|index| index.entries(key, encoding, value));
                last = Some((*at, entries.unwrap_or_default()));
            }
            let entries = last.iter().flat_map(|(_, entries)| entries);
            entries.into_iter().any(|entry| entry >= lo && entry < hi)
        })
    }
}

/// What a list in another order reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OrderPlan {
    /// The place of the index in the list of indexes.
    pub index: usize,
    /// The index is read from its end.
    pub reverse: bool,
    /// Ranges whose entries are in order from their byte `fixed` on, and are merged there.
    pub ranges: Vec<EntryRange>,
    /// The first paths of the index for which the ranges have bounds.
    pub(super) bounded: usize,
}

impl OrderPlan {
    /// Its ranges behind a position, and up to another one, which is included.
    #[must_use]
    pub fn between(&self, after: Option<&[u8]>, until: Option<&[u8]>) -> Vec<EntryRange> {
        let part = |range: &EntryRange| {
            let EntryRange { lo, hi, fixed, is_point } = range;
            let common = lo.get(..*fixed).unwrap_or_default();
            let at = |position: &[u8]| [common, position].concat();
            let behind = |position: &[u8]| [common, position, &[0]].concat();
            let (first, last) = match self.reverse {
                true => (until.map(at), after.map(at)),
                false => (after.map(behind), until.map(behind)),
            };
            let (lo, hi) =
                (first.max(Some(lo.clone()))?, last.into_iter().fold(hi.clone(), Ord::min));
            let (fixed, is_point) = (*fixed, *is_point);
            (lo < hi).then_some(EntryRange { lo, hi, fixed, is_point })
        };
        self.ranges.iter().filter_map(part).collect()
    }

    /// The position of an entry of the database, whose key the index covers; `None` if the ranges do not have it.
    #[must_use]
    pub fn position_of(
        &self,
        indexes: &[ValueIndex],
        key: &[u8],
        encoding: Encoding,
        value: &[u8],
    ) -> Option<Vec<u8>> {
        let entries = indexes.get(self.index)?.entries(key, encoding, value);
        let at = |entry: &Vec<u8>| {
            let range = self.ranges.iter().find(|range| range.lo <= *entry && *entry < range.hi)?;
            entry.get(range.fixed..).map(<[u8]>::to_vec)
        };
        entries.iter().find_map(at)
    }
}

/// The paths of an order.
///
/// # Errors
/// `Invalid` for no path, too many, the same one twice, and a path of too many steps.
pub fn parse_paths(order: &[OrderPath]) -> Result<Vec<Part>> {
    check_paths("orderBy", order, ORDER_PATHS_MAX)?;
    order.iter().map(|path| Part::parse("orderBy", path)).collect()
}

/// The ranges for a list of `start <= key < end` in the order of keys; `None` if no index helps.
pub fn plan_keys(
    indexes: &[ValueIndex],
    filter: &Filter,
    start: &[u8],
    end: &[u8],
) -> Option<KeyPlan> {
    let branches = branches(indexes, filter, start, end)?;
    let of = |Branch { at, ranges, .. }| ranges.into_iter().map(move |range| (at, range));
    Some(KeyPlan { ranges: branches.into_iter().flat_map(of).collect() })
}

/// The ranges of one index for one of the alternatives of a condition, or for all of it.
pub(super) struct Branch<'c> {
    /// The place of the index in the list of indexes.
    pub(super) at: usize,
    /// The alternative.
    pub(super) condition: &'c Condition,
    ranges: Vec<EntryRange>,
    /// The first paths of the index for which the ranges have bounds.
    pub(super) bounded: usize,
}

/// The branches of the plan for a list in the order of keys.
pub(super) fn branches<'c>(
    indexes: &[ValueIndex],
    filter: &'c Filter,
    start: &[u8],
    end: &[u8],
) -> Option<Vec<Branch<'c>>> {
    let fitting = Fitting { indexes, start, end };
    fitting.iter().next()?;
    plan(fitting, filter.condition())
}

/// The indexes that have all entries of a range.
#[derive(Clone, Copy)]
struct Fitting<'i> {
    indexes: &'i [ValueIndex],
    start: &'i [u8],
    end: &'i [u8],
}

impl<'i> Fitting<'i> {
    /// Each with its place in the list of indexes.
    fn iter(self) -> impl Iterator<Item = (usize, &'i ValueIndex)> {
        let Self { indexes, start, end } = self;
        let fits =
            move |index: &ValueIndex| index.is_ready() && index.spec().covers_range(start, end);
        indexes.iter().enumerate().filter(move |(_, index)| fits(index))
    }
}

/// The ranges for a condition: those of one index, or for alternatives those of several.
fn plan<'c>(fitting: Fitting<'_>, condition: &'c Condition) -> Option<Vec<Branch<'c>>> {
    let best = fitting
        .iter()
        .filter_map(|(at, index)| Some((at, restricted(index, condition)?)))
        .max_by_key(|(at, found)| (found.score, usize::MAX - at));
    if let Some((at, Restricted { ranges, score })) = best {
        return Some(vec![Branch { at, condition, ranges, bounded: score.div_ceil(2) }]);
    }
    match condition {
        Condition::Any(any) => {
            let each: Option<Vec<_>> = any.iter().map(|one| plan(fitting, one)).collect();
            let all: Vec<_> = each?.into_iter().flatten().collect();
            let ranges: usize = all.iter().map(|branch| branch.ranges.len()).sum();
            (ranges <= VALUE_INDEX_RANGES_MAX).then_some(all)
        }
        Condition::All(all) => all.iter().find_map(|one| match one {
            Condition::Any(_) | Condition::All(_) => plan(fitting, one),
            Condition::Not(_) | Condition::At { .. } => None,
        }),
        Condition::Not(_) | Condition::At { .. } => None,
    }
}

/// The ranges of one index, and how much the condition restricts them.
struct Restricted {
    ranges: Vec<EntryRange>,
    /// Twice the number of parts with given values, and one for a part with a range.
    score: usize,
}

/// The ranges of an index for a condition; `None` if it says nothing about the first path.
fn restricted(index: &ValueIndex, condition: &Condition) -> Option<Restricted> {
    if let Some(ranges) = of_one_value(index, condition) {
        return Some(Restricted { ranges, score: 2 });
    }
    let mut fixed = vec![Vec::new()];
    for (at, part) in index.parts.iter().enumerate() {
        let found = intervals(index, at, condition);
        let product = found.as_ref().map_or(1, |found| fixed.len() * found.len());
        match found.filter(|_| product <= VALUE_INDEX_RANGES_MAX) {
            Some(found) if found.iter().all(|interval| interval.is_value) => {
                fixed = extended(part, &fixed, &found);
            }
            Some(found) => {
                let ranges = ranges_behind(index, part, &fixed, &found);
                return Some(Restricted { ranges, score: 2 * at + 1 });
            }
            None if at == 0 => return None,
            None => {
                let ranges = fixed.into_iter().map(all_behind).collect();
                return Some(Restricted { ranges, score: 2 * at });
            }
        }
    }
    let ranges = fixed.into_iter().map(point).collect();
    Some(Restricted { ranges, score: 2 * index.parts.len() })
}

/// The ranges for a condition that asks for one value under the only path of an index: those of the general case,
/// which a find by a unique index reaches with a third of the allocations.
fn of_one_value(index: &ValueIndex, condition: &Condition) -> Option<Vec<EntryRange>> {
    let Condition::At { path, negated: false, test: Test::In(operands) } = condition else {
        return None;
    };
    let ([part], [operand]) = (index.parts.as_slice(), operands.as_slice()) else { return None };
    if !part.path.is(path) || matches!(operand, Operand::Now(_)) {
        return None;
    }
    let mut ranges = Vec::with_capacity(2);
    // Several values, of which one may be equal, are in the class of what has no order.
    for Code { mut bytes, .. } in codes(operand).into_iter().chain([Code::of(OTHER)]) {
        part.direct(&mut bytes);
        ranges.push(point(bytes));
    }
    Some(ranges)
}

/// The entries whose values are all given.
fn point(mut fixed: Vec<u8>) -> EntryRange {
    fixed.push(BEFORE_KEY);
    EntryRange { hi: after(&fixed), fixed: fixed.len(), lo: fixed, is_point: true }
}

/// The beginnings followed by each of the values.
fn extended(part: &Part, fixed: &[Vec<u8>], values: &[Interval]) -> Vec<Vec<u8>> {
    let mut longer = Vec::with_capacity(fixed.len() * values.len());
    for fixed in fixed {
        for value in values {
            let mut bytes = fixed.clone();
            part.push(&mut bytes, &value.lo);
            longer.push(bytes);
        }
    }
    longer
}

fn ranges_behind(
    index: &ValueIndex,
    part: &Part,
    fixed: &[Vec<u8>],
    intervals: &[Interval],
) -> Vec<EntryRange> {
    let is_short = index.planted.is(IndexDefect::ShortRanges);
    let mut ranges = Vec::with_capacity(fixed.len() * intervals.len());
    for fixed in fixed {
        for Interval { lo, hi, .. } in intervals {
            let (first, last) = if part.descending { (hi, lo) } else { (lo, hi) };
            let (mut lo, mut hi) = (fixed.clone(), fixed.clone());
            part.push(&mut lo, first);
            part.push(&mut hi, last);
            let hi = if is_short { hi } else { after(&hi) };
            ranges.push(EntryRange { lo, hi, fixed: fixed.len(), is_point: false });
        }
    }
    ranges
}

fn all_behind(fixed: Vec<u8>) -> EntryRange {
    let hi = if fixed.is_empty() { vec![u8::MAX] } else { after(&fixed) };
    EntryRange { fixed: fixed.len(), lo: fixed, hi, is_point: false }
}

/// The first bytes behind all that begin with these.
pub(super) fn after(beginning: &[u8]) -> Vec<u8> {
    let kept = beginning.iter().rposition(|byte| *byte != u8::MAX).map_or(0, |at| at + 1);
    let mut bytes = beginning.get(..kept).unwrap_or_default().to_vec();
    match bytes.last_mut() {
        Some(last) => *last += 1,
        None => bytes = vec![u8::MAX; beginning.len() + 1],
    }
    bytes
}

/// The ranges for a list in an order; `None` if no index has the order.
pub fn plan_order(
    indexes: &[ValueIndex],
    filter: Option<&Filter>,
    order: &[Part],
    start: &[u8],
    end: &[u8],
) -> Option<OrderPlan> {
    let fits = |index: &ValueIndex| {
        let ValueIndex { info, .. } = index;
        index.is_ready() && !info.spec.multi && info.spec.covers_range(start, end)
    };
    let fitting = indexes.iter().enumerate().filter(|(_, index)| fits(index));
    let plans = fitting.filter_map(|(at, index)| {
        let (plan, score) = ordered(index, at, filter.map(Filter::condition), order)?;
        Some((score, usize::MAX - at, plan))
    });
    plans.max_by_key(|(score, at, _)| (*score, *at)).map(|(_, _, plan)| plan)
}

fn ordered(
    index: &ValueIndex,
    place: usize,
    condition: Option<&Condition>,
    order: &[Part],
) -> Option<(OrderPlan, usize)> {
    let first = order.first()?;
    let mut fixed = vec![Vec::new()];
    let mut at = 0;
    while !index.parts.get(at)?.path.is(&first.path) {
        let found = intervals(index, at, condition?)?;
        let values = found.iter().all(|interval| interval.is_value);
        if !values || fixed.len() * found.len() > VALUE_INDEX_RANGES_MAX {
            return None;
        }
        fixed = extended(index.parts.get(at)?, &fixed, &found);
        at += 1;
    }
    let part = index.parts.get(at)?;
    let reverse = part.descending != first.descending;
    let behind = index.parts.get(at..at + order.len())?;
    let same = |(part, wanted): (&Part, &Part)| {
        part.path.is(&wanted.path) && (part.descending != wanted.descending) == reverse
    };
    if !behind.iter().zip(order).all(same) {
        return None;
    }
    let found = condition.and_then(|condition| intervals(index, at, condition));
    let found = found.filter(|found| fixed.len() * found.len() <= VALUE_INDEX_RANGES_MAX);
    // A sparse index lacks entries, unless the conditions exclude them too.
    if index.spec().sparse && at == 0 && found.is_none() {
        return None;
    }
    let bounded = at + usize::from(found.is_some());
    let ranges = match found {
        Some(found) => ranges_behind(index, part, &fixed, &found),
        None => fixed.into_iter().map(all_behind).collect(),
    };
    Some((OrderPlan { index: place, reverse, ranges, bounded }, at + bounded))
}

/// Codes from all that begin with `lo`, or are behind it, to all that begin with `hi`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Interval {
    pub(super) lo: Vec<u8>,
    pub(super) hi: Vec<u8>,
    /// It has one whole code.
    pub(super) is_value: bool,
}

impl Interval {
    fn value(code: Vec<u8>) -> Self {
        Self { hi: code.clone(), lo: code, is_value: true }
    }

    fn of(tag: u8) -> Self {
        Self::value(vec![tag])
    }

    fn between(lo: Vec<u8>, hi: Vec<u8>) -> Self {
        Self { lo, hi, is_value: false }
    }
}

/// The codes under a path of an index of the entries that meet a condition; `None`: any.
pub(super) fn intervals(
    index: &ValueIndex,
    at: usize,
    condition: &Condition,
) -> Option<Vec<Interval>> {
    let (part, spec) = (index.parts.get(at)?, index.spec());
    let place = Place {
        path: &part.path,
        has_elements: spec.multi && at == 0,
        lacks_absent: spec.sparse && at == 0,
    };
    place.intervals(condition)
}

/// A path of an index.
struct Place<'i> {
    path: &'i Path,
    has_elements: bool,
    lacks_absent: bool,
}

impl Place<'_> {
    fn intervals(&self, condition: &Condition) -> Option<Vec<Interval>> {
        match condition {
            Condition::All(all) => {
                let found = all.iter().filter_map(|one| self.intervals(one));
                if self.has_elements {
                    // Different elements can meet the conditions.
                    found.min_by_key(|found| found.iter().filter(|one| !one.is_value).count())
                } else {
                    found.reduce(|a, b| both(&a, &b))
                }
            }
            Condition::Any(any) => {
                let each: Option<Vec<_>> = any.iter().map(|one| self.intervals(one)).collect();
                each.map(|each| either(each.concat()))
            }
            Condition::At { path, negated: false, test } if path.is(self.path) => {
                self.of_test(test).map(|mut found| {
                    // Several values, of which one may meet the test.
                    found.push(Interval::of(OTHER));
                    either(found)
                })
            }
            Condition::Not(_) | Condition::At { .. } => None,
        }
    }

    fn of_test(&self, test: &Test) -> Option<Vec<Interval>> {
        Some(match test {
            Test::In(operands) => operands.iter().flat_map(equal).collect(),
            Test::Null if !self.lacks_absent => {
                vec![Interval::of(ABSENT), Interval::of(NULL)]
            }
            Test::Greater(operand) | Test::GreaterOrEqual(operand) => at_least(operand),
            Test::Less(operand) | Test::LessOrEqual(operand) => at_most(operand),
            Test::Between(low, high) => both(&at_least(low), &at_most(high)),
            Test::Starts(operand) => match operand {
                Operand::Text(text) => vec![starting(TEXT, text)],
                Operand::Bytes(bytes) => vec![starting(BYTES, bytes)],
                Operand::Null
                | Operand::Bool(_)
                | Operand::Number(_)
                | Operand::BigInt(_)
                | Operand::Date(_)
                | Operand::Now(_) => return None,
            },
            Test::Contains(operand) if self.has_elements => {
                let mut found = equal(operand);
                found.push(Interval::of(LOOSE));
                found
            }
            Test::Exists
            | Test::Null
            | Test::Empty
            | Test::EmptyArray
            | Test::EqualFolded(_)
            | Test::Contains(_)
            | Test::Ends(_)
            | Test::ContainsFolded(_)
            | Test::StartsFolded(_)
            | Test::EndsFolded(_) => return None,
        })
    }
}

fn starting(tag: u8, string: &[u8]) -> Interval {
    let bytes = beginning(tag, string);
    Interval::between(bytes.clone(), bytes)
}

/// The codes of an operand: several for `$now`, which is compared with a `Date`, a number, and a text.
fn codes(operand: &Operand) -> Vec<Code> {
    let mut codes = match operand {
        Operand::Null => vec![Code::of(NULL)],
        Operand::Bool(value) => vec![Code::of(if *value { TRUE } else { FALSE })],
        Operand::Number(number) => vec![Code::of_number(*number)],
        Operand::BigInt(number) => vec![Code::of_bigint(number)],
        Operand::Text(text) => vec![Code::of_string(TEXT, text)],
        Operand::Bytes(bytes) => vec![Code::of_string(BYTES, bytes)],
        Operand::Date(ms) => vec![Code::of_date(*ms)],
        Operand::Now(ms) => vec![Code::of_number(*ms), Code::of_date(*ms)],
    };
    // NaN equals nothing.
    codes.retain(|code| code.tag() != OTHER);
    codes
}

/// Texts in ISO 8601 are compared with `$now`, and are not in the order of their times.
fn any_text(operand: &Operand) -> Option<Interval> {
    matches!(operand, Operand::Now(_)).then(|| Interval::between(vec![TEXT], vec![TEXT]))
}

fn equal(operand: &Operand) -> Vec<Interval> {
    let values = codes(operand).into_iter().map(|code| Interval::value(code.bytes));
    values.chain(any_text(operand)).collect()
}

fn at_least(operand: &Operand) -> Vec<Interval> {
    let from = |code: Code| {
        let last = class(code.tag()).1;
        Interval::between(code.bytes, vec![last])
    };
    codes(operand).into_iter().map(from).chain(any_text(operand)).collect()
}

fn at_most(operand: &Operand) -> Vec<Interval> {
    let to = |code: Code| {
        let first = class(code.tag()).0;
        Interval::between(vec![first], code.bytes)
    };
    codes(operand).into_iter().map(to).chain(any_text(operand)).collect()
}

/// The first and the last tag of the values that are compared with those of a tag.
fn class(tag: u8) -> (u8, u8) {
    match tag {
        BYTES | TEXT | DATE => (tag, tag),
        FALSE | TRUE => (FALSE, TRUE),
        NULL => (NULL, NULL),
        _ => (NEGATIVE, POSITIVE),
    }
}

/// The codes of both.
fn both(a: &[Interval], b: &[Interval]) -> Vec<Interval> {
    let mut found = Vec::new();
    for a in a {
        for b in b {
            let lo = if a.lo >= b.lo { a } else { b };
            let hi = if after(&a.hi) <= after(&b.hi) { a } else { b };
            if lo.lo < after(&hi.hi) {
                let is_value = a.is_value || b.is_value;
                found.push(Interval { lo: lo.lo.clone(), hi: hi.hi.clone(), is_value });
            }
        }
    }
    either(found)
}

/// The codes of any, in order and without overlaps.
fn either(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_by(|a, b| a.lo.cmp(&b.lo));
    let mut joined: Vec<Interval> = Vec::with_capacity(intervals.len());
    for next in intervals {
        match joined.last_mut() {
            Some(last) if next.lo < after(&last.hi) => {
                last.is_value &= next.is_value;
                if after(&next.hi) > after(&last.hi) {
                    last.hi = next.hi;
                }
            }
            _ => joined.push(next),
        }
    }
    joined
}
