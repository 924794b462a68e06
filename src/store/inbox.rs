//! What waits for the writer thread, and how it is woken.
//!
//! Invariant: what is taken in is answered, by the writer thread or, once that is gone, by a refusal.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use parking_lot::{Condvar, Mutex};

use super::Id;
use super::consume::{Asked, Lost};
use super::queue::Consumers;
use crate::engine::Writer;
use crate::model::{AtomicWrite, Decision, Env, Error, Kind, Result, Settlement, WRITER_LINGER_US};

/// Writes handed over together, and who is told.
pub struct Submission {
    /// The writes; an `Err` is answered as it is, in its place.
    pub writes: Vec<Result<AtomicWrite>>,
    /// Whether the answer waits for the disk.
    pub durable: bool,
    /// Longest wait for another process.
    pub busy: Duration,
    /// Gets one decision a write, in order.
    pub reply: Box<dyn FnOnce(Vec<Decision>) + Send>,
    /// When they were handed over.
    pub since: Instant,
}

/// What is to be done with the writer itself. It is called once; an error means that there is none.
pub type Order = Box<dyn FnOnce(Result<&mut dyn Writer>) + Send>;

/// What waits for the writer.
pub(super) struct Inbox {
    pub(super) waiting: Mutex<Waiting>,
    pub(super) arrived: Condvar,
    /// Counts what arrives, for a writer thread that lingers.
    pub(super) arrivals: AtomicUsize,
    pub(super) env: Arc<dyn Env>,
}

pub(super) struct Waiting {
    pub(super) submissions: Vec<Submission>,
    pub(super) orders: Vec<Order>,
    /// As orders, but they change nothing.
    pub(super) questions: Vec<Order>,
    pub(super) settlements: Vec<Settlement>,
    /// Settlements and renewals whose outcome somebody waits for.
    pub(super) asked: Vec<Asked>,
    pub(super) consumers: Consumers,
    /// What is told to listeners that end by themselves.
    pub(super) lost: HashMap<Id, Lost>,
    /// The file may have changed: look at its agenda again.
    pub(super) nudged: bool,
    /// Why nothing is taken; `None` while the writer thread serves.
    pub(super) refusal: Option<Error>,
    pub(super) closing: bool,
}

impl Inbox {
    pub(super) fn new(env: Arc<dyn Env>) -> Self {
        let reason = "the database was opened with readonly: true, so it cannot be written";
        let waiting = Waiting {
            submissions: Vec::new(),
            orders: Vec::new(),
            questions: Vec::new(),
            settlements: Vec::new(),
            asked: Vec::new(),
            consumers: Consumers::new(env.random() >> 1),
            lost: HashMap::new(),
            nudged: false,
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
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal.clone() {
            drop(waiting);
            refuse(submission, &error);
            return;
        }
        waiting.submissions.push(submission);
        drop(waiting);
        self.ring();
    }

    pub(super) fn order(&self, order: Order) {
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal.clone() {
            drop(waiting);
            order(Err(error));
            return;
        }
        waiting.orders.push(order);
        drop(waiting);
        self.ring();
    }

    /// As [`Self::order`], for what changes nothing.
    pub(super) fn question(&self, question: Order) {
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal.clone() {
            drop(waiting);
            question(Err(error));
            return;
        }
        waiting.questions.push(question);
        drop(waiting);
        self.ring();
    }

    /// Something has arrived.
    pub(super) fn ring(&self) {
        self.arrivals.fetch_add(1, Ordering::Release);
        self.arrived.notify_one();
    }

    /// Stays awake for a moment, or until something more than `seen` has arrived.
    pub(super) fn linger(&self, seen: usize) {
        let until = Instant::now() + Duration::from_micros(WRITER_LINGER_US);
        while self.arrivals.load(Ordering::Acquire) == seen && Instant::now() < until {
            std::hint::spin_loop();
        }
    }

    /// The file may have changed.
    pub(super) fn nudge(&self) {
        self.waiting.lock().nudged = true;
        self.ring();
    }

    pub(super) fn close(&self) {
        self.waiting.lock().closing = true;
        self.ring();
    }

    /// The writer thread has panicked: what waits is refused, and so is all that comes.
    pub(super) fn fail(&self) {
        let error = Error::internal(
            "the database's writer thread has failed; close the database, open it again, \
             and please report this",
        );
        let (submissions, orders, asked, receivers) = {
            let mut waiting = self.waiting.lock();
            waiting.refusal = Some(error.clone());
            waiting.settlements.clear();
            let questions = std::mem::take(&mut waiting.questions);
            waiting.orders.extend(questions);
            (
                std::mem::take(&mut waiting.submissions),
                std::mem::take(&mut waiting.orders),
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
        for order in orders {
            order(Err(error.clone()));
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
