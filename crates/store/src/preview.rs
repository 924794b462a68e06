//! Decisions of a write that is not committed, by the rules of a commit: the entry that it would leave, which is how a
//! transaction reads its own writes, and whether its checks hold.

use std::sync::Arc;

use uuid::Uuid;

use super::{Caller, OrderedScan, Patience, Place, Store};
use openkv_core::commit::{Base, Evaluation, OldRow, RowEffect};
use openkv_core::index::ValueIndex;
use openkv_core::model::{
    AtomicWrite, BRIEF_SCAN_ENTRIES_MAX, Decision, EncodedValue, Error, Key, Needs, Result, Seen,
    Step, Versionstamp, Walk,
};
use openkv_engines::Snapshot;

/// The present and the future state of a key.
#[derive(Debug)]
pub struct Preview {
    /// The commit of the present entry.
    pub before: Option<Versionstamp>,
    /// The value after the write.
    pub after: Option<EncodedValue>,
    /// The expiry after the write, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
    /// The place of the entry in the requested list.
    pub place: Option<Place>,
}

impl Store {
    /// What a write without checks, whose mutations are all of one key, would leave there, by the
    /// rules of a commit, and its place in a list. `long` moves the work to a thread for long reads, within these bounds.
    pub fn preview(
        &self,
        write: AtomicWrite,
        list: Option<OrderedScan>,
        long: Option<Arc<Patience>>,
        caller: impl Caller<Preview>,
    ) {
        let env = self.env.clone();
        self.read(long, caller, move |snapshot, _| {
            preview(snapshot, write, list.as_ref(), env.now_ms(), env.random())
        });
    }

    /// Whether the checks of a write that has only these hold. `long` as for [`Store::preview`].
    pub fn check_reads(
        &self,
        write: AtomicWrite,
        long: Option<Arc<Patience>>,
        caller: impl Caller<CheckedReads>,
    ) {
        let env = self.env.clone();
        self.read(long, caller, move |snapshot, _| check_reads(snapshot, write, env.now_ms()));
    }
}

/// Whether checks hold.
#[derive(Debug)]
pub struct CheckedReads {
    /// The last commit of the state in which they were compared.
    pub at: Versionstamp,
    /// The numbers of those that do not hold.
    pub failed: Vec<usize>,
}

/// Compares the checks of a write that has nothing else with the snapshot.
///
/// # Errors
/// Those of the snapshot; the reason if the write would be rejected.
pub(super) fn check_reads(
    snapshot: &mut dyn Snapshot,
    write: AtomicWrite,
    now_ms: i64,
) -> Result<CheckedReads> {
    let at = Versionstamp::new(snapshot.feed_state()?.version);
    let keys: Vec<_> = write.parts().0.iter().map(|check| check.key.clone()).collect();
    snapshot.prefetch(Needs { keys: &keys, ranges: &[] })?;
    let indexes = snapshot.value_indexes()?;
    let mut seen = Before { snapshot, indexes: (!indexes.is_empty()).then_some(indexes) };
    match Evaluation::new(&mut seen, 0, now_ms).decide(write)? {
        Decision::CheckFailed(failed) => Ok(CheckedReads { at, failed }),
        Decision::Committed(_) => Ok(CheckedReads { at, failed: Vec::new() }),
        Decision::Rejected(reason) => Err(reason),
        Decision::CommittedWith(..) | Decision::Deleted(_) | Decision::NotUnique(_) => {
            Err(Error::internal("checks that have written"))
        }
    }
}

/// Whether [`check_reads`] reads few entries, and none through an index.
pub(super) fn has_few_checks(write: &AtomicWrite) -> bool {
    let ranges = write.ranges();
    let rows: usize = ranges.iter().map(|range| 1 + range.seen.len()).sum();
    write.parts().0.len() + rows <= BRIEF_SCAN_ENTRIES_MAX
        && ranges.iter().all(|range| range.found_by.is_none())
}

/// Evaluates a write without checks whose mutations are all of one key.
///
/// # Errors
/// Those of the snapshot; the reason if the write would be rejected.
fn preview(
    snapshot: &mut dyn Snapshot,
    write: AtomicWrite,
    list: Option<&OrderedScan>,
    now_ms: i64,
    seed: u64,
) -> Result<Preview> {
    let Some(key) = write.first_key().cloned() else {
        return Err(Error::internal("a preview needs at least one mutation"));
    };
    // Asked for first: a snapshot that has no transaction yet reads the key and the indexes in one.
    let indexes = list.map(|_| snapshot.value_indexes()).transpose()?;
    snapshot.prefetch(Needs { keys: std::slice::from_ref(&key), ..Needs::default() })?;
    let mut seen = Before { snapshot, indexes: None };
    let before = seen.row(&key)?;
    let mut evaluation = Evaluation::new(&mut seen, 0, now_ms).seeded(seed);
    if let Decision::Rejected(reason) = evaluation.decide(write)? {
        return Err(reason);
    }
    let rows = evaluation.into_effects().rows;
    let alive = |end: Option<i64>| end.is_none_or(|end| end > now_ms);
    let effect = rows.into_iter().find(|(at, _)| *at == key).map(|(_, effect)| effect);
    let stays = || before.as_ref().map(|row| (row.value.clone(), row.expire_at_ms));
    let after = match effect {
        Some(RowEffect::Removed) => None,
        Some(RowEffect::Stored(row)) => Some((row.value, row.expire_at_ms)),
        Some(RowEffect::ExpirySet { expire_at_ms, .. }) => {
            stays().map(|(value, _)| (value, expire_at_ms))
        }
        None => stays(),
    };
    let (after, expire_at_ms) = after.filter(|(_, end)| alive(*end)).unzip();
    let place = match (list.zip(indexes), &after) {
        (Some((list, indexes)), Some(EncodedValue { encoding, bytes })) => {
            Some(list.place_of(&indexes, key.as_bytes(), *encoding, bytes)?)
        }
        (Some(_) | None, _) => None,
    };
    Ok(Preview {
        before: before.map(|row| Versionstamp::new(row.version)),
        after,
        expire_at_ms: expire_at_ms.flatten(),
        place,
    })
}

/// A snapshot as the base of a write.
struct Before<'s> {
    snapshot: &'s mut dyn Snapshot,
    /// The value indexes, for checks of what they have found.
    indexes: Option<Arc<[ValueIndex]>>,
}

impl Base for Before<'_> {
    fn version(&mut self, key: &Key) -> Result<Option<u64>> {
        let (mut found, end) = (None, [key.as_bytes(), &[0]].concat());
        let walk = Walk { start: key.as_bytes(), end: &end, reverse: false, values: false };
        self.snapshot.walk(walk, &mut |seen| {
            found = Some(seen.row.stamp.version());
            Step::Stop
        })?;
        Ok(found)
    }

    fn row(&mut self, key: &Key) -> Result<Option<OldRow>> {
        let mut found = None;
        self.snapshot.get(key.as_bytes(), &mut |row| {
            let value = EncodedValue { encoding: row.encoding, bytes: row.value.to_vec() };
            found = Some(OldRow { version: row.stamp.version(), value, expire_at_ms: None });
        })?;
        if let Some(row) = &mut found {
            row.expire_at_ms = self.snapshot.expiry(key.as_bytes())?.flatten();
        }
        Ok(found)
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        self.snapshot.walk(walk, visit)
    }

    fn prefetch(&mut self, keys: &[Key]) -> Result<()> {
        self.snapshot.prefetch(Needs { keys, ranges: &[] })
    }

    fn value_indexes(&self) -> Option<Arc<[ValueIndex]>> {
        self.indexes.clone()
    }

    fn walk_index(
        &mut self,
        id: i64,
        range: (&[u8], &[u8]),
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        self.snapshot.walk_index(id, range, false, visit)
    }

    fn last_uuid(&mut self) -> Result<Option<Uuid>> {
        Ok(None)
    }
}
