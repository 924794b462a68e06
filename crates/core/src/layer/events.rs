//! The events and actions between a layer and its driver.

use std::sync::Arc;

use uuid::Uuid;

use super::cache::Fetched;
use super::write_ids::Remembered;
use crate::commit::{Effects, IndexPoint, Report, Ticket, Work};
use crate::index::ValueIndex;
use crate::model::{Error, Key, Result, WriteRecord};

/// A moment, as the driver measures it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// The time of the database's server, in ms since the epoch; never ahead of it.
    pub wall_ms: i64,
    /// A clock that only goes forward, in µs.
    pub us: u64,
}

/// Names a read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchId(pub u64);

/// The state of a database when its lead begins.
#[derive(Clone, Debug, Default)]
pub struct Lead {
    /// The epoch, which no other leader has.
    pub epoch: u64,
    /// The last commit.
    pub version: u64,
    /// The time of the last commit, or later.
    pub clock_ms: i64,
    /// The last UUID that a commit has generated.
    pub last_uuid: Option<Uuid>,
    /// The number of the last message.
    pub last_message: i64,
    /// Whether commits log their changes.
    pub logs: bool,
    /// The value indexes. They change with the epoch only.
    pub value_indexes: Arc<[ValueIndex]>,
}

/// The answer to [`Action::Resolve`].
#[derive(Clone, Debug)]
pub enum Resolution {
    /// The epoch was raised. Batches of the old one have happened up to its version. With the ids of
    /// writes that the database has.
    Leading(Lead, Remembered),
    /// Another leader has raised the epoch.
    Overtaken {
        /// The version at which the epoch after this one began.
        start: u64,
        /// The error for the callers of the other batches.
        error: Error,
    },
    /// It could not be found out in time.
    Unknown(Error),
}

/// An event from the driver.
#[derive(Debug)]
pub enum Event {
    /// A batch has arrived.
    Submitted(Ticket, Work),
    /// A batch has arrived that must run in a transaction of its own, whatever is in it.
    SubmittedAlone(Ticket, Work),
    /// A read has ended: the entries of its keys, in its order, from one snapshot. Expired entries
    /// may be among them.
    Fetched(FetchId, Vec<Fetched>),
    /// As `Fetched`, for [`Action::FetchPoints`]: the entries of each value.
    FetchedPoints(FetchId, Vec<Vec<Vec<u8>>>),
    /// A read has failed.
    FetchFailed(FetchId, Error),
    /// The oldest batch in flight is durable, or confirmed.
    Durable(Ticket),
    /// The database has refused the oldest batch in flight for another reason than its fence, so
    /// nothing of it has happened.
    Refused(Ticket, Error),
    /// A batch in flight has failed its fence, or the connection was lost while batches were in
    /// flight.
    Interrupted,
    /// The answer to [`Action::Resolve`].
    Resolved(Resolution),
    /// The answer to [`Action::RunAlone`], and the state of the database after it.
    RanAlone(Ticket, Result<(Report, Lead)>),
}

/// A batch to send. Nothing is awaited between two of them.
#[derive(Debug)]
pub struct Commit {
    /// The batch.
    pub ticket: Ticket,
    /// The epoch that the database must have.
    pub epoch: u64,
    /// The version that the database must have.
    pub prev: u64,
    /// The version after it. The same as `prev` for a batch without a commit, which only makes the
    /// database confirm its epoch and version.
    pub next: u64,
    /// The time at which it was decided, in ms since the epoch.
    pub now_ms: i64,
    /// Whether the answer waits for the sync.
    pub durable: bool,
    /// Its effects.
    pub effects: Effects,
    /// The number of the last message before it.
    pub last_message: i64,
    /// Its writes with ids that commit, to be stored with it.
    pub records: Vec<WriteRecord>,
}

/// An action for the driver.
#[derive(Debug)]
pub enum Action {
    /// Read these entries, each with or without its value, from one snapshot that sees every
    /// commit that was reported durable.
    Fetch(FetchId, Vec<(Key, bool)>),
    /// Likewise, read the entries of value indexes that begin with these values.
    FetchPoints(FetchId, Vec<IndexPoint>),
    /// Send a batch on the connection for commits, behind those before it.
    Send(Box<Commit>),
    /// Carry out work in a transaction of its own. Nothing else is in flight.
    RunAlone(Ticket, Work),
    /// Raise the epoch, and find out where the next one began. Nothing is sent before the answer.
    Resolve {
        /// The epoch of the batches in flight.
        epoch: u64,
    },
    /// Answer a batch.
    Answer(Ticket, Result<Report>),
}
