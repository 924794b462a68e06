//! Full-text indexes of rows that are not in SQLite, in a private SQLite database in memory.

use rusqlite::Connection;

use super::super::errors::failure;
use super::super::interrupt::interruptible;
use super::super::statement::Statement;
use super::search::Lookup;
use super::{BuiltEntry, Catalog, Site, TABLES, counted, list, search};
use crate::GoesOn;
use openkv_core::model::{
    Encoding, Error, HitVisitor, IndexChoice, IndexInfo, IndexRequest, Result, Search,
};

/// The indexes of a database in memory.
pub(crate) struct PrivateIndexes {
    catalog: Catalog,
    // Last field, so that the statements above are finalized before it closes.
    connection: Connection,
}

/// A key, and its value unless the entry has expired.
pub(crate) type Entry<'a> = (&'a [u8], Option<(Encoding, &'a [u8])>);

/// Returns the entries of a building step between two keys, and whether there are more.
pub(crate) type Entries<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> (Vec<BuiltEntry>, bool);

impl PrivateIndexes {
    pub(crate) fn new() -> Result<Self> {
        let connection = Connection::open_in_memory().map_err(failure)?;
        connection.execute_batch(TABLES).map_err(failure)?;
        Ok(Self { catalog: Catalog::default(), connection })
    }

    fn prepare(&self) -> impl Fn(&str) -> Result<Statement> {
        |sql| Statement::prepare(&self.connection, sql.to_owned())
    }

    pub(crate) fn create(
        &mut self,
        request: &IndexRequest,
        any: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<IndexInfo> {
        let (spec, _) = self.catalog.create(&self.connection, request, any)?;
        let found = list(&self.prepare())?.into_iter().find(|(_, info)| info.spec == spec);
        found.map(|(_, info)| info).ok_or_else(|| Error::internal("a new index is not there"))
    }

    pub(crate) fn remove(&mut self, choice: &IndexChoice) -> Result<bool> {
        self.catalog.remove(&self.connection, choice)
    }

    /// Starts a transaction for several changes.
    pub(crate) fn begin(&mut self) -> Result<()> {
        self.connection.execute_batch("BEGIN").map_err(failure)
    }

    pub(crate) fn commit(&mut self) -> Result<()> {
        self.connection.execute_batch("COMMIT").map_err(failure)
    }

    pub(crate) fn changed(&mut self, (key, value): Entry<'_>) -> Result<()> {
        self.catalog.changed(key, value)
    }

    /// One step of building. Returns whether more is to be built.
    pub(crate) fn build(&mut self, entries: Entries<'_>) -> Result<bool> {
        let Some(site) = self.catalog.site(&self.connection)? else { return Ok(false) };
        let Site { id, after, before } = &site;
        let (entries, more) = entries(after, before);
        let last = entries.last().map(|entry| entry.key.as_slice()).filter(|_| more);
        self.begin()?;
        self.catalog.build(&self.connection, *id, &entries, last)?;
        self.commit()?;
        Ok(more || self.building()?)
    }

    pub(crate) fn building(&self) -> Result<bool> {
        Ok(self.catalog.site(&self.connection)?.is_some())
    }

    pub(crate) fn indexes(&self, count: bool) -> Result<Vec<IndexInfo>> {
        if count {
            return counted(&self.prepare());
        }
        Ok(list(&self.prepare())?.into_iter().map(|(_, info)| info).collect())
    }

    pub(crate) fn search(
        &mut self,
        wanted: &Search,
        goes_on: Option<&GoesOn>,
        lookup: Lookup<'_>,
        visitor: &mut dyn HitVisitor,
    ) -> Result<IndexInfo> {
        let mut find = |connection: &Connection| {
            search(&|sql| Statement::prepare(connection, sql.to_owned()), wanted, lookup, visitor)
        };
        match goes_on {
            Some(goes_on) => interruptible(&mut self.connection, goes_on, find),
            None => find(&self.connection),
        }
    }
}
