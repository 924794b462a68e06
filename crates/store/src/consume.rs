//! Consumers of queues: messages, settlements and lock renewals by way of the writer thread, the
//! statistics of queues and their dead letters.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use super::listener::Listener;
use super::lock_request::{LockRequest, Reply};
use super::queue::{Consumers, RemoteConsumer};
use super::write_queue::{Acknowledged, Lost, WriteQueue, only_reads};
use super::{Caller, Patience, Store};
use openkv_core::model::{
    Ask, ConsumeOptions, DeadLetter, DeadLetterChange, Deliver, Error, Id, LOCK_RENEWAL_MS,
    LockLost, MessageDeletion, Outcome, Peek, PeekCursor, Peeked, QueueChange, QueueChanged,
    QueueStats, Reason, Receive, Result, Settlement,
};
use openkv_engines::Writer;

impl Store {
    /// Adds a consumer of a queue with this number of credits. The store calls `lost` when it can no
    /// longer detect messages; it delivers none afterwards.
    ///
    /// # Errors
    /// `Denied` on a read-only database; `Internal` after the writer thread has panicked.
    pub fn listen(
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
        self.add_listener(lost, |all| all.listen(options, credits, renewal_ms, deliver))
    }

    /// As [`Store::listen`], for a remote consumer. It settles messages and renews their locks with
    /// [`Store::ask`], because the store does not know whether its handlers still run. Its credits
    /// come from [`Store::grant`]. The store delivers only a few messages more than its connection
    /// [has sent](Store::sent).
    pub fn listen_for(&self, consumer: RemoteConsumer, deliver: Deliver) -> Result<Id> {
        // The end of the listener drops `deliver`, which ends the connection's stream.
        self.add_listener(Box::new(drop), |all| all.listen_for(consumer, deliver))
    }

    /// Refuses consumers as on a read-only database: its engine may never claim a message.
    pub fn take_no_consumers(&self) {
        self.writes.waiting.lock().no_consumers = Some(only_reads());
    }

    fn add_listener(&self, lost: Lost, add: impl FnOnce(&mut Consumers) -> Id) -> Result<Id> {
        let mut waiting = self.writes.waiting.lock();
        if let Some(error) = waiting.refusal_of_consumers() {
            return Err(error);
        }
        let id = add(&mut waiting.consumers);
        waiting.lost.insert(id, lost);
        drop(waiting);
        self.writes.nudge();
        self.watches.external().hold();
        Ok(id)
    }

    /// Sets the receiver of locks that a listener loses while their handlers run, by the numbers of their
    /// deliveries.
    pub fn on_lock_lost(&self, listener: Id, on_lost: LockLost) {
        if let Some(listener) = self.writes.waiting.lock().consumers.listener(listener) {
            listener.on_lock_lost(on_lost);
        }
    }

    /// Sets the total credits of a remote consumer since its start. A smaller total and an unknown
    /// consumer have no effect.
    pub fn grant(&self, listener: Id, granted: u64) {
        self.change_listener(listener, |listener| listener.grant(granted));
    }

    /// Reports that the connection has sent `sent` more messages to a remote consumer, and that
    /// `returned` delivered messages will not be sent.
    pub fn sent(&self, listener: Id, sent: u64, returned: u64) {
        self.change_listener(listener, |listener| listener.sent(sent, returned));
    }

    fn change_listener(&self, id: Id, change: impl FnOnce(&mut Listener)) {
        if let Some(listener) = self.writes.waiting.lock().consumers.listener(id) {
            change(listener);
        }
        self.writes.ring();
    }

    /// Ends a delivery and returns its credit.
    pub fn settle(&self, listener: Id, number: i64, outcome: Outcome, reason: Option<Reason>) {
        let mut waiting = self.writes.waiting.lock();
        let settlement = waiting.consumers.settle(listener, number, outcome, reason);
        if waiting.refusal.is_none() {
            waiting.settlements.extend(settlement);
        }
        let _finished = waiting.consumers.forget_finished(self.env.now_ms());
        drop(waiting);
        self.writes.ring();
    }

    /// Returns the credit of a delivery that a commit has acknowledged: nothing is left to be stored.
    pub fn release(&self, listener: Id, number: i64) {
        let mut waiting = self.writes.waiting.lock();
        let _stored = waiting.consumers.settle(listener, number, Outcome::Done, None);
        let _finished = waiting.consumers.forget_finished(self.env.now_ms());
        drop(waiting);
        self.writes.ring();
    }

    /// Calls back once all settlements so far are durable, or never can be because the store has ended.
    pub fn acknowledged(&self, caller: Acknowledged) {
        let mut waiting = self.writes.waiting.lock();
        if waiting.refusal.is_some() {
            drop(waiting);
            return caller();
        }
        waiting.acknowledging.add(caller);
        drop(waiting);
        self.writes.ring();
    }

    /// A new id for [`Store::receive`].
    #[must_use]
    pub fn new_receiver(&self) -> Id {
        self.writes.waiting.lock().consumers.new_id()
    }

    /// Asks for one message: with `once` for one that is due now, else for the next one, until
    /// [`Store::receive_cancel`]. The store does not renew its lock; the caller settles it with
    /// [`Store::ask`].
    pub fn receive(&self, id: Id, options: ConsumeOptions, once: bool, reply: Receive) {
        // Held until the store closes: a caller that receives once receives again, and a restart
        // costs more.
        if !once && !self.receives.swap(true, Ordering::Relaxed) {
            self.watches.external().hold();
        }
        let mut waiting = self.writes.waiting.lock();
        if let Some(error) = waiting.refusal_of_consumers() {
            drop(waiting);
            reply(Err(error));
            return;
        }
        waiting.consumers.receive(id, options, once, reply);
        drop(waiting);
        if once { self.writes.ring() } else { self.writes.nudge() }
    }

    /// Ends a wait for a message. A waiting reply gets `None`.
    pub fn receive_cancel(&self, id: Id) {
        let reply = self.writes.waiting.lock().consumers.cancel(id);
        if let Some(reply) = reply {
            reply(Ok(None));
        }
    }

    /// Settles a received message or renews its lock. The reply says whether the caller still held
    /// the lock.
    pub fn ask(&self, what: Ask, reply: Reply) {
        let request = LockRequest { ask: what, reply };
        let offered = self.writes.offer(request, |waiting, it| waiting.lock_requests.push(it));
        if let Err((request, error)) = offered {
            (request.reply)(Err(error));
        }
    }

    /// Stops a listener. Its handlers keep their locks until they settle.
    pub fn stop_listening(&self, listener: Id) {
        if self.writes.end_listener(listener, Listener::stop) {
            self.watches.external().release();
        }
    }

    /// Ends a listener whose handlers are gone. Their messages may still be settled, but the store
    /// no longer renews the locks.
    pub fn unlisten(&self, listener: Id) {
        let now_ms = self.env.now_ms();
        if self.writes.end_listener(listener, |listener| listener.leave(now_ms)) {
            self.watches.external().release();
        }
    }

    /// The number of waiting and locked messages of a queue.
    pub fn queue_depth(&self, queue: String, reply: impl FnOnce(Result<u64>) + Send + 'static) {
        self.writes.query(Box::new(move |writer| {
            reply(writer.and_then(|writer| writer.queue_depth(&queue)));
        }));
    }

    /// How many messages of a queue are in which state. It counts all of them.
    pub fn queue_stats(
        &self,
        queue: String,
        patience: Arc<Patience>,
        caller: impl Caller<QueueStats>,
    ) {
        self.read(Some(patience), caller, move |snapshot, _| snapshot.queues()?.stats(&queue));
    }

    /// Visits the messages of a queue, as [`openkv_engines::Queues::peek`] does.
    pub fn peek<C: Caller<()>>(
        &self,
        queue: String,
        peek: Peek,
        caller: C,
        mut visit: impl FnMut(&mut C, Peeked, PeekCursor) -> bool + Send + 'static,
    ) {
        self.read(None, caller, move |snapshot, caller| {
            let mut shown = |message, cursor| visit(caller, message, cursor);
            snapshot.queues()?.peek(&queue, peek, &mut shown)
        });
    }

    /// Visits the dead letters of a queue after `after`, by time of death and number, until `visit`
    /// returns `false`.
    pub fn dead_letters<C: Caller<()>>(
        &self,
        queue: String,
        after: (i64, i64),
        caller: C,
        mut visit: impl FnMut(&mut C, DeadLetter) -> bool + Send + 'static,
    ) {
        self.read(None, caller, move |snapshot, caller| {
            snapshot.queues()?.dead_letters(&queue, after, &mut |letter| visit(caller, letter))
        });
    }

    /// The dead letter of a queue with this number.
    pub fn dead_letter(&self, queue: String, id: i64, caller: impl Caller<Option<DeadLetter>>) {
        self.read(None, caller, move |snapshot, _| snapshot.queues()?.dead_letter(&queue, id));
    }

    /// Deletes a message of a queue, unless a consumer has it.
    pub fn delete_message(
        &self,
        queue: String,
        id: i64,
        busy: Duration,
        reply: impl FnOnce(Result<MessageDeletion>) + Send + 'static,
    ) {
        let env = self.env.clone();
        let work = move |writer: &mut dyn Writer| {
            writer.delete_message(&queue, id, env.now_ms(), Instant::now() + busy)
        };
        self.on_writer(work, reply);
    }

    /// Removes a message of a queue, whoever has it. The reply says whether there was one.
    pub fn cancel_message(&self, queue: &str, id: i64, reply: Reply) {
        self.ask(Ask::Settle(Settlement::cancelled(queue, id)), reply);
    }

    /// Changes a queue. The reply gets the messages affected.
    pub fn change_queue(
        &self,
        queue: String,
        change: QueueChange,
        busy: Duration,
        reply: impl FnOnce(Result<QueueChanged>) + Send + 'static,
    ) {
        let env = self.env.clone();
        let feeds = Arc::downgrade(&self.feeds);
        let work = move |writer: &mut dyn Writer| {
            let deadline = Instant::now() + busy;
            let changed = writer.change_queue(&queue, change, env.now_ms(), deadline)?;
            if let Some(feeds) = feeds.upgrade() {
                feeds.announce(&[], changed.versions);
            }
            Ok(changed)
        };
        self.on_writer(work, reply);
    }

    /// Applies an order to dead letters of a queue. The reply gets the number of messages affected.
    pub fn change_dead_letters(
        &self,
        queue: String,
        change: DeadLetterChange,
        busy: Duration,
        reply: impl FnOnce(Result<usize>) + Send + 'static,
    ) {
        let env = self.env.clone();
        let feeds = Arc::downgrade(&self.feeds);
        let work = move |writer: &mut dyn Writer| {
            let deadline = Instant::now() + busy;
            let done = writer.change_dead_letters(&queue, &change, env.now_ms(), deadline)?;
            // A commit without keys: no watch has to read, but feeds pass it.
            if let Some(feeds) = feeds.upgrade() {
                feeds.announce(&[], done.versions);
            }
            Ok(done.count)
        };
        self.on_writer(work, reply);
    }
}

impl WriteQueue {
    /// Ends all listeners and all waits of `receive` with this error, because the store cannot
    /// detect messages. Returns the number of listeners.
    pub(super) fn refuse_consumers(&self, error: &Error) -> usize {
        let (lost, receivers) = {
            let mut waiting = self.waiting.lock();
            (std::mem::take(&mut waiting.lost), waiting.consumers.cancel_all())
        };
        let ended = lost.keys().filter(|id| self.end_listener(**id, Listener::stop)).count();
        lost.into_values().for_each(|lost| lost(error.clone()));
        receivers.into_iter().for_each(|reply| reply(Err(error.clone())));
        ended
    }

    /// Ends a listener by `stop` or `leave`. Returns whether it was open.
    fn end_listener(&self, id: Id, how: impl FnOnce(&mut Listener) -> bool) -> bool {
        let now_ms = self.env.now_ms();
        let mut waiting = self.waiting.lock();
        let (was_open, finished) = waiting.consumers.end(id, now_ms, how);
        let removed = waiting.lost.remove(&id);
        drop(waiting);
        drop((finished, removed));
        was_open
    }
}
