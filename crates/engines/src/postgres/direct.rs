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
use super::transaction::{self, Ended, OpenTransaction, Purpose, Undone, Unknown};
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
        self.of_work(work, now_ms, deadline, |direct, open, work| {
            let (open, report) = direct.run(open, work, epoch)?;
            let lead = open.lead_after();
            direct.commit(open)?;
            Ok(CarriedOut { report, lead })
        })
    }

    /// As [`Direct::carry_out`], up to the commit.
    ///
    /// # Errors
    /// Nothing was done.
    #[cfg(feature = "defects")]
    pub(super) fn decide(
        &mut self,
        work: Work,
        now_ms: i64,
        deadline: Instant,
        epoch: Option<u64>,
    ) -> Result<(OpenTransaction, Report)> {
        self.of_work(work, now_ms, deadline, |direct, open, work| direct.run(open, work, epoch))
    }

    fn of_work<T>(
        &mut self,
        mut work: Work,
        now_ms: i64,
        deadline: Instant,
        mut act: impl FnMut(&mut Self, OpenTransaction, Work) -> Result<T, Undone>,
    ) -> Result<T> {
        // A lock can have expired in any claim, and the value of a dead message is a commit for which
        // no caller chose a durability.
        work.durable |= !work.claims.is_empty();
        let shared = self.shared.clone();
        self.transact(&|| Purpose::of(&shared, &work, now_ms, deadline), |direct, open| {
            act(direct, open.pass_leader()?, work.clone())
        })
    }

    /// Decides work in an open transaction.
    fn run(
        &mut self,
        mut open: OpenTransaction,
        work: Work,
        epoch: Option<u64>,
    ) -> Result<(OpenTransaction, Report), Undone> {
        if epoch.is_some_and(|epoch| open.row.epoch != epoch.cast_signed()) {
            return Err(open.fail(lead::overtaken()));
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
            Err(error) => Err(open.fail(error)),
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
        mut change: impl FnMut(&mut OpenTransaction) -> Result<T>,
    ) -> Result<T> {
        let shared = self.shared.clone();
        let of = || Purpose::plain(&shared, now_ms, deadline);
        self.transact(&of, |_, mut open| match change(&mut open) {
            Ok(changed) => open.confirm().map(|()| changed).map_err(Undone::Refused),
            Err(error) => Err(open.fail(error)),
        })
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
        self.change(now_ms, deadline, |open| {
            let now_ms = open.row.now_ms;
            let (deletion, beside) = open.messages.delete_waiting(queue, id, now_ms)?;
            let deleted = if deletion == MessageDeletion::Deleted { &[id][..] } else { &[] };
            let (all, admits) = ([deleted, &beside].concat(), !beside.is_empty());
            open.log_messages(&all, admits).map(|()| deletion)
        })
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
        self.change(now_ms, deadline, |open| {
            let before = open.version();
            let now_ms = open.row.now_ms;
            let (changed, beside) = open.messages.change_dead_letters(queue, change, now_ms)?;
            // Only a commit makes other processes look, and there may be work for them.
            open.log_messages(&[&changed[..], &beside].concat(), change.requeues())?;
            Ok(DeadLettersChanged { count: changed.len(), versions: (before, open.version()) })
        })
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
        self.change(now_ms, deadline, |open| {
            let before = open.version();
            let now_ms = open.row.now_ms;
            let (ids, beside) = open.messages.change_queue(queue, change, now_ms)?;
            open.log_messages(&[&ids[..], &beside].concat(), true)?;
            Ok(QueueChanged { versions: (before, open.version()), ids })
        })
    }

    /// Commits what `change` does, of a database that no other process leads.
    fn change<T>(
        &mut self,
        now_ms: i64,
        deadline: Instant,
        mut change: impl FnMut(&mut OpenTransaction) -> Result<T>,
    ) -> Result<T> {
        let shared = self.shared.clone();
        self.transact(&|| Purpose::plain(&shared, now_ms, deadline), |direct, open| {
            let mut open = open.pass_leader()?;
            match change(&mut open) {
                Ok(changed) => direct.commit(open).map(|()| changed),
                Err(error) => Err(open.fail(error)),
            }
        })
    }

    /// Runs a transaction, on another connection if one is lost before it has done anything. The server ends the
    /// transaction of a process that is stopped for longer than `POSTGRES_IDLE_MS_MAX`.
    fn transact<'p, T>(
        &mut self,
        of: &dyn Fn() -> Purpose<'p>,
        mut act: impl FnMut(&mut Self, OpenTransaction) -> Result<T, Undone>,
    ) -> Result<T> {
        loop {
            let purpose = of();
            let deadline = purpose.deadline;
            let lent = self.shared.pool.lend(deadline)?;
            let done = OpenTransaction::begin(lent, purpose).and_then(|open| {
                if open.row.waited_ms >= KEPT_OUT_MS_MIN {
                    self.waited = Some(Instant::now());
                }
                act(self, open)
            });
            match done {
                Ok(done) => return Ok(done),
                Err(Undone::Lost(error)) if Instant::now() < deadline => {
                    tracing::warn!(%error, "beginning a transaction again");
                    std::thread::sleep(PAUSE);
                }
                Err(undone) => return Err(undone.into_error()),
            }
        }
    }

    fn was_kept_out(&self) -> bool {
        let grace = Duration::from_millis(LOCK_GRACE_MS.unsigned_abs());
        self.waited.is_some_and(|waited| waited.elapsed() < grace)
    }

    /// Commits, and finds out what became of it when the connection is lost meanwhile.
    fn commit(&self, open: OpenTransaction) -> Result<(), Undone> {
        let (before, after) = (open.row.version.cast_unsigned(), open.version());
        let (batch, trims) = self.shared.new_batch();
        match open.commit(batch, trims)? {
            Ended::Committed => {}
            Ended::Unknown(unknown) => self.resolve(unknown)?,
        }
        self.shared.committed(before, after);
        Ok(())
    }

    fn resolve(&self, Unknown { batch, cause }: Unknown) -> Result<(), Undone> {
        let happened = match batch {
            Some(batch) => {
                until_answered(|deadline| transaction::has_happened(&self.shared, batch, deadline))
            }
            // Without a commit there is no record.
            None => Err(cause.clone()),
        };
        match happened {
            Ok(true) => Ok(()),
            Ok(false) => Err(Undone::Lost(cause)),
            Err(error) => {
                let why = "the connection was lost while a commit was under way; read to find out \
                           whether it has happened";
                let error = format!("{}: {why}", error.message());
                Err(Undone::Refused(Error::new(Kind::OutcomeUnknown, error)))
            }
        }
    }
}
