//! Servers, clients, a network and PostgreSQL in one virtual time. Everything that happens follows from
//! the seed.

mod calls;
mod faults;

use std::collections::{BTreeMap, VecDeque};

use openkv::commit::{Report, Ticket, Work};
use openkv::layer::{
    Action, Bounds, Commit, Defect, Event, FetchId, Layer, Lead, Moment, Remembered, Resolution,
};
use openkv::model::{Decision, Error, Key, Kind, WriteId};

use crate::checker::{Answer, Batch, Batches, believed_outcomes, check};
use crate::clients::Client;
use crate::postgres::{Later, Outcome, Postgres, Request, Response, SessionId};
use crate::rng::Rng;
use crate::tables::ServerId;
use calls::Call;

/// Processes that may lead.
const SERVERS: usize = 3;
/// Faults happen before this time, in µs.
const FAULTS_END_US: u64 = 150_000;
/// A run that has not ended by then hangs, in µs.
const END_US: u64 = 4_000_000;
/// Time between two looks of a server at what it waits for, in µs.
const TICK_US: u64 = 8_000;

/// Every id is remembered.
const WIDE: Bounds = Bounds {
    cache_bytes: 0,
    ids_bytes: 1 << 20,
    ids_kept_ms: 100_000,
    ids_ahead_ms: 1000,
    ..Bounds::USUAL
};
/// Ids are forgotten while clients repeat their writes.
const NARROW: Bounds = Bounds { ids_bytes: 3000, ids_kept_ms: 60, ids_ahead_ms: 5, ..WIDE };

/// What is not as it should be, to see that the checker finds it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Setting {
    pub(crate) defect: Option<Defect>,
    /// Whether commits wait for the standby.
    pub(crate) synchronous: bool,
    /// Whether a leader raises the epoch after a lost connection.
    pub(crate) raises: bool,
}

impl Setting {
    pub(crate) const RIGHT: Self = Self { defect: None, synchronous: true, raises: true };
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct CallId(usize);

/// An attempt of a call, as it is sent.
#[derive(Clone, Copy)]
struct Sent {
    call: CallId,
    /// Counted from 1.
    attempt: u32,
    /// Whether an earlier attempt may still arrive.
    repeated: bool,
}

/// How an attempt ends.
enum End {
    /// Nothing of it has happened.
    Nothing,
    /// Nobody knows.
    Unknown,
    Answered {
        version: u64,
        decisions: Vec<Decision>,
    },
}

enum What {
    Call(usize),
    /// A call is sent, for the first time or again.
    Send(CallId),
    ToServer(ServerId, Message),
    ToPostgres(u64, SessionId, Option<Request>),
    Postgres(u64, Later),
    Fault,
    /// A process starts in this place.
    Start(usize),
}

enum Message {
    Call(Sent),
    /// With the time of the database's server.
    Response(SessionId, Response, i64),
    Cut(SessionId),
    Tick,
}

/// A connection of a server.
#[derive(Clone, Copy)]
struct Link {
    session: SessionId,
    /// When the last message arrives, in each direction: none overtakes another.
    there_us: u64,
    back_us: u64,
}

enum Role {
    Follower,
    Acquiring,
    Leading(Box<Layer>),
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Purpose {
    Commits,
    Reads,
    Control,
}

struct Server {
    role: Role,
    links: [Option<Link>; 3],
    pending: VecDeque<Sent>,
    batches: BTreeMap<Ticket, Vec<Sent>>,
    tickets: u64,
    /// The last request of the control connection.
    resolving: Option<u64>,
    alone: Option<Ticket>,
    fetches: BTreeMap<FetchId, Vec<(Key, bool)>>,
    /// The time of the database's server, and when it was heard.
    clock: Option<(i64, u64)>,
    paused_until_us: u64,
}

pub(crate) struct World {
    setting: Setting,
    rng: Rng,
    now_us: u64,
    events: BTreeMap<(u64, u64), What>,
    scheduled: u64,
    postgres: Postgres,
    /// Counts the crashes of PostgreSQL.
    generation: u64,
    frozen_until_us: u64,
    servers: BTreeMap<ServerId, Server>,
    places: [Option<ServerId>; SERVERS],
    next_server: u64,
    next_session: u64,
    clients: Vec<Client>,
    calls: Vec<Call>,
    /// The outcomes that clients believe.
    believed: Vec<(WriteId, Decision)>,
    batches: Batches,
    /// The last commit that any caller has heard of.
    heard: u64,
    distance_us: u64,
    faults: u64,
    bounds: Bounds,
}

/// Runs one seed.
///
/// # Errors
/// The first contradiction between answers and history, or that the run hangs.
pub(crate) fn run(seed: u64, setting: Setting) -> Result<(), String> {
    let mut rng = Rng::new(seed);
    let clients = (0..4 + rng.below(5)).map(|_| Client::new(6 + rng.below(8))).collect();
    let (faults, distance_us) = (rng.below(7), rng.pick(&[100, 500, 3000]));
    let forgets = rng.below(4) == 0;
    let mut world = World {
        setting,
        rng,
        now_us: 0,
        events: BTreeMap::new(),
        scheduled: 0,
        postgres: Postgres::new(setting.synchronous),
        generation: 0,
        frozen_until_us: 0,
        servers: BTreeMap::new(),
        places: [None; SERVERS],
        next_server: 0,
        next_session: 0,
        clients,
        calls: Vec::new(),
        believed: Vec::new(),
        batches: Batches::new(),
        heard: 0,
        distance_us,
        faults,
        bounds: if forgets { NARROW } else { WIDE },
    };
    world.begin();
    world.run()?;
    check(&world.batches, &world.postgres.tables, forgets)?;
    believed_outcomes(&world.believed, &world.postgres.tables)
}

impl World {
    fn begin(&mut self) {
        (0..SERVERS).for_each(|place| self.start(place));
        for client in 0..self.clients.len() {
            let at = self.rng.below(2000);
            self.after(at, What::Call(client));
        }
        for _ in 0..self.faults {
            let at = self.rng.below(FAULTS_END_US);
            self.after(at, What::Fault);
        }
    }

    fn after(&mut self, us: u64, what: What) {
        self.scheduled += 1;
        self.events.insert((self.now_us + us, self.scheduled), what);
    }

    fn run(&mut self) -> Result<(), String> {
        while self.clients.iter().any(|client| client.calls > 0)
            || self.calls.iter().any(|call| !call.answered)
        {
            let Some(((at, _), what)) = self.events.pop_first() else {
                return Err("nothing happens any more".to_owned());
            };
            self.now_us = at;
            if at > END_US {
                return Err(format!("a call has no answer: {}", self.describe()));
            }
            match what {
                What::Call(client) => self.call(client),
                What::Send(call) => self.send_call(call),
                What::ToServer(id, message) => self.receive(id, message),
                What::ToPostgres(generation, id, request) if generation == self.generation => {
                    let outcome = self.postgres.arrive(id, request, self.now_ms());
                    self.happen(outcome);
                }
                What::Postgres(generation, Later::Received(count))
                    if generation == self.generation && self.frozen_until_us > self.now_us =>
                {
                    let us = self.frozen_until_us - self.now_us;
                    self.after(us, What::Postgres(generation, Later::Received(count)));
                }
                What::Postgres(generation, later) if generation == self.generation => {
                    let outcome = self.postgres.later(later, self.now_ms());
                    self.happen(outcome);
                }
                What::ToPostgres(..) | What::Postgres(..) => {}
                What::Fault => self.fault(),
                What::Start(place) => self.start(place),
            }
        }
        Ok(())
    }

    /// What each server waits for.
    fn describe(&self) -> String {
        let open = |server: &Server| {
            let role = match &server.role {
                Role::Follower => "follows",
                Role::Acquiring => "acquires",
                Role::Leading(_) => "leads",
            };
            let (links, fetches) = (server.links.map(|link| link.is_some()), server.fetches.len());
            let (pending, batches) = (server.pending.len(), server.batches.keys());
            let (resolving, alone) = (server.resolving, server.alone);
            format!(
                "{role}, connections {links:?}, {pending} waiting, {batches:?}, {fetches} reads, \
                 resolving {resolving:?}, alone {alone:?}"
            )
        };
        let servers = self.servers.iter().map(|(id, server)| format!("{id:?} {}", open(server)));
        servers.collect::<Vec<_>>().join("; ")
    }

    fn now_ms(&self) -> i64 {
        (self.now_us / 1000) as i64
    }

    fn latency(&mut self) -> u64 {
        let slow = if self.rng.below(16) == 0 { 10 } else { 1 };
        slow * (self.distance_us / 2 + self.rng.below(self.distance_us))
    }

    /// PostgreSQL has done something.
    fn happen(&mut self, Outcome { later, responses }: Outcome) {
        let clock_ms = self.now_ms() + self.postgres.clock_ms;
        for (session, response) in responses {
            let us = self.latency();
            let owner = self.servers.iter_mut().find_map(|(id, server)| {
                let link = server.links.iter_mut().flatten().find(|link| link.session == session);
                link.map(|link| (*id, link))
            });
            let Some((id, link)) = owner else { continue };
            link.back_us = link.back_us.max(self.now_us + us);
            let us = link.back_us - self.now_us;
            self.after(us, What::ToServer(id, Message::Response(session, response, clock_ms)));
        }
        for later in later {
            let us = match later {
                Later::Flushed(_) => 50 + self.rng.below(200),
                Later::Received(_) => 100 + self.rng.below(800),
            };
            self.after(us, What::Postgres(self.generation, later));
        }
    }

    // Servers.

    fn start(&mut self, place: usize) {
        let id = ServerId(self.next_server);
        self.next_server += 1;
        self.places[place] = Some(id);
        let server = Server {
            role: Role::Follower,
            links: [None; 3],
            pending: VecDeque::new(),
            batches: BTreeMap::new(),
            tickets: 0,
            resolving: None,
            alone: None,
            fetches: BTreeMap::new(),
            clock: None,
            paused_until_us: 0,
        };
        self.servers.insert(id, server);
        self.after(TICK_US, What::ToServer(id, Message::Tick));
    }

    fn receive(&mut self, id: ServerId, message: Message) {
        let Some(server) = self.servers.get_mut(&id) else {
            if let Message::Call(call) = message {
                self.end_call(call, End::Nothing);
            }
            return;
        };
        if server.paused_until_us > self.now_us {
            let us = server.paused_until_us - self.now_us;
            return self.after(us, What::ToServer(id, message));
        }
        match message {
            Message::Call(call) => {
                server.pending.push_back(call);
                if matches!(server.role, Role::Follower) {
                    server.role = Role::Acquiring;
                    self.send(id, Purpose::Control, Request::Acquire);
                }
            }
            Message::Response(session, response, clock_ms) => {
                let link = server.links.iter().flatten().find(|link| link.session == session);
                if link.is_some() {
                    server.clock = Some((clock_ms, self.now_us));
                    self.respond(id, response);
                }
            }
            Message::Cut(session) => self.notice(id, session),
            Message::Tick => self.tick(id),
        }
        self.submit(id);
    }

    /// Sends a request on a connection of its purpose, which is made if there is none.
    fn send(&mut self, id: ServerId, purpose: Purpose, request: Request) {
        let us = self.latency();
        let (now_us, next) = (self.now_us, SessionId(self.next_session));
        let Some(server) = self.servers.get_mut(&id) else { return };
        let link = server.links[purpose as usize].get_or_insert_with(|| {
            self.next_session += 1;
            self.postgres.connect(next, id);
            Link { session: next, there_us: 0, back_us: 0 }
        });
        link.there_us = link.there_us.max(now_us + us);
        let (us, session) = (link.there_us - now_us, link.session);
        self.after(us, What::ToPostgres(self.generation, session, Some(request)));
    }

    fn tick(&mut self, id: ServerId) {
        self.after(TICK_US, What::ToServer(id, Message::Tick));
        let Some(server) = self.servers.get_mut(&id) else { return };
        let resolving = server.resolving;
        let unasked = server.links[Purpose::Control as usize].is_none();
        match server.role {
            Role::Follower => {}
            Role::Acquiring if unasked => self.send(id, Purpose::Control, Request::Acquire),
            Role::Acquiring => {}
            Role::Leading(_) => {
                if let Some(epoch) = resolving.filter(|_| unasked) {
                    let raises = self.setting.raises;
                    self.send(id, Purpose::Control, Request::Resolve { epoch, raises });
                }
                self.send(id, Purpose::Reads, Request::Renew);
            }
        }
    }

    /// Makes batches of waiting calls.
    fn submit(&mut self, id: ServerId) {
        loop {
            let crowds = self.rng.below(6) == 0;
            let Some(server) = self.servers.get_mut(&id) else { return };
            let Role::Leading(layer) = &mut server.role else { return };
            if server.pending.is_empty() || !(layer.room() > 0 || crowds) {
                return;
            }
            let count = server.pending.len().min(1 + self.rng.below(4) as usize);
            let calls: Vec<Sent> = server.pending.drain(..count).collect();
            let ticket = Ticket(server.tickets);
            server.tickets += 1;
            server.batches.insert(ticket, calls.clone());
            let writes: Vec<_> = calls.iter().flat_map(|sent| self.writes_of(*sent)).collect();
            let heard = calls.iter().map(|sent| self.calls[sent.call.0].heard).max().unwrap_or(0);
            let batch = Batch { writes: writes.clone(), heard, times_ms: Vec::new(), answer: None };
            self.batches.insert((id, ticket), batch);
            let work = Work { writes, durable: true, ..Work::default() };
            self.step(id, Event::Submitted(ticket, work));
        }
    }

    fn step(&mut self, id: ServerId, event: Event) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let Role::Leading(layer) = &mut server.role else { return };
        let wall = |(clock_ms, at): (i64, u64)| clock_ms + (self.now_us - at) as i64 / 1000;
        let now = Moment { wall_ms: server.clock.map_or(0, wall), us: self.now_us };
        let actions = layer.step(event, now);
        for ticket in server.batches.keys() {
            if let Some(batch) = self.batches.get_mut(&(id, *ticket)) {
                batch.times_ms.push(layer.now_ms());
            }
        }
        for action in actions {
            self.act(id, action);
        }
    }

    fn act(&mut self, id: ServerId, action: Action) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        match action {
            Action::Fetch(fetch, keys) => {
                server.fetches.insert(fetch, keys.clone());
                self.send(id, Purpose::Reads, Request::Fetch(fetch, keys));
            }
            Action::FetchPoints(..) => panic!("the database has no value index"),
            Action::Send(commit) => {
                let Commit { ticket, now_ms, .. } = *commit;
                if let Some(batch) = self.batches.get_mut(&(id, ticket)) {
                    batch.times_ms = vec![now_ms];
                }
                self.send(id, Purpose::Commits, Request::Body(commit));
                self.send(id, Purpose::Commits, Request::End(ticket));
            }
            Action::RunAlone(ticket, work) => {
                server.alone = Some(ticket);
                let Role::Leading(layer) = &server.role else { return };
                let epoch = Some(layer.epoch());
                self.send(id, Purpose::Control, Request::Alone { ticket, epoch, work });
                self.send(id, Purpose::Control, Request::End(ticket));
            }
            Action::Resolve { epoch } => {
                server.resolving = Some(epoch);
                self.close(id, Purpose::Commits);
                let raises = self.setting.raises;
                self.send(id, Purpose::Control, Request::Resolve { epoch, raises });
            }
            Action::Answer(ticket, result) => self.answer(id, ticket, result),
        }
    }

    fn answer(&mut self, id: ServerId, ticket: Ticket, result: Result<Report, Error>) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let Some(calls) = server.batches.remove(&ticket) else { return };
        let mut decisions = match &result {
            Ok(report) => report.decisions.clone(),
            Err(_) => Vec::new(),
        };
        let mut ends = Vec::new();
        for sent in calls {
            let end = match &result {
                Ok(report) => {
                    self.heard = self.heard.max(report.versions.1);
                    let rest = decisions.split_off(self.calls[sent.call.0].writes.len());
                    let decisions = std::mem::replace(&mut decisions, rest);
                    End::Answered { version: report.versions.1, decisions }
                }
                Err(error) if error.kind() == Kind::OutcomeUnknown => End::Unknown,
                Err(_) => End::Nothing,
            };
            ends.push((sent, end));
        }
        if let Some(batch) = self.batches.get_mut(&(id, ticket)) {
            batch.answer = Some(Answer { result, version: self.postgres.tables.version });
        }
        ends.into_iter().for_each(|(sent, end)| self.end_call(sent, end));
    }

    /// Ends a connection from the side of the server.
    fn close(&mut self, id: ServerId, purpose: Purpose) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        if let Some(link) = server.links[purpose as usize].take() {
            let us = link.there_us.max(self.now_us) - self.now_us;
            self.after(us, What::ToPostgres(self.generation, link.session, None));
        }
    }

    fn respond(&mut self, id: ServerId, response: Response) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        match response {
            Response::Done(ticket) => self.step(id, Event::Durable(ticket)),
            Response::Fenced => match server.alone.take() {
                Some(ticket) => {
                    let error = Error::new(Kind::Unavailable, "fenced");
                    self.step(id, Event::RanAlone(ticket, Err(error)));
                }
                None => self.step(id, Event::Interrupted),
            },
            Response::Fetched(fetch, rows) => {
                server.fetches.remove(&fetch);
                self.step(id, Event::Fetched(fetch, rows));
            }
            Response::RanAlone(ticket, report, lead) => {
                server.alone = None;
                self.step(id, Event::RanAlone(ticket, Ok((*report, lead))));
            }
            Response::Leads(lead) => match server.role {
                Role::Acquiring => {
                    let cache_bytes = self.rng.below(1500) as usize;
                    let bounds = Bounds { cache_bytes, ..self.bounds };
                    let remembered = self.remembered(&lead);
                    let layer = Layer::with_defect(lead, remembered, bounds, self.setting.defect);
                    let Some(server) = self.servers.get_mut(&id) else { return };
                    server.role = Role::Leading(Box::new(layer));
                }
                Role::Leading(_) if server.resolving.take().is_some() => {
                    let remembered = self.remembered(&lead);
                    self.step(id, Event::Resolved(Resolution::Leading(lead, remembered)));
                }
                Role::Leading(_) | Role::Follower => {}
            },
            Response::HandedOver | Response::Looked(_) => {}
            Response::Follows(start) => {
                let error = Error::new(Kind::Unavailable, "another server leads");
                if server.resolving.take().is_some() {
                    let start = start.unwrap_or(0);
                    self.step(id, Event::Resolved(Resolution::Overtaken { start, error }));
                }
                self.follow(id);
            }
        }
    }

    /// The ids of writes that a server reads when its lead begins.
    fn remembered(&self, lead: &Lead) -> Remembered {
        self.postgres.tables.remembered(lead.clock_ms - self.bounds.ids_kept_ms)
    }

    /// Another server leads: waiting callers try that one.
    fn follow(&mut self, id: ServerId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        server.role = Role::Follower;
        let waiting: Vec<Sent> = server.pending.drain(..).collect();
        waiting.into_iter().for_each(|sent| self.end_call(sent, End::Nothing));
    }

    /// A server notices that a connection is lost.
    fn notice(&mut self, id: ServerId, session: SessionId) {
        let Some(server) = self.servers.get_mut(&id) else { return };
        let lost = |link: &Option<Link>| link.is_some_and(|link| link.session == session);
        let Some(at) = server.links.iter().position(lost) else { return };
        server.links[at] = None;
        if at == Purpose::Commits as usize {
            self.step(id, Event::Interrupted);
        } else if at == Purpose::Reads as usize {
            for (fetch, keys) in std::mem::take(&mut server.fetches) {
                if self.rng.below(2) == 0 {
                    let error = Error::new(Kind::Unavailable, "a read has failed");
                    self.step(id, Event::FetchFailed(fetch, error));
                } else {
                    self.act(id, Action::Fetch(fetch, keys));
                }
            }
        } else if let Some(ticket) = server.alone.take() {
            let error = Error::new(Kind::OutcomeUnknown, "the connection was lost");
            self.step(id, Event::RanAlone(ticket, Err(error)));
        }
    }
}
