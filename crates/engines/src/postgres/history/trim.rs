//! Trims the history: moves its beginning behind the segments that are older than its duration, and deletes the
//! rows up to there in steps.

use openkv_core::model::{
    POSTGRES_PAST_TRIM_COMMITS, POSTGRES_PAST_TRIM_MIN, POSTGRES_PAST_TRIM_ROWS,
};

/// Moves the beginning over at most `$2` segments, and deletes at most `$3` rows up to it.
pub(in crate::postgres) const TRIM: &str = "\
WITH log AS MATERIALIZED (SELECT history_version AS since, newest_ms - history_ms AS from_ms \
FROM openkv.replication WHERE db = $1 AND history_ms IS NOT NULL), \
begins AS MATERIALIZED (SELECT s.version, s.at_ms FROM log CROSS JOIN LATERAL (\
SELECT o.version, o.at_ms FROM (SELECT version, at_ms FROM openkv.segments \
WHERE db = $1 AND version > log.since ORDER BY version LIMIT $2) AS o \
WHERE o.at_ms < log.from_ms ORDER BY o.version DESC LIMIT 1) AS s), \
moved AS (UPDATE openkv.replication AS r SET history_version = b.version, history_at_ms = b.at_ms \
FROM begins AS b WHERE r.db = $1), \
old AS MATERIALIZED (SELECT p.place FROM log CROSS JOIN LATERAL (SELECT ctid AS place \
FROM openkv.past WHERE db + 0 = $1 AND until <= coalesce((SELECT version FROM begins), log.since) \
ORDER BY until LIMIT $3) AS p) \
DELETE FROM openkv.past AS p USING old WHERE p.ctid = old.place";

/// Deletes some rows, at most `$3`, of a history that was turned off after the commit `$2`.
pub(in crate::postgres) const FORGET: &str = "\
DELETE FROM openkv.past WHERE ctid = ANY (ARRAY(SELECT ctid FROM openkv.past \
WHERE db + 0 = $1 AND until <= $2 ORDER BY until LIMIT $3)) RETURNING 1";

/// How many rows a batch deletes at most that inserts `rows` and has these versions before and after it; 0 for one
/// that leaves it to others. Together the batches of all processes delete faster than they insert.
pub(in crate::postgres) fn rows_to_trim(rows: usize, before: i64, after: i64) -> i64 {
    let step = |version: i64| version / POSTGRES_PAST_TRIM_COMMITS;
    let rows = i64::try_from(rows).unwrap_or(i64::MAX / 4);
    if rows < POSTGRES_PAST_TRIM_MIN && step(before) == step(after) {
        return 0;
    }
    2 * rows + POSTGRES_PAST_TRIM_ROWS
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn more_is_deleted_than_inserted() {
        for rows in [1, POSTGRES_PAST_TRIM_MIN - 1, POSTGRES_PAST_TRIM_MIN, 5000] {
            let (mut inserted, mut deleted) = (0, 0);
            for version in 0..10 * POSTGRES_PAST_TRIM_COMMITS {
                inserted += rows;
                let rows = usize::try_from(rows).unwrap();
                deleted += rows_to_trim(rows, version, version + 1);
            }
            assert!(deleted > inserted, "{rows}: {deleted} of {inserted}");
        }
        assert_eq!(rows_to_trim(1, 0, 1), 0);
    }
}
