//! A process that leads a database: it decides all writes, several batches ahead of their durability.
//!
//! Duty: execute the actions of [`openkv_core::layer::Layer`] on a thread of its own, with one connection
//! for commits and one for reads, and answer the store in order.
//! Invariant: batches are sent in the order of their versions on one connection. After a lost connection
//! nothing is sent before the epoch was raised.
//! Never: a decision about a write; a commit that is cancelled.
//!
//! A process begins to lead with its first write, and hands the database over when it closes.

#[cfg(feature = "defects")]
mod actor;
mod batches;
mod connections;
mod driver;

use std::collections::VecDeque;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Instant;

use parking_lot::Mutex;
use tokio::sync::Notify;

use super::Shared;
use crate::{Report, Ticket, Wake, Work};
#[cfg(feature = "defects")]
pub use actor::{Actor, Ending};
use driver::Driver;
use openkv_core::model::{Error, Kind, Result};

/// The side of a leader that the store sees.
pub(super) struct Leader {
    exchange: Arc<Exchange>,
    thread: Option<JoinHandle<()>>,
    tickets: u64,
    /// The batches without an outcome, in order.
    under_way: VecDeque<Ticket>,
}

/// The messages between the store and the thread of a leader.
#[derive(Default)]
struct Exchange {
    waiting: Mutex<Waiting>,
    arrived: Notify,
    wake: Mutex<Option<Wake>>,
}

#[derive(Default)]
struct Waiting {
    submitted: Vec<Submission>,
    ended: VecDeque<(Ticket, Result<Report>)>,
    /// How many batches may begin.
    room: usize,
    /// Another transaction of this process has changed the database.
    forgets: bool,
    closing: bool,
    /// The thread has ended.
    stopped: bool,
}

/// A batch of the store.
struct Submission {
    ticket: Ticket,
    work: Work,
    now_ms: i64,
    deadline: Instant,
}

impl Leader {
    /// # Errors
    /// `Unavailable` if the thread cannot start.
    pub(super) fn start(shared: Arc<Shared>) -> Result<Self> {
        let exchange = Arc::new(Exchange::default());
        exchange.waiting.lock().room = 1;
        let ours = exchange.clone();
        let thread = std::thread::Builder::new()
            .name("openkv-leader".into())
            .spawn(move || {
                let _stop = Stop(ours.clone());
                if let Err(error) = Driver::run(shared, ours) {
                    tracing::error!(%error, "the thread of a leader ended");
                }
            })
            .map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
        Ok(Self { exchange, thread: Some(thread), tickets: 0, under_way: VecDeque::new() })
    }

    /// Takes a batch.
    pub(super) fn submit(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.under_way.push_back(ticket);
        let mut waiting = self.exchange.waiting.lock();
        waiting.room = waiting.room.saturating_sub(1);
        let stopped = waiting.stopped;
        if !stopped {
            waiting.submitted.push(Submission { ticket, work, now_ms, deadline });
        }
        drop(waiting);
        if stopped {
            self.exchange.wake();
        } else {
            self.exchange.arrived.notify_one();
        }
        ticket
    }

    /// As [`crate::Writer::has_room`].
    pub(super) fn has_room(&self) -> bool {
        self.exchange.waiting.lock().room > 0
    }

    /// As [`crate::Writer::ended`].
    pub(super) fn ended(&mut self) -> Option<(Ticket, Result<Report>)> {
        let mut waiting = self.exchange.waiting.lock();
        let ended = waiting.ended.pop_front();
        let stopped = waiting.stopped;
        drop(waiting);
        let oldest = self.under_way.front().copied();
        let ended =
            ended.or_else(|| oldest.filter(|_| stopped).map(|ticket| (ticket, Err(stop()))));
        if ended.is_some() {
            self.under_way.pop_front();
        }
        ended
    }

    /// As [`crate::Writer::on_ended`].
    pub(super) fn on_ended(&self, wake: Wake) {
        *self.exchange.wake.lock() = Some(wake);
    }

    /// The database is about to change by another transaction of this process. Nothing is under way.
    pub(super) fn forget(&self) {
        self.exchange.waiting.lock().forgets = true;
        self.exchange.arrived.notify_one();
    }
}

impl Drop for Leader {
    fn drop(&mut self) {
        self.exchange.waiting.lock().closing = true;
        self.exchange.arrived.notify_one();
        if let Some(thread) = self.thread.take()
            && thread.join().is_err()
        {
            tracing::error!("the thread of a leader ended by a panic; please report this");
        }
    }
}

impl Exchange {
    fn wake(&self) {
        if let Some(wake) = &*self.wake.lock() {
            wake();
        }
    }

    /// Answers batches, and tells the store how many may begin.
    fn answer(&self, ended: Vec<(Ticket, Result<Report>)>, room: usize) {
        let mut waiting = self.waiting.lock();
        let more = room.saturating_sub(waiting.submitted.len());
        let wakes = !ended.is_empty() || (waiting.room == 0 && more > 0);
        waiting.room = more;
        waiting.ended.extend(ended);
        drop(waiting);
        if wakes {
            self.wake();
        }
    }
}

/// Tells the store that the thread has ended, also by a panic.
struct Stop(Arc<Exchange>);

impl Drop for Stop {
    fn drop(&mut self) {
        self.0.waiting.lock().stopped = true;
        self.0.wake();
    }
}

/// The outcome of a batch whose leader's thread has ended.
fn stop() -> Error {
    let why = "the thread that leads the database has ended, so it is unknown whether this commit has \
               happened; open the database again";
    Error::new(Kind::OutcomeUnknown, why)
}
