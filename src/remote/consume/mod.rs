//! Listeners of queues elsewhere: what they have in hand, here; messages by a stream, how they end
//! by calls, whichever connection there is.
//!
//! Invariant: a message that was taken in is settled once, or its lock runs out. Locks go on for as
//! long as the handler runs, whatever becomes of the stream that the message came by. The server is
//! never given more places than there are free.

mod stream;
mod tell;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::runtime::Handle;
use tokio::sync::{Notify, oneshot, watch as flag};
use tokio::time::Instant;

use super::ask::Asker;
use super::runtime::Shared;
use super::stream::follow;
use crate::model::{Delivery, Outcome, Reason, Result, Settlement};
use crate::store::{Deliver, Handed, Id, Wish};

/// Is told that a listener has ended, and why if it was not asked to.
pub type Over = Box<dyn FnOnce(Result<()>) + Send>;

/// The listeners of one handle.
#[derive(Default)]
pub(super) struct Consumers(Mutex<Registry>);

#[derive(Default)]
struct Registry {
    last_id: Id,
    consumers: HashMap<Id, Arc<Consumer>>,
}

/// A listener.
struct Consumer {
    wish: Wish,
    concurrency: u32,
    deliver: Deliver,
    state: Mutex<State>,
    /// Somebody waits for the end of it.
    over: Mutex<Option<Over>>,
    /// A stream has been opened.
    opened: Notify,
    /// There is something to tell.
    to_tell: Notify,
    /// Something was taken in.
    taken: Notify,
    phase: flag::Sender<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It takes messages.
    Open,
    /// It takes no more; those in hand are settled, and their locks go on.
    Stopped,
    /// What was settled is told, nothing else.
    Closed,
}

#[derive(Default)]
struct State {
    last_number: i64,
    /// By the number that each is settled with.
    held: HashMap<i64, InHand>,
    /// Ends that the server has not been told of.
    ends: Vec<Settlement>,
    /// The server's number of the stream; 0 while there is none.
    stream: u64,
    /// Places that were given to it since it began, and how many of them it knows of.
    granted: u64,
    known: u64,
    /// The stream is followed no more.
    unfollowed: bool,
    /// Nothing will be told any more.
    ended: bool,
    /// Those who wait until everything is told.
    waiting: Vec<oneshot::Sender<()>>,
}

/// A message in hand.
struct InHand {
    id: i64,
    lock: i64,
    renew_at: Instant,
    /// Somebody else may have it.
    lost: bool,
}

impl Consumer {
    fn new((wish, concurrency): (Wish, u32), (deliver, over): (Deliver, Over)) -> Self {
        Self {
            wish,
            concurrency,
            deliver,
            state: Mutex::default(),
            over: Mutex::new(Some(over)),
            opened: Notify::new(),
            to_tell: Notify::new(),
            taken: Notify::new(),
            phase: flag::Sender::new(Phase::Open),
        }
    }

    fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Waits for a phase, or a later one.
    async fn reaches(&self, phase: Phase) {
        // The sender is ours, so there is an end to it only with us.
        let mut phases = self.phase.subscribe();
        let _ended = phases.wait_for(|is| *is >= phase).await.is_err();
    }

    /// How often locks are renewed.
    fn renewal(&self) -> Duration {
        Duration::from_millis(self.wish.lock_ms.unsigned_abs() / 3)
    }

    /// A new stream is asked for: how many places it begins with.
    fn begin(&self) -> u32 {
        let mut state = self.state.lock();
        let free = self.concurrency.saturating_sub(state.held.len() as u32);
        state.stream = 0;
        (state.granted, state.known) = (free.into(), free.into());
        free
    }

    /// It is there.
    fn opened(&self, stream: u64) {
        self.state.lock().stream = stream;
        self.opened.notify_one();
        self.to_tell.notify_one();
    }

    /// Takes messages in and hands them to the handler.
    fn take_in(&self, deliveries: Vec<Delivery>) {
        let mut hand = Vec::with_capacity(deliveries.len());
        {
            let mut state = self.state.lock();
            let renew_at = Instant::now() + self.renewal();
            for delivery in deliveries {
                let (id, lock) = (delivery.id, delivery.lock);
                // More than there are places for is nobody's doing but the server's.
                let has_place = (state.held.len() as u64) < self.concurrency.into();
                if self.phase() > Phase::Open || !has_place {
                    state.ends.push(Settlement::new(id, lock, Outcome::Returned));
                    continue;
                }
                state.last_number += 1;
                let number = state.last_number;
                state.held.insert(number, InHand { id, lock, renew_at, lost: false });
                hand.push(Handed { number, delivery });
            }
        }
        let refused = if hand.is_empty() { hand } else { (self.deliver)(hand) };
        for Handed { number, .. } in refused {
            self.settle(number, Outcome::Returned, None);
        }
        self.taken.notify_one();
        self.to_tell.notify_one();
    }

    /// A delivery has ended: its place is free, and the server is told.
    fn settle(&self, number: i64, outcome: Outcome, reason: Option<Reason>) {
        let mut state = self.state.lock();
        let Some(held) = state.held.remove(&number) else { return };
        state.granted += 1;
        if !held.lost {
            let end = Settlement::new(held.id, held.lock, outcome);
            state.ends.push(Settlement { reason, ..end });
        }
        let is_last = state.held.is_empty();
        drop(state);
        if is_last {
            self.taken.notify_one();
        }
        self.to_tell.notify_one();
    }

    /// Goes on to a phase; there is no way back.
    fn enter(&self, phase: Phase) {
        self.phase.send_if_modified(|is| {
            let moves = *is < phase;
            *is = phase.max(*is);
            moves
        });
        self.to_tell.notify_one();
    }

    fn end(&self, why: Result<()>) {
        let over = self.over.lock().take();
        if let Some(over) = over {
            over(why);
        }
    }

    /// Nothing more comes.
    fn unfollow(&self) {
        let mut state = self.state.lock();
        state.unfollowed = true;
        state.stream = 0;
        drop(state);
        self.to_tell.notify_one();
        self.taken.notify_one();
    }

    /// Answers who waits until everything is told: there is nothing left to tell.
    fn tell_told(&self) {
        let mut state = self.state.lock();
        // What a stream that is being left has still on its way is to come back first.
        if self.phase() == Phase::Open || state.unfollowed {
            // Each is told by its sender's end.
            state.waiting.clear();
        }
    }
}

impl Consumers {
    pub(super) fn add(
        self: &Arc<Self>,
        wanted: (Wish, u32),
        tell: (Deliver, Over),
        asker: &Arc<Asker>,
        (runtime, keep): (&Handle, &Arc<Shared>),
    ) -> Id {
        let consumer = Arc::new(Consumer::new(wanted, tell));
        let id = {
            let mut registry = self.0.lock();
            registry.last_id += 1;
            let id = registry.last_id;
            registry.consumers.insert(id, consumer.clone());
            id
        };
        let (asker, keep, consumers) = (asker.clone(), keep.clone(), Arc::downgrade(self));
        runtime.spawn(async move {
            let following = async {
                tokio::select! {
                    () = follow(asker.clone(), consumer.clone()) => {}
                    () = consumer.leave(&asker) => {}
                }
                consumer.unfollow();
            };
            tokio::join!(
                following,
                tell::ends(&asker, &consumer),
                tell::renewals(&asker, &consumer)
            );
            consumer.end(Ok(()));
            {
                let mut state = consumer.state.lock();
                state.ended = true;
                state.waiting.clear();
            }
            if let Some(consumers) = consumers.upgrade() {
                consumers.0.lock().consumers.remove(&id);
            }
            drop(keep);
        });
        id
    }

    fn get(&self, id: Id) -> Option<Arc<Consumer>> {
        self.0.lock().consumers.get(&id).cloned()
    }

    pub(super) fn settle(&self, id: Id, number: i64, outcome: Outcome, reason: Option<Reason>) {
        if let Some(consumer) = self.get(id) {
            consumer.settle(number, outcome, reason);
        }
    }

    /// Takes no more messages.
    pub(super) fn stop(&self, id: Id) {
        if let Some(consumer) = self.get(id) {
            consumer.enter(Phase::Stopped);
        }
    }

    /// Ends all, when what was settled is told.
    pub(super) fn close(&self) {
        for consumer in self.0.lock().consumers.values() {
            consumer.enter(Phase::Closed);
        }
    }

    /// Waits until everything that was settled so far has been told, or cannot be.
    pub(super) async fn told(&self) {
        let consumers: Vec<_> = self.0.lock().consumers.values().cloned().collect();
        for consumer in consumers {
            let (waits, told) = oneshot::channel();
            {
                let mut state = consumer.state.lock();
                if state.ended {
                    continue;
                }
                state.waiting.push(waits);
            }
            consumer.to_tell.notify_one();
            let _ended = told.await;
        }
    }
}

impl Drop for Consumers {
    fn drop(&mut self) {
        self.close();
    }
}
