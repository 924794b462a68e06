//! The batches under way: begun by the engine, in order, and completed and answered in the same order.
//!
//! A caller gets its outcome, and watches and feeds are notified, only after the outcomes of all batches
//! before it. An engine that is done when a batch begins does not use the queue.

use std::time::Instant;

use super::recent::is_small;
use super::{Next, Rest, Waiting, WriterThread};
use crate::health::Tries;
use crate::lock_request::LockRequest;
use crate::metrics::{Metrics, Notes, Operation, Subject};
use crate::timers::Done;
use crate::write_queue::{Acknowledged, Submission};
use openkv_core::model::{
    AtomicWrite, Decision, Error, Kind, Mutation, Renewal, Result, Settlement,
};
use openkv_engines::{Progress, Report, Ticket, Work, Writer};

/// A batch under way, with the receivers of its outcome.
pub(super) struct Batch {
    origin: Origin,
    done: Done,
    /// Nothing may begin behind it.
    alone: bool,
}

enum Origin {
    /// Callers wait for it.
    Callers {
        replies: Vec<Reply>,
        lock_requests: Vec<LockRequest>,
        /// Its settlements that no caller waits for. After a failure they are pending.
        settlements: Vec<Settlement>,
        /// Its renewals for listeners.
        renewals: Vec<Renewal>,
        /// The number of writes.
        writes: usize,
    },
    /// A step of sweeping or purging.
    Step,
    /// Callers without work for the engine, which wait for the batches before.
    Waiters { replies: Vec<Reply> },
}

impl Batch {
    pub(super) fn of_callers(
        work: &Work,
        replies: Vec<Reply>,
        lock_requests: Vec<LockRequest>,
        now_ms: i64,
    ) -> Self {
        let alone = !(work.settlements.is_empty()
            && work.renewals.is_empty()
            && work.claims.is_empty()
            && work.sweep_max == 0
            && work.purge_max == 0
            && !work.fires);
        let requested_settlements =
            lock_requests.iter().filter(|request| request.settles()).count();
        let mut settlements = work.settlements.clone();
        settlements.truncate(work.settlements.len() - requested_settlements);
        let mut renewals = work.renewals.clone();
        renewals.truncate(work.renewals.len() - (lock_requests.len() - requested_settlements));
        let writes = work.writes.len();
        let origin = Origin::Callers { replies, lock_requests, settlements, renewals, writes };
        Self { origin, done: Done::of(work, now_ms), alone }
    }

    fn of_waiters(replies: Vec<Reply>) -> Self {
        let done = Done::of(&Work::default(), 0);
        Self { origin: Origin::Waiters { replies }, done, alone: false }
    }

    pub(super) fn of_step(work: &Work, now_ms: i64) -> Self {
        Self { origin: Origin::Step, done: Done::of(work, now_ms), alone: true }
    }
}

/// A batch that is not completed yet.
pub(super) struct UnderWay {
    outcome: Outcome,
    batch: Batch,
}

enum Outcome {
    /// The engine has it under way.
    Awaited(Ticket),
    /// It was known at once, but batches before it are under way.
    Known(Box<Result<Report>>),
}

impl<W: Writer> WriterThread<W> {
    /// Begins a batch, and completes it if its outcome is known and nothing is under way.
    pub(super) fn begin(&mut self, work: Work, deadline: Instant, batch: Batch) {
        let (begun, small) = (Instant::now(), is_small(&work));
        let known = match self.writer.begin(work, batch.done.now_ms, deadline) {
            Ok(Progress::Done(report)) => {
                if small {
                    self.recent.took(begun.elapsed());
                }
                Ok(report)
            }
            Ok(Progress::UnderWay(ticket)) => {
                self.under_way.push_back(UnderWay { outcome: Outcome::Awaited(ticket), batch });
                return;
            }
            Err(error) => Err(error),
        };
        if self.under_way.is_empty() {
            self.complete(batch, known);
        } else {
            let outcome = Outcome::Known(Box::new(known));
            self.under_way.push_back(UnderWay { outcome, batch });
        }
    }

    /// Answers callers without work for the engine, after the batches under way. So a caller that
    /// submits nothing learns that all writes before have ended.
    pub(super) fn answer_in_order(&mut self, replies: Vec<Reply>) {
        if self.under_way.is_empty() {
            return tell(replies, Vec::new(), &self.metrics);
        }
        let outcome = Outcome::Known(Box::new(Ok(Report::default())));
        self.under_way.push_back(UnderWay { outcome, batch: Batch::of_waiters(replies) });
    }

    /// The callers whose settlements are durable: a batch that settles is the last one under way, and one that
    /// has failed leaves its settlements pending. Writes under way do not delay them.
    pub(super) fn acknowledged(&self, waiting: &mut Waiting) -> Vec<Acknowledged> {
        if waiting.acknowledging.is_empty()
            || self.is_alone()
            || !self.pending_settlements.is_empty()
        {
            return Vec::new();
        }
        let none_waits = waiting.settlements.is_empty();
        waiting.acknowledging.ready(none_waits)
    }

    /// Whether nothing may begin behind what is under way.
    fn is_alone(&self) -> bool {
        self.under_way.back().is_some_and(|last| last.batch.alone)
    }

    /// While batches are under way: takes writes that may begin behind them.
    pub(super) fn drain_behind(&mut self, waiting: &mut Waiting) -> Next {
        if std::mem::take(&mut waiting.ended) {
            return Next::Outcomes;
        }
        let now_ms = self.write_queue.env.now_ms();
        self.mind_the_clock(&mut waiting.consumers, now_ms);
        // The engine reports when there is room again.
        if !self.is_alone()
            && self.writer.has_room()
            && !waiting.submissions.is_empty()
            && !self.has_work_alone(waiting, now_ms)
        {
            return match self.lingers(waiting) {
                Some(time) => Next::Rest(Rest::For(time)),
                None => Next::Work(Box::new(self.take(waiting, now_ms))),
            };
        }
        Next::Rest(Rest::Arrival)
    }

    /// Completes the batches whose outcomes are known, in order.
    pub(super) fn complete_ended(&mut self) {
        while let Some(UnderWay { outcome, batch }) = self.under_way.pop_front() {
            let known = match outcome {
                Outcome::Known(known) => *known,
                Outcome::Awaited(ticket) => match self.writer.ended() {
                    Some((ended, outcome)) if ended == ticket => outcome,
                    Some(_) => Err(out_of_order()),
                    None => {
                        self.under_way.push_front(UnderWay { outcome, batch });
                        return;
                    }
                },
            };
            self.complete(batch, known);
        }
    }

    fn complete(&mut self, batch: Batch, outcome: Result<Report>) {
        let Batch { origin, done, .. } = batch;
        let (replies, lock_requests, settlements, renewals, writes) = match origin {
            Origin::Callers { replies, lock_requests, settlements, renewals, writes } => {
                (replies, lock_requests, settlements, renewals, writes)
            }
            Origin::Step => return self.step_ended(&done, outcome),
            Origin::Waiters { replies } => return tell(replies, Vec::new(), &self.metrics),
        };
        self.metrics.transaction(writes, outcome.is_ok());
        match outcome {
            Ok(mut report) => {
                self.applying = Tries::default();
                self.metrics.cached(report.cache_looks);
                LockRequest::answer_all(lock_requests, &mut report);
                self.tell_lost(renewals, &report.renewed);
                self.announce(&mut report, replies, &done);
                self.dispatch(&done.claims, report.deliveries, done.now_ms);
            }
            Err(error) => {
                tracing::warn!(%error, "a transaction failed");
                self.pending_settlements.extend(settlements);
                self.timers.failed(&done, &error);
                let pause_ms = self.applying.failed_ms();
                self.back_off(done.now_ms, pause_ms);
                let lookers = {
                    let consumers = &mut self.write_queue.waiting.lock().consumers;
                    consumers.renew_again();
                    if done.claims.is_empty() { Vec::new() } else { consumers.look_failed() }
                };
                fail(replies, &error, &self.metrics);
                lock_requests.into_iter().for_each(|request| request.answer(Err(error.clone())));
                lookers.into_iter().for_each(|reply| reply(Err(error.clone())));
            }
        }
    }
}

impl<W: Writer> WriterThread<W> {
    /// Tells listeners of the locks that could not be renewed.
    fn tell_lost(&self, mut renewals: Vec<Renewal>, held: &[bool]) {
        let mut held = held.iter();
        renewals.retain(|_| held.next() == Some(&false));
        if renewals.is_empty() {
            return;
        }
        let lost = self.write_queue.waiting.lock().consumers.lost(&renewals);
        for (on_lost, numbers) in lost {
            numbers.into_iter().for_each(|number| on_lost(number));
        }
    }
}

/// The error of a batch whose place in the order was taken by the outcome of another.
fn out_of_order() -> Error {
    let message = "the outcomes of two commits are in the wrong order, so it is unknown whether this \
                   commit has happened; read to find out, and please report this";
    Error::new(Kind::OutcomeUnknown, message)
}

/// A submission's reply and its decisions; `Err` in the place of a write that never reached the
/// engine.
pub(super) struct Reply {
    pub(super) places: Vec<Result<Operation>>,
    pub(super) tell: Box<dyn FnOnce(Vec<Decision>) + Send>,
    /// Time of submission.
    pub(super) since: Instant,
    /// What its first write is about.
    pub(super) subject: Subject,
}

impl Reply {
    /// That of a submission, whose writes are added to the work.
    pub(super) fn of(submission: Submission, work: &mut Work) -> Self {
        let Submission { writes, durable, reply, since, .. } = submission;
        work.durable |= durable;
        let mut places = Vec::with_capacity(writes.len());
        let subject = writes.iter().flatten().next().map_or(Subject::NONE, subject_of);
        for write in writes {
            places.push(write.map(|write| {
                let operation = Operation::of(&write);
                work.writes.push(write);
                operation
            }));
        }
        Self { places, tell: reply, since, subject }
    }
}

/// What a write is about: the key of its first mutation, or else of its first check.
fn subject_of(write: &AtomicWrite) -> Subject {
    let (checks, mutations, _) = write.parts();
    let checked = || checks.first().map(|check| &check.key);
    let key = mutations.first().map(Mutation::key).or_else(checked);
    key.map_or(Subject::NONE, |key| Subject::key(key.as_bytes()))
}

/// Answers every submission with the engine's decisions and the errors from before.
pub(super) fn tell(replies: Vec<Reply>, decisions: Vec<Decision>, metrics: &Metrics) {
    let mut decisions = decisions.into_iter();
    let missing = || Decision::Rejected(Error::internal("a write was not decided"));
    answer(replies, metrics, || decisions.next().unwrap_or_else(missing));
}

/// Answers every submission with the failure of the whole transaction.
pub(super) fn fail(replies: Vec<Reply>, error: &Error, metrics: &Metrics) {
    answer(replies, metrics, || Decision::Rejected(error.clone()));
}

fn answer(replies: Vec<Reply>, metrics: &Metrics, mut next: impl FnMut() -> Decision) {
    let mut slow = None;
    for Reply { places, tell, since, subject } in replies {
        let mut notes = Notes::new(since, subject);
        let decisions = places.into_iter().map(|place| {
            let (operation, decision) = match place {
                Ok(operation) => (operation, next()),
                Err(error) => (Operation::Atomic, Decision::Rejected(error)),
            };
            notes.write(operation, &decision);
            decision
        });
        let decisions = decisions.collect();
        metrics.noted(&notes, &mut slow);
        tell(decisions);
    }
}
