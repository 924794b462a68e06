//! Whole messages without their locks, for the replication log and for the snapshots of archives.

use tokio_postgres::Row;

use super::cells::Cells;
use super::link::Link;
use crate::packed::{unpack_intervals, unpack_keys};
use openkv_core::model::{KeptMessage, KeptState, POSTGRES_PAGE_ROWS_MAX, Reason, Result};

macro_rules! waiting {
    ($rest:literal) => {
        concat!(
            "SELECT id, queue, priority, attempts, enqueued_ms, first_ms, last_ms, dedup, \
             dead_retention_ms, backoff_ms, undelivered, v, due_ms AS at_ms, \
             NULL::int8 AS purge_ms, NULL::bytea AS error_name, NULL::bytea AS error_message \
             FROM openkv.messages WHERE db = $1 AND ",
            $rest
        )
    };
}

macro_rules! dead {
    ($rest:literal) => {
        concat!(
            "SELECT id, queue, priority, attempts, enqueued_ms, first_ms, last_ms, dedup, \
             dead_retention_ms, backoff_ms, undelivered, v, died_ms AS at_ms, purge_ms, \
             error_name, error_message FROM openkv.dead WHERE db = $1 AND ",
            $rest
        )
    };
}

/// Those with the numbers `$2`, as far as they are there. Without statistics the planner would look up a dead letter
/// by `dead_order`, which has all of a database; the order of a range makes it take the primary key.
pub(super) const OF_IDS: &str = concat!(
    "SELECT m.* FROM unnest($2::int8[]) AS u(id) CROSS JOIN LATERAL ((",
    waiting!("id = u.id LIMIT 1"),
    ") UNION ALL (",
    dead!("id >= u.id AND id <= u.id ORDER BY id LIMIT 1"),
    ")) AS m"
);

/// Those after the number `$2`.
const WAITING: &str = waiting!("id > $2 ORDER BY id LIMIT $3");
const DEAD: &str = dead!("id > $2 ORDER BY id LIMIT $3");

/// The message of a row, with its number.
///
/// # Errors
/// `Corrupt` for columns of other types.
pub(super) fn kept_of(row: &Row) -> Result<(i64, KeptMessage)> {
    let cells = Cells::of("messages", row);
    let at_ms = cells.get(12)?;
    let state = match cells.get::<Option<&[u8]>>(14)? {
        None => KeptState::Waiting { due_ms: at_ms },
        Some(_) => {
            let reason = Reason::new(&cells.text(14)?, &cells.text(15)?);
            KeptState::Dead { died_ms: at_ms, reason, purge_ms: cells.get(13)? }
        }
    };
    let key = cells.get::<Option<&[u8]>>(7)?;
    let kept = KeptMessage {
        queue: cells.text(1)?,
        priority: u8::try_from(cells.get::<i16>(2)?).unwrap_or(u8::MAX),
        attempts: cells.get::<i32>(3)?.cast_unsigned(),
        enqueued_ms: cells.get(4)?,
        first_ms: cells.get(5)?,
        last_ms: cells.get(6)?,
        deduplication_key: key.map(|key| String::from_utf8_lossy(key).into_owned()),
        dead_retention_ms: cells.get(8)?,
        backoff_ms: unpack_intervals(cells.get(9)?),
        keys_if_undelivered: unpack_keys(cells.get(10)?),
        value: cells.get(11)?,
        state,
    };
    Ok((cells.get(0)?, kept))
}

/// Visits all messages of a database, those that wait or are delivered before the dead ones, until `visit`
/// returns `false`.
///
/// # Errors
/// The error of the server; `Corrupt` for columns of other types.
pub(super) fn visit_all(
    link: &Link,
    db: i64,
    visit: &mut dyn FnMut(i64, KeptMessage) -> bool,
) -> Result<()> {
    for page in [WAITING, DEAD] {
        let mut after = i64::MIN;
        loop {
            let rows = link.query((page, vec![&db, &after, &POSTGRES_PAGE_ROWS_MAX]))?;
            for row in &rows {
                let (id, kept) = kept_of(row)?;
                after = id;
                if !visit(id, kept) {
                    return Ok(());
                }
            }
            if i64::try_from(rows.len()).is_ok_and(|count| count < POSTGRES_PAGE_ROWS_MAX) {
                break;
            }
        }
    }
    Ok(())
}
