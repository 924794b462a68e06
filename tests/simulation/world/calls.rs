//! The calls of clients: each is sent to a server, and again with the same ids when its answer is lost, or
//! without a reason.

use super::{Call, CallId, Message, SERVERS, What, World};

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
        self.calls.push(Call { client, writes, heard: self.heard, answered: false, repetitions });
        self.send_call(call);
    }

    pub(super) fn send_call(&mut self, id: CallId) {
        // Most calls go to the first place, so that leads last.
        let place = if self.rng.below(4) > 0 { 0 } else { self.rng.below(SERVERS as u64) as usize };
        let Some(server) = self.places[place] else {
            return self.after(5000, What::Send(id));
        };
        let us = self.rng.below(300);
        self.after(us, What::ToServer(server, Message::Call(id)));
        if self.calls[id.0].repetitions > 0 && self.rng.below(8) == 0 {
            // It arrives a second time, also after its answer.
            self.calls[id.0].repetitions -= 1;
            let us = self.rng.pick(&[100, 2000, 30_000, 100_000]);
            self.after(us, What::Send(id));
        }
    }

    pub(super) fn end_call(&mut self, id: CallId, version: Option<u64>) {
        let is_lost = version.is_none() || self.rng.below(8) == 0;
        let call = &mut self.calls[id.0];
        if is_lost && !call.answered && call.repetitions > 0 {
            call.repetitions -= 1;
            let us = self.rng.below(20_000);
            return self.after(us, What::Send(id));
        }
        if !std::mem::replace(&mut call.answered, true) {
            let client = call.client;
            if let Some(version) = version {
                self.clients[client].hear(version);
            }
            let us = self.rng.below(1000);
            self.after(us, What::Call(client));
        }
    }
}
