//! The row of a database: its commit counter, its clock, and what its writers count.

use std::sync::Arc;

use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::Cells;
use crate::replication::extent::Extent;
use openkv_core::index::ValueIndex;
use openkv_core::layer::Lead;
use openkv_core::model::{Error, Result};

/// Locks the row, so that this transaction is the only one that writes to the database. The time is
/// taken after the lock. `$2`: the time to use instead of the server's, for tests. The last column is
/// how long the statement has waited for the lock. The server measures it, because for the client it
/// cannot be distinguished from the distance to the server. In the time of a test, nothing waits. `$3`: the lease
/// of this process; `led_by` is the name of another leader, empty if its lease has ended.
pub(super) const LOCK: &str = "\
WITH d AS MATERIALIZED (SELECT * FROM openkv.databases WHERE id = $1 FOR UPDATE) \
SELECT version, epoch, removed, last_uuid, last_message, \
greatest(clock_ms, coalesce($2::int8, floor(extract(epoch FROM clock_timestamp()) * 1000)::int8)) AS clock_ms, \
CASE WHEN $2::int8 IS NULL \
THEN (extract(epoch FROM clock_timestamp() - statement_timestamp()) * 1000)::int8 ELSE 0 END AS waited_ms, \
CASE WHEN leader IS NOT NULL AND leader IS DISTINCT FROM $3::bytea THEN coalesce((SELECT s.name \
FROM openkv.servers AS s WHERE s.id = d.leader AND s.lease_until > clock_timestamp()), ''::bytea) END AS led_by, log_bits, indexes FROM d";

/// Stores what the transaction has changed; answers the time of the server. NULL as the version
/// violates the table's rule, so that a transaction that was overtaken cannot commit. Everything but
/// the version and the number of the last message can only grow, so that a leader need not know it.
pub(super) const FENCE: &str = "\
UPDATE openkv.databases SET \
version = CASE WHEN epoch = $2::int8 AND version = $3::int8 THEN $4::int8 END, \
removed = greatest(removed, $5), last_uuid = coalesce($6, last_uuid), last_message = $7, \
clock_ms = greatest(clock_ms, $8) WHERE id = $1 RETURNING floor(extract(epoch FROM clock_timestamp()) * 1000)::int8";

/// The parts of the replication log of a database: the bits of the column `log_bits`. Without the first one it is
/// off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct LogParts(i16);

impl LogParts {
    const CHANGES: i16 = 1;
    /// Replaced entries. The statements in `history` name this bit.
    const HISTORY: i16 = 2;
    const MESSAGES: i16 = 4;

    /// By its number in the tables.
    pub(super) fn of(number: i16) -> Self {
        Self(number)
    }

    /// Of a log with this extent; `None`: it is off.
    pub(super) fn of_extent(extent: Option<&Extent>) -> Self {
        let Some(Extent { history, messages, .. }) = extent else { return Self(0) };
        let history = if history.is_some() { Self::HISTORY } else { 0 };
        Self(Self::CHANGES | history | if *messages { Self::MESSAGES } else { 0 })
    }

    pub(super) fn number(self) -> i16 {
        self.0
    }

    /// Whether the log is on.
    pub(super) fn has_log(self) -> bool {
        self.0 & Self::CHANGES != 0
    }

    pub(super) fn has_history(self) -> bool {
        self.0 & Self::HISTORY != 0
    }

    /// Whether the log says what becomes of messages.
    pub(super) fn has_messages(self) -> bool {
        self.0 & Self::MESSAGES != 0
    }
}

/// The row, as the transaction found it.
#[derive(Clone, Debug)]
pub(super) struct DatabaseRow {
    pub(super) version: i64,
    pub(super) epoch: i64,
    pub(super) removed: i64,
    pub(super) last_uuid: Option<Uuid>,
    pub(super) last_message: i64,
    pub(super) now_ms: i64,
    /// How long the transaction has waited for the lock of the row.
    pub(super) waited_ms: u64,
    /// The name of another process that leads the database; empty if its lease has ended.
    pub(super) led_by: Option<String>,
    /// The parts of the replication log.
    pub(super) log_parts: LogParts,
    /// How often the list of value indexes has changed.
    pub(super) indexes: i64,
}

impl DatabaseRow {
    /// From the answer to [`LOCK`].
    ///
    /// # Errors
    /// `Corrupt` without a row, and for columns of other types.
    pub(super) fn of(rows: &[Row]) -> Result<Self> {
        let row = rows.first().ok_or_else(missing)?;
        let cells = Cells::of("databases", row);
        let uuid = cells.get::<Option<&[u8]>>(3)?;
        Ok(Self {
            version: cells.get(0)?,
            epoch: cells.get(1)?,
            removed: cells.get(2)?,
            last_uuid: uuid.and_then(|bytes| Uuid::from_slice(bytes).ok()),
            last_message: cells.get(4)?,
            now_ms: cells.get(5)?,
            waited_ms: u64::try_from(cells.get::<i64>(6)?).unwrap_or(0),
            led_by: cells.get::<Option<&[u8]>>(7)?.map(|name| String::from_utf8_lossy(name).into()),
            log_parts: LogParts::of(cells.get(8)?),
            indexes: cells.get(9)?,
        })
    }
}

impl DatabaseRow {
    /// The state from which a leader continues, with the value indexes of the database.
    pub(super) fn lead(&self, value_indexes: Arc<[ValueIndex]>) -> Lead {
        Lead {
            epoch: self.epoch.cast_unsigned(),
            version: self.version.cast_unsigned(),
            clock_ms: self.now_ms,
            last_uuid: self.last_uuid,
            last_message: self.last_message,
            logs: self.log_parts.has_log(),
            value_indexes,
        }
    }
}

/// The row of the database is never deleted.
pub(super) fn missing() -> Error {
    Error::corrupt("the database's row is missing in openkv.databases")
}
