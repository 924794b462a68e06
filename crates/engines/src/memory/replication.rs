//! The replication log and the history in memory.

use std::collections::BTreeMap;
use std::ops::{Bound, Range, RangeInclusive};

use super::Tables;
use crate::ReplicationLog;
use crate::feed::FeedState;
use crate::replication::extent::{
    Beginning, Changed, Extent, Outline, Segments, change, counted, has_removal, trim,
    visit_changes,
};
use crate::replication::{no_longer, time_of};
use openkv_core::codec::change_log;
use openkv_core::commit::{Begun, NewRow, batch};
use openkv_core::model::{
    Change, ChangeKind, HistoryExtent, Key, LogExtent, LogSegment, LogSettings, LogState,
    LoggedMessage, Moment, Origin, PastEntry, Result,
};

/// Entries before commits.
pub(super) type Past = BTreeMap<(Key, u64), Option<PastEntry>>;

struct Segment {
    outline: Outline,
    changes: Vec<u8>,
}

/// A replication log that is on.
pub(super) struct Log {
    origin: Origin,
    extent: Extent,
    /// By their last commit.
    segments: BTreeMap<u64, Segment>,
    past: Past,
}

impl Log {
    fn new(origin: Origin, extent: Extent) -> Self {
        Self { origin, extent, segments: BTreeMap::new(), past: Past::new() }
    }

    /// Begins the log of a copy anew after a commit, with the same settings.
    pub(super) fn restart(
        &mut self,
        database: [u8; 16],
        incarnation: u64,
        version: u64,
        at_ms: i64,
    ) {
        let since = Moment { version, at_ms };
        let history = self.extent.history.map(|history| HistoryExtent { since, ..history });
        let extent = Extent {
            complete: version,
            removed: version,
            bytes: 0,
            newest_ms: at_ms,
            history,
            forgotten: None,
            ..self.extent
        };
        *self = Self::new(Origin { database, incarnation }, extent);
    }

    /// Whether it has messages.
    pub(super) fn has_messages(&self) -> bool {
        self.extent.messages
    }

    /// Logs what the commits of a transaction have made of entries and messages, each in order, and trims
    /// old segments.
    pub(super) fn log(
        &mut self,
        commits: RangeInclusive<u64>,
        changes: &[Change],
        messages: &[LoggedMessage],
        now_ms: i64,
    ) -> Result<()> {
        let (first, last) = commits.into_inner();
        let mut changes = change_log::encode_all(first, changes, messages);
        changes.shrink_to_fit();
        let bytes = counted(changes.len() as u64);
        let mut extent = self.extent;
        extent.newest_ms = extent.newest_ms.max(now_ms);
        extent.bytes += bytes;
        let outline = Outline { first, last, at_ms: extent.newest_ms, bytes };
        self.segments.insert(outline.last, Segment { outline, changes });
        trim(self, &mut extent)?;
        self.extent = extent;
        Ok(())
    }
}

impl Segments for Log {
    fn after(&mut self, version: u64) -> Result<Option<Outline>> {
        let mut rest = self.segments.range((Bound::Excluded(version), Bound::Unbounded));
        Ok(rest.next().map(|(_, segment)| segment.outline))
    }

    fn drop(&mut self, segment: &Outline) -> Result<bool> {
        let gone = self.segments.remove(&segment.last);
        Ok(gone.is_some_and(|gone| has_removal(segment.first, &gone.changes)))
    }

    fn forget(&mut self, segment: &Outline, from: usize, max: usize) -> Result<usize> {
        let Self { segments, past, .. } = self;
        let Some(kept) = segments.get(&segment.last) else { return Ok(0) };
        visit_changes(segment, &kept.changes, (from, max), |key, version| {
            past.remove(&(Key::from_encoded(key.to_vec()), version));
            Ok(())
        })
    }
}

impl Tables {
    /// A transaction after the commit `version`.
    pub(super) fn begun(&self, version: u64, now_ms: i64) -> Begun {
        let logs = self.log.is_some();
        let logs_messages = self.log.as_ref().is_some_and(Log::has_messages);
        Begun { version, now_ms, logs, logs_messages, kept_out: false }
    }

    /// Logs what has become of messages outside of a batch, as a commit of its own if the log has messages or
    /// `commits` says so.
    pub(super) fn log_messages(
        &mut self,
        changed: &[i64],
        commits: bool,
        now_ms: i64,
    ) -> Result<()> {
        let logs_messages = self.log.as_ref().is_some_and(Log::has_messages);
        if changed.is_empty() || !(commits || logs_messages) {
            return Ok(());
        }
        self.version += 1;
        let version = self.version;
        let logged = if logs_messages { changed } else { &[] };
        let messages = batch::logged_alone(&mut self.messages, logged, version)?;
        match &mut self.log {
            Some(log) => log.log(version..=version, &[], &messages, now_ms),
            None => Ok(()),
        }
    }

    /// Changes the settings of the log.
    pub(super) fn set_log(&mut self, settings: &LogSettings, origin: Origin, now_ms: i64) {
        let followed = self.followed.as_ref().map(|followed| followed.origin.database);
        let origin = Origin { database: followed.unwrap_or(origin.database), ..origin };
        let before = self.log.as_ref().map(|log| log.extent);
        let at = Beginning { version: self.version, removed: self.removed };
        let Changed { extent, forgets } = change(before, settings, at, now_ms);
        match (&mut self.log, extent) {
            (log, None) => *log = None,
            (None, Some(extent)) => self.log = Some(Log::new(origin, extent)),
            (Some(log), Some(extent)) => {
                log.extent = extent;
                if forgets {
                    log.past.clear();
                }
            }
        }
    }

    /// Keeps what changes are about to replace.
    pub(super) fn keep_past(&mut self, changes: &[Change]) {
        let Self { log: Some(log), rows, .. } = self else { return };
        if log.extent.history.is_none() {
            return;
        }
        let mut earlier = BTreeMap::<&Key, Option<PastEntry>>::new();
        for Change { key, version, kind } in changes {
            let before = earlier.remove(key).unwrap_or_else(|| rows.get(key).map(entry));
            let after = match kind {
                ChangeKind::Deleted | ChangeKind::Expired => None,
                ChangeKind::Set { value, expire_at_ms } => Some(PastEntry {
                    version: *version,
                    value: value.clone(),
                    expire_at_ms: *expire_at_ms,
                }),
                ChangeKind::ExpirySet { expire_at_ms } => {
                    before.clone().map(|entry| PastEntry { expire_at_ms: *expire_at_ms, ..entry })
                }
            };
            if before.is_some() || after.is_some() {
                log.past.insert((key.clone(), *version), before);
            }
            earlier.insert(key, after);
        }
    }

    /// Passes while the history reaches back to a moment.
    ///
    /// # Errors
    /// `Range` if it does not.
    pub(super) fn reaches(&self, moment: Moment) -> Result<()> {
        let history = self.log.as_ref().and_then(|log| log.extent.history);
        match history.map(|history| history.since.version) {
            Some(since) if since <= moment.version => Ok(()),
            since => Err(no_longer(moment, since)),
        }
    }

    /// How far feeds can read back.
    pub(super) fn feed_state(&self) -> FeedState {
        let log = self.log.as_ref().map(|log| (log.extent.complete, log.extent.removed));
        FeedState::of(self.version, self.removed, log)
    }

    /// The rows of a moment that the history reaches back to.
    pub(super) fn rows_at(&self, moment: Moment) -> BTreeMap<Key, NewRow> {
        let mut rows = self.rows.clone();
        // The newest first, so that the oldest row after the moment counts.
        for ((key, version), entry) in self.log.iter().flat_map(|log| log.past.iter().rev()) {
            if *version <= moment.version {
                continue;
            }
            match entry {
                None => rows.remove(key),
                Some(PastEntry { version, value, expire_at_ms }) => {
                    let (version, value) = (*version, value.clone());
                    rows.insert(key.clone(), NewRow { version, value, expire_at_ms: *expire_at_ms })
                }
            };
        }
        rows
    }
}

fn entry(row: &NewRow) -> PastEntry {
    let NewRow { version, value, expire_at_ms } = row;
    PastEntry { version: *version, value: value.clone(), expire_at_ms: *expire_at_ms }
}

/// The log in a snapshot.
pub(super) struct LogView<'t>(pub(super) &'t Tables);

impl ReplicationLog for LogView<'_> {
    fn state(&mut self) -> Result<LogState> {
        let log = self.0.log.as_ref().map(|log| {
            let Extent { complete, bytes, bounds, history, messages, .. } = log.extent;
            LogExtent { origin: log.origin, bounds, complete, bytes, history, messages }
        });
        Ok(LogState { version: self.0.version, log })
    }

    fn segments(
        &mut self,
        after: u64,
        visit: &mut dyn FnMut(LogSegment<'_>) -> bool,
    ) -> Result<()> {
        let Some(log) = &self.0.log else { return Ok(()) };
        for (_, segment) in log.segments.range((Bound::Excluded(after), Bound::Unbounded)) {
            let Outline { first, last, at_ms, .. } = segment.outline;
            if !visit(LogSegment { first, last, at_ms, changes: &segment.changes }) {
                break;
            }
        }
        Ok(())
    }

    fn at_commit(&mut self, version: u64) -> Result<Option<(u64, i64)>> {
        let Some(log) = &self.0.log else { return Ok(None) };
        let outline = |(_, segment): (&u64, &Segment)| segment.outline;
        let of_commit = log.segments.range(version..).next().map(outline);
        let found = of_commit
            .filter(|it| it.first <= version)
            .or_else(|| log.segments.range(..version).next_back().map(outline));
        Ok(found.map(|outline| (outline.last, outline.at_ms)))
    }

    fn at_time(&mut self, at_ms: i64) -> Result<Option<(u64, i64)>> {
        let outlines = self.0.log.iter().flat_map(|log| log.segments.values());
        let found = outlines.rev().map(|segment| segment.outline).find(|it| it.at_ms <= at_ms);
        Ok(found.map(|outline| (outline.last, outline.at_ms)))
    }

    fn entry(&mut self, key: &[u8], before: Option<u64>) -> Result<Option<PastEntry>> {
        let named = Key::from_encoded(key.to_vec());
        let from = before.unwrap_or(u64::MAX);
        let later = (named.clone(), from)..=(named, u64::MAX);
        let past = self.0.log.as_ref().map(|log| &log.past);
        let found = past.and_then(|past| past.range(later).next());
        Ok(found.map_or_else(|| self.0.rows.get(key).map(entry), |(_, entry)| entry.clone()))
    }

    fn replaced(
        &mut self,
        key: &[u8],
        commits: Range<u64>,
        visit: &mut dyn FnMut(u64, Option<i64>, Option<PastEntry>) -> bool,
    ) -> Result<()> {
        let Some(log) = &self.0.log else { return Ok(()) };
        let key = Key::from_encoded(key.to_vec());
        let range = (key.clone(), commits.start)..(key, commits.end);
        for ((_, commit), entry) in log.past.range(range).rev() {
            let at_ms = time_of(self.at_commit(*commit)?, *commit);
            if !visit(*commit, at_ms, entry.clone()) {
                break;
            }
        }
        Ok(())
    }
}
