//! The steps of a batch, in the one order that every engine uses.
//!
//! 1. Settlements end deliveries.
//! 2. Renewals extend locks. They come before step 3, so a late renewal still counts.
//! 3. In the claimed queues deliveries whose lock has expired fail, or get a grace period; but not
//!    those that a write acknowledges.
//! 4. Writes are decided, in order; then each dead message's value becomes a commit.
//! 5. The effects on rows and messages are applied.
//! 6. Schedules that are due make their messages.
//! 7. Claims lock messages that are due, also those that steps 5 and 6 have added.
//! 8. Dead letters are purged, expired entries are swept.
//! 9. Changes are logged, and the last version is stored.

use std::collections::HashSet;

use super::evaluate::{Acknowledged, Effects, Evaluation, Sent};
use super::job;
use super::queue::{Failure, retry_at};
use super::schedules;
use super::transaction::{
    Base, Begun, EntryTable, LockedMessage, MessageTable, Placed, Transaction, Undelivered,
};
use super::turns::Turns;
use super::work::{Report, Work};
use crate::codec::message_context;
use crate::model::{
    Ack, AtomicWrite, CLAIM_MESSAGES_MAX, Change, ChangeKind, Claim, Decision, Deduplication,
    EncodedValue, Enqueued, FRUITLESS_PAUSE_MS, Freed, Key, LOCK_GRACE_MS, LoggedMessage, Message,
    Outcome, Reason, Renewal, Result, Settlement, Time,
};

/// Carries out work in a transaction that has begun.
///
/// # Errors
/// Those of the transaction, which must be rolled back then.
pub fn run(transaction: &mut impl Transaction, begun: &Begun, work: Work) -> Result<Report> {
    let mut batch = Batch {
        transaction,
        begun,
        report: Report::default(),
        undelivered: Vec::new(),
        to_log: Vec::new(),
        held: HashSet::new(),
        unlimited: HashSet::new(),
    };
    batch.settle(work.settlements)?;
    batch.renew(&work.renewals)?;
    batch.hold(&work.writes)?;
    batch.fail_expired(&work.claims, work.durable)?;
    let undelivered = std::mem::take(&mut batch.undelivered);
    let held = std::mem::take(&mut batch.held);
    let base = batch.transaction.entries();
    let (decisions, mut effects) = decide(base, begun, work.writes, work.seed, undelivered, held)?;
    batch.report.decisions = decisions;
    batch.apply(&mut effects)?;
    if work.fires {
        batch.fire()?;
    }
    batch.claim(&work.claims)?;
    batch.purge_and_sweep(&mut effects, work.purge_max, work.sweep_max)?;
    batch.finish(effects)
}

/// Decides the writes over the database before the batch. It is pure: an engine may decide before
/// earlier effects are durable, and discard the result. `held`: the messages that the writes
/// acknowledge and whose locks hold.
pub(super) fn decide(
    base: &mut dyn Base,
    begun: &Begun,
    writes: Vec<AtomicWrite>,
    seed: u64,
    undelivered: Vec<Undelivered>,
    held: HashSet<Ack>,
) -> Result<(Vec<Decision>, Effects)> {
    let evaluation = Evaluation::new(base, begun.version, begun.now_ms);
    let mut evaluation = evaluation.seeded(seed).holding(held);
    if begun.logs {
        evaluation.keep_changes();
    }
    evaluation.reserve(writes.len());
    let mut decisions = Vec::with_capacity(writes.len());
    for write in writes {
        decisions.push(evaluation.decide(write)?);
    }
    undelivered.into_iter().for_each(|undelivered| evaluation.deposit(undelivered));
    Ok((decisions, evaluation.into_effects()))
}

/// A batch between two steps.
struct Batch<'t, T> {
    transaction: &'t mut T,
    begun: &'t Begun,
    report: Report,
    undelivered: Vec<Undelivered>,
    /// The messages for the log, each with its commit; `None`: the last one of the batch.
    to_log: Vec<(Option<u64>, i64)>,
    /// The messages that the writes acknowledge and whose locks hold.
    held: HashSet<Ack>,
    /// Queues of which the end of a message admits no other one.
    unlimited: HashSet<String>,
}

impl<T: Transaction> Batch<'_, T> {
    fn settle(&mut self, settlements: Vec<Settlement>) -> Result<()> {
        for Settlement { id, lock, outcome, delay_ms, reason, queue, value } in settlements {
            let messages = self.transaction.messages();
            let held = match outcome {
                Outcome::Done | Outcome::Completed => {
                    let tells = outcome == Outcome::Completed;
                    let locked = if tells { messages.locked(id, lock)? } else { None };
                    let freed = messages.acknowledge(id, lock)?;
                    if let Some(freed) = &freed {
                        self.note_for_log(None, id);
                        if let Some(locked) = locked {
                            let now_ms = self.begun.now_ms;
                            self.undelivered.extend(job::completed(&locked, value, now_ms)?);
                        }
                        self.freed(freed)?;
                    }
                    freed.is_some()
                }
                Outcome::Progressed => {
                    let locked = messages.locked(id, lock)?;
                    if let Some(locked) = &locked {
                        let now_ms = self.begun.now_ms;
                        self.undelivered.extend(job::progressed(locked, value, now_ms)?);
                    }
                    locked.is_some()
                }
                Outcome::Returned => {
                    let freed = messages.put_back(id, lock)?;
                    if let Some(freed) = &freed {
                        self.report.queued = true;
                        self.report.put_back |= freed.is_named();
                        self.waits_again(freed, self.begun.now_ms)?;
                    }
                    freed.is_some()
                }
                Outcome::Cancelled => {
                    let queue = queue.unwrap_or_default();
                    let cancelled = messages.cancel(&queue, id)?;
                    if let Some((freed, value)) = &cancelled {
                        self.note_for_log(None, id);
                        let now_ms = self.begun.now_ms;
                        self.undelivered.extend(job::cancelled(&queue, id, value, now_ms)?);
                        self.freed(freed)?;
                    }
                    cancelled.is_some()
                }
                Outcome::Failed | Outcome::Dead => {
                    let locked = messages.locked(id, lock)?;
                    let held = locked.is_some();
                    if let (Some(locked), Some(failure)) = (locked, Failure::of(outcome, delay_ms))
                    {
                        self.fail(locked, failure, &reason.unwrap_or_default())?;
                    }
                    held
                }
            };
            self.report.settled.push(held);
        }
        Ok(())
    }

    /// A message is gone, which may admit another one. Consumers of other processes notice only commits.
    fn freed(&mut self, freed: &Freed) -> Result<()> {
        if freed.awaited_by().is_none() && self.unlimited.contains(&freed.queue) {
            return Ok(());
        }
        let mut turns = Turns::of(self.transaction.messages(), self.begun.now_ms);
        let admits = turns.freed(freed)?;
        let changed = turns.changed;
        if !admits {
            self.unlimited.insert(freed.queue.clone());
        }
        self.report.queued |= admits;
        self.report.put_back |= admits;
        changed.into_iter().for_each(|id| self.note_for_log(None, id));
        Ok(())
    }

    /// A message that a consumer had waits until `due_ms`.
    fn waits_again(&mut self, freed: &Freed, due_ms: i64) -> Result<()> {
        let mut turns = Turns::of(self.transaction.messages(), self.begun.now_ms);
        turns.waits(&freed.queue, due_ms)?;
        let changed = turns.changed;
        changed.into_iter().for_each(|id| self.note_for_log(None, id));
        // Not its key: whatever waits for its end still does.
        self.freed(&Freed { key: None, ..freed.clone() })
    }

    /// Notes a message for the log.
    fn note_for_log(&mut self, commit: Option<u64>, id: i64) {
        if self.begun.logs_messages {
            self.to_log.push((commit, id));
        }
    }

    fn renew(&mut self, renewals: &[Renewal]) -> Result<()> {
        for Renewal { id, lock, lock_ms } in renewals {
            let end_ms = self.begun.now_ms + lock_ms;
            let held = self.transaction.messages().renew(*id, *lock, end_ms)?;
            self.report.renewed.push(held);
        }
        Ok(())
    }

    /// Looks up the locks of the messages that the writes acknowledge.
    fn hold(&mut self, writes: &[AtomicWrite]) -> Result<()> {
        for ack in writes.iter().flat_map(AtomicWrite::acks) {
            if self.transaction.messages().is_held(ack.id, ack.lock)? {
                self.held.insert(*ack);
            }
        }
        Ok(())
    }

    fn fail_expired(&mut self, claims: &[Claim], durable: bool) -> Result<()> {
        let now_ms = self.begun.now_ms;
        if self.begun.kept_out {
            for Claim { queue, lock_ms, .. } in claims {
                // A consumer renews a lock after a third of its duration, and most consumers of a
                // queue use the same duration.
                let grace_ms = (lock_ms / 3).clamp(2 * FRUITLESS_PAUSE_MS, LOCK_GRACE_MS);
                let messages = self.transaction.messages();
                messages.extend_expired(queue, now_ms, now_ms + grace_ms)?;
            }
        }
        if !durable {
            // No lock had expired when the engine chose the durability. A later batch handles those
            // that have since.
            return Ok(());
        }
        for Claim { queue, .. } in claims {
            let messages = self.transaction.messages();
            let (dead, queued) = messages.fail_shared(queue, CLAIM_MESSAGES_MAX, now_ms)?;
            let mut expired = messages.expired(queue, CLAIM_MESSAGES_MAX, now_ms)?;
            // If their writes do not commit, the next batch finds them.
            expired.retain(|locked| !self.held.iter().any(|ack| ack.id == locked.id));
            self.report.lost += dead.len() + expired.len();
            self.report.queued |= queued;
            self.undelivered.extend(dead);
            for locked in expired {
                let failure = Failure::LockExpired { end_ms: locked.lock_end_ms };
                self.fail(locked, failure, &Reason::lock_expired())?;
            }
        }
        Ok(())
    }

    fn fail(&mut self, locked: LockedMessage, failure: Failure, reason: &Reason) -> Result<()> {
        self.note_for_log(None, locked.id);
        let freed = locked.freed();
        let Self { transaction, begun, report, undelivered, .. } = self;
        let messages = transaction.messages();
        let named = locked.message.is_named();
        match retry_at(&locked.message, locked.attempts, failure, begun.now_ms) {
            Some(due_ms) => {
                undelivered.extend(job::failed(&locked, reason, false, begun.now_ms)?);
                messages.retry(&locked, due_ms)?;
                report.queued = true;
                report.put_back |= named && matches!(failure, Failure::Reported { .. });
                self.waits_again(&freed, due_ms)
            }
            None => {
                report.purge_ahead |= locked.message.dead_retention_ms.is_some();
                let is_kept = locked.message.is_kept_when_dead();
                messages.remove_dead(&locked, is_kept.then_some(reason), begun.now_ms)?;
                undelivered.extend(job::failed(&locked, reason, true, begun.now_ms)?);
                let LockedMessage { message, encoding, .. } = locked;
                let bytes = message_context::value_of(&message.value).to_vec();
                let (keys, value) = (message.keys_if_undelivered, EncodedValue { encoding, bytes });
                undelivered.push(Undelivered { keys, value, expire_at_ms: None });
                self.freed(&freed)
            }
        }
    }

    fn apply(&mut self, effects: &mut Effects) -> Result<()> {
        self.apply_messages(effects)?;
        let Self { transaction, report, .. } = self;
        let entries = transaction.entries();
        if !effects.changes.is_empty() {
            entries.keep_past(&effects.changes)?;
        }
        if let Some(uuid) = effects.uuid {
            entries.set_last_uuid(uuid)?;
        }
        report.touched.reserve(effects.rows.len());
        for (key, effect) in effects.rows.drain(..) {
            let expiry_ms = effect.expire_at_ms();
            report.expiry_ms = report.expiry_ms.into_iter().chain(expiry_ms).min();
            entries.apply(&key, effect)?;
            report.touched.push(key);
        }
        Ok(())
    }

    /// Before the entries, because messages whose results are kept leave entries.
    fn apply_messages(&mut self, effects: &mut Effects) -> Result<()> {
        self.report.queued |= !effects.messages.is_empty();
        let mut tracked = Vec::new();
        // In the order of the writes, and before the messages of the same write: an acknowledged
        // message does not keep its deduplication key.
        let mut acks = effects.acks.drain(..).peekable();
        for Sent { write, version, message } in effects.messages.drain(..) {
            let is_schedule = message.schedule.is_some();
            while let Some(acked) = acks.next_if(|acked| acked.write <= write) {
                self.acknowledge(&acked)?;
            }
            let job = job::Tracked::of(&message);
            let Placed { enqueued, changed } = self.place(message, version)?;
            self.report.scheduled |= is_schedule;
            let Enqueued { id, deduplicated } = enqueued;
            let added = id.filter(|_| !deduplicated);
            if let (Some(job), Some(id)) = (job, added) {
                tracked.push(job.enqueued(id, version, self.begun.now_ms)?);
            }
            for id in changed.into_iter().chain(added) {
                self.note_for_log(Some(version), id);
            }
            self.report.enqueued(write, enqueued);
        }
        acks.try_for_each(|acked| self.acknowledge(&acked))?;
        drop(acks);
        effects.store_too(tracked, self.begun.logs);
        Ok(())
    }

    /// Enqueues a message, or changes a schedule.
    fn place(&mut self, mut message: Message, version: u64) -> Result<Placed> {
        let now_ms = self.begun.now_ms;
        if let Some(change) = message.schedule.take() {
            return schedules::change(self.transaction.messages(), message, *change, now_ms);
        }
        let due_ms = message.due.at_ms(now_ms);
        // It may have to wait for the end of another one first.
        let may_wait = match message.deduplication {
            Deduplication::Again => true,
            Deduplication::Debounce => due_ms > now_ms,
            Deduplication::Drop | Deduplication::Replace => false,
        };
        if may_wait {
            let line = message_context::again_line(due_ms);
            message.value = message_context::with_lines(&line, &message.value);
        }
        if message.deduplication != Deduplication::Again {
            note_delay(&mut message);
        }
        let mut turns = Turns::of(self.transaction.messages(), now_ms);
        let placed = turns.enqueue(message)?;
        let changed = turns.changed;
        changed.into_iter().for_each(|id| self.note_for_log(Some(version), id));
        Ok(placed)
    }

    /// Removes a message that a write has acknowledged.
    fn acknowledge(&mut self, acked: &Acknowledged) -> Result<()> {
        let Acknowledged { write: _, version, ack: Ack { id, lock } } = *acked;
        let freed = self.transaction.messages().acknowledge(id, lock)?;
        debug_assert!(freed.is_some(), "a lock that held before the decision is lost after it");
        self.note_for_log(Some(version), id);
        freed.map_or(Ok(()), |freed| self.freed(&freed))
    }

    /// Other processes notice only commits, and the messages may be for their consumers.
    fn fire(&mut self) -> Result<()> {
        let fired = schedules::fire(self.transaction.messages(), self.begun.now_ms)?;
        self.report.fired = fired.schedules;
        self.report.scheduled |= fired.schedules > 0;
        self.report.queued |= fired.messages > 0;
        self.report.put_back |= fired.schedules > 0;
        for id in fired.changed {
            self.note_for_log(None, id);
        }
        Ok(())
    }

    fn claim(&mut self, claims: &[Claim]) -> Result<()> {
        for claim in claims {
            let mut turns = Turns::of(self.transaction.messages(), self.begun.now_ms);
            let deliveries = turns.claim(claim)?;
            let changed = turns.changed;
            changed.into_iter().for_each(|id| self.note_for_log(None, id));
            self.report.deliveries.push(deliveries);
        }
        Ok(())
    }

    /// A sweep is a separate commit after all others.
    fn purge_and_sweep(
        &mut self,
        effects: &mut Effects,
        purge_max: usize,
        sweep_max: usize,
    ) -> Result<()> {
        let now_ms = self.begun.now_ms;
        self.report.purged = self.transaction.messages().purge(purge_max, now_ms)?;
        let version = effects.version + 1;
        let swept = self.transaction.entries().sweep(sweep_max, now_ms, version)?;
        self.report.swept = swept.len();
        self.report.sweep_more = sweep_max > 0 && swept.len() == sweep_max;
        if !swept.is_empty() {
            effects.version = version;
            effects.removed = Some(version);
            if self.begun.logs {
                let removal =
                    |key: &Key| Change { key: key.clone(), version, kind: ChangeKind::Expired };
                effects.changes.extend(swept.iter().map(removal));
            }
            self.report.touched.extend(swept);
        }
        Ok(())
    }

    fn finish(self, effects: Effects) -> Result<Report> {
        let Self { transaction, begun, mut report, to_log, .. } = self;
        let Effects { mut version, removed, changes, .. } = effects;
        // Other processes notice only commits, and the message may be for their consumers. The log has
        // only commits too.
        let unlogged = !to_log.is_empty() && version == begun.version;
        version += u64::from(report.put_back || unlogged);
        if version != begun.version {
            if begun.logs {
                let messages = logged(transaction.messages(), to_log, version)?;
                transaction.log(begun.version + 1..=version, changes, &messages, begun.now_ms)?;
            }
            transaction.set_version(version, removed)?;
        }
        report.versions = (begun.version, version);
        Ok(report)
    }
}

/// Notes the delay of a message in it: if the clock is set back, the delay counts, and not the date.
pub(super) fn note_delay(message: &mut Message) {
    if let Time::After(delay_ms @ 1..) = message.due {
        let line = message_context::delay_line(delay_ms);
        message.value = message_context::with_lines(&line, &message.value);
    }
}

/// The changes of messages by a batch, by commit. A message has one state at the end of the batch, so only
/// the last change of each counts.
fn logged(
    table: &mut impl MessageTable,
    mut changed: Vec<(Option<u64>, i64)>,
    last: u64,
) -> Result<Vec<LoggedMessage>> {
    let mut seen = HashSet::with_capacity(changed.len());
    changed.reverse();
    changed.retain(|(_, id)| seen.insert(*id));
    changed.reverse();
    let (commits, ids): (Vec<_>, Vec<_>) = changed.into_iter().unzip();
    let versions = commits.into_iter().map(|commit| commit.unwrap_or(last));
    let kept = table.kept(&ids)?;
    let mut messages: Vec<_> = versions
        .zip(ids)
        .zip(kept)
        .map(|((version, id), kept)| LoggedMessage { version, id, kept })
        .collect();
    messages.sort_by_key(|message| message.version);
    Ok(messages)
}

/// The changes of messages by one commit without a batch.
pub fn logged_alone(
    table: &mut impl MessageTable,
    changed: &[i64],
    version: u64,
) -> Result<Vec<LoggedMessage>> {
    logged(table, changed.iter().map(|id| (None, *id)).collect(), version)
}
