//! The process's one writing connection: a transaction for all the work that waits.

use std::sync::Arc;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ffi};

use super::cache;
use super::feed::FeedWriter;
use super::foreign::OwnCommits;
use super::fulltext::Catalog;
use super::log_length::LogLength;
use super::messages::Messages;
use super::rows::Rows;
use super::statement::Statement;
use super::vacuum::vacuum;
use crate::commit::Evaluation;
use crate::engine::{Agenda, Checkpoint, Ordered, Report, Vacuumed, Work, Writer};
use crate::model::{
    Change, DeadOrder, Encoding, Error, KEPT_OUT_MS_MIN, Key, Kind, LOCK_GRACE_MS, Result,
};

/// Carries out work on the file.
pub struct SqliteWriter {
    begin: Statement,
    commit: Statement,
    rollback: Statement,
    checkpoint: Statement,
    version: Statement,
    set_version: Statement,
    rows: Rows,
    messages: Messages,
    feed: FeedWriter,
    log_length: LogLength,
    /// What all writers of the file have to look after, as last seen.
    features: i64,
    /// The format of the file's values.
    file: Encoding,
    /// In a file for Deno: the last commit of openkv's, as last seen.
    left: u64,
    durable: bool,
    /// When it last had to wait for other processes.
    waited: Option<Instant>,
    /// Drawn on for the lengths of pauses; any odd number will do.
    pauses: u64,
    own: Arc<OwnCommits>,
    // Last, so that the statements above are finalized before it closes.
    connection: Connection,
}

/// Bounds of the pause between two attempts to begin, in µs. Short and random, so that many
/// processes share a busy file fairly; SQLite's own pauses grow to 100 ms and starve some.
const PAUSE_US: std::ops::Range<u64> = 100..1500;

/// In this time everybody who waits for the lock asks for it at least once.
const TURN: Duration = Duration::from_micros(2 * PAUSE_US.end);

/// No value of `features`.
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
            feed: FeedWriter::new(&connection)?,
            log_length: LogLength::new(&connection)?,
            features: UNSEEN,
            file,
            left: 0,
            durable: false,
            waited: None,
            pauses: u64::from(std::process::id()) * 2 + 1,
            own,
            connection,
        };
        writer.set_durable(true)?;
        Ok(writer)
    }

    pub(super) fn set_durable(&mut self, durable: bool) -> Result<()> {
        if self.durable != durable {
            let level = if durable { "FULL" } else { "NORMAL" };
            let set = self.connection.pragma_update(None, "synchronous", level);
            set.map_err(super::errors::failure)?;
            self.durable = durable;
        }
        Ok(())
    }

    /// Begins, however long other processes keep the lock, until the deadline.
    /// Answers how many milliseconds that took: none when nobody was in the way.
    pub(super) fn begin(&mut self, deadline: Instant) -> Result<i64> {
        let mut asked = None;
        loop {
            match self.begin.execute() {
                Err(error) if error.kind() == Kind::Unavailable && Instant::now() < deadline => {
                    asked.get_or_insert_with(Instant::now);
                    std::thread::sleep(self.pause());
                }
                done => {
                    let waited = asked.map_or(Duration::ZERO, |asked| asked.elapsed());
                    if waited >= Duration::from_millis(KEPT_OUT_MS_MIN) {
                        self.waited = Some(Instant::now());
                    }
                    return done.map(|()| i64::try_from(waited.as_millis()).unwrap_or(0));
                }
            }
        }
    }

    /// Whether other processes kept the file for long, a moment ago. Then consumers that live may have had no
    /// chance to renew their locks; they wait for the file like this writer, and renew now.
    fn was_kept_out(&self) -> bool {
        let grace = Duration::from_millis(LOCK_GRACE_MS.unsigned_abs());
        self.waited.is_some_and(|waited| waited.elapsed() < grace)
    }

    fn pause(&mut self) -> Duration {
        // xorshift64: unpredictable enough to keep processes out of step.
        self.pauses ^= self.pauses << 13;
        self.pauses ^= self.pauses >> 7;
        self.pauses ^= self.pauses << 17;
        let span = PAUSE_US.end - PAUSE_US.start;
        Duration::from_micros(PAUSE_US.start + self.pauses % span)
    }

    /// Does the work; answers what it did and the commit counter it leaves.
    fn transact(&mut self, work: Work, now_ms: i64) -> Result<(Report, u64)> {
        let begun = Instant::now();
        let mut report = Report::default();
        let before = self.start()?;

        let mut dead = self.messages.settle(&work.settlements, now_ms, &mut report)?;
        // Before any lock is lost: whoever renews one, however late, is there.
        report.renewed = self.messages.renew(&work.renewals, now_ms)?;
        if self.was_kept_out() {
            for claim in &work.claims {
                self.messages.put_off_lost(claim, now_ms)?;
            }
        }
        // Else it is not synced, and nothing was lost when it was looked at: the next one will see.
        let lost = work.claims.iter().filter(|_| work.durable);
        for claim in lost {
            dead.extend(self.messages.fail_lost(&claim.queue, now_ms, &mut report)?);
        }
        self.rows.begin(now_ms)?;
        let logged = self.feed.begin()?;
        let mut evaluation = Evaluation::new(&mut self.rows, before, now_ms).seeded(work.seed);
        if logged {
            evaluation.keep_changes();
        }
        evaluation.reserve(work.writes.len());
        for write in work.writes {
            report.decisions.push(evaluation.decide(write)?);
        }
        for (keys, value) in dead {
            evaluation.deposit(keys, &value);
        }
        let mut version = evaluation.version();
        let uuid = evaluation.last_uuid();
        let mut removed = evaluation.removed_version().unwrap_or(0);
        let mut changes = evaluation.take_changes();
        let (rows, messages) = evaluation.into_effects();
        if let Some(uuid) = uuid {
            self.rows.keep_uuid(uuid)?;
        }
        for (key, left) in rows {
            if let Some(end) = left.expire_at_ms() {
                report.expiry_ms = Some(report.expiry_ms.map_or(end, |at| at.min(end)));
            }
            self.rows.leave(&key, &left)?;
            report.touched.push(key);
        }
        report.queued |= !messages.is_empty();
        for (write, message) in &messages {
            report.enqueued(*write, self.messages.enqueue(message, now_ms)?);
        }
        for claim in &work.claims {
            report.deliveries.push(self.messages.claim(claim, now_ms)?);
        }
        report.purged = self.messages.purge(work.purge_max, now_ms)?;
        let swept = self.rows.sweep(work.sweep_max, now_ms)?;
        report.swept = swept.len();
        report.sweep_more = work.sweep_max > 0 && swept.len() == work.sweep_max;
        if !swept.is_empty() {
            version += 1;
            removed = version;
            if logged {
                let gone = |key: &Key| Change { key: key.clone(), version, value: None };
                changes.extend(swept.iter().map(gone));
            }
        }
        report.touched.extend(swept);
        self.feed.log(&changes, now_ms)?;
        // Only a commit makes other processes look, and there is work for them.
        version += u64::from(report.put_back);
        self.write_version(before, version, removed)?;
        report.versions = (before, version);
        report.worked = begun.elapsed();
        Ok((report, version))
    }

    /// A transaction that may commit has begun; answers the commit counter.
    fn start(&mut self) -> Result<u64> {
        let before = self.read_version()?;
        self.messages.depths.begin()?;
        self.own.found(before);
        // Deno has committed, and nobody knows what it has removed.
        if self.file == Encoding::V8 && self.left != before && self.feed.is_on() {
            self.feed.lose(before)?;
        }
        Ok(before)
    }

    /// `removed` is the last commit that removed something, or 0.
    fn write_version(&mut self, before: u64, version: u64, removed: u64) -> Result<()> {
        if version == before {
            return Ok(());
        }
        // In a file for Deno, `seq` says up to where nobody else has committed.
        let removed = if self.file == Encoding::V8 { version } else { removed };
        let run = self.set_version.run().int(1, version.cast_signed());
        run.int(2, removed.cast_signed()).finish()
    }

    /// Runs `job` in a transaction, and commits it.
    fn within<T>(
        &mut self,
        durable: bool,
        now_ms: i64,
        deadline: Instant,
        job: impl FnOnce(&mut Self, i64) -> Result<T>,
    ) -> Result<T> {
        self.set_durable(durable)?;
        let waited_ms = self.begin(deadline)?;
        // Waiting for other processes can take seconds, by which locks would end too soon and ended
        // entries still be there.
        let done = match job(self, now_ms.saturating_add(waited_ms)) {
            Ok(done) => done,
            Err(error) => {
                self.roll_back();
                return Err(error);
            }
        };
        self.end()?;
        Ok(done)
    }

    /// The next transaction looks again at what it has to look after.
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

    /// The commit counter. At the start of every transaction, since it learns too what this writer has
    /// to look after.
    pub(super) fn read_version(&mut self) -> Result<u64> {
        let mut run = self.version.run();
        if !run.step()? {
            return Err(Error::corrupt("the commit counter is missing: the file is damaged"));
        }
        let (version, features) = (run.column_int(0).cast_unsigned(), run.column_int(1));
        self.left = run.column_int(2).cast_unsigned();
        drop(run);
        if self.features != features {
            self.feed.reload()?;
            self.rows.catalog = Catalog::load(&self.connection)?;
            self.features = features;
        }
        Ok(version)
    }

    /// Commits what was done since [`Self::begin`].
    pub(super) fn end(&mut self) -> Result<()> {
        self.commit.commit().inspect_err(|_| self.roll_back())
    }

    /// Ends the transaction, if SQLite has not done so already.
    pub(super) fn roll_back(&mut self) {
        self.messages.depths.forget();
        // SAFETY: the handle is open for as long as the connection.
        let open = unsafe { ffi::sqlite3_get_autocommit(self.connection.handle()) } == 0;
        if open && let Err(error) = self.rollback.execute() {
            tracing::error!(%error, "rolling back");
        }
    }
}

impl Writer for SqliteWriter {
    fn apply(&mut self, mut work: Work, now_ms: i64, deadline: Instant) -> Result<Report> {
        // What cannot be looked at may be.
        let any_lost = self.messages.any_lost(&work.claims, now_ms).unwrap_or(true);
        work.durable |= any_lost;
        if any_lost && !self.was_kept_out() {
            // Whoever waits for the file, to renew its locks, goes first.
            std::thread::sleep(TURN);
        }
        let (writes, durable) = (work.writes.len(), work.durable);
        let _span = tracing::debug_span!("commit", writes, durable).entered();
        let done =
            self.within(durable, now_ms, deadline, |writer, now_ms| writer.transact(work, now_ms));
        let (mut report, version) = done?;
        self.own.left(version);
        report.cache_looks = cache::taken(&self.connection);
        // It is committed, whatever becomes of the log.
        if let Err(error) = self.log_length.mind(&self.connection) {
            tracing::warn!(%error, "beginning the log anew");
        }
        Ok(report)
    }

    fn log_changes(&mut self, deadline: Instant) -> Result<u64> {
        let version = self.read_version()?;
        if self.feed.is_on() {
            return Ok(version);
        }
        self.set_durable(true)?;
        self.begin(deadline)?;
        let started = self.read_version().and_then(|version| {
            self.feed.start()?;
            Ok(version)
        });
        match started {
            Ok(version) => {
                self.end()?;
                Ok(version)
            }
            Err(error) => {
                self.roll_back();
                Err(error)
            }
        }
    }

    fn agenda(&mut self) -> Result<Agenda> {
        Ok(Agenda {
            expiry_ms: self.rows.earliest_expiry()?,
            purge_ms: self.messages.earliest_purge()?,
            building: self.building()?,
        })
    }

    fn message_agenda(&mut self, queue: &str) -> Result<Option<i64>> {
        self.messages.earliest(queue)
    }

    fn queue_depth(&mut self, queue: &str) -> Result<u64> {
        self.messages.depth(queue)
    }

    fn order_dead(
        &mut self,
        queue: &str,
        order: &DeadOrder,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<Ordered> {
        let done = self.within(true, now_ms, deadline, |writer, now_ms| {
            let before = writer.start()?;
            let count = writer.messages.order_dead(queue, order, now_ms)?;
            // Only a commit makes other processes look, and there may be work for them.
            let requeued = count > 0 && matches!(order, DeadOrder::Requeue(_));
            let version = before + u64::from(requeued);
            writer.write_version(before, version, 0)?;
            Ok(Ordered { count, versions: (before, version) })
        })?;
        self.own.left(done.versions.1);
        Ok(done)
    }

    fn vacuum(&mut self, deadline: Instant) -> Result<Vacuumed> {
        vacuum(&self.connection, deadline)
    }

    #[tracing::instrument(skip_all)]
    fn checkpoint(&mut self) -> Result<Checkpoint> {
        let mut run = self.checkpoint.run();
        if !run.step()? {
            return Err(Error::internal("a checkpoint answered nothing"));
        }
        // −1 where there is no log.
        let pages = |at| u64::try_from(run.column_int(at)).unwrap_or(0);
        Ok(Checkpoint { log_pages: pages(1), moved_pages: pages(2) })
    }
}
