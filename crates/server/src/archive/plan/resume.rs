//! Decides where an archiver that begins goes on.
//!
//! Invariant: every commit behind the oldest snapshot is in an object, or is part of a loss that was counted.
//! The end of an archive is the last object that could be read and that continues another one or a snapshot:
//! a snapshot that is newer than the objects proves nothing about the commits before it, and what the manifest
//! says about the end is no object.

use super::Snapshot;

#[cfg(test)]
mod tests;

/// The state of the database and its log in one snapshot. A place in the log is the last segment that begins with
/// or before a commit, as its last commit and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) struct Source {
    /// The last commit of the database.
    pub(in crate::archive) version: u64,
    /// The log has the commits after this one.
    pub(in crate::archive) complete: u64,
    /// The place of the last commit of the last object.
    pub(in crate::archive) last: Option<(u64, i64)>,
    /// The place of the newest snapshot.
    pub(in crate::archive) newest: Option<(u64, i64)>,
}

/// The last object with commits that is sound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) struct Last {
    pub(in crate::archive) version: u64,
    /// The time of that commit, in ms since the epoch.
    pub(in crate::archive) at_ms: i64,
    /// It has every commit after this one.
    pub(in crate::archive) after: u64,
    /// Whether it names the object before it.
    pub(in crate::archive) follows: bool,
}

/// The end of an archive, by the objects and the manifest of a history.
#[derive(Clone, Copy, Debug)]
pub(in crate::archive) struct End<'e> {
    /// In the order of commits.
    pub(in crate::archive) snapshots: &'e [Snapshot],
    pub(in crate::archive) last: Option<Last>,
    /// The last commit of the database that an archiver has seen.
    pub(in crate::archive) seen: u64,
}

/// Commits that are in no object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) struct Lost {
    /// The last archived commit before them.
    pub(in crate::archive) archived: u64,
    /// The log has the commits after this one.
    pub(in crate::archive) complete: u64,
}

/// The point at which an archiver continues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::archive) enum Resume {
    /// Behind the last object.
    Segments,
    /// Behind the snapshot of this commit.
    Snapshot(u64, Option<Lost>),
    /// Behind a snapshot that it takes first.
    Take(Option<Lost>),
    /// In another history: the database is not the archived copy, or is older than the archive.
    NewTimeline,
}

/// Decides where an archiver goes on in the history of its database.
pub(in crate::archive) fn resume(end: End<'_>, of: Source) -> Resume {
    if is_other(end, of) {
        return Resume::NewTimeline;
    }
    let versions = || end.snapshots.iter().map(|one| one.name.version);
    let Some(oldest) = versions().next() else { return Resume::Take(None) };
    let last = end.last.filter(|last| last.version > oldest);
    let begins_at_snapshot =
        |last: &Last| versions().any(|at| last.after <= at && at < last.version);
    match last {
        Some(last) if !last.follows && !begins_at_snapshot(&last) => {
            Resume::Take(Some(Lost { archived: oldest, complete: last.after }))
        }
        Some(last) if of.complete <= last.version => Resume::Segments,
        None if of.complete <= oldest => Resume::Snapshot(oldest, None),
        _ => {
            let archived = last.map_or(oldest, |last| last.version);
            let lost = Some(Lost { archived, complete: of.complete });
            let reached = versions().find(|at| *at > archived && of.complete <= *at);
            reached.map_or(Resume::Take(lost), |at| Resume::Snapshot(at, lost))
        }
    }
}

/// Whether the database has not the archived commits: it is older than the archive, or was older and has other
/// commits since.
fn is_other(end: End<'_>, of: Source) -> bool {
    let newest = end.snapshots.last();
    let last = end.last.map_or(0, |last| last.version);
    if of.version < end.seen.max(last).max(newest.map_or(0, |newest| newest.name.version)) {
        return true;
    }
    // What the log still has must be the same.
    let other_last = end.last.is_some_and(|last| {
        of.complete < last.version && of.last != Some((last.version, last.at_ms))
    });
    let other_snapshot = newest.zip(of.newest).is_some_and(|(newest, (_, at_ms))| {
        of.complete < newest.name.version && at_ms != newest.at_ms
    });
    other_last || other_snapshot
}
