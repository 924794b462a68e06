//! The statements of a leader: a batch that the layer has decided, and a read that it requests.

use std::sync::atomic::Ordering;

use tokio_postgres::Row;

use crate::postgres::cells::Cells;
use crate::postgres::commit_statements::{CommitStatements, kept_from_ms};
use crate::postgres::entries::{EntryChanges, FetchArguments};
use crate::postgres::errors::Fault;
use crate::postgres::history::{Replaced, rows_to_trim};
pub(super) use crate::postgres::line::Answers;
use crate::postgres::line::{BEGIN, COMMIT, Call, Statements};
use crate::postgres::logged_keys::LoggedKeys;
use crate::postgres::logged_writes;
use crate::postgres::message_changes::MessageChanges;
use crate::postgres::pages::encoding;
use crate::postgres::replication::SegmentRow;
use crate::postgres::single_statement;
use crate::postgres::transaction::{IDLE_WAIT, NOT_DURABLE, long_wait_ms};
use crate::postgres::value_entries::{IndexChanges, PointArguments, entries_of};
use crate::postgres::{LeaderLogs, Shared};
use openkv_core::commit::{Effects, IndexPoint, OldRow, RowEffect, Sent};
use openkv_core::index::EntryChange;
use openkv_core::layer::{Commit, Event, FetchId, Fetched};
use openkv_core::model::{EncodedValue, Error, KeptMessage, Key, LoggedMessage, Result};

/// Answers with a row if no other process has written to the database.
const CONFIRM: &str = "\
SELECT floor(extract(epoch FROM clock_timestamp()) * 1000)::int8 FROM openkv.databases \
WHERE id = $1 AND epoch = $2 AND version = $3";

/// The statements of a batch.
pub(super) enum BatchStatements {
    /// Only confirms the version: it has no commit.
    Confirm { db: i64, epoch: i64, version: i64 },
    Commit {
        statements: Box<CommitStatements>,
        durable: bool,
        /// How long the server waits for it, if it takes long to send, in ms.
        wait_ms: Option<String>,
    },
}

/// The outcome of a batch.
pub(super) enum Fate {
    /// It is durable, or confirmed. With the time of the server.
    Durable(Option<i64>),
    /// The server has refused it, and nothing of it has happened.
    Refused(Error),
    /// It has failed its fence, or it is open whether it has happened.
    Interrupted(Option<Error>),
}

impl BatchStatements {
    /// `logs`: whether its changes are logged.
    pub(super) fn of(shared: &Shared, commit: Commit) -> Self {
        let db = shared.db;
        let [epoch, version, next] = [commit.epoch, commit.prev, commit.next].map(u64::cast_signed);
        let Effects { removed, uuid, rows, messages, changes, index_entries, .. } = commit.effects;
        if next == version && messages.is_empty() && rows.is_empty() && uuid.is_none() {
            return Self::Confirm { db, epoch, version };
        }
        let mut bytes: usize = messages.iter().map(|sent| sent.message.value.len()).sum();
        let (mut entries, mut keys) = (EntryChanges::default(), LoggedKeys::default());
        for (key, effect) in rows {
            keys.add(&key);
            if let RowEffect::Stored(row) = &effect {
                bytes += key.len() + row.value.bytes.len();
            }
            entries.apply(&key, effect);
        }
        let mut index_changes = IndexChanges::default();
        for EntryChange { index, entry, added } in &index_entries {
            index_changes.push_one(*index, entry, *added);
        }
        bytes += index_changes.bytes();
        let LeaderLogs { replicates, remembers, messages: logs_messages } = &shared.logs;
        let logs_messages = logs_messages.load(Ordering::Relaxed);
        let (mut sent, mut last_message) = (MessageChanges::default(), commit.last_message);
        let mut logged = Vec::new();
        for Sent { version, message, .. } in messages {
            last_message += 1;
            if logs_messages {
                let kept = Some(KeptMessage::enqueued(&message, commit.now_ms));
                logged.push(LoggedMessage { version, id: last_message, kept });
            }
            sent.enqueue(last_message, message, commit.now_ms);
        }
        let remembers = remembers.load(Ordering::Relaxed);
        let past = if remembers { Replaced::of(&changes) } else { Replaced::default() };
        let past_rows = past.len();
        let segment = replicates
            .load(Ordering::Relaxed)
            .then(|| SegmentRow::of(commit.prev + 1, &changes, &logged));
        let (name, trims) = shared.new_batch();
        let statements = CommitStatements {
            db,
            epoch,
            version,
            next,
            removed: removed.map_or(0, u64::cast_signed),
            uuid: uuid.map(|uuid| uuid.as_bytes().to_vec()),
            last_message,
            now_ms: commit.now_ms,
            name: name.as_bytes().to_vec(),
            keys: keys.encoded().map(<[u8]>::to_vec),
            writes: logged_writes::encoded(&commit.records, commit.prev),
            past,
            entries,
            index_changes,
            messages: sent,
            segment: segment.filter(|_| next != version),
            trims_past: if remembers { rows_to_trim(past_rows, version, next) } else { 0 },
            trims_log: trims.then(|| kept_from_ms(commit.now_ms)),
        };
        let wait_ms = long_wait_ms(bytes, shared.pool.server().idle_ms());
        Self::Commit { statements: Box::new(statements), durable: commit.durable, wait_ms }
    }

    /// The batch as one statement, if it is durable, short, and of a kind that has such a form.
    pub(super) fn single(&self) -> Option<Call<'_>> {
        match self {
            Self::Commit { statements, durable: true, wait_ms: None } => {
                single_statement::call(statements)
            }
            Self::Commit { .. } | Self::Confirm { .. } => None,
        }
    }

    /// The index of the answer with the time of the server.
    pub(super) fn time_at(&self) -> usize {
        match self {
            Self::Confirm { .. } => 0,
            Self::Commit { .. } if self.single().is_some() => 0,
            Self::Commit { durable, wait_ms, .. } => {
                1 + usize::from(!durable) + usize::from(wait_ms.is_some())
            }
        }
    }

    /// How many answers it has.
    pub(super) fn answers(&self) -> usize {
        self.calls().len()
    }
}

impl Statements for BatchStatements {
    fn calls(&self) -> Vec<Call<'_>> {
        if let Some(call) = self.single() {
            return vec![call];
        }
        match self {
            Self::Confirm { db, epoch, version } => vec![(CONFIRM, vec![db, epoch, version])],
            Self::Commit { statements, durable, wait_ms } => {
                let mut calls: Vec<Call<'_>> = vec![(BEGIN, vec![])];
                if let Some(wait_ms) = wait_ms {
                    calls.push((IDLE_WAIT, vec![wait_ms]));
                }
                if !durable {
                    calls.push((NOT_DURABLE, vec![]));
                }
                calls.extend(statements.calls());
                calls.push((COMMIT, vec![]));
                calls
            }
        }
    }
}

/// Judges the answers of a batch: every one, because `COMMIT` after an error reports no error.
pub(super) fn fate(answers: Answers, count: usize, time_at: usize, unreplicated: bool) -> Fate {
    let complete = answers.len() == count;
    let mut clock_ms = None;
    for (at, answer) in answers.into_iter().enumerate() {
        match answer {
            Ok(answer) if at == time_at => {
                let row = answer.rows.first();
                let Some(row) = row else { return Fate::Interrupted(None) };
                clock_ms = Cells::of("databases", row).get(0).ok();
            }
            Ok(_) => {}
            Err(fault) if fault.is_fence() => return Fate::Interrupted(None),
            Err(fault) if fault.is_answer() => return Fate::Refused(fault.into_error()),
            Err(fault) => return Fate::Interrupted(Some(fault.into_error())),
        }
    }
    match complete && !unreplicated {
        true => Fate::Durable(clock_ms),
        false => Fate::Interrupted(None),
    }
}

/// What a leader reads.
#[derive(Clone)]
pub(super) enum Wanted {
    /// Entries, each with or without its value.
    Keys(Vec<(Key, bool)>),
    /// Values of unique indexes.
    Points(Vec<IndexPoint>),
}

/// The statement of a read.
pub(super) enum FetchStatement {
    Keys(i64, FetchArguments),
    Points(i64, PointArguments),
}

impl FetchStatement {
    pub(super) fn of(db: i64, wanted: &Wanted) -> Self {
        match wanted {
            Wanted::Keys(keys) => Self::Keys(db, FetchArguments::of(keys.iter().cloned())),
            Wanted::Points(points) => Self::Points(db, PointArguments::of(points.clone())),
        }
    }
}

impl Statements for FetchStatement {
    fn calls(&self) -> Vec<Call<'_>> {
        match self {
            Self::Keys(db, arguments) => vec![arguments.call(db)],
            Self::Points(db, arguments) => vec![arguments.call(db)],
        }
    }
}

/// The event of a read that has ended.
pub(super) fn read_event(fetch: FetchId, wanted: &Wanted, answers: Answers) -> Result<Event> {
    let answer = answers.into_iter().next();
    let answer = answer.ok_or_else(|| Error::internal("a read without an answer"))?;
    let rows = answer.map_err(Fault::into_error)?.rows;
    Ok(match wanted {
        Wanted::Keys(keys) => Event::Fetched(fetch, fetched(keys, &rows)?),
        Wanted::Points(points) => Event::FetchedPoints(fetch, entries_of(points, &rows)?),
    })
}

/// The entries of the wanted keys, in their order.
fn fetched(wanted: &[(Key, bool)], rows: &[Row]) -> Result<Vec<Fetched>> {
    let mut entries = vec![Fetched::Absent; wanted.len()];
    for row in rows {
        let at: i64 = Cells::of("entries", row).get(0)?;
        let at = usize::try_from(at - 1).unwrap_or(usize::MAX);
        if let Some(entry) = entries.get_mut(at) {
            *entry = entry_of(row)?;
        }
    }
    Ok(entries)
}

fn entry_of(row: &Row) -> Result<Fetched> {
    let cells = Cells::of("entries", row);
    let (version, expire_at_ms) = (cells.unsigned(1)?, cells.get(2)?);
    let Some(bytes) = cells.get::<Option<&[u8]>>(4)? else {
        return Ok(Fetched::Version { version, expire_at_ms });
    };
    let value = EncodedValue { encoding: encoding(cells.get(3)?)?, bytes: bytes.to_vec() };
    Ok(Fetched::Row(OldRow { version, value, expire_at_ms }))
}
