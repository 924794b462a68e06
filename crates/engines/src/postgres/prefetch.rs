//! The entries that a read names beforehand, fetched by one statement.

use std::collections::HashMap;

use tokio_postgres::Row;

use super::Shared;
use super::cells::Cells;
use super::database::missing;
use super::line::{Call, Value};
use super::link::Link;
use super::read_transaction::read_once;
use openkv_core::model::{Key, Needs, POSTGRES_PAGE_ROWS_MAX, Range, Result, Walk};

/// A read of points, `$spans` of more. The first columns are those of a page, so that
/// [`super::pages::seen`] reads both. A row without a key carries only the version.
macro_rules! fetch_sql {
    ($($spans:literal),*) => {
        concat!(
            "WITH d AS MATERIALIZED (SELECT version, greatest(clock_ms, coalesce($2::int8, \
             floor(extract(epoch FROM clock_timestamp()) * 1000)::int8)) AS now_ms \
             FROM openkv.databases WHERE id = $1) \
             SELECT f.k, f.version, f.encoding, f.expires_ms, f.v, f.i, d.version FROM d \
             LEFT JOIN LATERAL (\
             SELECT u.i, e.* FROM unnest($3::bytea[], $4::int8[]) AS u(k, i) CROSS JOIN LATERAL (\
             SELECT k, version, encoding, expires_ms, v FROM openkv.entries \
             WHERE db = $1 AND k = u.k \
             AND (expires_ms IS NULL OR expires_ms > d.now_ms) LIMIT 1) AS e ",
            $($spans,)*
            ") AS f ON true"
        )
    };
}

/// Points of one snapshot.
const POINTS: &str = fetch_sql!();

/// Points, spans forward and spans backward of one snapshot.
const FETCH: &str = fetch_sql!(
    "UNION ALL \
     SELECT u.i, e.* FROM unnest($5::bytea[], $6::bytea[], $7::int8[], $8::int8[]) \
     AS u(s, e, n, i) CROSS JOIN LATERAL (\
     SELECT k, version, encoding, expires_ms, v FROM openkv.entries \
     WHERE db = $1 AND k >= u.s AND k < u.e AND (expires_ms IS NULL OR expires_ms > d.now_ms) \
     ORDER BY k LIMIT u.n) AS e ",
    "UNION ALL \
     SELECT u.i, e.* FROM unnest($9::bytea[], $10::bytea[], $11::int8[], $12::int8[]) \
     AS u(s, e, n, i) CROSS JOIN LATERAL (\
     SELECT k, version, encoding, expires_ms, v FROM openkv.entries \
     WHERE db = $1 AND k >= u.s AND k < u.e AND (expires_ms IS NULL OR expires_ms > d.now_ms) \
     ORDER BY k DESC LIMIT u.n) AS e"
);

/// The entries that a read has named.
pub(super) struct Prefetched {
    /// The last commit of the snapshot.
    pub(super) version: i64,
    points: HashMap<Vec<u8>, Option<Row>>,
    spans: Vec<Span>,
}

/// The entries of one span, up to its limit.
pub(super) struct Span {
    start: Vec<u8>,
    end: Vec<u8>,
    reverse: bool,
    limit: usize,
    pub(super) rows: Vec<Row>,
}

impl Span {
    /// The key at which the span continues behind its limit; `None` if it was fetched to its end.
    ///
    /// # Errors
    /// `Corrupt` for keys of another type.
    pub(super) fn rest(&self) -> Result<Option<Vec<u8>>> {
        let last = self.rows.last().filter(|_| self.rows.len() >= self.limit);
        let Some(last) = last else { return Ok(None) };
        let key: &[u8] = Cells::of("entries", last).get(0)?;
        Ok(Some(if self.reverse { key.to_vec() } else { [key, &[0]].concat() }))
    }
}

/// The place of a point, which is in no span.
const NO_SPAN: i64 = -1;

/// Whether one statement may fetch all of it: its rows are in memory together.
pub(super) fn fits(needs: &Needs<'_>) -> bool {
    let rows = needs.ranges.iter().map(|range| match range {
        Range::Point(_) => 0,
        Range::Span { limit, .. } => i64::try_from(*limit).unwrap_or(i64::MAX),
    });
    rows.fold(0, i64::saturating_add) <= POSTGRES_PAGE_ROWS_MAX
}

/// Ranges as columns: starts, ends, limits, places.
#[derive(Default)]
struct Columns<'r>(Vec<&'r [u8]>, Vec<&'r [u8]>, Vec<i64>, Vec<i64>);

/// A read, as the arguments of a statement, and the spans that wait for its rows.
#[derive(Default)]
struct ReadArguments<'r> {
    keys: Vec<&'r [u8]>,
    key_places: Vec<i64>,
    forward: Columns<'r>,
    backward: Columns<'r>,
    spans: Vec<Span>,
}

impl<'r> ReadArguments<'r> {
    fn of(needs: Needs<'r>) -> Self {
        let mut arguments = Self::default();
        for key in needs.keys {
            arguments.add_point(key);
        }
        for range in needs.ranges {
            match range {
                Range::Point(key) => arguments.add_point(key),
                Range::Span { limit: 0, .. } => {}
                Range::Span { start, end, limit, reverse } => {
                    let Self { forward, backward, spans, .. } = &mut arguments;
                    let Columns(starts, ends, limits, places) =
                        if *reverse { backward } else { forward };
                    starts.push(start.as_bytes());
                    ends.push(end.as_bytes());
                    limits.push(i64::try_from(*limit).unwrap_or(i64::MAX));
                    places.push(i64::try_from(spans.len()).unwrap_or(0));
                    let (start, end) = (start.as_bytes().to_vec(), end.as_bytes().to_vec());
                    let rows = Vec::new();
                    spans.push(Span { start, end, reverse: *reverse, limit: *limit, rows });
                }
            }
        }
        arguments
    }

    fn add_point(&mut self, key: &'r Key) {
        self.key_places.push(NO_SPAN);
        self.keys.push(key.as_bytes());
    }

    fn call<'a>(&'a self, db: &'a i64, now_ms: &'a Option<i64>) -> Call<'a> {
        let mut values: Vec<&Value<'_>> = vec![db, now_ms, &self.keys, &self.key_places];
        if self.spans.is_empty() {
            return (POINTS, values);
        }
        for Columns(starts, ends, limits, places) in [&self.forward, &self.backward] {
            values.extend([starts as &Value<'_>, ends, limits, places]);
        }
        (FETCH, values)
    }

    fn answered(self, rows: Vec<Row>) -> Result<Prefetched> {
        let Self { keys, mut spans, .. } = self;
        let version = Cells::of("databases", rows.first().ok_or_else(missing)?).get(6)?;
        let mut points: HashMap<_, _> = keys.iter().map(|key| (key.to_vec(), None)).collect();
        for row in rows {
            let cells = Cells::of("entries", &row);
            let Some(place) = cells.get::<Option<i64>>(5)? else { continue };
            match usize::try_from(place).ok().and_then(|place| spans.get_mut(place)) {
                Some(span) => span.rows.push(row),
                None => {
                    let key: Vec<u8> = cells.get(0)?;
                    points.insert(key, Some(row));
                }
            }
        }
        Ok(Prefetched { version, points, spans })
    }
}

impl Prefetched {
    /// Fetches; on another connection if one turns out to be lost.
    pub(super) fn fetch(shared: &Shared, now_ms: Option<i64>, needs: Needs<'_>) -> Result<Self> {
        let arguments = ReadArguments::of(needs);
        let rows = read_once(shared, arguments.call(&shared.db, &now_ms))?;
        arguments.answered(rows)
    }

    /// Fetches in an open transaction, from its snapshot and at its time.
    pub(super) fn fetch_within(
        link: &Link,
        db: i64,
        now_ms: i64,
        needs: Needs<'_>,
    ) -> Result<Self> {
        let arguments = ReadArguments::of(needs);
        let rows = link.query(arguments.call(&db, &Some(now_ms)))?;
        arguments.answered(rows)
    }

    /// The entry of a key, if the read has named it.
    pub(super) fn entry(&self, key: &[u8]) -> Option<Option<&Row>> {
        self.points.get(key).map(Option::as_ref)
    }

    /// The entries of a span, if the read has named it: with the highest limit that it was named with, which has those
    /// of the others.
    pub(super) fn span(&self, walk: &Walk<'_>) -> Option<&Span> {
        let same = |span: &&Span| {
            span.start == walk.start && span.end == walk.end && span.reverse == walk.reverse
        };
        self.spans.iter().filter(same).max_by_key(|span| span.limit)
    }
}
