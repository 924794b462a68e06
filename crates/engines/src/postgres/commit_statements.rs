//! The statements that execute a decided batch, behind the fence that only the right epoch and
//! version pass.

use super::database::FENCE;
use super::entries::EntryChanges;
use super::history::{self, Replaced};
use super::line::{Call, Value};
use super::message_changes::MessageChanges;
use super::replication::{self, SegmentRow};
use super::value_entries::IndexChanges;
use openkv_core::model::{POSTGRES_LOG_KEPT_MS, POSTGRES_LOG_TRIM_ROWS};

const LOG: &str = "\
INSERT INTO openkv.log (db, version, epoch, batch, at_ms, previous, keys, writes) \
VALUES ($1, $2, $3, $4, $5, $6, $7, $8)";
const TRIM_LOG: &str = "\
DELETE FROM openkv.log AS l USING (SELECT ctid AS place FROM openkv.log WHERE db = $1 \
ORDER BY version LIMIT $2) AS old WHERE l.ctid = old.place AND l.at_ms < $3";

/// A decided batch.
pub(super) struct CommitStatements {
    pub(super) db: i64,
    pub(super) epoch: i64,
    /// The last commit before it.
    pub(super) version: i64,
    /// Its last commit; the same for a batch without one.
    pub(super) next: i64,
    /// The last of its commits that removed an entry, or 0.
    pub(super) removed: i64,
    pub(super) uuid: Option<Vec<u8>>,
    /// The number of the last message after it.
    pub(super) last_message: i64,
    pub(super) now_ms: i64,
    /// Its name in the log of batches.
    pub(super) name: Vec<u8>,
    /// The keys whose entries it changes, as the log of batches has them.
    pub(super) keys: Option<Vec<u8>>,
    /// Its writes with ids, as the log of batches has them.
    pub(super) writes: Option<Vec<u8>>,
    /// The rows of the history, if there is one.
    pub(super) past: Replaced,
    pub(super) entries: EntryChanges,
    pub(super) index_changes: IndexChanges,
    pub(super) messages: MessageChanges,
    /// The row of the replication log, if it is on.
    pub(super) segment: Option<SegmentRow>,
    /// The number of rows of the history to delete.
    pub(super) trims_past: i64,
    /// Rows of the log of batches from before this time go, in ms since the epoch.
    pub(super) trims_log: Option<i64>,
}

/// From when on the log of batches is kept.
pub(super) fn kept_from_ms(now_ms: i64) -> i64 {
    now_ms - POSTGRES_LOG_KEPT_MS
}

impl CommitStatements {
    /// Whether it changes entries or messages.
    pub(super) fn has_changes(&self) -> bool {
        !self.changed().is_empty()
    }

    /// Whether it has a commit, changes entries at most, and deletes no rows of the log.
    pub(super) fn changes_only_entries(&self) -> bool {
        let mut others = Vec::new();
        self.messages.calls(&self.db, &mut others);
        others.is_empty()
            && self.index_changes.is_empty()
            && self.segment.is_none()
            && self.trims_log.is_none()
            && self.next != self.version
    }

    fn changed(&self) -> Vec<Call<'_>> {
        let mut calls = Vec::new();
        self.entries.calls(&self.db, &mut calls);
        self.index_changes.calls(&self.db, &mut calls);
        self.messages.calls(&self.db, &mut calls);
        calls
    }

    /// All statements between BEGIN and COMMIT.
    pub(super) fn calls(&self) -> Vec<Call<'_>> {
        let Self { db, epoch, version, next, removed, uuid, last_message, now_ms, .. } = self;
        let Self { name, keys, writes, .. } = self;
        let fence: Vec<&Value<'_>> =
            vec![db, epoch, version, next, removed, uuid, last_message, now_ms];
        let mut calls = vec![(FENCE, fence)];
        self.past.calls(db, &mut calls);
        calls.extend(self.changed());
        if next != version {
            calls.push((LOG, vec![db, next, epoch, name, now_ms, version, keys, writes]));
        }
        if let Some(SegmentRow { first, changes, removes }) = &self.segment {
            calls.push((replication::APPEND, vec![db, next, first, now_ms, changes, removes]));
        }
        if self.trims_past > 0 {
            calls.push((history::TRIM, vec![db, &POSTGRES_LOG_TRIM_ROWS, &self.trims_past]));
        }
        if let Some(before_ms) = &self.trims_log {
            calls.push((TRIM_LOG, vec![db, &POSTGRES_LOG_TRIM_ROWS, before_ms]));
            if self.segment.is_some() {
                calls.push((replication::TRIM, vec![db, &POSTGRES_LOG_TRIM_ROWS]));
            }
        }
        calls
    }
}
