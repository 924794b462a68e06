//! Value indexes in a SQLite database: their list, their tables, and the changes of these.
//!
//! An index is a row of `openkv_index` with the tokenizer `value`, so that an openkv which does not know
//! value indexes refuses to write, and a table of the entries.
//!
//! Invariant: as that of the full-text catalog: it changes only inside a transaction of its connection,
//! and is loaded again after a transaction that failed.

use std::sync::Arc;

use rusqlite::Connection;

use super::errors::failure;
use super::fulltext::{Prepare, damaged, pack, unpack};
use super::statement::{Run, Statement};
use crate::fulltext::{Creation, decide_value};
use openkv_core::index::{Replacement, ValueIndex, changes};
use openkv_core::model::{
    BuildFailure, Encoding, Error, IndexChoice, Key, OrderPath, Result, ValueIndexInfo,
    ValueIndexRequest, ValueIndexSpec, ValueIndexState,
};

/// Bits of the first byte of `prefix_lengths`; the second one has a bit for each descending path.
const UNIQUE: u8 = 1;
const MULTI: u8 = 2;
const SPARSE: u8 = 4;
/// The keys of the failure follow.
const FAILED: u8 = 8;

const LIST: &str = "SELECT id, name, prefix, fields, prefix_lengths, progress, scanned \
                    FROM openkv_index WHERE tokenizer = 'value' ORDER BY id";

/// The value indexes of a database.
pub(super) fn list(prepare: Prepare<'_>) -> Result<Vec<ValueIndex>> {
    let mut statement = prepare(LIST)?;
    let mut run = statement.run();
    let mut listed = Vec::new();
    while run.step()? {
        let info = read(&run).ok_or_else(|| damaged(&run))?;
        listed.push(ValueIndex::new(info)?);
    }
    Ok(listed)
}

fn read(run: &Run<'_, '_>) -> Option<ValueIndexInfo> {
    let paths = unpack(run.column_blob(3))?;
    let (flags, rest) = run.column_blob(4).split_first()?;
    let (directions, mut rest) = rest.split_first()?;
    let directions = *directions;
    let path = |(at, path): (usize, String)| OrderPath {
        path,
        descending: directions & (1_u8 << at) != 0,
    };
    let spec = ValueIndexSpec {
        name: String::from_utf8(run.column_blob(1).to_vec()).ok()?,
        prefix: Key::from_encoded(run.column_blob(2).to_vec()),
        on: paths.into_iter().enumerate().map(path).collect(),
        unique: flags & UNIQUE != 0,
        multi: flags & MULTI != 0,
        sparse: flags & SPARSE != 0,
    };
    let state = if flags & FAILED != 0 {
        let key = sized(&mut rest)?;
        let other = if rest.is_empty() { None } else { Some(sized(&mut rest)?) };
        ValueIndexState::Failed(BuildFailure { key, other })
    } else if run.column_is_null(5) {
        ValueIndexState::Ready
    } else {
        ValueIndexState::Building
    };
    let scanned = u64::try_from(run.column_int(6)).unwrap_or(0);
    Some(ValueIndexInfo { id: run.column_int(0), spec, state, scanned })
}

fn sized(bytes: &mut &[u8]) -> Option<Key> {
    let (len, rest) = bytes.split_first_chunk()?;
    let (key, rest) = rest.split_at_checked(u32::from_le_bytes(*len) as usize)?;
    *bytes = rest;
    Some(Key::from_encoded(key.to_vec()))
}

/// What `prefix_lengths` has of an index.
fn described(spec: &ValueIndexSpec, failure: Option<&BuildFailure>) -> Vec<u8> {
    let flag = |is_set: bool, flag: u8| if is_set { flag } else { 0 };
    let flags = flag(spec.unique, UNIQUE)
        | flag(spec.multi, MULTI)
        | flag(spec.sparse, SPARSE)
        | flag(failure.is_some(), FAILED);
    let direction = |(at, path): (usize, &OrderPath)| flag(path.descending, 1 << at);
    let directions = spec.on.iter().enumerate().map(direction).fold(0, |all, one| all | one);
    let mut bytes = vec![flags, directions];
    if let Some(BuildFailure { key, other }) = failure {
        for key in [Some(key), other.as_ref()].into_iter().flatten() {
            bytes.extend_from_slice(&(key.len() as u32).to_le_bytes());
            bytes.extend_from_slice(key.as_bytes());
        }
    }
    bytes
}

/// The statements on the entries of one index.
struct Table {
    id: i64,
    insert: Statement,
    delete: Statement,
    replace: Statement,
    forward: Statement,
    backward: Statement,
}

impl Table {
    fn open(prepare: Prepare<'_>, id: i64) -> Result<Self> {
        let walk = format!("SELECT k FROM openkv_value_{id} WHERE k >= ?1 AND k < ?2 ORDER BY k");
        Ok(Self {
            id,
            insert: prepare(&format!("INSERT OR IGNORE INTO openkv_value_{id} (k) VALUES (?1)"))?,
            delete: prepare(&format!("DELETE FROM openkv_value_{id} WHERE k = ?1"))?,
            replace: prepare(&format!(
                "UPDATE OR REPLACE openkv_value_{id} SET k = ?2 WHERE k = ?1"
            ))?,
            forward: prepare(&walk)?,
            backward: prepare(&format!("{walk} DESC"))?,
        })
    }

    /// Removes and adds entries. One that takes the place of another is one statement, which costs a fifth less than two.
    fn change(&mut self, Replacement { removed, added }: Replacement<'_>) -> Result<()> {
        if let (Some(removed), Some(added)) = (removed, added) {
            let replaced = self.replace.run().blob(1, removed).blob(2, added).changes()?;
            // An index that is being built may lack what is removed.
            return if replaced > 0 { Ok(()) } else { self.insert.run().blob(1, added).finish() };
        }
        if let Some(removed) = removed {
            self.delete.run().blob(1, removed).finish()?;
        }
        added.map_or(Ok(()), |added| self.insert.run().blob(1, added).finish())
    }

    fn walk(
        &mut self,
        (lo, hi): (&[u8], &[u8]),
        reverse: bool,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let statement = if reverse { &mut self.backward } else { &mut self.forward };
        let mut run = statement.run().blob(1, lo).blob(2, hi);
        while run.step()? {
            if !visit(run.column_blob(0)) {
                break;
            }
        }
        Ok(())
    }
}

/// The value indexes, as a connection uses them.
#[derive(Default)]
pub(super) struct ValueCatalog {
    indexes: Arc<[ValueIndex]>,
    tables: Vec<Table>,
}

impl ValueCatalog {
    pub(super) fn load(prepare: Prepare<'_>) -> Result<Self> {
        let indexes: Arc<[_]> = list(prepare)?.into();
        let open = |index: &ValueIndex| Table::open(prepare, index.info.id);
        let tables = indexes.iter().map(open).collect::<Result<_>>()?;
        Ok(Self { indexes, tables })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.indexes.is_empty()
    }

    pub(super) fn shared(&self) -> Arc<[ValueIndex]> {
        self.indexes.clone()
    }

    pub(super) fn has_name(&self, name: &str) -> bool {
        self.indexes.iter().any(|index| index.spec().name == name)
    }

    pub(super) fn walk(
        &mut self,
        id: i64,
        range: (&[u8], &[u8]),
        reverse: bool,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let table = self.tables.iter_mut().find(|table| table.id == id);
        table.map_or(Ok(()), |table| table.walk(range, reverse, visit))
    }

    /// Whether an index covers a key.
    pub(super) fn covers(&self, key: &[u8]) -> bool {
        self.indexes.iter().any(|index| index.is_kept() && index.spec().covers(key))
    }

    /// Changes the indexes with an entry.
    pub(super) fn changed(
        &mut self,
        key: &[u8],
        old: Option<(Encoding, &[u8])>,
        new: Option<(Encoding, &[u8])>,
    ) -> Result<()> {
        let Self { indexes, tables } = self;
        changes(indexes, key, old, new, &mut |id, change| {
            let table = tables.iter_mut().find(|table| table.id == id);
            table.map_or(Ok(()), |table| table.change(change))
        })
    }

    /// Adds an entry to an index that is being built.
    pub(super) fn add(
        &mut self,
        index: &ValueIndex,
        key: &[u8],
        encoding: Encoding,
        bytes: &[u8],
    ) -> Result<()> {
        let table = self.tables.iter_mut().find(|table| table.id == index.info.id);
        let Some(table) = table else { return Ok(()) };
        let mut entries = index.entries(key, encoding, bytes).into_iter();
        entries.try_for_each(|entry| table.insert.run().blob(1, &entry).finish())
    }

    /// Creates an index, in the transaction of the caller; returns it, and whether it is new. `any` returns
    /// whether there are entries to index.
    pub(super) fn create(
        &mut self,
        connection: &Connection,
        request: &ValueIndexRequest,
        is_taken: bool,
        any: &mut dyn FnMut() -> Result<bool>,
    ) -> Result<(ValueIndexInfo, bool)> {
        let spec = &request.spec;
        let specs = self.indexes.iter().map(ValueIndex::spec);
        match decide_value(specs, is_taken, request)? {
            Creation::Exists => {
                let same = self.indexes.iter().find(|index| index.spec() == spec);
                let missing = || Error::internal("an index is not there");
                return same.map(|index| (index.info.clone(), false)).ok_or_else(missing);
            }
            Creation::Creates => {}
            Creation::Replaces => {
                self.remove(connection, &IndexChoice::Name(spec.name.clone()))?;
            }
        }
        let progress = any()?.then(|| spec.prefix.as_bytes().to_vec());
        let is_building = progress.is_some();
        let paths: Vec<_> = spec.on.iter().map(|path| path.path.clone()).collect();
        let row = rusqlite::params![
            spec.name,
            spec.prefix.as_bytes(),
            pack(&paths),
            described(spec, None),
            progress
        ];
        connection
            .execute(
                "INSERT INTO openkv_index (name, prefix, fields, tokenizer, prefix_lengths, progress) \
                 VALUES (?1, ?2, ?3, 'value', ?4, ?5)",
                row,
            )
            .map_err(failure)?;
        let id = connection.last_insert_rowid();
        let state = if is_building { ValueIndexState::Building } else { ValueIndexState::Ready };
        let info = ValueIndexInfo { id, spec: spec.clone(), state, scanned: 0 };
        ValueIndex::new(info.clone())?;
        let sql = format!("CREATE TABLE openkv_value_{id} (k BLOB PRIMARY KEY) WITHOUT ROWID;");
        connection.execute_batch(&sql).map_err(failure)?;
        *self = Self::load(&|sql| Statement::prepare(connection, sql.to_owned()))?;
        Ok((info, true))
    }

    /// Removes an index, in the transaction of the caller; `false` if there is none of this name.
    pub(super) fn remove(&mut self, connection: &Connection, choice: &IndexChoice) -> Result<bool> {
        let IndexChoice::Name(name) = choice else { return Ok(false) };
        let found = self.indexes.iter().find(|index| index.spec().name == *name);
        let Some(id) = found.map(|index| index.info.id) else { return Ok(false) };
        // The statements must be finalized before their table is dropped.
        *self = Self::default();
        let sql =
            format!("DROP TABLE openkv_value_{id}; DELETE FROM openkv_index WHERE id = {id};");
        connection.execute_batch(&sql).map_err(failure)?;
        *self = Self::load(&|sql| Statement::prepare(connection, sql.to_owned()))?;
        Ok(true)
    }

    /// Removes all entries, in the transaction of the caller.
    pub(super) fn clear(&self, connection: &Connection) -> Result<()> {
        for table in &self.tables {
            let sql = format!("DELETE FROM openkv_value_{};", table.id);
            connection.execute_batch(&sql).map_err(failure)?;
        }
        Ok(())
    }

    /// The index with a number.
    pub(super) fn index(&self, id: i64) -> Option<ValueIndex> {
        self.indexes.iter().find(|index| index.info.id == id).cloned()
    }
}

/// Stores how far the building of an index is; `after` is the last key that it has, `None` when it is
/// complete or has failed.
pub(super) fn set_progress(
    connection: &Connection,
    index: &ValueIndex,
    after: Option<&[u8]>,
    scanned: u64,
    failed: Option<&BuildFailure>,
) -> Result<()> {
    let sql = "UPDATE openkv_index SET progress = ?2, scanned = scanned + ?3, prefix_lengths = ?4 \
               WHERE id = ?1";
    let described = described(index.spec(), failed);
    let row = rusqlite::params![index.info.id, after, scanned.cast_signed(), described];
    connection.execute(sql, row).map(drop).map_err(failure)
}

/// The value indexes of a reading connection, loaded again when the features of the file have changed.
#[derive(Default)]
pub(super) struct ValueReader {
    features: Option<Statement>,
    seen: Option<i64>,
    /// Whether `catalog` is that of the read transaction that is open.
    is_current: bool,
    /// The range of an index that was found empty last in that transaction: most lists read one where nothing is.
    empty: Option<(i64, Vec<u8>, Vec<u8>)>,
    catalog: ValueCatalog,
}

impl ValueReader {
    /// Those of the snapshot that is open; `beside` is a statement of the connection.
    pub(super) fn catalog(&mut self, beside: &Statement) -> Result<&mut ValueCatalog> {
        if self.is_current {
            return Ok(&mut self.catalog);
        }
        let statement = match self.features.take() {
            Some(statement) => statement,
            None => beside.beside("SELECT value FROM openkv_meta WHERE name = 'features'")?,
        };
        let features = self.features.insert(statement).run().first_int()?;
        if self.seen != features || features.is_none() {
            self.seen = None;
            self.catalog = ValueCatalog::load(&|sql| beside.beside(sql))?;
            self.seen = features;
        }
        self.is_current = true;
        Ok(&mut self.catalog)
    }

    /// A read transaction has begun.
    pub(super) fn begun(&mut self) {
        (self.is_current, self.empty) = (false, None);
    }

    /// Visits entries of an index that [`Self::catalog`] has returned for the snapshot.
    pub(super) fn walk(
        &mut self,
        id: i64,
        (lo, hi): (&[u8], &[u8]),
        reverse: bool,
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let is_empty =
            |(of, first, last): &(i64, Vec<u8>, Vec<u8>)| (*of, &**first, &**last) == (id, lo, hi);
        if self.empty.as_ref().is_some_and(is_empty) {
            return Ok(());
        }
        let mut any = false;
        self.catalog.walk(id, (lo, hi), reverse, &mut |entry| {
            any = true;
            visit(entry)
        })?;
        if !any {
            self.empty = Some((id, lo.to_vec(), hi.to_vec()));
        }
        Ok(())
    }
}
