//! Small commits on the thread of their caller: no other thread has to wake.
//!
//! Duty: execute a few small writes with the writer's state while the writer thread waits.
//! Invariant: a commit here waits for no thread and no process before it has begun, and begins only if nothing
//! waits for the writer and the last small commits were short. The engine does no upkeep in it.
//! Never: work of the queues or of timers; reads for watches, which the reader thread runs.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::super::Store;
use super::super::write_queue::{Submission, writer_failed};
use super::WriterThread;
use super::recent::are_small;
use super::shared::WriterState;
use super::under_way::{Batch, Reply};
use openkv_core::commit::Work;
use openkv_core::model::{AtomicWrite, Decision, Result};
use openkv_engines::Writer;

/// The writer of an open store.
pub(crate) trait OpenWriter: Send + Sync {
    /// Completes accepted work and closes the engine's writer. Returns the threads that still do that.
    fn close(&self) -> Vec<JoinHandle<()>>;

    /// Carries out the writes of a submission and answers it, on this thread, or gives it back if that
    /// might take longer than `most`.
    fn commit(&self, submission: Submission, most: Duration) -> Option<Submission>;

    /// Closes the engine's writer until there is work, if none waits or is under way. Returns whether it is closed.
    fn park(&self) -> bool;
}

impl<W: Writer + 'static> OpenWriter for WriterState<W> {
    fn close(&self) -> Vec<JoinHandle<()>> {
        self.end()
    }

    fn commit(&self, submission: Submission, most: Duration) -> Option<Submission> {
        let Some(mut place) = self.state.try_lock() else { return Some(submission) };
        let Some(state) = &mut *place else { return Some(submission) };
        let tried = catch_unwind(AssertUnwindSafe(|| state.try_commit(submission, most)));
        tried.unwrap_or_else(|_| {
            *place = None;
            drop(place);
            tracing::error!("a commit ended by a panic; please report this");
            self.write_queue.fail();
            // The writer thread finds no state and ends.
            self.write_queue.ring();
            None
        })
    }

    fn park(&self) -> bool {
        let Some(mut place) = self.state.try_lock() else { return false };
        // Without a state the writer has ended.
        place.as_mut().is_none_or(WriterThread::park)
    }
}

impl<W: Writer> WriterThread<W> {
    /// Carries out and answers a submission; gives it back if something waits for the writer, or if it may
    /// take longer than `most`.
    fn try_commit(&mut self, submission: Submission, most: Duration) -> Option<Submission> {
        if !self.may_commit(&submission, most) || !self.writer.begin_at_once(submission.durable) {
            return Some(submission);
        }
        let now_ms = self.write_queue.env.now_ms();
        let write_queue = self.write_queue.clone();
        self.mind_the_clock(&mut write_queue.waiting.lock().consumers, now_ms);
        let due_ms = self.next_due_ms();
        let mut work = Work::default();
        let replies = vec![Reply::of(submission, &mut work)];
        self.draw_seed(&mut work);
        let batch = Batch::of_callers(&work, replies, Vec::new(), now_ms);
        self.inline = true;
        self.begin(work, Instant::now(), batch);
        self.inline = false;
        // The thread waits for what was due before.
        if self.next_due_ms() != due_ms {
            self.next_step = 0;
            self.write_queue.ring();
        }
        None
    }

    fn may_commit(&self, submission: &Submission, most: Duration) -> bool {
        let writes = || submission.writes.iter().flatten();
        // A message may be work for a consumer at once.
        let is_simple = are_small(writes())
            && submission.writes.iter().all(Result::is_ok)
            && writes().all(|write| write.queues().next().is_none() && write.acks().is_empty());
        if !(is_simple && self.recent.are_within(most) && self.under_way.is_empty()) {
            return false;
        }
        let waiting = self.write_queue.waiting.lock();
        let accepts = !waiting.closing && waiting.refusal_of_callers().is_none();
        let is_idle = waiting.submissions.is_empty()
            && !self.has_work_alone(&waiting, self.write_queue.env.now_ms());
        accepts && is_idle
    }

    /// Closes the engine's writer, and the reader for watches, unless there is work.
    fn park(&mut self) -> bool {
        let now_ms = self.write_queue.env.now_ms();
        let has_work = {
            let waiting = self.write_queue.waiting.lock();
            !waiting.submissions.is_empty() || self.has_work_alone(&waiting, now_ms)
        };
        if has_work || !self.under_way.is_empty() || !self.writer.park() {
            return false;
        }
        self.reader = None;
        true
    }

    fn next_due_ms(&self) -> Option<i64> {
        self.next_ms(&self.write_queue.waiting.lock().consumers)
    }
}

impl Store {
    /// Executes writes on this thread and returns one decision for each, in order, if the last small
    /// commits took at most `most` in the mean. Otherwise as [`Store::commit`], with the reply that `reply` makes.
    pub fn commit_inline(
        &self,
        writes: Vec<Result<AtomicWrite>>,
        (durable, busy): (bool, Duration),
        most: Duration,
        reply: impl FnOnce() -> Box<dyn FnOnce(Vec<Decision>) + Send>,
    ) -> Option<Vec<Decision>> {
        let Some(writer) = &self.writer else {
            self.commit(writes, durable, busy, reply());
            return None;
        };
        let (sender, receiver) = std::sync::mpsc::channel();
        let answer: Box<dyn FnOnce(Vec<Decision>) + Send> =
            Box::new(move |decisions| drop(sender.send(decisions)));
        let count = writes.len();
        let since = Instant::now();
        let submission = Submission { writes, durable, busy, reply: answer, since };
        match writer.commit(submission, most) {
            Some(submission) => {
                self.writes.submit(Submission { reply: reply(), ..submission });
                None
            }
            // Dropped by a panic.
            None => Some(
                receiver
                    .try_recv()
                    .unwrap_or_else(|_| vec![Decision::Rejected(writer_failed()); count]),
            ),
        }
    }
}
