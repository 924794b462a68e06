//! The page cache of a connection: its pages, its bound, which grows for a reader while its reads miss it, and its counts.
//!
//! Invariant: the caches of a process are larger than their defaults by at most [`GROWN_CACHES_BYTES_MAX`] together,
//! and by at most a part of the memory that the process may use.
//! Never: a bound above the one that the caller has named.

use std::ffi::c_int;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use rusqlite::Connection;
use rusqlite::ffi;

use super::errors::failure;
mod memory;
mod methods;
mod pages;

pub(super) use memory::LINE_BYTES;
pub(super) use methods::{CachedPages, caught, install};
use openkv_core::model::{GROWN_CACHES_BYTES_MAX, GROWN_CACHES_MEMORY_SHARE, PageMemory, Result};

/// What the caches of this process are larger than their defaults, in bytes.
static GROWN: AtomicU64 = AtomicU64::new(0);

/// A cache is full if this share of it, one of so many parts, is free.
const FREE_SHARE: u64 = 16;
/// A cache grows if more than one of so many looks misses it. A get that misses one page looks at those above it twice, beside
/// SQLite and by SQLite: some ten looks.
const LOOKS_PER_MISS: u64 = 32;

/// The page cache of a connection that reads. That of a writer keeps its bound: its batches wait for the disk.
pub(super) struct PageCache {
    bytes: u64,
    /// Part of `bytes`: what is above the default.
    grown: u64,
    can_grow: bool,
    pages: Option<CachedPages>,
}

/// The use of a cache since the last look.
#[derive(Clone, Copy, Debug)]
struct Looks {
    hits: u64,
    misses: u64,
    /// The memory of the cache, in bytes.
    used: u64,
}

impl PageCache {
    /// Sets the bound of the cache of a connection, which has `pages`.
    pub(super) fn of(
        connection: &Connection,
        pages: Option<CachedPages>,
        memory: PageMemory,
    ) -> Result<Self> {
        let bytes = memory.cache_bytes();
        set_bound(connection, bytes)?;
        Ok(Self { bytes, grown: 0, can_grow: memory.cache_bytes.is_none(), pages })
    }

    /// What a reader of its pages beside SQLite needs.
    pub(super) fn pages(&self) -> Option<CachedPages> {
        self.pages.clone()
    }

    /// The number of hits and misses since the last call, by which the cache grows.
    pub(super) fn take_counts(&mut self, connection: &Connection) -> (u64, u64) {
        let (hits, misses) = take_counts(connection);
        // SAFETY: the connection is borrowed, so no other thread uses it.
        let beside = self.pages.as_ref().map_or(0, |pages| unsafe { pages.take_looks() });
        let hits = hits + beside;
        let used = status(connection, ffi::SQLITE_DBSTATUS_CACHE_USED, false);
        if self.can_grow && is_too_small(self.bytes, Looks { hits, misses, used }) {
            self.grow(connection);
        }
        (hits, misses)
    }

    /// Doubles the bound, if the process has room for it.
    fn grow(&mut self, connection: &Connection) {
        let more = self.bytes;
        let taken = GROWN.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |grown| {
            Some(grown + more).filter(|sum| *sum <= room())
        });
        if taken.is_err() {
            return;
        }
        (self.bytes, self.grown) = (self.bytes + more, self.grown + more);
        // The cache keeps its bound if SQLite refuses.
        if let Err(error) = set_bound(connection, self.bytes) {
            tracing::warn!(%error, "growing the page cache of a connection");
        }
    }
}

impl Drop for PageCache {
    fn drop(&mut self) {
        GROWN.fetch_sub(self.grown, Ordering::Relaxed);
    }
}

/// Whether a cache with this bound is full, and misses more than it should.
fn is_too_small(bytes: u64, Looks { hits, misses, used }: Looks) -> bool {
    let is_full = used >= bytes - bytes / FREE_SHARE;
    is_full && misses * LOOKS_PER_MISS > hits + misses
}

/// By how much all caches of this process may be larger than their defaults; 0 where the system does not tell how much
/// memory there is.
fn room() -> u64 {
    static ROOM: OnceLock<u64> = OnceLock::new();
    *ROOM.get_or_init(|| {
        (memory_bytes().unwrap_or(0) / GROWN_CACHES_MEMORY_SHARE).min(GROWN_CACHES_BYTES_MAX)
    })
}

/// The memory that this process may use: that of the machine, or of its container.
#[cfg(unix)]
fn memory_bytes() -> Option<u64> {
    // SAFETY: they have no conditions.
    let (pages, page) =
        unsafe { (libc::sysconf(libc::_SC_PHYS_PAGES), libc::sysconf(libc::_SC_PAGESIZE)) };
    let machine = u64::try_from(pages).ok()?.checked_mul(u64::try_from(page).ok()?)?;
    // A container without a limit has none of these files, or one that is no number or larger than the machine.
    let limits = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let container = limits.iter().filter_map(|path| std::fs::read_to_string(path).ok());
    container.filter_map(|limit| limit.trim().parse().ok()).chain([machine]).min()
}

#[cfg(not(unix))]
fn memory_bytes() -> Option<u64> {
    None
}

/// Limits the page cache of a connection.
pub(super) fn set_bound(connection: &Connection, bytes: u64) -> Result<()> {
    // A negative number counts KiB instead of pages.
    let kib = i64::try_from(bytes / 1024).unwrap_or(i64::MAX);
    connection.pragma_update(None, "cache_size", -kib).map_err(failure)
}

/// The number of cache hits and misses of a connection since the last call.
pub(super) fn take_counts(connection: &Connection) -> (u64, u64) {
    let take = |which| status(connection, which, true);
    (take(ffi::SQLITE_DBSTATUS_CACHE_HIT), take(ffi::SQLITE_DBSTATUS_CACHE_MISS))
}

fn status(connection: &Connection, which: c_int, begin_anew: bool) -> u64 {
    let (mut current, mut highest): (c_int, c_int) = (0, 0);
    // SAFETY: the connection is borrowed, so no other thread uses it; both pointers are valid.
    // A failure leaves zeros.
    unsafe {
        let begin_anew = c_int::from(begin_anew);
        ffi::sqlite3_db_status(connection.handle(), which, &mut current, &mut highest, begin_anew);
    }
    u64::try_from(current).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cache_is_too_small_if_it_is_full_and_missed() {
        let mib = 1024 * 1024;
        let look = |hits, misses, used| Looks { hits, misses, used };
        assert!(is_too_small(16 * mib, look(300, 100, 16 * mib)));
        assert!(!is_too_small(16 * mib, look(300, 100, 8 * mib)), "it is not full");
        assert!(!is_too_small(16 * mib, look(300, 1, 16 * mib)), "it is rarely missed");
        assert!(!is_too_small(16 * mib, look(0, 0, 16 * mib)), "nothing was read");
    }
}
