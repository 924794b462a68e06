//! A transaction in memory: it changes the tables at once, and none of its methods fails.

use std::ops::RangeInclusive;
use std::sync::Arc;

use uuid::Uuid;

use super::{Tables, walk_rows};
use openkv_core::commit::{Base, EntryTable, MessageTable, NewRow, OldRow, RowEffect, Transaction};
use openkv_core::index::ValueIndex;
use openkv_core::model::{Change, ChangeKind, Key, LoggedMessage, Result, Seen, Step, Walk};

pub(super) struct MemoryTransaction<'t> {
    pub(super) tables: &'t mut Tables,
    pub(super) now_ms: i64,
}

impl Transaction for MemoryTransaction<'_> {
    fn entries(&mut self) -> &mut impl EntryTable {
        self
    }

    fn messages(&mut self) -> &mut impl MessageTable {
        &mut self.tables.messages
    }

    fn log(
        &mut self,
        commits: RangeInclusive<u64>,
        changes: Vec<Change>,
        messages: &[LoggedMessage],
        now_ms: i64,
    ) -> Result<()> {
        match &mut self.tables.log {
            Some(log) => log.log(commits, &changes, messages, now_ms),
            None => Ok(()),
        }
    }

    fn set_version(&mut self, version: u64, removed: Option<u64>) -> Result<()> {
        self.tables.version = version;
        self.tables.removed = removed.unwrap_or(self.tables.removed);
        Ok(())
    }
}

impl EntryTable for MemoryTransaction<'_> {
    fn apply(&mut self, key: &Key, effect: RowEffect) -> Result<()> {
        match effect {
            RowEffect::Removed => self.tables.put(key.clone(), None),
            RowEffect::Stored(row) => self.tables.put(key.clone(), Some(row)),
            RowEffect::ExpirySet { expire_at_ms, .. } => {
                self.tables.set_expiry(key.clone(), expire_at_ms);
            }
        }
        Ok(())
    }

    fn set_last_uuid(&mut self, uuid: Uuid) -> Result<()> {
        self.tables.last_uuid = Some(uuid);
        Ok(())
    }

    fn keep_past(&mut self, changes: &[Change]) -> Result<()> {
        self.tables.keep_past(changes);
        Ok(())
    }

    fn sweep(&mut self, max: usize, now_ms: i64, version: u64) -> Result<Vec<Key>> {
        let expired = self.tables.expiries.iter().take_while(|(end, _)| *end <= now_ms).take(max);
        let keys: Vec<Key> = expired.map(|(_, key)| key.clone()).collect();
        let removal = |key: &Key| Change { key: key.clone(), version, kind: ChangeKind::Expired };
        self.tables.keep_past(&keys.iter().map(removal).collect::<Vec<_>>());
        for key in &keys {
            self.tables.put(key.clone(), None);
        }
        Ok(keys)
    }
}

impl Base for MemoryTransaction<'_> {
    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        walk_rows(&self.tables.rows, self.now_ms, walk, visit);
        Ok(())
    }

    fn last_uuid(&mut self) -> Result<Option<Uuid>> {
        Ok(self.tables.last_uuid)
    }

    fn value_indexes(&self) -> Option<Arc<[ValueIndex]>> {
        let values = &self.tables.values;
        (!values.is_empty()).then(|| values.shared())
    }

    fn walk_index(
        &mut self,
        id: i64,
        range: (&[u8], &[u8]),
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        self.tables.values.walk(id, range, false, visit);
        Ok(())
    }

    fn version(&mut self, key: &Key) -> Result<Option<u64>> {
        Ok(self.tables.alive(key.as_bytes(), self.now_ms).map(|row| row.version))
    }

    fn row(&mut self, key: &Key) -> Result<Option<OldRow>> {
        let row = self.tables.alive(key.as_bytes(), self.now_ms);
        Ok(row.map(|NewRow { version, value, expire_at_ms }| OldRow {
            version: *version,
            value: value.clone(),
            expire_at_ms: *expire_at_ms,
        }))
    }
}
