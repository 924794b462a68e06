//! Rows in memory: the engine of `:memory:`, and the reference for tests of other engines.
//!
//! Duty: the simplest correct [`Engine`]: ordered maps under one lock.
//! Invariant: readers hold the lock for one snapshot, the writer for one transaction.
//! Never: keep the lock between calls.

mod followed;
mod fulltext;
mod messages;
mod replication;
mod transaction;
mod value_index;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::{Mutex, RwLock, RwLockWriteGuard};
use uuid::Uuid;

use super::replication::extent::FOR_FEEDS;
use super::replication::only_entries;
use super::sqlite::PrivateIndexes;
use super::{
    DeadLettersChanged, Engine, FeedState, GoesOn, Maintenance, NextDeadlines, NextEntries,
    Progress, Queues, Reader, ReplicationLog, Report, Snapshot, Work, Writer,
};
use messages::{Messages, QueueReader};
use openkv_core::commit::{NewRow, batch, replay};
use openkv_core::model::{
    Backup, Capabilities, Capability, DeadLetterChange, Error, Followed, Key, LogSegment,
    LogSettings, MessageDeletion, Moment, Origin, QueueChange, QueueChanged, Replacement, Result,
    Row, Seen, Stats, Step, Versionstamp, Walk,
};
use transaction::MemoryTransaction;
use value_index::ValueIndexes;

/// A database in memory; each [`MemoryEngine::new`] creates a separate one.
#[derive(Clone, Default)]
pub struct MemoryEngine(Arc<RwLock<Tables>>);

#[derive(Default)]
struct Tables {
    version: u64,
    /// The last commit that removed an entry.
    removed: u64,
    /// The log, if it is on.
    log: Option<replication::Log>,
    /// The database that it follows.
    followed: Option<Followed>,
    rows: BTreeMap<Key, NewRow>,
    expiries: BTreeSet<(i64, Key)>,
    messages: Messages,
    last_uuid: Option<Uuid>,
    values: ValueIndexes,
    /// Created with the first index. It has its own lock, because a SQLite connection serves one
    /// thread at a time.
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

    /// An empty database whose value indexes have a defect.
    #[cfg(feature = "defects")]
    #[must_use]
    pub fn with_defect(defect: openkv_core::index::IndexDefect) -> Self {
        let engine = Self::default();
        engine.0.write().values.defect = Some(defect);
        engine
    }
}

impl Maintenance for MemoryEngine {
    fn backup(&self, _to: &Path, _step: &mut dyn FnMut(u64, u64) -> bool) -> Result<Backup> {
        Err(Capabilities::MEMORY.refusal(Capability::Backup))
    }
}

impl Engine for MemoryEngine {
    type Reader = MemoryReader;
    type Writer = MemoryWriter;

    fn capabilities(&self) -> Capabilities {
        Capabilities::MEMORY
    }

    fn reader(&self) -> Result<MemoryReader> {
        Ok(MemoryReader { tables: self.0.clone(), waits: true, past: None })
    }

    fn reader_at(&self, moment: Moment) -> Result<MemoryReader> {
        Ok(MemoryReader { past: Some(Past { moment, rows: None }), ..self.reader()? })
    }

    fn writer(&self) -> Result<MemoryWriter> {
        Ok(MemoryWriter(self.0.clone()))
    }
}

/// Reads rows in memory.
pub struct MemoryReader {
    tables: Arc<RwLock<Tables>>,
    /// Whether it waits for a transaction in progress.
    waits: bool,
    /// The moment that it reads instead of the present.
    past: Option<Past>,
}

/// A moment of the past, and its entries once they were read: they do not change.
struct Past {
    moment: Moment,
    rows: Option<BTreeMap<Key, NewRow>>,
}

/// Runs a job on the present entries, or on those of the past.
fn run(
    tables: &Tables,
    past: Option<&mut Past>,
    now_ms: i64,
    goes_on: Option<&GoesOn>,
    job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
) -> Result<()> {
    let Some(Past { moment, rows }) = past else {
        let rows = &tables.rows;
        return job(&mut MemorySnapshot { tables, rows, past: None, now_ms, goes_on });
    };
    tables.reaches(*moment)?;
    let rows = rows.get_or_insert_with(|| tables.rows_at(*moment));
    let (past, now_ms) = (Some(*moment), moment.at_ms);
    job(&mut MemorySnapshot { tables, rows, past, now_ms, goes_on })
}

impl Reader for MemoryReader {
    fn read_within(
        &mut self,
        now_ms: i64,
        goes_on: Option<&GoesOn>,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        let tables = match (self.waits, goes_on) {
            (_, Some(_)) => self.tables.read(),
            // A recursive read lock does not queue behind a waiting writer, whose transaction
            // itself may wait for a search. Only one thread reads like this, so transactions are
            // not starved.
            (true, None) => self.tables.read_recursive(),
            (false, None) => self
                .tables
                .try_read()
                .ok_or_else(|| Error::unavailable("a transaction is under way; read again"))?,
        };
        run(&tables, self.past.as_mut(), now_ms, goes_on, job)
    }

    fn never_wait(&mut self) -> Result<()> {
        self.waits = false;
        Ok(())
    }
}

struct MemorySnapshot<'t> {
    tables: &'t Tables,
    /// The entries: the present ones, or those of a moment of the past.
    rows: &'t BTreeMap<Key, NewRow>,
    past: Option<Moment>,
    now_ms: i64,
    /// Checked during a search.
    goes_on: Option<&'t GoesOn>,
}

impl MemorySnapshot<'_> {
    /// The entry of a key that has not expired.
    fn alive(&self, key: &[u8]) -> Option<&NewRow> {
        self.rows.get(key).filter(|row| alive(row, self.now_ms))
    }

    /// Passes for the present, which has more than entries.
    fn is_present(&self, what: &str) -> Result<()> {
        if self.past.is_none() { Ok(()) } else { Err(only_entries(what)) }
    }
}

impl Snapshot for MemorySnapshot<'_> {
    fn stats(&mut self) -> Result<Stats> {
        Ok(Stats {
            stamp: Versionstamp::new(self.past.map_or(self.tables.version, |past| past.version)),
            ..Stats::default()
        })
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        walk_rows(self.rows, self.now_ms, walk, visit);
        Ok(())
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        Ok(self.alive(key).map(|row| visit(seen(key, row))).is_some())
    }

    fn feed_state(&mut self) -> Result<FeedState> {
        Ok(match self.past {
            Some(Moment { version, .. }) => FeedState::of_past(version),
            None => self.tables.feed_state(),
        })
    }

    fn log(&mut self) -> Result<Box<dyn ReplicationLog + '_>> {
        self.is_present("history")?;
        Ok(Box::new(replication::LogView(self.tables)))
    }

    fn expiry(&mut self, key: &[u8]) -> Result<Option<Option<i64>>> {
        let found = self.alive(key);
        Ok(found.map(|row| row.expire_at_ms))
    }

    fn queues(&mut self) -> Result<Box<dyn Queues + '_>> {
        self.is_present("queues")?;
        Ok(Box::new(QueueReader { messages: &self.tables.messages, now_ms: self.now_ms }))
    }
}

/// Visits rows in memory in the order of their keys; expired ones are absent.
pub fn walk_rows(
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
    fn begin(&mut self, mut work: Work, now_ms: i64, _deadline: Instant) -> Result<Progress> {
        let tables = &mut *self.0.write();
        let started = Instant::now();
        // There is no disk to sync, so expired locks fail at once.
        work.durable = true;
        let begun = tables.begun(tables.version, now_ms);
        tables.tell_indexes(PrivateIndexes::begin);
        let done = batch::run(&mut MemoryTransaction { tables, now_ms }, &begun, work);
        tables.tell_indexes(PrivateIndexes::commit);
        done.map(|report| Progress::Done(Report { worked: started.elapsed(), ..report }))
    }

    /// Unless a reader is at work.
    fn begin_at_once(&mut self, _durable: bool) -> bool {
        self.0.try_write().is_some()
    }

    fn log_changes(&mut self, origin: Origin, now_ms: i64, _deadline: Instant) -> Result<u64> {
        let mut tables = self.0.write();
        if tables.log.is_none() {
            tables.set_log(&FOR_FEEDS, origin, now_ms);
        }
        Ok(tables.version)
    }

    fn set_log(
        &mut self,
        settings: &LogSettings,
        origin: Origin,
        now_ms: i64,
        _deadline: Instant,
    ) -> Result<u64> {
        let mut tables = self.0.write();
        tables.set_log(settings, origin, now_ms);
        Ok(tables.version)
    }

    fn replay(&mut self, segment: LogSegment<'_>, _deadline: Instant) -> Result<Report> {
        let tables = &mut *self.0.write();
        let now_ms = segment.at_ms;
        let begun = tables.begun(tables.version, now_ms);
        tables.tell_indexes(PrivateIndexes::begin);
        let done = replay::run(&mut MemoryTransaction { tables, now_ms }, &begun, segment);
        tables.tell_indexes(PrivateIndexes::commit);
        done
    }

    fn followed(&mut self) -> Result<Option<Followed>> {
        Ok(self.0.read().followed.clone())
    }

    fn follow(
        &mut self,
        after: &Followed,
        segments: &[LogSegment<'_>],
        _deadline: Instant,
    ) -> Result<Report> {
        self.0.write().follow(after, segments)
    }

    fn replace_all(
        &mut self,
        replacement: &Replacement,
        entries: NextEntries<'_>,
        _deadline: Instant,
    ) -> Result<Report> {
        // Readers wait for the exchange, not for the entries.
        let rows = followed::collect(entries)?;
        self.0.write().replace_all(replacement, rows)
    }

    fn next_deadlines(&mut self) -> Result<NextDeadlines> {
        let mut tables: RwLockWriteGuard<'_, Tables> = self.0.write();
        Ok(NextDeadlines {
            building: tables.building()? || tables.values.is_building(),
            expiry_ms: tables.expiries.first().map(|(at, _)| *at),
            purge_ms: tables.messages.earliest_purge(),
        })
    }

    fn next_message_ms(&mut self, queue: &str) -> Result<Option<i64>> {
        Ok(self.0.read().messages.earliest(queue))
    }

    fn queue_depth(&mut self, queue: &str) -> Result<u64> {
        Ok(self.0.read().messages.depth(queue))
    }

    fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
        _deadline: Instant,
    ) -> Result<DeadLettersChanged> {
        let tables = &mut *self.0.write();
        let before = tables.version;
        let (changed, beside) = tables.messages.change_dead_letters(queue, change, now_ms)?;
        let requeued = change.requeues();
        tables.log_messages(&[&changed[..], &beside].concat(), requeued, now_ms)?;
        Ok(DeadLettersChanged { count: changed.len(), versions: (before, tables.version) })
    }

    fn delete_message(
        &mut self,
        queue: &str,
        id: i64,
        now_ms: i64,
        _deadline: Instant,
    ) -> Result<MessageDeletion> {
        let tables = &mut *self.0.write();
        let (deletion, beside) = tables.messages.delete_waiting(queue, id, now_ms)?;
        if deletion == MessageDeletion::Deleted {
            let admits = !beside.is_empty();
            tables.log_messages(&[&[id][..], &beside].concat(), admits, now_ms)?;
        }
        Ok(deletion)
    }

    fn bound_times(&mut self, queue: &str, now_ms: i64, _deadline: Instant) -> Result<()> {
        let tables = &mut *self.0.write();
        let changed = tables.messages.bound_times(queue, now_ms)?;
        if !changed.is_empty() {
            tables.log_messages(&changed, false, now_ms)?;
        }
        Ok(())
    }

    fn change_queue(
        &mut self,
        queue: &str,
        change: QueueChange,
        now_ms: i64,
        _deadline: Instant,
    ) -> Result<QueueChanged> {
        let tables = &mut *self.0.write();
        let before = tables.version;
        let (ids, beside) = tables.messages.change_queue(queue, change, now_ms)?;
        tables.log_messages(&[&ids[..], &beside].concat(), true, now_ms)?;
        Ok(QueueChanged { ids, versions: (before, tables.version) })
    }
}

impl Tables {
    /// The entry of a key that has not expired.
    fn alive(&self, key: &[u8], now_ms: i64) -> Option<&NewRow> {
        self.rows.get(key).filter(|row| alive(row, now_ms))
    }

    fn set_expiry(&mut self, key: Key, expire_at_ms: Option<i64>) {
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
        if !self.values.is_empty() {
            self.values.changed(&key, self.rows.get(&key), row.as_ref());
        }
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
}

#[cfg(test)]
mod tests {
    use super::*;
    use openkv_core::model::Kind;

    /// A point read on JavaScript's thread once waited for a transaction of another thread.
    #[test]
    fn a_reader_that_never_waits_fails_during_a_transaction() {
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
