//! The blocks of records in the writer's transaction.

use rusqlite::Connection;

use super::damaged;
use crate::sqlite::statement::Statement;
use openkv_core::codec::replaced::{Block, Place, Replaced, record};
use openkv_core::model::{Error, Result};

/// The blocks of a file, and the one that is being filled.
pub(super) struct Blocks {
    newest: Statement,
    insert: Statement,
    read: Statement,
    open: Block,
    /// The number of the open block; `None` if no block of the transaction was filled yet.
    number: Option<u64>,
}

impl Blocks {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            newest: prepare("SELECT max(id) FROM openkv_history")?,
            insert: prepare(
                "INSERT INTO openkv_history (id, version, replaced) VALUES (?1, ?2, ?3)",
            )?,
            read: prepare("SELECT replaced FROM openkv_history WHERE id = ?1")?,
            open: Block::default(),
            number: None,
        })
    }

    /// Must be called at the start of a transaction.
    pub(super) fn begin(&mut self) {
        self.open.clear();
        self.number = None;
    }

    /// The number of the newest stored block.
    pub(super) fn newest(&mut self) -> Result<u64> {
        Ok(self.newest.run().first_int()?.map_or(0, i64::cast_unsigned))
    }

    /// Adds a record, the next one of its chain; returns its place.
    pub(super) fn add(&mut self, record: &Replaced<'_>) -> Result<Place> {
        let number = match self.number {
            Some(number) => number,
            None => self.newest()? + 1,
        };
        self.number = Some(number);
        let depth = record.previous.map_or(0, Place::depth) + 1;
        if let Some(slot) = self.open.add(record) {
            return Ok(Place::new(number, slot, depth));
        }
        self.store()?;
        self.number = Some(number + 1);
        match self.open.add(record) {
            Some(slot) => Ok(Place::new(number + 1, slot, depth)),
            None => Err(Error::internal("an empty block of the history has no room")),
        }
    }

    /// Stores the open block.
    pub(super) fn store(&mut self) -> Result<()> {
        if let Some(number) = self.number.filter(|_| !self.open.is_empty()) {
            let run = self.insert.run().int(1, number.cast_signed());
            run.int(2, self.open.last().cast_signed()).blob(3, self.open.bytes()).finish()?;
            self.open.clear();
            self.number = Some(number + 1);
        }
        Ok(())
    }

    /// The commits and places of the chain that ends at a place, the newest first. What is no longer there
    /// is left out.
    pub(super) fn chain(&mut self, newest: Place, out: &mut Vec<(u64, Place)>) -> Result<()> {
        let mut next = Some(newest);
        // A place of a damaged file must not lead in a circle.
        for _ in 0..newest.depth() {
            let Some(place) = next else { break };
            let found = if self.number == Some(place.block()) {
                Some(head(self.open.bytes(), place)?)
            } else {
                let run = self.read.run().int(1, place.block().cast_signed());
                run.first(|run| head(run.column_blob(0), place))?.transpose()?
            };
            let Some((commit, previous)) = found else { break };
            out.push((commit, place));
            next = previous;
        }
        Ok(())
    }
}

fn head(block: &[u8], place: Place) -> Result<(u64, Option<Place>)> {
    let found = record(block, place.slot()).map_err(damaged)?;
    Ok((found.commit, found.previous))
}
