//! Ranges of entries, fetched page by page.

use tokio_postgres::Row as Found;

use super::cells::Cells;
use super::link::Link;
use openkv_core::model::{
    Encoding, Error, POSTGRES_PAGE_ROWS_MAX, Result, Row, Seen, Step, Versionstamp, Walk,
};

/// Rows of the first page; each further page has four times as many, up to the bound.
const FIRST_ROWS: i64 = 16;

macro_rules! page_sql {
    ($value:literal, $order:literal) => {
        concat!(
            "SELECT k, version, encoding, expires_ms, ",
            $value,
            " FROM openkv.entries WHERE db = $1 AND k >= $2 AND k < $3 \
             AND (expires_ms IS NULL OR expires_ms > $4) ORDER BY k",
            $order,
            " LIMIT $5"
        )
    };
}

/// A page of a range.
pub(super) struct PageRequest {
    pub(super) start: Vec<u8>,
    pub(super) end: Vec<u8>,
    pub(super) reverse: bool,
    pub(super) values: bool,
    pub(super) rows: i64,
}

/// The entries of a page that have not expired.
pub(super) fn page(link: &Link, db: i64, now_ms: i64, of: &PageRequest) -> Result<Vec<Found>> {
    let sql = match (of.values, of.reverse) {
        (true, false) => page_sql!("v", ""),
        (true, true) => page_sql!("v", " DESC"),
        (false, false) => page_sql!("''::bytea AS v", ""),
        (false, true) => page_sql!("''::bytea AS v", " DESC"),
    };
    link.query((sql, vec![&db, &of.start, &of.end, &now_ms, &of.rows]))
}

/// The encoding of a stored value.
pub(super) fn encoding(id: i16) -> Result<Encoding> {
    Encoding::from_id(i64::from(id))
        .ok_or_else(|| Error::corrupt(format!("a value has the unknown encoding {id}")))
}

/// An entry of a page.
pub(super) fn seen(row: &Found) -> Result<Seen<'_>> {
    let cells = Cells::of("entries", row);
    let (key, stamp) = (cells.get(0)?, Versionstamp::new(cells.unsigned(1)?));
    let (encoding, value) = (encoding(cells.get(2)?)?, cells.get(4)?);
    Ok(Seen { row: Row { key, stamp, encoding, value }, expire_at_ms: cells.get(3)? })
}

/// Walks over the pages that `next` answers.
pub(super) fn walk_pages(
    walk: Walk<'_>,
    next: &mut dyn FnMut(&PageRequest) -> Result<Vec<Found>>,
    visit: &mut dyn FnMut(Seen<'_>) -> Step,
) -> Result<()> {
    let Walk { start, end, reverse, values } = walk;
    let (start, end) = (start.to_vec(), end.to_vec());
    let mut request = PageRequest { start, end, reverse, values, rows: FIRST_ROWS };
    while request.start < request.end {
        let rows = next(&request)?;
        let full = i64::try_from(rows.len()).is_ok_and(|count| count == request.rows);
        let mut bound = None;
        for row in &rows {
            let seen = seen(row)?;
            let key = seen.row.key;
            match visit(seen) {
                Step::Stop => return Ok(()),
                Step::Seek(to) => {
                    bound = Some(to);
                    break;
                }
                Step::Next if reverse => bound = Some(key.to_vec()),
                Step::Next => bound = Some([key, &[0]].concat()),
            }
        }
        let sought = match (rows.last(), &bound) {
            (Some(last), Some(bound)) => {
                // The visitor has left rows of this page out.
                let key: &[u8] = Cells::of("entries", last).get(0)?;
                match reverse {
                    true => bound.as_slice() != key,
                    false => *bound != [key, &[0]].concat(),
                }
            }
            _ => false,
        };
        let Some(bound) = bound.filter(|_| full || sought) else { return Ok(()) };
        *(if reverse { &mut request.end } else { &mut request.start }) = bound;
        request.rows = (request.rows * 4).min(POSTGRES_PAGE_ROWS_MAX);
    }
    Ok(())
}
