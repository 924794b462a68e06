//! Who consumes the queues, and what each consumer is handling.

use std::collections::VecDeque;
use std::sync::Arc;

use super::Id;
use super::listener::Listener;
use crate::model::{
    CLAIM_MESSAGES_MAX, Claim, Delivery, Outcome, Reason, Renewal, Result, Settlement,
};

/// Gets messages; each delivery's id is to be settled with. Answers those that it can no longer
/// take: nobody has seen them.
pub type Deliver = Box<dyn Fn(Vec<Handed>) -> Vec<Handed> + Send + Sync>;

/// A message in a listener's hands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Handed {
    /// What it is settled with.
    pub number: i64,
    /// The message.
    pub delivery: Delivery,
}

/// What a consumer asks for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Wish {
    /// The queue; `""` is Deno's.
    pub queue: String,
    /// How long a message is hidden from others without a sign of life, in ms.
    pub lock_ms: i64,
}

/// What a consumer asks for on behalf of somebody elsewhere, who will settle what it is dealt with
/// [`super::Store::ask`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Elsewhere {
    /// What is consumed.
    pub wish: Wish,
    /// Free places at first.
    pub places: u64,
    /// Most free places at one time.
    pub most: u64,
}

/// Marks the numbers of consumers elsewhere, so that none of them can name one of this process.
const ELSEWHERE: Id = 1 << 63;

/// The number by which a consumer elsewhere is known here.
#[must_use]
pub const fn number_elsewhere(number: u64) -> Id {
    number | ELSEWHERE
}

/// Gets one message, `None` if there is none.
pub type Receive = Box<dyn FnOnce(Result<Option<Delivery>>) + Send>;

/// Claimed messages, dealt out.
#[derive(Default)]
pub(super) struct Dealt {
    /// Which listener gets what.
    pub(super) hands: Vec<(Id, Arc<Deliver>, Vec<Handed>)>,
    /// What those who asked for one message get.
    pub(super) received: Vec<(Receive, Option<Delivery>)>,
    /// What nobody had a place for.
    pub(super) left: Vec<Settlement>,
}

/// All consumers of a store.
#[derive(Default)]
pub(super) struct Consumers {
    last_id: Id,
    next_number: i64,
    listeners: Vec<Listener>,
    receivers: VecDeque<Receiver>,
    /// Whose turn it is: listeners get messages in rotation.
    turn: usize,
}

/// Whether there was room for at least one of the places.
fn add_places(claims: &mut Vec<Claim>, wish: &Wish, places: usize) -> bool {
    let Wish { queue, lock_ms } = wish;
    let same = |claim: &&mut Claim| claim.queue == *queue && claim.lock_ms == *lock_ms;
    match claims.iter_mut().find(same) {
        Some(claim) => {
            let room = CLAIM_MESSAGES_MAX - claim.max;
            claim.max += places.min(room);
            room > 0
        }
        None => {
            let max = places.min(CLAIM_MESSAGES_MAX);
            claims.push(Claim { queue: queue.clone(), max, lock_ms: *lock_ms, lock: 0 });
            true
        }
    }
}

/// Somebody who asks for one message.
struct Receiver {
    id: Id,
    wish: Wish,
    /// Answered after the first look, whatever it finds.
    once: bool,
    /// The first look is under way.
    looked: bool,
    reply: Receive,
}

impl Consumers {
    /// Their numbers begin somewhere: one that was told to a client of an earlier process on the
    /// same file means nobody here.
    pub(super) fn new(somewhere: u64) -> Self {
        Self { last_id: somewhere, ..Self::default() }
    }

    /// A number that no other consumer has.
    pub(super) fn new_id(&mut self) -> Id {
        self.last_id = (self.last_id.wrapping_add(1) & !ELSEWHERE).max(1);
        self.last_id
    }

    pub(super) fn listen(
        &mut self,
        wish: Wish,
        free: usize,
        renewal_ms: i64,
        deliver: Deliver,
    ) -> Id {
        let id = self.new_id();
        self.listeners.push(Listener::here(id, wish, deliver, free, renewal_ms));
        id
    }

    pub(super) fn listen_for(&mut self, elsewhere: Elsewhere, deliver: Deliver) -> Id {
        let id = number_elsewhere(self.new_id());
        let Elsewhere { wish, places, most } = elsewhere;
        self.listeners.push(Listener::elsewhere(id, wish, deliver, places, most));
        id
    }

    /// The listener of that number, unless it has left.
    pub(super) fn listener(&mut self, id: Id) -> Option<&mut Listener> {
        self.listeners.iter_mut().find(|listener| listener.id == id && listener.is_open())
    }

    pub(super) fn receive(&mut self, id: Id, wish: Wish, once: bool, reply: Receive) {
        self.receivers.push_back(Receiver { id, wish, once, looked: false, reply });
    }

    /// Takes back the reply of somebody who waits no longer.
    pub(super) fn cancel(&mut self, id: Id) -> Option<Receive> {
        let at = self.receivers.iter().position(|receiver| receiver.id == id)?;
        self.receivers.remove(at).map(|receiver| receiver.reply)
    }

    /// Takes back the replies of all who wait.
    pub(super) fn cancel_all(&mut self) -> Vec<Receive> {
        self.receivers.drain(..).map(|receiver| receiver.reply).collect()
    }

    /// Listeners that have not left.
    pub(super) fn listeners(&self) -> usize {
        self.listeners.iter().filter(|listener| listener.is_open()).count()
    }

    /// A listener takes no more, by `stop` or `leave`. Whether there was one that did; and those
    /// that are forgotten now, to be dropped where no lock is held: they may have something to give
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

    /// Forgets listeners of which nothing is to come, to be dropped as those of [`Self::end`].
    pub(super) fn forget_finished(&mut self, now_ms: i64) -> Vec<Listener> {
        self.listeners.extract_if(.., |listener| listener.is_finished(now_ms)).collect()
    }

    /// The queues that somebody listens to or waits for, whether or not there is a free place.
    pub(super) fn queues(&self) -> impl Iterator<Item = &str> {
        let listening = self.listeners.iter().filter(|listener| listener.is_open());
        let wishes = listening.map(|listener| &listener.wish);
        let wishes = wishes.chain(self.receivers.iter().map(|receiver| &receiver.wish));
        wishes.map(|wish| wish.queue.as_str())
    }

    /// The queues for which there is a free place.
    pub(super) fn open_queues(&self) -> impl Iterator<Item = &str> {
        let free = self.listeners.iter().filter(|listener| listener.free() > 0);
        let wishes = free.map(|listener| &listener.wish);
        let wishes = wishes.chain(self.receivers.iter().map(|receiver| &receiver.wish));
        wishes.map(|wish| wish.queue.as_str())
    }

    /// Whether somebody waits for the first look.
    pub(super) fn is_asked(&self) -> bool {
        self.receivers.iter().any(|receiver| receiver.once)
    }

    /// What all consumers of the queues that `due` names have places for, still without locks. Who
    /// asks for one look gets it in any case.
    pub(super) fn claims(&mut self, due: impl Fn(&str) -> bool) -> Vec<Claim> {
        let mut claims: Vec<Claim> = Vec::new();
        for receiver in &mut self.receivers {
            if receiver.once || due(&receiver.wish.queue) {
                receiver.looked |= add_places(&mut claims, &receiver.wish, 1);
            }
        }
        for listener in &self.listeners {
            if listener.free() > 0 && due(&listener.wish.queue) {
                add_places(&mut claims, &listener.wish, listener.free());
            }
        }
        // Claims of one queue that differ in their locks take turns at being first.
        let first = self.turn % claims.len().max(1);
        claims.rotate_left(first);
        claims
    }

    /// The end of a delivery; `None` if it is not under way. Its listener may be finished now.
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

    /// A delivery that its listener does not take. The listener may be finished now.
    pub(super) fn refused(&mut self, id: Id, Handed { number, delivery }: Handed) -> Settlement {
        self.settle(id, number, Outcome::Returned, None);
        Settlement::new(delivery.id, delivery.lock, Outcome::Returned)
    }

    /// When the next locks are to be renewed.
    pub(super) fn renewal_ms(&self) -> Option<i64> {
        self.listeners.iter().filter_map(Listener::renew_at_ms).min()
    }

    /// Locks that are to be renewed now.
    pub(super) fn renewals(&mut self, now_ms: i64) -> Vec<Renewal> {
        self.listeners.iter_mut().flat_map(|listener| listener.renewals(now_ms)).collect()
    }

    /// A transaction with renewals has failed: the next one has them all.
    pub(super) fn renew_again(&mut self) {
        self.listeners.iter_mut().for_each(Listener::renew_again);
    }

    /// Deals out what a claim brought: to those who asked for one first, in the order of their
    /// asking, then one to each listener with a free place in turn. What is left, because a
    /// consumer left meanwhile, is to be given back.
    pub(super) fn deal(
        &mut self,
        claim: &Claim,
        deliveries: Vec<Delivery>,
        now_ms: i64,
        dealt: &mut Dealt,
    ) {
        let fits = |wish: &Wish| wish.queue == claim.queue && wish.lock_ms == claim.lock_ms;
        let mut deliveries = deliveries.into_iter();
        let mut at = 0;
        while let Some(receiver) = self.receivers.get(at) {
            if !fits(&receiver.wish) {
                at += 1;
                continue;
            }
            let delivery = deliveries.next();
            // Who came after the claim has not been looked for.
            if delivery.is_none() && !(receiver.once && receiver.looked) {
                at += 1;
                continue;
            }
            if let Some(receiver) = self.receivers.remove(at) {
                dealt.received.push((receiver.reply, delivery));
            }
        }
        let mut hands: Vec<Vec<Handed>> = self.listeners.iter().map(|_| Vec::new()).collect();
        for delivery in deliveries {
            let count = self.listeners.len();
            let is_free = |l: &Listener| l.free() > 0 && fits(&l.wish);
            let free = (0..count)
                .map(|step| (self.turn + step) % count)
                .find(|at| self.listeners.get(*at).is_some_and(is_free));
            let Some(at) = free else {
                dealt.left.push(Settlement::new(delivery.id, delivery.lock, Outcome::Returned));
                continue;
            };
            self.turn = at + 1;
            self.next_number += 1;
            if let (Some(listener), Some(hand)) = (self.listeners.get_mut(at), hands.get_mut(at)) {
                hand.push(listener.hand(self.next_number, delivery, now_ms));
            }
        }
        let hands = self.listeners.iter().zip(hands).filter(|(_, hand)| !hand.is_empty());
        dealt.hands.extend(hands.map(|(l, hand)| (l.id, l.deliver.clone(), hand)));
    }

    /// Takes back the replies of those whose only look has failed.
    pub(super) fn look_failed(&mut self) -> Vec<Receive> {
        let receivers = std::mem::take(&mut self.receivers).into_iter();
        let (failed, waiting): (Vec<_>, Vec<_>) = receivers.partition(|r| r.once && r.looked);
        self.receivers = waiting.into();
        failed.into_iter().map(|receiver| receiver.reply).collect()
    }
}
