//! The entries of value indexes: rows of a table of their own.
//!
//! An entry can be longer than an index of PostgreSQL takes. So its first bytes, the head, and a hash of the
//! others, the tail, are in the index. Entries with the same whole head are put in order after they were read.

use std::collections::HashMap;

use tokio_postgres::Row;

use super::cells::Cells;
use super::line::{Call, Value};
use super::link::Link;
use openkv_core::commit::IndexPoint;
use openkv_core::index::Replacement;
use openkv_core::model::{Error, POSTGRES_INDEX_HEAD_BYTES, POSTGRES_PAGE_ROWS_MAX, Result};

const INSERT: &str = "\
INSERT INTO openkv.value_entries (db, id, head, digest, tail) \
SELECT $1, u.id, u.head, CASE WHEN u.tail = ''::bytea THEN u.tail ELSE sha256(u.tail) END, u.tail \
FROM unnest($2::int8[], $3::bytea[], $4::bytea[]) AS u(id, head, tail) ON CONFLICT DO NOTHING";

const DELETE: &str = "\
DELETE FROM openkv.value_entries AS e USING unnest($2::int8[], $3::bytea[], $4::bytea[]) AS u(id, head, tail) \
CROSS JOIN LATERAL (SELECT ctid FROM openkv.value_entries WHERE db = $1 AND id = u.id AND head = u.head \
AND digest = CASE WHEN u.tail = ''::bytea THEN u.tail ELSE sha256(u.tail) END LIMIT 1) AS f \
WHERE e.ctid = f.ctid";

macro_rules! page_sql {
    ($order:literal) => {
        concat!(
            "SELECT head, digest, tail FROM openkv.value_entries WHERE db = $1 AND id = $2 \
             AND (head, digest) >= ($3, $4) AND (head, digest) < ($5, $6) ORDER BY head",
            $order,
            ", digest",
            $order,
            " LIMIT $7"
        )
    };
}

/// The entries of several ranges, each `$3` to `$4`. The subquery is not merged into a join, for which the planner
/// may read all entries.
const POINTS: &str = "\
SELECT u.i, e.head, e.tail FROM unnest($2::int8[], $3::bytea[], $4::bytea[]) WITH ORDINALITY AS u(id, lo, hi, i) \
CROSS JOIN LATERAL (SELECT head, tail FROM openkv.value_entries \
WHERE db = $1 AND id = u.id AND head >= u.lo AND head <= u.hi OFFSET 0) AS e";

/// Rows of the first page; each further page has four times as many, up to the bound.
const FIRST_ROWS: i64 = 16;

fn split(entry: &[u8]) -> (&[u8], &[u8]) {
    entry.split_at_checked(POSTGRES_INDEX_HEAD_BYTES).unwrap_or((entry, &[]))
}

/// Changes of entries, as columns of the statements.
#[derive(Default)]
pub(super) struct IndexChanges {
    removed: Columns,
    added: Columns,
}

#[derive(Default)]
struct Columns {
    ids: Vec<i64>,
    heads: Vec<Vec<u8>>,
    tails: Vec<Vec<u8>>,
}

impl Columns {
    fn values(&self) -> [&Value<'_>; 3] {
        [&self.ids, &self.heads, &self.tails]
    }
}

impl IndexChanges {
    /// Adds a change.
    pub(super) fn push(&mut self, id: i64, change: Replacement<'_>) {
        change.each().for_each(|(entry, added)| self.push_one(id, entry, added));
    }

    /// Adds the change of one entry.
    pub(super) fn push_one(&mut self, id: i64, entry: &[u8], added: bool) {
        let Columns { ids, heads, tails } = if added { &mut self.added } else { &mut self.removed };
        let (head, tail) = split(entry);
        ids.push(id);
        heads.push(head.to_vec());
        tails.push(tail.to_vec());
    }

    pub(super) fn is_empty(&self) -> bool {
        self.removed.ids.is_empty() && self.added.ids.is_empty()
    }

    /// The bytes of the entries.
    pub(super) fn bytes(&self) -> usize {
        let Self { removed, added } = self;
        let all = [&removed.heads, &removed.tails, &added.heads, &added.tails];
        all.into_iter().flatten().map(Vec::len).sum()
    }

    /// Adds the statements that carry them out. They must follow the lock of the database's row: a step of
    /// building may have added entries before it.
    pub(super) fn calls<'a>(&'a self, db: &'a i64, calls: &mut Vec<Call<'a>>) {
        for (sql, columns) in [(DELETE, &self.removed), (INSERT, &self.added)] {
            if !columns.ids.is_empty() {
                let mut values: Vec<&Value<'_>> = vec![db];
                values.extend(columns.values());
                calls.push((sql, values));
            }
        }
    }
}

/// The arguments of a read of the entries that begin with values.
pub(super) struct PointArguments {
    points: Vec<IndexPoint>,
    ids: Vec<i64>,
    starts: Vec<Vec<u8>>,
    ends: Vec<Vec<u8>>,
}

/// Values of unique indexes, each with its entries.
pub(super) type Points = HashMap<IndexPoint, Vec<Vec<u8>>>;

/// The end of the entries that begin with a value.
pub(super) fn end_of(value: &[u8]) -> Vec<u8> {
    [value, &[u8::MAX]].concat()
}

impl PointArguments {
    pub(super) fn of(points: Vec<IndexPoint>) -> Self {
        let head = |bytes: &[u8]| split(bytes).0.to_vec();
        let ids = points.iter().map(|(id, _)| *id).collect();
        let starts = points.iter().map(|(_, value)| head(value)).collect();
        let ends = points.iter().map(|(_, value)| head(&end_of(value))).collect();
        Self { points, ids, starts, ends }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.points.is_empty()
    }

    pub(super) fn call<'a>(&'a self, db: &'a i64) -> Call<'a> {
        (POINTS, vec![db, &self.ids, &self.starts, &self.ends])
    }

    /// As [`entries_of`], by value.
    pub(super) fn into_points(self, rows: &[Row]) -> Result<Points> {
        let entries = entries_of(&self.points, rows)?;
        Ok(self.points.into_iter().zip(entries).collect())
    }
}

/// The entries of each value, from the answer to [`PointArguments::call`].
///
/// # Errors
/// `Corrupt` for columns of other types.
pub(super) fn entries_of(points: &[IndexPoint], rows: &[Row]) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut found = vec![Vec::new(); points.len()];
    for row in rows {
        let cells = Cells::of("value_entries", row);
        let at = usize::try_from(cells.get::<i64>(0)? - 1).unwrap_or(usize::MAX);
        let entry = [cells.get::<&[u8]>(1)?, cells.get(2)?].concat();
        if let (Some((_, value)), Some(found)) = (points.get(at), found.get_mut(at))
            && entry.starts_with(value)
        {
            found.push(entry);
        }
    }
    Ok(found)
}

/// A place in the order of the table.
type Place = (Vec<u8>, Vec<u8>);

/// Visits the entries of an index with `lo <= entry < hi`, in order or in reverse, until the visitor returns
/// `false`.
pub(super) fn walk(
    link: &Link,
    (db, id): (i64, i64),
    (lo, hi): (&[u8], &[u8]),
    reverse: bool,
    visit: &mut dyn FnMut(&[u8]) -> bool,
) -> Result<()> {
    let sql = if reverse { page_sql!(" DESC") } else { page_sql!("") };
    let mut start: Place = (split(lo).0.to_vec(), Vec::new());
    let mut end: Place = ([split(hi).0, &[0]].concat(), Vec::new());
    let mut rows = FIRST_ROWS;
    // Entries with the same whole head, whose order is that of their tails.
    let mut same: Vec<Vec<u8>> = Vec::new();
    let mut show = |entry: &[u8]| entry < lo || entry >= hi || visit(entry);
    loop {
        let page = link.query((sql, vec![&db, &id, &start.0, &start.1, &end.0, &end.1, &rows]))?;
        let mut last = None;
        for row in &page {
            let cells = Cells::of("value_entries", row);
            let (head, digest, tail): (&[u8], &[u8], &[u8]) =
                (cells.get(0)?, cells.get(1)?, cells.get(2)?);
            last = Some((head, digest));
            let entry = [head, tail].concat();
            if same.first().is_some_and(|first| split(first).0 != head)
                && !shown(&mut same, reverse, &mut show)
            {
                return Ok(());
            }
            if head.len() == POSTGRES_INDEX_HEAD_BYTES {
                same.push(entry);
            } else if !show(&entry) {
                return Ok(());
            }
        }
        let full = i64::try_from(page.len()).is_ok_and(|count| count == rows);
        let Some((head, digest)) = last.filter(|_| full) else { break };
        if reverse {
            end = (head.to_vec(), digest.to_vec());
        } else {
            start = (head.to_vec(), [digest, &[0]].concat());
        }
        rows = (rows * 4).min(POSTGRES_PAGE_ROWS_MAX);
    }
    shown(&mut same, reverse, &mut show);
    Ok(())
}

/// Shows gathered entries in order; `false` if the visitor wants no more.
fn shown(same: &mut Vec<Vec<u8>>, reverse: bool, show: &mut impl FnMut(&[u8]) -> bool) -> bool {
    let mut same = std::mem::take(same);
    same.sort_unstable();
    if reverse {
        same.reverse();
    }
    same.iter().all(|entry| show(entry))
}

/// Deletes entries of an index, at most `max`; whether there may be more.
pub(super) fn delete_some(link: &Link, (db, id): (i64, i64), max: usize) -> Result<bool> {
    let some = "WITH old AS MATERIALIZED (SELECT ctid AS place FROM openkv.value_entries \
                WHERE db = $1 AND id = $2 LIMIT $3) \
                DELETE FROM openkv.value_entries AS e USING old WHERE e.ctid = old.place RETURNING 1";
    let rows = i64::try_from(max).map_err(|error| Error::internal(error.to_string()))?;
    Ok(link.query((some, vec![&db, &id, &rows]))?.len() == max)
}
