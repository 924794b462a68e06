//! Who consumes the queue, and what each consumer is handling.

use std::collections::HashMap;
use std::sync::Arc;

use super::Id;
use crate::model::{Delivery, Outcome, Settlement};

/// Gets messages; each delivery's id is to be settled with.
pub(super) type Deliver = Arc<dyn Fn(Vec<Delivery>) + Send + Sync>;

/// Claimed messages, dealt out.
pub(super) struct Dealt {
    /// Who gets what.
    pub(super) hands: Vec<(Deliver, Vec<Delivery>)>,
    /// What nobody had a place for.
    pub(super) left: Vec<Settlement>,
}

/// All consumers of a store.
#[derive(Default)]
pub(super) struct Listeners {
    next_id: Id,
    next_delivery: i64,
    listeners: Vec<Listener>,
    /// Whose turn it is: consumers get messages in rotation.
    turn: usize,
}

struct Listener {
    id: Id,
    deliver: Deliver,
    /// Free places.
    credits: usize,
    /// Delivery number → message and the lock it was claimed under.
    handling: HashMap<i64, (i64, i64)>,
    /// It takes no more, but what it handles may still be settled.
    gone: bool,
}

impl Listeners {
    pub(super) fn add(&mut self, credits: usize, deliver: Deliver) -> Id {
        self.next_id += 1;
        let id = self.next_id;
        let handling = HashMap::new();
        self.listeners.push(Listener { id, deliver, credits, handling, gone: false });
        id
    }

    /// Whether there was such a consumer.
    pub(super) fn remove(&mut self, id: Id) -> bool {
        let found = self.listeners.iter_mut().find(|listener| listener.id == id && !listener.gone);
        let was_there = found.is_some();
        if let Some(listener) = found {
            listener.gone = true;
        }
        self.forget_finished();
        was_there
    }

    fn forget_finished(&mut self) {
        self.listeners.retain(|listener| !listener.gone || !listener.handling.is_empty());
    }

    /// Free places of all consumers.
    pub(super) fn credits(&self) -> usize {
        self.listeners.iter().filter(|l| !l.gone).map(|l| l.credits).sum()
    }

    /// The end of a delivery; `None` if it is not under way.
    pub(super) fn settle(&mut self, id: Id, number: i64, outcome: Outcome) -> Option<Settlement> {
        let listener = self.listeners.iter_mut().find(|listener| listener.id == id)?;
        let (message, lock) = listener.handling.remove(&number)?;
        listener.credits += 1;
        self.forget_finished();
        Some(Settlement { id: message, lock, outcome })
    }

    /// Messages whose lock is to be renewed, with their locks.
    pub(super) fn renewals(&self) -> Vec<(i64, i64)> {
        let here = self.listeners.iter().filter(|listener| !listener.gone);
        here.flat_map(|listener| listener.handling.values().copied()).collect()
    }

    /// Whether any consumer is handling anything.
    pub(super) fn busy(&self) -> bool {
        self.listeners.iter().any(|listener| !listener.gone && !listener.handling.is_empty())
    }

    /// Deals claimed messages out, one to each consumer with a free place in turn. What is left,
    /// because a consumer left meanwhile, is to be given back.
    pub(super) fn deal(&mut self, deliveries: Vec<Delivery>, lock: i64) -> Dealt {
        let mut hands: Vec<Vec<Delivery>> = self.listeners.iter().map(|_| Vec::new()).collect();
        let mut left = Vec::new();
        for delivery in deliveries {
            let count = self.listeners.len();
            let free = (0..count)
                .map(|step| (self.turn + step) % count)
                .find(|at| self.listeners.get(*at).is_some_and(|l| !l.gone && l.credits > 0));
            let Some(at) = free else {
                left.push(Settlement { id: delivery.id, lock, outcome: Outcome::Returned });
                continue;
            };
            self.turn = at + 1;
            self.next_delivery += 1;
            if let (Some(listener), Some(hand)) = (self.listeners.get_mut(at), hands.get_mut(at)) {
                listener.credits -= 1;
                listener.handling.insert(self.next_delivery, (delivery.id, lock));
                hand.push(Delivery { id: self.next_delivery, value: delivery.value });
            }
        }
        let dealt = self.listeners.iter().zip(hands).filter(|(_, hand)| !hand.is_empty());
        let hands = dealt.map(|(listener, hand)| (listener.deliver.clone(), hand)).collect();
        Dealt { hands, left }
    }
}
