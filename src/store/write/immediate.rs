//! Commits on the threads of callers, which no other thread wakes up for.
//!
//! Duty: to carry out a few small writes with the writer's state while the writer thread waits.
//! Invariant: a commit here waits for no thread and no process before it has begun, and begins only if nothing
//! waits for the writer and the last small commits were short. The engine does no upkeep in it.
//! Never: work of the queues or of timers; many looks of watches, which the reader thread runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

use super::super::Store;
use super::super::write_queue::{Submission, Waiting};
use super::WriterThread;
use super::shared::Shared;
use super::under_way::{Batch, Reply};
use crate::commit::Work;
use crate::engine::Writer;
use crate::metrics::Operation;
use crate::model::{
    AtomicWrite, Decision, Error, IMMEDIATE_BYTES_MAX, IMMEDIATE_WRITES_MAX, Result,
};

/// Commits on the thread of a caller.
pub(in crate::store) trait ImmediateCommits: Send + Sync {
    /// Carries out the writes of a submission and answers it, on this thread, or gives it back if that
    /// might take longer than `most`.
    fn commit(&self, submission: Submission, most: Duration) -> Option<Submission>;
}

impl<W: Writer> ImmediateCommits for Shared<W> {
    fn commit(&self, submission: Submission, most: Duration) -> Option<Submission> {
        let Some(mut place) = self.state.try_lock() else { return Some(submission) };
        let Some(state) = &mut *place else { return Some(submission) };
        if !state.may_commit(&submission, most) {
            return Some(submission);
        }
        let done = catch_unwind(AssertUnwindSafe(|| state.commit_immediately(submission)));
        if done.is_err() {
            *place = None;
            drop(place);
            tracing::error!("a commit ended by a panic; please report this");
            self.write_queue.fail();
            // The writer thread ends.
            self.write_queue.ring();
        }
        None
    }
}

impl<W: Writer> WriterThread<W> {
    /// Whether nothing waits for the writer. If so, the engine has begun a transaction.
    fn may_commit(&mut self, submission: &Submission, most: Duration) -> bool {
        let may = self.recent.are_within(most)
            && are_small(&submission.writes)
            && self.under_way.is_empty();
        if !may {
            return false;
        }
        let now_ms = self.write_queue.env.now_ms();
        {
            let waiting = self.write_queue.waiting.lock();
            if !accepts(&waiting) || self.has_work_alone(&waiting, now_ms) {
                return false;
            }
        }
        self.writer.begin_at_once(submission.durable)
    }

    /// Carries out a submission in the transaction that has begun.
    fn commit_immediately(&mut self, submission: Submission) {
        let now_ms = self.write_queue.env.now_ms();
        self.mind_the_clock(now_ms);
        let due_ms = self.next_due_ms();
        let Submission { writes, durable, reply, since, .. } = submission;
        let mut work = Work { durable, ..Work::default() };
        let places = writes.into_iter().map(|write| {
            write.map(|write| {
                let operation = Operation::of(&write);
                work.writes.push(write);
                operation
            })
        });
        let replies = vec![Reply { places: places.collect(), tell: reply, since }];
        if work.writes.iter().any(AtomicWrite::has_placeholders) {
            work.seed = self.write_queue.env.random();
        }
        let batch = Batch::of_callers(&work, replies, Vec::new(), now_ms);
        self.immediate = true;
        self.begin(work, Instant::now(), batch);
        self.immediate = false;
        // The thread waits for what was due before.
        if self.next_due_ms() != due_ms {
            self.next_step = 0;
            self.write_queue.ring();
        }
    }

    fn next_due_ms(&self) -> Option<i64> {
        self.next_ms(&self.write_queue.waiting.lock().consumers)
    }
}

/// Whether the store takes writes of callers, and none waits.
fn accepts(waiting: &Waiting) -> bool {
    waiting.submissions.is_empty() && !waiting.closing && waiting.refusal_of_callers().is_none()
}

/// Whether all are writes of few entries, and none enqueues, which may be work for consumers at once.
fn are_small(writes: &[Result<AtomicWrite>]) -> bool {
    let bytes: usize = writes.iter().flatten().map(AtomicWrite::size_bytes).sum();
    writes.len() <= IMMEDIATE_WRITES_MAX
        && bytes <= IMMEDIATE_BYTES_MAX
        && writes.iter().all(|write| write.as_ref().is_ok_and(|it| it.queues().next().is_none()))
}

impl Store {
    /// Carries out writes on this thread and returns one decision for each, in order, if the last small
    /// commits took at most `most` in the mean. Otherwise as [`Store::commit`], with the reply that `reply` makes.
    pub fn commit_immediately(
        &self,
        writes: Vec<Result<AtomicWrite>>,
        (durable, busy): (bool, Duration),
        most: Duration,
        reply: impl FnOnce() -> Box<dyn FnOnce(Vec<Decision>) + Send>,
    ) -> Option<Vec<Decision>> {
        let Some(immediate) = &self.immediate_commits else {
            self.commit(writes, durable, busy, reply());
            return None;
        };
        let (told, tell) = std::sync::mpsc::channel();
        let answer: Box<dyn FnOnce(Vec<Decision>) + Send> =
            Box::new(move |decisions| drop(told.send(decisions)));
        let count = writes.len();
        let since = Instant::now();
        let submission = Submission { writes, durable, busy, reply: answer, since };
        match immediate.commit(submission, most) {
            Some(submission) => {
                self.writes.submit(Submission { reply: reply(), ..submission });
                None
            }
            // Dropped by a panic.
            None => Some(tell.try_recv().unwrap_or_else(|_| {
                let error = Error::internal(
                    "the database's writer has failed; close the database, open it again, \
                     and please report this",
                );
                vec![Decision::Rejected(error); count]
            })),
        }
    }
}
