//! What consumers ask of the writer thread: messages, and the ends and locks of those they have.

use super::Id;
use super::inbox::Inbox;
use super::listener::Listener;
use super::queue::{Deliver, Elsewhere, Receive, Wish};
use crate::engine::{Report, Work};
use crate::model::{Ask, Error, LOCK_RENEWAL_MS, Outcome, Reason, Result};

/// Is told whether the message was still the asker's.
pub type Reply = Box<dyn FnOnce(Result<bool>) + Send>;

/// Gets the error with which a listener ends by itself.
pub type Lost = Box<dyn FnOnce(Error) + Send>;

/// An [`Ask`] and who waits for its answer.
pub(super) struct Asked {
    what: Ask,
    reply: Reply,
}

impl Asked {
    pub(super) fn settles(&self) -> bool {
        matches!(self.what, Ask::Settle(_))
    }

    pub(super) fn answer(self, answer: Result<bool>) {
        (self.reply)(answer);
    }

    /// Adds it to the work, behind what is there of its kind.
    pub(super) fn join(&self, work: &mut Work) {
        match &self.what {
            Ask::Settle(settlement) => work.settlements.push(settlement.clone()),
            Ask::Extend(renewal) => work.renewals.push(*renewal),
        }
    }

    /// Answers all that have joined one work, which were the last of their kinds.
    pub(super) fn tell(asked: Vec<Self>, report: &mut Report) {
        let settling = asked.iter().filter(|asked| asked.settles()).count();
        let extending = asked.len() - settling;
        let last =
            |all: &mut Vec<bool>, count: usize| all.split_off(all.len().saturating_sub(count));
        let mut settled = last(&mut report.settled, settling).into_iter();
        let mut renewed = last(&mut report.renewed, extending).into_iter();
        for asked in asked {
            let held = if asked.settles() { settled.next() } else { renewed.next() };
            asked.answer(Ok(held.unwrap_or(false)));
        }
    }
}

impl Inbox {
    pub(super) fn listen(
        &self,
        wish: Wish,
        credits: usize,
        deliver: Deliver,
        lost: Lost,
    ) -> Result<Id> {
        // Deno's lock has a renewal of its own; others are renewed three times a lock.
        let renewal_ms = if wish.queue.is_empty() { LOCK_RENEWAL_MS } else { wish.lock_ms / 3 };
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal.clone() {
            return Err(error);
        }
        let id = waiting.consumers.listen(wish, credits, renewal_ms, deliver);
        waiting.lost.insert(id, lost);
        drop(waiting);
        self.nudge();
        Ok(id)
    }

    pub(super) fn listen_for(&self, elsewhere: Elsewhere, deliver: Deliver) -> Result<Id> {
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal.clone() {
            return Err(error);
        }
        let id = waiting.consumers.listen_for(elsewhere, deliver);
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
        let told = waiting.lost.remove(&id);
        drop(waiting);
        drop((finished, told));
        was_open
    }

    /// Ends all listeners of this process, for which there is no hope of messages: they are told.
    /// Answers how many there were.
    pub(super) fn refuse_listeners(&self, error: &Error) -> usize {
        let lost = std::mem::take(&mut self.waiting.lock().lost);
        let ended = lost.keys().filter(|id| self.stop_listening(**id)).count();
        lost.into_values().for_each(|lost| lost(error.clone()));
        ended
    }

    pub(super) fn unlisten(&self, id: Id) -> bool {
        let now_ms = self.env.now_ms();
        let leave = |listener: &mut Listener| listener.leave(now_ms);
        let mut waiting = self.waiting.lock();
        let (was_open, finished) = waiting.consumers.end(id, now_ms, leave);
        let told = waiting.lost.remove(&id);
        drop(waiting);
        drop((finished, told));
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

    pub(super) fn receive(&self, id: Id, wish: Wish, once: bool, reply: Receive) {
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal.clone() {
            drop(waiting);
            reply(Err(error));
            return;
        }
        waiting.consumers.receive(id, wish, once, reply);
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
        let mut waiting = self.waiting.lock();
        if let Some(error) = waiting.refusal.clone() {
            drop(waiting);
            reply(Err(error));
            return;
        }
        waiting.asked.push(Asked { what, reply });
        drop(waiting);
        self.ring();
    }
}
