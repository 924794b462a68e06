//! A transaction of the writer: two trips to the server for a batch of writes.
//!
//! The first locks the row of the database and fetches what the writes name. The second sends all
//! changes, the fence and COMMIT without waiting in between.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::database::{DatabaseRow, FENCE, LOCK};
use super::entries::{Entries, FetchArguments};
use super::feed::FeedLogger;
use super::link::Link;
use super::messages::{HeldArguments, Messages};
use super::pool::Lent;
use super::session::{Call, Value};
use crate::commit::{EntryTable, MessageTable, Transaction, Work, WriteNeeds};
use crate::engine::feed::Extent;
use crate::model::{
    AtomicWrite, BUSY_TIMEOUT_MS_DEFAULT, Change, Claim, Error, Kind,
    POSTGRES_LINK_BYTES_PER_S_MIN, POSTGRES_LOG_KEPT_MS, POSTGRES_LOG_TRIM_ROWS,
    POSTGRES_LONG_BATCH_BYTES_MIN, Renewal, Result, Settlement,
};

const BEGIN: &str = "BEGIN";
const COMMIT: &str = "COMMIT";
const ROLLBACK: &str = "ROLLBACK";
const LOCK_WAIT: &str = "SELECT set_config('lock_timeout', $1, true)";
/// A wait that differs by less from the usual one is the usual one, which every session has set.
const USUAL_WAIT: Duration = Duration::from_millis(100);

const IDLE_WAIT: &str = "SELECT set_config('idle_in_transaction_session_timeout', $1, true)";

const NOT_DURABLE: &str = "SET LOCAL synchronous_commit = off";
const LOG: &str = "\
INSERT INTO openkv.log (db, version, epoch, batch, at_ms, previous, keys) \
VALUES ($1, $2, $3, $4, $5, $6, $7)";
const TRIM_LOG: &str = "\
DELETE FROM openkv.log AS l USING (SELECT ctid AS place FROM openkv.log WHERE db = $1 \
ORDER BY version LIMIT $2) AS old WHERE l.ctid = old.place AND l.at_ms < $3";
const LOGGED: &str = "SELECT 1 FROM openkv.log WHERE db = $1 AND version = $2 AND batch = $3";

/// The purpose of a transaction: what it reads, and how it commits.
pub(super) struct Purpose<'w> {
    pub(super) db: i64,
    pub(super) durable: bool,
    /// Bytes of the writes, which the second trip sends.
    pub(super) bytes: usize,
    /// The time to use instead of the server's.
    pub(super) now_ms: Option<i64>,
    /// When the wait for other processes ends.
    pub(super) deadline: Instant,
    pub(super) needs: WriteNeeds,
    pub(super) settlements: &'w [Settlement],
    pub(super) renewals: &'w [Renewal],
    pub(super) claims: &'w [Claim],
}

impl<'w> Purpose<'w> {
    /// Of a batch.
    pub(super) fn of(db: i64, work: &'w Work, now_ms: Option<i64>, deadline: Instant) -> Self {
        let needs = WriteNeeds::of(&work.writes);
        let bytes = work.writes.iter().map(AtomicWrite::size_bytes).sum();
        let Work { settlements, renewals, claims, durable, .. } = work;
        let durable = *durable;
        Self { db, durable, bytes, now_ms, deadline, needs, settlements, renewals, claims }
    }

    /// Of a change that looks at what it needs by itself.
    pub(super) fn plain(db: i64, now_ms: Option<i64>, deadline: Instant) -> Self {
        let needs = WriteNeeds::default();
        let (settlements, renewals, claims) = (&[], &[], &[]);
        let durable = true;
        Self { db, durable, bytes: 0, now_ms, deadline, needs, settlements, renewals, claims }
    }

    /// For a batch that takes long to send: how long the server waits for it, in ms.
    fn long_wait_ms(&self, usual_ms: u64) -> Option<String> {
        let bytes = Some(self.bytes).filter(|bytes| *bytes >= POSTGRES_LONG_BATCH_BYTES_MIN)?;
        let sending_ms = bytes as u64 * 1000 / POSTGRES_LINK_BYTES_PER_S_MIN;
        Some((usual_ms + sending_ms).to_string())
    }
}

/// An open transaction that holds the lock of its database.
pub(super) struct OpenTransaction {
    link: Link,
    db: i64,
    pub(super) row: DatabaseRow,
    pub(super) entries: Entries,
    pub(super) messages: Messages,
    feed: FeedLogger,
    next: i64,
}

/// How a transaction ended that was to commit.
pub(super) enum Ended {
    Committed,
    /// The connection was lost after COMMIT was sent. The batch may have happened.
    Unknown(Unknown),
}

/// A batch of which it is open whether it has happened.
pub(super) struct Unknown {
    pub(super) db: i64,
    /// Its version and id; `None` for one without a commit.
    pub(super) batch: Option<(i64, Uuid)>,
    pub(super) cause: Error,
}

impl OpenTransaction {
    /// Locks the database's row and fetches what the purpose names.
    ///
    /// # Errors
    /// The error, and whether the connection is lost. Nothing was done in either case, so the caller
    /// may begin again on another connection.
    pub(super) fn begin(mut lent: Lent, of: Purpose<'_>) -> Result<Self, (Error, bool)> {
        let long_wait_ms = of.long_wait_ms(lent.idle_ms());
        let Purpose { db, durable, now_ms, deadline, needs, settlements, renewals, claims, .. } =
            of;
        let fetch = FetchArguments::of(needs);
        let held = HeldArguments::of(settlements, renewals, claims);
        let wait = deadline.saturating_duration_since(Instant::now());
        let usual = wait.abs_diff(Duration::from_millis(BUSY_TIMEOUT_MS_DEFAULT)) < USUAL_WAIT;
        let wait_ms = wait.as_millis().max(1).to_string();
        let mut calls: Vec<Call<'_>> = vec![(BEGIN, vec![])];
        if !usual {
            calls.push((LOCK_WAIT, vec![&wait_ms]));
        }
        if let Some(wait_ms) = &long_wait_ms {
            calls.push((IDLE_WAIT, vec![wait_ms]));
        }
        if !durable {
            calls.push((NOT_DURABLE, vec![]));
        }
        let lock_at = calls.len();
        calls.push((LOCK, vec![&db, &now_ms]));
        if !fetch.is_empty() {
            calls.push(fetch.call(&db));
        }
        held.calls(&db, &mut calls);
        let mut answers = Vec::with_capacity(calls.len());
        let mut failed = None;
        for answer in lent.session.run(&calls) {
            match answer {
                Ok(answer) => answers.push(answer.rows),
                Err(error) => drop(failed.get_or_insert(error)),
            }
        }
        drop(calls);
        if let Some(error) = failed {
            let answered = error.is_answer();
            if answered && lent.session.execute(ROLLBACK).is_ok() {
                lent.give_back();
            }
            return Err((error.into_error(), !answered));
        }
        let mut answers = answers.into_iter().skip(lock_at);
        let locked = answers.next().unwrap_or_default();
        // Whoever fails from here on drops the connection, which ends the transaction.
        let row = DatabaseRow::of(&locked).map_err(|error| (error, false))?;
        let link = Link::new(lent);
        let mut entries = Entries::new(link.clone(), db, row.now_ms, row.last_uuid);
        let mut messages = Messages::new(link.clone(), db, row.last_message);
        if !fetch.is_empty() {
            let rows = answers.next().unwrap_or_default();
            entries.learn(fetch, &rows).map_err(|error| (error, false))?;
        }
        if !held.is_empty() {
            let (held, ends) = (answers.next(), answers.next());
            let learned = messages.learn(&held.unwrap_or_default(), &ends.unwrap_or_default());
            learned.map_err(|error| (error, false))?;
        }
        let feed = FeedLogger::new(link.clone(), db, row.feed, row.logs);
        let next = row.version;
        Ok(Self { link, db, row, entries, messages, feed, next })
    }

    /// Commits, or ends a transaction that has changed nothing. `trims`: also deletes old rows of the
    /// log.
    ///
    /// # Errors
    /// Nothing was done; except `OutcomeUnknown`, when somebody has cancelled the wait for the standby.
    pub(super) fn commit(self, batch: Uuid, trims: bool) -> Result<Ended> {
        let Self { link, db, row, mut entries, mut messages, feed, next, .. } = self;
        let uuid = entries.uuid();
        let (changed, sent) = (entries.take_changes(), messages.take_changes());
        let keys = entries.take_logged();
        let keys = keys.encoded();
        let (last_message, flushed) = (messages.last_id(), messages.has_flushed());
        drop((entries, messages));
        let (extent, logged, logs) = feed.into_parts();
        let mut lent = link.into_lent()?;
        let committed = next != row.version;
        let mut calls: Vec<Call<'_>> = Vec::new();
        changed.calls(&db, &mut calls);
        sent.calls(&db, &mut calls);
        logged.calls(&db, &mut calls);
        let idle = calls.is_empty() && !flushed && !committed && logs == row.logs;
        let uuid = uuid.map(Uuid::into_bytes);
        let uuid = uuid.as_ref().map(<[u8; 16]>::as_slice);
        let numbers = extent_numbers(&extent);
        let log_from_ms = row.now_ms - POSTGRES_LOG_KEPT_MS;
        let batch_bytes = batch.as_bytes().as_slice();
        let end = if idle { ROLLBACK } else { COMMIT };
        if !idle {
            let mut values: Vec<&Value<'_>> =
                vec![&db, &row.epoch, &row.version, &next, &row.removed, &uuid, &last_message];
            values.extend([&row.now_ms as &Value<'_>, &logs]);
            values.extend(numbers.iter().map(|number| number as &Value<'_>));
            calls.insert(0, (FENCE, values));
            if committed {
                let mut values: Vec<&Value<'_>> =
                    vec![&db, &next, &row.epoch, &batch_bytes, &row.now_ms];
                values.extend([&row.version as &Value<'_>, &keys]);
                calls.push((LOG, values));
            }
            if trims {
                calls.push((TRIM_LOG, vec![&db, &POSTGRES_LOG_TRIM_ROWS, &log_from_ms]));
            }
        }
        calls.push((end, vec![]));
        let count = calls.len();
        let answers = lent.session.run(&calls);
        let complete = answers.len() == count;
        let failed = answers.into_iter().find_map(Result::err);
        drop(calls);
        match failed {
            None if complete && lent.session.was_unreplicated() => {
                lent.give_back();
                let why = "the wait for the standby was cancelled: the commit may be lost with the \
                           primary";
                Err(Error::new(Kind::OutcomeUnknown, format!("PostgreSQL: {why}")))
            }
            None if complete => {
                lent.give_back();
                Ok(Ended::Committed)
            }
            None => Err(Error::internal("a commit without an answer")),
            // A statement was refused before any was sent: the connection closes with its transaction.
            Some(error) if !complete || idle => Err(error.into_error()),
            Some(error) if error.is_answer() => {
                // An aborted transaction answers COMMIT with a rollback.
                lent.give_back();
                Err(error.into_error())
            }
            Some(error) => {
                let batch = committed.then_some((next, batch));
                Ok(Ended::Unknown(Unknown { db, batch, cause: error.into_error() }))
            }
        }
    }

    /// Ends it without an effect.
    pub(super) fn roll_back(self) {
        let Self { link, entries, messages, feed, .. } = self;
        drop((entries, messages, feed));
        if let Ok(mut lent) = link.into_lent()
            && lent.session.execute(ROLLBACK).is_ok()
        {
            lent.give_back();
        }
    }

    /// The last commit of the transaction so far.
    pub(super) fn version(&self) -> u64 {
        self.next.cast_unsigned()
    }

    /// Makes all later transactions log their changes.
    pub(super) fn log_changes(&mut self) {
        self.feed.start(self.row.version.cast_unsigned(), self.row.removed.cast_unsigned());
    }
}

fn extent_numbers(extent: &Extent) -> [i64; 6] {
    let Extent { complete, removed, sets, removals } = extent;
    let numbers = [*complete, *removed, sets.rows, sets.bytes, removals.rows, removals.bytes];
    numbers.map(u64::cast_signed)
}

impl Unknown {
    /// Finds out whether the batch has happened: once this has the row's lock, the lost transaction
    /// has ended one way or the other.
    ///
    /// # Errors
    /// It is still unknown.
    pub(super) fn resolve(&self, lent: Lent, deadline: Instant) -> Result<bool> {
        let Some((version, batch)) = self.batch else {
            // Without a commit there is no record.
            return Err(self.cause.clone());
        };
        let of = Purpose::plain(self.db, None, deadline);
        let open = OpenTransaction::begin(lent, of).map_err(|(error, _)| error)?;
        let batch = batch.as_bytes().as_slice();
        let rows = open.link.query((LOGGED, vec![&self.db, &version, &batch]));
        open.roll_back();
        rows.map(|rows| !rows.is_empty())
    }
}

impl Transaction for OpenTransaction {
    fn entries(&mut self) -> &mut impl EntryTable {
        &mut self.entries
    }

    fn messages(&mut self) -> &mut impl MessageTable {
        &mut self.messages
    }

    fn log(&mut self, changes: Vec<Change>, now_ms: i64) -> Result<()> {
        self.feed.log(changes, now_ms)
    }

    fn set_version(&mut self, version: u64, removed: Option<u64>) -> Result<()> {
        self.next = version.cast_signed();
        self.row.removed = self.row.removed.max(removed.unwrap_or(0).cast_signed());
        Ok(())
    }
}
