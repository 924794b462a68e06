//! Entries in the writer's transaction: fetched together before the batch, changed together after it.

use std::collections::HashMap;
use std::sync::Arc;

use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::Cells;
use super::database::DatabaseRow;
use super::history::Replaced;
use super::line::{Call, Value};
use super::link::Link;
use super::logged_keys::LoggedKeys;
use super::pages::{PageRequest, encoding, page, walk_pages};
use super::value_entries::{self, IndexChanges, Points, end_of};
use openkv_core::commit::{Base, EntryTable, OldRow, RowEffect, WriteNeeds};
use openkv_core::index::{ValueIndex, changes};
use openkv_core::model::{Change, EncodedValue, Encoding, Key, Result, Seen, Step, Walk};

/// The entries of keys, in any order; values only of those that ask for theirs.
pub(super) const FETCH: &str = "\
SELECT u.i, e.version, e.expires_ms, e.encoding, CASE WHEN u.with_value THEN e.v END AS v \
FROM unnest($2::bytea[], $3::bool[]) WITH ORDINALITY AS u(k, with_value, i) \
CROSS JOIN LATERAL (SELECT version, expires_ms, encoding, v FROM openkv.entries \
WHERE db = $1 AND k = u.k LIMIT 1) AS e";

const UPSERT: &str = "\
INSERT INTO openkv.entries (db, k, v, encoding, version, expires_ms) \
SELECT $1, u.k, u.v, u.encoding, u.version, u.expires_ms \
FROM unnest($2::bytea[], $3::bytea[], $4::int2[], $5::int8[], $6::int8[]) \
AS u(k, v, encoding, version, expires_ms) \
ON CONFLICT (db, k) DO UPDATE SET v = excluded.v, encoding = excluded.encoding, \
version = excluded.version, expires_ms = excluded.expires_ms";

/// The rows are found by the subquery, one look-up in the index for each key, and changed by their
/// place. As a join the planner may read all entries of the database, if it has no statistics.
const DELETE: &str = "\
DELETE FROM openkv.entries AS e USING unnest($2::bytea[]) AS u(k) CROSS JOIN LATERAL (\
SELECT ctid FROM openkv.entries WHERE db = $1 AND k = u.k LIMIT 1) AS f WHERE e.ctid = f.ctid";

const SET_EXPIRY: &str = "\
UPDATE openkv.entries AS e SET expires_ms = u.expires_ms \
FROM unnest($2::bytea[], $3::int8[]) AS u(k, expires_ms) CROSS JOIN LATERAL (\
SELECT ctid FROM openkv.entries WHERE db = $1 AND k = u.k LIMIT 1) AS f WHERE e.ctid = f.ctid";

/// A table of its own, so that entries that never expire are in no second index.
const SET_EXPIRIES: &str = "\
INSERT INTO openkv.expiries (db, k, at_ms) SELECT $1, u.k, u.at_ms \
FROM unnest($2::bytea[], $3::int8[]) AS u(k, at_ms) \
ON CONFLICT (db, k) DO UPDATE SET at_ms = excluded.at_ms";

const CLEAR_EXPIRIES: &str = "\
DELETE FROM openkv.expiries AS x USING unnest($2::bytea[]) AS u(k) CROSS JOIN LATERAL (\
SELECT ctid FROM openkv.expiries WHERE db = $1 AND k = u.k LIMIT 1) AS f WHERE x.ctid = f.ctid";

/// The values only if `$4` says so: for the indexes that have them.
const SWEEP: &str = "\
WITH due AS MATERIALIZED (SELECT ctid AS place, k FROM openkv.expiries \
WHERE db = $1 AND at_ms <= $2 ORDER BY at_ms, k LIMIT $3), \
gone AS (DELETE FROM openkv.expiries AS x USING due WHERE x.ctid = due.place) \
DELETE FROM openkv.entries AS e USING due CROSS JOIN LATERAL (\
SELECT ctid FROM openkv.entries WHERE db = $1 AND k = due.k LIMIT 1) AS f \
WHERE e.ctid = f.ctid RETURNING e.k, e.encoding, CASE WHEN $4::bool THEN e.v END AS v";

/// As [`SWEEP`], with what the commit `$5` replaces by it.
const SWEEP_AND_KEEP: &str = "\
WITH due AS MATERIALIZED (SELECT ctid AS place, k FROM openkv.expiries \
WHERE db = $1 AND at_ms <= $2 ORDER BY at_ms, k LIMIT $3), \
gone AS (DELETE FROM openkv.expiries AS x USING due WHERE x.ctid = due.place), \
swept AS (DELETE FROM openkv.entries AS e USING due CROSS JOIN LATERAL (\
SELECT ctid FROM openkv.entries WHERE db = $1 AND k = due.k LIMIT 1) AS f \
WHERE e.ctid = f.ctid RETURNING e.k, e.version, e.encoding, e.v, e.expires_ms), \
kept AS (INSERT INTO openkv.past (db, k, until, version, encoding, v, expires_ms) \
SELECT $1, k, $5, version, encoding, v, expires_ms FROM swept) \
SELECT k, encoding, CASE WHEN $4::bool THEN v END AS v FROM swept";

/// The known state of an entry before the batch; also of one that has expired.
enum Fetched {
    Absent,
    /// Without its value.
    Version {
        version: u64,
        expire_at_ms: Option<i64>,
    },
    Row(OldRow),
}

impl Fetched {
    fn expire_at_ms(&self) -> Option<i64> {
        match self {
            Self::Absent => None,
            Self::Version { expire_at_ms, .. } => *expire_at_ms,
            Self::Row(row) => row.expire_at_ms,
        }
    }
}

/// The arguments of [`FETCH`].
#[derive(Default)]
pub(super) struct FetchArguments {
    keys: Vec<Key>,
    bytes: Vec<Vec<u8>>,
    with_value: Vec<bool>,
}

impl FetchArguments {
    pub(super) fn of(needs: impl IntoIterator<Item = (Key, bool)>) -> Self {
        let mut arguments = Self::default();
        for (key, with_value) in needs {
            arguments.bytes.push(key.as_bytes().to_vec());
            arguments.keys.push(key);
            arguments.with_value.push(with_value);
        }
        arguments
    }

    pub(super) fn is_empty(&self) -> bool {
        self.keys.is_empty()
    }

    pub(super) fn call<'a>(&'a self, db: &'a i64) -> Call<'a> {
        (FETCH, vec![db, &self.bytes, &self.with_value])
    }
}

/// The entries of the database, inside a transaction of the writer.
pub(super) struct Entries {
    link: Link,
    db: i64,
    now_ms: i64,
    fetched: HashMap<Key, Fetched>,
    last_uuid: Option<Uuid>,
    changes: EntryChanges,
    logged: LoggedKeys,
    /// Whether the database keeps a history.
    remembers: bool,
    past: Replaced,
    /// Rows of the history that are inserted already.
    past_rows: usize,
    indexes: Arc<[ValueIndex]>,
    /// Values of unique indexes that were looked for.
    points: Points,
    /// The entries under value indexes that the batch has changed, with their new values.
    covered: Vec<(Key, Option<EncodedValue>)>,
    index_changes: IndexChanges,
}

/// The changes of entries by the batch, as columns of the statements.
#[derive(Default)]
pub(super) struct EntryChanges {
    put: Columns,
    removed: Vec<Vec<u8>>,
    moved: (Vec<Vec<u8>>, Vec<Option<i64>>),
    expiries: (Vec<Vec<u8>>, Vec<i64>),
    /// Keys whose entries do not expire, or are gone.
    lasting: Vec<Vec<u8>>,
}

#[derive(Default)]
struct Columns {
    keys: Vec<Vec<u8>>,
    values: Vec<Vec<u8>>,
    encodings: Vec<i16>,
    versions: Vec<i64>,
    expiries: Vec<Option<i64>>,
}

impl EntryChanges {
    /// Adds the effect of a batch on a key.
    pub(super) fn apply(&mut self, key: &Key, effect: RowEffect) {
        let EntryChanges { put, removed, moved, expiries, lasting } = self;
        let bytes = key.as_bytes().to_vec();
        match effect.expire_at_ms() {
            Some(end) => {
                expiries.0.push(bytes.clone());
                expiries.1.push(end);
            }
            None => lasting.push(bytes.clone()),
        }
        match effect {
            RowEffect::Removed => removed.push(bytes),
            RowEffect::Stored(row) => {
                put.keys.push(bytes);
                put.values.push(row.value.bytes);
                put.encodings.push(i16::from(row.value.encoding.id()));
                put.versions.push(row.version.cast_signed());
                put.expiries.push(row.expire_at_ms);
            }
            RowEffect::ExpirySet { expire_at_ms, .. } => {
                moved.0.push(bytes);
                moved.1.push(expire_at_ms);
            }
        }
    }

    /// The columns of the entries that are set, the keys of those that are deleted, the keys without an
    /// expiry, and the expiries; `None` if there are other changes.
    pub(super) fn sets_and_deletions(&self) -> Option<[&Value<'_>; 9]> {
        let Self { put, removed, moved, expiries, lasting } = self;
        let Columns { keys, values, encodings, versions, expiries: ends } = put;
        let columns: [&Value<'_>; 9] =
            [keys, values, encodings, versions, ends, removed, lasting, &expiries.0, &expiries.1];
        moved.0.is_empty().then_some(columns)
    }

    /// Adds the statements that carry them out.
    pub(super) fn calls<'a>(&'a self, db: &'a i64, calls: &mut Vec<Call<'a>>) {
        let Self { put, removed, moved, expiries, lasting } = self;
        if !put.keys.is_empty() {
            let Columns { keys, values, encodings, versions, expiries } = put;
            calls.push((UPSERT, vec![db, keys, values, encodings, versions, expiries]));
        }
        if !removed.is_empty() {
            calls.push((DELETE, vec![db, removed]));
        }
        if !moved.0.is_empty() {
            calls.push((SET_EXPIRY, vec![db, &moved.0, &moved.1]));
        }
        if !lasting.is_empty() {
            calls.push((CLEAR_EXPIRIES, vec![db, lasting]));
        }
        if !expiries.0.is_empty() {
            calls.push((SET_EXPIRIES, vec![db, &expiries.0, &expiries.1]));
        }
    }
}

impl Entries {
    pub(super) fn new(link: Link, db: i64, row: &DatabaseRow, indexes: Arc<[ValueIndex]>) -> Self {
        Self {
            indexes,
            points: Points::default(),
            covered: Vec::new(),
            index_changes: IndexChanges::default(),
            link,
            db,
            now_ms: row.now_ms,
            fetched: HashMap::new(),
            last_uuid: row.last_uuid,
            changes: EntryChanges::default(),
            logged: LoggedKeys::default(),
            remembers: row.log_parts.has_history(),
            past: Replaced::default(),
            past_rows: 0,
        }
    }

    /// Takes the answer of [`FetchArguments::call`].
    pub(super) fn learn(&mut self, arguments: FetchArguments, rows: &[Row]) -> Result<()> {
        for key in &arguments.keys {
            self.fetched.insert(key.clone(), Fetched::Absent);
        }
        for row in rows {
            let at: i64 = Cells::of("entries", row).get(0)?;
            let at = usize::try_from(at - 1).unwrap_or(usize::MAX);
            let Some(key) = arguments.keys.get(at) else { continue };
            let fetched = fetched_of(row)?;
            self.fetched.insert(key.clone(), fetched);
        }
        Ok(())
    }

    /// Takes the entries of values that were looked for.
    pub(super) fn learn_points(&mut self, points: Points) {
        self.points = points;
    }

    fn fetch(&mut self, needs: WriteNeeds) -> Result<()> {
        let arguments = FetchArguments::of(needs);
        let rows = self.link.query(arguments.call(&self.db))?;
        self.learn(arguments, &rows)
    }

    /// The entry of a key as it is stored, also if it has expired.
    fn stored(&mut self, key: &Key, with_value: bool) -> Result<&Fetched> {
        let known = match self.fetched.get(key) {
            None => false,
            Some(Fetched::Version { .. }) => !with_value,
            Some(Fetched::Absent | Fetched::Row(_)) => true,
        };
        if !known {
            let mut needs = WriteNeeds::default();
            needs.add(key, with_value);
            self.fetch(needs)?;
        }
        Ok(self.fetched.get(key).unwrap_or(&Fetched::Absent))
    }

    /// As [`Entries::stored`]; absent if it has expired.
    fn alive(&mut self, key: &Key, with_value: bool) -> Result<&Fetched> {
        let now_ms = self.now_ms;
        let stored = self.stored(key, with_value)?;
        let has_expired = stored.expire_at_ms().is_some_and(|end| end <= now_ms);
        Ok(if has_expired { &Fetched::Absent } else { stored })
    }

    /// Derives the changes of the value indexes from the values before the batch and those that it stores. Must
    /// be called before the changes of the entries are sent.
    pub(super) fn derive_index_changes(&mut self) -> Result<()> {
        let covered = std::mem::take(&mut self.covered);
        let mut unknown = WriteNeeds::default();
        for (key, _) in &covered {
            if !matches!(self.fetched.get(key), Some(Fetched::Absent | Fetched::Row(_))) {
                unknown.add(key, true);
            }
        }
        if !unknown.is_empty() {
            self.fetch(unknown)?;
        }
        for (key, new) in &covered {
            let old = match self.fetched.get(key) {
                Some(Fetched::Row(row)) => Some(parts(&row.value)),
                None | Some(Fetched::Absent | Fetched::Version { .. }) => None,
            };
            let new = new.as_ref().map(parts);
            let Self { indexes, index_changes, .. } = self;
            changes(indexes, key.as_bytes(), old, new, &mut |id, change| {
                index_changes.push(id, change);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The changes of value indexes to write.
    pub(super) fn take_index_changes(&mut self) -> IndexChanges {
        std::mem::take(&mut self.index_changes)
    }

    /// The changes to write.
    pub(super) fn take_changes(&mut self) -> EntryChanges {
        std::mem::take(&mut self.changes)
    }

    /// The keys whose entries the batch has changed.
    pub(super) fn take_logged(&mut self) -> LoggedKeys {
        std::mem::take(&mut self.logged)
    }

    /// What the batch replaces and has not inserted yet, and the number of all that it replaces.
    pub(super) fn take_past(&mut self) -> (Replaced, usize) {
        let rows = self.past_rows + self.past.len();
        (std::mem::take(&mut self.past), rows)
    }

    /// The value indexes of the database.
    pub(super) fn indexes(&self) -> &Arc<[ValueIndex]> {
        &self.indexes
    }

    /// The last UUID, after the batch.
    pub(super) fn uuid(&self) -> Option<Uuid> {
        self.last_uuid
    }

    fn flush(&mut self) -> Result<()> {
        self.derive_index_changes()?;
        let index_changes = self.take_index_changes();
        let (changes, past) = (self.take_changes(), std::mem::take(&mut self.past));
        self.past_rows += past.len();
        let mut calls = Vec::new();
        past.calls(&self.db, &mut calls);
        changes.calls(&self.db, &mut calls);
        index_changes.calls(&self.db, &mut calls);
        self.link.run(&calls).map(drop)
    }
}

fn fetched_of(row: &Row) -> Result<Fetched> {
    let cells = Cells::of("entries", row);
    let (version, expire_at_ms) = (cells.unsigned(1)?, cells.get(2)?);
    let Some(bytes) = cells.get::<Option<&[u8]>>(4)? else {
        return Ok(Fetched::Version { version, expire_at_ms });
    };
    let value = EncodedValue { encoding: encoding(cells.get(3)?)?, bytes: bytes.to_vec() };
    Ok(Fetched::Row(OldRow { version, value, expire_at_ms }))
}

fn parts(value: &EncodedValue) -> (Encoding, &[u8]) {
    (value.encoding, &value.bytes)
}

impl Base for Entries {
    fn version(&mut self, key: &Key) -> Result<Option<u64>> {
        Ok(match self.alive(key, false)? {
            Fetched::Absent => None,
            Fetched::Version { version, .. } => Some(*version),
            Fetched::Row(row) => Some(row.version),
        })
    }

    fn row(&mut self, key: &Key) -> Result<Option<OldRow>> {
        Ok(match self.alive(key, true)? {
            Fetched::Row(row) => Some(row.clone()),
            Fetched::Absent | Fetched::Version { .. } => None,
        })
    }

    fn prefetch(&mut self, keys: &[Key]) -> Result<()> {
        let mut unknown = WriteNeeds::default();
        for key in keys.iter().filter(|key| !self.fetched.contains_key(*key)) {
            unknown.add(key, false);
        }
        if unknown.is_empty() { Ok(()) } else { self.fetch(unknown) }
    }

    fn value_indexes(&self) -> Option<Arc<[ValueIndex]>> {
        (!self.indexes.is_empty()).then(|| self.indexes.clone())
    }

    fn walk_index(
        &mut self,
        id: i64,
        (lo, hi): (&[u8], &[u8]),
        visit: &mut dyn FnMut(&[u8]) -> bool,
    ) -> Result<()> {
        let point = self.points.get(&(id, lo.to_vec())).filter(|_| hi == end_of(lo));
        if let Some(entries) = point {
            let _ended = entries.iter().all(|entry| visit(entry));
            return Ok(());
        }
        value_entries::walk(&self.link, (self.db, id), (lo, hi), false, visit)
    }

    fn walk(&mut self, walk: Walk<'_>, visit: &mut dyn FnMut(Seen<'_>) -> Step) -> Result<()> {
        let (db, now_ms) = (self.db, self.now_ms);
        let mut next = |request: &PageRequest| page(&self.link, db, now_ms, request);
        walk_pages(walk, &mut next, visit)
    }

    fn last_uuid(&mut self) -> Result<Option<Uuid>> {
        Ok(self.last_uuid)
    }
}

impl EntryTable for Entries {
    fn apply(&mut self, key: &Key, effect: RowEffect) -> Result<()> {
        self.logged.add(key);
        if self.indexes.iter().any(|index| index.is_kept_for(key.as_bytes())) {
            match &effect {
                RowEffect::Removed => self.covered.push((key.clone(), None)),
                RowEffect::Stored(row) => self.covered.push((key.clone(), Some(row.value.clone()))),
                RowEffect::ExpirySet { .. } => {}
            }
        }
        self.changes.apply(key, effect);
        Ok(())
    }

    fn set_last_uuid(&mut self, uuid: Uuid) -> Result<()> {
        self.last_uuid = Some(uuid);
        Ok(())
    }

    fn keep_past(&mut self, changes: &[Change]) -> Result<()> {
        if self.remembers {
            self.past = Replaced::of(changes);
        }
        Ok(())
    }

    fn sweep(&mut self, max: usize, now_ms: i64, version: u64) -> Result<Vec<Key>> {
        if max == 0 {
            return Ok(Vec::new());
        }
        self.flush()?;
        let max = i64::try_from(max).unwrap_or(i64::MAX);
        let version = version.cast_signed();
        let is_indexed = !self.indexes.is_empty();
        let mut call: Call<'_> = (SWEEP, vec![&self.db, &now_ms, &max, &is_indexed]);
        if self.remembers {
            call.0 = SWEEP_AND_KEEP;
            call.1.push(&version);
        }
        let rows = self.link.query(call)?;
        self.past_rows += if self.remembers { rows.len() } else { 0 };
        let mut swept = Vec::with_capacity(rows.len());
        for row in &rows {
            let cells = Cells::of("entries", row);
            let key = Key::from_encoded(cells.get(0)?);
            if let Some(value) = cells.get::<Option<&[u8]>>(2)? {
                let old = Some((encoding(cells.get(1)?)?, value));
                let Self { indexes, index_changes, .. } = self;
                changes(indexes, key.as_bytes(), old, None, &mut |id, change| {
                    index_changes.push(id, change);
                    Ok(())
                })?;
            }
            self.logged.add(&key);
            swept.push(key);
        }
        Ok(swept)
    }
}
