//! Checks of what value indexes have found: for the filter of a list they must find exactly the entries and versions that
//! the caller listed.
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
use crate::index::{Gathered, gather, plan_keys};
use crate::model::{FoundBy, Key, RangeCheck, Result, Versionstamp};

/// Whether such a check holds, over the entries of the base with the batch's effects so far.
///
/// # Errors
/// Those of the base.
pub(super) fn holds<S: BuildHasher>(
    base: &mut dyn Base,
    rows: &IndexMap<Key, RowEffect, S>,
    now_ms: i64,
    RangeCheck { start, end, seen, .. }: &RangeCheck,
    by: &FoundBy,
) -> Result<bool> {
    if start >= end {
        return Ok(seen.is_empty());
    }
    let (Some(indexes), Ok(filter)) = (base.value_indexes(), Filter::parse(&by.filter, by.now_ms))
    else {
        return Ok(false);
    };
    let Some(plan) = plan_keys(&indexes, &filter, start.as_bytes(), end.as_bytes()) else {
        return Ok(false);
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
    let mut from = start.as_bytes().to_vec();
    loop {
        // One more shows that there are more, in most cases.
        let max = seen.len().saturating_add(1);
        let range = (from.as_slice(), end.as_bytes());
        let gathered = gather(&indexes, &plan, range, false, max, &mut |id, range, _, visit| {
            base.walk_index(id, range, visit)
        })?;
        let Some(Gathered { keys, is_complete }) = gathered else { return Ok(false) };
        let keys: Vec<_> = keys.into_iter().map(Key::from_encoded).collect();
        base.prefetch(&keys)?;
        let last = keys.last().cloned();
        for key in keys {
            let version = match rows.get(&key) {
                None => base.version(&key)?,
                Some(effect @ RowEffect::ExpirySet { .. }) => effect.version(now_ms),
                Some(RowEffect::Stored(_) | RowEffect::Removed) => None,
            };
            found.extend(version.map(|version| (key, version)));
        }
        if found.len() > seen.len() {
            return Ok(false);
        }
        match last.filter(|_| !is_complete) {
            Some(last) => from = [last.as_bytes(), &[0]].concat(),
            None => break,
        }
    }
    found.sort_unstable();
    let same = |((key, version), (was, stamp)): (&(Key, u64), &(Key, Versionstamp))| {
        key == was && Versionstamp::new(*version) == *stamp
    };
    Ok(found.len() == seen.len() && found.iter().zip(seen).all(same))
}
