//! The history in the writer's transaction.

use std::collections::HashMap;

use foldhash::fast::RandomState;
use rusqlite::Connection;

use super::blocks::Blocks;
use super::damaged;
use crate::sqlite::layout::SPILLED;
use crate::sqlite::statement::Statement;
use openkv_core::codec::replaced::{
    Place, Replaced, ReplacedEntry, ReplacedValue, encode_group, visit,
};
use openkv_core::model::{
    Change, ChangeKind, EncodedValue, Error, HISTORY_CHAIN_RECORDS_MAX, Key, Result,
    SPILL_ROW_BYTES_MIN,
};

/// The entry of a key after the changes of a transaction so far.
enum Earlier<'c> {
    /// That from before the transaction, with another expiry.
    Base { expire_at_ms: Option<i64> },
    /// None.
    Absent,
    /// This one.
    Stored { version: u64, value: &'c EncodedValue, expire_at_ms: Option<i64> },
}

/// A key in a transaction.
struct Touched<'c> {
    earlier: Earlier<'c>,
    /// The newest record of its chain.
    newest: Option<Place>,
}

/// The statements on the history of the writer.
pub(in crate::sqlite) struct HistoryWriter {
    blocks: Blocks,
    groups: Groups,
    present: Statement,
    spilled: SpilledValues,
    oldest: Statement,
    drop: Statement,
    empty: Statement,
    /// The newest records of the keys that the last changes have touched.
    places: HashMap<Key, Place, RandomState>,
    on: bool,
}

struct Groups {
    insert: Statement,
    delete: Statement,
    records: Vec<(u64, Place)>,
}

struct SpilledValues {
    insert: Statement,
    copy: Statement,
    delete: Statement,
}

impl HistoryWriter {
    pub(in crate::sqlite) fn new(connection: &Connection) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            blocks: Blocks::new(connection)?,
            groups: Groups {
                insert: prepare(
                    "INSERT INTO openkv_history_groups (k, version, records) VALUES (?1, ?2, ?3)",
                )?,
                delete: prepare("DELETE FROM openkv_history_groups WHERE k = ?1 AND version = ?2")?,
                records: Vec::new(),
            },
            present: prepare(
                "SELECT version, v_encoding, v, expiration_ms, seq FROM kv WHERE k = ?1",
            )?,
            spilled: SpilledValues {
                insert: prepare("INSERT INTO openkv_spill (v) VALUES (?1)")?,
                copy: prepare(
                    "INSERT OR FAIL INTO openkv_spill (v) SELECT v FROM openkv_spill WHERE id = ?1",
                )?,
                delete: prepare("DELETE FROM openkv_spill WHERE id = ?1")?,
            },
            oldest: prepare(
                "SELECT id, version, replaced FROM openkv_history ORDER BY id LIMIT 1",
            )?,
            drop: prepare("DELETE FROM openkv_history WHERE id = ?1")?,
            empty: prepare("UPDATE openkv_history SET version = 0, replaced = x'' WHERE id = ?1")?,
            places: HashMap::default(),
            on: false,
        })
    }

    /// Must be called at the start of a transaction.
    pub(in crate::sqlite) fn begin(&mut self, on: bool) {
        self.on = on;
        self.places.clear();
        self.blocks.begin();
    }

    /// Whether it is on, in the open transaction.
    pub(in crate::sqlite) fn is_on(&self) -> bool {
        self.on
    }

    /// The value of `kv.seq` for a key that the changes of the last [`Self::keep`] have touched.
    pub(in crate::sqlite) fn newest_of(&self, key: &Key) -> i64 {
        if self.places.is_empty() {
            return 0;
        }
        self.places.get(key).map_or(0, |place| place.number().cast_signed())
    }

    /// Keeps what changes are about to replace. The spilled values of entries that are not only to get
    /// another expiry are the history's then.
    pub(in crate::sqlite) fn keep(&mut self, changes: &[Change]) -> Result<()> {
        self.places.clear();
        if !self.on {
            return Ok(());
        }
        let mut touched = HashMap::<&Key, Touched<'_>, RandomState>::default();
        touched.reserve(changes.len());
        for change in changes {
            let before = touched.remove(&change.key);
            let after = self.keep_one(change, before)?;
            touched.insert(&change.key, after);
        }
        self.blocks.store()?;
        for (key, Touched { newest, .. }) in touched {
            if let Some(place) = newest {
                self.places.insert(key.clone(), place);
            }
        }
        Ok(())
    }

    /// Keeps what one change replaces; returns what the key is after it.
    fn keep_one<'c>(
        &mut self,
        change: &'c Change,
        before: Option<Touched<'c>>,
    ) -> Result<Touched<'c>> {
        let Change { key, version: commit, kind } = change;
        let Self { blocks, groups, present, spilled, .. } = self;
        let removes = kind.is_removal();
        let mut appends = |newest: Option<Place>, entry: Option<ReplacedEntry<'_>>| {
            let ends = entry.is_some()
                && (removes
                    || newest.is_some_and(|it| it.depth() + 1 >= HISTORY_CHAIN_RECORDS_MAX));
            let record = Replaced {
                commit: *commit,
                previous: newest,
                ends_chain_of: ends.then_some(key.as_bytes()),
                entry,
            };
            let place = blocks.add(&record)?;
            if !ends {
                return Ok::<_, Error>(Some(place));
            }
            groups.add(key, (*commit, place), newest, blocks)?;
            Ok(None)
        };
        let (earlier, newest) = match before {
            Some(Touched { earlier, newest }) => (Some(earlier), Some(newest)),
            None => (None, None),
        };
        let mut base_expiry = None;
        let newest = match &earlier {
            Some(Earlier::Absent) if removes => newest.flatten(),
            Some(Earlier::Absent) => appends(newest.flatten(), None)?,
            Some(Earlier::Stored { version, value, expire_at_ms }) => {
                let entry = spilled.entry(key, *version, value, *expire_at_ms)?;
                appends(newest.flatten(), Some(entry))?
            }
            None | Some(Earlier::Base { .. }) => {
                let mut run = present.run().blob(1, key.as_bytes());
                if run.step()? {
                    let stored = run.column_int(3);
                    let mut expire_at_ms = (stored >= 0).then_some(stored);
                    if let Some(Earlier::Base { expire_at_ms: changed }) = &earlier {
                        expire_at_ms = *changed;
                    }
                    base_expiry = Some(expire_at_ms);
                    let id = run.column_int(1);
                    let value = if id < SPILLED {
                        ReplacedValue::Here(id.cast_unsigned(), run.column_blob(2))
                    } else {
                        let mut place = run.column_int(2);
                        // The entry keeps its value.
                        if matches!(kind, ChangeKind::ExpirySet { .. }) {
                            place = spilled.copied(place)?;
                        }
                        ReplacedValue::Spilled(id.cast_unsigned(), place)
                    };
                    let version = run.column_int(0).cast_unsigned();
                    let found = Place::of(run.column_int(4).cast_unsigned());
                    let entry = ReplacedEntry { version, expire_at_ms, value };
                    appends(newest.unwrap_or(found), Some(entry))?
                } else if removes {
                    None
                } else {
                    appends(None, None)?
                }
            }
        };
        let earlier = match (kind, earlier) {
            (ChangeKind::Deleted | ChangeKind::Expired, _) => Earlier::Absent,
            (ChangeKind::Set { value, expire_at_ms }, _) => {
                Earlier::Stored { version: *commit, value, expire_at_ms: *expire_at_ms }
            }
            (
                ChangeKind::ExpirySet { expire_at_ms },
                Some(Earlier::Stored { version, value, .. }),
            ) => Earlier::Stored { version, value, expire_at_ms: *expire_at_ms },
            (ChangeKind::ExpirySet { .. }, Some(Earlier::Absent)) => Earlier::Absent,
            (ChangeKind::ExpirySet { .. }, None) if base_expiry.is_none() => Earlier::Absent,
            (ChangeKind::ExpirySet { expire_at_ms }, None | Some(Earlier::Base { .. })) => {
                Earlier::Base { expire_at_ms: *expire_at_ms }
            }
        };
        Ok(Touched { earlier, newest })
    }

    /// Removes the records of commits up to one, in steps of a block: `max` of them or more, or all that are
    /// left. Returns how many.
    pub(in crate::sqlite) fn forget(&mut self, until: u64, max: usize) -> Result<usize> {
        let newest = self.blocks.newest()?;
        let mut removed = 0;
        while removed < max {
            let Self { oldest, spilled, groups, .. } = self;
            let mut run = oldest.run();
            if !run.step()? || run.column_int(1).cast_unsigned() > until {
                break;
            }
            let id = run.column_int(0);
            let is_newest = id.cast_unsigned() == newest;
            let block = run.column_blob(2);
            if is_newest && block.is_empty() {
                break;
            }
            removed += remove_beside(block, spilled, Some(groups))?;
            drop(run);
            // The newest number stays, so that none is used twice.
            let end = if is_newest { &mut self.empty } else { &mut self.drop };
            end.run().int(1, id).finish()?;
        }
        Ok(removed)
    }

    /// Removes everything.
    pub(in crate::sqlite) fn clear(&mut self) -> Result<()> {
        let mut blocks = self.drop.beside("SELECT replaced FROM openkv_history")?;
        let mut run = blocks.run();
        while run.step()? {
            remove_beside(run.column_blob(0), &mut self.spilled, None)?;
        }
        drop(run);
        for sql in [
            "DELETE FROM openkv_history_groups",
            "DELETE FROM openkv_history WHERE id < (SELECT max(id) FROM openkv_history)",
            "UPDATE openkv_history SET version = 0, replaced = x''",
        ] {
            self.drop.beside(sql)?.execute()?;
        }
        Ok(())
    }
}

/// Removes the spilled values that a block has, and the groups whose last record it has. Returns how many
/// records it has.
fn remove_beside(
    block: &[u8],
    spilled: &mut SpilledValues,
    mut groups: Option<&mut Groups>,
) -> Result<usize> {
    let (mut count, mut done) = (0, Ok(()));
    let visited = visit(block, |record| {
        count += 1;
        if done.is_err() {
            return;
        }
        if let Some(ReplacedEntry { value: ReplacedValue::Spilled(_, place), .. }) = record.entry {
            done = spilled.delete.run().int(1, place).finish();
        }
        if let (Some(key), Some(groups), Ok(())) = (record.ends_chain_of, &mut groups, &done) {
            let run = groups.delete.run().blob(1, key);
            done = run.int(2, record.commit.cast_signed()).finish();
        }
    });
    visited.map_err(damaged)?;
    done.map(|()| count)
}

impl Groups {
    /// Makes a group of a chain and its last record.
    fn add(
        &mut self,
        key: &Key,
        last: (u64, Place),
        previous: Option<Place>,
        blocks: &mut Blocks,
    ) -> Result<()> {
        self.records.clear();
        self.records.push(last);
        if let Some(previous) = previous {
            blocks.chain(previous, &mut self.records)?;
        }
        self.records.reverse();
        let group = encode_group(&self.records);
        let run = self.insert.run().blob(1, key.as_bytes());
        run.int(2, last.0.cast_signed()).blob(3, &group).finish()
    }
}

impl SpilledValues {
    /// The record of an entry that an earlier change of the transaction has stored.
    fn entry<'v>(
        &mut self,
        key: &Key,
        version: u64,
        value: &'v EncodedValue,
        expire_at_ms: Option<i64>,
    ) -> Result<ReplacedEntry<'v>> {
        let id = u64::from(value.encoding.id());
        let value = if key.len() + value.bytes.len() < SPILL_ROW_BYTES_MIN {
            ReplacedValue::Here(id, &value.bytes)
        } else {
            let place = self.insert.run().blob(1, &value.bytes).inserted()?;
            ReplacedValue::Spilled(id + SPILLED.cast_unsigned(), place.unwrap_or(0))
        };
        Ok(ReplacedEntry { version, expire_at_ms, value })
    }

    /// A copy of a spilled value. One that is missing in a damaged file stays missing.
    fn copied(&mut self, place: i64) -> Result<i64> {
        Ok(self.copy.run().int(1, place).inserted()?.unwrap_or(place))
    }
}
