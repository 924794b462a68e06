//! Repeats the changes of a segment of another copy's replication log.

use indexmap::IndexMap;

use super::effect::{NewRow, RowEffect};
use super::transaction::{Begun, EntryTable, MessageTable, Transaction};
use super::work::Report;
use crate::codec::{Malformed, change_log};
use crate::model::{Change, ChangeKind, Error, Key, LogSegment, Result};

/// Carries out the changes of the commits after the last one, in a transaction that has begun. The
/// commits keep their versions.
///
/// # Errors
/// `Corrupt` for a damaged segment, or one that does not follow the last commit; those of the transaction, which must be rolled back then.
pub fn run(
    transaction: &mut impl Transaction,
    begun: &Begun,
    segment: LogSegment<'_>,
) -> Result<Report> {
    let mut changes = Vec::new();
    let decoded = change_log::decode(segment.first, segment.changes, |change| {
        if change.version > begun.version {
            changes.push(change.to_change());
        }
        true
    });
    damaged_or(segment, decoded)?;
    if segment.first > begun.version + 1 {
        return Err(Error::corrupt(format!(
            "the log goes on with the commit {}, but this copy ends with the commit {}: the commits between \
             them are missing; begin the copy anew",
            segment.first, begun.version
        )));
    }
    let mut messages = damaged_or(segment, change_log::messages(segment.first, segment.changes))?;
    messages.retain(|message| message.version > begun.version);
    let mut report = Report { versions: (begun.version, begun.version), ..Report::default() };
    if segment.last <= begun.version {
        return Ok(report);
    }
    let entries = transaction.entries();
    if begun.logs {
        entries.keep_past(&changes)?;
    }
    let removals = changes.iter().filter(|change| change.kind.is_removal());
    let removed = removals.map(|change| change.version).max();
    for (key, effect) in effects_of(&changes) {
        let end = effect.expire_at_ms();
        report.expiry_ms = report.expiry_ms.into_iter().chain(end).min();
        entries.apply(key, effect)?;
        report.touched.push(key.clone());
    }
    report.queued = !messages.is_empty();
    transaction.messages().repeat(&messages)?;
    if begun.logs {
        let messages = if begun.logs_messages { &messages[..] } else { &[] };
        transaction.log(begun.version + 1..=segment.last, changes, messages, segment.at_ms)?;
    }
    transaction.set_version(segment.last, removed)?;
    report.versions = (begun.version, segment.last);
    Ok(report)
}

/// What the changes leave of each entry. A value between two of them is the history's alone.
fn effects_of(changes: &[Change]) -> IndexMap<&Key, RowEffect> {
    let mut effects = IndexMap::with_capacity(changes.len());
    for Change { key, version, kind } in changes {
        let version = *version;
        let effect = match kind {
            ChangeKind::Set { value, expire_at_ms } => {
                let (value, expire_at_ms) = (value.clone(), *expire_at_ms);
                RowEffect::Stored(NewRow { version, value, expire_at_ms })
            }
            ChangeKind::Deleted | ChangeKind::Expired => RowEffect::Removed,
            ChangeKind::ExpirySet { expire_at_ms } => match effects.swap_remove(key) {
                // The entry keeps its commit.
                Some(RowEffect::Stored(row)) => {
                    RowEffect::Stored(NewRow { expire_at_ms: *expire_at_ms, ..row })
                }
                _ => RowEffect::ExpirySet { version, expire_at_ms: *expire_at_ms },
            },
        };
        effects.insert(key, effect);
    }
    effects
}

fn damaged_or<T>(segment: LogSegment<'_>, read: Result<T, Malformed>) -> Result<T> {
    let LogSegment { first, last, .. } = segment;
    read.map_err(|error| {
        Error::corrupt(format!("the segment {first} to {last} of the log is damaged: {error}"))
    })
}
