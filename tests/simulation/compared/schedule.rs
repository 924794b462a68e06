//! A random schedule, which runs on the model and on a real server at the same time.

use std::collections::BTreeMap;

use openkv::commit::{Report, Ticket, Work};
use openkv::engine::postgres::{Actor, Ending};
use openkv::layer::{Commit, Lead, Resolution};
use openkv::model::{AtomicWrite, Decision, Error, Kind, Result as Answer, WriteRecord};
use uuid::Uuid;

use super::real::{Contents, Real, one_at_a_time};
use crate::checker::plain;
use crate::clients::Client;
use crate::postgres::{Deviation, Outcome, Postgres, Request, Response, SessionId};
use crate::rng::Rng;
use crate::tables::{ServerId, Tables};

/// The time of all decisions, in ms since the epoch.
const NOW_MS: i64 = 1000;

/// What a statement has answered, or how a transaction has ended.
#[derive(Debug, PartialEq)]
pub(super) enum Said {
    /// Epoch, version and the number of the last message.
    Leads(u64, u64, i64),
    /// Another process leads: where the epoch after the requested one began, or 0.
    Follows(u64),
    /// The transaction is open and can commit: a batch with this version and name, which only the real
    /// log has, or without a commit.
    Open(Option<(i64, Uuid)>),
    /// The fence has failed, or another process leads.
    Refused,
    Durable,
    RanAlone((Vec<Decision>, (u64, u64), usize), u64, u64, i64),
    Looked(bool),
    Done,
}

impl Said {
    fn led(lead: &Lead) -> Self {
        Self::Leads(lead.epoch, lead.version, lead.last_message)
    }

    fn ran_alone(report: &Report, lead: &Lead) -> Self {
        Self::RanAlone(plain(report), lead.epoch, lead.version, lead.last_message)
    }

    fn of_ending(ending: Answer<Ending>) -> Self {
        match ending.expect("an end") {
            Ending::Durable => Self::Durable,
            Ending::Fenced => Self::Refused,
            Ending::RanAlone(report, lead) => Self::ran_alone(&report, &lead),
        }
    }

    fn of_refusal(error: &Error) -> Self {
        let texts = ["leads the database", "taken the database over"];
        let is_refusal = texts.iter().any(|text| error.message().contains(text));
        assert!(is_refusal && error.kind() == Kind::Unavailable, "{error}");
        Self::Refused
    }

    fn of_response(response: Response) -> Self {
        match response {
            Response::Leads(lead) => Self::led(&lead),
            Response::Follows(start) => Self::Follows(start.unwrap_or(0)),
            Response::Fenced => Self::Refused,
            Response::Done(_) => Self::Durable,
            Response::RanAlone(_, report, lead) => Self::ran_alone(&report, &lead),
            Response::Looked(found) => Self::Looked(found),
            Response::HandedOver => Self::Done,
            Response::Fetched(..) => panic!("nobody has requested entries"),
        }
    }
}

struct Schedule {
    rng: Rng,
    model: Postgres,
    real: Real,
    writers: Client,
    /// The connection of each process in the model; a new one after each cut.
    sessions: Vec<SessionId>,
    connected: u64,
    /// The batch that each process has begun last.
    tickets: Vec<Ticket>,
    begun: u64,
    /// The process that waits for the lock.
    waiting: Option<usize>,
    /// The epochs that the processes believe in.
    epochs: Vec<u64>,
    /// The batches with a name in the log of the real server, also those that have not happened.
    names: BTreeMap<(ServerId, Ticket), (i64, Uuid)>,
    steps: Vec<String>,
}

/// Runs a schedule.
///
/// # Errors
/// The first difference between the model and the real server, and the steps up to it.
pub(super) fn run(seed: u64, deviation: Option<Deviation>) -> Result<(), String> {
    let _one = one_at_a_time();
    let mut rng = Rng::new(seed);
    let (count, length) = (2 + rng.below(2) as usize, 8 + rng.below(17));
    let mut model = Postgres::new(false);
    model.deviation = deviation;
    let mut schedule = Schedule {
        rng,
        model,
        real: Real::start(count),
        writers: Client::new(0),
        sessions: vec![SessionId(0); count],
        connected: 0,
        tickets: vec![Ticket(0); count],
        begun: 0,
        waiting: None,
        epochs: vec![1; count],
        names: BTreeMap::new(),
        steps: Vec::new(),
    };
    (0..count).for_each(|who| schedule.connect(who));
    let ended = (0..length).try_for_each(|_| schedule.step());
    let same = ended.and_then(|()| schedule.end());
    same.map_err(|problem| format!("{problem}, after\n{}", schedule.steps.join("\n")))
}

impl Schedule {
    fn connect(&mut self, who: usize) {
        self.sessions[who] = SessionId(self.connected);
        self.connected += 1;
        self.model.connect(self.sessions[who], ServerId(who as u64));
    }

    fn is_open(&self, who: usize) -> bool {
        self.model.open(self.sessions[who]).is_some()
    }

    /// A process does something, if it can.
    fn step(&mut self) -> Result<(), String> {
        let who = self.rng.below(self.sessions.len() as u64) as usize;
        if self.waiting == Some(who) {
            return Ok(());
        }
        if self.is_open(who) {
            return match self.rng.below(4) {
                0 => Ok(()),
                1 => self.cut(who),
                _ => self.commit(who),
            };
        }
        if self.waiting.is_some() {
            // A second process that waits would get its turn at a moment that nobody determines, and a
            // statement that waits has seen the leases from before.
            return self.send(who, false);
        }
        match self.rng.below(20) {
            0..=2 => self.acquire(who),
            3..=8 => self.send(who, true),
            9 => self.send(who, false),
            10..=12 => self.decide(who),
            13..=15 => self.resolve(who),
            16 => self.hand_over(who),
            17 => self.look(who),
            18 => self.renew(who),
            _ => self.end_lease(who),
        }
    }

    /// Ends all transactions, and compares the tables.
    fn end(&mut self) -> Result<(), String> {
        while let Some(who) = (0..self.sessions.len()).find(|who| self.is_open(*who)) {
            self.commit(who)?;
        }
        let (model, real) = (self.contents(), self.real.contents());
        match model == real {
            true => Ok(()),
            false => Err(format!("the model ends with {model:?}, PostgreSQL with {real:?}")),
        }
    }

    // What a process can do.

    fn acquire(&mut self, who: usize) -> Result<(), String> {
        self.play(who, "acquires", Request::Acquire, |actor| {
            match actor.acquire().expect("an answer") {
                Some(lead) => Said::led(&lead),
                None => Said::Follows(0),
            }
        })?;
        self.real.set_lease(who, true);
        Ok(())
    }

    fn resolve(&mut self, who: usize) -> Result<(), String> {
        let (believed, present) = (self.epochs[who], self.model.tables.epoch);
        let epoch = self.rng.pick(&[believed, believed, present, present - 1, present + 1]);
        let step = format!("resolves epoch {epoch}");
        self.play(who, &step, Request::Resolve { epoch, raises: true }, move |actor| {
            match actor.resolve(epoch).expect("an answer") {
                Resolution::Leading(lead, _) => Said::led(&lead),
                Resolution::Overtaken { start, .. } => Said::Follows(start),
                Resolution::Unknown(error) => panic!("{error}"),
            }
        })
    }

    /// A batch of a leader. `writes`: whether it may have a commit.
    fn plan(&mut self, who: usize, writes: bool) -> Plan {
        self.begun += 1;
        self.tickets[who] = Ticket(self.begun);
        let (present, version) = (self.model.tables.epoch, self.model.tables.version);
        let believed = self.epochs[who];
        self.writers.hear(version);
        Plan {
            writes: if writes { self.writers.writes(&mut self.rng, NOW_MS) } else { Vec::new() },
            ticket: self.tickets[who],
            epoch: self.rng.pick(&[present, present, present, present, believed, present + 1]),
            ahead: self.rng.pick(&[0, 0, 0, 0, 0, 1, -1]),
        }
    }

    /// Sends a batch up to its COMMIT; one without a commit is confirmed.
    fn send(&mut self, who: usize, writes: bool) -> Result<(), String> {
        let plan = self.plan(who, writes);
        let (model, real) = (plan.commit(&self.model.tables), plan.commit(&self.model.tables));
        let Commit { epoch, prev, next, .. } = model;
        let job = move |actor: &mut Actor| match actor.send(real).expect("an answer") {
            Ok(name) => Said::Open(Some(name)),
            Err(ending) => Said::of_ending(Ok(ending)),
        };
        let body = Request::Body(Box::new(model));
        if prev != next {
            return self.play(who, &format!("sends {prev} to {next} in epoch {epoch}"), body, job);
        }
        let none = self.arrive(who, Some(body));
        assert!(none.is_empty());
        let end = Request::End(plan.ticket);
        self.play(who, &format!("confirms {prev} in epoch {epoch}"), end, job)
    }

    fn decide(&mut self, who: usize) -> Result<(), String> {
        self.begun += 1;
        self.tickets[who] = Ticket(self.begun);
        self.writers.hear(self.model.tables.version);
        let writes = self.writers.writes(&mut self.rng, NOW_MS);
        let (believed, present) = (self.epochs[who], self.model.tables.epoch);
        let epoch = self.rng.pick(&[None, None, Some(believed), Some(present)]);
        let work = Work { writes: writes.clone(), durable: true, ..Work::default() };
        let request = Request::Alone { ticket: self.tickets[who], epoch, work };
        let step = format!("decides in epoch {epoch:?}");
        self.play(who, &step, request, move |actor| {
            let work = Work { writes, durable: true, ..Work::default() };
            match actor.decide(work, NOW_MS, epoch) {
                Ok(name) => Said::Open(name),
                Err(error) => Said::of_refusal(&error),
            }
        })
    }

    fn hand_over(&mut self, who: usize) -> Result<(), String> {
        self.play(who, "hands over", Request::HandOver, |actor| {
            actor.hand_over().expect("an answer");
            Said::Done
        })
    }

    /// Looks for any batch, as the process that lost its connection does.
    fn look(&mut self, who: usize) -> Result<(), String> {
        let known: Vec<_> = self.names.iter().map(|(batch, name)| (*batch, *name)).collect();
        if known.is_empty() {
            return Ok(());
        }
        let ((server, ticket), name) = self.rng.pick(&known);
        let step = format!("looks for {ticket:?} of {server:?}");
        self.play(who, &step, Request::Look(server, ticket), move |actor| {
            Said::Looked(actor.look(name).expect("an answer"))
        })
    }

    fn renew(&mut self, who: usize) -> Result<(), String> {
        self.play(who, "renews", Request::Renew, |actor| {
            actor.renew().expect("renewed");
            Said::Done
        })?;
        self.real.set_lease(who, true);
        Ok(())
    }

    fn end_lease(&mut self, who: usize) -> Result<(), String> {
        self.steps.push(format!("the lease of {who} ends"));
        self.model.end_lease(ServerId(who as u64));
        self.real.set_lease(who, false);
        Ok(())
    }

    fn commit(&mut self, who: usize) -> Result<(), String> {
        let request = Request::End(self.tickets[who]);
        self.play(who, "commits", request, |actor| Said::of_ending(actor.end()))
    }

    fn cut(&mut self, who: usize) -> Result<(), String> {
        self.steps.push(format!("{who} is cut"));
        let responses = self.arrive(who, None);
        self.connect(who);
        self.real.processes[who].begin(|actor| {
            actor.cut();
            Said::Done
        });
        assert_eq!(self.real.processes[who].said(), Said::Done);
        self.wake(responses)
    }

    // Both sides.

    /// Does the same on both sides, and compares the answers.
    fn play(
        &mut self,
        who: usize,
        step: &str,
        request: Request,
        job: impl FnOnce(&mut Actor) -> Said + Send + 'static,
    ) -> Result<(), String> {
        self.steps.push(format!("{who} {step}"));
        let mut responses = self.arrive(who, Some(request));
        self.real.processes[who].begin(job);
        if self.model.waits(self.sessions[who]) {
            self.steps.push(format!("{who} waits"));
            self.waiting = Some(who);
            let answered = |said| format!("{who} waits in the model, PostgreSQL answers {said:?}");
            return self.real.waits(who).map_err(answered);
        }
        self.compare(who, &mut responses)?;
        self.wake(responses)
    }

    /// Compares the answers to the process that has waited, if it has one now.
    fn wake(&mut self, mut responses: Vec<(SessionId, Response)>) -> Result<(), String> {
        match self.waiting.filter(|who| !self.model.waits(self.sessions[*who])) {
            Some(who) => {
                self.waiting = None;
                self.steps.push(format!("{who} goes on"));
                self.compare(who, &mut responses)
            }
            None => Ok(()),
        }
    }

    fn compare(
        &mut self,
        who: usize,
        responses: &mut Vec<(SessionId, Response)>,
    ) -> Result<(), String> {
        let model = self.model_said(who, responses);
        let (real, name) = match self.real.processes[who].said() {
            Said::Open(name) => (Said::Open(None), name),
            said => (said, None),
        };
        if model != real {
            return Err(format!("the model answers {model:?}, PostgreSQL answers {real:?}"));
        }
        if let Some(name) = name {
            self.names.insert((ServerId(who as u64), self.tickets[who]), name);
        }
        if let Said::Leads(epoch, ..) = real {
            self.epochs[who] = epoch;
        }
        Ok(())
    }

    fn model_said(&mut self, who: usize, responses: &mut Vec<(SessionId, Response)>) -> Said {
        let session = self.sessions[who];
        if let Some(at) = responses.iter().position(|(id, _)| *id == session) {
            return Said::of_response(responses.swap_remove(at).1);
        }
        match self.model.open(session) {
            Some(true) => Said::Open(None),
            // Its COMMIT says so.
            Some(false) => {
                let mut ended = self.arrive(who, Some(Request::End(self.tickets[who])));
                self.model_said(who, &mut ended)
            }
            None => Said::Done,
        }
    }

    /// A request arrives in the model, or the connection ends. Answers what follows at once.
    fn arrive(&mut self, who: usize, request: Option<Request>) -> Vec<(SessionId, Response)> {
        let Outcome { mut later, mut responses } =
            self.model.arrive(self.sessions[who], request, NOW_MS);
        while let Some(next) = later.pop() {
            let outcome = self.model.later(next, NOW_MS);
            later.extend(outcome.later);
            responses.extend(outcome.responses);
        }
        responses
    }

    /// The tables of the model.
    fn contents(&self) -> Contents {
        let tables = &self.model.tables;
        let batches = tables.history.iter().filter(|happened| happened.prev != happened.next);
        let log = batches.map(|happened| {
            let name = self.names.get(&(happened.server, happened.ticket));
            let [next, prev, epoch] =
                [happened.next, happened.prev, happened.epoch].map(u64::cast_signed);
            let name = name.map(|(_, name)| name.as_bytes().to_vec()).unwrap_or_default();
            (next, prev, epoch, happened.now_ms, name)
        });
        let entries = tables.entries.iter().map(|(key, row)| {
            let value = row.value.bytes.clone();
            (key.as_bytes().to_vec(), (row.version.cast_signed(), value, row.expire_at_ms))
        });
        let epochs = tables.epochs.iter();
        Contents {
            row: (tables.epoch.cast_signed(), tables.version.cast_signed(), tables.last_message),
            leader: tables.owner.map(|owner| owner.0 as usize),
            epochs: epochs.map(|(e, start)| (e.cast_signed(), start.cast_signed())).collect(),
            entries: entries.collect(),
            log: log.collect(),
        }
    }
}

/// A batch of a leader, before it is decided.
struct Plan {
    writes: Vec<AtomicWrite>,
    ticket: Ticket,
    epoch: u64,
    /// The version that its fence names, less the right one.
    ahead: i64,
}

impl Plan {
    /// Decides it over the committed state.
    fn commit(&self, tables: &Tables) -> Commit {
        let (decisions, effects) = tables.decide(&self.writes, NOW_MS);
        let attempts = self.writes.iter().map(AtomicWrite::attempt);
        let prev = tables.version.saturating_add_signed(self.ahead);
        Commit {
            ticket: self.ticket,
            epoch: self.epoch,
            prev,
            next: prev + (effects.version - tables.version),
            now_ms: NOW_MS,
            durable: true,
            last_message: tables.last_message,
            records: WriteRecord::of(attempts, &decisions),
            effects,
        }
    }
}
