//! Checks of ranges: whether what was listed is still exactly what is there, so that nothing which
//! appeared, went or changed in between stays unnoticed.

use std::collections::BTreeMap;

use indexmap::IndexMap;

use super::evaluate::Base;
use super::left::Left;
use crate::model::{Key, RangeCheck, Result, Seen, Step, Versionstamp, Walk};

/// Whether a check of a range holds, over the rows of the base with what the batch has done so far.
///
/// # Errors
/// What the base answers.
pub(super) fn holds<S>(
    base: &mut dyn Base,
    rows: &IndexMap<Key, Left, S>,
    now_ms: i64,
    check: &RangeCheck,
) -> Result<bool> {
    let RangeCheck { start, end, seen } = check;
    let inside = rows.iter().filter(|(key, _)| *key >= start && *key < end);
    let mut batch: BTreeMap<&[u8], &Left> =
        inside.map(|(key, left)| (key.as_bytes(), left)).collect();
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
            let (new, left) = entry.remove_entry();
            same &= left.version(now_ms).is_none_or(|version| as_seen(new, version));
        }
        let version = match batch.remove(key) {
            Some(left) => left.version(now_ms),
            None => Some(version),
        };
        same &= version.is_none_or(|version| as_seen(key, version));
        if same { Step::Next } else { Step::Stop }
    })?;
    for (key, left) in batch {
        same = same && left.version(now_ms).is_none_or(|version| as_seen(key, version));
    }
    Ok(same && expected.next().is_none())
}
