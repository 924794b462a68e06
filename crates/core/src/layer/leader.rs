//! The state of a led database, and its transitions.

use std::sync::Arc;

use uuid::Uuid;

use super::cache::{Cache, Fetched};
use super::defect::{Defect, Planted, Uncommitted};
use super::depth::Depth;
use super::evaluator::{Evaluated, Known, evaluate};
use super::events::{Action, Commit, Event, FetchId, Lead, Moment, Resolution};
use super::index_entries::IndexEntries;
use super::reorder_buffer::{ReadRequest, Reads, ReorderBuffer, Sequencer, Slot, Stage};
use super::write_ids::{Bounds, Remembered, WriteIds};
use crate::commit::{Begun, Report, Speculation, Ticket, Work, WriteNeeds};
use crate::index::ValueIndex;
use crate::model::{
    AtomicWrite, Error, Kind, LAYER_WAITING_BYTES_MAX, LAYER_WAITING_WRITES_MAX, LeaderCounts,
    LeaderFigures, Result, WriteRecord,
};

enum State {
    Leading,
    /// It is not known which batches in flight have happened. Nothing is decided.
    Resolving,
    /// Another leader writes.
    Overtaken(Error),
}

/// A database that this process leads.
pub struct Layer {
    state: State,
    epoch: u64,
    logs: bool,
    /// The last commit that is known to be durable.
    durable: u64,
    /// The state after the last batch that is decided: its commit, UUID and message.
    version: u64,
    last_uuid: Option<Uuid>,
    last_message: i64,
    now_ms: i64,
    sequencer: Sequencer,
    buffer: ReorderBuffer,
    cache: Cache,
    /// The value indexes, and what batches have changed in the unique ones.
    indexes: Arc<[ValueIndex]>,
    entries: IndexEntries,
    write_ids: WriteIds,
    bounds: Bounds,
    depth: Depth,
    fetches: u64,
    counts: LeaderCounts,
    planted: Planted,
}

impl Layer {
    /// Begins a lead. `remembered`: the ids of writes that the database has.
    #[must_use]
    pub fn new(lead: Lead, remembered: Remembered, bounds: Bounds) -> Self {
        let mut layer = Self {
            state: State::Leading,
            epoch: 0,
            logs: false,
            durable: 0,
            version: 0,
            last_uuid: None,
            last_message: 0,
            now_ms: 0,
            sequencer: Sequencer::default(),
            buffer: ReorderBuffer::default(),
            cache: Cache::new(bounds.cache_bytes),
            indexes: Arc::default(),
            entries: IndexEntries::default(),
            write_ids: WriteIds::new(remembered, bounds),
            bounds,
            depth: Depth::default(),
            fetches: 0,
            counts: LeaderCounts::default(),
            planted: Planted::default(),
        };
        layer.lead(&lead);
        layer
    }

    /// As [`Layer::new`], with a defect.
    #[cfg(feature = "defects")]
    #[must_use]
    pub fn with_defect(
        lead: Lead,
        remembered: Remembered,
        bounds: Bounds,
        defect: Option<Defect>,
    ) -> Self {
        let forgets = defect == Some(Defect::ForgottenIds);
        let remembered = if forgets { Remembered::default() } else { remembered };
        let planted = Planted::new(defect);
        Self { planted, ..Self::new(lead, remembered, bounds) }
    }

    /// Continues the counts of an earlier lead.
    #[must_use]
    pub fn counting_from(mut self, earlier: LeaderCounts) -> Self {
        self.counts.epochs += earlier.epochs;
        Self { counts: LeaderCounts { epochs: self.counts.epochs, ..earlier }, ..self }
    }

    /// How many more batches would be decided and sent at once. A caller that waits otherwise gets
    /// larger batches.
    #[must_use]
    pub fn room(&self) -> usize {
        match self.state {
            State::Leading => self.depth().saturating_sub(self.buffer.slots.len()),
            State::Resolving | State::Overtaken(_) => 0,
        }
    }

    /// How many batches may be in flight.
    fn depth(&self) -> usize {
        self.depth.limit().min(self.bounds.batches_in_flight)
    }

    /// Whether another leader writes. Every batch has its answer then.
    #[must_use]
    pub fn is_overtaken(&self) -> bool {
        matches!(self.state, State::Overtaken(_))
    }

    /// The epoch of its commits.
    #[must_use]
    pub fn epoch(&self) -> u64 {
        self.epoch
    }

    /// The time of its decisions, in ms since the epoch: it never goes back.
    #[must_use]
    pub fn now_ms(&self) -> i64 {
        self.now_ms
    }

    /// Its counts and its present state, for metrics.
    #[must_use]
    pub fn figures(&self) -> LeaderFigures {
        let (bytes, writes) = self.buffer.waiting();
        LeaderFigures {
            leading: !self.is_overtaken(),
            epoch: self.epoch,
            depth: self.depth() as u64,
            in_flight: self.buffer.in_flight() as u64,
            waiting_writes: writes as u64,
            waiting_bytes: bytes as u64,
            counts: self.counts,
        }
    }

    /// Takes an event and returns what is to be done, in this order.
    pub fn step(&mut self, event: Event, now: Moment) -> Vec<Action> {
        self.now_ms = self.now_ms.max(now.wall_ms);
        let mut actions = Vec::new();
        match event {
            Event::Submitted(ticket, work) => self.submit(ticket, work, false, &mut actions),
            Event::SubmittedAlone(ticket, work) => self.submit(ticket, work, true, &mut actions),
            Event::Fetched(fetch, entries) => self.take_fetched(fetch, &entries),
            Event::FetchedPoints(fetch, entries) => self.take_points(fetch, entries),
            Event::FetchFailed(fetch, error) => {
                if let Some((slot, _)) = self.buffer.end_read(fetch) {
                    slot.stage = Stage::Ended(Err(error));
                }
            }
            Event::Durable(ticket) => self.take_durable(ticket, now),
            Event::Refused(ticket, error) => {
                if let Some(slot) = self.buffer.find(ticket) {
                    slot.stage = Stage::Ended(Err(error));
                    self.interrupt(&mut actions);
                }
            }
            Event::Interrupted if self.buffer.in_flight() == 0 => {}
            Event::Interrupted => self.interrupt(&mut actions),
            Event::Resolved(resolution) => self.resolve(resolution),
            Event::RanAlone(ticket, result) => self.take_alone(ticket, result, &mut actions),
        }
        self.advance(now, &mut actions);
        actions
    }

    fn submit(&mut self, ticket: Ticket, work: Work, alone: bool, actions: &mut Vec<Action>) {
        if let State::Overtaken(error) = &self.state {
            return actions.push(Action::Answer(ticket, Err(error.clone())));
        }
        let (bytes, writes) = self.buffer.waiting();
        if bytes >= LAYER_WAITING_BYTES_MAX || writes >= LAYER_WAITING_WRITES_MAX {
            let error = Error::new(
                Kind::Unavailable,
                format!(
                    "{writes} writes of {bytes} bytes wait for this database already (at most \
                 {LAYER_WAITING_WRITES_MAX} writes and {LAYER_WAITING_BYTES_MAX} bytes); try again"
                ),
            );
            self.counts.writes_refused += work.writes.len() as u64;
            return actions.push(Action::Answer(ticket, Err(error)));
        }
        let numbers = self.sequencer.assign(work.writes.len());
        let slot = Slot::new(ticket, numbers, work);
        self.buffer.push(Slot { alone: slot.alone || alone, ..slot });
    }

    fn take_fetched(&mut self, fetch: FetchId, entries: &[Fetched]) {
        // A read from before an interruption belongs to no batch any more.
        let Some((slot, ReadRequest::Keys(keys))) = self.buffer.end_read(fetch) else { return };
        if let Stage::Reading(reads) = &mut slot.stage {
            reads.fetched.extend(keys.into_iter().zip(entries.iter().cloned()));
        }
    }

    fn take_points(&mut self, fetch: FetchId, entries: Vec<Vec<Vec<u8>>>) {
        let Some((slot, ReadRequest::Points(points))) = self.buffer.end_read(fetch) else { return };
        if let Stage::Reading(reads) = &mut slot.stage {
            reads.points.extend(points.into_iter().zip(entries));
        }
    }

    fn take_durable(&mut self, ticket: Ticket, now: Moment) {
        if !matches!(self.state, State::Leading) {
            return;
        }
        let Some(slot) = self.buffer.find(ticket) else { return };
        match std::mem::replace(&mut slot.stage, Stage::Sequenced) {
            Stage::InFlight { next, report } => {
                self.durable = next.unwrap_or(self.durable);
                slot.stage = Stage::Ended(Ok(report));
                self.depth.completed(now.us);
                self.counts.batches_durable += 1;
            }
            stage => slot.stage = stage,
        }
    }

    fn take_alone(
        &mut self,
        ticket: Ticket,
        result: Result<(Report, Lead)>,
        actions: &mut Vec<Action>,
    ) {
        let Some(slot) = self.buffer.find(ticket) else { return };
        let Stage::Alone { attempts, screened } = &mut slot.stage else { return };
        let (attempts, screened) = (std::mem::take(attempts), screened.take());
        match result {
            Ok((mut report, lead)) => {
                for record in WriteRecord::of(attempts, &report.decisions) {
                    self.write_ids.add(lead.clock_ms, record);
                }
                if let Some(screened) = screened {
                    report.decisions = screened.decisions(report.decisions);
                }
                // No read is under way, so the cache may forget what has changed.
                report.touched.iter().for_each(|key| self.cache.forget(key));
                self.entries.clear();
                slot.stage = Stage::Ended(Ok(report));
                self.counts.batches_durable += 1;
                self.take_lead(&lead);
            }
            Err(error) => {
                slot.stage = Stage::Ended(Err(error));
                self.interrupt(actions);
            }
        }
    }

    /// It is not known which batches in flight have happened, or what the database's state is.
    fn interrupt(&mut self, actions: &mut Vec<Action>) {
        if matches!(self.state, State::Leading) {
            self.state = State::Resolving;
            self.depth.interrupted();
            actions.push(Action::Resolve { epoch: self.epoch });
        }
    }

    fn resolve(&mut self, resolution: Resolution) {
        if !matches!(self.state, State::Resolving) {
            return;
        }
        // The last version that has happened, and what becomes of batches without an outcome: those in
        // flight, and all others.
        let (start, in_flight, lead) = match resolution {
            Resolution::Leading(lead, remembered) => {
                if !self.planted.is(Defect::KeptIds) {
                    self.write_ids = WriteIds::new(remembered, self.bounds);
                }
                (lead.version, None, Ok(lead))
            }
            Resolution::Overtaken { start, error } => (start, None, Err(error)),
            Resolution::Unknown(cause) => (0, Some(open_outcome(&cause)), Err(cause)),
        };
        let trusting = self.planted.is(Defect::TrustingResolution);
        let keeps_reads = self.planted.is(Defect::StaleReads);
        for slot in &mut self.buffer.slots {
            let stage = std::mem::replace(&mut slot.stage, Stage::Sequenced);
            let is_decided = matches!(stage, Stage::Decided(..) | Stage::InFlight { .. });
            let stage = match stage {
                Stage::Ended(result) => Stage::Ended(result),
                Stage::InFlight { next: Some(next), report } if next <= start || trusting => {
                    self.counts.batches_durable += 1;
                    Stage::Ended(Ok(report))
                }
                Stage::InFlight { next: Some(_), .. } if let Some(error) = &in_flight => {
                    Stage::Ended(Err(error.clone()))
                }
                Stage::Reading(reads) if keeps_reads => Stage::Reading(reads),
                Stage::Sequenced
                | Stage::Reading(_)
                | Stage::Decided(..)
                | Stage::InFlight { .. }
                | Stage::Alone { .. } => {
                    self.counts.decisions_discarded += u64::from(is_decided);
                    match &lead {
                        // Nothing of it has happened.
                        Ok(_) => Stage::Sequenced,
                        Err(error) => Stage::Ended(Err(error.clone())),
                    }
                }
            };
            slot.stage = stage;
        }
        if !self.planted.is(Defect::KeptEffects) {
            self.forget_entries();
        }
        match lead {
            Ok(lead) => self.lead(&lead),
            Err(error) => self.state = State::Overtaken(error),
        }
    }

    /// Leads on in the same epoch after this process has changed the database by other transactions, none of which
    /// has a write with an id. No batch is waiting.
    #[must_use]
    pub fn lead_on(mut self, lead: &Lead) -> Self {
        debug_assert!(self.buffer.slots.is_empty() && lead.epoch == self.epoch);
        self.forget_entries();
        self.take_lead(lead);
        self
    }

    fn forget_entries(&mut self) {
        self.cache.clear();
        self.entries.clear();
    }

    fn lead(&mut self, lead: &Lead) {
        self.state = State::Leading;
        self.counts.epochs += 1;
        self.sequencer.restart();
        for slot in &mut self.buffer.slots {
            slot.numbers = self.sequencer.assign(slot.work.writes.len());
        }
        self.take_lead(lead);
    }

    fn take_lead(&mut self, lead: &Lead) {
        self.epoch = lead.epoch;
        self.logs = lead.logs;
        self.indexes = lead.value_indexes.clone();
        self.durable = lead.version;
        self.version = lead.version;
        self.last_uuid = lead.last_uuid;
        self.last_message = lead.last_message;
        if !self.planted.is(Defect::OwnClock) {
            self.now_ms = self.now_ms.max(lead.clock_ms);
        }
    }

    fn advance(&mut self, now: Moment, actions: &mut Vec<Action>) {
        if matches!(self.state, State::Leading) {
            self.begin_reads(actions);
            self.decide(actions);
        }
        if matches!(self.state, State::Leading) {
            self.send(now, actions);
            let seen = self.buffer.floor().map_or(self.durable, |floor| floor.min(self.durable));
            let early = self.planted.is(Defect::EarlyEviction);
            let seen = if early { self.durable } else { seen };
            self.cache.trim(seen);
            self.entries.trim(seen);
            self.write_ids.trim(self.now_ms);
        }
        while let Some((ticket, result)) = self.buffer.pop_ended() {
            actions.push(Action::Answer(ticket, result));
        }
    }

    /// Begins the reads of each batch that does not stand behind one that runs alone.
    fn begin_reads(&mut self, actions: &mut Vec<Action>) {
        for slot in &mut self.buffer.slots {
            if slot.alone && !matches!(slot.stage, Stage::Ended(_)) {
                return;
            }
            if matches!(slot.stage, Stage::Sequenced) {
                let mut needs = WriteNeeds::of(&slot.work.writes, &self.indexes);
                needs.retain(|key, with_value| !self.cache.knows(key, with_value));
                let mut reads = Reads { floor: self.durable, ..Reads::default() };
                begin_read(&mut reads, needs, &mut self.fetches, actions);
                slot.stage = Stage::Reading(reads);
            }
        }
    }

    /// Decides the batches whose turn it is. A read that contradicts the cache is as a failed fence.
    fn decide(&mut self, actions: &mut Vec<Action>) {
        let mut first = true;
        for slot in &mut self.buffer.slots {
            let ended = matches!(slot.stage, Stage::Ended(_));
            if slot.alone && !ended {
                if first && matches!(slot.stage, Stage::Sequenced) {
                    let mut work = std::mem::take(&mut slot.work);
                    self.counts.batches_begun += 1;
                    self.counts.writes += work.writes.len() as u64;
                    let screened = self.write_ids.screen(&work.writes, self.now_ms);
                    if let Some(screened) = &screened {
                        work.writes = screened.decided(work.writes);
                    }
                    let attempts = work.writes.iter().map(AtomicWrite::attempt).collect();
                    slot.stage = Stage::Alone { attempts, screened };
                    actions.push(Action::RunAlone(slot.ticket, work));
                }
                return;
            }
            first &= ended;
            let Stage::Reading(reads) = &mut slot.stage else { continue };
            if !reads.under_way.is_empty() {
                return;
            }
            let begun = Begun {
                version: self.version,
                now_ms: self.now_ms,
                logs: self.logs,
                kept_out: false,
                // It decides new messages only, which the driver logs.
                logs_messages: false,
            };
            let last = (self.last_uuid, self.last_message);
            let screened = self.write_ids.screen(&slot.work.writes, self.now_ms);
            let part = screened.as_ref().map(|screened| screened.of_work(&slot.work));
            let work = part.as_ref().unwrap_or(&slot.work);
            let known = Known {
                cache: &mut self.cache,
                entries: &self.entries,
                indexes: &self.indexes,
                fetched: &reads.fetched,
                points: &reads.points,
            };
            match evaluate(known, &begun, last, work) {
                Ok(Evaluated::Missing(needs)) => {
                    return begin_read(reads, needs, &mut self.fetches, actions);
                }
                Ok(Evaluated::Contradicted) => return self.interrupt(actions),
                Ok(Evaluated::Decided(speculation)) => {
                    for (key, entry) in &reads.fetched {
                        self.cache.learn(key, entry);
                    }
                    let Speculation { mut report, effects } = *speculation;
                    let attempts = work.writes.iter().map(AtomicWrite::attempt);
                    let records = WriteRecord::of(attempts, &report.decisions);
                    let records = self.planted.stored(records);
                    for record in &records {
                        self.write_ids.add(begun.now_ms, record.clone());
                    }
                    if let Some(screened) = screened {
                        report.decisions = screened.decisions(report.decisions);
                    }
                    for (key, effect) in &effects.rows {
                        self.cache.change(key, effect, effects.version);
                    }
                    self.entries.change(&self.indexes, &effects.index_entries, effects.version);
                    let changes = effects.version != begun.version;
                    let commit = Commit {
                        ticket: slot.ticket,
                        epoch: self.epoch,
                        prev: begun.version,
                        next: effects.version,
                        now_ms: begun.now_ms,
                        durable: slot.work.durable,
                        last_message: self.last_message,
                        records,
                        effects,
                    };
                    self.version = commit.next;
                    self.last_uuid = commit.effects.uuid.or(self.last_uuid);
                    let messages = i64::try_from(commit.effects.messages.len()).unwrap_or(0);
                    self.last_message += messages;
                    slot.stage = match self.planted.uncommitted() {
                        Uncommitted::Answered if !changes => Stage::Ended(Ok(report)),
                        Uncommitted::AnsweredEarly if !changes => {
                            actions.push(Action::Answer(slot.ticket, Ok(report)));
                            Stage::Ended(Err(Error::internal("answered early")))
                        }
                        Uncommitted::Confirmed
                        | Uncommitted::Answered
                        | Uncommitted::AnsweredEarly => Stage::Decided(Box::new(commit), report),
                    };
                }
                Err(error) => slot.stage = Stage::Ended(Err(error)),
            }
        }
    }

    /// Sends decided batches, as many as may be in flight.
    fn send(&mut self, now: Moment, actions: &mut Vec<Action>) {
        let early = self.planted.is(Defect::EarlyCommits);
        let mut room = self.depth().saturating_sub(self.buffer.in_flight());
        for slot in &mut self.buffer.slots {
            if room == 0 {
                return;
            }
            let Stage::Decided(..) = slot.stage else { continue };
            if let Stage::Decided(commit, report) =
                std::mem::replace(&mut slot.stage, Stage::Sequenced)
            {
                room -= 1;
                self.counts.batches_begun += 1;
                self.counts.writes += slot.work.writes.len() as u64;
                self.depth.sent(now.us);
                let next = Some(commit.next).filter(|next| *next != commit.prev);
                slot.stage = match early {
                    true => Stage::Ended(Ok(report)),
                    false => Stage::InFlight { next, report },
                };
                actions.push(Action::Send(commit));
            }
        }
    }
}

/// The outcome of a batch of which it could not be found out whether it has happened.
fn open_outcome(cause: &Error) -> Error {
    let why = "the connection was lost while a commit was under way; read to find out whether it has \
               happened";
    Error::new(Kind::OutcomeUnknown, format!("{}: {why}", cause.message()))
}

/// Begins a read of what is needed, if anything is.
fn begin_read(
    reads: &mut Reads,
    mut needs: WriteNeeds,
    fetches: &mut u64,
    actions: &mut Vec<Action>,
) {
    let points = needs.take_points();
    if !points.is_empty() {
        *fetches += 1;
        let fetch = FetchId(*fetches);
        reads.under_way.push((fetch, ReadRequest::Points(points.clone())));
        actions.push(Action::FetchPoints(fetch, points));
    }
    if needs.is_empty() {
        return;
    }
    *fetches += 1;
    let fetch = FetchId(*fetches);
    let wanted: Vec<_> = needs.into_iter().collect();
    let keys = wanted.iter().map(|(key, _)| key.clone()).collect();
    reads.under_way.push((fetch, ReadRequest::Keys(keys)));
    actions.push(Action::Fetch(fetch, wanted));
}
