//! The writer of a database: one transaction for each batch.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Shared;
use super::cells::first;
use super::queues;
use super::transaction::{Ended, OpenTransaction, Purpose, Unknown};
use crate::commit::{Begun, batch};
use crate::engine::{
    DeadLettersChanged, GoesOn, Indexer, NextDeadlines, Progress, Report, Work, Writer,
};
use crate::model::{
    Capabilities, Capability, Checkpoint, DeadLetterChange, Error, IndexChoice, IndexInfo,
    IndexSpec, KEPT_OUT_MS_MIN, Kind, LOCK_GRACE_MS, POSTGRES_RESOLVE_MS_MAX, Result, Vacuumed,
};

/// Pause between two attempts to find out what became of a batch.
const RESOLVE_PAUSE: Duration = Duration::from_millis(50);

const EARLIEST_EXPIRY: &str =
    "SELECT at_ms FROM openkv.expiries WHERE db = $1 ORDER BY at_ms LIMIT 1";

/// Writes to a database.
pub struct PostgresWriter {
    shared: Arc<Shared>,
    /// When it last had to wait for other processes.
    waited: Option<Instant>,
}

impl PostgresWriter {
    pub(super) fn new(shared: Arc<Shared>) -> Self {
        Self { shared, waited: None }
    }

    fn open(&mut self, of: impl Fn() -> Purpose<'static>) -> Result<OpenTransaction> {
        self.open_with(&of)
    }

    /// Begins a transaction, on another connection if one is lost: nothing was done on that.
    fn open_with<'p>(&mut self, of: &dyn Fn() -> Purpose<'p>) -> Result<OpenTransaction> {
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
                    std::thread::sleep(RESOLVE_PAUSE);
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
        let deadline = Instant::now() + Duration::from_millis(POSTGRES_RESOLVE_MS_MAX);
        loop {
            let lent = self.shared.pool.lend(deadline);
            let error = match lent.and_then(|lent| unknown.resolve(lent, deadline)) {
                Ok(true) => return Ok(()),
                Ok(false) => return Err(unknown.cause.clone()),
                Err(error) => error,
            };
            if Instant::now() >= deadline || unknown.batch.is_none() {
                let why = "the connection was lost while a commit was under way; read to find out \
                           whether it has happened";
                return Err(Error::new(
                    Kind::OutcomeUnknown,
                    format!("{}: {why}", error.message()),
                ));
            }
            std::thread::sleep(RESOLVE_PAUSE);
        }
    }

    fn read_number(&self, sql: &'static str) -> Result<Option<i64>> {
        let rows = self.shared.query((sql, vec![&self.shared.db]))?;
        first("entries", &rows)
    }
}

impl Writer for PostgresWriter {
    fn begin(&mut self, mut work: Work, now_ms: i64, deadline: Instant) -> Result<Progress> {
        // A lock can have expired in any claim, and the value of a dead message is a commit for which
        // no caller chose a durability.
        work.durable |= !work.claims.is_empty();
        let now_ms = self.shared.time.of_tests(now_ms);
        let db = self.shared.db;
        let mut open = self.open_with(&|| Purpose::of(db, &work, now_ms, deadline))?;
        let started = Instant::now();
        self.shared.time.learn(open.row.now_ms);
        let begun = Begun {
            version: open.row.version.cast_unsigned(),
            now_ms: open.row.now_ms,
            logs: open.row.logs,
            kept_out: self.was_kept_out(),
        };
        let report = match batch::run(&mut open, &begun, work) {
            Ok(report) => Report { worked: started.elapsed(), ..report },
            Err(error) => {
                open.roll_back();
                return Err(error);
            }
        };
        self.commit(open)?;
        Ok(Progress::Done(report))
    }

    fn log_changes(&mut self, deadline: Instant) -> Result<u64> {
        let (db, now_ms) = (self.shared.db, self.shared.time.of_tests(0));
        let mut open = self.open(|| Purpose::plain(db, now_ms, deadline))?;
        let version = open.version();
        if open.row.logs {
            open.roll_back();
        } else {
            open.log_changes();
            self.commit(open)?;
        }
        Ok(version)
    }

    fn next_deadlines(&mut self) -> Result<NextDeadlines> {
        Ok(NextDeadlines {
            expiry_ms: self.read_number(EARLIEST_EXPIRY)?,
            purge_ms: self.read_number(queues::EARLIEST_PURGE)?,
            building: false,
        })
    }

    fn next_message_ms(&mut self, queue: &str) -> Result<Option<i64>> {
        queues::next_message_ms(&self.shared, queue)
    }

    fn queue_depth(&mut self, queue: &str) -> Result<u64> {
        queues::depth(&self.shared, queue)
    }

    fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<DeadLettersChanged> {
        let (db, now_ms) = (self.shared.db, self.shared.time.of_tests(now_ms));
        let mut open = self.open(|| Purpose::plain(db, now_ms, deadline))?;
        let before = open.version();
        let now_ms = open.row.now_ms;
        match open.messages.change_dead_letters(queue, change, now_ms) {
            Ok(count) => {
                // Only a commit makes other processes look, and there may be work for them.
                if count > 0 && matches!(change, DeadLetterChange::Requeue(_)) {
                    crate::commit::Transaction::set_version(&mut open, before + 1, None)?;
                }
                let versions = (before, open.version());
                self.commit(open)?;
                Ok(DeadLettersChanged { count, versions })
            }
            Err(error) => {
                open.roll_back();
                Err(error)
            }
        }
    }

    fn checkpoint(&mut self) -> Result<Checkpoint> {
        Err(Capabilities::POSTGRES.refusal(Capability::Checkpoint))
    }

    fn vacuum(&mut self, _deadline: Instant, _goes_on: &GoesOn) -> Result<Vacuumed> {
        Err(Capabilities::POSTGRES.refusal(Capability::Vacuum))
    }
}

impl Indexer for PostgresWriter {
    fn create_index(&mut self, _spec: &IndexSpec, _deadline: Instant) -> Result<IndexInfo> {
        Err(Capabilities::POSTGRES.refusal(Capability::FullTextSearch))
    }

    fn drop_index(&mut self, _choice: &IndexChoice, _deadline: Instant) -> Result<bool> {
        Ok(false)
    }

    fn build_indexes(&mut self, _now_ms: i64, _deadline: Instant) -> Result<bool> {
        Ok(false)
    }
}
