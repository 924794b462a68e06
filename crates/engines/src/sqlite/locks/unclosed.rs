//! Unclosed descriptors: SQLite has closed them, but closing them now would drop another library's
//! locks.
//!
//! Duty: keep them open while this process has POSIX locks on their files, since closing any
//! descriptor of a file drops all POSIX locks of the process on it.
//! Invariant: no lock goes through an unclosed descriptor. SQLite gets it back when it opens the file
//! again, so there are never more of them than SQLite had open at once.

use std::ffi::{CStr, c_char, c_int};
use std::os::fd::RawFd;

use parking_lot::Mutex;

use super::{Inode, UNLOCKED, WRITE, call, over};

static UNCLOSED: Mutex<Vec<(RawFd, Inode)>> = Mutex::new(Vec::new());

/// Closes a descriptor, now or once closing it drops no lock of another library.
pub(super) fn close(file: RawFd) -> c_int {
    let mut unclosed = UNCLOSED.lock();
    unclosed.retain(|&(file, _)| posix_locked(file) || drop_file(file));
    let unlocked = || call(file, libc::F_OFD_SETLK, &mut over(UNLOCKED, (0, 0))).is_ok();
    match Inode::of(file) {
        Ok(inode) if posix_locked(file) && unlocked() => {
            unclosed.push((file, inode));
            0
        }
        // SAFETY: SQLite closes its own descriptor.
        _ => unsafe { libc::close(file) },
    }
}

/// An unclosed descriptor that is as good as opening the path.
pub(super) fn reopen(path: *const c_char, flags: c_int) -> Option<RawFd> {
    let mut unclosed = UNCLOSED.lock();
    unclosed.retain(|&(file, _)| posix_locked(file) || drop_file(file));
    if unclosed.is_empty() || flags & (libc::O_EXCL | libc::O_TRUNC | libc::O_DIRECTORY) != 0 {
        return None;
    }
    // SAFETY: SQLite's path is a C string.
    let inode = Inode::at(unsafe { CStr::from_ptr(path) })?;
    let fits = |&(file, of): &(RawFd, Inode)| {
        // SAFETY: the descriptor is open.
        let access = unsafe { libc::fcntl(file, libc::F_GETFL) } & libc::O_ACCMODE;
        of == inode && access == flags & libc::O_ACCMODE
    };
    let at = unclosed.iter().position(fits)?;
    Some(unclosed.swap_remove(at).0)
}

/// Closes an unclosed descriptor, and returns `false`: it does not stay in the table.
fn drop_file(file: RawFd) -> bool {
    // SAFETY: the descriptor is open and only in the table.
    unsafe { libc::close(file) };
    false
}

/// Whether this process has POSIX locks on a file, which are another library's.
fn posix_locked(file: RawFd) -> bool {
    let mut lock = over(WRITE, (0, 0));
    if call(file, libc::F_OFD_GETLK, &mut lock).is_err() || lock.l_type == UNLOCKED {
        return false;
    }
    // The system reports one lock, and there may be more.
    u32::try_from(lock.l_pid) == Ok(std::process::id()) || is_listed(file)
}

/// Whether the system lists a POSIX lock of this process on the file: with the descriptor by which it was set, which is
/// open while the process has the lock. The list of all locks of the system, `/proc/locks`, takes longer the more files
/// all processes have open.
fn is_listed(file: RawFd) -> bool {
    let Ok(inode) = Inode::of(file) else { return false };
    (0..descriptors_max()).any(|other| Inode::of(other) == Ok(inode) && has_posix_lock(other))
}

/// Above every descriptor of this process; 0 where the system has no such file. To try each number takes less time than
/// to list `/proc/thread-self/fd`.
fn descriptors_max() -> RawFd {
    let status = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
    let max = status.lines().find_map(|line| line.strip_prefix("FDSize:"));
    max.and_then(|max| max.trim().parse().ok()).unwrap_or(0)
}

/// Whether a POSIX lock was set by this descriptor.
fn has_posix_lock(descriptor: RawFd) -> bool {
    let info = std::fs::read_to_string(format!("/proc/thread-self/fdinfo/{descriptor}"));
    let is_posix = |line: &str| line.starts_with("lock:") && line.contains(" POSIX ");
    info.is_ok_and(|info| info.lines().any(is_posix))
}

/// The number of unclosed descriptors of a file.
#[cfg(test)]
pub(super) fn count(file: &std::fs::File) -> usize {
    use std::os::fd::AsRawFd;
    let inode = Inode::of(file.as_raw_fd()).unwrap();
    UNCLOSED.lock().iter().filter(|(_, of)| *of == inode).count()
}
