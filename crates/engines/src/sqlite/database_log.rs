//! Changes of indexes and of kept metrics, in the log of a file whose commits are published.
//!
//! Duty: make such a change a commit of its own, for the log; repeat those of another process.
//! Invariant: the definitions of indexes, and how far each is built, follow from the log alone: a step of building
//! is a commit too, and a process that repeats it adds the same entries. So any process goes on where another stopped,
//! and a unique index refuses the same in all of them.

use super::indexer::Older;
use super::measure::{keep_metrics, kept_metrics};
use super::writer::SqliteWriter;
use openkv_core::codec::change_log;
use openkv_core::commit::Transaction as _;
use openkv_core::model::{DatabaseChange, Result};
use openkv_core::model::{Error, IndexChoice, IndexRequest, LogSegment, ValueIndexRequest};

impl SqliteWriter {
    /// Logs changes that the open transaction has made, as the commit after `before`. Nothing is logged, and there is no
    /// commit, unless the commits of the file are published.
    pub(super) fn log_database(
        &mut self,
        before: u64,
        changes: &[DatabaseChange],
        now_ms: i64,
    ) -> Result<()> {
        if changes.is_empty() || !self.rows().log.captures() {
            return Ok(());
        }
        let version = before + 1;
        self.rows().log.begin()?;
        self.set_version(version, None)?;
        self.rows().log.log_database(version, changes, now_ms)
    }

    /// Merges the kept metrics in the open transaction.
    pub(super) fn merge_metrics(
        &mut self,
        merge: &mut dyn FnMut(Option<&str>) -> String,
    ) -> Result<()> {
        let before = self.read_version()?;
        let merged = merge(kept_metrics(&self.version)?.as_deref());
        keep_metrics(&self.version, &merged)?;
        self.log_database(before, &[DatabaseChange::Metrics(merged)], 0)
    }

    /// Repeats the changes in a segment, in the open transaction. Changes of entries that follow in the same transaction
    /// find the indexes as they are then.
    pub(super) fn repeat_database(&mut self, segment: LogSegment<'_>) -> Result<()> {
        let LogSegment { first, last, changes, .. } = segment;
        let changes = change_log::database(changes).map_err(|error| {
            Error::corrupt(format!("the segment {first} to {last} of the log is damaged: {error}"))
        })?;
        if changes.is_empty() {
            return Ok(());
        }
        for change in changes {
            self.repeat_change(change, segment.at_ms)?;
        }
        self.raise_features()?;
        self.load_indexes()
    }

    fn repeat_change(&mut self, change: DatabaseChange, at_ms: i64) -> Result<()> {
        match change {
            DatabaseChange::SearchIndex { spec, building } => {
                let request = IndexRequest::exact(spec);
                self.with_catalog(|catalog, connection| {
                    catalog.create(connection, &request, &mut || Ok(building)).map(drop)
                })
            }
            DatabaseChange::ValueIndex { spec, building } => {
                let request = ValueIndexRequest { spec, replace: false };
                self.with_values(|values, connection| {
                    values.create(connection, &request, false, &mut || Ok(building)).map(drop)
                })
            }
            DatabaseChange::IndexDropped(name) => {
                self.remove_index(&IndexChoice::Name(name)).map(drop)
            }
            DatabaseChange::IndexBuilt { name, through, scanned, failed } => {
                let site = self.site(Some(&name))?;
                let missing =
                    || Error::corrupt(format!("the log builds '{name}', which is no index"));
                let step = Older::Through { through, scanned, failed };
                self.add_older(&site.ok_or_else(missing)?, step, at_ms).map(drop)
            }
            DatabaseChange::Metrics(text) => keep_metrics(&self.version, &text),
        }
    }
}
