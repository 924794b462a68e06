//! Commits of a file that must be published before the file has them.
//!
//! Duty: hand what a transaction logs to a publisher before its COMMIT, and store what the publisher answers,
//! its *mark*, in the same transaction; repeat commits that are published already together with their mark; read what
//! commits are decided on ahead of the file.
//! Invariant: a commit is in the file exactly if its mark is. If the file fails after the publication, the outcome
//! is unknown to the caller, the commit is not tried again, and the publisher learns that the file is behind.
//! Never: a log of changes in the file for this alone.

use std::time::Instant;

use rusqlite::OptionalExtension;

use super::errors::failure;
use super::kept_writes::TABLE;
use super::publisher::Publisher;
use super::writer::SqliteWriter;
use crate::Report;
use openkv_core::commit::{Base as _, IndexPoint};
use openkv_core::layer::{Fetched, Lead};
use openkv_core::model::{Error, Key, Kind, LogSegment, Result};

const MARK: &str = "SELECT value FROM openkv_meta WHERE name = 'bucket'";
/// The number of the last message that there ever was.
const LAST_MESSAGE: &str = "SELECT seq FROM sqlite_sequence WHERE name = 'openkv_queue'";
const SET_MARK: &str = "INSERT OR REPLACE INTO openkv_meta (name, value) VALUES ('bucket', ?1)";

impl SqliteWriter {
    /// From now on commits that change entries or messages are published first. They are not synced.
    ///
    /// # Errors
    /// Errors of the file.
    pub(crate) fn publish_by(&mut self, publisher: Box<dyn Publisher>) -> Result<()> {
        self.connection().execute(TABLE, []).map_err(failure)?;
        (self.publisher, self.presence) = (Some(publisher), None);
        self.rows().log.capture(true);
        Ok(())
    }

    /// The mark of the last published commit.
    pub(crate) fn mark(&self) -> Result<Option<Vec<u8>>> {
        let found = self.connection().query_row(MARK, [], |row| row.get(0)).optional();
        found.map_err(failure)
    }

    /// The last commit of the file.
    pub(crate) fn last_commit(&mut self) -> Result<u64> {
        self.read_version()
    }

    /// Sets the mark of a file.
    pub(crate) fn set_mark(&mut self, mark: &[u8]) -> Result<()> {
        self.connection().execute(SET_MARK, [mark]).map(drop).map_err(failure)
    }

    /// The state on which commits are decided ahead of the file.
    pub(crate) fn lead(&mut self, epoch: u64, clock_ms: i64) -> Result<Lead> {
        let version = self.read_version()?;
        let last = self.connection().query_row(LAST_MESSAGE, [], |row| row.get(0)).optional();
        let last_message = last.map_err(failure)?.unwrap_or(0);
        let rows = self.rows();
        let value_indexes = rows.value_indexes().unwrap_or_default();
        let last_uuid = rows.last_uuid()?;
        Ok(Lead { epoch, version, clock_ms, last_uuid, last_message, logs: true, value_indexes })
    }

    /// Entries, each with or without its value, also expired ones.
    pub(crate) fn fetch(&mut self, wanted: &[(Key, bool)]) -> Result<Vec<Fetched>> {
        wanted.iter().map(|(key, with_value)| self.rows().kept(key, *with_value)).collect()
    }

    /// The entries of each value of a unique index.
    pub(crate) fn fetch_points(&mut self, points: &[IndexPoint]) -> Result<Vec<Vec<Vec<u8>>>> {
        let entries_of = |(id, value): &IndexPoint| {
            let mut entries = Vec::new();
            let end = [value.as_slice(), &[u8::MAX]].concat();
            self.rows().walk_index(*id, (value, &end), &mut |entry| {
                entries.push(entry.to_vec());
                true
            })?;
            Ok(entries)
        };
        points.iter().map(entries_of).collect()
    }

    /// Whether the disk may soon be full, so that it is not known whether the file can take more commits.
    pub(crate) fn is_narrow(&self) -> bool {
        self.log_length.is_narrow()
    }

    /// Publishes what the open transaction has logged.
    pub(super) fn publish(&mut self) -> Result<()> {
        let Some(commit) = self.rows().log.take_captured() else { return Ok(()) };
        if self.publisher.is_none() {
            return Ok(());
        }
        self.keep_writes(commit.borrowed())?;
        let Some(publisher) = &mut self.publisher else { return Ok(()) };
        let mark = publisher.publish(commit)?;
        self.is_published = true;
        self.set_mark(&mark)
    }

    /// The error of a transaction that has failed, also if it was published before.
    pub(super) fn failed_behind(&mut self, error: Error) -> Error {
        if !std::mem::take(&mut self.is_published) {
            return error;
        }
        // It must not run again.
        self.was_full = false;
        if let Some(publisher) = &mut self.publisher {
            publisher.behind();
        }
        let what = "the commit is in the object store, but the local copy has failed and reads it from the log again; \
                    read before you write it again";
        Error::new(Kind::OutcomeUnknown, format!("{what}: {}", error.message()))
    }

    /// Changes the schema of the file, to make it fail.
    #[cfg(test)]
    pub(crate) fn change_file(&self, sql: &str) {
        self.connection().execute_batch(sql).unwrap();
    }

    /// The disk is nearly full for the next batch.
    #[cfg(test)]
    pub(crate) fn be_narrow(&mut self) {
        self.log_length.room.be_narrow();
    }

    /// Repeats commits that are published, with the mark of the state after them.
    pub(crate) fn repeat_published(
        &mut self,
        segments: &[LogSegment<'_>],
        mark: &[u8],
        deadline: Instant,
    ) -> Result<Report> {
        self.rows().log.capture(false);
        let repeated = self.within(false, 0, deadline, |writer, _| {
            let begun = writer.start()?;
            let mut all = Report { versions: (begun, begun), ..Report::default() };
            for segment in segments {
                let report = writer.repeat_segment(all.versions.1, *segment)?;
                writer.repeat_database(*segment)?;
                writer.keep_writes(*segment)?;
                all.versions.1 = report.versions.1;
                all.touched.extend(report.touched);
            }
            writer.set_mark(mark)?;
            Ok(all)
        });
        self.rows().log.capture(true);
        // After a failure the next transaction loads the indexes again.
        let report = repeated.inspect_err(|_| self.forget_features())?;
        self.own.left(report.versions.1);
        self.mind_log();
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;
    use crate::sqlite::fresh;
    use crate::{Engine, Reader, Work, Writer};
    use openkv_core::codec::change_log;
    use openkv_core::model::{
        AtomicWrite, Limits, LogBounds, LogSettings, Message, Origin, Segment, Setting, WriteParts,
    };

    #[derive(Clone, Default)]
    struct Kept(Arc<Mutex<Vec<Segment>>>);

    impl Publisher for Kept {
        fn publish(&mut self, commit: Segment) -> Result<Vec<u8>> {
            self.0.lock().unwrap().push(commit);
            Ok(Vec::new())
        }

        fn behind(&mut self) {}
    }

    /// Whether each segment has messages.
    fn with_messages(segments: &[Segment]) -> Vec<bool> {
        let has =
            |one: &Segment| !change_log::messages(one.first, &one.changes).unwrap().is_empty();
        segments.iter().map(has).collect()
    }

    #[test]
    fn messages_are_published_and_logged_only_when_requested() {
        let (engine, _folder) = fresh();
        let (mut reader, mut writer) = (engine.reader().unwrap(), engine.writer().unwrap());
        let published = Kept::default();
        writer.publish_by(Box::new(published.clone())).unwrap();
        let origin = Origin { database: [1; 16], incarnation: 1 };
        let deadline = Instant::now() + Duration::from_secs(5);
        for messages in [false, true] {
            let log = Setting::On(LogBounds::default());
            let settings = LogSettings { log, messages: Some(messages), ..LogSettings::default() };
            writer.set_log(&settings, origin, 0, deadline).unwrap();
            let parts = WriteParts { messages: vec![Message::default()], ..WriteParts::default() };
            let writes = vec![AtomicWrite::new(parts, &Limits::default()).unwrap()];
            writer.apply(Work { writes, ..Work::default() }, 0, deadline).unwrap();
        }
        let mut logged = Vec::new();
        let read = reader.read(0, &mut |snapshot| {
            snapshot.log()?.segments(0, &mut |LogSegment { first, last, at_ms, changes }| {
                logged.push(Segment { first, last, at_ms, changes: changes.to_vec() });
                true
            })
        });
        read.unwrap();
        assert_eq!(with_messages(&logged), [false, true]);
        assert_eq!(with_messages(&published.0.lock().unwrap()), [true, true]);
    }
}
