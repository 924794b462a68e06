//! What a watch of many keys has read, so that it need not all be read again when one of them changes.
//!
//! Invariant: what [`read`] answers is what reading every key on that snapshot would answer. So what is
//! known counts only if nobody else has committed since, and no entry of it has ended.

use super::{Entry, Room};
use crate::engine::Snapshot;
use crate::model::{
    EncodedValue, Key, Result, Step, WATCH_KNOWN_BYTES_MAX, WATCH_KNOWN_KEYS_MIN, Walk,
};

/// Commits of this process that were announced one after the other, with nobody else's between them:
/// those after `after`, up to `last`.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Span {
    after: u64,
    last: u64,
}

impl Span {
    /// The commits after `before` up to `last` are announced.
    pub(super) fn add(&mut self, (before, last): (u64, u64)) {
        if before != self.last {
            self.after = before;
        }
        self.last = last;
    }
}

/// Which keys of a watch were written, by their places, and until which commit.
#[derive(Debug, Default)]
pub(super) struct Changed {
    places: Vec<(usize, u64)>,
    /// Of the commits up to this one there were too many to tell.
    untold: u64,
}

impl Changed {
    pub(super) fn add(&mut self, place: usize, version: u64, keys: usize) {
        if keys < WATCH_KNOWN_KEYS_MIN {
            return;
        }
        if self.places.len() >= keys {
            self.places.clear();
            self.untold = version;
        }
        self.places.push((place, version));
    }

    /// The places that were written by commits up to this one, which a snapshot of it is now read for;
    /// `None`: they cannot be told.
    pub(super) fn up_to(&mut self, version: u64) -> Option<Vec<usize>> {
        let told = self.untold == 0;
        self.untold = if self.untold > version { self.untold } else { 0 };
        let taken = self.places.extract_if(.., |(_, at)| *at <= version);
        let taken = taken.map(|(place, _)| place).collect();
        told.then_some(taken)
    }
}

/// The entries of all keys as of one commit.
pub(super) struct Known {
    version: u64,
    entries: Vec<Option<Entry>>,
    /// When each of them ends.
    ends: Vec<Option<i64>>,
}

impl Known {
    /// Whether what is not among the changes is the same in a snapshot of that commit.
    pub(super) fn holds(&self, version: u64, announced: Span, now_ms: i64) -> bool {
        self.version >= announced.after
            && version <= announced.last
            && self.ends.iter().flatten().all(|end| *end > now_ms)
    }

    /// Bytes of the value that is there now.
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

/// The entries of the keys, for all of which there has to be room, and what is worth keeping of them
/// until the next time. `known` answers what is known at a commit, and the places of the keys that are
/// not.
pub(super) fn read(
    snapshot: &mut dyn Snapshot,
    keys: &[Key],
    room: Option<&dyn Room>,
    known: impl FnOnce(u64) -> Option<(Known, Vec<usize>)>,
) -> Result<(Vec<Option<Entry>>, Option<Known>)> {
    let mut measure = Measure { bytes: 0, room };
    if keys.len() < WATCH_KNOWN_KEYS_MIN {
        let of = |key| get(snapshot, key).and_then(|entry| measure.add(entry));
        return Ok((keys.iter().map(of).collect::<Result<_>>()?, None));
    }
    let version = snapshot.feed().state()?.version;
    let known = match known(version) {
        Some((mut known, changed)) => {
            measure.bytes = known.bytes();
            for place in changed {
                if let Some(key) = keys.get(place) {
                    measure.bytes += known.renew(snapshot, key, place)?;
                    measure.hold()?;
                }
            }
            Known { version, ..known }
        }
        None => {
            let (mut entries, mut ends) = (Vec::new(), Vec::new());
            for key in keys {
                let (entry, end) = find(snapshot, key)?;
                entries.push(measure.add(entry)?);
                ends.push(end);
            }
            Known { version, entries, ends }
        }
    };
    let is_small = known.bytes() <= WATCH_KNOWN_BYTES_MAX;
    Ok(if is_small { (known.entries.clone(), Some(known)) } else { (known.entries, None) })
}

/// Bytes of the values so far, and of how many there may be.
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

fn get(snapshot: &mut dyn Snapshot, key: &Key) -> Result<Option<Entry>> {
    let mut entry = None;
    snapshot.get(key.as_bytes(), &mut |row| {
        let value = EncodedValue { encoding: row.encoding, bytes: row.value.to_vec() };
        entry = Some(Entry { stamp: row.stamp, value });
    })?;
    Ok(entry)
}

/// An entry, and when it ends.
fn find(snapshot: &mut dyn Snapshot, key: &Key) -> Result<(Option<Entry>, Option<i64>)> {
    let behind = [key.as_bytes(), &[0]].concat();
    let walk = Walk { start: key.as_bytes(), end: &behind, reverse: false, values: true };
    let (mut entry, mut end) = (None, None);
    snapshot.walk(walk, &mut |seen| {
        let value = EncodedValue { encoding: seen.row.encoding, bytes: seen.row.value.to_vec() };
        entry = Some(Entry { stamp: seen.row.stamp, value });
        end = seen.expire_at_ms;
        Step::Stop
    })?;
    Ok((entry, end))
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: usize = WATCH_KNOWN_KEYS_MIN;

    fn known(version: u64, end: Option<i64>) -> Known {
        Known { version, entries: vec![None], ends: vec![end] }
    }

    #[test]
    fn what_is_known_holds_among_our_own_commits_that_were_announced() {
        let mut announced = Span::default();
        announced.add((4, 5));
        announced.add((5, 7));
        assert!(known(5, None).holds(7, announced, 0));
        assert!(known(4, None).holds(5, announced, 0), "the last one is in none of the changes");
        assert!(!known(3, None).holds(7, announced, 0), "somebody else's may be between");
        assert!(!known(5, None).holds(8, announced, 0), "nobody has told of it yet");
        announced.add((8, 9));
        assert!(!known(7, None).holds(9, announced, 0));
        assert!(known(8, Some(10)).holds(9, announced, 9));
        assert!(!known(8, Some(10)).holds(9, announced, 10), "it has ended");
    }

    #[test]
    fn changes_behind_a_snapshot_are_kept_for_the_next() {
        let mut changed = Changed::default();
        changed.add(3, 1, KEYS);
        changed.add(5, 2, KEYS);
        changed.add(7, 4, KEYS);
        assert_eq!(changed.up_to(2), Some(vec![3, 5]));
        assert_eq!(changed.up_to(3), Some(vec![]));
        assert_eq!(changed.up_to(4), Some(vec![7]));
    }

    #[test]
    fn too_many_changes_are_all_of_them() {
        let mut changed = Changed::default();
        (1..=KEYS as u64 + 1).for_each(|version| changed.add(0, version, KEYS));
        let last = KEYS as u64 + 1;
        assert_eq!(changed.up_to(last - 1), None);
        assert_eq!(changed.up_to(last), None, "those of it were among the untold");
        changed.add(1, last + 1, KEYS);
        assert_eq!(changed.up_to(last + 1), Some(vec![1]));
        let mut few = Changed::default();
        few.add(0, 1, KEYS - 1);
        assert!(few.places.is_empty());
    }
}
