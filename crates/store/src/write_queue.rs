//! The write queue: everything that waits for the writer thread, how the thread is woken, and which
//! waiting writes share a transaction.
//!
//! Invariant: every accepted request is answered, by the writer thread or by a refusal once that
//! thread has ended.
//!
//! All writes of a transaction share its wait for other processes. So writes with different bounds
//! for that wait do not share one. Settlements and renewals do not share one with writes whose
//! bound is shorter than usual; the two take turns.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock, Weak};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Store;
use super::alarm::{Alarm, Wakes};
use super::copy::{CopyWork, only_follows};
use super::lock_request::LockRequest;
use super::queue::Consumers;
use openkv_core::model::{
    AtomicWrite, BUSY_TIMEOUT_MS_DEFAULT, Decision, Env, Error, GROUP_BYTES_MAX, GROUP_WRITES_MAX,
    Id, Result, Settlement, WRITER_SPIN_US,
};
use openkv_engines::Writer;

impl Store {
    /// Submits writes. The reply gets one decision for each, in order. If the writer thread panics,
    /// the reply is dropped uncalled; the store rejects later writes as `Internal`.
    pub fn commit(
        &self,
        writes: Vec<Result<AtomicWrite>>,
        durable: bool,
        busy: Duration,
        reply: Box<dyn FnOnce(Vec<Decision>) + Send>,
    ) {
        let since = Instant::now();
        self.writes.submit(Submission { writes, durable, busy, reply, since });
    }
}

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
    /// Counts arrivals, for a writer thread that lingers or leaves.
    pub(super) arrivals: AtomicUsize,
    pub(super) env: Arc<dyn Env>,
    /// No writer thread serves: whoever sets this to `false` serves or starts one.
    is_left: AtomicBool,
    /// Set to the time of the next work while no thread serves.
    alarm: Alarm,
    /// `None` for a read-only store.
    writer: OnceLock<Weak<dyn WriterStart>>,
}

/// Starts the writer thread.
pub(super) trait WriterStart: Send + Sync {
    /// Starts a thread that serves; none serves now.
    fn start(&self) -> Result<()>;

    /// Serves on this thread until there is no work.
    fn serve_here(&self);
}

impl Wakes for WriteQueue {
    fn wake(&self) {
        if !self.arrives() {
            self.arrived.notify_one();
        } else if let Some(writer) = self.writer()
            && writer.start().is_err()
        {
            writer.serve_here();
        }
    }
}

pub(super) struct Waiting {
    pub(super) submissions: Vec<Submission>,
    pub(super) tasks: Vec<WriterTask>,
    /// As tasks, but they change nothing.
    pub(super) queries: Vec<WriterTask>,
    /// Work of the follower of another database.
    pub(super) copies: Vec<CopyWork>,
    pub(super) settlements: Vec<Settlement>,
    /// Callers that wait until all settlements so far are durable.
    pub(super) acknowledging: Acknowledging,
    /// Settlements and renewals with a reply.
    pub(super) lock_requests: Vec<LockRequest>,
    pub(super) consumers: Consumers,
    /// Called for listeners that the store ends.
    pub(super) lost: HashMap<Id, Lost>,
    /// The file may have changed: read its deadlines again.
    pub(super) nudged: bool,
    /// The engine has reported the end of a batch since the writer thread last took outcomes.
    pub(super) ended: bool,
    /// Why nothing is accepted; `None` while the writer thread runs.
    pub(super) refusal: Option<Error>,
    /// Whether the database is a copy, which refuses writes of callers.
    pub(super) follows: bool,
    /// Why there are no consumers, if nothing else is refused.
    pub(super) no_consumers: Option<Error>,
    pub(super) closing: bool,
}

/// Callers that wait for settlements. All settlements are taken into a transaction at once, so one that is
/// taken after a call has the settlements before that call.
#[derive(Default)]
pub(super) struct Acknowledging {
    /// Their settlements may wait for a transaction.
    waiting: Vec<Acknowledged>,
    /// Their settlements have been taken.
    taken: Vec<Acknowledged>,
}

/// Called once all settlements before it are durable, or never can be.
pub type Acknowledged = Box<dyn FnOnce() + Send>;

impl Acknowledging {
    pub(super) fn add(&mut self, caller: Acknowledged) {
        self.waiting.push(caller);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting.is_empty() && self.taken.is_empty()
    }

    /// All settlements are taken into a transaction.
    pub(super) fn take(&mut self) {
        self.taken.append(&mut self.waiting);
    }

    /// The callers whose settlements have been taken; with `none_waits` all callers.
    pub(super) fn ready(&mut self, none_waits: bool) -> Vec<Acknowledged> {
        if none_waits {
            self.take();
        }
        std::mem::take(&mut self.taken)
    }
}

/// The error of a write to a database that was opened for reading.
pub(super) fn only_reads() -> Error {
    Error::denied("the database was opened with readonly: true, so it cannot be written")
}

impl Waiting {
    /// Why nothing is accepted from callers.
    pub(super) fn refusal_of_callers(&self) -> Option<Error> {
        self.refusal.clone().or_else(|| self.follows.then(only_follows))
    }

    /// Why no consumer is accepted.
    pub(super) fn refusal_of_consumers(&self) -> Option<Error> {
        self.refusal_of_callers().or_else(|| self.no_consumers.clone())
    }
}

impl WriteQueue {
    pub(super) fn new(env: Arc<dyn Env>) -> Arc<Self> {
        let waiting = Waiting {
            submissions: Vec::new(),
            tasks: Vec::new(),
            queries: Vec::new(),
            copies: Vec::new(),
            settlements: Vec::new(),
            acknowledging: Acknowledging::default(),
            lock_requests: Vec::new(),
            consumers: Consumers::new(env.random() >> 1),
            lost: HashMap::new(),
            nudged: false,
            ended: false,
            refusal: Some(only_reads()),
            follows: false,
            no_consumers: None,
            closing: false,
        };
        Arc::new_cyclic(|myself: &Weak<Self>| Self {
            waiting: Mutex::new(waiting),
            arrived: Condvar::new(),
            arrivals: AtomicUsize::new(0),
            env,
            is_left: AtomicBool::new(false),
            alarm: Alarm::new(myself.clone()),
            writer: OnceLock::new(),
        })
    }

    /// Names what starts the writer thread.
    pub(super) fn set_writer(&self, writer: Weak<dyn WriterStart>) {
        let _first = self.writer.set(writer);
    }

    pub(super) fn submit(&self, submission: Submission) {
        if self.waiting.lock().follows {
            return refuse(submission, &only_follows());
        }
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

    /// As [`Self::run`], for work of the follower.
    pub(super) fn copy(&self, work: CopyWork) {
        if let Err((work, error)) = self.offer(work, |waiting, work| waiting.copies.push(work)) {
            let _nothing = work(Err(error));
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

    /// Wakes or starts the writer thread for an arrival.
    pub(super) fn ring(&self) {
        if !self.arrives() {
            self.arrived.notify_one();
        } else if let Some(writer) = self.writer()
            && let Err(error) = writer.start()
        {
            tracing::warn!(%error, "starting the writer thread");
            self.is_left.store(true, Ordering::SeqCst);
            self.alarm.set(Some(Instant::now()));
        }
    }

    fn writer(&self) -> Option<Arc<dyn WriterStart>> {
        self.writer.get().and_then(Weak::upgrade)
    }

    /// Counts an arrival. Returns whether no thread serves and the caller has to see to that.
    fn arrives(&self) -> bool {
        // Sequentially consistent with `leave`: either this thread finds that the writer thread has left, or
        // that one finds the arrival.
        self.arrivals.fetch_add(1, Ordering::SeqCst);
        self.is_left.load(Ordering::SeqCst) && self.is_left.swap(false, Ordering::SeqCst)
    }

    /// The writer thread leaves until the next arrival, at most until the given time. Returns `false` if
    /// something has arrived since it saw this number of arrivals: then it stays.
    pub(super) fn leave(&self, seen: usize, until: Option<Instant>) -> bool {
        self.alarm.set(until);
        self.is_left.store(true, Ordering::SeqCst);
        let has_arrived = self.arrivals.load(Ordering::SeqCst) != seen;
        !(has_arrived && self.is_left.swap(false, Ordering::SeqCst))
    }

    /// Spins for a moment, or until the number of arrivals differs from `seen`. Returns whether it does.
    pub(super) fn spin(&self, seen: usize) -> bool {
        let until = Instant::now() + Duration::from_micros(WRITER_SPIN_US);
        loop {
            let has_arrived = self.arrivals.load(Ordering::Acquire) != seen;
            if has_arrived || Instant::now() >= until {
                return has_arrived;
            }
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

    /// Accepts nothing more. Returns whether no thread serves, so that the caller has to complete what
    /// was accepted.
    pub(super) fn close(&self) -> bool {
        self.waiting.lock().closing = true;
        let serves = self.arrives();
        self.arrived.notify_one();
        serves
    }

    /// Called after a panic of the writer thread: refuses everything that waits and all later
    /// requests.
    pub(super) fn fail(&self) {
        let error = writer_failed();
        let copies = std::mem::take(&mut self.waiting.lock().copies);
        let (submissions, tasks, lock_requests, receivers, acknowledging) = {
            let mut waiting = self.waiting.lock();
            waiting.refusal = Some(error.clone());
            waiting.settlements.clear();
            let queries = std::mem::take(&mut waiting.queries);
            waiting.tasks.extend(queries);
            (
                std::mem::take(&mut waiting.submissions),
                std::mem::take(&mut waiting.tasks),
                std::mem::take(&mut waiting.lock_requests),
                waiting.consumers.cancel_all(),
                waiting.acknowledging.ready(true),
            )
        };
        acknowledging.into_iter().for_each(|caller| caller());
        for request in lock_requests {
            request.answer(Err(error.clone()));
        }
        for receiver in receivers {
            receiver(Err(error.clone()));
        }
        for task in tasks {
            task(Err(error.clone()));
        }
        for work in copies {
            let _nothing = work(Err(error.clone()));
        }
        for submission in submissions {
            refuse(submission, &error);
        }
    }
}

/// The error of calls on a store whose writer has ended by a panic.
pub(super) fn writer_failed() -> Error {
    Error::internal(
        "the database's writer thread has failed; close the database, open it again, \
         and please report this",
    )
}

fn refuse(submission: Submission, error: &Error) {
    let decisions = submission.writes.into_iter();
    let decisions = decisions.map(|write| Decision::Rejected(write.err().unwrap_or(error.clone())));
    (submission.reply)(decisions.collect());
}

/// The contents of the next transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Group {
    /// The number of waiting submissions in it.
    pub(super) submissions: usize,
    /// Whether it includes the waiting settlements and renewals.
    pub(super) settles: bool,
    /// Longest wait for another process.
    pub(super) busy: Duration,
}

impl Group {
    /// `settles`: settlements or renewals wait. `alone`: the last group had only such, while writes
    /// waited.
    pub(super) fn next(waiting: &[Submission], settles: bool, alone: bool) -> Self {
        let usual = Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT);
        let Some(first) = waiting.first() else {
            return Self { submissions: 0, settles: true, busy: usual };
        };
        let apart = settles && first.busy < usual;
        if apart && !alone {
            return Self { submissions: 0, settles: true, busy: usual };
        }
        let (mut submissions, mut writes, mut bytes) = (0, 0, 0);
        for submission in waiting {
            writes += submission.writes.len();
            let full = writes > GROUP_WRITES_MAX || bytes > GROUP_BYTES_MAX;
            if submissions > 0 && (full || submission.busy != first.busy) {
                break;
            }
            submissions += 1;
            bytes += submission.writes.iter().flatten().map(AtomicWrite::size_bytes).sum::<usize>();
        }
        Self { submissions, settles: !apart, busy: first.busy }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    fn waiting(busy_ms: &[u64]) -> Vec<Submission> {
        let submission = |ms: &u64| Submission {
            writes: Vec::new(),
            durable: true,
            busy: Duration::from_millis(*ms),
            reply: Box::new(drop),
            since: Instant::now(),
        };
        busy_ms.iter().map(submission).collect()
    }

    fn group(busy_ms: &[u64], settles: bool, alone: bool) -> (usize, bool, u64) {
        let group = Group::next(&waiting(busy_ms), settles, alone);
        (group.submissions, group.settles, u64::try_from(group.busy.as_millis()).unwrap())
    }

    #[test]
    fn writes_with_different_bounds_for_waiting_do_not_share_a_transaction() {
        let usual = BUSY_TIMEOUT_MS_DEFAULT;
        assert_eq!(group(&[usual; 3], true, false), (3, true, usual));
        assert_eq!(group(&[100, 100, 3000, 100], false, false), (2, true, 100));
        assert_eq!(group(&[3000, 100], false, true), (1, true, 3000));
        assert_eq!(group(&[], true, false), (0, true, usual));
    }

    #[test]
    fn settlements_and_renewals_wait_at_least_the_default() {
        let usual = BUSY_TIMEOUT_MS_DEFAULT;
        assert_eq!(group(&[0, 0], true, false), (0, true, usual));
        assert_eq!(group(&[0, 0], true, true), (2, false, 0));
        assert_eq!(group(&[usual + 1, 0], true, false), (1, true, usual + 1));
    }
}
