//! Several batches in flight: the driver of [`openkv_core::layer`] over the local file and the log of objects.
//!
//! Duty: give the layer the entries of the file, make each batch that it decides an object of the log, and when an
//! object and all before it exist, repeat the batch in the file, and answer.
//! Invariant: the file has a batch only once it is in the chain, and a batch is answered only once the file has it. After
//! a failure nothing is created before every batch has its answer and the process has read the log.
//! Never: a decision about a write.
//!
//! All of it runs on the thread of the store's writer; only creations have threads of their own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::Local;
use super::cache::encode;
use super::lead::{Lead, LeadMode, Role};
use super::publisher::content_of;
use super::uploads::{Uploaded, Uploads};
use crate::{Progress, Report, Ticket, Wake, Work, Writer as _};
use openkv_core::chain::Step;
use openkv_core::codec::{change_log, write_log};
use openkv_core::layer::{self, Action, Bounds, Commit, Event, Layer, Moment, Resolution};
use openkv_core::model::{
    BUCKET_BATCHES_IN_FLIGHT_MAX, BUCKET_IN_FLIGHT_BYTES_MAX, BUCKET_LAYER_CACHE_BYTES_MAX,
    BUCKET_LINGER_JOIN_PART, BUCKET_OBJECT_BYTES_MIN, BUCKET_WRITE_ID_AHEAD_MS_MAX,
    BUSY_TIMEOUT_MS_DEFAULT, Error, KeptMessage, Kind, LoggedMessage, Result, Segment,
    WRITE_ID_KEPT_MS, WRITE_REPEAT_MS_MAX,
};

const BOUNDS: Bounds = Bounds {
    cache_bytes: BUCKET_LAYER_CACHE_BYTES_MAX,
    batches_in_flight: BUCKET_BATCHES_IN_FLIGHT_MAX,
    ids_ahead_ms: BUCKET_WRITE_ID_AHEAD_MS_MAX,
    ..Bounds::USUAL
};

const _: () = assert!(
    WRITE_ID_KEPT_MS - 2 * BUCKET_WRITE_ID_AHEAD_MS_MAX >= WRITE_REPEAT_MS_MAX.cast_signed(),
    "a client whose clock is behind repeats a write only while its id is remembered"
);

/// A batch that the layer has sent.
struct InFlight {
    ticket: Ticket,
    /// `None` if it has no commit.
    segment: Option<Segment>,
    /// The end of the log when it was sent.
    first: u64,
    /// Its object and all before it exist. A batch without a commit needs none.
    is_in_chain: bool,
}

/// The reason why the batches in flight that are not in the chain by now have to be given up.
enum Failure {
    /// The first number without an object: its creation has failed.
    Creation(u64, Error),
    /// They are behind the fence of another leader. The end of the log before them.
    Lost(u64),
    /// The file, or the lease, has failed.
    Stopped(Error),
}

pub(super) struct Leader {
    lead: Arc<Lead>,
    local: Arc<Local>,
    /// `None` until a batch needs it.
    layer: Option<Layer>,
    /// The epoch and the version of the file that the layer knows.
    reached: (u64, u64),
    uploads: Uploads,
    /// In the order of their versions.
    in_flight: VecDeque<InFlight>,
    failure: Option<Failure>,
    ended: VecDeque<(Ticket, Result<Report>)>,
    tickets: u64,
    started: Instant,
    /// The time of the last batch: that of the next one is not before it.
    at_ms: i64,
    /// When the object of the last batch was sent, and how many writes the batch had.
    sent: Option<(Instant, usize)>,
    /// The writes of the last batch that was submitted.
    writes: usize,
    /// Until when work that runs alone waits.
    deadline: Instant,
}

impl Leader {
    pub(super) fn new(lead: Arc<Lead>, local: Arc<Local>) -> Self {
        let started = Instant::now();
        Self {
            uploads: Uploads::new(lead.clone()),
            lead,
            local,
            layer: None,
            reached: (0, 0),
            in_flight: VecDeque::new(),
            failure: None,
            ended: VecDeque::new(),
            tickets: 0,
            started,
            at_ms: i64::MIN,
            sent: None,
            writes: 0,
            deadline: started,
        }
    }

    /// As [`crate::Writer::begin`].
    pub(super) fn begin(&mut self, work: Work, now_ms: i64, deadline: Instant) -> Result<Progress> {
        self.at_ms = self.lead.at_ms(now_ms);
        self.deadline = deadline;
        self.writes = work.writes.len();
        let mut submitted: fn(Ticket, Work) -> Event = Event::Submitted;
        if !self.in_flight.is_empty() {
            if !self.lead.leads_now() {
                return Err(self.lead.refusal(&self.lead.state.lock()));
            }
        } else {
            self.lead.lead_by(deadline, self.is_asked_for(&work))?;
            self.know_the_file()?;
            if self.local.writer.lock().is_narrow() {
                // A commit must not be in the log before it is known to have room in the file.
                submitted = Event::SubmittedAlone;
            }
        }
        self.tickets += 1;
        let ticket = Ticket(self.tickets);
        self.step(submitted(ticket, work));
        self.settle();
        match self.ended.pop_front() {
            Some((ended, outcome)) if ended == ticket => return outcome.map(Progress::Done),
            Some(earlier) => {
                self.ended.push_front(earlier);
                self.uploads.wake();
            }
            None => {}
        }
        Ok(Progress::UnderWay(ticket))
    }

    /// Whether a caller waits for work. Timed work of a process that does not lead is the leader's, and so are messages for
    /// its own consumers. The consumers of a server are its clients', which go to the leader once there is one.
    fn is_asked_for(&self, work: &Work) -> bool {
        let has_messages = !work.claims.is_empty() || !work.settlements.is_empty();
        !work.writes.is_empty() || self.lead.mode == LeadMode::Served && has_messages
    }

    /// As [`crate::Writer::has_room`].
    pub(super) fn has_room(&self) -> bool {
        let Some(layer) = self.layer.as_ref().filter(|_| !self.in_flight.is_empty()) else {
            return true;
        };
        layer.room() > 0
            && layer.figures().waiting_bytes < BUCKET_IN_FLIGHT_BYTES_MAX as u64
            && self.lead.leads_now()
            && !self.local.writer.lock().is_narrow()
    }

    /// As [`crate::Writer::lingers`]: batches begin `linger` apart, except one whose writes were left behind by a full
    /// batch. The default is about the time of an upload, so that a busy leader makes one request in that time; further
    /// ones are in flight together with an upload that takes longer than others.
    pub(super) fn lingers(&self, since: Instant, writes: usize) -> Duration {
        let Some((sent, last)) = self.sent.filter(|(sent, _)| since >= *sent) else {
            return Duration::ZERO;
        };
        let default = || apart(self.uploads.shortest(), last, writes);
        self.lead.linger.unwrap_or_else(default).saturating_sub(sent.elapsed())
    }

    /// As [`crate::Writer::ended`].
    pub(super) fn ended(&mut self) -> Option<(Ticket, Result<Report>)> {
        let mut has_heard = false;
        while let Some(uploaded) = self.uploads.next() {
            self.take(uploaded);
            has_heard = true;
        }
        if has_heard {
            self.settle();
        }
        self.ended.pop_front()
    }

    /// As [`crate::Writer::on_ended`].
    pub(super) fn on_ended(&self, wake: Wake) {
        self.uploads.on_ended(wake);
    }

    /// The file is about to change by another transaction. Nothing is in flight.
    pub(super) fn forget(&mut self) {
        self.reached = (0, 0);
    }

    /// Begins a layer, unless there is one that knows the file. Nothing is in flight.
    fn know_the_file(&mut self) -> Result<()> {
        let reached = self.position()?;
        if self.layer.is_some() && self.reached == reached {
            return Ok(());
        }
        let same = self.layer.take().filter(|layer| layer.epoch() == reached.0);
        self.layer = Some(match same {
            // Nobody else has led, and all writes with ids come through the layer.
            Some(layer) => layer.lead_on(&self.read_lead()?),
            None => {
                let (lead, remembered) = self.begin_lead()?;
                Layer::new(lead, remembered, BOUNDS)
            }
        });
        Ok(())
    }

    /// The state of the file, and the writes with ids that it has.
    fn begin_lead(&mut self) -> Result<(layer::Lead, layer::Remembered)> {
        let lead = self.read_lead()?;
        let remembered = self.local.writer.lock().kept_writes(lead.clock_ms)?;
        Ok((lead, remembered))
    }

    /// The epoch and the version of the chain.
    fn position(&self) -> Result<(u64, u64)> {
        let state = self.lead.state.lock();
        match &state.role {
            Role::Leads(leading) => {
                let position = leading.window.position();
                Ok((position.epoch, position.version))
            }
            Role::Reads(_) | Role::Rests(_) => Err(self.lead.refusal(&state)),
        }
    }

    /// The state of the file, which has everything that is in the log.
    fn read_lead(&mut self) -> Result<layer::Lead> {
        let (epoch, version) = self.position()?;
        let lead = self.local.writer.lock().lead(epoch, self.at_ms)?;
        if lead.version != version {
            return Err(self.lead.behind(&mut self.lead.state.lock()));
        }
        self.reached = (epoch, version);
        Ok(lead)
    }

    /// Tells the layer what has happened, and carries out what it answers.
    fn step(&mut self, event: Event) {
        let mut events = VecDeque::from([event]);
        while let Some(event) = events.pop_front() {
            let us = u64::try_from(self.started.elapsed().as_micros()).unwrap_or(u64::MAX);
            let now = Moment { wall_ms: self.at_ms, us };
            let Some(layer) = &mut self.layer else { return };
            for action in layer.step(event, now) {
                match action {
                    Action::Answer(ticket, outcome) => self.ended.push_back((ticket, outcome)),
                    Action::Send(commit) => self.send(*commit),
                    Action::Fetch(fetch, wanted) => {
                        let fetched = self.local.writer.lock().fetch(&wanted);
                        events.push_back(match fetched {
                            Ok(entries) => Event::Fetched(fetch, entries),
                            Err(error) => Event::FetchFailed(fetch, error),
                        });
                    }
                    Action::FetchPoints(fetch, points) => {
                        let fetched = self.local.writer.lock().fetch_points(&points);
                        events.push_back(match fetched {
                            Ok(entries) => Event::FetchedPoints(fetch, entries),
                            Err(error) => Event::FetchFailed(fetch, error),
                        });
                    }
                    Action::RunAlone(ticket, work) => {
                        events.push_back(Event::RanAlone(ticket, self.run_alone(work)));
                    }
                    Action::Resolve { .. } => events.push_back(Event::Resolved(self.resolve())),
                }
            }
        }
        self.layer = self.layer.take().filter(|layer| !layer.is_overtaken());
    }

    /// Creates the object of a batch.
    fn send(&mut self, commit: Commit) {
        let ticket = commit.ticket;
        let segment = segment_of(&commit);
        let mut batch = InFlight { ticket, segment, first: 0, is_in_chain: false };
        let mut steps = Vec::new();
        if self.failure.is_none() {
            match &batch.segment {
                None => batch.is_in_chain = true,
                Some(segment) => {
                    let mut state = self.lead.state.lock();
                    if let Role::Leads(leading) = &mut state.role {
                        batch.first = leading.window.position().next;
                        let versions = (commit.prev, commit.next);
                        steps = leading.window.submit(ticket.0, versions, content_of(segment));
                        state.publishing = true;
                        self.sent = Some((Instant::now(), self.writes));
                    } else {
                        self.failure = Some(Failure::Stopped(self.lead.refusal(&state)));
                    }
                }
            }
        }
        self.in_flight.push_back(batch);
        self.carry_out(steps);
    }

    fn carry_out(&mut self, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Create { number, bytes } => self.uploads.begin(number, bytes),
                Step::Answer(ticket) => {
                    let answered = |batch: &&mut InFlight| batch.ticket.0 == ticket;
                    if let Some(batch) = self.in_flight.iter_mut().find(answered) {
                        batch.is_in_chain = true;
                    }
                }
                Step::Lost(tickets) => {
                    let lost = self.in_flight.iter().filter(|one| tickets.contains(&one.ticket.0));
                    let first = lost.map(|batch| batch.first).min().unwrap_or(0);
                    self.failure = Some(Failure::Lost(first));
                }
            }
        }
    }

    /// A creation has ended.
    fn take(&mut self, Uploaded { number, found }: Uploaded) {
        let object = match found {
            Ok(object) => object,
            Err(error) => {
                let is_first = match &self.failure {
                    None => true,
                    Some(Failure::Creation(first, _)) => number < *first,
                    Some(Failure::Lost(_) | Failure::Stopped(_)) => false,
                };
                if is_first {
                    self.failure = Some(Failure::Creation(number, error));
                }
                return;
            }
        };
        let mut state = self.lead.state.lock();
        state.weight += object.bytes.max(BUCKET_OBJECT_BYTES_MIN);
        let Role::Leads(leading) = &mut state.role else { return };
        let steps = leading.window.filled(object.entry, object.digest);
        drop(state);
        self.carry_out(steps);
    }

    /// Answers what is in the chain, and after a failure everything else.
    fn settle(&mut self) {
        let was_empty = self.in_flight.is_empty();
        loop {
            if matches!(self.failure, Some(Failure::Creation(..))) {
                // Its error counts if it is the first one.
                while let Some(uploaded) = self.uploads.wait_for_next() {
                    self.take(uploaded);
                }
            }
            let count = self.in_flight.iter().take_while(|batch| batch.is_in_chain).count();
            if count == 0 {
                break;
            }
            let batches: Vec<_> = self.in_flight.drain(..count).collect();
            if let Err(error) = self.repeat(&batches) {
                self.failure = Some(Failure::Stopped(error));
                break;
            }
            for batch in batches {
                self.step(Event::Durable(batch.ticket));
            }
        }
        if self.failure.is_some() {
            // The layer asks what has become of the batches.
            self.step(Event::Interrupted);
            self.in_flight.clear();
            (self.layer, self.failure) = (None, None);
            self.uploads.forget();
            self.lead.published(true);
        } else if self.in_flight.is_empty() && !was_empty {
            self.lead.published(false);
        }
    }

    /// Repeats batches that are in the chain in the file.
    fn repeat(&mut self, batches: &[InFlight]) -> Result<()> {
        let segments = batches.iter().filter_map(|batch| batch.segment.as_ref());
        let segments: Vec<_> = segments.map(Segment::borrowed).collect();
        let with_object = batches.iter().filter(|batch| batch.segment.is_some());
        let Some(first) = with_object.map(|batch| batch.first).min() else { return Ok(()) };
        self.lead.may_answer(first)?;
        let position = match &self.lead.state.lock().role {
            Role::Leads(leading) => leading.window.position(),
            Role::Reads(_) | Role::Rests(_) => {
                return Err(Error::internal("the lead has ended while batches were in flight"));
            }
        };
        let mark = encode(&self.local.database, &position, self.at_ms);
        let deadline = Instant::now() + Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT);
        let mut writer = self.local.writer.lock();
        writer.repeat_published(&segments, &mark, deadline).map_err(|error| {
            let what = "the commit is in the object store, but the local copy has failed and reads it from the log \
                        again; read before you write it again";
            Error::new(Kind::OutcomeUnknown, format!("{what}: {}", error.message()))
        })?;
        self.reached = (position.epoch, position.version);
        Ok(())
    }

    /// Carries out work in a transaction of the file, which is published before its COMMIT.
    fn run_alone(&mut self, work: Work) -> Result<(Report, layer::Lead)> {
        let mut writer = self.local.writer.lock();
        let report = match writer.begin(work, self.at_ms, self.deadline)? {
            Progress::Done(report) => report,
            Progress::UnderWay(_) => {
                return Err(Error::internal("a file has a batch under way"));
            }
        };
        // The commit is done, whatever comes now.
        let read = writer.lead(self.reached.0, self.at_ms);
        let (epoch, version) = (self.reached.0, report.versions.1);
        self.reached.1 = version;
        let lead = read.unwrap_or_else(|error| {
            self.failure = Some(Failure::Stopped(error));
            layer::Lead { epoch, version, clock_ms: self.at_ms, ..layer::Lead::default() }
        });
        Ok((report, lead))
    }

    /// What has become of the batches that are not answered.
    fn resolve(&mut self) -> Resolution {
        let error = match self.failure.take() {
            None => match self.begin_lead() {
                Ok((lead, remembered)) => return Resolution::Leading(lead, remembered),
                Err(error) => error,
            },
            Some(Failure::Lost(first)) => self.lead.lost(first),
            // Nothing behind it is in the chain, because its number stays without an object until a fence has it.
            Some(Failure::Creation(_, error) | Failure::Stopped(error)) => error,
        };
        match error.kind() {
            // Batches that were not sent have not happened.
            Kind::OutcomeUnknown => Resolution::Unknown(Error::unavailable(error.message())),
            _ => Resolution::Overtaken { start: self.reached.1, error },
        }
    }
}

/// The time from the beginning of a batch of `last` writes to that of the next one, of so many `writes`. A smaller one waits
/// somewhat longer than an upload, until the callers of the last one have written again: otherwise the first of them would
/// have an upload of their own, for which all others would wait.
pub(super) fn apart(upload: Duration, last: usize, writes: usize) -> Duration {
    if writes < last { upload + upload / BUCKET_LINGER_JOIN_PART } else { upload }
}

/// What a batch puts into the log; `None` if it has no commit.
fn segment_of(commit: &Commit) -> Option<Segment> {
    let Commit { prev, next, now_ms, effects, last_message, records, .. } = commit;
    if next == prev {
        return None;
    }
    let logged = |(sent, id): (&openkv_core::commit::Sent, i64)| LoggedMessage {
        version: sent.version,
        id,
        kept: Some(KeptMessage::enqueued(&sent.message, *now_ms)),
    };
    let messages: Vec<_> = effects.messages.iter().zip(last_message + 1..).map(logged).collect();
    let (first, last) = (prev + 1, *next);
    let changes = change_log::encode_all(first, &effects.changes, &messages);
    let changes = change_log::with_writes(changes, &write_log::encode(records, *prev));
    Some(Segment { first, last, at_ms: *now_ms, changes })
}
