//! Previews of a write: the entry that it would leave, without writing. A transaction reads its own
//! writes by the rules of a commit.

use std::sync::Arc;

use uuid::Uuid;

use super::{Caller, OrderedScan, Patience, Place, Store};
use openkv_core::commit::{Base, Evaluation, OldRow, RowEffect};
use openkv_core::model::{
    AtomicWrite, Decision, EncodedValue, Error, Key, Needs, Result, Seen, Step, Versionstamp, Walk,
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
    snapshot.prefetch(Needs { keys: std::slice::from_ref(&key), ..Needs::default() })?;
    let mut seen = Before { snapshot };
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
    let place = match (list, &after) {
        (Some(list), Some(EncodedValue { encoding, bytes })) => {
            Some(list.place_of(&snapshot.value_indexes()?, key.as_bytes(), *encoding, bytes)?)
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
}

impl Base for Before<'_> {
    fn version(&mut self, key: &Key) -> Result<Option<u64>> {
        Ok(self.row(key)?.map(|row| row.version))
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

    fn last_uuid(&mut self) -> Result<Option<Uuid>> {
        Ok(None)
    }
}
