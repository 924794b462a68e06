//! The definitions of value indexes, and the steps that build them.
//!
//! A definition is stored in a transaction that has the lock of the database's row, also of a database that another
//! process leads. The row counts the changes of the list, so that every transaction knows whether the indexes that
//! its process knows are those of the database. A change raises the epoch: the batches under way of a leader then
//! fail their fence, and the leader decides them again with the indexes as they are.
//!
//! A unique index is built in two passes. The first one adds entries, and each step fails if a value of its entries is
//! there twice, so a value has few entries. A batch that a leader has under way can miss an entry that a step adds.
//! Between the passes the epoch rises, so from then on every commit is decided over the whole index, and the second
//! pass finds whether a value is there twice.

use std::collections::BTreeSet;
use std::sync::Arc;

use parking_lot::Mutex;
use tokio_postgres::Row;

use super::cells::Cells;
use super::entries::Entries;
use super::indexes;
use super::line::Call;
use super::link::Link;
use super::pages::encoding;
use super::value_entries::{IndexChanges, PointArguments, delete_some, walk};
use crate::fulltext::{Creation, decide_value};
use openkv_core::commit::Base;
use openkv_core::index::{ValueIndex, changes};
use openkv_core::model::{
    BuildFailure, Encoding, Error, INDEX_BUILD_BYTES_MAX, INDEX_BUILD_ROWS_MAX, IndexChoice, Key,
    OrderPath, POSTGRES_EMPTY_STEP_ROWS, Result, ValueIndexInfo, ValueIndexRequest, ValueIndexSpec,
    ValueIndexState,
};

/// Bits of `flags`; `descending` has a bit for each path.
const UNIQUE: i16 = 1;
const MULTI: i16 = 2;
const SPARSE: i16 = 4;

pub(super) const LIST: &str = "\
SELECT id, name, prefix, paths, descending, flags, coalesce(progress, verified), scanned, failed, failed_other \
FROM openkv.value_indexes WHERE db = $1 AND NOT dropped ORDER BY id";

const INSERT: &str = "\
INSERT INTO openkv.value_indexes (db, id, name, prefix, paths, descending, flags, progress) \
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";

const DROP: &str = "UPDATE openkv.value_indexes SET dropped = true WHERE db = $1 AND id = $2";
const DELETE: &str = "DELETE FROM openkv.value_indexes WHERE db = $1 AND id = $2";

const ANY: &str = "SELECT 1 FROM openkv.entries WHERE db = $1 AND k > $2 AND k < $3 LIMIT 1";

/// The index whose turn it is.
const SITE: &str = "\
SELECT id, progress, verified, dropped FROM openkv.value_indexes \
WHERE db = $1 AND (dropped OR progress IS NOT NULL OR verified IS NOT NULL) ORDER BY id LIMIT 1";

/// Entries behind a key, also expired ones: the time of another process may be earlier. At most `$4`, and none
/// behind `$5` bytes.
const OLDER: &str = "\
SELECT k, version, encoding, expires_ms, v FROM (SELECT e.*, \
sum(octet_length(v)) OVER (ORDER BY k) - octet_length(v) AS before \
FROM (SELECT k, version, encoding, expires_ms, v FROM openkv.entries \
WHERE db = $1 AND k > $2 AND k < $3 ORDER BY k LIMIT $4) AS e) AS p WHERE before < $5 ORDER BY k";

const SET_PROGRESS: &str = "\
UPDATE openkv.value_indexes SET progress = $3, verified = $4, scanned = scanned + $5, failed = $6, \
failed_other = $7 WHERE db = $1 AND id = $2";

/// Raises the epoch of a led database, and the number of changes by `$2`.
const RAISE: &str = "\
WITH d AS (UPDATE openkv.databases SET indexes = indexes + $2, \
epoch = epoch + CASE WHEN leader IS NULL THEN 0 ELSE 1 END WHERE id = $1 \
RETURNING id, epoch, version, leader) \
INSERT INTO openkv.epochs (db, epoch, start) SELECT id, epoch, version FROM d WHERE leader IS NOT NULL";

/// The value indexes of a database after so many changes of their list.
#[derive(Clone, Default)]
pub(super) struct ValueCatalog {
    revision: i64,
    pub(super) indexes: Arc<[ValueIndex]>,
}

/// The newest value indexes that this process knows.
#[derive(Default)]
pub(super) struct KnownIndexes(Mutex<ValueCatalog>);

impl KnownIndexes {
    pub(super) fn newest(&self) -> Arc<[ValueIndex]> {
        self.0.lock().indexes.clone()
    }

    /// The value indexes of a snapshot, in which their list has changed so often: those that are known, or else
    /// those of the answer to [`LIST`].
    pub(super) fn of_snapshot(
        &self,
        revision: i64,
        list: impl FnOnce() -> Result<Vec<ValueIndex>>,
    ) -> Result<Arc<[ValueIndex]>> {
        // It may be older than what another thread has read meanwhile.
        self.at(revision, list, |known| known < revision)
    }

    /// As [`KnownIndexes::of_snapshot`], for a transaction that has the lock of the database's row. The known list may
    /// have changed more often: a standby that has taken over may lack the last changes.
    pub(super) fn of_locked(
        &self,
        revision: i64,
        list: impl FnOnce() -> Result<Vec<ValueIndex>>,
    ) -> Result<Arc<[ValueIndex]>> {
        self.at(revision, list, |_| true)
    }

    /// `replaces`: whether the list replaces the known one, which has changed so often.
    fn at(
        &self,
        revision: i64,
        list: impl FnOnce() -> Result<Vec<ValueIndex>>,
        replaces: impl FnOnce(i64) -> bool,
    ) -> Result<Arc<[ValueIndex]>> {
        let known = self.0.lock().clone();
        if known.revision == revision {
            return Ok(known.indexes);
        }
        let indexes: Arc<[ValueIndex]> = match revision {
            0 => Arc::default(),
            _ => list()?.into(),
        };
        let mut known = self.0.lock();
        if replaces(known.revision) {
            *known = ValueCatalog { revision, indexes: indexes.clone() };
        }
        Ok(indexes)
    }

    /// Takes the list that a transaction with the lock of the database's row has read.
    pub(super) fn replace(&self, revision: i64, indexes: &Arc<[ValueIndex]>) {
        *self.0.lock() = ValueCatalog { revision, indexes: indexes.clone() };
    }
}

/// The value indexes that an answer to [`LIST`] has.
///
/// # Errors
/// `Corrupt` for a row of another form.
pub(super) fn read(rows: &[Row]) -> Result<Vec<ValueIndex>> {
    rows.iter().map(|row| ValueIndex::new(info(row)?)).collect()
}

fn info(row: &Row) -> Result<ValueIndexInfo> {
    let cells = Cells::of("value_indexes", row);
    let paths: Vec<&[u8]> = cells.get(3)?;
    let (descending, flags): (i16, i16) = (cells.get(4)?, cells.get(5)?);
    let path = |(at, path): (usize, &[u8])| OrderPath {
        path: String::from_utf8_lossy(path).into_owned(),
        descending: descending & (1 << at) != 0,
    };
    let spec = ValueIndexSpec {
        name: cells.text(1)?,
        prefix: Key::from_encoded(cells.get::<&[u8]>(2)?.to_vec()),
        on: paths.into_iter().enumerate().map(path).collect(),
        unique: flags & UNIQUE != 0,
        multi: flags & MULTI != 0,
        sparse: flags & SPARSE != 0,
    };
    let key = |at| Ok::<_, Error>(cells.get::<Option<&[u8]>>(at)?.map(<[u8]>::to_vec));
    let key = |at| Ok::<_, Error>(key(at)?.map(Key::from_encoded));
    let state = match (key(8)?, cells.get::<Option<&[u8]>>(6)?) {
        (Some(failed), _) => ValueIndexState::Failed(BuildFailure { key: failed, other: key(9)? }),
        (None, Some(_)) => ValueIndexState::Building,
        (None, None) => ValueIndexState::Ready,
    };
    Ok(ValueIndexInfo { id: cells.get(0)?, spec, state, scanned: cells.unsigned(7)? })
}

/// Whether a value index has a name.
pub(super) fn has_name(link: &Link, db: i64, name: &str) -> Result<bool> {
    let listed = read(&link.query((LIST, vec![&db]))?)?;
    Ok(listed.iter().any(|index| index.spec().name == name))
}

/// Stores a definition, or finds the same one. `revision`: the number of changes of the list so far.
pub(super) fn create(
    link: &Link,
    (db, revision): (i64, i64),
    request: &ValueIndexRequest,
) -> Result<ValueIndexInfo> {
    let ValueIndexRequest { spec, .. } = request;
    let listed = read(&link.query((LIST, vec![&db]))?)?;
    let others = indexes::list(link, db)?;
    let is_taken = others.iter().any(|other| other.spec.name == spec.name);
    let same = listed.iter().find(|index| index.spec().name == spec.name);
    match (decide_value(listed.iter().map(ValueIndex::spec), is_taken, request)?, same) {
        (Creation::Exists, Some(same)) => return Ok(same.info.clone()),
        (Creation::Exists, None) => return Err(Error::internal("an index is not there")),
        (Creation::Replaces, Some(same)) => {
            link.query((DROP, vec![&db, &same.info.id]))?;
        }
        (Creation::Creates | Creation::Replaces, _) => {}
    }
    let prefix = spec.prefix.as_bytes();
    let behind = [prefix, &[u8::MAX]].concat();
    let any = !link.query((ANY, vec![&db, &prefix, &behind]))?.is_empty();
    let state = if any { ValueIndexState::Building } else { ValueIndexState::Ready };
    // The numbers of dropped indexes are not used again: their entries are deleted later.
    let info = ValueIndexInfo { id: revision + 1, spec: spec.clone(), state, scanned: 0 };
    ValueIndex::new(info.clone())?;
    let paths: Vec<&[u8]> = spec.on.iter().map(|on| on.path.as_bytes()).collect();
    let bit = |is_set: bool, bit: i16| if is_set { bit } else { 0 };
    let directions = spec.on.iter().enumerate();
    let descending = directions.fold(0, |all, (at, on)| all | bit(on.descending, 1 << at));
    let flags = bit(spec.unique, UNIQUE) | bit(spec.multi, MULTI) | bit(spec.sparse, SPARSE);
    let (name, progress) = (spec.name.as_bytes(), any.then_some(prefix));
    let row: Call<'_> =
        (INSERT, vec![&db, &info.id, &name, &prefix, &paths, &descending, &flags, &progress]);
    link.query(row)?;
    raise(link, db, true)?;
    Ok(info)
}

/// Removes a definition; `false` if there is none of this name. Steps of building delete the entries.
pub(super) fn remove(link: &Link, db: i64, choice: &IndexChoice) -> Result<bool> {
    let IndexChoice::Name(name) = choice else { return Ok(false) };
    let listed = read(&link.query((LIST, vec![&db]))?)?;
    let Some(index) = listed.iter().find(|index| index.spec().name == *name) else {
        return Ok(false);
    };
    link.query((DROP, vec![&db, &index.info.id]))?;
    raise(link, db, true)?;
    Ok(true)
}

fn raise(link: &Link, db: i64, changes_list: bool) -> Result<()> {
    link.query((RAISE, vec![&db, &i64::from(changes_list)])).map(drop)
}

/// An entry that is older than an index.
struct Older<'r> {
    key: Key,
    encoding: Encoding,
    value: &'r [u8],
    is_alive: bool,
}

impl<'r> Older<'r> {
    fn of(row: &'r Row, now_ms: i64) -> Result<Self> {
        let cells = Cells::of("entries", row);
        Ok(Self {
            key: Key::from_encoded(cells.get::<&[u8]>(0)?.to_vec()),
            encoding: encoding(cells.get(2)?)?,
            value: cells.get(4)?,
            is_alive: cells.get::<Option<i64>>(3)?.is_none_or(|end| end > now_ms),
        })
    }

    /// Whether its value cannot be in a unique index.
    fn is_unfit(&self, index: &ValueIndex) -> bool {
        let Self { encoding, value, is_alive, .. } = self;
        index.spec().unique && *is_alive && index.unique_values(*encoding, value).is_err()
    }
}

/// One step of building an index, or of deleting the entries of a dropped one. Returns whether more is to be done.
pub(super) fn build(link: &Link, db: i64, entries: &mut Entries, now_ms: i64) -> Result<bool> {
    let rows = link.query((SITE, vec![&db]))?;
    let Some(row) = rows.first() else { return Ok(false) };
    let cells = Cells::of("value_indexes", row);
    let id: i64 = cells.get(0)?;
    if cells.get::<bool>(3)? {
        let max = usize::try_from(POSTGRES_EMPTY_STEP_ROWS).unwrap_or(1);
        if !delete_some(link, (db, id), max)? {
            link.query((DELETE, vec![&db, &id]))?;
        }
        return Ok(true);
    }
    let listed = read(&link.query((LIST, vec![&db]))?)?;
    let index = listed.into_iter().find(|index| index.info.id == id);
    let index = index.ok_or_else(|| Error::internal("an index to build is not there"))?;
    let step = match (cells.get::<Option<&[u8]>>(1)?, cells.get::<Option<&[u8]>>(2)?) {
        (Some(after), _) => add(link, db, entries, &index, (after, now_ms))?,
        (None, Some(from)) => verify(link, db, entries, &index, from)?,
        (None, None) => return Err(Error::internal("an index to build is complete")),
    };
    let Built { progress, verified, scanned, failed } = step;
    let key = failed.as_ref().map(|failed| failed.key.as_bytes());
    let other = failed.as_ref().and_then(|failed| Some(failed.other.as_ref()?.as_bytes()));
    let call: Call<'_> =
        (SET_PROGRESS, vec![&db, &id, &progress, &verified, &scanned, &key, &other]);
    link.query(call)?;
    match (&progress, &verified) {
        (None, None) => raise(link, db, true)?,
        // The first pass has ended.
        (None, Some(from)) if from.is_empty() => raise(link, db, false)?,
        (Some(_), _) | (None, Some(_)) => {}
    }
    Ok(true)
}

/// What a step of building has done.
#[derive(Default)]
struct Built {
    /// The last key whose entries are added; `None`: all are.
    progress: Option<Vec<u8>>,
    /// The first entry that is not verified; `None`: there is none.
    verified: Option<Vec<u8>>,
    scanned: i64,
    failed: Option<BuildFailure>,
}

/// Adds the entries of older entries of the database, and looks for two with one value.
fn add(
    link: &Link,
    db: i64,
    entries: &mut Entries,
    index: &ValueIndex,
    (after, now_ms): (&[u8], i64),
) -> Result<Built> {
    let before = [index.spec().prefix.as_bytes(), &[u8::MAX]].concat();
    let rows_max = i64::try_from(INDEX_BUILD_ROWS_MAX).unwrap_or(i64::MAX);
    let bytes_max = i64::try_from(INDEX_BUILD_BYTES_MAX).unwrap_or(i64::MAX);
    let rows = link.query((OLDER, vec![&db, &after, &before, &rows_max, &bytes_max]))?;
    let older = rows.iter().map(|row| Older::of(row, now_ms)).collect::<Result<Vec<_>>>()?;
    let scanned = i64::try_from(older.len()).unwrap_or(0);
    if let Some(unfit) = older.iter().find(|older| older.is_unfit(index)) {
        let failed = Some(BuildFailure { key: unfit.key.clone(), other: None });
        return Ok(Built { scanned, failed, ..Built::default() });
    }
    let mut added = IndexChanges::default();
    for Older { key, encoding, value, .. } in &older {
        let new = Some((*encoding, *value));
        changes(std::slice::from_ref(index), key.as_bytes(), None, new, &mut |id, change| {
            added.push(id, change);
            Ok(())
        })?;
    }
    let mut calls = Vec::new();
    added.calls(&db, &mut calls);
    link.run(&calls)?;
    if let Some(failed) = twice(entries, values_of(link, db, index, &older)?)? {
        return Ok(Built { scanned, failed: Some(failed), ..Built::default() });
    }
    let bytes: usize = older.iter().map(|older| older.value.len()).sum();
    let more = older.len() == INDEX_BUILD_ROWS_MAX || bytes >= INDEX_BUILD_BYTES_MAX;
    let last = older.last().filter(|_| more).map(|older| older.key.as_bytes().to_vec());
    let verified = (last.is_none() && index.spec().unique).then(Vec::new);
    Ok(Built { progress: last, verified, scanned, failed: None })
}

/// The keys under which the index has each value of these entries; none if it is not unique.
fn values_of(
    link: &Link,
    db: i64,
    index: &ValueIndex,
    older: &[Older<'_>],
) -> Result<Vec<Vec<Key>>> {
    if !index.spec().unique {
        return Ok(Vec::new());
    }
    let mut points = BTreeSet::new();
    for Older { encoding, value, .. } in older.iter().filter(|older| older.is_alive) {
        let values = index.unique_values(*encoding, value).unwrap_or_default();
        points.extend(values.into_iter().map(|value| (index.info.id, value)));
    }
    let points = PointArguments::of(points.into_iter().collect());
    let rows = if points.is_empty() { Vec::new() } else { link.query(points.call(&db))? };
    let key = |entry: &Vec<u8>| Some(Key::from_encoded(index.key_of(entry)?.to_vec()));
    let found = points.into_points(&rows)?;
    Ok(found.into_values().map(|entries| entries.iter().filter_map(key).collect()).collect())
}

/// Looks for a group of keys, those of one value, under which there are two entries: that whose second one is the
/// first in the order of keys.
fn twice(entries: &mut Entries, mut groups: Vec<Vec<Key>>) -> Result<Option<BuildFailure>> {
    groups.retain(|keys| keys.len() > 1);
    entries.prefetch(&groups.concat())?;
    let mut failed: Option<BuildFailure> = None;
    for mut keys in groups {
        keys.sort();
        let mut first = None;
        for key in keys {
            if entries.version(&key)?.is_none() {
                continue;
            }
            if first.is_none() {
                first = Some(key);
                continue;
            }
            if failed.as_ref().is_none_or(|old| (&key, &first) < (&old.key, &old.other)) {
                failed = Some(BuildFailure { key, other: first });
            }
            break;
        }
    }
    Ok(failed)
}

/// Looks for two entries with one value, from an entry of the index on.
fn verify(
    link: &Link,
    db: i64,
    entries: &mut Entries,
    index: &ValueIndex,
    from: &[u8],
) -> Result<Built> {
    // The keys of each value that several entries have; a value is looked at as a whole.
    let mut groups: Vec<(Vec<u8>, Vec<Key>)> = Vec::new();
    let (mut count, mut next) = (0, None);
    walk(link, (db, index.info.id), (from, &[u8::MAX]), false, &mut |entry| {
        let value = index.unique_value_of(entry);
        let goes_on = value.is_some_and(|value| groups.last().is_some_and(|last| last.0 == value));
        if count >= INDEX_BUILD_ROWS_MAX && !goes_on {
            next = Some(entry.to_vec());
            return false;
        }
        count += 1;
        let key = index.key_of(entry).map(|key| Key::from_encoded(key.to_vec()));
        if let (Some(value), Some(key)) = (value, key) {
            match groups.last_mut().filter(|_| goes_on) {
                Some((_, keys)) => keys.push(key),
                None => groups.push((value.to_vec(), vec![key])),
            }
        }
        true
    })?;
    let failed = twice(entries, groups.into_iter().map(|(_, keys)| keys).collect())?;
    let verified = next.filter(|_| failed.is_none());
    Ok(Built { verified, failed, ..Built::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(name: &str) -> Vec<ValueIndex> {
        let on = vec![OrderPath { path: "t".into(), descending: false }];
        let (name, prefix) = (name.into(), Key::from_encoded(Vec::new()));
        let spec = ValueIndexSpec { name, prefix, on, unique: false, multi: false, sparse: false };
        let state = ValueIndexState::Ready;
        vec![ValueIndex::new(ValueIndexInfo { id: 1, spec, state, scanned: 0 }).unwrap()]
    }

    fn name(indexes: &[ValueIndex]) -> &str {
        indexes.first().map_or("", |index| &index.spec().name)
    }

    /// A standby took over that lacked the last `createIndex`, and the process kept the index that was lost.
    #[test]
    fn a_list_that_a_failover_has_lost_is_forgotten_with_the_lock() {
        let known = KnownIndexes::default();
        assert_eq!(name(&known.of_locked(2, || Ok(named("lost"))).unwrap()), "lost");
        // A snapshot from before the change is no reason to forget it.
        assert_eq!(name(&known.of_snapshot(1, || Ok(named("old"))).unwrap()), "old");
        assert_eq!(name(&known.newest()), "lost");
        assert_eq!(name(&known.of_locked(1, || Ok(named("old"))).unwrap()), "old");
        assert_eq!(name(&known.newest()), "old");
        assert_eq!(name(&known.of_snapshot(2, || Ok(named("new"))).unwrap()), "new");
        assert_eq!(name(&known.newest()), "new");
        assert_eq!(name(&known.of_locked(0, || unreachable!()).unwrap()), "");
        assert_eq!(name(&known.newest()), "");
    }
}
