//! The writer of a database: directly, one transaction for each batch, or by a thread that leads it. A process that leads
//! decides all writes, several batches ahead of their durability.
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
use super::cells::{Cells, first};
use super::direct::Direct;
use super::queues;
use super::transaction::OpenTransaction;
use crate::{
    DeadLettersChanged, GoesOn, Indexer, NextDeadlines, Progress, Report, Ticket, Wake, Work,
    Writer,
};
#[cfg(feature = "defects")]
pub use actor::{Actor, Ending};
use driver::Driver;
use openkv_core::model::{
    Capabilities, Capability, Checkpoint, DeadLetterChange, Error, IndexChoice, IndexInfo,
    IndexRequest, Kind, LogSettings, MessageDeletion, Origin, QueueChange, QueueChanged, Result,
    Vacuumed, ValueIndexInfo, ValueIndexRequest,
};

/// The earliest expiry, and whether value indexes are being built or deleted.
const NEXT: &str = "\
SELECT (SELECT at_ms FROM openkv.expiries WHERE db = $1 ORDER BY at_ms LIMIT 1), \
EXISTS (SELECT FROM openkv.value_indexes WHERE db = $1 \
AND (dropped OR progress IS NOT NULL OR verified IS NOT NULL))";

/// Writes to a database.
pub struct PostgresWriter {
    direct: Direct,
    leader: Option<Leader>,
}

impl PostgresWriter {
    pub(super) fn new(shared: Arc<Shared>) -> Result<Self> {
        let leads = shared.lease.is_some();
        let leader = if leads { Some(Leader::start(shared.clone())?) } else { None };
        Ok(Self { direct: Direct::new(shared), leader })
    }

    fn read_number(&self, sql: &'static str) -> Result<Option<i64>> {
        let shared = &self.direct.shared;
        let rows = shared.query((sql, vec![&shared.db]))?;
        first("entries", &rows)
    }

    /// A transaction of its own, while nothing is under way. The leader does not know what it changes.
    fn exclusive(&mut self) -> &mut Direct {
        if let Some(leader) = &self.leader {
            leader.forget();
        }
        &mut self.direct
    }
}

impl Writer for PostgresWriter {
    fn begin(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Result<Progress> {
        match &mut self.leader {
            Some(leader) => Ok(Progress::UnderWay(leader.submit(work, now_ms, deadline))),
            None => {
                let done = self.direct.carry_out(work, now_ms, deadline, None)?;
                Ok(Progress::Done(done.report))
            }
        }
    }

    fn has_room(&self) -> bool {
        self.leader.as_ref().is_none_or(Leader::has_room)
    }

    fn ended(&mut self) -> Option<(Ticket, Result<Report>)> {
        self.leader.as_mut()?.ended()
    }

    fn on_ended(&mut self, wake: Wake) {
        if let Some(leader) = &self.leader {
            leader.on_ended(wake);
        }
    }

    fn log_changes(&mut self, origin: Origin, now_ms: i64, deadline: Instant) -> Result<u64> {
        self.exclusive().log_changes(origin, now_ms, deadline)
    }

    fn set_log(
        &mut self,
        settings: &LogSettings,
        origin: Origin,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<u64> {
        self.exclusive().set_log(settings, origin, now_ms, deadline)
    }

    fn next_deadlines(&mut self) -> Result<NextDeadlines> {
        let shared = &self.direct.shared;
        let rows = shared.query((NEXT, vec![&shared.db]))?;
        let row = rows.first().ok_or_else(|| Error::internal("a statement without an answer"))?;
        let cells = Cells::of("expiries", row);
        let (expiry_ms, building) = (cells.get(0)?, cells.get(1)?);
        let purge_ms = self.read_number(queues::EARLIEST_PURGE)?;
        Ok(NextDeadlines { expiry_ms, purge_ms, building })
    }

    fn next_message_ms(&mut self, queue: &str) -> Result<Option<i64>> {
        queues::next_message_ms(&self.direct.shared, queue)
    }

    fn queue_depth(&mut self, queue: &str) -> Result<u64> {
        queues::depth(&self.direct.shared, queue)
    }

    fn change_dead_letters(
        &mut self,
        queue: &str,
        change: &DeadLetterChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<DeadLettersChanged> {
        self.exclusive().change_dead_letters(queue, change, now_ms, deadline)
    }

    fn change_queue(
        &mut self,
        queue: &str,
        change: QueueChange,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<QueueChanged> {
        self.exclusive().change_queue(queue, change, now_ms, deadline)
    }

    fn delete_message(
        &mut self,
        queue: &str,
        id: i64,
        now_ms: i64,
        deadline: Instant,
    ) -> Result<MessageDeletion> {
        self.exclusive().delete_message(queue, id, now_ms, deadline)
    }

    fn checkpoint(&mut self) -> Result<Checkpoint> {
        Err(Capabilities::POSTGRES.refusal(Capability::Checkpoint))
    }

    fn vacuum(&mut self, _deadline: Instant, _goes_on: &GoesOn) -> Result<Vacuumed> {
        Err(Capabilities::POSTGRES.refusal(Capability::Vacuum))
    }
}

impl Indexer for PostgresWriter {
    fn create_index(&mut self, request: &IndexRequest, deadline: Instant) -> Result<IndexInfo> {
        self.direct.beside_leader(0, deadline, |open| open.create_index(request))
    }

    fn drop_index(&mut self, choice: &IndexChoice, deadline: Instant) -> Result<bool> {
        self.direct.beside_leader(0, deadline, |open| open.drop_index(choice))
    }

    fn create_value_index(
        &mut self,
        request: &ValueIndexRequest,
        deadline: Instant,
    ) -> Result<ValueIndexInfo> {
        self.direct.beside_leader(0, deadline, |open| open.create_value_index(request))
    }

    fn build_indexes(&mut self, now_ms: i64, deadline: Instant) -> Result<bool> {
        self.direct.beside_leader(now_ms, deadline, OpenTransaction::build_indexes)
    }
}

/// The side of a leader that the store sees.
struct Leader {
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
    fn start(shared: Arc<Shared>) -> Result<Self> {
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
    fn submit(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Ticket {
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

    /// As [`Writer::has_room`].
    fn has_room(&self) -> bool {
        self.exchange.waiting.lock().room > 0
    }

    /// As [`Writer::ended`].
    fn ended(&mut self) -> Option<(Ticket, Result<Report>)> {
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

    /// As [`Writer::on_ended`].
    fn on_ended(&self, wake: Wake) {
        *self.exchange.wake.lock() = Some(wake);
    }

    /// The database is about to change by another transaction of this process. Nothing is under way.
    fn forget(&self) {
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
