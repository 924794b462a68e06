//! The history in a snapshot: what an entry was at a moment, and its versions.

use std::ops::Range;

use super::damaged;
use crate::sqlite::layout::SPILLED;
use crate::sqlite::statement::Statement;
use crate::sqlite::values::encoding;
use openkv_core::codec::replaced::{
    Place, Replaced, ReplacedEntry, ReplacedValue, record, visit_group,
};
use openkv_core::model::{EncodedValue, Encoding, PastEntry, Result};

/// Finds and reads records.
pub(in crate::sqlite) struct Lookup {
    group: Statement,
    block: Statement,
    spilled: Statement,
}

impl Lookup {
    pub(in crate::sqlite) fn beside(on: &Statement) -> Result<Self> {
        Ok(Self {
            group: on.beside(
                "SELECT records FROM openkv_history_groups WHERE k = ?1 AND version > ?2 \
                 ORDER BY version LIMIT 1",
            )?,
            block: on.beside("SELECT replaced FROM openkv_history WHERE id = ?1")?,
            spilled: on.beside("SELECT v FROM openkv_spill WHERE id = ?1")?,
        })
    }

    /// The oldest record of a key in its groups that is newer than a commit.
    pub(in crate::sqlite) fn in_groups(
        &mut self,
        key: &[u8],
        commit: u64,
    ) -> Result<Option<Place>> {
        let mut run = self.group.run().blob(1, key).int(2, commit.cast_signed());
        if run.step()? { oldest_after(run.column_blob(0), commit) } else { Ok(None) }
    }

    /// The oldest record of a chain that is newer than a commit.
    pub(in crate::sqlite) fn in_chain(
        &mut self,
        newest: Option<Place>,
        commit: u64,
    ) -> Result<Option<Place>> {
        let (mut found, mut next) = (None, newest);
        // A place of a damaged file must not lead in a circle.
        for _ in 0..newest.map_or(0, Place::depth) {
            let Some(place) = next else { break };
            let head = self.read(place, |record| (record.commit, record.previous))?;
            match head {
                Some((at, previous)) if at > commit => (found, next) = (Some(place), previous),
                _ => break,
            }
        }
        Ok(found)
    }

    /// Reads a record; `None` if it is no longer there.
    fn read<T>(&mut self, place: Place, read: impl FnOnce(Replaced<'_>) -> T) -> Result<Option<T>> {
        let mut run = self.block.run().int(1, place.block().cast_signed());
        if !run.step()? {
            return Ok(None);
        }
        // The newest block stays without records, when they are gone.
        match run.column_blob(0) {
            [] => Ok(None),
            block => record(block, place.slot()).map(|found| Some(read(found))).map_err(damaged),
        }
    }

    /// Passes what a record says, with the bytes of the value, to `visit`.
    pub(in crate::sqlite) fn visit<T>(
        &mut self,
        place: Place,
        visit: impl FnOnce(Option<(ReplacedEntry<'_>, Encoding, &[u8])>) -> T,
    ) -> Result<T> {
        let Self { block, spilled, .. } = self;
        let mut run = block.run().int(1, place.block().cast_signed());
        run.row("a record of the history")?;
        let found = record(run.column_blob(0), place.slot()).map_err(damaged)?;
        visit_entry(found.entry, spilled, visit)
    }
}

/// Passes an entry, with the bytes of its value, to `visit`.
fn visit_entry<T>(
    entry: Option<ReplacedEntry<'_>>,
    spilled: &mut Statement,
    visit: impl FnOnce(Option<(ReplacedEntry<'_>, Encoding, &[u8])>) -> T,
) -> Result<T> {
    let Some(entry) = entry else { return Ok(visit(None)) };
    match entry.value {
        ReplacedValue::Here(id, bytes) => {
            Ok(visit(Some((entry, encoding(id.cast_signed())?, bytes))))
        }
        ReplacedValue::Spilled(id, place) => {
            let mut side = spilled.run().int(1, place);
            side.row("a value in openkv_spill")?;
            let encoding = encoding(id.cast_signed() - SPILLED)?;
            Ok(visit(Some((entry, encoding, side.column_blob(0)))))
        }
    }
}

/// The oldest record in a group that is newer than a commit.
pub(in crate::sqlite) fn oldest_after(group: &[u8], commit: u64) -> Result<Option<Place>> {
    let mut found = None;
    let visited = visit_group(group, |at, place| {
        found = (at > commit).then_some(place);
        found.is_none()
    });
    visited.map_err(damaged)?;
    Ok(found)
}

/// The versions of an entry.
pub(in crate::sqlite) struct HistoryReader {
    present: Statement,
    groups: Statement,
    lookup: Lookup,
}

impl HistoryReader {
    pub(in crate::sqlite) fn beside(on: &Statement) -> Result<Self> {
        Ok(Self {
            present: on
                .beside("SELECT version, v_encoding, v, expiration_ms, seq FROM kv WHERE k = ?1")?,
            groups: on.beside(
                "SELECT records FROM openkv_history_groups WHERE k = ?1 AND version >= ?2 \
                 ORDER BY version DESC",
            )?,
            lookup: Lookup::beside(on)?,
        })
    }

    /// As [`crate::ReplicationLog::entry`].
    pub(in crate::sqlite) fn entry(
        &mut self,
        key: &[u8],
        before: Option<u64>,
    ) -> Result<Option<PastEntry>> {
        let Self { present, lookup, .. } = self;
        let commit = before.map(|before| before.saturating_sub(1));
        if let Some(commit) = commit
            && let Some(place) = lookup.in_groups(key, commit)?
        {
            return lookup.visit(place, |found| found.map(owned));
        }
        let mut run = present.run().blob(1, key);
        if !run.step()? {
            return Ok(None);
        }
        let newest = Place::of(run.column_int(4).cast_unsigned());
        if let Some(commit) = commit
            && let Some(place) = lookup.in_chain(newest, commit)?
        {
            return lookup.visit(place, |found| found.map(owned));
        }
        let id = run.column_int(1);
        let value = if id < SPILLED {
            ReplacedValue::Here(id.cast_unsigned(), run.column_blob(2))
        } else {
            ReplacedValue::Spilled(id.cast_unsigned(), run.column_int(2))
        };
        let end = run.column_int(3);
        let expire_at_ms = (end >= 0).then_some(end);
        let version = run.column_int(0).cast_unsigned();
        let entry = ReplacedEntry { version, expire_at_ms, value };
        visit_entry(Some(entry), &mut lookup.spilled, |found| found.map(owned))
    }

    /// As [`crate::ReplicationLog::replaced`]; `time_of` is the time of a commit.
    pub(in crate::sqlite) fn replaced(
        &mut self,
        key: &[u8],
        commits: Range<u64>,
        time_of: &mut dyn FnMut(u64) -> Result<Option<i64>>,
        visit: &mut dyn FnMut(u64, Option<i64>, Option<PastEntry>) -> bool,
    ) -> Result<()> {
        let Self { present, groups, lookup } = self;
        let newest = present.run().blob(1, key).first(|run| run.column_int(4).cast_unsigned())?;
        let newest = newest.and_then(Place::of);
        let mut visit =
            |commit, entry| -> Result<bool> { Ok(visit(commit, time_of(commit)?, entry)) };
        let mut next = newest;
        for _ in 0..newest.map_or(0, Place::depth) {
            let Some(place) = next else { break };
            let head = lookup.read(place, |record| (record.commit, record.previous))?;
            let Some((commit, previous)) = head.filter(|head| head.0 >= commits.start) else {
                return Ok(());
            };
            if commits.contains(&commit) {
                let entry = lookup.visit(place, |found| found.map(owned))?;
                if !visit(commit, entry)? {
                    return Ok(());
                }
            }
            next = previous;
        }
        let start = i64::try_from(commits.start).unwrap_or(i64::MAX);
        let mut run = groups.run().blob(1, key).int(2, start);
        let mut records = Vec::new();
        while run.step()? {
            records.clear();
            let decoded = visit_group(run.column_blob(0), |commit, place| {
                records.push((commit, place));
                true
            });
            decoded.map_err(damaged)?;
            for (commit, place) in records.iter().rev().filter(|(at, _)| commits.contains(at)) {
                let entry = lookup.visit(*place, |found| found.map(owned))?;
                if !visit(*commit, entry)? {
                    return Ok(());
                }
            }
        }
        Ok(())
    }
}

fn owned((entry, encoding, bytes): (ReplacedEntry<'_>, Encoding, &[u8])) -> PastEntry {
    let value = EncodedValue { encoding, bytes: bytes.to_vec() };
    PastEntry { version: entry.version, value, expire_at_ms: entry.expire_at_ms }
}
