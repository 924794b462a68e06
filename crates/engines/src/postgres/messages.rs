//! Messages in the writer's transaction: those that the batch names are fetched with the first trip,
//! and changed with the last one. Only claims need a trip of their own.

mod changes;
mod statements;

use std::collections::{HashMap, HashSet};

use tokio_postgres::Row;

use self::statements::{
    CANCEL, CLAIM, DUE, EXPIRED, EXTEND_EXPIRED, FIRST_ENDS, HELD, LEAVE_KEY, LIMITED, MOVE,
    NEXT_DUE, NEXT_END, PURGE, REPLACE, RUNNING, SAME_KEY,
};
use super::cells::{Cells, first};
use super::kept_messages;
use super::line::{Call, Value};
use super::link::Link;
use super::message_changes::{MessageChanges, freed_of};
use crate::packed::{pack_intervals, pack_keys, packed_intervals, unpack_intervals, unpack_keys};
use openkv_core::commit::{LockedMessage, MessageTable, Placed};
use openkv_core::model::{
    Ack, Claim, Deduplication, Delivery, Encoding, Freed, KeptMessage, LIMITED_QUEUES, Message,
    Outcome, PAUSED_QUEUES, PRIORITY_MAX, Reason, Renewal, Result, Settlement, Time,
    WAITS_FOR_ANOTHER_MS, attempts_left, awaited_key, groups_range, queue_of_callers,
};

/// The messages and queues that a batch names.
#[derive(Default)]
pub(super) struct HeldArguments {
    ids: Vec<i64>,
    locks: Vec<i64>,
    fails: Vec<bool>,
    queues: Vec<Vec<u8>>,
    /// The range of the names of each queue's groups.
    firsts: Vec<Vec<u8>>,
    lasts: Vec<Vec<u8>>,
    limited: &'static [u8],
}

impl HeldArguments {
    pub(super) fn of(
        settlements: &[Settlement],
        renewals: &[Renewal],
        acks: &[Ack],
        claims: &[Claim],
    ) -> Self {
        let mut held = Self { limited: LIMITED_QUEUES.as_bytes(), ..Self::default() };
        for ack in acks {
            held.push(ack.id, ack.lock, false);
        }
        for settlement in settlements {
            let fails = match settlement.outcome {
                Outcome::Failed | Outcome::Dead => true,
                // The entries about the message need its context too.
                Outcome::Completed | Outcome::Progressed => true,
                Outcome::Done | Outcome::Returned | Outcome::Cancelled => false,
            };
            held.push(settlement.id, settlement.lock, fails);
        }
        for renewal in renewals {
            held.push(renewal.id, renewal.lock, false);
        }
        for Claim { queue, .. } in claims {
            let (first, last) = groups_range(queue);
            held.queues.push(queue.as_bytes().to_vec());
            held.firsts.push(first.into_bytes());
            held.lasts.push(last.into_bytes());
        }
        held
    }

    fn push(&mut self, id: i64, lock: i64, fails: bool) {
        self.ids.push(id);
        self.locks.push(lock);
        self.fails.push(fails);
    }

    /// Adds the statements that fetch them: none, or all three.
    pub(super) fn calls<'a>(&'a self, db: &'a i64, calls: &mut Vec<Call<'a>>) {
        if !self.is_empty() {
            calls.push((HELD, vec![db, &self.ids, &self.locks, &self.fails]));
            calls.push((FIRST_ENDS, vec![db, &self.queues, &self.firsts, &self.lasts]));
            calls.push((LIMITED, vec![db, &self.limited, &self.queues, &self.ids]));
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty() && self.queues.is_empty()
    }
}

/// The messages of the database, inside a transaction of the writer.
pub(super) struct Messages {
    link: Link,
    db: i64,
    last_id: i64,
    /// By number: its lock, and what its failure needs.
    held: HashMap<i64, (i64, LockedMessage)>,
    first_ends: HashMap<Vec<u8>, i64>,
    /// Queues that have no rule.
    unlimited: HashSet<String>,
    /// Deduplication keys of the batch, by queue.
    keys: HashMap<(String, String), i64>,
    changes: MessageChanges,
    /// Messages that the transaction has deleted, sent or not.
    gone: HashSet<i64>,
    flushed: bool,
}

impl Messages {
    pub(super) fn new(link: Link, db: i64, last_id: i64) -> Self {
        let (held, first_ends, keys) = (HashMap::new(), HashMap::new(), HashMap::new());
        let (changes, gone) = (MessageChanges::default(), HashSet::new());
        let unlimited = HashSet::new();
        Self { link, db, last_id, held, first_ends, unlimited, keys, changes, gone, flushed: false }
    }

    /// Takes the answers of [`HeldArguments::calls`].
    ///
    /// # Errors
    /// `Corrupt` for columns of other types.
    pub(super) fn learn(
        &mut self,
        arguments: &HeldArguments,
        [held, first_ends, limited]: [&[Row]; 3],
    ) -> Result<()> {
        for row in held {
            let lock = Cells::of("messages", row).get(1)?;
            let locked = locked_of(row)?;
            // A message may be named twice; its value is read only for a failure.
            let known = self.held.get(&locked.id);
            if known.is_none_or(|(_, known)| known.message.value.is_empty()) {
                self.held.insert(locked.id, (lock, locked));
            }
        }
        for row in first_ends {
            let cells = Cells::of("messages", row);
            let (queue, end_ms) = (cells.get(0)?, cells.get(1)?);
            let first: &mut i64 = self.first_ends.entry(queue).or_insert(end_ms);
            *first = end_ms.min(*first);
        }
        let queues =
            arguments.queues.iter().map(|queue| String::from_utf8_lossy(queue).into_owned());
        let named = self.held.values().map(|(_, message)| message.message.queue.clone());
        self.unlimited = queues.chain(named).collect();
        self.unlimited.retain(|queue| queue_of_callers(queue) == queue);
        for row in limited {
            self.unlimited.remove(&Cells::of("messages", row).text(0)?);
        }
        Ok(())
    }

    /// The changes to write.
    pub(super) fn take_changes(&mut self) -> MessageChanges {
        std::mem::take(&mut self.changes)
    }

    /// The number of the last message, after the batch.
    pub(super) fn last_id(&self) -> i64 {
        self.last_id
    }

    /// Whether the transaction has sent changes already.
    pub(super) fn has_flushed(&self) -> bool {
        self.flushed
    }

    /// Sends the changes so far with one more statement; answers that one's rows.
    fn flush_with(&mut self, last: Call<'_>) -> Result<Vec<Row>> {
        let changes = self.take_changes();
        let mut calls = Vec::new();
        changes.calls(&self.db, &mut calls);
        calls.push(last);
        let mut answers = self.link.run(&calls)?;
        let rows = answers.pop().map(|answer| answer.rows).unwrap_or_default();
        self.flushed |= calls.len() > 1 || !rows.is_empty();
        Ok(rows)
    }

    /// Deletes a message that leaves no dead letter.
    fn delete(&mut self, id: i64) {
        self.changes.delete(id);
        self.gone.insert(id);
    }

    fn holds(&self, id: i64, lock: i64) -> bool {
        self.held.get(&id).is_some_and(|(held, _)| *held == lock)
    }

    /// Takes the message that a lock holds; the batch holds it no more.
    fn take_held(&mut self, id: i64, lock: i64) -> Option<LockedMessage> {
        self.holds(id, lock).then(|| self.held.remove(&id)).flatten().map(|(_, message)| message)
    }

    /// Adds a message under a new number.
    fn add(&mut self, message: Message, now_ms: i64) -> i64 {
        self.last_id += 1;
        if let Some(key) = &message.deduplication_key {
            self.keys.insert((message.queue.clone(), key.clone()), self.last_id);
        }
        self.changes.enqueue(self.last_id, message, now_ms);
        self.last_id
    }

    /// The live message with a deduplication key after the changes so far, whether a consumer has it, and when it is due.
    fn stored_with_key(&mut self, queue: &str, key: &str) -> Result<Option<(i64, bool, i64)>> {
        let (db, queue, key) = (self.db, queue.as_bytes(), key.as_bytes());
        let rows = self.flush_with((SAME_KEY, vec![&db, &queue, &key]))?;
        let cells = rows.first().map(|row| Cells::of("messages", row));
        cells.map(|cells| Ok((cells.get(0)?, cells.get(1)?, cells.get(2)?))).transpose()
    }

    /// Makes a waiting message this one, as if it had just been enqueued; `due_ms`: its new due time.
    fn replace(
        &mut self,
        id: i64,
        message: &Message,
        due_ms: Option<i64>,
        now_ms: i64,
    ) -> Result<()> {
        let (db, priority) = (self.db, i16::from(message.priority));
        let backoff = pack_intervals(&message.backoff_ms);
        let undelivered = pack_keys(&message.keys_if_undelivered);
        let mut values: Vec<&Value<'_>> = vec![&db, &id, &priority, &due_ms, &now_ms];
        values.extend([&message.dead_retention_ms as &Value<'_>, &backoff, &undelivered]);
        values.push(&message.value);
        self.flush_with((REPLACE, values)).map(drop)
    }

    /// Gives a message another deduplication key, or none.
    fn set_key(&mut self, id: i64, key: Option<String>) -> Result<()> {
        let (db, bytes) = (self.db, key.as_ref().map(String::as_bytes));
        self.flushed = true;
        self.flush_with((LEAVE_KEY, vec![&db, &id, &bytes]))?;
        if let Some((_, held)) = self.held.get_mut(&id) {
            held.message.deduplication_key = key;
        }
        Ok(())
    }

    /// A number that `query` finds for a queue and its groups.
    fn number_of(&mut self, query: &'static str, queue: &str) -> Result<Option<i64>> {
        let (from, to) = groups_range(queue);
        let (db, queue) = (self.db, queue.as_bytes());
        let (from, to) = (from.as_bytes(), to.as_bytes());
        let rows = self.flush_with((query, vec![&db, &queue, &from, &to]))?;
        first("messages", &rows)
    }

    /// The live message with a deduplication key, without sending the changes so far.
    fn known_with_key(&self, queue: &str, key: &str) -> Result<Option<i64>> {
        if let Some(id) = self.keys.get(&(queue.to_owned(), key.to_owned())) {
            return Ok(Some(*id).filter(|id| !self.changes.deletes(*id)));
        }
        let (queue, key) = (queue.as_bytes(), key.as_bytes());
        let rows = self.link.query((SAME_KEY, vec![&self.db, &queue, &key]))?;
        let found: Option<i64> = first("messages", &rows)?;
        Ok(found.filter(|id| !self.changes.deletes(*id)))
    }
}

/// The message of a row with the columns of a locked message.
fn locked_of(row: &Row) -> Result<LockedMessage> {
    let cells = Cells::of("messages", row);
    Ok(LockedMessage {
        id: cells.get(0)?,
        attempts: cells.get::<i32>(2)?.cast_unsigned(),
        lock_end_ms: cells.get(3)?,
        message: Message {
            queue: cells.text(4)?,
            backoff_ms: unpack_intervals(cells.get(5)?),
            keys_if_undelivered: unpack_keys(cells.get(6)?),
            dead_retention_ms: cells.get(7)?,
            value: cells.get(8)?,
            deduplication_key: cells
                .get::<Option<&[u8]>>(9)?
                .map(|key| String::from_utf8_lossy(key).into_owned()),
            ..Message::default()
        },
        encoding: Encoding::Cbor,
    })
}

/// A message of a row of [`CLAIM`], behind what it is ordered by.
fn claimed_of(row: &Row, lock: i64) -> Result<((i16, i64, i64), Delivery)> {
    let cells = Cells::of("messages", row);
    let (id, attempts) = (cells.get(0)?, cells.get::<i32>(1)?.cast_unsigned());
    let backoff_bytes = usize::try_from(cells.get::<i32>(6)?).unwrap_or(0);
    let delivery = Delivery {
        id,
        lock,
        attempts,
        attempts_left: attempts_left(packed_intervals(backoff_bytes), attempts),
        enqueued_ms: cells.get(2)?,
        value: cells.get(3)?,
    };
    Ok(((-cells.get::<i16>(4)?, cells.get(5)?, id), delivery))
}

impl MessageTable for Messages {
    fn acknowledge(&mut self, id: i64, lock: i64) -> Result<Option<Freed>> {
        let held = self.take_held(id, lock);
        if held.is_some() {
            self.delete(id);
        }
        Ok(held.map(|held| held.freed()))
    }

    fn is_held(&mut self, id: i64, lock: i64) -> Result<bool> {
        Ok(self.holds(id, lock))
    }

    fn put_back(&mut self, id: i64, lock: i64) -> Result<Option<Freed>> {
        let Some(held) = self.take_held(id, lock) else { return Ok(None) };
        self.changes.put_back(id);
        Ok(Some(held.freed()))
    }

    fn cancel(&mut self, queue: &str, id: i64) -> Result<Option<(Freed, Vec<u8>)>> {
        let (from, to) = groups_range(queue);
        let (db, queue) = (self.db, queue.as_bytes());
        let (from, to) = (from.as_bytes(), to.as_bytes());
        let rows = self.flush_with((CANCEL, vec![&db, &id, &queue, &from, &to]))?;
        let Some(row) = rows.first() else { return Ok(None) };
        self.held.remove(&id);
        self.gone.insert(id);
        Ok(Some((freed_of(row)?, Cells::of("messages", row).get(2)?)))
    }

    fn locked(&mut self, id: i64, lock: i64) -> Result<Option<LockedMessage>> {
        Ok(self.take_held(id, lock))
    }

    fn renew(&mut self, id: i64, lock: i64, end_ms: i64) -> Result<bool> {
        let held = self.holds(id, lock);
        if held {
            self.changes.renew(id, end_ms);
        }
        Ok(held)
    }

    fn extend_expired(&mut self, queue: &str, now_ms: i64, end_ms: i64) -> Result<()> {
        let (from, to) = groups_range(queue);
        let (db, queue) = (self.db, queue.as_bytes());
        let (from, to) = (from.as_bytes(), to.as_bytes());
        self.flushed = true;
        let values: Vec<&Value<'_>> = vec![&db, &queue, &now_ms, &end_ms, &from, &to];
        self.flush_with((EXTEND_EXPIRED, values)).map(drop)
    }

    fn expired(&mut self, queue: &str, max: usize, now_ms: i64) -> Result<Vec<LockedMessage>> {
        // The batch has only ended locks since, or moved their ends into the future.
        if self.first_ends.get(queue.as_bytes()).is_none_or(|end| *end > now_ms) {
            return Ok(Vec::new());
        }
        let (db, max) = (self.db, i64::try_from(max).unwrap_or(i64::MAX));
        let (from, to) = groups_range(queue);
        let (queue, from, to) = (queue.as_bytes(), from.as_bytes(), to.as_bytes());
        let rows = self.flush_with((EXPIRED, vec![&db, &queue, &now_ms, &max, &from, &to]))?;
        rows.iter().map(locked_of).collect()
    }

    fn retry(&mut self, locked: &LockedMessage, due_ms: i64) -> Result<()> {
        self.changes.retry(locked.id, due_ms);
        Ok(())
    }

    fn remove_dead(
        &mut self,
        locked: &LockedMessage,
        reason: Option<&Reason>,
        now_ms: i64,
    ) -> Result<()> {
        match reason {
            Some(reason) => {
                let queue = queue_of_callers(&locked.message.queue);
                self.changes.die(locked.id, queue, reason, now_ms);
                self.changes.delete(locked.id);
            }
            None => self.delete(locked.id),
        }
        Ok(())
    }

    fn enqueue(&mut self, message: Message, now_ms: i64) -> Result<Placed> {
        if message.queue == LIMITED_QUEUES
            && let Some(queue) = &message.deduplication_key
        {
            self.unlimited.remove(queue);
        }
        let Some(key) = &message.deduplication_key else {
            return Ok(Placed::only(Some(self.add(message, now_ms)), false));
        };
        let due_ms = match message.deduplication {
            Deduplication::Drop => {
                return Ok(match self.known_with_key(&message.queue, key)? {
                    Some(id) => Placed::only(Some(id), true),
                    None => Placed::only(Some(self.add(message, now_ms)), false),
                });
            }
            Deduplication::Replace | Deduplication::Again => None,
            Deduplication::Debounce => Some(message.due.at_ms(now_ms)),
        };
        let Some((earlier, is_locked, earlier_ms)) = self.stored_with_key(&message.queue, key)?
        else {
            return Ok(Placed::only(Some(self.add(message, now_ms)), false));
        };
        let again = message.deduplication == Deduplication::Again;
        if again && !is_locked {
            return Ok(Placed::only(Some(earlier), true));
        }
        if is_locked {
            self.set_key(earlier, again.then(|| awaited_key(key)))?;
            let due = if again { Time::At(WAITS_FOR_ANOTHER_MS) } else { message.due };
            let message = Message { due, ..message };
            return Ok(Placed::beside(self.add(message, now_ms), earlier));
        }
        let due_ms = due_ms.filter(|_| earlier_ms < WAITS_FOR_ANOTHER_MS);
        self.flushed = true;
        self.replace(earlier, &message, due_ms, now_ms)?;
        Ok(Placed::instead(earlier))
    }

    fn with_key(&mut self, queue: &str, key: &str) -> Result<Option<i64>> {
        if queue == LIMITED_QUEUES && self.unlimited.contains(key) {
            return Ok(None);
        }
        Ok(self.stored_with_key(queue, key)?.map(|(id, ..)| id))
    }

    fn leave_key(&mut self, id: i64) -> Result<()> {
        self.set_key(id, None)
    }

    fn claim(&mut self, claim: &Claim, now_ms: i64) -> Result<Vec<Delivery>> {
        let Claim { queue, max, lock_ms, lock } = claim;
        let (db, queue, end_ms) = (self.db, queue.as_bytes(), now_ms + lock_ms);
        let (max, top) = (i64::try_from(*max).unwrap_or(i64::MAX), i32::from(PRIORITY_MAX));
        let paused = PAUSED_QUEUES.as_bytes();
        let values: Vec<&Value<'_>> =
            vec![&db, &queue, &now_ms, &max, lock, &end_ms, &top, &paused];
        let rows = self.flush_with((CLAIM, values))?;
        let claimed = rows.iter().map(|row| claimed_of(row, *lock)).collect::<Result<_>>();
        let mut claimed: Vec<_> = claimed?;
        claimed.sort_by_key(|(order, _)| *order);
        Ok(claimed.into_iter().map(|(_, delivery)| delivery).collect())
    }

    fn due(&mut self, queue: &str, max: usize, now_ms: i64) -> Result<Vec<i64>> {
        let (db, queue) = (self.db, queue.as_bytes());
        let (max, top) = (i64::try_from(max).unwrap_or(i64::MAX), i32::from(PRIORITY_MAX));
        let rows = self.flush_with((DUE, vec![&db, &queue, &now_ms, &max, &top]))?;
        rows.iter().map(|row| Cells::of("messages", row).get(0)).collect()
    }

    fn next_due(&mut self, queue: &str) -> Result<Option<i64>> {
        let (db, queue, top) = (self.db, queue.as_bytes(), i32::from(PRIORITY_MAX));
        let paused = PAUSED_QUEUES.as_bytes();
        let rows = self.flush_with((NEXT_DUE, vec![&db, &queue, &top, &paused]))?;
        first("messages", &rows)
    }

    fn next_end(&mut self, queue: &str) -> Result<Option<i64>> {
        self.number_of(NEXT_END, queue)
    }

    fn running(&mut self, queue: &str) -> Result<u64> {
        Ok(self.number_of(RUNNING, queue)?.map_or(0, i64::cast_unsigned))
    }

    fn move_to(&mut self, id: i64, queue: &str) -> Result<()> {
        let (db, queue) = (self.db, queue.as_bytes());
        self.flushed = true;
        self.flush_with((MOVE, vec![&db, &id, &queue])).map(drop)
    }

    fn kept(&mut self, ids: &[i64]) -> Result<Vec<Option<KeptMessage>>> {
        let mut known: HashMap<i64, KeptMessage> = HashMap::with_capacity(ids.len());
        let mut missing = Vec::new();
        for id in ids {
            match self.changes.enqueued(*id) {
                Some(kept) => drop(known.insert(*id, kept)),
                None if self.gone.contains(id) => {}
                None => missing.push(*id),
            }
        }
        if !missing.is_empty() {
            let db = self.db;
            for row in self.flush_with((kept_messages::OF_IDS, vec![&db, &missing]))? {
                known.extend([kept_messages::kept_of(&row)?]);
            }
        }
        Ok(ids.iter().map(|id| known.remove(id)).collect())
    }

    fn purge(&mut self, max: usize, now_ms: i64) -> Result<usize> {
        if max == 0 {
            return Ok(0);
        }
        let (db, max) = (self.db, i64::try_from(max).unwrap_or(i64::MAX));
        self.flush_with((PURGE, vec![&db, &now_ms, &max])).map(|rows| rows.len())
    }
}
