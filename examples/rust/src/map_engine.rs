//! An engine of a few lines: entries in a map, without queues, logs and search.
//!
//! [`batch::run`] decides the writes; an engine holds rows. Everything else has a default that refuses.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use openkv_core::commit::{
    Base, Begun, EntryTable, MessageTable, NewRow, OldRow, RowEffect, Transaction, Work, batch,
};
use openkv_core::model::{Capabilities, Key, Result, Seen, Stats, Step, Versionstamp, Walk};
use openkv_engines::memory::walk_rows;
use openkv_engines::{
    Engine, Finder, GoesOn, Indexer, Maintenance, NextDeadlines, NoMessages, Progress, Reader,
    Snapshot, Writer,
};
use parking_lot::Mutex;
use uuid::Uuid;

/// A database in a map.
#[derive(Clone, Default)]
pub(crate) struct MapEngine(Arc<Mutex<Tables>>);

#[derive(Default)]
struct Tables {
    version: u64,
    rows: BTreeMap<Key, NewRow>,
    last_uuid: Option<Uuid>,
}

impl Maintenance for MapEngine {}

impl Engine for MapEngine {
    type Reader = Self;
    type Writer = Self;

    fn capabilities(&self) -> Capabilities {
        Capabilities::MEMORY
    }

    fn reader(&self) -> Result<Self> {
        Ok(self.clone())
    }

    fn writer(&self) -> Result<Self> {
        Ok(self.clone())
    }
}

impl Reader for MapEngine {
    fn read_within(
        &mut self,
        now_ms: i64,
        _goes_on: Option<&GoesOn>,
        job: &mut dyn FnMut(&mut dyn Snapshot) -> Result<()>,
    ) -> Result<()> {
        job(&mut View { tables: &mut self.0.lock(), now_ms })
    }
}

/// The tables at a time: a snapshot, or an open transaction.
struct View<'t> {
    tables: &'t mut Tables,
    now_ms: i64,
}

impl Finder for View<'_> {}

impl Snapshot for View<'_> {
    fn stats(&mut self) -> Result<Stats> {
        Ok(Stats { stamp: Versionstamp::new(self.tables.version), ..Stats::default() })
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        walk_rows(&self.tables.rows, self.now_ms, walk, visit);
        Ok(())
    }
}

impl Indexer for MapEngine {}

impl Writer for MapEngine {
    fn begin(&mut self, work: Work, now_ms: i64, _deadline: Instant) -> Result<Progress> {
        let tables = &mut *self.0.lock();
        let begun = Begun { version: tables.version, now_ms, ..Begun::default() };
        let mut open = Open { view: View { tables, now_ms }, none: NoMessages };
        batch::run(&mut open, &begun, work).map(Progress::Done)
    }

    fn next_deadlines(&mut self) -> Result<NextDeadlines> {
        let expiry_ms = self.0.lock().rows.values().filter_map(|row| row.expire_at_ms).min();
        Ok(NextDeadlines { expiry_ms, ..NextDeadlines::default() })
    }
}

/// An open transaction. It changes the map at once: none of its methods fails.
struct Open<'t> {
    view: View<'t>,
    none: NoMessages,
}

impl Transaction for Open<'_> {
    fn entries(&mut self) -> &mut impl EntryTable {
        &mut self.view
    }

    fn messages(&mut self) -> &mut impl MessageTable {
        &mut self.none
    }

    fn set_version(&mut self, version: u64, _removed: Option<u64>) -> Result<()> {
        self.view.tables.version = version;
        Ok(())
    }
}

impl Base for View<'_> {
    fn row(&mut self, key: &Key) -> Result<Option<OldRow>> {
        let row = self
            .tables
            .rows
            .get(key)
            .filter(|row| row.expire_at_ms.is_none_or(|end| end > self.now_ms));
        Ok(row.cloned().map(|NewRow { version, value, expire_at_ms }| OldRow {
            version,
            value,
            expire_at_ms,
        }))
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        Snapshot::walk(self, walk, visit)
    }

    fn last_uuid(&mut self) -> Result<Option<Uuid>> {
        Ok(self.tables.last_uuid)
    }
}

impl EntryTable for View<'_> {
    fn apply(&mut self, key: &Key, effect: RowEffect) -> Result<()> {
        match effect {
            RowEffect::Removed => drop(self.tables.rows.remove(key)),
            RowEffect::Stored(row) => drop(self.tables.rows.insert(key.clone(), row)),
            RowEffect::ExpirySet { expire_at_ms, .. } => {
                self.tables
                    .rows
                    .entry(key.clone())
                    .and_modify(|row| row.expire_at_ms = expire_at_ms);
            }
        }
        Ok(())
    }

    fn set_last_uuid(&mut self, uuid: Uuid) -> Result<()> {
        self.tables.last_uuid = Some(uuid);
        Ok(())
    }

    fn sweep(&mut self, max: usize, now_ms: i64, _version: u64) -> Result<Vec<Key>> {
        let is_over = |row: &NewRow| row.expire_at_ms.is_some_and(|end| end <= now_ms);
        let over = self.tables.rows.iter().filter(|(_, row)| is_over(row)).take(max);
        let keys: Vec<Key> = over.map(|(key, _)| key.clone()).collect();
        keys.iter().for_each(|key| drop(self.tables.rows.remove(key)));
        Ok(keys)
    }
}
