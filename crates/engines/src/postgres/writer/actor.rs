//! A process whose statements a test sends one by one, to compare what they do with a model.
//!
//! Duty: every statement of a leader and of a direct writer, by the code that sends it otherwise.
//! Never: a decision of its own; a part of what users run.

use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

use super::batches::{Answers, BatchStatements, Fate, fate};
use crate::postgres::direct::Direct;
use crate::postgres::lease::Lease;
use crate::postgres::line::{BEGIN, COMMIT, Statements};
use crate::postgres::pool::Lent;
use crate::postgres::transaction::{Ended, OpenTransaction, Undone, has_happened};
use crate::postgres::{PostgresEngine, Shared, lead};
use crate::{Report, Work};
use openkv_core::layer::{Commit, Lead, Resolution};
use openkv_core::model::{Error, Result};

/// A process on a server. It has at most one open transaction.
pub struct Actor {
    shared: Arc<Shared>,
    direct: Direct,
    open: Option<Open>,
}

enum Open {
    /// A batch of a leader: its answers so far, how many there will be, and where the time is.
    Led {
        lent: Lent,
        is_open: bool,
        answers: Answers,
        count: usize,
        time_at: usize,
    },
    Direct {
        open: Box<OpenTransaction>,
        name: Uuid,
        report: Box<Report>,
    },
}

/// How a transaction ended.
#[derive(Debug)]
pub enum Ending {
    /// The batch of a leader is durable.
    Durable,
    /// The batch of a leader has failed its fence.
    Fenced,
    /// A direct transaction has committed.
    RanAlone(Box<Report>, Lead),
}

/// The version of a batch and its name in the log.
type Name = (i64, Uuid);

impl Actor {
    /// A process that has opened this database with `lead=`.
    #[must_use]
    pub fn of(engine: &PostgresEngine) -> Self {
        let shared = engine.shared.clone();
        Self { direct: Direct::new(shared.clone()), shared, open: None }
    }

    /// The id of its lease.
    ///
    /// # Errors
    /// `Internal` without `lead=`.
    pub fn id(&self) -> Result<Vec<u8>> {
        Ok(self.lease()?.id())
    }

    fn lease(&self) -> Result<&Arc<Lease>> {
        self.shared.lease.as_ref().ok_or_else(|| Error::internal("an actor without lead="))
    }

    fn deadline(&self) -> Instant {
        Instant::now() + self.shared.busy
    }

    /// Renews its lease, once.
    pub fn renew(&self) -> Result<()> {
        self.lease()?.renew(self.deadline())
    }

    /// Begins to lead, unless another process leads.
    pub fn acquire(&self) -> Result<Option<Lead>> {
        self.renew()?;
        lead::raise(&self.shared, None, self.deadline())
    }

    /// Finds out which batches of an epoch have happened.
    pub fn resolve(&self, epoch: u64) -> Result<Resolution> {
        lead::try_resolve(&self.shared, epoch, self.deadline())
    }

    /// Lets others lead.
    pub fn hand_over(&self) -> Result<()> {
        lead::hand_over(&self.shared)
    }

    /// Whether a batch has happened.
    pub fn look(&self, name: Name) -> Result<bool> {
        has_happened(&self.shared, name, self.deadline())
    }

    /// Sends a batch of a leader without its COMMIT; all of a batch without a commit. Answers its name,
    /// or how it ended.
    pub fn send(&mut self, commit: Commit) -> Result<std::result::Result<Name, Ending>> {
        let batch = BatchStatements::of(&self.shared, commit);
        let mut lent = self.shared.pool.lend(self.deadline())?;
        let (mut calls, mut time_at) = (batch.calls(), batch.time_at());
        let name = match &batch {
            BatchStatements::Confirm { .. } => None,
            BatchStatements::Commit { statements, .. } => {
                if batch.single().is_some() {
                    // In a transaction of several statements it can be stopped before its COMMIT.
                    calls.insert(0, (BEGIN, vec![]));
                    time_at += 1;
                } else {
                    calls.pop();
                }
                let name = Uuid::from_slice(&statements.name);
                let name = name.map_err(|error| Error::internal(error.to_string()))?;
                Some((statements.next, name))
            }
        };
        let (is_open, answers) = (name.is_some(), lent.session.run(&calls));
        let count = calls.len() + usize::from(is_open);
        let goes_on = answers.iter().all(Result::is_ok);
        self.open = Some(Open::Led { lent, is_open, answers, count, time_at });
        match name.filter(|_| goes_on) {
            Some(name) => Ok(Ok(name)),
            None => self.end().map(Err),
        }
    }

    /// Carries out work in a transaction that decides for itself, up to its COMMIT. Answers its name, if
    /// it has a commit.
    ///
    /// # Errors
    /// `Unavailable` if another process leads; the error of the server.
    pub fn decide(&mut self, work: Work, now_ms: i64, epoch: Option<u64>) -> Result<Option<Name>> {
        let deadline = self.deadline();
        let (open, report) = self.direct.decide(work, now_ms, deadline, epoch)?;
        let (name, _) = self.shared.new_batch();
        let (before, after) = report.versions;
        let (open, report) = (Box::new(open), Box::new(report));
        self.open = Some(Open::Direct { open, name, report });
        Ok((before != after).then_some((after.cast_signed(), name)))
    }

    /// Sends the COMMIT of the open transaction.
    pub fn end(&mut self) -> Result<Ending> {
        match self.open.take() {
            Some(Open::Led { mut lent, is_open, mut answers, count, time_at }) => {
                if is_open {
                    answers.extend(lent.session.run(&[(COMMIT, vec![])]));
                }
                lent.give_back();
                match fate(answers, count, time_at, false) {
                    Fate::Durable(_) => Ok(Ending::Durable),
                    Fate::Interrupted(None) => Ok(Ending::Fenced),
                    Fate::Interrupted(Some(error)) | Fate::Refused(error) => Err(error),
                }
            }
            Some(Open::Direct { open, name, report }) => {
                let lead = open.lead_after();
                match open.commit(name, false).map_err(Undone::into_error)? {
                    Ended::Committed => Ok(Ending::RanAlone(report, lead)),
                    Ended::Unknown(unknown) => Err(unknown.cause),
                }
            }
            None => Err(Error::internal("no open transaction")),
        }
    }

    /// Loses the connection of the open transaction.
    pub fn cut(&mut self) {
        self.open = None;
    }
}
