//! The replication log for its followers: what comes next, and a signal for new commits.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;

use super::{Caller, Room, Store};
use openkv_core::codec::{Malformed, change_log};
use openkv_core::model::{
    BUSY_TIMEOUT_MS_DEFAULT, Change, CopiedIndexes, Error, FOLLOW_BATCH_BYTES, Followed, Id, Key,
    LogBounds, LogSegment, LogSettings, LogState, Origin, Result, Segment, Setting,
};
use openkv_engines::Snapshot;

/// Gets a signal when there may be new commits. It must not wait.
pub type Wake = Box<dyn Fn() + Send + Sync>;

/// The followers that wait for new commits.
#[derive(Default)]
pub(super) struct LogTails(Mutex<Tails>);

#[derive(Default)]
struct Tails {
    last_id: Id,
    wakes: HashMap<Id, Wake>,
}

impl LogTails {
    pub(super) fn wake(&self) {
        for wake in self.0.lock().wakes.values() {
            wake();
        }
    }
}

/// The continuation after a place in the log.
#[derive(Debug, PartialEq, Eq)]
pub enum LogRead {
    /// The next segments.
    Segments {
        /// The commit up to which the follower has every change with them.
        version: u64,
        /// Whether there is no later commit.
        newest: bool,
        /// The segments.
        segments: Vec<Segment>,
    },
    /// The log does not lead on from this place, for this reason.
    Copy(&'static str),
}

impl Store {
    /// Turns on the replication log, if it is off. Waits for the writer thread.
    pub fn begin_log(&self) -> Result<()> {
        let mut state = Err(Error::closed());
        (self.make_reader)()?.read(self.env.now_ms(), &mut |snapshot| {
            state = snapshot.log()?.state();
            Ok(())
        })?;
        if state?.log.is_some() {
            return Ok(());
        }
        if self.readonly {
            return Err(Error::denied(
                "the database keeps no replication log, and was opened with readonly: true: turn the log on \
                 (option log: true of openKv) where it is written",
            ));
        }
        let log = Setting::On(LogBounds::default());
        let settings = LogSettings { log, ..LogSettings::default() };
        self.set_log(settings, Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT))
    }

    /// Calls `wake` whenever there may be new commits, until [`Store::log_tail_end`].
    #[must_use]
    pub fn log_tail(&self, wake: Wake) -> Id {
        self.watches.external().hold();
        let mut tails = self.tails.0.lock();
        tails.last_id += 1;
        let id = tails.last_id;
        tails.wakes.insert(id, wake);
        id
    }

    /// Ends the signals.
    pub fn log_tail_end(&self, id: Id) {
        if self.tails.0.lock().wakes.remove(&id).is_some() {
            self.watches.external().release();
        }
    }

    /// Reads the segments after a place, of the keys with its prefixes, up to a bound of bytes.
    pub fn read_log(&self, place: Followed, room: Arc<dyn Room>, caller: impl Caller<LogRead>) {
        self.read(None, caller, move |snapshot, _| read_log(snapshot, &place, &*room));
    }

    /// The definitions of the indexes that a copy has: those of value indexes if it `wants_values`.
    pub fn copied_indexes(&self, wants_values: bool, caller: impl Caller<CopiedIndexes>) {
        self.read(None, caller, move |snapshot, _| {
            let mut indexes = indexes_of(snapshot, true)?;
            indexes.values = indexes.values.filter(|_| wants_values);
            Ok(indexes)
        });
    }
}

/// The definitions of all full-text indexes, and of the value indexes, or of those that lists may read.
pub(super) fn indexes_of(snapshot: &mut dyn Snapshot, only_ready: bool) -> Result<CopiedIndexes> {
    let texts = snapshot.indexes(false)?.into_iter().map(|info| info.spec).collect();
    let values = snapshot.value_indexes()?;
    let listed = values.iter().filter(|index| index.is_ready() || !only_ready);
    Ok(CopiedIndexes { texts, values: Some(listed.map(|index| index.spec().clone()).collect()) })
}

/// Why the log does not lead on from a place; `None` if it does. `at_ms` is the time of the segment that
/// ends with the place's commit, if the log has it.
fn needs_copy(place: &Followed, state: LogState, at_ms: Option<i64>) -> Option<&'static str> {
    let Some(extent) = state.log else { return Some("the log begins only now") };
    let Origin { incarnation, .. } = place.origin;
    if incarnation != extent.origin.incarnation {
        return Some("the database was restored, copied or promoted");
    }
    if place.version > state.version {
        return Some("the database has fewer commits: it is an older copy");
    }
    if place.version < extent.complete {
        return Some("the log no longer reaches back");
    }
    // A segment of other changes under the same number.
    let differs = place.at_ms != 0 && at_ms.is_some_and(|at_ms| at_ms != place.at_ms);
    differs.then_some("the database has other commits: it was an older copy")
}

fn read_log(snapshot: &mut dyn Snapshot, place: &Followed, room: &dyn Room) -> Result<LogRead> {
    let mut log = snapshot.log()?;
    let state = log.state()?;
    if let Some(extent) = state.log
        && extent.origin.database != place.origin.database
    {
        return Err(Error::denied(
            "the replica is a copy of another database than the one at this URL: name another file for the \
             replica, or the right URL",
        ));
    }
    let ended = log.at_commit(place.version)?.filter(|(last, _)| *last == place.version);
    if let Some(why) = needs_copy(place, state, ended.map(|(_, at_ms)| at_ms)) {
        return Ok(LogRead::Copy(why));
    }
    if place.version == state.version {
        return Ok(LogRead::Segments {
            version: state.version,
            newest: true,
            segments: Vec::new(),
        });
    }
    let mut taken = Taken { prefixes: &place.prefixes, end: place.version, segments: Vec::new() };
    let (mut bytes, mut newest, mut fault) = (0, true, None);
    log.segments(place.version, &mut |segment| {
        if bytes >= FOLLOW_BATCH_BYTES {
            newest = false;
            return false;
        }
        bytes += segment.changes.len();
        match room.holds(bytes).and_then(|()| taken.take(segment)) {
            Ok(()) => true,
            Err(error) => {
                fault = Some(error);
                false
            }
        }
    })?;
    if let Some(error) = fault {
        return Err(error);
    }
    let Taken { end, segments, .. } = taken;
    Ok(LogRead::Segments { version: if newest { state.version } else { end }, newest, segments })
}

/// The segments for a follower, without messages and without gaps: each begins with the commit after the one before. Those
/// without a change to keys with its prefixes become one without changes, which only moves its position.
struct Taken<'a> {
    prefixes: &'a [Key],
    /// The last commit of the segments, or that of the place.
    end: u64,
    segments: Vec<Segment>,
}

impl Taken<'_> {
    fn take(&mut self, segment: LogSegment<'_>) -> Result<()> {
        let LogSegment { first, last, at_ms, changes } = segment;
        self.end = last;
        if self.prefixes.is_empty() {
            let changes = change_log::without_messages(changes);
            let changes = changes.map_err(|error| damaged(last, &error))?.into_owned();
            self.segments.push(Segment { first, last, at_ms, changes });
            return Ok(());
        }
        let kept = of_prefixes(segment, self.prefixes)?;
        // One without changes ends where the next one begins.
        let passed = self.segments.pop_if(|before| before.changes == change_log::encode(0, &[]));
        let first = passed.map_or(first, |passed| passed.first);
        self.segments.push(Segment {
            first,
            last,
            at_ms,
            changes: change_log::encode(first, &kept),
        });
        Ok(())
    }
}

/// The changes of a segment to keys with these prefixes.
fn of_prefixes(segment: LogSegment<'_>, prefixes: &[Key]) -> Result<Vec<Change>> {
    let LogSegment { first, last, changes, .. } = segment;
    let mut kept: Vec<Change> = Vec::new();
    let decoded = change_log::decode(first, changes, |change| {
        if prefixes.iter().any(|prefix| change.key.starts_with(prefix.as_bytes())) {
            kept.push(change.to_change());
        }
        true
    });
    decoded.map_err(|error| damaged(last, &error))?;
    Ok(kept)
}

fn damaged(last: u64, error: &Malformed) -> Error {
    Error::corrupt(format!("the segment {last} is damaged: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::{ChangeKind, LogExtent};

    fn place(incarnation: u64, version: u64, at_ms: i64) -> Followed {
        let origin = Origin { database: [1; 16], incarnation };
        Followed { origin, version, at_ms, prefixes: Vec::new() }
    }

    #[test]
    fn a_place_needs_a_copy_where_the_log_does_not_lead_on() {
        let bounds = LogBounds { retention_ms: 1, bytes_max: 1 };
        let origin = Origin { database: [1; 16], incarnation: 7 };
        let log =
            LogExtent { origin, bounds, complete: 10, bytes: 0, history: None, messages: false };
        let state = LogState { version: 20, log: Some(log) };
        for (place, at_ms, expected) in [
            (place(7, 10, 0), None, None),
            (place(7, 20, 0), None, None),
            (place(7, 15, 5), Some(5), None),
            (place(7, 15, 5), None, None),
            (place(7, 15, 0), Some(5), None),
            (place(8, 15, 5), Some(5), Some("restored")),
            (place(7, 21, 0), None, Some("fewer")),
            (place(7, 9, 0), None, Some("reaches back")),
            (place(7, 15, 5), Some(6), Some("other commits")),
        ] {
            let why = needs_copy(&place, state, at_ms);
            let same = match (why, expected) {
                (Some(why), Some(part)) => why.contains(part),
                (None, None) => true,
                _ => false,
            };
            assert!(same, "{place:?} {why:?}");
        }
        let off = LogState { version: 20, log: None };
        assert!(needs_copy(&place(7, 15, 0), off, None).is_some());
    }

    #[test]
    fn commits_of_other_keys_are_passed() {
        let prefixes = [Key::from_encoded(vec![1])];
        let change = |version: u64, key: u8| Change {
            key: Key::from_encoded(vec![key]),
            version,
            kind: ChangeKind::Deleted,
        };
        let mut taken = Taken { prefixes: &prefixes, end: 3, segments: Vec::new() };
        // A segment that the follower has in part, then two and one of other keys around one of both.
        for changes in [
            vec![change(3, 1), change(4, 1)],
            vec![change(5, 2)],
            vec![change(6, 2)],
            vec![change(7, 2), change(8, 1), change(9, 2)],
            vec![change(10, 2)],
        ] {
            let (first, last) = (changes[0].version, changes[changes.len() - 1].version);
            let changes = change_log::encode(first, &changes);
            let at_ms = 100 + last.cast_signed();
            taken.take(LogSegment { first, last, at_ms, changes: &changes }).unwrap();
        }
        let segment = |first: u64, last: u64, changes: &[Change]| Segment {
            first,
            last,
            at_ms: 100 + last.cast_signed(),
            changes: change_log::encode(first, changes),
        };
        let both = [change(3, 1), change(4, 1)];
        let expected = [segment(3, 4, &both), segment(5, 9, &[change(8, 1)]), segment(10, 10, &[])];
        assert_eq!((taken.end, taken.segments), (10, expected.to_vec()));
    }
}
