//! The state of a file in an open read transaction.

use std::sync::Arc;

use rusqlite::Connection;

use super::cached_tree::{CachedTree, Cell, Column, Lookup};
use super::dead::{QueueReader, QueueView};
use super::feed::FeedExtent;
use super::fulltext;
use super::layout::SPILLED;
use super::measure::Measure;
use super::page_cache::CachedPages;
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
    /// Where `get` looks first.
    tree: Option<CachedTree>,
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
    pub(super) fn new(
        connection: &Connection,
        pages: Option<CachedPages>,
        file: Encoding,
    ) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        let get = prepare("SELECT v, v_encoding, version, expiration_ms FROM kv WHERE k = ?1")?;
        Ok(Self {
            tree: pages.map(|pages| KvRow::tree(pages, &get)).transpose()?,
            get,
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
        self.tree.iter_mut().for_each(CachedTree::begun);
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
        let mut found = false;
        self.entry(key, &mut |seen| {
            found = true;
            visit(seen.row);
        })?;
        Ok(found)
    }

    fn entry(&mut self, key: &[u8], visit: &mut dyn FnMut(Seen<'_>)) -> Result<()> {
        let (now_ms, spilled) = (self.now_ms, &mut self.spilled);
        let mut show = |row: KvRow<'_>| {
            if row.has_expired(now_ms) {
                return Ok(());
            }
            let expire_at_ms = row.expire_at_ms();
            row.show(key, spilled, |row| visit(Seen { row, expire_at_ms }))
        };
        match self.tree.as_mut().map_or(Lookup::Unknown, |tree| tree.find(key)) {
            Lookup::Cell(cell) => {
                if let Some(row) = KvRow::in_cell(&cell) {
                    return show(row);
                }
            }
            Lookup::Absent => return Ok(()),
            Lookup::Unknown => {}
        }
        let mut run = self.get.run().blob(1, key);
        if run.step()? {
            show(KvRow::of(&run))?;
        }
        drop(run);
        self.tree.iter_mut().for_each(CachedTree::read);
        Ok(())
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

/// The columns that [`KvRow::in_cell`] reads.
const COLUMNS: &str = "k,v,v_encoding,version,seq,expiration_ms";

/// A row of `kv`, from a statement or from a page.
pub(super) struct KvRow<'p> {
    /// Empty if `v` is the number of a row of `openkv_spill`.
    value: &'p [u8],
    /// That number.
    spilled: i64,
    encoding: i64,
    version: i64,
    expiration_ms: i64,
}

impl<'p> KvRow<'p> {
    /// The tree of the rows in cached pages; `beside` is a statement of the connection.
    fn tree(pages: CachedPages, beside: &Statement) -> Result<CachedTree> {
        CachedTree::new(pages, beside, "kv", COLUMNS)
    }

    /// The row of a query for `v, v_encoding, version, expiration_ms, …`.
    pub(super) fn of(run: &'p Run<'_, '_>) -> Self {
        let encoding = run.column_int(1);
        let is_spilled = encoding >= SPILLED;
        Self {
            value: if is_spilled { &[] } else { run.column_blob(0) },
            spilled: if is_spilled { run.column_int(0) } else { 0 },
            encoding,
            version: run.column_int(2),
            expiration_ms: run.column_int(3),
        }
    }

    /// The row in a cell of the tree of `kv`; `None` if it is not as openkv and Deno write it.
    fn in_cell(cell: &Cell<'p>) -> Option<Self> {
        use Column::{Blob, Integer};
        let [v, Integer(encoding), Integer(version), _seq, Integer(expiration_ms)] =
            cell.columns()?
        else {
            return None;
        };
        let (value, spilled) = match v {
            Blob(value) if encoding < SPILLED => (value, 0),
            Integer(number) if encoding >= SPILLED => (&[][..], number),
            Blob(_) | Integer(_) => return None,
        };
        Some(Self { value, spilled, encoding, version, expiration_ms })
    }

    /// When it expires, if it does.
    pub(super) fn expire_at_ms(&self) -> Option<i64> {
        (self.expiration_ms >= 0).then_some(self.expiration_ms)
    }

    pub(super) fn has_expired(&self, now_ms: i64) -> bool {
        self.expire_at_ms().is_some_and(|end| end <= now_ms)
    }

    /// Passes the entry to a visitor and returns its answer.
    pub(super) fn show<T>(
        &self,
        key: &[u8],
        spilled: &mut Statement,
        visit: impl FnOnce(Row<'_>) -> T,
    ) -> Result<T> {
        let stamp = stamp(self.version);
        if self.encoding < SPILLED {
            let (encoding, value) = shown(encoding(self.encoding)?, self.value);
            return Ok(visit(Row { key, stamp, encoding, value: &value }));
        }
        // This calls SQLite, which may change pages: nothing of the row is in one but `value`, which is empty.
        let encoding = encoding(self.encoding - SPILLED)?;
        let mut side = spilled.run().int(1, self.spilled);
        side.row("a value in openkv_spill")?;
        Ok(visit(Row { key, stamp, encoding, value: side.column_blob(0) }))
    }
}
