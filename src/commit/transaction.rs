//! What an engine provides for a batch: its open transaction, as tables that the steps of
//! [`super::batch`] read and change.

use uuid::Uuid;

use super::effect::RowEffect;
use crate::model::{
    Change, Claim, Delivery, EncodedValue, Encoding, Enqueued, Key, Message, Reason, Result, Seen,
    Step, Walk,
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

    /// Visits entries in key order; the answers of `visit` lead the walk.
    ///
    /// # Errors
    /// What the medium answers; ends the whole batch.
    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()>;

    /// Checks that the database can store a value: not every format can store all of them.
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
    fn last_uuid(&mut self) -> Result<Option<Uuid>>;
}

/// A transaction that an engine has begun, and commits or rolls back afterwards. An error of any
/// method ends the batch, and the engine rolls back.
///
/// An engine behind a network reads what the work names before the batch runs, answers the look-ups
/// from that, and sends the changes with the claims and at the end.
pub(crate) trait Transaction {
    fn entries(&mut self) -> &mut impl EntryTable;

    fn messages(&mut self) -> &mut impl MessageTable;

    /// Logs changes, in the order of their commits.
    fn log(&mut self, changes: Vec<Change>, now_ms: i64) -> Result<()>;

    /// Stores the last commit, and the last one that removed an entry, if any of the batch did.
    fn set_version(&mut self, version: u64, removed: Option<u64>) -> Result<()>;
}

/// Entries of a transaction.
pub(crate) trait EntryTable: Base {
    /// Carries out what the batch does to the entry of a key.
    fn apply(&mut self, key: &Key, effect: RowEffect) -> Result<()>;

    /// Stores the last UUID for the commits to come.
    fn set_last_uuid(&mut self, uuid: Uuid) -> Result<()>;

    /// Deletes up to `max` entries that have expired; answers their keys.
    fn sweep(&mut self, max: usize, now_ms: i64) -> Result<Vec<Key>>;
}

/// Messages of a transaction: waiting, locked by a consumer, or dead.
pub(crate) trait MessageTable {
    /// Deletes the message that a lock holds; `false` if it holds none.
    fn acknowledge(&mut self, id: i64, lock: i64) -> Result<bool>;

    /// Makes the message that a lock holds wait again as if it had not been handed out. Answers
    /// whether its queue has a name; `None` if the lock holds none.
    fn put_back(&mut self, id: i64, lock: i64) -> Result<Option<bool>>;

    /// The message that a lock holds.
    fn locked(&mut self, id: i64, lock: i64) -> Result<Option<LockedMessage>>;

    /// Sets the end of a lock; `false` if it holds no message.
    fn renew(&mut self, id: i64, lock: i64, end_ms: i64) -> Result<bool>;

    /// Sets the end of a queue's expired locks, but not a second time before a holder has renewed.
    /// Only for an engine that other processes can keep out.
    fn extend_expired(&mut self, _queue: &str, _now_ms: i64, _end_ms: i64) -> Result<()> {
        Ok(())
    }

    /// Messages of a queue whose lock has expired, by the end of the lock.
    fn expired(&mut self, queue: &str, max: usize, now_ms: i64) -> Result<Vec<LockedMessage>>;

    /// Fails the expired deliveries of another program that shares the queue, by that program's
    /// rules. Answers what the dead leave behind, and whether others wait again.
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

    /// Removes a locked message that is dead; with a reason it becomes a dead letter.
    fn remove_dead(
        &mut self,
        locked: &LockedMessage,
        reason: Option<&Reason>,
        now_ms: i64,
    ) -> Result<()>;

    /// Adds a message, unless a live one of its queue has its deduplication key.
    fn enqueue(&mut self, message: Message, now_ms: i64) -> Result<Enqueued>;

    /// Locks messages that are due, by priority, due time and number, and answers them.
    fn claim(&mut self, claim: &Claim, now_ms: i64) -> Result<Vec<Delivery>>;

    /// Deletes up to `max` dead letters whose retention is over; answers how many.
    fn purge(&mut self, max: usize, now_ms: i64) -> Result<usize>;
}

/// A message that a consumer has, as far as its failure is concerned.
#[derive(Clone, Debug)]
pub(crate) struct LockedMessage {
    pub(crate) id: i64,
    /// How often it was handed out.
    pub(crate) attempts: u32,
    pub(crate) lock_end_ms: i64,
    /// Its queue, backoff, keys if undelivered, retention and value; the rest is not needed.
    pub(crate) message: Message,
    /// Of its value.
    pub(crate) encoding: Encoding,
}

/// What a dead message leaves behind: its value, to be stored under these keys.
#[derive(Clone, Debug)]
pub(crate) struct Undelivered {
    pub(crate) keys: Vec<Key>,
    pub(crate) value: EncodedValue,
}

/// What an engine knows when its transaction has begun.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begun {
    /// The last commit.
    pub(crate) version: u64,
    /// The time of the batch, in ms since the epoch.
    pub(crate) now_ms: i64,
    /// Whether changes are logged.
    pub(crate) logs: bool,
    /// Whether other processes have just kept this one out for long. Then their live consumers may
    /// have had no chance to renew: their expired locks get a grace period.
    pub(crate) kept_out: bool,
}
