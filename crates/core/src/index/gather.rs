//! Reads the ranges of a plan, and puts what they have in order.

use super::code::{BEFORE_KEY, Code, OTHER};
use super::entry::{Part, ValueIndex, order_mark, single};
use super::plan::{EntryRange, KeyPlan, OrderPlan};
use crate::filter::Subject;
use crate::model::{Encoding, OrderPath, Result, VALUE_INDEX_SORTED_ENTRIES_MAX};

/// Visits the entries of the index with a number, `lo <= entry < hi`, in order or in reverse, until the
/// visitor returns `false`.
pub type WalkEntries<'w> =
    &'w mut dyn FnMut(i64, (&[u8], &[u8]), bool, &mut dyn FnMut(&[u8]) -> bool) -> Result<()>;

/// Keys from an index.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Gathered {
    /// In the order of the list, each once.
    pub keys: Vec<Vec<u8>>,
    /// Whether there are no more.
    pub is_complete: bool,
}

/// The next keys with `start <= key < end` that a plan finds, about `max` of them. `None` if that would
/// read too many entries of the index.
///
/// # Errors
/// Those of the medium.
pub fn gather(
    indexes: &[ValueIndex],
    plan: &KeyPlan,
    (start, end): (&[u8], &[u8]),
    reverse: bool,
    max: usize,
    walk: WalkEntries<'_>,
) -> Result<Option<Gathered>> {
    // Many ranges take together no more memory than one.
    let max = max.min(VALUE_INDEX_SORTED_ENTRIES_MAX / plan.ranges.len().max(1)).max(1);
    let mut keys = Vec::new();
    // Behind it in the order of the list, a range may have keys that were not read.
    let mut horizon: Option<Vec<u8>> = None;
    let mut sorted = 0;
    let mut too_many = false;
    let (mut first, mut last) = (Vec::new(), Vec::new());
    for (at, EntryRange { lo, hi, is_point, .. }) in &plan.ranges {
        let Some(index) = indexes.get(*at) else { continue };
        let id = index.info.id;
        if *is_point {
            for (bound, key) in [(&mut first, start), (&mut last, end)] {
                bound.clear();
                bound.reserve(lo.len() + key.len());
                bound.extend_from_slice(lo);
                bound.extend_from_slice(key);
            }
            let mut taken = 0;
            let mut stopped = false;
            walk(id, (&first, &last), reverse, &mut |entry| {
                if taken == max {
                    stopped = true;
                    return false;
                }
                taken += 1;
                keys.extend(entry.get(lo.len()..).map(<[u8]>::to_vec));
                true
            })?;
            if stopped && let Some(last) = keys.last() {
                let nearer = horizon.as_ref().is_none_or(|far| (last < far) != reverse);
                if nearer {
                    horizon = Some(last.clone());
                }
            }
        } else {
            walk(id, (lo, hi), reverse, &mut |entry| {
                sorted += 1;
                too_many = sorted > VALUE_INDEX_SORTED_ENTRIES_MAX;
                let key = index.key_of(entry).filter(|key| *key >= start && *key < end);
                keys.extend(key.map(<[u8]>::to_vec));
                !too_many
            })?;
            if too_many {
                return Ok(None);
            }
        }
    }
    keys.sort_unstable();
    keys.dedup();
    if reverse {
        keys.reverse();
    }
    if let Some(horizon) = &horizon {
        keys.retain(|key| if reverse { key >= horizon } else { key <= horizon });
    }
    Ok(Some(Gathered { keys, is_complete: horizon.is_none() }))
}

/// Entries of an index in the order of a list.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ordered {
    /// The position of each, and its key.
    pub entries: Vec<(Vec<u8>, Vec<u8>)>,
    /// The position behind which the list continues; `None` if there are no more.
    pub next: Option<Vec<u8>>,
    /// The entries of the index that were read.
    pub visited: u64,
}

/// The next entries of a plan behind a position, with keys in `start <= key < end`. Reads up to `max` entries of each
/// range, and one more that tells whether there are more: so it has at least `max`, unless there are fewer, or some have
/// other keys.
///
/// # Errors
/// Those of the medium.
pub fn gather_ordered(
    indexes: &[ValueIndex],
    plan: &OrderPlan,
    (start, end): (&[u8], &[u8]),
    after: Option<&[u8]>,
    max: usize,
    walk: WalkEntries<'_>,
) -> Result<Ordered> {
    let Some(index) = indexes.get(plan.index) else { return Ok(Ordered::default()) };
    let reverse = plan.reverse;
    let max = max.max(1);
    let mut all = Ordered::default();
    for EntryRange { lo, hi, fixed, .. } in plan.between(after, None) {
        let (mut taken, mut last, mut stopped) = (0, None, false);
        walk(index.info.id, (&lo, &hi), reverse, &mut |entry| {
            all.visited += 1;
            if taken == max {
                stopped = true;
                return false;
            }
            taken += 1;
            let position = entry.get(fixed..).unwrap_or_default();
            if taken == max {
                last = Some(position.to_vec());
            }
            if let Some(key) = index.key_of(entry) {
                all.entries.push((position.to_vec(), key.to_vec()));
            }
            true
        })?;
        if let Some(last) = last.filter(|_| stopped) {
            let nearer = all.next.as_ref().is_none_or(|far| (last < *far) != reverse);
            if nearer {
                all.next = Some(last);
            }
        }
    }
    all.entries.sort_unstable();
    if reverse {
        all.entries.reverse();
    }
    if let Some(next) = &all.next {
        all.entries.retain(|(at, _)| if reverse { at >= next } else { at <= next });
    }
    all.entries.retain(|(_, key)| key.as_slice() >= start && key.as_slice() < end);
    Ok(all)
}

/// The bytes before a position in a list: those of the order of its index, or of a sorted list (`None`) the requested ones.
pub fn position_mark(index: Option<&ValueIndex>, order: &[OrderPath]) -> Vec<u8> {
    let (way, mark) = match index {
        Some(index) => (BY_INDEX, index.order_mark()),
        None => (BY_SORTING, order_mark(&[], order)),
    };
    [&[way][..], &mark].concat()
}

const BY_SORTING: u8 = 0;
const BY_INDEX: u8 = 1;

/// The position of an entry in an order: the bytes by which a list without an index sorts.
pub fn order_code(order: &[Part], key: &[u8], encoding: Encoding, value: &[u8]) -> Vec<u8> {
    let mut room = [0; 8];
    let mut subject = Subject::of_value(encoding, value, &mut room).ok();
    let mut position = Vec::with_capacity(16 * order.len() + key.len());
    for part in order {
        let code = subject.as_mut().and_then(|subject| single(subject, &part.path).ok());
        part.push(&mut position, &code.unwrap_or_else(|| Code::of(OTHER)).bytes);
    }
    position.push(BEFORE_KEY);
    position.extend_from_slice(key);
    position
}
