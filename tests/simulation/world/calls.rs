//! The calls of clients: each is sent to a server, and again with the same ids when its answer is lost or
//! late. A late attempt may still arrive, also after the answer to a later one.

use openkv::model::{AtomicWrite, Decision, Kind};

use super::{CallId, End, Message, SERVERS, Sent, What, World};

pub(super) struct Call {
    client: usize,
    pub(super) writes: Vec<AtomicWrite>,
    pub(super) heard: u64,
    pub(super) answered: bool,
    /// How often it may be sent again.
    repetitions: u64,
    /// How often it was sent.
    sent: u32,
    /// The attempt whose answer counts.
    awaited: Option<u32>,
    /// Whether an attempt may have happened, or may do so yet.
    lost: bool,
}

impl World {
    pub(super) fn call(&mut self, client: usize) {
        let Some(caller) = self.clients.get_mut(client).filter(|caller| caller.calls > 0) else {
            return;
        };
        caller.calls -= 1;
        let now_ms = (self.now_us / 1000) as i64 + self.postgres.clock_ms;
        let writes = caller.writes(&mut self.rng, now_ms);
        let has_ids = writes.iter().all(|write| write.id().is_some());
        let repetitions = if has_ids { self.rng.below(8) } else { 0 };
        let call = CallId(self.calls.len());
        let (sent, awaited, heard) = (0, None, self.heard);
        let (answered, lost) = (false, false);
        let all = Call { client, writes, heard, answered, repetitions, sent, awaited, lost };
        self.calls.push(all);
        self.send_call(call);
    }

    pub(super) fn send_call(&mut self, id: CallId) {
        // Most calls go to the first place, so that leads last.
        let place = if self.rng.below(4) > 0 { 0 } else { self.rng.below(SERVERS as u64) as usize };
        let Some(server) = self.places[place] else {
            return self.after(5000, What::Send(id));
        };
        let call = &mut self.calls[id.0];
        call.sent += 1;
        let sent = Sent { call: id, attempt: call.sent, repeated: call.lost };
        call.awaited = Some(call.sent);
        let mut us = self.rng.below(300);
        if call.repetitions > 0 && self.rng.below(8) == 0 {
            // The client does not wait for the answer.
            call.repetitions -= 1;
            (call.awaited, call.lost) = (None, true);
            if self.rng.below(2) == 0 {
                us += self.rng.pick(&[2000, 30_000, 100_000]);
            }
            let us = self.rng.pick(&[100, 2000, 30_000, 100_000]);
            self.after(us, What::Send(id));
        }
        self.after(us, What::ToServer(server, Message::Call(sent)));
    }

    /// The writes of an attempt.
    pub(super) fn writes_of(&self, Sent { call, repeated, .. }: Sent) -> Vec<AtomicWrite> {
        let writes = self.calls[call.0].writes.iter().cloned();
        writes.map(|write| if repeated { write.repeated() } else { write }).collect()
    }

    pub(super) fn end_call(&mut self, Sent { call: id, attempt, .. }: Sent, end: End) {
        let drops_answer = self.rng.below(8) == 0;
        let call = &mut self.calls[id.0];
        if call.awaited != Some(attempt) {
            return;
        }
        call.awaited = None;
        let is_final = match &end {
            End::Nothing => false,
            End::Unknown => {
                call.lost = true;
                false
            }
            End::Answered { decisions, .. } => {
                let is_known = |decision: &Decision| !matches!(decision, Decision::Rejected(error) if error.kind() == Kind::OutcomeUnknown);
                let is_final = !drops_answer && decisions.iter().all(is_known);
                call.lost |= !is_final;
                is_final
            }
        };
        if !is_final && call.repetitions > 0 {
            call.repetitions -= 1;
            let us = self.rng.below(20_000);
            return self.after(us, What::Send(id));
        }
        call.answered = true;
        let client = call.client;
        if let End::Answered { version, decisions } = end {
            if is_final {
                let ids = call.writes.iter().map(AtomicWrite::id);
                let known = ids.zip(decisions).filter_map(|(id, decision)| Some((id?, decision)));
                self.believed.extend(known);
            }
            self.clients[client].hear(version);
        }
        let us = self.rng.below(1000);
        self.after(us, What::Call(client));
    }
}
