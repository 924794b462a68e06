//! Which messages of a queue with limits or with groups may be delivered.
//!
//! Duty: keeps concurrency and rate of a queue and of each of its groups, and gives the groups their turns: a
//! group that has had a message delivered is behind all others that have one due.
//! Invariant: a group with a message that may be delivered has a turn, in [`turns_queue`]; and a queue with a
//! rule or with a turn has a message in [`LIMITED_QUEUES`], so any other queue costs one look.
//! Never: a clock; the form in which an engine keeps messages.
//!
//! The due time of a queue's rule is until when the queue delivers nothing. A turn has the priority
//! [`READY`] and its number as its due time, or it has the priority [`LATER`] and the time at which the group is
//! looked at again. Who runs is counted by locks, so a consumer that dies frees its place when its lock ends. A copy
//! has no locks: what waits for another message is therefore looked at again when that one's lock ends, also there.

use super::limiting::{self, Granted};
use super::transaction::{LockedMessage, MessageTable, Placed};
use crate::codec::message_context;
use crate::codec::turns::{KeptRule, KeptTurn};
use crate::model::{
    Claim, Deduplication, Delivery, EncodedValue, Encoding, Freed, KeptMessage, KeptState,
    LIMITED_QUEUES, Message, PAUSED_QUEUES, QueueRule, Result, RunLimit, TURNS_MAX, Time,
    WAITS_FOR_ANOTHER_MS, awaited_key, group_of_queue, queue_of_callers, queue_of_group,
    turns_queue,
};

/// The group has its turn after those with lower numbers.
const READY: u8 = 0;
/// The group is looked at later.
const LATER: u8 = 1;

/// The time of what waits for a change of which no time is known. Before the due time of a message that waits for
/// another one.
const AFTER_ANOTHER_MS: i64 = WAITS_FOR_ANOTHER_MS - 1;

/// How many messages may be delivered.
#[derive(Debug, PartialEq, Eq)]
enum Admission {
    /// At most so many, and at least one.
    UpTo(u32),
    /// None before this time, in ms since the epoch.
    At(i64),
    /// None before a message ends.
    AfterAnother,
}

/// Decides how many of `wanted` messages a limit admits. `running`: those that consumers have.
fn admit(
    limit: &RunLimit,
    running: u64,
    rate: Option<&EncodedValue>,
    wanted: u32,
    now_ms: i64,
) -> Result<Admission> {
    let room = match limit.concurrency {
        None => wanted,
        Some(most) => wanted.min(most.saturating_sub(u32::try_from(running).unwrap_or(u32::MAX))),
    };
    if room == 0 {
        return Ok(Admission::AfterAnother);
    }
    let Some(rule) = &limit.rate else { return Ok(Admission::UpTo(room)) };
    Ok(match limiting::grant(rule, rate, room, now_ms)? {
        Granted { count: 0, retry_ms } => Admission::At(now_ms.saturating_add(retry_ms.max(1))),
        Granted { count, .. } => Admission::UpTo(count),
    })
}

/// What is kept of a rate that admits none now.
fn looked_at(
    limit: &RunLimit,
    rate: Option<&EncodedValue>,
    now_ms: i64,
) -> Result<Option<(EncodedValue, i64)>> {
    let Some((rule, state)) = limit.rate.as_ref().zip(rate) else { return Ok(None) };
    limiting::looked_at(rule, state, now_ms).map(Some)
}

/// The rule of a queue, as it is kept.
struct OpenRule {
    id: i64,
    kept: KeptRule,
    /// Until when the queue delivers nothing.
    until_ms: i64,
}

/// Changes of the turns and rules, in one transaction.
pub(super) struct Turns<'m, M> {
    messages: &'m mut M,
    now_ms: i64,
    /// The messages that have changed.
    pub(super) changed: Vec<i64>,
}

impl<'m, M: MessageTable> Turns<'m, M> {
    pub(super) fn of(messages: &'m mut M, now_ms: i64) -> Self {
        Self { messages, now_ms, changed: Vec::new() }
    }

    /// Enqueues a message, in its group if it has one.
    pub(super) fn enqueue(&mut self, mut message: Message) -> Result<Placed> {
        let group = message_context::group_of(&message.value).map(str::to_owned);
        let Some(group) = group.filter(|_| message.is_named()) else {
            self.mind_those_that_wait(&mut message)?;
            return self.messages.enqueue(message, self.now_ms);
        };
        let (queue, due_ms) = (message.queue.clone(), message.due.at_ms(self.now_ms));
        message.queue = queue_of_group(&queue, &group);
        self.mind_those_that_wait(&mut message)?;
        let placed = self.messages.enqueue(message, self.now_ms)?;
        self.wake(&queue, &group, due_ms)?;
        Ok(placed)
    }

    /// Prepares a message for what waits for the end of another one because of `again`.
    fn mind_those_that_wait(&mut self, message: &mut Message) -> Result<()> {
        let Some(key) = &message.deduplication_key else { return Ok(()) };
        match message.deduplication {
            Deduplication::Drop | Deduplication::Debounce => {}
            // It keeps the due time of the one that it replaces.
            Deduplication::Replace => {
                if let Some(earlier) = self.with_key(&message.queue, key)?
                    && waits_for_another(&earlier)
                    && let Some(due_ms) = message_context::waits_until(&earlier.value)
                {
                    let line = message_context::again_line(due_ms);
                    message.value = message_context::with_lines(&line, &message.value);
                }
            }
            Deduplication::Again => {
                let awaited = self.messages.with_key(&message.queue, &awaited_key(key))?;
                let Some(awaited) = awaited else { return Ok(()) };
                match self.with_key(&message.queue, key)? {
                    // The one that waited was deleted.
                    None => message.due = Time::At(WAITS_FOR_ANOTHER_MS),
                    Some(earlier) if waits_for_another(&earlier) => {}
                    // None waits any more, and the message may have to wait for the earlier one.
                    Some(_) => {
                        self.messages.leave_key(awaited)?;
                        self.changed.push(awaited);
                    }
                }
            }
        }
        Ok(())
    }

    /// Locks and returns messages of a queue and of its groups, as far as its limits admit them.
    pub(super) fn claim(&mut self, claim: &Claim) -> Result<Vec<Delivery>> {
        let Some(mut open) = self.rule(&claim.queue)? else {
            return self.messages.claim(claim, self.now_ms);
        };
        if self.messages.with_key(PAUSED_QUEUES, &claim.queue)?.is_some() {
            return Ok(Vec::new());
        }
        let limit = open.kept.rule.queue;
        let running = self.running(&limit, &claim.queue)?;
        let wanted = u32::try_from(claim.max).unwrap_or(u32::MAX);
        let max = match admit(&limit, running, open.kept.rate.as_ref(), wanted, self.now_ms)? {
            Admission::UpTo(max) => max as usize,
            Admission::At(at_ms) => {
                let state = looked_at(&limit, open.kept.rate.as_ref(), self.now_ms)?;
                open.kept.rate = state.map(|(state, _)| state);
                return self.close(open, at_ms);
            }
            Admission::AfterAnother => {
                let at_ms = self.after_another(&claim.queue)?;
                return self.close(open, at_ms);
            }
        };
        let mut found = Vec::new();
        let turn = open.kept.turn;
        // Messages without a group have every other turn.
        let first = if open.kept.plain_next { max.div_ceil(2) } else { max / 2 };
        self.claim_plain(claim, first, &mut found)?;
        self.claim_groups(claim, &mut open.kept, max, &mut found)?;
        self.claim_plain(claim, max - found.len(), &mut found)?;
        let count = u32::try_from(found.len()).unwrap_or(u32::MAX);
        if let Some(rate) = limit.rate.filter(|_| count > 0) {
            let state = limiting::charge(&rate, open.kept.rate.as_ref(), count, self.now_ms)?;
            open.kept.rate = state.map(|(state, _)| state);
        }
        let is_idle = found.is_empty() && open.kept.rule.is_empty();
        // A turn may be one that is not due yet.
        if is_idle && self.messages.due(&turns_queue(&claim.queue), 1, i64::MAX)?.is_empty() {
            self.remove(LIMITED_QUEUES, open.id)?;
        } else if !found.is_empty() || open.kept.turn != turn {
            open.kept.plain_next ^= !found.is_empty();
            self.put_rule(&open.kept, self.now_ms)?;
        }
        Ok(found)
    }

    fn claim_plain(&mut self, claim: &Claim, max: usize, found: &mut Vec<Delivery>) -> Result<()> {
        if max > 0 {
            let claim = Claim { max, ..claim.clone() };
            found.extend(self.messages.claim(&claim, self.now_ms)?);
        }
        Ok(())
    }

    /// Gives groups their turns until `max` messages are found.
    fn claim_groups(
        &mut self,
        claim: &Claim,
        kept: &mut KeptRule,
        max: usize,
        found: &mut Vec<Delivery>,
    ) -> Result<()> {
        let turns = turns_queue(&claim.queue);
        let mut looked = 0;
        while found.len() < max && looked < TURNS_MAX {
            let room = (max - found.len()).min(TURNS_MAX - looked);
            let ids = self.messages.due(&turns, room, self.now_ms)?;
            if ids.is_empty() {
                break;
            }
            looked += ids.len();
            // With few groups each gets more of them at a time.
            let share = (room / ids.len()).max(1);
            for (id, of) in self.kept(&ids)? {
                let Ok(turn) = KeptTurn::decode(&of.value) else {
                    // One of a later version.
                    self.messages.retry(&locked_at(id, &turns), AFTER_ANOTHER_MS)?;
                    continue;
                };
                // The last ones that one transaction looks at have their turns at once, so that many groups that are
                // to be looked at do not keep it from delivering.
                if of.priority != READY && looked < TURNS_MAX {
                    self.ready(kept, &turns, &turn)?;
                    continue;
                }
                self.turn(claim, kept, (id, turn), share, found)?;
            }
        }
        Ok(())
    }

    /// The turn of a group: delivers up to `max` of its messages, or says when it is looked at again.
    fn turn(
        &mut self,
        claim: &Claim,
        kept: &mut KeptRule,
        (id, mut turn): (i64, KeptTurn),
        max: usize,
        found: &mut Vec<Delivery>,
    ) -> Result<()> {
        let limit = kept.rule.group;
        let turns = turns_queue(&claim.queue);
        turn.rate =
            turn.rate.filter(|(_, until_ms)| *until_ms > self.now_ms && limit.rate.is_some());
        let of_group = queue_of_group(&claim.queue, &turn.group);
        let running = self.running(&limit, &of_group)?;
        let rate = turn.rate.as_ref().map(|(state, _)| state);
        let wanted = u32::try_from(max).unwrap_or(u32::MAX);
        let max = match admit(&limit, running, rate, wanted, self.now_ms)? {
            Admission::At(at_ms) => {
                turn.rate = looked_at(&limit, rate, self.now_ms)?;
                return self.later(&turns, &turn, at_ms);
            }
            Admission::AfterAnother => {
                let at_ms = self.after_another(&of_group)?;
                return self.later(&turns, &turn, at_ms);
            }
            Admission::UpTo(max) => max as usize,
        };
        let part = Claim { queue: of_group.clone(), max, ..claim.clone() };
        let delivered = self.messages.claim(&part, self.now_ms)?;
        if !delivered.is_empty() {
            if let Some(of) = &limit.rate {
                let count = u32::try_from(delivered.len()).unwrap_or(u32::MAX);
                turn.rate = limiting::charge(of, rate, count, self.now_ms)?;
            }
            found.extend(delivered);
            return self.ready(kept, &turns, &turn);
        }
        let next_ms = self.messages.next_due(&of_group)?;
        // In a copy of the database those that consumers have here wait, and need a turn.
        let end_ms = self.messages.next_end(&of_group)?;
        let rate_ms = turn.rate.as_ref().map(|(_, until_ms)| *until_ms);
        match next_ms.into_iter().chain(end_ms).chain(rate_ms).min() {
            Some(at_ms) => self.later(&turns, &turn, at_ms.max(self.now_ms + 1)),
            // One that is paused is in the list of groups.
            None if self.messages.with_key(PAUSED_QUEUES, &of_group)?.is_some() => {
                self.later(&turns, &turn, AFTER_ANOTHER_MS)
            }
            None => self.remove(&turns, id),
        }
    }

    /// A message is gone or waits again. Returns whether that may admit another one.
    pub(super) fn freed(&mut self, freed: &Freed) -> Result<bool> {
        let mut admits = false;
        if let Some(key) = freed.awaited_by()
            && let Some(id) = self.messages.with_key(&freed.queue, key)?
        {
            self.release(id, &freed.queue)?;
            admits = true;
        }
        let (queue, group) = match group_of_queue(&freed.queue) {
            Some((queue, group)) => (queue, Some(group)),
            None => (freed.queue.as_str(), None),
        };
        let Some(open) = self.rule(queue)? else { return Ok(admits) };
        if open.until_ms > self.now_ms {
            self.put_rule(&open.kept, self.now_ms)?;
            admits = true;
        }
        if let Some(group) = group
            && (admits || open.kept.rule.group.concurrency.is_some())
        {
            self.wake(queue, group, self.now_ms)?;
            admits = true;
        }
        Ok(admits)
    }

    /// A message waits in its queue again from `due_ms` on.
    pub(super) fn waits(&mut self, queue: &str, due_ms: i64) -> Result<()> {
        match group_of_queue(queue) {
            Some((queue, group)) => self.wake(queue, group, due_ms),
            None => Ok(()),
        }
    }

    /// Makes messages that were put into their queue from outside wait in their groups.
    pub(super) fn regroup(&mut self, ids: &[i64]) -> Result<()> {
        for (id, kept) in self.kept(ids)? {
            let KeptState::Waiting { due_ms } = kept.state else { continue };
            let Some(group) = message_context::group_of(&kept.value) else { continue };
            if group_of_queue(&kept.queue).is_none() {
                self.messages.move_to(id, &queue_of_group(&kept.queue, group))?;
            }
            self.wake(queue_of_callers(&kept.queue), group, due_ms)?;
        }
        Ok(())
    }

    /// The queue has these limits from now on.
    fn limit(&mut self, queue: &str, rule: QueueRule) -> Result<()> {
        let open = self.rule(queue)?;
        if open.as_ref().map_or(rule.is_empty(), |open| open.kept.rule == rule) {
            return Ok(());
        }
        let mut kept = open.map_or_else(|| fresh(queue), |open| open.kept);
        kept.rule = rule;
        kept.rate = kept.rate.filter(|_| rule.queue.rate.is_some());
        self.put_rule(&kept, self.now_ms)?;
        // Groups that wait by the earlier limits.
        self.look_again(queue)
    }

    /// The times of a queue were written before its clock was set back.
    fn set_back(&mut self, queue: &str) -> Result<()> {
        let Some(open) = self.rule(queue)? else { return Ok(()) };
        self.put_rule(&open.kept, self.now_ms)?;
        self.look_again(queue)
    }

    /// Looks at all groups of a queue now that are to be looked at later.
    fn look_again(&mut self, queue: &str) -> Result<()> {
        let turns = turns_queue(queue);
        let ids = self.messages.due(&turns, usize::MAX, i64::MAX)?;
        for part in ids.chunks(TURNS_MAX) {
            for (id, of) in self.kept(part)? {
                let KeptState::Waiting { due_ms } = of.state else { continue };
                if of.priority != READY && due_ms > self.now_ms {
                    self.messages.retry(&locked_at(id, &turns), self.now_ms)?;
                    self.changed.push(id);
                }
            }
        }
        Ok(())
    }

    /// Lets a message that waited for the end of another one be delivered.
    fn release(&mut self, id: i64, queue: &str) -> Result<()> {
        let Some((_, kept)) = self.kept(&[id])?.pop() else { return Ok(()) };
        if !waits_for_another(&kept) {
            return Ok(());
        }
        let due_ms = message_context::waits_until(&kept.value).unwrap_or(0).max(self.now_ms);
        self.messages.retry(&locked_at(id, queue), due_ms)?;
        self.changed.push(id);
        self.waits(queue, due_ms)
    }

    /// Looks at a group at `at_ms`, or before.
    fn wake(&mut self, queue: &str, group: &str, at_ms: i64) -> Result<()> {
        if self.rule(queue)?.is_none() {
            self.put_rule(&fresh(queue), self.now_ms)?;
        }
        let turns = turns_queue(queue);
        let Some(id) = self.messages.with_key(&turns, group)? else {
            return self.later(&turns, &KeptTurn { group: group.to_owned(), rate: None }, at_ms);
        };
        let Some((_, kept)) = self.kept(&[id])?.pop() else { return Ok(()) };
        let KeptState::Waiting { due_ms } = kept.state else { return Ok(()) };
        if kept.priority != READY && due_ms > at_ms {
            self.messages.retry(&locked_at(id, &turns), at_ms.min(AFTER_ANOTHER_MS))?;
            self.changed.push(id);
        }
        Ok(())
    }

    fn running(&mut self, limit: &RunLimit, queue: &str) -> Result<u64> {
        if limit.concurrency.is_some() { self.messages.running(queue) } else { Ok(0) }
    }

    /// When a queue, or one of a group, is looked at again in which a message has to end first.
    fn after_another(&mut self, queue: &str) -> Result<i64> {
        let end_ms = self.messages.next_end(queue)?;
        Ok(end_ms.map_or(AFTER_ANOTHER_MS, |end_ms| end_ms.max(self.now_ms + 1)))
    }

    /// Delivers nothing until `until_ms`. A time before that stays: the queue is looked at again then.
    fn close(&mut self, open: OpenRule, until_ms: i64) -> Result<Vec<Delivery>> {
        if open.until_ms <= self.now_ms || open.until_ms > until_ms {
            self.put_rule(&open.kept, until_ms)?;
        }
        Ok(Vec::new())
    }

    fn rule(&mut self, queue: &str) -> Result<Option<OpenRule>> {
        let Some(id) = self.messages.with_key(LIMITED_QUEUES, queue)? else { return Ok(None) };
        let Some((_, of)) = self.kept(&[id])?.pop() else { return Ok(None) };
        let KeptState::Waiting { due_ms: until_ms } = of.state else { return Ok(None) };
        // One of a later version limits nothing here.
        let Ok(kept) = KeptRule::decode(&of.value) else { return Ok(None) };
        Ok(Some(OpenRule { id, kept, until_ms }))
    }

    fn put_rule(&mut self, kept: &KeptRule, until_ms: i64) -> Result<()> {
        self.put(LIMITED_QUEUES, &kept.queue, READY, until_ms, kept.encode())
    }

    /// Puts a group behind all others.
    fn ready(&mut self, kept: &mut KeptRule, turns: &str, turn: &KeptTurn) -> Result<()> {
        kept.turn += 1;
        let number = kept.turn.cast_signed();
        self.put(turns, &turn.group, READY, number, turn.encode())
    }

    fn later(&mut self, turns: &str, turn: &KeptTurn, at_ms: i64) -> Result<()> {
        self.put(turns, &turn.group, LATER, at_ms, turn.encode())
    }

    fn put(
        &mut self,
        queue: &str,
        key: &str,
        priority: u8,
        at_ms: i64,
        value: Vec<u8>,
    ) -> Result<()> {
        let message = Message {
            queue: queue.to_owned(),
            priority,
            due: Time::At(at_ms.min(AFTER_ANOTHER_MS)),
            deduplication_key: Some(key.to_owned()),
            deduplication: Deduplication::Debounce,
            value,
            ..Message::default()
        };
        let Placed { enqueued, .. } = self.messages.enqueue(message, self.now_ms)?;
        self.changed.extend(enqueued.id);
        Ok(())
    }

    fn remove(&mut self, queue: &str, id: i64) -> Result<()> {
        self.changed.push(id);
        self.messages.remove_dead(&locked_at(id, queue), None, self.now_ms)
    }

    fn with_key(&mut self, queue: &str, key: &str) -> Result<Option<KeptMessage>> {
        let Some(id) = self.messages.with_key(queue, key)? else { return Ok(None) };
        Ok(self.kept(&[id])?.pop().map(|(_, kept)| kept))
    }

    fn kept(&mut self, ids: &[i64]) -> Result<Vec<(i64, KeptMessage)>> {
        let kept = self.messages.kept(ids)?;
        Ok(ids.iter().copied().zip(kept).filter_map(|(id, kept)| Some((id, kept?))).collect())
    }
}

/// What is kept of a queue without a rule.
fn fresh(queue: &str) -> KeptRule {
    KeptRule { queue: queue.to_owned(), ..KeptRule::default() }
}

/// Whether a message waits for the end of another one.
fn waits_for_another(kept: &KeptMessage) -> bool {
    matches!(kept.state, KeptState::Waiting { due_ms: WAITS_FOR_ANOTHER_MS.. })
}

/// A message of openkv's own, as the methods of a table name it.
fn locked_at(id: i64, queue: &str) -> LockedMessage {
    let message = Message { queue: queue.to_owned(), ..Message::default() };
    LockedMessage { id, attempts: 0, lock_end_ms: 0, message, encoding: Encoding::Cbor }
}

/// For an engine that has changed messages outside of a batch: `freed` are gone, `waiting` are added. Returns the
/// messages that have changed besides.
pub fn after_change(
    messages: &mut impl MessageTable,
    freed: &[Freed],
    waiting: &[i64],
    now_ms: i64,
) -> Result<Vec<i64>> {
    let mut turns = Turns::of(messages, now_ms);
    for freed in freed {
        turns.freed(freed)?;
    }
    turns.regroup(waiting)?;
    Ok(turns.changed)
}

/// For an engine: a queue, or one of a group, delivers messages again.
pub fn after_resume(
    messages: &mut impl MessageTable,
    queue: &str,
    now_ms: i64,
) -> Result<Vec<i64>> {
    let mut turns = Turns::of(messages, now_ms);
    turns.waits(queue, now_ms)?;
    Ok(turns.changed)
}

/// For an engine whose clock was set back: what a rate, a lock or a due time of the queue holds up is looked at again.
/// Returns the messages that have changed.
pub fn after_clock(messages: &mut impl MessageTable, queue: &str, now_ms: i64) -> Result<Vec<i64>> {
    let mut turns = Turns::of(messages, now_ms);
    turns.set_back(queue)?;
    Ok(turns.changed)
}

/// For an engine: gives a queue its limits.
pub fn set_limits(
    messages: &mut impl MessageTable,
    queue: &str,
    rule: QueueRule,
    now_ms: i64,
) -> Result<Vec<i64>> {
    let mut turns = Turns::of(messages, now_ms);
    turns.limit(queue, rule)?;
    Ok(turns.changed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LimitAlgorithm, Rate};

    const NOW: i64 = 1_000_000;

    #[test]
    fn a_limit_admits_what_both_of_its_parts_do() {
        let three = Rate { algorithm: LimitAlgorithm::Fixed, limit: 3, per_ms: 1000 };
        let rate = Some(three);
        let admitted = |concurrency, rate, running, state: Option<&EncodedValue>, wanted| {
            admit(&RunLimit { concurrency, rate }, running, state, wanted, NOW).unwrap()
        };
        assert_eq!(admitted(None, None, 9, None, 7), Admission::UpTo(7));
        assert_eq!(admitted(Some(5), None, 3, None, 7), Admission::UpTo(2));
        assert_eq!(admitted(Some(5), None, 5, None, 7), Admission::AfterAnother);
        assert_eq!(admitted(Some(5), None, u64::MAX, None, 7), Admission::AfterAnother);
        assert_eq!(admitted(None, rate, 0, None, 7), Admission::UpTo(3));
        assert_eq!(admitted(Some(2), rate, 0, None, 7), Admission::UpTo(2));
        let used = limiting::charge(&three, None, 3, NOW - 400).unwrap();
        let used = used.as_ref().map(|(state, _)| state);
        assert_eq!(admitted(None, rate, 0, used, 7), Admission::At(NOW + 600));
        assert_eq!(admitted(Some(1), rate, 1, used, 7), Admission::AfterAnother);
    }
}
