//! Ranges at a moment: pages of the present entries, under pages of what commits after the moment have replaced.

use std::cmp::Ordering;

use tokio_postgres::Row as Found;

use crate::postgres::cells::Cells;
use crate::postgres::link::Link;
use crate::postgres::pages::seen;
use openkv_core::model::{Moment, POSTGRES_PAGE_ROWS_MAX, Result, Seen, Step, Walk};

/// Rows of the first page; each further page has four times as many, up to the bound.
const FIRST_ROWS: i64 = 16;

macro_rules! present_sql {
    ($value:literal, $order:literal) => {
        concat!(
            "SELECT k, version, encoding, expires_ms, ",
            $value,
            " FROM openkv.entries WHERE db = $1 AND k >= $2 AND k < $3 ORDER BY k",
            $order,
            " LIMIT $4"
        )
    };
}

/// Each step finds the next key by the index, so a key with many rows costs no more than one with a single row
/// behind the moment.
macro_rules! replaced_sql {
    ($value:literal, $order:literal, $from:literal, $to:literal) => {
        concat!(
            "WITH RECURSIVE keys(k) AS ((SELECT k FROM openkv.past \
             WHERE db = $1 AND k >= $2 AND k < $3 AND until > $5 ORDER BY k",
            $order,
            " LIMIT 1) UNION ALL SELECT n.k FROM keys AS o CROSS JOIN LATERAL (\
             SELECT k FROM openkv.past WHERE db = $1 AND k ",
            $from,
            " AND k ",
            $to,
            " AND until > $5 ORDER BY k",
            $order,
            " LIMIT 1) AS n) \
             SELECT o.k, p.version, p.encoding, p.expires_ms, p.v FROM keys AS o CROSS JOIN LATERAL (\
             SELECT version, encoding, expires_ms, ",
            $value,
            " FROM openkv.past WHERE db = $1 AND k = o.k AND until > $5 ORDER BY until LIMIT 1) AS p \
             LIMIT $4"
        )
    };
}

/// A part of a range, without the part that was walked before.
struct Part {
    start: Vec<u8>,
    end: Vec<u8>,
    reverse: bool,
    values: bool,
    rows: i64,
}

impl Part {
    /// The present entries, the first ones of the part.
    fn present(&self, link: &Link, db: i64) -> Result<Vec<Found>> {
        let sql = match (self.values, self.reverse) {
            (true, false) => present_sql!("v", ""),
            (true, true) => present_sql!("v", " DESC"),
            (false, false) => present_sql!("''::bytea AS v", ""),
            (false, true) => present_sql!("''::bytea AS v", " DESC"),
        };
        link.query((sql, vec![&db, &self.start, &self.end, &self.rows]))
    }

    /// The entries before the first commit after `version` that changed them.
    fn replaced(&self, link: &Link, db: i64, version: i64) -> Result<Vec<Found>> {
        let sql = match (self.values, self.reverse) {
            (true, false) => replaced_sql!("v", "", "> o.k", "< $3"),
            (true, true) => replaced_sql!("v", " DESC", "< o.k", ">= $2"),
            (false, false) => replaced_sql!("''::bytea AS v", "", "> o.k", "< $3"),
            (false, true) => replaced_sql!("''::bytea AS v", " DESC", "< o.k", ">= $2"),
        };
        link.query((sql, vec![&db, &self.start, &self.end, &self.rows, &version]))
    }

    /// Whether a page may have more rows behind its last one, which is answered then.
    fn last_of<'r>(&self, page: &'r [Found]) -> Result<Option<&'r [u8]>> {
        let is_full = i64::try_from(page.len()).is_ok_and(|count| count >= self.rows);
        page.last().filter(|_| is_full).map(key_of).transpose()
    }

    /// Ends the part behind a key.
    fn end_behind(&mut self, key: &[u8]) {
        match self.reverse {
            true => self.start = key.to_vec(),
            false => self.end = [key, &[0]].concat(),
        }
    }

    fn has(&self, key: &[u8]) -> bool {
        (self.start.as_slice()..self.end.as_slice()).contains(&key)
    }
}

fn key_of(row: &Found) -> Result<&[u8]> {
    Cells::of("past", row).get(0)
}

/// The entry in a row of a page; `None` if there was none at the time.
fn alive(row: &Found, at_ms: i64) -> Result<Option<Seen<'_>>> {
    let cells = Cells::of("past", row);
    if cells.get::<Option<i64>>(1)?.is_none() {
        return Ok(None);
    }
    let ended = cells.get::<Option<i64>>(3)?.is_some_and(|end| end <= at_ms);
    if ended { Ok(None) } else { seen(row).map(Some) }
}

/// Visits the entries of a range at a moment.
pub(super) fn walk_at(
    walk: Walk<'_>,
    moment: Moment,
    (link, db): (&Link, i64),
    goes_on: &mut dyn FnMut() -> Result<()>,
    visit: &mut dyn FnMut(Seen<'_>) -> Step,
) -> Result<()> {
    let Walk { start, end, reverse, values } = walk;
    let (mut start, mut end) = (start.to_vec(), end.to_vec());
    let mut rows = FIRST_ROWS;
    while start < end {
        goes_on()?;
        let (from, to) = (start.clone(), end.clone());
        let mut part = Part { start: from, end: to, reverse, values, rows };
        let present = part.present(link, db)?;
        if let Some(last) = part.last_of(&present)? {
            part.end_behind(last);
        }
        let replaced = part.replaced(link, db, moment.version.cast_signed())?;
        if let Some(last) = part.last_of(&replaced)? {
            part.end_behind(last);
        }
        match merge(&part, (&present, &replaced), moment.at_ms, visit)? {
            Step::Stop => return Ok(()),
            Step::Seek(to) if reverse => end = to,
            Step::Seek(to) => start = to,
            Step::Next if reverse => end = part.start,
            Step::Next => start = part.end,
        }
        rows = (rows * 4).min(POSTGRES_PAGE_ROWS_MAX);
    }
    Ok(())
}

/// Visits the entries of a part until the visitor stops or seeks; returns that step. What was replaced counts
/// instead of the present.
fn merge(
    part: &Part,
    (present, replaced): (&[Found], &[Found]),
    at_ms: i64,
    visit: &mut dyn FnMut(Seen<'_>) -> Step,
) -> Result<Step> {
    let (mut present, mut replaced) = (present.iter().peekable(), replaced.iter().peekable());
    loop {
        let keys = (
            present.peek().copied().map(key_of).transpose()?,
            replaced.peek().copied().map(key_of).transpose()?,
        );
        let order = match keys {
            (None, None) => return Ok(Step::Next),
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(one), Some(other)) if part.reverse => other.cmp(one),
            (Some(one), Some(other)) => one.cmp(other),
        };
        let unchanged = if order == Ordering::Greater { None } else { present.next() };
        let earlier = if order == Ordering::Less { None } else { replaced.next() };
        let Some(row) = earlier.or(unchanged) else { return Ok(Step::Next) };
        if !part.has(key_of(row)?) {
            return Ok(Step::Next);
        }
        if let Some(seen) = alive(row, at_ms)? {
            match visit(seen) {
                Step::Next => {}
                step => return Ok(step),
            }
        }
    }
}
