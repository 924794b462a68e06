//! The entries of a moment of the past: the history over the present entries.

use std::cmp::Ordering;

use super::layout::SPILLED;
use super::snapshot::{ReadStatements, expired, show};
use super::statement::{Run, Statement};
use super::values::{encoding, stamp};
use crate::engine::feed::FeedOfPast;
use crate::engine::replication::{no_longer, only_entries};
use crate::engine::{FeedLog, Finder, ReplicationLog, Snapshot};
use crate::model::{
    DeadLetter, HitVisitor, IndexInfo, MessagePlace, MessageState, Moment, Peeked, QueueStats,
    Result, Row, Search, Seen, Stats, Step, Walk,
};

/// The statements of a reader of the past.
pub(super) struct Past {
    pub(super) moment: Moment,
    since: Statement,
    /// What the entry of a key was before the first commit after the moment.
    get: Statement,
    forward: Statement,
    backward: Statement,
    spilled: Statement,
}

impl Past {
    /// On the connection of another statement.
    pub(super) fn beside(on: &Statement, moment: Moment) -> Result<Self> {
        // With min() the other columns are those of the row that has the least version.
        let walk = "SELECT v, v_encoding, old_version, expiration_ms, k, min(version) \
                    FROM openkv_history WHERE k >= ?1 AND k < ?2 AND version > ?3 \
                    GROUP BY k ORDER BY k";
        Ok(Self {
            moment,
            since: on.beside("SELECT history_version FROM openkv_log_state WHERE k = 0")?,
            get: on.beside(
                "SELECT v, v_encoding, old_version, expiration_ms FROM openkv_history \
                 WHERE k = ?1 AND version > ?2 ORDER BY version LIMIT 1",
            )?,
            forward: on.beside(walk)?,
            backward: on.beside(&format!("{walk} DESC"))?,
            spilled: on.beside("SELECT v FROM openkv_spill WHERE id = ?1")?,
        })
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

/// Whether a row of the history, `v, v_encoding, old_version, expiration_ms, …`, has an entry that had
/// not expired.
fn lived(run: &Run<'_, '_>, at_ms: i64) -> bool {
    !run.column_is_null(2) && !expired(run, at_ms)
}

impl Snapshot for PastSnapshot<'_> {
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        let Past { moment, get, spilled, .. } = &mut *self.past;
        let mut run = get.run().blob(1, key).int(2, moment.version.cast_signed());
        if !run.step()? {
            return self.rows.get(key, visit);
        }
        if !lived(&run, moment.at_ms) {
            return Ok(false);
        }
        show(&run, key, spilled, &mut |row| {
            visit(row);
            true
        })
    }

    fn expiry(&mut self, key: &[u8]) -> Result<Option<Option<i64>>> {
        let Past { moment, get, .. } = &mut *self.past;
        let mut run = get.run().blob(1, key).int(2, moment.version.cast_signed());
        if !run.step()? {
            return self.rows.expiry(key);
        }
        let end = run.column_int(3);
        Ok(lived(&run, moment.at_ms).then_some((end >= 0).then_some(end)))
    }

    /// Merges the history with the present entries: where a key is in both, its entry was replaced
    /// after the moment.
    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        let Past { moment, forward, backward, spilled, .. } = &mut *self.past;
        let statement = if walk.reverse { backward } else { forward };
        let (mut start, mut end) = (walk.start.to_vec(), walk.end.to_vec());
        while start < end {
            let run = statement.run().blob(1, &start).blob(2, &end);
            let run = run.int(3, moment.version.cast_signed());
            let mut replaced = Replaced::new(run, moment.at_ms, &walk, spilled)?;
            // What ended the walk of the present entries.
            let mut ended = Ok(Step::Next);
            let present = Walk { start: &start, end: &end, ..walk };
            self.rows.walker.walk(present, moment.at_ms, &mut |seen| {
                ended = match replaced.visit_up_to(Some(seen.row.key), visit) {
                    Ok((Step::Next, Covers::No)) => Ok(visit(seen)),
                    Ok((step, _)) => Ok(step),
                    Err(error) => Err(error),
                };
                if matches!(ended, Ok(Step::Next)) { Step::Next } else { Step::Stop }
            })?;
            let step = match ended? {
                Step::Next => replaced.visit_up_to(None, visit)?.0,
                step => step,
            };
            drop(replaced);
            match step {
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

    fn feed(&mut self) -> Box<dyn FeedLog + '_> {
        Box::new(FeedOfPast(self.past.moment.version))
    }

    fn log(&mut self) -> Result<Box<dyn ReplicationLog + '_>> {
        Err(only_entries("history"))
    }

    fn queue_stats(&mut self, _queue: &str) -> Result<QueueStats> {
        Err(only_entries("queues"))
    }

    fn queues(&mut self, _count_max: usize) -> Result<Vec<String>> {
        Err(only_entries("queues"))
    }

    fn peek(
        &mut self,
        _queue: &str,
        _state: Option<MessageState>,
        _after: MessagePlace,
        _visit: &mut dyn FnMut(Peeked, MessageState) -> bool,
    ) -> Result<()> {
        Err(only_entries("queues"))
    }

    fn dead_letters(
        &mut self,
        _queue: &str,
        _after: (i64, i64),
        _visit: &mut dyn FnMut(DeadLetter) -> bool,
    ) -> Result<()> {
        Err(only_entries("queues"))
    }

    fn dead_letter(&mut self, _queue: &str, _id: i64) -> Result<Option<DeadLetter>> {
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

/// Whether the history has a state of the key itself.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Covers {
    Yes,
    No,
}

/// The entries that were replaced after the moment, in the order of a walk.
struct Replaced<'s, 'b> {
    run: Run<'s, 'b>,
    /// Whether the run is at a row.
    more: bool,
    at_ms: i64,
    reverse: bool,
    values: bool,
    spilled: &'s mut Statement,
}

impl<'s, 'b> Replaced<'s, 'b> {
    fn new(
        mut run: Run<'s, 'b>,
        at_ms: i64,
        walk: &Walk<'_>,
        spilled: &'s mut Statement,
    ) -> Result<Self> {
        let more = run.step()?;
        Ok(Self { run, more, at_ms, reverse: walk.reverse, values: walk.values, spilled })
    }

    /// Visits the rows before a key and the one of the key itself; all without a key. Returns where
    /// the walk continues.
    fn visit_up_to(
        &mut self,
        key: Option<&[u8]>,
        visit: &mut dyn FnMut(Seen<'_>) -> Step,
    ) -> Result<(Step, Covers)> {
        while self.more {
            let order = key.map(|key| self.run.column_blob(4).cmp(key));
            let order = if self.reverse { order.map(Ordering::reverse) } else { order };
            if order == Some(Ordering::Greater) {
                break;
            }
            let step = if lived(&self.run, self.at_ms) { self.show(visit)? } else { Step::Next };
            self.more = self.run.step()?;
            if order == Some(Ordering::Equal) || step != Step::Next {
                return Ok((step, Covers::Yes));
            }
        }
        Ok((Step::Next, Covers::No))
    }

    fn show(&mut self, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<Step> {
        let Self { run, spilled, .. } = self;
        let ends = run.column_int(3);
        let expire_at_ms = (ends >= 0).then_some(ends);
        let key = run.column_blob(4);
        let mut step = Step::Next;
        if self.values {
            show(run, key, spilled, &mut |row| {
                step = visit(Seen { row, expire_at_ms });
                true
            })?;
        } else {
            let id = run.column_int(1);
            let encoding = encoding(if id < SPILLED { id } else { id - SPILLED })?;
            let row = Row { key, stamp: stamp(run.column_int(2)), encoding, value: &[] };
            step = visit(Seen { row, expire_at_ms });
        }
        Ok(step)
    }
}
