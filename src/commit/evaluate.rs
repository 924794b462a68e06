//! Decides a batch of writes one after the other over a view of the database before the batch.

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use indexmap::map::Entry;

use super::append::append;
use super::arith;
use super::calculate::calculate;
use super::conflict;
use super::journal::Journal;
use super::left::{Left, NewRow};
use super::placeholders::Uuids;
use crate::codec::{cbor, key};
use crate::model::{
    self, AtomicWrite, Decision, EncodedValue, Encoding, Error, Key, Kind, Message, Mutation,
    Resolved, Result, Results, Seen, Step, Tells, Versionstamp, Walk, WriteParts, limit,
};

/// An entry before the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldRow {
    /// Its commit.
    pub version: u64,
    /// Its value.
    pub value: EncodedValue,
    /// When it ends, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
}

/// The database before the batch. Expired entries are absent.
pub trait Base {
    /// The commit that wrote the entry of a key.
    ///
    /// # Errors
    /// What the medium answers; ends the whole batch.
    fn version(&mut self, key: &Key) -> Result<Option<u64>>;

    /// The entry of a key.
    ///
    /// # Errors
    /// `Corrupt` or `Invalid` for an entry that cannot be read: that rejects the write which needs
    /// it. Whatever else the medium answers ends the whole batch.
    fn row(&mut self, key: &Key) -> Result<Option<OldRow>>;

    /// Visits entries in key order; `visit` leads the way.
    ///
    /// # Errors
    /// What the medium answers; ends the whole batch.
    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()>;

    /// Whether there is a place for a value: not every format has one for all of them.
    ///
    /// # Errors
    /// `Invalid` if not; that rejects the write.
    fn accepts(&self, _encoding: Encoding, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }

    /// The last UUID that a commit of this database has made.
    ///
    /// # Errors
    /// What the medium answers; ends the whole batch.
    fn last_uuid(&mut self) -> Result<Option<u128>>;
}

/// A batch under evaluation, and then what it leaves behind.
pub struct Evaluation<'b> {
    pub(super) base: &'b mut dyn Base,
    pub(super) version: u64,
    now_ms: i64,
    /// In the order of arrival, which is often that of the keys already.
    pub(super) rows: IndexMap<Key, Left, RandomState>,
    /// With the number of the write that each is of.
    messages: Vec<(usize, Message)>,
    /// Writes so far, whatever became of them.
    decided: usize,
    /// Randomness for UUIDs.
    seed: u64,
    uuids: Option<Uuids>,
    pub(super) journal: Journal,
}

/// The rows that change, in key order, and the messages to enqueue, each with the number of the write
/// that it is of, counted from 0.
pub type Effects = (Vec<(Key, Left)>, Vec<(usize, Message)>);

/// What was under a key before a write touched it, to be put back if the write is rejected.
type Undo = Vec<(Key, Option<Left>)>;

/// What one mutation comes to.
enum Change {
    /// This is under the key now.
    Leaves(Key, Left),
    /// There was nothing to change, and that is fine.
    Nothing,
    /// There is no entry where there has to be one.
    Lost,
}

impl<'b> Evaluation<'b> {
    /// Starts after the commit `version`. `now_ms` is that of the base: what the batch itself
    /// stores with an end that has come is as absent as what was there before.
    pub fn new(base: &'b mut dyn Base, version: u64, now_ms: i64) -> Self {
        let (rows, messages) = (IndexMap::default(), Vec::new());
        Self {
            base,
            version,
            now_ms,
            rows,
            messages,
            decided: 0,
            seed: 0,
            uuids: None,
            journal: Journal::default(),
        }
    }

    /// Gives it randomness, which it needs for writes with placeholders.
    #[must_use]
    pub fn seeded(self, seed: u64) -> Self {
        Self { seed, ..self }
    }

    /// From now on keeps what each commit does, for [`Self::take_changes`].
    pub fn keep_changes(&mut self) {
        self.journal.turn_on();
    }

    /// What the commits did, in their order; nothing without [`Self::keep_changes`].
    #[must_use]
    pub fn take_changes(&mut self) -> Vec<model::Change> {
        self.journal.take()
    }

    /// The last of the batch's commits that removed an entry, or may have.
    #[must_use]
    pub fn removed_version(&self) -> Option<u64> {
        self.journal.removed()
    }

    /// Makes room for about so many rows.
    pub fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
    }

    /// The commit of what is under a key, with what the batch has done so far.
    pub(super) fn version_of(&mut self, key: &Key) -> Result<Option<u64>> {
        match self.rows.get(key) {
            Some(left) => Ok(left.version(self.now_ms)),
            None => self.base.version(key),
        }
    }

    /// The entry under a key, with what the batch has done so far; the inner error is about the
    /// entry, the outer one about the medium.
    pub(super) fn entry_of(&mut self, key: &Key) -> Result<Result<Option<OldRow>>> {
        let left = self.rows.get(key);
        if left.is_some_and(|left| left.version(self.now_ms).is_none()) {
            return Ok(Ok(None));
        }
        let end = match left {
            Some(Left::Stored(NewRow { version, value, expire_at_ms })) => {
                let (version, value, expire_at_ms) = (*version, value.clone(), *expire_at_ms);
                return Ok(Ok(Some(OldRow { version, value, expire_at_ms })));
            }
            Some(Left::Retimed { expire_at_ms, .. }) => Some(*expire_at_ms),
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

    /// Decides one write. Later writes see what it did.
    ///
    /// # Errors
    /// Only what the base answers.
    pub fn decide(&mut self, write: AtomicWrite) -> Result<Decision> {
        let mut parts = write.into_parts();
        let number = self.decided;
        self.decided += 1;
        let failed = self.failed_checks(&parts)?;
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
        let WriteParts { mutations, messages, tells_values, .. } = parts;
        let version = self.version + 1;
        let can_fail = mutations.iter().any(Mutation::can_fail);
        let mut undo = Undo::new();
        for mutation in mutations {
            let tells = tells_values.then(|| mutation.tells()).flatten();
            match self.change(mutation, version)? {
                Ok(Change::Leaves(key, left)) => {
                    if let (Some(tells), Left::Stored(row)) = (tells, &left) {
                        results.values.push(told(tells, &row.value));
                    }
                    self.journal.note(&key, &left, version);
                    let keep = can_fail.then(|| key.clone());
                    let before = self.rows.insert(key, left);
                    undo.extend(keep.map(|key| (key, before)));
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
        self.version = version;
        self.journal.keep(version);
        self.messages.extend(messages.into_iter().map(|message| (number, message)));
        Ok(Decision::committed(Versionstamp::new(version), results))
    }

    /// Whether there is a place for what a write brings with it. What a mutation makes of it is a
    /// number, or checked when it is made.
    fn all_accepted(&self, parts: &WriteParts) -> Result<()> {
        for mutation in &parts.mutations {
            if let Mutation::Set { key, value, .. } = mutation {
                self.accepted(value, key)?;
            }
        }
        for message in &parts.messages {
            if !message.is_named() || !message.keys_if_undelivered.is_empty() {
                self.base.accepts(Encoding::Cbor, &message.value)?;
            }
        }
        Ok(())
    }

    fn accepted(&self, value: &EncodedValue, key: &Key) -> Result<()> {
        let accepted = self.base.accepts(value.encoding, &value.bytes);
        accepted.map_err(|error| at_key(&error, key))
    }

    /// Makes the UUIDs of a write's placeholders.
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

    /// The last UUID that the batch has made, if it has made any.
    #[must_use]
    pub fn last_uuid(&self) -> Option<u128> {
        self.uuids.as_ref().map(Uuids::last)
    }

    /// Stores a value under keys outside any write, with a stamp of its own: what becomes of a
    /// message that could not be delivered.
    pub fn deposit(&mut self, keys: Vec<Key>, value: &EncodedValue) {
        self.version += 1;
        for key in keys {
            let row = NewRow { version: self.version, value: value.clone(), expire_at_ms: None };
            let left = Left::Stored(row);
            self.journal.note(&key, &left, self.version);
            self.rows.insert(key, left);
        }
        self.journal.keep(self.version);
    }

    /// The last commit so far.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// What the batch leaves behind.
    #[must_use]
    pub fn into_effects(self) -> Effects {
        let mut rows: Vec<_> = self.rows.into_iter().collect();
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        (rows, self.messages)
    }

    fn failed_checks(&mut self, parts: &WriteParts) -> Result<Vec<usize>> {
        let mut failed = Vec::new();
        for (at, check) in parts.checks.iter().enumerate() {
            let current = self.version_of(&check.key)?;
            if current.map(Versionstamp::new) != check.expected {
                failed.push(at);
            }
        }
        for (at, range) in parts.ranges.iter().enumerate() {
            if !conflict::holds(self.base, &self.rows, self.now_ms, range)? {
                failed.push(parts.checks.len() + at);
            }
        }
        Ok(failed)
    }

    /// What a mutation comes to; the inner error is the write's, the outer the base's.
    fn change(&mut self, mutation: Mutation, version: u64) -> Result<Result<Change>> {
        let stored = |key, value, expire_at_ms| {
            Change::Leaves(key, Left::Stored(NewRow { version, value, expire_at_ms }))
        };
        Ok(match mutation {
            Mutation::Delete { key } => Ok(Change::Leaves(key, Left::Removed)),
            Mutation::Set { key, suffixed, value, expire_at_ms } => {
                let key = if suffixed {
                    key::with_versionstamp(&key, Versionstamp::new(version))
                } else {
                    key
                };
                Ok(stored(key, value, expire_at_ms))
            }
            Mutation::Arith { op, key, operand } => self.entry_of(&key)?.and_then(|row| {
                let value = arith::combine(op, row.map(|row| row.value), operand)?;
                Ok(stored(key, value, None))
            }),
            Mutation::Calculate { key, calculation, expire_at_ms } => {
                self.entry_of(&key)?.and_then(|row| {
                    let value = calculate(&calculation, row.as_ref().map(|row| &row.value))
                        .map_err(|error| at_key(&error, &key))?;
                    fits(&value, calculation.value_bytes_max, &key)?;
                    Ok(stored(key, value, expire_at_ms.or_else(|| row?.expire_at_ms)))
                })
            }
            Mutation::Append { key, items, front, value_bytes_max, expire_at_ms } => {
                self.entry_of(&key)?.and_then(|row| {
                    let value = append(row.as_ref().map(|row| &row.value), items, front)
                        .map_err(|error| at_key(&error, &key))?;
                    fits(&value, value_bytes_max, &key)?;
                    self.accepted(&value, &key)?;
                    Ok(stored(key, value, expire_at_ms.or_else(|| row?.expire_at_ms)))
                })
            }
            Mutation::Retime { key, expire_at_ms, required } => {
                Ok(match (self.version_of(&key)?, self.rows.get(&key)) {
                    (None, _) if required => Change::Lost,
                    (None, _) => Change::Nothing,
                    (Some(_), Some(left)) => {
                        let left = left.retimed(expire_at_ms);
                        Change::Leaves(key, left)
                    }
                    (Some(version), None) => {
                        Change::Leaves(key, Left::Retimed { version, expire_at_ms })
                    }
                })
            }
        })
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

/// What is told of the value that a mutation has left.
fn told(tells: Tells, value: &EncodedValue) -> EncodedValue {
    match tells {
        Tells::Number => value.clone(),
        Tells::Length => {
            let length = cbor::array_length(&value.bytes).unwrap_or(0);
            let bytes = cbor::encode_number(f64::from(length));
            EncodedValue { encoding: Encoding::Cbor, bytes }
        }
    }
}

/// Whether an error is about the entry that was asked for, rather than about the medium.
fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), Kind::Corrupt | Kind::Invalid)
}

/// The same error, with the key that it is about.
fn at_key(error: &Error, key: &Key) -> Error {
    Error::new(error.kind(), format!("{} (key {})", error.message(), key::print(key.as_bytes())))
}

/// Holds what a mutation has made to the limit of values.
fn fits(value: &EncodedValue, bytes_max: usize, key: &Key) -> Result<()> {
    limit::value(value.bytes.len(), bytes_max, &|| key::print(key.as_bytes()))
}
