//! Messages in the writer's transaction.

use tokio_postgres::Row;

use super::link::Link;
use super::session::Call;
use crate::commit::{LockedMessage, MessageTable};
use crate::model::{
    Claim, DeadLetterChange, Delivery, Enqueued, Error, Kind, Message, Reason, Renewal, Result,
    Settlement,
};

/// The messages that settlements and renewals name.
#[derive(Default)]
pub(super) struct HeldArguments {
    ids: Vec<i64>,
}

impl HeldArguments {
    pub(super) fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    pub(super) fn call<'a>(&'a self, db: &'a i64) -> Call<'a> {
        ("SELECT 1 FROM openkv.messages WHERE db = $1 AND id = ANY ($2)", vec![db, &self.ids])
    }
}

/// What the batch does to messages, as columns of the statements.
#[derive(Default)]
pub(super) struct MessageChanges;

impl MessageChanges {
    /// Adds the statements that carry them out.
    pub(super) fn calls<'a>(&'a self, _db: &'a i64, _calls: &mut Vec<Call<'a>>) {}
}

/// The messages of the database, inside a transaction of the writer.
pub(super) struct Messages {
    link: Link,
    db: i64,
    last_id: i64,
}

fn missing<T>() -> Result<T> {
    Err(Error::new(Kind::Unsupported, "queues are not there yet"))
}

impl Messages {
    pub(super) fn new(link: Link, db: i64, last_id: i64) -> Self {
        Self { link, db, last_id }
    }

    /// What [`Messages::learn`] is to be told before these are carried out.
    pub(super) fn held_of(_settlements: &[Settlement], _renewals: &[Renewal]) -> HeldArguments {
        HeldArguments::default()
    }

    /// Takes the answer of [`HeldArguments::call`].
    pub(super) fn learn(&mut self, _held: HeldArguments, _rows: &[Row]) {}

    /// What is to be written.
    pub(super) fn take_changes(&mut self) -> MessageChanges {
        MessageChanges
    }

    /// The number of the last message, after the batch.
    pub(super) fn last_id(&self) -> i64 {
        self.last_id
    }

    /// Requeues or deletes dead letters; answers how many.
    pub(super) fn change_dead_letters(
        &mut self,
        _queue: &str,
        _change: &DeadLetterChange,
        _now_ms: i64,
    ) -> Result<usize> {
        missing()
    }

    /// Whether the transaction has sent changes already.
    pub(super) fn has_flushed(&self) -> bool {
        let _ = (&self.link, self.db);
        false
    }
}

impl MessageTable for Messages {
    fn acknowledge(&mut self, _id: i64, _lock: i64) -> Result<bool> {
        missing()
    }
    fn put_back(&mut self, _id: i64, _lock: i64) -> Result<Option<bool>> {
        missing()
    }
    fn locked(&mut self, _id: i64, _lock: i64) -> Result<Option<LockedMessage>> {
        missing()
    }
    fn renew(&mut self, _id: i64, _lock: i64, _end_ms: i64) -> Result<bool> {
        missing()
    }
    fn expired(&mut self, _queue: &str, _max: usize, _now_ms: i64) -> Result<Vec<LockedMessage>> {
        missing()
    }
    fn retry(&mut self, _locked: &LockedMessage, _due_ms: i64) -> Result<()> {
        missing()
    }
    fn remove_dead(
        &mut self,
        _locked: &LockedMessage,
        _reason: Option<&Reason>,
        _now_ms: i64,
    ) -> Result<()> {
        missing()
    }
    fn enqueue(&mut self, _message: Message, _now_ms: i64) -> Result<Enqueued> {
        missing()
    }
    fn claim(&mut self, _claim: &Claim, _now_ms: i64) -> Result<Vec<Delivery>> {
        missing()
    }
    fn purge(&mut self, _max: usize, _now_ms: i64) -> Result<usize> {
        Ok(0)
    }
}
