//! Limits the length of the log.
//!
//! SQLite moves a log of `WAL_MOVED_PAGES` into the file by itself, as part of a commit, but resets it only at a moment without readers.
//! Under constant reads there is no such moment: the log grew by hundreds of megabytes in seconds.
//! Above a limit the writer creates one: it blocks writers, moves everything, and waits until all
//! readers have ended their snapshots.

use std::time::Duration;

use rusqlite::Connection;

use super::disk_room::{DiskRoom, Refused};
use super::errors::failure;
use super::fulltext::BuiltEntry;
use super::statement::Statement;
use super::wal_index::WalIndex;
use openkv_core::commit::Work;
use openkv_core::model::{
    Error, Result, WAL_BYTES_MAX, WAL_KEPT_BYTES, WAL_MOVED_MARGIN_PAGES, WAL_MOVED_PAGES,
    WAL_RESTART_DOUBLINGS_MAX, WAL_RESTART_WAIT_MS,
};

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;

/// Limits the log of a writer's connection.
pub(super) struct LogLength {
    restart: Statement,
    checkpoint: Statement,
    pub(super) room: DiskRoom,
    index: Option<WalIndex>,
    /// The length at the last failed attempt.
    tried_bytes: u64,
    /// Consecutive failed attempts.
    tries: u32,
}

impl LogLength {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        connection.pragma_update(None, "journal_size_limit", WAL_KEPT_BYTES).map_err(failure)?;
        connection.pragma_update(None, "wal_autocheckpoint", WAL_MOVED_PAGES).map_err(failure)?;
        let restart = Statement::prepare(connection, "PRAGMA wal_checkpoint(RESTART)")?;
        let checkpoint = Statement::prepare(connection, "PRAGMA wal_checkpoint(PASSIVE)")?;
        let room = DiskRoom::new(connection)?;
        Ok(Self { restart, checkpoint, room, index: None, tried_bytes: 0, tries: 0 })
    }

    /// Whether a small commit will not let SQLite move the log.
    pub(super) fn is_short(&mut self, connection: &Connection) -> bool {
        self.frames(connection).is_some_and(|frames| {
            frames < WAL_MOVED_PAGES - WAL_MOVED_MARGIN_PAGES
                && self.room.lets_log_grow(connection, frames)
                && !self.room.is_narrow()
        })
    }

    /// Whether the disk may soon be full.
    pub(super) fn is_narrow(&self) -> bool {
        self.room.is_narrow()
    }

    /// Takes the writes out of `work` for which a nearly full disk has no room.
    pub(super) fn refuse(&mut self, connection: &Connection, work: &mut Work) -> Refused {
        let frames = self.frames(connection).unwrap_or(0);
        self.room.refuse(connection, frames, work)
    }

    /// As [`DiskRoom::admit`].
    pub(super) fn admit(
        &mut self,
        connection: &Connection,
        entries: &[BuiltEntry],
        merges: bool,
    ) -> Result<()> {
        let frames = self.frames(connection).unwrap_or(0);
        self.room.admit(connection, frames, entries, merges)
    }

    /// Moves the log into the file and cuts it, unless readers or other processes prevent it.
    pub(super) fn empty(&mut self, connection: &Connection) -> Result<()> {
        self.room.empty_log(connection)
    }

    /// As [`Self::empty`], after work that found the disk full.
    pub(super) fn make_room(&mut self, connection: &Connection) {
        if let Err(error) = self.empty(connection) {
            tracing::warn!(%error, "emptying the log on a full disk");
        }
    }

    /// The error of work of this size that found the disk full.
    pub(super) fn full(&self, connection: &Connection, bytes: u64) -> Error {
        self.room.explain(connection, bytes)
    }

    fn frames(&mut self, connection: &Connection) -> Option<u32> {
        if self.index.is_none() {
            self.index = WalIndex::of(connection);
        }
        self.index.map(WalIndex::frames)
    }

    /// Must be called after each commit that may take long.
    pub(super) fn mind(&mut self, connection: &Connection) -> Result<()> {
        let frames = self.frames(connection).unwrap_or(0);
        if !self.room.lets_log_grow(connection, frames) {
            return self.room.empty_log(connection);
        }
        if (WAL_MOVED_PAGES - WAL_MOVED_MARGIN_PAGES..WAL_MOVED_PAGES).contains(&frames) {
            // Then the next commit but one may be immediate again.
            self.checkpoint.run().step()?;
        }
        let bytes = u64::from(frames) * PAGE_BYTES;
        if bytes < WAL_BYTES_MAX {
            (self.tried_bytes, self.tries) = (0, 0);
            return Ok(());
        }
        if self.tried_bytes > 0 && bytes < self.tried_bytes.saturating_add(WAL_KEPT_BYTES.into()) {
            return Ok(());
        }
        self.tried_bytes = bytes;
        let wait_ms = WAL_RESTART_WAIT_MS << self.tries.min(WAL_RESTART_DOUBLINGS_MAX);
        self.tries += 1;
        connection.busy_timeout(Duration::from_millis(wait_ms)).map_err(failure)?;
        let done = self.restart();
        connection.busy_timeout(Duration::ZERO).map_err(failure)?;
        if done? {
            (self.tried_bytes, self.tries) = (0, 0);
        }
        Ok(())
    }

    /// Tries to let the next commit reset the log; returns whether it will.
    fn restart(&mut self) -> Result<bool> {
        let mut run = self.restart.run();
        Ok(run.step()? && run.column_int(0) == 0)
    }
}
