//! One point in time of a database.
//!
//! Entries that a read names beforehand are fetched by one statement, which is one snapshot by itself. Any other
//! look-up opens a REPEATABLE READ transaction that lasts until the read ends.

use std::sync::Arc;

use super::Shared;
use super::cells::Cells;
use super::database::missing;
use super::indexes;
use super::link::Link;
use super::pages::{PageRequest, page, seen, walk_pages};
use super::prefetch::{Prefetched, fits};
use super::queues::QueueReader;
use super::read_transaction::{begin_read, end_read, size};
use super::replication::{self, LogReader};
use super::{value_entries, value_index};
use crate::{FeedState, Finder, GoesOn, Queues, ReplicationLog, Snapshot};
use openkv_core::index::ValueIndex;
use openkv_core::model::{
    BEFORE_EXPIRY_MS, Capabilities, Capability, Error, HitVisitor, IndexInfo, Kind, Needs, Result,
    Row, Search, Seen, Sharing, Stats, Step, ValueIndexState, Versionstamp, Walk,
};

/// The first statement of the transaction takes the snapshot.
const NOW: &str = "\
SELECT version, indexes, greatest(clock_ms, coalesce($2::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8)) AS clock_ms \
FROM openkv.databases WHERE id = $1";

/// A read of the database.
pub(super) struct PostgresSnapshot {
    shared: Arc<Shared>,
    /// The time to use instead of the server's.
    now_ms: Option<i64>,
    goes_on: Option<GoesOn>,
    prefetched: Option<Prefetched>,
    open: Option<Open>,
}

/// A transaction of a read.
struct Open {
    link: Link,
    version: i64,
    /// How often the list of value indexes has changed.
    indexes: i64,
    now_ms: i64,
}

impl PostgresSnapshot {
    pub(super) fn new(shared: Arc<Shared>, now_ms: Option<i64>, goes_on: Option<GoesOn>) -> Self {
        Self { shared, now_ms, goes_on, prefetched: None, open: None }
    }

    /// Ends the transaction, if there is one.
    pub(super) fn end(self) {
        if let Some(Open { link, .. }) = self.open {
            end_read(link);
        }
    }

    /// The open transaction.
    fn open(&mut self) -> Result<&Open> {
        if self.goes_on.as_ref().is_some_and(|goes_on| !goes_on()) {
            return Err(Error::new(Kind::Unavailable, "the call was ended; nothing was done"));
        }
        if self.open.is_none() {
            let open = self.begin()?;
            if self.prefetched.as_ref().is_some_and(|known| known.version != open.version) {
                let why = "the database changed during a read of two steps; read again";
                return Err(Error::new(Kind::Unavailable, why));
            }
            self.open = Some(open);
        }
        self.open.as_ref().ok_or_else(Error::closed)
    }

    fn begin(&self) -> Result<Open> {
        let (link, rows) = begin_read(&self.shared, (NOW, vec![&self.shared.db, &self.now_ms]))?;
        let cells = Cells::of("databases", rows.first().ok_or_else(missing)?);
        let (version, indexes, clock_ms) = (cells.get(0)?, cells.get(1)?, cells.get(2)?);
        let now_ms = if self.has_expired() { BEFORE_EXPIRY_MS } else { clock_ms };
        Ok(Open { link, version, indexes, now_ms })
    }

    /// Whether it has entries that have expired.
    fn has_expired(&self) -> bool {
        self.now_ms == Some(BEFORE_EXPIRY_MS)
    }
}

impl Snapshot for PostgresSnapshot {
    fn prefetch(&mut self, needs: Needs<'_>) -> Result<()> {
        if !fits(&needs) || self.has_expired() {
            return Ok(());
        }
        self.prefetched = Some(match &self.open {
            None => Prefetched::fetch(&self.shared, self.now_ms, needs)?,
            Some(Open { link, now_ms, .. }) => {
                Prefetched::fetch_within(link, self.shared.db, *now_ms, needs)?
            }
        });
        Ok(())
    }

    fn scan(
        &mut self,
        start: &[u8],
        end: &[u8],
        reverse: bool,
        visit: &mut dyn FnMut(Row<'_>) -> bool,
    ) -> Result<()> {
        let mut walk = Walk { start, end, reverse, values: true };
        let mut bound = None;
        if let Some(span) = self.prefetched.as_ref().and_then(|known| known.span(&walk)) {
            for row in &span.rows {
                if !visit(seen(row)?.row) {
                    return Ok(());
                }
            }
            match span.rest()? {
                None => return Ok(()),
                rest => bound = rest,
            }
        }
        if let Some(bound) = &bound {
            *(if reverse { &mut walk.end } else { &mut walk.start }) = bound;
        }
        self.walk(walk, &mut |seen| if visit(seen.row) { Step::Next } else { Step::Stop })
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        let key = walk.end.strip_suffix(&[0]).filter(|key| *key == walk.start);
        if let Some(found) = key.and_then(|key| self.prefetched.as_ref()?.entry(key)) {
            if let Some(row) = found {
                visit(seen(row)?);
            }
            return Ok(());
        }
        let db = self.shared.db;
        let mut next = |request: &PageRequest| {
            let open = self.open()?;
            page(&open.link, db, open.now_ms, request)
        };
        walk_pages(walk, &mut next, visit)
    }

    fn stats(&mut self) -> Result<Stats> {
        let open = self.open()?;
        size(&open.link, Versionstamp::new(open.version.cast_unsigned()))
    }

    fn sharing(&mut self) -> Result<Option<Sharing>> {
        let version = self.open()?.version.cast_unsigned();
        Ok(Some(self.shared.sharing(version)))
    }

    fn feed_state(&mut self) -> Result<FeedState> {
        let db = self.shared.db;
        replication::feed_state(&self.open()?.link, db)
    }

    fn log(&mut self) -> Result<Box<dyn ReplicationLog + '_>> {
        let db = self.shared.db;
        let Open { link, version, now_ms, .. } = self.open()?;
        Ok(Box::new(LogReader { link, db, version: *version, now_ms: *now_ms }))
    }

    fn queues(&mut self) -> Result<Box<dyn Queues + '_>> {
        let db = self.shared.db;
        let open = self.open()?;
        Ok(Box::new(QueueReader { link: &open.link, db, now_ms: open.now_ms }))
    }
}

impl Finder for PostgresSnapshot {
    fn indexes(&mut self, _count: bool) -> Result<Vec<IndexInfo>> {
        let db = self.shared.db;
        indexes::list(&self.open()?.link, db)
    }

    fn value_indexes(&mut self) -> Result<Arc<[ValueIndex]>> {
        let shared = self.shared.clone();
        let Open { link, indexes, .. } = self.open()?;
        let list = || value_index::read(&link.query((value_index::LIST, vec![&shared.db]))?);
        let known = shared.value_indexes.of_snapshot(*indexes, list)?;
        // How far they are is not counted as a change of the list.
        match known.iter().any(|index| index.info.state == ValueIndexState::Building) {
            true => Ok(list()?.into()),
            false => Ok(known),
        }
    }

    fn walk_index(
        &mut self,
        id: i64,
        range: (&[u8], &[u8]),
        reverse: bool,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let db = self.shared.db;
        value_entries::walk(&self.open()?.link, (db, id), range, reverse, visit)
    }

    fn search(&mut self, _search: &Search, _visitor: &mut dyn HitVisitor) -> Result<IndexInfo> {
        Err(Capabilities::POSTGRES.refusal(Capability::FullTextSearch))
    }
}
