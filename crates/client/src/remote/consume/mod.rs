//! Listeners of remote queues: this file holds their messages. Messages arrive by a stream;
//! settlements are sent by calls, on any connection.
//!
//! Invariant: a received message is settled once, or its lock runs out. A lock is renewed while the
//! handler runs, even if the message's stream ends. The server never has more credits than the
//! listener has free handlers.

mod report;
mod stream;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use tokio::sync::{Notify, oneshot, watch as flag};
use tokio::time::Instant;

use super::executor::RequestExecutor;
use super::runtime::SharedRuntime;
use super::stream::follow;
use openkv_core::model::{
    ConsumeOptions, Deliver, Delivery, Dispatched, Id, ListenerEnd, LockLost, Outcome, Reason,
    Result, Settlement,
};

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
    options: ConsumeOptions,
    concurrency: u32,
    deliver: Deliver,
    state: Mutex<State>,
    end: Mutex<Option<ListenerEnd>>,
    /// Notified of each lock that is lost.
    lock_lost: Mutex<Option<LockLost>>,
    /// Notified when a stream is opened.
    opened: Notify,
    /// Notified when there is something to send.
    sendable: Notify,
    /// Notified when messages are received.
    taken: Notify,
    phase: flag::Sender<Phase>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Phase {
    /// It takes messages.
    Open,
    /// It takes no more messages. Those it holds are settled, and their locks renewed.
    Stopped,
    /// Only pending settlements are sent.
    Closed,
}

#[derive(Default)]
struct State {
    last_number: i64,
    /// Held messages, by the number to settle them with.
    held: HashMap<i64, HeldMessage>,
    /// Settlements to send.
    ends: Vec<Settlement>,
    /// The server's number of the stream; 0 without one.
    stream: u64,
    /// Credits granted to the stream in total, and how many of them the server knows of.
    granted: u64,
    known: u64,
    /// The stream is not read any more.
    stream_closed: bool,
    /// Nothing will be sent any more.
    ended: bool,
    /// Callers that wait until all settlements are sent.
    waiting: Vec<oneshot::Sender<()>>,
}

/// A held message.
struct HeldMessage {
    id: i64,
    lock: i64,
    renew_at: Instant,
    /// Its lock was lost: another consumer may have it.
    lost: bool,
}

impl Consumer {
    fn new(
        (options, concurrency): (ConsumeOptions, u32),
        (deliver, end): (Deliver, ListenerEnd),
    ) -> Self {
        Self {
            options,
            concurrency,
            deliver,
            state: Mutex::default(),
            end: Mutex::new(Some(end)),
            lock_lost: Mutex::new(None),
            opened: Notify::new(),
            sendable: Notify::new(),
            taken: Notify::new(),
            phase: flag::Sender::new(Phase::Open),
        }
    }

    fn phase(&self) -> Phase {
        *self.phase.borrow()
    }

    /// Waits for this phase or a later one.
    async fn reaches(&self, phase: Phase) {
        // `self` owns the sender, so the channel stays open.
        let mut phases = self.phase.subscribe();
        let _ended = phases.wait_for(|is| *is >= phase).await.is_err();
    }

    /// The interval of lock renewals.
    fn renewal(&self) -> Duration {
        Duration::from_millis(self.options.lock_ms.unsigned_abs() / 3)
    }

    /// The credits with which the next stream is requested.
    fn begin(&self) -> u32 {
        let mut state = self.state.lock();
        let free = self.concurrency.saturating_sub(state.held.len() as u32);
        state.stream = 0;
        (state.granted, state.known) = (free.into(), free.into());
        free
    }

    /// Records that the stream is open.
    fn opened(&self, stream: u64) {
        self.state.lock().stream = stream;
        self.opened.notify_one();
        self.sendable.notify_one();
    }

    /// Takes messages and passes them to the handler.
    fn accept(&self, deliveries: Vec<Delivery>) {
        let mut hand = Vec::with_capacity(deliveries.len());
        {
            let mut state = self.state.lock();
            let renew_at = Instant::now() + self.renewal();
            for delivery in deliveries {
                let (id, lock) = (delivery.id, delivery.lock);
                // A server that sends more than it has credits for is at fault.
                let has_credit = (state.held.len() as u64) < self.concurrency.into();
                if self.phase() > Phase::Open || !has_credit {
                    state.ends.push(Settlement::new(id, lock, Outcome::Returned));
                    continue;
                }
                state.last_number += 1;
                let number = state.last_number;
                state.held.insert(number, HeldMessage { id, lock, renew_at, lost: false });
                hand.push(Dispatched { number, delivery });
            }
        }
        let refused = if hand.is_empty() { hand } else { (self.deliver)(hand) };
        for Dispatched { number, .. } in refused {
            self.settle(number, Outcome::Returned, None);
        }
        self.taken.notify_one();
        self.sendable.notify_one();
    }

    /// Settles a delivery: returns its credit and queues the settlement.
    fn settle(&self, number: i64, outcome: Outcome, reason: Option<Reason>) {
        self.end_delivery(number, |held| {
            Some(Settlement { reason, ..Settlement::new(held.id, held.lock, outcome) })
        });
    }

    /// Ends a delivery: returns its credit and queues its settlement, if it has one and the lock still
    /// holds.
    fn end_delivery(
        &self,
        number: i64,
        settlement: impl FnOnce(&HeldMessage) -> Option<Settlement>,
    ) {
        let mut state = self.state.lock();
        let Some(held) = state.held.remove(&number) else { return };
        state.granted += 1;
        if !held.lost {
            state.ends.extend(settlement(&held));
        }
        let is_last = state.held.is_empty();
        drop(state);
        if is_last {
            self.taken.notify_one();
        }
        self.sendable.notify_one();
    }

    /// Enters a phase; phases only advance.
    fn enter(&self, phase: Phase) {
        self.phase.send_if_modified(|is| {
            let moves = *is < phase;
            *is = phase.max(*is);
            moves
        });
        self.sendable.notify_one();
    }

    fn end(&self, why: Result<()>) {
        let end = self.end.lock().take();
        if let Some(end) = end {
            end(why);
        }
    }

    /// Records that the stream is not read any more.
    fn unfollow(&self) {
        let mut state = self.state.lock();
        state.stream_closed = true;
        state.stream = 0;
        drop(state);
        self.sendable.notify_one();
        self.taken.notify_one();
    }

    /// Answers waiting callers once nothing is left to send.
    fn answer_acknowledged(&self) {
        let mut state = self.state.lock();
        // Messages that a closing stream still carries must be put back first.
        if self.phase() == Phase::Open || state.stream_closed {
            // Dropping the senders answers them.
            state.waiting.clear();
        }
    }
}

impl Consumers {
    pub(super) fn add(
        self: &Arc<Self>,
        wanted: (ConsumeOptions, u32),
        callbacks: (Deliver, ListenerEnd),
        executor: &Arc<RequestExecutor>,
        runtime: &Arc<SharedRuntime>,
    ) -> Id {
        let consumer = Arc::new(Consumer::new(wanted, callbacks));
        let id = {
            let mut registry = self.0.lock();
            registry.last_id += 1;
            let id = registry.last_id;
            registry.consumers.insert(id, consumer.clone());
            id
        };
        let (executor, consumers) = (executor.clone(), Arc::downgrade(self));
        runtime.spawn(async move {
            let following = async {
                tokio::select! {
                    () = follow(executor.clone(), consumer.clone()) => {}
                    () = consumer.leave(&executor) => {}
                }
                consumer.unfollow();
            };
            tokio::join!(
                following,
                report::ends(&executor, &consumer),
                report::renewals(&executor, &consumer)
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

    pub(super) fn on_lock_lost(&self, id: Id, on_lost: LockLost) {
        if let Some(consumer) = self.get(id) {
            *consumer.lock_lost.lock() = Some(on_lost);
        }
    }

    pub(super) fn release(&self, id: Id, number: i64) {
        if let Some(consumer) = self.get(id) {
            consumer.end_delivery(number, |_| None);
        }
    }

    /// Takes no more messages.
    pub(super) fn stop(&self, id: Id) {
        if let Some(consumer) = self.get(id) {
            consumer.enter(Phase::Stopped);
        }
    }

    /// Renews no more locks.
    pub(super) fn unlisten(&self, id: Id) {
        if let Some(consumer) = self.get(id) {
            consumer.enter(Phase::Closed);
        }
    }

    /// Ends all listeners once pending settlements are sent.
    pub(super) fn close(&self) {
        for consumer in self.0.lock().consumers.values() {
            consumer.enter(Phase::Closed);
        }
    }

    /// Waits until all settlements so far have been sent, or cannot be.
    pub(super) async fn acknowledged(&self) {
        let consumers: Vec<_> = self.0.lock().consumers.values().cloned().collect();
        for consumer in consumers {
            let (waits, sent) = oneshot::channel();
            {
                let mut state = consumer.state.lock();
                if state.ended {
                    continue;
                }
                state.waiting.push(waits);
            }
            consumer.sendable.notify_one();
            let _ended = sent.await;
        }
    }
}

impl Drop for Consumers {
    fn drop(&mut self) {
        self.close();
    }
}
