//! The snapshot of a moment of the past.
//!
//! Keys that a read names beforehand are fetched by one statement. Any other look-up opens a REPEATABLE READ
//! transaction that lasts until the read ends. Either of them passes only while the history reaches back to the
//! moment.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::Row as Found;

use super::SINCE;
use super::pages::walk_at;
use crate::postgres::Shared;
use crate::postgres::cells::Cells;
use crate::postgres::line::Call;
use crate::postgres::link::Link;
use crate::postgres::pages::seen;
use crate::postgres::read_transaction::{begin_read, end_read, read_once, size};
use crate::replication::{no_longer, only_entries};
use crate::{FeedState, Finder, GoesOn, Queues, ReplicationLog, Snapshot};
use openkv_core::model::{
    Error, HitVisitor, IndexInfo, Key, Moment, Needs, Range, Result, Row, Search, Seen, Stats,
    Step, Versionstamp, Walk,
};

/// The entries of keys at a moment, behind the beginning of the history. A row without a key carries only that.
/// The first columns are those of a page.
const POINTS: &str = "\
SELECT f.k, f.version, f.encoding, f.expires_ms, f.v, d.since FROM (SELECT (\
SELECT r.history_version FROM openkv.databases AS b \
JOIN openkv.replication AS r ON r.db = b.id WHERE b.id = $1 AND b.log_bits & 2 <> 0) AS since) AS d \
LEFT JOIN LATERAL (SELECT u.k, e.version, e.encoding, e.expires_ms, e.v \
FROM unnest($2::bytea[]) AS u(k) CROSS JOIN LATERAL (SELECT * FROM (\
(SELECT 0 AS o, version, encoding, expires_ms, v FROM openkv.past \
WHERE db = $1 AND k = u.k AND until > $3 ORDER BY until LIMIT 1) UNION ALL \
(SELECT 1 AS o, version, encoding, expires_ms, v FROM openkv.entries \
WHERE db = $1 AND k = u.k LIMIT 1)) AS s ORDER BY o LIMIT 1) AS e \
WHERE e.version IS NOT NULL AND (e.expires_ms IS NULL OR e.expires_ms > $4)) AS f ON true";

/// A read of a moment.
pub(in crate::postgres) struct PastSnapshot {
    shared: Arc<Shared>,
    moment: Moment,
    goes_on: Option<GoesOn>,
    known: HashMap<Vec<u8>, Option<Found>>,
    open: Option<Link>,
    /// Whether the history was found to reach back to the moment.
    is_checked: bool,
}

impl PastSnapshot {
    pub(in crate::postgres) fn new(
        shared: Arc<Shared>,
        moment: Moment,
        goes_on: Option<GoesOn>,
    ) -> Self {
        let (known, open) = (HashMap::new(), None);
        Self { shared, moment, goes_on, known, open, is_checked: false }
    }

    /// Passes if the history reaches back to the moment, also of a read that has looked at nothing.
    ///
    /// # Errors
    /// `Range` if it does not; the error of the server.
    pub(in crate::postgres) fn check(&mut self) -> Result<()> {
        if self.is_checked { Ok(()) } else { self.open().map(drop) }
    }

    /// Ends the transaction, if there is one.
    pub(in crate::postgres) fn end(self) {
        if let Some(link) = self.open {
            end_read(link);
        }
    }

    fn passes(&mut self, since: Option<i64>) -> Result<()> {
        let since = since.map(i64::cast_unsigned);
        if since.is_none_or(|since| since > self.moment.version) {
            return Err(no_longer(self.moment, since));
        }
        self.is_checked = true;
        Ok(())
    }

    fn goes_on(goes_on: Option<&GoesOn>) -> Result<()> {
        match goes_on {
            Some(goes_on) if !goes_on() => {
                Err(Error::unavailable("the call was ended; nothing was done"))
            }
            _ => Ok(()),
        }
    }

    /// The open transaction.
    fn open(&mut self) -> Result<Link> {
        Self::goes_on(self.goes_on.as_ref())?;
        if let Some(link) = &self.open {
            return Ok(link.clone());
        }
        let (link, rows) = begin_read(&self.shared, (SINCE, vec![&self.shared.db]))?;
        let since = rows.first().map(|row| Cells::of("replication", row).get(0)).transpose()?;
        self.open = Some(link.clone());
        self.passes(since.flatten())?;
        Ok(link)
    }

    /// Takes the answer to a request for points.
    fn learn(&mut self, keys: Vec<Vec<u8>>, rows: Vec<Found>) -> Result<()> {
        let since = rows.first().map(|row| Cells::of("replication", row).get(5)).transpose()?;
        self.passes(since.flatten())?;
        self.known.extend(keys.into_iter().map(|key| (key, None)));
        for row in rows {
            if let Some(key) = Cells::of("past", &row).get::<Option<Vec<u8>>>(0)? {
                self.known.insert(key, Some(row));
            }
        }
        Ok(())
    }

    /// The entry of a key at the moment.
    fn entry(&mut self, key: &[u8]) -> Result<Option<&Found>> {
        if !self.known.contains_key(key) {
            let link = self.open()?;
            let (keys, Moment { version, at_ms }) = (vec![key.to_vec()], self.moment);
            let version = version.cast_signed();
            let call: Call<'_> = (POINTS, vec![&self.shared.db, &keys, &version, &at_ms]);
            let rows = link.query(call)?;
            // A walk of keys one by one must not gather them.
            self.known.clear();
            self.learn(keys, rows)?;
        }
        Ok(self.known.get(key).and_then(Option::as_ref))
    }
}

impl Snapshot for PastSnapshot {
    fn prefetch(&mut self, needs: Needs<'_>) -> Result<()> {
        let points = needs.ranges.iter().filter_map(|range| match range {
            Range::Point(key) => Some(key),
            Range::Span { .. } => None,
        });
        let keys: Vec<Vec<u8>> =
            needs.keys.iter().chain(points).map(|key: &Key| key.as_bytes().to_vec()).collect();
        if self.open.is_some() || keys.is_empty() {
            return Ok(());
        }
        let Moment { version, at_ms } = self.moment;
        let version = version.cast_signed();
        let rows =
            read_once(&self.shared, (POINTS, vec![&self.shared.db, &keys, &version, &at_ms]))?;
        self.learn(keys, rows)
    }

    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(Row<'_>)) -> Result<bool> {
        let Some(row) = self.entry(key)? else { return Ok(false) };
        visit(seen(row)?.row);
        Ok(true)
    }

    fn expiry(&mut self, key: &[u8]) -> Result<Option<Option<i64>>> {
        self.entry(key)?.map(|row| Ok(seen(row)?.expire_at_ms)).transpose()
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        let link = self.open()?;
        let goes_on = self.goes_on.clone();
        let mut goes_on = || Self::goes_on(goes_on.as_ref());
        walk_at(walk, self.moment, (&link, self.shared.db), &mut goes_on, visit)
    }

    fn stats(&mut self) -> Result<Stats> {
        size(&self.open()?, Versionstamp::new(self.moment.version))
    }

    fn feed_state(&mut self) -> Result<FeedState> {
        Ok(FeedState::of_past(self.moment.version))
    }

    fn log(&mut self) -> Result<Box<dyn ReplicationLog + '_>> {
        Err(only_entries("history"))
    }

    fn queues(&mut self) -> Result<Box<dyn Queues + '_>> {
        Err(only_entries("queues"))
    }
}

impl Finder for PastSnapshot {
    fn indexes(&mut self, _count: bool) -> Result<Vec<IndexInfo>> {
        Err(only_entries("search"))
    }

    fn search(&mut self, _search: &Search, _visitor: &mut dyn HitVisitor) -> Result<IndexInfo> {
        Err(only_entries("search"))
    }
}
