//! Rows in memory: what `:memory:` is, and the oracle that other engines are compared with.
//!
//! Duty: the plainest correct [`Engine`]: ordered maps under one lock.
//! Invariant: readers hold the lock for one snapshot, the writer for one transaction.
//! Never: keep the lock between calls.

mod feed;
mod fulltext;
mod messages;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};

use super::sqlite::PrivateIndexes;
use super::{
    Agenda, Backup, Checkpoint, Custody, Engine, FeedLog, ForeignWatch, GoesOn, Ordered, Reader,
    Report, Snapshot, Stats, Vacuumed, Work, Writer,
};
use crate::commit::{Base, Evaluation, Left, NewRow, OldRow};
use crate::model::{
    Change, DeadLetter, DeadOrder, Error, Key, Kind, QueueStats, Result, Row, Seen, Step,
    Versionstamp, Walk,
};
use messages::Messages;

/// A database in memory; every [`MemoryEngine::new`] is another one.
#[derive(Clone, Default)]
pub struct MemoryEngine(Arc<RwLock<Tables>>);

#[derive(Default)]
struct Tables {
    version: u64,
    /// The last commit that removed something.
    removed: u64,
    feed: Option<feed::Log>,
    rows: BTreeMap<Key, NewRow>,
    expiries: BTreeSet<(i64, Key)>,
    messages: Messages,
    last_uuid: Option<u128>,
    /// Made with the first index. A lock of its own, since SQLite is used by one thread at a time.
    indexes: Mutex<Option<PrivateIndexes>>,
}

fn alive(row: &NewRow, now_ms: i64) -> bool {
    row.expire_at_ms.is_none_or(|end| end > now_ms)
}

impl MemoryEngine {
    /// An empty database.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }
}

impl Custody for MemoryEngine {
    fn backup(&self, _to: &Path, _step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup> {
        Err(Error::new(Kind::Unsupported, "a database in memory has no file: export it instead"))
    }

    fn check(&self, _findings_max: usize) -> Result<Vec<String>> {
        Ok(Vec::new())
    }
}

impl Engine for MemoryEngine {
    type Reader = MemoryReader;
    type Writer = MemoryWriter;

    fn reader(&self) -> Result<MemoryReader> {
        Ok(MemoryReader { tables: self.0.clone(), waits: true })
    }

    fn writer(&self) -> Result<MemoryWriter> {
        Ok(MemoryWriter(self.0.clone()))
    }

    fn watch_foreign(&self, _wake: Box<dyn Fn() + Send>) -> Result<Option<ForeignWatch>> {
        Ok(None)
    }
}

/// Reads rows in memory.
pub struct MemoryReader {
    tables: Arc<RwLock<Tables>>,
    /// Whether it waits for a transaction that is under way.
    waits: bool,
}

impl Reader for MemoryReader {
    fn read(
        &mut self,
        now_ms: i64,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        let tables = match self.waits {
            // A transaction that waits for a search is not waited for. One thread reads like this, so
            // transactions have their turn.
            true => self.tables.read_recursive(),
            false => self.tables.try_read().ok_or_else(|| {
                Error::new(Kind::Unavailable, "a transaction is under way; read again")
            })?,
        };
        job(&mut MemorySnapshot { tables: &tables, now_ms, goes_on: None })
    }

    fn read_while(
        &mut self,
        now_ms: i64,
        goes_on: &GoesOn,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        let tables = self.tables.read();
        job(&mut MemorySnapshot { tables: &tables, now_ms, goes_on: Some(goes_on) })
    }

    fn release(&mut self) {}

    fn never_wait(&mut self) -> Result<()> {
        self.waits = false;
        Ok(())
    }
}

struct MemorySnapshot<'t> {
    tables: &'t Tables,
    now_ms: i64,
    /// Asked while a search goes on.
    goes_on: Option<&'t GoesOn>,
}

impl Snapshot for MemorySnapshot<'_> {
    fn stats(&mut self, count: bool) -> Result<Stats> {
        let alive = || self.tables.rows.values().filter(|row| alive(row, self.now_ms)).count();
        Ok(Stats {
            entries: count.then(|| alive() as u64),
            database_bytes: 0,
            log_bytes: 0,
            page_bytes: 0,
            free_pages: 0,
            stamp: Versionstamp::new(self.tables.version),
        })
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        walk_rows(&self.tables.rows, self.now_ms, walk, visit);
        Ok(())
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        let found = self.tables.rows.get(key).filter(|row| alive(row, self.now_ms));
        if let Some(row) = found {
            visit(seen(key, row));
        }
        Ok(found.is_some())
    }

    fn feed(&mut self) -> Box<dyn FeedLog + '_> {
        let Tables { feed: log, version, removed, .. } = self.tables;
        Box::new(feed::LogView { log: log.as_ref(), version: *version, removed: *removed })
    }

    fn expiry(&mut self, key: &[u8]) -> Result<Option<Option<i64>>> {
        let found = self.tables.rows.get(key).filter(|row| alive(row, self.now_ms));
        Ok(found.map(|row| row.expire_at_ms))
    }

    fn scan(
        &mut self,
        start: &[u8],
        end: &[u8],
        reverse: bool,
        visit: &mut dyn FnMut(Row<'_>) -> bool,
    ) -> Result<()> {
        if start >= end {
            return Ok(());
        }
        let bounds = (Bound::Included(start), Bound::Excluded(end));
        let mut range = self.tables.rows.range::<[u8], _>(bounds);
        while let Some((key, row)) = if reverse { range.next_back() } else { range.next() } {
            if alive(row, self.now_ms) && !visit(seen(key.as_bytes(), row)) {
                break;
            }
        }
        Ok(())
    }

    fn queue_stats(&mut self, queue: &str) -> Result<QueueStats> {
        Ok(self.tables.messages.stats(queue, self.now_ms))
    }

    fn queues(&mut self, count_max: usize) -> Result<Vec<String>> {
        Ok(self.tables.messages.queues(count_max))
    }

    fn dead_letters(
        &mut self,
        queue: &str,
        after: (i64, i64),
        visit: &mut dyn FnMut(DeadLetter) -> bool,
    ) -> Result<()> {
        self.tables.messages.dead_letters(queue, after, self.now_ms, visit);
        Ok(())
    }

    fn dead_letter(&mut self, queue: &str, id: i64) -> Result<Option<DeadLetter>> {
        Ok(self.tables.messages.dead_letter(queue, id, self.now_ms))
    }
}

/// Walks over rows in memory; ended ones are absent.
fn walk_rows(
    rows: &BTreeMap<Key, NewRow>,
    now_ms: i64,
    walk: Walk<'_>,
    visit: &mut dyn FnMut(Seen<'_>) -> Step,
) {
    let (mut start, mut end) = (walk.start.to_vec(), walk.end.to_vec());
    while start < end {
        let bounds = (Bound::Included(start.as_slice()), Bound::Excluded(end.as_slice()));
        let mut range = rows.range::<[u8], _>(bounds);
        let sought = loop {
            let next = if walk.reverse { range.next_back() } else { range.next() };
            let Some((key, row)) = next else { return };
            if !alive(row, now_ms) {
                continue;
            }
            let mut row_seen = seen(key.as_bytes(), row);
            if !walk.values {
                row_seen.value = &[];
            }
            match visit(Seen { row: row_seen, expire_at_ms: row.expire_at_ms }) {
                Step::Next => {}
                Step::Seek(to) => break to,
                Step::Stop => return,
            }
        };
        *(if walk.reverse { &mut end } else { &mut start }) = sought;
    }
}

fn seen<'a>(key: &'a [u8], row: &'a NewRow) -> Row<'a> {
    Row {
        key,
        stamp: Versionstamp::new(row.version),
        encoding: row.value.encoding,
        value: &row.value.bytes,
    }
}

/// Writes rows in memory.
pub struct MemoryWriter(Arc<RwLock<Tables>>);

impl Writer for MemoryWriter {
    fn apply(&mut self, work: Work, now_ms: i64, _deadline: Instant) -> Result<Report> {
        let mut tables = self.0.write();
        let begun = Instant::now();
        let mut report = Report::default();
        let tables = &mut *tables;
        let version = tables.version;

        let mut base = MemoryBase { rows: &tables.rows, now_ms, last_uuid: tables.last_uuid };
        let mut evaluation = Evaluation::new(&mut base, version, now_ms).seeded(work.seed);
        if tables.feed.is_some() {
            evaluation.keep_changes();
        }
        evaluation.reserve(work.writes.len());
        for write in work.writes {
            report.decisions.push(evaluation.decide(write)?);
        }
        // Nothing is changed before the last thing that can fail.
        let mut dead = tables.messages.settle(&work.settlements, now_ms, &mut report);
        // Before any lock is lost: whoever renews one, however late, is there.
        report.renewed = tables.messages.renew(&work.renewals, now_ms);
        for claim in &work.claims {
            dead.extend(tables.messages.fail_lost(&claim.queue, now_ms, &mut report));
        }
        for (keys, value) in dead {
            evaluation.deposit(keys, &value);
        }
        tables.version = evaluation.version();
        tables.last_uuid = evaluation.last_uuid().or(tables.last_uuid);
        tables.removed = evaluation.removed_version().unwrap_or(tables.removed);
        let mut changes = evaluation.take_changes();
        let (rows, messages) = evaluation.into_effects();
        tables.tell_indexes(PrivateIndexes::begin);
        for (key, left) in rows {
            if let Some(end) = left.expire_at_ms() {
                report.expiry_ms = Some(report.expiry_ms.map_or(end, |at| at.min(end)));
            }
            report.touched.push(key.clone());
            tables.leave(key, left);
        }
        report.queued |= !messages.is_empty();
        for (write, message) in messages {
            report.enqueued(write, tables.messages.enqueue(message, now_ms));
        }
        for claim in &work.claims {
            report.deliveries.push(tables.messages.claim(claim, now_ms));
        }
        let gone = tables.sweep(work.sweep_max, now_ms, &mut report);
        let swept = tables.version;
        report.purged = tables.messages.purge(work.purge_max, now_ms);
        tables.version += u64::from(report.put_back);
        report.versions = (version, tables.version);
        if let Some(log) = &mut tables.feed {
            let removed = |key| Change { key, version: swept, value: None };
            changes.extend(gone.into_iter().map(removed));
            log.log(changes, now_ms);
        }
        tables.tell_indexes(PrivateIndexes::commit);
        report.worked = begun.elapsed();
        Ok(report)
    }

    fn log_changes(&mut self, _deadline: Instant) -> Result<u64> {
        let mut tables = self.0.write();
        let (version, removed) = (tables.version, tables.removed);
        tables.feed.get_or_insert_with(|| feed::Log::starting_at(version, removed));
        Ok(version)
    }

    fn agenda(&mut self) -> Result<Agenda> {
        let mut tables: RwLockWriteGuard<'_, Tables> = self.0.write();
        Ok(Agenda {
            building: tables.building()?,
            expiry_ms: tables.expiries.first().map(|(at, _)| *at),
            purge_ms: tables.messages.earliest_purge(),
        })
    }

    fn message_agenda(&mut self, queue: &str) -> Result<Option<i64>> {
        Ok(self.0.read().messages.earliest(queue))
    }

    fn queue_depth(&mut self, queue: &str) -> Result<u64> {
        Ok(self.0.read().messages.depth(queue))
    }

    fn order_dead(
        &mut self,
        queue: &str,
        order: &DeadOrder,
        now_ms: i64,
        _deadline: Instant,
    ) -> Result<Ordered> {
        let tables = &mut *self.0.write();
        let before = tables.version;
        let count = tables.messages.order_dead(queue, order, now_ms);
        tables.version += u64::from(count > 0 && matches!(order, DeadOrder::Requeue(_)));
        Ok(Ordered { count, versions: (before, tables.version) })
    }

    fn vacuum(&mut self, _deadline: Instant) -> Result<Vacuumed> {
        Ok(Vacuumed::default())
    }

    fn checkpoint(&mut self) -> Result<Checkpoint> {
        Ok(Checkpoint::default())
    }
}

impl Tables {
    fn leave(&mut self, key: Key, left: Left) {
        match left {
            Left::Removed => self.put(key, None),
            Left::Stored(row) => self.put(key, Some(row)),
            Left::Retimed { expire_at_ms, .. } => self.retime(key, expire_at_ms),
        }
    }

    fn retime(&mut self, key: Key, expire_at_ms: Option<i64>) {
        let Some(row) = self.rows.get_mut(&key) else { return };
        let before = std::mem::replace(&mut row.expire_at_ms, expire_at_ms);
        if let Some(end) = before {
            self.expiries.remove(&(end, key.clone()));
        }
        if let Some(end) = expire_at_ms {
            self.expiries.insert((end, key));
        }
    }

    fn put(&mut self, key: Key, row: Option<NewRow>) {
        self.index(&key, row.as_ref());
        let end = row.as_ref().and_then(|row| row.expire_at_ms);
        let old = match row {
            Some(row) => self.rows.insert(key.clone(), row),
            None => self.rows.remove(&key),
        };
        if let Some(end) = old.and_then(|row| row.expire_at_ms) {
            self.expiries.remove(&(end, key.clone()));
        }
        if let Some(end) = end {
            self.expiries.insert((end, key));
        }
    }

    fn sweep(&mut self, max: usize, now_ms: i64, report: &mut Report) -> Vec<Key> {
        let mut swept = Vec::new();
        while swept.len() < max
            && let Some((end, key)) = self.expiries.first().cloned()
            && end <= now_ms
        {
            report.touched.push(key.clone());
            self.put(key.clone(), None);
            swept.push(key);
        }
        report.swept = swept.len();
        report.sweep_more = max > 0 && swept.len() == max;
        if !swept.is_empty() {
            self.version += 1;
            self.removed = self.version;
        }
        swept
    }
}

struct MemoryBase<'t> {
    rows: &'t BTreeMap<Key, NewRow>,
    now_ms: i64,
    last_uuid: Option<u128>,
}

impl Base for MemoryBase<'_> {
    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        walk_rows(self.rows, self.now_ms, walk, visit);
        Ok(())
    }

    fn last_uuid(&mut self) -> Result<Option<u128>> {
        Ok(self.last_uuid)
    }

    fn version(&mut self, key: &Key) -> Result<Option<u64>> {
        let row = self.rows.get(key).filter(|row| alive(row, self.now_ms));
        Ok(row.map(|row| row.version))
    }

    fn row(&mut self, key: &Key) -> Result<Option<OldRow>> {
        let row = self.rows.get(key).filter(|row| alive(row, self.now_ms));
        Ok(row.map(|NewRow { version, value, expire_at_ms }| OldRow {
            version: *version,
            value: value.clone(),
            expire_at_ms: *expire_at_ms,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A point read on JavaScript's thread waited for the transaction of another.
    #[test]
    fn who_must_not_wait_is_told_of_a_transaction() {
        let engine = MemoryEngine::new();
        let mut reader = engine.reader().unwrap();
        reader.never_wait().unwrap();
        let mut read = || reader.read(0, &mut |_| Ok(())).map_err(|error| error.kind());
        assert_eq!(read(), Ok(()));
        let transaction = engine.0.write();
        assert_eq!(read(), Err(Kind::Unavailable));
        drop(transaction);
        assert_eq!(read(), Ok(()));
    }
}
