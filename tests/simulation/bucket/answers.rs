//! What a process does with the answers of the store.

use std::collections::{BTreeMap, BTreeSet};

use openkv::chain::{
    ChainDefect, EndWatch, EntryKind, LeaseState, Mark, Standing, Tenure, Window, decode, encode,
};

use super::store::{Ask, Copy, LeaseText, Response};
use super::{Doing, LEASE_MS, Leading, World};

impl World {
    /// A request has no answer: it is open whether it has happened.
    pub(super) fn lost(&mut self, at: usize, ask: Ask) {
        self.is_open(at, &ask);
        let process = &mut self.processes[at];
        match (ask, &mut process.doing) {
            // The object with the number is looked up.
            (Ask::Create(number, bytes), _) => {
                let again = if self.rng.below(2) == 0 {
                    Ask::Read(number)
                } else {
                    Ask::Create(number, bytes)
                };
                self.ask(at, again);
            }
            (Ask::Lease(..), Doing::Leading(leading)) => {
                // Looked up as well.
                leading.renewing = true;
                self.ask(at, Ask::ReadLease);
            }
            (Ask::Read(number), Doing::Leading(_)) => self.ask(at, Ask::Read(number)),
            (Ask::ReadLease, Doing::Leading(leading)) => leading.renewing = false,
            (Ask::Read(_) | Ask::List | Ask::ListMerged, _) => process.walking = false,
            _ => {}
        }
    }

    pub(super) fn answer(&mut self, at: usize, began: u64, ask: Ask, response: Response) {
        match (ask, response) {
            (Ask::Create(number, bytes), Response::Created) => self.filled(at, number, &bytes),
            (ask @ Ask::Create(number, _), Response::Taken) => {
                self.is_open(at, &ask);
                self.ask(at, Ask::Read(number));
            }
            (Ask::Create(number, _), Response::Denied) => self.denied(at, number),
            (Ask::Read(number), Response::Object(found)) => self.read(at, began, number, found),
            (Ask::ReadLease, Response::Lease(number, lease)) => {
                self.looked(at, began, number, lease)
            }
            (Ask::Lease(_, lease), Response::Replaced(number)) => {
                self.replaced(at, began, lease, number)
            }
            (Ask::ReadAll(..), Response::Objects(found)) => self.merge(at, found),
            (Ask::ListMerged, Response::Merged(listed)) => self.listed_merged(at, &listed),
            (Ask::List, Response::Listed(marks, newest)) => self.listed(at, began, marks, newest),
            _ => {}
        }
    }

    /// The object with a number is known.
    fn filled(&mut self, at: usize, number: u64, bytes: &[u8]) {
        let Ok((entry, content, digest)) = decode(bytes) else {
            return self.fails(3, "an object cannot be read");
        };
        let process = &mut self.processes[at];
        match &mut process.doing {
            Doing::Leading(leading) => {
                leading.creating.remove(&number);
                let steps = leading.window.filled(entry, digest);
                self.carry_out(at, steps);
                self.give_up(at);
            }
            Doing::Claiming(tenure, lease, beat) if number == process.copy.position.next => {
                let (tenure, lease) = (*tenure, (*lease, *beat));
                let own = entry.kind == EntryKind::Fence && entry == process.copy.position.fence();
                process.copy.take(&entry, content, digest);
                if !own {
                    return;
                }
                let (ahead, position) = (process.copy.writes.clone(), process.copy.position);
                process.doing = Doing::Leading(Box::new(Leading {
                    window: Window::with_defect(position, self.defect),
                    tenure,
                    lease,
                    renewing: false,
                    contents: BTreeMap::new(),
                    ahead,
                    ahead_version: position.version,
                    held: Vec::new(),
                    tickets: 0,
                    snapshot_at: position.next,
                    merge_from: None,
                    deposed: false,
                    firsts: BTreeMap::new(),
                    sent: BTreeMap::new(),
                    creating: BTreeSet::new(),
                    open: BTreeSet::new(),
                    gap: None,
                }));
            }
            _ => {}
        }
    }

    fn read(&mut self, at: usize, began: u64, number: u64, found: Option<Vec<u8>>) {
        let clock = self.clock(at);
        let behind_gap = self.is(ChainDefect::AppliesBehindGap);
        let process = &mut self.processes[at];
        match (&process.doing, found) {
            (Doing::Leading(_), Some(bytes)) => self.filled(at, number, &bytes),
            // Its own creation has not arrived; the same bytes go again.
            (Doing::Leading(leading), None) => {
                if let Some(bytes) = leading.sent.get(&number).cloned() {
                    self.ask(at, Ask::Create(number, bytes));
                }
            }
            (Doing::Following | Doing::Claiming(..), found) => {
                process.walking = false;
                if number != process.copy.position.next {
                    return;
                }
                if !process.end.trusts(clock, LEASE_MS) {
                    process.walking = true;
                    return self.ask(at, Ask::List);
                }
                match found {
                    Some(bytes) => {
                        let Ok((entry, content, digest)) = decode(&bytes) else {
                            return self.fails(3, "an object cannot be read");
                        };
                        if process.copy.take(&entry, content, digest) == Standing::Batch {
                            self.states.push(process.copy.writes.clone());
                        } else if behind_gap && entry.epoch == process.copy.position.epoch {
                            process.copy.writes.extend(content.iter().map(|one| u64::from(*one)));
                            self.states.push(process.copy.writes.clone());
                        }
                    }
                    None if behind_gap && self.store.log.contains_key(&(number + 1)) => {
                        process.copy.position.next += 1;
                    }
                    None => {
                        process.end.found(began);
                        self.at_end(at, began);
                    }
                }
            }
            (Doing::Opening | Doing::Dead, _) => {}
        }
    }

    /// A process that does not lead has found the end of the log.
    fn at_end(&mut self, at: usize, began: u64) {
        let process = &mut self.processes[at];
        let seen = process.copy.writes.len();
        match &process.doing {
            Doing::Claiming(..) => {
                let fence = process.copy.position.fence();
                let bytes = encode(&fence, &[]).0;
                process.walking = true;
                self.ask(at, Ask::Create(fence.number, bytes));
            }
            _ => {
                let ended = |(since, _): &(u64, usize)| *since < began;
                let most =
                    process.reads.iter().filter(|read| ended(read)).map(|(_, most)| *most).max();
                process.reads.retain(|read| !ended(read));
                if let Some(most) = most.filter(|most| *most > seen) {
                    self.fails(6, format!("a reader reads {seen} of {most} answered writes"));
                }
            }
        }
    }

    fn looked(&mut self, at: usize, began: u64, number: u64, lease: Option<LeaseText>) {
        let clock = self.clock(at);
        let process = &mut self.processes[at];
        match &mut process.doing {
            Doing::Leading(leading) => {
                leading.renewing = false;
                match lease {
                    Some(LeaseText { holder, beat, .. }) if holder == process.id => {
                        leading.lease = (number, beat);
                    }
                    _ => self.depose(at),
                }
            }
            Doing::Following => {
                let state = match &lease {
                    Some(lease) if !lease.released && lease.holder != process.id => {
                        LeaseState::Held(format!("{}/{}", lease.holder, lease.beat))
                    }
                    _ => LeaseState::Free,
                };
                if process.watch.may_claim(&state, (began, clock), LEASE_MS) {
                    let beat = lease.map_or(0, |lease| lease.beat) + 1;
                    let lease = LeaseText { holder: process.id, beat, released: false };
                    self.ask(at, Ask::Lease(number, lease));
                }
            }
            Doing::Opening | Doing::Claiming(..) | Doing::Dead => {}
        }
    }

    fn replaced(&mut self, at: usize, began: u64, lease: LeaseText, number: Option<u64>) {
        let ended = self.clock(at);
        let defect = self.defect;
        let process = &mut self.processes[at];
        match (&mut process.doing, number) {
            (Doing::Leading(leading), Some(number)) => {
                leading.renewing = false;
                leading.lease = (number, lease.beat);
                leading.tenure.renewed(began, ended);
                self.answer_held(at);
            }
            // It may be an own renewal that has happened twice.
            (Doing::Leading(_), None) => self.ask(at, Ask::ReadLease),
            (Doing::Following, Some(number)) => {
                let tenure = Tenure::with_defect(LEASE_MS, began, defect);
                process.doing = Doing::Claiming(tenure, number, lease.beat);
                process.walking = false;
            }
            _ => {}
        }
    }

    /// Another process has the lease.
    fn depose(&mut self, at: usize) {
        if self.is(ChainDefect::AnswersWithoutLease) || self.is(ChainDefect::IgnoresFence) {
            return;
        }
        self.step_down(at, &[]);
    }

    fn listed(&mut self, at: usize, began: u64, marks: Vec<Mark>, newest: Option<(Mark, Copy)>) {
        let clock = self.clock(at);
        let keeps = self.is(ChainDefect::KeepsDivergedCache);
        for (first, writes) in std::mem::take(&mut self.processes[at].suspects) {
            match marks.iter().all(|mark| mark.number < first) {
                true => self.refused.extend(writes),
                false => self.again.extend(writes),
            }
        }
        let process = &mut self.processes[at];
        match &mut process.doing {
            Doing::Leading(leading) => {
                let next = leading.window.position().next;
                let start = marks.last().map_or(0, |mark| mark.number + 1);
                leading.merge_from = Some(leading.merge_from.map_or(start, |from| from.max(start)));
                let (last, old) = process.deletion.look(&marks, next, clock, LEASE_MS);
                if last.is_some() || !old.is_empty() {
                    self.ask(at, Ask::Delete(last, old));
                }
            }
            Doing::Opening | Doing::Following | Doing::Claiming(..) => {
                let is_opening = matches!(process.doing, Doing::Opening);
                process.walking = false;
                let position = process.copy.position;
                let last = position.next.checked_sub(1);
                // The object that the copy ends with tells whether it is a beginning of the chain.
                let object = last.and_then(|last| self.store.log.get(&last));
                let digest = object.and_then(|bytes| decode(bytes).ok()).map(|(.., digest)| digest);
                let is_beginning = match last {
                    None => process.copy == Copy::default(),
                    Some(_) => process.copy.is_at(digest, &self.store.ever),
                };
                let leads_on = newest.as_ref().is_none_or(|(mark, _)| position.next > mark.number);
                if leads_on && (!is_opening || is_beginning || keeps) {
                    if is_opening {
                        process.doing = Doing::Following;
                    }
                    process.end.found(began);
                    return;
                }
                process.copy = newest.map(|(_, copy)| copy).unwrap_or_default();
                process.end = EndWatch::with_defect(self.defect);
                self.states.push(process.copy.writes.clone());
                if is_opening {
                    process.doing = Doing::Following;
                }
            }
            Doing::Dead => {}
        }
    }
}
