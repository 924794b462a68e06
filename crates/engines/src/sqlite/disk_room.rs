//! Room on the disk of a file.
//!
//! The log can be moved into the file only if the file has room to grow. A log that had taken the whole
//! disk could not be moved any more, and then no deletion found room either.
//!
//! Duty: measures the free space, empties the log while it can still be moved, and keeps a reserve for
//! deletions and acknowledgements.
//! Never: a call of the system for a commit while the disk has room, except once for `LOOK_PAGES` of the log.

use std::path::Path;
use std::time::Duration;

use rusqlite::Connection;

use super::errors::failure;
use super::fulltext::BuiltEntry;
use super::statement::Statement;
use openkv_core::commit::Work;
use openkv_core::model::{
    AtomicWrite, DISK_LOOK_PAGES, DISK_NARROW_BYTES, DISK_RESERVE_BYTES_MAX, DISK_RESERVE_SHARE,
    Decision, Error, Result, WAL_RESTART_WAIT_MS,
};

/// Bytes of a page.
const PAGE_BYTES: u64 = 4096;

/// Pages that the smallest commit may change.
const COMMIT_PAGES: u64 = 8;

/// The free space, and the part of it that only deletions may use.
#[derive(Clone, Copy, Debug, Default)]
struct Room {
    free: u64,
    reserve: u64,
}

impl Room {
    fn new(free: u64, total: u64) -> Self {
        Self { free, reserve: (total / DISK_RESERVE_SHARE).min(DISK_RESERVE_BYTES_MAX) }
    }

    /// Whether the disk may soon be full.
    fn is_narrow(self) -> bool {
        self.free < DISK_NARROW_BYTES
    }

    /// Whether a log of this length may get longer: the file needs as much room to take it.
    fn lets_log_grow(self, log_bytes: u64) -> bool {
        log_bytes + self.reserve + u64::from(DISK_LOOK_PAGES) * PAGE_BYTES <= self.free
    }

    /// Whether a write of this size leaves the reserve, with free pages in the file and an empty log. It
    /// takes its size in the log first.
    fn takes(self, bytes: u64, free_pages: u64) -> bool {
        let in_file = self.free + free_pages * PAGE_BYTES;
        self.free >= self.reserve / 2 + bytes && in_file >= self.reserve + 2 * bytes
    }
}

/// Minds the room on the disk for the writer of a file.
pub(super) struct DiskRoom {
    empty: Statement,
    free_pages: Statement,
    /// `None` before the first look, and where the system does not say.
    room: Option<Room>,
    /// Pages in the log at the last look.
    looked_at: Option<u32>,
}

/// Writes that were left out of a batch, with their places.
pub(super) type Refused = Vec<(usize, Error)>;

impl DiskRoom {
    pub(super) fn new(connection: &Connection) -> Result<Self> {
        Ok(Self {
            empty: Statement::prepare(connection, "PRAGMA wal_checkpoint(TRUNCATE)")?,
            free_pages: Statement::prepare(connection, "PRAGMA freelist_count")?,
            room: None,
            looked_at: None,
        })
    }

    /// Whether the disk may soon be full, by the last look.
    pub(super) fn is_narrow(&self) -> bool {
        self.room.is_some_and(Room::is_narrow)
    }

    /// As on a disk that is nearly full, until the next look.
    #[cfg(test)]
    pub(super) fn be_narrow(&mut self) {
        self.room = Some(Room::new(DISK_NARROW_BYTES - 1, u64::MAX));
    }

    /// Whether the log, of so many pages, may get longer. Looks at the disk once for a step of the log.
    pub(super) fn lets_log_grow(&mut self, connection: &Connection, frames: u32) -> bool {
        let is_known = self.looked_at.is_some_and(|looked_at| {
            (looked_at..looked_at.saturating_add(DISK_LOOK_PAGES)).contains(&frames)
        });
        if !is_known || self.is_narrow() {
            self.looked_at = Some(frames);
            self.look(connection);
        }
        self.room.is_none_or(|room| room.lets_log_grow(u64::from(frames) * PAGE_BYTES))
    }

    fn look(&mut self, connection: &Connection) {
        self.room = connection.path().and_then(room_of);
    }

    /// Moves the log into the file and cuts it to nothing, unless readers or other processes prevent it.
    pub(super) fn empty_log(&mut self, connection: &Connection) -> Result<()> {
        let wait = Duration::from_millis(WAL_RESTART_WAIT_MS);
        connection.busy_timeout(wait).map_err(failure)?;
        let done = self.empty.run().step();
        connection.busy_timeout(Duration::ZERO).map_err(failure)?;
        self.looked_at = None;
        self.look(connection);
        done.map(drop)
    }

    /// Takes the writes out of `work` that would use the reserve, on a disk that is nearly full.
    pub(super) fn refuse(
        &mut self,
        connection: &Connection,
        frames: u32,
        work: &mut Work,
    ) -> Refused {
        let grows = |write: &AtomicWrite| !write.only_deletes();
        if !self.is_narrow() || !work.writes.iter().any(grows) {
            return Vec::new();
        }
        let bytes = work.writes.iter().map(|write| write.size_bytes() as u64).sum::<u64>()
            + COMMIT_PAGES * PAGE_BYTES;
        self.look(connection);
        let log_bytes = u64::from(frames) * PAGE_BYTES;
        if self.room.is_none_or(|room| room.takes(bytes + log_bytes, 0)) {
            return Vec::new();
        }
        if let Err(error) = self.empty_log(connection) {
            tracing::debug!(%error, "emptying the log on a full disk");
        }
        let Some(room) = self.room else { return Vec::new() };
        if room.takes(bytes, self.count_free_pages()) {
            return Vec::new();
        }
        let error = full(room, bytes, log_length(connection));
        let (mut kept, mut refused) = (Vec::new(), Vec::new());
        for (place, write) in std::mem::take(&mut work.writes).into_iter().enumerate() {
            match grows(&write) {
                true => refused.push((place, error.clone())),
                false => kept.push(write),
            }
        }
        work.writes = kept;
        refused
    }

    /// Refuses entries for an index in an open transaction if they would use the reserve, on a disk that is nearly full.
    /// `merges`: the index may write itself again, with all that it has.
    pub(super) fn admit(
        &mut self,
        connection: &Connection,
        frames: u32,
        entries: &[BuiltEntry],
        merges: bool,
    ) -> Result<()> {
        if !self.is_narrow() {
            return Ok(());
        }
        self.look(connection);
        let Some(room) = self.room else { return Ok(()) };
        // Each entry may change a page of its own.
        let sizes = entries.iter().map(|entry| entry.size_bytes() as u64 + PAGE_BYTES);
        let merged = if merges { length_of(connection.path().map(Path::new)) } else { 0 };
        let bytes = sizes.sum::<u64>() + merged + COMMIT_PAGES * PAGE_BYTES;
        // What is in the log takes free pages when it is moved.
        let free_pages = if frames == 0 { self.count_free_pages() } else { 0 };
        if room.takes(bytes + u64::from(frames) * PAGE_BYTES, free_pages) {
            return Ok(());
        }
        Err(full(room, bytes, log_length(connection)))
    }

    /// Pages of the file that hold nothing.
    fn count_free_pages(&mut self) -> u64 {
        let mut run = self.free_pages.run();
        let has_row = run.step().unwrap_or(false);
        if has_row { u64::try_from(run.column_int(0)).unwrap_or(0) } else { 0 }
    }

    /// The error of work that found no room, also with the log emptied.
    pub(super) fn explain(&self, connection: &Connection, bytes: u64) -> Error {
        let room = self.room.unwrap_or_default();
        full(room, bytes + COMMIT_PAGES * PAGE_BYTES, log_length(connection))
    }
}

/// Puts the outcomes of refused writes between those of the others.
pub(super) fn with_refused(decisions: &mut Vec<Decision>, refused: Refused) {
    for (place, error) in refused {
        decisions.insert(place.min(decisions.len()), Decision::Rejected(error));
    }
}

fn full(room: Room, wanted: u64, log_bytes: u64) -> Error {
    let Room { free, reserve } = room;
    Error::unavailable(format!(
        "database or disk is full (SQLite 13): the commit wants about {wanted} bytes, {free} are free, of \
         which {reserve} are kept for deletions and acknowledgements, and the log holds {log_bytes}: free \
         some disk space, or delete entries in small commits; nothing was written"
    ))
}

fn log_length(connection: &Connection) -> u64 {
    length_of(connection.path().map(|path| super::identity::log_of(path.as_ref())))
}

fn length_of(path: Option<impl AsRef<Path>>) -> u64 {
    path.and_then(|path| path.as_ref().metadata().ok()).map_or(0, |found| found.len())
}

#[cfg(unix)]
#[allow(clippy::unnecessary_cast, reason = "the types of the fields differ between systems")]
fn room_of(path: &str) -> Option<Room> {
    let path = std::ffi::CString::new(path).ok()?;
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::zeroed();
    // SAFETY: the path is a C string, and the call fills the struct if it answers 0.
    let found = unsafe {
        if libc::statvfs(path.as_ptr(), found.as_mut_ptr()) != 0 {
            return None;
        }
        found.assume_init()
    };
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize as u64);
    Some(Room::new(bytes(found.f_bavail as u64), bytes(found.f_blocks as u64)))
}

#[cfg(not(unix))]
fn room_of(_path: &str) -> Option<Room> {
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1024 * 1024;

    #[test]
    fn the_reserve_is_a_share_of_a_small_disk() {
        assert_eq!(Room::new(0, 6 * MIB).reserve, 6 * MIB / DISK_RESERVE_SHARE);
        assert_eq!(Room::new(0, 1 << 40).reserve, DISK_RESERVE_BYTES_MAX);
    }

    #[test]
    fn a_log_gets_no_longer_than_the_file_has_room_for() {
        let room = Room::new(3 * MIB, 6 * MIB);
        assert!(room.lets_log_grow(2 * MIB));
        assert!(!room.lets_log_grow(3 * MIB));
    }

    #[test]
    fn free_pages_of_the_file_make_room_for_writes() {
        let room = Room::new(300 * 1024, 6 * MIB);
        assert!(!room.takes(40_000, 0));
        assert!(room.takes(40_000, 1000));
        assert!(!Room::new(0, 6 * MIB).takes(40_000, 1000));
    }
}
