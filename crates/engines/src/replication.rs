//! The replication log: reading it, and the moments that it knows.

pub(super) mod extent;

use std::ops::Range;

use openkv_core::codec::Malformed;
use openkv_core::model::{
    Capability, EntryVersion, Error, HistoryExtent, KeptMessage, Kind, LogSegment, LogState,
    Moment, PastEntry, Result, Versionstamp, When,
};

/// The replication log in one snapshot.
pub trait ReplicationLog {
    /// Its extent.
    fn state(&mut self) -> Result<LogState>;

    /// Visits the segments with commits after `after`, in order, until `visit` returns `false`. The
    /// first one can also have earlier commits.
    fn segments(&mut self, after: u64, visit: &mut dyn FnMut(LogSegment<'_>) -> bool)
    -> Result<()>;

    /// Visits all messages without their locks, each with its number, until `visit` returns `false`. Only for a
    /// database without backups: a backup has them.
    ///
    /// # Errors
    /// `Unsupported`; errors of the medium.
    fn messages(&mut self, _visit: &mut dyn FnMut(i64, KeptMessage) -> bool) -> Result<()> {
        Err(Error::unsupported("the messages of this database are in its backups"))
    }

    /// The last segment whose first commit is not after `version`, as its last commit and its time.
    fn at_commit(&mut self, version: u64) -> Result<Option<(u64, i64)>>;

    /// The last segment that is not newer than a time, as its last commit and its time.
    fn at_time(&mut self, at_ms: i64) -> Result<Option<(u64, i64)>>;

    /// The entry of a key, also if it has expired: what it was before the first commit from `before` on
    /// that changed it. If none did, or without `before`, the present one.
    fn entry(&mut self, key: &[u8], before: Option<u64>) -> Result<Option<PastEntry>>;

    /// Visits the commits in a range that changed the entry of a key, the newest first, each with its
    /// time, if that is known, and with what the entry was before it, until `visit` returns `false`.
    fn replaced(
        &mut self,
        key: &[u8],
        commits: Range<u64>,
        visit: &mut dyn FnMut(u64, Option<i64>, Option<PastEntry>) -> bool,
    ) -> Result<()>;

    /// The present, by the clock of the medium if it has one of its own. `now_ms` is that of the caller.
    fn present_ms(&self, now_ms: i64) -> i64 {
        now_ms
    }

    /// The error of a read of the past without a history.
    fn no_history(&self) -> Error {
        no_history()
    }
}

impl dyn ReplicationLog + '_ {
    /// Visits what commits have made of the entry of a key, the newest first, until `visit` returns
    /// `false`: those before the commit `before`, or all. The last one is the state at the beginning of
    /// the history.
    ///
    /// # Errors
    /// `Unsupported` without a history; errors of the medium.
    pub fn versions(
        &mut self,
        key: &[u8],
        before: Option<u64>,
        visit: &mut dyn FnMut(EntryVersion) -> bool,
    ) -> Result<()> {
        let history =
            self.state()?.log.and_then(|log| log.history).ok_or_else(|| self.no_history())?;
        let oldest = history.since.version + 1;
        if before.is_some_and(|before| before < oldest) {
            return Ok(());
        }
        let mut state = self.entry(key, before)?;
        let mut wanted = true;
        let commits = oldest..before.unwrap_or(u64::MAX);
        self.replaced(key, commits, &mut |commit, at_ms, earlier| {
            let entry = std::mem::replace(&mut state, earlier);
            // A persist of an entry that does not expire changes nothing.
            let part = |entry: &PastEntry| (entry.version, entry.expire_at_ms);
            if entry.as_ref().map(part) != state.as_ref().map(part) {
                wanted = visit(EntryVersion { commit, at_ms, entry });
            }
            wanted
        })?;
        if let Some(entry) = state.filter(|_| wanted) {
            let commit = entry.version;
            let at_ms = time_of(self.at_commit(commit)?, commit);
            visit(EntryVersion { commit, at_ms, entry: Some(entry) });
        }
        Ok(())
    }

    /// The moment that a caller names. `now_ms` is the present of the caller.
    ///
    /// # Errors
    /// `Unsupported` without a history; `Range` for a moment before the oldest or after the newest;
    /// errors of the medium.
    pub fn moment(&mut self, when: When, now_ms: i64) -> Result<Moment> {
        let state = self.state()?;
        let history = state.log.and_then(|log| log.history).ok_or_else(|| self.no_history())?;
        let now_ms = self.present_ms(now_ms);
        match when {
            When::Commit(stamp) if stamp.version() > state.version => {
                Err(after_newest(stamp, state.version))
            }
            When::Commit(stamp) if stamp.version() < history.since.version => {
                Err(before_oldest(&format!("the commit {stamp}"), history))
            }
            When::Commit(stamp) => {
                let version = stamp.version();
                let found =
                    self.at_commit(version)?.filter(|(last, _)| *last > history.since.version);
                Ok(Moment { version, at_ms: found.map_or(history.since.at_ms, |(_, at_ms)| at_ms) })
            }
            When::Time(at_ms) if at_ms > now_ms => Err(range(format!(
                "at: the time {at_ms} (ms since the epoch) is after the present, {now_ms} (ms since the epoch); name a moment of the past"
            ))),
            When::Time(at_ms) if at_ms < history.since.at_ms => {
                Err(before_oldest(&format!("the time {at_ms} (ms since the epoch)"), history))
            }
            When::Time(at_ms) => {
                let found = self.at_time(at_ms)?.map_or(0, |(last, _)| last);
                Ok(Moment { version: found.max(history.since.version), at_ms })
            }
        }
    }
}

/// The time of a commit from the segment that [`ReplicationLog::at_commit`] has found for it.
pub(super) fn time_of(found: Option<(u64, i64)>, commit: u64) -> Option<i64> {
    found.filter(|(last, _)| *last >= commit).map(|(_, at_ms)| at_ms)
}

fn before_oldest(given: &str, history: HistoryExtent) -> Error {
    let HistoryExtent { kept_ms, since } = history;
    range(format!(
        "at: {given} is before the beginning of the history, the commit {} at {} (ms since the epoch); \
         the history keeps {kept_ms} ms: name a later moment, or restore an archive",
        Versionstamp::new(since.version),
        since.at_ms
    ))
}

fn after_newest(stamp: Versionstamp, version: u64) -> Error {
    range(format!(
        "at: the commit {stamp} is after the newest one, {}; name a commit of this database",
        Versionstamp::new(version)
    ))
}

/// The error of a database without a history.
pub(crate) fn no_history() -> Error {
    Error::lacking(
        Capability::History,
        "the database keeps no history: open it with the option history, for example history: \"7d\"; \
         it begins with that",
    )
}

/// The error of a read of a moment that the history no longer has.
pub(super) fn no_longer(moment: Moment, since: Option<u64>) -> Error {
    let given = Versionstamp::new(moment.version);
    let now = since.map_or_else(
        || "has been turned off".to_owned(),
        |since| format!("begins at the commit {} now", Versionstamp::new(since)),
    );
    Error::new(
        Kind::Range,
        format!(
            "the history no longer reaches back to the commit {given}: it {now}; keep it longer (option history), \
         or restore an archive"
        ),
    )
}

/// The error of a call for something else than entries at a moment of the past.
pub(super) fn only_entries(what: &str) -> Error {
    let why = "the history has entries only; use the database itself";
    Error::unsupported(format!("{what} at a moment of the past: {why}"))
}

/// The error of a segment whose last commit is `last`.
pub(crate) fn damaged(last: u64, error: &Malformed) -> Error {
    Error::corrupt(format!(
        "the segment {last} of the replication log is damaged ({error}): restore a backup, or turn the log \
         off and on again, which begins a new one"
    ))
}

/// The log of an engine that has none.
pub(crate) struct NoLog;

impl ReplicationLog for NoLog {
    fn state(&mut self) -> Result<LogState> {
        Ok(LogState { version: 0, log: None })
    }

    fn segments(
        &mut self,
        _after: u64,
        _visit: &mut dyn FnMut(LogSegment<'_>) -> bool,
    ) -> Result<()> {
        Ok(())
    }

    fn at_commit(&mut self, _version: u64) -> Result<Option<(u64, i64)>> {
        Ok(None)
    }

    fn at_time(&mut self, _at_ms: i64) -> Result<Option<(u64, i64)>> {
        Ok(None)
    }

    fn entry(&mut self, _key: &[u8], _before: Option<u64>) -> Result<Option<PastEntry>> {
        Ok(None)
    }

    fn replaced(
        &mut self,
        _key: &[u8],
        _commits: Range<u64>,
        _visit: &mut dyn FnMut(u64, Option<i64>, Option<PastEntry>) -> bool,
    ) -> Result<()> {
        Ok(())
    }
}

fn range(message: String) -> Error {
    Error::new(Kind::Range, message)
}
