//! Entries in the writer's transaction: reading, changing, sweeping.

use std::sync::Arc;

use rusqlite::Connection;
use uuid::Uuid;

use super::fulltext::Catalog;
use super::layout::SPILLED;
use super::replication_log::LogWriter;
use super::spill::Spill;
use super::statement::{Run, Statement};
use super::value_index::ValueCatalog;
use super::values::{self, encoding, shown, stored};
use super::walk::Walker;
use openkv_core::commit::{Base, EntryTable, NewRow, OldRow, RowEffect};
use openkv_core::index::ValueIndex;
use openkv_core::layer::Fetched;
use openkv_core::model::{
    Change, ChangeKind, EncodedValue, Encoding, Key, Kind, Result, SPILL_ROW_BYTES_MIN, Seen, Step,
    Walk,
};

/// The statements on `kv` and `openkv_spill`.
pub(super) struct Rows {
    version: Statement,
    row: Statement,
    upsert: Statement,
    delete: Statement,
    set_expiry: Statement,
    uuid: Statement,
    set_uuid: Statement,
    spill: Spill,
    walker: Walker,
    earliest: Statement,
    expired: Statement,
    /// The time that decides which entries have expired.
    now_ms: i64,
    /// The format of the file's values.
    file: Encoding,
    /// The full-text indexes, which are updated with every change.
    pub(super) catalog: Catalog,
    /// The value indexes, which are updated with every change.
    pub(super) values: ValueCatalog,
    /// The replication log, with the history.
    pub(super) log: LogWriter,
}

impl Rows {
    pub(super) fn new(connection: &Connection, file: Encoding) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            version: prepare("SELECT version, expiration_ms FROM kv WHERE k = ?1")?,
            row: prepare("SELECT version, expiration_ms, v, v_encoding FROM kv WHERE k = ?1")?,
            upsert: prepare(
                "INSERT INTO kv (k, v, v_encoding, version, expiration_ms, seq) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT (k) DO UPDATE SET v = excluded.v, \
                 v_encoding = excluded.v_encoding, version = excluded.version, \
                 expiration_ms = excluded.expiration_ms, seq = excluded.seq",
            )?,
            uuid: prepare("SELECT value FROM openkv_meta WHERE name = 'uuid'")?,
            set_uuid: prepare("INSERT OR REPLACE INTO openkv_meta VALUES ('uuid', ?1)")?,
            delete: prepare("DELETE FROM kv WHERE k = ?1")?,
            set_expiry: prepare("UPDATE kv SET expiration_ms = ?2, seq = ?3 WHERE k = ?1")?,
            spill: Spill::new(connection)?,
            walker: Walker::new(connection)?,
            earliest: prepare("SELECT min(expiration_ms) FROM kv WHERE expiration_ms >= 0")?,
            expired: prepare(
                "SELECT k FROM kv WHERE expiration_ms >= 0 AND expiration_ms <= ?1 \
                 ORDER BY expiration_ms LIMIT ?2",
            )?,
            now_ms: 0,
            file,
            catalog: Catalog::default(),
            values: ValueCatalog::default(),
            log: LogWriter::new(connection)?,
        })
    }

    /// Must be called at the start of a transaction. Entries that expire at or before `now_ms` are
    /// absent in it.
    pub(super) fn begin(&mut self, now_ms: i64) -> Result<()> {
        self.now_ms = now_ms;
        self.spill.begin()
    }

    /// Stores or removes the row of a key; returns the number of changed rows.
    fn put(&mut self, key: &Key, row: Option<&NewRow>) -> Result<usize> {
        let newest = self.log.history.newest_of(key);
        let key = key.as_bytes();
        if !self.catalog.is_empty() {
            let value = row.map(|row| (row.value.encoding, row.value.bytes.as_slice()));
            self.catalog.changed(key, value)?;
        }
        if self.values.covers(key) {
            let old = self.kept_value(key)?;
            let old = old.as_ref().map(|old| (old.encoding, old.bytes.as_slice()));
            let new = row.map(|row| (row.value.encoding, row.value.bytes.as_slice()));
            self.values.changed(key, old, new)?;
        }
        // A spilled value that this replaces is the history's.
        let kept = self.log.history.is_on();
        let Some(row) = row else {
            self.spill.clear(key, kept)?;
            return self.delete.run().blob(1, key).changes();
        };
        let (encoding, bytes) = stored(self.file, &row.value);
        let id = i64::from(encoding.id());
        // Deno reads values from their rows only, so they do not spill.
        let spills = self.file == Encoding::Cbor && key.len() + bytes.len() >= SPILL_ROW_BYTES_MIN;
        let run = if spills {
            let place = self.spill.put(key, &bytes, kept)?;
            self.upsert.run().int(2, place).int(3, id + SPILLED)
        } else {
            self.spill.clear(key, kept)?;
            self.upsert.run().blob(2, &bytes).int(3, id)
        };
        run.blob(1, key)
            .int(4, row.version.cast_signed())
            .int(5, row.expire_at_ms.unwrap_or(-1))
            .int(6, newest)
            .changes()
    }

    /// The value of a key; `None` also for an unreadable value.
    pub(super) fn value(&mut self, key: &[u8]) -> Result<Option<EncodedValue>> {
        self.readable(key, self.now_ms)
    }

    /// As [`Self::value`], also of an expired entry.
    pub(super) fn kept_value(&mut self, key: &[u8]) -> Result<Option<EncodedValue>> {
        self.readable(key, i64::MIN)
    }

    fn readable(&mut self, key: &[u8], now_ms: i64) -> Result<Option<EncodedValue>> {
        match self.row_at(key, now_ms) {
            Ok(row) => Ok(row.map(|row| row.value)),
            Err(error) if matches!(error.kind(), Kind::Corrupt | Kind::Invalid) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn row_at(&mut self, key: &[u8], now_ms: i64) -> Result<Option<OldRow>> {
        let mut run = self.row.run().blob(1, key);
        if !run.step()? || !alive(&run, now_ms) {
            return Ok(None);
        }
        let version = run.column_int(0).cast_unsigned();
        let id = run.column_int(3);
        let value = if id < SPILLED {
            let (encoding, bytes) = shown(encoding(id)?, run.column_blob(2));
            EncodedValue { encoding, bytes: bytes.into_owned() }
        } else {
            let bytes = self.spill.get(run.column_int(2))?;
            EncodedValue { encoding: encoding(id - SPILLED)?, bytes }
        };
        let end = run.column_int(1);
        Ok(Some(OldRow { version, value, expire_at_ms: (end >= 0).then_some(end) }))
    }

    /// The entry of a key with or without its value, also if it has expired.
    pub(super) fn kept(&mut self, key: &Key, with_value: bool) -> Result<Fetched> {
        if with_value {
            let row = self.row_at(key.as_bytes(), i64::MIN)?;
            return Ok(row.map_or(Fetched::Absent, Fetched::Row));
        }
        let mut run = self.version.run().blob(1, key.as_bytes());
        if !run.step()? {
            return Ok(Fetched::Absent);
        }
        let (version, end) = (run.column_int(0).cast_unsigned(), run.column_int(1));
        Ok(Fetched::Version { version, expire_at_ms: (end >= 0).then_some(end) })
    }

    pub(super) fn earliest_expiry(&mut self) -> Result<Option<i64>> {
        self.earliest.run().first_int()
    }
}

/// Whether the entry in the current row of a query for `version, expiration_ms, …` has not expired.
fn alive(run: &Run<'_, '_>, now_ms: i64) -> bool {
    let end = run.column_int(1);
    end < 0 || end > now_ms
}

impl EntryTable for Rows {
    fn apply(&mut self, key: &Key, effect: RowEffect) -> Result<()> {
        match effect {
            RowEffect::Removed => self.put(key, None).map(drop),
            RowEffect::Stored(row) => self.put(key, Some(&row)).map(drop),
            RowEffect::ExpirySet { expire_at_ms, .. } => {
                let run = self.set_expiry.run().blob(1, key.as_bytes());
                let newest = self.log.history.newest_of(key);
                run.int(2, expire_at_ms.unwrap_or(-1)).int(3, newest).finish()
            }
        }
    }

    fn set_last_uuid(&mut self, uuid: Uuid) -> Result<()> {
        self.set_uuid.run().blob(1, &uuid.into_bytes()).finish()
    }

    fn keep_past(&mut self, changes: &[Change]) -> Result<()> {
        self.log.history.keep(changes)
    }

    fn sweep(&mut self, max: usize, now_ms: i64, version: u64) -> Result<Vec<Key>> {
        let mut keys = Vec::new();
        if max > 0 {
            let _span = tracing::debug_span!("sweep", max).entered();
            let run = self.expired.run().int(1, now_ms).int(2, max as i64);
            keys = run.all(|run| Key::from_encoded(run.column_blob(0).to_vec()))?;
        }
        if self.log.history.is_on() {
            let removal =
                |key: &Key| Change { key: key.clone(), version, kind: ChangeKind::Expired };
            self.keep_past(&keys.iter().map(removal).collect::<Vec<_>>())?;
        }
        let mut swept = Vec::with_capacity(keys.len());
        for key in keys {
            // In a damaged file an index can contain keys without a row.
            if self.put(&key, None)? > 0 {
                swept.push(key);
            }
        }
        Ok(swept)
    }
}

impl Base for Rows {
    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        self.walker.walk(walk, self.now_ms, visit)
    }

    fn accepts(&self, encoding: Encoding, bytes: &[u8]) -> Result<()> {
        values::check(self.file, encoding, bytes)
    }

    fn last_uuid(&mut self) -> Result<Option<Uuid>> {
        let uuid = self.uuid.run().first(|run| run.column_blob(0).try_into().ok())?;
        Ok(uuid.flatten().map(Uuid::from_bytes))
    }

    fn version(&mut self, key: &Key) -> Result<Option<u64>> {
        let mut run = self.version.run().blob(1, key.as_bytes());
        let found = run.step()? && alive(&run, self.now_ms);
        Ok(found.then(|| run.column_int(0).cast_unsigned()))
    }

    fn value_indexes(&self) -> Option<Arc<[ValueIndex]>> {
        (!self.values.is_empty()).then(|| self.values.shared())
    }

    fn walk_index(
        &mut self,
        id: i64,
        range: (&[u8], &[u8]),
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        self.values.walk(id, range, false, visit)
    }

    fn row(&mut self, key: &Key) -> Result<Option<OldRow>> {
        self.row_at(key.as_bytes(), self.now_ms)
    }
}
