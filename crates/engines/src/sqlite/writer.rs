//! The only writing connection of a process.

mod rest;
mod transaction;
mod vacuum;

use std::sync::Arc;
use std::time::Instant;

use rusqlite::{Connection, ffi};

use super::FileClaim;
use super::contention::{Contention, TURN};
use super::disk_room::with_refused;
use super::external::OwnCommits;
use super::followed;
use super::fulltext::{BuiltEntry, Catalog};
use super::identity::Presence;
use super::log_file::{Synced, set_synced};
use super::log_length::LogLength;
use super::messages::Messages;
use super::page_cache::take_counts;
use super::pool::Seat;
use super::publisher::Publisher;
use super::rows::Rows;
use super::statement::Statement;
use crate::replication::extent::{Beginning, FOR_FEEDS};
use crate::{
    DeadLettersChanged, GoesOn, NextDeadlines, NextEntries, Progress, Report, Work, Writer,
};
use openkv_core::commit::{Begun, MessageTable as _, batch, replay};
use openkv_core::model::{
    AtomicWrite, Checkpoint, DeadLetterChange, Encoding, Error, Followed, LogSegment, LogSettings,
    LoggedMessage, MessageDeletion, Origin, QueueChange, QueueChanged, Replacement, Result,
    Vacuumed, WriteRecord,
};

/// The [`Writer`] of a file.
pub struct SqliteWriter {
    begin: Statement,
    commit: Statement,
    rollback: Statement,
    checkpoint: Statement,
    pub(super) version: Statement,
    set_version: Statement,
    rows: Rows,
    messages: Messages,
    pub(super) log_length: LogLength,
    /// The counter of the file's features at the last read. Features are the log and the indexes, which
    /// all writers maintain.
    features: i64,
    /// The format of the file's values.
    file: Encoding,
    /// At the last read, the last commit that removed an entry; in a file for Deno, the last commit of
    /// openkv.
    left: u64,
    durable: bool,
    /// Nothing was written since [`Writer::rest`].
    rests: bool,
    /// A transaction has begun for the next batch.
    has_begun: bool,
    /// The last transaction found no room on the disk.
    pub(super) was_full: bool,
    contention: Contention,
    pub(super) own: Arc<OwnCommits>,
    /// `None` if the commits are published: then the file is a copy, which may be lost.
    pub(super) presence: Option<Presence>,
    pub(super) publisher: Option<Box<dyn Publisher>>,
    /// The open transaction is published.
    pub(super) is_published: bool,
    // Dropped after the statements above.
    connection: Connection,
    /// The place of the connection among those of the process.
    pub(super) seat: Option<Seat>,
    // Last field: other copies of openkv may open the file once the connection is closed.
    pub(super) claim: FileClaim,
}

/// Differs from every value of `features`.
const UNSEEN: i64 = -1;

impl SqliteWriter {
    pub(super) fn new(
        connection: Connection,
        file: Encoding,
        own: Arc<OwnCommits>,
    ) -> Result<Self> {
        let prepare = |sql| Statement::prepare(&connection, sql);
        let mut writer = Self {
            begin: prepare("BEGIN IMMEDIATE")?,
            commit: prepare("COMMIT")?,
            rollback: prepare("ROLLBACK")?,
            checkpoint: prepare("PRAGMA wal_checkpoint(PASSIVE)")?,
            version: prepare(
                "SELECT version, (SELECT value FROM openkv_meta WHERE name = 'features'), seq \
                 FROM data_version WHERE k = 0",
            )?,
            set_version: prepare(
                "UPDATE data_version SET version = ?1, seq = max(seq, ?2) WHERE k = 0",
            )?,
            rows: Rows::new(&connection, file)?,
            messages: Messages::new(&connection, file)?,
            log_length: LogLength::new(&connection)?,
            features: UNSEEN,
            file,
            left: 0,
            durable: false,
            rests: false,
            has_begun: false,
            was_full: false,
            contention: Contention::new(std::process::id()),
            own,
            presence: None,
            publisher: None,
            is_published: false,
            connection,
            seat: None,
            claim: FileClaim::default(),
        };
        writer.set_durable(true)?;
        Ok(writer)
    }

    pub(super) fn set_durable(&mut self, durable: bool) -> Result<()> {
        // What a publisher makes durable need not be synced here.
        let durable = durable && self.publisher.is_none();
        self.wake();
        self.seat.iter().for_each(Seat::touch);
        if self.durable != durable {
            let synced = if durable { Synced::Commits } else { Synced::Moves };
            set_synced(&self.connection, synced)?;
            self.durable = durable;
        }
        Ok(())
    }

    /// Begins a transaction in the file at its path, waiting for other processes until the deadline. Returns the wait
    /// in ms.
    pub(super) fn begin_transaction(&mut self, deadline: Instant) -> Result<i64> {
        self.presence.as_mut().map_or(Ok(()), |presence| presence.verify(Instant::now()))?;
        if std::mem::take(&mut self.has_begun) {
            return Ok(0);
        }
        self.contention.begin(&mut self.begin, deadline)
    }

    fn transact(&mut self, work: Work, now_ms: i64) -> Result<Report> {
        let started = Instant::now();
        let version = self.start()?;
        let logs = self.begin_rows(now_ms)?;
        let kept_out = self.contention.were_kept_out();
        let begun = Begun { kept_out, ..self.begun(version, logs, now_ms) };
        let writes: &[AtomicWrite] = if self.rows.log.captures() { &work.writes } else { &[] };
        let attempts: Vec<_> = writes.iter().map(AtomicWrite::attempt).collect();
        let report = batch::run(self, &begun, work)?;
        self.rows.log.log_writes(&WriteRecord::of(attempts, &report.decisions));
        Ok(Report { worked: started.elapsed(), ..report })
    }

    /// Must be called at the start of a transaction that changes entries; returns whether the changes are
    /// logged.
    pub(super) fn begin_rows(&mut self, now_ms: i64) -> Result<bool> {
        self.rows.begin(now_ms)?;
        self.rows.log.begin()
    }

    /// A transaction that has begun its rows.
    fn begun(&self, version: u64, logs: bool, now_ms: i64) -> Begun {
        let logs_messages = self.rows.log.has_messages();
        Begun { version, now_ms, logs, logs_messages, kept_out: false }
    }

    /// Repeats a segment of another copy's log in the open transaction, after the commit `version`.
    pub(super) fn repeat_segment(
        &mut self,
        version: u64,
        segment: LogSegment<'_>,
    ) -> Result<Report> {
        let logs = self.begin_rows(segment.at_ms)?;
        let begun = self.begun(version, logs, segment.at_ms);
        replay::run(self, &begun, segment)
    }

    /// Must be called at the start of a transaction that may commit; returns the commit counter.
    pub(super) fn start(&mut self) -> Result<u64> {
        let before = self.read_version()?;
        self.messages.depths.begin()?;
        self.own.found(before);
        // Deno has committed, and it logs no removals.
        if self.file == Encoding::V8 && self.left != before && self.rows.log.is_on() {
            self.rows.log.restart(before, 0)?;
        }
        Ok(before)
    }

    /// Runs `job` in a transaction and commits it.
    pub(super) fn within<T>(
        &mut self,
        durable: bool,
        now_ms: i64,
        deadline: Instant,
        job: impl FnOnce(&mut Self, i64) -> Result<T>,
    ) -> Result<T> {
        self.was_full = false;
        self.is_published = false;
        self.set_durable(durable)?;
        let waited_ms = self.begin_transaction(deadline)?;
        self.rows.log.take_captured();
        // Adds the wait, which can take seconds: otherwise locks would expire too early and expired
        // entries would still be visible.
        let done = job(self, now_ms.saturating_add(waited_ms));
        let done = match done.and_then(|done| self.publish().map(|()| done)) {
            Ok(done) => self.end().map(|()| done),
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        };
        done.inspect_err(|_| self.make_room()).map_err(|error| self.failed_behind(error))
    }

    /// Changes the settings of the log, in a transaction that has started at the commit `version`.
    fn change_log(
        &mut self,
        settings: &LogSettings,
        origin: Origin,
        version: u64,
        now_ms: i64,
    ) -> Result<()> {
        // What Deno removes is not known.
        let removed = if self.file == Encoding::V8 { version } else { self.left };
        self.rows.log.set(settings, origin.database, Beginning { version, removed }, now_ms)
    }

    /// Makes the next transaction load the log and the indexes again.
    pub(super) fn forget_features(&mut self) {
        self.features = UNSEEN;
    }

    pub(super) fn connection(&self) -> &Connection {
        &self.connection
    }

    pub(super) fn rows(&mut self) -> &mut Rows {
        &mut self.rows
    }

    #[cfg(test)]
    pub(super) fn depths(&mut self) -> &mut super::depths::Depths {
        &mut self.messages.depths
    }

    pub(super) fn catalog(&mut self) -> &mut Catalog {
        &mut self.rows.catalog
    }

    /// The format of the file's values.
    pub(super) fn file(&self) -> Encoding {
        self.file
    }

    /// Reads the commit counter. Must be called at the start of every transaction: it also loads
    /// the log and the indexes if they have changed.
    pub(super) fn read_version(&mut self) -> Result<u64> {
        let mut run = self.version.run();
        run.row("the commit counter")?;
        let (version, features) = (run.column_int(0).cast_unsigned(), run.column_int(1));
        self.left = run.column_int(2).cast_unsigned();
        drop(run);
        if self.features != features {
            self.rows.log.reload()?;
            self.load_indexes()?;
            self.features = features;
        }
        Ok(version)
    }

    /// Commits everything since [`Self::begin`].
    pub(super) fn end(&mut self) -> Result<()> {
        self.commit.commit().inspect_err(|_| self.roll_back())
    }

    /// Empties the log after a transaction that found the disk full, so that the next one may find room.
    fn make_room(&mut self) {
        if self.was_full {
            self.log_length.make_room(&self.connection);
        }
    }

    /// Refuses entries for an index in the open transaction if they, and what it `merges`, leave no room for deletions.
    pub(super) fn require_room(&mut self, entries: &[BuiltEntry], merges: bool) -> Result<()> {
        self.log_length.admit(&self.connection, entries, merges)
    }

    /// Keeps the log of SQLite short, after a transaction that is committed even if this fails.
    pub(super) fn mind_log(&mut self) {
        if let Err(error) = self.log_length.mind(&self.connection) {
            tracing::warn!(%error, "beginning the log anew");
        }
    }

    /// Ends the transaction, unless SQLite has already done so.
    pub(super) fn roll_back(&mut self) {
        self.messages.depths.forget();
        // SAFETY: the handle is open as long as the connection; the code is that of the failed statement.
        let code = unsafe { ffi::sqlite3_errcode(self.connection.handle()) };
        self.was_full = code == ffi::SQLITE_FULL;
        // SAFETY: the handle is open as long as the connection.
        let open = unsafe { ffi::sqlite3_get_autocommit(self.connection.handle()) } == 0;
        if open && let Err(error) = self.rollback.execute() {
            tracing::error!(%error, "rolling back");
        }
    }
}

impl Writer for SqliteWriter {
    fn begin(&mut self, mut work: Work, now_ms: i64, deadline: Instant) -> Result<Progress> {
        let at_once = self.has_begun;
        // If the query fails, assume that a lock has expired.
        let any_expired =
            !at_once && self.messages.any_expired(&work.claims, now_ms).unwrap_or(true);
        work.durable |= any_expired;
        if any_expired && !self.contention.were_kept_out() {
            // Lets processes that wait for the file renew their locks first.
            std::thread::sleep(TURN);
        }
        let (writes, durable) = (work.writes.len(), work.durable);
        let _span = tracing::debug_span!("commit", writes, durable).entered();
        let refused =
            if at_once { Vec::new() } else { self.log_length.refuse(&self.connection, &mut work) };
        let again = self.log_length.is_narrow().then(|| work.clone());
        let bytes = work.writes.iter().map(|write| write.size_bytes() as u64).sum();
        let mut done =
            self.within(durable, now_ms, deadline, |writer, now_ms| writer.transact(work, now_ms));
        if let (true, Some(work)) = (self.was_full, again) {
            done = self
                .within(durable, now_ms, deadline, |writer, now_ms| writer.transact(work, now_ms));
        }
        let mut report = match done {
            Err(_) if self.was_full => return Err(self.log_length.full(&self.connection, bytes)),
            done => done?,
        };
        with_refused(&mut report.decisions, refused);
        self.own.left(report.versions.1);
        report.cache_looks = take_counts(&self.connection);
        if !at_once {
            self.mind_log();
        }
        Ok(Progress::Done(report))
    }

    fn rest(&mut self) {
        self.give_back();
    }

    fn park(&mut self) -> bool {
        self.leave_log()
    }

    fn begin_at_once(&mut self, durable: bool) -> bool {
        self.has_begun = self.log_length.is_short(&self.connection)
            && !self.contention.were_kept_out()
            && self.set_durable(durable).is_ok()
            && self.begin.execute().is_ok();
        self.has_begun
    }

    fn log_changes(&mut self, origin: Origin, now_ms: i64, deadline: Instant) -> Result<u64> {
        let version = self.read_version()?;
        if self.rows.log.is_on() {
            return Ok(version);
        }
        self.within(true, now_ms, deadline, |writer, now_ms| {
            let version = writer.start()?;
            // Another process may have turned it on meanwhile.
            if !writer.rows.log.is_on() {
                writer.change_log(&FOR_FEEDS, origin, version, now_ms)?;
            }
            Ok(version)
        })
    }

    fn set_log(
        &mut self,
        settings: &LogSettings,
        origin: Origin,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<u64> {
        if self.file == Encoding::V8 {
            return Err(Error::unsupported(
                "the options log and history: Deno writes to this file too, and logs nothing; copy its \
                 entries into a file of openkv's own with openkv copy",
            ));
        }
        self.within(true, now_ms, deadline, |writer, now_ms| {
            let version = writer.start()?;
            writer.change_log(settings, origin, version, now_ms)?;
            Ok(version)
        })
    }

    fn replay(&mut self, segment: LogSegment<'_>, deadline: Instant) -> Result<Report> {
        let report = self.within(true, segment.at_ms, deadline, |writer, _| {
            let version = writer.start()?;
            writer.repeat_segment(version, segment)
        })?;
        self.own.left(report.versions.1);
        Ok(report)
    }

    fn followed(&mut self) -> Result<Option<Followed>> {
        Ok(followed::read(&self.connection)?.0)
    }

    fn follow(
        &mut self,
        after: &Followed,
        segments: &[LogSegment<'_>],
        deadline: Instant,
    ) -> Result<Report> {
        // What a power loss undoes is fetched again.
        let report = self.within(false, 0, deadline, |writer, _| writer.repeat(after, segments))?;
        self.own.left(report.versions.1);
        self.mind_log();
        Ok(report)
    }

    fn replace_all(
        &mut self,
        replacement: &Replacement,
        entries: NextEntries<'_>,
        deadline: Instant,
    ) -> Result<Report> {
        let report = Self::replace_all(self, replacement, entries, deadline)?;
        self.own.left(report.versions.1);
        Ok(report)
    }

    fn add_messages(&mut self, messages: &[LoggedMessage], deadline: Instant) -> Result<()> {
        self.within(true, 0, deadline, |writer, _| {
            writer.start()?;
            writer.messages.repeat(messages)
        })
    }

    fn keep_metrics(
        &mut self,
        merge: &mut dyn FnMut(Option<&str>) -> String,
        deadline: Instant,
    ) -> Result<()> {
        self.within(false, 0, deadline, |writer, _| writer.merge_metrics(merge))
    }

    fn next_deadlines(&mut self) -> Result<NextDeadlines> {
        Ok(NextDeadlines {
            expiry_ms: self.rows.earliest_expiry()?,
            purge_ms: self.messages.earliest_purge()?,
            building: self.building()?,
        })
    }

    fn next_message_ms(&mut self, queue: &str) -> Result<Option<i64>> {
        self.messages.earliest(queue)
    }

    fn queue_depth(&mut self, queue: &str) -> Result<u64> {
        self.messages.depth(queue)
    }

    fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<DeadLettersChanged> {
        let done = self.within(true, now_ms, deadline, |writer, now_ms| {
            let before = writer.start()?;
            let (changed, beside) = writer.messages.change_dead_letters(queue, change, now_ms)?;
            // Other processes notice only commits, and the message may be for their consumers.
            let requeued = change.requeues();
            let all = [&changed[..], &beside].concat();
            let version = writer.log_messages(before, &all, requeued, now_ms)?;
            Ok(DeadLettersChanged { count: changed.len(), versions: (before, version) })
        })?;
        self.own.left(done.versions.1);
        Ok(done)
    }

    fn delete_message(
        &mut self,
        queue: &str,
        id: i64,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<MessageDeletion> {
        let (deletion, version) = self.within(true, now_ms, deadline, |writer, now_ms| {
            let before = writer.start()?;
            let (deletion, beside) = writer.messages.delete_waiting(queue, id, now_ms)?;
            let deleted = if deletion == MessageDeletion::Deleted { &[id][..] } else { &[] };
            let (all, admits) = ([deleted, &beside].concat(), !beside.is_empty());
            Ok((deletion, writer.log_messages(before, &all, admits, now_ms)?))
        })?;
        self.own.left(version);
        Ok(deletion)
    }

    fn bound_times(&mut self, queue: &str, now_ms: i64, deadline: Instant) -> Result<()> {
        if !self.messages.is_ahead(queue, now_ms)? {
            return Ok(());
        }
        let version = self.within(true, now_ms, deadline, |writer, now_ms| {
            let before = writer.start()?;
            let changed = writer.messages.bound_times(queue, now_ms)?;
            writer.log_messages(before, &changed, false, now_ms)
        })?;
        self.own.left(version);
        Ok(())
    }

    fn change_queue(
        &mut self,
        queue: &str,
        change: QueueChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<QueueChanged> {
        let done = self.within(true, now_ms, deadline, |writer, now_ms| {
            let before = writer.start()?;
            let (ids, beside) = writer.messages.change_queue(queue, change, now_ms)?;
            let all = [&ids[..], &beside].concat();
            let version = writer.log_messages(before, &all, true, now_ms)?;
            Ok(QueueChanged { ids, versions: (before, version) })
        })?;
        self.own.left(done.versions.1);
        Ok(done)
    }

    fn empty_log(&mut self) -> Result<()> {
        self.log_length.empty(&self.connection)
    }

    fn vacuum(&mut self, deadline: Instant, goes_on: &GoesOn) -> Result<Vacuumed> {
        self.give_pages_back(deadline, goes_on)
    }

    #[tracing::instrument(skip_all)]
    fn checkpoint(&mut self) -> Result<Checkpoint> {
        // −1 without a log.
        let pages = |pages| u64::try_from(pages).unwrap_or(0);
        let moved = self.checkpoint.run().first(|row| (row.column_int(1), row.column_int(2)))?;
        let (log, moved) = moved.ok_or_else(|| Error::internal("a checkpoint answered nothing"))?;
        Ok(Checkpoint { log_pages: pages(log), moved_pages: pages(moved) })
    }
}
