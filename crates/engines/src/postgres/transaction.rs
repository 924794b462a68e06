//! A transaction of the writer: two trips to the server for a batch of writes.
//!
//! The first locks the row of the database and fetches what the writes name. The second sends all
//! changes, the fence and COMMIT without waiting in between.

use std::ops::RangeInclusive;
use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

use super::Shared;
use super::commit_statements::{CommitStatements, kept_from_ms};
use super::database::{DatabaseRow, LOCK};
use super::entries::{Entries, FetchArguments};
use super::errors::Fault;
use super::history::rows_to_trim;
use super::indexes;
use super::lead;
use super::line::{BEGIN, COMMIT, Call, LOCK_WAIT, unusual_wait_ms};
use super::link::Link;
use super::logged_writes;
use super::messages::{HeldArguments, Messages};
use super::pool::Lent;
use super::replication::{self, SegmentRow, TurnedOff};
use super::value_entries::PointArguments;
use super::value_index::{self, KnownIndexes};
use crate::fulltext::taken_by_value;
use openkv_core::commit::{EntryTable, MessageTable, Transaction, Work, WriteNeeds, batch};
use openkv_core::layer::Lead;
use openkv_core::model::{
    Ack, AtomicWrite, Change, Claim, Error, IndexChoice, IndexInfo, IndexRequest, Kind,
    LogSettings, LoggedMessage, Origin, POSTGRES_LINK_BYTES_PER_S_MIN,
    POSTGRES_LONG_BATCH_BYTES_MIN, Renewal, Result, Settlement, ValueIndexInfo, ValueIndexRequest,
    WriteRecord,
};

const ROLLBACK: &str = "ROLLBACK";

pub(super) const IDLE_WAIT: &str =
    "SELECT set_config('idle_in_transaction_session_timeout', $1, true)";

pub(super) const NOT_DURABLE: &str = "SET LOCAL synchronous_commit = off";
const LOGGED: &str = "SELECT 1 FROM openkv.log WHERE db = $1 AND version = $2 AND batch = $3";

/// The purpose of a transaction: what it reads, and how it commits.
pub(super) struct Purpose<'w> {
    pub(super) db: i64,
    /// The lease of this process.
    pub(super) own: Option<Vec<u8>>,
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
    pub(super) acks: Vec<Ack>,
    pub(super) claims: &'w [Claim],
    /// The value indexes that this process knows.
    pub(super) known: Arc<KnownIndexes>,
}

impl<'w> Purpose<'w> {
    /// Of a batch. `now_ms`: the time of the caller, which counts in tests only.
    pub(super) fn of(shared: &Shared, work: &'w Work, now_ms: i64, deadline: Instant) -> Self {
        let Work {
            writes,
            settlements,
            renewals,
            claims,
            durable,
            sweep_max: _,
            purge_max: _,
            fires: _,
            seed: _,
        } = work;
        Self {
            durable: *durable,
            bytes: writes.iter().map(AtomicWrite::size_bytes).sum(),
            needs: WriteNeeds::of(writes, &shared.value_indexes.newest()),
            settlements,
            renewals,
            acks: writes.iter().flat_map(AtomicWrite::acks).copied().collect(),
            claims,
            ..Self::plain(shared, now_ms, deadline)
        }
    }

    /// Of a change that looks at what it needs by itself.
    pub(super) fn plain(shared: &Shared, now_ms: i64, deadline: Instant) -> Self {
        Self {
            db: shared.db,
            own: shared.lease.as_ref().map(|lease| lease.id()),
            durable: true,
            bytes: 0,
            now_ms: shared.time.of_tests(now_ms),
            deadline,
            needs: WriteNeeds::default(),
            settlements: &[],
            renewals: &[],
            acks: Vec::new(),
            claims: &[],
            known: shared.value_indexes.clone(),
        }
    }
}

/// For a batch that takes long to send: how long the server waits for it, in ms.
pub(super) fn long_wait_ms(bytes: usize, usual_ms: u64) -> Option<String> {
    let bytes = Some(bytes).filter(|bytes| *bytes >= POSTGRES_LONG_BATCH_BYTES_MIN)?;
    let sending_ms = bytes as u64 * 1000 / POSTGRES_LINK_BYTES_PER_S_MIN;
    Some((usual_ms + sending_ms).to_string())
}

/// An open transaction that holds the lock of its database.
pub(super) struct OpenTransaction {
    link: Link,
    db: i64,
    pub(super) row: DatabaseRow,
    pub(super) entries: Entries,
    pub(super) messages: Messages,
    segment: Option<SegmentRow>,
    next: i64,
    /// Its writes with ids, as the log of batches has them.
    writes: Option<Vec<u8>>,
}

/// Why a transaction has done nothing.
pub(super) enum Undone {
    /// Its connection is lost, so another one can begin it again.
    Lost(Error),
    /// Its callers get the error.
    Refused(Error),
}

impl Undone {
    fn of(fault: Fault) -> Self {
        let is_lost = !fault.is_answer() || fault.is_idle_end();
        let error = fault.into_error();
        if is_lost { Self::Lost(error) } else { Self::Refused(error) }
    }

    pub(super) fn into_error(self) -> Error {
        match self {
            Self::Lost(error) | Self::Refused(error) => error,
        }
    }
}

/// How a transaction ended that was to commit.
pub(super) enum Ended {
    Committed,
    /// The connection was lost after COMMIT was sent. The batch may have happened.
    Unknown(Unknown),
}

/// A batch of which it is open whether it has happened.
pub(super) struct Unknown {
    /// Its version and id; `None` for one without a commit.
    pub(super) batch: Option<(i64, Uuid)>,
    pub(super) cause: Error,
}

impl OpenTransaction {
    /// Locks the database's row and fetches what the purpose names.
    ///
    /// # Errors
    /// Nothing was done.
    pub(super) fn begin(mut lent: Lent, of: Purpose<'_>) -> Result<Self, Undone> {
        let long_wait_ms = long_wait_ms(of.bytes, lent.idle_ms());
        let Purpose {
            db,
            own,
            durable,
            bytes: _,
            now_ms,
            deadline,
            mut needs,
            settlements,
            renewals,
            acks,
            claims,
            known,
        } = of;
        let points = PointArguments::of(needs.take_points());
        let fetch = FetchArguments::of(needs);
        let held = HeldArguments::of(settlements, renewals, &acks, claims);
        let wait = deadline.saturating_duration_since(Instant::now());
        let wait_ms = unusual_wait_ms(wait);
        let mut calls: Vec<Call<'_>> = vec![(BEGIN, vec![])];
        if let Some(wait_ms) = &wait_ms {
            calls.push((LOCK_WAIT, vec![wait_ms]));
        }
        if let Some(wait_ms) = &long_wait_ms {
            calls.push((IDLE_WAIT, vec![wait_ms]));
        }
        if !durable {
            calls.push((NOT_DURABLE, vec![]));
        }
        let lock_at = calls.len();
        calls.push((LOCK, vec![&db, &now_ms, &own]));
        if !fetch.is_empty() {
            calls.push(fetch.call(&db));
        }
        if !points.is_empty() {
            calls.push(points.call(&db));
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
            if error.is_answer() && lent.session.execute(ROLLBACK).is_ok() {
                lent.give_back();
            }
            return Err(Undone::of(error));
        }
        let mut answers = answers.into_iter().skip(lock_at);
        let locked = answers.next().unwrap_or_default();
        // A failure from here on drops the connection, which ends the transaction.
        let row = DatabaseRow::of(&locked).map_err(Undone::Refused)?;
        let link = Link::new(lent);
        let list = || value_index::read(&link.query((value_index::LIST, vec![&db]))?);
        let indexes = known.of_locked(row.indexes, list).map_err(Undone::Refused)?;
        let mut entries = Entries::new(link.clone(), db, &row, indexes);
        let mut messages = Messages::new(link.clone(), db, row.last_message);
        if !fetch.is_empty() {
            let rows = answers.next().unwrap_or_default();
            entries.learn(fetch, &rows).map_err(Undone::Refused)?;
        }
        if !points.is_empty() {
            let rows = answers.next().unwrap_or_default();
            let points = points.into_points(&rows).map_err(Undone::Refused)?;
            entries.learn_points(points);
        }
        if !held.is_empty() {
            let [named, ends, limited] =
                std::array::from_fn(|_| answers.next().unwrap_or_default());
            let learned = messages.learn(&held, [&named, &ends, &limited]);
            learned.map_err(Undone::Refused)?;
        }
        let next = row.version;
        let (segment, writes) = (None, None);
        Ok(Self { link, db, row, entries, messages, segment, next, writes })
    }

    /// Commits, or ends a transaction that has changed nothing. `trims`: also deletes old rows of the
    /// log.
    ///
    /// # Errors
    /// Nothing was done; except `OutcomeUnknown`, when a user has cancelled the wait for the standby.
    pub(super) fn commit(self, batch: Uuid, trims: bool) -> Result<Ended, Undone> {
        let Self { link, db, row, mut entries, mut messages, segment, next, writes } = self;
        entries.derive_index_changes().map_err(Undone::Refused)?;
        let index_changes = entries.take_index_changes();
        let flushed = messages.has_flushed();
        let (uuid, last_message) = (entries.uuid(), messages.last_id());
        let (changed, keys) = (entries.take_changes(), entries.take_logged());
        let (past, past_rows) = entries.take_past();
        let remembers = row.log_parts.has_history() && segment.is_some();
        let sent = messages.take_changes();
        drop((entries, messages));
        let mut lent = link.into_lent().map_err(Undone::Refused)?;
        let committed = next != row.version;
        let statements = CommitStatements {
            db,
            epoch: row.epoch,
            version: row.version,
            next,
            removed: row.removed,
            uuid: uuid.map(|uuid| uuid.as_bytes().to_vec()),
            last_message,
            now_ms: row.now_ms,
            name: batch.as_bytes().to_vec(),
            keys: keys.encoded().map(<[u8]>::to_vec),
            writes,
            past,
            entries: changed,
            index_changes,
            messages: sent,
            segment,
            trims_past: if remembers { rows_to_trim(past_rows, row.version, next) } else { 0 },
            trims_log: trims.then(|| kept_from_ms(row.now_ms)),
        };
        let idle = !flushed && !committed && !statements.has_changes();
        let mut calls = if idle { Vec::new() } else { statements.calls() };
        calls.push((if idle { ROLLBACK } else { COMMIT }, vec![]));
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
                let why = format!("PostgreSQL: {why}");
                Err(Undone::Refused(Error::new(Kind::OutcomeUnknown, why)))
            }
            None if complete => {
                lent.give_back();
                Ok(Ended::Committed)
            }
            None => Err(Undone::Refused(Error::internal("a commit without an answer"))),
            // A statement was refused before any was sent: the connection closes with its transaction.
            Some(error) if !complete || idle => Err(Undone::of(error)),
            Some(error) if error.is_answer() => {
                // An aborted transaction answers COMMIT with a rollback.
                lent.give_back();
                Err(Undone::of(error))
            }
            Some(error) => {
                let batch = committed.then_some((next, batch));
                Ok(Ended::Unknown(Unknown { batch, cause: error.into_error() }))
            }
        }
    }

    /// Ends it without an effect. Answers whether the connection was still there.
    pub(super) fn roll_back(self) -> bool {
        let Self { link, entries, messages, .. } = self;
        drop((entries, messages));
        let Ok(mut lent) = link.into_lent() else { return true };
        let is_there = lent.session.execute(ROLLBACK).is_ok();
        if is_there {
            lent.give_back();
        }
        is_there
    }

    /// Ends it without an effect, because of an error.
    pub(super) fn fail(self, error: Error) -> Undone {
        if self.roll_back() { Undone::Refused(error) } else { Undone::Lost(error) }
    }

    /// Ends it with a commit that changes nothing but waits for the standby. Its answer proves that the
    /// standby has all that this transaction has seen. A commit whose backend was ended while it waited
    /// for the standby is visible, although the standby may not have it.
    pub(super) fn confirm(self) -> Result<()> {
        let Self { link, entries, messages, .. } = self;
        drop((entries, messages));
        let mut lent = link.into_lent()?;
        let committed = lent.session.run(&[(COMMIT, vec![])]).pop();
        let unreplicated = lent.session.was_unreplicated();
        match committed {
            Some(Ok(_)) if !unreplicated => {
                lent.give_back();
                Ok(())
            }
            Some(Err(fault)) => Err(fault.into_error()),
            Some(Ok(_)) | None => {
                let why = "PostgreSQL: the wait for the standby was cancelled";
                Err(Error::new(Kind::Unavailable, why))
            }
        }
    }

    /// The state of the database as the transaction leaves it, for a leader.
    pub(super) fn lead_after(&self) -> Lead {
        Lead {
            version: self.version(),
            last_uuid: self.entries.uuid(),
            last_message: self.messages.last_id(),
            ..self.row.lead(self.entries.indexes().clone())
        }
    }

    /// Refuses to write to a database that another process leads. A leader whose lease has ended is
    /// deposed by this transaction.
    ///
    /// # Errors
    /// `Unavailable` with the name of the leader.
    pub(super) fn pass_leader(mut self) -> Result<Self, Undone> {
        match self.row.led_by.take() {
            None => Ok(self),
            Some(name) if name.is_empty() => match lead::depose(&self.link, self.db, &self.row) {
                Ok(epoch) => {
                    self.row.epoch = epoch;
                    Ok(self)
                }
                Err(error) => Err(self.fail(error)),
            },
            Some(name) => Err(self.fail(lead::led_by(&name))),
        }
    }

    /// Changes the settings of the replication log and of the history. Returns what was turned off.
    pub(super) fn set_log(&self, settings: &LogSettings, origin: Origin) -> Result<TurnedOff> {
        replication::set(&self.link, self.db, &self.row, settings, origin)
    }

    /// As [`crate::Indexer::create_index`].
    pub(super) fn create_index(&self, request: &IndexRequest) -> Result<IndexInfo> {
        if value_index::has_name(&self.link, self.db, &request.spec.name)? {
            return Err(taken_by_value(&request.spec.name));
        }
        indexes::create(&self.link, self.db, request)
    }

    /// As [`crate::Indexer::drop_index`].
    pub(super) fn drop_index(&self, choice: &IndexChoice) -> Result<bool> {
        Ok(indexes::remove(&self.link, self.db, choice)?
            || value_index::remove(&self.link, self.db, choice)?)
    }

    /// As [`crate::Indexer::create_value_index`].
    pub(super) fn create_value_index(&self, request: &ValueIndexRequest) -> Result<ValueIndexInfo> {
        value_index::create(&self.link, (self.db, self.row.indexes), request)
    }

    /// As [`crate::Indexer::build_indexes`].
    pub(super) fn build_indexes(&mut self) -> Result<bool> {
        value_index::build(&self.link, self.db, &mut self.entries, self.row.now_ms)
    }

    /// The last commit of the transaction so far.
    pub(super) fn version(&self) -> u64 {
        self.next.cast_unsigned()
    }

    /// Logs what it has made of messages without a batch, as a commit of its own if the log has messages or
    /// `commits` says so.
    pub(super) fn log_messages(&mut self, changed: &[i64], commits: bool) -> Result<()> {
        let logs_messages = self.row.log_parts.has_messages();
        if changed.is_empty() || !(commits || logs_messages) {
            return Ok(());
        }
        let (version, now_ms) = (self.version() + 1, self.row.now_ms);
        if self.row.log_parts.has_log() {
            let logged = if logs_messages { changed } else { &[] };
            let messages = batch::logged_alone(&mut self.messages, logged, version)?;
            self.log(version..=version, Vec::new(), &messages, now_ms)?;
        }
        self.set_version(version, None)
    }

    /// Stores its writes with ids.
    pub(super) fn log_writes(&mut self, records: &[WriteRecord]) {
        self.writes = logged_writes::encoded(records, self.row.version.cast_unsigned());
    }
}

/// Finds out whether a batch has happened: once this has the row's lock, the lost transaction has ended
/// one way or the other.
///
/// # Errors
/// It is still unknown.
pub(super) fn has_happened(
    shared: &Shared,
    (version, batch): (i64, Uuid),
    deadline: Instant,
) -> Result<bool> {
    let of = Purpose::plain(shared, 0, deadline);
    let lent = shared.pool.lend(deadline)?;
    let open = OpenTransaction::begin(lent, of).map_err(Undone::into_error)?;
    let rows = open.link.query((LOGGED, vec![&shared.db, &version, &batch.as_bytes().as_slice()]));
    match rows {
        Ok(rows) if !rows.is_empty() => open.confirm().map(|()| true),
        rows => {
            open.roll_back();
            rows.map(|_| false)
        }
    }
}

impl Transaction for OpenTransaction {
    fn entries(&mut self) -> &mut impl EntryTable {
        &mut self.entries
    }

    fn messages(&mut self) -> &mut impl MessageTable {
        &mut self.messages
    }

    fn log(
        &mut self,
        commits: RangeInclusive<u64>,
        changes: Vec<Change>,
        messages: &[LoggedMessage],
        _now_ms: i64,
    ) -> Result<()> {
        if self.row.log_parts.has_log() {
            self.segment = Some(SegmentRow::of(*commits.start(), &changes, messages));
        }
        Ok(())
    }

    fn set_version(&mut self, version: u64, removed: Option<u64>) -> Result<()> {
        self.next = version.cast_signed();
        self.row.removed = self.row.removed.max(removed.unwrap_or(0).cast_signed());
        Ok(())
    }
}
