//! The [`Indexer`] of a file.

use std::time::Instant;

use rusqlite::OptionalExtension;

use super::errors::failure;
use super::fulltext::{BuiltEntry, Catalog, list};
use super::statement::Statement;
use super::writer::SqliteWriter;
use crate::Indexer;
use openkv_core::model::{
    Error, INDEX_BUILD_BYTES_MAX, INDEX_BUILD_ROWS_MAX, IndexChoice, IndexInfo, IndexRequest,
    Result,
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
                let raise = "UPDATE openkv_meta SET value = value + 1 WHERE name = 'features'";
                writer.connection().execute(raise, []).map_err(failure)?;
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
        let Some(site) = site else { return Ok(false) };
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

    /// Removes all documents, in the transaction of the caller.
    pub(super) fn clear_indexes(&mut self) -> Result<()> {
        self.with_catalog(|catalog, connection| catalog.clear(connection))
    }

    /// Whether an index is being built.
    pub(super) fn building(&self) -> Result<bool> {
        let any = "SELECT 1 FROM openkv_index WHERE progress IS NOT NULL LIMIT 1";
        let found = self.connection().query_row(any, [], |_| Ok(())).optional();
        Ok(found.map_err(failure)?.is_some())
    }
}

impl Indexer for SqliteWriter {
    fn create_index(&mut self, request: &IndexRequest, deadline: Instant) -> Result<IndexInfo> {
        self.change_features(deadline, |writer| {
            let (spec, changed) = writer.with_catalog(|catalog, connection| {
                let prefix = request.spec.prefix.as_bytes();
                let end = [prefix, &[u8::MAX]].concat();
                catalog.create(connection, request, &mut || {
                    let any = "SELECT 1 FROM kv WHERE k > ?1 AND k < ?2 LIMIT 1";
                    let found = connection.query_row(any, [prefix, &end], |_| Ok(())).optional();
                    Ok(found.map_err(failure)?.is_some())
                })
            })?;
            let listed = list(&|sql| Statement::prepare(writer.connection(), sql))?;
            let found = listed.into_iter().find(|(_, info)| info.spec == spec);
            let missing = || Error::internal("a new index is not there");
            Ok((found.ok_or_else(missing)?.1, changed))
        })
    }

    fn drop_index(&mut self, choice: &IndexChoice, deadline: Instant) -> Result<bool> {
        self.change_features(deadline, |writer| {
            let found =
                writer.with_catalog(|catalog, connection| catalog.remove(connection, choice))?;
            Ok((found, found))
        })
    }

    #[tracing::instrument(skip_all)]
    fn build_indexes(&mut self, now_ms: i64, deadline: Instant) -> Result<bool> {
        // Building repeats a step that a crash undoes, so no step syncs.
        let done = self.within(false, now_ms, deadline, |writer, _| writer.build_step(now_ms));
        done.inspect_err(|_| self.forget_features())
    }
}
