//! A model of PostgreSQL as far as a leader depends on it: sessions that work through their statements
//! in order, the lock of the database's row, a log that is flushed and sent to a standby, commits that
//! wait for the standby, crashes, recovery and promotion.
//!
//! It is a machine like the layer: calls return what happens next and after how long.

use std::collections::{BTreeMap, VecDeque};

use openkv::commit::Ticket;
use openkv::commit::{Base, Evaluation, OldRow, Report, RowEffect, Work};
use openkv::layer::{Commit, FetchId, Fetched, Lead};
use openkv::model::{Key, Result, Row, Seen, Step, Versionstamp, Walk};
use uuid::Uuid;

/// A process that may lead, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ServerId(pub(crate) u64);

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct SessionId(pub(crate) u64);

/// How long a lease lasts, in ms.
pub(crate) const LEASE_MS: i64 = 40;

/// What arrives at a session.
pub(crate) enum Request {
    /// BEGIN, the fence and the changes of a batch.
    Body(Box<Commit>),
    /// COMMIT, or the question whether the version is still this one.
    End(Ticket),
    Fetch(FetchId, Vec<(Key, bool)>),
    /// Raises the epoch if it is still this one. `raises`: otherwise only looks.
    Resolve {
        epoch: u64,
        raises: bool,
    },
    /// Raises the epoch if the leader's lease is over.
    Acquire,
    /// A transaction that decides for itself.
    Alone {
        ticket: Ticket,
        epoch: u64,
        work: Work,
    },
    Renew,
}

/// What a session answers.
pub(crate) enum Response {
    Done(Ticket),
    /// The fence has failed.
    Fenced,
    Fetched(FetchId, Vec<Fetched>),
    Leads(Lead),
    /// Somebody else leads: the version at which the epoch after the asked one began, if it has.
    Follows(Option<u64>),
    RanAlone(Ticket, Box<Report>, Lead),
}

/// A batch in the history of the database.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Happened {
    pub(crate) server: ServerId,
    pub(crate) ticket: Ticket,
    pub(crate) prev: u64,
    pub(crate) next: u64,
    pub(crate) now_ms: i64,
}

#[derive(Clone)]
struct Change {
    rows: Vec<(Key, RowEffect)>,
    messages: i64,
    happened: Happened,
}

/// A record of the write-ahead log.
#[derive(Clone)]
enum Record {
    Batch(Change),
    Epoch { epoch: u64, owner: ServerId, clock_ms: i64 },
    Lease { server: ServerId, until_ms: i64 },
}

/// The committed state.
#[derive(Clone, Default)]
pub(crate) struct Tables {
    pub(crate) epoch: u64,
    pub(crate) version: u64,
    pub(crate) clock_ms: i64,
    owner: Option<ServerId>,
    last_message: i64,
    pub(crate) entries: BTreeMap<Key, OldRow>,
    /// Where each epoch began.
    epochs: BTreeMap<u64, u64>,
    leases: BTreeMap<ServerId, i64>,
    pub(crate) history: Vec<Happened>,
}

impl Tables {
    fn apply(&mut self, record: Record) {
        match record {
            Record::Batch(Change { rows, messages, happened }) => {
                for (key, effect) in rows {
                    match effect {
                        RowEffect::Removed => drop(self.entries.remove(&key)),
                        RowEffect::Stored(new) => {
                            let (version, value, expire_at_ms) =
                                (new.version, new.value, new.expire_at_ms);
                            self.entries.insert(key, OldRow { version, value, expire_at_ms });
                        }
                        RowEffect::ExpirySet { expire_at_ms, .. } => {
                            let row = self.entries.get_mut(&key).expect("an entry to expire");
                            row.expire_at_ms = expire_at_ms;
                        }
                    }
                }
                self.version = happened.next;
                self.clock_ms = self.clock_ms.max(happened.now_ms);
                self.last_message += messages;
                self.history.push(happened);
            }
            Record::Epoch { epoch, owner, clock_ms } => {
                self.epoch = epoch;
                self.owner = Some(owner);
                self.clock_ms = self.clock_ms.max(clock_ms);
                self.epochs.insert(epoch, self.version);
            }
            Record::Lease { server, until_ms } => drop(self.leases.insert(server, until_ms)),
        }
    }

    fn lead(&self) -> Lead {
        Lead {
            epoch: self.epoch,
            version: self.version,
            clock_ms: self.clock_ms,
            last_uuid: None,
            last_message: self.last_message,
            logs: false,
        }
    }
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
    /// The changes of an open transaction; the inner `None` if its fence has failed.
    open: Option<Option<Change>>,
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
    log: Vec<Record>,
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
}

impl Postgres {
    pub(crate) fn new(synchronous: bool) -> Self {
        Self {
            tables: Tables::default(),
            log: Vec::new(),
            waiting: VecDeque::new(),
            received: 0,
            lock: None,
            queue: VecDeque::new(),
            sessions: BTreeMap::new(),
            synchronous,
            clock_ms: 0,
        }
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
                let Some(Some(change)) = session.open.clone() else { return outcome };
                self.log.push(Record::Batch(change));
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
        if let Some(Some(change)) = session.open.take() {
            self.tables.apply(Record::Batch(change));
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
                self.locked(next, *request, now, outcome);
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
                Request::Renew => {
                    let until_ms = now + self.clock_ms + LEASE_MS;
                    let record = Record::Lease { server: session.server, until_ms };
                    self.log.push(record.clone());
                    self.tables.apply(record);
                    outcome.later.push(Later::Received(self.log.len()));
                }
                Request::End(ticket) => match session.open {
                    Some(Some(_)) => {
                        session.activity = Activity::Committing;
                        session.reply = Some(Response::Done(ticket));
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
                request if self.lock.is_none() || self.lock == Some(id) => {
                    self.lock = Some(id);
                    self.locked(id, request, now, outcome);
                }
                request => {
                    session.activity = Activity::Locking(Box::new(request));
                    self.queue.push_back(id);
                }
            }
        }
    }

    /// Carries out a request that has the row's lock.
    fn locked(&mut self, id: SessionId, request: Request, now: i64, outcome: &mut Outcome) {
        let now_ms = now + self.clock_ms;
        let Some(session) = self.sessions.get_mut(&id) else { return };
        let server = session.server;
        let tables = &mut self.tables;
        match request {
            Request::Body(commit) => {
                if (tables.epoch, tables.version) != (commit.epoch, commit.prev) {
                    session.open = Some(None);
                    return self.unlock(id, now, outcome);
                }
                let Commit { ticket, prev, next, now_ms, effects, .. } = *commit;
                let happened = Happened { server, ticket, prev, next, now_ms };
                let messages = effects.messages.len() as i64;
                session.open = Some(Some(Change { rows: effects.rows, messages, happened }));
            }
            Request::Resolve { epoch, raises } => {
                let next = tables.epochs.range(epoch + 1..).next().map(|(_, start)| *start);
                let own = tables.owner == Some(server);
                // An answer to the same request may be lost.
                let raised = tables.epoch > epoch && next == Some(tables.version);
                if raises && own && (tables.epoch == epoch || raised) {
                    return self.raise(id, server, now, outcome);
                }
                let response = match !raises && own && tables.epoch == epoch {
                    true => Response::Leads(tables.lead()),
                    false => Response::Follows(next),
                };
                outcome.responses.push((id, response));
                self.unlock(id, now, outcome);
            }
            Request::Acquire => {
                let free = tables.owner.is_none_or(|owner| {
                    owner == server || tables.leases.get(&owner).is_none_or(|end| *end < now_ms)
                });
                if free {
                    return self.raise(id, server, now, outcome);
                }
                outcome.responses.push((id, Response::Follows(None)));
                self.unlock(id, now, outcome);
            }
            Request::Alone { ticket, epoch, work } => {
                if tables.epoch != epoch {
                    outcome.responses.push((id, Response::Fenced));
                    return self.unlock(id, now, outcome);
                }
                let now_ms = now_ms.max(tables.clock_ms);
                let prev = tables.version;
                let mut rows = Rows { tables, now_ms };
                let mut evaluation = Evaluation::new(&mut rows, prev, now_ms);
                let decide = |write| evaluation.decide(write).expect("decided");
                let decisions = work.writes.into_iter().map(decide).collect();
                let effects = evaluation.into_effects();
                let next = effects.version;
                let report = Report {
                    decisions,
                    versions: (prev, next),
                    touched: effects.rows.iter().map(|(key, _)| key.clone()).collect(),
                    ..Report::default()
                };
                let happened = Happened { server, ticket, prev, next, now_ms };
                let change = Change { rows: effects.rows, messages: 0, happened };
                let mut lead = tables.lead();
                (lead.version, lead.clock_ms) = (next, now_ms);
                session.reply = Some(Response::RanAlone(ticket, Box::new(report), lead));
                session.open = Some(Some(change));
                session.activity = Activity::Committing;
                outcome.later.push(Later::Flushed(id));
            }
            Request::End(_) | Request::Fetch(..) | Request::Renew => {}
        }
    }

    fn raise(&mut self, id: SessionId, owner: ServerId, now: i64, outcome: &mut Outcome) {
        let until_ms = now + self.clock_ms + LEASE_MS;
        let (epoch, clock_ms) = (self.tables.epoch + 1, now + self.clock_ms);
        // One record stands for the transaction; the row's lock is held meanwhile.
        for record in
            [Record::Lease { server: owner, until_ms }, Record::Epoch { epoch, owner, clock_ms }]
        {
            self.log.push(record.clone());
            self.tables.apply(record);
        }
        let Some(session) = self.sessions.get_mut(&id) else { return };
        session.activity = Activity::Committing;
        session.reply = Some(Response::Leads(self.tables.lead()));
        self.flushed(id, now, outcome);
    }

    /// The primary dies. With `promotes` its standby takes over, otherwise it starts again. Every
    /// connection is lost; what the standby, or the disk, has stays.
    pub(crate) fn crash(&mut self, promotes: bool) {
        if promotes {
            self.log.truncate(self.received);
        }
        self.received = self.log.len();
        let mut tables = Tables::default();
        self.log.iter().for_each(|record| tables.apply(record.clone()));
        self.tables = tables;
        self.waiting.clear();
        self.queue.clear();
        self.sessions.clear();
        self.lock = None;
    }
}

/// The entries of the database, for a transaction that decides for itself.
struct Rows<'t> {
    tables: &'t Tables,
    now_ms: i64,
}

impl Rows<'_> {
    fn alive(&self, row: &OldRow) -> bool {
        row.expire_at_ms.is_none_or(|end| end > self.now_ms)
    }
}

impl Base for Rows<'_> {
    fn version(&mut self, key: &Key) -> Result<Option<u64>> {
        Ok(self.row(key)?.map(|row| row.version))
    }

    fn row(&mut self, key: &Key) -> Result<Option<OldRow>> {
        Ok(self.tables.entries.get(key).filter(|row| self.alive(row)).cloned())
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        for (key, row) in &self.tables.entries {
            let inside = key.as_bytes() >= walk.start && key.as_bytes() < walk.end;
            if inside && self.alive(row) {
                let OldRow { version, value, expire_at_ms } = row;
                let (stamp, encoding) = (Versionstamp::new(*version), value.encoding);
                let row = Row { key: key.as_bytes(), stamp, encoding, value: &value.bytes };
                if visit(Seen { row, expire_at_ms: *expire_at_ms }) == Step::Stop {
                    break;
                }
            }
        }
        Ok(())
    }

    fn last_uuid(&mut self) -> Result<Option<Uuid>> {
        Ok(None)
    }
}
