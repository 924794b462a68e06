//! The [`Indexer`] of a file.

use std::time::Instant;

use rusqlite::OptionalExtension;

use super::errors::failure;
use super::followed::read;
use super::fulltext::{BuiltEntry, Catalog, list};
use super::rows::Rows;
use super::statement::Statement;
use super::value_index::{ValueCatalog, set_progress};
use super::writer::SqliteWriter;
use crate::fulltext::taken_by_value;
use crate::{Indexer, Writer};
use openkv_core::commit::Base as _;
use openkv_core::index::ValueIndex;
use openkv_core::model::{
    BuildFailure, DatabaseChange, Encoding, Error, INDEX_BUILD_BYTES_MAX,
    INDEX_BUILD_NARROW_ROWS_MAX, INDEX_BUILD_ROWS_MAX, IndexChoice, IndexInfo, IndexRequest, Key,
    Result, ValueIndexInfo, ValueIndexRequest,
};

impl SqliteWriter {
    /// Loads the indexes as they are in the open transaction.
    pub(super) fn load_indexes(&mut self) -> Result<()> {
        let catalog = Catalog::load(self.connection())?;
        self.rows().catalog = catalog;
        let values =
            ValueCatalog::load(&|sql: &str| Statement::prepare(self.connection(), sql.to_owned()))?;
        self.rows().values = values;
        Ok(())
    }

    /// Runs a change of the indexes in its own transaction.
    fn change_features<T>(
        &mut self,
        deadline: Instant,
        change: impl FnOnce(&mut Self) -> Result<(T, Vec<DatabaseChange>)>,
    ) -> Result<T> {
        let done = self.within(true, 0, deadline, |writer, _| {
            let before = writer.read_version()?;
            let (answer, changes) = change(writer)?;
            if !changes.is_empty() {
                writer.raise_features()?;
                writer.log_database(before, &changes, 0)?;
            }
            Ok(answer)
        });
        // Also after a failure, so that the next transaction loads the indexes again.
        self.forget_features();
        done
    }

    /// The next entries between two keys, and whether there are more. Without `bounded` all of them.
    fn entries(
        &mut self,
        (after, before): (&[u8], &[u8]),
        bounded: bool,
        now_ms: i64,
    ) -> Result<(Vec<BuiltEntry>, bool)> {
        let mut keys = Statement::prepare(
            self.connection(),
            "SELECT k FROM kv WHERE k > ?1 AND k < ?2 ORDER BY k LIMIT ?3",
        )?;
        self.rows().begin(now_ms)?;
        let mut entries = Vec::new();
        let mut bytes = 0;
        let mut run = keys.run().blob(1, after).blob(2, before);
        // On a disk that is nearly full a step is small, so that it needs little room.
        let is_narrow = self.log_length.is_narrow();
        let rows = if is_narrow { INDEX_BUILD_NARROW_ROWS_MAX } else { INDEX_BUILD_ROWS_MAX };
        run = run.int(3, if bounded { rows as i64 } else { -1 });
        while run.step()? {
            let key = run.column_blob(0).to_vec();
            let value = self.rows().value(&key)?;
            let value = value.map(|value| (value.encoding, value.bytes));
            bytes += value.as_ref().map_or(0, |(_, bytes)| bytes.len());
            entries.push(BuiltEntry { key, value });
            if bounded && bytes >= INDEX_BUILD_BYTES_MAX {
                return Ok((entries, true));
            }
        }
        let more = bounded && entries.len() == rows;
        Ok((entries, more))
    }

    fn build_step(&mut self, now_ms: i64) -> Result<bool> {
        let before = self.read_version()?;
        let Some(site) = self.site(None)? else { return Ok(false) };
        let built = self.add_older(&site, Older::Next, now_ms)?;
        let more = matches!(&built, DatabaseChange::IndexBuilt { through: Some(_), .. });
        self.log_database(before, &[built], now_ms)?;
        Ok(more || self.building()?)
    }

    /// The index that is built next, or the one with this name.
    pub(super) fn site(&self, name: Option<&str>) -> Result<Option<Site>> {
        let sql = "SELECT id, name, tokenizer = 'value', progress, prefix FROM openkv_index \
                   WHERE progress IS NOT NULL AND name = ifnull(?1, name) \
                   ORDER BY tokenizer = 'value', id LIMIT 1";
        let found = self.connection().query_row(sql, [name], |row| {
            let prefix: Vec<u8> = row.get(4)?;
            Ok(Site {
                id: row.get(0)?,
                name: row.get(1)?,
                of_values: row.get(2)?,
                after: row.get(3)?,
                before: [&prefix[..], &[u8::MAX]].concat(),
            })
        });
        found.optional().map_err(failure)
    }

    /// Adds entries that are older than an index. Returns what was done.
    pub(super) fn add_older(
        &mut self,
        site: &Site,
        older: Older,
        now_ms: i64,
    ) -> Result<DatabaseChange> {
        // Expired entries too in a value index: the time of another process may be earlier.
        let at_ms = if site.of_values { i64::MIN } else { now_ms };
        let Site { id, name, after, before, .. } = site;
        let (entries, mut through, decided): (_, _, Option<Decided>) = match older {
            Older::Next => {
                let (entries, more) = self.entries((after, before), true, at_ms)?;
                self.require_room(&entries, !site.of_values)?;
                let last = entries.last().filter(|_| more).map(|entry| entry.key.clone());
                (entries, last.map(Key::from_encoded), None)
            }
            // A failed index is neither read nor changed.
            Older::Through { scanned, failed: Some(failed), .. } => {
                (Vec::new(), None, Some((scanned, Some(failed))))
            }
            Older::Through { through, scanned, failed: None } => {
                let behind = through.as_ref().map(|key| [key.as_bytes(), &[0]].concat());
                let before = behind.as_deref().unwrap_or(before);
                let (entries, _) = self.entries((after, before), false, at_ms)?;
                (entries, through, Some((scanned, None)))
            }
        };
        self.rows().begin(now_ms)?;
        let (mut scanned, mut failed) = (entries.len() as u64, None);
        if site.of_values {
            let index = self.rows().values.index(*id);
            let index = index.ok_or_else(|| Error::internal("an index to build is not there"))?;
            // A copy may have commits from before the index, and the followed database has checked it.
            let checks =
                index.spec().unique && decided.is_none() && read(self.connection())?.0.is_none();
            failed = self.add_values(&index, &entries, checks)?;
            if let Some((of_step, why)) = decided {
                (scanned, failed) = (of_step, why);
            }
            through = through.filter(|_| failed.is_none());
            let after = through.as_ref().map(Key::as_bytes);
            set_progress(self.connection(), &index, after, scanned, failed.as_ref())?;
            if through.is_none() {
                self.raise_features()?;
            }
        } else {
            let after = through.as_ref().map(Key::as_bytes);
            self.with_catalog(|catalog, connection| {
                catalog.build(connection, *id, &entries, after)
            })?;
        }
        Ok(DatabaseChange::IndexBuilt { name: name.clone(), through, scanned, failed })
    }

    /// Adds entries to a value index. With `checks` it ends at the first one that does not fit into it.
    fn add_values(
        &mut self,
        index: &ValueIndex,
        entries: &[BuiltEntry],
        checks: bool,
    ) -> Result<Option<BuildFailure>> {
        for BuiltEntry { key, value } in entries {
            let Some((encoding, bytes)) = value else { continue };
            let unfit =
                if checks { self.rows().unfit(index, key, *encoding, bytes)? } else { None };
            if unfit.is_some() {
                return Ok(unfit);
            }
            self.rows().values.add(index, key, *encoding, bytes)?;
        }
        Ok(None)
    }

    /// Passes the catalog together with its connection.
    pub(super) fn with_catalog<T>(
        &mut self,
        with: impl FnOnce(&mut Catalog, &rusqlite::Connection) -> Result<T>,
    ) -> Result<T> {
        let mut catalog = std::mem::take(self.catalog());
        let done = with(&mut catalog, self.connection());
        *self.catalog() = catalog;
        done
    }

    pub(super) fn raise_features(&self) -> Result<()> {
        let raise = "UPDATE openkv_meta SET value = value + 1 WHERE name = 'features'";
        self.connection().execute(raise, []).map(drop).map_err(failure)
    }

    /// Passes the value indexes together with their connection.
    pub(super) fn with_values<T>(
        &mut self,
        with: impl FnOnce(&mut ValueCatalog, &rusqlite::Connection) -> Result<T>,
    ) -> Result<T> {
        let mut values = std::mem::take(&mut self.rows().values);
        let done = with(&mut values, self.connection());
        self.rows().values = values;
        done
    }

    /// Removes an index, in the transaction of the caller. Returns its name.
    pub(super) fn remove_index(&mut self, choice: &IndexChoice) -> Result<Option<String>> {
        let listed = list(&|sql| Statement::prepare(self.connection(), sql.to_owned()))?;
        let mut found =
            listed.into_iter().map(|(_, info)| info.spec).filter(|spec| choice.is(spec));
        if let Some(spec) = found.next() {
            self.with_catalog(|catalog, connection| catalog.remove(connection, choice))?;
            return Ok(Some(spec.name));
        }
        let found = self.with_values(|values, connection| values.remove(connection, choice))?;
        Ok(match choice {
            IndexChoice::Name(name) if found => Some(name.clone()),
            IndexChoice::Name(_) | IndexChoice::Prefix(_) => None,
        })
    }

    /// Removes all entries of indexes, in the transaction of the caller.
    pub(super) fn clear_indexes(&mut self) -> Result<()> {
        self.with_values(|values, connection| values.clear(connection))?;
        self.with_catalog(|catalog, connection| catalog.clear(connection))
    }

    /// Whether there are entries whose keys extend a prefix.
    fn has_entries(&self, prefix: &[u8]) -> Result<bool> {
        let end = [prefix, &[u8::MAX]].concat();
        let any = "SELECT 1 FROM kv WHERE k > ?1 AND k < ?2 LIMIT 1";
        let found = self.connection().query_row(any, [prefix, &end], |_| Ok(())).optional();
        Ok(found.map_err(failure)?.is_some())
    }

    /// Whether an index is being built.
    pub(super) fn building(&self) -> Result<bool> {
        let any = "SELECT 1 FROM openkv_index WHERE progress IS NOT NULL LIMIT 1";
        let found = self.connection().query_row(any, [], |_| Ok(())).optional();
        Ok(found.map_err(failure)?.is_some())
    }
}

/// An index that is being built.
pub(super) struct Site {
    id: i64,
    name: String,
    /// It is a value index.
    of_values: bool,
    /// The entries between these two keys are still to be indexed.
    after: Vec<u8>,
    before: Vec<u8>,
}

/// The entries that a step of building adds.
pub(super) enum Older {
    /// The next ones, within the bounds of a step.
    Next,
    /// Those of a step that is in the log.
    Through {
        /// The last one; `None`: all that are left.
        through: Option<Key>,
        /// How many the step has processed.
        scanned: u64,
        /// Why the index is not built.
        failed: Option<BuildFailure>,
    },
}

/// How many entries a step that is in the log has processed, and why the index has failed.
type Decided = (u64, Option<BuildFailure>);

impl Rows {
    /// Why an entry does not fit into a unique index that is being built.
    fn unfit(
        &mut self,
        index: &ValueIndex,
        key: &[u8],
        encoding: Encoding,
        bytes: &[u8],
    ) -> Result<Option<BuildFailure>> {
        let key = Key::from_encoded(key.to_vec());
        if self.version(&key)?.is_none() {
            return Ok(None);
        }
        let Ok(values) = index.unique_values(encoding, bytes) else {
            return Ok(Some(BuildFailure { key, other: None }));
        };
        for value in values {
            let mut others = Vec::new();
            let end = [value.as_slice(), &[u8::MAX]].concat();
            self.walk_index(index.info.id, (&value, &end), &mut |entry| {
                let other = entry.get(value.len()..).filter(|other| *other != key.as_bytes());
                others.extend(other.map(|other| Key::from_encoded(other.to_vec())));
                true
            })?;
            for other in others {
                if self.version(&other)?.is_some() {
                    return Ok(Some(BuildFailure { key, other: Some(other) }));
                }
            }
        }
        Ok(None)
    }
}

/// The changes of an index that was created, in the place of another one.
fn created(replaced: Option<String>, change: DatabaseChange) -> Vec<DatabaseChange> {
    replaced.map(DatabaseChange::IndexDropped).into_iter().chain([change]).collect()
}

impl Indexer for SqliteWriter {
    fn create_index(&mut self, request: &IndexRequest, deadline: Instant) -> Result<IndexInfo> {
        self.change_features(deadline, |writer| {
            if writer.rows().values.has_name(&request.spec.name) {
                return Err(taken_by_value(&request.spec.name));
            }
            let building = writer.has_entries(request.spec.prefix.as_bytes())?;
            let listed = list(&|sql| Statement::prepare(writer.connection(), sql.to_owned()))?;
            let same = listed.into_iter().find(|(_, info)| info.spec.prefix == request.spec.prefix);
            let (spec, changed) = writer.with_catalog(|catalog, connection| {
                catalog.create(connection, request, &mut || Ok(building))
            })?;
            let listed = list(&|sql| Statement::prepare(writer.connection(), sql.to_owned()))?;
            let found = listed.into_iter().find(|(_, info)| info.spec == spec);
            let missing = || Error::internal("a new index is not there");
            let info = found.ok_or_else(missing)?.1;
            let changes = match changed {
                true => created(
                    same.map(|(_, replaced)| replaced.spec.name),
                    DatabaseChange::SearchIndex { spec, building },
                ),
                false => Vec::new(),
            };
            Ok((info, changes))
        })
    }

    fn drop_index(&mut self, choice: &IndexChoice, deadline: Instant) -> Result<bool> {
        self.change_features(deadline, |writer| {
            let removed = writer.remove_index(choice)?;
            let found = removed.is_some();
            Ok((found, removed.map(DatabaseChange::IndexDropped).into_iter().collect()))
        })
    }

    fn create_value_index(
        &mut self,
        request: &ValueIndexRequest,
        deadline: Instant,
    ) -> Result<ValueIndexInfo> {
        if self.file() == Encoding::V8 {
            return Err(Error::unsupported(
                "kv.createIndex: Deno writes to this file too, and does not change the indexes of openkv; copy \
                 its entries into a file of openkv's own with openkv copy",
            ));
        }
        self.change_features(deadline, |writer| {
            let building = writer.has_entries(request.spec.prefix.as_bytes())?;
            let others = list(&|sql| Statement::prepare(writer.connection(), sql.to_owned()))?;
            let is_taken = others.iter().any(|(_, info)| info.spec.name == request.spec.name);
            let name = &request.spec.name;
            let replaced = writer.rows().values.has_name(name).then(|| name.clone());
            let (info, changed) = writer.with_values(|values, connection| {
                values.create(connection, request, is_taken, &mut || Ok(building))
            })?;
            let spec = request.spec.clone();
            let changes = match changed {
                true => created(replaced, DatabaseChange::ValueIndex { spec, building }),
                false => Vec::new(),
            };
            Ok((info, changes))
        })
    }

    #[tracing::instrument(skip_all)]
    fn build_indexes(&mut self, now_ms: i64, deadline: Instant) -> Result<bool> {
        if self.log_length.is_narrow() {
            Writer::empty_log(self)?;
        }
        // Building repeats a step that a crash undoes, so no step syncs.
        let done = self.within(false, now_ms, deadline, |writer, _| writer.build_step(now_ms));
        done.inspect_err(|_| self.forget_features())
    }
}
