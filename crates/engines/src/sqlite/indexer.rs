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
use crate::Indexer;
use crate::fulltext::taken_by_value;
use openkv_core::commit::Base as _;
use openkv_core::index::ValueIndex;
use openkv_core::model::{
    BuildFailure, Encoding, Error, INDEX_BUILD_BYTES_MAX, INDEX_BUILD_ROWS_MAX, IndexChoice,
    IndexInfo, IndexRequest, Key, Result, ValueIndexInfo, ValueIndexRequest,
};

impl SqliteWriter {
    /// Runs a change of the indexes in its own transaction.
    fn change_features<T>(
        &mut self,
        deadline: Instant,
        change: impl FnOnce(&mut Self) -> Result<(T, bool)>,
    ) -> Result<T> {
        let done = self.within(true, 0, deadline, |writer, _| {
            writer.read_version()?;
            let (answer, changed) = change(writer)?;
            if changed {
                writer.raise_features()?;
            }
            Ok(answer)
        });
        // Also after a failure, so that the next transaction loads the indexes again.
        self.forget_features();
        done
    }

    /// The entries of a building step, and whether there are more.
    fn entries(
        &mut self,
        after: &[u8],
        before: &[u8],
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
        run = run.int(3, INDEX_BUILD_ROWS_MAX as i64);
        while run.step()? {
            let key = run.column_blob(0).to_vec();
            let value = self.rows().value(&key)?;
            let value = value.map(|value| (value.encoding, value.bytes));
            bytes += value.as_ref().map_or(0, |(_, bytes)| bytes.len());
            entries.push(BuiltEntry { key, value });
            if bytes >= INDEX_BUILD_BYTES_MAX {
                return Ok((entries, true));
            }
        }
        let more = entries.len() == INDEX_BUILD_ROWS_MAX;
        Ok((entries, more))
    }

    fn build_step(&mut self, now_ms: i64) -> Result<bool> {
        self.read_version()?;
        let site = self.with_catalog(|catalog, connection| catalog.site(connection))?;
        let Some(site) = site else { return self.build_value_index(now_ms) };
        let (entries, more) = self.entries(&site.after, &site.before, now_ms)?;
        self.with_catalog(|catalog, connection| catalog.build(connection, &site, &entries, more))?;
        Ok(more || self.building()?)
    }

    /// Passes the catalog together with its connection.
    fn with_catalog<T>(
        &mut self,
        with: impl FnOnce(&mut Catalog, &rusqlite::Connection) -> Result<T>,
    ) -> Result<T> {
        let mut catalog = std::mem::take(self.catalog());
        let done = with(&mut catalog, self.connection());
        *self.catalog() = catalog;
        done
    }

    /// A step of building a value index; returns whether more is to be built. A copy checks no unique index: it may have
    /// commits from before the index, and the followed database has checked it.
    fn build_value_index(&mut self, now_ms: i64) -> Result<bool> {
        let site = "SELECT id, progress FROM openkv_index \
                    WHERE progress IS NOT NULL AND tokenizer = 'value' ORDER BY id LIMIT 1";
        let found = self
            .connection()
            .query_row(site, [], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)));
        let Some((id, after)) = found.optional().map_err(failure)? else { return Ok(false) };
        let index = self.rows().values.index(id);
        let index = index.ok_or_else(|| Error::internal("an index to build is not there"))?;
        let before = [index.spec().prefix.as_bytes(), &[u8::MAX]].concat();
        // Expired entries too: the time of another process may be earlier.
        let (entries, more) = self.entries(&after, &before, i64::MIN)?;
        self.rows().begin(now_ms)?;
        let is_checked = index.spec().unique && read(self.connection())?.0.is_none();
        let mut failed = None;
        for BuiltEntry { key, value } in &entries {
            let Some((encoding, bytes)) = value else { continue };
            if is_checked {
                failed = self.rows().unfit(&index, key, *encoding, bytes)?;
            }
            if failed.is_some() {
                break;
            }
            self.rows().values.add(&index, key, *encoding, bytes)?;
        }
        let last = entries.last().map(|entry| entry.key.as_slice());
        let after = last.filter(|_| more && failed.is_none());
        set_progress(self.connection(), &index, after, entries.len(), failed.as_ref())?;
        if after.is_none() {
            self.raise_features()?;
        }
        Ok(more || self.building()?)
    }

    fn raise_features(&self) -> Result<()> {
        let raise = "UPDATE openkv_meta SET value = value + 1 WHERE name = 'features'";
        self.connection().execute(raise, []).map(drop).map_err(failure)
    }

    /// Passes the value indexes together with their connection.
    fn with_values<T>(
        &mut self,
        with: impl FnOnce(&mut ValueCatalog, &rusqlite::Connection) -> Result<T>,
    ) -> Result<T> {
        let mut values = std::mem::take(&mut self.rows().values);
        let done = with(&mut values, self.connection());
        self.rows().values = values;
        done
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

impl Indexer for SqliteWriter {
    fn create_index(&mut self, request: &IndexRequest, deadline: Instant) -> Result<IndexInfo> {
        self.change_features(deadline, |writer| {
            if writer.rows().values.has_name(&request.spec.name) {
                return Err(taken_by_value(&request.spec.name));
            }
            let any = writer.has_entries(request.spec.prefix.as_bytes())?;
            let (spec, changed) = writer.with_catalog(|catalog, connection| {
                catalog.create(connection, request, &mut || Ok(any))
            })?;
            let listed = list(&|sql| Statement::prepare(writer.connection(), sql.to_owned()))?;
            let found = listed.into_iter().find(|(_, info)| info.spec == spec);
            let missing = || Error::internal("a new index is not there");
            Ok((found.ok_or_else(missing)?.1, changed))
        })
    }

    fn drop_index(&mut self, choice: &IndexChoice, deadline: Instant) -> Result<bool> {
        self.change_features(deadline, |writer| {
            let mut found =
                writer.with_catalog(|catalog, connection| catalog.remove(connection, choice))?;
            if !found {
                found =
                    writer.with_values(|values, connection| values.remove(connection, choice))?;
            }
            Ok((found, found))
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
            let any = writer.has_entries(request.spec.prefix.as_bytes())?;
            let others = list(&|sql| Statement::prepare(writer.connection(), sql.to_owned()))?;
            let is_taken = others.iter().any(|(_, info)| info.spec.name == request.spec.name);
            writer.with_values(|values, connection| {
                values.create(connection, request, is_taken, &mut || Ok(any))
            })
        })
    }

    #[tracing::instrument(skip_all)]
    fn build_indexes(&mut self, now_ms: i64, deadline: Instant) -> Result<bool> {
        // Building repeats a step that a crash undoes, so no step syncs.
        let done = self.within(false, now_ms, deadline, |writer, _| writer.build_step(now_ms));
        done.inspect_err(|_| self.forget_features())
    }
}
