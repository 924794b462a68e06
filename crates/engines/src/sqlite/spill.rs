//! Large values in a table of their own.
//!
//! A row of a `WITHOUT ROWID` tree should take less than a quarter of a page. A large value is
//! therefore stored in `openkv_spill`, and its row has the number of that row. The code that
//! changes the row also changes the value: a trigger would make SQLite journal every statement.

use rusqlite::Connection;

use super::statement::Statement;
use openkv_core::model::Result;

/// The statements on `openkv_spill`.
pub(super) struct Spill {
    insert: Statement,
    inserted: Statement,
    replace: Statement,
    read: Statement,
    delete: Statement,
    one: Statement,
    of_key: Statement,
    /// Whether there may be spilled values. Most databases have none and skip the lookups.
    any: bool,
}

impl Spill {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            insert: prepare("INSERT INTO openkv_spill (v) VALUES (?1)")?,
            inserted: prepare("SELECT last_insert_rowid()")?,
            // Also works if the old value is missing in a damaged file.
            replace: prepare("INSERT OR REPLACE INTO openkv_spill (id, v) VALUES (?1, ?2)")?,
            read: prepare("SELECT v FROM openkv_spill WHERE id = ?1")?,
            delete: prepare("DELETE FROM openkv_spill WHERE id = ?1")?,
            one: prepare("SELECT 1 FROM openkv_spill LIMIT 1")?,
            of_key: prepare("SELECT v FROM kv WHERE k = ?1 AND v_encoding >= 256")?,
            any: true,
        })
    }

    /// Must be called at the start of a transaction: other processes may have spilled values.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.any = self.one.run().step()?;
        Ok(())
    }

    /// The number of the spilled value of a key, if it has one.
    fn place_of(&mut self, key: &[u8]) -> Result<Option<i64>> {
        if !self.any {
            return Ok(None);
        }
        self.of_key.run().blob(1, key).first(|run| run.column_int(0))
    }

    /// Stores the value of a key, replacing an old one unless that is `kept`; returns its number.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8], kept: bool) -> Result<i64> {
        if !kept && let Some(place) = self.place_of(key)? {
            self.replace.run().int(1, place).blob(2, value).finish()?;
            return Ok(place);
        }
        self.any = true;
        self.insert.run().blob(1, value).finish()?;
        Ok(self.inserted.run().first_int()?.unwrap_or(0))
    }

    /// Removes the spilled value of a key, if it has one that is not `kept`.
    pub(super) fn clear(&mut self, key: &[u8], kept: bool) -> Result<()> {
        if !kept && let Some(place) = self.place_of(key)? {
            self.delete.run().int(1, place).finish()?;
        }
        Ok(())
    }

    /// The value with this number.
    pub(super) fn get(&mut self, place: i64) -> Result<Vec<u8>> {
        let mut run = self.read.run().int(1, place);
        run.row("a value in openkv_spill")?;
        Ok(run.column_blob(0).to_vec())
    }
}
