//! The next batch of a feed: whole commits from the log or, if the log no longer has them, from the
//! entries themselves.

use std::collections::{BTreeMap, HashSet};

use openkv_core::model::{
    Batch, Change, ChangeKind, Error, FEED_BATCH_BYTES, FEED_BATCH_CHANGES, FEED_COALESCED_BYTES,
    FEED_COALESCED_CHANGES, KeyRange, Kind, Logged, Result, Seen, Step, Versionstamp, Walk,
};
use openkv_engines::{FeedLog, FeedState, Snapshot};

/// The changes in a range after a commit, and whether more follow. Without changes the batch is
/// empty.
pub(super) fn next(
    snapshot: &mut dyn Snapshot,
    range: &KeyRange,
    after: u64,
) -> Result<(Batch, bool)> {
    let state = snapshot.feed().state()?;
    if after > state.version {
        let (since, last) = (Versionstamp::new(after), Versionstamp::new(state.version));
        return Err(gap(format!(
            "the feed cannot go on from {since}, which is newer than {last}, the last commit of \
             this database: it is another's, or of a state that was lost"
        )));
    }
    if !state.on && after < state.version {
        let since = Versionstamp::new(after);
        return Err(gap(format!(
            "the feed cannot go on from {since}: the log was turned off (option log: false), and a new feed \
             turns it on again"
        )));
    }
    if after >= state.complete {
        return logged(snapshot, range, after, state);
    }
    if after >= state.removed {
        return coalesced(snapshot, range, after, state);
    }
    let (since, first) = (Versionstamp::new(after), Versionstamp::new(state.removed));
    Err(gap(format!("the feed cannot go on from {since}: it reaches back to {first} only")))
}

/// The last commit, if nothing in a range has changed after `after` and the log reaches back that
/// far. A position in the future gives `None`, so that the caller reads and gets the error.
pub(super) fn quiet(
    snapshot: &mut dyn Snapshot,
    range: &KeyRange,
    after: u64,
) -> Result<Option<u64>> {
    let state = snapshot.feed().state()?;
    let mut quiet = (state.complete..=state.version).contains(&after);
    if quiet {
        snapshot.feed().changes(after, &mut |logged| {
            quiet = !range.contains(logged.key) || !is_reported(&logged);
            quiet
        })?;
    }
    Ok(quiet.then_some(state.version))
}

fn gap(why: String) -> Error {
    let todo = "read the present state and follow from there";
    Error::new(Kind::FeedGap, format!("{why}; {todo}"))
}

/// Every change, as the log has it.
fn logged(
    snapshot: &mut dyn Snapshot,
    range: &KeyRange,
    after: u64,
    state: FeedState,
) -> Result<(Batch, bool)> {
    let mut batch = Batch { changes: Vec::new(), version: state.version };
    let (mut bytes, mut last, mut more) = (0, after, false);
    snapshot.feed().changes(after, &mut |logged| {
        let full = batch.changes.len() >= FEED_BATCH_CHANGES || bytes >= FEED_BATCH_BYTES;
        if full && logged.version != last {
            more = true;
            return false;
        }
        last = logged.version;
        if range.contains(logged.key) && is_reported(&logged) {
            let change = logged.to_change();
            bytes += change.size_bytes();
            batch.changes.push(change);
        }
        true
    })?;
    if more {
        batch.version = last;
    }
    Ok((batch, more))
}

/// Whether feeds report a change. One of only the expiry keeps the versionstamp of the entry.
fn is_reported(logged: &Logged<'_>) -> bool {
    !matches!(logged.kind, ChangeKind::ExpirySet { .. })
}

/// The last change of each key up to the commit behind which the log has every change: entries written since then, and
/// removals from the log. What was changed again behind that commit follows from the log.
fn coalesced(
    snapshot: &mut dyn Snapshot,
    range: &KeyRange,
    after: u64,
    state: FeedState,
) -> Result<(Batch, bool)> {
    let mut earliest = Earliest::up_to(state.complete);
    let (start, end) = (range.start.as_bytes(), range.end.as_bytes());
    let walk = Walk { start, end, reverse: false, values: true };
    snapshot.walk(walk, &mut |Seen { row, expire_at_ms }| {
        let version = row.stamp.version();
        if version > after && earliest.takes(version) {
            let kind = ChangeKind::Set { value: (row.encoding, row.value), expire_at_ms };
            earliest.add(Logged { version, key: row.key, kind }.to_change());
        }
        Step::Next
    })?;
    let removals = removals(&mut *snapshot.feed(), range, after, state.complete)?;
    let mut seen = HashSet::new();
    for removal in removals.into_iter().rev() {
        // An entry that exists was written after its removal. A second removal of a key is the
        // older one.
        if seen.insert(removal.key.clone())
            && earliest.takes(removal.version)
            && snapshot.expiry(removal.key.as_bytes())?.is_none()
        {
            earliest.add(removal);
        }
    }
    let Earliest { last: version, commits, .. } = earliest;
    let changes = commits.into_values().flatten().collect();
    Ok((Batch { changes, version }, version < state.version))
}

/// The removals in a range by the commits after `after` up to `last`, in order. Reads no further.
fn removals(log: &mut dyn FeedLog, range: &KeyRange, after: u64, last: u64) -> Result<Vec<Change>> {
    let mut removals = Vec::new();
    log.changes(after, &mut |logged| {
        if logged.version > last {
            return false;
        }
        if logged.kind.is_removal() && range.contains(logged.key) {
            removals.push(logged.to_change());
        }
        true
    })?;
    Ok(removals)
}

/// The earliest commits that fit a batch.
struct Earliest {
    commits: BTreeMap<u64, Vec<Change>>,
    changes: usize,
    bytes: usize,
    /// The last commit that it may have.
    last: u64,
}

impl Earliest {
    fn up_to(last: u64) -> Self {
        Self { commits: BTreeMap::new(), changes: 0, bytes: 0, last }
    }

    fn takes(&self, version: u64) -> bool {
        version <= self.last
    }

    fn add(&mut self, change: Change) {
        self.changes += 1;
        self.bytes += change.size_bytes();
        self.commits.entry(change.version).or_default().push(change);
        while self.commits.len() > 1
            && (self.changes > FEED_COALESCED_CHANGES || self.bytes > FEED_COALESCED_BYTES)
            && let Some((version, dropped)) = self.commits.pop_last()
        {
            self.last = version - 1;
            self.changes -= dropped.len();
            self.bytes -= dropped.iter().map(Change::size_bytes).sum::<usize>();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::Key;
    use openkv_engines::memory::MemoryEngine;
    use openkv_engines::{Engine, Reader};

    /// A log of removals by the commits 1 to 9, which counts the changes that are visited.
    struct Counted(usize);

    impl FeedLog for Counted {
        fn state(&mut self) -> Result<FeedState> {
            Ok(FeedState { on: true, version: 9, complete: 4, removed: 0 })
        }

        fn changes(&mut self, after: u64, visit: &mut dyn FnMut(Logged<'_>) -> bool) -> Result<()> {
            for version in after + 1..=9 {
                self.0 += 1;
                let kind = ChangeKind::Deleted;
                if !visit(Logged { version, key: &[version as u8], kind }) {
                    break;
                }
            }
            Ok(())
        }
    }

    #[test]
    fn removals_are_read_up_to_where_the_log_is_complete() {
        let (start, end) = (Key::from_encoded(vec![3]), Key::from_encoded(vec![0xff]));
        let mut log = Counted(0);
        let found = removals(&mut log, &KeyRange { start, end }, 1, 4).unwrap();
        let versions: Vec<u64> = found.iter().map(|change| change.version).collect();
        assert_eq!((versions, log.0), (vec![3, 4], 4));
    }

    #[test]
    fn a_position_in_the_future_is_not_quiet() {
        let mut reader = MemoryEngine::new().reader().unwrap();
        let (start, end) = (Key::from_encoded(vec![1]), Key::from_encoded(vec![0xff]));
        let range = KeyRange { start, end };
        let read = reader.read(0, &mut |snapshot| {
            let last = snapshot.feed().state()?.version;
            assert_eq!(quiet(snapshot, &range, last + 1)?, None);
            assert!(next(snapshot, &range, last + 1).is_err());
            Ok(())
        });
        read.unwrap();
    }
}
