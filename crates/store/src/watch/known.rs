//! The entries that a watch of many keys has read, so that a change of one key is one read.
//!
//! Invariant: the answer of [`read`] equals that of reading every key on the same snapshot. So
//! known entries count only if all commits since were announced with their keys and none of the
//! entries has expired.

use super::Room;
use crate::reads;
use openkv_core::model::{
    EncodedValue, Entry, Key, Needs, Result, Row, WATCH_KNOWN_BYTES_MAX, WATCH_KNOWN_KEYS_MIN,
};
use openkv_engines::Snapshot;

/// Consecutive commits that were announced with their keys: those after `after`, up to `last`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    after: u64,
    last: u64,
}

impl Span {
    /// Adds the announced commits after `before` up to `last`.
    pub(super) fn add(&mut self, (before, last): (u64, u64)) {
        if before != self.last {
            self.after = before;
        }
        self.last = last;
    }
}

/// The written keys of a watch, by their places, with the last commit of each.
#[derive(Debug, Default)]
pub(super) struct Changed {
    places: Vec<(usize, u64)>,
    /// The places written by commits up to this one were too many to keep.
    omitted: u64,
}

impl Changed {
    pub(super) fn add(&mut self, place: usize, version: u64, keys: usize) {
        if keys < WATCH_KNOWN_KEYS_MIN {
            return;
        }
        if self.places.len() >= keys {
            self.places.clear();
            self.omitted = version;
        }
        self.places.push((place, version));
    }

    /// Removes the places written by commits up to this one, for a read of its snapshot. `None` if
    /// they are unknown.
    pub(super) fn up_to(&mut self, version: u64) -> Option<Vec<usize>> {
        let is_known = self.omitted == 0;
        self.omitted = if self.omitted > version { self.omitted } else { 0 };
        let taken = self.places.extract_if(.., |(_, at)| *at <= version);
        let taken = taken.map(|(place, _)| place).collect();
        is_known.then_some(taken)
    }
}

/// The entries of all keys as of one commit.
pub(super) struct KnownEntries {
    version: u64,
    entries: Vec<Option<Entry>>,
    /// The expiry of each.
    ends: Vec<Option<i64>>,
}

impl KnownEntries {
    /// Whether unchanged places are the same in a snapshot of that commit.
    pub(super) fn holds(&self, version: u64, announced: Span, now_ms: i64) -> bool {
        self.version >= announced.after
            && version <= announced.last
            && self.ends.iter().flatten().all(|end| *end > now_ms)
    }

    /// Reads one place again. Returns the bytes of its value.
    fn renew(&mut self, snapshot: &mut dyn Snapshot, key: &Key, place: usize) -> Result<usize> {
        let (entry, end) = find(snapshot, key)?;
        let bytes = entry.as_ref().map_or(0, |entry| entry.value.bytes.len());
        if let (Some(at), Some(ends)) = (self.entries.get_mut(place), self.ends.get_mut(place)) {
            (*at, *ends) = (entry, end);
        }
        Ok(bytes)
    }

    fn bytes(&self) -> usize {
        self.entries.iter().flatten().map(|entry| entry.value.bytes.len()).sum()
    }
}

/// Reads the entries of the keys, within the room, and returns what is worth keeping for the next
/// read. `known` gives the entries known at a commit and the places to read again.
pub(super) fn read(
    snapshot: &mut dyn Snapshot,
    keys: &[Key],
    room: Option<&dyn Room>,
    known: impl FnOnce(u64) -> Option<(KnownEntries, Vec<usize>)>,
) -> Result<(Vec<Option<Entry>>, Option<KnownEntries>)> {
    let mut measure = Measure { bytes: 0, room };
    snapshot.prefetch(Needs { keys, ..Needs::default() })?;
    if keys.len() < WATCH_KNOWN_KEYS_MIN {
        let of = |key| get(snapshot, key).and_then(|entry| measure.add(entry));
        return Ok((keys.iter().map(of).collect::<Result<_>>()?, None));
    }
    let version = snapshot.feed_state()?.version;
    let known = match known(version) {
        Some((mut known, changed)) => {
            measure.bytes = known.bytes();
            for place in changed {
                if let Some(key) = keys.get(place) {
                    measure.bytes += known.renew(snapshot, key, place)?;
                    measure.hold()?;
                }
            }
            KnownEntries { version, ..known }
        }
        None => {
            let (mut entries, mut ends) = (Vec::new(), Vec::new());
            for key in keys {
                let (entry, end) = find(snapshot, key)?;
                entries.push(measure.add(entry)?);
                ends.push(end);
            }
            KnownEntries { version, entries, ends }
        }
    };
    let is_small = known.bytes() <= WATCH_KNOWN_BYTES_MAX;
    Ok(if is_small { (known.entries.clone(), Some(known)) } else { (known.entries, None) })
}

/// The bytes of the values so far, and their bound.
struct Measure<'r> {
    bytes: usize,
    room: Option<&'r dyn Room>,
}

impl Measure<'_> {
    fn hold(&self) -> Result<()> {
        self.room.map_or(Ok(()), |room| room.holds(self.bytes))
    }

    fn add(&mut self, entry: Option<Entry>) -> Result<Option<Entry>> {
        self.bytes += entry.as_ref().map_or(0, |entry| entry.value.bytes.len());
        self.hold().map(|()| entry)
    }
}

fn entry(row: Row<'_>) -> Entry {
    let value = EncodedValue { encoding: row.encoding, bytes: row.value.to_vec() };
    Entry { stamp: row.stamp, value }
}

fn get(snapshot: &mut dyn Snapshot, key: &Key) -> Result<Option<Entry>> {
    let mut found = None;
    snapshot.get(key.as_bytes(), &mut |row| found = Some(entry(row)))?;
    Ok(found)
}

/// An entry and its expiry.
fn find(snapshot: &mut dyn Snapshot, key: &Key) -> Result<(Option<Entry>, Option<i64>)> {
    reads::find(snapshot, key, |seen| {
        (seen.map(|seen| entry(seen.row)), seen.and_then(|seen| seen.expire_at_ms))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: usize = WATCH_KNOWN_KEYS_MIN;

    fn known(version: u64, end: Option<i64>) -> KnownEntries {
        KnownEntries { version, entries: vec![None], ends: vec![end] }
    }

    #[test]
    fn known_entries_hold_across_announced_commits() {
        let mut announced = Span::default();
        announced.add((4, 5));
        announced.add((5, 7));
        assert!(known(5, None).holds(7, announced, 0));
        assert!(known(4, None).holds(5, announced, 0), "the last commit is in none of the changes");
        assert!(!known(3, None).holds(7, announced, 0), "an unknown commit may be between");
        assert!(!known(5, None).holds(8, announced, 0), "that commit is not announced yet");
        announced.add((8, 9));
        assert!(!known(7, None).holds(9, announced, 0));
        assert!(known(8, Some(10)).holds(9, announced, 9));
        assert!(!known(8, Some(10)).holds(9, announced, 10), "it has ended");
    }

    #[test]
    fn changes_after_a_snapshot_are_kept_for_the_next() {
        let mut changed = Changed::default();
        changed.add(3, 1, KEYS);
        changed.add(5, 2, KEYS);
        changed.add(7, 4, KEYS);
        assert_eq!(changed.up_to(2), Some(vec![3, 5]));
        assert_eq!(changed.up_to(3), Some(vec![]));
        assert_eq!(changed.up_to(4), Some(vec![7]));
    }

    #[test]
    fn too_many_changes_count_as_all_keys() {
        let mut changed = Changed::default();
        (1..=KEYS as u64 + 1).for_each(|version| changed.add(0, version, KEYS));
        let last = KEYS as u64 + 1;
        assert_eq!(changed.up_to(last - 1), None);
        assert_eq!(changed.up_to(last), None, "its places were too many to keep");
        changed.add(1, last + 1, KEYS);
        assert_eq!(changed.up_to(last + 1), Some(vec![1]));
        let mut few = Changed::default();
        few.add(0, 1, KEYS - 1);
        assert!(few.places.is_empty());
    }
}
