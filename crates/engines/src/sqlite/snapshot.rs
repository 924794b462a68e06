//! The state of a file in an open read transaction.

use std::sync::Arc;

use rusqlite::Connection;

use super::dead::{QueueReader, QueueView};
use super::feed::FeedExtent;
use super::fulltext;
use super::layout::SPILLED;
use super::measure::Measure;
use super::replication_log::LogReader;
use super::statement::{Run, Statement};
use super::value_index::ValueReader;
use super::values::{encoding, shown, stamp};
use super::walk::Walker;
use crate::{FeedState, Finder, Queues, ReplicationLog, Snapshot};
use openkv_core::index::ValueIndex;
use openkv_core::model::{
    Encoding, HitVisitor, IndexInfo, Result, Row, Search, Seen, Stats, Step, Walk,
};

/// The statements that read entries and messages.
pub(super) struct ReadStatements {
    pub(super) get: Statement,
    pub(super) spilled: Statement,
    expiry: Statement,
    feed: FeedExtent,
    log: Option<LogReader>,
    pub(super) walker: Walker,
    queues: QueueReader,
    /// The format of the file's values.
    file: Encoding,
    measure: Measure,
    values: ValueReader,
    pub(super) now_ms: i64,
}

impl ReadStatements {
    pub(super) fn new(connection: &Connection, file: Encoding) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            get: prepare("SELECT v, v_encoding, version, expiration_ms FROM kv WHERE k = ?1")?,
            spilled: prepare("SELECT v FROM openkv_spill WHERE id = ?1")?,
            expiry: prepare("SELECT expiration_ms FROM kv WHERE k = ?1")?,
            feed: FeedExtent::new(connection, file)?,
            log: None,
            walker: Walker::new(connection)?,
            queues: QueueReader::new(file == Encoding::V8),
            file,
            measure: Measure::new(connection)?,
            values: ValueReader::default(),
            now_ms: 0,
        })
    }
}

impl ReadStatements {
    /// A read transaction has begun: what was kept of the one before is not of this one.
    pub(super) fn begun(&mut self) {
        self.values.begun();
    }
}

impl Finder for ReadStatements {
    fn indexes(&mut self, count: bool) -> Result<Vec<IndexInfo>> {
        let prepare = |sql: &str| self.get.beside(sql);
        if count {
            return fulltext::counted(&prepare);
        }
        Ok(fulltext::list(&prepare)?.into_iter().map(|(_, info)| info).collect())
    }

    fn value_indexes(&mut self) -> Result<Arc<[ValueIndex]>> {
        Ok(self.values.catalog(&self.get)?.shared())
    }

    fn walk_index(
        &mut self,
        id: i64,
        range: (&[u8], &[u8]),
        reverse: bool,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        self.values.walk(id, range, reverse, visit)
    }

    fn search(&mut self, search: &Search, visitor: &mut dyn HitVisitor) -> Result<IndexInfo> {
        let any = self.spilled.beside("SELECT 1")?;
        fulltext::search(
            &|sql| any.beside(sql),
            search,
            &mut |key, visit| self.get(key, visit),
            visitor,
        )
    }
}

impl Snapshot for ReadStatements {
    fn stats(&mut self) -> Result<Stats> {
        self.measure.stats()
    }

    fn kept_metrics(&mut self) -> Result<Option<String>> {
        self.measure.kept_metrics()
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        let mut run = self.get.run().blob(1, key);
        if !run.step()? || expired(&run, self.now_ms) {
            return Ok(false);
        }
        show(&run, key, &mut self.spilled, &mut |row| {
            visit(row);
            true
        })
    }

    fn entry(&mut self, key: &[u8], visit: &mut dyn FnMut(Seen<'_>)) -> Result<()> {
        let mut run = self.get.run().blob(1, key);
        if !run.step()? || expired(&run, self.now_ms) {
            return Ok(());
        }
        let ends = run.column_int(3);
        show(&run, key, &mut self.spilled, &mut |row| {
            visit(Seen { row, expire_at_ms: (ends >= 0).then_some(ends) });
            true
        })
        .map(drop)
    }

    fn feed_state(&mut self) -> Result<FeedState> {
        self.feed.read()
    }

    fn log(&mut self) -> Result<Box<dyn ReplicationLog + '_>> {
        Ok(Box::new(LogReader::kept(&mut self.log, &self.get, self.file)?))
    }

    fn expiry(&mut self, key: &[u8]) -> Result<Option<Option<i64>>> {
        let mut run = self.expiry.run().blob(1, key);
        if !run.step()? {
            return Ok(None);
        }
        let end = run.column_int(0);
        Ok(if end < 0 { Some(None) } else { (end > self.now_ms).then_some(Some(end)) })
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        self.walker.walk(walk, self.now_ms, visit)
    }

    fn queues(&mut self) -> Result<Box<dyn Queues + '_>> {
        let (reader, on, now_ms) = (&mut self.queues, &self.get, self.now_ms);
        Ok(Box::new(QueueView { reader, on, now_ms }))
    }
}

pub(super) fn expired(run: &Run<'_, '_>, now_ms: i64) -> bool {
    let end = run.column_int(3);
    end >= 0 && end <= now_ms
}

/// Passes the current row of a query for `v, v_encoding, version, …` to a visitor and returns its
/// answer.
pub(super) fn show(
    run: &Run<'_, '_>,
    key: &[u8],
    spilled: &mut Statement,
    visit: &mut dyn FnMut(Row<'_>) -> bool,
) -> Result<bool> {
    let id = run.column_int(1);
    let stamp = stamp(run.column_int(2));
    if id < SPILLED {
        let (encoding, value) = shown(encoding(id)?, run.column_blob(0));
        return Ok(visit(Row { key, stamp, encoding, value: &value }));
    }
    let encoding = encoding(id - SPILLED)?;
    let mut side = spilled.run().int(1, run.column_int(0));
    side.row("a value in openkv_spill")?;
    Ok(visit(Row { key, stamp, encoding, value: side.column_blob(0) }))
}
