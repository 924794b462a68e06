//! Transactions of a process that does not lead: each decides its batch under the lock of the
//! database's row. A leader uses them too, for work that cannot be decided ahead.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Shared;
use super::history;
use super::lead;
use super::line::Call;
use super::outcome::until_answered;
use super::replication::{self, TurnedOff};
use super::transaction::{self, Ended, OpenTransaction, Purpose, Unknown};
use crate::replication::extent::FOR_FEEDS;
use crate::{DeadLettersChanged, Report, Work};
use openkv_core::commit::{Begun, batch};
use openkv_core::layer::Lead;
use openkv_core::model::{
    AtomicWrite, DeadLetterChange, Error, KEPT_OUT_MS_MIN, Kind, LOCK_GRACE_MS, LogSettings,
    MessageDeletion, Origin, POSTGRES_EMPTY_STEP_ROWS, POSTGRES_RESOLVE_PAUSE_MS, QueueChange,
    QueueChanged, Result, WriteRecord,
};

/// Pause between two attempts to begin a transaction.
const PAUSE: Duration = Duration::from_millis(POSTGRES_RESOLVE_PAUSE_MS);

/// Writes to a database, one transaction at a time.
pub(super) struct Direct {
    pub(super) shared: Arc<Shared>,
    /// When it last had to wait for other processes.
    waited: Option<Instant>,
}

/// A transaction that has committed, and the state of the database after it.
pub(super) struct CarriedOut {
    pub(super) report: Report,
    pub(super) lead: Lead,
}

impl Direct {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, waited: None }
    }

    /// Carries out work. `epoch`: the one that the database must have, if it is given.
    pub(super) fn carry_out(
        &mut self,
        work: Work,
        now_ms: i64,
        deadline: Instant,
        epoch: Option<u64>,
    ) -> Result<CarriedOut> {
        let (open, report) = self.decide(work, now_ms, deadline, epoch)?;
        let lead = open.lead_after();
        self.commit(open)?;
        Ok(CarriedOut { report, lead })
    }

    /// As [`Direct::carry_out`], up to the commit.
    ///
    /// # Errors
    /// Nothing was done.
    pub(super) fn decide(
        &mut self,
        mut work: Work,
        now_ms: i64,
        deadline: Instant,
        epoch: Option<u64>,
    ) -> Result<(OpenTransaction, Report)> {
        // A lock can have expired in any claim, and the value of a dead message is a commit for which
        // no caller chose a durability.
        work.durable |= !work.claims.is_empty();
        let shared = self.shared.clone();
        let mut open = self.open(&|| Purpose::of(&shared, &work, now_ms, deadline))?;
        if epoch.is_some_and(|epoch| open.row.epoch != epoch.cast_signed()) {
            open.roll_back();
            return Err(lead::overtaken());
        }
        let started = Instant::now();
        self.shared.time.learn(open.row.now_ms);
        let begun = Begun {
            version: open.row.version.cast_unsigned(),
            now_ms: open.row.now_ms,
            logs: open.row.log_parts.has_log(),
            kept_out: self.was_kept_out(),
            logs_messages: open.row.log_parts.has_messages(),
        };
        let attempts: Vec<_> = work.writes.iter().map(AtomicWrite::attempt).collect();
        match batch::run(&mut open, &begun, work) {
            Ok(report) => {
                open.log_writes(&WriteRecord::of(attempts, &report.decisions));
                Ok((open, Report { worked: started.elapsed(), ..report }))
            }
            Err(error) => {
                open.roll_back();
                Err(error)
            }
        }
    }

    /// Turns on the log for feeds, if it is off, also of a database that another process leads. Returns the last
    /// commit.
    pub(super) fn log_changes(
        &mut self,
        origin: Origin,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<u64> {
        self.beside_leader(now_ms, deadline, |open| {
            if !open.row.log_parts.has_log() {
                open.set_log(&FOR_FEEDS, origin)?;
            }
            Ok(open.version())
        })
    }

    /// Changes the settings of the replication log, also of a database that another process leads. Returns
    /// the last commit.
    pub(super) fn set_log(
        &mut self,
        settings: &LogSettings,
        origin: Origin,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<u64> {
        let set =
            |open: &mut OpenTransaction| Ok((open.version(), open.set_log(settings, origin)?));
        let (version, TurnedOff { log, history }) = self.beside_leader(now_ms, deadline, set)?;
        if history {
            self.forget(history::FORGET, version)?;
        }
        if log {
            self.forget(replication::FORGET, version)?;
        }
        Ok(version)
    }

    /// Changes what no write depends on, also of a database that another process leads.
    ///
    /// # Errors
    /// Those of `change`; the error of the server.
    pub(super) fn beside_leader<T>(
        &mut self,
        now_ms: i64,
        deadline: Instant,
        change: impl FnOnce(&mut OpenTransaction) -> Result<T>,
    ) -> Result<T> {
        let shared = self.shared.clone();
        let mut open = self.open_any(&|| Purpose::plain(&shared, now_ms, deadline))?;
        match change(&mut open) {
            Ok(changed) => open.confirm().map(|()| changed),
            Err(error) => {
                open.roll_back();
                Err(error)
            }
        }
    }

    /// Deletes in steps, so that the writers of other processes do not wait. What is left after a crash is of no
    /// use to any reader, and is trimmed once the log or the history is on again.
    fn forget(&self, some: &'static str, version: u64) -> Result<()> {
        let version = version.cast_signed();
        loop {
            let call: Call<'_> = (some, vec![&self.shared.db, &version, &POSTGRES_EMPTY_STEP_ROWS]);
            if self.shared.query(call)?.is_empty() {
                return Ok(());
            }
        }
    }

    /// # Errors
    /// As [`crate::Writer::delete_message`].
    pub(super) fn delete_message(
        &mut self,
        queue: &str,
        id: i64,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<MessageDeletion> {
        let mut open = self.open_plain(now_ms, deadline)?;
        let now_ms = open.row.now_ms;
        let done =
            open.messages.delete_waiting(queue, id, now_ms).and_then(|(deletion, beside)| {
                let deleted = if deletion == MessageDeletion::Deleted { &[id][..] } else { &[] };
                let (all, admits) = ([deleted, &beside].concat(), !beside.is_empty());
                open.log_messages(&all, admits).map(|()| deletion)
            });
        self.end(open, done)
    }

    /// # Errors
    /// As [`crate::Writer::change_dead_letters`].
    pub(super) fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<DeadLettersChanged> {
        let mut open = self.open_plain(now_ms, deadline)?;
        let before = open.version();
        let now_ms = open.row.now_ms;
        let done = open.messages.change_dead_letters(queue, change, now_ms);
        let done = done.and_then(|(changed, beside)| {
            // Only a commit makes other processes look, and there may be work for them.
            let requeued = change.requeues();
            open.log_messages(&[&changed[..], &beside].concat(), requeued)?;
            let versions = (before, open.version());
            Ok(DeadLettersChanged { count: changed.len(), versions })
        });
        self.end(open, done)
    }

    /// # Errors
    /// As [`crate::Writer::change_queue`].
    pub(super) fn change_queue(
        &mut self,
        queue: &str,
        change: QueueChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<QueueChanged> {
        let mut open = self.open_plain(now_ms, deadline)?;
        let before = open.version();
        let now_ms = open.row.now_ms;
        let done = open.messages.change_queue(queue, change, now_ms).and_then(|(ids, beside)| {
            open.log_messages(&[&ids[..], &beside].concat(), true)?;
            Ok(QueueChanged { versions: (before, open.version()), ids })
        });
        self.end(open, done)
    }

    /// Commits what was done; rolls back after an error.
    fn end<T>(&self, open: OpenTransaction, done: Result<T>) -> Result<T> {
        match done {
            Ok(done) => self.commit(open).map(|()| done),
            Err(error) => {
                open.roll_back();
                Err(error)
            }
        }
    }

    fn open_plain(&mut self, now_ms: i64, deadline: Instant) -> Result<OpenTransaction> {
        let shared = self.shared.clone();
        self.open(&|| Purpose::plain(&shared, now_ms, deadline))
    }

    /// As [`Direct::open_any`], of a database that no other process leads.
    fn open<'p>(&mut self, of: &dyn Fn() -> Purpose<'p>) -> Result<OpenTransaction> {
        self.open_any(of)?.pass_leader()
    }

    /// Begins a transaction, on another connection if one is lost: nothing was done on that.
    fn open_any<'p>(&mut self, of: &dyn Fn() -> Purpose<'p>) -> Result<OpenTransaction> {
        loop {
            let purpose = of();
            let deadline = purpose.deadline;
            let lent = self.shared.pool.lend(deadline)?;
            match OpenTransaction::begin(lent, purpose) {
                Ok(open) => {
                    if open.row.waited_ms >= KEPT_OUT_MS_MIN {
                        self.waited = Some(Instant::now());
                    }
                    return Ok(open);
                }
                Err((error, lost)) if lost && Instant::now() < deadline => {
                    tracing::warn!(%error, "beginning a transaction again");
                    std::thread::sleep(PAUSE);
                }
                Err((error, _)) => return Err(error),
            }
        }
    }

    fn was_kept_out(&self) -> bool {
        let grace = Duration::from_millis(LOCK_GRACE_MS.unsigned_abs());
        self.waited.is_some_and(|waited| waited.elapsed() < grace)
    }

    /// Commits, and finds out what became of it when the connection is lost meanwhile.
    fn commit(&self, open: OpenTransaction) -> Result<()> {
        let (before, after) = (open.row.version.cast_unsigned(), open.version());
        let (batch, trims) = self.shared.new_batch();
        match open.commit(batch, trims)? {
            Ended::Committed => {}
            Ended::Unknown(unknown) => self.resolve(&unknown)?,
        }
        self.shared.committed(before, after);
        Ok(())
    }

    fn resolve(&self, unknown: &Unknown) -> Result<()> {
        let happened = match unknown.batch {
            Some(batch) => {
                until_answered(|deadline| transaction::has_happened(&self.shared, batch, deadline))
            }
            // Without a commit there is no record.
            None => Err(unknown.cause.clone()),
        };
        match happened {
            Ok(true) => Ok(()),
            Ok(false) => Err(unknown.cause.clone()),
            Err(error) => {
                let why = "the connection was lost while a commit was under way; read to find out \
                           whether it has happened";
                Err(Error::new(Kind::OutcomeUnknown, format!("{}: {why}", error.message())))
            }
        }
    }
}
