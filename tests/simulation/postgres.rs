//! A model of PostgreSQL as far as a leader depends on it: sessions that work through their statements
//! in order, the lock of the database's row, a log that is flushed and sent to a standby, commits that
//! wait for the standby, crashes, recovery and promotion.
//!
//! It is a machine like the layer: calls return what happens next and after how long. `compared.rs`
//! compares it with a real server.

use std::collections::{BTreeMap, VecDeque};

use openkv::commit::{OldRow, Report, Ticket, Work};
use openkv::layer::{Commit, FetchId, Fetched, Lead};
use openkv::model::{AtomicWrite, Key, WriteRecord};

use crate::tables::{Change, Happened, Record, ServerId, Tables};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionId(pub(crate) u64);

/// How long a lease lasts, in ms.
pub(crate) const LEASE_MS: i64 = 40;

/// What arrives at a session.
pub(crate) enum Request {
    /// BEGIN, the fence and the changes of a batch.
    Body(Box<Commit>),
    /// COMMIT, or the read that confirms that the version is still this one.
    End(Ticket),
    Fetch(FetchId, Vec<(Key, bool)>),
    /// Raises the epoch if it is still this one. `raises`: otherwise only looks.
    Resolve {
        epoch: u64,
        raises: bool,
    },
    /// Raises the epoch if the leader's lease is over.
    Acquire,
    /// A transaction that decides for itself, up to its COMMIT. `epoch`: the one that it must find.
    Alone {
        ticket: Ticket,
        epoch: Option<u64>,
        work: Work,
    },
    /// Lets others lead.
    HandOver,
    /// Looks for a batch, once the transactions before have ended.
    Look(ServerId, Ticket),
    Renew,
}

/// What a session answers.
pub(crate) enum Response {
    Done(Ticket),
    /// The fence has failed.
    Fenced,
    Fetched(FetchId, Vec<Fetched>),
    Leads(Lead),
    /// Somebody else leads: the version at which the epoch after the requested one began, if it has.
    Follows(Option<u64>),
    RanAlone(Ticket, Box<Report>, Lead),
    HandedOver,
    Looked(bool),
}

/// What the model does otherwise than PostgreSQL, to see that the comparison finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Deviation {
    /// The fence ignores the epoch.
    FenceWithoutEpoch,
    /// The fence ignores the version.
    FenceWithoutVersion,
    /// An UPDATE waits for the row's lock also if the row that it sees does not fulfil its condition.
    AlwaysWaits,
    /// A waiting UPDATE does not look at its condition again.
    NeverLooksAgain,
    /// A leader is deposed although its lease has not ended.
    LeaseIgnored,
    /// A transaction that was cut has committed.
    CutsCommit,
}

impl Deviation {
    pub(crate) const ALL: [Self; 6] = [
        Self::FenceWithoutEpoch,
        Self::FenceWithoutVersion,
        Self::AlwaysWaits,
        Self::NeverLooksAgain,
        Self::LeaseIgnored,
        Self::CutsCommit,
    ];
}

enum Activity {
    Idle,
    /// Waits for the row's lock with this request.
    Locking(Box<Request>),
    /// A commit waits for the disk or the standby.
    Committing,
}

struct Session {
    server: ServerId,
    inbox: VecDeque<Request>,
    activity: Activity,
    /// What an open transaction has done; the inner `None` if its fence has failed.
    open: Option<Option<Vec<Record>>>,
    /// What is answered once the commit is done.
    reply: Option<Response>,
    ended: bool,
}

/// What the world must let happen later.
pub(crate) enum Later {
    /// The log of this session is flushed.
    Flushed(SessionId),
    /// The standby has the log up to this record.
    Received(usize),
}

/// The outcome of a call: what to schedule, and what was answered.
#[derive(Default)]
pub(crate) struct Outcome {
    pub(crate) later: Vec<Later>,
    pub(crate) responses: Vec<(SessionId, Response)>,
}

/// The primary, and what its standby has.
pub(crate) struct Postgres {
    pub(crate) tables: Tables,
    log: Vec<Vec<Record>>,
    /// Commits that wait for the standby, by the records they need.
    waiting: VecDeque<(usize, SessionId)>,
    received: usize,
    lock: Option<SessionId>,
    queue: VecDeque<SessionId>,
    sessions: BTreeMap<SessionId, Session>,
    /// Whether commits wait for the standby.
    synchronous: bool,
    /// Its clock less that of the world.
    pub(crate) clock_ms: i64,
    pub(crate) deviation: Option<Deviation>,
}

impl Postgres {
    pub(crate) fn new(synchronous: bool) -> Self {
        Self {
            tables: Tables::new(),
            log: Vec::new(),
            waiting: VecDeque::new(),
            received: 0,
            lock: None,
            queue: VecDeque::new(),
            sessions: BTreeMap::new(),
            synchronous,
            clock_ms: 0,
            deviation: None,
        }
    }

    /// Whether a session waits for the lock of the row.
    pub(crate) fn waits(&self, id: SessionId) -> bool {
        let session = self.sessions.get(&id);
        session.is_some_and(|session| matches!(session.activity, Activity::Locking(_)))
    }

    /// Whether a session has an open transaction, and if so, whether it has passed its fence.
    pub(crate) fn open(&self, id: SessionId) -> Option<bool> {
        self.sessions.get(&id)?.open.as_ref().map(Option::is_some)
    }

    /// The lease of a server ends.
    pub(crate) fn end_lease(&mut self, server: ServerId) {
        self.tables.leases.remove(&server);
    }

    fn deviates(&self, deviation: Deviation) -> bool {
        self.deviation == Some(deviation)
    }

    pub(crate) fn connect(&mut self, id: SessionId, server: ServerId) {
        let (inbox, activity) = (VecDeque::new(), Activity::Idle);
        let session = Session { server, inbox, activity, open: None, reply: None, ended: false };
        self.sessions.insert(id, session);
    }

    /// A request arrives; `None`: the connection ends.
    pub(crate) fn arrive(&mut self, id: SessionId, request: Option<Request>, now: i64) -> Outcome {
        let mut outcome = Outcome::default();
        if let Some(session) = self.sessions.get_mut(&id) {
            match request {
                Some(request) => session.inbox.push_back(request),
                None => session.ended = true,
            }
            self.run(id, now, &mut outcome);
        }
        outcome
    }

    pub(crate) fn later(&mut self, later: Later, now: i64) -> Outcome {
        let mut outcome = Outcome::default();
        match later {
            Later::Flushed(id) => {
                let Some(session) = self.sessions.get_mut(&id) else { return outcome };
                let Some(Some(records)) = session.open.clone() else { return outcome };
                self.log.push(records);
                self.flushed(id, now, &mut outcome);
            }
            Later::Received(count) => {
                self.received = self.received.max(count.min(self.log.len()));
                while let Some((needs, id)) = self.waiting.front().copied()
                    && needs <= self.received
                {
                    self.waiting.pop_front();
                    self.committed(id, now, &mut outcome);
                }
            }
        }
        outcome
    }

    /// The log has the record of a session's commit.
    fn flushed(&mut self, id: SessionId, now: i64, outcome: &mut Outcome) {
        outcome.later.push(Later::Received(self.log.len()));
        if self.synchronous {
            self.waiting.push_back((self.log.len(), id));
        } else {
            self.committed(id, now, outcome);
        }
    }

    /// A commit becomes visible and is answered.
    fn committed(&mut self, id: SessionId, now: i64, outcome: &mut Outcome) {
        let Some(session) = self.sessions.get_mut(&id) else { return };
        for record in session.open.take().flatten().unwrap_or_default() {
            self.tables.apply(record);
        }
        session.activity = Activity::Idle;
        if let Some(reply) = session.reply.take() {
            outcome.responses.push((id, reply));
        }
        self.unlock(id, now, outcome);
        self.run(id, now, outcome);
    }

    fn unlock(&mut self, id: SessionId, now: i64, outcome: &mut Outcome) {
        if self.lock == Some(id) {
            self.lock = None;
            while let Some(next) = self.queue.pop_front() {
                let Some(session) = self.sessions.get_mut(&next) else { continue };
                let activity = std::mem::replace(&mut session.activity, Activity::Idle);
                let Activity::Locking(request) = activity else { continue };
                self.lock = Some(next);
                self.locked(next, *request, now, true, outcome);
                self.run(next, now, outcome);
                return;
            }
        }
    }

    /// Works through the requests of a session until one has to wait.
    fn run(&mut self, id: SessionId, now: i64, outcome: &mut Outcome) {
        loop {
            let Some(session) = self.sessions.get_mut(&id) else { return };
            if !matches!(session.activity, Activity::Idle) {
                return;
            }
            let Some(request) = session.inbox.pop_front() else {
                if session.ended {
                    let open = session.open.take().flatten().unwrap_or_default();
                    if self.deviates(Deviation::CutsCommit) {
                        open.into_iter().for_each(|record| self.tables.apply(record));
                    }
                    self.sessions.remove(&id);
                    self.unlock(id, now, outcome);
                }
                return;
            };
            match request {
                Request::Fetch(fetch, keys) => {
                    let row = |(key, with_value): &(Key, bool)| match self.tables.entries.get(key) {
                        None => Fetched::Absent,
                        Some(row) if *with_value => Fetched::Row(row.clone()),
                        Some(OldRow { version, expire_at_ms, .. }) => {
                            Fetched::Version { version: *version, expire_at_ms: *expire_at_ms }
                        }
                    };
                    let rows = keys.iter().map(row).collect();
                    outcome.responses.push((id, Response::Fetched(fetch, rows)));
                }
                Request::Renew => self.renew(id, now, outcome),
                Request::End(ticket) => match session.open {
                    Some(Some(_)) => {
                        session.activity = Activity::Committing;
                        session.reply.get_or_insert(Response::Done(ticket));
                        outcome.later.push(Later::Flushed(id));
                    }
                    Some(None) => {
                        session.open = None;
                        outcome.responses.push((id, Response::Fenced));
                    }
                    None => outcome.responses.push((id, Response::Done(ticket))),
                },
                Request::Body(commit) if commit.prev == commit.next => {
                    let Tables { epoch, version, .. } = self.tables;
                    if (epoch, version) != (commit.epoch, commit.prev) {
                        session.open = Some(None);
                    }
                }
                request => {
                    if matches!(request, Request::Acquire) {
                        self.renew(id, now, outcome);
                    }
                    let Some(session) = self.sessions.get(&id) else { return };
                    let is_free = self.lock.is_none_or(|holder| holder == id);
                    let (server, now_ms) = (session.server, now + self.clock_ms);
                    // An UPDATE looks at the committed row before it waits for its lock, and again after.
                    let admits = self.deviates(Deviation::AlwaysWaits)
                        || self.admits(server, &request, now_ms);
                    if is_free || !admits {
                        self.lock = if is_free { Some(id) } else { self.lock };
                        self.locked(id, request, now, false, outcome);
                    } else if let Some(session) = self.sessions.get_mut(&id) {
                        session.activity = Activity::Locking(Box::new(request));
                        self.queue.push_back(id);
                    }
                }
            }
        }
    }

    /// A server renews its lease, in a transaction of its own.
    fn renew(&mut self, id: SessionId, now: i64, outcome: &mut Outcome) {
        let Some(session) = self.sessions.get(&id) else { return };
        let until_ms = now + self.clock_ms + LEASE_MS;
        let record = Record::Lease { server: session.server, until_ms };
        self.log.push(vec![record.clone()]);
        self.tables.apply(record);
        outcome.later.push(Later::Received(self.log.len()));
    }

    /// As [`Tables::admits`].
    fn admits(&self, server: ServerId, request: &Request, now_ms: i64) -> bool {
        let Tables { epoch, version, .. } = self.tables;
        match request {
            Request::Body(commit) if self.deviates(Deviation::FenceWithoutEpoch) => {
                version == commit.prev
            }
            Request::Body(commit) if self.deviates(Deviation::FenceWithoutVersion) => {
                epoch == commit.epoch
            }
            request => self.tables.admits(server, request, now_ms),
        }
    }

    /// Carries out a request that has the row's lock, or that the row does not admit.
    fn locked(
        &mut self,
        id: SessionId,
        request: Request,
        now: i64,
        waited: bool,
        outcome: &mut Outcome,
    ) {
        let now_ms = now + self.clock_ms;
        let Some(session) = self.sessions.get(&id) else { return };
        let server = session.server;
        let admits = (waited && self.deviates(Deviation::NeverLooksAgain))
            || self.admits(server, &request, now_ms);
        let Tables { epoch, .. } = self.tables;
        match request {
            Request::Body(_) if !admits => self.fail(id, now, outcome),
            Request::Body(commit) => {
                let Commit { ticket, prev, next, now_ms, effects, records, .. } = *commit;
                let happened = Happened { server, ticket, epoch, prev, next, now_ms };
                let messages = effects.messages.len() as i64;
                let change = Change { rows: effects.rows, messages, happened, records };
                self.began(id, vec![Record::Batch(change)], None);
            }
            Request::Resolve { raises: true, .. } | Request::Acquire if admits => {
                let clock_ms = now_ms;
                let raised = Record::Epoch { epoch: epoch + 1, owner: Some(server), clock_ms };
                let mut lead = self.tables.lead();
                (lead.epoch, lead.clock_ms) = (epoch + 1, lead.clock_ms.max(clock_ms));
                self.began(id, vec![raised], Some(Response::Leads(lead)));
                self.commit(id, outcome);
            }
            Request::Resolve { epoch: requested, raises } => {
                let start = self.tables.epochs.get(&(requested + 1)).copied();
                let leads = !raises && self.tables.owner == Some(server) && epoch == requested;
                let response = match leads {
                    true => Response::Leads(self.tables.lead()),
                    false => Response::Follows(start),
                };
                outcome.responses.push((id, response));
                self.unlock(id, now, outcome);
            }
            Request::Acquire => {
                outcome.responses.push((id, Response::Follows(None)));
                self.unlock(id, now, outcome);
            }
            Request::HandOver => {
                let records = if admits { vec![Record::HandedOver] } else { Vec::new() };
                self.began(id, records, Some(Response::HandedOver));
                self.commit(id, outcome);
            }
            Request::Alone { ticket, epoch: wanted, work } => {
                let deposes = self.tables.owner.is_some_and(|owner| owner != server);
                let is_led = self.tables.is_led_by_other(server, now_ms)
                    && !self.deviates(Deviation::LeaseIgnored);
                let epoch = epoch + u64::from(deposes);
                if is_led || wanted.is_some_and(|wanted| wanted != epoch) {
                    return self.fail(id, now, outcome);
                }
                self.decide(id, ticket, epoch, work, now_ms);
            }
            Request::Look(of, ticket) => {
                let mut history = self.tables.history.iter();
                let found =
                    history.any(|happened| (happened.server, happened.ticket) == (of, ticket));
                outcome.responses.push((id, Response::Looked(found)));
                self.unlock(id, now, outcome);
            }
            Request::End(_) | Request::Fetch(..) | Request::Renew => {}
        }
    }

    /// Decides the work of a transaction that has the row's lock.
    fn decide(&mut self, id: SessionId, ticket: Ticket, epoch: u64, work: Work, now_ms: i64) {
        let Some(session) = self.sessions.get(&id) else { return };
        let server = session.server;
        let now_ms = now_ms.max(self.tables.clock_ms);
        let (prev, mut lead) = (self.tables.version, self.tables.lead());
        let ids = work.writes.iter().map(AtomicWrite::attempt);
        let (decisions, effects) = self.tables.decide(&work.writes, now_ms);
        let written = WriteRecord::of(ids, &decisions);
        let next = effects.version;
        let touched = effects.rows.iter().map(|(key, _)| key.clone()).collect();
        let report = Report { decisions, versions: (prev, next), touched, ..Report::default() };
        let messages = effects.messages.len() as i64;
        (lead.epoch, lead.version, lead.clock_ms) = (epoch, next, now_ms);
        lead.last_message += messages;
        let mut records = Vec::new();
        // Without a commit it is rolled back.
        if epoch != self.tables.epoch && next != prev {
            records.push(Record::Epoch { epoch, owner: None, clock_ms: now_ms });
        }
        let happened = Happened { server, ticket, epoch, prev, next, now_ms };
        let change = Change { rows: effects.rows, messages, happened, records: written };
        records.push(Record::Batch(change));
        self.began(id, records, Some(Response::RanAlone(ticket, Box::new(report), lead)));
    }

    /// A transaction has done this, up to its COMMIT.
    fn began(&mut self, id: SessionId, records: Vec<Record>, reply: Option<Response>) {
        if let Some(session) = self.sessions.get_mut(&id) {
            (session.open, session.reply) = (Some(Some(records)), reply);
        }
    }

    /// A transaction has failed. Its COMMIT reports it.
    fn fail(&mut self, id: SessionId, now: i64, outcome: &mut Outcome) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.open = Some(None);
        }
        self.unlock(id, now, outcome);
    }

    /// The COMMIT of a statement without a transaction around it.
    fn commit(&mut self, id: SessionId, outcome: &mut Outcome) {
        if let Some(session) = self.sessions.get_mut(&id) {
            session.activity = Activity::Committing;
            outcome.later.push(Later::Flushed(id));
        }
    }

    /// The primary dies. With `promotes` its standby takes over, otherwise it starts again. Every
    /// connection is lost; what the standby, or the disk, has stays.
    pub(crate) fn crash(&mut self, promotes: bool) {
        if promotes {
            self.log.truncate(self.received);
        }
        self.received = self.log.len();
        let mut tables = Tables::new();
        self.log.iter().flatten().for_each(|record| tables.apply(record.clone()));
        self.tables = tables;
        self.waiting.clear();
        self.queue.clear();
        self.sessions.clear();
        self.lock = None;
    }
}
