//! The versions of a key: what commits have replaced, and the present entry.

use std::ops::Range;

use tokio_postgres::Row;

use crate::postgres::cells::Cells;
use crate::postgres::link::Link;
use crate::postgres::pages::encoding;
use openkv_core::model::{EncodedValue, POSTGRES_VERSIONS_PAGE_ROWS, PastEntry, Result};

/// The entry before the first commit from `$3` on that changed it, or the present one.
const ENTRY: &str = "\
SELECT version, encoding, v, expires_ms FROM (\
(SELECT 0 AS o, version, encoding, v, expires_ms FROM openkv.past \
WHERE db = $1 AND k = $2 AND until >= $3 ORDER BY until LIMIT 1) UNION ALL \
(SELECT 1 AS o, version, encoding, v, expires_ms FROM openkv.entries \
WHERE db = $1 AND k = $2 LIMIT 1)) AS f ORDER BY o LIMIT 1";

/// The commits from `$3` on and before `$4` that changed an entry, the newest first, each with its time.
const REPLACED: &str = "\
SELECT p.version, p.encoding, p.v, p.expires_ms, p.until, s.at_ms FROM openkv.past AS p \
LEFT JOIN LATERAL (SELECT first, at_ms FROM openkv.segments WHERE db = $1 AND version >= p.until \
ORDER BY version LIMIT 1) AS s ON s.first <= p.until \
WHERE p.db = $1 AND p.k = $2 AND p.until >= $3 AND p.until < $4 ORDER BY p.until DESC LIMIT $5";

/// As [`crate::ReplicationLog::entry`].
pub(in crate::postgres) fn entry(
    link: &Link,
    db: i64,
    key: &[u8],
    before: Option<u64>,
) -> Result<Option<PastEntry>> {
    let before = before.map_or(i64::MAX, number);
    let rows = link.query((ENTRY, vec![&db, &key, &before]))?;
    rows.first().map_or(Ok(None), entry_of)
}

/// As [`crate::ReplicationLog::replaced`].
pub(in crate::postgres) fn replaced(
    link: &Link,
    db: i64,
    key: &[u8],
    commits: Range<u64>,
    visit: &mut dyn FnMut(u64, Option<i64>, Option<PastEntry>) -> bool,
) -> Result<()> {
    let (from, mut end) = (number(commits.start), number(commits.end));
    loop {
        let page = POSTGRES_VERSIONS_PAGE_ROWS;
        let rows = link.query((REPLACED, vec![&db, &key, &from, &end, &page]))?;
        for row in &rows {
            let cells = Cells::of("past", row);
            end = cells.get(4)?;
            if !visit(end.cast_unsigned(), cells.get(5)?, entry_of(row)?) {
                return Ok(());
            }
        }
        if i64::try_from(rows.len()).is_ok_and(|count| count < page) {
            return Ok(());
        }
    }
}

fn number(version: u64) -> i64 {
    i64::try_from(version).unwrap_or(i64::MAX)
}

/// The entry in a row of `version, encoding, v, expires_ms`; `None` if there was none.
fn entry_of(row: &Row) -> Result<Option<PastEntry>> {
    let cells = Cells::of("past", row);
    let Some(version) = cells.get::<Option<i64>>(0)? else { return Ok(None) };
    let bytes = cells.get::<&[u8]>(2)?.to_vec();
    let value = EncodedValue { encoding: encoding(cells.get(1)?)?, bytes };
    Ok(Some(PastEntry { version: version.cast_unsigned(), value, expire_at_ms: cells.get(3)? }))
}
