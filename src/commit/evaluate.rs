//! Decides a batch of writes one after the other over a view of the database before the batch.

use foldhash::fast::RandomState;
use indexmap::IndexMap;
use indexmap::map::Entry;

use super::arith;
use crate::codec::key;
use crate::model::{
    AtomicWrite, Check, Decision, EncodedValue, Error, Key, Kind, Message, Mutation, Result,
    Versionstamp, WriteParts,
};

/// An entry before the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldRow {
    /// Its commit.
    pub version: u64,
    /// Its value.
    pub value: EncodedValue,
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
}

/// An entry as the batch leaves it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRow {
    /// Its commit.
    pub version: u64,
    /// Its value.
    pub value: EncodedValue,
    /// When it ends, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
}

/// A batch under evaluation, and then what it leaves behind.
pub struct Evaluation<'b> {
    base: &'b mut dyn Base,
    version: u64,
    now_ms: i64,
    /// In the order of arrival, which is often that of the keys already.
    rows: IndexMap<Key, Option<NewRow>, RandomState>,
    messages: Vec<Message>,
}

/// What was under a key before a write touched it, to be put back if the write is rejected.
type Undo = Vec<(Key, Option<Option<NewRow>>)>;

impl<'b> Evaluation<'b> {
    /// Starts after the commit `version`. `now_ms` is that of the base: what the batch itself
    /// stores with an end that has come is as absent as what was there before.
    pub fn new(base: &'b mut dyn Base, version: u64, now_ms: i64) -> Self {
        Self { base, version, now_ms, rows: IndexMap::default(), messages: Vec::new() }
    }

    /// Makes room for about so many rows.
    pub fn reserve(&mut self, rows: usize) {
        self.rows.reserve(rows);
    }

    /// What the batch has left under a key so far; the outer `None`: it has not touched it.
    fn written(&self, key: &Key) -> Option<Option<&NewRow>> {
        let alive = |row: &&NewRow| row.expire_at_ms.is_none_or(|end| end > self.now_ms);
        self.rows.get(key).map(|row| row.as_ref().filter(alive))
    }

    /// Decides one write. Later writes see what it did.
    ///
    /// # Errors
    /// Only what the base answers.
    pub fn decide(&mut self, write: AtomicWrite) -> Result<Decision> {
        let WriteParts { checks, mutations, messages } = write.into_parts();
        let failed = self.failed_checks(&checks)?;
        if !failed.is_empty() {
            return Ok(Decision::CheckFailed(failed));
        }
        let version = self.version + 1;
        let can_fail = mutations.iter().any(|m| matches!(m, Mutation::Arith { .. }));
        let mut undo = Undo::new();
        for mutation in mutations {
            match self.change(mutation, version)? {
                Ok((key, row)) => {
                    let keep = can_fail.then(|| key.clone());
                    let before = self.rows.insert(key, row);
                    undo.extend(keep.map(|key| (key, before)));
                }
                Err(reason) => {
                    self.undo(undo);
                    return Ok(Decision::Rejected(reason));
                }
            }
        }
        self.version = version;
        self.messages.extend(messages);
        Ok(Decision::Committed(Versionstamp::new(version)))
    }

    /// Stores a value under keys outside any write, with a stamp of its own: what becomes of a
    /// message that could not be delivered.
    pub fn deposit(&mut self, keys: Vec<Key>, value: &EncodedValue) {
        self.version += 1;
        for key in keys {
            let row = NewRow { version: self.version, value: value.clone(), expire_at_ms: None };
            self.rows.insert(key, Some(row));
        }
    }

    /// The last commit so far.
    #[must_use]
    pub fn version(&self) -> u64 {
        self.version
    }

    /// The rows that change, in key order (`None`: removed), and the messages to enqueue.
    #[must_use]
    pub fn into_effects(self) -> (Vec<(Key, Option<NewRow>)>, Vec<Message>) {
        let mut rows: Vec<_> = self.rows.into_iter().collect();
        rows.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        (rows, self.messages)
    }

    fn failed_checks(&mut self, checks: &[Check]) -> Result<Vec<usize>> {
        let mut failed = Vec::new();
        for (at, check) in checks.iter().enumerate() {
            let current = match self.written(&check.key) {
                Some(row) => row.map(|row| row.version),
                None => self.base.version(&check.key)?,
            };
            if current.map(Versionstamp::new) != check.expected {
                failed.push(at);
            }
        }
        Ok(failed)
    }

    /// What a mutation leaves under which key; the inner error is the write's, the outer the base's.
    fn change(
        &mut self,
        mutation: Mutation,
        version: u64,
    ) -> Result<Result<(Key, Option<NewRow>)>> {
        Ok(match mutation {
            Mutation::Delete { key } => Ok((key, None)),
            Mutation::Set { key, suffixed, value, expire_at_ms } => {
                let key = if suffixed {
                    key::with_versionstamp(&key, Versionstamp::new(version))
                } else {
                    key
                };
                Ok((key, Some(NewRow { version, value, expire_at_ms })))
            }
            Mutation::Arith { op, key, operand } => {
                let stored = match self.written(&key) {
                    Some(row) => row.map(|row| row.value.clone()),
                    None => match self.base.row(&key) {
                        Ok(row) => row.map(|row| row.value),
                        Err(error) if is_damage(&error) => return Ok(Err(error)),
                        Err(error) => return Err(error),
                    },
                };
                arith::combine(op, stored, operand)
                    .map(|value| (key, Some(NewRow { version, value, expire_at_ms: None })))
            }
        })
    }

    fn undo(&mut self, undo: Undo) {
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

/// Whether an error is about the entry that was asked for, rather than about the medium.
fn is_damage(error: &Error) -> bool {
    matches!(error.kind(), Kind::Corrupt | Kind::Invalid)
}
