//! Checks of ranges: a range must hold exactly the entries and versions that the caller listed.
//! Added, removed and changed entries all fail the check. [`super::found`] has those of what value indexes find.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::effect::RowEffect;
use super::transaction::Base;
use crate::model::{Key, RangeCheck, Result, Seen, Step, Versionstamp, Walk};

/// Whether a check of a range holds, over the rows of the base with the batch's effects so far.
pub(super) fn holds<S>(
    base: &mut dyn Base,
    rows: &IndexMap<Key, RowEffect, S>,
    now_ms: i64,
    check: &RangeCheck,
) -> Result<bool> {
    let RangeCheck { start, end, seen, found_by: _ } = check;
    let inside = rows.iter().filter(|(key, _)| *key >= start && *key < end);
    let mut batch: BTreeMap<&[u8], &RowEffect> =
        inside.map(|(key, effect)| (key.as_bytes(), effect)).collect();
    let mut expected = seen.iter();
    let mut as_seen = |key: &[u8], version: u64| {
        let next = expected.next();
        next.is_some_and(|(was, stamp)| {
            was.as_bytes() == key && *stamp == Versionstamp::new(version)
        })
    };
    let mut same = true;
    let (start, end) = (start.as_bytes(), end.as_bytes());
    base.walk(Walk { start, end, reverse: false, values: false }, &mut |Seen { row, .. }| {
        let (key, version) = (row.key, row.stamp.version());
        while let Some(entry) = batch.first_entry()
            && *entry.key() < key
        {
            let (new, effect) = entry.remove_entry();
            same &= effect.version(now_ms).is_none_or(|version| as_seen(new, version));
        }
        let version = match batch.remove(key) {
            Some(effect) => effect.version(now_ms),
            None => Some(version),
        };
        same &= version.is_none_or(|version| as_seen(key, version));
        if same { Step::Next } else { Step::Stop }
    })?;
    for (key, effect) in batch {
        same = same && effect.version(now_ms).is_none_or(|version| as_seen(key, version));
    }
    Ok(same && expected.next().is_none())
}
