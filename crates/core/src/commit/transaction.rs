//! The interface between a batch and an engine: an open transaction, as tables that the steps of
//! [`super::batch`] read and change.

use std::ops::RangeInclusive;
use std::sync::Arc;

use uuid::Uuid;

use super::effect::RowEffect;
use crate::index::ValueIndex;
use crate::model::{
    Change, Claim, Delivery, EncodedValue, Encoding, Enqueued, Error, Freed, KeptMessage, Key,
    LoggedMessage, Message, Reason, Result, Seen, Step, Walk,
};

/// An entry before the batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OldRow {
    /// Its commit.
    pub version: u64,
    /// Its value.
    pub value: EncodedValue,
    /// When it expires, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
}

/// The database before the batch. Expired entries are absent. Errors of the medium end the whole batch.
pub trait Base {
    /// The commit that wrote the entry of a key.
    fn version(&mut self, key: &Key) -> Result<Option<u64>> {
        Ok(self.row(key)?.map(|row| row.version))
    }

    /// The entry of a key.
    ///
    /// # Errors
    /// `Corrupt` or `Invalid` for an unreadable entry, which rejects the write that needs it. Other
    /// errors of the medium end the whole batch.
    fn row(&mut self, key: &Key) -> Result<Option<OldRow>>;

    /// The value of a key's entry, also of one that has expired: entries of value indexes follow from it.
    /// `None` for an unreadable one.
    fn kept_value(&mut self, key: &Key) -> Result<Option<EncodedValue>> {
        Ok(self.row(key)?.map(|row| row.value))
    }

    /// Fetches the versions of these keys with as few trips as the medium needs, before they are looked up.
    fn prefetch(&mut self, _keys: &[Key]) -> Result<()> {
        Ok(())
    }

    /// Visits entries in key order; `visit` returns where to continue.
    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()>;

    /// The value indexes; `None` if there are none.
    fn value_indexes(&self) -> Option<Arc<[ValueIndex]>> {
        None
    }

    /// Visits the entries of a value index with `lo <= entry < hi` in order until `visit` returns
    /// `false`.
    fn walk_index(
        &mut self,
        _id: i64,
        _range: (&[u8], &[u8]),
        _visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        Ok(())
    }

    /// Checks that the database can store a value; not every format can store all values.
    ///
    /// # Errors
    /// `Invalid` if it cannot, which rejects the write.
    fn accepts(&self, _encoding: Encoding, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }

    /// The last UUID that a commit of this database has generated.
    fn last_uuid(&mut self) -> Result<Option<Uuid>>;
}

/// A transaction that an engine has begun, and commits or rolls back afterwards. An error of any
/// method ends the batch, and the engine rolls back.
///
/// A remote engine can read the rows that the work names before the batch runs, answer lookups from
/// them, and send the changes with the claims and at the end.
pub trait Transaction {
    /// The rows of entries.
    fn entries(&mut self) -> &mut impl EntryTable;

    /// The messages of all queues.
    fn messages(&mut self) -> &mut impl MessageTable;

    /// Logs the commits of the transaction, if [`Begun`] says that there is a log, with their changes and what they have made of messages, each in
    /// order. `messages` is empty unless [`Begun::logs_messages`].
    fn log(
        &mut self,
        _commits: RangeInclusive<u64>,
        _changes: Vec<Change>,
        _messages: &[LoggedMessage],
        _now_ms: i64,
    ) -> Result<()> {
        Ok(())
    }

    /// Stores the last commit, and the last commit of the batch with a removal, if there is one.
    fn set_version(&mut self, version: u64, removed: Option<u64>) -> Result<()>;
}

/// Entries of a transaction.
pub trait EntryTable: Base {
    /// Applies the effect of the batch on a key.
    fn apply(&mut self, key: &Key, effect: RowEffect) -> Result<()>;

    /// Stores the last UUID, for later commits.
    fn set_last_uuid(&mut self, uuid: Uuid) -> Result<()>;

    /// Gets the logged changes of the batch before any entry changes, so that a history can keep what
    /// they replace.
    fn keep_past(&mut self, _changes: &[Change]) -> Result<()> {
        Ok(())
    }

    /// Deletes up to `max` expired entries, by the commit `version`; returns their keys.
    fn sweep(&mut self, max: usize, now_ms: i64, version: u64) -> Result<Vec<Key>>;
}

/// Messages of a transaction: waiting, locked or dead.
pub trait MessageTable {
    /// Deletes the message with this lock; `None` if there is none.
    fn acknowledge(&mut self, id: i64, lock: i64) -> Result<Option<Freed>>;

    /// Whether the lock holds the message.
    fn is_held(&mut self, id: i64, lock: i64) -> Result<bool>;

    /// Returns the message with this lock to the waiting ones without counting the delivery; `None` if there is no
    /// such message.
    fn put_back(&mut self, id: i64, lock: i64) -> Result<Option<Freed>>;

    /// Deletes a message of a queue or of one of its groups, whoever has it. Returns its value with its context;
    /// `None` if there is no such message.
    fn cancel(&mut self, queue: &str, id: i64) -> Result<Option<(Freed, Vec<u8>)>>;

    /// The message with this lock.
    fn locked(&mut self, id: i64, lock: i64) -> Result<Option<LockedMessage>>;

    /// Sets the expiry of a lock; `false` if no message has it.
    fn renew(&mut self, id: i64, lock: i64, end_ms: i64) -> Result<bool>;

    /// Extends the expired locks of a queue and of its groups, but not twice without a renewal in between. Only for
    /// an engine that other processes can block.
    fn extend_expired(&mut self, _queue: &str, _now_ms: i64, _end_ms: i64) -> Result<()> {
        Ok(())
    }

    /// Messages of a queue and of its groups whose lock has expired, by its expiry.
    fn expired(&mut self, queue: &str, max: usize, now_ms: i64) -> Result<Vec<LockedMessage>>;

    /// Fails the expired deliveries of another program that shares the queue, by that program's
    /// rules. Returns the undelivered values, and whether any message waits again.
    fn fail_shared(
        &mut self,
        _queue: &str,
        _max: usize,
        _now_ms: i64,
    ) -> Result<(Vec<Undelivered>, bool)> {
        Ok((Vec::new(), false))
    }

    /// Makes a locked message wait until `due_ms`.
    fn retry(&mut self, locked: &LockedMessage, due_ms: i64) -> Result<()>;

    /// Removes a locked message that is dead; with a reason it becomes a dead letter, of the queue that has its
    /// group.
    fn remove_dead(
        &mut self,
        locked: &LockedMessage,
        reason: Option<&Reason>,
        now_ms: i64,
    ) -> Result<()>;

    /// Adds a message, unless a message of its queue that is not dead has its deduplication key; then
    /// the message's [`crate::model::Deduplication`] says what happens.
    fn enqueue(&mut self, message: Message, now_ms: i64) -> Result<Placed>;

    /// The message of a queue that is not dead and has this deduplication key.
    fn with_key(&mut self, queue: &str, key: &str) -> Result<Option<i64>>;

    /// Takes its deduplication key from a message that is not dead.
    fn leave_key(&mut self, id: i64) -> Result<()>;

    /// Locks and returns messages that are due, by priority, due time and number.
    fn claim(&mut self, claim: &Claim, now_ms: i64) -> Result<Vec<Delivery>>;

    /// The numbers of messages that [`MessageTable::claim`] would return, also of a queue that is paused.
    fn due(&mut self, queue: &str, max: usize, now_ms: i64) -> Result<Vec<i64>>;

    /// The earliest due time of a message of a queue that no consumer has; `None` also for a queue that is paused.
    fn next_due(&mut self, queue: &str) -> Result<Option<i64>>;

    /// The earliest end of a lock of a queue and of its groups.
    fn next_end(&mut self, queue: &str) -> Result<Option<i64>>;

    /// The number of messages of a queue and of its groups that consumers have.
    fn running(&mut self, queue: &str) -> Result<u64>;

    /// Puts a message that no consumer has into another queue. If a message there has its deduplication key, it
    /// loses its own.
    fn move_to(&mut self, id: i64, queue: &str) -> Result<()>;

    /// These messages without their locks, in the order of `ids`, which are distinct; `None` for one that is gone.
    /// For a log that has messages, and for schedules.
    fn kept(&mut self, ids: &[i64]) -> Result<Vec<Option<KeptMessage>>>;

    /// Makes messages what another copy's log says, whatever they are here.
    fn repeat(&mut self, messages: &[LoggedMessage]) -> Result<()> {
        if messages.is_empty() { Ok(()) } else { Err(only_copies()) }
    }

    /// Deletes up to `max` dead letters whose retention is over; returns their number. The log does not
    /// say so: each copy deletes its own.
    fn purge(&mut self, max: usize, now_ms: i64) -> Result<usize>;
}

/// The error of an engine that repeats no log.
fn only_copies() -> Error {
    Error::unsupported("a database of this kind is no copy of another one")
}

/// What an enqueue has done.
#[derive(Clone, Copy, Debug)]
pub struct Placed {
    /// The result for the caller.
    pub enqueued: Enqueued,
    /// An earlier message that it has changed.
    pub changed: Option<i64>,
}

impl Placed {
    /// An enqueue that has added the message, or nothing.
    pub fn only(id: Option<i64>, deduplicated: bool) -> Self {
        Self { enqueued: Enqueued { id, deduplicated }, changed: None }
    }

    /// It was added, and has the deduplication key of an earlier one, which a consumer has.
    pub fn beside(id: i64, earlier: i64) -> Self {
        Self { changed: Some(earlier), ..Self::only(Some(id), false) }
    }

    /// It has replaced an earlier one.
    pub fn instead(earlier: i64) -> Self {
        Self { changed: Some(earlier), ..Self::only(Some(earlier), true) }
    }
}

/// A locked message, with the fields that a failure needs.
#[derive(Clone, Debug)]
pub struct LockedMessage {
    /// Its number in the database.
    pub id: i64,
    /// The number of its deliveries.
    pub attempts: u32,
    /// When its lock ends.
    pub lock_end_ms: i64,
    /// Its queue, backoff, keys if undelivered, retention, deduplication key and value; other fields are not set.
    pub message: Message,
    /// The encoding of its value.
    pub encoding: Encoding,
}

impl LockedMessage {
    /// Of what its queue is free once it is gone.
    pub fn freed(&self) -> Freed {
        let Message { queue, deduplication_key, .. } = &self.message;
        Freed { queue: queue.clone(), key: deduplication_key.clone() }
    }
}

/// The value of a dead message, to be stored under these keys.
#[derive(Clone, Debug)]
pub struct Undelivered {
    /// The keys to store it under.
    pub keys: Vec<Key>,
    /// The value of the message.
    pub value: EncodedValue,
    /// When these entries expire, in ms since the epoch.
    pub expire_at_ms: Option<i64>,
}

/// The state that an engine reads at the start of a transaction.
#[derive(Clone, Copy, Debug, Default)]
pub struct Begun {
    /// The last commit.
    pub version: u64,
    /// The time of the batch, in ms since the epoch.
    pub now_ms: i64,
    /// Whether changes are logged.
    pub logs: bool,
    /// Whether the replication log has messages too. Only with `logs`.
    pub logs_messages: bool,
    /// Whether other processes have recently blocked this one for long. Then their live consumers
    /// may not have been able to renew their locks, so expired locks are extended.
    pub kept_out: bool,
}
