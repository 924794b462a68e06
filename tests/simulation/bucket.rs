//! Simulation of databases in an object store: leaders, readers and openers over a model of the store, with late,
//! lost and repeated requests, late listings, processes that stop, die and come back, and clocks that differ.
//!
//! The machine parts are those of `openkv::chain`; this file has what a driver does with them. A write is a
//! number, and the state of a database the list of its writes, so a state is a beginning of the chain exactly if
//! its list is. The invariants are those of docs/internals/bucket.md, by number.

mod answers;
mod checks;
mod merging;
mod store;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use openkv::chain::{ChainDefect, Deletion, EndWatch, LeaseWatch, Mark, Step, Tenure, Window};

use self::store::{Ask, Copy, LeaseText, Response, Store};
use crate::rng::Rng;

const LEASE_MS: u64 = 1_000;
const END_MS: u64 = 25_000;
const PROCESSES: usize = 3;
/// Batches in flight of a leader.
const DEPTH_MAX: usize = 4;
/// Objects behind a snapshot at which a leader takes another one.
const SNAPSHOT_OBJECTS: u64 = 6;

/// What a process does next.
enum Doing {
    /// It restores its copy.
    Opening,
    Following,
    /// It has the lease, and walks to the end of the log to put a fence there.
    Claiming(Tenure, u64, u64),
    Leading(Box<Leading>),
    Dead,
}

struct Leading {
    window: Window,
    tenure: Tenure,
    lease: (u64, u64),
    renewing: bool,
    /// Batches by ticket.
    contents: BTreeMap<u64, u8>,
    /// The copy after all batches in flight: what the next write is decided on.
    ahead: Vec<u64>,
    ahead_version: u64,
    /// Batches that are in the chain, and wait for a lease.
    held: Vec<u64>,
    tickets: u64,
    snapshot_at: u64,
    /// The first number that is not copied, once a listing of snapshots has shown it.
    merge_from: Option<u64>,
    deposed: bool,
    /// The end of the log when each batch was sent.
    firsts: BTreeMap<u64, u64>,
    /// The objects that it has sent.
    sent: BTreeMap<u64, Vec<u8>>,
    /// The numbers whose creation has no outcome yet, and those of which an attempt may have happened.
    creating: BTreeSet<u64>,
    open: BTreeSet<u64>,
    /// The first number whose creation has failed, so that the log has a gap there, and whether that is open.
    gap: Option<(u64, bool)>,
}

struct Process {
    /// Another one after each start.
    id: u64,
    copy: Copy,
    doing: Doing,
    leads: bool,
    offset: u64,
    /// Thousandths of real time by which its clock is fast.
    drift: u64,
    stopped_until: u64,
    /// Until then its creations are refused.
    denied_until: u64,
    watch: LeaseWatch,
    end: EndWatch,
    deletion: Deletion,
    lease_look: u64,
    /// A request of the walk is under way.
    walking: bool,
    /// Strong reads that wait for a look which begins after them: when each began, and how many writes it has to
    /// see.
    reads: Vec<(u64, usize)>,
    /// The end of the log when writes were sent, and the writes, which are refused if nothing behind it was deleted.
    suspects: Vec<(u64, Vec<u64>)>,
}

enum Event {
    Arrives(usize, u64, u64, Ask, bool),
    Answers(usize, u64, u64, Ask, Response),
    Lost(usize, u64, u64, Ask),
    Turn(usize),
    Client,
    Fault,
}

pub(super) struct World {
    rng: Rng,
    defect: Option<ChainDefect>,
    now: u64,
    events: BinaryHeap<Reverse<(u64, u64)>>,
    due: BTreeMap<u64, Event>,
    count: u64,
    store: Store,
    processes: Vec<Process>,
    starts: u64,
    writes: u64,
    /// Writes that were answered, those that were refused, and the states that readers had.
    answered: BTreeSet<u64>,
    /// The most writes that a state had of which an answer was given.
    answered_len: usize,
    refused: BTreeSet<u64>,
    /// How often each write was sent: what is known of one attempt says nothing about another.
    attempts: BTreeMap<u64, u32>,
    /// Writes whose client tries again with the same id.
    again: Vec<u64>,
    states: Vec<Vec<u64>>,
    problem: Option<String>,
}

/// Runs a world; the error says which invariant does not hold.
pub(super) fn run(seed: u64, defect: Option<ChainDefect>) -> Result<(), String> {
    World::new(seed, defect).run()
}

impl World {
    fn new(seed: u64, defect: Option<ChainDefect>) -> Self {
        let mut world = Self {
            rng: Rng::new(seed),
            defect,
            now: 0,
            events: BinaryHeap::new(),
            due: BTreeMap::new(),
            count: 0,
            store: Store::default(),
            processes: Vec::new(),
            starts: 0,
            writes: 0,
            answered: BTreeSet::new(),
            answered_len: 0,
            refused: BTreeSet::new(),
            attempts: BTreeMap::new(),
            again: Vec::new(),
            states: Vec::new(),
            problem: None,
        };
        for at in 0..PROCESSES {
            let leads = at > 0 || world.rng.below(2) == 0;
            let process = world.started(Copy::default(), leads);
            world.processes.push(process);
            world.at(world.now + at as u64, Event::Turn(at));
        }
        world.at(5, Event::Client);
        world.at(200, Event::Fault);
        world
    }

    fn started(&mut self, copy: Copy, leads: bool) -> Process {
        self.starts += 1;
        Process {
            id: self.starts,
            copy,
            doing: Doing::Opening,
            leads,
            offset: self.rng.below(10_000_000),
            drift: self.rng.below(20),
            stopped_until: 0,
            denied_until: 0,
            watch: LeaseWatch::with_defect(self.defect),
            end: EndWatch::with_defect(self.defect),
            deletion: Deletion::with_defect(self.defect),
            lease_look: 0,
            walking: false,
            reads: Vec::new(),
            suspects: Vec::new(),
        }
    }

    fn is(&self, defect: ChainDefect) -> bool {
        self.defect == Some(defect)
    }

    fn at(&mut self, when: u64, event: Event) {
        self.count += 1;
        self.events.push(Reverse((when, self.count)));
        self.due.insert(self.count, event);
    }

    fn fails(&mut self, invariant: u32, what: impl Into<String>) {
        let what = what.into();
        self.problem.get_or_insert(format!("invariant {invariant}: {what}"));
    }

    /// The clock of a process, in ms.
    fn clock(&self, at: usize) -> u64 {
        let process = &self.processes[at];
        process.offset + self.now + self.now * process.drift / 1000
    }

    /// Sends a request: it arrives late, never or twice, and its answer is late or lost.
    fn ask(&mut self, at: usize, ask: Ask) {
        let (id, began) = (self.processes[at].id, self.clock(at));
        let usual = 1 + self.rng.below(30);
        let delay = match self.rng.below(200) {
            0 => self.rng.below(8 * LEASE_MS),
            1..=8 => self.rng.below(LEASE_MS),
            _ => usual,
        };
        match self.rng.below(100) {
            0 => {
                let wait = self.now + 300 + self.rng.below(400);
                self.at(wait, Event::Lost(at, id, began, ask));
            }
            1 => {
                // The client repeats it by itself.
                self.is_open(at, &ask);
                self.at(self.now + delay, Event::Arrives(at, id, began, ask.clone(), false));
                let later = self.rng.below(3 * LEASE_MS);
                self.at(self.now + delay + later, Event::Arrives(at, id, began, ask, true));
            }
            _ => self.at(self.now + delay, Event::Arrives(at, id, began, ask, true)),
        }
    }

    fn run(mut self) -> Result<(), String> {
        while let Some(Reverse((when, number))) = self.events.pop() {
            if when > END_MS || self.problem.is_some() {
                break;
            }
            self.now = when;
            let Some(event) = self.due.remove(&number) else { continue };
            self.handle(event);
        }
        self.check_all();
        self.problem.map_or(Ok(()), Err)
    }

    fn handle(&mut self, event: Event) {
        match event {
            Event::Arrives(at, id, began, ask, answers) => {
                let lag = if self.rng.below(4) == 0 { self.rng.below(LEASE_MS) } else { 0 };
                let is_denied = self.processes[at].denied_until > self.now;
                let response = match &ask {
                    Ask::Create(..) if is_denied => Response::Denied,
                    _ => self.store.carry_out(ask.clone(), self.now, lag),
                };
                if !answers {
                    return;
                }
                let back = match self.rng.below(50) {
                    0 => self.rng.below(2 * LEASE_MS),
                    _ => 1 + self.rng.below(20),
                };
                let when = self.now + back;
                match self.rng.below(60) {
                    0 => self.at(when + 300, Event::Lost(at, id, began, ask)),
                    _ => self.at(when, Event::Answers(at, id, began, ask, response)),
                }
            }
            Event::Answers(at, id, began, ask, response) => {
                if let Some(later) = self.is_stopped(at) {
                    return self.at(later, Event::Answers(at, id, began, ask, response));
                }
                if self.processes[at].id == id {
                    self.answer(at, began, ask, response);
                }
            }
            Event::Lost(at, id, began, ask) => {
                if let Some(later) = self.is_stopped(at) {
                    return self.at(later, Event::Lost(at, id, began, ask));
                }
                if self.processes[at].id == id {
                    self.lost(at, ask);
                }
            }
            Event::Turn(at) => {
                if let Some(later) = self.is_stopped(at) {
                    return self.at(later, Event::Turn(at));
                }
                self.turn(at);
                let pause = 20 + self.rng.below(40);
                self.at(self.now + pause, Event::Turn(at));
            }
            Event::Client => {
                self.client();
                let pause = 5 + self.rng.below(120);
                self.at(self.now + pause, Event::Client);
            }
            Event::Fault => {
                self.fault();
                let pause = 100 + self.rng.below(4 * LEASE_MS);
                self.at(self.now + pause, Event::Fault);
            }
        }
    }

    fn is_stopped(&self, at: usize) -> Option<u64> {
        Some(self.processes[at].stopped_until).filter(|until| *until > self.now)
    }

    /// A process loses its credentials or stops for a while, or ends, as a leader in order or not, and comes back with
    /// its copy, without it, or with a copy of another past.
    fn fault(&mut self) {
        let at = self.rng.below(PROCESSES as u64) as usize;
        match self.rng.below(7) {
            // Some creations in flight are refused, and others are not: the log gets a gap.
            5 | 6 => self.processes[at].denied_until = self.now + self.rng.below(200),
            0 | 1 => {
                let most = if self.rng.below(3) == 0 { 12 * LEASE_MS } else { 2 * LEASE_MS };
                self.processes[at].stopped_until = self.now + self.rng.below(most);
            }
            2 => {
                if self.rng.below(2) == 0 {
                    self.release(at);
                }
                self.abandon(at);
                self.processes[at].doing = Doing::Dead;
                self.processes[at].id = 0;
            }
            _ => {
                self.abandon(at);
                let copy = match self.rng.below(4) {
                    0 => Copy::default(),
                    1 => {
                        let mut copy = self.processes[at].copy.clone();
                        copy.writes.push(u64::MAX);
                        copy.position.version += 1;
                        copy.position.digest = [9; 32];
                        copy
                    }
                    _ => self.processes[at].copy.clone(),
                };
                let leads = self.processes[at].leads;
                self.processes[at] = self.started(copy, leads);
            }
        }
    }

    /// A leader without a batch in flight lets others lead at once. It answers nothing from here on.
    fn release(&mut self, at: usize) {
        let process = &self.processes[at];
        let Doing::Leading(leading) = &process.doing else { return };
        let publishes = leading.window.in_flight() > 0 || !leading.held.is_empty();
        if publishes || leading.deposed || self.is_stopped(at).is_some() {
            return;
        }
        let (number, beat) = leading.lease;
        let lease = LeaseText { holder: process.id, beat: beat + 1, released: true };
        self.ask(at, Ask::Lease(number, lease));
    }

    /// The clients of a process that has died do not know what has become of their writes.
    fn abandon(&mut self, at: usize) {
        if let Doing::Leading(leading) = &self.processes[at].doing {
            let open: Vec<u64> = leading.contents.values().map(|write| u64::from(*write)).collect();
            self.again.extend(open.iter().filter(|write| !self.answered.contains(*write)));
        }
    }

    /// A client writes, or reads, where it finds a process that answers.
    fn client(&mut self) {
        let at = self.rng.below(PROCESSES as u64) as usize;
        if self.is_stopped(at).is_some() {
            return;
        }
        let clock = self.clock(at);
        let answered = self.answered_len;
        match &self.processes[at].doing {
            Doing::Leading(leading) if !leading.deposed && leading.tenure.may_answer(clock) => {
                let seen = self.visible(at).len();
                if seen < answered {
                    self.fails(6, format!("a leader reads {seen} of {answered} answered writes"));
                }
                self.write(at);
            }
            Doing::Following => self.processes[at].reads.push((clock, answered)),
            _ => {}
        }
    }

    /// What a read of a process sees.
    fn visible(&self, at: usize) -> Vec<u64> {
        let process = &self.processes[at];
        match &process.doing {
            Doing::Leading(leading) if self.is(ChainDefect::AppliesEarly) => leading.ahead.clone(),
            _ => process.copy.writes.clone(),
        }
    }

    fn write(&mut self, at: usize) {
        let retried = (self.rng.below(3) > 0).then(|| self.again.pop()).flatten();
        if retried.is_none() && self.writes >= 250 {
            return;
        }
        let write = retried.unwrap_or_else(|| {
            self.writes += 1;
            self.writes
        });
        let forgets = self.is(ChainDefect::ForgetsIds);
        let Doing::Leading(leading) = &mut self.processes[at].doing else { return };
        if leading.window.in_flight() >= DEPTH_MAX || leading.gap.is_some() {
            self.again.extend(retried);
            return;
        }
        // The id of a write is its number; the copy knows the ids of what it has.
        if !forgets && leading.ahead.contains(&write) {
            self.again.extend(retried.filter(|write| !self.answered.contains(write)));
            return;
        }
        leading.tickets += 1;
        let (ticket, content) = (leading.tickets, write as u8);
        *self.attempts.entry(write).or_insert(0) += 1;
        leading.firsts.insert(ticket, leading.window.position().next);
        leading.contents.insert(ticket, content);
        leading.ahead.push(write);
        leading.ahead_version += 1;
        let versions = (leading.ahead_version - 1, leading.ahead_version);
        let steps = leading.window.submit(ticket, versions, vec![content]);
        if self.is(ChainDefect::AppliesEarly) {
            self.states.push(self.visible(at));
        }
        self.carry_out(at, steps);
    }

    fn carry_out(&mut self, at: usize, steps: Vec<Step>) {
        for step in steps {
            match step {
                Step::Create { number, bytes } => {
                    if let Doing::Leading(leading) = &mut self.processes[at].doing {
                        leading.sent.insert(number, bytes.clone());
                        leading.creating.insert(number);
                    }
                    self.ask(at, Ask::Create(number, bytes));
                }
                Step::Answer(ticket) => {
                    let Doing::Leading(leading) = &mut self.processes[at].doing else { continue };
                    leading.held.push(ticket);
                }
                Step::Lost(tickets) => {
                    let Doing::Leading(leading) = &self.processes[at].doing else { continue };
                    let lost: Vec<_> = tickets
                        .iter()
                        .filter_map(|ticket| leading.contents.get(ticket))
                        .map(|write| u64::from(*write))
                        .collect();
                    let firsts = tickets.iter().filter_map(|ticket| leading.firsts.get(ticket));
                    let first = firsts.min().copied().unwrap_or(0);
                    self.step_down(at, &tickets);
                    self.processes[at].suspects.push((first, lost));
                    self.ask(at, Ask::List);
                }
            }
        }
        self.answer_held(at);
    }

    /// Answers what is in the chain, while the lease lasts.
    fn answer_held(&mut self, at: usize) {
        let clock = self.clock(at);
        let Doing::Leading(leading) = &mut self.processes[at].doing else { return };
        if leading.held.is_empty() || !leading.tenure.may_answer(clock) {
            return;
        }
        let held = std::mem::take(&mut leading.held);
        let writes: Vec<_> = held
            .iter()
            .filter_map(|ticket| leading.contents.remove(ticket))
            .map(u64::from)
            .collect();
        let position = leading.window.position();
        let copy = &mut self.processes[at].copy;
        copy.writes.extend(&writes);
        copy.position = position;
        self.states.push(copy.writes.clone());
        self.answered_len = self.answered_len.max(copy.writes.len());
        self.answered.extend(writes);
    }

    /// An attempt of a creation has no answer, or is not the first one.
    fn is_open(&mut self, at: usize, ask: &Ask) {
        if let (Ask::Create(number, _), Doing::Leading(leading)) =
            (ask, &mut self.processes[at].doing)
        {
            leading.open.insert(*number);
        }
    }

    /// The store has refused a creation.
    fn denied(&mut self, at: usize, number: u64) {
        let process = &mut self.processes[at];
        let Doing::Leading(leading) = &mut process.doing else {
            // That of a fence.
            process.walking = false;
            return;
        };
        leading.creating.remove(&number);
        if leading.gap.is_none_or(|(first, _)| number < first) {
            leading.gap = Some((number, leading.open.contains(&number)));
        }
        self.give_up(at);
    }

    /// A leader whose log has a gap waits for its other creations. Then what is before the gap is answered, and what is
    /// behind it is refused: unless the missing object may still come, and make it valid.
    fn give_up(&mut self, at: usize) {
        self.answer_held(at);
        let Doing::Leading(leading) = &self.processes[at].doing else { return };
        let Some((_, is_open)) = leading.gap else { return };
        if !leading.creating.is_empty() || !leading.held.is_empty() {
            return;
        }
        let tickets: Vec<_> = leading.contents.keys().copied().collect();
        let writes: Vec<_> = leading.contents.values().map(|write| u64::from(*write)).collect();
        self.step_down(at, &tickets);
        match is_open && !self.is(ChainDefect::RefusesOpen) {
            true => self.again.extend(writes),
            false => self.refused.extend(writes),
        }
    }

    /// The process reads again. What it has not answered is open, except for what is `known`.
    fn step_down(&mut self, at: usize, known: &[u64]) {
        let Doing::Leading(leading) = &self.processes[at].doing else { return };
        let open = leading.contents.iter().filter(|(ticket, _)| !known.contains(ticket));
        let open: Vec<_> = open.map(|(_, write)| u64::from(*write)).collect();
        self.again.extend(open.iter().filter(|write| !self.answered.contains(*write)));
        let process = &mut self.processes[at];
        process.doing = Doing::Following;
        process.watch = LeaseWatch::with_defect(self.defect);
        process.lease_look = 0;
        process.walking = false;
    }

    fn turn(&mut self, at: usize) {
        let clock = self.clock(at);
        let process = &mut self.processes[at];
        match &mut process.doing {
            Doing::Dead => {
                if self.rng.below(10) == 0 {
                    let (copy, leads) = (process.copy.clone(), process.leads);
                    self.processes[at] = self.started(copy, leads);
                }
            }
            Doing::Opening if !process.walking => {
                process.walking = true;
                self.ask(at, Ask::List);
            }
            Doing::Following | Doing::Claiming(..) if !process.walking => {
                let is_candidate = process.leads && matches!(process.doing, Doing::Following);
                if is_candidate && clock >= process.lease_look && self.rng.below(2) == 0 {
                    process.lease_look = clock + LEASE_MS / 6;
                    return self.ask(at, Ask::ReadLease);
                }
                process.walking = true;
                let next = process.copy.position.next;
                // How far behind it is decides; here it is chance.
                let ask = if self.rng.below(4) == 0 { Ask::ListMerged } else { Ask::Read(next) };
                self.ask(at, ask);
            }
            Doing::Leading(leading) => {
                let next = leading.window.position().next;
                if leading.tenure.is_due(clock) && !leading.renewing && !leading.deposed {
                    leading.renewing = true;
                    let (number, beat) = leading.lease;
                    let lease = LeaseText { holder: process.id, beat: beat + 1, released: false };
                    self.ask(at, Ask::Lease(number, lease));
                } else if next >= leading.snapshot_at + SNAPSHOT_OBJECTS
                    && process.copy.position.next > 0
                    && leading.held.is_empty()
                {
                    leading.snapshot_at = next;
                    let copy = process.copy.clone();
                    let mark =
                        Mark { version: copy.position.version, number: copy.position.next - 1 };
                    self.ask(at, Ask::Snapshot(mark, copy));
                } else if self.rng.below(8) == 0 {
                    self.ask(at, Ask::List);
                } else {
                    self.copy_log(at);
                }
                self.give_up(at);
            }
            Doing::Opening | Doing::Following | Doing::Claiming(..) => {}
        }
    }
}
