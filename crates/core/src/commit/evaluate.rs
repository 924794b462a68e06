//! Decides a batch of writes one after the other over a view of the database before the batch.

use std::collections::HashSet;

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use indexmap::map::Entry;
use uuid::Uuid;

use super::append::append;
use super::arith;
use super::calculate::calculate;
use super::conflict;
use super::effect::{NewRow, RowEffect};
use super::found;
use super::journal::Journal;
use super::limiting::{self, Taken};
use super::placeholders::Uuids;
use super::transaction::{Base, OldRow, Undelivered};
use super::unique::Unique;
use crate::codec::message_context;
use crate::codec::{cbor, key};
use crate::index::EntryChange;
use crate::model::{
    self, Ack, AtomicWrite, ChangeKind, Decision, EncodedValue, Encoding, Error, Key, Kind,
    Message, Mutation, Resolved, Result, Results, Returned, ScheduleChange, Time, Versionstamp,
    WriteParts, limit,
};

/// A batch under evaluation.
pub struct Evaluation<'b> {
    pub(super) base: &'b mut dyn Base,
    pub(super) version: u64,
    pub(super) now_ms: i64,
    /// The unique indexes, if there are any.
    pub(super) unique: Option<Unique>,
    /// In the order of arrival, which is often the order of the keys.
    pub(super) rows: IndexMap<Key, RowEffect, RandomState>,
    messages: Vec<Sent>,
    /// The messages that writes may acknowledge: their locks hold them.
    held: HashSet<Ack>,
    acks: Vec<Acknowledged>,
    /// Writes so far, committed or not.
    decided: usize,
    /// Randomness for UUIDs.
    seed: u64,
    uuids: Option<Uuids>,
    pub(super) journal: Journal,
}

/// The effects of a batch.
#[derive(Debug)]
pub struct Effects {
    /// The last commit.
    pub version: u64,
    /// The last of its commits that removed an entry, or may have.
    pub removed: Option<u64>,
    /// The last UUID that it has generated, if any.
    pub uuid: Option<Uuid>,
    /// Effects on rows, in key order.
    pub rows: Vec<(Key, RowEffect)>,
    /// Messages to enqueue, in the order of their commits.
    pub messages: Vec<Sent>,
    /// Messages to remove, in the order of their commits.
    pub acks: Vec<Acknowledged>,
    /// The changes of the commits, in order; empty without [`Evaluation::keep_changes`].
    pub changes: Vec<model::Change>,
    /// The changes of value indexes; only those of a batch that is decided ahead.
    pub index_entries: Vec<EntryChange>,
}

impl Effects {
    /// Adds entries that commits of the batch store too: those that tell of their messages.
    pub(super) fn store_too(&mut self, entries: Vec<(Key, NewRow)>, logs: bool) {
        if entries.is_empty() {
            return;
        }
        for (key, row) in entries {
            if logs {
                let kind =
                    ChangeKind::Set { value: row.value.clone(), expire_at_ms: row.expire_at_ms };
                self.changes.push(model::Change { key: key.clone(), version: row.version, kind });
            }
            self.rows.push((key, RowEffect::Stored(row)));
        }
        self.changes.sort_by_key(|change| change.version);
        // A write that names such a key has the last word.
        self.rows.sort_by(|a, b| a.0.cmp(&b.0));
        self.rows.dedup_by(|later, earlier| later.0 == earlier.0);
    }
}

/// A message that a write of the batch enqueues.
#[derive(Debug)]
pub struct Sent {
    /// The number of the write, counted from 0.
    pub write: usize,
    /// Its commit.
    pub version: u64,
    /// The message.
    pub message: Message,
}

/// A message that a write of the batch acknowledges.
#[derive(Debug)]
pub struct Acknowledged {
    /// The number of the write, counted from 0.
    pub write: usize,
    /// Its commit.
    pub version: u64,
    /// The message, and the lock that holds it.
    pub ack: Ack,
}

/// The effect on each key before a write changed it, for undoing a rejected write.
type Undo = Vec<(Key, Option<RowEffect>)>;

/// The result of one mutation.
enum Change {
    /// The key gets this effect.
    Leaves(Key, RowEffect),
    /// A limiter has answered, and the key gets this effect if the take was allowed.
    Limited(Option<(Key, RowEffect)>, EncodedValue),
    /// There is no entry to change, and the mutation does not need one.
    Nothing,
    /// There is no entry, and the mutation needs one: the write fails as by a check.
    Lost,
}

impl<'b> Evaluation<'b> {
    /// Starts after the commit `version`. `now_ms` is that of the base: an entry that the batch
    /// stores with an expiry in the past is absent, like an expired entry of the base.
    pub fn new(base: &'b mut dyn Base, version: u64, now_ms: i64) -> Self {
        let unique = Unique::of(base.value_indexes());
        Self {
            base,
            version,
            now_ms,
            unique,
            rows: IndexMap::default(),
            messages: Vec::new(),
            held: HashSet::new(),
            acks: Vec::new(),
            decided: 0,
            seed: 0,
            uuids: None,
            journal: Journal::default(),
        }
    }

    /// Sets the seed for the UUIDs of placeholders.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// Sets the messages that the writes name and whose locks hold.
    #[must_use]
    pub fn holding(self, held: HashSet<Ack>) -> Self {
        Self { held, ..self }
    }

    /// Records the changes of each commit from now on, for [`Effects::changes`].
    pub fn keep_changes(&mut self) {
        self.journal.turn_on();
    }

    /// Reserves memory for about this many rows.
    pub fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
    }

    /// The version of a key's entry, with the batch's effects so far.
    pub(super) fn version_of(&mut self, key: &Key) -> Result<Option<u64>> {
        match self.rows.get(key) {
            Some(effect) => Ok(effect.version(self.now_ms)),
            None => self.base.version(key),
        }
    }

    /// The entry of a key, with the batch's effects so far. The inner error is about the entry, the
    /// outer one about the medium.
    pub(super) fn entry_of(&mut self, key: &Key) -> Result<Result<Option<OldRow>>> {
        let effect = self.rows.get(key);
        if effect.is_some_and(|effect| effect.version(self.now_ms).is_none()) {
            return Ok(Ok(None));
        }
        let end = match effect {
            Some(RowEffect::Stored(NewRow { version, value, expire_at_ms })) => {
                let (version, value, expire_at_ms) = (*version, value.clone(), *expire_at_ms);
                return Ok(Ok(Some(OldRow { version, value, expire_at_ms })));
            }
            Some(RowEffect::ExpirySet { expire_at_ms, .. }) => Some(*expire_at_ms),
            _ => None,
        };
        match self.base.row(key) {
            Ok(row) => Ok(Ok(row.map(|row| match end {
                Some(expire_at_ms) => OldRow { expire_at_ms, ..row },
                None => row,
            }))),
            Err(error) if is_damage(&error) => Ok(Err(error)),
            Err(error) => Err(error),
        }
    }

    /// Decides one write. Later writes see its effects. The refusal of a repetition takes a version,
    /// so that the batch has a commit with which the refusal is stored.
    ///
    /// # Errors
    /// Only those of the base.
    pub fn decide(&mut self, write: AtomicWrite) -> Result<Decision> {
        let is_repeated = write.attempt().is_some_and(|attempt| attempt.repeated);
        let decision = self.outcome(write)?;
        self.version += u64::from(is_repeated && decision.is_refused());
        Ok(decision)
    }

    fn outcome(&mut self, write: AtomicWrite) -> Result<Decision> {
        let mut parts = write.into_parts();
        let number = self.decided;
        self.decided += 1;
        let failed = match self.failed_checks(&parts)? {
            Ok(failed) => failed,
            Err(reason) => return Ok(Decision::Rejected(reason)),
        };
        if !failed.is_empty() {
            return Ok(Decision::CheckFailed(failed));
        }
        if let Some(deletion) = parts.deletion {
            return self.delete_many(*deletion);
        }
        let resolved = self.fill_in(&mut parts)?;
        let mut results = Results { resolved, ..Results::default() };
        if let Err(reason) = self.all_accepted(&parts) {
            return Ok(Decision::Rejected(reason));
        }
        let WriteParts { mutations, messages, acks, returns_values, .. } = parts;
        let version = self.version + 1;
        let can_fail = self.has_unique() || mutations.iter().any(Mutation::can_fail);
        let mut undo = Undo::new();
        for mutation in mutations {
            let tells = returns_values.then(|| mutation.returned()).flatten();
            match self.change(mutation, version)? {
                Ok(Change::Leaves(key, effect)) => {
                    if let (Some(tells), RowEffect::Stored(row)) = (tells, &effect) {
                        results.values.push(reported_value(tells, &row.value));
                    }
                    self.leave(key, effect, version, can_fail.then_some(&mut undo));
                }
                Ok(Change::Limited(left, answer)) => {
                    results.values.extend(tells.map(|_| answer));
                    if let Some((key, effect)) = left {
                        self.leave(key, effect, version, can_fail.then_some(&mut undo));
                    }
                }
                Ok(Change::Nothing) => {}
                Ok(Change::Lost) => {
                    self.undo(undo);
                    return Ok(Decision::CheckFailed(Vec::new()));
                }
                Err(reason) => {
                    self.undo(undo);
                    return Ok(Decision::Rejected(reason));
                }
            }
        }
        if self.has_unique() {
            match self.violations(undo.iter().map(|(key, _)| key))? {
                Ok(violations) if violations.is_empty() => {}
                Ok(violations) => {
                    self.undo(undo);
                    return Ok(Decision::NotUnique(violations));
                }
                Err(reason) => {
                    self.undo(undo);
                    return Ok(Decision::Rejected(reason));
                }
            }
        }
        self.version = version;
        self.journal.keep(version);
        for ack in acks {
            if self.held.remove(&ack) {
                self.acks.push(Acknowledged { write: number, version, ack });
            }
        }
        let sent = |message| Sent { write: number, version, message };
        self.messages.extend(messages.into_iter().map(sent));
        Ok(Decision::committed(Versionstamp::new(version), results))
    }

    /// Gives a key its effect, and keeps the one before for undoing it.
    fn leave(&mut self, key: Key, effect: RowEffect, version: u64, undo: Option<&mut Undo>) {
        self.journal.note(&key, &effect, version);
        match undo {
            None => drop(self.rows.insert(key, effect)),
            Some(undo) => {
                let before = self.rows.insert(key.clone(), effect);
                undo.push((key, before));
            }
        }
    }

    /// Checks that the database can store the values that a write brings. A value that a mutation
    /// computes is a number, or is checked when it is computed.
    fn all_accepted(&self, parts: &WriteParts) -> Result<()> {
        for mutation in &parts.mutations {
            match mutation {
                Mutation::Set { key, value, .. } => self.accepted(value, key)?,
                Mutation::Delete { .. }
                | Mutation::Arith { .. }
                | Mutation::Calculate { .. }
                | Mutation::Append { .. }
                | Mutation::SetExpiry { .. }
                | Mutation::Limit { .. } => {}
            }
        }
        for message in &parts.messages {
            if let Some(ScheduleChange::Set(schedule)) = message.schedule.as_deref() {
                schedule.first_after(self.now_ms)?;
            }
            if !message.is_named() || !message.keys_if_undelivered.is_empty() {
                let value = message_context::value_of(&message.value);
                self.base.accepts(Encoding::Cbor, value)?;
            }
        }
        Ok(())
    }

    fn accepted(&self, value: &EncodedValue, key: &Key) -> Result<()> {
        let accepted = self.base.accepts(value.encoding, &value.bytes);
        accepted.map_err(|error| at_key(&error, key))
    }

    /// Generates the UUIDs of a write's placeholders.
    fn fill_in(&mut self, parts: &mut WriteParts) -> Result<Vec<Resolved>> {
        if parts.patches.is_empty() {
            return Ok(Vec::new());
        }
        let uuids = match &mut self.uuids {
            Some(uuids) => uuids,
            none => none.insert(Uuids::new(self.now_ms, self.seed, self.base.last_uuid()?)),
        };
        Ok(uuids.fill_in(parts))
    }

    /// Stores the value of an undelivered message under keys, as a separate commit.
    pub fn deposit(&mut self, undelivered: Undelivered) {
        let Undelivered { keys, value, expire_at_ms } = undelivered;
        self.version += 1;
        for key in keys {
            let row = NewRow { version: self.version, value: value.clone(), expire_at_ms };
            // Nobody is there whom a unique index could refuse, and the value must not be lost.
            self.note_unchecked(&key, &row);
            let effect = RowEffect::Stored(row);
            self.journal.note(&key, &effect, self.version);
            self.rows.insert(key, effect);
        }
        self.journal.keep(self.version);
    }

    /// Ends the batch.
    #[must_use]
    pub fn into_effects(mut self) -> Effects {
        let mut rows: Vec<_> = self.rows.into_iter().collect();
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        Effects {
            version: self.version,
            removed: self.journal.removed(),
            uuid: self.uuids.as_ref().map(Uuids::last),
            rows,
            messages: self.messages,
            acks: self.acks,
            changes: self.journal.take(),
            index_entries: Vec::new(),
        }
    }

    /// The numbers of the failed checks. The inner error rejects the write, the outer one is the base's.
    fn failed_checks(&mut self, parts: &WriteParts) -> Result<Result<Vec<usize>>> {
        let mut failed = Vec::new();
        for (at, check) in parts.checks.iter().enumerate() {
            let current = self.version_of(&check.key)?;
            if current.map(Versionstamp::new) != check.expected {
                failed.push(at);
            }
        }
        for (at, range) in parts.ranges.iter().enumerate() {
            let (base, rows) = (&mut *self.base, &self.rows);
            let holds = match &range.found_by {
                None => conflict::holds(base, rows, self.now_ms, range)?,
                Some(by) => match found::holds(base, rows, self.now_ms, range, by)? {
                    Ok(holds) => holds,
                    Err(reason) => return Ok(Err(reason)),
                },
            };
            if !holds {
                failed.push(parts.checks.len() + at);
            }
        }
        let conditions = parts.checks.len() + parts.ranges.len();
        let lost = |(at, ack)| (!self.held.contains(ack)).then_some(conditions + at);
        failed.extend(parts.acks.iter().enumerate().filter_map(lost));
        Ok(Ok(failed))
    }

    /// The result of a mutation. The inner error rejects the write, the outer one is the base's.
    fn change(&mut self, mutation: Mutation, version: u64) -> Result<Result<Change>> {
        let now_ms = self.now_ms;
        let end_ms = |expiry: Option<Time>| expiry.map(|time| time.at_ms(now_ms));
        let stored = |key, value, expire_at_ms| {
            Change::Leaves(key, RowEffect::Stored(NewRow { version, value, expire_at_ms }))
        };
        Ok(match mutation {
            Mutation::Delete { key } => Ok(Change::Leaves(key, RowEffect::Removed)),
            Mutation::Set { key, suffixed, value, expiry } => {
                let key = if suffixed {
                    key::with_versionstamp(&key, Versionstamp::new(version))
                } else {
                    key
                };
                Ok(stored(key, value, end_ms(expiry)))
            }
            Mutation::Arith { op, key, operand } => self.entry_of(&key)?.and_then(|row| {
                let value = arith::combine(op, row.map(|row| row.value), operand)?;
                Ok(stored(key, value, None))
            }),
            Mutation::Calculate { key, calculation, expiry } => {
                self.entry_of(&key)?.and_then(|row| {
                    let value = calculate(&calculation, row.as_ref().map(|row| &row.value))
                        .map_err(|error| at_key(&error, &key))?;
                    fits(&value, calculation.value_bytes_max, &key)?;
                    Ok(stored(key, value, end_ms(expiry).or_else(|| row?.expire_at_ms)))
                })
            }
            Mutation::Append { key, items, front, value_bytes_max, expiry } => {
                self.entry_of(&key)?.and_then(|row| {
                    let value = append(row.as_ref().map(|row| &row.value), items, front)
                        .map_err(|error| at_key(&error, &key))?;
                    fits(&value, value_bytes_max, &key)?;
                    self.accepted(&value, &key)?;
                    Ok(stored(key, value, end_ms(expiry).or_else(|| row?.expire_at_ms)))
                })
            }
            Mutation::Limit { key, limiting } => self.entry_of(&key)?.and_then(|row| {
                let Taken { stored: state, outcome } =
                    limiting::take(&limiting, row.as_ref().map(|row| &row.value), now_ms)
                        .map_err(|error| at_key(&error, &key))?;
                let left = state.map(|(value, end_ms)| {
                    let row = NewRow { version, value, expire_at_ms: Some(end_ms) };
                    (key, RowEffect::Stored(row))
                });
                Ok(Change::Limited(left, outcome))
            }),
            Mutation::SetExpiry { key, expiry, required, shortens } => {
                let expire_at_ms = end_ms(expiry);
                if shortens && self.expires_by(&key, expire_at_ms)? {
                    return Ok(Ok(Change::Nothing));
                }
                Ok(match (self.version_of(&key)?, self.rows.get(&key)) {
                    (None, _) if required => Change::Lost,
                    (None, _) => Change::Nothing,
                    (Some(_), Some(effect)) => {
                        let effect = effect.with_expiry(expire_at_ms);
                        Change::Leaves(key, effect)
                    }
                    (Some(version), None) => {
                        Change::Leaves(key, RowEffect::ExpirySet { version, expire_at_ms })
                    }
                })
            }
        })
    }

    /// Whether there is an entry, and it expires at this time or earlier.
    fn expires_by(&mut self, key: &Key, at_ms: Option<i64>) -> Result<bool> {
        // One that cannot be read gets its expiry.
        let Ok(Some(row)) = self.entry_of(key)? else { return Ok(false) };
        Ok(at_ms.is_none_or(|at_ms| row.expire_at_ms.is_some_and(|end_ms| end_ms <= at_ms)))
    }

    fn undo(&mut self, undo: Undo) {
        self.journal.forget();
        for (key, before) in undo.into_iter().rev() {
            match (self.rows.entry(key), before) {
                (Entry::Occupied(mut at), Some(row)) => {
                    at.insert(row);
                }
                (Entry::Occupied(at), None) => {
                    at.swap_remove();
                }
                (Entry::Vacant(_), _) => {}
            }
        }
    }
}

/// The part of a stored value that the caller gets.
fn reported_value(tells: Returned, value: &EncodedValue) -> EncodedValue {
    match tells {
        Returned::Number | Returned::Limiter => value.clone(),
        Returned::Length => {
            let length = cbor::array_length(&value.bytes).unwrap_or(0);
            let bytes = cbor::encode_number(f64::from(length));
            EncodedValue { encoding: Encoding::Cbor, bytes }
        }
    }
}

/// Whether an error concerns the entry, not the medium.
fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), Kind::Corrupt | Kind::Invalid)
}

/// The same error with the key in its message.
fn at_key(error: &Error, key: &Key) -> Error {
    Error::new(error.kind(), format!("{} (key {})", error.message(), key::print(key.as_bytes())))
}

/// Checks a computed value against the limit of values.
fn fits(value: &EncodedValue, bytes_max: usize, key: &Key) -> Result<()> {
    limit::value(value.bytes.len(), bytes_max, &|| key::print(key.as_bytes()))
}
