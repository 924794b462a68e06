//! Large values beside their rows.
//!
//! A row of a `WITHOUT ROWID` tree should stay well under a quarter of a page, so a large value
//! goes into `openkv_spill` and its row holds that row's number. Whoever changes the row looks
//! after the value: there is no trigger for it, since a table with triggers makes SQLite journal
//! every statement.

use rusqlite::Connection;

use super::statement::Statement;
use crate::model::{Error, Result};

/// The statements that touch `openkv_spill`.
pub(super) struct Spill {
    insert: Statement,
    inserted: Statement,
    replace: Statement,
    read: Statement,
    delete: Statement,
    one: Statement,
    of_key: Statement,
    /// Whether there may be any: most databases have none, and are spared the look-ups.
    any: bool,
}

impl Spill {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            insert: prepare("INSERT INTO openkv_spill (v) VALUES (?1)")?,
            inserted: prepare("SELECT last_insert_rowid()")?,
            // Also where a damaged file has lost what is replaced.
            replace: prepare("INSERT OR REPLACE INTO openkv_spill (id, v) VALUES (?1, ?2)")?,
            read: prepare("SELECT v FROM openkv_spill WHERE id = ?1")?,
            delete: prepare("DELETE FROM openkv_spill WHERE id = ?1")?,
            one: prepare("SELECT 1 FROM openkv_spill LIMIT 1")?,
            of_key: prepare("SELECT v FROM kv WHERE k = ?1 AND v_encoding >= 256")?,
            any: true,
        })
    }

    /// A transaction has begun: other processes may have spilled since the last one.
    pub(super) fn begin(&mut self) -> Result<()> {
        self.any = self.one.run().step()?;
        Ok(())
    }

    /// Where the value of a key is, if it is here.
    fn place_of(&mut self, key: &[u8]) -> Result<Option<i64>> {
        if !self.any {
            return Ok(None);
        }
        let mut run = self.of_key.run().blob(1, key);
        Ok(if run.step()? { Some(run.column_int(0)) } else { None })
    }

    /// Stores the value of a key, in place of the one before; answers where.
    pub(super) fn put(&mut self, key: &[u8], value: &[u8]) -> Result<i64> {
        if let Some(place) = self.place_of(key)? {
            self.replace.run().int(1, place).blob(2, value).finish()?;
            return Ok(place);
        }
        self.any = true;
        self.insert.run().blob(1, value).finish()?;
        let mut run = self.inserted.run();
        run.step()?;
        Ok(run.column_int(0))
    }

    /// Removes the value of a key that will no longer be here.
    pub(super) fn clear(&mut self, key: &[u8]) -> Result<()> {
        match self.place_of(key)? {
            Some(place) => self.delete.run().int(1, place).finish(),
            None => Ok(()),
        }
    }

    /// The value at a place.
    pub(super) fn get(&mut self, place: i64) -> Result<Vec<u8>> {
        let mut run = self.read.run().int(1, place);
        if !run.step()? {
            return Err(Error::corrupt(
                "a value is missing from openkv_spill: the file is damaged",
            ));
        }
        Ok(run.column_blob(0).to_vec())
    }
}
