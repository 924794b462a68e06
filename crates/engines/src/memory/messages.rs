//! Queue messages in memory: waiting, locked and dead, each state in its reading order.

mod changes;
mod copies;
mod reader;

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, HashMap};

use openkv_core::codec::message_context;
use openkv_core::commit::{LockedMessage, MessageTable, Placed, after_clock};
use openkv_core::model::{
    Claim, DeadLetter, Deduplication, Delivery, Encoding, Freed, KeptMessage, LIMITED_QUEUES,
    LOCK_LENGTH_MASK, LoggedMessage, Message, MessagePlace, PAUSED_QUEUES, Peeked, Reason, Result,
    Time, WAITS_FOR_ANOTHER_MS, attempts_left, awaited_key, groups_range, queue_of_callers,
    turns_queue,
};

pub(super) use reader::QueueReader;

/// The order of delivery in a queue: priority, due time, number.
type WaitingOrder = (Reverse<u8>, i64, i64);

#[derive(Default)]
pub(super) struct Messages {
    last_id: i64,
    live: BTreeMap<i64, Queued>,
    waiting: BTreeMap<String, BTreeSet<WaitingOrder>>,
    /// Expiry of the lock, and number.
    locked: BTreeMap<String, BTreeSet<(i64, i64)>>,
    /// Queue and deduplication key of messages that are not dead.
    keys: HashMap<(String, String), i64>,
    dead: BTreeMap<i64, Dead>,
    /// Time of death, and number.
    dead_order: HashMap<String, BTreeSet<(i64, i64)>>,
    /// End of the retention, and number.
    purges: BTreeSet<(i64, i64)>,
}

struct Queued {
    message: Message,
    due_ms: i64,
    /// Zero while it waits.
    lock: i64,
    lock_end_ms: i64,
    attempts: u32,
    enqueued_ms: i64,
    first_ms: Option<i64>,
    last_ms: Option<i64>,
}

impl Queued {
    fn order(&self, id: i64) -> WaitingOrder {
        (Reverse(self.message.priority), self.due_ms, id)
    }

    fn place(&self, id: i64, now_ms: i64) -> MessagePlace {
        MessagePlace::of(id, self.message.priority, self.due_ms, self.lock_end(), now_ms)
    }

    fn lock_end(&self) -> Option<i64> {
        (self.lock != 0).then_some(self.lock_end_ms)
    }

    fn peeked(&self, id: i64) -> Peeked {
        Peeked {
            id,
            priority: self.message.priority,
            attempts: self.attempts,
            enqueued_ms: self.enqueued_ms,
            due_ms: self.due_ms,
            lock_end_ms: self.lock_end(),
            value: self.message.value.clone(),
        }
    }
}

struct Dead {
    message: Message,
    /// Without the value, which the message has.
    letter: DeadLetter,
    purge_ms: Option<i64>,
}

impl Messages {
    fn insert(&mut self, id: i64, message: Message, now_ms: i64) {
        if let Some(key) = key_of(&message) {
            self.keys.insert(key, id);
        }
        let queued = Queued {
            due_ms: message.due.at_ms(now_ms),
            message,
            lock: 0,
            lock_end_ms: 0,
            attempts: 0,
            enqueued_ms: now_ms,
            first_ms: None,
            last_ms: None,
        };
        self.put(id, queued);
    }

    /// Adds a message under a new number.
    fn add(&mut self, message: Message, now_ms: i64) -> i64 {
        self.last_id += 1;
        self.insert(self.last_id, message, now_ms);
        self.last_id
    }

    fn put(&mut self, id: i64, queued: Queued) {
        let queue = queued.message.queue.clone();
        if queued.lock == 0 {
            self.waiting.entry(queue).or_default().insert(queued.order(id));
        } else {
            self.locked.entry(queue).or_default().insert((queued.lock_end_ms, id));
        }
        self.live.insert(id, queued);
    }

    fn take(&mut self, id: i64) -> Option<Queued> {
        let queued = self.live.remove(&id)?;
        let queue = &queued.message.queue;
        match queued.lock {
            0 => leave(&mut self.waiting, queue, &queued.order(id)),
            _ => leave(&mut self.locked, queue, &(queued.lock_end_ms, id)),
        }
        Some(queued)
    }

    fn holds(&self, id: i64, lock: i64) -> bool {
        self.live.get(&id).is_some_and(|queued| queued.lock == lock)
    }

    /// Removes the message if this lock holds it.
    fn take_held(&mut self, id: i64, lock: i64) -> Option<Queued> {
        self.holds(id, lock).then(|| self.take(id)).flatten()
    }

    fn locked_of(&self, id: i64) -> Option<LockedMessage> {
        let Queued { message, attempts, lock_end_ms, .. } = self.live.get(&id)?;
        Some(LockedMessage {
            id,
            attempts: *attempts,
            lock_end_ms: *lock_end_ms,
            message: message.clone(),
            encoding: Encoding::Cbor,
        })
    }

    fn put_dead(&mut self, id: i64, dead: Dead) {
        let died_ms = dead.letter.died_ms;
        self.dead_order.entry(dead.message.queue.clone()).or_default().insert((died_ms, id));
        self.purges.extend(dead.purge_ms.map(|at| (at, id)));
        self.dead.insert(id, dead);
    }

    fn take_dead(&mut self, id: i64) -> Option<Message> {
        let dead = self.dead.remove(&id)?;
        if let Some(dead_order) = self.dead_order.get_mut(&dead.message.queue) {
            dead_order.remove(&(dead.letter.died_ms, id));
        }
        if let Some(at) = dead.purge_ms {
            self.purges.remove(&(at, id));
        }
        Some(dead.message)
    }

    fn forget_key(&mut self, message: &Message) {
        if let Some(key) = key_of(message) {
            self.keys.remove(&key);
        }
    }

    fn is_paused(&self, queue: &str) -> bool {
        self.keys.contains_key(&(PAUSED_QUEUES.to_owned(), queue.to_owned()))
    }

    fn first_due(&self, queue: &str) -> Option<i64> {
        let waiting = self.waiting.get(queue).filter(|_| !self.is_paused(queue));
        firsts(waiting).map(|(_, due_ms, _)| due_ms).min()
    }

    pub(super) fn earliest(&self, queue: &str) -> Option<i64> {
        let rule = self.keys.get(&(LIMITED_QUEUES.to_owned(), queue.to_owned()));
        let until_ms = rule.and_then(|id| self.live.get(id)).map(|rule| rule.due_ms);
        let turns = until_ms.filter(|_| !self.is_paused(queue));
        let turns = turns.and_then(|_| self.first_due(&turns_queue(queue)));
        let due = self.first_due(queue).into_iter().chain(turns).min();
        let due = due.map(|at| at.max(until_ms.unwrap_or(at)));
        due.into_iter().chain(self.first_end(queue)).min()
    }

    /// The earliest end of a lock of a queue and of its groups.
    fn first_end(&self, queue: &str) -> Option<i64> {
        let ends = with_groups(&self.locked, queue).filter_map(|locked| locked.first());
        ends.map(|(end_ms, _)| *end_ms).min()
    }

    /// The numbers of due messages, in the order of delivery.
    fn due_ids(&self, queue: &str, max: usize, now_ms: i64) -> Vec<i64> {
        let waiting = self.waiting.get(queue);
        let due = firsts(waiting).flat_map(|(priority, ..)| {
            let of_it = (priority, i64::MIN, i64::MIN)..=(priority, now_ms, i64::MAX);
            waiting.into_iter().flat_map(move |waiting| waiting.range(of_it.clone()))
        });
        due.take(max).map(|(_, _, id)| *id).collect()
    }

    /// Deletes messages that are not dead. Returns of what their queues are free.
    fn delete(&mut self, ids: &[i64]) -> Vec<Freed> {
        let gone = ids.iter().filter_map(|id| {
            let message = self.take(*id)?.message;
            self.forget_key(&message);
            Some(freed_of(message))
        });
        gone.collect()
    }

    pub(super) fn earliest_purge(&self) -> Option<i64> {
        self.purges.first().map(|(at, _)| *at)
    }

    /// Lets times that end later than their own length from now count by it. Returns the messages that are due at
    /// another time, or whose group is looked at at another time.
    pub(super) fn bound_times(&mut self, queue: &str, now_ms: i64) -> Result<Vec<i64>> {
        let rule = self.keys.get(&(LIMITED_QUEUES.to_owned(), queue.to_owned()));
        let rule = rule.and_then(|id| self.live.get(id));
        let of_queue = self.live.iter().filter(|(_, of)| is_of(queue, &of.message.queue));
        let late = of_queue.filter(|(_, of)| of.last_ms.unwrap_or(of.enqueued_ms) > now_ms);
        let ids: Vec<i64> = late.map(|(id, _)| *id).collect();
        let is_ahead = !ids.is_empty() || rule.is_some_and(|rule| rule.enqueued_ms > now_ms);
        let mut changed = if is_ahead { after_clock(self, queue, now_ms)? } else { Vec::new() };
        for id in ids {
            let Some(mut queued) = self.take(id) else { continue };
            if queued.lock != 0 {
                queued.lock_end_ms =
                    queued.lock_end_ms.min(now_ms + (queued.lock & LOCK_LENGTH_MASK));
            } else if queued.due_ms < WAITS_FOR_ANOTHER_MS {
                let length_ms = match queued.last_ms {
                    Some(last_ms) => Some(queued.due_ms.saturating_sub(last_ms)),
                    None => message_context::delay_of(&queued.message.value),
                };
                if let Some(length_ms) = length_ms {
                    queued.due_ms = queued.due_ms.min(now_ms.saturating_add(length_ms));
                    changed.push(id);
                }
            }
            self.put(id, queued);
        }
        Ok(changed)
    }

    pub(super) fn depth(&self, queue: &str) -> u64 {
        let waiting: usize = with_groups(&self.waiting, queue).map(|all| all.len()).sum();
        (waiting + with_groups(&self.locked, queue).map(|all| all.len()).sum::<usize>()) as u64
    }
}

impl MessageTable for Messages {
    fn acknowledge(&mut self, id: i64, lock: i64) -> Result<Option<Freed>> {
        let taken = self.take_held(id, lock);
        if let Some(queued) = &taken {
            self.forget_key(&queued.message);
        }
        Ok(taken.map(|queued| freed_of(queued.message)))
    }

    fn is_held(&mut self, id: i64, lock: i64) -> Result<bool> {
        Ok(lock != 0 && self.holds(id, lock))
    }

    fn put_back(&mut self, id: i64, lock: i64) -> Result<Option<Freed>> {
        let Some(mut queued) = self.take_held(id, lock) else { return Ok(None) };
        queued.lock = 0;
        queued.attempts -= 1;
        if queued.attempts == 0 {
            queued.first_ms = None;
        }
        let Message { queue, deduplication_key: key, .. } = &queued.message;
        let freed = Freed { queue: queue.clone(), key: key.clone() };
        self.put(id, queued);
        Ok(Some(freed))
    }

    fn cancel(&mut self, queue: &str, id: i64) -> Result<Option<(Freed, Vec<u8>)>> {
        if self.live.get(&id).is_none_or(|queued| !is_of(queue, &queued.message.queue)) {
            return Ok(None);
        }
        let cancelled = self.take(id).map(|queued| queued.message);
        if let Some(message) = &cancelled {
            self.forget_key(message);
        }
        Ok(cancelled.map(|mut message| {
            let value = std::mem::take(&mut message.value);
            (freed_of(message), value)
        }))
    }

    fn locked(&mut self, id: i64, lock: i64) -> Result<Option<LockedMessage>> {
        Ok(self.holds(id, lock).then(|| self.locked_of(id)).flatten())
    }

    fn renew(&mut self, id: i64, lock: i64, end_ms: i64) -> Result<bool> {
        let Some(mut queued) = self.take_held(id, lock) else { return Ok(false) };
        queued.lock_end_ms = end_ms;
        self.put(id, queued);
        Ok(true)
    }

    fn expired(&mut self, queue: &str, max: usize, now_ms: i64) -> Result<Vec<LockedMessage>> {
        let mut expired: Vec<_> = with_groups(&self.locked, queue)
            .flat_map(|locked| locked.iter().take_while(|(end, _)| *end <= now_ms).take(max))
            .collect();
        expired.sort_unstable();
        Ok(expired.into_iter().take(max).filter_map(|(_, id)| self.locked_of(*id)).collect())
    }

    fn due(&mut self, queue: &str, max: usize, now_ms: i64) -> Result<Vec<i64>> {
        Ok(self.due_ids(queue, max, now_ms))
    }

    fn next_due(&mut self, queue: &str) -> Result<Option<i64>> {
        Ok(self.first_due(queue))
    }

    fn next_end(&mut self, queue: &str) -> Result<Option<i64>> {
        Ok(self.first_end(queue))
    }

    fn running(&mut self, queue: &str) -> Result<u64> {
        Ok(with_groups(&self.locked, queue).map(|locked| locked.len() as u64).sum())
    }

    fn move_to(&mut self, id: i64, queue: &str) -> Result<()> {
        let Some(mut queued) = self.take(id) else { return Ok(()) };
        self.forget_key(&queued.message);
        queue.clone_into(&mut queued.message.queue);
        match key_of(&queued.message) {
            Some(key) if self.keys.contains_key(&key) => queued.message.deduplication_key = None,
            Some(key) => drop(self.keys.insert(key, id)),
            None => {}
        }
        self.put(id, queued);
        Ok(())
    }

    fn retry(&mut self, locked: &LockedMessage, due_ms: i64) -> Result<()> {
        if let Some(mut queued) = self.take(locked.id) {
            queued.lock = 0;
            queued.due_ms = due_ms;
            self.put(locked.id, queued);
        }
        Ok(())
    }

    fn remove_dead(
        &mut self,
        locked: &LockedMessage,
        reason: Option<&Reason>,
        now_ms: i64,
    ) -> Result<()> {
        let id = locked.id;
        let Some(queued) = self.take(id) else { return Ok(()) };
        self.forget_key(&queued.message);
        let Some(reason) = reason else { return Ok(()) };
        let Queued { mut message, attempts, enqueued_ms, first_ms, last_ms, .. } = queued;
        message.queue = queue_of_callers(&message.queue).to_owned();
        let purge_ms = message.dead_retention_ms.map(|kept| now_ms.saturating_add(kept));
        let letter = DeadLetter {
            id,
            attempts,
            enqueued_ms,
            first_ms: first_ms.unwrap_or(now_ms),
            last_ms: last_ms.unwrap_or(now_ms),
            died_ms: now_ms,
            reason: reason.clone(),
            value: Vec::new(),
        };
        self.put_dead(id, Dead { message, letter, purge_ms });
        Ok(())
    }

    fn enqueue(&mut self, mut message: Message, now_ms: i64) -> Result<Placed> {
        let earlier = key_of(&message).and_then(|key| self.keys.get(&key).copied());
        let deduplication = std::mem::take(&mut message.deduplication);
        let of_earlier = earlier.and_then(|id| Some((id, self.live.get(&id)?)));
        let Some((earlier, queued)) = of_earlier else {
            return Ok(Placed::only(Some(self.add(message, now_ms)), false));
        };
        let (is_locked, due_ms) = (queued.lock != 0, queued.due_ms);
        let waits_for_another = due_ms >= WAITS_FOR_ANOTHER_MS;
        match (deduplication, is_locked) {
            (Deduplication::Drop, _) | (Deduplication::Again, false) => {
                Ok(Placed::only(Some(earlier), true))
            }
            (Deduplication::Again, true) => {
                if let Some(queued) = self.live.get_mut(&earlier)
                    && let Some(key) = &message.deduplication_key
                {
                    let key = awaited_key(key);
                    self.keys.insert((message.queue.clone(), key.clone()), earlier);
                    queued.message.deduplication_key = Some(key);
                }
                message.due = Time::At(WAITS_FOR_ANOTHER_MS);
                Ok(Placed::beside(self.add(message, now_ms), earlier))
            }
            (Deduplication::Replace | Deduplication::Debounce, true) => {
                if let Some(queued) = self.live.get_mut(&earlier) {
                    queued.message.deduplication_key = None;
                }
                Ok(Placed::beside(self.add(message, now_ms), earlier))
            }
            (Deduplication::Replace | Deduplication::Debounce, false) => {
                if waits_for_another || deduplication == Deduplication::Replace {
                    message.due = Time::At(due_ms);
                }
                self.take(earlier);
                self.insert(earlier, message, now_ms);
                Ok(Placed::instead(earlier))
            }
        }
    }

    fn with_key(&mut self, queue: &str, key: &str) -> Result<Option<i64>> {
        Ok(self.keys.get(&(queue.to_owned(), key.to_owned())).copied())
    }

    fn leave_key(&mut self, id: i64) -> Result<()> {
        let left = self.live.get_mut(&id).and_then(|queued| {
            Some((queued.message.queue.clone(), queued.message.deduplication_key.take()?))
        });
        if let Some(key) = left {
            self.keys.remove(&key);
        }
        Ok(())
    }

    fn claim(&mut self, claim: &Claim, now_ms: i64) -> Result<Vec<Delivery>> {
        let Claim { queue, max, lock_ms, lock } = claim;
        let is_paused = self.is_paused(queue);
        let ids = if is_paused { Vec::new() } else { self.due_ids(queue, *max, now_ms) };
        let mut deliveries = Vec::new();
        for id in ids {
            let Some(mut queued) = self.take(id) else { continue };
            queued.lock = *lock;
            queued.lock_end_ms = now_ms + lock_ms;
            queued.attempts += 1;
            queued.first_ms.get_or_insert(now_ms);
            queued.last_ms = Some(now_ms);
            deliveries.push(Delivery {
                id,
                lock: *lock,
                attempts: queued.attempts,
                attempts_left: attempts_left(queued.message.backoff_ms.len(), queued.attempts),
                enqueued_ms: queued.enqueued_ms,
                value: queued.message.value.clone(),
            });
            self.put(id, queued);
        }
        Ok(deliveries)
    }

    fn kept(&mut self, ids: &[i64]) -> Result<Vec<Option<KeptMessage>>> {
        Ok(ids.iter().map(|id| copies::read(self, *id)).collect())
    }

    fn repeat(&mut self, messages: &[LoggedMessage]) -> Result<()> {
        copies::replace(self, messages);
        Ok(())
    }

    fn purge(&mut self, max: usize, now_ms: i64) -> Result<usize> {
        let over = self.purges.iter().take_while(|(at, _)| *at <= now_ms).take(max);
        let ids: Vec<i64> = over.map(|(_, id)| *id).collect();
        Ok(ids.into_iter().filter_map(|id| self.take_dead(id)).count())
    }
}

/// Takes what is of a queue from it. A queue without any leaves nothing: there are as many as groups.
fn leave<T: Ord>(from: &mut BTreeMap<String, BTreeSet<T>>, queue: &str, gone: &T) {
    if let Some(of) = from.get_mut(queue)
        && of.remove(gone)
        && of.is_empty()
    {
        from.remove(queue);
    }
}

/// The first message of each priority.
fn firsts(waiting: Option<&BTreeSet<WaitingOrder>>) -> impl Iterator<Item = WaitingOrder> {
    let first_from = move |from: WaitingOrder| waiting?.range(from..).next().copied();
    std::iter::successors(first_from((Reverse(u8::MAX), i64::MIN, i64::MIN)), move |place| {
        let (Reverse(priority), ..) = place;
        first_from((Reverse(priority.checked_sub(1)?), i64::MIN, i64::MIN))
    })
}

/// Those of a queue and of its groups.
fn with_groups<'m, T>(
    of: &'m BTreeMap<String, T>,
    queue: &str,
) -> impl Iterator<Item = &'m T> + use<'m, T> {
    let (from, to) = groups_range(queue);
    of.get(queue).into_iter().chain(of.range(from..to).map(|(_, of)| of))
}

/// Whether a queue, or the one that has it as a group, is `queue`.
fn is_of(queue: &str, of: &str) -> bool {
    of == queue || queue_of_callers(of) == queue
}

fn freed_of(message: Message) -> Freed {
    Freed { queue: message.queue, key: message.deduplication_key }
}

fn key_of(message: &Message) -> Option<(String, String)> {
    let key = message.deduplication_key.clone()?;
    Some((message.queue.clone(), key))
}

#[cfg(test)]
mod tests;
