//! The locks of main files, all locks of a file through one open file description.
//!
//! Duty: set and release the locks that SQLite requests on any descriptor of an inode through the
//! descriptor that locked first.
//! Invariant: a file is in the table while any part of it is locked, and its descriptor is open.
//! SQLite defers closing the descriptors of an inode while it has a lock on it.

use std::collections::HashMap;
use std::ffi::c_int;
use std::os::fd::RawFd;
use std::sync::LazyLock;

use parking_lot::Mutex;

use super::{Inode, READ, UNLOCKED, WRITE, call, failed, over};

/// The byte ranges of a main file that SQLite locks, by SQLite's names.
const PENDING_BYTE: libc::off_t = 0x4000_0000;
const RESERVED_BYTE: libc::off_t = PENDING_BYTE + 1;
const SHARED_FIRST: libc::off_t = PENDING_BYTE + 2;
const SHARED_SIZE: libc::off_t = 510;

/// All of these bytes.
pub(super) const ALL: (libc::off_t, libc::off_t) = (PENDING_BYTE, 2 + SHARED_SIZE);

/// Start and length of each range.
const RANGES: [(libc::off_t, libc::off_t); 3] =
    [(PENDING_BYTE, 1), (RESERVED_BYTE, 1), (SHARED_FIRST, SHARED_SIZE)];

/// A file with a lock.
struct Locked {
    /// A descriptor of the open file description that has the locks.
    through: RawFd,
    /// Whether each of [`RANGES`] is locked.
    ranges: [bool; RANGES.len()],
}

static LOCKED: LazyLock<Mutex<HashMap<Inode, Locked>>> = LazyLock::new(Mutex::default);

/// Whether a lock is on a main file: the locks of a `-shm` file are on bytes 120 to 128.
pub(super) fn is_of(lock: &libc::flock) -> bool {
    // Length 0 extends to the end of the file; SQLite uses it for all ranges.
    lock.l_start >= PENDING_BYTE || lock.l_len == 0
}

/// Sets or gets a lock through the open file description that has the other locks of the file.
pub(super) fn set_or_get(file: RawFd, command: c_int, lock: &mut libc::flock) -> Result<(), c_int> {
    let inode = Inode::of(file)?;
    let mut table = LOCKED.lock();
    let known = table.remove(&inode);
    if command == libc::F_OFD_GETLK {
        let through = known.as_ref().map_or(file, |locked| locked.through);
        table.extend(known.map(|locked| (inode, locked)));
        return call(through, command, lock);
    }
    let mut locked = known.unwrap_or(Locked { through: file, ranges: Default::default() });
    let done = locked.set(file, command, lock);
    if locked.ranges.contains(&true) {
        table.insert(inode, locked);
    }
    done
}

/// Must be called before a descriptor is closed: forgets the locks set through it.
pub(super) fn closing(file: RawFd) {
    LOCKED.lock().retain(|_, locked| locked.through != file);
}

impl Locked {
    fn set(&mut self, file: RawFd, command: c_int, lock: &mut libc::flock) -> Result<(), c_int> {
        let kind = lock.l_type;
        if kind == WRITE && !writable(self.through)? {
            self.move_to(file)?;
        }
        call(self.through, command, lock)?;
        for (range, locked) in RANGES.iter().zip(&mut self.ranges) {
            if covers(lock, *range) {
                *locked = kind != UNLOCKED;
            }
        }
        Ok(())
    }

    /// Moves the locks to another descriptor that permits more: a descriptor opened for reading
    /// permits no write lock. The file is locked at every moment.
    fn move_to(&mut self, file: RawFd) -> Result<(), c_int> {
        for (range, _) in RANGES.iter().zip(self.ranges).filter(|(_, locked)| *locked) {
            // Cannot fail: no other process has a write lock beside this read lock.
            call(file, libc::F_OFD_SETLK, &mut over(READ, *range))?;
        }
        call(self.through, libc::F_OFD_SETLK, &mut over(UNLOCKED, (0, 0)))?;
        self.through = file;
        Ok(())
    }
}

fn covers(lock: &libc::flock, (start, length): (libc::off_t, libc::off_t)) -> bool {
    let to_end = lock.l_len == 0;
    lock.l_start <= start && (to_end || lock.l_start + lock.l_len >= start + length)
}

fn writable(file: RawFd) -> Result<bool, c_int> {
    // SAFETY: the descriptor is open.
    match unsafe { libc::fcntl(file, libc::F_GETFL) } {
        -1 => Err(failed()),
        flags => Ok(flags & libc::O_ACCMODE != libc::O_RDONLY),
    }
}

/// Whether a file is in the table.
#[cfg(test)]
pub(super) fn is_locked(file: &std::fs::File) -> bool {
    use std::os::fd::AsRawFd;
    LOCKED.lock().contains_key(&Inode::of(file.as_raw_fd()).unwrap())
}
