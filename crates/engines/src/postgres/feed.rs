//! The log of changes, while feeds are on: written with the batch, read from a snapshot.

pub(super) mod trim;

use super::cells::Cells;
use super::line::Call;
use super::link::Link;
use super::pages::encoding;
use crate::feed::{FeedLog, FeedState};
use openkv_core::model::{
    Change, ChangeKind, FEED_TRIM_COMMITS, FEED_VALUE_BYTES_MAX, Logged, POSTGRES_FEED_PAGE_ROWS,
    POSTGRES_FEED_TRIM_COMMITS, Result,
};
use trim::{Amount, Extent, Shelf, trim};

const INSERT: &str = "\
INSERT INTO openkv.changes (db, version, seq, at_ms, k, encoding, v, expires_ms) \
SELECT $1, u.version, u.seq, $2, u.k, u.encoding, u.v, u.expires_ms \
FROM unnest($3::int8[], $4::int4[], $5::bytea[], $6::int2[], $7::bytea[], $8::int8[]) \
AS u(version, seq, k, encoding, v, expires_ms)";

/// The encoding of a change of only the expiry; that of a removal is null.
const EXPIRY_SET: i16 = 0;

const FIRST: &str = "\
SELECT version, at_ms FROM openkv.changes WHERE db = $1 AND version > $2 \
ORDER BY version, seq LIMIT 1";

const DROP_SETS: &str = "\
WITH gone AS (DELETE FROM openkv.changes \
WHERE db = $1 AND version = $2 AND encoding IS NOT NULL RETURNING k, v) \
SELECT count(*), coalesce(sum(length(k) + coalesce(length(v), 0)), 0)::int8 FROM gone";

const DROP_REMOVALS: &str = "\
WITH gone AS (DELETE FROM openkv.changes \
WHERE db = $1 AND version = $2 AND encoding IS NULL RETURNING k) \
SELECT count(*), coalesce(sum(length(k)), 0)::int8 FROM gone";

const STATE: &str = "\
SELECT version, removed, logs, feed_complete, feed_removed FROM openkv.databases WHERE id = $1";

/// A value that was too large for the log is in its entry, unless that was replaced.
const CHANGES: &str = "\
SELECT c.version, c.seq, c.k, c.encoding, coalesce(c.v, e.v) AS v, c.expires_ms \
FROM openkv.changes AS c \
LEFT JOIN LATERAL (SELECT v FROM openkv.entries WHERE c.v IS NULL AND c.encoding <> 0 \
AND db = c.db AND k = c.k AND version = c.version LIMIT 1) AS e ON true \
WHERE c.db = $1 AND (c.version, c.seq) > ($2, $3) ORDER BY c.version, c.seq LIMIT $4";

/// The log in the writer's transaction.
pub(super) struct FeedLogger {
    link: Link,
    db: i64,
    extent: Extent,
    logs: bool,
    changes: ChangeRows,
}

/// Logged changes, as columns.
#[derive(Default)]
pub(super) struct ChangeRows {
    at_ms: i64,
    versions: Vec<i64>,
    seqs: Vec<i32>,
    keys: Vec<Vec<u8>>,
    encodings: Vec<Option<i16>>,
    values: Vec<Option<Vec<u8>>>,
    expiries: Vec<Option<i64>>,
}

impl ChangeRows {
    /// Adds changes, in order, and their size to that of the log.
    pub(super) fn add(&mut self, changes: Vec<Change>, now_ms: i64, extent: &mut Extent) {
        self.at_ms = now_ms;
        let (mut last, mut seq) = (0, 0);
        for change in changes {
            if change.version != last {
                (last, seq) = (change.version, 0);
            }
            seq += 1;
            self.versions.push(last.cast_signed());
            self.seqs.push(seq);
            self.keys.push(change.key.as_bytes().to_vec());
            self.expiries.push(match change.kind {
                ChangeKind::Set { expire_at_ms, .. } | ChangeKind::ExpirySet { expire_at_ms } => {
                    expire_at_ms
                }
                ChangeKind::Expired => Some(now_ms),
                ChangeKind::Deleted => None,
            });
            match change.kind {
                ChangeKind::Deleted | ChangeKind::Expired => {
                    extent.removals.add(change.key.len());
                    self.encodings.push(None);
                    self.values.push(None);
                }
                ChangeKind::ExpirySet { .. } => {
                    extent.sets.add(change.key.len());
                    self.encodings.push(Some(EXPIRY_SET));
                    self.values.push(None);
                }
                ChangeKind::Set { value, .. } => {
                    let fits = value.bytes.len() <= FEED_VALUE_BYTES_MAX;
                    let bytes = if fits { value.bytes.len() } else { 0 };
                    extent.sets.add(change.key.len() + bytes);
                    self.encodings.push(Some(i16::from(value.encoding.id())));
                    self.values.push(fits.then_some(value.bytes));
                }
            }
        }
    }

    /// Adds the statement that stores them.
    pub(super) fn calls<'a>(&'a self, db: &'a i64, calls: &mut Vec<Call<'a>>) {
        let Self { at_ms, versions, seqs, keys, encodings, values, expiries } = self;
        if !keys.is_empty() {
            calls
                .push((INSERT, vec![db, at_ms, versions, seqs, keys, encodings, values, expiries]));
        }
    }
}

impl FeedLogger {
    pub(super) fn new(link: Link, db: i64, extent: Extent, logs: bool) -> Self {
        Self { link, db, extent, logs, changes: ChangeRows::default() }
    }

    /// Turns the log on: it is complete from the last commit on.
    pub(super) fn start(&mut self, version: u64, removed: u64) {
        self.logs = true;
        self.extent = Extent { complete: version, removed, ..Extent::default() };
    }

    /// How far the log reaches, its new rows, and whether it is on.
    pub(super) fn into_parts(self) -> (Extent, ChangeRows, bool) {
        (self.extent, self.changes, self.logs)
    }

    /// Logs the changes of the transaction, in order, and trims old ones.
    pub(super) fn log(&mut self, changes: Vec<Change>, now_ms: i64) -> Result<()> {
        let first = changes.first().map_or(0, |change| change.version.saturating_sub(1));
        let last = changes.last().map_or(0, |change| change.version);
        self.changes.add(changes, now_ms, &mut self.extent);
        // Trimming costs a trip or more, so most batches leave it to a later one.
        let steps = last / POSTGRES_FEED_TRIM_COMMITS - first / POSTGRES_FEED_TRIM_COMMITS;
        if steps > 0 {
            let most = usize::try_from(2 * (steps + 1) * POSTGRES_FEED_TRIM_COMMITS);
            self.trim(now_ms, FEED_TRIM_COMMITS.max(most.unwrap_or(usize::MAX)))?;
        }
        Ok(())
    }

    /// Trims at most `commits` old ones.
    pub(super) fn trim(&mut self, now_ms: i64, commits: usize) -> Result<()> {
        let mut extent = self.extent;
        trim(self, &mut extent, now_ms, commits)?;
        self.extent = extent;
        Ok(())
    }

    fn dropped(&self, sql: &'static str, version: u64) -> Result<Amount> {
        let rows = self.link.query((sql, vec![&self.db, &version.cast_signed()]))?;
        let Some(row) = rows.first() else { return Ok(Amount::default()) };
        let cells = Cells::of("changes", row);
        Ok(Amount { rows: cells.unsigned(0)?, bytes: cells.unsigned(1)? })
    }
}

impl Shelf for FeedLogger {
    fn first_after(&mut self, after: u64) -> Result<Option<(u64, i64)>> {
        let rows = self.link.query((FIRST, vec![&self.db, &after.cast_signed()]))?;
        let cells = rows.first().map(|row| Cells::of("changes", row));
        cells.map(|cells| Ok((cells.unsigned(0)?, cells.get(1)?))).transpose()
    }

    fn drop_sets(&mut self, version: u64) -> Result<Amount> {
        self.dropped(DROP_SETS, version)
    }

    fn drop_removals(&mut self, version: u64) -> Result<Amount> {
        self.dropped(DROP_REMOVALS, version)
    }
}

/// The log as a snapshot has it.
pub(super) struct FeedReader<'s> {
    pub(super) link: &'s Link,
    pub(super) db: i64,
}

impl FeedLog for FeedReader<'_> {
    fn state(&mut self) -> Result<FeedState> {
        let rows = self.link.query((STATE, vec![&self.db]))?;
        let Some(row) = rows.first() else {
            return Ok(FeedState { on: false, version: 0, complete: 0, removed: 0 });
        };
        let cells = Cells::of("databases", row);
        let (version, removed) = (cells.unsigned(0)?, cells.unsigned(1)?);
        let (complete, log_removed) = (cells.unsigned(3)?, cells.unsigned(4)?);
        Ok(match cells.get(2)? {
            true => FeedState { on: true, version, complete, removed: log_removed },
            false => FeedState { on: false, version, complete: version, removed },
        })
    }

    fn changes(&mut self, after: u64, visit: &mut dyn FnMut(Logged<'_>) -> bool) -> Result<()> {
        // Behind all changes of that commit.
        let mut from = (after.cast_signed(), i32::MAX);
        loop {
            let limit = POSTGRES_FEED_PAGE_ROWS;
            let rows = self.link.query((CHANGES, vec![&self.db, &from.0, &from.1, &limit]))?;
            for row in &rows {
                let cells = Cells::of("changes", row);
                from = (cells.get(0)?, cells.get(1)?);
                let value: Option<&[u8]> = cells.get(4)?;
                let expire_at_ms: Option<i64> = cells.get(5)?;
                let kind = match cells.get::<Option<i16>>(3)? {
                    None if expire_at_ms.is_some() => ChangeKind::Expired,
                    None => ChangeKind::Deleted,
                    Some(EXPIRY_SET) => ChangeKind::ExpirySet { expire_at_ms },
                    Some(id) => match value {
                        Some(bytes) => {
                            ChangeKind::Set { value: (encoding(id)?, bytes), expire_at_ms }
                        }
                        None => continue,
                    },
                };
                let version = from.0.cast_unsigned();
                if !visit(Logged { version, key: cells.get(2)?, kind }) {
                    return Ok(());
                }
            }
            if i64::try_from(rows.len()).is_ok_and(|count| count < limit) {
                return Ok(());
            }
        }
    }
}
