//! The next batch of a feed: whole commits from the log or, if the log no longer has them, from the
//! entries themselves.

use std::collections::BTreeMap;

use openkv_core::model::{
    Batch, Change, ChangeKind, Error, FEED_BATCH_BYTES, FEED_BATCH_CHANGES, FEED_COALESCED_BYTES,
    FEED_COALESCED_CHANGES, KeyRange, Kind, Logged, Result, Seen, Step, Versionstamp, Walk,
};
use openkv_engines::{FeedState, Snapshot};

/// The changes in a range after a commit, and whether more follow. Without changes the batch is
/// empty.
pub(super) fn next(
    snapshot: &mut dyn Snapshot,
    range: &KeyRange,
    after: u64,
) -> Result<(Batch, bool)> {
    let state = snapshot.feed_state()?;
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
    if after == state.version {
        return Ok((Batch { changes: Vec::new(), version: after }, false));
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
    let state = snapshot.feed_state()?;
    let mut quiet = (state.complete..=state.version).contains(&after);
    if quiet && after < state.version {
        snapshot.changes(after, &mut |logged| {
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
    snapshot.changes(after, &mut |logged| {
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

/// The last change of each key up to the commit behind which the log has every change: the entries written since then,
/// because there was no removal. What was changed again behind that commit follows from the log.
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
    let Earliest { last: version, commits, .. } = earliest;
    let changes = commits.into_values().flatten().collect();
    Ok((Batch { changes, version }, version < state.version))
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

    #[test]
    fn a_position_in_the_future_is_not_quiet() {
        let mut reader = MemoryEngine::new().reader().unwrap();
        let (start, end) = (Key::from_encoded(vec![1]), Key::from_encoded(vec![0xff]));
        let range = KeyRange { start, end };
        let read = reader.read(0, &mut |snapshot| {
            let last = snapshot.feed_state()?.version;
            assert_eq!(quiet(snapshot, &range, last + 1)?, None);
            assert!(next(snapshot, &range, last + 1).is_err());
            Ok(())
        });
        read.unwrap();
    }
}
