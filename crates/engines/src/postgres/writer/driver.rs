//! The thread of a leader: takes batches from the store, executes what the layer requests, and tells
//! it what has happened.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use tokio::runtime::Builder;
use tokio::task::JoinSet;

use super::batches::{Answers, BatchStatements, Fate, FetchStatement, Wanted, fate, read_event};
use super::connections::{Connections, Unconnected};
use super::{Exchange, Submission};
use crate::postgres::Shared;
use crate::postgres::direct::{CarriedOut, Direct};
use crate::postgres::errors::Fault;
use crate::postgres::lead;
use crate::postgres::line::Sent;
use crate::{Report, Ticket, Work};
use openkv_core::layer::{
    Action, Bounds, Commit, Event, FetchId, Layer, Lead, Moment, Remembered, Resolution,
};
use openkv_core::model::{Error, Kind, POSTGRES_LEADER_IDLE_MS, Result};

/// A batch that was sent.
struct InFlight {
    ticket: Ticket,
    sent: Sent,
    answers: usize,
    time_at: usize,
    /// The last commit before it, and its last one.
    versions: (u64, u64),
}

/// Pause before a read is sent again.
const READ_PAUSE: Duration = Duration::from_millis(50);

/// A read that has ended.
struct Read {
    fetch: FetchId,
    wanted: Wanted,
    event: Result<Event>,
    /// Until when it is sent again.
    deadline: Instant,
}

type Reading = Pin<Box<dyn Future<Output = Read>>>;

/// The result of work on a thread that may block.
enum Blocking {
    Acquired(Result<(Lead, Remembered)>),
    Resolved(Resolution),
    RanAlone(Box<RanAlone>),
}

/// A batch that ran in a transaction of its own.
struct RanAlone {
    direct: Direct,
    ticket: Ticket,
    result: Result<(Report, Lead)>,
}

/// The events that the thread waits for.
enum Heard {
    Arrived,
    Fate(Fate),
    Read(Box<Read>),
    Blocking(Result<Blocking>),
    Idle,
}

/// The time of the server, as of an answer.
#[derive(Clone, Copy)]
struct ServerClock {
    at_ms: i64,
    heard: Instant,
}

pub(super) struct Driver {
    shared: Arc<Shared>,
    exchange: Arc<Exchange>,
    started: Instant,
    clock: Option<ServerClock>,
    layer: Option<Layer>,
    /// Waits for the lead.
    queued: VecDeque<Submission>,
    acquiring: bool,
    connections: Connections,
    in_flight: VecDeque<InFlight>,
    reading: FuturesUnordered<Reading>,
    blocking: JoinSet<Blocking>,
    direct: Option<Direct>,
}

impl Driver {
    /// Serves until the store closes.
    ///
    /// # Errors
    /// `Unavailable` without a runtime; `Internal` after a panic.
    pub(super) fn run(shared: Arc<Shared>, exchange: Arc<Exchange>) -> Result<()> {
        // A lease that ends runs a statement, which it cannot do inside of this runtime.
        let _until_the_runtime_has_ended = shared.clone();
        let runtime = Builder::new_current_thread().enable_all().build();
        let runtime = runtime.map_err(|error| Error::new(Kind::Unavailable, error.to_string()))?;
        let driver = Self {
            direct: Some(Direct::new(shared.clone())),
            connections: Connections::new(shared.clone()),
            shared,
            exchange,
            started: Instant::now(),
            clock: None,
            layer: None,
            queued: VecDeque::new(),
            acquiring: false,
            in_flight: VecDeque::new(),
            reading: FuturesUnordered::new(),
            blocking: JoinSet::new(),
        };
        runtime.block_on(driver.serve())
    }

    async fn serve(mut self) -> Result<()> {
        loop {
            match self.hear().await {
                Heard::Arrived => {
                    if self.take_submissions().await {
                        return Ok(());
                    }
                }
                Heard::Fate(fate) => self.take_fate(fate).await,
                Heard::Read(read) => self.take_read(*read).await,
                Heard::Blocking(done) => self.take_blocking(done?).await,
                Heard::Idle => self.connections.close(),
            }
        }
    }

    async fn hear(&mut self) -> Heard {
        let Self { in_flight, reading, blocking, exchange, connections, shared, .. } = self;
        // Work on another thread may wait for a connection itself, so it does not keep these two.
        let is_idle = in_flight.is_empty() && reading.is_empty();
        let connected = connections.has_place();
        // A leader with arrivals at all times ends its turn: they wait until it has given up its places.
        let ends_turn = connections.have_had_a_turn() && shared.pool.has_waiting();
        if ends_turn && is_idle {
            return Heard::Idle;
        }
        tokio::select! {
            biased;
            answers = oldest(in_flight), if !in_flight.is_empty() => {
                let (answers, count, time_at) = answers;
                Heard::Fate(fate(answers, count, time_at, connections.take_unreplicated()))
            }
            Some(read) = reading.next(), if !reading.is_empty() => Heard::Read(Box::new(read)),
            Some(done) = blocking.join_next(), if !blocking.is_empty() => {
                Heard::Blocking(done.map_err(|error| Error::internal(error.to_string())))
            }
            () = exchange.arrived.notified(), if !ends_turn => Heard::Arrived,
            () = shared.pool.is_wanted(), if is_idle && connected => Heard::Idle,
            () = tokio::time::sleep(Duration::from_millis(POSTGRES_LEADER_IDLE_MS)),
                if is_idle && connected => Heard::Idle,
        }
    }

    /// Takes what the store has submitted. Returns whether the store has closed.
    async fn take_submissions(&mut self) -> bool {
        let (submitted, forgets, closing) = {
            let mut waiting = self.exchange.waiting.lock();
            let forgets = std::mem::take(&mut waiting.forgets);
            (std::mem::take(&mut waiting.submitted), forgets, waiting.closing)
        };
        if forgets {
            self.layer = None;
        }
        for submission in submitted {
            self.learn_time(submission.now_ms);
            if self.layer.is_some() {
                let Submission { ticket, work, .. } = submission;
                self.step(Event::Submitted(ticket, work)).await;
            } else {
                self.queued.push_back(submission);
            }
        }
        self.acquire();
        if closing {
            // The store has the outcome of every batch, so nothing is under way.
            self.blocking.abort_all();
            if self.layer.take().is_some() {
                let shared = self.shared.clone();
                let handed = tokio::task::spawn_blocking(move || lead::hand_over(&shared)).await;
                if let Ok(Err(error)) = handed {
                    tracing::debug!(%error, "the lead ends with its lease");
                }
            }
        }
        closing
    }

    /// Begins to lead, if batches wait for it.
    fn acquire(&mut self) {
        let Some(first) = self.queued.front() else { return };
        if self.layer.is_none() && !self.acquiring {
            self.acquiring = true;
            let (shared, deadline) = (self.shared.clone(), first.deadline);
            self.blocking
                .spawn_blocking(move || Blocking::Acquired(lead::acquire(&shared, deadline)));
        }
    }

    async fn take_blocking(&mut self, done: Blocking) {
        match done {
            Blocking::Acquired(result) => {
                self.acquiring = false;
                let queued = std::mem::take(&mut self.queued);
                match result {
                    Ok((lead, remembered)) => {
                        self.hear_lead(&lead);
                        let earlier = self.shared.figures.lock().unwrap_or_default().counts;
                        let layer = Layer::new(lead, remembered, Bounds::USUAL);
                        self.layer = Some(layer.counting_from(earlier));
                        for Submission { ticket, work, .. } in queued {
                            self.step(Event::Submitted(ticket, work)).await;
                        }
                    }
                    Err(error) => {
                        let refused = queued.into_iter().map(|s| (s.ticket, Err(error.clone())));
                        self.exchange.answer(refused.collect(), 1);
                    }
                }
            }
            Blocking::Resolved(resolution) => {
                if let Resolution::Leading(lead, _) = &resolution {
                    self.hear_lead(lead);
                }
                self.step(Event::Resolved(resolution)).await;
            }
            Blocking::RanAlone(ran) => {
                let RanAlone { direct, ticket, result } = *ran;
                self.direct = Some(direct);
                if let Ok((report, lead)) = &result {
                    self.shared.committed(report.versions.0, report.versions.1);
                    self.hear_lead(lead);
                }
                self.step(Event::RanAlone(ticket, result)).await;
            }
        }
    }

    /// A read is sent again while the server does not answer it: it may be starting, or a standby may be about to take
    /// its place.
    async fn take_read(&mut self, read: Read) {
        let Read { fetch, wanted, event, deadline } = read;
        let event = match event {
            Ok(event) => event,
            Err(error) if error.kind() == Kind::Unavailable && Instant::now() < deadline => {
                return self.fetch(fetch, wanted, deadline).await;
            }
            Err(error) => Event::FetchFailed(fetch, error),
        };
        self.step(event).await;
    }

    async fn take_fate(&mut self, fate: Fate) {
        let Some(InFlight { ticket, versions, .. }) = self.in_flight.pop_front() else { return };
        match fate {
            Fate::Durable(clock_ms) => {
                if let Some(at_ms) = clock_ms {
                    self.hear_time(at_ms);
                }
                self.shared.committed(versions.0, versions.1);
                self.step(Event::Durable(ticket)).await;
            }
            Fate::Refused(error) => self.step(Event::Refused(ticket, error)).await,
            Fate::Interrupted(cause) => {
                if let Some(error) = cause {
                    tracing::warn!(%error, "the connection of a leader was lost");
                }
                self.step(Event::Interrupted).await;
            }
        }
    }

    /// Tells the layer what has happened, and executes what it answers.
    async fn step(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        let mut answers = Vec::new();
        while let Some(event) = events.pop_front() {
            let now = self.moment();
            let Some(layer) = &mut self.layer else { break };
            for action in layer.step(event, now) {
                match action {
                    Action::Answer(ticket, result) => answers.push((ticket, result)),
                    Action::Send(commit) => {
                        if let Err(event) = self.send(*commit).await {
                            events.push_back(event);
                        }
                    }
                    Action::Fetch(fetch, wanted) => {
                        let deadline = Instant::now() + self.shared.busy;
                        self.fetch(fetch, Wanted::Keys(wanted), deadline).await;
                    }
                    Action::FetchPoints(fetch, points) => {
                        let deadline = Instant::now() + self.shared.busy;
                        self.fetch(fetch, Wanted::Points(points), deadline).await;
                    }
                    Action::RunAlone(ticket, work) => self.run_alone(ticket, work),
                    Action::Resolve { epoch } => self.resolve(epoch),
                }
            }
        }
        if let Some(layer) = &self.layer {
            *self.shared.figures.lock() = Some(layer.figures());
        }
        let room = self.layer.as_ref().map_or(1, Layer::room);
        self.layer = self.layer.take().filter(|layer| !layer.is_overtaken());
        self.exchange.answer(answers, room);
    }

    /// Sends a batch behind those in flight, on their connection.
    async fn send(&mut self, commit: Commit) -> std::result::Result<(), Event> {
        if self.connections.has_lost_commits() && !self.in_flight.is_empty() {
            // Nothing is sent on another connection before the epoch is raised.
            return Err(Event::Interrupted);
        }
        let (ticket, versions) = (commit.ticket, (commit.prev, commit.next));
        let batch = BatchStatements::of(&self.shared, commit);
        let (answers, time_at) = (batch.answers(), batch.time_at());
        let sent = match self.connections.line_for_commits().await {
            Ok(line) => line.send(batch).await.map_err(Fault::into_error),
            // Neither this batch nor one before it was sent.
            Err(Unconnected::NoPlace(error)) => return Err(Event::Refused(ticket, error)),
            Err(Unconnected::NotConnected(error)) => Err(error),
        };
        match sent {
            Ok(sent) => {
                let sent = InFlight { ticket, sent, answers, time_at, versions };
                self.in_flight.push_back(sent);
                Ok(())
            }
            // Nothing of it was sent, but it is open what became of those before it.
            Err(error) if error.kind() == Kind::Unavailable => {
                tracing::warn!(%error, "the connection of a leader was lost");
                Err(Event::Interrupted)
            }
            Err(error) => Err(Event::Refused(ticket, error)),
        }
    }

    /// Sends a read.
    async fn fetch(&mut self, fetch: FetchId, wanted: Wanted, deadline: Instant) {
        let sent = self.send_read(&wanted).await;
        self.reading.push(Box::pin(async move {
            let event = match sent {
                Ok(mut sent) => read_event(fetch, &wanted, sent.answers().await),
                Err(error) => Err(error),
            };
            if event.as_ref().is_err_and(|error| error.kind() == Kind::Unavailable) {
                tokio::time::sleep(READ_PAUSE).await;
            }
            Read { fetch, wanted, event, deadline }
        }));
    }

    async fn send_read(&mut self, wanted: &Wanted) -> Result<Sent> {
        let statement = FetchStatement::of(self.shared.db, wanted);
        let line = self.connections.line_for_reads().await?;
        line.send(statement).await.map_err(Fault::into_error)
    }

    fn run_alone(&mut self, ticket: Ticket, work: Work) {
        let Some(mut direct) = self.direct.take() else { return };
        let mut epoch = self.layer.as_ref().map_or(0, Layer::epoch);
        let now_ms = self.clock.map_or(0, |clock| clock.at_ms);
        let deadline = Instant::now() + self.shared.busy;
        let shared = self.shared.clone();
        self.blocking.spawn_blocking(move || {
            let mut carry_out =
                |epoch| direct.carry_out(work.clone(), now_ms, deadline, Some(epoch));
            let mut done = carry_out(epoch);
            // Nothing was done. A change of the value indexes may have raised the epoch.
            while let Err(error) = &done
                && error.kind() == Kind::Unavailable
                && Instant::now() < deadline
                && let Ok(Some(lead)) = lead::lead_on(&shared, epoch, deadline)
            {
                epoch = lead.epoch;
                done = carry_out(epoch);
            }
            let result = done.map(|CarriedOut { report, lead }| (report, lead));
            Blocking::RanAlone(Box::new(RanAlone { direct, ticket, result }))
        });
    }

    /// Finds out which batches have happened. Late answers on the old connection do not count.
    fn resolve(&mut self, epoch: u64) {
        self.in_flight.clear();
        self.reading.clear();
        self.connections.close();
        let shared = self.shared.clone();
        self.blocking.spawn_blocking(move || Blocking::Resolved(lead::resolve(&shared, epoch)));
    }

    fn hear_lead(&mut self, lead: &Lead) {
        if lead.clock_ms > 0 {
            self.hear_time(lead.clock_ms);
        }
    }

    fn hear_time(&mut self, at_ms: i64) {
        if !self.shared.time.is_of_caller() {
            self.shared.time.learn(at_ms);
            self.clock = Some(ServerClock { at_ms, heard: Instant::now() });
        }
    }

    /// In tests the time of the caller counts.
    fn learn_time(&mut self, now_ms: i64) {
        if self.shared.time.is_of_caller() {
            self.clock = Some(ServerClock { at_ms: now_ms, heard: Instant::now() });
        }
    }

    /// The server was at `at_ms` before its answer was heard, so this time is never ahead of it.
    fn moment(&self) -> Moment {
        let us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
        let wall_ms = self.clock.map_or(0, |clock| {
            let passed = match self.shared.time.is_of_caller() {
                true => 0,
                false => i64::try_from(clock.heard.elapsed().as_millis()).unwrap_or(0),
            };
            clock.at_ms + passed
        });
        Moment { wall_ms, us }
    }
}

/// The answers of the oldest batch in flight, their number, and where the time is.
async fn oldest(in_flight: &mut VecDeque<InFlight>) -> (Answers, usize, usize) {
    match in_flight.front_mut() {
        Some(batch) => (batch.sent.answers().await, batch.answers, batch.time_at),
        None => poll_fn(|_| Poll::Pending).await,
    }
}
