//! The history: what commits have replaced.
//!
//! A row says what the entry of a key was before a commit. So the state at a moment is the oldest row
//! of the key that is newer than the moment or, without one, the present entry.
//!
//! A spilled value of an entry that a transaction replaces or removes becomes the history's: its row of
//! `openkv_spill` stays as it is, and the new value gets another one.

use std::collections::HashMap;
use std::ops::Range;

use foldhash::fast::RandomState;
use rusqlite::Connection;

use super::layout::SPILLED;
use super::statement::{Run, Statement};
use super::values::encoding;
use crate::model::{Change, ChangeKind, EncodedValue, PastEntry, Result, SPILL_ROW_BYTES_MIN};

/// What the changes of a transaction have made of the entry of a key so far.
enum Earlier<'c> {
    /// That from before the transaction, with another expiry.
    Base { expire_at_ms: Option<i64> },
    /// None.
    Absent,
    /// This one.
    Stored { version: u64, value: &'c EncodedValue, expire_at_ms: Option<i64> },
}

/// The history in the writer's transaction.
pub(super) struct HistoryWriter {
    keep_absent: Statement,
    keep_base: Statement,
    keep_value: Statement,
    spilled_of: Statement,
    spill: Statement,
    copy_spilled: Statement,
    drop_spilled: Statement,
    drop: Statement,
    on: bool,
}

impl HistoryWriter {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        let prepare = |sql| Statement::prepare(connection, sql);
        Ok(Self {
            keep_absent: prepare("INSERT INTO openkv_history (k, version) VALUES (?1, ?2)")?,
            // ?3: the number of the copy of a spilled value; ?4: whether ?5 is the expiry. FAIL, because
            // SQLite journals a statement with a SELECT that can end by ABORT.
            keep_base: prepare(
                "INSERT OR FAIL INTO openkv_history (k, version, v, v_encoding, old_version, expiration_ms) \
                 SELECT k, ?2, ifnull(?3, v), v_encoding, version, iif(?4, ?5, expiration_ms) \
                 FROM kv WHERE k = ?1",
            )?,
            keep_value: prepare(
                "INSERT INTO openkv_history (k, version, v, v_encoding, old_version, expiration_ms) \
                 VALUES (?1, ?2, ?3, ?4, ?5, ?6)",
            )?,
            spilled_of: prepare("SELECT v FROM kv WHERE k = ?1 AND v_encoding >= 256")?,
            spill: prepare("INSERT INTO openkv_spill (v) VALUES (?1)")?,
            copy_spilled: prepare(
                "INSERT OR FAIL INTO openkv_spill (v) SELECT v FROM openkv_spill WHERE id = ?1",
            )?,
            drop_spilled: prepare(
                "DELETE FROM openkv_spill WHERE id = (SELECT v FROM openkv_history \
                 WHERE k = ?1 AND version = ?2 AND v_encoding >= 256)",
            )?,
            drop: prepare("DELETE FROM openkv_history WHERE k = ?1 AND version = ?2")?,
            on: false,
        })
    }

    /// Must be called at the start of a transaction.
    pub(super) fn begin(&mut self, on: bool) {
        self.on = on;
    }

    /// Whether it is on, in the open transaction.
    pub(super) fn is_on(&self) -> bool {
        self.on
    }

    /// Keeps what changes are about to replace. The spilled values of entries that are not only to get
    /// another expiry are the history's then.
    pub(super) fn keep(&mut self, changes: &[Change]) -> Result<()> {
        if !self.on {
            return Ok(());
        }
        let mut earlier = HashMap::<&[u8], Earlier<'_>, RandomState>::default();
        for Change { key, version, kind } in changes {
            let (key, version) = (key.as_bytes(), *version);
            let before = earlier.get(key);
            let stays = matches!(kind, ChangeKind::ExpirySet { .. });
            let was_present = match before {
                None => self.keep_present(key, version, None, stays)?,
                Some(Earlier::Base { expire_at_ms }) => {
                    self.keep_present(key, version, Some(*expire_at_ms), stays)?
                }
                Some(Earlier::Absent) => false,
                Some(Earlier::Stored { version: old, value, expire_at_ms }) => {
                    self.keep_stored(key, version, (*old, value, *expire_at_ms))?;
                    true
                }
            };
            // To remove an absent entry replaces nothing.
            if !was_present && !kind.is_removal() {
                self.keep_absent.run().blob(1, key).int(2, version.cast_signed()).finish()?;
            }
            let after = match (kind, before) {
                (ChangeKind::Deleted | ChangeKind::Expired, _) => Earlier::Absent,
                (ChangeKind::Set { value, expire_at_ms }, _) => {
                    Earlier::Stored { version, value, expire_at_ms: *expire_at_ms }
                }
                (ChangeKind::ExpirySet { .. }, Some(Earlier::Absent)) => Earlier::Absent,
                (
                    ChangeKind::ExpirySet { expire_at_ms },
                    Some(Earlier::Stored { version, value, .. }),
                ) => Earlier::Stored { version: *version, value, expire_at_ms: *expire_at_ms },
                (ChangeKind::ExpirySet { expire_at_ms }, None | Some(Earlier::Base { .. })) => {
                    Earlier::Base { expire_at_ms: *expire_at_ms }
                }
            };
            earlier.insert(key, after);
        }
        Ok(())
    }

    /// Keeps the present entry, with its expiry or another one. Returns whether there is one. If its
    /// value `stays`, a spilled one is copied.
    fn keep_present(
        &mut self,
        key: &[u8],
        version: u64,
        expiry: Option<Option<i64>>,
        stays: bool,
    ) -> Result<bool> {
        let mut copy = None;
        if stays && let Some(place) = self.spilled_of.run().blob(1, key).first_int()? {
            copy = self.copy_spilled.run().int(1, place).inserted()?;
        }
        let run = self.keep_base.run().blob(1, key).int(2, version.cast_signed());
        let run = run.int_or_null(3, copy).int(4, i64::from(expiry.is_some()));
        Ok(run.int(5, expiry.flatten().unwrap_or(-1)).changes()? > 0)
    }

    fn keep_stored(
        &mut self,
        key: &[u8],
        version: u64,
        (old, value, expire_at_ms): (u64, &EncodedValue, Option<i64>),
    ) -> Result<()> {
        let id = i64::from(value.encoding.id());
        let mut place = None;
        if key.len() + value.bytes.len() >= SPILL_ROW_BYTES_MIN {
            place = self.spill.run().blob(1, &value.bytes).inserted()?;
        }
        let run = self.keep_value.run().blob(1, key).int(2, version.cast_signed());
        let run = match place {
            Some(place) => run.int(3, place).int(4, id + SPILLED),
            None => run.blob(3, &value.bytes).int(4, id),
        };
        run.int(5, old.cast_signed()).int(6, expire_at_ms.unwrap_or(-1)).finish()
    }

    /// Removes what a commit has replaced.
    pub(super) fn forget(&mut self, key: &[u8], version: u64) -> Result<()> {
        self.drop_spilled.run().blob(1, key).int(2, version.cast_signed()).finish()?;
        self.drop.run().blob(1, key).int(2, version.cast_signed()).finish()
    }

    /// Removes everything.
    pub(super) fn clear(&mut self) -> Result<()> {
        let spilled = "DELETE FROM openkv_spill WHERE id IN \
                       (SELECT v FROM openkv_history WHERE v_encoding >= 256)";
        self.drop.beside(spilled)?.execute()?;
        self.drop.beside("DELETE FROM openkv_history")?.execute()
    }
}

/// The history in a snapshot.
pub(super) struct HistoryReader {
    present: Statement,
    later: Statement,
    rows: Statement,
    spilled: Statement,
}

impl HistoryReader {
    pub(super) fn beside(on: &Statement) -> Result<Self> {
        Ok(Self {
            present: on
                .beside("SELECT version, v_encoding, v, expiration_ms FROM kv WHERE k = ?1")?,
            later: on.beside(
                "SELECT old_version, v_encoding, v, expiration_ms FROM openkv_history \
                 WHERE k = ?1 AND version >= ?2 ORDER BY version LIMIT 1",
            )?,
            rows: on.beside(
                "SELECT old_version, v_encoding, v, expiration_ms, version FROM openkv_history \
                 WHERE k = ?1 AND version >= ?2 AND version < ?3 ORDER BY version DESC",
            )?,
            spilled: on.beside("SELECT v FROM openkv_spill WHERE id = ?1")?,
        })
    }

    /// As [`crate::engine::ReplicationLog::entry`].
    pub(super) fn entry(&mut self, key: &[u8], before: Option<u64>) -> Result<Option<PastEntry>> {
        let Self { present, later, spilled, .. } = self;
        if let Some(before) = before {
            let mut run = later.run().blob(1, key).int(2, before.cast_signed());
            if run.step()? {
                return entry(&run, spilled);
            }
        }
        let mut run = present.run().blob(1, key);
        if run.step()? { entry(&run, spilled) } else { Ok(None) }
    }

    /// As [`crate::engine::ReplicationLog::replaced`]; `time_of` is the time of a commit.
    pub(super) fn replaced(
        &mut self,
        key: &[u8],
        commits: Range<u64>,
        time_of: &mut dyn FnMut(u64) -> Result<Option<i64>>,
        visit: &mut dyn FnMut(u64, Option<i64>, Option<PastEntry>) -> bool,
    ) -> Result<()> {
        let Self { rows, spilled, .. } = self;
        let signed = |version: u64| i64::try_from(version).unwrap_or(i64::MAX);
        let run = rows.run().blob(1, key);
        let mut run = run.int(2, signed(commits.start)).int(3, signed(commits.end));
        while run.step()? {
            let commit = run.column_int(4).cast_unsigned();
            if !visit(commit, time_of(commit)?, entry(&run, spilled)?) {
                break;
            }
        }
        Ok(())
    }
}

/// The entry in a row of `version, v_encoding, v, expiration_ms`; `None` for a row without one.
fn entry(run: &Run<'_, '_>, spilled: &mut Statement) -> Result<Option<PastEntry>> {
    let Some(version) = run.column_int_or_null(0) else { return Ok(None) };
    let id = run.column_int(1);
    let value = if id < SPILLED {
        EncodedValue { encoding: encoding(id)?, bytes: run.column_blob(2).to_vec() }
    } else {
        let mut side = spilled.run().int(1, run.column_int(2));
        side.row("a value in openkv_spill")?;
        let bytes = side.column_blob(0).to_vec();
        EncodedValue { encoding: encoding(id - SPILLED)?, bytes }
    };
    let end = run.column_int(3);
    let expire_at_ms = (end >= 0).then_some(end);
    Ok(Some(PastEntry { version: version.cast_unsigned(), value, expire_at_ms }))
}
