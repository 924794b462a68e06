//! The consumers of queues, and the messages that each of them handles.

use std::collections::VecDeque;
use std::sync::Arc;

use super::listener::Listener;
use openkv_core::model::{
    Ack, CLAIM_MESSAGES_MAX, Claim, ConsumeOptions, Deliver, Delivery, Dispatched, Id, LockLost,
    Outcome, Reason, Receive, Renewal, Settlement,
};

/// A remote consumer. It settles its messages with [`super::Store::ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteConsumer {
    /// The queue and the options of its consumption.
    pub options: ConsumeOptions,
    /// Credits at first.
    pub credits: u64,
    /// Most unused credits at one time.
    pub most: u64,
}

/// Marks the ids of remote consumers, so that a remote consumer cannot name a local one.
const REMOTE: Id = 1 << 63;

/// The id of a remote consumer in this store.
#[must_use]
pub const fn remote_number(number: u64) -> Id {
    number | REMOTE
}

/// Claimed messages, assigned to consumers.
#[derive(Default)]
pub(super) struct Dispatch {
    /// The messages of each listener.
    pub(super) hands: Vec<(Id, Arc<Deliver>, Vec<Dispatched>)>,
    /// The answers of `receive`.
    pub(super) received: Vec<(Receive, Option<Delivery>)>,
    /// Messages without a consumer, to be put back.
    pub(super) left: Vec<Settlement>,
}

/// All consumers of a store.
#[derive(Default)]
pub(super) struct Consumers {
    last_id: Id,
    next_number: i64,
    listeners: Vec<Listener>,
    receivers: VecDeque<Receiver>,
    /// The listener to start with: listeners get messages in rotation.
    turn: usize,
}

/// Adds credits to the claims. Returns whether at least one place fitted.
fn add_credits(claims: &mut Vec<Claim>, options: &ConsumeOptions, credits: usize) -> bool {
    let ConsumeOptions { queue, lock_ms } = options;
    let same = |claim: &&mut Claim| claim.queue == *queue && claim.lock_ms == *lock_ms;
    match claims.iter_mut().find(same) {
        Some(claim) => {
            let room = CLAIM_MESSAGES_MAX - claim.max;
            claim.max += credits.min(room);
            room > 0
        }
        None => {
            let max = credits.min(CLAIM_MESSAGES_MAX);
            claims.push(Claim { queue: queue.clone(), max, lock_ms: *lock_ms, lock: 0 });
            true
        }
    }
}

/// A caller of `receive`.
struct Receiver {
    id: Id,
    options: ConsumeOptions,
    /// Answered after the first claim, with or without a message.
    once: bool,
    /// The first claim is under way.
    looked: bool,
    reply: Receive,
}

impl Consumers {
    /// `somewhere` is a random first id. So an id from an earlier process on the same file is
    /// unknown here.
    pub(super) fn new(somewhere: u64) -> Self {
        Self { last_id: somewhere, ..Self::default() }
    }

    /// An id that no other consumer has.
    pub(super) fn new_id(&mut self) -> Id {
        self.last_id = (self.last_id.wrapping_add(1) & !REMOTE).max(1);
        self.last_id
    }

    pub(super) fn listen(
        &mut self,
        options: ConsumeOptions,
        free: usize,
        renewal_ms: i64,
        deliver: Deliver,
    ) -> Id {
        let id = self.new_id();
        self.listeners.push(Listener::local(id, options, deliver, free, renewal_ms));
        id
    }

    pub(super) fn listen_for(&mut self, consumer: RemoteConsumer, deliver: Deliver) -> Id {
        let id = remote_number(self.new_id());
        let RemoteConsumer { options, credits, most } = consumer;
        self.listeners.push(Listener::remote(id, options, deliver, credits, most));
        id
    }

    /// The listener with this id, unless its owner is gone.
    pub(super) fn listener(&mut self, id: Id) -> Option<&mut Listener> {
        self.listeners.iter_mut().find(|listener| listener.id == id && listener.is_open())
    }

    pub(super) fn receive(&mut self, id: Id, options: ConsumeOptions, once: bool, reply: Receive) {
        self.receivers.push_back(Receiver { id, options, once, looked: false, reply });
    }

    /// Removes the reply of a waiting caller.
    pub(super) fn cancel(&mut self, id: Id) -> Option<Receive> {
        let at = self.receivers.iter().position(|receiver| receiver.id == id)?;
        self.receivers.remove(at).map(|receiver| receiver.reply)
    }

    /// Removes the replies of all waiting callers.
    pub(super) fn cancel_all(&mut self) -> Vec<Receive> {
        self.receivers.drain(..).map(|receiver| receiver.reply).collect()
    }

    /// Listeners whose owners are not gone.
    pub(super) fn listeners(&self) -> usize {
        self.listeners.iter().filter(|listener| listener.is_open()).count()
    }

    /// Ends a listener by `stop` or `leave`. Returns whether it was open, and the listeners that
    /// are forgotten now. The caller drops those outside of any lock, because they may put messages
    /// back.
    pub(super) fn end(
        &mut self,
        id: Id,
        now_ms: i64,
        how: impl FnOnce(&mut Listener) -> bool,
    ) -> (bool, Vec<Listener>) {
        let found = self.listeners.iter_mut().find(|listener| listener.id == id);
        let was_open = found.is_some_and(how);
        (was_open, self.forget_finished(now_ms))
    }

    /// Forgets finished listeners. The caller drops them as those of [`Self::end`].
    pub(super) fn forget_finished(&mut self, now_ms: i64) -> Vec<Listener> {
        self.listeners.extract_if(.., |listener| listener.is_finished(now_ms)).collect()
    }

    /// The queues that have a consumer, with or without credits.
    pub(super) fn queues(&self) -> impl Iterator<Item = &str> {
        self.queues_of(Listener::is_open)
    }

    /// The queues that have a consumer with credits.
    pub(super) fn open_queues(&self) -> impl Iterator<Item = &str> {
        self.queues_of(|listener| listener.free() > 0)
    }

    /// The queues of these listeners and of all receivers.
    fn queues_of(&self, takes: fn(&Listener) -> bool) -> impl Iterator<Item = &str> {
        let listeners = self.listeners.iter().filter(move |listener| takes(listener));
        let receivers = self.receivers.iter().map(|receiver| &receiver.options);
        let all = listeners.map(|listener| &listener.options).chain(receivers);
        all.map(|options| options.queue.as_str())
    }

    /// Whether a caller waits for its first claim.
    pub(super) fn is_requested(&self) -> bool {
        self.receivers.iter().any(|receiver| receiver.once)
    }

    /// The claims for all consumers of the queues that `due` selects, without locks yet. A caller
    /// that asks once is always included.
    pub(super) fn claims(&mut self, due: impl Fn(&str) -> bool) -> Vec<Claim> {
        let mut claims: Vec<Claim> = Vec::new();
        for receiver in &mut self.receivers {
            if receiver.once || due(&receiver.options.queue) {
                receiver.looked |= add_credits(&mut claims, &receiver.options, 1);
            }
        }
        for listener in &self.listeners {
            if listener.free() > 0 && due(&listener.options.queue) {
                add_credits(&mut claims, &listener.options, listener.free());
            }
        }
        // Claims of one queue with different lock durations take turns at being first.
        let first = self.turn % claims.len().max(1);
        claims.rotate_left(first);
        claims
    }

    /// Settles a delivery; `None` if it is not under way. Its listener may be finished now.
    pub(super) fn settle(
        &mut self,
        id: Id,
        number: i64,
        outcome: Outcome,
        reason: Option<Reason>,
    ) -> Option<Settlement> {
        let listener = self.listeners.iter_mut().find(|listener| listener.id == id)?;
        let (message, lock) = listener.settle(number)?;
        Some(Settlement { reason, ..Settlement::new(message, lock, outcome) })
    }

    /// Settles a delivery that its listener did not take. The listener may be finished now.
    pub(super) fn refused(
        &mut self,
        id: Id,
        Dispatched { number, delivery }: Dispatched,
    ) -> Settlement {
        self.settle(id, number, Outcome::Returned, None);
        Settlement::new(delivery.id, delivery.lock, Outcome::Returned)
    }

    /// The time of the next lock renewal.
    pub(super) fn renewal_ms(&self) -> Option<i64> {
        self.listeners.iter().filter_map(Listener::renew_at_ms).min()
    }

    /// The locks that are due for renewal.
    pub(super) fn renewals(&mut self, now_ms: i64) -> Vec<Renewal> {
        self.listeners.iter_mut().flat_map(|listener| listener.renewals(now_ms)).collect()
    }

    /// Returns the credit of a message that a write is about to acknowledge.
    pub(super) fn acknowledging(&mut self, ack: Ack) {
        self.listeners.iter_mut().for_each(|listener| listener.acknowledging(ack));
    }

    /// The receivers of locks that were to be renewed and are lost, with the numbers of their messages.
    pub(super) fn lost(&mut self, renewals: &[Renewal]) -> Vec<(LockLost, Vec<i64>)> {
        self.listeners.iter_mut().filter_map(|listener| listener.lost(renewals)).collect()
    }

    /// The next transaction renews all locks: the last one has failed, or its clock was ahead.
    pub(super) fn renew_again(&mut self) {
        self.listeners.iter_mut().for_each(Listener::renew_again);
    }

    /// Assigns claimed messages: first to callers of `receive`, in the order of their calls, then
    /// one at a time to each listener with credits. The rest, left by consumers that are gone, is
    /// to be put back.
    pub(super) fn dispatch(
        &mut self,
        claim: &Claim,
        deliveries: Vec<Delivery>,
        now_ms: i64,
        dispatched: &mut Dispatch,
    ) {
        let fits = |options: &ConsumeOptions| {
            options.queue == claim.queue && options.lock_ms == claim.lock_ms
        };
        let mut deliveries = deliveries.into_iter();
        let mut at = 0;
        while let Some(receiver) = self.receivers.get(at) {
            if !fits(&receiver.options) {
                at += 1;
                continue;
            }
            let delivery = deliveries.next();
            // A caller that came after the claim was not part of it.
            if delivery.is_none() && !(receiver.once && receiver.looked) {
                at += 1;
                continue;
            }
            if let Some(receiver) = self.receivers.remove(at) {
                dispatched.received.push((receiver.reply, delivery));
            }
        }
        let mut hands: Vec<Vec<Dispatched>> = self.listeners.iter().map(|_| Vec::new()).collect();
        for delivery in deliveries {
            let count = self.listeners.len();
            let is_free = |l: &Listener| l.free() > 0 && fits(&l.options);
            let free = (0..count)
                .map(|step| (self.turn + step) % count)
                .find(|at| self.listeners.get(*at).is_some_and(is_free));
            let Some(at) = free else {
                let Delivery { id, lock, .. } = delivery;
                dispatched.left.push(Settlement::new(id, lock, Outcome::Returned));
                continue;
            };
            self.turn = at + 1;
            self.next_number += 1;
            if let (Some(listener), Some(hand)) = (self.listeners.get_mut(at), hands.get_mut(at)) {
                hand.push(listener.hand(self.next_number, delivery, now_ms));
            }
        }
        let hands = self.listeners.iter().zip(hands).filter(|(_, hand)| !hand.is_empty());
        dispatched.hands.extend(hands.map(|(l, hand)| (l.id, l.deliver.clone(), hand)));
    }

    /// Removes the replies of the callers whose only claim has failed.
    pub(super) fn look_failed(&mut self) -> Vec<Receive> {
        let receivers = std::mem::take(&mut self.receivers).into_iter();
        let (failed, waiting): (Vec<_>, Vec<_>) = receivers.partition(|r| r.once && r.looked);
        self.receivers = waiting.into();
        failed.into_iter().map(|receiver| receiver.reply).collect()
    }
}
