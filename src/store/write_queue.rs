//! The write queue: everything that waits for the writer thread, and how the thread is woken.
//!
//! Invariant: every accepted request is answered, by the writer thread or by a refusal once that
//! thread has ended.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::lock_request::LockRequest;
use super::queue::Consumers;
use crate::engine::Writer;
use crate::model::{
    AtomicWrite, Decision, Env, Error, Id, Kind, Result, Settlement, WRITER_LINGER_US,
};

/// Gets the error with which the store ends a listener.
pub type Lost = Box<dyn FnOnce(Error) + Send>;

/// Writes that are submitted together, and their reply.
pub(super) struct Submission {
    /// The writes. An `Err` is answered as it is, in its place.
    pub(super) writes: Vec<Result<AtomicWrite>>,
    /// Whether the answer waits for the sync to disk.
    pub(super) durable: bool,
    /// Longest wait for another process.
    pub(super) busy: Duration,
    /// Gets one decision for each write, in order.
    pub(super) reply: Box<dyn FnOnce(Vec<Decision>) + Send>,
    /// Time of submission.
    pub(super) since: Instant,
}

/// A job for the writer thread, called once. It gets an error if there is no writer.
pub(super) type WriterTask = Box<dyn FnOnce(Result<&mut dyn Writer>) + Send>;

/// Everything that waits for the writer thread.
pub(super) struct WriteQueue {
    pub(super) waiting: Mutex<Waiting>,
    pub(super) arrived: Condvar,
    /// Counts arrivals, for a writer thread that lingers.
    pub(super) arrivals: AtomicUsize,
    pub(super) env: Arc<dyn Env>,
}

pub(super) struct Waiting {
    pub(super) submissions: Vec<Submission>,
    pub(super) tasks: Vec<WriterTask>,
    /// As tasks, but they change nothing.
    pub(super) queries: Vec<WriterTask>,
    pub(super) settlements: Vec<Settlement>,
    /// Settlements and renewals with a reply.
    pub(super) asked: Vec<LockRequest>,
    pub(super) consumers: Consumers,
    /// Called for listeners that the store ends.
    pub(super) lost: HashMap<Id, Lost>,
    /// The file may have changed: read its deadlines again.
    pub(super) nudged: bool,
    /// The engine has reported the end of a batch since the writer thread last asked for outcomes.
    pub(super) ended: bool,
    /// Why nothing is accepted; `None` while the writer thread runs.
    pub(super) refusal: Option<Error>,
    pub(super) closing: bool,
}

impl WriteQueue {
    pub(super) fn new(env: Arc<dyn Env>) -> Self {
        let reason = "the database was opened with readonly: true, so it cannot be written";
        let waiting = Waiting {
            submissions: Vec::new(),
            tasks: Vec::new(),
            queries: Vec::new(),
            settlements: Vec::new(),
            asked: Vec::new(),
            consumers: Consumers::new(env.random() >> 1),
            lost: HashMap::new(),
            nudged: false,
            ended: false,
            refusal: Some(Error::new(Kind::Denied, reason)),
            closing: false,
        };
        Self {
            waiting: Mutex::new(waiting),
            arrived: Condvar::new(),
            arrivals: AtomicUsize::new(0),
            env,
        }
    }

    pub(super) fn submit(&self, submission: Submission) {
        let refused = self.offer(submission, |waiting, it| waiting.submissions.push(it));
        if let Err((submission, error)) = refused {
            refuse(submission, &error);
        }
    }

    pub(super) fn run(&self, task: WriterTask) {
        if let Err((task, error)) = self.offer(task, |waiting, task| waiting.tasks.push(task)) {
            task(Err(error));
        }
    }

    /// As [`Self::run`], for a task that changes nothing.
    pub(super) fn query(&self, query: WriterTask) {
        if let Err((query, error)) = self.offer(query, |waiting, query| waiting.queries.push(query))
        {
            query(Err(error));
        }
    }

    /// Puts something into the queue and wakes the writer thread, or gives it back with the reason why
    /// nothing is accepted.
    pub(super) fn offer<T>(
        &self,
        what: T,
        put: impl FnOnce(&mut Waiting, T),
    ) -> Result<(), (T, Error)> {
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal.clone() {
            return Err((what, error));
        }
        put(&mut waiting, what);
        drop(waiting);
        self.ring();
        Ok(())
    }

    /// Wakes the writer thread for an arrival.
    pub(super) fn ring(&self) {
        self.arrivals.fetch_add(1, Ordering::Release);
        self.arrived.notify_one();
    }

    /// Spins for a moment, or until the number of arrivals differs from `seen`.
    pub(super) fn linger(&self, seen: usize) {
        let until = Instant::now() + Duration::from_micros(WRITER_LINGER_US);
        while self.arrivals.load(Ordering::Acquire) == seen && Instant::now() < until {
            std::hint::spin_loop();
        }
    }

    /// Reports that the file may have changed.
    pub(super) fn nudge(&self) {
        self.waiting.lock().nudged = true;
        self.ring();
    }

    /// Reports that a batch under way has ended.
    pub(super) fn batch_ended(&self) {
        self.waiting.lock().ended = true;
        self.ring();
    }

    pub(super) fn close(&self) {
        self.waiting.lock().closing = true;
        self.ring();
    }

    /// Called after a panic of the writer thread: refuses everything that waits and all later
    /// requests.
    pub(super) fn fail(&self) {
        let error = Error::internal(
            "the database's writer thread has failed; close the database, open it again, \
             and please report this",
        );
        let (submissions, tasks, asked, receivers) = {
            let mut waiting = self.waiting.lock();
            waiting.refusal = Some(error.clone());
            waiting.settlements.clear();
            let queries = std::mem::take(&mut waiting.queries);
            waiting.tasks.extend(queries);
            (
                std::mem::take(&mut waiting.submissions),
                std::mem::take(&mut waiting.tasks),
                std::mem::take(&mut waiting.asked),
                waiting.consumers.cancel_all(),
            )
        };
        for asked in asked {
            asked.answer(Err(error.clone()));
        }
        for receiver in receivers {
            receiver(Err(error.clone()));
        }
        for task in tasks {
            task(Err(error.clone()));
        }
        for submission in submissions {
            refuse(submission, &error);
        }
    }
}

fn refuse(submission: Submission, error: &Error) {
    let decisions = submission.writes.into_iter();
    let decisions = decisions.map(|write| Decision::Rejected(write.err().unwrap_or(error.clone())));
    (submission.reply)(decisions.collect());
}
