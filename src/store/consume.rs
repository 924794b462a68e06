//! The requests of consumers to the writer thread: messages, settlements and lock renewals.

use super::listener::Listener;
use super::lock_request::{LockRequest, Reply};
use super::queue::RemoteConsumer;
use super::write_queue::{Lost, WriteQueue};
use crate::model::{
    Ask, ConsumeOptions, Deliver, Error, Id, LOCK_RENEWAL_MS, Outcome, Reason, Receive, Result,
};

impl WriteQueue {
    pub(super) fn listen(
        &self,
        options: ConsumeOptions,
        credits: usize,
        deliver: Deliver,
        lost: Lost,
    ) -> Result<Id> {
        // Deno's lock has a renewal interval of its own. Other locks are renewed three times in
        // their duration.
        let renewal_ms =
            if options.queue.is_empty() { LOCK_RENEWAL_MS } else { options.lock_ms / 3 };
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal.clone() {
            return Err(error);
        }
        let id = waiting.consumers.listen(options, credits, renewal_ms, deliver);
        waiting.lost.insert(id, lost);
        drop(waiting);
        self.nudge();
        Ok(id)
    }

    pub(super) fn listen_for(&self, consumer: RemoteConsumer, deliver: Deliver) -> Result<Id> {
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal.clone() {
            return Err(error);
        }
        let id = waiting.consumers.listen_for(consumer, deliver);
        // The end of the listener drops `deliver`, which ends the connection's stream.
        waiting.lost.insert(id, Box::new(drop));
        drop(waiting);
        self.nudge();
        Ok(id)
    }

    pub(super) fn grant(&self, listener: Id, granted: u64) {
        if let Some(listener) = self.waiting.lock().consumers.listener(listener) {
            listener.grant(granted);
        }
        self.ring();
    }

    pub(super) fn sent(&self, listener: Id, sent: u64, returned: u64) {
        if let Some(listener) = self.waiting.lock().consumers.listener(listener) {
            listener.sent(sent, returned);
        }
        self.ring();
    }

    pub(super) fn stop_listening(&self, id: Id) -> bool {
        let now_ms = self.env.now_ms();
        let mut waiting = self.waiting.lock();
        let (was_open, finished) = waiting.consumers.end(id, now_ms, Listener::stop);
        let removed = waiting.lost.remove(&id);
        drop(waiting);
        drop((finished, removed));
        was_open
    }

    /// Ends all listeners and all waits of `receive` with this error, because the store cannot
    /// detect messages. Returns the number of listeners.
    pub(super) fn refuse_consumers(&self, error: &Error) -> usize {
        let (lost, receivers) = {
            let mut waiting = self.waiting.lock();
            (std::mem::take(&mut waiting.lost), waiting.consumers.cancel_all())
        };
        let ended = lost.keys().filter(|id| self.stop_listening(**id)).count();
        lost.into_values().for_each(|lost| lost(error.clone()));
        receivers.into_iter().for_each(|reply| reply(Err(error.clone())));
        ended
    }

    pub(super) fn unlisten(&self, id: Id) -> bool {
        let now_ms = self.env.now_ms();
        let leave = |listener: &mut Listener| listener.leave(now_ms);
        let mut waiting = self.waiting.lock();
        let (was_open, finished) = waiting.consumers.end(id, now_ms, leave);
        let removed = waiting.lost.remove(&id);
        drop(waiting);
        drop((finished, removed));
        was_open
    }

    pub(super) fn settle(&self, listener: Id, number: i64, outcome: Outcome, why: Option<Reason>) {
        let mut waiting = self.waiting.lock();
        let settlement = waiting.consumers.settle(listener, number, outcome, why);
        if waiting.refusal.is_none() {
            waiting.settlements.extend(settlement);
        }
        let _finished = waiting.consumers.forget_finished(self.env.now_ms());
        drop(waiting);
        self.ring();
    }

    pub(super) fn new_receiver(&self) -> Id {
        self.waiting.lock().consumers.new_id()
    }

    pub(super) fn receive(&self, id: Id, options: ConsumeOptions, once: bool, reply: Receive) {
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal.clone() {
            drop(waiting);
            reply(Err(error));
            return;
        }
        waiting.consumers.receive(id, options, once, reply);
        drop(waiting);
        if once { self.ring() } else { self.nudge() }
    }

    pub(super) fn receive_cancel(&self, id: Id) {
        let reply = self.waiting.lock().consumers.cancel(id);
        if let Some(reply) = reply {
            reply(Ok(None));
        }
    }

    pub(super) fn ask(&self, what: Ask, reply: Reply) {
        let request = LockRequest { ask: what, reply };
        if let Err((request, error)) = self.offer(request, |waiting, it| waiting.asked.push(it)) {
            (request.reply)(Err(error));
        }
    }
}
