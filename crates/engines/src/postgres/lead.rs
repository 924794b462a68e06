//! Begins a lead, finds out which batches in flight have happened, and hands a database over: each by one
//! statement that raises the epoch or clears the leader.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use tokio_postgres::Row;
use uuid::Uuid;

use super::Shared;
use super::cells::{Cells, first};
use super::database::{DatabaseRow, LogParts};
use super::errors::Fault;
use super::line::{BEGIN, COMMIT, Call};
use super::link::Link;
use super::logged_writes;
use super::outcome::until_answered;
use super::value_index;
use openkv_core::layer::{Lead, Remembered, Resolution};
use openkv_core::model::{Error, Kind, POSTGRES_HAND_OVER_MS_MAX, Result};

/// Raises the epoch: of a database without a leader, or of the epoch `$3` of this process. It waits for
/// a transaction under way, and refuses those that arrive later.
const RAISE: &str = "\
WITH led AS (UPDATE openkv.databases AS d SET epoch = epoch + 1, leader = $2 WHERE d.id = $1 AND \
CASE WHEN $3::int8 IS NULL THEN leader IS NULL OR leader = $2 OR NOT EXISTS (SELECT 1 \
FROM openkv.servers AS s WHERE s.id = d.leader AND s.lease_until > clock_timestamp()) \
ELSE leader = $2 AND epoch = $3 END \
RETURNING id, epoch, version, greatest(clock_ms, \
floor(extract(epoch FROM clock_timestamp()) * 1000)::int8) AS clock_ms, last_uuid, last_message, log_bits, indexes), \
begun AS (INSERT INTO openkv.epochs (db, epoch, start) SELECT id, epoch, version FROM led) \
SELECT epoch, version, clock_ms, last_uuid, last_message, log_bits, indexes FROM led";

const START: &str = "SELECT start FROM openkv.epochs WHERE db = $1 AND epoch = $2";

/// The epoch of this process, if it is the one that has raised the epoch `$3`, and nothing was committed
/// since.
const RAISED: &str = "\
SELECT d.epoch FROM openkv.databases AS d CROSS JOIN LATERAL (SELECT start FROM openkv.epochs \
WHERE db = d.id AND epoch = $3::int8 + 1 LIMIT 1) AS next \
WHERE d.id = $1 AND d.leader = $2 AND d.epoch > $3 AND d.version = next.start";

/// The epoch, while this process leads.
const OWN: &str = "SELECT epoch FROM openkv.databases WHERE id = $1 AND leader = $2";

const LEADER: &str = "\
SELECT s.name FROM openkv.databases AS d CROSS JOIN LATERAL (SELECT name FROM openkv.servers \
WHERE id = d.leader LIMIT 1) AS s WHERE d.id = $1";

const HAND_OVER: &str = "UPDATE openkv.databases SET leader = NULL WHERE id = $1 AND leader = $2";

const DEPOSE: &str = "UPDATE openkv.databases SET epoch = $2, leader = NULL WHERE id = $1";
const BEGAN: &str = "INSERT INTO openkv.epochs (db, epoch, start) VALUES ($1, $2, $3)";

/// Begins to lead.
///
/// # Errors
/// `Unavailable` with the name of the leader, if another process leads; the error of the server.
pub(super) fn acquire(shared: &Shared, deadline: Instant) -> Result<(Lead, Remembered)> {
    if let Some(lease) = &shared.lease {
        lease.begin(deadline)?;
    }
    match raise(shared, None, deadline)? {
        Some(lead) => {
            let remembered = logged_writes::remembered(shared, &lead)?;
            Ok((lead, remembered))
        }
        None => Err(other_leader(shared)),
    }
}

/// Finds out which batches of an epoch have happened.
pub(super) fn resolve(shared: &Shared, epoch: u64) -> Resolution {
    until_answered(|deadline| try_resolve(shared, epoch, deadline))
        .unwrap_or_else(Resolution::Unknown)
}

/// As [`resolve`], with one attempt.
///
/// # Errors
/// It is still unknown.
pub(super) fn try_resolve(shared: &Shared, epoch: u64, deadline: Instant) -> Result<Resolution> {
    let epoch = epoch.cast_signed();
    if let Some(lead) = raise_again(shared, epoch, deadline)? {
        let remembered = logged_writes::remembered(shared, &lead)?;
        return Ok(Resolution::Leading(lead, remembered));
    }
    let rows = shared.query((START, vec![&shared.db, &(epoch + 1)]))?;
    let start: Option<i64> = first("epochs", &rows)?;
    // Without a later epoch this process has handed the database over, with nothing in flight.
    let start = start.map_or(0, i64::cast_unsigned);
    Ok(Resolution::Overtaken { start, error: other_leader(shared) })
}

/// Leads on after another transaction has raised the epoch for what a leader must learn, as the list of value
/// indexes, and no other process has led since. `None` if the epoch is still this one, or another process leads.
pub(super) fn lead_on(shared: &Shared, epoch: u64, deadline: Instant) -> Result<Option<Lead>> {
    let own = shared.lease.as_ref().map(|lease| lease.id());
    let rows = shared.query((OWN, vec![&shared.db, &own]))?;
    match first::<i64>("databases", &rows)? {
        Some(raised) if raised != epoch.cast_signed() => {
            raise_again(shared, epoch.cast_signed(), deadline)
        }
        Some(_) | None => Ok(None),
    }
}

/// Raises an epoch of this process, also if it has done so before and the answer was lost.
fn raise_again(shared: &Shared, epoch: i64, deadline: Instant) -> Result<Option<Lead>> {
    if let Some(lead) = raise(shared, Some(epoch), deadline)? {
        return Ok(Some(lead));
    }
    let own = shared.lease.as_ref().map(|lease| lease.id());
    loop {
        let rows = shared.query((RAISED, vec![&shared.db, &own, &epoch]))?;
        let Some(raised) = first("databases", &rows)? else { return Ok(None) };
        // The lost connection may have ended the wait for the standby, so what was found may be lost with
        // the primary. The answer to another commit proves that the standby has all before it. A change of
        // the value indexes may raise the epoch between the two, which another look finds.
        if let Some(lead) = raise(shared, Some(raised), deadline)? {
            return Ok(Some(lead));
        }
        if Instant::now() >= deadline {
            let why = "the epoch of the database has changed meanwhile; try again";
            return Err(Error::new(Kind::Unavailable, why));
        }
    }
}

/// Raises the epoch: of a database without a leader, or this epoch of this process. Answers `None` if
/// another process leads.
pub(super) fn raise(
    shared: &Shared,
    epoch: Option<i64>,
    deadline: Instant,
) -> Result<Option<Lead>> {
    let own = shared.lease.as_ref().map(|lease| lease.id());
    let mut lent = shared.pool.lend(deadline)?;
    // The transaction has the lock of the row, so the list is that of this epoch.
    let calls: [Call<'_>; 4] = [
        (BEGIN, vec![]),
        (RAISE, vec![&shared.db, &own, &epoch]),
        (value_index::LIST, vec![&shared.db]),
        (COMMIT, vec![]),
    ];
    let answers = lent.session.run(&calls);
    lent.give_back();
    // Every one: after an error COMMIT rolls back, and reports none.
    let answers: Result<Vec<_>, Fault> = answers.into_iter().collect();
    let answers = answers.map_err(Fault::into_error)?;
    let [_, raised, list, _] = answers.as_slice() else {
        return Err(Error::internal("the epoch was raised without an answer"));
    };
    raised.rows.first().map(|row| lead_of(shared, row, &list.rows)).transpose()
}

fn lead_of(shared: &Shared, row: &Row, list: &[Row]) -> Result<Lead> {
    let cells = Cells::of("databases", row);
    let (uuid, clock_ms) = (cells.get::<Option<&[u8]>>(3)?, cells.get(2)?);
    shared.time.learn(clock_ms);
    let log_parts = LogParts::of(cells.get(5)?);
    shared.logs.replicates.store(log_parts.has_log(), Ordering::Relaxed);
    shared.logs.remembers.store(log_parts.has_history(), Ordering::Relaxed);
    shared.logs.messages.store(log_parts.has_messages(), Ordering::Relaxed);
    let value_indexes = value_index::read(list)?.into();
    shared.value_indexes.replace(cells.get(6)?, &value_indexes);
    Ok(Lead {
        epoch: cells.unsigned(0)?,
        version: cells.unsigned(1)?,
        clock_ms: if shared.time.is_of_caller() { 0 } else { clock_ms },
        last_uuid: uuid.and_then(|bytes| Uuid::from_slice(bytes).ok()),
        last_message: cells.get(4)?,
        logs: log_parts.has_log(),
        value_indexes,
    })
}

/// Lets others lead the database at once.
pub(super) fn hand_over(shared: &Shared) -> Result<()> {
    let own = shared.lease.as_ref().map(|lease| lease.id());
    let deadline = Instant::now() + Duration::from_millis(POSTGRES_HAND_OVER_MS_MAX);
    let mut lent = shared.pool.lend(deadline)?;
    let handed = lent.session.query((HAND_OVER, vec![&shared.db, &own]));
    lent.give_back();
    handed.map(drop)
}

/// Deposes a leader whose lease has ended, inside a transaction. Returns the new epoch.
pub(super) fn depose(link: &Link, db: i64, row: &DatabaseRow) -> Result<i64> {
    let epoch = row.epoch + 1;
    link.query((DEPOSE, vec![&db, &epoch]))?;
    link.query((BEGAN, vec![&db, &epoch, &row.version]))?;
    Ok(epoch)
}

fn other_leader(shared: &Shared) -> Error {
    let rows = shared.query((LEADER, vec![&shared.db]));
    let name =
        rows.and_then(|rows| first::<&[u8]>("servers", &rows).map(|name| name.map(<[u8]>::to_vec)));
    match name {
        Ok(Some(name)) => led_by(&String::from_utf8_lossy(&name)),
        Ok(None) => overtaken(),
        Err(error) => error,
    }
}

/// The error of a write to a database that another process leads.
pub(super) fn led_by(name: &str) -> Error {
    let why = format!(
        "another process leads the database, named {name:?}: write there, or close it; nothing was done"
    );
    Error::new(Kind::Unavailable, why)
}

/// The error of a write when another process has taken over, and is gone again.
pub(super) fn overtaken() -> Error {
    let why = "another process has taken the database over; nothing was done, so try again";
    Error::new(Kind::Unavailable, why)
}
