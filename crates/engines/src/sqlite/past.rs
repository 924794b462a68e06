//! The entries of a moment of the past: the history over the present entries.

use std::cmp::Ordering;

use super::history::{Lookup, oldest_after};
use super::layout::SPILLED;
use super::snapshot::{KvRow, ReadStatements};
use super::statement::{Run, Statement};
use super::values::{encoding, stamp};
use crate::replication::{no_longer, only_entries};
use crate::{FeedState, Finder, Queues, ReplicationLog, Snapshot};
use openkv_core::codec::replaced::Place;
use openkv_core::model::{
    Error, HitVisitor, IndexInfo, Moment, Result, Row, Search, Seen, Stats, Step, Versionstamp,
    Walk,
};

/// The statements of a reader of the past.
pub(super) struct Past {
    pub(super) moment: Moment,
    since: Statement,
    present: Statement,
    present_spilled: Statement,
    lookup: Lookup,
    keys: Direction,
    entries: Direction,
}

/// The statements of a walk: the present entries, and the groups of the history.
struct Direction {
    forward: (Statement, Statement),
    backward: (Statement, Statement),
}

impl Direction {
    fn beside(on: &Statement, value: &str) -> Result<Self> {
        let present = format!(
            "SELECT {value}, v_encoding, version, expiration_ms, seq, k FROM kv \
             WHERE k >= ?1 AND k < ?2 ORDER BY k"
        );
        // With min() the other columns are those of the row that has the least version.
        let groups = "SELECT k, records, min(version) FROM openkv_history_groups \
                      WHERE k >= ?1 AND k < ?2 AND version > ?3 GROUP BY k ORDER BY k";
        let both = |order: &str| {
            let present = on.beside(&format!("{present} {order}"))?;
            Ok::<_, Error>((present, on.beside(&format!("{groups} {order}"))?))
        };
        Ok(Self { forward: both("")?, backward: both("DESC")? })
    }
}

impl Past {
    /// On the connection of another statement.
    pub(super) fn beside(on: &Statement, moment: Moment) -> Result<Self> {
        Ok(Self {
            moment,
            since: on.beside("SELECT history_version FROM openkv_log_state WHERE k = 0")?,
            present: on
                .beside("SELECT v, v_encoding, version, expiration_ms, seq FROM kv WHERE k = ?1")?,
            present_spilled: on.beside("SELECT v FROM openkv_spill WHERE id = ?1")?,
            lookup: Lookup::beside(on)?,
            keys: Direction::beside(on, "NULL")?,
            entries: Direction::beside(on, "v")?,
        })
    }

    /// Passes the entry of a key to `visit`; `None` if it was absent.
    fn entry<T>(&mut self, key: &[u8], visit: impl FnOnce(Option<Seen<'_>>) -> T) -> Result<T> {
        let Self { moment, present, present_spilled, lookup, .. } = self;
        if let Some(place) = lookup.in_groups(key, moment.version)? {
            return replaced(lookup, place, moment.at_ms, key, visit);
        }
        let mut run = present.run().blob(1, key);
        if !run.step()? {
            return Ok(visit(None));
        }
        match lookup.in_chain(newest(&run), moment.version)? {
            Some(place) => replaced(lookup, place, moment.at_ms, key, visit),
            None => unchanged(&run, present_spilled, moment.at_ms, key, visit),
        }
    }

    /// Passes while the history reaches back to the moment. Must be called at the start of each read
    /// transaction.
    pub(super) fn check(&mut self) -> Result<()> {
        let since = self.since.run().first_int()?;
        match since.map(i64::cast_unsigned) {
            Some(since) if since <= self.moment.version => Ok(()),
            since => Err(no_longer(self.moment, since)),
        }
    }
}

/// The snapshot of a moment of the past.
pub(super) struct PastSnapshot<'r> {
    pub(super) rows: &'r mut ReadStatements,
    pub(super) past: &'r mut Past,
}

impl Past {
    /// Walks over the groups of the history and the present entries, which have the chains, until the
    /// visitor stops or seeks; returns that step.
    fn merge(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<Step> {
        let Self { moment: Moment { version, at_ms }, present_spilled, lookup, .. } = self;
        let direction = if walk.values { &mut self.entries } else { &mut self.keys };
        let (present, groups) =
            if walk.reverse { &mut direction.backward } else { &mut direction.forward };
        let mut present = Merged::of(present.run().blob(1, walk.start).blob(2, walk.end), 5)?;
        let groups = groups.run().blob(1, walk.start).blob(2, walk.end);
        let mut groups = Merged::of(groups.int(3, version.cast_signed()), 0)?;
        loop {
            let order = match (present.key(), groups.key()) {
                (None, None) => return Ok(Step::Next),
                (Some(_), None) => Ordering::Less,
                (None, Some(_)) => Ordering::Greater,
                (Some(present), Some(group)) if walk.reverse => group.cmp(present),
                (Some(present), Some(group)) => present.cmp(group),
            };
            let mut show = |seen: Option<Seen<'_>>| {
                let Some(mut seen) = seen else { return Step::Next };
                if !walk.values {
                    seen.row.value = &[];
                }
                visit(seen)
            };
            let step = if order == Ordering::Less {
                let key = present.run.column_blob(5);
                match lookup.in_chain(newest(&present.run), *version)? {
                    Some(place) => replaced(lookup, place, *at_ms, key, show)?,
                    None if walk.values => {
                        unchanged(&present.run, present_spilled, *at_ms, key, show)?
                    }
                    None => show(key_alone(&present.run, *at_ms, key)?),
                }
            } else {
                let key = groups.run.column_blob(0);
                match oldest_after(groups.run.column_blob(1), *version)? {
                    Some(place) => replaced(lookup, place, *at_ms, key, show)?,
                    None => Step::Next,
                }
            };
            if step != Step::Next {
                return Ok(step);
            }
            if order != Ordering::Greater {
                present.step()?;
            }
            if order != Ordering::Less {
                groups.step()?;
            }
        }
    }
}

/// The newest record of the chain of a present entry.
fn newest(run: &Run<'_, '_>) -> Option<Place> {
    Place::of(run.column_int(4).cast_unsigned())
}

/// Passes what a record says of an entry to `visit`; `None` if there was none, or if it had expired.
fn replaced<T>(
    lookup: &mut Lookup,
    place: Place,
    at_ms: i64,
    key: &[u8],
    visit: impl FnOnce(Option<Seen<'_>>) -> T,
) -> Result<T> {
    lookup.visit(place, |found| {
        let alive = found.filter(|(entry, ..)| entry.expire_at_ms.is_none_or(|end| end > at_ms));
        visit(alive.map(|(entry, encoding, value)| Seen {
            row: Row { key, stamp: Versionstamp::new(entry.version), encoding, value },
            expire_at_ms: entry.expire_at_ms,
        }))
    })
}

/// Passes a present entry, in a row of `v, v_encoding, version, expiration_ms, …`, to `visit`; `None` if
/// it had expired.
fn unchanged<T>(
    run: &Run<'_, '_>,
    spilled: &mut Statement,
    at_ms: i64,
    key: &[u8],
    visit: impl FnOnce(Option<Seen<'_>>) -> T,
) -> Result<T> {
    let row = KvRow::of(run);
    if row.has_expired(at_ms) {
        return Ok(visit(None));
    }
    let expire_at_ms = row.expire_at_ms();
    row.show(key, spilled, |row| visit(Some(Seen { row, expire_at_ms })))
}

impl Snapshot for PastSnapshot<'_> {
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        self.past.entry(key, |seen| {
            let found = seen.is_some();
            if let Some(seen) = seen {
                visit(seen.row);
            }
            found
        })
    }

    fn expiry(&mut self, key: &[u8]) -> Result<Option<Option<i64>>> {
        self.past.entry(key, |seen| seen.map(|seen| seen.expire_at_ms))
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        let (mut start, mut end) = (walk.start.to_vec(), walk.end.to_vec());
        while start < end {
            let part = Walk { start: &start, end: &end, ..walk };
            match self.past.merge(part, visit)? {
                Step::Next | Step::Stop => return Ok(()),
                Step::Seek(to) if walk.reverse => end = to,
                Step::Seek(to) => start = to,
            }
        }
        Ok(())
    }

    fn stats(&mut self) -> Result<Stats> {
        let stats = self.rows.stats()?;
        Ok(Stats { stamp: stamp(self.past.moment.version.cast_signed()), ..stats })
    }

    fn feed_state(&mut self) -> Result<FeedState> {
        Ok(FeedState::of_past(self.past.moment.version))
    }

    fn log(&mut self) -> Result<Box<dyn ReplicationLog + '_>> {
        Err(only_entries("history"))
    }

    fn queues(&mut self) -> Result<Box<dyn Queues + '_>> {
        Err(only_entries("queues"))
    }
}

impl Finder for PastSnapshot<'_> {
    fn indexes(&mut self, _count: bool) -> Result<Vec<IndexInfo>> {
        Err(only_entries("search"))
    }

    fn search(&mut self, _search: &Search, _visitor: &mut dyn HitVisitor) -> Result<IndexInfo> {
        Err(only_entries("search"))
    }
}

/// A present entry that had not expired, without its value.
fn key_alone<'k>(run: &Run<'_, '_>, at_ms: i64, key: &'k [u8]) -> Result<Option<Seen<'k>>> {
    let (id, end) = (run.column_int(1), run.column_int(3));
    if end >= 0 && end <= at_ms {
        return Ok(None);
    }
    let encoding = encoding(if id < SPILLED { id } else { id - SPILLED })?;
    let row = Row { key, stamp: stamp(run.column_int(2)), encoding, value: &[] };
    Ok(Some(Seen { row, expire_at_ms: (end >= 0).then_some(end) }))
}

/// One side of a merge: rows with keys.
struct Merged<'s, 'b> {
    run: Run<'s, 'b>,
    /// The column of the key.
    key: i32,
    /// Whether the run is at a row.
    more: bool,
}

impl<'s, 'b> Merged<'s, 'b> {
    fn of(mut run: Run<'s, 'b>, key: i32) -> Result<Self> {
        let more = run.step()?;
        Ok(Self { run, key, more })
    }

    fn key(&self) -> Option<&[u8]> {
        self.more.then(|| self.run.column_blob(self.key))
    }

    fn step(&mut self) -> Result<()> {
        self.more = self.run.step()?;
        Ok(())
    }
}
