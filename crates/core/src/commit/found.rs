//! Checks of what value indexes have found: for the filter of a list they must find exactly the entries and versions that
//! the caller listed, in the part of its order that the caller has read.
//!
//! The entries are found again, by the indexes that there are now. What an index finds includes all entries that match,
//! so if it finds the same entries in the same versions, then the list has the same result, whichever index it was. An
//! entry that has come into the range of the index, has left it, or was changed in it fails the check. Without a fitting
//! index nothing is found, and the check fails.

use std::hash::BuildHasher;

use indexmap::IndexMap;

use super::effect::{NewRow, RowEffect};
use super::transaction::Base;
use crate::filter::Filter;
use crate::index::{
    EntryRange, Gathered, KeyPlan, ValueIndex, gather, parse_paths, plan_keys, plan_order,
    position_mark,
};
use crate::model::{
    Error, FoundBy, Key, ORDER_CHECK_OTHERS_MAX, OrderPart, RangeCheck, Result,
    VALUE_INDEX_STEP_ENTRIES_MAX, Versionstamp,
};

/// Whether such a check holds, over the entries of the base with the batch's effects so far. The inner error rejects the
/// write, the outer one is the base's.
pub(super) fn holds<S: BuildHasher>(
    base: &mut dyn Base,
    rows: &IndexMap<Key, RowEffect, S>,
    now_ms: i64,
    RangeCheck { start, end, seen, .. }: &RangeCheck,
    by: &FoundBy,
) -> Result<Result<bool>> {
    if start >= end {
        return Ok(Ok(seen.is_empty()));
    }
    let (Some(indexes), Ok(filter)) = (base.value_indexes(), Filter::parse(&by.filter, by.now_ms))
    else {
        return Ok(Ok(false));
    };
    let range = (start.as_bytes(), end.as_bytes());
    let Some((plan, mut search)) = Search::of(&indexes, &filter, range, by) else {
        return Ok(Ok(false));
    };
    let mut found: Vec<(Key, u64)> = Vec::with_capacity(seen.len());
    // What the batch has stored, the index of the base does not have yet.
    for (key, effect) in rows.iter().filter(|(key, _)| *key >= start && *key < end) {
        if let RowEffect::Stored(NewRow { value, .. }) = effect
            && let Some(version) = effect.version(now_ms)
            && plan.finds(&indexes, key.as_bytes(), value.encoding, &value.bytes)
        {
            found.push((key.clone(), version));
        }
    }
    loop {
        // One more shows that there are more, in most cases.
        let max = seen.len().saturating_add(1);
        let Some(keys) = search.next(base, &indexes, &plan, range, max)? else {
            return Ok(Ok(false));
        };
        let keys: Vec<_> = keys.into_iter().map(Key::from_encoded).collect();
        base.prefetch(&keys)?;
        for key in keys {
            let version = match rows.get(&key) {
                None => base.version(&key)?,
                Some(effect @ RowEffect::ExpirySet { .. }) => effect.version(now_ms),
                Some(RowEffect::Stored(_) | RowEffect::Removed) => None,
            };
            found.extend(version.map(|version| (key, version)));
        }
        if found.len() > seen.len() {
            return Ok(Ok(false));
        }
        if search.is_done() {
            break;
        }
        if search.others(seen.len()) > ORDER_CHECK_OTHERS_MAX {
            return Ok(Err(too_many()));
        }
    }
    found.sort_unstable();
    let same = |((key, version), (was, stamp)): (&(Key, u64), &(Key, Versionstamp))| {
        key == was && Versionstamp::new(*version) == *stamp
    };
    Ok(Ok(found.len() == seen.len() && found.iter().zip(seen).all(same)))
}

fn too_many() -> Error {
    Error::too_large(format!(
        "kv.transaction: a list with orderBy has passed more than {ORDER_CHECK_OTHERS_MAX} entries of its index whose keys \
         are not in its range or whose entries have expired: create an index on the prefix of the list, or give a limit"
    ))
}

/// How far the indexes were searched.
enum Search {
    /// In the order of keys, from one on; `None`: to the end.
    Keys(Option<Vec<u8>>),
    /// The ranges of an order that are left, the next one last, and the number of entries that were read.
    Order(Vec<(usize, EntryRange)>, usize),
}

impl Search {
    /// The ranges that find the entries, and their search.
    fn of(
        indexes: &[ValueIndex],
        filter: &Filter,
        (start, end): (&[u8], &[u8]),
        by: &FoundBy,
    ) -> Option<(KeyPlan, Self)> {
        let Some(OrderPart { order, after, until }) = &by.order else {
            let plan = plan_keys(indexes, filter, start, end)?;
            return Some((plan, Self::Keys(Some(start.to_vec()))));
        };
        let parts = parse_paths(order).ok()?;
        let plan = plan_order(indexes, Some(filter), &parts, start, end)?;
        // Positions of another index say nothing about this one.
        let mark = position_mark(indexes.get(plan.index), order);
        let position = |of: &Option<Vec<u8>>| match of {
            None => Some(None),
            Some(of) => of.strip_prefix(mark.as_slice()).map(|at| Some(at.to_vec())),
        };
        let part = plan.between(position(after)?.as_deref(), position(until)?.as_deref());
        let ranges: Vec<_> = part.into_iter().map(|range| (plan.index, range)).collect();
        Some((KeyPlan { ranges: ranges.clone() }, Self::Order(ranges, 0)))
    }

    /// About `max` of the next keys; `None` if that would read too many entries of the index.
    fn next(
        &mut self,
        base: &mut dyn Base,
        indexes: &[ValueIndex],
        plan: &KeyPlan,
        (start, end): (&[u8], &[u8]),
        max: usize,
    ) -> Result<Option<Vec<Vec<u8>>>> {
        match self {
            Self::Keys(from) => {
                let start = from.take().unwrap_or_default();
                let gathered = gather(
                    indexes,
                    plan,
                    (&start, end),
                    false,
                    max,
                    &mut |id, range, _, visit| base.walk_index(id, range, visit),
                )?;
                let Some(Gathered { keys, is_complete }) = gathered else { return Ok(None) };
                *from = keys.last().filter(|_| !is_complete).map(|last| [last, &[0][..]].concat());
                Ok(Some(keys))
            }
            Self::Order(left, read) => {
                let mut keys = Vec::new();
                let Some((at, range)) = left.last_mut() else { return Ok(Some(keys)) };
                let Some(index) = indexes.get(*at) else { return Ok(None) };
                let max = max.min(VALUE_INDEX_STEP_ENTRIES_MAX);
                let (mut taken, mut next) = (0, None);
                base.walk_index(index.info.id, (&range.lo, &range.hi), &mut |entry| {
                    if taken == max {
                        next = Some(entry.to_vec());
                        return false;
                    }
                    taken += 1;
                    let key = index.key_of(entry).filter(|key| *key >= start && *key < end);
                    keys.extend(key.map(<[u8]>::to_vec));
                    true
                })?;
                *read += taken;
                match next {
                    Some(next) => range.lo = next,
                    None => drop(left.pop()),
                }
                Ok(Some(keys))
            }
        }
    }

    fn is_done(&self) -> bool {
        match self {
            Self::Keys(from) => from.is_none(),
            Self::Order(left, _) => left.is_empty(),
        }
    }

    /// The entries of the index that were read beside those that were listed.
    fn others(&self, listed: usize) -> usize {
        match self {
            Self::Keys(_) => 0,
            Self::Order(_, read) => read.saturating_sub(listed),
        }
    }
}
